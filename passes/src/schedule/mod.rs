//! The choice of a schedule, and the way from the stencil level to the tiled level.

pub mod choice;
pub mod choose_heights;
pub mod choose_schedule;
pub mod code_size;
pub mod exchange;
pub mod flexible_hyper_tiles;
pub mod large;
pub mod launch_groups;
pub mod launch_work;
pub mod leave_rows;
pub mod lowering;
pub mod predict;
mod pyramids;
pub mod regions;
pub mod stay_resident;
pub mod step_launches;
pub mod step_schedule;
pub mod strategy;
pub mod sweeps_in_flight;
mod tile_kernel;
pub mod tile_overlapped;
pub mod tile_wavefront;
pub mod trial;
pub mod waves;
