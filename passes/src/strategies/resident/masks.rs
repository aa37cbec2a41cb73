//! Conditions of a lane's rows, in the bits of words. A loop that keeps each condition in a register
//! of its own would spill cells.

use crate::kernel::lanes;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// Conditions of a word.
const BITS: usize = 32;

/// Conditions, in order.
pub struct Mask<'c> {
    words: Vec<Val<'c>>,
    count: usize,
}

impl<'c> Mask<'c> {
    /// Packs conditions. All lanes of a warp must do it together.
    pub fn of(builder: &Builder<'c>, conditions: &[Val<'c>]) -> Result<Self, Error> {
        let word = builder.integer_type(32);
        let mut words = Vec::new();
        for part in conditions.chunks(BITS) {
            let mut all = builder.constant(word, 0)?;
            for (place, condition) in (0..).zip(part) {
                let bit = builder.constant(word, bit(place))?;
                let bit = builder.select(*condition, bit, builder.constant(word, 0)?)?;
                all = builder.binary("arith.ori", all, bit)?;
            }
            // A shuffle, here of a lane's own word, is one value to LLVM. It would take a word that
            // is made of bits apart again.
            words.push(lanes::shuffle(builder, all, 0)?);
        }
        Ok(Self { words, count: conditions.len() })
    }

    /// The conditions.
    pub fn conditions(&self, builder: &Builder<'c>) -> Result<Vec<Val<'c>>, Error> {
        let word = builder.integer_type(32);
        let each = (0..self.count).map(|place| {
            let of = self.words.get(place / BITS).copied();
            let of = of.ok_or_else(|| Error::internal("a mask without a word"))?;
            let bit = builder.constant(word, bit(place % BITS))?;
            let found = builder.binary("arith.andi", of, bit)?;
            builder.compare(Compare::Ne, found, builder.constant(word, 0)?)
        });
        each.collect()
    }
}

/// The number whose only bit is at a place, as a word with a sign has it.
fn bit(place: usize) -> i64 {
    i64::from((1_u32 << (place % BITS)).cast_signed())
}
