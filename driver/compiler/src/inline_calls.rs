//! Calls in point functions: what another program handed over becomes part of them.

use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_passes::pass::Step;

/// Calls in a module at most. Upstream's `inline` takes 3.5 s for a chain of 2,000.
const MOST_CALLS: usize = 1_000;

/// Operations of a function with those of all that it calls, at most.
const MOST_OPERATIONS: usize = 20_000;

/// Inlines all calls. The verifier refuses recursive calls, which remain.
///
/// # Errors
/// More calls or operations than the limits allow.
pub fn run<'c>(context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
    let functions = mlir::operations(mlir::body(module));
    let callees: Vec<Vec<&str>> = functions.iter().map(|function| callees(*function)).collect();
    let calls = callees.iter().map(Vec::len).sum::<usize>();
    if calls == 0 {
        return Ok(());
    }
    let refuse = |op: &Op, message: String| Err(Error::new(mlir::place(op.location()), message));
    if let Some(op) = functions.first().filter(|_| calls > MOST_CALLS) {
        return refuse(
            op,
            format!("the module has {calls} calls; at most {MOST_CALLS} are inlined"),
        );
    }
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    let own: Vec<usize> = functions.iter().map(|function| mlir::walk(*function).len()).collect();
    // After as many rounds as there are calls in a chain, sizes stay the same; those of functions
    // that call themselves grow beyond the limit or are left to the verifier.
    for _ in 0..=functions.len() {
        let mut changed = false;
        for ((function, own), callees) in functions.iter().zip(&own).zip(&callees) {
            let called = callees.iter().filter_map(|name| sizes.get(name).copied());
            let size = called.fold(*own, usize::saturating_add);
            if size > MOST_OPERATIONS {
                let message = format!(
                    "the function with all that it calls has more than {MOST_OPERATIONS} \
                     operations; call fewer functions"
                );
                return refuse(function, message);
            }
            let name = mlir::attribute(*function, "sym_name").and_then(attribute::as_string);
            changed |= name.is_some_and(|name| sizes.insert(name, size) != Some(size));
        }
        if !changed {
            break;
        }
    }
    Step::upstream("inline").run(context, module)
}

/// The functions that an operation calls.
fn callees<'c>(of: Op<'c>) -> Vec<&'c str> {
    let calls = mlir::walk(of).into_iter().filter(|op| mlir::name(*op) == "func.call");
    let name = |op| mlir::attribute(op, "callee").and_then(attribute::as_symbol);
    calls.filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions that call the next one so many times each.
    fn inlined(functions: usize, times: usize) -> Result<(), String> {
        let context = stencil_dialects::context().unwrap();
        let mut text = String::from("module {\n");
        for number in 0..functions {
            text += &format!("func.func private @g{number}(%x0: f32) -> f32 {{\n");
            for time in 0..times {
                let (from, next) = (format!("%x{time}"), number + 1);
                text += &format!("%x{} = func.call @g{next}({from}) : (f32) -> f32\n", time + 1);
            }
            text += &format!("return %x{times} : f32\n}}\n");
        }
        text +=
            &format!("func.func private @g{functions}(%x: f32) -> f32 {{ return %x : f32 }}\n}}\n");
        let mut module = mlir::parse_module(&context, &text, "calls.mlir").unwrap();
        run(&context, &mut module).map_err(|error| error.message)
    }

    #[test]
    fn calls_that_grow_are_refused_before_they_are_inlined() {
        assert_eq!(inlined(10, 2), Ok(()));
        let doubled = inlined(40, 2).unwrap_err();
        assert!(doubled.contains("more than 20000 operations"), "{doubled}");
        let chain = inlined(2_000, 1).unwrap_err();
        assert!(chain.contains("has 2000 calls; at most 1000"), "{chain}");
    }
}
