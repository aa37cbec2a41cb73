//! Tiles and pyramid heights of the strategy `relay`, where none are asked for.

use crate::analysis::index_width::constant_extents;
use crate::kernel::lanes::{self, WARP};
use crate::schedule::launch_groups::Group;
use crate::subject::Subject;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Apply;
use stencil_dialects::tiled::{Halo, Schedule};

/// Cells of a lane.
pub const WIDTH: i64 = 13;

/// Rows of a tile where the grid's are not known at compile time.
pub const ROWS: i64 = 1024;

/// The most steps per launch within the budget of registers and halo; at least 1.
pub fn pyramid_height(_: &Subject, _: &[&Apply], _: &[i64]) -> Result<i64, Error> {
    Ok(16)
}

/// The tile of a kernel whose loads and applies reach over some halos.
pub fn tile(
    subject: &Subject,
    group: &Group,
    schedule: &Schedule,
    halos: &[&Halo],
) -> Result<Vec<i64>, Error> {
    let width = schedule.per_thread.last().copied().unwrap_or(1);
    let halo = halos.iter().fold(Halo::none(2), |all, halo| all.hull(halo));
    let (west, east) = match (halo.lower.as_slice(), halo.upper.as_slice()) {
        ([_, west], [_, east]) => (-west, *east),
        _ => (0, 0),
    };
    let mut sector = 1;
    for field in group.applies.iter().flat_map(|apply| &apply.updates) {
        let element = subject.program.field(field)?.element;
        sector = sector.max(i64::try_from(lanes::cells_of_a_sector(element)).unwrap_or(1));
    }
    let columns = WARP * width - lanes::whole(west, sector) - east;
    let columns = (columns / sector * sector).max(sector);
    let extents = constant_extents(group.hull.lower, group.hull.upper);
    let rows = extents.and_then(|extents| extents.first().copied());
    Ok(vec![rows.unwrap_or(ROWS).min(ROWS), columns])
}
