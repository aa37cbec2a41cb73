//! `lower-peer`: flags by which blocks or threads wait for each other become atomic loads, stores
//! and additions.
//!
//! Source: PeerWave (see `schedule/tile_wavefront.rs`), listing 2. A wait is a loop around an
//! acquiring load, with a pause after each look that was in vain, but for the first ones; a signal
//! is a releasing store.
//!
//! Needs: the gpu level, or functions for a processor, with flags as memrefs of one dimension and
//! i32 with stride 1. Guarantees: no operation of the dialect `peer` is left.
//!
//! ```text
//! "peer.wait"(%flags, %i, %count)
//! "peer.signal"(%flags, %i, %count)
//! ```
//! becomes
//! ```text
//! %late, %ignored = scf.while (%looks = %zero) {
//!   %flag = llvm.load %address atomic syncscope("device") acquire {alignment = 4} : !llvm.ptr<1> -> i32
//!   %lead = arith.subi %flag, %count : i32
//!   %late = arith.cmpi slt, %lead, %zero
//!   %patient = arith.cmpi slt, %looks, %most
//!   %again = arith.andi %late, %patient
//!   scf.condition(%again) %late, %looks
//! } do {
//!   scf.if %long { llvm.call_intrinsic "llvm.nvvm.nanosleep"(%pause) }
//!   %next = arith.addi %looks, %one
//!   // Now and then: %most where another block has given up.
//!   scf.yield %next
//! }
//! scf.if %late { /* makes the record behind the flags, or traps: `runtime/src/watch.rs` */ }
//! llvm.store %count, %address atomic syncscope("device") release {alignment = 4} : i32, !llvm.ptr<1>
//! ```
//! `%address` is that of cell `64 * %i`: no two flags share a cache line, so that a signal disturbs
//! only the blocks that wait for that flag. `peer.arrive` is a fence with a relaxed addition. A
//! block that gives up has looked very often: looks are counted, not time, so that a device that
//! stops for other work raises no false alarm.
//!
//! In functions for a processor the scope is the whole system, and a thread that waits lets others
//! run, by the C library's `sched_yield`. It never gives up.

use super::watched_wait::{MOST_LOOKS, Watched};
use crate::kernel::host_function;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::FunctionType;
use melior::ir::{Module, Region, Type};
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare, Named};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::peer;
use stencil_runtime::watch::APART;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-peer",
    summary: "make flags between blocks or threads atomic loads and stores",
    options: &[INDEX_WIDTH, LOOKS],
    read: |options: &Options| {
        let index_width = options.integer(INDEX_WIDTH.0, 32..=64)?.unwrap_or(64);
        let looks = options.integer(LOOKS.0, 1..=i64::from(i32::MAX))?.unwrap_or(MOST_LOOKS);
        Ok(Box::new(LowerPeer { looks, ..LowerPeer::new(index_width) }))
    },
};

/// The option for [`LowerPeer::index_width`], as upstream's conversions spell it.
const INDEX_WIDTH: (&str, &str) =
    ("index-bitwidth", "bits of an index in the conversions that follow (default 64)");

/// The option for [`LowerPeer::looks`].
const LOOKS: (&str, &str) = ("looks", "looks at a flag until a block gives up (default 134217728)");

/// The pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowerPeer {
    /// Bits of an index: 32 or 64.
    pub index_width: i64,
    /// Looks at a flag until a block of a GPU gives up.
    pub looks: i64,
}

impl Pass for LowerPeer {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn takes_branches(&self) -> bool {
        true
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let other = Self::new(64);
        let options = [
            (INDEX_WIDTH.0, self.index_width, other.index_width),
            (LOOKS.0, self.looks, other.looks),
        ];
        let given = options.into_iter().filter(|(_, value, default)| value != default);
        given.map(|(name, value, _)| (name, value.to_string())).collect()
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(mlir::walk(mlir::module_op(module)).into_iter().any(is_of_peer))
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let all = mlir::walk(mlir::module_op(module));
        let host = host_function::is_there(module);
        if host {
            declare_yield(context, module)?;
        }
        for op in all.into_iter().filter(|op| is_of_peer(*op)) {
            let name = mlir::name(op);
            let region = Region::new();
            let builder = Builder::new(context, op.location(), mlir::append_block(&region, &[]));
            let &[flags, index, count] = mlir::operands(op).as_slice() else {
                return Err(Error::new(
                    mlir::place(op.location()),
                    format!("{name} needs flags, an index and a count"),
                ));
            };
            let scope = if host { Scope::System } else { Scope::Device };
            let address = self.address(&builder, scope, flags, index)?;
            match name {
                peer::WAIT if scope == Scope::System => yielding_wait(&builder, address, count)?,
                peer::WAIT => Watched {
                    address,
                    index,
                    count,
                    record: &|builder, cell| self.record(builder, flags, cell),
                    acquire: atomic(&builder, scope, ACQUIRE),
                    relaxed: atomic(&builder, scope, MONOTONIC),
                    looks: self.looks,
                }
                .wait(&builder)?,
                peer::ARRIVE => {
                    let before = arrive(&builder, scope, address, count)?;
                    mlir::results(op).into_iter().for_each(|old| mlir::replace_uses(old, before));
                }
                _ => {
                    let attributes = atomic(&builder, scope, RELEASE);
                    builder.op("llvm.store", &[count, address], &[], &attributes)?;
                }
            }
            mlir::move_all_before(builder.block, op);
            mlir::erase(op);
        }
        Ok(())
    }
}

fn is_of_peer(op: Op) -> bool {
    [peer::WAIT, peer::SIGNAL, peer::ARRIVE].contains(&mlir::name(op))
}

/// Who sees the flags.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The blocks of a GPU.
    Device,
    /// The threads of a processor.
    System,
}

/// The C library's function by which a thread lets others run, as `emit-object` knows it.
const YIELD: &str = "math.sched_yield";

/// Declares [`YIELD`].
fn declare_yield<'c>(context: &'c Context, module: &Module<'c>) -> Result<(), Error> {
    let location = mlir::module_op(module).location();
    let outer = host_function::container(context, module, location)?;
    let ty = FunctionType::new(context, &[], &[outer.integer_type(32)]);
    let attributes = [
        ("sym_name", attribute::string(context, YIELD)),
        ("function_type", attribute::ty(ty.into())),
        host_function::private(context),
    ];
    outer.op_with_regions("func.func", &[], &[], &attributes, vec![Region::new()]).map(drop)
}

/// The numbers of orderings in the LLVM dialect.
const MONOTONIC: i64 = 2;
const ACQUIRE: i64 = 4;
const RELEASE: i64 = 5;
/// The number of an addition among the atomic operations of the LLVM dialect.
const ADD: i64 = 1;

impl LowerPeer {
    /// The pass for indices of so many bits.
    pub fn new(index_width: i64) -> Self {
        Self { index_width, looks: MOST_LOOKS }
    }

    /// The address of a flag. An index may be too narrow for an address, so it comes from the
    /// descriptor that the memref will be.
    fn address<'c>(
        &self,
        builder: &Builder<'c>,
        scope: Scope,
        flags: Val<'c>,
        index: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        let descriptor = self.descriptor(builder, flags)?;
        let index = builder.value("arith.index_cast", &[index], builder.integer_type(64), &[])?;
        let index = builder.multiply_constant(index, APART as i64)?;
        address(builder, scope, (descriptor, index))
    }

    /// The address of a cell of the record behind flags.
    fn record<'c>(
        &self,
        builder: &Builder<'c>,
        flags: Val<'c>,
        cell: i64,
    ) -> Result<Val<'c>, Error> {
        let descriptor = self.descriptor(builder, flags)?;
        let bits = self.index_width;
        let width = builder.integer_type(u32::try_from(bits).unwrap_or(64));
        let position = [("position", attribute::integers(builder.context, &[3, 0]))];
        let size = builder.value("llvm.extractvalue", &[descriptor], width, &position)?;
        let i64_type = builder.integer_type(64);
        let size = match bits {
            64 => size,
            _ => builder.value("arith.extsi", &[size], i64_type, &[])?,
        };
        let place = builder.add_constant(builder.multiply_constant(size, APART as i64)?, cell)?;
        address(builder, Scope::Device, (descriptor, place))
    }

    /// The descriptor that flags will be.
    fn descriptor<'c>(&self, builder: &Builder<'c>, flags: Val<'c>) -> Result<Val<'c>, Error> {
        let bits = self.index_width;
        let ty =
            format!("!llvm.struct<(ptr, ptr, i{bits}, array<1 x i{bits}>, array<1 x i{bits}>)>");
        let ty = parse(builder, &ty)?;
        builder.value("builtin.unrealized_conversion_cast", &[flags], ty, &[])
    }
}

/// The address of a cell, on a GPU in global memory.
fn address<'c>(
    builder: &Builder<'c>,
    scope: Scope,
    (descriptor, place): (Val<'c>, Val<'c>),
) -> Result<Val<'c>, Error> {
    let position = [("position", attribute::integers(builder.context, &[1]))];
    let pointer = parse(builder, "!llvm.ptr")?;
    let base = builder.value("llvm.extractvalue", &[descriptor], pointer, &position)?;
    let address = builder.value(
        "llvm.getelementptr",
        &[base, place],
        pointer,
        &[
            ("elem_type", attribute::ty(builder.integer_type(32))),
            ("rawConstantIndices", attribute::integers32(builder.context, &[i32::MIN])),
        ],
    )?;
    match scope {
        Scope::Device => {
            builder.value("llvm.addrspacecast", &[address], parse(builder, "!llvm.ptr<1>")?, &[])
        }
        Scope::System => Ok(address),
    }
}

/// A type from its text.
fn parse<'c>(builder: &Builder<'c>, text: &str) -> Result<Type<'c>, Error> {
    let ty = Type::parse(builder.context, text);
    ty.ok_or_else(|| Error::internal(format!("`{text}` is no type")))
}

/// The attributes of an atomic access.
fn atomic<'c>(builder: &Builder<'c>, scope: Scope, ordering: i64) -> Vec<Named<'c, 'static>> {
    let context = builder.context;
    let mut attributes = vec![
        ("ordering", attribute::integer(context, ordering)),
        ("alignment", attribute::integer(context, 4)),
    ];
    attributes.extend(scope_attribute(builder, scope));
    attributes
}

/// The attribute of a scope; that of the system is the default.
fn scope_attribute<'c>(builder: &Builder<'c>, scope: Scope) -> Option<Named<'c, 'static>> {
    let device = || ("syncscope", attribute::string(builder.context, "device"));
    (scope == Scope::Device).then(device)
}

/// Adds to a flag; gives its value before. A wait that sees the last addition of several sees what
/// was before each: additions carry on what those before released.
fn arrive<'c>(
    builder: &Builder<'c>,
    scope: Scope,
    address: Val<'c>,
    count: Val<'c>,
) -> Result<Val<'c>, Error> {
    // NVPTX drops the ordering of an addition, so that a fence stands before it.
    let mut fence = vec![("ordering", attribute::integer(builder.context, RELEASE))];
    fence.extend(scope_attribute(builder, scope));
    builder.op("llvm.fence", &[], &[], &fence)?;
    let mut attributes = atomic(builder, scope, MONOTONIC);
    attributes.push(("bin_op", attribute::integer(builder.context, ADD)));
    builder.value("llvm.atomicrmw", &[address, count], builder.integer_type(32), &attributes)
}

/// Waits in a thread of a processor.
fn yielding_wait<'c>(builder: &Builder<'c>, address: Val<'c>, count: Val<'c>) -> Result<(), Error> {
    let (before, after) = (Region::new(), Region::new());
    let look = builder.at(mlir::append_block(&before, &[]));
    let attributes = atomic(&look, Scope::System, ACQUIRE);
    let flag = look.value("llvm.load", &[address], look.integer_type(32), &attributes)?;
    // The sign of the difference is right where the numbers have wrapped too.
    let lead = look.binary("arith.subi", flag, count)?;
    let late = look.compare(Compare::Lt, lead, look.constant(look.integer_type(32), 0)?)?;
    look.op("scf.condition", &[late], &[], &[])?;
    let pause = builder.at(mlir::append_block(&after, &[]));
    let callee = attribute::symbol(pause.context, YIELD);
    pause.op("func.call", &[], &[pause.integer_type(32)], &[("callee", callee)])?;
    pause.op("scf.yield", &[], &[], &[])?;
    builder.op_with_regions("scf.while", &[], &[], &[], vec![before, after]).map(drop)
}
