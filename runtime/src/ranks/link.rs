//! How devices send cells to each other.

use crate::bind::BufferId;
use crate::execute::{Shown, Target, TargetError};
use std::ops::Range;
use thiserror::Error;

/// What goes wrong between devices.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LinkError {
    /// Another device failed or is gone.
    #[error("device {device} ended: {reason}")]
    Ended {
        /// Which.
        device: usize,
        /// Why, as far as it is known.
        reason: String,
    },
    /// Nothing came for too long.
    #[error(
        "device {device} sent nothing for {seconds} s; the run ends, as the device or the \
         connection to it is stuck"
    )]
    Silent {
        /// Which.
        device: usize,
        /// How long it was waited for.
        seconds: u64,
    },
    /// Another program or other sizes.
    #[error(
        "device {device} has another program, other sizes or another compiler; start all devices \
         with the same"
    )]
    Differs {
        /// Which.
        device: usize,
    },
    /// What only targets of one process can do.
    #[error("devices of several processes have no memory together")]
    Apart,
    /// A message of another place in the run.
    #[error(
        "device {device} sent the message {found} of {bytes} bytes, and message {wanted} of \
         {expected} bytes was due; all devices must run one program with the same sizes"
    )]
    Order {
        /// Who sent it.
        device: usize,
        /// Its number.
        found: u64,
        /// Its bytes.
        bytes: usize,
        /// The number that was due.
        wanted: u64,
        /// The bytes that were due.
        expected: usize,
    },
}

/// Bytes of a memory that one device sends to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The device that sends them.
    pub from: usize,
    /// The device that receives them.
    pub to: usize,
    /// Their memory, the same number on both.
    pub buffer: BufferId,
    /// The bytes, the same on both.
    pub runs: Vec<Range<usize>>,
}

/// A device's connection to all others. Messages between two devices arrive in the order in which
/// they were sent, and sending does not wait for the receiver.
pub trait Link {
    /// The number of this device, from 0.
    fn device(&self) -> usize;

    /// Sends a message.
    ///
    /// # Errors
    /// When the other device has ended.
    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<(), LinkError>;

    /// Waits for the next message of a device.
    ///
    /// # Errors
    /// When the other device has ended or is silent for too long.
    fn receive(&mut self, from: usize) -> Result<Vec<u8>, LinkError>;

    /// Tells all others that this device failed. They end then.
    fn fail(&mut self, reason: &str);

    /// Whether the devices are targets of one process, which [`Link::spread`] and [`Link::order`]
    /// need.
    fn is_within_process(&self) -> bool {
        false
    }

    /// Gives all devices what the target of the first one shows, which no other one has.
    ///
    /// # Errors
    /// When another device fails, and between processes.
    fn spread(&mut self, number: u64, shown: Option<Shown>) -> Result<Shown, LinkError> {
        let _ = (number, shown);
        Err(LinkError::Apart)
    }

    /// Puts the next work of targets behind the work of others: the second of each pair behind the
    /// first. All devices call it with the same list.
    ///
    /// # Errors
    /// When another device fails, and between processes.
    fn order(
        &mut self,
        number: u64,
        pairs: &[(usize, usize)],
        target: &mut dyn Target,
    ) -> Result<(), TargetError> {
        let _ = (number, pairs, target);
        Err(LinkError::Apart.into())
    }

    /// Sends and receives the parcels of one exchange, by its number. All devices call it with the
    /// same list. A link between the memories of devices does without the host.
    ///
    /// # Errors
    /// When a copy, a message or another device fails.
    fn exchange(
        &mut self,
        number: u64,
        parcels: &[Parcel],
        target: &mut dyn Target,
    ) -> Result<(), TargetError> {
        by_messages(self, number, parcels, target)
    }
}

/// An exchange by messages: a device sends one to each that it has cells for, then receives.
///
/// # Errors
/// When a copy, a message or another device fails.
pub fn by_messages<L: Link + ?Sized>(
    link: &mut L,
    number: u64,
    parcels: &[Parcel],
    target: &mut dyn Target,
) -> Result<(), TargetError> {
    let device = link.device();
    for to in others(parcels, |parcel| (parcel.from == device).then_some(parcel.to)) {
        let mut message = number.to_le_bytes().to_vec();
        let own = parcels.iter().filter(|parcel| (parcel.from, parcel.to) == (device, to));
        for parcel in own {
            for run in &parcel.runs {
                let first = message.len();
                message.resize(first + run.len(), 0);
                let bytes = message.get_mut(first..).unwrap_or_default();
                target.download(parcel.buffer, run.start, bytes)?;
            }
        }
        link.send(to, message)?;
    }
    for from in others(parcels, |parcel| (parcel.to == device).then_some(parcel.from)) {
        let own = || parcels.iter().filter(|parcel| (parcel.from, parcel.to) == (from, device));
        let runs = own().flat_map(|parcel| &parcel.runs);
        let expected = 8 + runs.map(ExactSizeIterator::len).sum::<usize>();
        let message = link.receive(from)?;
        let mut rest = checked(&message, from, (number, expected))?;
        for parcel in own() {
            for run in &parcel.runs {
                let (bytes, behind) = rest.split_at(run.len().min(rest.len()));
                target.put(parcel.buffer, run.start, bytes)?;
                rest = behind;
            }
        }
    }
    Ok(())
}

/// The bytes of a message behind its number, which must be the one that is due.
pub(super) fn checked(
    message: &[u8],
    device: usize,
    (wanted, expected): (u64, usize),
) -> Result<&[u8], LinkError> {
    let number = message.first_chunk::<8>().map(|bytes| u64::from_le_bytes(*bytes));
    match number {
        Some(found) if found == wanted && message.len() == expected => {
            Ok(message.get(8..).unwrap_or_default())
        }
        found => Err(LinkError::Order {
            device,
            found: found.unwrap_or(0),
            bytes: message.len(),
            wanted,
            expected,
        }),
    }
}

/// The devices at the other ends of some parcels, each once, in ascending order.
pub(super) fn others(parcels: &[Parcel], other: impl Fn(&Parcel) -> Option<usize>) -> Vec<usize> {
    let mut found: Vec<usize> = parcels.iter().filter_map(other).collect();
    found.sort_unstable();
    found.dedup();
    found
}
