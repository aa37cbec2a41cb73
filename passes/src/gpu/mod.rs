//! Passes from the gpu level to the gpu level.

pub mod bank_pad;
pub mod coalesce_relayout;
pub mod eliminate_barriers;
pub mod exact_division;
pub mod guard_launches;
pub mod hoist_guards;
pub mod interleave_records;
pub mod keep_in_registers;
pub mod lower_peer;
pub mod number_blocks;
pub mod place_constants;
mod record_blocks;
mod record_transform;
pub mod unroll_by_registers;
mod vector_copy;
pub mod vectorize_copies;
mod watched_wait;
