//! What warps execute: costs, the sectors of memory that they access, and lanes that are idle.
//!
//! A warp executes what one of its lanes does (Ryoo et al., Optimization Principles and Application
//! Performance Evaluation of a Multithreaded GPU Using CUDA, section 4: warps whose threads branch
//! differently execute both sides). Memory moves whole sectors of 32 bytes, each once for an access
//! of a warp (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory").

use super::{Block, Times, Value};
use crate::analysis::iteration_space::{Access, Body, Place, Stride};
use crate::analysis::operation_cost::Cost;
use std::collections::BTreeMap;
use stencil_runtime::device::{SECTOR, WARP};

/// Iterations of a loop that are looked at where costs are counted, unless iterations hand on
/// integers. They lie evenly among all.
pub(super) const TURNS: u64 = 16;

/// What the warps of some blocks execute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Executed {
    /// The costs of all warps.
    pub total: Cost,
    /// The largest costs of a warp of each block, added up over the blocks.
    pub longest: Cost,
    /// Instructions of lanes.
    pub lanes: f64,
    /// Branches that warps meet.
    pub branches: f64,
    /// Branches that lanes of a warp take differently.
    pub divergent: f64,
    /// Sectors needed if the elements of each access lay side by side.
    pub ideal: f64,
    /// Sectors that warps load and store, by the number of the kernel's argument where that can be
    /// told.
    pub sectors: BTreeMap<Option<usize>, [f64; 2]>,
}

impl Executed {
    /// Adds another one, so many times.
    pub fn add(&mut self, other: &Self, times: f64) {
        self.total.add(&other.total, times);
        self.longest.add(&other.longest, times);
        self.lanes += other.lanes * times;
        self.branches += other.branches * times;
        self.divergent += other.divergent * times;
        self.ideal += other.ideal * times;
        for (argument, sectors) in &other.sectors {
            let sum = self.sectors.entry(*argument).or_default();
            for (sum, one) in sum.iter_mut().zip(sectors) {
                *sum += one * times;
            }
        }
    }
}

/// What the warps of a block have executed so far.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    /// How many iterations the current one stands for.
    pub(super) weight: f64,
    warps: Vec<Cost>,
    found: Executed,
}

impl Ledger {
    pub(super) fn new(threads: usize) -> Self {
        let warps = vec![Cost::default(); threads.div_ceil(WARP as usize)];
        Self { weight: 1.0, warps, found: Executed::default() }
    }

    /// The block's sum.
    pub(super) fn close(self) -> Executed {
        let mut found = self.found;
        let mut longest = Cost::default();
        for warp in &self.warps {
            found.total.add(warp, 1.0);
            longest = longest.larger(warp);
        }
        found.longest = longest;
        found
    }
}

impl Block<'_> {
    /// Notes what the threads execute of a region, without branches and loops in it.
    pub(super) fn execute(&mut self, body: &Body, times: &Times) {
        let Some(mut ledger) = self.ledger.take() else { return };
        for (number, (lanes, runs)) in self.warps(times).into_iter().enumerate() {
            let runs = runs * ledger.weight;
            if let Some(warp) = ledger.warps.get_mut(number) {
                warp.add(&body.cost, runs);
            }
            ledger.found.lanes += body.cost.instructions * lanes * ledger.weight;
            for access in &body.accesses {
                let [touched, ideal] = match runs > 0.0 {
                    true => self.sectors(access, number, times),
                    false => [0, 0],
                };
                let sum = ledger.found.sectors.entry(access.argument).or_default();
                sum[usize::from(access.is_store)] += touched as f64 * runs;
                ledger.found.ideal += ideal as f64 * runs;
            }
        }
        self.work += (self.threads * body.accesses.len()) as u64;
        self.ledger = Some(ledger);
    }

    /// Lets what follows count so many times more.
    pub(super) fn weigh(&mut self, by: f64) {
        if let Some(ledger) = &mut self.ledger {
            ledger.weight *= by;
        }
    }

    /// Notes a branch that each thread takes to one side.
    pub(super) fn meet(&mut self, sides: &[bool], times: &Times) {
        let Some(mut ledger) = self.ledger.take() else { return };
        for (number, (_, runs)) in self.warps(times).into_iter().enumerate() {
            let side = |thread: usize| sides.get(thread).or(sides.first()).copied();
            let mut taken = self.lanes(number).filter(|thread| times.of(*thread) > 0).map(side);
            let first = taken.next();
            ledger.found.branches += runs * ledger.weight;
            if taken.any(|other| Some(other) != first) {
                ledger.found.divergent += runs * ledger.weight;
            }
        }
        self.ledger = Some(ledger);
    }

    /// The threads of a warp.
    fn lanes(&self, warp: usize) -> std::ops::Range<usize> {
        let first = warp * WARP as usize;
        first..self.threads.min(first + WARP as usize)
    }

    /// How often the lanes of each warp run something, added up, and how often the warp does.
    fn warps(&self, times: &Times) -> Vec<(f64, f64)> {
        let runs = |warp: usize| {
            let lanes = self.lanes(warp).map(|thread| times.of(thread) as f64);
            lanes.fold((0.0, 0.0), |(sum, most): (f64, f64), one| (sum + one, most.max(one)))
        };
        (0..self.threads.div_ceil(WARP as usize)).map(runs).collect()
    }

    /// Sectors that an access of a warp touches, and those that its elements would fill.
    fn sectors(&self, access: &Access, warp: usize, times: &Times) -> [u64; 2] {
        let bytes = access.element * access.elements;
        let lanes = || self.lanes(warp).filter(|thread| times.of(*thread) > 0);
        let filled = |accesses: usize| (accesses as u64 * bytes).div_ceil(SECTOR.into());
        let Some(indices) = &access.indices else {
            // Threads access neighbours wherever the compiler could choose.
            return [filled(lanes().count()); 2];
        };
        let uniform = indices.iter().all(|(index, _)| matches!(self.at(*index), Value::Same(_)));
        let first = |thread: usize| Some(self.element(indices, thread)? + access.first);
        let of_lanes = lanes().take(if uniform { 1 } else { usize::MAX });
        let Some(mut elements) = of_lanes.map(first).collect::<Option<Vec<i64>>>() else {
            // Its index is data: no lane shares a sector with another one.
            let count = lanes().count();
            return [count as u64 * filled(1), filled(count)];
        };
        elements.sort_unstable();
        elements.dedup();
        let size = i64::from(SECTOR);
        let (mut touched, mut last_sector) = (0, None);
        for element in &elements {
            let start = element.wrapping_mul(access.element.cast_signed());
            let [first, last] = [start, start.wrapping_add(bytes.cast_signed() - 1)]
                .map(|byte| byte.div_euclid(size));
            let new = last_sector.map_or(first, |before: i64| first.max(before + 1));
            touched += (last + 1 - new).max(0).unsigned_abs();
            last_sector = Some(last);
        }
        [touched, filled(elements.len())]
    }

    /// The first element that a thread accesses.
    fn element(&self, indices: &[(Place, Stride)], thread: usize) -> Option<i64> {
        let mut element = 0_i64;
        for (index, stride) in indices {
            let stride = match stride {
                Stride::Fixed(stride) => *stride,
                Stride::Open(place) => self.in_thread(*place, thread)?,
            };
            let index = self.in_thread(*index, thread)?;
            element = element.wrapping_add(index.wrapping_mul(stride));
        }
        Some(element)
    }
}
