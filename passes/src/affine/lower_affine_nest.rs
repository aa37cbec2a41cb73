//! `lower-affine-nest`: a function of upstream's affine loops becomes kernels with a launch
//! schedule.
//!
//! Needs: a module with one `func.func`, without results, of `affine.for` and `affine.parallel`
//! loops over memrefs. Guarantees: in its place the declarations of
//! its arguments, the conditions under which no access leaves its array, a `gpu.func` for each
//! launch ([`launches`]), and a `tiled.repeat` for each outermost loop. A run of
//! the plan has the result of the function, bit for bit. Each array has one buffer, updated in
//! place; one that the function allocates outside of all loops is a temp field, which starts with
//! zeros.
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
//! [`access_checks`], [`bound_checks`] and [`launches`] decline, bounds or indices of other index
//! values than arguments and `memref.dim`, and values of types that there are no instructions for.

use super::access_checks;
use super::arguments::{Declared, Extent, Kind};
use super::bound_checks;
use super::launches::{self, Function, Launch, Phase, is_loop};
use super::nest::{Nest, Text};
use super::nest_frame::Frame;
use crate::kernel::function;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{Module, ValueLike};
use stencil_dialects::affine::Linear;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::{self, Program, Role};
use stencil_dialects::tiled;
use stencil_dialects::verify::point_function::{TYPES, without_code};

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
    let whole: &Module<'c> = module;
    let op = with_launches(whole, |function, phases| {
        let Function { op, nest, text, declared, sizes } = *function;
        check_tiles(op, phases)?;
        let mut checks = access_checks::of(nest, &text.accesses, declared, sizes)?;
        checks.extend(bound_checks::of(function)?);
        let builder = Builder::new(context, op.location(), mlir::body(whole));
        declare(&builder, whole, function, &checks, phases)?;
        schedule(&builder, whole, function, phases)?;
        Ok(op)
    })?;
    mlir::erase(op);
    Ok(())
}

/// Refuses tiles at loops that no launch begins with: they would mean nothing.
fn check_tiles<'c>(function: Op<'c>, phases: &[Phase<'c>]) -> Result<(), Error> {
    let first: Vec<Op> =
        phases.iter().flat_map(|at| &at.launches).flat_map(|l| &l.ops).copied().collect();
    for op in mlir::walk(function).into_iter().filter(|op| is_loop(*op) && !first.contains(op)) {
        if tiled::nest_tile(op)?.is_some() {
            return Err(Error::new(
                mlir::place(op.location()),
                "no launch begins with this loop; move tiled.nest_tile to the outermost loop of a \
                 launch, or remove it",
            ));
        }
    }
    Ok(())
}

/// Reads the function of a module, and does something with it and its launches.
///
/// # Errors
/// What the head of this file lists, but for accesses.
pub fn with_launches<'c, R>(
    module: &Module<'c>,
    act: impl FnOnce(&Function<'c, '_>, &[Phase<'c>]) -> Result<R, Error>,
) -> Result<R, Error> {
    let op = function(module)?.ok_or_else(|| {
        Error::new(
            mlir::place(mlir::module_op(module).location()),
            "there is no func.func with affine loops to lower",
        )
    })?;
    let declared = Declared::read(op)?;
    types(op)?;
    let (nest, text) = Nest::with_text(op)?;
    let sizes = sizes(op, &nest, &text, &declared)?;
    let function = Function { op, nest: &nest, text: &text, declared: &declared, sizes: &sizes };
    let phases = launches::of(&function)?;
    act(&function, &phases)
}

/// Refuses operations and values that the lowerings have no instructions for.
fn types(function: Op) -> Result<(), Error> {
    for op in mlir::walk(function) {
        if let Some(text) = without_code(op) {
            return Err(Error::declined(Decline::Nest, text).at(mlir::place(op.location())));
        }
        let results = mlir::results(op).into_iter().map(|value| value.r#type());
        let mut unknown = results
            .filter(|ty| MemRefType::try_from(*ty).is_err())
            .map(|ty| ty.to_string())
            .filter(|ty| !TYPES.contains(&ty.as_str()));
        if let Some(ty) = unknown.next() {
            let message = format!(
                "{} has a result of type {ty}; the values of affine loops have the types {}",
                mlir::name(op),
                TYPES.join(", ")
            );
            return Err(Error::declined(Decline::Nest, message).at(mlir::place(op.location())));
        }
    }
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
        .at(mlir::place(user(function, *value).location()))),
    };
    text.sizes.iter().enumerate().map(size).collect()
}

/// The first loop, load or store that has a value among its operands, or one computed from it.
fn user<'c>(function: Op<'c>, value: mlir::Val<'c>) -> Op<'c> {
    let mut from = vec![value];
    for op in mlir::walk(function) {
        if mlir::operands(op).iter().any(|operand| from.contains(operand)) {
            if is_loop(op) || matches!(mlir::name(op), "affine.load" | "affine.store") {
                return op;
            }
            from.extend(mlir::results(op));
        }
    }
    function
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
    // Launches that always run, and then each loop of the host, which may have no iterations.
    let (loops, always): (Vec<_>, Vec<_>) = phases.iter().partition(|at| at.host_loop.is_some());
    let always = always.iter().map(|phase| steps(phase, declared).constant).sum();
    let mut all = vec![declared.number(always)];
    all.extend(loops.iter().map(|phase| steps(phase, declared)));
    let whole = mlir::module_op(module);
    if mlir::attribute(whole, "sym_name").is_none() {
        let name = stencil_dialects::attribute::string(context, declared.name);
        mlir::set_attribute(whole, "sym_name", name);
    }
    stencil::set_program(builder, module, &params, &[], map(&all));
    let stored: Vec<_> =
        function.text.stores.iter().filter_map(|op| mlir::operands(*op).get(1).copied()).collect();
    for argument in &declared.arguments {
        match &argument.kind {
            Kind::Size(_) => {}
            Kind::Scalar(ty) => drop(stencil::scalar(builder, &argument.name, *ty, None)?),
            Kind::Array { element, extents } => {
                let grid = format!("cells of {}", argument.name);
                let zeros: Vec<_> = extents.iter().map(|_| declared.number(0)).collect();
                let last = |extent: &Extent| declared.cells(extent).minus(&declared.number(1));
                let last: Option<Vec<_>> = extents.iter().map(last).collect();
                let last = last.ok_or_else(|| Error::user("an extent leaves 64 bits"))?;
                stencil::grid(builder, &grid, map(&zeros), map(&last))?;
                let role = match stored.contains(&argument.value) {
                    _ if argument.own => Role::Temp,
                    true => Role::State,
                    false => Role::Const,
                };
                let field = stencil::field(builder, &argument.name, &grid, *element, role, None)?;
                if let Some(note) = argument.note {
                    stencil::set_layout_note(builder, field, note);
                }
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
    let each = declared.number(i64::try_from(phase.launches.len()).unwrap_or(i64::MAX));
    phase.host_loop.as_ref().map_or(each, |host_loop| host_loop.trips.clone())
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
        for (place, launch) in phase.launches.iter().enumerate() {
            let name = stencil::unused_name(module, &kernel_name(declared.name, number));
            number += 1;
            let ends_step = phase.host_loop.is_none() || place + 1 == phase.launches.len();
            let frame = Frame {
                function: nest,
                launch,
                name: name.clone(),
                host_loop: phase.host_loop.as_ref().map(|host_loop| (host_loop, before.as_slice())),
                steps: i64::from(ends_step),
            };
            let container = function::container(context, module, launch_location(launch, nest))?;
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

fn launch_location<'c>(launch: &Launch<'c>, nest: &Function<'c, '_>) -> melior::ir::Location<'c> {
    launch.ops.first().map_or_else(|| nest.op.location(), |op| op.location())
}

/// A name that PTX allows.
fn kernel_name(function: &str, number: usize) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let name: String = function.chars().map(letter).collect();
    let start = if name.starts_with(|first: char| first.is_ascii_alphabetic()) { "" } else { "k" };
    format!("{start}{name}_{number}")
}
