//! A run as a list of actions in order: launches, each with its grid, its arguments and its step,
//! and what happens between launches.
//!
//! The rotations of earlier launches decide which memory a buffer's name stands for. An iterator
//! carries that state, so a target only launches and copies.
//! `launch/prepare.rs` evaluates the schedule once; `launch/walk.rs` goes through it.

mod prepare;
#[cfg(test)]
pub(crate) mod tests;
mod walk;

use crate::bind::BufferId;
use crate::expr::ExprError;
use crate::number::Number;
use crate::plan::{self, Argument, Kernel, Relation};
pub(crate) use prepare::grid_of;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;
pub use walk::{Iterations, Launches};

/// Why a run is impossible.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LaunchError {
    /// More blocks than a launch can have.
    #[error(
        "kernel `{kernel}` would be launched with {grid:?} blocks, more than a device takes; use \
         smaller sizes or larger tiles"
    )]
    Grid {
        /// The kernel.
        kernel: String,
        /// Blocks in x, y, z.
        grid: [i64; 3],
    },
    /// A size does not fit the kernel's argument.
    #[error(
        "size overflow: `{name}` = {value} does not fit in the 32-bit argument of kernel \
         `{kernel}`; use smaller sizes"
    )]
    Argument {
        /// The kernel.
        kernel: String,
        /// The size.
        name: String,
        /// Its value.
        value: i64,
    },
    /// The plan's schedule is not valid.
    #[error("the plan of {program} is not valid: {message}; compile the program again")]
    Schedule {
        /// The program.
        program: String,
        /// The fault.
        message: String,
    },
    /// The launches with flags are more than an epoch can count.
    #[error(
        "the run has {epochs} launches whose blocks wait for each other, and a run takes at most \
         {}; run fewer steps at a time",
        i32::MAX
    )]
    Epochs {
        /// Launches.
        epochs: i128,
    },
    /// A kernel is launched once for each diagonal of tiles, and there are too many.
    #[error(
        "kernel `{kernel}` needs {turns} launches, one for each diagonal of tiles; use wider \
         tiles, or compile with peer-sync or grid-sync"
    )]
    Turns {
        /// The kernel.
        kernel: String,
        /// Launches.
        turns: i64,
    },
    /// Parts of a field have too few rows for an exchange.
    #[error(
        "the parts of field `{field}` can't exchange {depth} rows: {message}; use larger sizes or \
         fewer parts"
    )]
    Exchange {
        /// The field.
        field: String,
        /// Rows to exchange.
        depth: u32,
        /// The reason.
        message: String,
    },
    /// An expression of the plan has no value.
    #[error(transparent)]
    Expr(#[from] ExprError),
}

/// Something to do in a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Action<'p> {
    /// Launches a kernel.
    Launch(Launch<'p>),
    /// Copies rows from buffer to buffer, after the launches before and before those that follow.
    Exchange(Vec<Copy>),
    /// Hands over the current value of a field, by place in [`crate::plan::Plan::fields`].
    Snapshot(usize),
    /// Compares a value; [`Launches::stop`] ends the loop where the comparison holds.
    Compare(Compare),
}

/// One launch of a kernel, with all its arguments known.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch<'p> {
    /// The kernel.
    pub kernel: &'p Kernel,
    /// Its place in [`crate::plan::Plan::kernels`].
    pub index: usize,
    /// The launch in the plan: whether it is cooperative, its clusters, its device.
    pub node: &'p plan::Launch,
    /// Blocks in x, y, z; none is zero.
    pub grid: [u32; 3],
    /// The number of the first step that it takes, from 0.
    pub step: i64,
    /// Whether it is of a list that is done once and takes no step: it prepares the steps, or
    /// follows them.
    pub apart: bool,
    /// The arguments, in the kernel's order.
    pub arguments: Vec<Value>,
    /// Its rows of blocks, where it may be cut between them.
    pub rows: Option<Rows>,
    /// The numbers of the blocks that run, in ascending order; all of them where there is none.
    pub part: Option<Arc<[Range<u32>]>>,
}

/// The rows of blocks of a launch: see [`crate::plan::Bands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// Those of the kernel's whole grid, at least one.
    pub all: u32,
    /// The first one that is launched.
    pub first: u32,
    /// How many are launched, at least one.
    pub count: u32,
    /// The farthest distance of two rows that share cells.
    pub reach: u32,
}

/// A copy of bytes from one memory to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Where they come from.
    pub from: BufferId,
    /// The first byte there.
    pub from_byte: usize,
    /// Where they go.
    pub to: BufferId,
    /// The first byte there.
    pub to_byte: usize,
    /// How many.
    pub bytes: usize,
}

/// A comparison of the first cell of a buffer with a number of its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Compare {
    /// The buffer.
    pub buffer: BufferId,
    /// How.
    pub is: Relation,
    /// With what.
    pub limit: Number,
    /// Whether launches may be sent before the result is known.
    pub ahead: bool,
}

impl Launch<'_> {
    /// The arguments that are buffers, by their places.
    pub fn buffers(&self) -> impl Iterator<Item = (usize, BufferId)> {
        let arguments = self.arguments.iter().enumerate();
        arguments.filter_map(|(place, value)| match value {
            Value::Buffer(buffer) => Some((place, *buffer)),
            Value::Number(_) => None,
        })
    }

    /// The numbers of its blocks in x, as ranges in ascending order.
    pub fn blocks(&self) -> Vec<Range<u32>> {
        let [all, ..] = self.grid;
        self.part.as_deref().map_or_else(|| std::iter::once(0..all).collect(), <[_]>::to_vec)
    }

    /// The launch of some rows alone, which may be cut into bands; the whole where it has none.
    pub fn some_rows(&self, own: &Range<u32>) -> Self {
        let rows =
            self.rows.map(|rows| Rows { first: own.start, count: own.end - own.start, ..rows });
        Self { rows, ..self.band(own) }
    }

    /// The launch of some rows alone; the whole where it has none.
    pub fn band(&self, band: &Range<u32>) -> Self {
        let mut launch = self.clone();
        let Some(rows) = self.rows else { return launch };
        let [blocks, ..] = &mut launch.grid;
        *blocks = *blocks / rows.count * (band.end - band.start);
        launch.begin_at(&Argument::Row, band.start);
        launch
    }

    /// The launch of the blocks of some numbers alone; none where its kernel does not take the
    /// number of the first one.
    pub fn numbered(&self, numbers: &Range<u32>) -> Option<Self> {
        if !self.node.arguments.contains(&Argument::FirstBlock) {
            return None;
        }
        let mut launch = Self { rows: None, part: None, ..self.clone() };
        let [blocks, ..] = &mut launch.grid;
        *blocks = numbers.end - numbers.start;
        launch.begin_at(&Argument::FirstBlock, numbers.start);
        Some(launch)
    }

    /// Gives arguments of a kind a value: a number of blocks, of which there are at most 2^31 - 1.
    fn begin_at(&mut self, kind: &Argument, first: u32) {
        for (argument, value) in self.node.arguments.iter().zip(&mut self.arguments) {
            if let (true, Value::Number(number)) = (argument == kind, value) {
                *number = match number {
                    Number::I64(_) => Number::I64(first.into()),
                    _ => Number::I32(first.cast_signed()),
                };
            }
        }
    }
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// The address of a buffer's memory.
    Buffer(BufferId),
    /// A number.
    Number(Number),
}
