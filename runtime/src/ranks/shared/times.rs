//! How long devices take: the time of a run, and the times of its launches where they are noted.

use super::Shared;
use crate::execute::{Target, TargetError};
use crate::ranks::link::checked;
use crate::ranks::timeline::{MOST_LAUNCHES, Span, Timeline, Track};
use std::time::Duration;

/// The times of a device while it runs. Points in time are those of the target, or of the host's
/// clock where the target's work is done when a call returns.
#[derive(Debug)]
pub struct Notes {
    timeline: Timeline,
    /// By the host's clock, from the start of the run on.
    points: Vec<Duration>,
    /// For each noted launch the points of its begin and its end.
    launches: Vec<(usize, usize)>,
    left_out: u64,
    /// Whether the target has points of its own.
    by_target: bool,
}

impl Notes {
    pub fn new(timeline: Timeline) -> Self {
        let (points, launches) = (Vec::new(), Vec::new());
        Self { timeline, points, launches, left_out: 0, by_target: false }
    }

    /// Notes a point, and gives its number.
    fn point(&mut self, target: &mut dyn Target) -> Result<usize, TargetError> {
        self.by_target = target.mark()?;
        self.points.push(self.timeline.origin.elapsed());
        Ok(self.points.len() - 1)
    }
}

impl Shared<'_> {
    /// Notes a point of the run. None where times are not noted.
    pub(super) fn point(&mut self) -> Result<Option<usize>, TargetError> {
        let Some(notes) = &mut self.notes else { return Ok(None) };
        if notes.launches.len() >= MOST_LAUNCHES {
            return Ok(None);
        }
        notes.point(self.target).map(Some)
    }

    /// Notes that a launch ends that began at a point.
    pub(super) fn end_launch(&mut self, begin: Option<usize>) -> Result<(), TargetError> {
        let end = self.point()?;
        if let Some(notes) = &mut self.notes {
            match begin.zip(end) {
                Some(launch) => notes.launches.push(launch),
                None => notes.left_out += 1,
            }
        }
        Ok(())
    }

    /// Hands over what was noted. All work has ended.
    pub(super) fn end_notes(&mut self) -> Result<(), TargetError> {
        let Some(notes) = self.notes.take() else { return Ok(()) };
        let points = if notes.by_target { self.target.marks()? } else { notes.points };
        let at = |point: usize| points.get(point).copied().unwrap_or_default();
        let span = |(begin, end): &(usize, usize)| Span {
            free: at(begin.saturating_sub(1)),
            begin: at(*begin),
            end: at(*end),
        };
        let spans = notes.launches.iter().map(span).collect();
        let device = self.link.device();
        notes.timeline.add(Track { device, spans, left_out: notes.left_out });
        Ok(())
    }

    /// How long the launches took on the device that took longest, for the first one.
    pub(super) fn longest(
        &mut self,
        own: Option<Duration>,
    ) -> Result<Option<Duration>, TargetError> {
        let Some(own) = own else { return Ok(None) };
        self.exchanges += 1;
        let number = self.exchanges;
        let nanoseconds = u64::try_from(own.as_nanos()).unwrap_or(u64::MAX);
        if self.link.device() > 0 {
            let message = [number.to_le_bytes(), nanoseconds.to_le_bytes()].concat();
            self.link.send(0, message)?;
            return Ok(Some(own));
        }
        let mut longest = own;
        for device in 1..self.devices.count() {
            let message = self.link.receive(device)?;
            let found = checked(&message, device, (number, 16))?.first_chunk();
            let found = found.map_or(0, |bytes| u64::from_le_bytes(*bytes));
            longest = longest.max(Duration::from_nanos(found));
        }
        Ok(Some(longest))
    }
}
