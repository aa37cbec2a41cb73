//! The levels of a compile, by name.

use crate::failure::Failure;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// A level that a compile can stop at and give as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The syntax tree.
    Ast,
    /// The stencil dialect.
    Stencil,
    /// The tiled dialect.
    Tiled,
    /// Kernels in upstream's gpu dialect.
    Gpu,
    /// Kernels in the LLVM and NVVM dialects.
    Nvvm,
    /// Optimised LLVM IR.
    Llvm,
    /// PTX.
    Ptx,
    /// Assembly of a processor.
    Asm,
    /// The launch plan, JSON.
    Plan,
}

impl Level {
    /// All levels, in the order of a compile.
    pub const ALL: [Self; 9] = [
        Self::Ast,
        Self::Stencil,
        Self::Tiled,
        Self::Gpu,
        Self::Nvvm,
        Self::Llvm,
        Self::Ptx,
        Self::Asm,
        Self::Plan,
    ];

    /// Its name, as `--emit` takes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ast => "ast",
            Self::Stencil => "stencil",
            Self::Tiled => "tiled",
            Self::Gpu => "gpu",
            Self::Nvvm => "nvvm",
            Self::Llvm => "llvm",
            Self::Ptx => "ptx",
            Self::Asm => "asm",
            Self::Plan => "plan",
        }
    }

    /// What its text is, in a few words.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Ast => "The syntax tree",
            Self::Stencil => "The stencil dialect",
            Self::Tiled => "The tiled dialect",
            Self::Gpu => "Kernels in upstream's gpu dialect",
            Self::Nvvm => "Kernels in the LLVM and NVVM dialects",
            Self::Llvm => "Optimised LLVM IR",
            Self::Ptx => "PTX",
            Self::Asm => "Assembly of a processor or of a GPU of AMD's",
            Self::Plan => "The launch plan, JSON",
        }
    }

    /// The extension of a file that holds it.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Ast => "stencil",
            Self::Stencil => "stencil.mlir",
            Self::Tiled => "tiled.mlir",
            Self::Gpu => "gpu.mlir",
            Self::Nvvm => "nvvm.mlir",
            Self::Llvm => "ll",
            Self::Ptx => "ptx",
            Self::Asm => "s",
            Self::Plan => "plan.json",
        }
    }
}

/// Reads a level's name.
impl FromStr for Level {
    type Err = Failure;

    fn from_str(name: &str) -> Result<Self, Failure> {
        Self::ALL.into_iter().find(|level| level.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Failure::user(format!("there is no level '{name}'; there are {names}"))
        })
    }
}

impl Display for Level {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
