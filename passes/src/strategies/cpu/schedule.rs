//! Tiles and steps per launch for the caches of a processor.

use crate::schedule::launch_groups::Group;
use crate::schedule::strategy::Shape;
use crate::subject::Subject;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::Schedule;

/// The shape of a tile.
pub fn shape(_subject: &Subject, group: &Group) -> Result<Shape, Error> {
    let tile: &[i64] = match group.hull.rank() {
        1 => &[4096],
        2 => &[512, 1024],
        _ => &[64, 16, 256],
    };
    Ok(Shape { tile: tile.to_vec(), per_thread: vec![1; tile.len()] })
}

/// Steps of a launch.
pub fn pyramid_height(_: &Subject, group: &Group, _: &Schedule) -> Result<i64, Error> {
    Ok(match group.hull.rank() {
        1 => 16,
        2 => 8,
        _ => 2,
    })
}
