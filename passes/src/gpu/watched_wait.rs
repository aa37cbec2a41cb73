//! A wait of a block for a flag, which gives up after so many looks and makes a record of it behind
//! the flags (`runtime/src/watch.rs`).
//!
//! Other blocks would give up only after as many looks at each of their own waits. They look at the
//! record now and then, so that a launch ends soon after the first block gave up.

use crate::kernel::tile_place;
use melior::ir::{Region, Type};
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare, Named};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_runtime::watch::{NOBODY, WRITTEN};

/// Looks until a block gives up, a power of two: a minute of waiting and more.
pub const MOST_LOOKS: i64 = 1 << 27;
/// Looks until a block that waits looks at the record, a power of two.
const SELDOM: i64 = 1 << 8;
/// Looks without a pause between them: a neighbour that takes as long as the block is seen at once.
const SOON: i64 = 32;
/// Nanoseconds between two looks at a flag: far less than a tile takes.
const PAUSE: i64 = 20;
/// The numbers of atomic operations in the LLVM dialect: an exchange, and the least of numbers
/// without a sign.
const EXCHANGE: i64 = 0;
const LEAST: i64 = 10;

/// A flag, as a wait looks at it.
pub struct Watched<'c, 'a> {
    /// Its address.
    pub address: Val<'c>,
    /// Its number.
    pub index: Val<'c>,
    /// The count that is waited for.
    pub count: Val<'c>,
    /// The address of a cell of the record.
    pub record: &'a dyn Fn(&Builder<'c>, i64) -> Result<Val<'c>, Error>,
    /// The attributes of a load that acquires.
    pub acquire: Vec<Named<'c, 'static>>,
    /// The attributes of an access that does not order others.
    pub relaxed: Vec<Named<'c, 'static>>,
    /// Looks until a block gives up.
    pub looks: i64,
}

impl<'c> Watched<'c, '_> {
    /// Waits.
    pub fn wait(&self, builder: &Builder<'c>) -> Result<(), Error> {
        let (i1, i32_type) = (builder.integer_type(1), builder.integer_type(32));
        let (before, after) = (Region::new(), Region::new());
        let block = mlir::append_block(&before, &[(i32_type, builder.location)]);
        self.look(&builder.at(block), first(&mlir::arguments(block))?)?;
        let block = mlir::append_block(&after, &[i1, i32_type].map(|ty| (ty, builder.location)));
        let looks = mlir::arguments(block).get(1).copied();
        let looks = looks.ok_or_else(|| Error::internal("a loop without its count"))?;
        self.pause(&builder.at(block), looks)?;
        let none = builder.constant(i32_type, 0)?;
        let regions = vec![before, after];
        let results = [i1, i32_type];
        let wait = builder.op_with_regions("scf.while", &[none], &results, &[], regions)?;
        let late = first(&mlir::results(wait))?;
        builder.when(late, |builder| self.give_up(builder))
    }

    /// Looks at the flag; the loop goes on if it is late and the block still patient.
    fn look(&self, builder: &Builder<'c>, looks: Val<'c>) -> Result<(), Error> {
        let i32_type = builder.integer_type(32);
        let flag = builder.value("llvm.load", &[self.address], i32_type, &self.acquire)?;
        // The sign of the difference is right where the numbers have wrapped too.
        let lead = builder.binary("arith.subi", flag, self.count)?;
        let late = builder.compare(Compare::Lt, lead, builder.constant(i32_type, 0)?)?;
        let most = builder.constant(i32_type, self.looks)?;
        let patient = builder.compare(Compare::Lt, looks, most)?;
        let again = builder.both(late, patient)?;
        builder.op("scf.condition", &[again, late, looks], &[], &[]).map(drop)
    }

    /// The code between two looks.
    fn pause(&self, builder: &Builder<'c>, looks: Val<'c>) -> Result<(), Error> {
        let i32_type = builder.integer_type(32);
        let number = |value| builder.constant(i32_type, value);
        let long = builder.compare(Compare::Ge, looks, number(SOON)?)?;
        builder.when(long, sleep)?;
        let next = builder.add(looks, number(1)?)?;
        let place = builder.binary("arith.andi", next, number(SELDOM - 1)?)?;
        let now = builder.compare(Compare::Eq, place, number(0)?)?;
        let checked = builder.choose(
            now,
            &[i32_type],
            |builder| {
                let state = (self.record)(builder, 0)?;
                let state = builder.value("llvm.load", &[state], i32_type, &self.relaxed)?;
                let written = builder.constant(i32_type, i64::from(WRITTEN))?;
                let written = builder.compare(Compare::Eq, state, written)?;
                let most = builder.constant(i32_type, self.looks)?;
                Ok(vec![builder.select(written, most, next)?])
            },
            |_| Ok(vec![next]),
        )?;
        builder.op("scf.yield", &checked, &[], &[]).map(drop)
    }

    /// A block that gives up writes the record, or traps where nobody would see it. The record has
    /// the least flag: blocks wait for those with smaller numbers, so the others wait for it too.
    fn give_up(&self, builder: &Builder<'c>) -> Result<(), Error> {
        let i32_type = builder.integer_type(32);
        let number = |value: i32| builder.constant(i32_type, i64::from(value));
        let state = (self.record)(builder, 0)?;
        let atomic = |builder: &Builder<'c>, operation, operands: [Val<'c>; 2]| {
            let mut attributes = self.relaxed.clone();
            attributes.push(("bin_op", attribute::integer(builder.context, operation)));
            builder.value("llvm.atomicrmw", &operands, i32_type, &attributes)
        };
        let found = atomic(builder, EXCHANGE, [state, number(WRITTEN)?])?;
        let nobody = builder.compare(Compare::Eq, found, number(NOBODY)?)?;
        builder.when(nobody, |builder| builder.op("llvm.intr.trap", &[], &[], &[]).map(drop))?;
        let cast = |builder: &Builder<'c>, value| {
            builder.value("arith.index_cast", &[value], i32_type, &[])
        };
        let flag = cast(builder, self.index)?;
        let least = atomic(builder, LEAST, [(self.record)(builder, 2)?, flag])?;
        let is_less = builder.compare(Compare::Below, flag, least)?;
        builder.when(is_less, |builder| {
            let block = tile_place::number(builder, "gpu.block_id", "x")?;
            let block = cast(builder, block)?;
            for (place, value) in [(1, block), (3, self.count)] {
                let cell = (self.record)(builder, place)?;
                builder.op("llvm.store", &[value, cell], &[], &self.relaxed)?;
            }
            Ok(())
        })
    }
}

/// The first of some values.
fn first<'c>(values: &[Val<'c>]) -> Result<Val<'c>, Error> {
    values.first().copied().ok_or_else(|| Error::internal("a loop without values"))
}

fn sleep(pause: &Builder) -> Result<(), Error> {
    let time = pause.constant(pause.integer_type(32), PAUSE)?;
    let name = attribute::string(pause.context, "llvm.nvvm.nanosleep");
    let none: &[Type] = &[];
    let attributes = [
        ("intrin", name),
        ("op_bundle_sizes", attribute::integers32(pause.context, &[])),
        ("operandSegmentSizes", attribute::integers32(pause.context, &[1, 0])),
    ];
    pause.op("llvm.call_intrinsic", &[time], none, &attributes).map(drop)
}
