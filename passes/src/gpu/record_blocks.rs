//! Accesses to the numbers of an array of blocks: a flat view of the whole array for each number,
//! and the place of a cell in it.
//!
//! A block has the first numbers of `B` cells side by side, then their second numbers, and so on.
//! Cells are counted row-major. Cell `c` of records of `K` numbers has its number `k` at
//! `(c / B) * B * K + k * B + c mod B`, which is `c + (c - c mod B) * (K - 1) + k * B`. `B` is a
//! power of two.

use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{Region, ShapedTypeLike, Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::attribute::{self, read, read_optional};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// A number's place in the blocks of its record.
#[derive(Clone, Copy, Debug)]
pub struct Number {
    /// Its place in a cell.
    pub number: i64,
    /// Numbers of a cell.
    pub numbers: i64,
    /// Cells of a block.
    pub block: i64,
}

/// A view of a number's cells, in place of one with an index for each dimension.
pub struct Flat<'c> {
    number: Number,
    strides: Vec<Stride<'c>>,
}

/// Cells from one to the next of a dimension.
#[derive(Clone, Copy)]
enum Stride<'c> {
    Known(i64),
    Value(Val<'c>),
}

/// Makes the view of all numbers of a record, and keeps how cells were counted in the old view.
/// `dynamic` are the sizes and strides of the old one that are values.
pub fn view<'c>(
    builder: &Builder<'c>,
    old: Op<'c>,
    buffer: Val<'c>,
    number: Number,
    dynamic: &[Val<'c>],
) -> Result<(Val<'c>, Flat<'c>), Error> {
    let lists = |name| read(old, name, attribute::as_integers);
    let (sizes, steps) = (lists("static_sizes")?, lists("static_strides")?);
    let mut values = dynamic.iter().copied();
    let fault = || Error::internal("a view with too few sizes");
    let mut cells = builder.index(1)?;
    for size in sizes {
        let extent = match size {
            i64::MIN => values.next().ok_or_else(fault)?,
            size => builder.index(size)?,
        };
        cells = builder.binary("arith.muli", cells, extent)?;
    }
    let strides = steps.into_iter().map(|step| match step {
        i64::MIN => values.next().map(Stride::Value).ok_or_else(fault),
        step => Ok(Stride::Known(step)),
    });
    let strides = strides.collect::<Result<Vec<_>, _>>()?;
    let elements = elements(builder, cells, number)?;
    Ok((crate::reduce::block::view(builder, buffer, elements)?, Flat { number, strides }))
}

/// Elements of the blocks of so many cells; the last block is whole.
pub fn elements<'c>(
    builder: &Builder<'c>,
    cells: Val<'c>,
    Number { numbers, block, .. }: Number,
) -> Result<Val<'c>, Error> {
    let filled = builder.add_constant(cells, block - 1)?;
    builder.multiply_constant(begin(builder, filled, block)?, numbers)
}

/// The first cell of a cell's block.
fn begin<'c>(builder: &Builder<'c>, cell: Val<'c>, block: i64) -> Result<Val<'c>, Error> {
    match block {
        1 => Ok(cell),
        _ => builder.binary("arith.andi", cell, builder.index(-block)?),
    }
}

/// Replaces an access to a flat view, which still has an index for each dimension. Whether the
/// operation was one.
///
/// A vector whose alignment is its length stays one: it begins at a multiple of its cells, which
/// divides those of a block. The cells of another one may lie in two blocks; it becomes single
/// accesses.
///
/// # Errors
/// Other uses of the view.
pub fn access<'c>(
    outer: &Builder<'c>,
    op: Op<'c>,
    flats: &BTreeMap<usize, Flat<'c>>,
) -> Result<bool, Error> {
    let operands = mlir::operands(op);
    let is_flat = |value: &Val<'c>| flats.contains_key(&mlir::key(*value));
    let (value, memref, indices) = match (mlir::name(op), operands.as_slice()) {
        ("memref.load" | "vector.load" | "memref.prefetch", [memref, indices @ ..]) => {
            (None, *memref, indices)
        }
        ("memref.store" | "vector.store", [value, memref, indices @ ..]) => {
            (Some(*value), *memref, indices)
        }
        (name, all) if all.iter().any(is_flat) => {
            let message = format!(
                "{name} uses the number of an array of blocks; only loads, stores and prefetches \
                 may do so"
            );
            return Err(Error::new(mlir::place(op.location()), message));
        }
        _ => return Ok(false),
    };
    let Some(flat) = flats.get(&mlir::key(memref)) else { return Ok(false) };
    replace(outer, op, |builder| {
        let cell = flat.cell(builder, indices)?;
        let place = |lane| Ok(vec![flat.place(builder, builder.add_constant(cell, lane)?)?]);
        match (mlir::name(op), in_one_block(op, value, memref, flat.number.block)?) {
            ("memref.load", _) => Ok(Some(builder.load(memref, &place(0)?)?)),
            ("memref.prefetch", _) => {
                let named = ["isWrite", "localityHint", "isDataCache"]
                    .map(|name| Some((name, mlir::attribute(op, name)?)));
                let named: Vec<_> = named.into_iter().flatten().collect();
                let operands = [&[memref], place(0)?.as_slice()].concat();
                builder.op("memref.prefetch", &operands, &[], &named).map(|_| None)
            }
            ("memref.store", _) => {
                let value = value.ok_or_else(|| Error::internal("a store without a value"))?;
                builder.store(value, memref, &place(0)?).map(|()| None)
            }
            (name, Some(alignment)) => {
                let operands = value.into_iter().chain([memref]).chain(place(0)?);
                let operands: Vec<_> = operands.collect();
                let results: Vec<_> = mlir::results(op).iter().map(ValueLike::r#type).collect();
                let named = [("alignment", attribute::integer(builder.context, alignment))];
                let op = builder.op(name, &operands, &results, &named)?;
                Ok(mlir::results(op).first().copied())
            }
            (_, None) => single_accesses(builder, op, value, memref, place),
        }
    })?;
    Ok(true)
}

/// Puts other operations in the place of one, and the value that they give in the place of its
/// result.
pub fn replace<'c>(
    outer: &Builder<'c>,
    op: Op<'c>,
    build: impl FnOnce(&Builder<'c>) -> Result<Option<Val<'c>>, Error>,
) -> Result<(), Error> {
    let region = Region::new();
    let block = mlir::append_block(&region, &[]);
    let made = build(&Builder { location: op.location(), ..outer.at(block) })?;
    mlir::move_all_before(block, op);
    for (result, new) in mlir::results(op).into_iter().zip(made) {
        mlir::replace_uses(result, new);
    }
    mlir::erase(op);
    Ok(())
}

/// Loads the cells of a vector one by one, or stores those of `value`; `place` gives the indices of
/// a cell. The vector that was loaded.
pub fn single_accesses<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    value: Option<Val<'c>>,
    memref: Val<'c>,
    place: impl Fn(i64) -> Result<Vec<Val<'c>>, Error>,
) -> Result<Option<Val<'c>>, Error> {
    let vector = value.or_else(|| mlir::results(op).first().copied());
    let ty = vector.ok_or_else(|| Error::internal("a vector without a value"))?.r#type();
    let cells = 0..mlir::vector_cells(ty);
    let Some(value) = value else {
        let loads = cells.map(|cell| builder.load(memref, &place(cell)?));
        let loads = loads.collect::<Result<Vec<_>, _>>()?;
        return builder.value("vector.from_elements", &loads, ty, &[]).map(Some);
    };
    for cell in cells {
        let named = [("static_position", attribute::integers(builder.context, &[cell]))];
        let one = builder.value("vector.extract", &[value], element(memref)?, &named)?;
        builder.store(one, memref, &place(cell)?)?;
    }
    Ok(None)
}

fn element<'c>(memref: Val<'c>) -> Result<Type<'c>, Error> {
    let ty = MemRefType::try_from(memref.r#type());
    ty.map(|ty| ty.element()).map_err(|error| Error::internal(error.to_string()))
}

/// The promised alignment of a vector, in bytes, where that is its length: it then begins at a
/// multiple of its cells. None where these are more than a block's.
fn in_one_block(op: Op, value: Option<Val>, memref: Val, block: i64) -> Result<Option<i64>, Error> {
    let vector = value.or_else(|| mlir::results(op).first().copied());
    let cells = vector.map_or(0, |vector| mlir::vector_cells(vector.r#type()));
    let bytes = i64::from(mlir::bit_width(element(memref)?).unwrap_or(0) / 8).saturating_mul(cells);
    let promised = read_optional(op, "alignment", attribute::as_integer)?;
    Ok(promised.filter(|promised| bytes > 0 && cells <= block && promised % bytes == 0))
}

impl<'c> Flat<'c> {
    /// The number of a cell, counted row-major.
    fn cell(&self, builder: &Builder<'c>, indices: &[Val<'c>]) -> Result<Val<'c>, Error> {
        let mut cell = builder.index(0)?;
        for (index, stride) in indices.iter().zip(&self.strides) {
            let cells = match *stride {
                Stride::Known(stride) => builder.multiply_constant(*index, stride)?,
                Stride::Value(stride) => builder.binary("arith.muli", *index, stride)?,
            };
            cell = builder.add(cell, cells)?;
        }
        Ok(cell)
    }

    /// The place of the number of a cell.
    fn place(&self, builder: &Builder<'c>, cell: Val<'c>) -> Result<Val<'c>, Error> {
        let Number { number, numbers, block } = self.number;
        let begin = begin(builder, cell, block)?;
        let others = builder.multiply_constant(begin, numbers - 1)?;
        builder.add_constant(builder.add(cell, others)?, number.saturating_mul(block))
    }
}
