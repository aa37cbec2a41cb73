//! `convert-prefetch-to-nvvm`: prefetches of the LLVM dialect, which LLVM's backend for NVIDIA
//! drops, become those of the NVVM dialect.
//!
//! Needs: the LLVM dialect, after `finalize-memref-to-llvm`. Guarantees: no `llvm.intr.prefetch` is
//! left; each of generic or global memory is a prefetch into the level 2 cache, whatever its hint,
//! and others are dropped.
//!
//! ```text
//! "llvm.intr.prefetch"(%p) <{cache = 1 : i32, hint = 2 : i32, rw = 0 : i32}> : (!llvm.ptr) -> ()
//! ```
//! becomes
//! ```text
//! nvvm.prefetch level = L2, %p : !llvm.ptr
//! ```

use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Module, Region, ValueLike};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "convert-prefetch-to-nvvm",
    summary: "say prefetches in the NVVM dialect",
    options: &[],
    read: |_: &Options| Ok(Box::new(ConvertPrefetchToNvvm)),
};

/// The pass.
pub struct ConvertPrefetchToNvvm;

impl Pass for ConvertPrefetchToNvvm {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn takes_branches(&self) -> bool {
        true
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(mlir::walk(mlir::module_op(module)).into_iter().any(is_prefetch))
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        run(context, module)
    }
}

fn is_prefetch(op: Op) -> bool {
    mlir::name(op) == "llvm.intr.prefetch"
}

fn run<'c>(context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
    let all = mlir::walk(mlir::module_op(module));
    for op in all.into_iter().filter(|op| is_prefetch(*op)) {
        let pointers = mlir::operands(op);
        if !pointers.iter().all(|pointer| {
            matches!(pointer.r#type().to_string().as_str(), "!llvm.ptr" | "!llvm.ptr<1>")
        }) {
            mlir::erase(op);
            continue;
        }
        let level = Attribute::parse(context, "#nvvm<prefetch_cache_level L2>")
            .ok_or_else(|| Error::internal("the nvvm dialect is not loaded"))?;
        let region = Region::new();
        let builder = Builder::new(context, op.location(), mlir::append_block(&region, &[]));
        builder.op("nvvm.prefetch", &pointers, &[], &[("cacheLevel", level)])?;
        mlir::move_all_before(builder.block, op);
        mlir::erase(op);
    }
    Ok(())
}
