//! Errors of kernels that the simulator finds, by name and place.

use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use stencil_dialects::error::Place;

/// The kind of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Problem {
    /// Two accesses to one cell, one of them a write, with nothing that orders them.
    Race,
    /// A read of a cell that nobody wrote.
    Unwritten,
    /// An access outside a memref or its buffer.
    OutOfBounds,
    /// The address is not a multiple of the alignment that the access needs.
    Misaligned,
    /// A write to a buffer that the launch only reads.
    ReadOnly,
    /// A barrier that not all threads of the block reach.
    DivergentBarrier,
    /// A shuffle that not all threads of the warp reach.
    DivergentShuffle,
    /// Blocks that wait for flags which nobody will signal.
    Deadlock,
    /// An index does not fit its type.
    IndexOverflow,
    /// An integer division by zero.
    DivisionByZero,
    /// A loop whose step is not positive.
    LoopStep,
    /// An assertion of the kernel does not hold.
    Assertion,
    /// More instructions than the limit.
    Runaway,
}

impl Problem {
    fn sentence(self) -> &'static str {
        match self {
            Self::Race => {
                "race: two threads touch one cell, one of them writes, and nothing orders them"
            }
            Self::Unwritten => "read of a cell that nobody wrote",
            Self::OutOfBounds => "access out of bounds",
            Self::Misaligned => "misaligned access",
            Self::ReadOnly => "write to a buffer that this launch only reads",
            Self::DivergentBarrier => "barrier that not all threads of the block reach",
            Self::DivergentShuffle => "shuffle that not all threads of the warp reach",
            Self::Deadlock => "deadlock: blocks wait for flags that nobody will signal",
            Self::IndexOverflow => "index overflow: the value does not fit in a 32-bit index",
            Self::DivisionByZero => "integer division by zero",
            Self::LoopStep => "loop with a step that is not positive",
            Self::Assertion => "assertion of the kernel does not hold",
            Self::Runaway => "the kernel runs on beyond the limit of instructions",
        }
    }
}

/// A source position and the text of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Operation {
    /// `file:line:column`.
    pub place: String,
    /// The operation's text.
    pub text: String,
}

impl Operation {
    /// From a place and a text.
    pub fn new(place: &Place, text: &str) -> Self {
        Self { place: place.to_string(), text: text.to_owned() }
    }
}

/// A thread of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Thread {
    /// The block in x, y, z.
    pub block: [u32; 3],
    /// The thread in its block in x, y, z.
    pub thread: [u32; 3],
}

/// A place in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Address {
    /// The field, or the shared buffer.
    pub buffer: String,
    /// The indices of the access, slowest first.
    pub indices: Vec<i64>,
    /// Bytes from the start of the buffer.
    pub byte: i64,
    /// Bytes of the buffer.
    pub of: u64,
}

/// The other side of a race.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Other {
    /// Who.
    pub thread: Thread,
    /// The operation.
    pub operation: Operation,
    /// Whether it writes.
    pub write: bool,
}

/// A block that waits for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stuck {
    /// The block, in x, y, z.
    pub block: [u32; 3],
    /// The flag.
    pub flag: String,
    /// The value that it waits for.
    pub epoch: i32,
    /// The flag's value.
    pub value: i32,
    /// The stuck block that would signal it later; none where no block ever would.
    pub waits_for: Option<[u32; 3]>,
}

/// An error of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SimulationError {
    /// Its kind.
    pub problem: Problem,
    /// The kernel.
    pub kernel: String,
    /// The operation.
    pub operation: Operation,
    /// The first thread that it happens to.
    pub thread: Thread,
    /// Where in memory.
    pub address: Option<Address>,
    /// The other side of a race.
    pub other: Option<Other>,
    /// Blocks in a deadlock, each waiting for the next.
    pub cycle: Vec<Stuck>,
    /// More, in words.
    pub detail: String,
}

fn triple(values: [u32; 3]) -> String {
    format!("({}, {}, {})", values[0], values[1], values[2])
}

impl Display for Thread {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        write!(formatter, "block {} thread {}", triple(self.block), triple(self.thread))
    }
}

impl Display for Address {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        let indices: Vec<_> = self.indices.iter().map(i64::to_string).collect();
        write!(
            formatter,
            "{}[{}] (byte {} of {})",
            self.buffer,
            indices.join(", "),
            self.byte,
            self.of
        )
    }
}

impl Display for SimulationError {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        writeln!(
            formatter,
            "{}: {} in kernel {}",
            self.operation.place,
            self.problem.sentence(),
            self.kernel
        )?;
        write!(formatter, "  {}\n  {}", self.operation.text, self.thread)?;
        if let Some(address) = &self.address {
            write!(formatter, " at {address}")?;
        }
        if !self.detail.is_empty() {
            write!(formatter, "\n  {}", self.detail)?;
        }
        if let Some(other) = &self.other {
            let what = if other.write { "written" } else { "read" };
            write!(
                formatter,
                "\n  {what} by {} at {}: {}",
                other.thread, other.operation.place, other.operation.text
            )?;
        }
        for stuck in &self.cycle {
            let (block, flag) = (triple(stuck.block), &stuck.flag);
            write!(
                formatter,
                "\n  block {block} waits for {flag} >= {}, which is {}",
                stuck.epoch, stuck.value
            )?;
            match stuck.waits_for {
                Some(next) => write!(formatter, "; block {} would signal it", triple(next))?,
                None => write!(formatter, "; no block will signal it")?,
            }
        }
        Ok(())
    }
}

impl std::error::Error for SimulationError {}
