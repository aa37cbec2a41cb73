//! Links between threads of one process.

use super::link::{Link, LinkError};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A device that fails ends all others in this time, beside the launches that they are in.
const LOOK: Duration = Duration::from_millis(20);

/// The first device that failed, and why.
type Failed = Arc<Mutex<Option<(usize, String)>>>;

/// A thread's links to the other threads.
pub struct Channels {
    device: usize,
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
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
            failed: Arc::clone(&failed),
            patience,
        })
        .collect();
    for sender in 0..devices {
        for receiver in 0..devices {
            let (to, from) = channel();
            if let Some(one) = all.get_mut(sender) {
                one.to.push(to);
            }
            if let Some(one) = all.get_mut(receiver) {
                one.from.push(from);
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
        let begin = Instant::now();
        let Some(channel) = self.from.get(from) else { return Err(self.gone(from)) };
        loop {
            match channel.recv_timeout(LOOK) {
                Ok(message) => return Ok(message),
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
