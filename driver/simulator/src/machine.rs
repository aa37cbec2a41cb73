//! One block: all its threads in lock step, instruction by instruction.
//!
//! An instruction runs for all threads before the next one does. That order hides no race: races
//! are found in the shadow of the memory, whichever access came first.

mod access;
mod compute;
mod control;
mod fault;
mod meet;

use crate::clock::{Knowledge, Timeline};
use crate::counters::Counters;
use crate::error::{Problem, SimulationError, Thread};
use crate::mask::Mask;
use crate::memory::Memory;
use crate::program::{Input, Instr, Kernel, Operand, Reg, Usage};
use crate::value::{self, Kind};
use cranelift_entity::EntityRef;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bits of a base that hold the byte; the rest is the buffer.
pub const BYTE_BITS: u32 = 40;

/// A buffer of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Global<'a> {
    /// The field.
    pub name: &'a str,
    /// Its memory.
    pub memory: &'a Memory,
    /// Whether the launch may read it, write it, or both.
    pub usage: Usage,
    /// Whether it lies in constant memory, whose accesses move no sectors of global memory.
    pub constant: bool,
}

/// The data that all blocks of a launch share.
#[derive(Debug)]
pub struct Environment<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Arguments: bits of numbers, bases of buffers.
    pub arguments: &'a [u64],
    /// Buffers, by number.
    pub globals: &'a [Global<'a>],
    /// The knowledge that the flags carry.
    pub flags: Mutex<BTreeMap<(usize, usize), Knowledge>>,
    /// Whether several host threads run blocks.
    pub concurrent: bool,
    /// Instructions that a block may execute.
    pub limit: u64,
    /// Set when the run is to end.
    pub cancel: Option<&'a AtomicBool>,
}

impl Environment<'_> {
    /// A block's place in the grid.
    pub fn place(&self, block: u32) -> [u32; 3] {
        let [x, y, _] = self.grid.map(|extent| extent.max(1));
        [block % x, block / x % y, block / x / y]
    }
}

/// Why a block stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It is done.
    Finished,
    /// A flag is still not there.
    Waiting,
    /// It passed a flag, or came to one and may have signalled others on the way; others may go
    /// first.
    Passed,
    /// The run was cancelled.
    Cancelled,
}

/// A flag that a block waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The thread.
    pub lane: usize,
    /// Buffer and word.
    pub flag: (usize, usize),
    /// The least value.
    pub epoch: i32,
}

type Fault = Box<SimulationError>;

/// An asynchronous copy of one word.
#[derive(Clone, Copy, Debug)]
struct Copy {
    lane: usize,
    buffer: usize,
    word: usize,
    value: u32,
}

/// A block while it runs.
#[derive(Debug)]
pub struct Block<'a> {
    environment: &'a Environment<'a>,
    threads: usize,
    pc: usize,
    executed: u64,
    mask: Mask,
    stack: Vec<Mask>,
    registers: Vec<Vec<u64>>,
    shared: Vec<Memory>,
    time: Timeline,
    /// Asynchronous copies that are no group yet, and groups under way.
    copies: Vec<Copy>,
    groups: VecDeque<Vec<Copy>>,
    in_flight: HashSet<(usize, usize)>,
    // The addresses of the current access.
    offsets: Vec<i64>,
    outside: Vec<bool>,
    buffers: Vec<u32>,
    bytes: Vec<u64>,
    /// Set to look ahead: signals are collected, nothing is stored or judged.
    ghost: Option<Vec<((usize, usize), i32)>>,
    /// Counts so far.
    pub counters: Counters,
}

impl<'a> Block<'a> {
    /// A block not yet placed.
    pub fn new(environment: &'a Environment<'a>) -> Self {
        let kernel = environment.kernel;
        let threads = kernel.threads();
        let memory = |bytes: u64| Memory::new(bytes as usize, kernel.word(), true);
        let mut shared: Vec<_> = kernel.shared.iter().map(|(_, bytes)| memory(*bytes)).collect();
        shared.push(memory(kernel.dynamic_shared));
        let mut block = Self {
            environment,
            threads,
            pc: 0,
            executed: 0,
            mask: Mask::first(threads),
            stack: Vec::new(),
            registers: vec![vec![0; threads]; kernel.registers],
            shared,
            time: Timeline::new(0),
            copies: Vec::new(),
            groups: VecDeque::new(),
            in_flight: HashSet::new(),
            offsets: vec![0; threads],
            outside: vec![false; threads],
            buffers: vec![0; threads],
            bytes: vec![0; threads],
            ghost: None,
            counters: Counters::new(kernel),
        };
        for (input, reg) in &kernel.inputs {
            block.fill(*input, *reg, [0; 3]);
        }
        block
    }

    /// Makes this the block of a number, about to begin.
    pub fn place(&mut self, number: u32) {
        let position = self.environment.place(number);
        let kernel = self.environment.kernel;
        for (input, reg) in &kernel.inputs {
            if matches!(input, Input::Block(_)) {
                self.fill(*input, *reg, position);
            }
        }
        for memory in &mut self.shared {
            memory.forget();
        }
        self.time = Timeline::new(number);
        (self.pc, self.executed, self.mask) = (0, 0, Mask::first(self.threads));
        self.stack.clear();
        self.copies.clear();
        self.groups.clear();
        self.in_flight.clear();
        self.counters.blocks += 1;
    }

    fn fill(&mut self, input: Input, reg: Reg, position: [u32; 3]) {
        let kernel = self.environment.kernel;
        let globals = self.environment.globals.len();
        let base = |buffer: usize| ((globals + buffer) as u64) << BYTE_BITS;
        let pick =
            |triple: [u32; 3], axis: usize| u64::from(triple.get(axis).copied().unwrap_or(0));
        for lane in 0..self.threads {
            let value = match input {
                Input::Constant(bits) => bits,
                Input::Argument(place) => {
                    self.environment.arguments.get(place).copied().unwrap_or(0)
                }
                Input::Shared(place) => base(place),
                Input::DynamicShared => base(kernel.shared.len()),
                Input::Thread(axis) => pick(self.thread(lane).thread, axis),
                Input::Block(axis) => pick(position, axis),
                Input::BlockSize(axis) => pick(kernel.block, axis),
                Input::GridSize(axis) => pick(self.environment.grid, axis),
                Input::Lane => (lane % kernel.warp) as u64,
                Input::Warp => (lane / kernel.warp) as u64,
            };
            self.registers[reg.index()][lane] = value;
        }
    }

    fn thread(&self, lane: usize) -> Thread {
        let [x, y, _] = self.environment.kernel.block;
        let lane = lane as u32;
        Thread {
            block: self.environment.place(self.time.block),
            thread: [lane % x, lane / x % y, lane / x / y],
        }
    }

    /// Runs until the block ends or must let others go first.
    pub fn run(&mut self) -> Result<Stop, Fault> {
        let kernel = self.environment.kernel;
        let start = self.pc;
        while let Some(instr) = kernel.code.get(self.pc) {
            let pc = self.pc;
            self.executed += 1;
            if self.executed & 0xfff == 0 {
                if self.environment.cancel.is_some_and(|cancel| cancel.load(Relaxed)) {
                    return Ok(Stop::Cancelled);
                }
                if self.executed > self.environment.limit {
                    return Err(self.fault(
                        Problem::Runaway,
                        0,
                        format!("limit: {} instructions a block", self.environment.limit),
                    ));
                }
            }
            self.counters.threads[pc] += self.mask.count() as u64;
            self.pc += 1;
            match instr {
                Instr::Return => return Ok(Stop::Finished),
                Instr::Wait { access, epoch } => match self.wait(access, *epoch)? {
                    Stop::Waiting => {
                        self.counters.threads[pc] -= self.mask.count() as u64;
                        self.pc = pc;
                        return Ok(if pc == start { Stop::Waiting } else { Stop::Passed });
                    }
                    stop if self.ghost.is_none() => return Ok(stop),
                    _ => {}
                },
                _ => self.step(instr)?,
            }
        }
        Ok(Stop::Finished)
    }

    fn operand(&self, operand: Operand, lane: usize) -> i64 {
        match operand {
            Operand::Constant(value) => value,
            Operand::Register(reg) => self.registers[reg.index()][lane] as i64,
        }
    }

    fn step(&mut self, instr: &Instr) -> Result<(), Fault> {
        match instr {
            Instr::Unary { op, kind, to, a } => {
                self.set(*to, |regs, to| value::unary(*op, *kind, to, &regs[a.index()]))
            }
            Instr::Binary { op, kind, to, a, b } => self.binary(*op, *kind, *to, (*a, *b))?,
            Instr::Fma { kind, to, a, b, c, negate_product, negate_addend } => {
                self.set(*to, |regs, to| {
                    value::fma(
                        *kind,
                        to,
                        (&regs[a.index()], &regs[b.index()], &regs[c.index()]),
                        *negate_product,
                        *negate_addend,
                    );
                })
            }
            Instr::Compare { predicate, kind, to, a, b } => {
                self.set(*to, |regs, to| {
                    value::compare(*predicate, *kind, to, &regs[a.index()], &regs[b.index()])
                });
            }
            Instr::Select { to, condition, a, b } => self.select(*to, *condition, (*a, *b)),
            Instr::Cast { cast, from, into, to, a } => {
                self.set(*to, |regs, to| value::cast(*cast, *from, *into, to, &regs[a.index()]));
                if *into == Kind::Index32 {
                    self.fits(*to)?;
                }
            }
            Instr::Move { to, from } => self.copy(*to, *from),
            Instr::Advance { to, base, bytes } => self.advance(*to, *base, *bytes),
            Instr::Load { to, access } => self.load(to, access)?,
            Instr::Prefetch { access } => self.prefetch(access)?,
            Instr::Store { from, access } => self.store(from, access)?,
            Instr::CopyAsync { from, to, valid } => self.copy_async(from, to, *valid)?,
            Instr::CopyGroup => {
                let group = std::mem::take(&mut self.copies);
                self.groups.push_back(group);
            }
            Instr::CopyWait { groups } => self.copy_wait(*groups as usize)?,
            Instr::Barrier => self.barrier()?,
            Instr::Shuffle { mode, to, valid, value, offset, width } => {
                self.shuffle(*mode, (*to, *valid), (*value, *offset, *width))?
            }
            Instr::Signal { access, epoch } => self.signal(access, *epoch)?,
            Instr::Arrive { access, count, to } => self.arrive(access, *count, *to)?,
            Instr::Push => self.stack.push(self.mask),
            Instr::Pop => self.mask = self.stack.pop().unwrap_or(self.mask),
            Instr::If { condition, otherwise } => self.branch(*condition, *otherwise),
            Instr::Else { end } => {
                let mask = self.stack.pop().unwrap_or(self.mask);
                self.go_on_with(mask, *end);
            }
            Instr::While { index, bound, unsigned, exit } => {
                self.keep_below(*index, *bound, *unsigned, *exit)
            }
            Instr::Keep { condition, exit } => {
                self.go_on_with(self.where_true(*condition), *exit);
            }
            Instr::CheckStep { step } => self.check_step(*step)?,
            Instr::Jump { to } => self.pc = *to,
            Instr::Assert { condition } => self.assert(*condition)?,
            Instr::Wait { .. } | Instr::Return => {}
        }
        Ok(())
    }

    /// The number of the block.
    pub fn number(&self) -> u32 {
        self.time.block
    }
}
