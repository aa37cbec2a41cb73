//! Copies of single elements from global memory to shared buffers: which loads give the value that
//! a store puts into a shared buffer.
//!
//! A copy is a load whose value is only stored to shared buffers. Loops may carry it, such as one
//! that loads the next tile ahead. It then has several loads, and stores in and behind the loop.
//! A load may stand alone in a branch whose other side gives a constant, and so may a store.

use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::mlir::{self, Op, Val};

/// An element that a thread copies.
#[derive(Clone, Debug, Default)]
pub struct ElementCopy<'c> {
    /// Loads from global memory, in the order of the text.
    pub loads: Vec<Site<'c>>,
    /// Stores to shared buffers, in the order of the text.
    pub stores: Vec<Site<'c>>,
}

/// A load or store of an element.
#[derive(Clone, Debug)]
pub struct Site<'c> {
    /// Its place in the text.
    pub order: usize,
    /// The access, or the branch around it.
    pub op: Op<'c>,
    /// The memref.
    pub memref: Val<'c>,
    /// An index for each dimension.
    pub indices: Vec<Val<'c>>,
    /// What a thread needs for the access.
    pub condition: Option<Val<'c>>,
    /// What a load gives otherwise.
    pub otherwise: Option<Val<'c>>,
}

/// Whether memory of a memref is shared by the threads of a block.
pub fn is_shared(memref: Val) -> bool {
    space(memref) == "#gpu.address_space<workgroup>"
}

fn is_global(memref: Val) -> bool {
    matches!(&space(memref)[..], "" | "#gpu.address_space<global>")
}

fn space(memref: Val) -> String {
    let ty = MemRefType::try_from(memref.r#type()).ok();
    ty.map_or_else(
        || "none".to_owned(),
        |ty| ty.memory_space().map(|space| space.to_string()).unwrap_or_default(),
    )
}

/// The copies of a kernel, in the order of their first stores.
pub fn of<'c>(kernel: Op<'c>) -> Vec<ElementCopy<'c>> {
    let flow = Flow::of(kernel);
    let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
    for op in mlir::walk(kernel) {
        let operands = mlir::operands(op);
        let (Some(value), "memref.store") = (operands.first(), mlir::name(op)) else { continue };
        if operands.get(1).is_some_and(|memref| is_shared(*memref))
            && !seen.contains(&mlir::key(*value))
        {
            found.extend(flow.copy(*value, &mut seen));
        }
    }
    found
}

/// Where the values of a kernel come from and go to.
pub(super) struct Flow<'c> {
    /// The operation that makes a value, its place in the text, and the number of the result.
    makers: BTreeMap<usize, (usize, Op<'c>, usize)>,
    /// The loop that carries a value, and its number among those.
    carried: BTreeMap<usize, (Op<'c>, usize)>,
    /// The users of a value, with places and numbers of operands.
    users: BTreeMap<usize, Vec<(usize, Op<'c>, usize)>>,
}

impl<'c> Flow<'c> {
    /// The flow of a kernel.
    pub(super) fn of(kernel: Op<'c>) -> Self {
        let mut flow =
            Self { makers: BTreeMap::new(), carried: BTreeMap::new(), users: BTreeMap::new() };
        for (order, op) in mlir::walk(kernel).into_iter().enumerate() {
            for (number, result) in mlir::results(op).into_iter().enumerate() {
                flow.makers.insert(mlir::key(result), (order, op, number));
            }
            for (number, operand) in mlir::operands(op).into_iter().enumerate() {
                flow.users.entry(mlir::key(operand)).or_default().push((order, op, number));
            }
            if mlir::name(op) == "scf.for" {
                let arguments = mlir::entry(op).map(mlir::arguments).unwrap_or_default();
                for (number, argument) in arguments.into_iter().skip(1).enumerate() {
                    flow.carried.insert(mlir::key(argument), (op, number));
                }
            }
        }
        flow
    }

    /// The copy that a value belongs to; nothing where it is no copy.
    fn copy(&self, first: Val<'c>, seen: &mut BTreeSet<usize>) -> Option<ElementCopy<'c>> {
        let mut copy = ElementCopy::default();
        let mut is_copy = true;
        let mut left = vec![first];
        while let Some(value) = left.pop() {
            if !seen.insert(mlir::key(value)) {
                continue;
            }
            if let Some((op, number)) = self.carrier(value) {
                left.extend(carried_values(op, number));
            } else if let Some(load) = self.load(value) {
                copy.loads.push(load);
            } else {
                is_copy = false;
            }
            for (order, user, operand) in self.users.get(&mlir::key(value)).into_iter().flatten() {
                match (mlir::name(*user), parent(*user)) {
                    ("scf.for", _) if *operand >= 3 => {
                        left.extend(carried_values(*user, operand - 3));
                    }
                    ("scf.yield", Some(parent)) if mlir::name(parent) == "scf.for" => {
                        left.extend(carried_values(parent, *operand));
                    }
                    _ => match store(*order, *user, *operand) {
                        Some(store) => copy.stores.push(store),
                        None => is_copy = false,
                    },
                }
            }
        }
        copy.loads.sort_by_key(|site| site.order);
        copy.stores.sort_by_key(|site| site.order);
        (is_copy && !copy.loads.is_empty()).then_some(copy)
    }

    /// The memory behind views.
    pub(super) fn root(&self, memref: Val<'c>) -> Val<'c> {
        let mut root = memref;
        while let Some((_, view, _)) = self.makers.get(&mlir::key(root)) {
            match mlir::operands(*view).first() {
                Some(from) if MemRefType::try_from(from.r#type()).is_ok() => root = *from,
                _ => break,
            }
        }
        root
    }

    /// The roots of all memory from which values are loaded, by their keys.
    pub(super) fn loaded(&self, values: &[Val<'c>]) -> BTreeSet<usize> {
        let (mut found, mut seen, mut left) = (BTreeSet::new(), BTreeSet::new(), values.to_vec());
        while let Some(value) = left.pop() {
            if !seen.insert(mlir::key(value)) {
                continue;
            }
            if let Some((op, number)) = self.carrier(value) {
                left.extend(carried_values(op, number));
                continue;
            }
            let Some((_, op, number)) = self.makers.get(&mlir::key(value)) else { continue };
            match mlir::name(*op) {
                "memref.load" | "vector.load" => {
                    let memref = mlir::operands(*op).first().copied();
                    found.extend(memref.map(|memref| mlir::key(self.root(memref))));
                }
                "scf.if" => left.extend(
                    [0, 1].iter().filter_map(|side| mlir::yields(*op, *side).get(*number).copied()),
                ),
                _ => left.extend(mlir::operands(*op)),
            }
        }
        found
    }

    /// The loop that carries a value or gives it behind its end.
    fn carrier(&self, value: Val<'c>) -> Option<(Op<'c>, usize)> {
        let key = mlir::key(value);
        let inside = self.carried.get(&key).copied();
        inside.or_else(|| {
            let (_, op, number) = self.makers.get(&key)?;
            (mlir::name(*op) == "scf.for").then_some((*op, *number))
        })
    }

    /// The load that gives a value.
    fn load(&self, value: Val<'c>) -> Option<Site<'c>> {
        let (order, op, _) = *self.makers.get(&mlir::key(value))?;
        if mlir::name(op) == "memref.load" {
            return global_load(order, op);
        }
        let ("scf.if", [_]) = (mlir::name(op), &mlir::results(op)[..]) else { return None };
        let [then, otherwise] = [0, 1].map(|region| block_of(op, region));
        let [load, _] = then?[..] else { return None };
        let [end] = otherwise?[..] else { return None };
        let site = global_load(order, load)?;
        let otherwise = mlir::operands(end).first().copied()?;
        let (_, constant, _) = self.makers.get(&mlir::key(otherwise))?;
        let is_constant = mlir::name(*constant) == "arith.constant";
        let condition = mlir::operands(op).first().copied();
        is_constant.then_some(Site { op, condition, otherwise: Some(otherwise), ..site })
    }
}

fn block_of<'c>(op: Op<'c>, region: usize) -> Option<Vec<Op<'c>>> {
    mlir::blocks(op, region).first().map(|block| mlir::operations(*block))
}

fn parent<'c>(op: Op<'c>) -> Option<Op<'c>> {
    op.parent_operation().map(mlir::op)
}

fn global_load<'c>(order: usize, op: Op<'c>) -> Option<Site<'c>> {
    let operands = mlir::operands(op);
    let (memref, indices) = operands.split_first()?;
    let indices = indices.to_vec();
    let site = Site { order, op, memref: *memref, indices, condition: None, otherwise: None };
    (mlir::name(op) == "memref.load" && is_global(*memref)).then_some(site)
}

/// The store of a value to a shared buffer.
fn store<'c>(order: usize, op: Op<'c>, operand: usize) -> Option<Site<'c>> {
    let operands = mlir::operands(op);
    let [_, memref, indices @ ..] = &operands[..] else { return None };
    if mlir::name(op) != "memref.store" || operand != 0 || !is_shared(*memref) {
        return None;
    }
    let indices = indices.to_vec();
    let site = Site { order, op, memref: *memref, indices, condition: None, otherwise: None };
    let branch = parent(op).filter(|parent| {
        mlir::name(*parent) == "scf.if"
            && block_of(*parent, 0).is_some_and(|all| all.len() == 2)
            && block_of(*parent, 1).is_none_or(|all| all.len() <= 1)
    });
    Some(match branch {
        Some(branch) => {
            Site { op: branch, condition: mlir::operands(branch).first().copied(), ..site }
        }
        None => site,
    })
}

/// The values of a loop that hold what it carries under a number.
fn carried_values<'c>(op: Op<'c>, number: usize) -> Vec<Val<'c>> {
    let arguments = mlir::entry(op).map(mlir::arguments).unwrap_or_default();
    let yielded = mlir::yields(op, 0);
    let (operands, results) = (mlir::operands(op), mlir::results(op));
    let all = [
        operands.get(3 + number),
        arguments.get(1 + number),
        yielded.get(number),
        results.get(number),
    ];
    all.into_iter().flatten().copied().collect()
}
