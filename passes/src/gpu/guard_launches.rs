//! `guard-launches`: the kernels of a program with a condition do nothing once it holds.
//!
//! Needs: lowered kernels of a GPU, and a `stencil.until`. Guarantees: a kernel loads the condition
//! before all else, and stores nothing where it is not 0. A kernel that computes the condition
//! loads it from the buffer that it updates; the others get one more argument, bound to
//! `"unless"`. A run may therefore send launches before it knows whether the last condition holds
//! ([`stencil_runtime::bands`]).
//!
//! A launch may run while the condition is computed. Warps of one block then see different values:
//! some leave, and the others go on without them. This does no harm. Nothing reads what such a
//! launch stores. Barriers wait for the threads that have not left (CUDA C++ Programming Guide,
//! compute capability 7.x). A warp loads the value once, so that shuffles have all lanes. Blocks
//! that wait for other blocks run alone.
//!
//! ```text
//! gpu.func @heat_4(%a: memref<f32>, ...) {
//!   body
//!   gpu.return
//! }
//! ```
//! becomes
//! ```text
//! gpu.func @heat_4(%a: memref<f32>, ..., %condition: memref<i32>) {
//!   %0 = memref.load %condition[]
//!   %1 = arith.cmpi eq, %0, %zero
//!   scf.if %1 {
//!     body
//!   }
//!   gpu.return
//! }
//! ```
//!
//! Refuses a module in which points of reductions are stored and not combined yet: their kernels
//! would get no guard. A second run changes nothing.

use crate::analysis::reductions;
use crate::kernel::added_argument;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, Region};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{Field, Program};
use stencil_dialects::tiled::{self, Binding, Launch};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "guard-launches",
    summary: "kernels do nothing once the condition of the run holds",
    options: &[],
    read: |_: &Options| Ok(Box::new(GuardLaunches)),
};

/// The pass.
pub struct GuardLaunches;

impl Pass for GuardLaunches {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(Program::read(module)?.until.is_some())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let program = Program::read(module)?;
        let Some(until) = &program.until else { return Ok(()) };
        let condition = program.field(until.condition)?;
        if let Some(field) = reductions::uncombined(&program)? {
            return Err(Error::new(
                mlir::place(field.op.location()),
                "the kernels that combine the points of this reduction are still to come; run \
                 combine-stores before guard-launches",
            ));
        }
        for launch in tiled::launches(module)? {
            let on_gpu = mlir::name(launch.op) == "gpu.func";
            if on_gpu && !launch.bindings.contains(&Binding::Unless(condition.name)) {
                guard(context, &program, &launch, condition)?;
            }
        }
        Ok(())
    }
}

/// Guards a kernel; leaves one that looks at its own condition already.
fn guard<'c>(
    context: &'c Context,
    program: &Program<'c>,
    launch: &Launch<'c>,
    condition: &Field<'c>,
) -> Result<(), Error> {
    let lacks = |what: &str| Error::internal(format!("@{} has no {what}", launch.name));
    let entry = mlir::entry(launch.op).ok_or_else(|| lacks("body"))?;
    let body = mlir::operations(entry);
    let (Some(first), Some((_, inner))) = (body.first(), body.split_last()) else {
        return Err(lacks("operation"));
    };
    let own = Binding::ReadWrite(condition.name);
    let value = match launch.bindings.iter().position(|binding| *binding == own) {
        Some(place) => {
            let own = mlir::arguments(entry).get(place).copied();
            own.ok_or_else(|| lacks("argument"))?
        }
        None => added_argument::add(context, program, launch, Binding::Unless(condition.name))?,
    };
    if is_guarded(&body, value) {
        return Ok(());
    }
    let region = Region::new();
    let outside = mlir::append_block(&region, &[]);
    let builder = Builder::new(context, launch.op.location(), outside);
    let value = builder.load(value, &[])?;
    let open = builder.compare(Compare::Eq, value, builder.constant(condition.element, 0)?)?;
    let mut inside = None;
    builder.when(open, |builder| {
        inside = Some(builder.block);
        Ok(())
    })?;
    let end = inside.and_then(|block| mlir::operations(block).last().copied());
    let end = end.ok_or_else(|| lacks("guard"))?;
    mlir::move_all_before(outside, *first);
    inner.iter().for_each(|op| mlir::move_before(*op, end));
    Ok(())
}

/// Whether a body is one branch behind a load of a value and its comparison.
fn is_guarded<'c>(body: &[Op<'c>], value: Val<'c>) -> bool {
    let plain = body.iter().filter(|op| mlir::name(**op) != "arith.constant");
    let [load, compare, branch, end] = plain.copied().collect::<Vec<_>>()[..] else { return false };
    let names = [load, compare, branch, end].map(|op| mlir::name(op));
    names == ["memref.load", "arith.cmpi", "scf.if", "gpu.return"]
        && mlir::operands(load).first().map(|loaded| mlir::key(*loaded)) == Some(mlir::key(value))
}
