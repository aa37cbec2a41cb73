//! The registers of the oracle's code: a row of cells each, one type after the other.

use super::code::Register;
use super::numbers::Number;
use crate::program::{BinaryOp, MathFunction};
use stencil_runtime::array::{bf16, f16};

/// Cells of a strip at most. The registers of a piece then fit the nearest cache.
pub const LANES: usize = 256;

/// The registers of one thread; they grow as code needs them.
#[derive(Default)]
pub struct Registers {
    f16: Vec<Vec<f16>>,
    bf16: Vec<Vec<bf16>>,
    f32: Vec<Vec<f32>>,
    f64: Vec<Vec<f64>>,
    i8: Vec<Vec<i8>>,
    i16: Vec<Vec<i16>>,
    i32: Vec<Vec<i32>>,
    i64: Vec<Vec<i64>>,
    u8: Vec<Vec<u8>>,
    u16: Vec<Vec<u16>>,
    u32: Vec<Vec<u32>>,
    u64: Vec<Vec<u64>>,
    bool: Vec<Vec<bool>>,
    /// Where an absolute read lies outside its grid.
    pub outside: Option<Vec<i64>>,
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
lane!(f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, bool);

impl Registers {
    /// The values of a register.
    pub fn row<T: Lane>(&self, register: Register) -> &[T] {
        T::all(self).get(register).map_or(&[], Vec::as_slice)
    }

    /// Rewrites the first `count` values of a register, which takes no part in computing them.
    pub fn write<T: Lane>(
        &mut self,
        to: Register,
        count: usize,
        write: impl FnOnce(&mut [T], &Self),
    ) {
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

    /// Applies a function to each value of a register.
    pub fn map<A: Lane, T: Lane>(
        &mut self,
        to: Register,
        a: Register,
        count: usize,
        f: impl Fn(A) -> T,
    ) {
        self.write(to, count, |out, all| {
            for (out, a) in out.iter_mut().zip(all.row::<A>(a)) {
                *out = f(*a);
            }
        });
    }

    /// Applies a function to each pair of values of two registers.
    pub fn zip<A: Lane, T: Lane>(
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

/// Applies an operator that gives numbers.
pub fn arithmetic<T: Number>(
    registers: &mut Registers,
    op: BinaryOp,
    to: Register,
    operands: (Register, Register),
    count: usize,
) {
    match op {
        BinaryOp::Add => registers.zip(to, operands, count, T::add),
        BinaryOp::Sub => registers.zip(to, operands, count, T::sub),
        BinaryOp::Mul => registers.zip(to, operands, count, T::mul),
        BinaryOp::Div => registers.zip(to, operands, count, T::div),
        BinaryOp::Rem => registers.zip(to, operands, count, T::rem),
        op if op.is_bitwise() => {
            registers.zip(to, operands, count, move |a, b| T::bits(op, a, b));
        }
        _ => {} // The others give conditions.
    }
}

/// Applies an operator that gives conditions.
pub fn compare<T: Lane>(
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

/// Calls a function; those of fewer arguments get the first one again.
pub fn call<T: Number>(
    registers: &mut Registers,
    function: MathFunction,
    to: Register,
    [a, b, c]: [Register; 3],
    count: usize,
) {
    registers.write(to, count, |out, all| {
        // A function of fewer arguments gets its first one again, and does not look at it.
        let first = all.row::<T>(a);
        let or_first =
            |row: &'_ [T], lane: usize, value: T| row.get(lane).copied().unwrap_or(value);
        let (b, c) = (all.row::<T>(b), all.row::<T>(c));
        for (lane, (out, a)) in out.iter_mut().zip(first).enumerate() {
            *out = T::call(function, *a, or_first(b, lane, *a), or_first(c, lane, *a));
        }
    });
}
