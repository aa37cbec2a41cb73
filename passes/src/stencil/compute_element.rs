//! Point functions from another program: a function in MLIR takes the place of one of ours. The
//! paper's `compute_element`.
//!
//! Source: PeerWave (see `schedule/tile_wavefront.rs`), section 5 and listing 1: a user gives a
//! function that computes an element from its neighbours. Here its neighbours are arguments, as
//! those of every point function ([docs/ir.md](../../../docs/ir.md)).
//!
//! ```text
//! func.func private @sw(%0: i32 {stencil.current = @H, stencil.offset = array<i64: -1, -1>},
//!                       %1: i32 {stencil.current = @H, stencil.offset = array<i64: -1, 0>}) -> i32
//! ```
//! keeps its arguments and gets the body of
//! ```text
//! func.func @sw(%diagonal: i32, %above: i32) -> i32
//! ```
//! `stencil-verify` then checks the operations of the body.

use melior::ir::Module;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::{self, Argument, Program};

/// The name of a function for the only point function of a program.
const ONLY: &str = "compute_element";

/// Puts the functions of one module in the place of the point functions of another. A function is
/// for the point function of its name; one called `compute_element` is for the only one.
///
/// # Errors
/// At the place of a function: one without a body, one for no point function, and one of another
/// type than its point function. A module without functions.
pub fn replace<'c>(module: &Module<'c>, by: &Module<'c>) -> Result<(), Error> {
    let program = Program::read(module)?;
    let pieces = program.applies.iter().flat_map(|apply| &apply.pieces);
    let mut names: Vec<&str> = pieces.map(|piece| piece.function).collect();
    names.sort_unstable();
    names.dedup();
    let functions = mlir::operations(mlir::body(by)).into_iter();
    let functions: Vec<Op> = functions.filter(|op| mlir::name(*op) == "func.func").collect();
    if functions.is_empty() {
        return Err(Error::user("the module has no func.func to take the place of one"));
    }
    for function in functions {
        let at = |error: Error| error.at(mlir::place(function.location()));
        let name = stencil::function_name(function)?;
        let known = names.iter().find(|known| **known == name);
        let name = match (known, names.as_slice()) {
            (Some(known), _) => *known,
            (None, [only]) if name == ONLY => *only,
            _ => {
                return Err(at(Error::user(format!(
                    "@{name} is for no point function; the program has @{}",
                    names.join(", @")
                ))));
            }
        };
        let old = stencil::function(module, name)?;
        stencil::function_body(function)?;
        compare(old, function, name).map_err(at)?;
        exchange(module, old, function);
    }
    Ok(())
}

/// Compares the type of a function with that of a point function.
fn compare(old: Op, new: Op, name: &str) -> Result<(), Error> {
    let types = |op: Op| mlir::attribute(op, "function_type").map(|ty| ty.to_string());
    let (wanted, found) = (types(old), types(new));
    if wanted == found {
        return Ok(());
    }
    let takes: Vec<String> = stencil::arguments_with_values(old)?
        .iter()
        .map(|(argument, value)| format!("{}: {}", meaning(argument), value.r#type() as Type))
        .collect();
    Err(Error::user(format!(
        "the function has the type {}, and the point function @{name} has {}: its arguments are {}",
        found.unwrap_or_default(),
        wanted.unwrap_or_default(),
        takes.join(", ")
    )))
}

/// What an argument stands for, as a program writes it.
fn meaning(argument: &Argument) -> String {
    match argument {
        Argument::Read { field, offset } => format!("{field}{offset:?}"),
        Argument::Current { field, offset } => format!("{field}'{offset:?}"),
        Argument::Scalar(name) | Argument::Param(name) => (*name).to_owned(),
        Argument::Coordinate(dimension) => format!("the coordinate {dimension}"),
        Argument::Step => "the step".to_owned(),
        Argument::Nearest => "the nearest cell".to_owned(),
        Argument::Partial => "a partial result".to_owned(),
    }
}

/// Puts a copy of a function in the place of another, with its name and the meaning of its
/// arguments.
fn exchange<'c>(module: &Module<'c>, old: Op<'c>, new: Op<'c>) {
    mlir::copy_to(new, mlir::body(module), &mut BTreeMap::new());
    let Some(copy) = mlir::operations(mlir::body(module)).pop() else { return };
    for name in ["sym_name", "sym_visibility", "arg_attrs", "res_attrs"] {
        if let Some(value) = mlir::attribute(old, name) {
            mlir::set_attribute(copy, name, value);
        }
    }
    mlir::move_before(copy, old);
    mlir::erase(old);
}
