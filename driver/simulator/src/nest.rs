//! The reference of the affine level: runs a `func.func` of upstream's `affine` loops over memrefs
//! in the order of its text, one operation after the other.
//!
//! Each operation rounds to its own type, by the same functions as the simulator's. Loops of
//! `affine.parallel` run in order. Every access is checked against the shape of its array. An array
//! that the function allocates starts with zeros.
//!
//! Declines, with a place: operations other than `affine`, `arith`, `math`, allocations and
//! `memref.dim`, `affine.if`, reductions of `affine.parallel`, and vectors.

mod read;

use crate::argument::number_bits;
use crate::translate::number_kind;
use crate::value::{self, Kind, Unary};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{DimSize, MemRefType};
use melior::ir::{ShapedTypeLike, Type, ValueLike};
use read::{Body, Expression, For, Parallel, Reader, Step, Work};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
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
    let mut reader = Reader::default();
    let body = reader.body(entry)?;
    let (numbers, arrays) = (vec![None; reader.count()], vec![None; reader.count()]);
    let mut machine = Machine { numbers, arrays, arguments, own: Vec::new(), cancelled };
    for (place, (parameter, at)) in parameters.into_iter().zip(&body.arguments).enumerate() {
        match machine.arguments.get(place) {
            Some(Argument::Size(size)) if kind(parameter.r#type()) == Some(Kind::Index64) => {
                machine.set(*at, (Kind::Index64, *size as u64));
            }
            Some(Argument::Scalar(number))
                if let Some((kind, bits)) = scalar(parameter.r#type(), *number) =>
            {
                machine.set(*at, (kind, bits));
            }
            Some(Argument::Array(array)) if fits(array, parameter.r#type()) => {
                machine.place(*at, Place::Argument(place));
            }
            _ => {
                let what = format!("argument {place} is no {}", parameter.r#type());
                return Err(refuse(function, &what));
            }
        }
    }
    machine.block(&body).map(drop)
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

/// A number with its type.
type Typed = (Kind, u64);

const NOT_RUN: &str = "the reference of the affine level does not run it";

struct Machine<'a> {
    /// The values by their numbers, as far as they are known.
    numbers: Vec<Option<Typed>>,
    arrays: Vec<Option<Place>>,
    arguments: &'a mut [Argument],
    own: Vec<Array>,
    cancelled: &'a dyn Fn() -> bool,
}

impl Machine<'_> {
    fn set(&mut self, at: usize, value: Typed) {
        self.numbers.get_mut(at).into_iter().for_each(|known| *known = Some(value));
    }

    fn place(&mut self, at: usize, place: Place) {
        self.arrays.get_mut(at).into_iter().for_each(|known| *known = Some(place));
    }

    fn number(&self, op: Op, at: usize) -> Result<Typed, Error> {
        let found = self.numbers.get(at).copied().flatten();
        found.ok_or_else(|| refuse(op, "an operand has no value"))
    }

    fn index(&self, op: Op, of: &Expression) -> Result<i64, Error> {
        let found = of.evaluate(&self.numbers);
        found.ok_or_else(|| refuse(op, "an index leaves 64 bits, or is divided by zero"))
    }

    fn indices(&self, op: Op, map: &[Expression]) -> Result<Vec<i64>, Error> {
        map.iter().map(|of| self.index(op, of)).collect()
    }

    /// Runs the operations of a block; gives what its last one hands on.
    fn block(&mut self, body: &Body) -> Result<Vec<Typed>, Error> {
        for step in &body.steps {
            let op = step.op;
            match &step.work {
                Work::End => {
                    return step.operands.iter().map(|at| self.number(op, *at)).collect();
                }
                Work::For(_) | Work::Parallel(_) if (self.cancelled)() => {
                    return Err(refuse(op, "the run is cancelled"));
                }
                Work::For(of) => self.repeat(step, of)?,
                Work::Parallel(of) => self.parallel(step, of)?,
                Work::Load(map) => self.access(step, map, None)?,
                Work::Store(map) => self.access(step, map, step.operands.first())?,
                Work::Dim => self.dim(step)?,
                Work::Allocate => self.allocate(step)?,
                Work::Deallocate => {}
                _ => {
                    let value = self.compute(step)?;
                    self.define(step, value)?;
                }
            }
        }
        Ok(Vec::new())
    }

    fn define(&mut self, step: &Step, value: u64) -> Result<(), Error> {
        let [result] = step.results[..] else { return Err(refuse(step.op, NOT_RUN)) };
        let kind = step.kind.ok_or_else(|| refuse(step.op, "its type is no number"))?;
        self.set(result, (kind, value));
        Ok(())
    }

    fn repeat(&mut self, step: &Step, of: &For) -> Result<(), Error> {
        let op = step.op;
        let first = self.indices(op, &of.lower)?.into_iter().max().unwrap_or(0);
        let end = self.indices(op, &of.upper)?.into_iter().min().unwrap_or(0);
        let initial = of.initial.iter().map(|at| self.number(op, *at));
        let mut carried = initial.collect::<Result<Vec<_>, _>>()?;
        let Some((counter, arguments)) = of.body.arguments.split_first() else { return Ok(()) };
        let mut at = first;
        while at < end {
            self.set(*counter, (Kind::Index64, at as u64));
            for (argument, value) in arguments.iter().zip(&carried) {
                self.set(*argument, *value);
            }
            carried = self.block(&of.body)?;
            at = at.saturating_add(of.step);
        }
        for (result, value) in step.results.iter().zip(carried) {
            self.set(*result, value);
        }
        Ok(())
    }

    fn parallel(&mut self, step: &Step, of: &Parallel) -> Result<(), Error> {
        let op = step.op;
        let counters = &of.body.arguments;
        let (first, end) = (self.indices(op, &of.lower)?, self.indices(op, &of.upper)?);
        if !step.results.is_empty() || [first.len(), end.len()] != [counters.len(); 2] {
            return Err(refuse(op, "it has a reduction, or several bounds for a counter"));
        }
        let mut at = first.clone();
        while at.iter().zip(&end).all(|(at, end)| at < end) {
            for (counter, at) in counters.iter().zip(&at) {
                self.set(*counter, (Kind::Index64, *at as u64));
            }
            self.block(&of.body)?;
            // The last counter is the fastest; the first one ends the loop.
            let mut places = (0..at.len()).rev();
            while let Some(place) = places.next()
                && let (Some(slot), Some(step)) = (at.get_mut(place), of.steps.get(place))
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

    fn array(&mut self, op: Op, at: usize) -> Result<&mut Array, Error> {
        let found = match self.arrays.get(at).copied().flatten() {
            Some(Place::Argument(place)) => match self.arguments.get_mut(place) {
                Some(Argument::Array(array)) => Some(array),
                _ => None,
            },
            Some(Place::Own(place)) => self.own.get_mut(place),
            None => None,
        };
        found.ok_or_else(|| refuse(op, "its memref is no array of the function"))
    }

    /// A new array of zeros.
    fn allocate(&mut self, step: &Step) -> Result<(), Error> {
        let op = step.op;
        let Some((result, at)) = mlir::results(op).first().copied().zip(step.results.first())
        else {
            return Ok(());
        };
        let none = || refuse(op, "its type is no array of numbers");
        let ty = MemRefType::try_from(result.r#type()).map_err(|_| none())?;
        let element = Element::from_name(&ty.element().to_string()).ok_or_else(none)?;
        let sizes = step.operands.iter().map(|at| self.number(op, *at));
        let mut sizes = sizes.collect::<Result<Vec<_>, _>>()?.into_iter();
        let extent = |at: usize| match ty.dim_size(at).ok()? {
            DimSize::Static(cells) => usize::try_from(cells).ok(),
            DimSize::Dynamic => usize::try_from(sizes.next()?.1 as i64).ok(),
        };
        let shape = (0..ty.rank()).map(extent).collect::<Option<Vec<_>>>();
        let shape = shape.ok_or_else(|| refuse(op, "an extent is negative"))?;
        let array = Array::zeros(element, &shape);
        let array = array.map_err(|error| refuse(op, &error.to_string()))?;
        self.place(*at, Place::Own(self.own.len()));
        self.own.push(array);
        Ok(())
    }

    /// A load, or a store of a value.
    fn access(
        &mut self,
        step: &Step,
        map: &[Expression],
        stored: Option<&usize>,
    ) -> Result<(), Error> {
        let op = step.op;
        let Some(memref) = step.operands.get(usize::from(stored.is_some())) else { return Ok(()) };
        let indices = self.indices(op, map)?;
        let value = stored.map(|at| self.number(op, *at)).transpose()?;
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
        let kind = step.kind.ok_or_else(|| refuse(op, "its type is no number"))?;
        self.define(step, kind.loaded(bits))
    }

    fn dim(&mut self, step: &Step) -> Result<(), Error> {
        let [memref, place] = step.operands[..] else { return Ok(()) };
        let place = usize::try_from(self.number(step.op, place)?.1).unwrap_or(usize::MAX);
        let extent = self.array(step.op, memref)?.shape().get(place).copied();
        let extent = extent.ok_or_else(|| refuse(step.op, "the array has no such dimension"))?;
        self.define(step, extent as u64)
    }

    fn compute(&mut self, step: &Step) -> Result<u64, Error> {
        let op = step.op;
        let unknown = || refuse(op, NOT_RUN);
        let operand = |number: usize| {
            let at = step.operands.get(number).ok_or_else(unknown)?;
            self.number(op, *at)
        };
        let mut to = [0_u64];
        match &step.work {
            Work::Constant(value) => return Ok(*value),
            Work::Least(map) => {
                return Ok(self.indices(op, map)?.into_iter().min().unwrap_or(0) as u64);
            }
            Work::Largest(map) => {
                return Ok(self.indices(op, map)?.into_iter().max().unwrap_or(0) as u64);
            }
            Work::Select => {
                let (condition, yes, no) = (operand(0)?.1, operand(1)?.1, operand(2)?.1);
                return Ok(if condition == 0 { no } else { yes });
            }
            Work::Negate => {
                let (kind, a) = operand(0)?;
                value::unary(Unary::NegF, kind, &mut to, &[a]);
            }
            Work::Unary(unary) => {
                let (kind, a) = operand(0)?;
                value::unary(*unary, kind, &mut to, &[a]);
            }
            Work::Cast(cast) => {
                let (from, a) = operand(0)?;
                value::cast(*cast, from, step.kind.ok_or_else(unknown)?, &mut to, &[a]);
            }
            Work::Compare(predicate) => {
                let ((kind, a), (_, b)) = (operand(0)?, operand(1)?);
                value::compare(*predicate, kind, &mut to, &[a], &[b]);
            }
            Work::Binary(binary) => {
                let ((kind, a), (_, b)) = (operand(0)?, operand(1)?);
                if binary.divides() && b == 0 {
                    return Err(refuse(op, "a division by zero"));
                }
                value::binary(*binary, kind, &mut to, &[a], &[b]);
            }
            Work::Fma => {
                let ((kind, a), (_, b), (_, c)) = (operand(0)?, operand(1)?, operand(2)?);
                value::fma(kind, &mut to, (&[a], &[b], &[c]), false, false);
            }
            _ => return Err(unknown()),
        }
        let [value] = to;
        Ok(value)
    }
}
