//! `place-constants`: puts small arrays into constant memory if all lanes of a warp read the same
//! element.
//!
//! Source: Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General
//! Purpose Computations on GPUs, section 5.4; Ryoo et al., Optimization Principles and Application
//! Performance Evaluation of a Multithreaded GPU Using CUDA, table 1: constant memory is as fast as
//! a register if all threads of a warp read the same element. A run fills the variable with the
//! field's input before its first launch.
//!
//! Needs: a module with `stencil.params`, and kernels of any compiler with `tiled.grid`,
//! `known_block_size`, and `tiled.binding` and `tiled.name` at their arguments. The `stencil.field`
//! of a name has the role and the grid of the array. Kernels without `tiled.grid` get a note.
//!
//! Guarantees: the same values are loaded. The variables of a module fit in the constant memory of
//! the device, beside the table of `load-constants`. A second run changes nothing. The argument
//! stays, unused, so launches need no change. Kernels that read one field share a variable.
//!
//! ```text
//! gpu.func @k(%w: memref<f32> {tiled.binding = "read", tiled.name = "W"}, ...) {
//!   %v = memref.reinterpret_cast %w to offset: [0], sizes: [3, 3], strides: [3, 1]
//!   ... memref.load %v[%k, %l]      // %k and %l count loops
//! ```
//! becomes
//! ```text
//! memref.global @k_constant : memref<9xf32, 4> = uninitialized {tiled.constant = "W"}
//! gpu.func @k(%w: memref<f32> {tiled.binding = "read", tiled.name = "W"}, ...) {
//!   %c = memref.get_global @k_constant
//!   %v = memref.reinterpret_cast %c to offset: [0], sizes: [3, 3], strides: [3, 1]
//!   ... memref.load %v[%k, %l]
//! ```
//!
//! Some arrays stay in global memory, with a note in `tiled.not_constant`: arrays that a kernel of
//! the module stores to, arrays of open size, arrays that do not fit, arrays that the kernel copies
//! to shared memory, arrays of which lanes may read different elements, and arrays that are used by
//! other operations than loads and views of fixed shape. The lanes are compared in some iterations
//! and blocks (`analysis/lane_addresses.rs`). If they differ elsewhere, the loads are slower, and
//! their results are unchanged.

use crate::analysis::lane_addresses::{self, Uses};
use crate::analysis::shared_copies;
use crate::kernel::field_buffers::extents;
use crate::llvm::load_constants::MOST_BYTES;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::target::Target;
use melior::Context;
use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, Module, ShapedTypeLike, Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, before};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Program, Role};
use stencil_dialects::tiled::{self, Binding, CONSTANT_SPACE, Constant, Launch};
use stencil_runtime::device::Device;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "place-constants",
    summary: "read small arrays from constant memory if all lanes read the same element",
    options: &[],
    read: |_: &Options| Ok(Box::new(PlaceConstants)),
};

/// The pass.
pub struct PlaceConstants;

impl Pass for PlaceConstants {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(!kernels(module).is_empty())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let module: &Module<'c> = module;
        let is_program = stencil::is_program(module);
        for kernel in kernels(module) {
            if !is_program || !tiled::is_launched(kernel) {
                tiled::set_not_constant(context, kernel, &[NO_LAUNCH.to_owned()]);
            }
        }
        if !is_program {
            return Ok(());
        }
        let device = Target::of(module)?.device;
        let program = Program::read(module)?;
        let launches = tiled::launches(module)?;
        let room = room(device);
        let placing = Placing { context, module, program: &program, launches: &launches, room };
        let kernels = launches.iter().filter(|launch| mlir::name(launch.op) == "gpu.func");
        kernels.into_iter().try_for_each(|launch| placing.kernel(launch))
    }
}

/// The note at a kernel without bindings or launch.
const NO_LAUNCH: &str =
    "all arrays: the kernel needs `tiled.grid`, and the module `stencil.params`";

/// The kernels of a module, whether or not it says how they are launched.
fn kernels<'c>(module: &Module<'c>) -> Vec<Op<'c>> {
    let is_kernel = |op: &Op| {
        let is_entry = || mlir::attribute(*op, "gpu.kernel").is_some();
        mlir::name(*op) == "gpu.func" && (tiled::is_launched(*op) || is_entry())
    };
    mlir::walk(mlir::module_op(module)).into_iter().filter(is_kernel).collect()
}

/// Bytes of constant memory for arrays: at most the first level of its cache, and those that
/// `load-constants` leaves. Tables of 32 KiB and more, whose addresses move in a loop, were 3 to 7
/// times slower on an H200 than copies in shared memory, and tables that fit never slower
/// (decision 038).
pub fn room(device: &Device) -> u64 {
    device.constant_memory.saturating_sub(MOST_BYTES).min(device.constant_cache)
}

/// Arrays on their way to constant memory.
struct Placing<'c, 'p> {
    context: &'c Context,
    module: &'p Module<'c>,
    program: &'p Program<'c>,
    launches: &'p [Launch<'c>],
    /// Bytes of all variables together.
    room: u64,
}

/// An argument that can come from constant memory.
struct Candidate<'c> {
    field: &'c str,
    argument: Val<'c>,
    /// The memrefs that loads have: the argument, or views of it.
    views: Vec<Val<'c>>,
    ty: MemRefType<'c>,
}

impl<'c> Placing<'c, '_> {
    /// Places what a kernel reads, in the order of its arguments.
    fn kernel(&self, launch: &Launch<'c>) -> Result<(), Error> {
        let users = users(launch.op);
        let arguments = mlir::entry(launch.op).map(mlir::arguments).unwrap_or_default();
        let (mut candidates, mut notes) = (Vec::new(), Vec::new());
        for (binding, argument) in launch.bindings.iter().zip(arguments) {
            let Some(name) = binding.field() else { continue };
            let Some(own) = users.get(&mlir::key(argument)) else { continue };
            match self.candidate(binding, argument, own, &users) {
                Ok(candidate) => candidates.push(candidate),
                Err(reason) => notes.push(format!("{name}: {reason}")),
            }
        }
        let views: Vec<Val> = candidates.iter().flat_map(|one| &one.views).copied().collect();
        let block = <[i64; 3]>::try_from(launch.block.clone());
        let block = block.map_err(|_| Error::internal("a block has three sizes"))?;
        let mut uses = lane_addresses::of(launch.op, block, &views).into_iter();
        for candidate in candidates {
            let own: Vec<Uses> = uses.by_ref().take(candidate.views.len()).collect();
            let copied = |reason| match is_copied(launch.op, &candidate.views) {
                true => "the kernel copies it to shared memory".to_owned(),
                false => reason,
            };
            let fits = || self.fits(&candidate);
            if let Err(reason) = alike(&own).map_err(copied).and_then(|()| fits()) {
                notes.push(format!("{}: {reason}", candidate.field));
                continue;
            }
            self.place(launch, &candidate)?;
        }
        tiled::set_not_constant(self.context, launch.op, &notes);
        Ok(())
    }

    /// An argument with its views, or why it can't come from constant memory.
    fn candidate(
        &self,
        binding: &Binding<'c>,
        argument: Val<'c>,
        own: &[Op<'c>],
        users: &BTreeMap<usize, Vec<Op<'c>>>,
    ) -> Result<Candidate<'c>, String> {
        let Binding::Read(field) = binding else {
            return Err("the kernel stores to it".to_owned());
        };
        let stores = |launch: &&Launch<'c>| {
            let mut bindings = launch.bindings.iter();
            bindings.any(|one| {
                matches!(one, Binding::Write(name) | Binding::ReadWrite(name) if name == field)
            })
        };
        if let Some(launch) = self.launches.iter().find(stores) {
            return Err(format!("@{} stores to it", launch.name));
        }
        let declared = self.program.fields.iter().find(|one| one.name == *field);
        if declared.is_none_or(|one| one.role != Role::Const) {
            return Err("it is no const field".to_owned());
        }
        let cells = self.cells(field).ok_or_else(|| "its size is not fixed".to_owned())?;
        let views = views(argument, own, cells)?;
        let loads = |view: &Val<'c>| users.get(&mlir::key(*view)).into_iter().flatten();
        for op in views.iter().flat_map(loads) {
            let name = mlir::name(*op);
            if !matches!(name, "memref.load" | "vector.load" | "affine.load") {
                return Err(format!("{name} is no plain load or store"));
            }
        }
        let element = MemRefType::try_from(argument.r#type()).map(|ty| ty.element());
        let element = element.map_err(|error| error.to_string())?;
        let space = attribute::integer(self.context, CONSTANT_SPACE);
        let ty = MemRefType::new(element, &[cells], None, Some(space));
        Ok(Candidate { field, argument, views, ty })
    }

    /// The cells of a field, if they are a constant.
    fn cells(&self, field: &str) -> Option<i64> {
        let grid = self.program.grid_of(field).ok()?;
        let extents = extents(self.context, grid.lower, grid.upper).ok()?;
        extents.iter().try_fold(1_i64, |cells, extent| {
            let extent = extent.is_constant().then(|| extent.constant_value());
            cells.checked_mul(extent.filter(|extent| *extent > 0)?)
        })
    }

    /// The variable of a field, if there is one.
    fn variable(&self, field: &str) -> Result<Option<Constant<'c>>, Error> {
        let all = tiled::constants(self.module)?;
        Ok(all.into_iter().find(|one| one.field == field))
    }

    /// Whether there is room for a candidate, or why not.
    fn fits(&self, candidate: &Candidate<'c>) -> Result<(), String> {
        let fault = |error: Error| error.to_string();
        match self.variable(candidate.field).map_err(fault)? {
            Some(one) if one.ty == candidate.ty.into() => return Ok(()),
            Some(one) => return Err(format!("@{} has another type", one.symbol)),
            None => {}
        }
        let cells = mlir::static_cells(candidate.ty.into()).and_then(|n| u64::try_from(n).ok());
        let element = mlir::bit_width(candidate.ty.element()).map(|bits| bits.div_ceil(8));
        let bytes = cells.zip(element);
        let bytes = bytes.map_or(u64::MAX, |(n, size)| n.saturating_mul(size.into()));
        let taken = tiled::constants(self.module).map_err(fault)?;
        let taken = taken.iter().map(Constant::bytes).sum::<Result<u64, _>>().map_err(fault)?;
        let left = self.room.saturating_sub(taken);
        match bytes <= left {
            true => Ok(()),
            false => Err(format!("it has {bytes} bytes, and {left} of constant memory are left")),
        }
    }

    /// Lets a kernel read a candidate from its variable.
    fn place(&self, launch: &Launch<'c>, candidate: &Candidate<'c>) -> Result<(), Error> {
        let symbol = match self.variable(candidate.field)? {
            Some(found) => found.symbol.to_owned(),
            None => {
                let symbol = format!("{}_constant", launch.name);
                let symbol = stencil::unused_name(self.module, &symbol);
                before(self.context, launch.op, |builder| {
                    let ty = candidate.ty.into();
                    tiled::declare_constant(builder, &symbol, candidate.field, ty)
                })?;
                symbol
            }
        };
        let first = mlir::entry(launch.op).and_then(|body| mlir::operations(body).first().copied());
        let first = first.ok_or_else(|| Error::internal("a kernel without a body"))?;
        let whole = before(self.context, first, |builder| {
            let named = [("name", attribute::symbol(self.context, &symbol))];
            let whole = builder.value("memref.get_global", &[], candidate.ty.into(), &named)?;
            self.shaped(builder, candidate, whole)
        })?;
        let own = mlir::key(candidate.argument);
        for view in candidate.views.iter().filter(|view| mlir::key(**view) != own) {
            mlir::set_type(*view, in_space(*view, candidate.ty.memory_space())?);
        }
        mlir::replace_uses(candidate.argument, whole);
        Ok(())
    }

    /// A variable in the shape of the argument that it stands for, if that has one.
    fn shaped(
        &self,
        builder: &Builder<'c>,
        candidate: &Candidate<'c>,
        whole: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        let extents = lane_addresses::extents(candidate.argument);
        if extents.len() < 2 {
            return Ok(whole);
        }
        let ty = in_space(candidate.argument, candidate.ty.memory_space())?;
        let shaped =
            MemRefType::try_from(ty).map_err(|error| Error::internal(error.to_string()))?;
        let list = |values: &[i64]| attribute::integers(self.context, values);
        let named = [
            ("static_offsets", list(&[0])),
            ("static_sizes", list(&extents)),
            ("static_strides", list(&shaped.strides_and_offset().0)),
            ("operandSegmentSizes", attribute::integers32(self.context, &[1, 0, 0, 0])),
        ];
        builder.value("memref.reinterpret_cast", &[whole], ty, &named)
    }
}

/// The operations that use each value of a kernel.
fn users<'c>(kernel: Op<'c>) -> BTreeMap<usize, Vec<Op<'c>>> {
    let mut all: BTreeMap<usize, Vec<Op<'c>>> = BTreeMap::new();
    for op in mlir::walk(kernel) {
        for operand in mlir::operands(op) {
            all.entry(mlir::key(operand)).or_default().push(op);
        }
    }
    all
}

/// The memrefs by which an argument of so many cells is accessed, or why they can't be told: views
/// of an argument of rank 0, or an argument of the field's shape.
fn views<'c>(argument: Val<'c>, own: &[Op<'c>], cells: i64) -> Result<Vec<Val<'c>>, String> {
    let ty = MemRefType::try_from(argument.r#type()).map_err(|_| "it is no memref".to_owned())?;
    if ty.memory_space().is_some() || !lane_addresses::is_plain(argument) {
        return Err("it has a layout or a memory of its own".to_owned());
    }
    let mut all = vec![argument];
    if ty.rank() == 0 {
        all.clear();
        for op in own {
            match (mlir::name(*op), mlir::results(*op).first()) {
                ("memref.reinterpret_cast", Some(view)) => all.push(*view),
                (name, _) => return Err(format!("{name} is no plain load or store")),
            }
        }
    }
    for view in &all {
        let last = last_cell(*view).ok_or_else(|| "a view of it has no fixed shape".to_owned())?;
        if !(0..cells).contains(&last) {
            return Err(format!("a view reaches cell {last} of {cells}"));
        }
    }
    Ok(all)
}

/// The last cell that a memref of fixed shape reaches; none where its shape is not fixed.
fn last_cell(view: Val) -> Option<i64> {
    let ty = MemRefType::try_from(view.r#type()).ok()?;
    let (strides, offset) = ty.strides_and_offset();
    let fixed = |number: i64| (number >= 0).then_some(number);
    lane_addresses::extents(view).iter().zip(&strides).try_fold(
        fixed(offset)?,
        |last, (size, stride)| {
            let farthest = fixed(size.checked_sub(1)?)?.checked_mul(fixed(*stride)?)?;
            last.checked_add(farthest)
        },
    )
}

/// Whether threads copy elements of some memrefs to shared memory, where lanes load different ones
/// whatever they use.
fn is_copied<'c>(kernel: Op<'c>, views: &[Val<'c>]) -> bool {
    let mut loads = shared_copies::of(kernel).into_iter().flat_map(|copy| copy.loads);
    loads.any(|load| views.contains(&load.memref))
}

/// Whether all lanes of a warp load the same elements, or why not.
fn alike(uses: &[Uses]) -> Result<(), String> {
    if uses.iter().any(|uses| uses.untold) {
        return Err("an address of it can't be told".to_owned());
    }
    let mut references = uses.iter().flat_map(|uses| uses.references.keys());
    let alike = references.all(|reference| {
        let mut active = reference.cells.iter().flatten();
        let first = active.next();
        active.all(|cell| Some(cell) == first)
    });
    if alike { Ok(()) } else { Err("lanes of a warp load different elements".to_owned()) }
}

/// The type of a memref in another memory space.
fn in_space<'c>(memref: Val<'c>, space: Option<Attribute<'c>>) -> Result<Type<'c>, Error> {
    let ty = MemRefType::try_from(memref.r#type());
    let ty = ty.map_err(|error| Error::internal(error.to_string()))?;
    let extents = lane_addresses::extents(memref);
    Ok(MemRefType::new(ty.element(), &extents, Some(ty.layout()), space).into())
}
