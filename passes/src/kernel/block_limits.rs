//! The limits of a block: threads and bytes of shared memory. A kernel that needs more is declined
//! with a remedy, before anything is built.

use crate::options::{Options, given};
use melior::ir::operation::OperationLike;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::tiled::{Kernel, Schedule};
use stencil_runtime::device::Device;

/// The option of the number of threads, for a pass's list.
pub const MAX_THREADS: (&str, &str) =
    ("max-threads", "threads that a block may have (default: those of the device)");

/// The option of the shared memory, for a pass's list.
pub const MAX_SHARED: (&str, &str) =
    ("max-shared", "bytes of shared memory that a block may have (default: those of the device)");

/// Limits that are asked for; the device's hold beside them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockLimits {
    /// Threads.
    pub threads: Option<i64>,
    /// Bytes of shared memory.
    pub shared: Option<i64>,
}

/// What a kernel's blocks need.
pub struct Demand<'s> {
    /// Threads per dimension.
    pub threads: &'s [i64],
    /// Bytes of shared memory.
    pub shared: i64,
    /// What makes the threads fewer.
    pub fewer_threads: &'static str,
}

/// The steps between two exchanges of rims, for messages: those of a launch, or of a round.
pub fn steps_per_round(kernel: &Kernel) -> String {
    match kernel.wave.sweeps {
        None => steps_per_launch(&kernel.schedule),
        Some(rounds) => match kernel.schedule.steps / rounds.max(1) {
            1 => "1 step per round".to_owned(),
            steps => format!("{steps} steps per round"),
        },
    }
}

/// The steps per launch of a schedule, for messages.
pub fn steps_per_launch(schedule: &Schedule) -> String {
    match schedule.steps_per_launch() {
        1 => "1 step per launch".to_owned(),
        steps => format!("{steps} steps per launch"),
    }
}

/// The registers that a thread may take: those that are asked for, or a pass's own number.
///
/// # Errors
/// More than a thread of the device has.
pub fn registers(asked: Option<i64>, own: i64, device: &Device) -> Result<i64, Error> {
    let (registers, most) = (asked.unwrap_or(own), device.registers_per_thread);
    if registers > most.into() {
        let message = format!("registers={registers}: a thread of the device has {most} at most");
        return Err(Error::user(message));
    }
    Ok(registers)
}

impl BlockLimits {
    /// The limits that the options give.
    ///
    /// # Errors
    /// A value that is no number.
    pub fn read(options: &Options) -> Result<Self, Error> {
        let most = i64::from(u32::MAX);
        Ok(Self {
            threads: options.integer(MAX_THREADS.0, 1..=most)?,
            shared: options.integer(MAX_SHARED.0, 0..=most)?,
        })
    }

    /// The limits as options.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let options = [(MAX_THREADS.0, self.threads), (MAX_SHARED.0, self.shared)];
        given(options).collect()
    }

    /// Declines a kernel whose blocks need more than the limits or the device allow.
    ///
    /// # Errors
    /// The limit that is passed, at the kernel.
    pub fn admit(&self, device: &Device, kernel: &Kernel, demand: &Demand) -> Result<(), Error> {
        let within =
            |asked: Option<i64>, device: i64| asked.map_or(device, |most| most.min(device));
        let most = within(self.threads, device.threads_per_block.into());
        let room = i64::try_from(device.shared_per_block).unwrap_or(i64::MAX);
        let room = within(self.shared, room);
        let decline = |reason, message| {
            Err(Error::declined(reason, message).at(mlir::place(kernel.op.location())))
        };
        let schedule = &kernel.schedule;
        let (tile, each) = (&schedule.tile, &schedule.per_thread);
        let steps = steps_per_launch(schedule);
        let product = |product: i64, threads: &i64| product.saturating_mul(*threads);
        let threads = demand.threads.iter().fold(1, product);
        if threads > most {
            return decline(
                Decline::Threads,
                format!(
                    "a tile of {tile:?} cells with {each:?} cells per thread and {steps} needs \
                     {threads} threads, and a block has {most} at most; {}",
                    demand.fewer_threads
                ),
            );
        }
        if demand.shared > room {
            return decline(
                Decline::SharedMemory,
                format!(
                    "a tile of {tile:?} cells with {steps} needs {} bytes of shared memory, and a \
                     block has {room} at most; make the tile or the pyramid height smaller",
                    demand.shared
                ),
            );
        }
        Ok(())
    }
}
