//! The strategy `stream`: all steps of a launch in flight in registers, along the slowest dimension.

mod checks;
mod in_flight;
mod lane_place;
mod layout;
pub mod lower_stream;
pub mod pipeline;
mod rims;
pub mod schedule;
mod shared;
mod transfers;
mod updates;
mod walk;
