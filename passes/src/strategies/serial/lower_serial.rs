//! `lower-serial`: a thread computes a whole sweep, point by point in the order of the language.
//!
//! Needs: tile kernels of strategy `serial`, each with one apply. Guarantees: a `func.func` for
//! each in the module of functions for a processor. It has one tile, the whole grid.
//!
//! ```text
//! for each point of the grid, row-major {
//!   %new = scf.if (in piece) { f(load A[...], load A_next[earlier points]) } else { load A[...] }
//!   store %new, A_next[...]
//! }
//! ```
//! Declines: kernels of more than one apply.

use super::NAME;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::host_function::{self, HostFunction};
use crate::kernel::scope::Scope;
use crate::kernel::signature::Signature;
use crate::kernel::tile_kernels;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, Module};
use std::collections::BTreeMap;
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{self, Apply, Kernel};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-serial",
    summary: "lower tile kernels of strategy serial: a thread, point by point",
    options: &[],
    read: |_: &Options| Ok(Box::new(LowerSerial)),
};

/// The pass.
pub struct LowerSerial;

impl Pass for LowerSerial {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let kernels = tile_kernels::of_strategy(module, NAME)?;
        tile_kernels::lower(module, &kernels, |subject, kernel| lower(context, subject, kernel))
    }
}

fn lower<'c>(
    context: &'c Context,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
) -> Result<(), Error> {
    let program = subject.program;
    let applies: Vec<_> = kernel.applies().collect();
    let [apply] = applies.as_slice() else {
        let message = format!("a tile kernel of strategy {NAME} has one tiled.apply");
        let place = mlir::place(kernel.op.location());
        return Err(Error::declined(Decline::Applies, message).at(place));
    };
    tile_kernels::check_stored(program, kernel)?;
    let outer = host_function::container(context, subject.module, kernel.op.location())?;
    let signature = Signature::of(&outer, subject.module, program, kernel, false, &[])?;
    let hull = tile_kernels::hull(context, program, kernel)?;
    let one = symbolic(context, program.params.len(), &[AffineExpr::constant(context, 1)]);
    let mut attributes = tiled::launch_attributes(&outer, (one, None), [1; 3], &kernel.schedule);
    attributes.extend(tiled::rotations_attribute(kernel.op));
    let others = host_function::tile_arguments(&outer);
    let made =
        host_function::build(&outer, subject, kernel.name, (&signature, &others), &attributes)?;
    let scope = made.scope(subject, hull);
    let builder = Builder { location: apply.op.location(), ..made.builder };
    let lower = scope.bounds(&builder, hull.lower)?;
    let upper = scope.bounds(&builder, hull.upper)?;
    let ends = lower.into_iter().zip(upper);
    let ends = ends.map(|(first, last)| Ok((first, builder.add_constant(last, 1)?)));
    let ends = ends.collect::<Result<Vec<_>, Error>>()?;
    let sweep = Sweep { made: &made, scope: &scope, apply };
    sweep.points(&builder, &ends, &mut Vec::new())?;
    made.finish(&scope)
}

/// The code of a sweep.
struct Sweep<'c, 'p> {
    made: &'p HostFunction<'c>,
    scope: &'p Scope<'c, 'p>,
    apply: &'p Apply<'c>,
}

impl<'c> Sweep<'c, '_> {
    /// All points, the last coordinate the fastest.
    fn points(
        &self,
        builder: &Builder<'c>,
        ends: &[(Val<'c>, Val<'c>)],
        point: &mut Vec<Val<'c>>,
    ) -> Result<(), Error> {
        let Some((first, end)) = ends.get(point.len()).copied() else {
            return self.point(builder, point);
        };
        builder.repeat((first, end, builder.index(1)?), |builder, at| {
            point.push(at);
            let done = self.points(builder, ends, point);
            point.pop();
            done
        })
    }

    fn point(&self, builder: &Builder<'c>, point: &[Val<'c>]) -> Result<(), Error> {
        let load = |builder: &Builder<'c>,
                    memory: &BTreeMap<&'c str, Val<'c>>,
                    field: &str,
                    distances: &[Distance<'c>]| {
            let missing = || Error::internal(format!("no cells of @{field}"));
            let memory = memory.get(field).copied().ok_or_else(missing)?;
            let at = point.iter().zip(distances).map(|(at, by)| by.from(builder, *at));
            let at = at.collect::<Result<Vec<_>, _>>()?;
            builder.load(memory, &self.scope.cell(builder, field, &at)?)
        };
        let arguments = &self.made.arguments;
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            load(builder, &arguments.sources, field, distances)
        };
        let current = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            load(builder, &arguments.targets, field, distances)
        };
        let at = At {
            point,
            step: self.apply.step,
            rules: Rules::All,
            fetch: &fetch,
            current: Some(&current),
            partial: None,
        };
        let values = self.scope.new_values(builder, self.apply, &self.apply.pieces, &at)?;
        for ((field, _), value) in self.apply.outputs.iter().zip(values) {
            // A temp field that nobody reads later is not stored.
            let Some(target) = arguments.targets.get(field).copied() else { continue };
            self.scope.where_it_lies(builder, field, point, &[], |builder| {
                let cell = self.scope.cell(builder, field, point)?;
                builder.store(value, target, &cell).map(|()| Vec::new())
            })?;
        }
        Ok(())
    }
}
