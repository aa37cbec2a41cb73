//! Instructions that compute a register from others, for all threads.

use super::{BYTE_BITS, Block, Fault};
use crate::error::Problem;
use crate::program::Reg;
use crate::value::{self, Binary, Kind};
use cranelift_entity::EntityRef;

impl Block<'_> {
    /// Computes a register from others.
    #[inline]
    pub(super) fn set(&mut self, to: Reg, compute: impl FnOnce(&[Vec<u64>], &mut [u64])) {
        let mut lanes = std::mem::take(&mut self.registers[to.index()]);
        compute(&self.registers, &mut lanes);
        self.registers[to.index()] = lanes;
    }

    #[inline]
    pub(super) fn binary(
        &mut self,
        op: Binary,
        kind: Kind,
        target: Reg,
        (a, b): (Reg, Reg),
    ) -> Result<(), Fault> {
        if op.divides() {
            self.no_zero(b)?;
        }
        self.set(target, |regs, to| {
            // A loop's index is its own operand.
            if a == target {
                let before = to.to_vec();
                value::binary(op, kind, to, &before, &regs[b.index()]);
            } else {
                value::binary(op, kind, to, &regs[a.index()], &regs[b.index()]);
            }
        });
        if kind == Kind::Index32 {
            self.fits(target)?;
        }
        Ok(())
    }

    #[inline]
    pub(super) fn select(&mut self, to: Reg, condition: Reg, (a, b): (Reg, Reg)) {
        self.set(to, |regs, to| {
            let sides = regs[a.index()].iter().zip(&regs[b.index()]);
            for ((to, condition), (a, b)) in to.iter_mut().zip(&regs[condition.index()]).zip(sides)
            {
                *to = if *condition != 0 { *a } else { *b };
            }
        });
    }

    /// Copies a register where threads are active.
    #[inline]
    pub(super) fn copy(&mut self, to: Reg, from: Reg) {
        let mask = self.mask;
        let full = mask.count() == self.threads;
        self.set(to, |regs, to| {
            let from = &regs[from.index()];
            if full {
                to.copy_from_slice(from);
            } else {
                mask.lanes().for_each(|lane| to[lane] = from[lane]);
            }
        });
    }

    /// Moves bases on by bytes, each within its buffer.
    #[inline]
    pub(super) fn advance(&mut self, to: Reg, base: Reg, bytes: Reg) {
        const BYTES: u64 = (1 << BYTE_BITS) - 1;
        self.set(to, |regs, to| {
            for ((to, base), bytes) in
                to.iter_mut().zip(&regs[base.index()]).zip(&regs[bytes.index()])
            {
                *to = base & !BYTES | base.wrapping_add(*bytes) & BYTES;
            }
        });
    }

    #[inline]
    fn no_zero(&self, divisor: Reg) -> Result<(), Fault> {
        let lanes = &self.registers[divisor.index()];
        match self.mask.lanes().find(|lane| lanes[*lane] == 0) {
            Some(lane) if self.ghost.is_none() => {
                Err(self.fault(Problem::DivisionByZero, lane, String::new()))
            }
            _ => Ok(()),
        }
    }

    #[inline]
    pub(super) fn fits(&self, reg: Reg) -> Result<(), Fault> {
        let lanes = &self.registers[reg.index()];
        let beyond = |value: u64| value as i64 != i64::from(value as i32);
        if !lanes.iter().any(|value| beyond(*value)) {
            return Ok(());
        }
        match self.mask.lanes().find(|lane| beyond(lanes[*lane])) {
            Some(lane) if self.ghost.is_none() => {
                let detail = format!("the value is {}", lanes[lane] as i64);
                Err(self.fault(Problem::IndexOverflow, lane, detail))
            }
            _ => Ok(()),
        }
    }
}
