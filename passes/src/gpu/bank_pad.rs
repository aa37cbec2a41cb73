//! `bank-pad`: rows of shared buffers get words behind them, so that fewer lanes of a warp meet in
//! a bank.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, section 6, algorithm 2. Each buffer gets the pad of 0 to 32 words
//! per row that makes all references to it cheapest together, by the linear cost of equation 5; of
//! equal pads the smallest. Unlike the printed algorithm, the search begins with no pad and its
//! cost: the printed one begins with a least cost of 0, which no pad can undercut. Conflicts are
//! counted from the lanes' addresses (`analysis/lane_addresses.rs`), so that a stride of 0 is a
//! broadcast, and wide accesses and idle lanes count as they run.
//!
//! Needs: `gpu.func`s, whoever made them. Guarantees: indices and results are the same; each vector
//! access keeps its promised alignment; the declared buffers stay within the limit of the device,
//! or within what they had; a second run changes nothing. `tiled.bank_pad` notes for each buffer
//! what became of it, and `tiled.bank_pad_words` the words behind each row.
//!
//! ```text
//! workgroup(%s : memref<32x32xf32, #gpu.address_space<workgroup>>)
//! %x = memref.load %s[%thread_id_x, %k]
//! ```
//! becomes
//! ```text
//! workgroup(%s : memref<32x33xf32, #gpu.address_space<workgroup>>)
//! %x = memref.load %s[%thread_id_x, %k]
//! ```
//!
//! Leaves alone: buffers of one dimension or another layout than row-major, those of elements whose
//! size is no power of two of bytes, and those that an operation uses otherwise than by the indices
//! of elements (a view, a copy, a call). Buffers cut out of dynamic shared memory are such views.

use crate::analysis::bank_conflicts::{Cost, WORD};
use crate::analysis::lane_addresses::{self, FARTHEST, Uses};
use crate::analysis::thread_values;
use crate::kernel::shared_memory::shared_bytes;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::target::Target;
use melior::Context;
use melior::ir::r#type::{FunctionType, MemRefType};
use melior::ir::{Module, ShapedTypeLike, Type, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::tiled::{self, BankPad as Pad};
use stencil_runtime::device::Device;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "bank-pad",
    summary: "pad the rows of shared buffers against bank conflicts",
    options: &[],
    read: |_: &Options| Ok(Box::new(BankPad)),
};

/// The pass.
pub struct BankPad;

/// Words behind a row at most: as many as there are banks, by the paper.
const MOST_WORDS: i64 = 32;

impl Pass for BankPad {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let device = Target::of(module)?.device;
        for kernel in mlir::walk(mlir::module_op(module)) {
            if mlir::name(kernel) == "gpu.func" {
                pad(context, kernel, device)?;
            }
        }
        Ok(())
    }
}

/// Pads the buffers of a kernel in order, each within what the ones before have left.
fn pad<'c>(context: &'c Context, kernel: Op<'c>, device: &Device) -> Result<(), Error> {
    let buffers = declared(kernel)?;
    if buffers.is_empty() {
        return Ok(());
    }
    // A warp along x where the kernel does not state its threads.
    let threads = thread_values::threads(kernel).unwrap_or([32, 1, 1]);
    let uses = lane_addresses::of(kernel, threads, &buffers);
    let dynamic = tiled::dynamic_shared(kernel)?;
    let limit = i64::try_from(device.static_shared_per_block)
        .unwrap_or(i64::MAX)
        .min(i64::try_from(device.shared_per_block).unwrap_or(i64::MAX).saturating_sub(dynamic));
    let before = tiled::bank_pads(kernel)?;
    let mut pads = Vec::new();
    for (number, (buffer, uses)) in buffers.iter().zip(&uses).enumerate() {
        let mut words = before.get(number).map_or(0, |pad| pad.words);
        let others = buffers.iter().filter(|other| mlir::key(**other) != mlir::key(*buffer));
        let others: Vec<MemRefType> =
            others.filter_map(|other| MemRefType::try_from(other.r#type()).ok()).collect();
        let note = match Rows::of(*buffer, uses) {
            Err(reason) => format!("kept: {reason}"),
            Ok(rows) => {
                let room = limit.saturating_sub(shared_bytes(&others));
                let (ty, note) = rows.choose(uses, device, room);
                if !same(ty, rows.ty) {
                    mlir::set_type(*buffer, ty.into());
                    let row = lane_addresses::extents(*buffer).last().copied();
                    words += row.map_or(0, |row| (row - rows.row) * rows.element / WORD);
                }
                note
            }
        };
        pads.push(Pad { words, note });
    }
    tiled::set_bank_pads(context, kernel, &pads);
    Ok(())
}

/// The shared buffers that a kernel declares.
fn declared<'c>(kernel: Op<'c>) -> Result<Vec<Val<'c>>, Error> {
    let ty = attribute::read(kernel, "function_type", attribute::as_type)?;
    let inputs = FunctionType::try_from(ty).map_or(0, |ty| ty.input_count());
    let count = attribute::read_optional(kernel, "workgroup_attributions", attribute::as_integer)?;
    let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
    let arguments = mlir::entry(kernel).map(mlir::arguments).unwrap_or_default();
    Ok(arguments.into_iter().skip(inputs).take(count).collect())
}

fn same<'c>(one: MemRefType<'c>, other: MemRefType<'c>) -> bool {
    Type::from(one) == Type::from(other)
}

/// A buffer as rows.
struct Rows<'c> {
    ty: MemRefType<'c>,
    extents: Vec<i64>,
    /// Elements of a row.
    row: i64,
    /// Bytes of an element.
    element: i64,
}

impl<'c> Rows<'c> {
    /// The rows of a buffer, or why it is left alone.
    fn of(buffer: Val<'c>, uses: &Uses) -> Result<Self, String> {
        let ty = MemRefType::try_from(buffer.r#type()).map_err(|_| "it is no memref".to_owned())?;
        let extents = lane_addresses::extents(buffer);
        let row = match extents.as_slice() {
            [_, .., row] => *row,
            _ => return Err("it has no rows".to_owned()),
        };
        if extents.iter().any(|extent| *extent <= 0) {
            return Err("its size is not known".to_owned());
        }
        if !lane_addresses::is_plain(buffer) {
            return Err("it has a layout of its own".to_owned());
        }
        let element = match mlir::bit_width(ty.element()) {
            Some(bits @ (8 | 16 | 32 | 64 | 128)) => i64::from(bits / 8),
            _ => return Err(format!("its elements are {}", ty.element())),
        };
        let bytes = extents.iter().try_fold(element, |all, extent| all.checked_mul(*extent));
        if bytes.is_none_or(|bytes| bytes > FARTHEST) {
            return Err("no shared memory holds it".to_owned());
        }
        match &uses.whole {
            Some(name) => Err(format!("{name} is no plain load or store")),
            None => Ok(Self { ty, extents, row, element }),
        }
    }

    fn padded(&self, row: i64) -> MemRefType<'c> {
        let mut extents = self.extents.clone();
        if let Some(last) = extents.last_mut() {
            *last = row;
        }
        MemRefType::new(self.ty.element(), &extents, None, self.ty.memory_space())
    }

    /// Longer rows, one for each pad that keeps elements and vectors aligned.
    fn lengths(&self, alignment: i64) -> impl Iterator<Item = i64> {
        let Self { row, element, .. } = *self;
        let padded = (1..=MOST_WORDS).filter(move |words| words * WORD % element == 0);
        let lengths = padded.map(move |words| row + words * WORD / element);
        lengths.filter(move |length| alignment == 0 || length * element % alignment == 0)
    }

    /// The best type within some bytes, and what there is to say about it.
    fn choose(&self, uses: &Uses, device: &Device, room: i64) -> (MemRefType<'c>, String) {
        let clocks_of = |length: i64| {
            let cost = uses.references.iter().fold(Cost::default(), |cost, (reference, times)| {
                cost.plus(*times, reference.cost(length, self.element, device.shared_banks))
            });
            cost.clocks(device)
        };
        let (mut clocks, mut length) = (clocks_of(self.row), self.row);
        let mut least = clocks;
        for longer in self.lengths(uses.alignment) {
            let cost = clocks_of(longer);
            least = least.min(cost);
            if cost < clocks && shared_bytes(&[self.padded(longer)]) <= room {
                (clocks, length) = (cost, longer);
            }
        }
        let avoidable = |least: f64| (100.0 * (clocks - least) / clocks).ceil();
        let unaligned = self.lengths(0).map(clocks_of).fold(least, f64::min);
        let note = if uses.references.is_empty() {
            "kept: no address of it is known".to_owned()
        } else if least < clocks {
            let avoidable = avoidable(least);
            format!("short of shared memory: {avoidable} % of its clocks are avoidable")
        } else if unaligned < clocks {
            let avoidable = avoidable(unaligned);
            format!("rows aligned for vectors: {avoidable} % of its clocks are avoidable without")
        } else {
            "no avoidable conflict".to_owned()
        };
        (self.padded(length), note)
    }
}
