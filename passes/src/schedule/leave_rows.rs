//! Makes a sweep leave rows in memory in place of fields, and values of rows in place of the points
//! of reductions (`analysis/sweep_rows.rs`).
//!
//! Reads of a field find its last rows in a field of their own. A reduction's points become the
//! values of the rows of its box, one column of cells. Kernels of reductions combine them as any
//! other points.
//!
//! ```text
//! "stencil.reduce"() {field = @best, grid = @box, function = @f, operation = "max"}
//! ```
//! becomes
//! ```text
//! "stencil.reduce"() {field = @best, grid = @best.rows.box, function = @best.of_rows, ...}
//! ```
//! and the tile kernel has
//! ```text
//! tiled.last_rows = [{field = @H, memory = @H.rows, handed = 1, kept = 1}],
//! tiled.row_values = [{of = [{function = @f, ...}], operation = "max", value = @best.rows}]
//! ```

use crate::analysis::sweep_rows::{Enough, Reduced, SweepRows};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Type};
use stencil_dialects::affine::Linear;
use stencil_dialects::attribute::{self, read};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Argument, Field, Piece, Reduce, Role};
use stencil_dialects::tiled::{self, LastRows, RowValue, Rows};

/// Makes the kernel of a sweep leave rows and values of rows alone, and all others read them.
pub fn leave<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: Op<'c>,
    enough: &SweepRows<'c, '_>,
) -> Result<(), Error> {
    let builder = Builder::new(context, kernel.location(), mlir::body(subject.module));
    let leaver = Leaver { builder, subject };
    let mut rows = Rows::default();
    for reduced in &enough.reduced {
        rows.values.push(leaver.values(reduced)?);
    }
    for enough in enough.last.iter().filter(|enough| enough.handed + enough.kept > 0) {
        rows.last.push(leaver.last_rows(enough, &rows.values)?);
    }
    tiled::set_rows(&builder, kernel, &rows);
    Ok(())
}

/// A field and its grid.
type Column<'c> = (&'c str, &'c str);

struct Leaver<'c, 'p> {
    builder: Builder<'c>,
    subject: &'p Subject<'c, 'p>,
}

impl<'c> Leaver<'c, '_> {
    /// Declares the rows of a field, and makes all functions but those of the sweep read them.
    fn last_rows(
        &self,
        enough: &Enough<'c>,
        values: &[RowValue<'c>],
    ) -> Result<LastRows<'c>, Error> {
        let &Enough { field, handed, kept } = enough;
        let program = self.subject.program;
        let grid = program.grid_of(field)?;
        let (lower, upper) = (linear(grid.lower)?, linear(grid.upper)?);
        let ([last, _], [_, column]) = (upper.as_slice(), lower.as_slice()) else {
            return Err(Error::internal("rows of a grid of another rank"));
        };
        let constant = last.constant.saturating_add(1 - handed - kept);
        let first = Linear { constant, ..last.clone() };
        let name = format!("{field}.rows");
        let bounds = [vec![first, column.clone()], upper.clone()];
        let rows = self.declare(&name, bounds, program.field(field)?)?.0;
        for op in mlir::operations(mlir::body(self.subject.module)) {
            let of_sweep = |row: &RowValue| stencil::function_name(op) == Ok(row.piece.function);
            if mlir::name(op) == "func.func" && !values.iter().any(of_sweep) {
                self.redirect(op, (field, rows));
            }
        }
        Ok(LastRows { field, rows, handed, kept })
    }

    /// Makes a reduction combine values of rows; gives what the sweep computes of each row.
    fn values(&self, reduced: &Reduced<'c, '_>) -> Result<RowValue<'c>, Error> {
        let program = self.subject.program;
        let Reduced { reduce, place } = reduced;
        let (piece, combine) = (program.reduced(reduce)?, reduce.combine);
        let best = program.field(reduce.field)?;
        let value = self.column(&piece, best)?;
        let read = |(field, _): Column<'c>, of: &Field<'c>| {
            (Argument::Read { field, offset: vec![0, 0] }, of.element)
        };
        let values = [read(value, best)];
        self.replace(reduce, value, &values, |_, own| Ok(own.first().copied()))?;
        let Some(place) = place else {
            return Ok(RowValue { piece, combine, value: value.0, place: None });
        };
        let number = program.field(place.field)?;
        let first = self.column(&piece, number)?;
        let old = stencil::function(self.subject.module, place.function)?;
        let values = [read(value, best), read(first, number)];
        self.replace(place, first, &values, |builder, own| {
            let &[value, first] = own else { return Ok(None) };
            let zero = builder.constant(builder.integer_type(64), 0)?;
            let found = stencil::gather(builder, best.name, &[zero], best.element)?;
            let none = builder.constant(number.element, i64::MAX)?;
            let has = builder.compare(Compare::Eq, value, found)?;
            builder.select(has, first, none).map(Some)
        })?;
        mlir::erase(old);
        Ok(RowValue { piece, combine, value: value.0, place: Some(first.0) })
    }

    /// Declares a field with a cell for each row of a sweep, in the first column of a box; gives it
    /// with the name of a grid of the rows of the box. A box may lie anywhere if it is empty.
    fn column(&self, piece: &Piece<'c>, of: &Field<'c>) -> Result<Column<'c>, Error> {
        let Self { builder, subject } = self;
        let program = subject.program;
        let mut arguments = program.arguments(piece.function)?.iter();
        let swept = arguments.find_map(|argument| match argument {
            Argument::Read { field, .. } => Some(program.grid_of(field)),
            _ => None,
        });
        let grid = swept.ok_or_else(|| Error::internal("a reduction that reads nothing"))??;
        let (lower, upper) = (linear(piece.lower)?, linear(piece.upper)?);
        let [top, bottom] = [linear(grid.lower)?, linear(grid.upper)?];
        let ([_, column], [last, _]) = (lower.as_slice(), upper.as_slice()) else {
            return Err(Error::internal("a box of another rank"));
        };
        let ([top, _], [bottom, _]) = (top.as_slice(), bottom.as_slice()) else {
            return Err(Error::internal("a sweep of another rank"));
        };
        let in_column = |row: &Linear| vec![row.clone(), column.clone()];
        let name = format!("{}.rows", of.name);
        let (field, _) = self.declare(&name, [in_column(top), in_column(bottom)], of)?;
        let rows = stencil::unused_name(subject.module, &format!("{name}.box"));
        let op = stencil::grid(builder, &rows, piece.lower, self.map(&in_column(last)))?;
        Ok((field, read(op, "sym_name", attribute::as_string)?))
    }

    fn map(&self, bounds: &[Linear]) -> AffineMap<'c> {
        Linear::map(self.builder.context, self.subject.program.params.len(), bounds)
    }

    /// Declares a temp field of the type of another, on a grid of its own.
    fn declare(
        &self,
        name: &str,
        [lower, upper]: [Vec<Linear>; 2],
        of: &Field<'c>,
    ) -> Result<Column<'c>, Error> {
        let Self { builder, subject } = self;
        let name = stencil::unused_name(subject.module, name);
        let grid = stencil::unused_name(subject.module, &format!("{name}.grid"));
        stencil::grid(builder, &grid, self.map(&lower), self.map(&upper))?;
        let declared = read(of.op, "type", attribute::as_type)?;
        let op = stencil::field(builder, &name, &grid, declared, Role::Temp, None)?;
        let grid = read(op, "grid", attribute::as_symbol)?;
        Ok((read(op, "sym_name", attribute::as_string)?, grid))
    }

    /// Makes a reduction combine the cells of a column: what a function of some fields gives.
    fn replace(
        &self,
        reduce: &Reduce<'c>,
        (_, grid): Column<'c>,
        reads: &[(Argument<'c>, Type<'c>)],
        value: impl FnOnce(&Builder<'c>, &[Val<'c>]) -> Result<Option<Val<'c>>, Error>,
    ) -> Result<(), Error> {
        let Self { builder, subject } = self;
        let name = stencil::unused_name(subject.module, &format!("{}.of_rows", reduce.field));
        let element = subject.program.field(reduce.field)?.element;
        let (_, entry) = stencil::point_function(builder, &name, reads, &[element])?;
        let function = builder.at(entry);
        let value = value(&function, &mlir::arguments(entry))?;
        let value = value.ok_or_else(|| Error::internal("a function of no fields"))?;
        function.op("func.return", &[value], &[], &[])?;
        let symbol = |name: &str| attribute::symbol(builder.context, name);
        mlir::set_attribute(reduce.op, "function", symbol(&name));
        mlir::set_attribute(reduce.op, "grid", symbol(grid));
        Ok(())
    }

    /// Makes a function read another field in the place of one.
    fn redirect(&self, function: Op<'c>, (from, to): (&str, &str)) {
        let context = self.builder.context;
        let symbol = attribute::symbol(context, to);
        for gather in stencil::gathers(function).into_iter().flatten() {
            if gather.field == from {
                mlir::set_attribute(gather.op, "field", symbol);
            }
        }
        let arguments = mlir::attribute(function, "arg_attrs").and_then(attribute::as_array);
        let Some(arguments) = arguments else { return };
        let renamed = arguments.into_iter().map(|argument| {
            let read = attribute::entry(argument, "stencil.read").and_then(attribute::as_symbol);
            match (read, attribute::entry(argument, "stencil.offset")) {
                (Some(field), Some(offset)) if field == from => {
                    let named = [("stencil.read", symbol), ("stencil.offset", offset)];
                    attribute::dictionary(context, &named)
                }
                _ => argument,
            }
        });
        let renamed: Vec<_> = renamed.collect();
        mlir::set_attribute(function, "arg_attrs", attribute::array(context, &renamed));
    }
}

fn linear(map: AffineMap) -> Result<Vec<Linear>, Error> {
    Linear::of_map(map).ok_or_else(|| Error::internal("a box whose bounds are not linear"))
}
