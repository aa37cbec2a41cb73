//! A function of a program, ready to run over some rows of its grid.

use super::OracleError;
use super::code::{Code, Environment, Layout};
use super::lanes::{self, Strip};
use super::registers::{LANES, Registers};
use crate::program::{FieldId, Function, Repetition};
use crate::sizes;
use crate::source::Span;
use cranelift_entity::PrimaryMap;
use std::ops::Range;
use stencil_runtime::array::{Array, Cell, DataMut, DataRef, each_cell};

/// A function, ready to run.
pub struct Job {
    /// The function's name.
    pub name: String,
    /// Its fields.
    pub updates: Vec<Updated>,
    pieces: Vec<Part>,
    /// Where the function reads values of its own sweep: how many neighbouring cells of a row don't
    /// depend on each other. Points are then computed one row after the other.
    pub in_order: Option<usize>,
    /// The `repeat`s that it stands in, the outer one first.
    pub repeats: Vec<Repetition>,
}

/// An updated field.
pub struct Updated {
    /// The field.
    pub field: FieldId,
    layout: Layout,
    /// First and last coordinate of its grid along the slowest dimension.
    pub rows: (i64, i64),
}

/// A piece, ready to run.
struct Part {
    bounds: Vec<(i64, i64)>,
    code: Code,
    /// Where the values stand in the source, in the order of the updated fields.
    spans: Vec<Span>,
}

/// Some neighbouring cells of a field, with the linear index of the first.
pub struct Cells<'a> {
    first: usize,
    data: DataMut<'a>,
}

impl Cells<'_> {
    /// The cells.
    pub fn data(&self) -> &DataMut<'_> {
        &self.data
    }
}

impl Job {
    pub fn new(function: &Function, environment: &Environment) -> Result<Self, OracleError> {
        let Environment { program, sizes, .. } = environment;
        let updated = |field: &FieldId| {
            let bounds = environment.bounds_of(*field);
            let layout = Layout::new(bounds, &vec![0; bounds.len()]);
            Updated { field: *field, layout, rows: bounds.first().copied().unwrap_or((0, -1)) }
        };
        let mut pieces = Vec::new();
        for piece in &function.pieces {
            let bounds = sizes::bounds(program, &piece.region, sizes)?;
            let code = Code::new(piece, bounds.len(), &function.updates, environment);
            let spans = piece.values.iter().map(|value| value.span).collect();
            pieces.push(Part { bounds, code, spans });
        }
        Ok(Self {
            name: function.name.clone(),
            updates: function.updates.iter().map(updated).collect(),
            pieces,
            in_order: independent_cells(function),
            repeats: function.repeats.clone(),
        })
    }

    /// Where the value at a point stands in the source, of the updated field with this number.
    pub fn span(&self, point: &[i64], updated: usize) -> Option<Span> {
        let holds = |piece: &&Part| {
            let mut all = point.iter().zip(&piece.bounds);
            all.all(|(at, (first, last))| (first..=last).contains(&at))
        };
        self.pieces.iter().find(holds)?.spans.get(updated).copied()
    }

    /// Whether some piece holds a point.
    pub fn has_points(&self) -> bool {
        self.pieces.iter().any(|piece| piece.bounds.iter().all(|(first, last)| first <= last))
    }

    /// The coordinates along the slowest dimension that some updated field has.
    pub fn rows(&self) -> Range<i64> {
        let all =
            self.updates.iter().map(|updated| updated.rows).filter(|(first, last)| first <= last);
        all.map(|(first, last)| first..last + 1)
            .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
            .unwrap_or_default()
    }

    /// Computes the cells with coordinates in `rows` along the slowest dimension into `new`, the
    /// part of every updated field that has these.
    pub fn compute(
        &self,
        old: &PrimaryMap<FieldId, Array>,
        new: &mut [Cells],
        rows: &Range<i64>,
        step: u64,
        registers: &mut Registers,
    ) {
        for (updated, part) in self.updates.iter().zip(new.iter_mut()) {
            if let Some(old) = old.get(updated.field) {
                keep(part, old.data());
            }
        }
        if let Some(lanes) = self.in_order {
            return self.sweep(old, new, step, registers, lanes);
        }
        for piece in &self.pieces {
            let mut bounds = piece.bounds.clone();
            if let Some((first, last)) = bounds.first_mut() {
                (*first, *last) = ((*first).max(rows.start), (*last).min(rows.end - 1));
            }
            if bounds.iter().any(|(first, last)| first > last) {
                continue;
            }
            let mut point: Vec<i64> = bounds.iter().map(|(first, _)| *first).collect();
            loop {
                self.compute_row(piece, &bounds, old, new, &mut point, step, registers, LANES);
                if !next_row(&mut point, &bounds) {
                    break;
                }
            }
        }
    }

    /// Computes all points in row-major order, whatever piece they belong to.
    fn sweep(
        &self,
        old: &PrimaryMap<FieldId, Array>,
        new: &mut [Cells],
        step: u64,
        registers: &mut Registers,
        lanes: usize,
    ) {
        let held = |piece: &&Part| piece.bounds.iter().all(|(first, last)| first <= last);
        let mut pieces: Vec<&Part> = self.pieces.iter().filter(held).collect();
        // Pieces are disjoint: those of a row lie one behind the other.
        pieces.sort_by_key(|piece| piece.bounds.last().copied());
        let all = pieces
            .iter()
            .map(|piece| piece.bounds.clone())
            .reduce(|a, b| a.iter().zip(&b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))).collect());
        let Some(all) = all else { return };
        let mut point: Vec<i64> = all.iter().map(|(first, _)| *first).collect();
        let outer = point.len().saturating_sub(1);
        loop {
            for piece in &pieces {
                let mut row = point.iter().zip(&piece.bounds).take(outer);
                if row.all(|(at, (first, last))| first <= at && at <= last) {
                    let bounds = &piece.bounds;
                    self.compute_row(piece, bounds, old, new, &mut point, step, registers, lanes);
                }
            }
            if !next_row(&mut point, &all) {
                return;
            }
        }
    }

    /// Computes a piece's cells from `point` to the end of its row, some neighbours at a time.
    #[allow(
        clippy::too_many_arguments,
        reason = "one call site, and all of them are different things"
    )]
    fn compute_row(
        &self,
        piece: &Part,
        bounds: &[(i64, i64)],
        old: &PrimaryMap<FieldId, Array>,
        new: &mut [Cells],
        point: &mut [i64],
        step: u64,
        registers: &mut Registers,
        lanes: usize,
    ) {
        let Some(&(first, last)) = bounds.last() else { return };
        let mut at = first;
        while at <= last {
            let count = (lanes as i64).min(last - at + 1) as usize;
            if let Some(place) = point.last_mut() {
                *place = at;
            }
            let strip = Strip { fields: old, new: &*new, point, step: step as i64, count };
            lanes::execute(&piece.code, &strip, registers);
            for ((part, updated), result) in
                new.iter_mut().zip(&self.updates).zip(&piece.code.results)
            {
                let from = updated.layout.index(point) - part.first;
                store(&mut part.data, registers, *result, from, count);
            }
            at += count as i64;
        }
    }
}

/// How many neighbouring cells of a row don't depend on each other; none where a function reads old
/// values alone.
fn independent_cells(function: &Function) -> Option<usize> {
    let dependences = function.dependences();
    let within_row = dependences.iter().filter_map(|offset| {
        let (last, outer) = offset.split_last()?;
        outer.iter().all(|cells| *cells == 0).then(|| last.unsigned_abs() as usize)
    });
    let nearest = within_row.min().unwrap_or(LANES);
    (!dependences.is_empty()).then_some(nearest.clamp(1, LANES))
}

/// Moves a point to the beginning of the next row of a box; false after the last.
pub fn next_row(point: &mut [i64], bounds: &[(i64, i64)]) -> bool {
    let outer = bounds.len().saturating_sub(1);
    for (at, (first, last)) in point.iter_mut().zip(bounds).take(outer).rev() {
        if *at < *last {
            *at += 1;
            return true;
        }
        *at = *first;
    }
    false
}

/// A field's cells in parts of such lengths.
pub fn split(cells: DataMut<'_>, lengths: impl Iterator<Item = usize>) -> Vec<Cells<'_>> {
    fn cut<'a, T>(
        mut rest: &'a mut [T],
        lengths: impl Iterator<Item = usize>,
        wrap: fn(&'a mut [T]) -> DataMut<'a>,
    ) -> Vec<Cells<'a>> {
        let (mut first, mut parts) = (0, Vec::new());
        for length in lengths {
            let (part, others) = rest.split_at_mut(length.min(rest.len()));
            let next = first + part.len();
            parts.push(Cells { first, data: wrap(part) });
            (first, rest) = (next, others);
        }
        parts
    }
    each_cell!(DataMut, cells, wrap(values) => cut(values, lengths, wrap))
}

/// Takes over old values.
fn keep(new: &mut Cells, old: DataRef<'_>) {
    fn copy<T: Cell>(new: &mut [T], old: DataRef<'_>, from: usize) {
        // Both are of the field's type.
        if let Some(old) = T::of(old).and_then(|old| old.get(from..from + new.len())) {
            new.copy_from_slice(old);
        }
    }
    let (from, new) = (new.first, &mut new.data);
    each_cell!(DataMut, new, _wrap(new) => copy(new, old, from));
}

/// Takes over a result.
fn store(new: &mut DataMut, registers: &Registers, register: usize, at: usize, count: usize) {
    fn copy<T: Copy>(new: &mut [T], result: &[T], at: usize, count: usize) {
        if let (Some(new), Some(result)) = (new.get_mut(at..at + count), result.get(..count)) {
            new.copy_from_slice(result);
        }
    }
    each_cell!(DataMut, new, _wrap(new) => copy(new, registers.row(register), at, count));
}
