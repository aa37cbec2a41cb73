//! Launches in bands that overlap: what runs on a GPU as graphs runs here band after band, all
//! launches together, in a random order of those that the waits of `stencil_runtime::bands` allow.
//! Bands of later launches go first more often than not, so that they run as early as they may.

use crate::simulator::Simulator;
use std::collections::BTreeMap;
use std::time::Duration;
use stencil_runtime::array::noise_bits;
use stencil_runtime::bands::{self, Chain};
use stencil_runtime::bind::{Bound, BufferId};
use stencil_runtime::execute::{Target, TargetError};
use stencil_runtime::launch::{Copy, Launch, Value};
use stencil_runtime::plan::Plan;

/// A simulator that runs launches when all are known.
pub struct Overlapping<'p> {
    simulator: Simulator,
    plan: &'p Plan,
    seed: u64,
    /// Choices so far.
    choices: u64,
    /// Blocks that the device runs at a time.
    resident: u64,
    chain: Chain,
    bands: Vec<Band<'p>>,
    /// Looks so far.
    looks: u64,
    /// The values that looks found, until they are asked for.
    found: BTreeMap<u64, [u8; 8]>,
}

/// Work of the device, and the bands that it waits for.
struct Band<'p> {
    work: Work<'p>,
    waits: Vec<usize>,
}

/// A launch of a band, or a look at a condition.
enum Work<'p> {
    Launch(Part<'p>),
    /// A look at so many bytes of a buffer.
    Look {
        number: u64,
        condition: BufferId,
        bytes: usize,
    },
}

/// A launch of a band.
struct Part<'p> {
    kernel: usize,
    node: &'p stencil_runtime::plan::Launch,
    grid: [u32; 3],
    step: i64,
    arguments: Vec<Value>,
}

impl<'p> Overlapping<'p> {
    /// Cuts launches of more than `resident` blocks. The seed chooses the order of bands. The
    /// simulator must not expect a launch to write all cells.
    pub fn new(simulator: Simulator, plan: &'p Plan, resident: u64, seed: u64) -> Self {
        let (chain, bands) = (Chain::default(), Vec::new());
        let (looks, found) = (0, BTreeMap::new());
        Self { simulator, plan, seed, choices: 0, resident, chain, bands, looks, found }
    }

    /// A number below a limit.
    fn below(&mut self, limit: usize) -> usize {
        self.choices += 1;
        (noise_bits(self.seed, self.choices) % limit.max(1) as u64) as usize
    }

    /// Runs all bands so far, in a random order that their waits allow.
    fn run_bands(&mut self) -> Result<(), TargetError> {
        let mut done = vec![false; self.bands.len()];
        for _ in 0..self.bands.len() {
            let is_done = |place: &usize| done.get(*place) == Some(&true);
            let ready = self
                .bands
                .iter()
                .enumerate()
                .filter(|(place, band)| !is_done(place) && band.waits.iter().all(is_done));
            let ready: Vec<usize> = ready.map(|(place, _)| place).collect();
            let any = self.below(3) == 0;
            let place = if any { self.below(ready.len()) } else { ready.len().saturating_sub(1) };
            let place = *ready.get(place).ok_or("bands that wait for each other")?;
            let (Some(band), Some(done)) = (self.bands.get(place), done.get_mut(place)) else {
                continue;
            };
            *done = true;
            let part = match &band.work {
                Work::Launch(part) => part,
                Work::Look { number, condition, bytes } => {
                    let mut value = [0; 8];
                    let bytes = value.get_mut(..*bytes).ok_or("a look at too many bytes")?;
                    self.simulator.download(*condition, 0, bytes)?;
                    self.found.insert(*number, value);
                    continue;
                }
            };
            let kernel =
                self.plan.kernels.get(part.kernel).ok_or("a kernel that the plan has not")?;
            let (grid, step, arguments) = (part.grid, part.step, part.arguments.clone());
            self.simulator.launch(&Launch {
                kernel,
                index: part.kernel,
                node: part.node,
                grid,
                step,
                apart: false,
                arguments,
                rows: None,
                part: None,
            })?;
        }
        self.bands.clear();
        self.chain = Chain::default();
        Ok(())
    }
}

impl Target for Overlapping<'_> {
    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError> {
        self.simulator.allocate(bound)
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        self.simulator.upload(buffer, bytes)
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        self.simulator.copy(from, to)
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        self.simulator.begin()
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        let node = self.plan.launches().find(|node| *node == launch.node);
        let node = node.ok_or("a launch that the plan has not")?;
        let band = |bands::Band { launch: Launch { index, grid, step, arguments, .. }, waits }| {
            Band { work: Work::Launch(Part { kernel: index, node, grid, step, arguments }), waits }
        };
        self.bands.extend(self.chain.add(launch, self.resident).into_iter().map(band));
        Ok(())
    }

    fn exchange(&mut self, copy: &Copy) -> Result<(), TargetError> {
        self.run_bands()?;
        self.simulator.exchange(copy)
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        self.run_bands()
    }

    fn look_ahead(
        &mut self,
        condition: BufferId,
        bytes: usize,
        values: Vec<BufferId>,
    ) -> Result<Option<u64>, TargetError> {
        let number = self.looks;
        let waits = self.chain.look(condition, values);
        self.bands.push(Band { work: Work::Look { number, condition, bytes }, waits });
        self.looks += 1;
        // Now and then, as where a chunk of launches ends.
        if self.below(4) == 0 {
            self.run_bands()?;
        }
        Ok(Some(number))
    }

    fn found(&mut self, look: u64) -> Option<[u8; 8]> {
        self.found.remove(&look)
    }

    fn drop_ahead(&mut self) -> Result<(), TargetError> {
        // Half of the time launches behind the condition were sent.
        if self.below(2) == 0 {
            self.run_bands()?;
        }
        self.bands.clear();
        self.chain = Chain::default();
        self.found.clear();
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        self.run_bands()?;
        self.simulator.finish()
    }

    fn download(
        &mut self,
        buffer: BufferId,
        first: usize,
        bytes: &mut [u8],
    ) -> Result<(), TargetError> {
        self.simulator.download(buffer, first, bytes)
    }
}
