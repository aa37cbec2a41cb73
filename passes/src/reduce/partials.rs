//! The kernel that makes one value of partial results, for several reductions, and the parts that
//! kernels of reductions share.

use super::block::{self, Lanes, Operator};
use crate::kernel::function::{self, KernelFunction};
use crate::kernel::shared_memory::shared_type;
use crate::kernel::signature::{Arguments, Signature};
use crate::subject::Subject;
use melior::Context;
use melior::ir::{AffineExpr, Attribute, Location};
use std::collections::BTreeSet;
use stencil_dialects::affine::symbolic;
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Binding, Region, Schedule};

/// Threads that combine partial results.
pub const LANES: i64 = 1024;

/// A kernel of one block that combines the partial results of some reductions.
pub struct PartialsKernel<'c, 'p> {
    /// The context.
    pub context: &'c Context,
    /// The module.
    pub subject: &'p Subject<'c, 'p>,
    /// The fields of the values, and how values are combined.
    pub reductions: &'p [(&'c str, Operator<'c>)],
    /// The place in the source.
    pub location: Location<'c>,
}

impl<'c> PartialsKernel<'c, '_> {
    /// Builds the kernel, where `count` is the number of partial results of each reduction.
    pub fn build(
        &self,
        name: &str,
        count: impl FnOnce(&KernelFunction<'c>) -> Result<Val<'c>, Error>,
    ) -> Result<(), Error> {
        let Self { context, subject, reductions, location } = *self;
        let program = subject.program;
        let outer = function::container(context, subject.module, location)?;
        let fields: Vec<&str> = reductions.iter().map(|(field, _)| *field).collect();
        let operators: Vec<Operator> = reductions.iter().map(|(_, operator)| *operator).collect();
        let mut bindings = fields_first(program, &BTreeSet::new(), &fields);
        bindings.extend(fields.iter().map(|field| Binding::Partials(field)));
        let schedule = schedule(vec![LANES], vec![1]);
        let threads = i32::try_from(LANES).unwrap_or(i32::MAX);
        let one = symbolic(context, program.params.len(), &[AffineExpr::constant(context, 1)]);
        let attributes = tiled::launch_attributes(&outer, (one, None), [threads, 1, 1], &schedule);
        let made = function(&outer, subject, (name, &operators), bindings, attributes, LANES)?;
        let builder = &made.builder;
        let count = count(&made)?;
        let views =
            fields.iter().map(|field| block::view(builder, buffer(&made.arguments, field)?, count));
        let partials = views.collect::<Result<Vec<_>, _>>()?;
        let lanes = lanes(&made, &operators, LANES)?;
        let thread = block::thread_id(builder)?;
        let neutrals = operators.iter().map(|operator| operator.neutral(builder));
        let neutrals = neutrals.collect::<Result<Vec<_>, _>>()?;
        let bounds = (thread, count, builder.index(LANES)?);
        let own = builder.carry(bounds, &neutrals, |builder, at, carried| {
            let all = carried.iter().zip(&operators).zip(&partials);
            all.map(|((before, operator), partials)| {
                operator.combine(builder, *before, builder.load(*partials, &[at])?)
            })
            .collect()
        })?;
        block::halve(builder, &lanes, &own)?;
        let first = builder.compare(Compare::Eq, thread, builder.index(0)?)?;
        builder.when(first, |builder| {
            let mut all = fields.iter().zip(&lanes);
            all.try_for_each(|(field, lanes)| {
                store(builder, &made.arguments, field, lanes.result(builder)?)
            })
        })?;
        builder.op("gpu.return", &[], &[], &[]).map(drop)
    }
}

/// A kernel whose lanes have a shared buffer for each of some reductions.
pub fn function<'c>(
    outer: &Builder<'c>,
    subject: &Subject<'c, '_>,
    (name, operators): (&str, &[Operator<'c>]),
    bindings: Vec<Binding<'c>>,
    mut attributes: Vec<(&'static str, Attribute<'c>)>,
    threads: i64,
) -> Result<KernelFunction<'c>, Error> {
    let context = outer.context;
    attributes.push(("sym_name", attribute::string(context, name)));
    attributes.push(("gpu.kernel", Attribute::unit(context)));
    let shared = operators.iter().map(|one| shared_type(outer, &[threads], one.element));
    let shared = shared.collect::<Result<Vec<_>, _>>()?;
    let signature = Signature::of_bindings(outer, subject.program, bindings)?;
    function::build(outer, subject, &signature, attributes, &shared)
}

/// The lanes of a block, with the shared buffer by which the values of each reduction meet.
pub fn lanes<'c>(
    made: &KernelFunction<'c>,
    operators: &[Operator<'c>],
    count: i64,
) -> Result<Vec<Lanes<'c>>, Error> {
    let thread = block::thread_id(&made.builder)?;
    let all = operators.iter().zip(&made.shared);
    Ok(all
        .map(|(operator, shared)| Lanes { operator: *operator, thread, shared: *shared, count })
        .collect())
}

/// Stores the value of a reduction.
pub fn store<'c>(
    builder: &Builder<'c>,
    arguments: &Arguments<'c>,
    field: &str,
    value: Val<'c>,
) -> Result<(), Error> {
    let target = arguments.targets.get(field).copied();
    let target = target.ok_or_else(|| Error::internal("a reduction without a cell"))?;
    builder.store(value, target, &[builder.index(0)?])
}

/// The schedule of a kernel that takes no step.
pub fn schedule(tile: Vec<i64>, per_thread: Vec<i64>) -> Schedule {
    let strategy = "reduce".to_owned();
    Schedule { strategy, tile, per_thread, steps: 0, region: Region::default() }
}

/// The arguments of a kernel that reads some fields, and stores the values of some reductions.
pub fn fields_first<'c>(
    program: &Program<'c>,
    read: &BTreeSet<&str>,
    stored: &[&'c str],
) -> Vec<Binding<'c>> {
    let fields = program.fields.iter().map(|field| field.name);
    let mut all: Vec<Binding> = fields
        .filter_map(|name| match stored.contains(&name) {
            true => Some(Binding::ReadWrite(name)),
            false => read.contains(name).then_some(Binding::Read(name)),
        })
        .collect();
    all.extend(program.params.iter().map(|name| Binding::Param(name)));
    all.extend(program.scalars.iter().map(|scalar| Binding::Scalar(scalar.name)));
    all.push(Binding::Step);
    all
}

/// The arguments of a kernel that combines the points of blocks: of `fields`, it stores the values
/// where there is one block `alone`, the results of blocks otherwise.
pub fn over_points<'c>(
    program: &Program<'c>,
    read: &BTreeSet<&str>,
    fields: &[&'c str],
    alone: bool,
) -> Vec<Binding<'c>> {
    let mut all = fields_first(program, read, if alone { fields } else { &[] });
    if !alone {
        all.extend(fields.iter().map(|field| Binding::Partials(field)));
    }
    all
}

/// The buffer of a reduction's partial results.
pub fn buffer<'c>(arguments: &Arguments<'c>, field: &str) -> Result<Val<'c>, Error> {
    let buffer = arguments.partials.get(field).copied();
    buffer.ok_or_else(|| Error::internal("no results of blocks"))
}
