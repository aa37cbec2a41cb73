//! The node of a plan that leaves the pyramid height to the run.

use super::launches::repeated;
use super::values::expression;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Height, Launch, Repeat};
use stencil_runtime::execute::heights::NAME;
use stencil_runtime::plan::{Alternative, Choose, Node};

/// The pyramid heights of a schedule with alternatives, in its order: the usual one first.
pub fn alternatives<'r>(repeats: &'r [Repeat]) -> Vec<&'r Height> {
    let mut found: Vec<&Height> = Vec::new();
    for height in repeats.iter().filter_map(|repeat| repeat.height.as_ref()) {
        if !found.contains(&height) {
            found.push(height);
        }
    }
    found
}

/// One list of launches for each height. The first one is taken unless the run names another.
pub fn choose(
    program: &Program,
    heights: &[&Height],
    (repeats, launches): (&[Repeat], &[Launch]),
    names: &[&str],
) -> Result<Node, Error> {
    if let Some(repeat) = repeats.iter().find(|repeat| repeat.height.is_none()) {
        return Err(Error::new(
            mlir::place(repeat.op.location()),
            "with several pyramid heights, each tiled.repeat needs tiled.height",
        ));
    }
    let mut among = Vec::new();
    for (place, height) in heights.iter().enumerate() {
        let own = repeats.iter().filter(|repeat| repeat.height.as_ref() == Some(*height));
        let body = own.map(|repeat| repeated(program, (repeat, launches), names));
        let main = launches.iter().find(|launch| launch.schedule.steps == height.steps);
        let last = place + 1 == heights.len();
        among.push(Alternative {
            name: height.steps.to_string(),
            when: if last { None } else { Some(expression("0")?) },
            pyramid_height: Some(height.steps),
            tile: main.map(|launch| launch.schedule.tile.clone()).unwrap_or_default(),
            reach: height.reach.clone(),
            body: body.collect::<Result<_, _>>()?,
        });
    }
    Ok(Node::Choose(Choose { name: NAME.to_owned(), among }))
}
