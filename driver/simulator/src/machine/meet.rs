//! Where threads meet: barriers, shuffles, flags.

use super::{Awaited, Block, Fault, Stop};
use crate::error::Problem;
use crate::memory::Memory;
use crate::program::{Access, Reg, Shuffle};
use cranelift_entity::EntityRef;
use stencil_dialects::peer;

impl Block<'_> {
    pub(super) fn barrier(&mut self) -> Result<(), Fault> {
        if self.ghost.is_some() {
            return Ok(());
        }
        if self.mask.count() != self.threads {
            let present = self.mask.lanes().next().unwrap_or(0);
            let absent = (0..self.threads)
                .find(|lane| self.mask.warp(lane / 64, 64) >> (lane % 64) & 1 == 0)
                .unwrap_or(0);
            let detail = format!(
                "{} of {} threads reach it; {} does not",
                self.mask.count(),
                self.threads,
                self.thread(absent)
            );
            return Err(self.fault(Problem::DivergentBarrier, present, detail));
        }
        self.counters.warps[self.pc - 1] += 1;
        self.time.barrier();
        Ok(())
    }

    pub(super) fn shuffle(
        &mut self,
        mode: Shuffle,
        (to, valid): (Reg, Reg),
        (value, offset, width): (Reg, Reg, Reg),
    ) -> Result<(), Fault> {
        let (mut lanes, mut valids) = (
            std::mem::take(&mut self.registers[to.index()]),
            std::mem::take(&mut self.registers[valid.index()]),
        );
        let result = self.exchange(mode, (&mut lanes, &mut valids), (value, offset, width));
        (self.registers[to.index()], self.registers[valid.index()]) = (lanes, valids);
        self.counters.warps[self.pc - 1] += result?;
        Ok(())
    }

    /// Exchanges values within each warp; returns how many warps took part.
    fn exchange(
        &self,
        mode: Shuffle,
        (to, valid): (&mut [u64], &mut [u64]),
        (value, offset, width): (Reg, Reg, Reg),
    ) -> Result<u64, Fault> {
        let (value, offset, width) = (
            &self.registers[value.index()],
            &self.registers[offset.index()],
            &self.registers[width.index()],
        );
        let mut warps = 0;
        let lanes = self.environment.kernel.warp;
        for warp in 0..self.threads.div_ceil(lanes) {
            let first = warp * lanes;
            let present = (self.threads - first).min(lanes);
            let active = self.mask.warp(warp, lanes);
            if active == 0 {
                continue;
            }
            if active.count_ones() as usize != present && self.ghost.is_none() {
                let lane = first + active.trailing_zeros() as usize;
                let absent = first + active.trailing_ones() as usize;
                let absent = if absent < first + present {
                    absent
                } else {
                    first + (!active).trailing_zeros() as usize
                };
                let detail = format!(
                    "{} of {present} threads of the warp reach it; {} does not",
                    active.count_ones(),
                    self.thread(absent)
                );
                return Err(self.fault(Problem::DivergentShuffle, lane, detail));
            }
            warps += 1;
            for lane in 0..present {
                if active >> lane & 1 == 0 {
                    continue;
                }
                let width = (width[first + lane] as i32 as i64).clamp(1, lanes as i64);
                let (own, offset) = (lane as i64, offset[first + lane] as i32 as i64);
                let segment = own / width * width;
                let source = match mode {
                    Shuffle::Xor => own ^ offset,
                    Shuffle::Up => own - offset,
                    Shuffle::Down => own + offset,
                    Shuffle::Index => segment + offset,
                };
                let within = source >= segment && source < segment + width;
                if within && source >= present as i64 && self.ghost.is_none() {
                    let detail =
                        format!("it reads lane {source}, but the warp has {present} threads");
                    return Err(self.fault(Problem::DivergentShuffle, first + lane, detail));
                }
                valid[first + lane] = u64::from(within);
                to[first + lane] = value[first + if within { source as usize } else { lane }];
            }
        }
        Ok(warps)
    }

    /// The flag of a thread, once its access is resolved.
    fn flag(&self, lane: usize) -> (usize, usize) {
        let buffer = self.buffers[lane] as usize;
        (buffer, self.bytes[lane] as usize / self.memory(buffer).map_or(4, Memory::unit))
    }

    pub(super) fn signal(&mut self, access: &Access, epoch: Reg) -> Result<(), Fault> {
        let found = self.resolve(access);
        if self.ghost.is_some() {
            if found.is_ok() {
                let signals: Vec<_> = self
                    .mask
                    .lanes()
                    .map(|lane| (self.flag(lane), self.registers[epoch.index()][lane] as i32))
                    .collect();
                self.ghost.get_or_insert_default().extend(signals);
            }
            return Ok(());
        }
        found?;
        self.writable(access)?;
        let mask = self.mask;
        for lane in mask.lanes() {
            let flag = self.flag(lane);
            let value = self.registers[epoch.index()][lane] as u32;
            let Some(memory) = self.memory(flag.0) else { continue };
            memory
                .store_atomic(flag.1, value, self.accessor(lane, flag.0))
                .map_err(|conflict| self.address_fault(conflict, lane, access))?;
            let released = self.time.release(lane as u32);
            if let Ok(mut flags) = self.environment.flags.lock() {
                flags.insert(flag, released);
            }
            self.counters.warps[self.pc - 1] += 1;
        }
        Ok(())
    }

    /// Adds to a flag. What all who added released is what a wait acquires.
    pub(super) fn arrive(&mut self, access: &Access, count: Reg, to: Reg) -> Result<(), Fault> {
        let found = self.resolve(access);
        if self.ghost.is_none() {
            found?;
            self.writable(access)?;
        } else if found.is_err() {
            return Ok(());
        }
        let mask = self.mask;
        for lane in mask.lanes() {
            let flag = self.flag(lane);
            let Some(memory) = self.memory(flag.0) else { continue };
            let before = memory.peek(flag.1);
            let sum = before.wrapping_add(self.registers[count.index()][lane] as u32);
            if self.ghost.is_some() {
                self.ghost.get_or_insert_default().push((flag, sum as i32));
            } else {
                memory
                    .store_atomic(flag.1, sum, self.accessor(lane, flag.0))
                    .map_err(|conflict| self.address_fault(conflict, lane, access))?;
                let released = self.time.release(lane as u32);
                if let Ok(mut flags) = self.environment.flags.lock() {
                    flags.entry(flag).or_default().join(&released);
                }
                self.counters.warps[self.pc - 1] += 1;
            }
            self.registers[to.index()][lane] = before as i32 as u64;
        }
        Ok(())
    }

    pub(super) fn wait(&mut self, access: &Access, epoch: Reg) -> Result<Stop, Fault> {
        if self.ghost.is_some() {
            return Ok(Stop::Passed);
        }
        if self.awaited(access, epoch)?.is_some() {
            return Ok(Stop::Waiting);
        }
        let mask = self.mask;
        for lane in mask.lanes() {
            let released = self
                .environment
                .flags
                .lock()
                .ok()
                .and_then(|flags| flags.get(&self.flag(lane)).cloned());
            if let Some(released) = released {
                self.time.acquire(lane as u32, &released);
            }
            self.counters.warps[self.pc - 1] += 1;
        }
        Ok(Stop::Passed)
    }

    /// The first flag that is not there yet.
    fn awaited(&mut self, access: &Access, epoch: Reg) -> Result<Option<Awaited>, Fault> {
        self.resolve(access)?;
        for lane in self.mask.lanes() {
            let flag = self.flag(lane);
            let wanted = self.registers[epoch.index()][lane] as i32;
            let Some(memory) = self.memory(flag.0) else { continue };
            let value = memory
                .load_atomic(flag.1, self.accessor(lane, flag.0))
                .map_err(|conflict| self.address_fault(conflict, lane, access))?;
            if peer::is_late(value as i32, wanted) {
                return Ok(Some(Awaited { lane, flag, epoch: wanted }));
            }
        }
        Ok(None)
    }

    /// The flag for which a block that stopped at a wait waits.
    pub fn waits_for(&mut self) -> Option<Awaited> {
        let crate::program::Instr::Wait { access, epoch } =
            self.environment.kernel.code.get(self.pc)?
        else {
            return None;
        };
        self.awaited(access, *epoch).ok().flatten()
    }

    /// The flags that a stuck block would signal, could it go on: it runs ahead without storing
    /// anything, for at most `limit` instructions. The block can't be used afterwards.
    pub fn would_signal(&mut self, limit: u64) -> Vec<((usize, usize), i32)> {
        self.ghost = Some(Vec::new());
        let kernel = self.environment.kernel;
        for _ in 0..limit {
            let Some(instr) = kernel.code.get(self.pc) else { break };
            self.pc += 1;
            if matches!(instr, crate::program::Instr::Return) || self.step(instr).is_err() {
                break;
            }
        }
        self.ghost.take().unwrap_or_default()
    }

    /// An error at the place where the block stopped.
    pub fn stuck(&self, lane: usize) -> Fault {
        let mut fault = self.fault(Problem::Deadlock, lane, String::new());
        let site = self.environment.kernel.origins.get(self.pc).map(|origin| origin.site);
        if let Some(site) = site {
            fault.operation = self.operation(site);
        }
        fault
    }

    /// The name and value of a flag.
    pub fn flag_state(&self, flag: (usize, usize)) -> (String, i32) {
        let value = self.memory(flag.0).map_or(0, |memory| memory.peek(flag.1));
        (format!("{}[{}]", self.buffer_name(flag.0), flag.1), value as i32)
    }
}
