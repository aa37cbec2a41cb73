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
        return constant(op).map(|value| Lanes::uniform(value, true));
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
        [Some(left), Some(right)] if name == "arith.cmpi" => left.join(right, comparison(op)?),
        [Some(left), Some(right)] => left.join(right, binary(name)?),
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
    left.join(&right, of_expression(expression)?)
}

/// The function of an affine expression's two sides; none for a number by itself.
pub fn of_expression(expression: AffineExpr) -> Option<Binary> {
    if expression.is_add() {
        binary("arith.addi")
    } else if expression.is_mul() {
        binary("arith.muli")
    } else if expression.is_floor_div() {
        binary("arith.floordivsi")
    } else if expression.is_ceil_div() {
        binary("arith.ceildivsi")
    } else if expression.is_mod() {
        Some(i64::checked_rem_euclid)
    } else {
        None
    }
}

/// The integer of a constant; a bit is 0 or 1.
pub fn constant(op: Op) -> Option<i64> {
    let value = mlir::attribute(op, "value").and_then(attribute::as_integer)?;
    let is_bit = mlir::results(op).first().is_some_and(|v| mlir::bit_width(v.r#type()) == Some(1));
    Some(if is_bit { value & 1 } else { value })
}

/// The axis of an operation on threads or blocks: 0 for x, 1 for y, 2 for z.
pub fn axis(op: Op) -> Option<usize> {
    let text = mlir::attribute(op, "dimension")?.to_string();
    ["dim x", "dim y", "dim z"].into_iter().position(|name| text.contains(name))
}

/// Whether an operation hands its operand on as another type of integer.
pub fn is_cast(name: &str) -> bool {
    let casts = ["index_cast", "index_castui", "extsi", "extui", "trunci"];
    name.strip_prefix("arith.").is_some_and(|name| casts.contains(&name))
}

/// A function of two integers, which has no result where the operation has none.
pub type Binary = fn(i64, i64) -> Option<i64>;

/// The function of an operation on two integers; none for other operations.
pub fn binary(name: &str) -> Option<Binary> {
    Some(match name.strip_prefix("arith.")? {
        "addi" => i64::checked_add,
        "subi" => i64::checked_sub,
        "muli" => i64::checked_mul,
        "divsi" => i64::checked_div,
        "remsi" => i64::checked_rem,
        "floordivsi" => |a, b| {
            let rounded_up = i64::from(a.checked_rem(b)? != 0 && (a < 0) != (b < 0));
            a.checked_div(b).map(|quotient| quotient - rounded_up)
        },
        "ceildivsi" => |a, b| {
            let rounded_down = i64::from(a.checked_rem(b)? != 0 && (a < 0) == (b < 0));
            a.checked_div(b).map(|quotient| quotient + rounded_down)
        },
        "divui" => |a, b| unsigned(a, b)?.checked_div(b),
        "remui" => |a, b| unsigned(a, b)?.checked_rem(b),
        "ceildivui" => |a, b| unsigned(a, b)?.checked_add(b)?.checked_sub(1)?.checked_div(b),
        "minsi" => |a, b| Some(a.min(b)),
        "maxsi" => |a, b| Some(a.max(b)),
        "minui" => |a, b| Some(unsigned(a, b)?.min(b)),
        "maxui" => |a, b| Some(unsigned(a, b)?.max(b)),
        "andi" => |a, b| Some(a & b),
        "ori" => |a, b| Some(a | b),
        "xori" => |a, b| Some(a ^ b),
        "shli" => |a, b| a.checked_shl(u32::try_from(b).ok()?).filter(|shifted| shifted >> b == a),
        "shrsi" => |a, b| a.checked_shr(u32::try_from(b).ok()?),
        "shrui" => |a, b| unsigned(a, b)?.checked_shr(u32::try_from(b).ok()?),
        _ => return None,
    })
}

/// The first of two numbers, if neither is negative.
fn unsigned(a: i64, b: i64) -> Option<i64> {
    (a >= 0 && b >= 0).then_some(a)
}

/// The function of a comparison of integers: 1 where it holds, else 0.
pub fn comparison(op: Op) -> Option<Binary> {
    let predicate = mlir::attribute(op, "predicate").and_then(attribute::as_integer)?;
    Some(match predicate {
        0 => |a, b| Some((a == b).into()),
        1 => |a, b| Some((a != b).into()),
        2 => |a, b| Some((a < b).into()),
        3 => |a, b| Some((a <= b).into()),
        4 => |a, b| Some((a > b).into()),
        5 => |a, b| Some((a >= b).into()),
        6 => |a, b| Some(((a as u64) < b as u64).into()),
        7 => |a, b| Some((a as u64 <= b as u64).into()),
        8 => |a, b| Some((a as u64 > b as u64).into()),
        9 => |a, b| Some((a as u64 >= b as u64).into()),
        _ => return None,
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
            assert_eq!(binary(name).and_then(|of| of(a, b)), expected, "{name} {a} {b}");
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
