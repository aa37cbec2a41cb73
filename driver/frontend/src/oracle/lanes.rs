//! Runs code over a strip of neighbouring cells, one operation for all cells at a time.

use super::code::{Code, Constant, Layout, Op, Register, Source};
use super::job::Cells;
use super::numbers::{Number, Wide};
use super::outside::{Map, Reach};
use super::registers::{Lane, Registers, arithmetic, call, compare};
use crate::program::{FieldId, Type, UnaryOp};
use cranelift_entity::PrimaryMap;
use stencil_runtime::array::{Array, Cell, DataMut, DataRef, each_cell, with_cell};

/// Where a strip lies, and what it reads.
pub struct Strip<'a> {
    /// Old values of all fields.
    pub fields: &'a PrimaryMap<FieldId, Array>,
    /// New values of the updated fields, as far as they are computed.
    pub new: &'a [Cells<'a>],
    /// Coordinates of the first cell.
    pub point: &'a [i64],
    /// Number of the step.
    pub step: i64,
    /// Cells.
    pub count: usize,
}

/// Runs the code of a piece; its results are in `code.results` afterwards.
pub fn execute(code: &Code, strip: &Strip, registers: &mut Registers) {
    run(&code.ops, strip, registers);
}

/// Runs `$body` with `$T` standing for a number type, or `$other` for conditions.
macro_rules! typed {
    ($ty:expr, $T:ident => $body:expr, $other:expr) => {
        match $ty {
            Type::Element(element) => with_cell!(element, $T => $body),
            Type::Bool => $other,
        }
    };
}

/// Runs operations.
fn run(ops: &[Op], strip: &Strip, registers: &mut Registers) {
    let count = strip.count;
    let mut ops = ops.iter().peekable();
    while let Some(op) = ops.next() {
        match op {
            Op::Fill { to, value: Constant::Bool(value) } => {
                registers.write(*to, count, |out, _| out.fill(*value))
            }
            Op::Fill { to, value: Constant::Number(value) } => with_cell!(value.element(), T => {
                let value = T::of_number(*value).unwrap_or_default();
                registers.write(*to, count, |out, _| out.fill(value))
            }),
            Op::Read { to, from, layout } => read(registers, strip, *to, *from, layout),
            Op::Reach { to, from, reach } => self::reach(registers, strip, *to, *from, reach),
            // A read inside the grid, whatever the rule is for others.
            Op::Inside { to, reach: wanted }
                if wanted.all_inside(strip.point, count)
                    && let Some((to, from, place)) = read_inside(*to, ops.peek().copied()) =>
            {
                reach(registers, strip, to, from, place);
                ops.next();
            }
            Op::Inside { to, reach } => {
                let lanes = reach.lanes_inside(strip.point, count);
                let inside = reach.row_inside(strip.point);
                registers.write(*to, count, |out: &mut [bool], _| {
                    out.fill(false);
                    if let Some(out) = out.get_mut(lanes).filter(|_| inside) {
                        out.fill(true);
                    }
                });
            }
            Op::Coordinate { to, dimension, last, plus } => {
                let start = strip.point.get(*dimension).copied().unwrap_or(0).wrapping_add(*plus);
                registers.write(*to, count, |out, _| match last {
                    true => out
                        .iter_mut()
                        .zip(0i64..)
                        .for_each(|(out, lane)| *out = start.wrapping_add(lane)),
                    false => out.fill(start),
                });
            }
            Op::Gather { to, field, at, bounds, map } => {
                gather(registers, strip, *to, *field, (at, bounds, *map));
            }
            Op::Holds { to, at, bounds } => registers.write(*to, count, |out: &mut [bool], all| {
                for (lane, out) in out.iter_mut().enumerate() {
                    let place = at.iter().filter_map(|at| all.row::<i64>(*at).get(lane));
                    *out =
                        place.zip(bounds).all(|(at, (first, last))| (first..=last).contains(&at));
                }
            }),
            Op::Copy { to, from } => registers.map(*to, *from, count, |value: i64| value),
            Op::Step { to } => registers.write(*to, count, |out, _| out.fill(strip.step)),
            Op::Unary { to, ty, op: UnaryOp::Inverse, a } => {
                typed!(ty, T => registers.map(*to, *a, count, <T as Number>::inverse), ());
            }
            Op::Unary { to, ty, a, .. } => typed!(
                ty, T => registers.map(*to, *a, count, <T as Number>::neg),
                registers.map(*to, *a, count, |a: bool| !a)
            ),
            Op::Binary { to, ty, op, a, b } => {
                typed!(ty, T => arithmetic::<T>(registers, *op, *to, (*a, *b), count), ());
            }
            Op::Compare { to, ty, op, a, b } => typed!(
                ty, T => compare::<T>(registers, *op, *to, (*a, *b), count),
                compare::<bool>(registers, *op, *to, (*a, *b), count)
            ),
            Op::Call { to, ty, function, arguments } => {
                typed!(ty, T => call::<T>(registers, *function, *to, *arguments, count), ());
            }
            Op::Cast { to, ty, from, a } => cast(registers, (*from, *a), (*ty, *to), count),
            Op::Branch { to, ty, condition, sides } => {
                branch(registers, strip, (*to, *ty), *condition, sides);
            }
        }
    }
}

/// Converts numbers by way of a wide form: code for each pair of types would be much code.
fn cast(
    registers: &mut Registers,
    (from, a): (Type, Register),
    (ty, to): (Type, Register),
    count: usize,
) {
    let wide: Vec<Wide> = typed!(from, A => {
        registers.row::<A>(a).iter().take(count).map(|a| a.widen()).collect()
    }, Vec::new());
    typed!(ty, T => registers.write(to, count, |out, _| {
        out.iter_mut().zip(wide).for_each(|(out, wide)| *out = T::narrow(wide));
    }), ());
}

/// `if`: a side runs where some cell takes it.
fn branch(
    registers: &mut Registers,
    strip: &Strip,
    (to, ty): (Register, Type),
    condition: Register,
    sides: &[(Vec<Op>, Register); 2],
) {
    let count = strip.count;
    let condition = registers.row::<bool>(condition).get(..count).unwrap_or_default();
    if let Some((ops, result)) = side_of_all(condition, sides) {
        run(ops, strip, registers);
        typed!(
            ty, T => registers.map(to, *result, count, |value: T| value),
            registers.map(to, *result, count, |value: bool| value)
        );
        return;
    }
    let condition = condition.to_vec();
    for (side, (ops, result)) in sides.iter().enumerate() {
        let taken: Vec<bool> = condition.iter().map(|c| *c == (side == 0)).collect();
        if !taken.contains(&true) {
            continue;
        }
        run(ops, strip, registers);
        typed!(
            ty, T => choose::<T>(registers, to, *result, &taken),
            choose::<bool>(registers, to, *result, &taken)
        );
    }
}

/// Runs `$body` on the cells that a read takes its value from.
macro_rules! cells_of {
    ($strip:expr, $from:expr, $values:ident => $body:expr) => {
        match $from {
            Source::Old(field) => {
                if let Some(data) = $strip.fields.get(field).map(Array::data) {
                    each_cell!(DataRef, data, _wrap($values) => $body);
                }
            }
            Source::New(place) => {
                if let Some(data) = $strip.new.get(place).map(Cells::data) {
                    each_cell!(DataMut, data, _wrap($values) => $body);
                }
            }
        }
    };
}

fn read(registers: &mut Registers, strip: &Strip, to: Register, from: Source, layout: &Layout) {
    fn copy<T: Lane>(
        registers: &mut Registers,
        to: Register,
        from: &[T],
        start: usize,
        count: usize,
    ) {
        // The checker has proved that reads lie inside the grid.
        if let Some(from) = from.get(start..start.saturating_add(count)) {
            registers.write(to, count, |out, _| out.copy_from_slice(from));
        }
    }
    let start = layout.index(strip.point);
    cells_of!(strip, from, values => copy(registers, to, values, start, strip.count));
}

/// Reads of a boundary rule: those inside the grid lie side by side.
fn reach(registers: &mut Registers, strip: &Strip, to: Register, from: Source, reach: &Reach) {
    fn copy<T: Lane>(
        registers: &mut Registers,
        strip: &Strip,
        to: Register,
        reach: &Reach,
        from: &[T],
    ) {
        let inside = reach.lanes_inside(strip.point, strip.count);
        let row = reach.row(strip.point);
        let cell = |lane: usize| row + reach.cell_of_row(strip.point, lane);
        registers.write(to, strip.count, |out, _| {
            let first = cell(inside.start);
            let cells = from.get(first..first.saturating_add(inside.len()));
            if let (Some(out), Some(cells)) = (out.get_mut(inside.clone()), cells) {
                out.copy_from_slice(cells);
            }
            for lane in (0..inside.start).chain(inside.end..strip.count) {
                if let Some(out) = out.get_mut(lane) {
                    *out = from.get(cell(lane)).copied().unwrap_or_default();
                }
            }
        });
    }
    cells_of!(strip, from, values => copy(registers, strip, to, reach, values));
}

/// Cells at computed places. Places outside are kept in `registers.outside`: the checker has shown
/// that there are none, whichever side of an `if` a cell takes.
fn gather(
    registers: &mut Registers,
    strip: &Strip,
    to: Register,
    field: FieldId,
    (at, bounds, map): (&[Register], &[(i64, i64)], Option<Map>),
) {
    let layout = Layout::new(bounds, &vec![0; bounds.len()]);
    let mut places = Vec::new();
    for lane in 0..strip.count {
        let point = at.iter().filter_map(|at| registers.row::<i64>(*at).get(lane).copied());
        let point: Vec<i64> = match map {
            None => point.collect(),
            Some(map) => {
                let cells = point.zip(bounds);
                cells
                    .map(|(at, (first, last))| {
                        first.wrapping_add(map.cell(at, *first, last - first + 1))
                    })
                    .collect()
            }
        };
        let inside =
            point.iter().zip(bounds).all(|(at, (first, last))| (first..=last).contains(&at));
        places.push(inside.then(|| layout.index(&point)));
        if !inside {
            registers.outside = Some(point);
        }
    }
    if let Some(data) = strip.fields.get(field).map(Array::data) {
        each_cell!(DataRef, data, _wrap(values) => {
            let cell = |place: &Option<usize>| {
                place.and_then(|place| values.get(place).copied()).unwrap_or_default()
            };
            registers.write(to, strip.count, |out, _| {
                out.iter_mut().zip(&places).for_each(|(out, place)| *out = cell(place));
            });
        });
    }
}

/// The register, the field and the place of a read that follows a look whether it lies inside.
fn read_inside(looked: Register, next: Option<&Op>) -> Option<(Register, Source, &Reach)> {
    let Some(Op::Branch { to, condition, sides, .. }) = next else { return None };
    let ([Op::Reach { to: own, from, reach }], result) = (sides[0].0.as_slice(), sides[0].1) else {
        return None;
    };
    (*condition == looked && *own == result).then_some((*to, *from, reach))
}

/// The side that all cells take.
fn side_of_all<'s, S>(condition: &[bool], [yes, no]: &'s [S; 2]) -> Option<&'s S> {
    // Without an early end, which would keep this from running over several cells at a time.
    let all = condition.iter().fold(true, |all, one| all & one);
    let any = condition.iter().fold(false, |any, one| any | one);
    (all || !any).then_some(if all { yes } else { no })
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
