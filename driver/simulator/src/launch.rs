//! One launch: its blocks in some order, or side by side where they wait for each other.
//!
//! Independent blocks run on several host threads. A launch in which any block fails runs once
//! more from the same memory, block after block, so that the error that is reported is always the
//! first in order, whatever the host did.

use crate::clock::MAX_BLOCKS;
use crate::counters::Counters;
use crate::error::{Problem, SimulationError, Stuck};
use crate::machine::{Block, Environment, Global, Stop};
use crate::program::{Kernel, Usage};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use stencil_dialects::peer;
use stencil_runtime::array::noise_bits;
use stencil_runtime::on_threads::on_threads;
use thiserror::Error;

/// How to run.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Permutes the order of blocks; none: by number.
    pub seed: Option<u64>,
    /// Host threads that run blocks.
    pub workers: usize,
    /// Whether a buffer that a kernel writes starts without content, so that every cell must be
    /// written.
    pub poison_outputs: bool,
    /// Instructions that one block may execute.
    pub instruction_limit: u64,
    /// Blocks that are on the device at once, in launches whose blocks wait for each other; none:
    /// all blocks.
    pub resident: Option<usize>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            seed: None,
            workers: 2,
            poison_outputs: true,
            instruction_limit: 1 << 32,
            resident: None,
        }
    }
}

/// Why a launch did not come to its end.
#[derive(Debug, Error)]
pub enum LaunchError {
    /// The kernel is wrong.
    #[error(transparent)]
    Kernel(Box<SimulationError>),
    /// The launch asks for too much.
    #[error(
        "kernel {kernel} would run {blocks} blocks; the simulator takes up to {MAX_BLOCKS}: use \
         smaller sizes"
    )]
    TooLarge {
        /// The kernel.
        kernel: String,
        /// Its blocks.
        blocks: u64,
    },
    /// It was told to end.
    #[error("cancelled")]
    Cancelled,
}

impl From<Box<SimulationError>> for LaunchError {
    fn from(error: Box<SimulationError>) -> Self {
        Self::Kernel(error)
    }
}

/// The kernel, grid and arguments of a launch.
pub struct Request<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// The numbers of the blocks that run, in ascending order; all of them where there is none.
    pub part: Option<&'a [Range<u32>]>,
    /// Bits of numbers, bases of buffers.
    pub arguments: &'a [u64],
    /// The buffers, by number, with their names and uses.
    pub buffers: &'a [Global<'a>],
    /// Set when the run is to end.
    pub cancel: Option<&'a AtomicBool>,
    /// Called with the blocks done so far, now and then.
    pub progress: Option<&'a (dyn Fn(u64) + Sync)>,
}

/// Runs all blocks of a launch.
pub fn run(request: &Request, settings: &Settings) -> Result<Counters, LaunchError> {
    let blocks: u64 = request.grid.iter().map(|extent| u64::from(*extent)).product();
    if blocks > MAX_BLOCKS {
        return Err(LaunchError::TooLarge { kernel: request.kernel.name.clone(), blocks });
    }
    let order = order(blocks as u32, request.part, settings.seed);
    if request.kernel.peer {
        return together(request, &environment(request, settings, false), &order, settings);
    }
    let workers = settings.workers.clamp(1, order.len().div_ceil(2).max(1));
    if workers == 1 {
        return one_by_one(request, &environment(request, settings, false), &order);
    }
    let written: Vec<_> =
        request.buffers.iter().filter(|buffer| buffer.usage != Usage::Read).collect();
    let snapshots: Vec<_> = written.iter().map(|buffer| buffer.memory.snapshot()).collect();
    match side_by_side(request, &environment(request, settings, true), &order, workers) {
        Err(LaunchError::Kernel(first)) => {
            for (buffer, snapshot) in written.iter().zip(&snapshots) {
                buffer.memory.restore(snapshot);
                buffer.memory.forget_accesses();
            }
            // In order, the same error or an earlier one is found.
            one_by_one(request, &environment(request, settings, false), &order)
                .and(Err(LaunchError::Kernel(first)))
        }
        other => other,
    }
}

fn environment<'a>(
    request: &Request<'a>,
    settings: &Settings,
    concurrent: bool,
) -> Environment<'a> {
    Environment {
        kernel: request.kernel,
        grid: request.grid,
        arguments: request.arguments,
        globals: request.buffers,
        flags: Mutex::new(BTreeMap::new()),
        concurrent,
        limit: settings.instruction_limit,
        cancel: request.cancel,
    }
}

/// The blocks in the order in which they start: by number, or permuted (Fisher and Yates).
fn order(blocks: u32, part: Option<&[Range<u32>]>, seed: Option<u64>) -> Vec<u32> {
    let mut order: Vec<_> = match part {
        Some(part) => part.iter().flat_map(|range| range.start..range.end.min(blocks)).collect(),
        None => (0..blocks).collect(),
    };
    if let Some(seed) = seed {
        for last in (1..order.len()).rev() {
            order.swap(last, (noise_bits(seed, last as u64) % (last as u64 + 1)) as usize);
        }
    }
    order
}

fn one_by_one(
    request: &Request,
    environment: &Environment,
    order: &[u32],
) -> Result<Counters, LaunchError> {
    let mut block = Block::new(environment);
    for (done, number) in order.iter().enumerate() {
        block.place(*number);
        if block.run()? == Stop::Cancelled {
            return Err(LaunchError::Cancelled);
        }
        if let Some(progress) = request.progress {
            progress(done as u64 + 1);
        }
    }
    Ok(block.counters)
}

fn side_by_side(
    request: &Request,
    environment: &Environment,
    order: &[u32],
    workers: usize,
) -> Result<Counters, LaunchError> {
    let (next, done, failed) = (AtomicU32::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let worker = || -> Result<Counters, LaunchError> {
        let mut block = Block::new(environment);
        while !failed.load(Relaxed) {
            let Some(number) = order.get(next.fetch_add(1, Relaxed) as usize) else { break };
            block.place(*number);
            let stop = block.run().inspect_err(|_| failed.store(true, Relaxed))?;
            if stop == Stop::Cancelled {
                return Err(LaunchError::Cancelled);
            }
            let done = done.fetch_add(1, Relaxed) + 1;
            if let Some(progress) = request.progress {
                progress(done);
            }
        }
        Ok(block.counters)
    };
    let results = on_threads((0..workers.max(1)).collect(), |_: usize| worker());
    let mut counters = Counters::new(environment.kernel);
    for result in results {
        counters.add(&result?);
    }
    Ok(counters)
}

/// Runs blocks that wait for each other: whenever one passes or meets a flag, another may go on.
fn together(
    request: &Request,
    environment: &Environment,
    order: &[u32],
    settings: &Settings,
) -> Result<Counters, LaunchError> {
    let mut waiting: VecDeque<_> = order.iter().copied().collect();
    let room = settings.resident.unwrap_or(order.len()).max(1);
    let mut resident: Vec<Block> = Vec::new();
    // The next blocks take their memory. Kernels have many blocks without work.
    let mut done: Vec<Block> = Vec::new();
    let report = |left: usize| {
        if let Some(progress) = request.progress {
            progress((order.len() - left) as u64);
        }
    };
    let (mut choice, mut idle) = (0_u64, 0_usize);
    let mut cursor = 0;
    loop {
        while resident.len() < room {
            let Some(number) = waiting.pop_front() else { break };
            let mut block = done.pop().unwrap_or_else(|| Block::new(environment));
            block.place(number);
            idle = 0;
            match block.run()? {
                Stop::Cancelled => return Err(LaunchError::Cancelled),
                Stop::Finished => {
                    done.push(block);
                    report(waiting.len() + resident.len());
                }
                Stop::Passed | Stop::Waiting => resident.push(block),
            }
        }
        if resident.is_empty() {
            let mut counters = Counters::new(environment.kernel);
            done.iter().for_each(|block| counters.add(&block.counters));
            return Ok(counters);
        }
        if idle >= resident.len() {
            return Err(LaunchError::Kernel(deadlock(environment, resident, &waiting)));
        }
        cursor = match settings.seed {
            // A sweep over all finds who can go on; between sweeps the seed chooses.
            Some(seed) if idle == 0 => {
                choice += 1;
                (noise_bits(seed ^ 0x5eed, choice) % resident.len() as u64) as usize
            }
            _ => cursor % resident.len(),
        };
        let Some(block) = resident.get_mut(cursor) else { continue };
        match block.run()? {
            Stop::Cancelled => return Err(LaunchError::Cancelled),
            Stop::Finished => {
                done.push(resident.swap_remove(cursor));
                report(waiting.len() + resident.len());
                idle = 0;
            }
            Stop::Passed => {
                cursor += 1;
                idle = 0;
            }
            Stop::Waiting => {
                cursor += 1;
                idle += 1;
            }
        }
    }
}

/// Instructions for which a stuck block is followed ahead, to find the flags that it would signal.
const LOOK_AHEAD: u64 = 1 << 20;

/// Finds out who waits for whom, from the flags that each stuck block would signal if it went on.
fn deadlock(
    environment: &Environment,
    mut stuck: Vec<Block>,
    unplaced: &VecDeque<u32>,
) -> Box<SimulationError> {
    stuck.sort_by_key(Block::number);
    let awaited: Vec<_> = stuck.iter_mut().map(Block::waits_for).collect();
    let lane = awaited.first().copied().flatten().map_or(0, |awaited| awaited.lane);
    let mut error = stuck
        .first()
        .map_or_else(|| Block::new(environment).stuck(lane), |block| block.stuck(lane));
    let states: Vec<_> = stuck
        .iter()
        .zip(&awaited)
        .map(|(block, awaited)| awaited.map(|awaited| block.flag_state(awaited.flag)))
        .collect();
    let signals: Vec<_> = stuck.iter_mut().map(|block| block.would_signal(LOOK_AHEAD)).collect();
    let next = |place: usize| {
        let awaited = (*awaited.get(place)?)?;
        signals.iter().position(|signals| {
            let ends = |epoch: i32| !peer::is_late(epoch, awaited.epoch);
            signals.iter().any(|(flag, epoch)| *flag == awaited.flag && ends(*epoch))
        })
    };
    // From the first block along the waits until one comes again, or nobody is waited for.
    let mut path = vec![0];
    let mut cycle = 0;
    while let Some(following) = path.last().and_then(|place| next(*place)) {
        if let Some(start) = path.iter().position(|place| *place == following) {
            cycle = start;
            break;
        }
        path.push(following);
    }
    for place in path.into_iter().skip(cycle) {
        if let (Some(block), Some(Some(awaited)), Some(Some((flag, value)))) =
            (stuck.get(place), awaited.get(place), states.get(place))
        {
            error.cycle.push(Stuck {
                block: environment.place(block.number()),
                flag: flag.clone(),
                epoch: awaited.epoch,
                value: *value,
                waits_for: next(place)
                    .and_then(|next| stuck.get(next))
                    .map(|block| environment.place(block.number())),
            });
        }
    }
    error.detail = format!("{} blocks wait", stuck.len());
    if !unplaced.is_empty() {
        error.detail += &format!(", {} more have no room on the device", unplaced.len());
    }
    error
}

/// The error of a cell of an output that no kernel wrote.
pub fn unwritten_output(
    kernel: &str,
    field: &str,
    byte: usize,
    element_bytes: u64,
    of: u64,
) -> Box<SimulationError> {
    use crate::error::{Address, Operation, Thread};
    let byte = byte as u64;
    Box::new(SimulationError {
        problem: Problem::Unwritten,
        kernel: kernel.to_owned(),
        operation: Operation {
            place: field.to_owned(),
            text: "the result of the launch is read".to_owned(),
        },
        thread: Thread { block: [0; 3], thread: [0; 3] },
        address: Some(Address {
            buffer: field.to_owned(),
            indices: vec![(byte / element_bytes.max(1)) as i64],
            byte: byte as i64,
            of,
        }),
        other: None,
        cycle: Vec::new(),
        detail: "no thread of the kernel that makes this field stored this cell".to_owned(),
    })
}
