//! A function of affine loops, read once: operations with numbered values, so that an iteration
//! looks nothing up in the IR.

use super::{kind, refuse};
use crate::translate::{
    binary_op, cast_op, element, math_binary_op, number_kind, outcomes, unary_op,
};
use crate::value::{Binary, Cast, Kind, Predicate, Unary};
use melior::ir::{AffineExpr, AffineMap, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Blk, Op, Val};

/// An operation with the numbers of its values.
pub(super) struct Step<'c> {
    pub(super) op: Op<'c>,
    pub(super) operands: Vec<usize>,
    pub(super) results: Vec<usize>,
    /// The type of the first result, if it is a number.
    pub(super) kind: Option<Kind>,
    pub(super) work: Work<'c>,
}

/// The work of an operation.
pub(super) enum Work<'c> {
    /// It ends its block.
    End,
    For(For<'c>),
    Parallel(Parallel<'c>),
    Load(Map),
    Store(Map),
    Dim,
    Allocate,
    Deallocate,
    Constant(u64),
    Least(Map),
    Largest(Map),
    Negate,
    Select,
    Compare(Predicate),
    Binary(Binary),
    Cast(Cast),
    Unary(Unary),
    Fma,
    /// The reference does not run it.
    Unknown,
}

/// An `affine.for`. It begins at the largest of its lower bounds and ends at the least of its upper
/// ones.
pub(super) struct For<'c> {
    pub(super) lower: Map,
    pub(super) upper: Map,
    pub(super) step: i64,
    /// The values that it carries into the first iteration.
    pub(super) initial: Vec<usize>,
    pub(super) body: Body<'c>,
}

/// An `affine.parallel`.
pub(super) struct Parallel<'c> {
    pub(super) lower: Map,
    pub(super) upper: Map,
    pub(super) steps: Vec<i64>,
    pub(super) body: Body<'c>,
}

/// A block.
pub(super) struct Body<'c> {
    pub(super) arguments: Vec<usize>,
    pub(super) steps: Vec<Step<'c>>,
}

/// The results of an affine map of some values.
pub(super) type Map = Vec<Expression>;

/// An expression of values by their numbers.
pub(super) enum Expression {
    Number(i64),
    Value(usize),
    Sum(Box<[Expression; 2]>),
    Product(Box<[Expression; 2]>),
    Floor(Box<[Expression; 2]>),
    Ceiling(Box<[Expression; 2]>),
    Remainder(Box<[Expression; 2]>),
}

/// The numbers of the values of a function.
#[derive(Default)]
pub(super) struct Reader(BTreeMap<usize, usize>);

impl Reader {
    /// How many values there are.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    fn number(&mut self, value: Val) -> usize {
        let next = self.0.len();
        *self.0.entry(mlir::key(value)).or_insert(next)
    }

    fn all(&mut self, values: Vec<Val>) -> Vec<usize> {
        values.into_iter().map(|value| self.number(value)).collect()
    }

    /// A block with all in it.
    ///
    /// # Errors
    /// A loop without a body.
    pub(super) fn body<'c>(&mut self, block: Blk<'c>) -> Result<Body<'c>, Error> {
        let arguments = self.all(mlir::arguments(block));
        let steps = mlir::operations(block).into_iter().map(|op| self.step(op));
        Ok(Body { arguments, steps: steps.collect::<Result<_, Error>>()? })
    }

    fn step<'c>(&mut self, op: Op<'c>) -> Result<Step<'c>, Error> {
        let work = self.work(op)?;
        let results = mlir::results(op);
        let kind = results.first().and_then(|result| kind(result.r#type()));
        let operands = self.all(mlir::operands(op));
        Ok(Step { op, operands, results: self.all(results), kind, work })
    }

    fn inner<'c>(&mut self, op: Op<'c>) -> Result<Body<'c>, Error> {
        let body = mlir::entry(op).ok_or_else(|| refuse(op, "it has no body"))?;
        self.body(body)
    }

    fn work<'c>(&mut self, op: Op<'c>) -> Result<Work<'c>, Error> {
        let operands = mlir::operands(op);
        let map = |name| attribute::read(op, name, attribute::as_map);
        let from = |first: usize| operands.get(first..).unwrap_or_default();
        Ok(match mlir::name(op) {
            "affine.yield" | "func.return" => Work::End,
            "affine.for" => {
                let (lower, upper) = (map("lowerBoundMap")?, map("upperBoundMap")?);
                let (below, rest) = operands.split_at(lower.input_count().min(operands.len()));
                let (above, initial) = rest.split_at(upper.input_count().min(rest.len()));
                Work::For(For {
                    lower: self.map(op, lower, below)?,
                    upper: self.map(op, upper, above)?,
                    step: attribute::read(op, "step", attribute::as_integer)?.max(1),
                    initial: self.all(initial.to_vec()),
                    body: self.inner(op)?,
                })
            }
            "affine.parallel" => {
                let (lower, upper) = (map("lowerBoundsMap")?, map("upperBoundsMap")?);
                let (below, above) = operands.split_at(lower.input_count().min(operands.len()));
                Work::Parallel(Parallel {
                    lower: self.map(op, lower, below)?,
                    upper: self.map(op, upper, above)?,
                    steps: attribute::read(op, "steps", attribute::as_integers)?,
                    body: self.inner(op)?,
                })
            }
            "affine.load" => Work::Load(self.map(op, map("map")?, from(1))?),
            "affine.store" => Work::Store(self.map(op, map("map")?, from(2))?),
            "affine.apply" | "affine.min" => Work::Least(self.map(op, map("map")?, from(0))?),
            "affine.max" => Work::Largest(self.map(op, map("map")?, from(0))?),
            "memref.dim" => Work::Dim,
            "memref.alloc" | "memref.alloca" => Work::Allocate,
            "memref.dealloc" => Work::Deallocate,
            name => computed(op, name, operands.len())?.unwrap_or(Work::Unknown),
        })
    }

    fn map(&mut self, op: Op, map: AffineMap, operands: &[Val]) -> Result<Map, Error> {
        let inputs = self.all(operands.to_vec());
        let result = |place| expression(map.result(place).ok()?, &inputs, map.dim_count());
        let all = (0..map.result_count()).map(result).collect::<Option<_>>();
        all.ok_or_else(|| refuse(op, "its map has too few operands"))
    }
}

/// An operation of `arith` or `math` with so many operands; none that the reference does not run.
fn computed<'c>(op: Op<'c>, name: &str, operands: usize) -> Result<Option<Work<'c>>, Error> {
    let predicate = || {
        let number = attribute::read(op, "predicate", attribute::as_integer)?;
        Ok::<u8, Error>(u8::try_from(number).unwrap_or(u8::MAX))
    };
    Ok(match (name.split_once('.'), operands) {
        (Some(("arith", "constant")), _) => {
            let results = mlir::results(op);
            let kind = results
                .first()
                .and_then(|result| number_kind(mlir::number_keyword(result.r#type())?));
            let value = mlir::attribute(op, "value").zip(kind);
            value.and_then(|(value, kind)| element(value, kind, 0)).map(Work::Constant)
        }
        (Some(("arith", "negf")), 1) => Some(Work::Negate),
        (Some(("arith", "select")), 3) => Some(Work::Select),
        (Some(("arith", "cmpi")), 2) => Some(Work::Compare(Predicate::Integer(predicate()?))),
        (Some(("arith", "cmpf")), 2) => {
            Some(Work::Compare(Predicate::Float(outcomes(predicate()?))))
        }
        (Some(("arith", which)), 2) => binary_op(which).map(|(binary, _)| Work::Binary(binary)),
        (Some(("arith", which)), 1) => cast_op(which).map(Work::Cast),
        (Some(("math", "fma")), 3) => Some(Work::Fma),
        (Some(("math", which)), 2) => math_binary_op(which).map(|(binary, _)| Work::Binary(binary)),
        (Some(("math", which)), 1) => unary_op(which).map(|(unary, _)| Work::Unary(unary)),
        _ => None,
    })
}

fn expression(of: AffineExpr, inputs: &[usize], dims: usize) -> Option<Expression> {
    if of.is_constant() {
        return Some(Expression::Number(of.constant_value()));
    }
    if of.is_dim() {
        return inputs.get(of.dim_position()).copied().map(Expression::Value);
    }
    if of.is_symbol() {
        return inputs.get(dims + of.symbol_position()).copied().map(Expression::Value);
    }
    let sides = [expression(of.lhs(), inputs, dims)?, expression(of.rhs(), inputs, dims)?];
    let sides = Box::new(sides);
    Some(if of.is_add() {
        Expression::Sum(sides)
    } else if of.is_mul() {
        Expression::Product(sides)
    } else if of.is_floor_div() {
        Expression::Floor(sides)
    } else if of.is_ceil_div() {
        Expression::Ceiling(sides)
    } else {
        Expression::Remainder(sides)
    })
}

impl Expression {
    /// The value, from those that are known; none if it leaves 64 bits or divides by less than 1.
    pub(super) fn evaluate(&self, known: &[Option<(Kind, u64)>]) -> Option<i64> {
        let both = |sides: &[Self; 2]| {
            let [left, right] = sides;
            Some((left.evaluate(known)?, right.evaluate(known)?))
        };
        let divided = |sides: &[Self; 2]| both(sides).filter(|(_, by)| *by > 0);
        match self {
            Self::Number(number) => Some(*number),
            Self::Value(at) => known.get(*at).copied().flatten().map(|(_, bits)| bits as i64),
            Self::Sum(sides) => both(sides).and_then(|(a, b)| a.checked_add(b)),
            Self::Product(sides) => both(sides).and_then(|(a, b)| a.checked_mul(b)),
            Self::Floor(sides) => divided(sides).map(|(a, b)| a.div_euclid(b)),
            Self::Ceiling(sides) => {
                divided(sides).and_then(|(a, b)| Some(-a.checked_neg()?.div_euclid(b)))
            }
            Self::Remainder(sides) => divided(sides).map(|(a, b)| a.rem_euclid(b)),
        }
    }
}
