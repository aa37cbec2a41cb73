//! Options of the schedule.

use super::help;
use super::values::{one_of_several, strategy, whole, word};
use clap::Args;
use stencil_compiler::Choice;

/// What a user asks of the schedule; the compiler chooses the rest.
#[derive(Args, Debug)]
pub struct ScheduleArgs {
    /// How tiles are run
    #[arg(long, value_parser = strategy, help = help::strategy())]
    pub(crate) strategy: Option<String>,
    /// Cells of a tile per dimension, slowest first: 32,64
    #[arg(
        long,
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = one_of_several
    )]
    pub(crate) tile: Option<Vec<i64>>,
    /// Threads of a block
    #[arg(
        long,
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = one_of_several,
        help = help::block(),
        conflicts_with_all = ["tile", "passes"]
    )]
    pub(crate) block: Option<Vec<i64>>,
    /// Steps per launch
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<i64>)]
    pub(crate) pyramid_height: Option<i64>,
    /// Steps per launch that a run chooses from, by measuring: 1,2,3,4,6,8
    #[arg(
        long,
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = one_of_several,
        conflicts_with_all = ["pyramid_height", "passes"]
    )]
    pub(crate) heights: Option<Vec<i64>>,
    /// Cells per thread
    #[arg(
        long,
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = one_of_several,
        help = help::per_thread()
    )]
    pub(crate) per_thread: Option<Vec<i64>>,
    /// Cells that each function of a launch computes
    #[arg(long, value_parser = word, help = help::region())]
    pub(crate) region: Option<String>,
}

impl ScheduleArgs {
    /// The part of the schedule that is asked for.
    pub(crate) fn choice(&self) -> Choice {
        Choice {
            strategy: self.strategy.clone(),
            tile: self.tile.clone(),
            pyramid_height: self.pyramid_height,
            per_thread: self.per_thread.clone(),
            region: self.region.clone(),
            block: self.block.clone(),
        }
    }
}
