//! `number-blocks`: some of a kernel's blocks can be launched by themselves.
//!
//! Needs: lowered kernels of a GPU. Guarantees: a kernel whose launch has a cut in the plan gets
//! one more argument, bound to `"first_block"`. Its blocks are numbered from there on. Several
//! devices then launch a part of the blocks each. A launch of all blocks has 0 there, and does what
//! it did.
//!
//! ```text
//! gpu.func @heat_1(%a: memref<f32>, ...) {
//!   %0 = gpu.block_id x
//! ```
//! becomes
//! ```text
//! gpu.func @heat_1(%a: memref<f32>, ..., %first: index) {
//!   %0 = gpu.block_id x
//!   %1 = arith.addi %0, %first
//! ```
//!
//! Leaves kernels that are launched in bands (argument `"row"`), and those without a cut. A second
//! run changes nothing.

use crate::analysis::lane_values;
use crate::kernel::{added_argument, tile_place};
use crate::launch_plan;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::Module;
use stencil_dialects::builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Binding, Launch};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "number-blocks",
    summary: "kernels take the number of their first block, so that devices share them",
    options: &[],
    read: |_: &Options| Ok(Box::new(NumberBlocks)),
};

/// The pass.
pub struct NumberBlocks;

impl Pass for NumberBlocks {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let program = Program::read(module)?;
        for launch in tiled::launches(module)? {
            let numbered = launch.bindings.iter().any(|one| {
                matches!(one, Binding::FirstBlock | Binding::Row | Binding::Flags | Binding::Turn)
            });
            if mlir::name(launch.op) == "gpu.func"
                && !numbered
                && launch_plan::is_cut(&program, &launch)?
            {
                number(context, &program, &launch)?;
            }
        }
        Ok(())
    }
}

/// Numbers the blocks of a kernel from an argument on.
fn number<'c>(
    context: &'c Context,
    program: &Program<'c>,
    launch: &Launch<'c>,
) -> Result<(), Error> {
    let all = mlir::walk(launch.op);
    let ids: Vec<Op> = all.into_iter().filter(|op| is_number(*op)).collect();
    let first = added_argument::add(context, program, launch, Binding::FirstBlock)?;
    let lacks = || Error::internal(format!("@{} has no body", launch.name));
    let entry = mlir::entry(launch.op).ok_or_else(lacks)?;
    let top = *mlir::operations(entry).first().ok_or_else(lacks)?;
    let number = builder::before(context, top, |builder| {
        builder.add(tile_place::number(builder, "gpu.block_id", "x")?, first)
    })?;
    for old in ids {
        let value = *mlir::results(old).first().ok_or_else(lacks)?;
        mlir::replace_uses(value, number);
        mlir::erase(old);
    }
    Ok(())
}

/// Whether an operation is the number of a block in x.
fn is_number(op: Op) -> bool {
    mlir::name(op) == "gpu.block_id" && lane_values::axis(op) == Some(0)
}
