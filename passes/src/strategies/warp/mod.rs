//! The strategy `warp`: one dimension, all steps of a launch in the registers of a warp.

mod cells;
pub mod lower_warp;
pub mod schedule;
mod steps;
