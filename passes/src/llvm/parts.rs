//! A `gpu.module` in parts that can be compiled side by side.

use melior::Context;
use melior::ir::attribute::{IntegerAttribute, StringAttribute};
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike};
use melior::ir::{Block, Identifier, Module, Region, RegionLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

/// LLVM's number of the address space of shared memory on NVIDIA's devices.
pub const SHARED_MEMORY: u16 = 3;

/// Each part of a `gpu.module` in the LLVM dialect, as LLVM IR. What defines a symbol and what
/// refers to it stand in one part, in their old order. Declarations stand in all parts, and so does
/// shared memory: each launch has its own, so kernels share no more than its name.
///
/// # Errors
/// When the translation fails.
pub fn of<'c>(context: &'c Context, kernels: Op<'c>) -> Result<Vec<String>, Error> {
    let items = mlir::entry(kernels).map(mlir::operations).unwrap_or_default();
    let groups = groups(&items);
    if groups.len() < 2 {
        return Ok(vec![mlir::to_llvm_ir(context, kernels)?]);
    }
    groups.iter().map(|group| part(context, kernels, &items, group)).collect()
}

/// The indices of definitions that refer to each other, ordered by the first of each group.
fn groups(items: &[Op]) -> Vec<BTreeSet<usize>> {
    let definitions = || items.iter().enumerate().filter(|(_, op)| !is_in_all_parts(**op));
    let names: BTreeMap<&str, usize> =
        definitions().filter_map(|(index, op)| Some((symbol_name(*op)?, index))).collect();
    let mut groups: Vec<BTreeSet<usize>> = Vec::new();
    for (index, item) in definitions() {
        let mut group = BTreeSet::from([index]);
        for inner in mlir::walk(*item) {
            let attributes = inner.attributes();
            let symbols = attributes.filter_map(|(_, attribute)| mlir::symbol(attribute));
            group.extend(symbols.filter_map(|name| names.get(name)));
        }
        // The groups that it touches become one.
        let (touched, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|other| !other.is_disjoint(&group));
        group.extend(touched.into_iter().flatten());
        groups = others;
        groups.push(group);
    }
    groups.sort_by_key(|group| group.first().copied());
    groups
}

fn is_in_all_parts(op: Op) -> bool {
    match mlir::name(op) {
        "llvm.func" => mlir::entry(op).is_none(),
        "llvm.mlir.global" => {
            let space = mlir::attribute(op, "addr_space");
            space
                .and_then(|space| IntegerAttribute::try_from(space).ok())
                .is_some_and(|space| space.value() == i64::from(SHARED_MEMORY))
        }
        _ => false,
    }
}

fn symbol_name<'c>(op: Op<'c>) -> Option<&'c str> {
    mlir::attribute(op, "sym_name").and_then(mlir::string)
}

/// A group and all declarations as LLVM IR.
fn part<'c>(
    context: &'c Context,
    kernels: Op<'c>,
    items: &[Op<'c>],
    group: &BTreeSet<usize>,
) -> Result<String, Error> {
    let block = Block::new(&[]);
    let region = Region::new();
    let body = region.append_block(block);
    let mut values = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        if group.contains(&index) || is_in_all_parts(*item) {
            mlir::copy_to(*item, mlir::block(body), &mut values);
        }
    }
    let name = StringAttribute::new(context, "kernels").into();
    let module = Module::new(kernels.location());
    let part = OperationBuilder::new("gpu.module", kernels.location())
        .add_attributes(&[(Identifier::new(context, "sym_name"), name)])
        .add_regions([region])
        .build()
        .map_err(|error| Error::internal(error.to_string()))?;
    let part = module.body().append_operation(part);
    mlir::to_llvm_ir(context, mlir::op(part))
}
