//! The calls of a run: what begins on the host, launches that make up passes, and what ends there.

use super::Windowed;
use crate::bind::{Bound, BufferId};
use crate::execute::{Layout, Target, TargetError};
use crate::launch::{Copy, Launch};
use crate::ranks::{Span, Track};
use crate::windows::error::WindowError;
use std::ops::Range;
use std::time::Duration;

/// Bytes of a copy between arrays that are taken at a time.
const TOGETHER: usize = 1 << 24;

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
        if self.survey.whole.get(buffer.0) == Some(&true) {
            return self.slots.upload(buffer, bytes);
        }
        let Some(host) = self.host_of(buffer) else { return Ok(()) };
        let to = self.slots.host(host)?;
        to.get_mut(..bytes.len()).ok_or_else(short)?.copy_from_slice(bytes);
        Ok(())
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        let Some(to) = self.host_of(to) else { return Ok(()) };
        let missing = || WindowError::Fault("a copy from no array on the host".to_owned());
        let from = self.host_of(from).ok_or_else(missing)?;
        let all = 0..self.slots.host(from)?.len();
        for first in all.clone().step_by(TOGETHER) {
            let part = first..all.end.min(first + TOGETHER);
            let bytes = self.slots.host(from)?.get(part.clone()).ok_or_else(short)?.to_vec();
            self.slots.host(to)?.get_mut(part).ok_or_else(short)?.copy_from_slice(&bytes);
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        (self.launches, self.windows, self.ahead) = (0, 0, None);
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
            for (device, times) in self.slots.times()?.into_iter().enumerate() {
                let span = |time: Range<Duration>| Span {
                    free: time.start,
                    begin: time.start,
                    end: time.end,
                };
                let spans = times.into_iter().map(span).collect();
                timeline.add(Track { device, spans, left_out: 0 });
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
        let missing = || WindowError::Fault(format!("memory {} has no array", buffer.0));
        let host = self.host_of(buffer).ok_or_else(missing)?;
        let from = self.slots.host(host)?;
        let end = first.saturating_add(bytes.len());
        bytes.copy_from_slice(from.get(first..end).ok_or_else(short)?);
        Ok(())
    }
}
