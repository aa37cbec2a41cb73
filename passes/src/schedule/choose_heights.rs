//! `choose-heights`: schedules of several pyramid heights, from which a run chooses.
//!
//! Source: *A Language and Optimizing Compiler for Iterative Stencil Loops*, section 6.3. The best
//! pyramid height depends on the device and on the size of the data, which a run knows. For each
//! height the pass takes the schedule that the model of `choose-schedule` predicts to be fastest.
//! Where the code of all heights would be too long, some take slower schedules with less code.
//! The runtime measures and decides (`runtime/src/execute/heights.rs`).
//!
//! Needs: a verified stencil program. Guarantees: the module has a list of schedules for
//! `tile-overlapped`, the one that is predicted to be fastest first. The heights that are powers of
//! two below another one of the list are in it too: their kernels take the steps left over. A
//! height that every candidate declines is left out, with those that need it. The tallest heights
//! are left out too where the code of all kernels together would be too long.
//!
//! ```text
//! module @heat attributes {tiled.heights = [
//!   {tiled.strategy = "stream", tiled.steps = 4 : i64, ...},
//!   {tiled.strategy = "stream", tiled.steps = 1 : i64, ...},
//!   {tiled.strategy = "stream", tiled.steps = 2 : i64, ...}]}
//! ```
//!
//! Declines `height`: a program whose steps no launch can take together, and one with reductions.

use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::choice::{BLOCK, PER_THREAD, REGION, STRATEGY, TILE};
use crate::schedule::choose_schedule::{DEVICES, Request, SPLIT_INTERIOR};
use crate::schedule::code_size::{self, MOST_OF_ALL};
use crate::schedule::predict::{self, Candidate};
use crate::strategies;
use crate::subject::Subject;
use melior::Context;
use melior::ir::Module;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Choice, MOST_STEPS};

/// The option for [`ChooseHeights::heights`].
const HEIGHTS: (&str, &str) = ("heights", "pyramid heights that a run may choose from");

/// The most heights of a plan: each has a kernel.
pub const MOST_HEIGHTS: usize = 24;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "choose-heights",
    summary: "choose the schedules of several pyramid heights, for the run to choose from",
    options: &[HEIGHTS, STRATEGY, TILE, PER_THREAD, REGION, BLOCK, SPLIT_INTERIOR, DEVICES],
    read: |options: &Options| {
        let heights = read_heights(options)?;
        Ok(Box::new(ChooseHeights { heights, request: Request::read(options)? }))
    },
};

/// The heights that options hold.
fn read_heights(options: &Options) -> Result<Vec<i64>, Error> {
    Ok(options.integers(HEIGHTS.0, 1..=MOST_STEPS)?.unwrap_or_default())
}

/// The pass.
pub struct ChooseHeights {
    /// Pyramid heights, in any order.
    pub heights: Vec<i64>,
    /// What is given of the schedules.
    pub request: Request,
}

impl Pass for ChooseHeights {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let heights: Vec<_> = self.heights.iter().map(i64::to_string).collect();
        let mut options = Vec::new();
        if !heights.is_empty() {
            options.push((HEIGHTS.0, heights.join(",")));
        }
        options.extend(self.request.options());
        options
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let Request { choice, settings } = &self.request;
        if let Some(height) = choice.pyramid_height {
            return Err(Error::user(format!(
                "a pyramid height of {height} is given beside several heights; leave out one"
            )));
        }
        // The heights may come from elsewhere than options.
        let mut given = Options::default();
        self.options().into_iter().for_each(|(name, value)| given.set(name, value));
        read_heights(&given)?;
        let heights = with_digits(&self.heights)?;
        // Candidates are compiled, each by its own schedule.
        tiled::remove_heights(module);
        self.request.note_devices(context, module);
        let chosen = {
            let program = Program::read(module)?;
            one_height(&program)?;
            let subject = Subject::of(module, &program)?;
            let mut found = BTreeMap::new();
            let mut declined = None;
            for height in heights {
                let asked = Choice { pyramid_height: Some(height), ..choice.clone() };
                let open = predict::openings(context, &subject, &asked, *settings)?;
                match predict::evaluate(context, &subject, &open, *settings) {
                    Ok(candidates) => {
                        found.insert(height, with_code(&program, height, candidates)?);
                    }
                    Err(error) if error.is_decline() => declined = declined.or(Some(error)),
                    Err(error) => return Err(error),
                }
            }
            found.retain(|_, candidates| !candidates.is_empty());
            let made: BTreeSet<i64> = found.keys().copied().collect();
            found.retain(|height, _| {
                code_size::heights(*height).iter().all(|digit| made.contains(digit))
            });
            let mut list = fitting(found);
            if list.is_empty() {
                let none = || Error::declined(Decline::Height, "no pyramid height is possible");
                return Err(declined.unwrap_or_else(none));
            }
            // The fastest one is the usual one.
            let seconds = |place: &usize| list.get(*place).map_or(0.0, |one| one.seconds());
            let best = (0..list.len()).min_by(|a, b| seconds(a).total_cmp(&seconds(b)));
            let best = list.remove(best.unwrap_or(0));
            [best].into_iter().chain(list).map(|one| one.candidate.choice).collect::<Vec<_>>()
        };
        tiled::set_heights(context, module, &chosen);
        Ok(())
    }
}

/// Declines programs that have one height.
fn one_height(program: &Program) -> Result<(), Error> {
    let refuse = |who: &str| {
        let message = format!("{who} has one pyramid height; leave heights out");
        Err(Error::declined(Decline::Height, message))
    };
    if !program.reduces.is_empty() || program.until.is_some() {
        return refuse("a program with reductions");
    }
    for apply in &program.applies {
        if !program.dependences(&apply.pieces)?.is_empty() {
            return refuse("a program that reads values of its own sweep");
        }
    }
    Ok(())
}

/// A candidate for a height.
#[derive(Clone)]
struct WithCode {
    candidate: Candidate,
    /// Operations of its kernel.
    code: i64,
}

impl WithCode {
    fn seconds(&self) -> f64 {
        self.candidate.expected
    }
}

fn with_code(
    program: &Program,
    height: i64,
    candidates: Vec<Candidate>,
) -> Result<Vec<WithCode>, Error> {
    let applies: Vec<_> = program.applies.iter().collect();
    let code = |candidate: &Candidate| match &candidate.choice.strategy {
        Some(name) => {
            let shape = (candidate.per_thread.as_slice(), height);
            code_size::of_kernel(program, strategies::named(name)?, &applies, shape)
        }
        None => Err(Error::internal("a candidate without a strategy")),
    };
    candidates
        .into_iter()
        .map(|candidate| Ok(WithCode { code: code(&candidate)?, candidate }))
        .collect()
}

/// A candidate for each height, with a sum of code within the limit. Each height has its least
/// code; the rest of the limit goes to faster candidates, the tallest height first. While even the
/// least code is too long, the tallest height is left out.
fn fitting(mut found: BTreeMap<i64, Vec<WithCode>>) -> Vec<WithCode> {
    let least = |candidates: &Vec<WithCode>| candidates.iter().map(|one| one.code).min();
    loop {
        let shortest: i64 = found.values().filter_map(least).sum();
        if shortest <= MOST_OF_ALL {
            let mut room = MOST_OF_ALL - shortest;
            let list = found.values().rev().filter_map(|candidates| {
                let least = least(candidates)?;
                let fastest = candidates.iter().find(|one| one.code - least <= room)?;
                room -= fastest.code - least;
                Some(fastest.clone())
            });
            let mut list: Vec<_> = list.collect();
            list.reverse();
            return list;
        }
        found.pop_last();
    }
}

/// Heights with all that they need, in order.
fn with_digits(heights: &[i64]) -> Result<Vec<i64>, Error> {
    let mut all: Vec<i64> = heights.iter().flat_map(|height| code_size::heights(*height)).collect();
    all.sort_unstable();
    all.dedup();
    if heights.is_empty() || all.len() > MOST_HEIGHTS {
        let message = format!(
            "a plan has 1 to {MOST_HEIGHTS} pyramid heights with the powers of two below them; \
             {} are asked for",
            all.len()
        );
        return Err(Error::user(message));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_bring_their_binary_digits() {
        assert_eq!(with_digits(&[6, 3]).unwrap(), [1, 2, 3, 4, 6]);
        assert_eq!(with_digits(&[1]).unwrap(), [1]);
        assert!(with_digits(&[]).is_err());
        assert!(with_digits(&(1..=30).collect::<Vec<_>>()).is_err());
    }
}
