//! Flags by which the blocks of a launch wait for each other: one for each tile row.
//!
//! A flag stands at `epoch * tiles + done`, where `epoch` counts the launches before. No flag is
//! ever reset.

use melior::ir::attribute::StridedLayoutAttribute;
use melior::ir::r#type::MemRefType;
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::peer;

/// The flags of a kernel.
#[derive(Clone, Copy)]
pub struct Peers<'c> {
    flags: Val<'c>,
    epoch: Val<'c>,
    tiles: Val<'c>,
}

impl<'c> Peers<'c> {
    /// The flags of so many rows, each of so many tiles, from a kernel's arguments.
    pub fn new(
        builder: &Builder<'c>,
        [flags, epoch]: [Val<'c>; 2],
        (rows, tiles): (Val<'c>, Val<'c>),
    ) -> Result<Self, Error> {
        let flags = self::flags(builder, flags, rows)?;
        Ok(Self { flags, epoch, tiles })
    }

    /// Waits until so many tiles of a row are done. A number beyond all tiles means all of them.
    pub fn wait(&self, builder: &Builder<'c>, row: Val<'c>, done: Val<'c>) -> Result<(), Error> {
        let done = builder.binary("arith.minsi", done, self.tiles)?;
        peer::wait(builder, self.flags, row, self.count(builder, done)?).map(|_| ())
    }

    /// Tells the other blocks that so many tiles of a row are done.
    pub fn signal(&self, builder: &Builder<'c>, row: Val<'c>, done: Val<'c>) -> Result<(), Error> {
        peer::signal(builder, self.flags, row, self.count(builder, done)?).map(|_| ())
    }

    /// The value of a flag when some tiles of its row are done.
    fn count(&self, builder: &Builder<'c>, done: Val<'c>) -> Result<Val<'c>, Error> {
        let i32_type = builder.integer_type(32);
        let cast = |value| builder.value("arith.index_cast", &[value], i32_type, &[]);
        let before = builder.binary("arith.muli", self.epoch, cast(self.tiles)?)?;
        builder.add(before, cast(done)?)
    }
}

/// A kernel's flags as a memref of so many, from its argument.
pub fn flags<'c>(builder: &Builder<'c>, flags: Val<'c>, count: Val<'c>) -> Result<Val<'c>, Error> {
    let context = builder.context;
    let layout = StridedLayoutAttribute::new(context, 0, &[1]);
    let ty = MemRefType::new(builder.integer_type(32), &[i64::MIN], Some(layout.into()), None);
    builder.value(
        "memref.reinterpret_cast",
        &[flags, count],
        ty.into(),
        &[
            ("static_offsets", attribute::integers(context, &[0])),
            ("static_sizes", attribute::integers(context, &[i64::MIN])),
            ("static_strides", attribute::integers(context, &[1])),
            ("operandSegmentSizes", attribute::integers32(context, &[1, 0, 1, 0])),
        ],
    )
}
