//! What the plan says of reductions: the buffers of their values and of the results of blocks, and
//! the loop that ends where a condition holds.

use super::launches::{blocks, repeated};
use super::values::{element, expression, number};
use super::{heights, next};
use crate::analysis::reductions;
use melior::ir::operation::OperationLike;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Field, Program, Role};
use stencil_dialects::tiled::{self, Binding, Launch, Part};
use stencil_runtime::device;
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::{
    self, BufferDecl, BufferKind, BufferLayout, FieldDecl, Limit, Node, Relation, Start, Until,
};

/// Refuses a module whose kernels store the points of a reduction, where nothing combines them.
pub fn are_combined(program: &Program) -> Result<(), Error> {
    let Some(field) = reductions::uncombined(program)? else { return Ok(()) };
    Err(Error::new(
        mlir::place(field.op.location()),
        "the points of this reduction are stored, and nothing combines them; run combine-stores \
         behind the lowerings",
    ))
}

/// The buffer of a reduction's value, and its field where the value is an output.
pub fn cell(field: &Field) -> Result<(Option<FieldDecl>, BufferDecl), Error> {
    let element = element(field.element, field.unsigned)?;
    let one = || Ok::<_, Error>(vec![expression("1")?]);
    let initial = field.initial.and_then(|value| number(element, value));
    let buffer = BufferDecl {
        name: field.name.to_owned(),
        kind: BufferKind::Reduction,
        element,
        extents: one()?,
        origin: Vec::new(),
        layout: BufferLayout::RowMajor,
        start: initial.map_or(Start::Zeros, |value| Start::Value(Numeral::from(value))),
        constant: None,
        device: 0,
    };
    let part = plan::Part { buffer: field.name.to_owned(), cells: None, number: None };
    let declared = FieldDecl {
        name: field.name.to_owned(),
        element,
        boolean: false,
        member: None,
        role: plan::Role::Reduction,
        extents: one()?,
        value: vec![part],
    };
    Ok(((field.role == Role::Reduction).then_some(declared), buffer))
}

/// The name of the buffer for the results of a reduction's blocks; no field has a space in its
/// name.
pub fn partials_name(field: &str) -> String {
    format!("partials of {field}")
}

/// The buffers of partial results that a kernel combines, with those that the next launch gets in
/// their place: a launch that is sent ahead may store its own while they are read.
pub fn rotated(launch: &Launch) -> Vec<Vec<String>> {
    let combined = launch.bindings.iter().filter_map(|binding| match binding {
        Binding::Partials(field) if launch.bindings.contains(&Binding::ReadWrite(field)) => {
            let name = partials_name(field);
            Some(vec![next(&name), name])
        }
        _ => None,
    });
    if is_guarded(launch) { combined.collect() } else { Vec::new() }
}

/// Whether the kernel does nothing once the run's condition holds.
fn is_guarded(launch: &Launch) -> bool {
    launch.bindings.iter().any(|binding| matches!(binding, Binding::Unless(_)))
}

/// The buffers of partial results. Kernels over the points of one reduction share a buffer: one
/// stores a result for each of its blocks, another one for each of its warps.
pub fn partials(
    program: &Program,
    launches: &[Launch],
    names: &[&str],
) -> Result<Vec<BufferDecl>, Error> {
    let mut found: Vec<BufferDecl> = Vec::new();
    for launch in launches {
        for binding in &launch.bindings {
            let Binding::Partials(field) = binding else { continue };
            // The kernel that combines partial results has the value too.
            if launch.bindings.contains(&Binding::ReadWrite(field)) {
                continue;
            }
            let count = partial_results(launch, names)?;
            let name = partials_name(field);
            if let Some(buffer) = found.iter_mut().find(|buffer| buffer.name == name) {
                let before = buffer.extents.first().map(ToString::to_string).unwrap_or_default();
                buffer.extents = vec![expression(&format!("max({before}, {count})"))?];
                continue;
            }
            let declared = program.field(field)?;
            found.push(BufferDecl {
                name,
                kind: BufferKind::Scratch,
                element: element(declared.element, declared.unsigned)?,
                // A box without points has no blocks, and an array has a cell at least.
                extents: vec![expression(&format!("max(1, {count})"))?],
                origin: Vec::new(),
                layout: BufferLayout::RowMajor,
                start: Start::Zeros,
                constant: None,
                device: 0,
            });
        }
    }
    let rotated: BTreeSet<_> = launches.iter().flat_map(rotated).flatten().collect();
    let seconds = found.iter().filter(|buffer| rotated.contains(&buffer.name));
    let second = |buffer: &BufferDecl| BufferDecl { name: next(&buffer.name), ..buffer.clone() };
    let seconds: Vec<_> = seconds.map(second).collect();
    found.extend(seconds);
    Ok(found)
}

/// How many partial results a kernel stores: one a block of points, or one a warp.
fn partial_results(launch: &Launch, names: &[&str]) -> Result<String, Error> {
    let blocks = blocks(launch, names)?;
    let warps = launch.block.iter().product::<i64>() / i64::from(device::WARP);
    Ok(match (launch.block_points, warps) {
        (Some(_), _) | (None, 1) => blocks.to_string(),
        (None, warps) => format!("({blocks}) * {warps}"),
    })
}

/// The nodes of the schedule. Those in the loop of a `stencil.until` stand together.
pub fn schedule(
    program: &Program,
    repeats: &[tiled::Repeat],
    launches: &[Launch],
    names: &[&str],
) -> Result<Vec<Node>, Error> {
    let in_part = |part: Option<Part>| {
        let own = repeats.iter().filter(move |repeat| repeat.part == part);
        own.map(|repeat| repeated(program, (repeat, launches), names))
            .collect::<Result<Vec<_>, Error>>()
    };
    let mut nodes = match heights::alternatives(repeats) {
        heights if heights.is_empty() => in_part(None)?,
        heights => vec![heights::choose(program, &heights, (repeats, launches), names)?],
    };
    let Some(until) = &program.until else { return Ok(nodes) };
    let body = in_part(Some(Part::Body))?;
    if body.is_empty() || !nodes.is_empty() {
        return Err(Error::new(
            mlir::place(until.op.location()),
            "with a stencil.until, each tiled.repeat needs tiled.until, and one of them is in the \
             body",
        ));
    }
    nodes.push(Node::Until(Until {
        reduction: until.condition.to_owned(),
        is: Relation::NotEqual,
        limit: Limit::Value("0".parse().map_err(|_| Error::internal("0 is no number"))?),
        every: 1,
        text: until.text.to_owned(),
        most: expression(&format!("steps floordiv {}", until.every))?,
        ahead: launches.iter().any(is_guarded),
        body,
        otherwise: in_part(Some(Part::Otherwise))?,
    }));
    Ok(nodes)
}
