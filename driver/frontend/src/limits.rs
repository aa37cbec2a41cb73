//! The limits of the language: what is beyond one is refused with it, so that every accepted
//! program compiles within seconds. `docs/language.md` has them in a table.

/// Bytes of a source.
pub const TEXT: usize = 1 << 20;

/// Characters of a name.
pub const NAME: usize = 100;

/// How deep brackets, prefix operators and `if`s may be nested.
pub const NESTING: usize = 150;

/// Terms of a sum, factors of a product, conditions of a chain.
pub const TERMS: usize = 1500;

/// Infix operators of a statement of SL.
pub const SL_OPERATORS: usize = 600;

/// Elements of a local array of SL.
pub const SL_ARRAY: u64 = 256;

/// Iterations of all loops of a block of SL together.
pub const SL_ITERATIONS: usize = 4096;

/// How deep the tree of an expression may be. A sum of `n` terms is `n - 1` deeper than a term.
pub const DEPTH: usize = 1600;

/// Params of a program.
pub const PARAMS: usize = 100;

/// Scalars of a program.
pub const SCALARS: usize = 100;

/// Numbers in the cells of all fields of a program.
pub const FIELDS: usize = 128;

/// Numbers of one cell, and of all cells that a function updates at a point.
pub const CELL: usize = 64;

/// Structs inside each other.
pub const STRUCTS: usize = stencil_runtime::npy::MOST_STRUCTS;

/// Characters of a struct's type in the header of an `.npy` file.
pub const DESCRIPTION: usize = stencil_runtime::npy::MOST_DESCRIPTION;

/// Functions and reductions of a program.
pub const FUNCTIONS: usize = 128;

/// Steps between two looks at the condition of `until`.
pub const EVERY: i64 = 1 << 20;

/// Repetitions of functions in a step.
pub const REPETITIONS: i64 = 1024;

/// `repeat`s that stand in each other.
pub const REPEATS: usize = 2;

/// Functions by `let` of a program.
pub const LETS: usize = 128;

/// How deep the bodies of calls within each other may be together.
pub const CALL_DEPTH: usize = 400;

/// Pieces of one function.
pub const PIECES: usize = 200;

/// Pieces of a program.
pub const ALL_PIECES: usize = 400;

/// Operations, reads and literals of a program, with structs and vecs taken apart. A boundary rule
/// counts at each read that may need it.
pub const OPERATIONS: usize = 10_000;

/// Different reads of a piece at offsets, added up over all pieces of a program. A read of a field
/// with a boundary rule counts twice.
pub const READS: usize = 1000;

/// Conditions on the sizes that a run checks.
pub const CHECKS: usize = 500;

/// Cells between a point and a read.
pub const OFFSET: u64 = 1 << 20;

/// Cells between a point and a read of a field with a boundary rule: coordinates beyond the grid
/// must fit an index.
pub const RULE_OFFSET: u64 = 1 << 15;

/// The largest magnitude of a grid's ends, and of the constants and factors of all bounds:
/// coordinates beyond the grid, and differences of bounds, stay within 64 bits.
pub const GRID_END: i64 = 1 << 60;

/// The largest magnitude of a piece's bounds, empty pieces included: sums and differences of bounds
/// stay within 64 bits.
pub const PIECE_END: i64 = 1 << 61;

/// Cells of a field: no memory holds more. Proofs use it, and no program is refused for it.
pub const MOST_CELLS: i64 = 1 << 59;

/// Params in a bound of a grid or a piece.
pub const BOUND_PARAMS: usize = 8;

/// Steps of a run.
pub const STEPS: i64 = stencil_runtime::plan::MOST_STEPS;
