//! Control flow: which threads go on, and where.

use super::{Block, Fault};
use crate::error::Problem;
use crate::mask::Mask;
use crate::program::Reg;
use cranelift_entity::EntityRef;

impl Block<'_> {
    /// Splits the active threads by a condition; the others wait on the stack for their turn.
    #[inline]
    pub(super) fn branch(&mut self, condition: Reg, otherwise: usize) {
        let taken = self.where_true(condition);
        self.stack.push(self.mask);
        self.stack.push(self.mask.without(&taken));
        self.go_on_with(taken, otherwise);
    }

    /// Makes some threads the active ones, and goes to a place where there are none.
    #[inline]
    pub(super) fn go_on_with(&mut self, mask: Mask, elsewhere: usize) {
        self.mask = mask;
        if mask.is_empty() {
            self.pc = elsewhere;
        }
    }

    /// Keeps the threads whose loop goes on.
    #[inline]
    pub(super) fn keep_below(&mut self, index: Reg, bound: Reg, unsigned: bool, exit: usize) {
        let (index, bound) = (&self.registers[index.index()], &self.registers[bound.index()]);
        let mask = if unsigned {
            self.mask.keep(|lane| index[lane] < bound[lane])
        } else {
            self.mask.keep(|lane| (index[lane] as i64) < bound[lane] as i64)
        };
        self.go_on_with(mask, exit);
    }

    #[inline]
    pub(super) fn check_step(&self, step: Reg) -> Result<(), Fault> {
        let steps = &self.registers[step.index()];
        match self.mask.lanes().find(|lane| steps[*lane] as i64 <= 0) {
            Some(lane) => {
                let detail = format!("the step is {}", steps[lane] as i64);
                Err(self.fault(Problem::LoopStep, lane, detail))
            }
            None => Ok(()),
        }
    }

    #[inline]
    pub(super) fn assert(&self, condition: Reg) -> Result<(), Fault> {
        let holds = self.where_true(condition);
        match self.mask.without(&holds).lanes().next() {
            Some(lane) => Err(self.fault(Problem::Assertion, lane, String::new())),
            None => Ok(()),
        }
    }

    #[inline]
    pub(super) fn where_true(&self, condition: Reg) -> Mask {
        let condition = &self.registers[condition.index()];
        self.mask.keep(|lane| condition[lane] != 0)
    }
}
