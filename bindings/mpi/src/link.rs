//! The connection of a process to all others, by messages of MPI.

use mpi::Rank;
use mpi::request::{CancelGuard, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, MatchedReceiveVec, Source};
use std::time::{Duration, Instant};
use stencil_runtime::execute::{Target, TargetError};
use stencil_runtime::ranks::{Link, LinkError, Parcel, by_messages};

/// How long a process sleeps where nothing came, once it has looked for a while.
const NAP: Duration = Duration::from_micros(20);
/// Looks without a sleep.
const LOOKS: u32 = 1000;

/// The connection of a process to all others of a communicator.
pub struct MpiLink<'w> {
    world: &'w SimpleCommunicator,
    /// Messages that are to be sent with the next ones that it waits for.
    outbox: Vec<(usize, Vec<u8>)>,
    patience: Duration,
}

impl<'w> MpiLink<'w> {
    /// A connection that waits for a message for a limited time.
    pub fn new(world: &'w SimpleCommunicator, patience: Duration) -> Self {
        Self { world, outbox: Vec::new(), patience }
    }

    /// Sends what is still to be sent.
    ///
    /// # Errors
    /// When the receivers take too long.
    pub fn flush(&mut self) -> Result<(), LinkError> {
        self.with_sends(|_| Ok(()))
    }

    /// Does something while all messages of the outbox are sent.
    fn with_sends<T>(
        &mut self,
        work: impl FnOnce(&Self) -> Result<T, LinkError>,
    ) -> Result<T, LinkError> {
        let outbox = std::mem::take(&mut self.outbox);
        scope(|scope| {
            let mut sends = Vec::new();
            for (to, message) in &outbox {
                let receiver = self.world.process_at_rank(rank(*to));
                sends.push((*to, receiver.immediate_send(scope, message.as_slice())));
            }
            let done = work(self);
            for (to, send) in sends {
                let mut send = Some(send);
                let sent = self.until(to, || {
                    let under_way = send.take()?;
                    send = under_way.test().err();
                    send.is_none().then_some(())
                });
                // A message that is under way can't be dropped.
                drop(send.map(CancelGuard::from));
                sent?;
            }
            done
        })
    }

    /// Looks again and again until something is there, for a limited time.
    fn until<T>(&self, device: usize, mut look: impl FnMut() -> Option<T>) -> Result<T, LinkError> {
        let begin = Instant::now();
        let mut looks = 0;
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            if looks < LOOKS {
                looks += 1;
                std::hint::spin_loop();
                continue;
            }
            std::thread::sleep(NAP);
            if begin.elapsed() >= self.patience {
                let seconds = self.patience.as_secs();
                return Err(LinkError::Silent { device, seconds });
            }
        }
    }
}

/// A device's number as MPI has it.
fn rank(device: usize) -> Rank {
    // It came from MPI.
    Rank::try_from(device).unwrap_or(Rank::MAX)
}

impl Link for MpiLink<'_> {
    fn device(&self) -> usize {
        usize::try_from(self.world.rank()).unwrap_or(0)
    }

    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<(), LinkError> {
        self.outbox.push((to, message));
        Ok(())
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>, LinkError> {
        self.with_sends(|own| {
            let sender = own.world.process_at_rank(rank(from));
            let found = own.until(from, || sender.immediate_matched_probe())?;
            Ok(found.matched_receive_vec().0)
        })
    }

    /// MPI ends all processes when this one ends.
    fn fail(&mut self, _: &str) {}

    fn exchange(
        &mut self,
        number: u64,
        parcels: &[Parcel],
        target: &mut dyn Target,
    ) -> Result<(), TargetError> {
        by_messages(self, number, parcels, target)?;
        // A device that only sends waits for no message.
        Ok(self.flush()?)
    }
}
