//! Which point function an operation of a kernel came from, by its source location.
//!
//! A lowering copies the bodies of point functions into kernels, and the copies keep their
//! locations. So the functions that stand beside the kernels tell which operations belong to which
//! apply, and how often a function was evaluated: its root, the operation that makes its first
//! result, runs once a cell.

use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::error::Place;
use stencil_dialects::mlir;

/// The operations of all point functions.
#[derive(Debug, Default)]
pub(super) struct Functions {
    operations: BTreeMap<(Place, String), Found>,
}

/// Where an operation came from.
#[derive(Debug)]
pub(super) struct Found {
    /// The function.
    pub(super) name: String,
    /// Root operations of one evaluation.
    pub(super) roots: u64,
    /// Whether it is one of them.
    pub(super) root: bool,
}

impl Functions {
    pub(super) fn of(module: &Module) -> Self {
        let mut all = Self::default();
        for function in mlir::operations(mlir::body(module)) {
            let Some(name) = mlir::attribute(function, "sym_name").and_then(attribute::as_string) else { continue };
            if mlir::name(function) != "func.func" {
                continue;
            }
            let inner: Vec<_> = mlir::walk(function).into_iter().filter(|op| !matches!(mlir::name(*op), "func.func" | "func.return" | "arith.constant")).collect();
            let root = mlir::walk(function).into_iter().find(|op| mlir::name(*op) == "func.return").and_then(|end| {
                let first = mlir::operands(end).first().copied()?;
                inner.iter().find(|op| mlir::results(**op).iter().any(|result| mlir::key(*result) == mlir::key(first))).copied()
            });
            let key = |op: mlir::Op| (mlir::place(op.location()), mlir::name(op).to_owned());
            let root = root.map(key);
            let roots = inner.iter().filter(|op| Some(key(**op)) == root).count() as u64;
            for op in inner {
                let key = key(op);
                if key.0.line > 0 {
                    let is_root = Some(&key) == root.as_ref();
                    all.operations.entry(key).or_insert_with(|| Found { name: name.to_owned(), roots, root: is_root });
                }
            }
        }
        all
    }

    pub(super) fn find(&self, place: &Place, name: &str) -> Option<&Found> {
        self.operations.get(&(place.clone(), name.to_owned()))
    }
}
