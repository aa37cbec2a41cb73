//! Runs code over a strip of neighbouring cells, one operation for all cells at a time.

use super::code::{Code, Layout, Op, Register};
use crate::program::{BinaryOp, FieldId, MathFunction, Type};
use crate::source::Span;
use cranelift_entity::PrimaryMap;
use stencil_runtime::array::{Array, Data, Element};

/// Cells of a strip at most. The registers of a piece then fit the nearest cache.
pub const LANES: usize = 256;

/// Where a strip lies, and what it reads.
pub struct Strip<'a> {
    /// Old values of all fields.
    pub fields: &'a PrimaryMap<FieldId, Array>,
    /// Coordinates of the first cell.
    pub point: &'a [i64],
    /// Number of the step.
    pub step: i64,
    /// Cells.
    pub count: usize,
}

/// A division by zero, and the cell of the strip where it happened.
pub struct Fault {
    /// The operation.
    pub span: Span,
    /// The cell.
    pub lane: usize,
}

/// The registers of one thread; they grow as code needs them.
#[derive(Default)]
pub struct Registers {
    f32: Vec<Vec<f32>>,
    f64: Vec<Vec<f64>>,
    i32: Vec<Vec<i32>>,
    i64: Vec<Vec<i64>>,
    bool: Vec<Vec<bool>>,
}

/// A type that registers hold.
pub trait Lane: Copy + Default + PartialOrd {
    /// The registers of this type.
    fn all(registers: &Registers) -> &Vec<Vec<Self>>;
    /// The registers of this type, to be changed.
    fn all_mut(registers: &mut Registers) -> &mut Vec<Vec<Self>>;
}

macro_rules! lane {
    ($($name:ident),*) => {$(
        impl Lane for $name {
            fn all(registers: &Registers) -> &Vec<Vec<Self>> {
                &registers.$name
            }
            fn all_mut(registers: &mut Registers) -> &mut Vec<Vec<Self>> {
                &mut registers.$name
            }
        }
    )*};
}
lane!(f32, f64, i32, i64, bool);

impl Registers {
    /// The values of a register.
    pub fn row<T: Lane>(&self, register: Register) -> &[T] {
        T::all(self).get(register).map_or(&[], Vec::as_slice)
    }

    /// Rewrites the first `count` values of a register, which takes no part in computing them.
    fn write<T: Lane>(&mut self, to: Register, count: usize, write: impl FnOnce(&mut [T], &Self)) {
        let all = T::all_mut(self);
        if all.len() <= to {
            all.resize(to + 1, Vec::new());
        }
        let mut row = all.get_mut(to).map(std::mem::take).unwrap_or_default();
        row.resize(LANES, T::default());
        write(row.get_mut(..count).unwrap_or_default(), self);
        if let Some(slot) = T::all_mut(self).get_mut(to) {
            *slot = row;
        }
    }

    fn map<A: Lane, T: Lane>(&mut self, to: Register, a: Register, count: usize, f: impl Fn(A) -> T) {
        self.write(to, count, |out, all| {
            for (out, a) in out.iter_mut().zip(all.row::<A>(a)) {
                *out = f(*a);
            }
        });
    }

    fn zip<A: Lane, T: Lane>(
        &mut self,
        to: Register,
        (a, b): (Register, Register),
        count: usize,
        f: impl Fn(A, A) -> T,
    ) {
        self.write(to, count, |out, all| {
            for ((out, a), b) in out.iter_mut().zip(all.row::<A>(a)).zip(all.row::<A>(b)) {
                *out = f(*a, *b);
            }
        });
    }
}

/// Arithmetic of a number type; integers wrap.
trait Number: Lane {
    const ZERO: Option<Self>;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn rem(self, b: Self) -> Self;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn min(self, b: Self) -> Self;
    fn max(self, b: Self) -> Self;
    fn to_f32(self) -> f32;
    fn to_f64(self) -> f64;
    fn to_i32(self) -> i32;
    fn to_i64(self) -> i64;
    fn call(function: MathFunction, a: Self, b: Self, c: Self) -> Self;
}

macro_rules! conversions {
    () => {
        fn to_f32(self) -> f32 {
            self as f32
        }
        fn to_f64(self) -> f64 {
            self as f64
        }
        fn to_i32(self) -> i32 {
            self as i32
        }
        fn to_i64(self) -> i64 {
            self as i64
        }
    };
}

macro_rules! float {
    ($($name:ident),*) => {$(
        impl Number for $name {
            /// Division by zero is no fault.
            const ZERO: Option<Self> = None;
            fn add(self, b: Self) -> Self {
                self + b
            }
            fn sub(self, b: Self) -> Self {
                self - b
            }
            fn mul(self, b: Self) -> Self {
                self * b
            }
            fn div(self, b: Self) -> Self {
                self / b
            }
            fn rem(self, b: Self) -> Self {
                self % b
            }
            fn neg(self) -> Self {
                -self
            }
            fn abs(self) -> Self {
                $name::abs(self)
            }
            /// Of a number and a NaN the number; of the two zeros the negative one.
            fn min(self, b: Self) -> Self {
                if b.is_nan() || self < b || (self == b && self.is_sign_negative()) { self } else { b }
            }
            /// Of a number and a NaN the number; of the two zeros the positive one.
            fn max(self, b: Self) -> Self {
                if b.is_nan() || self > b || (self == b && self.is_sign_positive()) { self } else { b }
            }
            conversions!();
            fn call(function: MathFunction, a: Self, b: Self, c: Self) -> Self {
                match function {
                    MathFunction::Min => Number::min(a, b),
                    MathFunction::Max => Number::max(a, b),
                    MathFunction::Abs => a.abs(),
                    MathFunction::Sqrt => a.sqrt(),
                    MathFunction::Rsqrt => 1.0 / a.sqrt(),
                    MathFunction::Exp => a.exp(),
                    MathFunction::Log => a.ln(),
                    MathFunction::Sin => a.sin(),
                    MathFunction::Cos => a.cos(),
                    MathFunction::Tan => a.tan(),
                    MathFunction::Tanh => a.tanh(),
                    MathFunction::Pow => a.powf(b),
                    MathFunction::Floor => a.floor(),
                    MathFunction::Ceil => a.ceil(),
                    MathFunction::Fma => a.mul_add(b, c),
                }
            }
        }
    )*};
}
float!(f32, f64);

macro_rules! integer {
    ($($name:ident),*) => {$(
        impl Number for $name {
            const ZERO: Option<Self> = Some(0);
            fn add(self, b: Self) -> Self {
                self.wrapping_add(b)
            }
            fn sub(self, b: Self) -> Self {
                self.wrapping_sub(b)
            }
            fn mul(self, b: Self) -> Self {
                self.wrapping_mul(b)
            }
            /// A zero divisor is a fault where a cell needs the result; elsewhere anything will do.
            fn div(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_div(b) }
            }
            fn rem(self, b: Self) -> Self {
                if b == 0 { 0 } else { self.wrapping_rem(b) }
            }
            fn neg(self) -> Self {
                self.wrapping_neg()
            }
            fn abs(self) -> Self {
                self.wrapping_abs()
            }
            fn min(self, b: Self) -> Self {
                Ord::min(self, b)
            }
            fn max(self, b: Self) -> Self {
                Ord::max(self, b)
            }
            conversions!();
            /// The checker lets no other function work on integers.
            fn call(function: MathFunction, a: Self, b: Self, _: Self) -> Self {
                match function {
                    MathFunction::Min => Number::min(a, b),
                    MathFunction::Max => Number::max(a, b),
                    MathFunction::Abs => Number::abs(a),
                    _ => a,
                }
            }
        }
    )*};
}
integer!(i32, i64);

/// Runs the code of a piece; its results are in `code.results` afterwards.
///
/// # Errors
/// An integer division by zero.
pub fn execute(code: &Code, strip: &Strip, registers: &mut Registers) -> Result<(), Fault> {
    run(&code.ops, strip, registers, None)
}

/// Runs operations; `active` tells the cells that need the results, where not all do.
fn run(ops: &[Op], strip: &Strip, registers: &mut Registers, active: Option<&[bool]>) -> Result<(), Fault> {
    let count = strip.count;
    for op in ops {
        match op {
            Op::Fill { to, ty, float, int } => match ty {
                Type::Element(Element::F32) => registers.write(*to, count, |out, _| out.fill(*float as f32)),
                Type::Element(Element::F64) => registers.write(*to, count, |out, _| out.fill(*float)),
                Type::Element(Element::I32) => registers.write(*to, count, |out, _| out.fill(*int as i32)),
                Type::Element(Element::I64) => registers.write(*to, count, |out, _| out.fill(*int)),
                Type::Bool => registers.write(*to, count, |out, _| out.fill(*int != 0)),
            },
            Op::Read { to, field, layout } => read(registers, strip, *to, *field, layout),
            Op::Coordinate { to, dimension, last } => {
                let start = strip.point.get(*dimension).copied().unwrap_or(0);
                registers.write(*to, count, |out, _| match last {
                    true => out.iter_mut().zip(0i64..).for_each(|(out, lane)| *out = start.wrapping_add(lane)),
                    false => out.fill(start),
                });
            }
            Op::Step { to } => registers.write(*to, count, |out, _| out.fill(strip.step)),
            Op::Unary { to, ty, a } => match ty {
                Type::Element(Element::F32) => registers.map(*to, *a, count, <f32 as Number>::neg),
                Type::Element(Element::F64) => registers.map(*to, *a, count, <f64 as Number>::neg),
                Type::Element(Element::I32) => registers.map(*to, *a, count, <i32 as Number>::neg),
                Type::Element(Element::I64) => registers.map(*to, *a, count, <i64 as Number>::neg),
                Type::Bool => registers.map(*to, *a, count, |a: bool| !a),
            },
            Op::Binary { to, ty, op, a, b, span } => {
                let operands = (*a, *b);
                let outcome = match ty {
                    Type::Element(Element::F32) => arithmetic::<f32>(registers, *op, *to, operands, count, active),
                    Type::Element(Element::F64) => arithmetic::<f64>(registers, *op, *to, operands, count, active),
                    Type::Element(Element::I32) => arithmetic::<i32>(registers, *op, *to, operands, count, active),
                    Type::Element(Element::I64) => arithmetic::<i64>(registers, *op, *to, operands, count, active),
                    Type::Bool => Ok(()),
                };
                outcome.map_err(|lane| Fault { span: *span, lane })?;
            }
            Op::Compare { to, ty, op, a, b } => {
                let operands = (*a, *b);
                match ty {
                    Type::Element(Element::F32) => compare::<f32>(registers, *op, *to, operands, count),
                    Type::Element(Element::F64) => compare::<f64>(registers, *op, *to, operands, count),
                    Type::Element(Element::I32) => compare::<i32>(registers, *op, *to, operands, count),
                    Type::Element(Element::I64) => compare::<i64>(registers, *op, *to, operands, count),
                    Type::Bool => compare::<bool>(registers, *op, *to, operands, count),
                }
            }
            Op::Call { to, ty, function, arguments } => match ty {
                Type::Element(Element::F32) => call::<f32>(registers, *function, *to, *arguments, count),
                Type::Element(Element::F64) => call::<f64>(registers, *function, *to, *arguments, count),
                Type::Element(Element::I32) => call::<i32>(registers, *function, *to, *arguments, count),
                Type::Element(Element::I64) => call::<i64>(registers, *function, *to, *arguments, count),
                Type::Bool => {}
            },
            Op::Cast { to, ty, from, a } => match from {
                Type::Element(Element::F32) => cast::<f32>(registers, *ty, *to, *a, count),
                Type::Element(Element::F64) => cast::<f64>(registers, *ty, *to, *a, count),
                Type::Element(Element::I32) => cast::<i32>(registers, *ty, *to, *a, count),
                Type::Element(Element::I64) => cast::<i64>(registers, *ty, *to, *a, count),
                Type::Bool => {}
            },
            Op::Branch { to, ty, condition, sides } => {
                let condition = registers.row::<bool>(*condition).get(..count).unwrap_or_default().to_vec();
                for (side, (ops, result)) in sides.iter().enumerate() {
                    let taken: Vec<bool> = condition.iter().map(|c| *c == (side == 0)).collect();
                    let needed = |(lane, taken): (usize, &bool)| {
                        *taken && active.is_none_or(|active| active.get(lane).is_some_and(|a| *a))
                    };
                    let needed: Vec<bool> = taken.iter().enumerate().map(needed).collect();
                    if !needed.contains(&true) {
                        continue;
                    }
                    let mask = needed.contains(&false).then_some(needed.as_slice());
                    run(ops, strip, registers, mask)?;
                    match ty {
                        Type::Element(Element::F32) => choose::<f32>(registers, *to, *result, &taken),
                        Type::Element(Element::F64) => choose::<f64>(registers, *to, *result, &taken),
                        Type::Element(Element::I32) => choose::<i32>(registers, *to, *result, &taken),
                        Type::Element(Element::I64) => choose::<i64>(registers, *to, *result, &taken),
                        Type::Bool => choose::<bool>(registers, *to, *result, &taken),
                    }
                }
            }
        }
    }
    Ok(())
}

fn read(registers: &mut Registers, strip: &Strip, to: Register, field: FieldId, layout: &Layout) {
    fn copy<T: Lane>(registers: &mut Registers, to: Register, from: &[T], start: usize, count: usize) {
        // The checker has proved that reads lie inside the grid.
        if let Some(from) = from.get(start..start.saturating_add(count)) {
            registers.write(to, count, |out, _| out.copy_from_slice(from));
        }
    }
    let start = layout.index(strip.point);
    match strip.fields.get(field).map(Array::data) {
        Some(Data::F32(values)) => copy(registers, to, values, start, strip.count),
        Some(Data::F64(values)) => copy(registers, to, values, start, strip.count),
        Some(Data::I32(values)) => copy(registers, to, values, start, strip.count),
        Some(Data::I64(values)) => copy(registers, to, values, start, strip.count),
        None => {}
    }
}

/// # Errors
/// The cell that divides an integer by zero.
fn arithmetic<T: Number>(
    registers: &mut Registers,
    op: BinaryOp,
    to: Register,
    operands: (Register, Register),
    count: usize,
    active: Option<&[bool]>,
) -> Result<(), usize> {
    if let (Some(zero), BinaryOp::Div | BinaryOp::Rem) = (T::ZERO, op) {
        let needed = |lane: usize| active.is_none_or(|active| active.get(lane).is_some_and(|a| *a));
        let divisors = registers.row::<T>(operands.1).iter().take(count);
        let fault = divisors.enumerate().find(|(lane, divisor)| **divisor == zero && needed(*lane));
        if let Some((lane, _)) = fault {
            return Err(lane);
        }
    }
    match op {
        BinaryOp::Add => registers.zip(to, operands, count, T::add),
        BinaryOp::Sub => registers.zip(to, operands, count, T::sub),
        BinaryOp::Mul => registers.zip(to, operands, count, T::mul),
        BinaryOp::Div => registers.zip(to, operands, count, T::div),
        BinaryOp::Rem => registers.zip(to, operands, count, T::rem),
        _ => {} // The others give conditions.
    }
    Ok(())
}

fn compare<T: Lane>(
    registers: &mut Registers,
    op: BinaryOp,
    to: Register,
    operands: (Register, Register),
    count: usize,
) {
    match op {
        BinaryOp::Eq => registers.zip(to, operands, count, |a: T, b: T| a == b),
        BinaryOp::Ne => registers.zip(to, operands, count, |a: T, b: T| a != b),
        BinaryOp::Lt => registers.zip(to, operands, count, |a: T, b: T| a < b),
        BinaryOp::Le => registers.zip(to, operands, count, |a: T, b: T| a <= b),
        BinaryOp::Gt => registers.zip(to, operands, count, |a: T, b: T| a > b),
        BinaryOp::Ge => registers.zip(to, operands, count, |a: T, b: T| a >= b),
        _ => {} // The others give numbers.
    }
}

fn call<T: Number>(
    registers: &mut Registers,
    function: MathFunction,
    to: Register,
    [a, b, c]: [Register; 3],
    count: usize,
) {
    registers.write(to, count, |out, all| {
        // A function of fewer arguments gets its first one again, and does not look at it.
        let first = all.row::<T>(a);
        let or_first = |row: &'_ [T], lane: usize, value: T| row.get(lane).copied().unwrap_or(value);
        let (b, c) = (all.row::<T>(b), all.row::<T>(c));
        for (lane, (out, a)) in out.iter_mut().zip(first).enumerate() {
            *out = T::call(function, *a, or_first(b, lane, *a), or_first(c, lane, *a));
        }
    });
}

fn cast<T: Number>(registers: &mut Registers, ty: Type, to: Register, a: Register, count: usize) {
    match ty {
        Type::Element(Element::F32) => registers.map(to, a, count, T::to_f32),
        Type::Element(Element::F64) => registers.map(to, a, count, T::to_f64),
        Type::Element(Element::I32) => registers.map(to, a, count, T::to_i32),
        Type::Element(Element::I64) => registers.map(to, a, count, T::to_i64),
        Type::Bool => {}
    }
}

/// Takes over the cells of a side's result that took that side.
fn choose<T: Lane>(registers: &mut Registers, to: Register, result: Register, taken: &[bool]) {
    let result = registers.row::<T>(result).to_vec();
    registers.write(to, taken.len(), |out: &mut [T], _| {
        for ((out, value), taken) in out.iter_mut().zip(result).zip(taken) {
            if *taken {
                *out = value;
            }
        }
    });
}
