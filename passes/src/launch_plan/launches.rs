//! The launches of a plan: what each one passes to its kernel, and how many blocks it has.

use super::values::{all, count, expression, single};
use super::{cuts, flags_name, next, reductions};
use melior::ir::AffineMap;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Binding, Launch};
use stencil_runtime::expr::{Expr, Sizes};
use stencil_runtime::plan::{self, Argument, Node, Repeat};

/// The launches of a `tiled.repeat`.
pub fn repeated(
    program: &Program,
    (repeat, launches): (&tiled::Repeat, &[Launch]),
    names: &[&str],
) -> Result<Node, Error> {
    let nodes = repeat.kernels.iter().map(|name| {
        let launch = launches.iter().find(|launch| launch.name == *name);
        let launch = launch.ok_or_else(|| {
            Error::user(format!("the schedule launches @{name}, which is no kernel"))
        })?;
        Ok(Node::Launch(node(program, launch, names)?))
    });
    let body = nodes.collect::<Result<_, Error>>()?;
    Ok(Node::Repeat(Repeat { count: single(repeat.count, names)?, body }))
}

/// Blocks along x that a device takes (CUDA C++ Programming Guide, table of technical
/// specifications per compute capability).
const MOST_BLOCKS: i64 = i32::MAX as i64;

/// The blocks of a launch; an error where they are a constant that no device takes.
pub fn blocks(launch: &Launch, names: &[&str]) -> Result<Expr, Error> {
    let axis = |map: &AffineMap| {
        let counts: Vec<_> = all(*map, names)?.iter().map(ToString::to_string).collect();
        let largest = counts.into_iter().reduce(|a, b| format!("max({a}, {b})"));
        largest.ok_or_else(|| Error::internal("an empty map"))
    };
    let axes = launch.grid.iter().map(axis).collect::<Result<Vec<_>, _>>()?;
    let blocks = match (axes.as_slice(), launch.block_points) {
        ([blocks], None) => expression(blocks)?,
        (axes, None) => expression(&format!("({})", axes.join(") * (")))?,
        (axes, Some(points)) => {
            expression(&format!("(({})) ceildiv {points}", axes.join(") * (")))?
        }
    };
    match blocks.evaluate(&Sizes::new()) {
        Ok(count) if !(0..=MOST_BLOCKS).contains(&count) => Err(Error::new(
            mlir::place(launch.op.location()),
            format!(
                "@{} would be launched with {count} blocks, and a device takes 0 to {MOST_BLOCKS}; \
                 use smaller sizes or larger tiles",
                launch.name
            ),
        )),
        _ => Ok(blocks),
    }
}

/// A launch as the plan has it.
pub fn node(program: &Program, launch: &Launch, names: &[&str]) -> Result<plan::Launch, Error> {
    let one = || expression("1");
    let chains = tiled::rotations(launch.op)?;
    let mut rotate: Vec<Vec<String>> = Vec::new();
    let arguments = launch.bindings.iter().map(|binding| match binding {
        Binding::Read(name) => Argument::Read((*name).to_owned()),
        Binding::Write(name) => {
            let chain = chains.iter().find(|chain| chain.last() == Some(name));
            let names = chain.cloned().unwrap_or_else(|| vec![*name]).into_iter();
            // Several sweeps exchange the buffers: after an even number all is in its place.
            if launch.sweeps.is_none_or(|sweeps| sweeps % 2 == 1) {
                rotate.push(names.map(str::to_owned).chain([next(name)]).collect());
            }
            // Each of several launches writes a part of the cells, and sweeps read others' cells.
            let several = launch.turns.is_some() || launch.sweeps.is_some();
            let argument = if several { Argument::ReadWrite } else { Argument::Write };
            argument(next(name))
        }
        Binding::ReadWrite(name) => Argument::ReadWrite((*name).to_owned()),
        Binding::Param(name) => Argument::Param((*name).to_owned()),
        Binding::Scalar(name) => Argument::Scalar((*name).to_owned()),
        Binding::Step => Argument::Step,
        Binding::Row => Argument::Row,
        Binding::FirstBlock => Argument::FirstBlock,
        Binding::Epoch => Argument::Epoch,
        Binding::Turn => Argument::Turn,
        Binding::Flags => Argument::ReadWrite(flags_name(launch)),
        Binding::Partials(name) => Argument::ReadWrite(reductions::partials_name(name)),
        Binding::Unless(name) => Argument::Unless((*name).to_owned()),
    });
    let arguments: Vec<Argument> = arguments.collect();
    if rotate.iter().filter(|names| names.len() > 2).count() < chains.len() {
        return Err(Error::user(format!(
            "@{} rotates buffers of a field that it does not write",
            launch.name
        )));
    }
    rotate.extend(reductions::rotated(launch));
    let cut = cuts::of(program, launch, &arguments, names)?;
    Ok(plan::Launch {
        kernel: launch.name.to_owned(),
        grid: [blocks(launch, names)?, one()?, one()?],
        steps: count(launch.schedule.steps)?,
        arguments,
        rotate,
        bands: launch
            .bands
            .map(|bands| {
                let rows = single(bands.rows, names)?;
                Ok::<_, Error>(plan::Bands { rows, reach: count(bands.row_distance)? })
            })
            .transpose()?,
        cut: cut.map(Box::new),
        cooperative: launch.flags.is_some(),
        cluster: None,
        // Flags go up by one in each launch that is told where they stand.
        turns: launch.turns.map(|turns| single(turns, names)).transpose()?,
        epochs: launch.bindings.contains(&Binding::Epoch).into(),
        device: 0,
    })
}
