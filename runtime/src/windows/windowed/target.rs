//! The calls of a run: what begins on the host, launches that make up passes, and what ends there.

use super::Windowed;
use crate::bind::{Bound, BufferId};
use crate::execute::{Layout, Target, TargetError};
use crate::launch::{Copy, Launch};
use crate::ranks::{Span, Track};
use crate::windows::error::WindowError;
use std::ops::Range;
use std::time::Duration;

/// Bytes that are copied at once between arrays of the host.
const PART: usize = 1 << 20;

fn short() -> TargetError {
    WindowError::Fault("an array on the host is too short".to_owned()).into()
}

impl Target for Windowed<'_, '_> {
    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError> {
        let hosts = self.live.hosts.iter().zip(&bound.buffers);
        let hosts = hosts.filter(|(host, _)| host.is_some()).map(|(_, buffer)| buffer.bytes());
        let whole = self.survey.whole.clone();
        let (slots, hosts) = (self.slot_sizes.clone(), hosts.collect());
        let layout = Layout { slots, whole, hosts, backing: self.backing.clone() };
        self.slots.open(bound, &layout)
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        if self.survey.is_whole(buffer) {
            self.slots.upload(buffer, bytes)?;
        }
        let Some(host) = self.host_of(buffer) else { return Ok(()) };
        let to = self.slots.host(host)?;
        to.get_mut(..bytes.len()).ok_or_else(short)?.copy_from_slice(bytes);
        Ok(())
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        if self.survey.is_whole(to) {
            let fault = format!("memory {} lies on the device whole and begins as a copy", to.0);
            return Err(WindowError::Fault(fault).into());
        }
        let Some(to) = self.host_of(to) else { return Ok(()) };
        let missing = || WindowError::Fault("a copy from no array on the host".to_owned());
        let from = self.host_of(from).ok_or_else(missing)?;
        let all = self.slots.host(from)?.len();
        let mut part = Vec::new();
        for first in (0..all).step_by(PART) {
            let bytes = first..all.min(first + PART);
            part.clear();
            part.extend_from_slice(self.slots.host(from)?.get(bytes.clone()).ok_or_else(short)?);
            self.slots.host(to)?.get_mut(bytes).ok_or_else(short)?.copy_from_slice(&part);
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        (self.launches, self.windows, self.ahead) = (0, 0, None);
        (self.loads, self.stores) = (0, 0);
        if self.timeline.is_some() {
            self.slots.note_times();
        }
        self.slots.begin()
    }

    fn launch(&mut self, _: &Launch<'_>) -> Result<(), TargetError> {
        self.launches += 1;
        match self.cutting.ends.iter().position(|end| *end == self.launches) {
            Some(pass) => self.pass(pass),
            None => Ok(()),
        }
    }

    fn exchange(&mut self, _: &Copy) -> Result<(), TargetError> {
        let program = self.survey.plan.program.clone();
        Err(WindowError::Node { program, node: "exchange" }.into())
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        let elapsed = self.slots.finish()?;
        if let Some(timeline) = &self.timeline {
            let counts = [self.loads, self.windows, self.stores];
            let times = self.slots.times()?.into_iter().zip(counts);
            for (device, (times, count)) in times.enumerate() {
                let span = |time: Range<Duration>| Span {
                    free: time.start,
                    begin: time.start,
                    end: time.end,
                };
                let left_out = count.saturating_sub(times.len()) as u64;
                let spans = times.into_iter().map(span).collect();
                timeline.add(Track { device, spans, left_out });
            }
        }
        Ok(elapsed)
    }

    fn download(
        &mut self,
        buffer: BufferId,
        first: usize,
        bytes: &mut [u8],
    ) -> Result<(), TargetError> {
        if bytes.is_empty() {
            // A field without cells needs no array.
            return Ok(());
        }
        let missing = || WindowError::Fault(format!("memory {} has no array", buffer.0));
        let host = self.host_of(buffer).ok_or_else(missing)?;
        let from = self.slots.host(host)?;
        let end = first.saturating_add(bytes.len());
        bytes.copy_from_slice(from.get(first..end).ok_or_else(short)?);
        Ok(())
    }
}
