//! Analyses: they read IR, return plain data and change nothing.

pub mod bank_conflicts;
pub mod crossed;
pub mod footprint;
pub mod global_traffic;
pub mod grid_ends;
pub mod hull;
pub mod index_width;
pub mod iteration_space;
pub mod kernel_work;
pub mod lane_addresses;
pub mod lane_values;
pub mod live_values;
pub mod memory_effects;
pub mod partial_sums;
pub mod record_use;
pub mod reductions;
pub mod returned_reads;
pub mod shared_copies;
pub mod shared_slots;
pub mod swept;
pub mod thread_values;
pub mod tile_traffic;
pub mod total_operations;
pub mod transfers;
pub mod vector_copies;
pub mod wavefront;
