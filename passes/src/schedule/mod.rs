//! The choice of a schedule, and the way from the stencil level to the tiled level.

pub mod choose_schedule;
pub mod launch_groups;
pub mod tile_overlapped;
