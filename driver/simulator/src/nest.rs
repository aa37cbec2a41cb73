//! The reference of the affine level: runs a `func.func` of upstream's `affine` loops over memrefs
//! in the order of its text, one operation after the other.
//!
//! Each operation rounds to its own type, by the same functions as the simulator's. Loops of
//! `affine.parallel` run in order. Every access is checked against the shape of its array. An array
//! that the function allocates starts with zeros.
//!
//! Declines, with a place: operations other than `affine`, `arith`, `math`, allocations and
//! `memref.dim`, `affine.if`, reductions of `affine.parallel`, and vectors.

use crate::argument::number_bits;
use crate::translate::{
    binary_op, cast_op, element, math_binary_op, number_kind, outcomes, unary_op,
};
use crate::value::{self, Binary, Cast, Kind, Predicate, Unary};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{DimSize, MemRefType};
use melior::ir::{AffineExpr, AffineMap, ShapedTypeLike, Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Blk, Op, Val};
use stencil_runtime::array::{Array, Element};
use stencil_runtime::number::Number;

/// An argument of a function.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// An index.
    Size(i64),
    /// A number of its type.
    Scalar(Number),
    /// A memref of the array's shape, row-major.
    Array(Array),
}

/// Runs a function on its arguments, which it changes.
///
/// # Errors
/// Arguments that do not fit the function, an access outside of its array, a division by zero, and
/// what the head of this file lists.
pub fn run(function: Op, arguments: &mut [Argument]) -> Result<(), Error> {
    run_until(function, arguments, &|| false)
}

/// [`run`], which ends with an error once `cancelled` says so.
///
/// # Errors
/// As for [`run`].
pub fn run_until(
    function: Op,
    arguments: &mut [Argument],
    cancelled: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let entry = mlir::entry(function).ok_or_else(|| refuse(function, "it has no body"))?;
    let parameters = mlir::arguments(entry);
    if parameters.len() != arguments.len() {
        let what = format!("it has {} arguments, not {}", parameters.len(), arguments.len());
        return Err(refuse(function, &what));
    }
    let (numbers, arrays) = (BTreeMap::new(), BTreeMap::new());
    let mut machine = Machine { numbers, arrays, arguments, own: Vec::new(), cancelled };
    for (place, parameter) in parameters.into_iter().enumerate() {
        let key = mlir::key(parameter);
        match machine.arguments.get(place) {
            Some(Argument::Size(size)) if kind(parameter.r#type()) == Some(Kind::Index64) => {
                machine.numbers.insert(key, (Kind::Index64, *size as u64));
            }
            Some(Argument::Scalar(number))
                if let Some((kind, bits)) = scalar(parameter.r#type(), *number) =>
            {
                machine.numbers.insert(key, (kind, bits));
            }
            Some(Argument::Array(array)) if fits(array, parameter.r#type()) => {
                machine.arrays.insert(key, Place::Argument(place));
            }
            _ => {
                let what = format!("argument {place} is no {}", parameter.r#type());
                return Err(refuse(function, &what));
            }
        }
    }
    machine.block(entry).map(drop)
}

fn refuse(op: Op, what: &str) -> Error {
    Error::new(mlir::place(op.location()), format!("{}: {what}", mlir::name(op)))
}

fn kind(ty: Type) -> Option<Kind> {
    number_kind(mlir::number_keyword(ty)?)
}

/// A number as one of a type that is no index.
fn scalar(ty: Type, number: Number) -> Option<(Kind, u64)> {
    let kind = kind(ty).filter(|kind| *kind != Kind::Index64)?;
    Some((kind, number_bits(kind, number)?))
}

/// Whether an array can be a memref of a type: `memref<?x8xf32>`.
fn fits(array: &Array, ty: Type) -> bool {
    let text = ty.to_string();
    let inner = text.strip_prefix("memref<").and_then(|rest| rest.strip_suffix('>'));
    let Some(inner) = inner else { return false };
    let mut parts: Vec<&str> = inner.split('x').collect();
    let element = match array.element() {
        Element::U8 => "i8",
        Element::U16 => "i16",
        Element::U32 => "i32",
        Element::U64 => "i64",
        signed => signed.name(),
    };
    parts.pop() == Some(element)
        && parts.len() == array.shape().len()
        && parts.iter().zip(array.shape()).all(|(part, extent)| {
            *part == "?" || part.parse::<usize>().is_ok_and(|stated| stated == *extent)
        })
}

/// Where the array of a memref is.
#[derive(Clone, Copy)]
enum Place {
    /// Among the arguments.
    Argument(usize),
    /// Among those that the function allocated.
    Own(usize),
}

struct Machine<'a> {
    numbers: BTreeMap<usize, (Kind, u64)>,
    arrays: BTreeMap<usize, Place>,
    arguments: &'a mut [Argument],
    own: Vec<Array>,
    cancelled: &'a dyn Fn() -> bool,
}

impl Machine<'_> {
    fn number(&self, op: Op, value: Val) -> Result<(Kind, u64), Error> {
        let found = self.numbers.get(&mlir::key(value)).copied();
        found.ok_or_else(|| refuse(op, "an operand has no value"))
    }

    fn numbers(&self, op: Op) -> Result<Vec<(Kind, u64)>, Error> {
        mlir::operands(op).into_iter().map(|value| self.number(op, value)).collect()
    }

    fn indices(&self, op: Op, map: AffineMap, operands: &[Val]) -> Result<Vec<i64>, Error> {
        let inputs = operands.iter().map(|value| Ok(self.number(op, *value)?.1 as i64));
        let inputs = inputs.collect::<Result<Vec<_>, Error>>()?;
        let result = |place| {
            let expression = map.result(place).ok()?;
            evaluate(expression, &inputs, map.dim_count())
        };
        let all = (0..map.result_count()).map(result).collect::<Option<_>>();
        all.ok_or_else(|| refuse(op, "an index leaves 64 bits, or is divided by zero"))
    }

    /// Runs the operations of a block; gives what its last one hands on.
    fn block(&mut self, block: Blk) -> Result<Vec<(Kind, u64)>, Error> {
        for op in mlir::operations(block) {
            if op.region_count() > 0 && (self.cancelled)() {
                return Err(refuse(op, "the run is cancelled"));
            }
            match mlir::name(op) {
                "affine.yield" | "func.return" => return self.numbers(op),
                "affine.for" => self.repeat(op)?,
                "affine.parallel" => self.parallel(op)?,
                "affine.load" | "affine.store" => self.access(op)?,
                "memref.dim" => self.dim(op)?,
                "memref.alloc" | "memref.alloca" => self.allocate(op)?,
                "memref.dealloc" => {}
                _ => {
                    let value = self.compute(op)?;
                    self.define(op, value)?;
                }
            }
        }
        Ok(Vec::new())
    }

    fn define(&mut self, op: Op, value: u64) -> Result<(), Error> {
        let (Some(result), 1) = (mlir::results(op).first().copied(), op.result_count()) else {
            return Err(refuse(op, "the reference of the affine level does not run it"));
        };
        let kind = kind(result.r#type()).ok_or_else(|| refuse(op, "its type is no number"))?;
        self.numbers.insert(mlir::key(result), (kind, value));
        Ok(())
    }

    fn repeat(&mut self, op: Op) -> Result<(), Error> {
        let body = mlir::entry(op).ok_or_else(|| refuse(op, "it has no body"))?;
        let lower = attribute::read(op, "lowerBoundMap", attribute::as_map)?;
        let upper = attribute::read(op, "upperBoundMap", attribute::as_map)?;
        let step = attribute::read(op, "step", attribute::as_integer)?.max(1);
        let operands = mlir::operands(op);
        let (below, rest) = operands.split_at(lower.input_count().min(operands.len()));
        let (above, inits) = rest.split_at(upper.input_count().min(rest.len()));
        let first = self.indices(op, lower, below)?.into_iter().max().unwrap_or(0);
        let end = self.indices(op, upper, above)?.into_iter().min().unwrap_or(0);
        let inits = inits.iter().map(|value| self.number(op, *value));
        let mut carried = inits.collect::<Result<Vec<_>, _>>()?;
        let arguments = mlir::arguments(body);
        let Some((counter, arguments)) = arguments.split_first() else { return Ok(()) };
        let mut at = first;
        while at < end {
            self.numbers.insert(mlir::key(*counter), (Kind::Index64, at as u64));
            for (argument, value) in arguments.iter().zip(&carried) {
                self.numbers.insert(mlir::key(*argument), *value);
            }
            carried = self.block(body)?;
            at = at.saturating_add(step);
        }
        for (result, value) in mlir::results(op).into_iter().zip(carried) {
            self.numbers.insert(mlir::key(result), value);
        }
        Ok(())
    }

    fn parallel(&mut self, op: Op) -> Result<(), Error> {
        let body = mlir::entry(op).ok_or_else(|| refuse(op, "it has no body"))?;
        let counters = mlir::arguments(body);
        let lower = attribute::read(op, "lowerBoundsMap", attribute::as_map)?;
        let upper = attribute::read(op, "upperBoundsMap", attribute::as_map)?;
        let steps = attribute::read(op, "steps", attribute::as_integers)?;
        let operands = mlir::operands(op);
        let (below, above) = operands.split_at(lower.input_count().min(operands.len()));
        let (first, end) = (self.indices(op, lower, below)?, self.indices(op, upper, above)?);
        if op.result_count() > 0 || [first.len(), end.len()] != [counters.len(); 2] {
            return Err(refuse(op, "it has a reduction, or several bounds for a counter"));
        }
        let mut at = first.clone();
        while at.iter().zip(&end).all(|(at, end)| at < end) {
            for (counter, at) in counters.iter().zip(&at) {
                self.numbers.insert(mlir::key(*counter), (Kind::Index64, *at as u64));
            }
            self.block(body)?;
            // The last counter is the fastest; the first one ends the loop.
            let mut places = (0..at.len()).rev();
            while let Some(place) = places.next()
                && let (Some(slot), Some(step)) = (at.get_mut(place), steps.get(place))
            {
                *slot = slot.saturating_add((*step).max(1));
                if place == 0 || end.get(place).is_some_and(|end| *slot < *end) {
                    break;
                }
                *slot = first.get(place).copied().unwrap_or(0);
            }
            if at.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn array(&mut self, op: Op, value: Val) -> Result<&mut Array, Error> {
        let found = match self.arrays.get(&mlir::key(value)) {
            Some(Place::Argument(place)) => match self.arguments.get_mut(*place) {
                Some(Argument::Array(array)) => Some(array),
                _ => None,
            },
            Some(Place::Own(place)) => self.own.get_mut(*place),
            None => None,
        };
        found.ok_or_else(|| refuse(op, "its memref is no array of the function"))
    }

    /// A new array of zeros.
    fn allocate(&mut self, op: Op) -> Result<(), Error> {
        let Some(result) = mlir::results(op).first().copied() else { return Ok(()) };
        let none = || refuse(op, "its type is no array of numbers");
        let ty = MemRefType::try_from(result.r#type()).map_err(|_| none())?;
        let element = Element::from_name(&ty.element().to_string()).ok_or_else(none)?;
        let mut sizes = self.numbers(op)?.into_iter();
        let extent = |at: usize| match ty.dim_size(at).ok()? {
            DimSize::Static(cells) => usize::try_from(cells).ok(),
            DimSize::Dynamic => usize::try_from(sizes.next()?.1 as i64).ok(),
        };
        let shape = (0..ty.rank()).map(extent).collect::<Option<Vec<_>>>();
        let shape = shape.ok_or_else(|| refuse(op, "an extent is negative"))?;
        let array = Array::zeros(element, &shape);
        let array = array.map_err(|error| refuse(op, &error.to_string()))?;
        self.arrays.insert(mlir::key(result), Place::Own(self.own.len()));
        self.own.push(array);
        Ok(())
    }

    fn access(&mut self, op: Op) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let stores = mlir::name(op) == "affine.store";
        let (values, operands) = operands.split_at(usize::from(stores).min(operands.len()));
        let Some((memref, operands)) = operands.split_first() else { return Ok(()) };
        let map = attribute::read(op, "map", attribute::as_map)?;
        let indices = self.indices(op, map, operands)?;
        let value = values.first().map(|value| self.number(op, *value)).transpose()?;
        let array = self.array(op, *memref)?;
        let mut cell = Some(0_usize);
        for (index, extent) in indices.iter().zip(array.shape()) {
            let index = usize::try_from(*index).ok().filter(|index| index < extent);
            cell = cell
                .zip(index)
                .and_then(|(cell, index)| cell.checked_mul(*extent)?.checked_add(index));
        }
        let width = array.element().size();
        let bytes =
            cell.and_then(|cell| array.bytes_mut().get_mut(cell * width..(cell + 1) * width));
        let Some(bytes) = bytes else {
            let what = format!("the index {indices:?} is outside of its array");
            return Err(refuse(op, &what));
        };
        if let Some((_, value)) = value {
            bytes.copy_from_slice(value.to_le_bytes().get(..width).unwrap_or_default());
            return Ok(());
        }
        let bits = bytes.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        let kind = mlir::results(op).first().and_then(|result| kind(result.r#type()));
        let kind = kind.ok_or_else(|| refuse(op, "its type is no number"))?;
        self.define(op, kind.loaded(bits))
    }

    fn dim(&mut self, op: Op) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let [memref, place] = operands.as_slice() else { return Ok(()) };
        let place = usize::try_from(self.number(op, *place)?.1).unwrap_or(usize::MAX);
        let extent = self.array(op, *memref)?.shape().get(place).copied();
        let extent = extent.ok_or_else(|| refuse(op, "the array has no such dimension"))?;
        self.define(op, extent as u64)
    }

    fn compute(&mut self, op: Op) -> Result<u64, Error> {
        let name = mlir::name(op);
        if let "affine.apply" | "affine.min" | "affine.max" = name {
            let map = attribute::read(op, "map", attribute::as_map)?;
            let all = self.indices(op, map, &mlir::operands(op))?;
            let chosen =
                if name == "affine.max" { all.into_iter().max() } else { all.into_iter().min() };
            return Ok(chosen.unwrap_or(0) as u64);
        }
        let unknown = || refuse(op, "the reference of the affine level does not run it");
        if name == "arith.constant" {
            let result = mlir::results(op).first().and_then(|result| kind(result.r#type()));
            let value = mlir::attribute(op, "value").zip(result);
            return value.and_then(|(value, kind)| element(value, kind, 0)).ok_or_else(unknown);
        }
        if !name.starts_with("arith.") && !name.starts_with("math.") {
            return Err(unknown());
        }
        let operands = self.numbers(op)?;
        let mut to = [0_u64];
        match (name.split_once('.'), operands.as_slice()) {
            (Some(("arith", "negf")), [(kind, a)]) => {
                value::unary(Unary::NegF, *kind, &mut to, &[*a]);
            }
            (Some(("arith", "select")), [(_, condition), (_, yes), (_, no)]) => {
                to = [if *condition == 0 { *no } else { *yes }];
            }
            (Some(("arith", which @ ("cmpi" | "cmpf"))), [(kind, a), (_, b)]) => {
                let number = attribute::read(op, "predicate", attribute::as_integer)?;
                let number = u8::try_from(number).unwrap_or(u8::MAX);
                let predicate = match which {
                    "cmpi" => Predicate::Integer(number),
                    _ => Predicate::Float(outcomes(number)),
                };
                value::compare(predicate, *kind, &mut to, &[*a], &[*b]);
            }
            (Some(("arith", which)), [(kind, a), (_, b)]) => {
                let (binary, _) = binary_op(which).ok_or_else(unknown)?;
                self.binary(op, binary, *kind, (*a, *b), &mut to)?;
            }
            (Some(("arith", which)), [(from, a)]) => {
                let cast: Cast = cast_op(which).ok_or_else(unknown)?;
                let into = mlir::results(op).first().and_then(|result| kind(result.r#type()));
                value::cast(cast, *from, into.ok_or_else(unknown)?, &mut to, &[*a]);
            }
            (Some(("math", "fma")), [(kind, a), (_, b), (_, c)]) => {
                value::fma(*kind, &mut to, (&[*a], &[*b], &[*c]), false, false);
            }
            (Some(("math", which)), [(kind, a), (_, b)]) => {
                let (binary, _) = math_binary_op(which).ok_or_else(unknown)?;
                value::binary(binary, *kind, &mut to, &[*a], &[*b]);
            }
            (Some(("math", which)), [(kind, a)]) => {
                let (unary, _) = unary_op(which).ok_or_else(unknown)?;
                value::unary(unary, *kind, &mut to, &[*a]);
            }
            _ => return Err(unknown()),
        }
        let [value] = to;
        Ok(value)
    }

    fn binary(
        &self,
        op: Op,
        binary: Binary,
        kind: Kind,
        (a, b): (u64, u64),
        to: &mut [u64],
    ) -> Result<(), Error> {
        if binary.divides() && b == 0 {
            return Err(refuse(op, "a division by zero"));
        }
        value::binary(binary, kind, to, &[a], &[b]);
        Ok(())
    }
}

fn evaluate(of: AffineExpr, inputs: &[i64], dims: usize) -> Option<i64> {
    if of.is_constant() {
        return Some(of.constant_value());
    }
    if of.is_dim() {
        return inputs.get(of.dim_position()).copied();
    }
    if of.is_symbol() {
        return inputs.get(dims + of.symbol_position()).copied();
    }
    let (a, b) = (evaluate(of.lhs(), inputs, dims)?, evaluate(of.rhs(), inputs, dims)?);
    if of.is_add() {
        a.checked_add(b)
    } else if of.is_mul() {
        a.checked_mul(b)
    } else if b <= 0 {
        None
    } else if of.is_floor_div() {
        Some(a.div_euclid(b))
    } else if of.is_ceil_div() {
        a.checked_neg().map(|a| -a.div_euclid(b))
    } else {
        Some(a.rem_euclid(b))
    }
}
