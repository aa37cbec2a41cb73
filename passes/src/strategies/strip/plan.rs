//! The plan of a kernel of strips: its geometry, the values that lanes keep, the shared buffers and
//! the warps.

use super::geometry::{FARTHEST, Geometry, StripShape};
use super::old_values::{self, OldValues};
use super::sequences::{self, Sequence};
use super::windows::{self, Window};
use crate::kernel::lanes::{self, WARP};
use crate::kernel::shared_memory::{resident_blocks, shared_bytes};
use melior::ir::r#type::MemRefType;
use melior::ir::{Module, Type};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Piece, Program};
use stencil_runtime::device::Device;

/// The plan of a kernel.
pub struct Plan<'c> {
    /// How strips lie.
    pub geometry: Geometry,
    /// Values in registers.
    pub windows: Vec<Window<'c>>,
    /// Old values in shared memory.
    pub old: Vec<OldValues<'c>>,
    /// Sequences in shared memory.
    pub sequences: Vec<Sequence<'c>>,
    /// The fields whose new values warps store.
    pub stored: Vec<&'c str>,
    /// The roles of a block's warps.
    pub warps: Warps,
    /// Cells per dimension and the type of each shared buffer: rings, old values, sequences,
    /// results.
    pub buffers: Vec<(Vec<i64>, Type<'c>)>,
}

/// The roles of a block's warps, by number: some compute, some store, some load. The last ones look
/// after the blocks above and below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warps {
    /// Strips, with a warp each.
    pub strips: i64,
    /// Warps that load old values and sequences, for each strip.
    pub loaders: i64,
    /// Whether a warp waits for the sweep before.
    pub before: bool,
}

impl Warps {
    /// The first role that loads old values and sequences.
    pub fn loading(&self) -> i64 {
        2 * self.strips
    }

    /// The role that loads values of the block above.
    pub fn above(&self) -> i64 {
        self.loading() + self.loaders * self.strips
    }

    /// The role that signals to the block below.
    pub fn below(&self) -> i64 {
        self.above() + 1
    }

    /// The role that waits for the sweep before.
    pub fn before(&self) -> i64 {
        self.below() + 1
    }

    /// The role of each warp; one more than all for a warp without work. Storing takes many
    /// instructions, so these warps have schedulers without a computing warp, where there are any.
    pub fn roles(&self) -> Vec<i64> {
        let mut roles: Vec<_> = (0..self.strips).collect();
        let mut stores = self.strips..self.loading();
        let last = if self.before { self.before() } else { self.below() };
        let mut others = self.loading()..=last;
        let mut place = self.strips;
        while !stores.is_empty() || !others.is_empty() {
            let free = place % SCHEDULERS >= self.strips || self.strips >= SCHEDULERS;
            let role = match free {
                true => stores.next().or_else(|| others.next()),
                false => others.next(),
            };
            roles.push(role.unwrap_or(last + 1));
            place += 1;
        }
        roles
    }

    /// All warps.
    pub fn all(&self) -> i64 {
        i64::try_from(self.roles().len()).unwrap_or(i64::MAX)
    }
}

/// Schedulers of a multiprocessor: warp `w` of a block has scheduler `w` modulo their number.
const SCHEDULERS: i64 = 4;

/// Registers of a thread: a lane's values, those that are under way, and addresses.
pub const REGISTERS: i64 = 128;

/// Values that a lane carries from a time to the next. Registers don't hold more, and the time that
/// MLIR takes for a loop grows with the square of their number.
const MOST_CARRIED: usize = 256;

/// From this many strips on, one warp per strip loads old values; blocks with fewer strips use two
/// if tiles inside the main piece read old values.
const STRIPS_WITH_ONE_LOADER: i64 = 8;

/// A function as a plan needs it.
pub struct Function<'c, 'p> {
    /// The module of its pieces' functions.
    pub module: &'p Module<'c>,
    /// The declarations.
    pub program: &'p Program<'c>,
    /// Its pieces.
    pub pieces: &'p [Piece<'c>],
    /// The fields whose new values warps store.
    pub stored: Vec<&'c str>,
    /// Those of them that keep old values where no piece lies.
    pub kept: Vec<&'c str>,
}

impl<'c> Plan<'c> {
    /// The plan for a shape.
    ///
    /// # Errors
    /// A decline: values that lanes can't hold or exchange.
    pub fn of(function: &Function<'c, '_>, shape: StripShape) -> Result<Self, Error> {
        Self::with_sweeps(function, shape, 1)
    }

    /// The plan for launches of so many sweeps.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn with_sweeps(
        function: &Function<'c, '_>,
        shape: StripShape,
        sweeps: i64,
    ) -> Result<Self, Error> {
        let program = function.program;
        for field in &function.stored {
            if !matches!(mlir::bit_width(program.field(field)?.element), Some(8 | 16 | 32 | 64)) {
                let message =
                    format!("lanes can't exchange values of @{field}; leave the strategy open");
                return Err(Error::declined(Decline::Registers, message));
            }
        }
        let dependences = program.dependences(function.pieces)?;
        let geometry = Geometry::of(&dependences, shape).ok_or_else(|| {
            let message = format!(
                "the function reads values of its own sweep more than {FARTHEST} cells away, or \
                 from more rows above than the {} of a lane; read nearer ones, give a lane more \
                 rows, or leave the strategy open",
                shape.rows
            );
            Error::declined(Decline::FarRead, message)
        })?;
        let windows = windows::windows(program, function.pieces, &geometry)?;
        let carried = windows::types(&windows).len();
        if carried > MOST_CARRIED {
            let message = format!(
                "a lane would carry {carried} values from a time to the next, and the limit is \
                 {MOST_CARRIED}; read nearer values, or leave the strategy open"
            );
            return Err(Error::declined(Decline::Registers, message));
        }
        let old = old_values::of(program, function.pieces, &function.kept, &geometry)?;
        let sequences = sequences::of((function.module, program), function.pieces)?;
        let few = geometry.strips < STRIPS_WITH_ONE_LOADER;
        let each = if few && old.iter().any(|old| !old.only_rims) { 2 } else { 1 };
        let loaders = if old.is_empty() && sequences.is_empty() { 0 } else { each };
        let warps = Warps { strips: geometry.strips, loaders, before: sweeps > 1 };
        let (stored, buffers) = (function.stored.clone(), Vec::new());
        let mut plan = Self { geometry, windows, old, sequences, stored, warps, buffers };
        plan.buffers = plan.buffers(function)?;
        Ok(plan)
    }

    fn buffers(&self, function: &Function<'c, '_>) -> Result<Vec<(Vec<i64>, Type<'c>)>, Error> {
        let geometry = &self.geometry;
        let mut buffers = Vec::new();
        for window in &self.windows {
            let rows = window.above().max(1);
            // One more, for what the last strip hands to the block below.
            buffers.push((vec![geometry.strips + 1, rows, geometry.ring()], window.element));
        }
        for old in &self.old {
            let pitch = pitch(old.element, old.columns, old.only_rims);
            let extents = vec![2, geometry.strips, geometry.rows, old.all_lanes(), pitch];
            buffers.push((extents, old.element));
        }
        for sequence in &self.sequences {
            let length = sequence.length(geometry);
            buffers.push((vec![2, geometry.strips, length], sequence.element));
        }
        for field in &function.stored {
            let element = function.program.field(field)?.element;
            let pitch = pitch(element, geometry.kept_times(), true);
            buffers.push((vec![geometry.strips, geometry.rows, WARP, pitch], element));
        }
        Ok(buffers)
    }

    /// Whether a multiprocessor of a device has room for a block.
    pub fn fits(&self, device: &Device) -> bool {
        let room = i64::try_from(device.shared_per_block).unwrap_or(i64::MAX);
        self.shared() <= room && self.threads() * REGISTERS <= i64::from(device.registers)
    }

    /// Blocks that a multiprocessor runs at once.
    pub fn resident(&self, device: &Device) -> i64 {
        resident_blocks(&[self.threads()], &self.sized(), REGISTERS, device)
    }

    /// The shared buffers as types, whose bytes can be counted.
    fn sized(&self) -> Vec<MemRefType<'c>> {
        let sized = |(extents, element): &(Vec<i64>, Type<'c>)| {
            MemRefType::new(*element, extents, None, None)
        };
        self.buffers.iter().map(sized).collect()
    }

    /// Threads of a block.
    pub fn threads(&self) -> i64 {
        self.warps.all() * WARP
    }

    /// Bytes of shared memory of a block.
    pub fn shared(&self) -> i64 {
        shared_bytes(&self.sized())
    }
}

/// Cells from a lane's row to the next lane's: neighbouring lanes access different banks, one by
/// one or, where a row begins with the tile's first time, several times at once.
fn pitch(element: Type, cells: i64, at_once: bool) -> i64 {
    match lanes::vector_length(element, cells) {
        vector @ 2.. if at_once => cells + vector,
        _ => cells | 1,
    }
}

#[cfg(test)]
mod tests {
    use super::Warps;

    /// Three strips compute on schedulers 0 to 2 and store on scheduler 3.
    #[test]
    fn storing_warps_have_free_schedulers() {
        let roles = Warps { strips: 3, loaders: 1, before: false }.roles();
        assert_eq!(roles, [0, 1, 2, 3, 6, 7, 8, 4, 9, 10, 11, 5]);
        let roles = Warps { strips: 2, loaders: 2, before: false }.roles();
        assert_eq!(roles, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let roles = Warps { strips: 4, loaders: 0, before: false }.roles();
        assert_eq!(roles, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        let roles = Warps { strips: 2, loaders: 2, before: true }.roles();
        assert_eq!(roles, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }
}
