//! `transpose-arrays`: arrays of affine loops get another order of dimensions, where neighbouring
//! threads then access neighbouring elements and that moves fewer bytes.
//!
//! Needs: what `lower-affine-nest` needs. Guarantees: an argument whose transform pays has a
//! transposed array of the function's own, which all loops use in its place. A nest in front fills
//! it, and one behind writes it back if a loop stores to it. An array of the function's own gets
//! the order without a transform. Each array of several dimensions has a note why it has its order,
//! and results stay the same, bit for bit.
//!
//! ```text
//! func.func @f(%a: memref<?x8xf32>, ...) {
//!   affine.for %t ... { affine.for %i ... { affine.for %j ... { affine.store %v, %a[%i, %j] } } }
//! ```
//! becomes
//! ```text
//! func.func @f(%a: memref<?x8xf32> {tiled.layout_note = "..."}, ...) {
//!   %b = memref.alloc(%rows) {tiled.transposed = "arg0"} : memref<8x?xf32>
//!   affine.for %j ... { affine.for %i ... { affine.store (affine.load %a[%i, %j]), %b[%j, %i] } }
//!   affine.for %t ... { affine.for %i ... { affine.for %j ... { affine.store %v, %b[%j, %i] } } }
//!   affine.for %i ... { affine.for %j ... { affine.store (affine.load %b[%j, %i]), %a[%i, %j] } }
//! ```
//!
//! The bytes are those of [`array_traffic`]. An element that the transform moves counts a sector
//! where it is loaded and its own bytes where it is stored: the loads of these nests are not
//! coalesced.
//!
//! Left alone, with a note: an array that no other order serves better, or whose transform does not
//! pay; one with a value that is loaded for several launches; one in a launch that states its tile;
//! one of the function's own, if the extent along a dimension that is no constant is asked for; and
//! an argument, if the function would have too many stores. A function that has a transposed
//! array is left alone, so that a second run changes nothing.

use super::array_traffic::{self, Traffic};
use super::launches::{Function, Phase};
use super::lower_affine_nest::with_launches;
use super::nest::MOST_STATEMENTS;
use super::transposed_array::{self, Transposed};
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::tiled;
use stencil_runtime::model::relayout::SECTOR;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "transpose-arrays",
    summary: "transpose arrays of affine loops where accesses are coalesced then, if that pays",
    options: &[("always", "on: whatever it costs")],
    read: |options: &Options| {
        Ok(Box::new(TransposeArrays { always: options.flag("always")?.unwrap_or(false) }))
    },
};

/// The pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransposeArrays {
    /// Whether arrays get the best other order whatever it costs.
    pub always: bool,
}

impl Pass for TransposeArrays {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.always.then(|| ("always", "on".to_owned())).into_iter().collect()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        with_launches(module, |function, phases| {
            for op in mlir::walk(function.op) {
                if tiled::transposed_of(op)?.is_some() {
                    return Ok(());
                }
            }
            let mut stores = function.nest.statements.len();
            let mut all = Vec::new();
            for traffic in array_traffic::of(function, phases) {
                let array = Array::of(function, &traffic)?;
                let launches = (function.op, phases);
                let choice = self.choice(launches, &traffic, (&array, &mut stores))?;
                array.set_note(context, function, &choice.1);
                all.push((array, choice.0));
            }
            all.into_iter().try_for_each(|(array, order)| {
                let Array { memref, name, stored, .. } = array;
                let of = order.map(|order| Transposed { name, memref, order, stored });
                of.map_or(Ok(()), |of| transposed_array::build(context, function, &of))
            })
        })
    }
}

/// An array of a function.
struct Array<'c, 'p> {
    memref: Val<'c>,
    name: &'p str,
    /// Its place among the declared arguments.
    place: usize,
    own: bool,
    stored: bool,
}

impl<'c, 'p> Array<'c, 'p> {
    fn of(function: &Function<'c, 'p>, traffic: &Traffic) -> Result<Self, Error> {
        let memref = function.text.arrays.get(traffic.array).copied();
        let mut all = function.declared.arguments.iter().enumerate();
        let found = all.find(|(_, argument)| Some(argument.value) == memref);
        let (place, argument) = found.ok_or_else(|| Error::internal("an array of no argument"))?;
        let mut stores = function.text.stores.iter();
        let stored = stores.any(|op| mlir::operands(*op).get(1) == Some(&argument.value));
        let (memref, name) = (argument.value, argument.name.as_str());
        Ok(Self { memref, name, place, own: argument.own, stored })
    }

    /// The operation that allocates it.
    fn maker(&self, function: &Function<'c, '_>) -> Option<Op<'c>> {
        let all = mlir::operations(mlir::entry(function.op)?);
        all.into_iter().find(|op| mlir::results(*op).contains(&self.memref))
    }

    fn set_note(&self, context: &'c Context, function: &Function<'c, '_>, note: &str) {
        let given = mlir::entry(function.op).map(mlir::arguments).unwrap_or_default().len();
        match self.maker(function) {
            Some(op) => tiled::set_layout_note(context, op, note),
            None => tiled::set_argument_note(context, function.op, (self.place, given), note),
        }
    }
}

impl TransposeArrays {
    /// The order that an array gets, if not that of the text, and why.
    fn choice(
        self,
        launches: (Op, &[Phase]),
        traffic: &Traffic,
        (array, stores): (&Array, &mut usize),
    ) -> Result<(Option<Vec<usize>>, String), Error> {
        let stays = |why: &str| Ok((None, format!("kernels use it as it is: {why}")));
        let mut orders = traffic.orders.iter();
        let Some((_, before)) = orders.next() else { return stays("it has one dimension") };
        let Some((order, after)) = orders.min_by(|a, b| a.1.total_cmp(&b.1)) else {
            return stays("it has one dimension");
        };
        if after >= before && !self.always {
            return stays("no other order moves fewer bytes past the level 1 caches");
        }
        if let Some(obstacle) = obstacle(launches, array)? {
            return stays(obstacle);
        }
        let nests = match (array.own, array.stored) {
            (true, _) => 0,
            (false, stored) => 1 + usize::from(stored),
        };
        if *stores + nests > MOST_STATEMENTS {
            return stays("with its transform the function would have too many stores");
        }
        let is_fastest = order.last() == order.iter().max();
        let loaded = if is_fastest { traffic.bytes } else { SECTOR };
        let moved = nests as f64 * (loaded + traffic.bytes) as f64;
        let saved = (before - after) / traffic.cells.max(1.0);
        let text = order.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let sums = match nests {
            0 => format!("the order {text} saves {saved:.1} bytes a cell"),
            _ => {
                format!(
                    "the order {text} saves {saved:.1} bytes a cell, its transform moves {moved}"
                )
            }
        };
        if saved <= moved && !self.always {
            return stays(&sums);
        }
        *stores += nests;
        let word = if saved > moved { "transposed" } else { "transposed, as it was asked for" };
        Ok((Some(order.clone()), format!("{word}: {sums}")))
    }
}

/// Why an array keeps its order, whatever it costs.
fn obstacle(
    (function, phases): (Op, &[Phase]),
    array: &Array,
) -> Result<Option<&'static str>, Error> {
    let uses = |op: Op| mlir::operands(op).contains(&array.memref);
    let all = mlir::walk(function);
    for op in all.iter().filter(|op| array.own && mlir::name(**op) == "memref.dim" && uses(**op)) {
        let number = mlir::operands(*op).get(1).copied();
        let constant = |op: &Op| {
            mlir::name(*op) == "arith.constant" && mlir::results(*op).first().copied() == number
        };
        if !all.iter().any(constant) {
            return Ok(Some("its extent along a dimension that is no constant is asked for"));
        }
    }
    for launch in phases.iter().flat_map(|phase| &phase.launches) {
        let mut before = launch.before.iter();
        if before.any(|op| mlir::name(*op) == "affine.load" && uses(*op)) {
            return Ok(Some("a value of it is loaded for several launches"));
        }
        for op in &launch.ops {
            if tiled::nest_tile(*op)?.is_some() && mlir::walk(*op).into_iter().any(uses) {
                return Ok(Some("a loop that uses it states its tile"));
            }
        }
    }
    Ok(None)
}
