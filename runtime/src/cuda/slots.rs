//! Windows of a grid on a device: copies to it and back have streams of their own beside that of
//! the launches, and pinned memory on the host.
//!
//! A slot holds a stretch of a buffer. Kernels get the address at which the whole buffer would
//! begin, so that they find the stretch at its own place. Each copy and each window waits for the
//! work before it that uses the same slot or the same bytes on the host, by events on the device.
#![allow(unsafe_code)] // The driver's interface is C.

use super::buffer::Buffer;
use super::clock::Event;
use super::error::CudaError;
use super::graph::KEPT_OF_WINDOWS;
use super::pinned::Memory;
use super::program::Program;
use super::stream::Stream;
use super::strips;
use crate::array::Backing;
use crate::bind::{Bound, BufferId};
use crate::execute::{self, Layout, Slots, Strips, Target, TargetError};
use crate::launch::Launch;
use crate::ranks::MOST_LAUNCHES;
use cudarc::driver::sys;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A slot's stretch begins where its buffer would lie, modulo this.
const ALIGNMENT: usize = 256;

/// The slots of a program, with the arrays on the host.
#[derive(Debug)]
pub(super) struct Windows {
    /// Copies to the device.
    to: Arc<Stream>,
    /// Copies from it.
    from: Arc<Stream>,
    slots: Vec<Slot>,
    hosts: Vec<Host>,
    /// The slots of the window that computes.
    entered: Vec<usize>,
    /// Bytes of each buffer.
    buffers: Vec<usize>,
    /// Bytes that may lie between the starts of two stretches of a copy.
    most_pitch: usize,
    begin: Option<Instant>,
    times: Option<Times>,
}

/// Times of copies and windows, as points of their streams.
#[derive(Debug, Default)]
struct Times {
    start: Option<Event>,
    spans: [Vec<(Event, Event)>; 3],
    /// Where the window began that is computed.
    entered: Option<Event>,
}

#[derive(Debug)]
struct Slot {
    memory: Buffer,
    buffer: BufferId,
    /// The bytes of the buffer that it holds.
    bytes: Range<usize>,
    /// The end of the last copy to it, of the last window and of the last copy from it.
    loaded: Option<Arc<Event>>,
    used: Option<Arc<Event>>,
    stored: Option<Arc<Event>>,
    /// The copies from it, by their places in its memory.
    leaving: Uses,
}

impl Slot {
    /// Where the buffer would begin.
    fn address(&self) -> u64 {
        let shift = (self.bytes.start % ALIGNMENT) as u64;
        (self.memory.address() + shift).wrapping_sub(self.bytes.start as u64)
    }

    /// The place of some bytes in its memory.
    fn place(&self, bytes: &Range<usize>) -> Range<usize> {
        let shift = self.bytes.start % ALIGNMENT;
        let at = |byte: usize| (byte + shift).saturating_sub(self.bytes.start);
        at(bytes.start)..at(bytes.end)
    }

    fn holds(&self, bytes: &Range<usize>) -> bool {
        self.bytes.start <= bytes.start && bytes.start <= bytes.end && bytes.end <= self.bytes.end
    }
}

/// An array on the host with the copies that are under way.
#[derive(Debug)]
struct Host {
    memory: Memory,
    read: Uses,
    written: Uses,
}

/// Copies of a stream with their ends, the last one last.
#[derive(Debug, Default)]
struct Uses(VecDeque<(Range<usize>, Arc<Event>)>);

impl Uses {
    /// Adds a copy. Those within it ended before.
    fn add(&mut self, bytes: Range<usize>, end: &Arc<Event>) {
        self.0.retain(|(other, _)| other.start < bytes.start || bytes.end < other.end);
        self.0.push_back((bytes, Arc::clone(end)));
    }

    /// The end of the last one that has a byte of these.
    fn last(&self, bytes: &Range<usize>) -> Option<&Arc<Event>> {
        let common = |other: &Range<usize>| other.start < bytes.end && bytes.start < other.end;
        self.0.iter().rev().find(|(other, _)| common(other)).map(|(_, end)| end)
    }
}

impl Windows {
    fn new(program: &Program, bound: &Bound, layout: &Layout) -> Result<Self, TargetError> {
        let device = program.stream.device();
        let (to, from) = (Stream::new(device)?, Stream::new(device)?);
        let slot = |bytes: &usize| {
            Ok(Slot {
                memory: Buffer::new(&program.stream, *bytes)?,
                buffer: BufferId(0),
                bytes: 0..0,
                loaded: None,
                used: None,
                stored: None,
                leaving: Uses::default(),
            })
        };
        let host = |bytes: &usize| {
            let memory = Memory::zeros(&to, *bytes, &layout.backing)?;
            Ok(Host { memory, read: Uses::default(), written: Uses::default() })
        };
        Ok(Self {
            slots: layout.slots.iter().map(slot).collect::<Result<_, CudaError>>()?,
            hosts: layout.hosts.iter().map(host).collect::<Result<_, TargetError>>()?,
            to,
            from,
            entered: Vec::new(),
            most_pitch: device.most_pitch()?,
            buffers: bound.buffers.iter().map(crate::bind::Buffer::bytes).collect(),
            begin: None,
            times: None,
        })
    }

    /// A point of a stream, where times are noted and there is room for one of a kind.
    fn point(&self, kind: usize, stream: &Arc<Stream>) -> Result<Option<Event>, CudaError> {
        let spans = self.times.as_ref().and_then(|times| times.spans.get(kind));
        if spans.is_none_or(|spans| spans.len() >= MOST_LAUNCHES) {
            return Ok(None);
        }
        let point = Event::new(stream)?;
        point.record()?;
        Ok(Some(point))
    }

    /// Notes that work of a kind ends that began at a point.
    fn note(
        &mut self,
        kind: usize,
        stream: &Arc<Stream>,
        begin: Option<Event>,
    ) -> Result<(), CudaError> {
        let span = begin.zip(self.point(kind, stream)?);
        if let Some(spans) = self.times.as_mut().and_then(|times| times.spans.get_mut(kind)) {
            spans.extend(span);
        }
        Ok(())
    }

    /// Waits for all copies.
    fn synchronize(&self) -> Result<(), CudaError> {
        self.to.enter()?;
        self.to.synchronize()?;
        self.from.synchronize()
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        // The driver frees device memory behind the work on it, and memory of the host at once.
        let _ = self.synchronize();
    }
}

/// The end of all work of a stream so far. The context must be current.
fn end_of(stream: &Arc<Stream>) -> Result<Arc<Event>, CudaError> {
    let end = Event::untimed(stream)?;
    end.record()?;
    Ok(Arc::new(end))
}

fn hold(stream: &Stream, events: &[Option<&Arc<Event>>]) -> Result<(), CudaError> {
    events.iter().flatten().try_for_each(|event| event.hold(stream))
}

impl Program {
    fn windows(&mut self) -> Result<&mut Windows, CudaError> {
        self.stream.enter()?;
        let fault = self.mismatch("it has no memory for windows".to_owned());
        self.windows.as_mut().ok_or(fault)
    }

    fn outside(&self, what: &str) -> CudaError {
        self.mismatch(format!("a copy of a window reaches beyond {what}"))
    }
}

impl Slots for Program {
    fn open(&mut self, bound: &Bound, layout: &Layout) -> Result<(), TargetError> {
        self.windows = None;
        let whole = bound.buffers.iter().zip(&layout.whole);
        let whole = whole.map(|(buffer, whole)| if *whole { buffer.bytes() } else { 0 });
        let device = layout.slots.iter().copied().chain(whole).map(|bytes| bytes as u64);
        self.require(device.fold(0, u64::saturating_add))?;
        let hosts = layout.hosts.iter().map(|bytes| *bytes as u64);
        if layout.backing == Backing::Memory {
            crate::memory::require(hosts.fold(0, u64::saturating_add))?;
        }
        let mut own = bound.clone();
        for (buffer, whole) in own.buffers.iter_mut().zip(&layout.whole) {
            if !whole {
                // Its memory is that of slots.
                buffer.cells = 0;
            }
        }
        self.allocate(&own)?;
        self.windows = Some(Windows::new(self, bound, layout)?);
        if let Some(graphs) = &mut self.graphs {
            graphs.keep(KEPT_OF_WINDOWS);
        }
        Ok(())
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        Target::upload(self, buffer, bytes)
    }

    fn host(&mut self, host: usize) -> Result<&mut [u8], TargetError> {
        let outside = self.outside("the arrays on the host");
        let windows = self.windows()?;
        windows.synchronize()?;
        let found = windows.hosts.get_mut(host).ok_or(outside)?;
        Ok(found.memory.bytes_mut())
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        let stream = Arc::clone(&self.stream);
        let windows = self.windows()?;
        windows.begin = Some(Instant::now());
        if let Some(times) = &mut windows.times {
            let start = Event::new(&stream)?;
            start.record()?;
            times.start = Some(start);
        }
        Target::begin(self)
    }

    fn assign(
        &mut self,
        slot: usize,
        buffer: BufferId,
        bytes: Range<usize>,
    ) -> Result<(), TargetError> {
        let outside = self.outside("a slot");
        let windows = self.windows()?;
        let found = windows.slots.get_mut(slot);
        let room = |found: &&mut Slot| bytes.len() + ALIGNMENT <= found.memory.bytes();
        let found = found.filter(room).ok_or(outside)?;
        (found.buffer, found.bytes) = (buffer, bytes);
        Ok(())
    }

    fn load(&mut self, slot: usize, host: usize, bytes: Range<usize>) -> Result<(), TargetError> {
        let outside = self.outside("a slot or an array");
        let windows = self.windows()?;
        let found = windows.slots.get_mut(slot).zip(windows.hosts.get_mut(host));
        let (to, from) = found.ok_or(outside.clone())?;
        if !to.holds(&bytes) || bytes.end > from.memory.len() {
            return Err(outside.into());
        }
        let leaving = to.leaving.last(&to.place(&bytes));
        hold(&windows.to, &[to.used.as_ref(), leaving, from.written.last(&bytes)])?;
        let address = to.address().wrapping_add(bytes.start as u64);
        let source = from.memory.at(bytes.start).cast_const().cast();
        let stream = Arc::clone(&windows.to);
        let begin = windows.point(0, &stream)?;
        // SAFETY: both sides have so many bytes from there on, as was checked. Until the copy ended
        // the memory of both stays, and what writes one of them waits for it.
        windows.to.ok("cuMemcpyHtoDAsync", unsafe {
            sys::cuMemcpyHtoDAsync_v2(address, source, bytes.len(), stream.raw())
        })?;
        let end = end_of(&stream)?;
        windows.note(0, &stream, begin)?;
        let found = windows.slots.get_mut(slot).zip(windows.hosts.get_mut(host));
        if let Some((to, from)) = found {
            from.read.add(bytes, &end);
            to.loaded = Some(end);
        }
        Ok(())
    }

    fn duplicate(&mut self, from: usize, to: usize, strips: &Strips) -> Result<(), TargetError> {
        let outside = self.outside("a slot");
        let windows = self.windows()?;
        let found = windows.slots.get(from).zip(windows.slots.get(to));
        let span = strips.span();
        let held = found.filter(|(from, to)| from.holds(&span) && to.holds(&span));
        let (source, target) = held.ok_or(outside)?;
        hold(&windows.to, &[target.used.as_ref(), target.stored.as_ref()])?;
        let places = [source.address(), target.address()];
        // SAFETY: both slots hold all stretches, as was checked, and stay until the copy ended.
        unsafe { strips::copy(&windows.to, places, strips, windows.most_pitch)? };
        let end = end_of(&windows.to)?;
        if let Some(slot) = windows.slots.get_mut(to) {
            slot.loaded = Some(end);
        }
        Ok(())
    }

    fn enter(&mut self, slots: &[usize]) -> Result<(), TargetError> {
        let stream = Arc::clone(&self.stream);
        let missing = self.mismatch("a window has a slot that is not there".to_owned());
        let windows = self.windows()?;
        let mut placed = Vec::new();
        for slot in slots {
            let found = windows.slots.get(*slot).ok_or(missing.clone())?;
            hold(&stream, &[found.loaded.as_ref(), found.stored.as_ref()])?;
            let bytes = windows.buffers.get(found.buffer.0).copied().unwrap_or(0);
            placed.push((found.buffer, found.address(), bytes));
        }
        windows.entered = slots.to_vec();
        let point = windows.point(1, &stream)?;
        if let Some(times) = &mut windows.times {
            times.entered = point;
        }
        for (buffer, address, bytes) in placed {
            if let Some(place) = self.buffers.get_mut(buffer.0) {
                *place = Buffer::placed(&stream, address, bytes);
            }
        }
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        Target::launch(self, launch)
    }

    fn leave(&mut self) -> Result<(), TargetError> {
        self.flush()?;
        let stream = Arc::clone(&self.stream);
        let end = end_of(&stream)?;
        let windows = self.windows()?;
        let begin = windows.times.as_mut().and_then(|times| times.entered.take());
        windows.note(1, &stream, begin)?;
        for slot in std::mem::take(&mut windows.entered) {
            if let Some(slot) = windows.slots.get_mut(slot) {
                slot.used = Some(Arc::clone(&end));
            }
        }
        Ok(())
    }

    fn store(&mut self, slot: usize, host: usize, bytes: Range<usize>) -> Result<(), TargetError> {
        let outside = self.outside("a slot or an array");
        let windows = self.windows()?;
        let found = windows.slots.get_mut(slot).zip(windows.hosts.get_mut(host));
        let (from, to) = found.ok_or(outside.clone())?;
        if !from.holds(&bytes) || bytes.end > to.memory.len() {
            return Err(outside.into());
        }
        hold(&windows.from, &[from.used.as_ref(), from.loaded.as_ref(), to.read.last(&bytes)])?;
        let address = from.address().wrapping_add(bytes.start as u64);
        let target = to.memory.at(bytes.start).cast();
        let stream = Arc::clone(&windows.from);
        let begin = windows.point(2, &stream)?;
        // SAFETY: as in `load`.
        windows.from.ok("cuMemcpyDtoHAsync", unsafe {
            sys::cuMemcpyDtoHAsync_v2(target, address, bytes.len(), stream.raw())
        })?;
        let end = end_of(&stream)?;
        windows.note(2, &stream, begin)?;
        let found = windows.slots.get_mut(slot).zip(windows.hosts.get_mut(host));
        if let Some((from, to)) = found {
            from.leaving.add(from.place(&bytes), &end);
            to.written.add(bytes, &end);
            from.stored = Some(end);
        }
        Ok(())
    }

    fn note_times(&mut self) {
        if let Some(windows) = &mut self.windows {
            windows.times = Some(Times::default());
        }
    }

    fn times(&mut self) -> Result<execute::Times, TargetError> {
        let mut all = execute::Times::default();
        let Some(Times { start: Some(start), spans, .. }) = self.windows()?.times.take() else {
            return Ok(all);
        };
        for (all, spans) in all.iter_mut().zip(&spans) {
            for (begin, end) in spans {
                all.push(start.until(begin)?..start.until(end)?);
            }
        }
        Ok(all)
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        Target::wait(self)?;
        let windows = self.windows()?;
        windows.synchronize()?;
        Ok(windows.begin.take().map(|begin| begin.elapsed()))
    }
}
