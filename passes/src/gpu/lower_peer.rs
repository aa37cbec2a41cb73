//! `lower-peer`: flags by which blocks or threads wait for each other become atomic loads, stores
//! and additions.
//!
//! Source: PeerWave (see `schedule/tile_wavefront.rs`), listing 2. A wait is a loop around an
//! acquiring load, with a pause after each look that was in vain; a signal is a releasing store.
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
//! scf.while : () -> () {
//!   %flag = llvm.load %address atomic syncscope("device") acquire {alignment = 4} : !llvm.ptr<1> -> i32
//!   %lead = arith.subi %flag, %count : i32
//!   %late = arith.cmpi slt, %lead, %zero
//!   scf.condition(%late)
//! } do {
//!   llvm.call_intrinsic "llvm.nvvm.nanosleep"(%pause)
//!   scf.yield
//! }
//! llvm.store %count, %address atomic syncscope("device") release {alignment = 4} : i32, !llvm.ptr<1>
//! ```
//! and `peer.arrive` a fence with a relaxed addition. In functions for a processor the scope is the
//! whole system, and a thread that waits lets others run, by the C library's `sched_yield`.

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

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-peer",
    summary: "make flags between blocks or threads atomic loads and stores",
    options: &[INDEX_WIDTH],
    read: |options: &Options| {
        let index_width = options.integer(INDEX_WIDTH.0, 32..=64)?.unwrap_or(64);
        Ok(Box::new(LowerPeer { index_width }))
    },
};

/// The option for [`LowerPeer::index_width`], as upstream's conversions spell it.
const INDEX_WIDTH: (&str, &str) =
    ("index-bitwidth", "bits of an index in the conversions that follow (default 64)");

/// The pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowerPeer {
    /// Bits of an index: 32 or 64.
    pub index_width: i64,
}

impl Pass for LowerPeer {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        let other = (self.index_width != 64).then(|| self.index_width.to_string());
        other.into_iter().map(|width| (INDEX_WIDTH.0, width)).collect()
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
                peer::WAIT => drop(wait(&builder, scope, address, count)?),
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

/// Nanoseconds between two looks at a flag: far less than a tile takes.
const PAUSE: i64 = 20;
/// The numbers of orderings in the LLVM dialect.
const MONOTONIC: i64 = 2;
const ACQUIRE: i64 = 4;
const RELEASE: i64 = 5;
/// The number of an addition among the atomic operations of the LLVM dialect.
const ADD: i64 = 1;

impl LowerPeer {
    /// The address of a flag, on a GPU in global memory. An index may be too narrow for an address,
    /// so it comes from the descriptor that the memref will be.
    fn address<'c>(
        &self,
        builder: &Builder<'c>,
        scope: Scope,
        flags: Val<'c>,
        index: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        let context = builder.context;
        let parse = |text: &str| {
            Type::parse(context, text)
                .ok_or_else(|| Error::internal(format!("`{text}` is no type")))
        };
        let bits = self.index_width;
        let descriptor = parse(&format!(
            "!llvm.struct<(ptr, ptr, i{bits}, array<1 x i{bits}>, array<1 x i{bits}>)>"
        ))?;
        let descriptor =
            builder.value("builtin.unrealized_conversion_cast", &[flags], descriptor, &[])?;
        let position = [("position", attribute::integers(context, &[1]))];
        let pointer = parse("!llvm.ptr")?;
        let base = builder.value("llvm.extractvalue", &[descriptor], pointer, &position)?;
        let i64_type = builder.integer_type(64);
        let index = builder.value("arith.index_cast", &[index], i64_type, &[])?;
        let address = builder.value(
            "llvm.getelementptr",
            &[base, index],
            pointer,
            &[
                ("elem_type", attribute::ty(builder.integer_type(32))),
                ("rawConstantIndices", attribute::integers32(context, &[i32::MIN])),
            ],
        )?;
        match scope {
            Scope::Device => {
                builder.value("llvm.addrspacecast", &[address], parse("!llvm.ptr<1>")?, &[])
            }
            Scope::System => Ok(address),
        }
    }
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

fn wait<'c>(
    builder: &Builder<'c>,
    scope: Scope,
    address: Val<'c>,
    count: Val<'c>,
) -> Result<Op<'c>, Error> {
    let (before, after) = (Region::new(), Region::new());
    let look = builder.at(mlir::append_block(&before, &[]));
    let attributes = atomic(&look, scope, ACQUIRE);
    let flag = look.value("llvm.load", &[address], look.integer_type(32), &attributes)?;
    // The sign of the difference is right where the numbers have wrapped too.
    let lead = look.binary("arith.subi", flag, count)?;
    let late = look.compare(Compare::Lt, lead, look.constant(look.integer_type(32), 0)?)?;
    look.op("scf.condition", &[late], &[], &[])?;
    let pause = builder.at(mlir::append_block(&after, &[]));
    match scope {
        Scope::Device => sleep(&pause)?,
        Scope::System => {
            let callee = attribute::symbol(pause.context, YIELD);
            pause.op("func.call", &[], &[pause.integer_type(32)], &[("callee", callee)])?;
        }
    }
    pause.op("scf.yield", &[], &[], &[])?;
    builder.op_with_regions("scf.while", &[], &[], &[], vec![before, after])
}

fn sleep(pause: &Builder) -> Result<(), Error> {
    let time = pause.constant(pause.integer_type(32), PAUSE)?;
    let name = attribute::string(pause.context, "llvm.nvvm.nanosleep");
    pause
        .op(
            "llvm.call_intrinsic",
            &[time],
            &[],
            &[
                ("intrin", name),
                ("op_bundle_sizes", attribute::integers32(pause.context, &[])),
                ("operandSegmentSizes", attribute::integers32(pause.context, &[1, 0])),
            ],
        )
        .map(drop)
}
