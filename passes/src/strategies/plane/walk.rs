//! The walk of a block along its tile: one loop over planes, with all loads before their turn.

use super::held::{Held, Ring};
use super::layout::Layout;
use super::ring::RingCode;
use super::source::{Segment, Source};
use super::update::{Cells, Update};
use crate::kernel::frame::Frame;
use crate::kernel::lane_cells::LaneCells;
use std::collections::{BTreeMap, VecDeque};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::tiled::{Apply, Kernel};

/// The code of a field.
struct FieldCode<'c, 'p> {
    held: &'p Held<'c>,
    source: Source<'c, 'p>,
    /// The thread's own cells.
    own: Segment<'c>,
    ring: Option<(&'p Ring, RingCode<'c>)>,
}

/// The code of a walk.
pub struct Walk<'c, 'p> {
    frame: &'p Frame<'c, 'p>,
    fields: Vec<FieldCode<'c, 'p>>,
    update: Update<'c, 'p>,
    /// The first plane of the tile, and the one behind its last.
    ends: [Val<'c>; 2],
    /// Planes that are loaded before their turn.
    ahead: i64,
    /// Planes of the loop's body.
    unroll: i64,
}

/// The thread's segments of the halo of a plane.
type LoadedHalo<'c> = Vec<Vec<Val<'c>>>;

/// What a thread carries from one plane to the next.
struct Carried<'c> {
    /// For each field its planes in registers, the first one first.
    planes: Vec<VecDeque<Vec<Val<'c>>>>,
    /// For each field the halos that are under way, of the planes that enter its ring next.
    halos: Vec<VecDeque<LoadedHalo<'c>>>,
    /// For each number of slots the slots of a ring in the order of its planes; the last is free.
    slots: BTreeMap<i64, VecDeque<Val<'c>>>,
}

impl<'c> Carried<'c> {
    fn flat(&self) -> Vec<Val<'c>> {
        let cells = self.planes.iter().flatten().flatten();
        let halos = self.halos.iter().flatten().flatten().flatten();
        cells.chain(halos).chain(self.slots.values().flatten()).copied().collect()
    }

    /// The same with other values.
    fn with(&self, values: &[Val<'c>]) -> Self {
        let mut values = values.iter().copied();
        let mut segment = |cells: &Vec<Val<'c>>| values.by_ref().take(cells.len()).collect();
        let planes =
            self.planes.iter().map(|held| held.iter().map(&mut segment).collect()).collect();
        let mut halo = |segments: &LoadedHalo<'c>| segments.iter().map(&mut segment).collect();
        let halos = self.halos.iter().map(|held| held.iter().map(&mut halo).collect()).collect();
        let slots = self.slots.iter();
        let slots = slots.map(|(count, held)| (*count, values.by_ref().take(held.len()).collect()));
        Self { planes, halos, slots: slots.collect() }
    }

    /// The slot of a plane of a ring.
    fn slot(&self, ring: &Ring, plane: i64) -> Result<Val<'c>, Error> {
        let place = usize::try_from(plane - ring.planes[0]).ok();
        let slots = self.slots.get(&ring.slots());
        let slot = slots.zip(place).and_then(|(slots, place)| slots.get(place));
        slot.copied().ok_or_else(|| Error::internal("a plane without a slot"))
    }
}

impl<'c, 'p> Walk<'c, 'p> {
    /// Computes what the loop needs.
    pub fn new(
        frame: &'p Frame<'c, 'p>,
        (kernel, apply): (&'p Kernel<'c>, &'p Apply<'c>),
        layout: &'p Layout<'c>,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let none = || Error::internal("a tile of no dimensions");
        let ([first, .., left], [.., lane]) = (frame.origin.as_slice(), frame.thread.as_slice())
        else {
            return Err(none());
        };
        let across = builder.multiply_constant(*lane, layout.width)?;
        let column = builder.add(*left, across)?;
        let row = match (frame.origin.as_slice(), frame.thread.as_slice()) {
            ([_, top, _], [_, row, _]) => Some(builder.add(*top, *row)?),
            _ => None,
        };
        let mut buffers = frame.shared.iter();
        let mut fields = Vec::new();
        for held in &layout.held {
            let source = Source::new(frame, held.field, (layout.width, apply.step), &held.reach)?;
            let ring = match &held.ring {
                Some(ring) => {
                    let buffer = buffers.next().copied();
                    let buffer =
                        buffer.ok_or_else(|| Error::internal("a ring without a buffer"))?;
                    Some((ring, RingCode::new(frame, layout, (ring, buffer), &source)?))
                }
                None => None,
            };
            let own = source.segment(builder, row, column)?;
            fields.push(FieldCode { held, source, own, ring });
        }
        let columns = (0..layout.width).map(|cell| builder.add_constant(column, cell));
        let cells = LaneCells { rows: vec![row], columns: columns.collect::<Result<_, _>>()? };
        let last = frame.scope.bounds(builder, frame.scope.hull.upper)?.first().copied();
        let behind = builder.add_constant(last.ok_or_else(none)?, 1)?;
        let planes = kernel.schedule.tile.first().copied().unwrap_or(1);
        let end = builder.binary("arith.minsi", builder.add_constant(*first, planes)?, behind)?;
        let update = Update::new(frame, (kernel, apply), layout, cells)?;
        Ok(Self {
            frame,
            fields,
            update,
            ends: [*first, end],
            ahead: layout.ahead,
            unroll: layout.unroll,
        })
    }

    /// The whole tile.
    pub fn tile(&self) -> Result<(), Error> {
        let builder = &self.frame.builder;
        let [first, end] = self.ends;
        let initial = self.initial(builder, first)?;
        let planes = |count: i64| {
            let initial = &initial;
            move |builder: &Builder<'c>, plane, carried: &[Val<'c>]| {
                let mut carried = initial.with(carried);
                for number in 0..count {
                    let plane = builder.add_constant(plane, number)?;
                    carried = self.plane(builder, plane, carried)?;
                }
                Ok(carried.flat())
            }
        };
        let (one, body) = (builder.index(1)?, builder.index(self.unroll)?);
        if self.unroll == 1 {
            return builder.carry((first, end, one), &initial.flat(), planes(1)).map(|_| ());
        }
        let last = builder.add_constant(end, 1 - self.unroll)?;
        let rest = builder.carry((first, last, body), &initial.flat(), planes(self.unroll))?;
        // The planes that are left over come one by one.
        let count = builder.binary("arith.subi", end, first)?;
        let whole = builder.binary("arith.divui", count, body)?;
        let whole = builder.multiply_constant(whole, self.unroll)?;
        builder.carry((builder.add(first, whole)?, end, one), &rest, planes(1)).map(|_| ())
    }

    /// What is there before the first plane is computed.
    fn initial(&self, builder: &Builder<'c>, first: Val<'c>) -> Result<Carried<'c>, Error> {
        let (mut planes, mut slots) = (Vec::new(), BTreeMap::new());
        let (mut halos, mut under_way) = (Vec::new(), Vec::new());
        for field in &self.fields {
            let mut held = VecDeque::new();
            let [lower, upper] = field.held.planes;
            for plane in lower..=upper {
                let at = self.near(builder, first, plane, self.needed(field.held))?;
                held.push_back(field.source.load(builder, &field.own, at)?);
            }
            planes.push(held);
            let mut queue = VecDeque::new();
            let Some((ring, code)) = &field.ring else {
                under_way.push(queue);
                continue;
            };
            let numbers = (0..ring.slots()).map(|slot| builder.index(slot));
            slots.insert(ring.slots(), numbers.collect::<Result<_, _>>()?);
            for plane in ring.planes[0]..=ring.planes[1] {
                let at = builder.add_constant(first, plane)?;
                halos.push(code.load(builder, &field.source, at)?);
            }
            for distance in 1..self.ahead {
                let at = self.near(builder, first, ring.planes[1] + distance, ring.planes[1])?;
                queue.push_back(code.load(builder, &field.source, at)?);
            }
            under_way.push(queue);
        }
        let carried = Carried { planes, halos: under_way, slots };
        let mut halos = halos.into_iter();
        for (field, held) in self.fields.iter().zip(&carried.planes) {
            let Some((ring, code)) = &field.ring else { continue };
            for plane in ring.planes[0]..=ring.planes[1] {
                let own = match usize::try_from(plane - field.held.planes[0]) {
                    Ok(place) => held.get(place).cloned(),
                    Err(_) => None,
                };
                let own = own.map_or_else(
                    || {
                        let at = builder.add_constant(first, plane)?;
                        field.source.load(builder, &field.own, at)
                    },
                    Ok,
                )?;
                let halo = halos.next().unwrap_or_default();
                code.store(builder, carried.slot(ring, plane)?, &own, &halo)?;
            }
        }
        self.barrier(builder)?;
        Ok(carried)
    }

    /// Computes a plane, and brings in the next.
    fn plane(
        &self,
        builder: &Builder<'c>,
        plane: Val<'c>,
        mut carried: Carried<'c>,
    ) -> Result<Carried<'c>, Error> {
        let mut next = Vec::new();
        for field in &self.fields {
            let distance = field.held.planes[1] + 1;
            let at = self.near(builder, plane, distance, self.needed(field.held))?;
            next.push(field.source.load(builder, &field.own, at)?);
        }
        for (field, queue) in self.fields.iter().zip(&mut carried.halos) {
            if let Some((ring, code)) = &field.ring {
                let last = ring.planes[1];
                let at = self.near(builder, plane, last + self.ahead, last)?;
                queue.push_back(code.load(builder, &field.source, at)?);
            }
        }
        let own = self.own(&carried);
        let read = |builder: &Builder<'c>| self.read(builder, &carried, own.clone());
        let values = self.update.values(builder, plane, &own, &read)?;
        self.update.store(builder, plane, &values)?;
        for (held, next) in carried.planes.iter_mut().zip(next) {
            held.push_back(next);
        }
        let taken: Vec<_> = carried.halos.iter_mut().map(VecDeque::pop_front).collect();
        for ((field, held), halo) in self.fields.iter().zip(&carried.planes).zip(taken) {
            let (Some((ring, code)), Some(halo)) = (&field.ring, halo) else { continue };
            let place = usize::try_from(ring.planes[1] + 1 - field.held.planes[0]).ok();
            let own = place.and_then(|place| held.get(place));
            let own = own.ok_or_else(|| Error::internal("a plane that comes into no register"))?;
            code.store(builder, carried.slot(ring, ring.planes[1] + 1)?, own, &halo)?;
        }
        self.barrier(builder)?;
        for held in &mut carried.planes {
            held.pop_front();
        }
        for slots in carried.slots.values_mut() {
            slots.rotate_left(1);
        }
        Ok(carried)
    }

    /// The last plane that a plane needs of a field, of those in registers.
    fn needed(&self, held: &Held) -> i64 {
        held.planes[1] - (self.ahead - 1)
    }

    /// The plane at a distance from one, or the last that the tile needs, which lies at `last` from
    /// its last plane: another launch may write those behind.
    fn near(
        &self,
        builder: &Builder<'c>,
        plane: Val<'c>,
        distance: i64,
        last: i64,
    ) -> Result<Val<'c>, Error> {
        let wanted = builder.add_constant(plane, distance)?;
        let [_, end] = self.ends;
        builder.binary("arith.minsi", wanted, builder.add_constant(end, last - 1)?)
    }

    /// The thread's own cells.
    fn own(&self, carried: &Carried<'c>) -> Cells<'c> {
        let held = |(field, held): (&FieldCode<'c, 'p>, &VecDeque<Vec<Val<'c>>>)| {
            let planes = (field.held.planes[0]..).zip(held);
            let segments = planes.map(|(plane, segment)| ([plane, 0, 0], segment.clone()));
            (field.held.field.to_owned(), segments.collect())
        };
        self.fields.iter().zip(&carried.planes).map(held).collect()
    }

    /// All cells that a point function may read: those of the rings beside the thread's own.
    fn read(
        &self,
        builder: &Builder<'c>,
        carried: &Carried<'c>,
        mut cells: Cells<'c>,
    ) -> Result<Cells<'c>, Error> {
        for field in &self.fields {
            let Some((ring, code)) = &field.ring else { continue };
            let segments = cells.entry(field.held.field.to_owned()).or_default();
            for place in &ring.reads {
                let slot = carried.slot(ring, place[0])?;
                segments.insert(*place, code.read(builder, slot, *place)?);
            }
        }
        Ok(cells)
    }

    fn barrier(&self, builder: &Builder<'c>) -> Result<(), Error> {
        if self.fields.iter().any(|field| field.ring.is_some()) {
            builder.op("gpu.barrier", &[], &[], &[])?;
        }
        Ok(())
    }
}
