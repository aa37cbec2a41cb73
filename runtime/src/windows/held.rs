//! Windows on a target that has the whole range of each buffer, such as a simulator: copies and
//! launches are done one by one. A slot is memory of the host; when a window begins, its bytes are
//! the only ones of a buffer that have a value.

use crate::array::{Array, Backing, Element};
use crate::bind::{Bound, BufferId};
use crate::execute::{Layout, Slots, Strips, Target, TargetError, Times};
use crate::launch::Launch;
use crate::ranks::MOST_LAUNCHES;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A target as a device with slots.
pub struct Held<'t> {
    target: &'t mut dyn Target,
    slots: Vec<Slot>,
    hosts: Vec<Array>,
    /// The buffers that are not held whole, with their bytes.
    windowed: Vec<(BufferId, usize)>,
    begin: Option<Instant>,
    /// What was noted of copies to the target, windows, and copies from it.
    times: Option<Times>,
    /// When the window began that is computed.
    entered: Option<Instant>,
}

#[derive(Default)]
struct Slot {
    size: usize,
    buffer: Option<BufferId>,
    bytes: Range<usize>,
    memory: Vec<u8>,
    /// The bytes that have a value.
    filled: Vec<Range<usize>>,
}

impl<'t> Held<'t> {
    /// Nothing held yet.
    pub fn new(target: &'t mut dyn Target) -> Self {
        let (slots, hosts, windowed) = (Vec::new(), Vec::new(), Vec::new());
        let (begin, times, entered) = (None, None, None);
        Self { target, slots, hosts, windowed, begin, times, entered }
    }

    /// Notes that work of a kind ends that began at a point.
    fn note(&mut self, kind: usize, from: Instant) {
        let (Some(times), Some(begin)) = (&mut self.times, self.begin) else { return };
        if let Some(spans) = times.get_mut(kind).filter(|spans| spans.len() < MOST_LAUNCHES) {
            spans.push(from.saturating_duration_since(begin)..begin.elapsed());
        }
    }

    fn slot(&mut self, slot: usize) -> Result<&mut Slot, TargetError> {
        let missing = || format!("there is no slot {slot}").into();
        self.slots.get_mut(slot).ok_or_else(missing)
    }
}

fn outside(slot: usize) -> TargetError {
    format!("slot {slot} does not hold all bytes of a copy").into()
}

impl Slot {
    /// Some bytes of the buffer.
    fn part(&mut self, bytes: &Range<usize>) -> Option<&mut [u8]> {
        let first = bytes.start.checked_sub(self.bytes.start)?;
        self.memory.get_mut(first..first.checked_add(bytes.len())?)
    }
}

impl Slots for Held<'_> {
    fn open(&mut self, bound: &Bound, layout: &Layout) -> Result<(), TargetError> {
        let whole = bound.buffers.iter().zip(&layout.whole).filter(|(_, whole)| **whole);
        let whole = whole.map(|(buffer, _)| buffer.bytes() as u64);
        let slots = layout.slots.iter().map(|bytes| *bytes as u64);
        let bytes = whole.chain(slots).fold(0, u64::saturating_add);
        let hosts = match layout.backing {
            Backing::Memory => layout.hosts.as_slice(),
            Backing::Files(_) => &[],
        };
        let hosts = hosts.iter().map(|bytes| *bytes as u64).fold(bytes, u64::saturating_add);
        crate::memory::require(hosts)?;
        self.target.allocate_part(bound, bytes, None)?;
        let slot = |size: &usize| Slot { size: *size, ..Slot::default() };
        self.slots = layout.slots.iter().map(slot).collect();
        let host = |bytes: &usize| Array::zeros_on(Element::U8, &[*bytes], &layout.backing);
        self.hosts = layout.hosts.iter().map(host).collect::<Result<_, _>>()?;
        let buffers = bound.buffers.iter().enumerate().zip(&layout.whole);
        let windowed = buffers.filter(|(_, whole)| !**whole);
        self.windowed =
            windowed.map(|((place, buffer), _)| (BufferId(place), buffer.bytes())).collect();
        Ok(())
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        self.target.put(buffer, 0, bytes)
    }

    fn host(&mut self, host: usize) -> Result<&mut [u8], TargetError> {
        let missing = || format!("there is no array {host}").into();
        self.hosts.get_mut(host).map(Array::bytes_mut).ok_or_else(missing)
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        self.begin = Some(Instant::now());
        self.target.begin()
    }

    fn assign(
        &mut self,
        slot: usize,
        buffer: BufferId,
        bytes: Range<usize>,
    ) -> Result<(), TargetError> {
        let found = self.slot(slot)?;
        if bytes.len() > found.size {
            return Err(outside(slot));
        }
        found.memory.resize(bytes.len(), 0);
        (found.buffer, found.bytes, found.filled) = (Some(buffer), bytes, Vec::new());
        Ok(())
    }

    fn load(&mut self, slot: usize, host: usize, bytes: Range<usize>) -> Result<(), TargetError> {
        let start = Instant::now();
        let found = self.slots.get_mut(slot).zip(self.hosts.get(host));
        let (to, from) = found.ok_or_else(|| outside(slot))?;
        let part =
            to.part(&bytes).zip(from.bytes().get(bytes.clone())).ok_or_else(|| outside(slot))?;
        part.0.copy_from_slice(part.1);
        to.filled.push(bytes);
        self.note(0, start);
        Ok(())
    }

    fn duplicate(&mut self, from: usize, to: usize, strips: &Strips) -> Result<(), TargetError> {
        for run in strips.runs() {
            let bytes = self.slot(from)?.part(&run).map(|part| part.to_vec());
            let bytes = bytes.ok_or_else(|| outside(from))?;
            let to_slot = self.slot(to)?;
            to_slot.part(&run).ok_or_else(|| outside(to))?.copy_from_slice(&bytes);
            to_slot.filled.push(run);
        }
        Ok(())
    }

    fn enter(&mut self, slots: &[usize]) -> Result<(), TargetError> {
        self.entered = Some(Instant::now());
        // Buffers without a slot in this window too: kernels must not read what others held.
        for (buffer, bytes) in &self.windowed {
            self.target.forget(*buffer, &[0..*bytes])?;
        }
        for slot in slots {
            let found = self.slots.get_mut(*slot).ok_or_else(|| outside(*slot))?;
            let buffer = found.buffer.ok_or_else(|| outside(*slot))?;
            for run in std::mem::take(&mut found.filled) {
                let part = found.part(&run).ok_or_else(|| outside(*slot))?;
                self.target.put(buffer, run.start, part)?;
            }
        }
        Ok(())
    }

    fn scramble(&mut self, buffer: BufferId, runs: &[Range<usize>]) -> Result<(), TargetError> {
        self.target.scramble(buffer, runs)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        self.target.launch(launch)
    }

    fn leave(&mut self) -> Result<(), TargetError> {
        if let Some(entered) = self.entered.take() {
            self.note(1, entered);
        }
        Ok(())
    }

    fn store(&mut self, slot: usize, host: usize, bytes: Range<usize>) -> Result<(), TargetError> {
        let start = Instant::now();
        let found = self.slots.get(slot).zip(self.hosts.get_mut(host));
        let (from, to) = found.ok_or_else(|| outside(slot))?;
        let (buffer, to) =
            from.buffer.zip(to.bytes_mut().get_mut(bytes.clone())).ok_or_else(|| outside(slot))?;
        let inside = from.bytes.start <= bytes.start && bytes.end <= from.bytes.end;
        if !inside {
            return Err(outside(slot));
        }
        self.target.download(buffer, bytes.start, to)?;
        self.note(2, start);
        Ok(())
    }

    fn note_times(&mut self) {
        self.times = Some(Default::default());
    }

    fn times(&mut self) -> Result<Times, TargetError> {
        Ok(self.times.take().unwrap_or_default())
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        let measured = self.target.finish()?;
        let begin = self.begin.take();
        Ok(measured.and(begin.map(|begin| begin.elapsed())))
    }
}
