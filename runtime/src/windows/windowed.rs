//! A run in windows, as a target: launches are gathered to a pass, and then each window is taken to
//! the device, computed and brought back. While one is computed, the next one comes and the one
//! before leaves.
//!
//! Between passes an array on the host holds each buffer that is needed. A window's rows are
//! written back into the array from which they came. Its neighbours' halos have them too, and want
//! them as they were before the pass. The next window is therefore loaded before this one is
//! stored.

mod target;

use super::choose::Cutting;
use super::error::WindowError;
use super::live::Live;
use super::measure::{ALIGNMENT, Needed, SIDES};
use super::survey::Survey;
use super::window::{Loans, Part, Window, part_of};
use crate::array::Backing;
use crate::bind::BufferId;
use crate::execute::{Slots, Strips, TargetError};
use crate::ranks::{Region, Timeline};
use std::ops::Range;
use std::rc::Rc;

/// Copies of a window are cut into so many, so that copies to memory follow those from it.
const CHUNKS: usize = 8;

/// A run of a plan in windows.
pub struct Windowed<'r, 'p> {
    survey: &'r Survey<'p>,
    slots: &'r mut dyn Slots,
    live: Rc<Live>,
    cutting: Cutting,
    /// Rows of a slot for each memory.
    rows: Vec<usize>,
    /// Bytes of each slot.
    slot_sizes: Vec<usize>,
    /// Memory that holds nothing between passes, until the last one. Both sides have one slot for
    /// it.
    scratch: Vec<bool>,
    /// For each side the slot of each memory.
    sides: Vec<Vec<Option<usize>>>,
    /// Windows so far, copies to the device, and copies from it.
    windows: usize,
    loads: usize,
    stores: usize,
    /// Launches asked for.
    launches: usize,
    /// The window that comes next, already on its way.
    ahead: Option<Loaded>,
    /// For each side the slots from which rows were stored last.
    stored: Vec<Vec<usize>>,
    /// Gets the times of copies and windows, if they are asked for.
    timeline: Option<Timeline>,
    /// Where the arrays on the host lie.
    backing: Backing,
}

/// A window whose cells are on the device, or on their way.
struct Loaded {
    place: Place,
    window: Window,
    loans: Loans,
    side: usize,
}

/// A window of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Place {
    pass: usize,
    cut: usize,
}

impl<'r, 'p> Windowed<'r, 'p> {
    /// A run of some passes and windows on a device.
    pub fn new(
        survey: &'r Survey<'p>,
        cutting: Cutting,
        needed: Needed,
        slots: &'r mut dyn Slots,
    ) -> Self {
        let Needed { live, rows, scratch } = needed;
        let mut run = Self {
            survey,
            slots,
            live,
            cutting,
            rows,
            slot_sizes: Vec::new(),
            scratch,
            sides: Vec::new(),
            windows: 0,
            loads: 0,
            stores: 0,
            launches: 0,
            ahead: None,
            stored: vec![Vec::new(); SIDES],
            timeline: None,
            backing: Backing::Memory,
        };
        run.place_slots();
        run
    }

    /// Notes the times of copies and windows, if a timeline is to have them.
    pub fn note_times(&mut self, timeline: Option<&Timeline>) {
        self.timeline = timeline.cloned();
    }

    /// The arrays on the host are to lie there.
    pub fn lie_on(&mut self, backing: Backing) {
        self.backing = backing;
    }

    /// Gives memory its slots on each side.
    fn place_slots(&mut self) {
        let sides = self.cutting.cuts.len().min(SIDES);
        self.sides = vec![vec![None; self.rows.len()]; sides];
        for (memory, (rows, form)) in self.rows.iter().zip(&self.survey.forms).enumerate() {
            if *rows == 0 || self.survey.is_whole(BufferId(memory)) {
                continue;
            }
            let mut shared = None;
            for slot in self.sides.iter_mut().filter_map(|side| side.get_mut(memory)) {
                let own = shared.unwrap_or(self.slot_sizes.len());
                if own == self.slot_sizes.len() {
                    self.slot_sizes.push(rows * form.columns * form.bytes + ALIGNMENT);
                }
                *slot = Some(own);
                if self.scratch.get(memory) == Some(&true) {
                    shared = Some(own);
                }
            }
        }
    }

    fn window(&self, Place { pass, cut }: Place) -> Result<(Window, Loans), WindowError> {
        let missing = || WindowError::Fault("a window is not part of the run".to_owned());
        let cut = self.cutting.cuts.get(cut).ok_or_else(missing)?;
        self.cutting.window(self.survey, &self.live, pass, cut)
    }

    /// The window behind another one.
    fn next(&self, Place { pass, cut }: Place) -> Option<Place> {
        if cut + 1 < self.cutting.cuts.len() {
            return Some(Place { pass, cut: cut + 1 });
        }
        (pass + 1 < self.cutting.ends.len()).then_some(Place { pass: pass + 1, cut: 0 })
    }

    fn bytes(&self, buffer: BufferId, rows: &Range<usize>) -> Result<Range<usize>, WindowError> {
        let form = self.survey.form(buffer)?;
        let row = form.columns * form.bytes;
        Ok(rows.start * row..rows.end * row)
    }

    fn slot(&self, side: usize, buffer: BufferId) -> Result<usize, WindowError> {
        let slot = self.sides.get(side).and_then(|side| *side.get(buffer.0)?);
        slot.ok_or_else(|| WindowError::Fault(format!("memory {} has no slot", buffer.0)))
    }

    /// Takes a window to the device.
    fn load(&mut self, place: Place) -> Result<Loaded, TargetError> {
        let (window, loans) = self.window(place)?;
        let side = self.windows % self.sides.len().max(1);
        self.windows += 1;
        self.turn(side, &window);
        self.assign(side, &window, false)?;
        let needed: Vec<(usize, BufferId)> =
            self.live.at(place.pass).map(|(buffer, memory, _)| (buffer, memory)).collect();
        for (buffer, memory) in needed {
            let rows = window.needs.get(memory.0).map(Region::rows).unwrap_or_default();
            if rows.is_empty() {
                continue;
            }
            let host = self.live.hosts.get(buffer).copied().flatten();
            let missing = || WindowError::Fault(format!("buffer {buffer} has no array"));
            let (slot, bytes) = (self.slot(side, memory)?, self.bytes(memory, &rows)?);
            for part in chunks(&bytes) {
                self.slots.load(slot, host.ok_or_else(missing)?, part)?;
                self.loads += 1;
            }
        }
        for (from, to, cells) in &loans {
            let form = self.survey.form(*to)?;
            for area in cells.areas() {
                let pitch = form.columns * form.bytes;
                let strips = Strips {
                    first: area.rows.start * pitch + area.columns.start * form.bytes,
                    width: area.columns.len() * form.bytes,
                    pitch,
                    count: area.rows.len(),
                };
                let (from, to) = (self.slot(side, *from)?, self.slot(side, *to)?);
                self.slots.duplicate(from, to, &strips)?;
            }
        }
        Ok(Loaded { place, window, loans, side })
    }

    /// Gives memory its rows of a window: scratch memory, which the window before may still use, or
    /// all other.
    fn assign(&mut self, side: usize, window: &Window, scratch: bool) -> Result<(), TargetError> {
        for (memory, holds) in window.holds.iter().enumerate() {
            let buffer = BufferId(memory);
            if !holds.is_empty() && self.scratch.get(memory) == Some(&scratch) {
                let bytes = self.bytes(buffer, holds)?;
                self.slots.assign(self.slot(side, buffer)?, buffer, bytes)?;
            }
        }
        Ok(())
    }

    /// Gives memory that is loaded slots from which nothing is stored, where others of the same
    /// size are free: then copies both ways overlap.
    fn turn(&mut self, side: usize, window: &Window) {
        let (Some(slots), Some(stored)) = (self.sides.get_mut(side), self.stored.get(side)) else {
            return;
        };
        let loaded = |memory: usize| window.needs.get(memory).is_some_and(|one| !one.is_empty());
        let busy = |slot: &Option<usize>| slot.is_some_and(|slot| stored.contains(&slot));
        for memory in 0..slots.len() {
            if !loaded(memory) || !slots.get(memory).is_some_and(busy) {
                continue;
            }
            let free = (0..slots.len()).find(|other| {
                !loaded(*other)
                    && self.scratch.get(*other) != Some(&true)
                    && self.rows.get(*other) == self.rows.get(memory)
                    && self.survey.forms.get(*other) == self.survey.forms.get(memory)
                    && slots.get(*other).is_some_and(|slot| slot.is_some() && !busy(slot))
            });
            if let Some(free) = free {
                slots.swap(memory, free);
            }
        }
    }

    fn compute(&mut self, loaded: &Loaded) -> Result<(), TargetError> {
        let Loaded { window, loans, side, .. } = loaded;
        self.assign(*side, window, true)?;
        let mut slots = Vec::new();
        for (memory, holds) in window.holds.iter().enumerate() {
            if !holds.is_empty() {
                slots.push(self.slot(*side, BufferId(memory))?);
            }
        }
        self.slots.enter(&slots)?;
        let mut valid = window.needs.clone();
        for (_, to, cells) in loans {
            if let Some(valid) = valid.get_mut(to.0) {
                valid.add(cells);
            }
        }
        for Part { place, work, .. } in &window.works {
            let (launch, kind) = self.survey.launch(*place)?;
            for (place, buffer) in self.survey.cut(launch) {
                let (Some(loads), Some(valid)) = (work.loads.get(place), valid.get(buffer.0))
                else {
                    continue;
                };
                let spare = loads.without(valid);
                if !spare.is_empty() {
                    let runs = self.survey.form(buffer)?.runs(spare.areas());
                    self.slots.scramble(buffer, &runs)?;
                }
            }
            self.slots.launch(&part_of(launch, &work.blocks))?;
            for (place, buffer) in self.survey.cut(launch) {
                if let (Some(writes), Some(all), Some(valid)) =
                    (work.writes.get(place), kind.all.writes.get(place), valid.get_mut(buffer.0))
                {
                    // Cells that other windows compute are those before the launch.
                    *valid = valid.without(all);
                    valid.add(writes);
                }
            }
        }
        self.slots.leave()
    }

    /// The rows that a window brings back, each with the array of the host.
    fn returns(
        &self,
        loaded: &Loaded,
    ) -> Result<Vec<(BufferId, usize, Range<usize>)>, WindowError> {
        let (point, mut all) = (loaded.place.pass + 1, Vec::new());
        let before = self.live.memory.get(loaded.place.pass).map(Vec::as_slice).unwrap_or_default();
        for (buffer, memory, _) in self.live.at(point) {
            let Some(host) = self.live.hosts.get(buffer).copied().flatten() else { continue };
            let rows = loaded.window.gives.get(memory.0).map(Region::rows).unwrap_or_default();
            let written = loaded.window.works.iter().any(|Part { place, work, .. }| {
                self.survey.launch(*place).is_ok_and(|(launch, _)| {
                    let mut own = launch.buffers().filter(|(_, other)| *other == memory);
                    own.any(|(place, _)| work.writes.get(place).is_some_and(|one| !one.is_empty()))
                })
            });
            if !rows.is_empty() && (written || before.get(buffer) != Some(&memory)) {
                all.push((memory, host, self.bytes(memory, &rows)?));
            }
        }
        Ok(all)
    }

    /// The bytes of arrays that a window loads.
    fn takes(&self, place: Place) -> Result<Vec<(usize, Range<usize>)>, WindowError> {
        let (window, _) = self.window(place)?;
        let mut all = Vec::new();
        for (buffer, memory, _) in self.live.at(place.pass) {
            let rows = window.needs.get(memory.0).map(Region::rows).unwrap_or_default();
            if let (Some(host), false) =
                (self.live.hosts.get(buffer).copied().flatten(), rows.is_empty())
            {
                all.push((host, self.bytes(memory, &rows)?));
            }
        }
        Ok(all)
    }

    /// Does a pass.
    fn pass(&mut self, pass: usize) -> Result<(), TargetError> {
        for cut in 0..self.cutting.cuts.len() {
            let place = Place { pass, cut };
            let now = match self.ahead.take().filter(|ahead| ahead.place == place) {
                Some(ahead) => ahead,
                None => self.load(place)?,
            };
            let returns = self.returns(&now)?;
            let next = self.next(place);
            // A window of the same pass needs the rows as they were, one of the next pass as they
            // become. With one side there is no memory for it yet.
            let early = match next {
                _ if self.sides.len() < 2 => false,
                Some(next) if next.pass == pass => true,
                Some(next) => !self.takes(next)?.iter().any(|(host, bytes)| {
                    returns.iter().any(|(_, other, rows)| {
                        host == other && rows.start < bytes.end && bytes.start < rows.end
                    })
                }),
                None => false,
            };
            if let (true, Some(next)) = (early, next) {
                self.ahead = Some(self.load(next)?);
            }
            self.compute(&now)?;
            let mut stored = Vec::new();
            for (memory, host, bytes) in returns {
                let slot = self.slot(now.side, memory)?;
                for part in chunks(&bytes) {
                    self.slots.store(slot, host, part)?;
                    self.stores += 1;
                }
                stored.push(slot);
            }
            if let Some(last) = self.stored.get_mut(now.side) {
                *last = stored;
            }
        }
        Ok(())
    }

    /// The array on the host of a memory, as it is now.
    fn host_of(&self, buffer: BufferId) -> Option<usize> {
        let point = self.cutting.ends.iter().filter(|end| **end <= self.launches).count();
        let memory = self.live.memory.get(point)?;
        let place = memory.iter().position(|memory| *memory == buffer)?;
        self.live.hosts.get(place).copied().flatten()
    }
}

/// Parts of a copy. Small ones are not worth a copy of their own.
fn chunks(bytes: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let (end, least) = (bytes.end, 1 << 20);
    let size = bytes.len().div_ceil(CHUNKS).max(least);
    bytes.clone().step_by(size).map(move |first| first..(first + size).min(end))
}
