//! The tile kernels of a lowering: selection, hull, and removal after lowering.

use crate::analysis::hull::{self, Hull};
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Argument, Program};
use stencil_dialects::tiled::{self, Apply, Keeps, Kernel, TileOp};

/// The tile kernels of a strategy whose applies compute sums whole.
///
/// # Errors
/// An apply that goes on with a partial result.
pub fn of_strategy<'c>(module: &Module<'c>, strategy: &str) -> Result<Vec<Kernel<'c>>, Error> {
    let kernels = leaving_rows(module, strategy)?;
    if let Some(kernel) = kernels.iter().find(|kernel| !kernel.rows.is_empty()) {
        return Err(Error::new(
            mlir::place(kernel.op.location()),
            format!("the strategy {strategy} has no tiled.last_rows and no tiled.row_values"),
        ));
    }
    Ok(kernels)
}

/// The same of a strategy that may leave rows.
pub fn leaving_rows<'c>(module: &Module<'c>, strategy: &str) -> Result<Vec<Kernel<'c>>, Error> {
    let kernels = with_partial_sums(module, strategy)?;
    let in_parts = |apply: &&Apply| apply.partial.is_some() || apply.keeps != Keeps::Old;
    if let Some(apply) = kernels.iter().flat_map(Kernel::applies).find(in_parts) {
        return Err(Error::new(
            mlir::place(apply.op.location()),
            format!("the strategy {strategy} has no tiled.partial and no tiled.keeps"),
        ));
    }
    Ok(kernels)
}

/// The tile kernels of a strategy whose applies may go on with a partial result.
pub fn with_partial_sums<'c>(
    module: &Module<'c>,
    strategy: &str,
) -> Result<Vec<Kernel<'c>>, Error> {
    let kernels = tiled::kernels(module)?.into_iter();
    Ok(kernels.filter(|kernel| kernel.schedule.strategy == strategy).collect())
}

/// Refuses an apply that reads values of its own sweep which the kernel does not store.
pub fn check_stored<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<(), Error> {
    check_stored_from(program, kernel, &|_| true)
}

/// The same where values at some offsets alone come from memory. Rows that are handed on do too.
pub fn check_stored_from<'c>(
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    in_memory: &dyn Fn(&[i64]) -> bool,
) -> Result<(), Error> {
    for apply in kernel.applies() {
        for piece in &apply.pieces {
            for argument in program.arguments(piece.function)? {
                if let Argument::Current { field, offset } = argument
                    && in_memory(offset)
                    && !kernel.stores(field)
                    && kernel.rows.of(field).is_none_or(|rows| rows.handed == 0)
                {
                    return Err(Error::new(
                        mlir::place(apply.op.location()),
                        format!(
                            "the function reads values of @{field} of its own sweep, and the \
                             kernel does not store them; add a tiled.store of @{field}"
                        ),
                    ));
                }
            }
        }
    }
    Ok(())
}

/// Lowers tile kernels one by one, and erases them.
///
/// # Errors
/// The first error of a lowering.
pub fn lower<'c>(
    module: &Module<'c>,
    kernels: &[Kernel<'c>],
    lower: impl Fn(&Subject<'c, '_>, &Kernel<'c>) -> Result<(), Error>,
) -> Result<(), Error> {
    let program = Program::read(module)?;
    let subject = Subject::of(module, &program)?;
    kernels.iter().try_for_each(|kernel| lower(&subject, kernel))?;
    erase(module, kernels)
}

/// Erases tile kernels that are lowered, and the point functions that nothing uses any more.
fn erase(module: &Module, lowered: &[Kernel]) -> Result<(), Error> {
    let functions = |kernel: &Kernel| -> Vec<String> {
        let of_rows = kernel.rows.values.iter().map(|row| &row.piece);
        let pieces = kernel.applies().flat_map(|apply| &apply.pieces).chain(of_rows);
        pieces.map(|piece| piece.function.to_owned()).collect()
    };
    let used: BTreeSet<String> = lowered.iter().flat_map(functions).collect();
    for kernel in lowered {
        mlir::erase(kernel.op);
    }
    let waiting: BTreeSet<String> = tiled::kernels(module)?.iter().flat_map(functions).collect();
    let program = Program::read(module)?;
    let applied = program.applies.iter().flat_map(|apply| &apply.pieces);
    let reduced = program.reduces.iter().map(|reduce| reduce.function);
    let applied: BTreeSet<&str> = applied.map(|piece| piece.function).chain(reduced).collect();
    for name in used.difference(&waiting).filter(|name| !applied.contains(name.as_str())) {
        mlir::erase(stencil::function(module, name)?);
    }
    Ok(())
}

/// What the tiles cut: the hull of the stored fields' grids. It is alike where all fields that the
/// kernel computes lie on it.
pub fn hull<'c>(
    context: &'c Context,
    program: &Program<'c>,
    kernel: &Kernel<'c>,
) -> Result<Hull<'c>, Error> {
    let (mut stored, mut computed) = (Vec::new(), Vec::new());
    for op in &kernel.body {
        match op {
            TileOp::Store { field, .. } => stored.push(*field),
            TileOp::Apply(apply) => computed.extend(apply.outputs.iter().map(|(field, _)| *field)),
            TileOp::Load { .. } => {}
        }
    }
    let refuse = |message| Error::new(mlir::place(kernel.op.location()), message);
    if stored.is_empty() && kernel.rows.is_empty() {
        return Err(refuse("the tile kernel stores nothing"));
    }
    if stored.is_empty() {
        stored.clone_from(&computed);
    }
    let different = || refuse("the tile kernel updates fields of different ranks");
    let all = hull::of(context, program, &computed)?.ok_or_else(different)?;
    let hull = hull::of(context, program, &stored)?.ok_or_else(different)?;
    Ok(Hull { alike: all.alike, ..hull })
}
