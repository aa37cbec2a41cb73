//! `keep-in-registers`: an element that a loop accesses in each iteration, always at one place,
//! stays in a register over the loop.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, sections 5.2 and 5.4: data whose place a loop does not change is
//! copied in before the loop and out behind it. Register promotion of scalars: Cooper and Lu,
//! Register Promotion in C Programs, PLDI 1997.
//!
//! Needs: `gpu.func`s, whoever made them. Guarantees: the same loads, values and stores, but one
//! load before and one store behind a loop where each iteration had one; none where the loop has no
//! iteration; a second run changes nothing.
//!
//! ```text
//! scf.for %l = %0 to %k step %1 {
//!   %sum = memref.load %c[%i, %j]
//!   ...
//!   memref.store %next, %c[%i, %j]
//! }
//! ```
//! becomes
//! ```text
//! %runs = arith.cmpi slt, %0, %k
//! scf.if %runs {
//!   %first = memref.load %c[%i, %j]
//!   %last = scf.for %l = %0 to %k step %1 iter_args(%sum = %first) {
//!     ...
//!     scf.yield %next
//!   }
//!   memref.store %last, %c[%i, %j]
//! }
//! ```
//!
//! Inner loops come first. Their conditions then leave the loops around them, as `hoist-guards`
//! moves them, so that an element can leave several loops.
//!
//! Leaves alone: loops with barriers, shuffles, `scf.while` or operations that may access anything;
//! elements that another access of the loop may reach ([`loop_elements`]), or that a condition or
//! an inner loop accesses; loops whose counter is no `index`.

use super::hoist_guards;
use crate::analysis::index_forms::IndexForms;
use crate::analysis::lane_values;
use crate::analysis::loop_elements::{self, Element, is_store};
use crate::analysis::memory_effects::{Kernel, structured_kernels};
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::operation::OperationResult;
use melior::ir::r#type::MemRefType;
use melior::ir::{Module, Region, ShapedTypeLike, Type, TypeLike, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::builder::{self, Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "keep-in-registers",
    summary: "load elements that stay in place before a loop, and store them behind it",
    options: &[],
    read: |_: &Options| Ok(Box::new(KeepInRegisters)),
};

/// The pass.
pub struct KeepInRegisters;

impl Pass for KeepInRegisters {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(structured_kernels(module).into_iter().any(|kernel| {
            let (known, mut forms) = (Kernel::of(kernel), IndexForms::new());
            let loops = mlir::walk(kernel).into_iter().filter(is_counted);
            loops.into_iter().any(|op| !loop_elements::of(&known, &mut forms, op).is_empty())
        }))
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        for kernel in structured_kernels(module) {
            let mut facts = (Kernel::of(kernel), IndexForms::new());
            let mut loops: Vec<Op> = mlir::walk(kernel).into_iter().filter(is_counted).collect();
            loops.reverse();
            let mut conditions = Vec::new();
            for op in loops {
                while let Some(guard) = hoist_guards::guard(op)
                    && conditions.contains(&guard.op)
                {
                    hoist_guards::hoist(op, &guard)?;
                }
                let elements = loop_elements::of(&facts.0, &mut facts.1, op);
                if !elements.is_empty() {
                    conditions.extend(builder::before(context, op, |builder| {
                        keep(builder, op, &elements)
                    })?);
                    mlir::erase(op);
                    facts = (Kernel::of(kernel), IndexForms::new());
                }
            }
        }
        Ok(())
    }
}

/// Whether an operation is a loop whose counter is an `index`.
fn is_counted(op: &Op) -> bool {
    let counter = mlir::entry(*op).and_then(|body| mlir::arguments(body).first().copied());
    mlir::name(*op) == "scf.for"
        && mlir::attribute(*op, "unsignedCmp").is_none()
        && counter.is_some_and(|counter| counter.r#type().is_index())
}

/// Builds a loop that keeps elements in registers, in a condition if it may have no iteration, and
/// gives its results to those who use the ones of the loop. The condition, if it has no results.
fn keep<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    elements: &[Element<'c>],
) -> Result<Option<Op<'c>>, Error> {
    let operands = mlir::operands(op);
    let [from, to, step, initial @ ..] = &operands[..] else {
        return Err(Error::internal("a loop without bounds"));
    };
    let bounds = (*from, *to, *step);
    let results = mlir::results(op);
    let made = if constant(*from).zip(constant(*to)).is_some_and(|(from, to)| from < to) {
        repeat(builder, op, bounds, initial, elements)?
    } else if results.is_empty() {
        let runs = builder.compare(Compare::Lt, *from, *to)?;
        let then = Region::new();
        let inner = builder.at(mlir::append_block(&then, &[]));
        repeat(&inner, op, bounds, initial, elements)?;
        inner.op("scf.yield", &[], &[], &[])?;
        let regions = vec![then, Region::new()];
        return builder.op_with_regions("scf.if", &[runs], &[], &[], regions).map(Some);
    } else {
        let runs = builder.compare(Compare::Lt, *from, *to)?;
        let types: Vec<_> = results.iter().map(|value| value.r#type()).collect();
        let then = |inner: &Builder<'c>| repeat(inner, op, bounds, initial, elements);
        builder.choose(runs, &types, then, |_| Ok(initial.to_vec()))?
    };
    results.iter().zip(made).for_each(|(old, new)| mlir::replace_uses(*old, new));
    Ok(None)
}

/// The loop, which has an iteration, between the loads and stores of its elements: what it gave
/// before.
fn repeat<'c>(
    builder: &Builder<'c>,
    op: Op<'c>,
    bounds: (Val<'c>, Val<'c>, Val<'c>),
    initial: &[Val<'c>],
    elements: &[Element<'c>],
) -> Result<Vec<Val<'c>>, Error> {
    let missing = || Error::internal("a loop without a body");
    let body = mlir::entry(op).ok_or_else(missing)?;
    let old = mlir::arguments(body);
    let mut values = Vec::new();
    for element in elements {
        values.push(match element.is_loaded_first() {
            true => builder.load(element.memref, &element.indices)?,
            false => builder.zero(element_type(element.memref)?)?,
        });
    }
    let numbered = (0..).zip(elements).filter(|(_, one)| one.is_stored());
    let stored: Vec<usize> = numbered.map(|(at, _)| at).collect();
    let of_stored = |values: &[Val<'c>]| -> Vec<Val<'c>> {
        stored.iter().filter_map(|at| values.get(*at).copied()).collect()
    };
    let carried = [initial, &of_stored(&values)].concat();
    let made = builder.carry_with(
        bounds,
        &carried,
        &mlir::own_attributes(op),
        |builder, counter, carried| {
            let (own, kept) = carried.split_at(initial.len().min(carried.len()));
            let new = [&[counter], own].concat();
            let mut map: BTreeMap<usize, Val<'c>> =
                old.iter().map(|value| mlir::key(*value)).zip(new).collect();
            for (at, value) in stored.iter().zip(kept) {
                values.get_mut(*at).into_iter().for_each(|known| *known = *value);
            }
            let ops = mlir::operations(body);
            let (end, ops) = ops.split_last().ok_or_else(missing)?;
            for inner in ops {
                let at = elements.iter().position(|element| element.accesses.contains(inner));
                let Some(value) = at.and_then(|at| values.get_mut(at)) else {
                    mlir::copy_to(*inner, builder.block, &mut map);
                    continue;
                };
                if let (true, Some(next)) = (is_store(*inner), mlir::operands(*inner).first()) {
                    *value = map.get(&mlir::key(*next)).copied().unwrap_or(*next);
                } else {
                    map.extend(
                        mlir::results(*inner).into_iter().map(|one| (mlir::key(one), *value)),
                    );
                }
            }
            let yielded = mlir::operands(*end).into_iter();
            let yielded: Vec<Val> =
                yielded.map(|one| map.get(&mlir::key(one)).copied().unwrap_or(one)).collect();
            Ok([yielded, of_stored(&values)].concat())
        },
    )?;
    let (made, last) = made.split_at(initial.len().min(made.len()));
    for (at, value) in stored.iter().zip(last) {
        if let Some(Element { memref, indices, .. }) = elements.get(*at) {
            builder.store(*value, *memref, indices)?;
        }
    }
    Ok(made.to_vec())
}

fn element_type<'c>(memref: Val<'c>) -> Result<Type<'c>, Error> {
    let ty = MemRefType::try_from(memref.r#type());
    ty.map(|ty| ty.element()).map_err(|error| Error::internal(error.to_string()))
}

fn constant(value: Val) -> Option<i64> {
    let maker = OperationResult::try_from(value).ok()?;
    lane_values::constant(mlir::op(maker.owner()))
}
