//! Loads, prefetches, stores and asynchronous copies of a block.

use super::{BYTE_BITS, Block, Copy, Fault};
use crate::error::{Address, Problem};
use crate::memory::{Accessor, Conflict, Memory};
use crate::program::{Access, Operand, Reg, Usage};
use crate::traffic::MOST_LANES;
use cranelift_entity::EntityRef;

impl Block<'_> {
    pub(super) fn memory(&self, buffer: usize) -> Option<&Memory> {
        match self.environment.globals.get(buffer) {
            Some(global) => Some(global.memory),
            None => self.shared.get(buffer - self.environment.globals.len()),
        }
    }

    pub(super) fn buffer_name(&self, buffer: usize) -> String {
        let globals = self.environment.globals;
        match (
            globals.get(buffer),
            self.environment.kernel.shared.get(buffer.wrapping_sub(globals.len())),
        ) {
            (Some(global), _) => global.name.to_owned(),
            (None, Some((name, _))) => name.clone(),
            (None, None) => "the dynamic shared buffer".to_owned(),
        }
    }

    pub(super) fn accessor(&self, lane: usize, buffer: usize) -> Accessor<'_> {
        let global = buffer < self.environment.globals.len();
        Accessor {
            time: &self.time,
            thread: lane as u32,
            site: self.site().as_u32() as u16,
            concurrent: global && self.environment.concurrent,
            peer: global && self.environment.kernel.peer,
        }
    }

    /// Finds the address of every active thread, and that it is allowed.
    pub(super) fn resolve(&mut self, access: &Access) -> Result<(), Fault> {
        let (mut offsets, mut outside) =
            (std::mem::take(&mut self.offsets), std::mem::take(&mut self.outside));
        match access.offset {
            Operand::Constant(offset) => offsets.fill(offset),
            Operand::Register(reg) => {
                for (offset, value) in offsets.iter_mut().zip(&self.registers[reg.index()]) {
                    *offset = *value as i64;
                }
            }
        }
        outside.fill(false);
        for (place, dimension) in access.dimensions.iter().enumerate() {
            let index = &self.registers[dimension.index.index()];
            let slack =
                if place + 1 == access.dimensions.len() { i64::from(access.count) - 1 } else { 0 };
            let lanes = offsets.iter_mut().zip(outside.iter_mut()).zip(index);
            if let (Operand::Constant(size), Operand::Constant(stride)) =
                (dimension.size, dimension.stride)
            {
                let limit = size.saturating_sub(slack).max(0) as u64;
                for ((offset, outside), index) in lanes {
                    *outside |= *index >= limit;
                    *offset = offset.wrapping_add((*index as i64).wrapping_mul(stride));
                }
            } else {
                for (lane, ((offset, outside), index)) in lanes.enumerate() {
                    let limit =
                        self.operand(dimension.size, lane).saturating_sub(slack).max(0) as u64;
                    *outside |= *index >= limit;
                    *offset = offset.wrapping_add(
                        (*index as i64).wrapping_mul(self.operand(dimension.stride, lane)),
                    );
                }
            }
        }
        let base = &self.registers[access.base.index()];
        let (element, bytes) =
            (access.element.bytes() as i64, access.element.bytes() * u64::from(access.count));
        let mut problem = None;
        let (mut last_buffer, mut last_bytes) = (usize::MAX, 0);
        for lane in self.mask.lanes() {
            let buffer = (base[lane] >> BYTE_BITS) as usize;
            if buffer != last_buffer {
                last_buffer = buffer;
                last_bytes = self.memory(buffer).map_or(0, Memory::bytes);
            }
            let byte = (base[lane] & ((1 << BYTE_BITS) - 1)) as i64;
            let start = byte.wrapping_add(offsets[lane].wrapping_mul(element));
            self.buffers[lane] = buffer as u32;
            self.bytes[lane] = start as u64;
            let inside = start >= 0
                && (start as u64).checked_add(bytes).is_some_and(|end| end <= last_bytes);
            problem = if access.narrow && offsets[lane] != i64::from(offsets[lane] as i32) {
                Some((Problem::IndexOverflow, lane))
            } else if outside[lane] || !inside {
                Some((Problem::OutOfBounds, lane))
            } else if !(start as u64).is_multiple_of(access.alignment.max(1)) {
                Some((Problem::Misaligned, lane))
            } else {
                continue;
            };
            break;
        }
        (self.offsets, self.outside) = (offsets, outside);
        match problem {
            Some((problem, lane)) => Err(self.misplaced(problem, lane, access)),
            None => Ok(()),
        }
    }

    #[cold]
    fn misplaced(&self, problem: Problem, lane: usize, access: &Access) -> Fault {
        let detail = match problem {
            Problem::Misaligned => {
                format!("the address must be a multiple of {} bytes", access.alignment)
            }
            Problem::IndexOverflow => format!("the offset is {} elements", self.offsets[lane]),
            _ => {
                let sizes: Vec<_> = access
                    .dimensions
                    .iter()
                    .map(|dimension| match self.operand(dimension.size, lane) {
                        i64::MAX => "?".to_owned(),
                        size => size.to_string(),
                    })
                    .collect();
                format!("the memref has {} elements", sizes.join(" x "))
            }
        };
        let mut fault = self.fault(problem, lane, detail);
        fault.address = Some(self.address(access, lane));
        fault
    }

    fn address(&self, access: &Access, lane: usize) -> Address {
        let buffer = self.buffers[lane] as usize;
        Address {
            buffer: self.buffer_name(buffer),
            indices: access
                .dimensions
                .iter()
                .map(|dimension| self.registers[dimension.index.index()][lane] as i64)
                .collect(),
            byte: self.bytes[lane] as i64,
            of: self.memory(buffer).map_or(0, Memory::bytes),
        }
    }

    pub(super) fn load(&mut self, to: &[Reg], access: &Access) -> Result<(), Fault> {
        if self.ghost.is_some() {
            return self.ghost_load(to, access);
        }
        self.resolve(access)?;
        for (element, reg) in to.iter().enumerate() {
            let mut lanes = std::mem::take(&mut self.registers[reg.index()]);
            let result = self.load_element(&mut lanes, element as u64, access);
            self.registers[reg.index()] = lanes;
            result?;
        }
        self.count(access);
        Ok(())
    }

    /// Checks an address that a device would ignore where nothing lies: kernels prefetch only cells
    /// that they will load.
    pub(super) fn prefetch(&mut self, access: &Access) -> Result<(), Fault> {
        if self.ghost.is_some() { Ok(()) } else { self.resolve(access) }
    }

    fn load_element(&self, to: &mut [u64], element: u64, access: &Access) -> Result<(), Fault> {
        let offset = element * access.element.bytes();
        let mut last = (usize::MAX, None);
        for lane in self.mask.lanes() {
            let buffer = self.buffers[lane] as usize;
            if buffer != last.0 {
                last = (buffer, self.memory(buffer));
            }
            let Some(memory) = last.1 else { continue };
            let first = (self.bytes[lane] + offset) as usize / memory.unit();
            let by = self.accessor(lane, buffer);
            let mut bits = 0;
            for part in 0..access.element.bytes() as usize / memory.unit() {
                let word = memory
                    .load(first + part, by)
                    .and_then(|word| self.arrived(buffer, first + part, word));
                let word = word.map_err(|conflict| {
                    self.conflict(conflict, lane, self.address(access, lane))
                })?;
                bits |= u64::from(word) << (8 * part * memory.unit());
            }
            to[lane] = access.element.loaded(bits);
        }
        Ok(())
    }

    /// A word to which an asynchronous copy is under way is not there yet.
    #[inline]
    fn arrived(&self, buffer: usize, word: usize, value: u32) -> Result<u32, Conflict> {
        if !self.in_flight.is_empty() && self.in_flight.contains(&(buffer, word)) {
            Err(Conflict::Unwritten)
        } else {
            Ok(value)
        }
    }

    pub(super) fn store(&mut self, from: &[Reg], access: &Access) -> Result<(), Fault> {
        if self.ghost.is_some() {
            return Ok(());
        }
        self.resolve(access)?;
        self.writable(access)?;
        for (element, reg) in from.iter().enumerate() {
            let offset = element as u64 * access.element.bytes();
            let values = &self.registers[reg.index()];
            for lane in self.mask.lanes() {
                let buffer = self.buffers[lane] as usize;
                let Some(memory) = self.memory(buffer) else { continue };
                let first = (self.bytes[lane] + offset) as usize / memory.unit();
                let by = self.accessor(lane, buffer);
                for part in 0..access.element.bytes() as usize / memory.unit() {
                    let word =
                        (values[lane] >> (8 * part * memory.unit())) as u32 & memory.word_mask();
                    let stored = memory.store(first + part, word, by);
                    stored.map_err(|conflict| {
                        self.conflict(conflict, lane, self.address(access, lane))
                    })?;
                }
            }
        }
        self.count(access);
        Ok(())
    }

    pub(super) fn writable(&self, access: &Access) -> Result<(), Fault> {
        let globals = self.environment.globals;
        let forbidden = |lane: &usize| {
            globals
                .get(self.buffers[*lane] as usize)
                .is_some_and(|global| global.usage == Usage::Read)
        };
        match self.mask.lanes().find(forbidden) {
            None => Ok(()),
            Some(lane) => {
                let mut fault = self.fault(Problem::ReadOnly, lane, String::new());
                fault.address = Some(self.address(access, lane));
                Err(fault)
            }
        }
    }

    pub(super) fn address_fault(&self, conflict: Conflict, lane: usize, access: &Access) -> Fault {
        self.conflict(conflict, lane, self.address(access, lane))
    }

    pub(super) fn copy_async(
        &mut self,
        from: &Access,
        to: &Access,
        valid: Option<Reg>,
    ) -> Result<(), Fault> {
        if self.ghost.is_some() {
            return Ok(());
        }
        self.resolve(from)?;
        let bytes = (from.element.bytes() * u64::from(from.count)) as usize;
        let mut values: Vec<u8> = Vec::new();
        for lane in self.mask.lanes() {
            let buffer = self.buffers[lane] as usize;
            let Some(memory) = self.memory(buffer) else { continue };
            let size = from.element.bytes() as usize;
            let wanted =
                valid.map_or(bytes, |valid| self.registers[valid.index()][lane] as usize * size);
            for byte in (0..bytes).step_by(memory.unit()) {
                let place = (self.bytes[lane] as usize + byte) / memory.unit();
                let value = if byte < wanted {
                    memory.load(place, self.accessor(lane, buffer))
                } else {
                    Ok(0)
                };
                let value = value
                    .map_err(|conflict| self.conflict(conflict, lane, self.address(from, lane)))?;
                values.extend(value.to_le_bytes().iter().take(memory.unit()));
            }
        }
        self.count(from);
        self.resolve(to)?;
        self.writable(to)?;
        for (lane, values) in self.mask.lanes().zip(values.chunks(bytes.max(1))) {
            let buffer = self.buffers[lane] as usize;
            let unit = self.memory(buffer).map_or(4, Memory::unit);
            for (part, value) in values.chunks(unit).enumerate() {
                let word = self.bytes[lane] as usize / unit + part;
                if let Some(memory) = self.memory(buffer) {
                    memory.announce(word, self.accessor(lane, buffer)).map_err(|conflict| {
                        self.conflict(conflict, lane, self.address(to, lane))
                    })?;
                }
                let value = value.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
                self.copies.push(Copy { lane, buffer, word, value });
                self.in_flight.insert((buffer, word));
            }
        }
        self.count(to);
        Ok(())
    }

    pub(super) fn copy_wait(&mut self, groups: usize) -> Result<(), Fault> {
        while self.groups.len() > groups {
            for copy in self.groups.pop_front().unwrap_or_default() {
                self.in_flight.remove(&(copy.buffer, copy.word));
                let Some(memory) = self.memory(copy.buffer) else { continue };
                let stored =
                    memory.store(copy.word, copy.value, self.accessor(copy.lane, copy.buffer));
                stored.map_err(|conflict| {
                    let (byte, of) = ((copy.word * memory.unit()) as i64, memory.bytes());
                    self.conflict(
                        conflict,
                        copy.lane,
                        Address {
                            buffer: self.buffer_name(copy.buffer),
                            indices: Vec::new(),
                            byte,
                            of,
                        },
                    )
                })?;
            }
        }
        Ok(())
    }

    /// Counts the traffic of the access that was just resolved.
    fn count(&mut self, access: &Access) {
        let pc = self.pc - 1;
        let total = access.element.bytes() * u64::from(access.count);
        let globals = self.environment.globals.len();
        let most = self.environment.kernel.warp;
        for part in 0..(total / access.width.max(1)).max(1) {
            for warp in 0..self.threads.div_ceil(most) {
                let active = self.mask.warp(warp, most);
                if active == 0 {
                    continue;
                }
                let (mut addresses, mut count) = ([0; MOST_LANES], 0);
                let (mut lanes, mut shared) = ([None; MOST_LANES], false);
                let first = warp * most;
                for (lane, slot) in
                    lanes.iter_mut().enumerate().take(most.min(self.threads - first))
                {
                    if active >> lane & 1 == 0 {
                        continue;
                    }
                    let byte = self.bytes[first + lane] + part * access.width;
                    let buffer = self.buffers[first + lane] as usize;
                    if self.environment.globals.get(buffer).is_some_and(|global| global.constant) {
                        continue;
                    }
                    if buffer < globals {
                        // Buffers lie apart, so no two share a sector.
                        addresses[count] = byte | (buffer as u64) << BYTE_BITS;
                        count += 1;
                    } else {
                        *slot = Some(byte);
                        shared = true;
                    }
                }
                let [global_traffic, shared_traffic] = &mut self.counters.traffic[pc];
                global_traffic.global(&addresses[..count], access.width);
                if shared {
                    shared_traffic.shared(&lanes[..most], access.width);
                }
            }
        }
    }

    /// Reads what is there, wherever it is: for a look ahead.
    fn ghost_load(&mut self, to: &[Reg], access: &Access) -> Result<(), Fault> {
        let found = self.resolve(access).is_ok();
        let mask = self.mask;
        for (element, reg) in to.iter().enumerate() {
            let mut lanes = std::mem::take(&mut self.registers[reg.index()]);
            for lane in mask.lanes() {
                let byte = (self.bytes[lane] + element as u64 * access.element.bytes()) as usize;
                let memory = self.memory(self.buffers[lane] as usize).filter(|_| found);
                let bits = memory.map_or(0, |memory| {
                    let (first, unit) = (byte / memory.unit(), memory.unit());
                    (0..access.element.bytes() as usize / unit).fold(0, |bits, part| {
                        bits | u64::from(memory.peek(first + part)) << (8 * part * unit)
                    })
                });
                lanes[lane] = access.element.loaded(bits);
            }
            self.registers[reg.index()] = lanes;
        }
        Ok(())
    }
}
