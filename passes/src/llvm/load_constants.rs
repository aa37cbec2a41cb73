//! `load-constants`: where a kernel multiplies by many different 64-bit constants, they come from
//! constant memory.
//!
//! Needs: the LLVM dialect. Guarantees: the same products of the same numbers. Leaves alone:
//! kernels of few such factors, vectors, and modules of more factors than a table holds.
//!
//! An instruction holds the upper half of a 64-bit constant. ptxas puts others into uniform
//! registers, two each of 63, and moves those that find no room there anew in each turn of a loop;
//! an operand in constant memory costs nothing. On an H200 the 25 factors of `box2d2r` gave 0.9 to
//! 2.5 %, 13 and 27 in three dimensions 0.3 to 0.5 %, and 9 nothing
//! (`test-suite/bench/results/2026-11-22-h200-constants.tsv`).
//!
//! ```text
//! llvm.func @k(...) {
//!   %c = llvm.mlir.constant(3.391000e-02 : f64) : f64
//!   ... llvm.fmul %x, %c
//! ```
//! becomes
//! ```text
//! llvm.mlir.global external @k_factors(dense<[3.391000e-02, ...]> : tensor<25xf64>)
//!     {addr_space = 4 : i32, alignment = 16 : i64} : !llvm.array<25 x f64>
//! llvm.func @k(...) {
//!   %p = llvm.mlir.addressof @k_factors : !llvm.ptr<4>
//!   %c = llvm.load (llvm.getelementptr %p[0, 0]) : !llvm.ptr<4> -> f64
//!   ... llvm.fmul %x, %c
//! ```
//!
//! The table is no constant to LLVM, which would put its numbers back.

use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::attribute::{
    DenseI32ArrayAttribute, FlatSymbolRefAttribute, FloatAttribute, IntegerAttribute,
    StringAttribute, TypeAttribute,
};
use melior::ir::r#type::IntegerType;
use melior::ir::{Attribute, Module, Region, Type};
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, before};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "load-constants",
    summary: "bring many 64-bit factors from constant memory",
    options: &[],
    read: |_: &Options| Ok(Box::new(LoadConstants)),
};

/// The pass.
pub struct LoadConstants;

impl Pass for LoadConstants {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn takes_branches(&self) -> bool {
        true
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(kernel_modules(module).any(|kernels| users(kernels).next().is_some()))
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        run(context, module)
    }
}

/// A kernel with at most this many different factors keeps them in its code.
const KEPT: usize = 12;

/// The most factors of a table: an eighth of the 64 KiB of constant memory. A kernel of more has
/// other cares.
const MOST: usize = 1024;

/// Bytes of the largest table.
pub const MOST_BYTES: u64 = 8 * MOST as u64;

/// Bytes to which the table is aligned: LLVM loads two factors at once.
const ALIGNMENT: i64 = 16;

/// The factors of all kernels of a module.
struct Table {
    name: String,
    /// As text that says them exactly.
    values: Vec<String>,
}

fn run<'c>(context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
    for kernels in kernel_modules(module) {
        let Some(body) = mlir::entry(kernels) else { continue };
        let users: Vec<_> = users(kernels).collect();
        let mut table: Vec<String> =
            users.iter().flat_map(|(_, factors)| factors.keys().cloned()).collect();
        table.sort();
        table.dedup();
        let Some((first, _)) = users.first().filter(|_| table.len() <= MOST) else { continue };
        // Two programs that are linked have kernels of different names.
        let symbol = |op: &Op<'c>| mlir::attribute(*op, "sym_name").and_then(mlir::string);
        let mut name = format!(
            "{}_factors",
            symbol(first).ok_or_else(|| Error::internal("a function without a name"))?
        );
        while mlir::operations(body).iter().any(|op| symbol(op) == Some(name.as_str())) {
            name += "_";
        }
        let table = Table { name, values: table };
        let ty = declare(context, kernels, &table)?;
        for (function, factors) in users {
            load(context, function, &table, ty, &factors)?;
        }
    }
    Ok(())
}

fn kernel_modules<'c>(module: &Module<'c>) -> impl Iterator<Item = Op<'c>> {
    mlir::operations(mlir::body(module)).into_iter().filter(|op| mlir::name(*op) == "gpu.module")
}

/// The kernels of a `gpu.module` that have many factors: for each factor the operands that it is.
fn users<'c>(kernels: Op<'c>) -> impl Iterator<Item = (Op<'c>, Factors<'c>)> {
    let items = mlir::entry(kernels).map(mlir::operations).unwrap_or_default();
    let functions = items.into_iter().filter(|op| mlir::name(*op) == "llvm.func");
    functions
        .map(|function| (function, factors(function)))
        .filter(|(_, factors)| factors.len() > KEPT)
}

/// Factors as text that says them exactly, each with the operations that multiply by it and the
/// place among their operands.
type Factors<'c> = BTreeMap<String, Vec<(Op<'c>, usize)>>;

/// The 64-bit constants that a function multiplies by and that no instruction holds.
fn factors<'c>(function: Op<'c>) -> Factors<'c> {
    let mut found = Factors::new();
    let operations = mlir::walk(function);
    let constants: BTreeMap<usize, String> = operations
        .iter()
        .filter(|op| mlir::name(**op) == "llvm.mlir.constant")
        .filter_map(|op| {
            let value = FloatAttribute::try_from(mlir::attribute(*op, "value")?).ok()?;
            // None of another type.
            let text = value.to_string().strip_suffix(" : f64")?.to_owned();
            let has_lower_half = value.value().to_bits() & 0xffff_ffff != 0;
            has_lower_half.then_some((mlir::key(*mlir::results(*op).first()?), text))
        })
        .collect();
    for op in operations {
        let count = match mlir::name(op) {
            "llvm.fmul" | "llvm.intr.fma" | "llvm.intr.fmuladd" => 2,
            _ => 0,
        };
        for (place, operand) in mlir::operands(op).into_iter().enumerate().take(count) {
            if let Some(value) = constants.get(&mlir::key(operand)) {
                found.entry(value.clone()).or_default().push((op, place));
            }
        }
    }
    found
}

/// Declares the table at the head of a `gpu.module`; gives its type.
fn declare<'c>(context: &'c Context, kernels: Op<'c>, table: &Table) -> Result<Type<'c>, Error> {
    let parsed = |text: &str| {
        Attribute::parse(context, text)
            .ok_or_else(|| Error::internal(format!("no attribute: {text}")))
    };
    let (count, values) = (table.values.len(), table.values.join(", "));
    let ty = Type::parse(context, &format!("!llvm.array<{count} x f64>"))
        .ok_or_else(|| Error::internal("the llvm dialect is not loaded"))?;
    let attributes = [
        ("sym_name", StringAttribute::new(context, &table.name).into()),
        ("global_type", TypeAttribute::new(ty).into()),
        ("linkage", parsed("#llvm.linkage<external>")?),
        ("value", parsed(&format!("dense<[{values}]> : tensor<{count}xf64>"))?),
        ("addr_space", IntegerAttribute::new(IntegerType::new(context, 32).into(), 4).into()),
        (
            "alignment",
            IntegerAttribute::new(IntegerType::new(context, 64).into(), ALIGNMENT).into(),
        ),
    ];
    before_first(context, kernels, |builder| {
        builder
            .op_with_regions("llvm.mlir.global", &[], &[], &attributes, vec![Region::new()])
            .map(|_| ())
    })?;
    Ok(ty)
}

/// Loads a function's factors where it begins, and puts them in their places.
fn load<'c>(
    context: &'c Context,
    function: Op<'c>,
    table: &Table,
    ty: Type<'c>,
    factors: &BTreeMap<String, Vec<(Op<'c>, usize)>>,
) -> Result<(), Error> {
    let pointer = Type::parse(context, "!llvm.ptr<4>")
        .ok_or_else(|| Error::internal("the llvm dialect is not loaded"))?;
    let mut loaded: Vec<Val<'c>> = Vec::new();
    before_first(context, function, |builder| {
        let name = FlatSymbolRefAttribute::new(context, &table.name).into();
        let base = builder.value("llvm.mlir.addressof", &[], pointer, &[("global_name", name)])?;
        for value in factors.keys() {
            let place = table
                .values
                .iter()
                .position(|other| other == value)
                .and_then(|place| i32::try_from(place).ok());
            let place =
                place.ok_or_else(|| Error::internal("a factor that is not in the table"))?;
            let attributes = [
                ("elem_type", TypeAttribute::new(ty).into()),
                ("rawConstantIndices", DenseI32ArrayAttribute::new(context, &[0, place]).into()),
            ];
            let address = builder.value("llvm.getelementptr", &[base], pointer, &attributes)?;
            loaded.push(builder.value("llvm.load", &[address], Type::float64(context), &[])?);
        }
        Ok(())
    })?;
    for (users, loaded) in factors.values().zip(loaded) {
        users.iter().for_each(|(op, place)| mlir::set_operand(*op, *place, loaded));
    }
    Ok(())
}

/// Builds operations before the first one of an operation's first block.
fn before_first<'c>(
    context: &'c Context,
    of: Op<'c>,
    build: impl FnOnce(&Builder<'c>) -> Result<(), Error>,
) -> Result<(), Error> {
    let first = mlir::entry(of).and_then(|block| mlir::operations(block).into_iter().next());
    let first = first.ok_or_else(|| Error::internal("a block without operations"))?;
    before(context, first, build)
}
