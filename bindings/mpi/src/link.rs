//! The connection of a process to all others, by messages of MPI.

use mpi::Rank;
use mpi::request::{CancelGuard, scope};
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator, Destination, MatchedReceiveVec, Source};
use std::collections::{HashMap, VecDeque};
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
    /// Messages that came while others were waited for, by their senders.
    inbox: HashMap<usize, VecDeque<Vec<u8>>>,
    patience: Duration,
}

impl<'w> MpiLink<'w> {
    /// A connection that waits for a message for a limited time.
    pub fn new(world: &'w SimpleCommunicator, patience: Duration) -> Self {
        Self { world, outbox: Vec::new(), inbox: HashMap::new(), patience }
    }

    /// Sends what is still to be sent.
    ///
    /// # Errors
    /// When the receivers take too long.
    pub fn flush(&mut self) -> Result<(), LinkError> {
        let outbox = std::mem::take(&mut self.outbox);
        scope(|scope| {
            let mut sends: Vec<_> = outbox
                .iter()
                .map(|(to, message)| {
                    let receiver = self.world.process_at_rank(rank(*to));
                    (*to, receiver.immediate_send(scope, message.as_slice()))
                })
                .collect();
            // MPI may end the send of a long message only when it is received. Two processes that
            // send to each other would wait for ever, unless each takes what comes meanwhile.
            let sent = self.until(|own| {
                own.take_in();
                let under_way = std::mem::take(&mut sends).into_iter();
                sends = under_way.filter_map(|(to, send)| Some((to, send.test().err()?))).collect();
                sends.first().map_or(Ok(()), |(to, _)| Err(*to))
            });
            // A message that is under way can't be dropped.
            sends.into_iter().for_each(|(_, send)| drop(CancelGuard::from(send)));
            sent
        })
    }

    /// Puts all messages that have come into the inbox.
    fn take_in(&mut self) {
        while let Some(found) = self.world.any_process().immediate_matched_probe() {
            let (message, status) = found.matched_receive_vec();
            let sender = usize::try_from(status.source_rank()).unwrap_or(0);
            self.inbox.entry(sender).or_default().push_back(message);
        }
    }

    /// Looks again and again until something is there, for a limited time. A look that finds
    /// nothing names the device that it waits for.
    fn until<T>(
        &mut self,
        mut look: impl FnMut(&mut Self) -> Result<T, usize>,
    ) -> Result<T, LinkError> {
        let begin = Instant::now();
        let mut looks = 0;
        loop {
            let device = match look(self) {
                Ok(found) => return Ok(found),
                Err(device) => device,
            };
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
        self.flush()?;
        self.until(|own| {
            own.take_in();
            own.inbox.get_mut(&from).and_then(VecDeque::pop_front).ok_or(from)
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
