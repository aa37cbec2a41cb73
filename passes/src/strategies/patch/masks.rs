//! Conditions of a lane in the bits of words, for loops that would keep each of them in a register
//! of its own and spill cells.

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
    /// Packs conditions.
    pub fn of(builder: &Builder<'c>, conditions: &[Val<'c>]) -> Result<Self, Error> {
        let word = builder.integer_type(32);
        let none = builder.constant(word, 0)?;
        let mut words = Vec::new();
        for part in conditions.chunks(BITS) {
            let mut all = none;
            for (place, condition) in (0..).zip(part) {
                let bit = builder.select(*condition, builder.constant(word, bit(place))?, none)?;
                all = builder.binary("arith.ori", all, bit)?;
            }
            words.push(all);
        }
        Ok(Self { words, count: conditions.len() })
    }

    /// The conditions. All lanes of a warp must ask for them together: each takes its word by a
    /// shuffle, of which LLVM neither takes bits apart nor moves it out of a loop.
    pub fn conditions(&self, builder: &Builder<'c>) -> Result<Vec<Val<'c>>, Error> {
        let word = builder.integer_type(32);
        let none = builder.constant(word, 0)?;
        let words = self.words.iter().map(|word| lanes::shuffle(builder, *word, 0));
        let words = words.collect::<Result<Vec<_>, _>>()?;
        let each = (0..self.count).map(|place| {
            let of = words.get(place / BITS).copied();
            let of = of.ok_or_else(|| Error::internal("a mask without a word"))?;
            let bit = builder.constant(word, bit(place % BITS))?;
            builder.compare(Compare::Ne, builder.binary("arith.andi", of, bit)?, none)
        });
        each.collect()
    }
}

/// The number whose only bit is at a place, as a word with a sign has it.
fn bit(place: usize) -> i64 {
    i64::from((1_u32 << (place % BITS)).cast_signed())
}
