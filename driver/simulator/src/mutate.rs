//! Plants errors in correct kernels, to prove that the simulator finds them.
//!
//! A [`Mutation`] changes the IR of a gpu-level module in one place, as a wrong lowering would: a
//! barrier is left out, a halo is one cell too small, a signal is forgotten. Each is a small edit
//! of the operation that [`Mutation::plant`] finds, counted in the order of the text.

mod editor;
mod kernel;
mod peers;

use editor::{Editor, LOADS, STORES, swap, swap_indices};
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;

/// Which memory an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// A field's buffer.
    Global,
    /// A shared buffer.
    Shared,
}

/// How a block uses a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// It tells the others.
    Signal,
    /// It waits for another.
    Wait,
    /// It adds to a counter for which all wait.
    Arrive,
}

/// An error to plant; numbers count operations of their kind from 0, from the end where negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Leaves out a barrier.
    DropBarrier(isize),
    /// Only some threads reach a barrier.
    DivergentBarrier(isize),
    /// A loop over cells ends early: the region is smaller than the next apply needs.
    ShrinkLoop(isize),
    /// A loop over cells runs on.
    GrowLoop(isize),
    /// A loop takes every second round only.
    DoubleStep(isize),
    /// The last two indices of a load are exchanged.
    SwapLoadIndices(Space, isize),
    /// The last two indices of a store are exchanged.
    SwapStoreIndices(Space, isize),
    /// A load reads the next cell.
    ShiftLoad(Space, isize),
    /// A store writes the next cell.
    ShiftStore(Space, isize),
    /// A store is left out.
    DropStore(Space, isize),
    /// The condition around some operations is always true.
    OpenGuard(isize),
    /// The condition around some operations is always false.
    CloseGuard(isize),
    /// A kernel goes on where the condition of the run holds.
    ForgetCondition(isize),
    /// The distance of rows in a buffer is one too small.
    WrongPitch(isize),
    /// The kernel reads the buffer that it writes.
    ReadOutput,
    /// The kernel writes the buffer that it reads.
    WriteInput,
    /// Two shared buffers become one.
    AliasShared,
    /// The launch has a block too few.
    ShortGrid,
    /// A factor of an index is one too small: a pitch of tiles, of rows, of times.
    ShortFactor(isize),
    /// A term of an index is one too large.
    ShiftTerm(isize),
    /// A comparison takes its limit in, or leaves it out.
    WrongLimit(isize),
    /// A choice between two values takes the other one.
    SwapSelect(isize),
    /// A loop over cells begins late.
    LateLoop(isize),
    /// A loop carries an old value on in place of a new one.
    StaleCarry(isize, usize),
    /// A mask of slots has half of its values, so that two share one.
    NarrowMask(isize),
    /// Thread numbers of x and y are exchanged.
    SwapThreads,
    /// A lane keeps its own value where it takes another's.
    DropShuffle(isize),
    /// A lane takes the value of the next lane but one.
    ShiftLane(isize),
    /// A prefetch is left out.
    DropPrefetch(isize),
    /// A prefetch is for another row.
    ShiftPrefetch(isize, i64),
    /// The plan knows a row of blocks too few.
    ShortRows,
    /// The plan believes that tiles read a row of blocks less far.
    ShortReach,
    /// A kernel in bands begins at another row.
    ShiftRows(i64),
    /// The plan launches a kernel a turn less.
    ShortTurns,
    /// A launch takes another turn for its own.
    ShiftTurn(i64),
    /// A signal, a wait or an arrival is left out.
    DropPeer(Peer, isize),
    /// A signal is a plain store.
    WeakenSignal(isize),
    /// A plain load before a wait decides whether to wait.
    WeakenWait(isize),
    /// An arrival is a plain load and a plain store.
    WeakenArrive(isize),
    /// A signal, a wait or an arrival is for another flag.
    ShiftFlag(Peer, isize, i64),
    /// Two neighbours' flags are exchanged in a signal, a wait or an arrival.
    SwapFlags(Peer, isize),
    /// A signal, a wait or an arrival has another count.
    ShiftEpoch(Peer, isize, i64),
    /// An epoch counts from zero in each launch.
    ForgetEpoch(Peer, isize),
}

impl Mutation {
    /// Plants the error; false where the module has no such place.
    pub fn plant<'c>(self, context: &'c Context, module: &Module<'c>) -> Result<bool, Error> {
        let editor = Editor { context, all: mlir::walk(mlir::module_op(module)) };
        Ok(editor.plant(self)?.is_some())
    }
}

type Planted = Result<Option<()>, Error>;

impl Editor<'_> {
    fn plant(&self, mutation: Mutation) -> Planted {
        match mutation {
            Mutation::DropBarrier(place) => self.erase(self.nth("gpu.barrier", place)),
            Mutation::DivergentBarrier(place) => self.diverge(place),
            Mutation::SwapLoadIndices(space, place) => {
                Ok(self.access(LOADS, space, place).and_then(|op| swap_indices(op, 1)))
            }
            Mutation::SwapStoreIndices(space, place) => {
                Ok(self.access(STORES, space, place).and_then(|op| swap_indices(op, 2)))
            }
            Mutation::ShiftLoad(space, place) => {
                self.shift_last(self.access(LOADS, space, place), 1)
            }
            Mutation::ShiftStore(space, place) => {
                self.shift_last(self.access(STORES, space, place), 1)
            }
            Mutation::DropStore(space, place) => self.erase(self.access(STORES, space, place)),
            Mutation::OpenGuard(place) => self.guard(place, true),
            Mutation::CloseGuard(place) => self.guard(place, false),
            Mutation::ForgetCondition(place) => self.forget_condition(place),
            Mutation::WrongPitch(place) => {
                self.shift_last(self.nth("memref.reinterpret_cast", place), -1)
            }
            Mutation::ReadOutput => Ok(self
                .buffers("read", "write")
                .map(|(read, write)| mlir::replace_uses(read, write))),
            Mutation::WriteInput => Ok(self
                .buffers("write", "read")
                .map(|(write, read)| mlir::replace_uses(write, read))),
            Mutation::AliasShared => self.alias(),
            Mutation::SwapThreads => Ok(self.swap_threads()),
            Mutation::DropShuffle(place) => Ok(self.bypass(self.nth("gpu.shuffle", place), 0)),
            Mutation::ShiftLane(place) => self.shift_operand(self.nth("gpu.shuffle", place), 1, 1),
            Mutation::DropPrefetch(place) => self.erase(self.nth("memref.prefetch", place)),
            Mutation::ShiftPrefetch(place, by) => {
                self.shift_operand(self.nth("memref.prefetch", place), 1, by)
            }
            other => self.plant_number(other),
        }
    }

    /// Errors in loops, indices and counts.
    fn plant_number(&self, mutation: Mutation) -> Planted {
        match mutation {
            Mutation::ShrinkLoop(place) => self.shift_operand(self.nth("scf.for", place), 1, -1),
            Mutation::GrowLoop(place) => self.shift_operand(self.nth("scf.for", place), 1, 1),
            Mutation::LateLoop(place) => self.shift_operand(self.nth("scf.for", place), 0, 1),
            Mutation::DoubleStep(place) => self.double_step(place),
            Mutation::StaleCarry(place, value) => Ok(self.stale(place, value)),
            Mutation::ShortFactor(place) => {
                self.shift_operand(self.nth_index("arith.muli", place), 1, -1)
            }
            Mutation::ShiftTerm(place) => {
                self.shift_operand(self.nth_index("arith.addi", place), 1, 1)
            }
            Mutation::WrongLimit(place) => Ok(self.wrong_limit(place)),
            Mutation::SwapSelect(place) => {
                Ok(self.nth("arith.select", place).and_then(|op| swap(op, (1, 2))))
            }
            Mutation::NarrowMask(place) => self.narrow(place),
            Mutation::ShortGrid => Ok(self.less("tiled.grid")),
            Mutation::ShortRows => Ok(self.less("tiled.rows")),
            Mutation::ShortReach => Ok(self.short_reach()),
            Mutation::ShortTurns => Ok(self.less("tiled.turns")),
            Mutation::ShiftRows(by) => self.shift_bound("row", by),
            Mutation::ShiftTurn(by) => self.shift_bound("turn", by),
            other => self.plant_peer(other),
        }
    }

    /// Errors in how blocks wait for each other.
    fn plant_peer(&self, mutation: Mutation) -> Planted {
        match mutation {
            Mutation::DropPeer(peer, place) => self.drop_peer(peer, place),
            Mutation::WeakenSignal(place) => self.weaken_signal(place),
            Mutation::WeakenWait(place) => self.weaken_wait(place),
            Mutation::WeakenArrive(place) => self.weaken_arrive(place),
            Mutation::SwapFlags(peer, place) => self.swap_flags(peer, place),
            Mutation::ShiftFlag(peer, place, by) => {
                self.shift_operand(self.peer(peer, place), 1, by)
            }
            Mutation::ShiftEpoch(peer, place, by) => {
                self.shift_operand(self.peer(peer, place), 2, by)
            }
            Mutation::ForgetEpoch(peer, place) => Ok(self.forget_epoch(peer, place)),
            _ => Ok(None),
        }
    }
}
