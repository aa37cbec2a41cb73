//! The pyramid height of a run, chosen while it runs.
//!
//! A plan may carry several pyramid heights: a `choose` node of the name [`NAME`]. Where the caller
//! chooses none and the target measures time, the run begins with launches of the usual height, of
//! height 1 and of height 2, and with a null kernel. They fill the model of
//! [`crate::model::pyramid`], which descends from height 1 to the one that it predicts to be
//! fastest. That height and its neighbours are measured in turn, as long as one is faster. Heights
//! may have schedules of different strategies, which the model does not know: the other ones are
//! measured too. All these launches are steps of the run. At most a quarter of the steps is
//! measured; each height that is not measured yet has an equal share of what is left of it.
//!
//! Source: *A Language and Optimizing Compiler for Iterative Stencil Loops*, section 6.3. Beyond
//! it, measurements have the last word, and no step is lost.

mod memory;
#[cfg(test)]
mod tests;

pub use memory::Memory;

use super::{Control, ExecuteError, Inputs, Launched, Segment, Target, launch_segment};
use crate::bind::Bound;
use crate::launch::{Action, Launches};
use crate::model::pyramid::{self, Pyramid};
use crate::plan::{Alternative, Choose, Node, Plan};
use serde::Serialize;

/// The name of the choice.
pub const NAME: &str = "pyramid_height";

/// What a run found out about its heights.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Chosen {
    /// The name of the alternative.
    pub height: String,
    /// Heights and the seconds that a step was predicted to take.
    pub predicted: Vec<(i64, f64)>,
    /// Heights and the seconds that a step took.
    pub measured: Vec<(i64, f64)>,
    /// Seconds of the launch of a null kernel.
    pub null: f64,
    /// Steps that were taken while measuring.
    pub steps: i64,
}

/// Runs of fewer steps take the usual height.
const LEAST_STEPS: i64 = 64;
/// The part of a run that may be measured.
const MEASURED_PART: i64 = 4;
/// Seconds of a measurement, and the launches of one: consecutive ones overlap. A height has fewer
/// where its share of the steps does not hold them. The shortest of so many counts.
const ENOUGH: f64 = 800e-6;
const OVERLAPPING: i64 = 8;
const MOST_LAUNCHES: i64 = 512;
const ROUNDS: usize = 2;
/// Seconds until clocks have risen.
const WARM: f64 = 4e-3;
const NULL_LAUNCHES: u32 = 32;
/// A height is faster than another one where it is by this part.
const FASTER: f64 = 0.002;

/// The node by which a run chooses, if the plan leaves the height to it.
pub fn open<'p>(plan: &'p Plan, bound: &Bound) -> Option<&'p Choose> {
    if bound.choices.contains_key(NAME) || bound.steps < LEAST_STEPS {
        return None;
    }
    match plan.schedule.as_slice() {
        [Node::Choose(choose)] if choose.name == NAME => Some(choose),
        _ => None,
    }
}

/// Does the whole schedule, measures while it runs, and waits for it.
///
/// # Errors
/// As [`crate::execute::launch_all`].
pub fn launch_all(
    plan: &Plan,
    bound: &Bound,
    choose: &Choose,
    inputs: &Inputs,
    target: &mut dyn Target,
    control: &mut Control<'_>,
) -> Result<Launched, ExecuteError> {
    let mut heights: Vec<(i64, &Alternative)> = choose
        .among
        .iter()
        .filter_map(|one| Some((one.pyramid_height?, one)))
        .filter(|(height, _)| *height > 0)
        .collect();
    heights.sort_by_key(|(height, _)| *height);
    let budget = bound.steps / MEASURED_PART;
    let usual = choose.among.first().and_then(|one| one.pyramid_height).unwrap_or(1);
    let mut run = Search { plan, bound, inputs, budget, all: None, chosen: Chosen::default() };
    let place = run.search(&heights, usual, target, control)?;
    let taken = run.taken();
    let name = match place.and_then(|place| heights.get(place)) {
        Some((_, one)) => one.name.clone(),
        None => choose.among.first().map(|one| one.name.clone()).unwrap_or_default(),
    };
    run.chosen.steps = taken;
    run.chosen.height.clone_from(&name);
    run.segment(&name, bound.steps - taken, target, control)?;
    let Search { all, chosen, .. } = run;
    let mut launched = all.ok_or(ExecuteError::Cancelled(bound.first_step))?;
    launched.height = Some(chosen);
    Ok(launched)
}

/// A run that measures.
struct Search<'r> {
    plan: &'r Plan,
    bound: &'r Bound,
    inputs: &'r Inputs,
    /// Steps that may still be measured.
    budget: i64,
    /// What was done so far.
    all: Option<Launched>,
    chosen: Chosen,
}

impl Search<'_> {
    /// Steps that were taken.
    fn taken(&self) -> i64 {
        self.all.as_ref().map_or(0, |all| all.steps)
    }

    /// Measures, and gives the place of the best height; none where too little can be measured.
    fn search(
        &mut self,
        heights: &[(i64, &Alternative)],
        usual: i64,
        target: &mut dyn Target,
        control: &mut Control<'_>,
    ) -> Result<Option<usize>, ExecuteError> {
        let place = |height: i64| heights.iter().position(|(one, _)| *one == height);
        let (Some(one), Some(two)) = (place(1), place(2)) else { return Ok(None) };
        let Some(first) = self.first_launch(1)? else { return Ok(None) };
        let null = target.null(first.grid, first.block, NULL_LAUNCHES);
        let Some(null) = null.map_err(ExecuteError::Target)? else { return Ok(None) };
        let null = null.as_secs_f64() / f64::from(NULL_LAUNCHES);
        self.chosen.null = null;
        self.warm(usual, target, control)?;
        let mut known: Vec<Option<f64>> = vec![None; heights.len()];
        for place in [one, two] {
            let measured = self.measure(heights, place, target, control)?;
            if let (Some(slot), Some(seconds)) = (known.get_mut(place), measured) {
                *slot = Some(seconds);
            }
        }
        let times = (known.get(one).copied().flatten(), known.get(two).copied().flatten());
        let (Some(first), Some(second)) = times else { return Ok(None) };
        let pyramids = self.pyramids(heights, target)?;
        let (Some(a), Some(b)) = (pyramids.get(one), pyramids.get(two)) else { return Ok(None) };
        // Measurements are per step. No launch takes less than one that does nothing; in a graph
        // it may take less than that one by itself.
        let null = null.min(first).min(2.0 * second);
        let costs = pyramid::fit(null, (a, first), (b, 2.0 * second));
        self.chosen.predicted =
            pyramids.iter().map(|pyramid| (pyramid.height, pyramid.step(&costs))).collect();
        let mut best = pyramid::descend(&pyramids, &costs);
        let mut others: Vec<usize> = (0..pyramids.len()).collect();
        let predicted = |place: &usize| pyramids.get(*place).map_or(f64::MAX, |p| p.step(&costs));
        others.sort_by(|a, b| predicted(a).total_cmp(&predicted(b)));
        // The model proposes; what is measured decides, as far as there are steps for it.
        loop {
            let near = [0, 1, -1, 2, -2].map(|distance| best.checked_add_signed(distance));
            for place in near.into_iter().flatten() {
                if known.get(place).is_some_and(Option::is_none) {
                    let seconds = self.measure(heights, place, target, control)?;
                    // Predictions count where nothing but what they rest on was measured.
                    let predicted = pyramids.get(place).map(|pyramid| pyramid.step(&costs));
                    let predicted = predicted.filter(|_| self.chosen.measured.len() <= 2);
                    if let Some(slot) = known.get_mut(place) {
                        *slot = seconds.or(predicted).or(Some(f64::INFINITY));
                    }
                }
            }
            let time = |place: usize| known.get(place).copied().flatten().unwrap_or(f64::INFINITY);
            // Those that were measured before count too.
            let next = (0..known.len()).min_by(|a, b| time(*a).total_cmp(&time(*b)));
            match next {
                Some(next) if time(next) < time(best) * (1.0 - FASTER) => best = next,
                _ => {
                    let other = others.iter().find(|place| known.get(**place) == Some(&None));
                    let Some(other) = other else { break };
                    let seconds = self.measure(heights, *other, target, control)?;
                    if let Some(slot) = known.get_mut(*other) {
                        *slot = seconds.or(Some(f64::INFINITY));
                    }
                }
            }
        }
        Ok(Some(best))
    }

    /// Lets the device run until its clocks have risen.
    fn warm(
        &mut self,
        usual: i64,
        target: &mut dyn Target,
        control: &mut Control<'_>,
    ) -> Result<(), ExecuteError> {
        let (mut seconds, mut steps) = (0.0, 4 * usual);
        let most = self.budget / 2;
        while seconds < WARM && steps <= self.budget - most {
            let took = self.segment(&usual.to_string(), steps, target, control)?;
            self.budget -= steps;
            seconds += took.unwrap_or(WARM);
            steps *= 2;
        }
        Ok(())
    }

    /// Seconds of a step with a height; none where no steps are left to measure.
    fn measure(
        &mut self,
        heights: &[(i64, &Alternative)],
        place: usize,
        target: &mut dyn Target,
        control: &mut Control<'_>,
    ) -> Result<Option<f64>, ExecuteError> {
        let Some((height, one)) = heights.get(place) else { return Ok(None) };
        let mut seconds = None;
        // Short runs have few steps for each height, which then has few launches.
        let waiting = heights.len().saturating_sub(self.chosen.measured.len()).max(1);
        let share = (self.budget / waiting as i64 - 2 * height).max(0) / ROUNDS as i64;
        // The first launches of a kernel are slower, and tell how many are enough.
        let mut launches = 2;
        for round in 0..=ROUNDS {
            let steps = launches * height;
            if steps > self.budget {
                break;
            }
            self.budget -= steps;
            let Some(took) = self.segment(&one.name, steps, target, control)? else { break };
            let (step, each) = (took / steps as f64, took / launches as f64);
            seconds =
                Some(seconds.filter(|_| round > 1).map_or(step, |least: f64| least.min(step)));
            launches = ((ENOUGH / each.max(1e-9)).ceil() as i64).clamp(OVERLAPPING, MOST_LAUNCHES);
            launches = launches.min(share / height).max(1);
        }
        if let Some(seconds) = seconds {
            self.chosen.measured.push((*height, seconds));
        }
        Ok(seconds)
    }

    /// Takes some steps by an alternative, and tells the seconds, where they are measured.
    fn segment(
        &mut self,
        name: &str,
        steps: i64,
        target: &mut dyn Target,
        control: &mut Control<'_>,
    ) -> Result<Option<f64>, ExecuteError> {
        let taken = self.taken();
        let bound = self.bound_for(name, self.bound.first_step + taken, steps);
        let before = self.all.as_ref();
        let segment = Segment {
            current: before.map(|all| all.current.clone()),
            launches: before.map_or(0, |all| all.count),
            steps: taken,
            of: self.bound.steps,
        };
        let launched = launch_segment(self.plan, &bound, self.inputs, target, control, segment)?;
        let elapsed = launched.elapsed;
        self.all = Some(match self.all.take() {
            None => launched,
            Some(all) => Launched {
                count: all.count + launched.count,
                elapsed: all.elapsed.zip(elapsed).map(|(before, after)| before + after),
                steps: all.steps + launched.steps,
                ..launched
            },
        });
        Ok(elapsed.map(|elapsed| elapsed.as_secs_f64()))
    }

    /// The run with an alternative and other steps.
    fn bound_for(&self, name: &str, first_step: i64, steps: i64) -> Bound {
        let mut bound = Bound { steps, first_step, ..self.bound.clone() };
        bound.sizes.insert("steps".to_owned(), steps);
        bound.choices.insert(NAME.to_owned(), name.to_owned());
        bound
    }

    /// The first launch of a height.
    fn first_launch(&self, height: i64) -> Result<Option<FirstLaunch>, ExecuteError> {
        let bound = self.bound_for(&height.to_string(), self.bound.first_step, height);
        let launches = Launches::new(self.plan, &bound)?;
        let mut launches = launches;
        Ok(launches.find_map(|action| match action {
            Action::Launch(launch) => Some(FirstLaunch {
                index: launch.index,
                grid: launch.grid,
                block: launch.kernel.block,
            }),
            _ => None,
        }))
    }

    /// The launches of all heights, as the model sees them.
    fn pyramids(
        &self,
        heights: &[(i64, &Alternative)],
        target: &dyn Target,
    ) -> Result<Vec<Pyramid>, ExecuteError> {
        let mut all = Vec::new();
        for (height, one) in heights {
            let first = self.first_launch(*height)?;
            let blocks = first
                .as_ref()
                .map_or(1.0, |first| first.grid.iter().map(|blocks| f64::from(*blocks)).product());
            let resident = first.and_then(|first| target.resident(first.index));
            all.push(Pyramid {
                height: *height,
                tile: one.tile.clone(),
                reach: one.reach.clone(),
                blocks,
                resident: resident.unwrap_or(1) as f64,
            });
        }
        Ok(all)
    }
}

/// Facts of a launch.
struct FirstLaunch {
    index: usize,
    grid: [u32; 3],
    block: [u32; 3],
}
