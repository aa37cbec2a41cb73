//! A kernel as the simulator executes it: a flat list of instructions over registers.
//!
//! A register holds one 64-bit value per thread of a block. Vectors are taken apart into one
//! register an element; a memref is a base register and operands for its offset, sizes and strides.
//! Control flow is structured: instructions push and pop masks of active threads.

use crate::value::{Binary, Cast, Kind, Predicate, Unary};
use cranelift_entity::{PrimaryMap, entity_impl};
use stencil_dialects::error::Place;

/// A register: one value per thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg(u32);
entity_impl!(Reg, "r");

/// An operation of the kernel that can fail or is counted by name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site(u32);
entity_impl!(Site, "site");

/// A group of operations that are counted together: an apply, or the rest of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Group(u32);
entity_impl!(Group, "group");

/// A constant, or a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// The same for all threads.
    Constant(i64),
    /// One value a thread.
    Register(Reg),
}

/// The source of a register's value before a block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// A constant.
    Constant(u64),
    /// The argument of this place: a number, or the base of a buffer.
    Argument(usize),
    /// The base of a static shared buffer.
    Shared(usize),
    /// The base of the dynamic shared buffer.
    DynamicShared,
    /// Position of the thread in its block (0 is x).
    Thread(usize),
    /// Position of the block in the grid.
    Block(usize),
    /// Threads of a block.
    BlockSize(usize),
    /// Blocks of the grid.
    GridSize(usize),
    /// Position of the thread in its warp.
    Lane,
    /// Warp in the block.
    Warp,
}

/// One dimension of an access.
#[derive(Clone, Copy, Debug)]
pub struct Dimension {
    /// The index.
    pub index: Reg,
    /// Extent of the memref.
    pub size: Operand,
    /// Distance of neighbours, in elements.
    pub stride: Operand,
}

/// Where a load or store goes.
#[derive(Clone, Debug)]
pub struct Access {
    /// Base of the buffer.
    pub base: Reg,
    /// Offset of the memref's first element, in elements.
    pub offset: Operand,
    /// Dimensions, slowest first.
    pub dimensions: Box<[Dimension]>,
    /// Type of an element.
    pub element: Kind,
    /// Elements per thread, contiguous.
    pub count: u32,
    /// The address must be a multiple of this many bytes.
    pub alignment: u64,
    /// Bytes that one machine access moves per thread: the whole vector where it is known to be
    /// aligned.
    pub width: u64,
    /// The address is 32 bits wide: an offset beyond is an error.
    pub narrow: bool,
}

/// How a shuffle finds the lane it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shuffle {
    /// `lane ^ offset`
    Xor,
    /// `lane - offset`
    Up,
    /// `lane + offset`
    Down,
    /// `offset`
    Index,
}

/// One instruction.
#[derive(Clone, Debug)]
pub enum Instr {
    /// `to = op a`
    Unary { op: Unary, kind: Kind, to: Reg, a: Reg },
    /// `to = a op b`
    Binary { op: Binary, kind: Kind, to: Reg, a: Reg, b: Reg },
    /// `to = a * b + c`, rounded once; `a` and `c` may be negated.
    Fma { kind: Kind, to: Reg, a: Reg, b: Reg, c: Reg, negate_product: bool, negate_addend: bool },
    /// `to = a predicate b`
    Compare { predicate: Predicate, kind: Kind, to: Reg, a: Reg, b: Reg },
    /// `to = condition ? a : b`
    Select { to: Reg, condition: Reg, a: Reg, b: Reg },
    /// `to = cast a`
    Cast { cast: Cast, from: Kind, into: Kind, to: Reg, a: Reg },
    /// `to = a` for active threads.
    Move { to: Reg, from: Reg },
    /// `to = a` moved on by bytes.
    Advance { to: Reg, base: Reg, bytes: Reg },
    /// Reads one register an element.
    Load { to: Box<[Reg]>, access: Box<Access> },
    /// Asks a cache for an element, which changes nothing that a thread can see.
    Prefetch { access: Box<Access> },
    /// Writes one register an element.
    Store { from: Box<[Reg]>, access: Box<Access> },
    /// Starts copies from global to shared memory, which may be read only after a wait. Threads
    /// read `valid` elements where it is given and fill the rest with zeros.
    CopyAsync { from: Box<Access>, to: Box<Access>, valid: Option<Reg> },
    /// Ends a group of copies.
    CopyGroup,
    /// Waits until at most so many groups are under way.
    CopyWait { groups: u32 },
    /// All threads of the block meet.
    Barrier,
    /// Exchange within a warp.
    Shuffle { mode: Shuffle, to: Reg, valid: Reg, value: Reg, offset: Reg, width: Reg },
    /// Stores an epoch with release ordering.
    Signal { access: Box<Access>, epoch: Reg },
    /// Adds a count with release ordering; gives what was there before.
    Arrive { access: Box<Access>, count: Reg, to: Reg },
    /// Waits for an epoch with acquire ordering.
    Wait { access: Box<Access>, epoch: Reg },
    /// Saves the mask.
    Push,
    /// Restores the mask.
    Pop,
    /// Saves the mask and that of the threads for which the condition is false; goes on with those
    /// for which it is true, or at `otherwise` if there are none.
    If { condition: Reg, otherwise: usize },
    /// Goes on with the threads for which the condition was false, or at `end` if there are none.
    Else { end: usize },
    /// Keeps the threads with `index < bound`; goes to `exit` if none is left.
    While { index: Reg, bound: Reg, unsigned: bool, exit: usize },
    /// Keeps the threads for which the condition is true; goes to `exit` if none is left.
    Keep { condition: Reg, exit: usize },
    /// The step of a loop must be positive.
    CheckStep { step: Reg },
    /// Goes on elsewhere.
    Jump { to: usize },
    /// A condition that must hold.
    Assert { condition: Reg },
    /// The end of the kernel.
    Return,
}

/// The counter of a floating-point operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flop {
    /// Not counted: no arithmetic, or the product of a contracted pair.
    None,
    /// Addition or subtraction.
    Add,
    /// Multiplication.
    Mul,
    /// `a * b + c` in one operation.
    Fma,
    /// Division.
    Div,
    /// Square root, also of the reciprocal.
    Sqrt,
    /// Exponential, logarithm, trigonometric and the like.
    Special,
}

/// The origin of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Origin {
    /// The operation.
    pub site: Site,
    /// Its counter.
    pub flop: Flop,
}

/// An operation of the kernel.
#[derive(Clone, Debug)]
pub struct SiteInfo {
    /// Where it stands in the source.
    pub place: Place,
    /// Its text.
    pub text: String,
    /// The group that it is counted with.
    pub group: Group,
    /// Whether one execution stands for one evaluation of the group's function.
    pub root: bool,
}

/// A group of operations.
#[derive(Clone, Debug)]
pub struct GroupInfo {
    /// Name of the point function; empty for the rest of the kernel.
    pub name: String,
}

/// How a buffer is used by a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Usage {
    /// Never written.
    Read,
    /// Updated in place.
    ReadWrite,
    /// Its old content is gone.
    Write,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A buffer.
    Buffer {
        /// The field.
        name: String,
        /// How it is used.
        usage: Usage,
        /// Type of a cell.
        element: Kind,
    },
    /// A number.
    Number {
        /// Name of the size or scalar; `step` for the step number.
        name: String,
        /// Its type.
        kind: Kind,
    },
}

/// A kernel ready to run.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// The instructions.
    pub code: Vec<Instr>,
    /// Where each instruction came from.
    pub origins: Vec<Origin>,
    /// Number of registers.
    pub registers: usize,
    /// Registers that are filled before a block begins.
    pub inputs: Vec<(Input, Reg)>,
    /// The arguments.
    pub parameters: Vec<Parameter>,
    /// Names of its variables in constant memory, with the types of their cells. Their bases
    /// follow the arguments.
    pub constants: Vec<(String, Kind)>,
    /// Names and bytes of the static shared buffers.
    pub shared: Vec<(String, u64)>,
    /// Bytes of the dynamic shared buffer.
    pub dynamic_shared: u64,
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    /// Lanes of a warp: 32, or 64.
    pub warp: usize,
    /// Operations.
    pub sites: PrimaryMap<Site, SiteInfo>,
    /// Groups.
    pub groups: PrimaryMap<Group, GroupInfo>,
    /// Whether blocks wait for each other.
    pub peer: bool,
    /// Steps that a launch takes.
    pub steps: i64,
}

impl Kernel {
    /// Bytes of the smallest number that it keeps in memory, from 1 to 4.
    pub fn word(&self) -> usize {
        let sizes = self.code.iter().filter_map(|instr| match instr {
            Instr::Load { access, .. } | Instr::Store { access, .. } => {
                Some(access.element.bytes())
            }
            _ => None,
        });
        sizes.fold(4, |least, bytes| least.min(bytes as usize))
    }

    /// Threads of a block.
    pub fn threads(&self) -> usize {
        self.block.iter().map(|extent| *extent as usize).product()
    }
}
