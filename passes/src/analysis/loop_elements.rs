//! Elements of arrays that a loop can keep in a register: each iteration accesses them, their place
//! does not change, and nothing else in the loop can reach them.
//!
//! Two accesses reach different elements if their memrefs are disjoint
//! ([`memory_effects`](super::memory_effects)), or if they use one memref and their indices are
//! never equal ([`index_forms`](super::index_forms)).
//!
//! Threads meet nowhere in such a loop: it has no barrier, no shuffle and no `scf.while`, by which
//! a thread might wait for another one. Another thread that stored to the element would race with
//! this one, whether or not the element is in a register.

use super::index_forms::IndexForms;
use super::memory_effects::{Kernel, is_free};
use melior::ir::r#type::MemRefType;
use melior::ir::{ShapedTypeLike, ValueLike};
use std::collections::BTreeSet;
use stencil_dialects::mlir::{self, Op, Val};

/// An element that stays in a register.
#[derive(Clone, Debug, PartialEq)]
pub struct Element<'c> {
    /// The array.
    pub memref: Val<'c>,
    /// Its place.
    pub indices: Vec<Val<'c>>,
    /// The accesses to it, in their order. Each iteration runs all of them.
    pub accesses: Vec<Op<'c>>,
}

impl Element<'_> {
    /// Whether the loop stores to it.
    pub fn is_stored(&self) -> bool {
        self.accesses.iter().any(|op| is_store(*op))
    }

    /// Whether an iteration uses the value that the one before left.
    pub fn is_loaded_first(&self) -> bool {
        self.accesses.first().is_some_and(|op| !is_store(*op))
    }
}

/// Whether an access is a store.
pub fn is_store(op: Op) -> bool {
    mlir::name(op) == "memref.store"
}

/// An access to memory.
struct Access<'c> {
    op: Op<'c>,
    memref: Val<'c>,
    /// None of a vector, which reaches into the elements beside its own.
    indices: Option<Vec<Val<'c>>>,
    stores: bool,
}

/// The elements of a loop of a kernel.
pub fn of<'c>(kernel: &Kernel<'c>, forms: &mut IndexForms, op: Op<'c>) -> Vec<Element<'c>> {
    let (Some(body), Some(accesses)) = (mlir::entry(op), accesses(op)) else { return Vec::new() };
    let inside: BTreeSet<usize> = mlir::walk(op)
        .into_iter()
        .flat_map(|op| [mlir::results(op), inner_arguments(op)].concat())
        .map(mlir::key)
        .collect();
    let is_still = |value: &Val<'c>| !inside.contains(&mlir::key(*value));
    let own = mlir::operations(body);
    let mut elements: Vec<Element<'c>> = Vec::new();
    for access in accesses.iter().filter(|access| own.contains(&access.op)) {
        let Some(indices) = &access.indices else { continue };
        let still = is_still(&access.memref) && indices.iter().all(is_still);
        if !still || !holds_numbers(access.memref) {
            continue;
        }
        let found =
            elements.iter_mut().find(|one| one.memref == access.memref && one.indices == *indices);
        match found {
            Some(element) => element.accesses.push(access.op),
            None => elements.push(Element {
                memref: access.memref,
                indices: indices.clone(),
                accesses: vec![access.op],
            }),
        }
    }
    elements.retain(|element| {
        let stored = element.is_stored();
        let mut others = accesses.iter().filter(|access| !element.accesses.contains(&access.op));
        others.all(|other| {
            !(stored || other.stores)
                || kernel.are_disjoint(element.memref, other.memref)
                || differ(kernel, forms, element, other)
        })
    });
    elements
}

/// Whether the elements are numbers.
fn holds_numbers(memref: Val) -> bool {
    let ty = MemRefType::try_from(memref.r#type());
    ty.is_ok_and(|ty| mlir::bit_width(ty.element()).is_some())
}

/// Whether an access never reaches an element of the same memref.
fn differ<'c>(
    kernel: &Kernel<'c>,
    forms: &mut IndexForms,
    element: &Element<'c>,
    other: &Access<'c>,
) -> bool {
    let Some(indices) = &other.indices else { return false };
    element.memref == other.memref
        && kernel.are_apart(element.memref)
        && forms.differ(other.op, indices, &element.indices)
}

/// What a loop accesses; none if threads may meet in it, or if it may access anything.
fn accesses(op: Op<'_>) -> Option<Vec<Access<'_>>> {
    let mut all = Vec::new();
    for op in mlir::walk(op) {
        let operands = mlir::operands(op);
        let (at, stores) = match mlir::name(op) {
            "memref.load" | "vector.load" => (0, false),
            "memref.store" | "vector.store" => (1, true),
            "gpu.barrier" | "gpu.shuffle" | "scf.while" => return None,
            name if is_free(name) => continue,
            _ => return None,
        };
        let (memref, indices) = operands.get(at..)?.split_first()?;
        let single = mlir::name(op).starts_with("memref.");
        let indices = single.then(|| indices.to_vec());
        all.push(Access { op, memref: *memref, indices, stores });
    }
    Some(all)
}

/// The arguments of an operation's blocks: counters, and what loops carry.
fn inner_arguments(op: Op<'_>) -> Vec<Val<'_>> {
    let blocks = (0..2).flat_map(|region| mlir::blocks(op, region));
    blocks.flat_map(mlir::arguments).collect()
}
