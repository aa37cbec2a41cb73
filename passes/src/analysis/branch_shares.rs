//! How often a kernel takes each side of a branch on the places of its points.
//!
//! A condition that depends on block, thread and loop counters alone is evaluated for some warps
//! that lie evenly among all of a launch. Conditions on data have no answer.

use super::lane_values::{self, LANES, Lanes};
use std::cell::RefCell;
use std::collections::BTreeMap;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::tiled::Launch;

/// Warps that are looked at.
const SAMPLES: u32 = 64;
/// Operations of a condition that are followed.
const DEEPEST: usize = 200;

/// A kernel whose conditions are evaluated.
pub struct Shares<'a, 'c> {
    /// Where values come from, by [`mlir::key`].
    defined: &'a BTreeMap<usize, Op<'c>>,
    /// The loops whose counters they are.
    counters: BTreeMap<usize, Op<'c>>,
    /// The kernel's integers that are known.
    arguments: BTreeMap<usize, i64>,
    threads: [i64; 3],
    blocks: f64,
    /// The values that each sample has computed.
    known: RefCell<Vec<BTreeMap<usize, Option<Lanes>>>>,
}

impl<'a, 'c> Shares<'a, 'c> {
    /// Those of a launch of so many blocks. `defined` has the operations that make the kernel's
    /// values, and `size` tells the arguments that are run-time sizes.
    pub fn of(
        launch: &Launch<'c>,
        blocks: f64,
        size: &dyn Fn(usize) -> Option<i64>,
        defined: &'a BTreeMap<usize, Op<'c>>,
    ) -> Self {
        let loops = mlir::walk(launch.op).into_iter().filter(|op| mlir::name(*op) == "scf.for");
        let counters = loops.filter_map(|op| {
            let body = mlir::blocks(op, 0).into_iter().next()?;
            Some((mlir::key(*mlir::arguments(body).first()?), op))
        });
        let arguments = mlir::entry(launch.op).map(mlir::arguments).unwrap_or_default();
        let arguments = arguments.iter().enumerate();
        let arguments =
            arguments.filter_map(|(place, argument)| Some((mlir::key(*argument), size(place)?)));
        let along = |axis: usize| launch.block.get(axis).copied().unwrap_or(1).max(1);
        Self {
            defined,
            counters: counters.collect(),
            arguments: arguments.collect(),
            threads: [along(0), along(1), along(2)],
            blocks,
            known: RefCell::new(vec![BTreeMap::new(); SAMPLES as usize]),
        }
    }

    /// The parts of the warps in which some lane has the condition, and in which some has not; none
    /// where that depends on more than places.
    pub fn sides(&self, condition: Val<'c>) -> Option<[f64; 2]> {
        let mut sides = [0.0; 2];
        for sample in 0..SAMPLES {
            let mask = self.value(condition, sample, DEEPEST)?.mask();
            sides[0] += f64::from(u32::from(mask != 0));
            sides[1] += f64::from(u32::from(mask != u32::MAX));
        }
        Some(sides.map(|warps| warps / f64::from(SAMPLES)))
    }

    fn value(&self, value: Val<'c>, sample: u32, depth: usize) -> Option<Lanes> {
        let key = mlir::key(value);
        let known =
            |all: &mut Vec<BTreeMap<_, _>>| all.get_mut(sample as usize)?.get(&key).copied();
        if let Some(found) = known(&mut self.known.borrow_mut()) {
            return found;
        }
        let found = depth.checked_sub(1).and_then(|depth| self.computed(value, sample, depth));
        if let Some(all) = self.known.borrow_mut().get_mut(sample as usize) {
            all.insert(key, found);
        }
        found
    }

    fn computed(&self, value: Val<'c>, sample: u32, depth: usize) -> Option<Lanes> {
        let key = mlir::key(value);
        if let Some(argument) = self.arguments.get(&key) {
            return Some(Lanes::uniform(*argument, false));
        }
        if let Some(repeat) = self.counters.get(&key) {
            let operands = mlir::operands(*repeat);
            let mut bounds = operands
                .iter()
                .take(3)
                .map(|bound| self.value(*bound, sample, depth)?.first(u32::MAX));
            let (lower, upper, step) = (bounds.next()??, bounds.next()??, bounds.next()??);
            let trips =
                upper.checked_sub(lower)?.max(0).checked_add(step.checked_sub(1)?)? / step.max(1);
            let turn = (part(sample, 2) * trips as f64) as i64;
            return lower.checked_add(step.checked_mul(turn)?).map(|at| Lanes::uniform(at, false));
        }
        let op = *self.defined.get(&key)?;
        let [x, y, z] = self.threads;
        match (mlir::name(op), lane_values::axis(op)) {
            ("gpu.block_id", Some(0)) => {
                Some(Lanes::uniform((part(sample, 0) * self.blocks) as i64, false))
            }
            ("gpu.block_id", Some(_)) => Some(Lanes::uniform(0, false)),
            ("gpu.block_dim", Some(axis)) => {
                self.threads.get(axis).map(|threads| Lanes::uniform(*threads, true))
            }
            ("gpu.thread_id", Some(axis)) => {
                let warps = (x * y * z).div_euclid(LANES as i64).max(1);
                let first = (part(sample, 1) * warps as f64) as i64 * LANES as i64;
                let mut at = [0; LANES];
                for (lane, at) in (first..).zip(&mut at) {
                    let lane = lane.min(x * y * z - 1);
                    *at = [lane % x, lane / x % y, lane / x / y].get(axis).copied()?;
                }
                Some(Lanes { at, exact: true })
            }
            _ => {
                let operands: Vec<_> = mlir::operands(op)
                    .into_iter()
                    .map(|operand| self.value(operand, sample, depth))
                    .collect();
                lane_values::operation(op, &operands)
            }
        }
    }
}

/// A sample's number from 0 to 1 along a dimension, of a sequence that fills three of them evenly:
/// R3 in Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences", 2018.
fn part(sample: u32, dimension: i32) -> f64 {
    const ROOT: f64 = 1.220_744_084_605_76;
    ((f64::from(sample) + 0.5) * ROOT.powi(-1 - dimension)).fract()
}
