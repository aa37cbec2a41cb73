//! Counts of a running kernel: executions of every instruction, and the memory traffic of every
//! operation.

use crate::program::Kernel;
use crate::traffic::Traffic;

/// Counts of one kernel, added up over its blocks and launches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Threads that executed each instruction.
    pub threads: Vec<u64>,
    /// Warps (barriers: blocks) that executed each instruction; counted where it matters.
    pub warps: Vec<u64>,
    /// Traffic of each instruction that accesses memory: global, then shared.
    pub traffic: Vec<[Traffic; 2]>,
    /// Blocks run.
    pub blocks: u64,
    /// Launches.
    pub launches: u64,
    /// Cells of fields that launches wrote, each counted once a launch.
    pub cells_written: u64,
}

impl Counters {
    /// Zeros for a kernel.
    pub fn new(kernel: &Kernel) -> Self {
        let length = kernel.code.len();
        Self {
            threads: vec![0; length],
            warps: vec![0; length],
            traffic: vec![<[Traffic; 2]>::default(); length],
            ..Self::default()
        }
    }

    /// Adds those of another worker or launch.
    pub fn add(&mut self, other: &Self) {
        let sum = |mine: &mut Vec<u64>, other: &[u64]| {
            mine.resize(mine.len().max(other.len()), 0);
            for (mine, other) in mine.iter_mut().zip(other) {
                *mine += other;
            }
        };
        sum(&mut self.threads, &other.threads);
        sum(&mut self.warps, &other.warps);
        self.traffic.resize(self.traffic.len().max(other.traffic.len()), Default::default());
        for (mine, other) in self.traffic.iter_mut().zip(&other.traffic) {
            for (mine, other) in mine.iter_mut().zip(other) {
                mine.add(other);
            }
        }
        self.blocks += other.blocks;
        self.launches += other.launches;
        self.cells_written += other.cells_written;
    }
}
