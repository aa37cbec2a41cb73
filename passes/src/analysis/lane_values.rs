//! Integers as the lanes of a warp hold them, and the operations that compute with them.
//!
//! A value is exact if it depends on constants and the thread's number alone. Sizes, block numbers
//! and counters of loops are sampled: a value that depends on them holds for the sample.

use melior::ir::{AffineExpr, AffineMap, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::mlir::{self, Op};
use stencil_runtime::device::WARP;

/// Lanes of a warp.
pub const LANES: usize = WARP as usize;

/// An integer for each lane of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The number in each lane.
    pub at: [i64; LANES],
    /// Whether no sampled value went into it.
    pub exact: bool,
}

impl Lanes {
    /// One number in all lanes.
    pub fn uniform(value: i64, exact: bool) -> Self {
        Self { at: [value; LANES], exact }
    }

    /// Applies an operation to the numbers of each lane. There is no result if the operation has
    /// none in one of the lanes.
    pub fn join(&self, other: &Self, by: impl Fn(i64, i64) -> Option<i64>) -> Option<Self> {
        let mut at = self.at;
        for (mine, other) in at.iter_mut().zip(&other.at) {
            *mine = by(*mine, *other)?;
        }
        Some(Self { at, exact: self.exact && other.exact })
    }

    /// The lanes whose number is not 0, as bits.
    pub fn mask(&self) -> u32 {
        self.at.iter().rev().fold(0, |mask, value| mask << 1 | u32::from(*value != 0))
    }

    /// The number in the first lane of a mask.
    pub fn first(&self, mask: u32) -> Option<i64> {
        self.at.get(usize::try_from(mask.trailing_zeros()).ok()?).copied()
    }
}

/// The result of an operation on integers; none for other operations.
pub fn operation(op: Op, operands: &[Option<Lanes>]) -> Option<Lanes> {
    let name = mlir::name(op);
    if name == "arith.constant" {
        return constant(op);
    }
    if let "affine.apply" | "affine.min" | "affine.max" = name {
        let map = mlir::attribute(op, "map").and_then(attribute::as_map)?;
        return match name {
            "affine.max" => greatest(map, operands),
            "affine.min" => least(map, operands),
            _ => results(map, operands)?.first().copied(),
        };
    }
    match operands {
        [Some(value)] if is_cast(name) => Some(*value),
        [Some(left), Some(right)] if name == "arith.cmpi" => compare(op, left, right),
        [Some(left), Some(right)] => left.join(right, |a, b| binary(name, a, b)),
        [Some(condition), Some(yes), Some(no)] if name == "arith.select" => {
            let mut at = no.at;
            for ((slot, yes), condition) in at.iter_mut().zip(&yes.at).zip(&condition.at) {
                if *condition != 0 {
                    *slot = *yes;
                }
            }
            Some(Lanes { at, exact: condition.exact && yes.exact && no.exact })
        }
        _ => None,
    }
}

/// The largest result of a map.
pub fn greatest(map: AffineMap, operands: &[Option<Lanes>]) -> Option<Lanes> {
    pick(map, operands, i64::max)
}

/// The smallest result of a map.
pub fn least(map: AffineMap, operands: &[Option<Lanes>]) -> Option<Lanes> {
    pick(map, operands, i64::min)
}

fn pick(map: AffineMap, operands: &[Option<Lanes>], by: fn(i64, i64) -> i64) -> Option<Lanes> {
    let all = results(map, operands)?;
    let (first, rest) = all.split_first()?;
    rest.iter().try_fold(*first, |found, next| found.join(next, |a, b| Some(by(a, b))))
}

/// The results of a map, in order.
pub fn results(map: AffineMap, operands: &[Option<Lanes>]) -> Option<Vec<Lanes>> {
    let dims = map.dim_count();
    (0..map.result_count()).map(|index| affine(map.result(index).ok()?, operands, dims)).collect()
}

fn affine(expression: AffineExpr, operands: &[Option<Lanes>], dims: usize) -> Option<Lanes> {
    if expression.is_constant() {
        return Some(Lanes::uniform(expression.constant_value(), true));
    }
    if expression.is_dim() {
        return operands.get(expression.dim_position()).copied().flatten();
    }
    if expression.is_symbol() {
        return operands.get(dims + expression.symbol_position()).copied().flatten();
    }
    let left = affine(expression.lhs(), operands, dims)?;
    let right = affine(expression.rhs(), operands, dims)?;
    let name = if expression.is_add() {
        "arith.addi"
    } else if expression.is_mul() {
        "arith.muli"
    } else if expression.is_floor_div() {
        "arith.floordivsi"
    } else if expression.is_ceil_div() {
        "arith.ceildivsi"
    } else {
        return left.join(&right, |a, b| a.checked_rem_euclid(b));
    };
    left.join(&right, |a, b| binary(name, a, b))
}

fn constant(op: Op) -> Option<Lanes> {
    let value = mlir::attribute(op, "value").and_then(attribute::as_integer)?;
    let is_bit = mlir::results(op).first().is_some_and(|v| mlir::bit_width(v.r#type()) == Some(1));
    Some(Lanes::uniform(if is_bit { value & 1 } else { value }, true))
}

fn is_cast(name: &str) -> bool {
    let casts = ["index_cast", "index_castui", "extsi", "extui", "trunci"];
    name.strip_prefix("arith.").is_some_and(|name| casts.contains(&name))
}

fn binary(name: &str, a: i64, b: i64) -> Option<i64> {
    let unsigned = |value: Option<i64>| value.filter(|_| a >= 0 && b >= 0);
    let shift = u32::try_from(b).ok();
    match name.strip_prefix("arith.")? {
        "addi" => a.checked_add(b),
        "subi" => a.checked_sub(b),
        "muli" => a.checked_mul(b),
        "divsi" => a.checked_div(b),
        "remsi" => a.checked_rem(b),
        "floordivsi" => {
            let rounded_up = i64::from(a.checked_rem(b)? != 0 && (a < 0) != (b < 0));
            a.checked_div(b).map(|quotient| quotient - rounded_up)
        }
        "ceildivsi" => {
            let rounded_down = i64::from(a.checked_rem(b)? != 0 && (a < 0) == (b < 0));
            a.checked_div(b).map(|quotient| quotient + rounded_down)
        }
        "divui" => unsigned(a.checked_div(b)),
        "remui" => unsigned(a.checked_rem(b)),
        "ceildivui" => unsigned(a.checked_add(b)?.checked_sub(1)?.checked_div(b)),
        "minsi" => Some(a.min(b)),
        "maxsi" => Some(a.max(b)),
        "minui" => unsigned(Some(a.min(b))),
        "maxui" => unsigned(Some(a.max(b))),
        "andi" => Some(a & b),
        "ori" => Some(a | b),
        "xori" => Some(a ^ b),
        "shli" => a.checked_shl(shift?).filter(|shifted| shifted >> b == a),
        "shrsi" => a.checked_shr(shift?),
        "shrui" => unsigned(a.checked_shr(shift?)),
        _ => None,
    }
}

fn compare(op: Op, left: &Lanes, right: &Lanes) -> Option<Lanes> {
    let predicate = mlir::attribute(op, "predicate").and_then(attribute::as_integer)?;
    left.join(right, |a, b| {
        let unsigned = (a as u64).cmp(&(b as u64));
        let holds = match predicate {
            0 => a == b,
            1 => a != b,
            2 => a < b,
            3 => a <= b,
            4 => a > b,
            5 => a >= b,
            6 => unsigned.is_lt(),
            7 => unsigned.is_le(),
            8 => unsigned.is_gt(),
            9 => unsigned.is_ge(),
            _ => return None,
        };
        Some(i64::from(holds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_round_as_their_names_say() {
        for (name, a, b, expected) in [
            ("arith.divsi", -7, 2, Some(-3)),
            ("arith.remsi", -7, 2, Some(-1)),
            ("arith.floordivsi", -7, 2, Some(-4)),
            ("arith.floordivsi", 7, 2, Some(3)),
            ("arith.ceildivsi", 7, 2, Some(4)),
            ("arith.ceildivsi", -7, 2, Some(-3)),
            ("arith.divui", -7, 2, None),
            ("arith.divsi", 7, 0, None),
            ("arith.shli", 3, 4, Some(48)),
            ("arith.shli", 3, 63, None),
        ] {
            assert_eq!(binary(name, a, b), expected, "{name} {a} {b}");
        }
    }

    #[test]
    fn masks_begin_with_lane_0() {
        let mut lanes = Lanes::uniform(0, true);
        lanes.at[1] = 5;
        lanes.at[31] = -1;
        assert_eq!(lanes.mask(), 1 << 31 | 2);
        assert_eq!(lanes.first(lanes.mask()), Some(5));
        assert_eq!(lanes.first(0), None);
    }
}
