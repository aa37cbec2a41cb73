//! Why a schedule is declined: a code for each reason, so that callers need not read messages.

use std::fmt::{self, Display, Formatter};

/// A reason for which a strategy does not take a program under a schedule. Another schedule may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Decline {
    /// The grid has a number of dimensions that the strategy does not take.
    Rank,
    /// A launch of the strategy, or of these functions, takes one step.
    Height,
    /// The strategy computes no fixed regions.
    Region,
    /// A fixed region needs point functions that have a result for all operands.
    PartialFunction,
    /// The strategy's kernels hold one apply.
    Applies,
    /// A tile reads cells that are too far away.
    FarRead,
    /// The tile does not fit the cells that threads hold.
    TileShape,
    /// A block would have too many threads.
    Threads,
    /// A block would need too much shared memory.
    SharedMemory,
    /// A thread would hold too many cells in registers.
    Registers,
    /// The code of a kernel would be too long.
    CodeSize,
    /// The grid's sizes are too large to count.
    Sizes,
    /// The strategy takes functions that read values of their own sweep, or takes none of them.
    Sweep,
    /// The strategy needs skewed tiles for these functions.
    Skew,
    /// The strategy's blocks wait for each other in another way.
    Sync,
    /// No launches carry the loops of an affine nest out.
    Nest,
    /// The strategy is for another kind of target.
    Target,
}

impl Decline {
    /// Every reason.
    pub const ALL: [Self; 17] = [
        Self::Rank,
        Self::Height,
        Self::Region,
        Self::PartialFunction,
        Self::Applies,
        Self::FarRead,
        Self::TileShape,
        Self::Threads,
        Self::SharedMemory,
        Self::Registers,
        Self::CodeSize,
        Self::Sizes,
        Self::Sweep,
        Self::Skew,
        Self::Sync,
        Self::Nest,
        Self::Target,
    ];

    /// The code, as messages show it.
    pub fn code(self) -> &'static str {
        match self {
            Self::Rank => "rank",
            Self::Height => "height",
            Self::Region => "region",
            Self::PartialFunction => "partial-function",
            Self::Applies => "applies",
            Self::FarRead => "far-read",
            Self::TileShape => "tile-shape",
            Self::Threads => "threads",
            Self::SharedMemory => "shared-memory",
            Self::Registers => "registers",
            Self::CodeSize => "code-size",
            Self::Sizes => "sizes",
            Self::Sweep => "sweep",
            Self::Skew => "skew",
            Self::Sync => "sync",
            Self::Nest => "nest",
            Self::Target => "target",
        }
    }
}

impl Display for Decline {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(self.code())
    }
}
