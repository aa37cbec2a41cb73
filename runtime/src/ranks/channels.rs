//! Links between threads of one process.

use super::link::{Link, LinkError, Parcel, by_messages, others};
use crate::execute::{Shown, Target, TargetError};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A device that fails ends all others in this time, beside the launches that they are in.
const LOOK: Duration = Duration::from_millis(20);

/// The first device that failed, and why.
type Failed = Arc<Mutex<Option<(usize, String)>>>;

/// What a target shows in an exchange, by its number.
type Numbered = (u64, Shown);

/// A thread's links to the other threads.
pub struct Channels {
    device: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
    shown_to: Vec<Sender<Numbered>>,
    shown_from: Vec<Receiver<Numbered>>,
    failed: Failed,
    /// How long it waits for a message.
    patience: Duration,
}

/// The links of so many threads, which wait for a message for a limited time.
pub fn channels(devices: usize, patience: Duration) -> Vec<Channels> {
    let failed = Failed::default();
    let mut all: Vec<Channels> = (0..devices)
        .map(|device| Channels {
            device,
            to: Vec::new(),
            from: Vec::new(),
            shown_to: Vec::new(),
            shown_from: Vec::new(),
            failed: Arc::clone(&failed),
            patience,
        })
        .collect();
    for sender in 0..devices {
        for receiver in 0..devices {
            let ((to, from), (shown_to, shown_from)) = (channel(), channel());
            if let Some(one) = all.get_mut(sender) {
                one.to.push(to);
                one.shown_to.push(shown_to);
            }
            if let Some(one) = all.get_mut(receiver) {
                one.from.push(from);
                one.shown_from.push(shown_from);
            }
        }
    }
    all
}

impl Channels {
    /// The failure of another device, if one failed.
    fn failure(&self) -> Option<LinkError> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let (device, reason) = failed.clone()?;
        (device != self.device).then_some(LinkError::Ended { device, reason })
    }

    /// The next thing in a channel from a device.
    fn next<T>(&self, from: usize, channel: Option<&Receiver<T>>) -> Result<T, LinkError> {
        let begin = Instant::now();
        let Some(channel) = channel else { return Err(self.gone(from)) };
        loop {
            match channel.recv_timeout(LOOK) {
                Ok(found) => return Ok(found),
                Err(RecvTimeoutError::Disconnected) => return Err(self.gone(from)),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(failure) = self.failure() {
                return Err(failure);
            }
            if begin.elapsed() >= self.patience {
                let seconds = self.patience.as_secs();
                return Err(LinkError::Silent { device: from, seconds });
            }
        }
    }

    fn show(&self, to: usize, shown: Numbered) -> Result<(), LinkError> {
        let sent = self.shown_to.get(to).is_some_and(|channel| channel.send(shown).is_ok());
        if sent { Ok(()) } else { Err(self.gone(to)) }
    }

    /// What a device shows in an exchange.
    fn shown(&self, from: usize, wanted: u64) -> Result<Shown, LinkError> {
        match self.next(from, self.shown_from.get(from))? {
            (found, shown) if found == wanted => Ok(shown),
            (found, _) => {
                Err(LinkError::Order { device: from, found, bytes: 0, wanted, expected: 0 })
            }
        }
    }

    /// An exchange without the host: each device shows what it has, and fetches what it needs. Then
    /// it lets others overwrite what they showed. Devices wait for each other in the order of their
    /// work; their threads only wait until that order is set.
    fn by_fetches(
        &mut self,
        number: u64,
        parcels: &[Parcel],
        target: &mut dyn Target,
    ) -> Result<(), TargetError> {
        let device = self.device;
        let to = others(parcels, |parcel| (parcel.from == device).then_some(parcel.to));
        let from = others(parcels, |parcel| (parcel.to == device).then_some(parcel.from));
        if !to.is_empty() {
            let own = parcels.iter().filter(|parcel| parcel.from == device);
            let mut buffers: Vec<_> = own.map(|parcel| parcel.buffer).collect();
            buffers.sort_unstable();
            buffers.dedup();
            let shown = target.show(&buffers)?;
            for other in &to {
                self.show(*other, (number, Arc::clone(&shown)))?;
            }
        }
        if !from.is_empty() {
            for other in &from {
                let shown = self.shown(*other, number)?;
                target.follow(&shown)?;
                let own = |parcel: &&Parcel| (parcel.from, parcel.to) == (*other, device);
                for parcel in parcels.iter().filter(own) {
                    target.fetch(&shown, parcel.buffer, &parcel.runs)?;
                }
            }
            let fetched = target.show(&[])?;
            for other in &from {
                self.show(*other, (number, Arc::clone(&fetched)))?;
            }
        }
        for other in to {
            target.follow(&self.shown(other, number)?)?;
        }
        Ok(())
    }

    fn gone(&self, device: usize) -> LinkError {
        let reason = "its thread is gone".to_owned();
        self.failure().unwrap_or(LinkError::Ended { device, reason })
    }
}

impl Link for Channels {
    fn device(&self) -> usize {
        self.device
    }

    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<(), LinkError> {
        let sent = self.to.get(to).map(|channel| channel.send(message).is_ok());
        if sent == Some(true) { Ok(()) } else { Err(self.gone(to)) }
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>, LinkError> {
        self.next(from, self.from.get(from))
    }

    fn is_within_process(&self) -> bool {
        true
    }

    fn spread(&mut self, number: u64, shown: Option<Shown>) -> Result<Shown, LinkError> {
        let Some(shown) = shown else { return self.shown(0, number) };
        for other in (0..self.shown_to.len()).filter(|other| *other != self.device) {
            self.show(other, (number, Arc::clone(&shown)))?;
        }
        Ok(shown)
    }

    fn order(
        &mut self,
        number: u64,
        pairs: &[(usize, usize)],
        target: &mut dyn Target,
    ) -> Result<(), TargetError> {
        let device = self.device;
        let mut behind = pairs.iter().filter(|(from, _)| *from == device).peekable();
        if behind.peek().is_some() {
            let shown = target.show(&[])?;
            behind.try_for_each(|(_, to)| self.show(*to, (number, Arc::clone(&shown))))?;
        }
        let mut before = pairs.iter().filter(|(_, to)| *to == device);
        before.try_for_each(|(from, _)| target.follow(&self.shown(*from, number)?))
    }

    fn exchange(
        &mut self,
        number: u64,
        parcels: &[Parcel],
        target: &mut dyn Target,
    ) -> Result<(), TargetError> {
        match target.shows() {
            true => self.by_fetches(number, parcels, target),
            false => by_messages(self, number, parcels, target),
        }
    }

    fn fail(&mut self, reason: &str) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.get_or_insert_with(|| (self.device, reason.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_arrive_in_order() {
        let mut all = channels(2, Duration::from_secs(60));
        let [one, other] = all.as_mut_slice() else { panic!() };
        one.send(1, vec![1]).unwrap();
        one.send(1, vec![2]).unwrap();
        assert_eq!((other.receive(0).unwrap(), other.receive(0).unwrap()), (vec![1], vec![2]));
    }

    #[test]
    fn a_device_that_fails_ends_the_others() {
        let mut all = channels(3, Duration::from_secs(3600));
        all[2].fail("no power");
        let error = all[0].receive(1).unwrap_err();
        assert_eq!(error.to_string(), "device 2 ended: no power");
        let error = all[1].receive(2).unwrap_err();
        assert_eq!(error.to_string(), "device 2 ended: no power");
        drop(all.remove(2));
        assert!(all[0].send(2, Vec::new()).is_err());
    }

    #[test]
    fn a_silent_device_is_not_waited_for_without_end() {
        let mut all = channels(2, Duration::from_millis(50));
        let error = all[0].receive(1).unwrap_err();
        assert_eq!(error, LinkError::Silent { device: 1, seconds: 0 });
    }
}
