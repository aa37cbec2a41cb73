//! Checks of options before a compile, and options that are set afterwards.

use crate::executable::Target;
use crate::failure::Failure;
use crate::session::Session;
use stencil_dialects::error::Error;
use stencil_dialects::tiled::Choice;
use stencil_passes::schedule::choice;
use stencil_passes::strategies;

impl Session {
    /// Refuses options that are wrong for every program on grids of these ranks. An empty list
    /// skips the checks of ranks. A compile finds the other faults, and a run on the target finds
    /// code that the target can't run.
    ///
    /// # Errors
    /// The first fault, with the remedy.
    pub fn check_options(&self, target: Target, ranks: &[usize]) -> Result<(), Failure> {
        self.options.target()?;
        let wrong = |error: Error| Failure::user(error.message);
        let choice = &self.options.config.choice;
        choice::check(choice).map_err(wrong)?;
        check_ranks(choice, ranks)?;
        choice::region(choice).map_err(wrong)?;
        let Some(name) = &choice.strategy else { return Ok(()) };
        let strategy = strategies::named(name).map_err(wrong)?;
        let is_processor = matches!(target, Target::Cpu { .. });
        if target == Target::Reference || strategy.is_for_processors() == is_processor {
            return Ok(());
        }
        let [own, other] = match is_processor {
            true => ["GPUs", "processors"],
            false => ["processors", "GPUs"],
        };
        let others = strategies::names("or", |other| other.is_for_processors() == is_processor);
        Err(Failure::user(format!(
            "the strategy {name} is for {own}, and the target for {other}; choose {others}"
        )))
    }

    /// The same session with another [`symbol_end`](crate::Options::symbol_end).
    pub fn with_symbol_end(mut self, end: String) -> Self {
        self.options.symbol_end = end;
        self
    }
}

/// Refuses shapes of tiles and a strategy that suit no grid of these ranks. An empty list skips the
/// check.
fn check_ranks(choice: &Choice, ranks: &[usize]) -> Result<(), Failure> {
    let (Some(rank), Choice { tile, per_thread, strategy, block, .. }) = (ranks.first(), choice)
    else {
        return Ok(());
    };
    // One number of cells per thread is for the dimension that a strategy widens.
    let per_thread = per_thread.as_ref().filter(|shape| shape.len() > 1);
    for (name, shape) in
        [("tile", tile.as_ref()), (choice::BLOCK.0, block.as_ref()), ("per-thread", per_thread)]
    {
        let Some(shape) = shape.filter(|shape| !ranks.contains(&shape.len())) else { continue };
        let ends = |count: usize| if count == 1 { "" } else { "s" };
        let count = shape.len();
        return Err(Failure::user(format!(
            "{name} has {count} number{}, and the grid has {rank} dimension{}; give one per \
             dimension",
            ends(count),
            ends(*rank)
        )));
    }
    let Some(name) = strategy else { return Ok(()) };
    let takes = |rank: &usize| strategies::for_rank(name, *rank).map(drop);
    match ranks.iter().any(|rank| takes(rank).is_ok()) {
        true => Ok(()),
        false => takes(rank).map_err(|error| Failure::user(error.message)),
    }
}
