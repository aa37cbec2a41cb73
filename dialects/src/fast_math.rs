//! The fast-math flags of floating-point operations (`arith` and `math`), as plain data.

use crate::error::Error;
use crate::mlir::{self, Op};
use melior::Context;
use melior::ir::Attribute;
use std::cell::RefCell;
use std::ops::BitOr;

/// The attribute that holds the flags.
const ATTRIBUTE: &str = "fastmath";

/// Words of the flags, by the number of their bit.
const WORDS: [&str; 7] = ["reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn"];

/// A set of fast-math flags. An operation without flags has the empty set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FastMath(u8);

impl FastMath {
    /// No permission: each operation is rounded by itself.
    pub const NONE: Self = Self(0);
    /// Sums and products may be computed in another order.
    pub const REASSOCIATE: Self = Self(1);
    /// A division may be a product with a reciprocal.
    pub const RECIPROCAL: Self = Self(1 << 4);
    /// A product and a sum may be rounded once.
    pub const CONTRACT: Self = Self(1 << 5);
    /// A function may be approximated.
    pub const APPROXIMATE: Self = Self(1 << 6);
    /// Every permission.
    pub const FAST: Self = Self((1 << WORDS.len()) - 1);

    /// The flags of an operation.
    pub fn of(op: Op) -> Self {
        mlir::attribute(op, ATTRIBUTE)
            .and_then(|flags| Self::parse(&flags.to_string()))
            .unwrap_or_default()
    }

    /// Reads `#arith.fastmath<nnan,contract>`. None for other texts.
    pub fn parse(text: &str) -> Option<Self> {
        let flags = text.strip_prefix("#arith.fastmath<")?.strip_suffix('>')?;
        let flag = |word: &str| match word {
            "none" => Some(Self::NONE),
            "fast" => Some(Self::FAST),
            _ => WORDS.iter().position(|known| *known == word).map(|bit| Self(1 << bit)),
        };
        flags.split(',').try_fold(Self::NONE, |all, word| Some(all | flag(word.trim())?))
    }

    /// The flags as a named attribute, for a builder.
    ///
    /// # Errors
    /// An internal fault if the context lacks the `arith` dialect.
    pub fn attribute<'c>(
        self,
        context: &'c Context,
    ) -> Result<(&'static str, Attribute<'c>), Error> {
        Attribute::parse(context, &self.text())
            .map(|flags| (ATTRIBUTE, flags))
            .ok_or_else(|| Error::internal("the arith dialect is not loaded"))
    }

    fn text(self) -> String {
        let words = WORDS.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        let words: Vec<_> = words.map(|(_, word)| *word).collect();
        let words = if words.is_empty() { "none".to_owned() } else { words.join(",") };
        format!("#arith.fastmath<{words}>")
    }

    /// The same flags but those of `other`.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether every flag is set.
    pub fn is_fast(self) -> bool {
        self == Self::FAST
    }

    /// See [`FastMath::RECIPROCAL`].
    pub fn may_reciprocal(self) -> bool {
        self.has(Self::RECIPROCAL)
    }

    /// See [`FastMath::CONTRACT`].
    pub fn may_contract(self) -> bool {
        self.has(Self::CONTRACT)
    }

    /// See [`FastMath::APPROXIMATE`].
    pub fn may_approximate(self) -> bool {
        self.has(Self::APPROXIMATE)
    }

    fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }
}

impl BitOr for FastMath {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// The flags of operations, each set read once: MLIR gives them as text alone.
#[derive(Default)]
pub struct Cache<'c> {
    known: RefCell<Vec<(Attribute<'c>, FastMath)>>,
}

impl<'c> Cache<'c> {
    /// [`FastMath::of`].
    pub fn of(&self, op: Op<'c>) -> FastMath {
        let Some(attribute) = mlir::attribute(op, ATTRIBUTE) else { return FastMath::NONE };
        let found = self.known.borrow().iter().find(|(known, _)| *known == attribute).copied();
        found.map_or_else(
            || {
                let flags = FastMath::of(op);
                self.known.borrow_mut().push((attribute, flags));
                flags
            },
            |(_, flags)| flags,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error;

    #[test]
    fn flags_are_read_word_by_word() {
        let of = |words: &str| FastMath::parse(&format!("#arith.fastmath<{words}>"));
        assert_eq!(of("none"), Some(FastMath::NONE));
        assert_eq!(of("contract"), Some(FastMath::CONTRACT));
        assert_eq!(of("arcp, afn"), Some(FastMath::RECIPROCAL | FastMath::APPROXIMATE));
        assert_eq!(of("fast"), Some(FastMath::FAST));
        assert_eq!(of("reassoc,nnan,ninf,nsz,arcp,contract,afn"), Some(FastMath::FAST));
        // A word that only holds a flag's name is none.
        assert_eq!(of("contracted"), None);
        assert_eq!(of(""), None);
        assert_eq!(FastMath::parse("fast"), None);
    }

    #[test]
    fn mlir_prints_what_was_set() -> Result<(), Box<dyn Error>> {
        let context = crate::context()?;
        for bits in 0..=FastMath::FAST.0 {
            let flags = FastMath(bits);
            let (_, attribute) = flags.attribute(&context)?;
            assert_eq!(FastMath::parse(&attribute.to_string()), Some(flags), "{attribute}");
        }
        Ok(())
    }
}
