//! `lower-affine-nest`: a function of upstream's affine loops becomes kernels with a launch
//! schedule.
//!
//! Needs: a module with one `func.func`, without results, of `affine.for` and `affine.parallel`
//! loops over memrefs. Guarantees: in its place the declarations of
//! its arguments, the conditions under which no access leaves its array, a `gpu.func` for each
//! launch ([`launches`]), and a `tiled.repeat` for each outermost loop. A run of
//! the plan has the result of the function, bit for bit. Each array has one buffer, updated in
//! place.
//!
//! ```text
//! func.func @scale(%a: memref<?xf32> {stencil.name = "A", stencil.extents = ["N"]},
//!                  %n: index {stencil.name = "N"}) {
//!   affine.for %i = 0 to %n { ... affine.load %a[%i] ... affine.store ..., %a[%i] }
//! }
//! ```
//! becomes
//! ```text
//! stencil.grid @"cells of A" from 0 to N - 1; stencil.field @A; stencil.check N >= 0
//! tiled.repeat 1 { @scale_0 }
//! gpu.func @scale_0(%A read_write, %N) {      // max(N ceildiv 256, 1) blocks of 256 threads
//!   %i = block * 256 + thread
//!   scf.if (%i < %N) { ... memref.load %A[%i] ... memref.store ..., %A[%i] }
//! }
//! ```
//!
//! Each launch is a step of the plan. A loop on the host takes one step per iteration, possibly
//! none.
//!
//! Declines, with a place: what [`nest`](super::nest), [`arguments`](super::arguments),
//! [`access_checks`] and [`launches`] decline, and bounds or
//! indices of other index values than arguments and `memref.dim`.

use super::access_checks;
use super::arguments::{Declared, Extent, Kind};
use super::launches::{self, Function, Phase, Unit, is_loop};
use super::nest::{Nest, Text};
use super::nest_frame::Frame;
use crate::kernel::function;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use stencil_dialects::affine::Linear;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::{self, Program, Role};
use stencil_dialects::tiled;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-affine-nest",
    summary: "lower a function of affine loops to kernels: loops become threads or launches",
    options: &[],
    read: |_: &Options| Ok(Box::new(LowerAffineNest)),
};

/// The pass.
pub struct LowerAffineNest;

impl Pass for LowerAffineNest {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        run(context, module)
    }
}

/// The function of affine loops of a module that is no stencil program, if it has one.
///
/// # Errors
/// A second function beside it.
pub fn function<'c>(module: &Module<'c>) -> Result<Option<Op<'c>>, Error> {
    if stencil::is_program(module) {
        return Ok(None);
    }
    let all = mlir::operations(mlir::body(module)).into_iter();
    let all: Vec<Op> = all.filter(|op| mlir::name(*op) == "func.func").collect();
    let looped = |op: &&Op| mlir::walk(**op).into_iter().any(is_loop);
    match (all.iter().find(looped), all.as_slice()) {
        (None, _) => Ok(None),
        (Some(found), [_]) => Ok(Some(*found)),
        (Some(found), all) => {
            let other = all.iter().find(|op| *op != found).unwrap_or(found);
            Err(Error::new(
                mlir::place(other.location()),
                "a module of affine loops has one function; move the others to their own modules",
            ))
        }
    }
}

fn run<'c>(context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
    let op = function(module)?.ok_or_else(|| {
        Error::new(
            mlir::place(mlir::module_op(module).location()),
            "there is no func.func with affine loops to lower",
        )
    })?;
    let declared = Declared::read(op)?;
    let (nest, text) = Nest::with_text(op)?;
    let sizes = sizes(op, &nest, &text, &declared)?;
    let checks = access_checks::of(&nest, &text.accesses, &declared, &sizes)?;
    let function = Function { op, nest: &nest, text: &text, declared: &declared, sizes: &sizes };
    let phases = launches::of(&function)?;
    let builder = Builder::new(context, op.location(), mlir::body(module));
    declare(&builder, module, &function, &checks, &phases)?;
    schedule(&builder, module, &function, &phases)?;
    mlir::erase(op);
    Ok(())
}

/// The sizes of a nest over the params. One that no bound and no index has may be any number.
fn sizes<'c>(
    function: Op<'c>,
    nest: &Nest,
    text: &Text<'c>,
    declared: &Declared<'c>,
) -> Result<Vec<Linear>, Error> {
    let bounds = nest.loops.iter().flat_map(|at| &at.bounds);
    let indices = text.accesses.iter().flat_map(|access| &access.reference.indices);
    let used: Vec<&Linear> = bounds.chain(indices).collect();
    let size = |(place, value): (usize, &mlir::Val<'c>)| match declared.size(function, *value) {
        Some(size) => Ok(size),
        None if used.iter().all(|form| form.coefficients.get(place) == Some(&0)) => {
            Ok(declared.number(0))
        }
        None => Err(Error::declined(
            Decline::Nest,
            format!(
                "a bound or an index has the value {value}, which is neither an index argument \
                 nor an extent; write it as an affine map of these"
            ),
        )
        .at(mlir::place(function.location()))),
    };
    text.sizes.iter().enumerate().map(size).collect()
}

/// Makes the module a program: sizes, arrays, scalars and conditions.
fn declare<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    function: &Function<'c, '_>,
    checks: &[access_checks::Check],
    phases: &[Phase<'c>],
) -> Result<(), Error> {
    let (context, declared) = (builder.context, function.declared);
    let params: Vec<&str> = declared.params.iter().map(String::as_str).collect();
    let map = |of: &[Linear]| Linear::map(context, params.len(), of);
    let sum = |sum: Linear, phase| sum.plus(&steps(phase, declared));
    let all = phases.iter().try_fold(declared.number(0), sum);
    let all = all.ok_or_else(|| Error::user("the steps leave 64 bits"))?;
    let whole = mlir::module_op(module);
    if mlir::attribute(whole, "sym_name").is_none() {
        let name = stencil_dialects::attribute::string(context, declared.name);
        mlir::set_attribute(whole, "sym_name", name);
    }
    stencil::set_program(builder, module, &params, &[], map(&[all]));
    let stored: Vec<_> =
        function.text.stores.iter().filter_map(|op| mlir::operands(*op).get(1).copied()).collect();
    for argument in &declared.arguments {
        match &argument.kind {
            Kind::Size(_) => {}
            Kind::Scalar(ty) => drop(stencil::scalar(builder, &argument.name, *ty, None)?),
            Kind::Array { element, extents } => {
                let grid = format!("cells of {}", argument.name);
                let zeros: Vec<_> = extents.iter().map(|_| declared.number(0)).collect();
                let last = |extent: &Extent| declared.cells(*extent).minus(&declared.number(1));
                let last: Option<Vec<_>> = extents.iter().map(last).collect();
                let last = last.ok_or_else(|| Error::user("an extent leaves 64 bits"))?;
                stencil::grid(builder, &grid, map(&zeros), map(&last))?;
                let role = if stored.contains(&argument.value) { Role::State } else { Role::Const };
                stencil::field(builder, &argument.name, &grid, *element, role, None)?;
            }
        }
    }
    for check in checks {
        let zeros = vec![declared.number(0); check.unless_negative.len()];
        let unless = (map(&zeros), map(&check.unless_negative));
        let unless = (!zeros.is_empty()).then_some(unless);
        stencil::check(builder, map(std::slice::from_ref(&check.value)), unless, &check.message)?;
    }
    Ok(())
}

/// The steps of a phase; none where they are negative.
fn steps(phase: &Phase, declared: &Declared) -> Linear {
    let each = declared.number(i64::try_from(phase.units.len()).unwrap_or(i64::MAX));
    phase.series.as_ref().map_or(each, |series| series.trips.clone())
}

/// Builds the kernels and the order of their launches.
fn schedule<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    nest: &Function<'c, '_>,
    phases: &[Phase<'c>],
) -> Result<(), Error> {
    let (context, declared) = (builder.context, nest.declared);
    let program = Program::read(module)?;
    let subject = Subject::of(module, &program)?;
    let mut before = Vec::new();
    let mut number = 0;
    for phase in phases {
        let mut names = Vec::new();
        for (place, unit) in phase.units.iter().enumerate() {
            let name = stencil::unused_name(module, &kernel_name(declared.name, number));
            number += 1;
            let ends_step = phase.series.is_none() || place + 1 == phase.units.len();
            let frame = Frame {
                function: nest,
                unit,
                name: name.clone(),
                series: phase.series.as_ref().map(|series| (series, before.as_slice())),
                steps: i64::from(ends_step),
            };
            let container = function::container(context, module, unit_location(unit, nest))?;
            frame.build(&container, &subject)?;
            names.push(name);
        }
        let count = steps(phase, declared);
        let mut coefficients = count.coefficients;
        // The steps of a run are one symbol more.
        coefficients.push(0);
        let count = Linear { constant: count.constant, coefficients };
        let count = Linear::map(context, declared.params.len() + 1, &[count]);
        if !names.is_empty() {
            tiled::repeat(builder, count, &names)?;
        }
        before.push(steps(phase, declared));
    }
    Ok(())
}

fn unit_location<'c>(unit: &Unit<'c>, nest: &Function<'c, '_>) -> melior::ir::Location<'c> {
    unit.ops.first().map_or_else(|| nest.op.location(), |op| op.location())
}

/// A name that PTX allows.
fn kernel_name(function: &str, number: usize) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = function.chars().map(letter).collect();
    let start = if name.starts_with(|first: char| first.is_ascii_alphabetic()) { "" } else { "k" };
    format!("{start}{name}_{number}")
}
