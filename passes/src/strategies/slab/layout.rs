//! Where the values of a tile lie, and which planes of each are computed when.
//!
//! A tile is computed plane by plane along its slowest dimension, in two dimensions row by row.
//! Every operation of the kernel runs some planes behind the front: its *lag*. So a value needs no
//! more than a *window* of planes in memory, from the oldest that is still read to the newest.
//! Grids of one dimension have no planes to go along, and every value lies in memory whole.
//!
//! An apply that reads a value `v` over `lower..=upper` planes has
//! `lag >= lag(v) + upper`, and `v` needs `lag - lag(v) - lower + slab` planes, where a slab is the
//! planes that an operation takes at once. In two dimensions windows have a power of two of planes,
//! so that the place of a plane is its number's last bits.

use super::renames::Renames;
use crate::analysis::footprint;
use crate::subject::Subject;
use melior::ir::Type;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{Apply, Halo, Kernel, TileOp};

/// Bytes to which rows and windows are aligned: a line of a cache.
pub const LINE: i64 = 64;

/// Places that a line of memory has in a cache, in all processors. More planes than this of a grid
/// whose planes are a power of two of bytes apart do not stay in any cache.
const WAYS: i64 = 8;

/// The most bytes of a tile.
pub const MOST_BYTES: i64 = 1 << 30;

/// The planes of a value that lie in the thread's memory.
#[derive(Clone, Debug)]
pub struct Window<'c> {
    /// Type of a cell.
    pub element: Type<'c>,
    /// The cells around the tile that the value has.
    pub halo: Halo,
    /// Planes, in two dimensions a power of two; 1 in one dimension.
    pub planes: i64,
    /// Cells from a row to the next.
    pub row: i64,
    /// Cells from a plane to the next.
    pub plane: i64,
    /// Byte at which it begins.
    pub first_byte: i64,
}

impl Window<'_> {
    /// Its cells.
    pub fn cells(&self) -> i64 {
        self.planes.saturating_mul(self.plane)
    }
}

/// Something to do with planes of a tile.
pub struct Action<'c, 'k> {
    /// What.
    pub work: Work<'c, 'k>,
    /// Planes behind the front.
    pub lag: i64,
    /// The cells around the tile that it takes.
    pub halo: Halo,
}

/// What is done.
pub enum Work<'c, 'k> {
    /// Cells of a field are copied to a window; in a tile that goes on beyond the grid also those
    /// there, as the grid repeats.
    Load(&'c str, Val<'c>),
    /// New values are computed.
    Apply(&'k Apply<'c>),
    /// The tile's own cells are copied to a field.
    Store(&'c str, Val<'c>),
}

/// Where values lie and when they are computed.
pub struct Layout<'c, 'k> {
    /// In the order in which they are done at each place of the front.
    pub actions: Vec<Action<'c, 'k>>,
    /// Planes that an action takes at once.
    pub slab: i64,
    /// Bytes of the thread's memory.
    pub bytes: i64,
    /// Values that lie in the memory of others.
    pub renames: Renames<'c>,
    windows: BTreeMap<usize, Window<'c>>,
    /// Fields whose next values applies write straight to memory, by the values' keys.
    direct: BTreeMap<usize, &'c str>,
}

impl<'c, 'k> Layout<'c, 'k> {
    /// Lays out a kernel; `wraps` where its tiles go on beyond the grid as the grid repeated.
    pub fn of(
        subject: &Subject<'c, '_>,
        kernel: &'k Kernel<'c>,
        wraps: bool,
        slab: i64,
    ) -> Result<Self, Error> {
        // Tiles that go on beyond the grid have no rims to keep, but cells there to fill.
        let renames = if wraps { Renames::default() } else { Renames::of(subject, kernel)? };
        let mut layout = Self {
            actions: Vec::new(),
            slab,
            bytes: 0,
            renames,
            windows: BTreeMap::new(),
            direct: BTreeMap::new(),
        };
        let streams = streams(kernel.schedule.tile.len());
        let mut lags: BTreeMap<usize, i64> = BTreeMap::new();
        let copied =
            if wraps { BTreeSet::new() } else { copied(subject, kernel, &layout.renames)? };
        for op in &kernel.body {
            match op {
                TileOp::Load { field, tile, .. } if wraps || copied.contains(&mlir::key(*tile)) => {
                    let halo = kernel.tile(*tile)?.halo.clone();
                    lags.insert(mlir::key(*tile), 0);
                    layout.actions.push(Action { work: Work::Load(field, *tile), lag: 0, halo });
                }
                TileOp::Load { .. } => {}
                TileOp::Apply(apply) => {
                    let mut lag = 0;
                    for (tile, [_, upper]) in reaches(subject, apply, &layout.renames)? {
                        if let Some(before) = lags.get(&tile).filter(|_| streams) {
                            lag = lag.max(before + upper);
                        }
                    }
                    for (field, tile) in &apply.outputs {
                        if layout.renames.has(*tile) {
                            continue;
                        }
                        let stored = |op: &TileOp<'c>| match op {
                            TileOp::Store { tile: stored, .. } => stored == tile,
                            _ => false,
                        };
                        let read = is_read(kernel, *tile);
                        let stored = kernel.body.iter().any(stored);
                        if stored && !read && !apply.reaches_beyond() {
                            layout.direct.insert(mlir::key(*tile), field);
                        } else if stored || read {
                            lags.insert(mlir::key(*tile), lag);
                        }
                    }
                    let (work, halo) = (Work::Apply(apply), apply.halo.clone());
                    layout.actions.push(Action { work, lag, halo });
                }
                TileOp::Store { field, tile, .. } => {
                    if !layout.direct.contains_key(&mlir::key(*tile)) {
                        let lag = lags.get(&mlir::key(*tile)).copied().unwrap_or(0);
                        let halo = Halo::none(kernel.schedule.tile.len());
                        layout.actions.push(Action { work: Work::Store(field, *tile), lag, halo });
                    }
                }
            }
        }
        layout.windows(subject, kernel, &lags)?;
        Ok(layout)
    }

    /// Gives each value with a lag its window.
    fn windows(
        &mut self,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
        lags: &BTreeMap<usize, i64>,
    ) -> Result<(), Error> {
        let mut planes: BTreeMap<usize, i64> = lags.keys().map(|tile| (*tile, self.slab)).collect();
        for action in &self.actions {
            let reaches = match &action.work {
                Work::Apply(apply) => reaches(subject, apply, &self.renames)?,
                _ => Vec::new(),
            };
            for (tile, [lower, _]) in reaches {
                if let (Some(needed), Some(lag)) = (planes.get_mut(&tile), lags.get(&tile)) {
                    *needed = (*needed).max(action.lag - lag - lower + self.slab);
                }
            }
        }
        let tiles = kernel.body.iter().flat_map(|op| match op {
            TileOp::Load { tile, .. } => vec![*tile],
            TileOp::Apply(apply) => apply.outputs.iter().map(|(_, tile)| *tile).collect(),
            TileOp::Store { .. } => Vec::new(),
        });
        for tile in tiles {
            let Some(needed) = planes.get(&mlir::key(tile)) else { continue };
            let held = kernel.tile(tile)?;
            let element = subject.program.field(held.field)?.element;
            let window = window(element, held.halo.clone(), &kernel.schedule.tile, *needed);
            let window = Window { first_byte: self.bytes, ..window };
            let bytes = window.cells().saturating_mul(bytes_of(element));
            self.bytes = self.bytes.saturating_add(round_up(bytes, LINE)).saturating_add(LINE);
            self.windows.insert(mlir::key(tile), window);
        }
        if self.bytes > MOST_BYTES {
            return Err(Error::declined(
                Decline::TileShape,
                format!(
                    "a tile of @{} needs {} bytes of memory for each thread, and the limit is \
                     {MOST_BYTES}; make the tile smaller, take fewer steps or read cells less far \
                     away",
                    kernel.name, self.bytes
                ),
            ));
        }
        Ok(())
    }

    /// The window of a value; none where it lies in its field's memory.
    pub fn window(&self, tile: Val) -> Option<&Window<'c>> {
        self.windows.get(&mlir::key(tile))
    }

    /// The field to whose memory an apply writes a value straight.
    pub fn direct(&self, tile: Val) -> Option<&'c str> {
        self.direct.get(&mlir::key(tile)).copied()
    }
}

/// The loaded values where a launch reads so many planes that the grids' own memory would not stay
/// in the caches; windows have planes a line more than a power of two apart. A copy also takes
/// lines in their order, so that the processor fetches them ahead.
fn copied<'c>(
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    renames: &Renames<'c>,
) -> Result<BTreeSet<usize>, Error> {
    if kernel.schedule.tile.len() < 3 {
        return Ok(BTreeSet::new());
    }
    let (mut planes, mut stored) = (BTreeMap::new(), 0);
    for op in &kernel.body {
        match op {
            TileOp::Load { field, tile, .. } => {
                let ruled = subject.program.field(field)?.boundary.is_some();
                planes.insert(mlir::key(*tile), (ruled, 0));
            }
            TileOp::Apply(apply) => {
                for (tile, [lower, upper]) in reaches(subject, apply, renames)? {
                    if let Some((_, most)) = planes.get_mut(&tile) {
                        *most = upper.saturating_sub(lower).saturating_add(1).max(*most);
                    }
                }
            }
            TileOp::Store { .. } => stored += 1,
        }
    }
    let all = planes.values().fold(stored, |all: i64, (_, planes)| all.saturating_add(*planes));
    // A rule of the field may lead to cells that the tile does not have.
    let copied = planes.into_iter().filter(|(_, (ruled, planes))| !ruled && *planes > 0);
    Ok(if all > WAYS { copied.map(|(tile, _)| tile).collect() } else { BTreeSet::new() })
}

/// The planes over which an apply reads each of its tiles, from the first to the last; of renamed
/// ones those in whose memory they lie.
fn reaches<'c>(
    subject: &Subject<'c, '_>,
    apply: &Apply<'c>,
    renames: &Renames<'c>,
) -> Result<Vec<(usize, [i64; 2])>, Error> {
    let reads = footprint::of_pieces(subject.program, &apply.pieces)?;
    let reach = |field: &str| {
        let own = reads.iter().filter(|read| read.field == field);
        own.fold([0, 0], |[lower, upper], read| {
            let end = |ends: &[i64]| ends.first().copied().unwrap_or(0);
            [lower.min(end(&read.reach.lower)), upper.max(end(&read.reach.upper))]
        })
    };
    let place = |field, tile| mlir::key(renames.resolve(field, tile).1);
    Ok(apply.inputs.iter().map(|(field, tile)| (place(*field, *tile), reach(field))).collect())
}

/// Whether an apply reads a value.
fn is_read<'c>(kernel: &Kernel<'c>, tile: Val<'c>) -> bool {
    kernel.applies().any(|apply| apply.inputs.iter().any(|(_, input)| *input == tile))
}

/// A window of at least so many planes. A line begins at each coordinate along the row that is a
/// multiple of a line's cells, as in fields whose rows are whole lines: vectors that begin there
/// are aligned in all values. Rows are an odd number of lines apart, so that rows of a window do
/// not meet in one set of a cache.
fn window<'c>(element: Type<'c>, halo: Halo, tile: &[i64], planes: i64) -> Window<'c> {
    let extents = halo.extents(tile);
    let bytes = bytes_of(element);
    let cells = extents.last().copied().unwrap_or(1);
    // The first cell may be the last of its line.
    let cells = cells.saturating_add(LINE / bytes - 1);
    let lines = round_up(cells.saturating_mul(bytes), LINE) / LINE;
    let row = (lines | 1).saturating_mul(LINE) / bytes;
    let (planes, rows) = match extents.as_slice() {
        [] | [_] => (1, 1),
        [all, rows @ .., _] => {
            let whole = |planes: i64| whole_planes(planes.clamp(1, 1 << 40), extents.len());
            let planes = whole(planes).min(whole(*all));
            (planes, rows.iter().fold(1_i64, |rows, extent| rows.saturating_mul(*extent)))
        }
    };
    let plane = row.saturating_mul(rows);
    Window { element, halo, planes, row, plane, first_byte: 0 }
}

/// The planes of a window that needs so many: in two dimensions a power of two.
pub fn whole_planes(planes: i64, rank: usize) -> i64 {
    if rank == 2 { planes.cast_unsigned().next_power_of_two().cast_signed() } else { planes }
}

/// Whether tiles of a rank are computed plane by plane.
pub fn streams(rank: usize) -> bool {
    rank > 1
}

/// Bytes of a cell.
pub fn bytes_of(element: Type) -> i64 {
    i64::from(mlir::bit_width(element).unwrap_or(64).div_ceil(8))
}

fn round_up(number: i64, unit: i64) -> i64 {
    number.saturating_add(unit - 1) / unit * unit
}
