//! The iteration space of a kernel's accesses to global memory: the loops and branches around them,
//! and the integers that bounds and conditions need. All other operations are left out, or count as
//! costs.
//!
//! `global_traffic.rs` counts its points.

mod places;
mod slice;

use super::lane_values::Binary;
use super::operation_cost::{Cost, Costs};
use stencil_dialects::mlir::Op;

/// A place for an integer of each thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(pub usize);

/// A number of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// Its number in the block along an axis.
    Thread(usize),
    /// Its block's number along an axis.
    Block(usize),
    /// The blocks along an axis.
    Blocks(usize),
    /// The threads of a block along an axis.
    Threads(usize),
    /// Its lane in the warp.
    Lane,
    /// Its warp in the block.
    Warp,
}

/// Bytes that a thread asks global memory for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Of loads.
    pub loaded: u64,
    /// Of stores.
    pub stored: u64,
}

/// The operations of a region that matter.
#[derive(Clone, Debug, Default)]
pub struct Body {
    /// What a thread moves each time that it runs the region, without branches and loops in it.
    pub moved: Moved,
    /// What the same costs; nothing where the accesses alone are of interest.
    pub cost: Cost,
    /// Its accesses with their places; none where their bytes alone are of interest.
    pub accesses: Vec<Access>,
    /// The rest, in order.
    pub steps: Vec<Step>,
}

/// An access to an array in global memory.
#[derive(Clone, Debug)]
pub struct Access {
    /// The kernel's argument that is the array, where that can be told.
    pub argument: Option<usize>,
    /// Whether it stores.
    pub is_store: bool,
    /// Bytes of an element.
    pub element: u64,
    /// The first element, counted from the one that the indices lead to.
    pub first: i64,
    /// Elements side by side.
    pub elements: u64,
    /// Its indices, each with the elements from one to the next; none where they can't be told.
    pub indices: Option<Vec<(Place, Stride)>>,
}

/// Elements from an index to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// So many.
    Fixed(i64),
    /// An integer of the kernel's.
    Open(Place),
}

/// Something that a thread computes, or that decides which accesses it makes.
#[derive(Clone, Debug)]
pub enum Step {
    /// A constant.
    Constant(Place, i64),
    /// A number of the thread.
    Position(Place, Position),
    /// The same integer.
    Same(Place, Place),
    /// A function of two integers.
    Binary(Place, Binary, [Place; 2]),
    /// The second integer where the first is not 0, else the third.
    Select(Place, [Place; 3]),
    /// A branch.
    Branch(Branch),
    /// A loop.
    Loop(Loop),
}

/// `scf.if`.
#[derive(Clone, Debug)]
pub struct Branch {
    /// Not 0 where the first side runs.
    pub condition: Place,
    /// Both sides.
    pub sides: [Body; 2],
    /// Results that are needed, each with its value on both sides.
    pub results: Vec<(Place, [Place; 2])>,
}

/// `scf.for`.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The first number, the end, and the step.
    pub bounds: [Place; 3],
    /// The number of the iteration, where the body needs it.
    pub counter: Option<Place>,
    /// Values that iterations hand on and that are needed.
    pub carried: Vec<Carried>,
    /// The body.
    pub body: Body,
}

/// A value that an iteration hands to the next.
#[derive(Clone, Copy, Debug)]
pub struct Carried {
    /// Inside of the body.
    pub argument: Place,
    /// Before the first iteration.
    pub first: Place,
    /// At the end of an iteration.
    pub next: Place,
    /// After the loop.
    pub result: Place,
}

/// The iteration space of a kernel.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// How many places there are.
    pub places: usize,
    /// The kernel's arguments that are needed, by their numbers.
    pub arguments: Vec<(usize, Place)>,
    /// The kernel's body.
    pub body: Body,
    /// Whether regions have their costs, and loops and branches without accesses are there.
    pub has_costs: bool,
}

/// Reads the iteration space of a kernel's accesses.
pub fn of(kernel: Op) -> Space {
    slice::of(kernel, None)
}

/// Reads the iteration space of all of a kernel's operations, with their costs and the places of
/// its accesses.
pub fn of_work(kernel: Op) -> Space {
    slice::of(kernel, Some(Costs::of(kernel)))
}
