//! The launch of a lowered kernel: grid, block, shared memory, and what its arguments are bound to.

use super::cut::{Cut, read_cut};
use super::schedule::read_schedule;
use super::{SWEEPS, Schedule, schedule_attributes};
use crate::attribute::{self, read, read_optional};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Attribute, Module};

const BINDING: &str = "tiled.binding";
const NAME: &str = "tiled.name";
const GRID: &str = "tiled.grid";
const ROWS: &str = "tiled.rows";
const REACH: &str = "tiled.reach";
const FLAGS: &str = "tiled.flags";
const TURNS: &str = "tiled.turns";
const BLOCK_POINTS: &str = "tiled.block_points";
const DYNAMIC_SHARED: &str = "tiled.dynamic_shared";
const LACKING: &str = "tiled.lacking_registers";
const BANK_PAD: &str = "tiled.bank_pad";
const BANK_PAD_WORDS: &str = "tiled.bank_pad_words";
const UNROLL: &str = "tiled.unroll";

/// What an argument of a lowered kernel is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding<'c> {
    /// The current buffer of a field.
    Read(&'c str),
    /// The other buffer of a field, which becomes current after the launch.
    Write(&'c str),
    /// The current buffer of a field, updated in place.
    ReadWrite(&'c str),
    /// A run-time size, of [`index_width`](super::index_width) bits.
    Param(&'c str),
    /// A run-time scalar of its own type.
    Scalar(&'c str),
    /// The number of the launch's first step, from 0, as i64.
    Step,
    /// The launch's first tile row, from 0, of [`index_width`](super::index_width) bits: see
    /// [`Bands`].
    Row,
    /// The number of the launch's first block in x, from 0, of
    /// [`index_width`](super::index_width) bits. It is above 0 where some of its blocks are
    /// launched by themselves.
    FirstBlock,
    /// The value of the flags before the launch, as i32.
    Epoch,
    /// The number of the launch among those of [`Launch::turns`], from 0, of
    /// [`index_width`](super::index_width) bits.
    Turn,
    /// The flags of the kernel, i32 counters by which its blocks wait for each other.
    Flags,
    /// The results of the blocks of a reduction, by the field that holds its value.
    Partials(&'c str),
    /// A condition. The kernel does nothing where it is not 0.
    Unless(&'c str),
}

impl<'c> Binding<'c> {
    /// The field, or the array of structs, whose buffer the argument is.
    pub fn field(&self) -> Option<&'c str> {
        match self {
            Self::Read(name) | Self::Write(name) | Self::ReadWrite(name) => Some(name),
            _ => None,
        }
    }
}

/// How a launch may be cut into bands, each of which is launched by itself: the tiles form rows
/// along the slowest dimension, all of as many blocks, and a band is some rows, one after the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bands<'c> {
    /// Rows of tiles; one result, the symbols are the run-time sizes.
    pub rows: AffineMap<'c>,
    /// A row reads and writes nothing that rows farther away than this read or write:
    /// `tiled.reach`.
    pub row_distance: i64,
}

/// The launch of a lowered kernel: a `gpu.func`, or a `func.func` that computes a tile.
#[derive(Clone, Debug)]
pub struct Launch<'c> {
    /// The function.
    pub op: Op<'c>,
    /// Its name.
    pub name: &'c str,
    /// Blocks in x: the product over the maps of the largest result of each. The symbols are the
    /// run-time sizes. One map of one result, or a list of maps.
    pub grid: Vec<AffineMap<'c>>,
    /// Whether it is a list, with a map for each dimension of the tile.
    pub axes: bool,
    /// Points of a block, where the product counts points: `tiled.block_points`.
    pub block_points: Option<i64>,
    /// Threads of a block in x, y, z.
    pub block: Vec<i64>,
    /// Bytes of dynamic shared memory; of a thread's own memory where the kernel is a `func.func`.
    pub dynamic_shared: i64,
    /// Registers that a thread lacks by the lowering's estimate, so that it keeps values in memory.
    pub lacking: i64,
    /// What its arguments are bound to.
    pub bindings: Vec<Binding<'c>>,
    /// How many flags its blocks have; one result, the symbols are the run-time sizes. All blocks
    /// of a launch with flags must be on the device at once.
    pub flags: Option<AffineMap<'c>>,
    /// How often it is launched in place of once, if it is. One result; the symbols are the
    /// run-time sizes. The buffers rotate after the last time.
    pub turns: Option<AffineMap<'c>>,
    /// The sweeps of a launch that has several. The buffers that its sweeps exchange rotate after
    /// an odd number.
    pub sweeps: Option<i64>,
    /// How it may be cut, if it may.
    pub bands: Option<Bands<'c>>,
    /// How its blocks may be shared out between devices, if they may.
    pub cut: Option<Cut<'c>>,
    /// The schedule that it was lowered by.
    pub schedule: Schedule,
}

/// The lowered kernels of a module, in order.
pub fn launches<'c>(module: &Module<'c>) -> Result<Vec<Launch<'c>>, Error> {
    let mut found = Vec::new();
    for container in mlir::operations(mlir::body(module)) {
        let kind = match mlir::name(container) {
            "gpu.module" => "gpu.func",
            "builtin.module" => "func.func",
            _ => continue,
        };
        let Some(block) = mlir::entry(container) else { continue };
        for op in mlir::operations(block) {
            if mlir::name(op) == kind && mlir::attribute(op, GRID).is_some() {
                found.push(read_launch(op)?);
            }
        }
    }
    Ok(found)
}

/// Whether a function is that of a lowered kernel, at any level.
pub fn is_launched(op: Op) -> bool {
    mlir::attribute(op, GRID).is_some()
}

fn read_launch<'c>(op: Op<'c>) -> Result<Launch<'c>, Error> {
    let mut arguments = read(op, "arg_attrs", attribute::as_array)?;
    // The number of a tile, and memory of the thread: no launch gives them.
    if mlir::name(op) == "func.func" {
        arguments.truncate(arguments.len().saturating_sub(2));
    }
    let bindings = arguments
        .into_iter()
        .map(|argument| {
            let name = attribute::entry(argument, NAME).and_then(attribute::as_string);
            Some(match (attribute::as_string(attribute::entry(argument, BINDING)?)?, name) {
                ("read", Some(name)) => Binding::Read(name),
                ("write", Some(name)) => Binding::Write(name),
                ("read_write", Some(name)) => Binding::ReadWrite(name),
                ("param", Some(name)) => Binding::Param(name),
                ("scalar", Some(name)) => Binding::Scalar(name),
                ("step", None) => Binding::Step,
                ("row", None) => Binding::Row,
                ("first_block", None) => Binding::FirstBlock,
                ("epoch", None) => Binding::Epoch,
                ("turn", None) => Binding::Turn,
                ("flags", None) => Binding::Flags,
                ("partials", Some(name)) => Binding::Partials(name),
                ("unless", Some(name)) => Binding::Unless(name),
                _ => return None,
            })
        })
        .collect::<Option<_>>()
        .ok_or_else(|| {
            Error::new(
                mlir::place(op.location()),
                "an argument of the kernel has no valid tiled.binding; add what it is bound to",
            )
        })?;
    Ok(Launch {
        op,
        name: read(op, "sym_name", attribute::as_string)?,
        grid: read(op, GRID, as_grid)?,
        axes: read_optional(op, GRID, attribute::as_array).is_ok_and(|axes| axes.is_some()),
        block_points: read_optional(op, BLOCK_POINTS, attribute::as_integer)?,
        block: read(op, "known_block_size", attribute::as_integers)?,
        dynamic_shared: dynamic_shared(op)?,
        lacking: read_optional(op, LACKING, attribute::as_integer)?.unwrap_or(0),
        bindings,
        flags: mlir::attribute(op, FLAGS)
            .map(|_| read(op, FLAGS, attribute::as_map))
            .transpose()?,
        turns: mlir::attribute(op, TURNS)
            .map(|_| read(op, TURNS, attribute::as_map))
            .transpose()?,
        sweeps: read_optional(op, SWEEPS, attribute::as_integer)?,
        bands: match mlir::attribute(op, ROWS) {
            Some(_) => Some(Bands {
                rows: read(op, ROWS, attribute::as_map)?,
                row_distance: read(op, REACH, attribute::as_integer)?,
            }),
            None => None,
        },
        cut: read_cut(op)?,
        schedule: read_schedule(op)?,
    })
}

fn as_grid<'c>(grid: Attribute<'c>) -> Option<Vec<AffineMap<'c>>> {
    match attribute::as_map(grid) {
        Some(map) => Some(vec![map]),
        None => attribute::as_array(grid)?.into_iter().map(attribute::as_map).collect(),
    }
}

/// The attributes of a kernel's argument.
pub fn binding_attributes<'c>(
    builder: &Builder<'c>,
    binding: &Binding,
) -> Vec<(&'static str, Attribute<'c>)> {
    let context = builder.context;
    let (kind, name) = match binding {
        Binding::Read(name) => ("read", Some(name)),
        Binding::Write(name) => ("write", Some(name)),
        Binding::ReadWrite(name) => ("read_write", Some(name)),
        Binding::Param(name) => ("param", Some(name)),
        Binding::Scalar(name) => ("scalar", Some(name)),
        Binding::Step => ("step", None),
        Binding::Row => ("row", None),
        Binding::FirstBlock => ("first_block", None),
        Binding::Epoch => ("epoch", None),
        Binding::Turn => ("turn", None),
        Binding::Flags => ("flags", None),
        Binding::Partials(name) => ("partials", Some(name)),
        Binding::Unless(name) => ("unless", Some(name)),
    };
    let mut attributes = vec![(BINDING, attribute::string(context, kind))];
    attributes.extend(name.map(|name| (NAME, attribute::string(context, name))));
    attributes
}

/// The attributes of a lowered kernel that [`launches`] reads, beside its name and arguments.
pub fn launch_attributes<'c>(
    builder: &Builder<'c>,
    (grid, bands): (AffineMap<'c>, Option<Bands<'c>>),
    block: [i32; 3],
    schedule: &Schedule,
) -> Vec<(&'static str, Attribute<'c>)> {
    let mut attributes = schedule_attributes(builder, schedule);
    attributes.push((GRID, mlir::map_attribute(grid)));
    if let Some(bands) = bands {
        attributes.push((ROWS, mlir::map_attribute(bands.rows)));
        attributes.push((REACH, attribute::integer(builder.context, bands.row_distance)));
    }
    attributes.push(("known_block_size", attribute::integers32(builder.context, &block)));
    attributes
}

/// The attributes of a lowered kernel whose blocks are counted along each dimension of its tile.
pub fn axes_attributes<'c>(
    builder: &Builder<'c>,
    axes: &[AffineMap<'c>],
    block: [i32; 3],
    schedule: &Schedule,
) -> Vec<(&'static str, Attribute<'c>)> {
    let axes: Vec<_> = axes.iter().map(|axis| mlir::map_attribute(*axis)).collect();
    let mut attributes = schedule_attributes(builder, schedule);
    attributes.push((GRID, attribute::array(builder.context, &axes)));
    attributes.push(("known_block_size", attribute::integers32(builder.context, &block)));
    attributes
}

/// The attribute that says how many flags a lowered kernel's blocks have.
pub fn flags_attribute<'c>(count: AffineMap<'c>) -> (&'static str, Attribute<'c>) {
    (FLAGS, mlir::map_attribute(count))
}

/// The attribute that says how often a lowered kernel is launched in place of once.
pub fn turns_attribute<'c>(count: AffineMap<'c>) -> (&'static str, Attribute<'c>) {
    (TURNS, mlir::map_attribute(count))
}

/// The attribute that says how many points a block of a lowered kernel has, where its grid counts
/// points.
pub fn block_points_attribute<'c>(
    builder: &Builder<'c>,
    points: i64,
) -> (&'static str, Attribute<'c>) {
    (BLOCK_POINTS, attribute::integer(builder.context, points))
}

/// Sets the bytes of dynamic shared memory that a lowered kernel needs.
pub fn set_dynamic_shared(builder: &Builder, kernel: Op, bytes: i64) {
    mlir::set_attribute(kernel, DYNAMIC_SHARED, attribute::integer(builder.context, bytes));
}

/// The bytes of dynamic shared memory that a `gpu.func` needs; 0 where it states none.
///
/// # Errors
/// An attribute that is no number.
pub fn dynamic_shared(kernel: Op) -> Result<i64, Error> {
    Ok(read_optional(kernel, DYNAMIC_SHARED, attribute::as_integer)?.unwrap_or(0))
}

/// The attribute for [`Launch::lacking`], if a thread lacks any.
pub fn lacking_attribute<'c>(
    builder: &Builder<'c>,
    registers: i64,
) -> Option<(&'static str, Attribute<'c>)> {
    (registers > 0).then(|| (LACKING, attribute::integer(builder.context, registers)))
}

/// Notes how often each innermost loop of a kernel is unrolled, in their order, and why.
pub fn set_unroll<'c>(context: &'c Context, kernel: Op<'c>, notes: &[String]) {
    mlir::set_attribute(kernel, UNROLL, attribute::strings(context, notes));
}

/// Whether a kernel has such notes.
pub fn has_unroll(kernel: Op) -> bool {
    mlir::attribute(kernel, UNROLL).is_some()
}

/// What `bank-pad` made of a declared shared buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BankPad {
    /// Words of four bytes behind each row.
    pub words: i64,
    /// The pass's remark on the buffer.
    pub note: String,
}

/// Notes what became of each declared shared buffer of a kernel, in their order.
pub fn set_bank_pads<'c>(context: &'c Context, kernel: Op<'c>, pads: &[BankPad]) {
    let notes: Vec<_> = pads.iter().map(|pad| pad.note.clone()).collect();
    let words: Vec<_> = pads.iter().map(|pad| pad.words).collect();
    mlir::set_attribute(kernel, BANK_PAD, attribute::strings(context, &notes));
    mlir::set_attribute(kernel, BANK_PAD_WORDS, attribute::integers(context, &words));
}

/// What [`set_bank_pads`] has noted; nothing where `bank-pad` did not run.
///
/// # Errors
/// Attributes that are no lists of one length.
pub fn bank_pads(kernel: Op) -> Result<Vec<BankPad>, Error> {
    let notes = read_optional(kernel, BANK_PAD, attribute::as_strings)?.unwrap_or_default();
    let words = read_optional(kernel, BANK_PAD_WORDS, attribute::as_integers)?;
    let words = words.unwrap_or_else(|| vec![0; notes.len()]);
    if notes.len() != words.len() {
        let message = format!("{BANK_PAD} and {BANK_PAD_WORDS} have different lengths");
        return Err(Error::new(mlir::place(kernel.location()), message));
    }
    let both = words.into_iter().zip(notes);
    Ok(both.map(|(words, note)| BankPad { words, note: note.to_owned() }).collect())
}
