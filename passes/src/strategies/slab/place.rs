//! Where the cells of a tile value lie in memory, as arguments of a function and as values in it.

use super::layout::{LINE, Window, bytes_of};
use crate::kernel::field_buffers::extents;
use crate::kernel::host_function::reinterpret;
use crate::kernel::scope::Scope;
use melior::ir::r#type::MemRefType;
use melior::ir::{ShapedTypeLike, Type, ValueLike};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// Arguments that a place takes.
pub const ARGUMENTS: usize = 6;

/// Memory of cells. The cell at `[p, y, x]` is number
/// `((p - first) mod planes) * plane + y * row + x + offset`, where fewer dimensions have fewer
/// terms: a grid of two has planes of one row, and one of one dimension has `x + offset`. In two
/// dimensions `planes` is a power of two: a division for each row would take longer than the
/// memory costs.
#[derive(Clone, Copy)]
pub struct Place<'c> {
    /// The first cell, as a memref of rank 0.
    pub cells: Val<'c>,
    /// The plane that lies in the first place.
    pub first: Val<'c>,
    /// Planes that have a place of their own; in two dimensions one less. No plane before the first
    /// is asked for.
    pub planes: Val<'c>,
    /// Cells from a plane to the next.
    pub plane: Val<'c>,
    /// Cells from a row to the next.
    pub row: Val<'c>,
    /// The number of the cell at 0.
    pub offset: Val<'c>,
}

impl<'c> Place<'c> {
    /// The types of its arguments.
    pub fn types(builder: &Builder<'c>, element: Type<'c>) -> [Type<'c>; ARGUMENTS] {
        let index = builder.index_type();
        [MemRefType::new(element, &[], None, None).into(), index, index, index, index, index]
    }

    /// As arguments.
    pub fn values(&self) -> [Val<'c>; ARGUMENTS] {
        [self.cells, self.first, self.planes, self.plane, self.row, self.offset]
    }

    /// From arguments.
    pub fn read(values: &[Val<'c>]) -> Result<Self, Error> {
        match *values {
            [cells, first, planes, plane, row, offset] => {
                Ok(Self { cells, first, planes, plane, row, offset })
            }
            _ => Err(Error::internal("a place of other arguments")),
        }
    }

    /// The memory of a field.
    pub fn of_field(
        builder: &Builder<'c>,
        scope: &Scope<'c, '_>,
        field: &str,
        cells: Val<'c>,
    ) -> Result<Self, Error> {
        let grid = scope.program.grid_of(field)?;
        let lower = scope.bounds(builder, grid.lower)?;
        let extents = extents(builder.context, grid.lower, grid.upper)?;
        let extents: Vec<_> = extents
            .into_iter()
            .map(|extent| builder.affine(extent, &[], &scope.params))
            .collect::<Result<_, _>>()?;
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        let all = builder.index(-1)?;
        let times = |a, b| builder.binary("arith.muli", a, b);
        let minus = |a, b| builder.binary("arith.subi", a, b);
        Ok(match (lower.as_slice(), extents.as_slice()) {
            ([x], _) => Self {
                cells,
                first: zero,
                planes: all,
                plane: one,
                row: one,
                offset: minus(zero, *x)?,
            },
            ([p, x], [_, row]) => Self {
                cells,
                first: *p,
                planes: all,
                plane: *row,
                row: *row,
                offset: minus(zero, *x)?,
            },
            ([p, y, x], [_, rows, row]) => {
                let before = builder.add(times(*y, *row)?, *x)?;
                let plane = times(*rows, *row)?;
                Self {
                    cells,
                    first: *p,
                    planes: all,
                    plane,
                    row: *row,
                    offset: minus(zero, before)?,
                }
            }
            _ => return Err(Error::internal("a field of too many dimensions")),
        })
    }

    /// A window in the thread's memory, around a tile of some origin.
    pub fn of_window(
        builder: &Builder<'c>,
        window: &Window<'c>,
        memory: Val<'c>,
        origin: &[Val<'c>],
    ) -> Result<Self, Error> {
        let cells = MemRefType::new(window.element, &[window.cells()], None, None);
        let byte = builder.index(window.first_byte)?;
        let view = builder.value("memref.view", &[memory, byte], cells.into(), &[])?;
        let single = MemRefType::new(window.element, &[], None, None);
        let cells = reinterpret(builder, view, single, &[])?;
        let at = |dimension: usize| -> Result<Val<'c>, Error> {
            let lower = window.halo.lower.get(dimension).copied().unwrap_or(0);
            let origin = origin.get(dimension).copied();
            builder.add_constant(
                origin.ok_or_else(|| Error::internal("a tile without origin"))?,
                lower,
            )
        };
        let zero = builder.index(0)?;
        let minus = |value| builder.binary("arith.subi", zero, value);
        // Rows begin with a line of the cache.
        let line = builder.index(-(LINE / bytes_of(window.element)))?;
        let begin = |dimension| builder.binary("arith.andi", at(dimension)?, line);
        let (row, plane) = (builder.index(window.row)?, builder.index(window.plane)?);
        let planes = builder.index(window.planes - i64::from(origin.len() == 2))?;
        Ok(match origin.len() {
            1 => Self { cells, first: zero, planes, plane, row, offset: minus(begin(0)?)? },
            2 => Self { cells, first: at(0)?, planes, plane, row, offset: minus(begin(1)?)? },
            _ => {
                let before = builder.binary("arith.muli", at(1)?, row)?;
                let offset = minus(builder.add(before, begin(2)?)?)?;
                Self { cells, first: at(0)?, planes, plane, row, offset }
            }
        })
    }

    /// The memory as a memref of one dimension.
    pub fn flat(&self, builder: &Builder<'c>) -> Result<Val<'c>, Error> {
        let element = element(self.cells)?;
        let layout = melior::ir::attribute::StridedLayoutAttribute::new(builder.context, 0, &[1]);
        // Cells have numbers below this, whatever their memory is.
        let many = i64::MAX / bytes_of(element);
        let ty = MemRefType::new(element, &[many], Some(layout.into()), None);
        reinterpret(builder, self.cells, ty, &[many])
    }

    /// The number of the cell at coordinate 0 of a row.
    pub fn row_start(&self, builder: &Builder<'c>, row: &[Val<'c>]) -> Result<Val<'c>, Error> {
        let Some((plane, rows)) = row.split_first() else { return Ok(self.offset) };
        let number = builder.binary("arith.subi", *plane, self.first)?;
        let wrap = if rows.is_empty() { "arith.andi" } else { "arith.remui" };
        let number = builder.binary(wrap, number, self.planes)?;
        let mut start = builder.binary("arith.muli", number, self.plane)?;
        for row in rows {
            start = builder.add(start, builder.binary("arith.muli", *row, self.row)?)?;
        }
        builder.add(start, self.offset)
    }

    /// The number of a cell.
    pub fn number(&self, builder: &Builder<'c>, cell: &[Val<'c>]) -> Result<Val<'c>, Error> {
        let Some((at, row)) = cell.split_last() else {
            return Err(Error::internal("a cell without coordinates"));
        };
        builder.add(self.row_start(builder, row)?, *at)
    }
}

/// The type of the cells of a memref.
pub fn element<'c>(cells: Val<'c>) -> Result<Type<'c>, Error> {
    let memref = MemRefType::try_from(cells.r#type());
    Ok(memref.map_err(|error| Error::internal(error.to_string()))?.element())
}
