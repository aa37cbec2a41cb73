//! Limits of a program as a module. They equal the language's, so each accepted program is a valid
//! module. Every verified module compiles within seconds.

/// Run-time sizes of a program.
pub const PARAMS: usize = 100;

/// Scalars of a program.
pub const SCALARS: usize = 100;

/// Fields of a program.
pub const FIELDS: usize = 128;

/// Fields that an apply updates.
pub const UPDATES: usize = 64;

/// Applies of a step.
pub const APPLIES: usize = 128;

/// Repetitions of an apply in a step.
pub const REPETITIONS: i64 = 1024;

/// Repetitions that stand in each other.
pub const REPEATS: usize = 2;

/// Steps between two looks at the condition that ends a run.
pub const EVERY: i64 = 1 << 20;

/// Pieces of one apply.
pub const PIECES: usize = 200;

/// Pieces of a program.
pub const ALL_PIECES: usize = 400;

/// Reads of a piece, added up over all pieces of a program. A read of a field with a boundary rule
/// counts twice.
pub const READS: usize = 1000;

/// Operations of point functions, counted for each piece, and those of a boundary rule for each
/// read of its field. The language's conversions and divisions have up to five operations each.
pub const OPERATIONS: usize = 100_000;

/// Conditions on the sizes.
pub const CHECKS: usize = 500;

/// Cells between a point and a read of a field with a boundary rule: coordinates beyond the grid
/// stay within index range. `passes/src/analysis/index_width.rs` leaves 2^21 cells of room, which
/// this offset and the tile's reach share.
pub const RULE_OFFSET: u64 = 1 << 15;

/// The largest magnitude of constants and factors in bounds: coordinates beyond the grid, and
/// differences of bounds, stay within 64 bits.
pub const GRID_END: i64 = 1 << 60;

/// The largest magnitude of a piece's bounds in a program, empty pieces included. Pieces that
/// passes make of these lie a little further out, and sums of two bounds still fit 64 bits.
pub const PIECE_END: i64 = 1 << 61;

/// Run-time sizes in a bound of a grid or a piece.
pub const BOUND_SIZES: usize = 8;

/// Cells of a grid: fields of more fit no memory.
pub const MOST_CELLS: i64 = 1 << 59;

/// Steps of a run.
pub const STEPS: i64 = 1 << 48;
