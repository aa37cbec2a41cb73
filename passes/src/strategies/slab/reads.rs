//! What a vector of each of some rows reads, and how it is read best: a model of the processor's
//! ports.
//!
//! A vector as wide as a line of the cache lies in two lines unless it begins one. So where a
//! function reads beside its point, whole lines are loaded, each once, and the cells between are
//! shifted out of two neighbours. Rows that are computed together share the rows between them.
//!
//! A core takes a line from its first cache and begins two operations on vectors in a cycle. Loads
//! and operations run side by side, so some rows take
//!
//! ```text
//! cycles = max(lines, (operations + shifts) / 2)
//! ```
//!
//! for a vector of each. A load of `b` bytes counts `b / 64` lines where it is aligned, and
//! `(1 + b / 64) * b / 64` where it begins anywhere. The values that several rows or several
//! iterations use must fit in the registers beside [`OWN`] for the function itself.

use super::layout::{LINE, bytes_of};
use std::collections::BTreeMap;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::stencil::{self, Argument, Program};

/// Vector registers that the values of a function itself take.
const OWN: usize = 8;

/// Rows that are computed together at most.
pub const MOST_ROWS: i64 = 4;

/// The cells of one row of a field that some rows read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowRead<'c> {
    /// The field.
    pub field: &'c str,
    /// The row's distance from the first that is computed.
    pub away: Vec<i64>,
    /// Bytes of a cell.
    pub bytes: i64,
    /// How often each cell is used, by its distance along the row.
    pub uses: BTreeMap<i64, usize>,
}

impl RowRead<'_> {
    /// The cells before and behind a vector that are read, 0 or negative and 0 or positive.
    pub fn reach(&self) -> [i64; 2] {
        let first = self.uses.keys().next().copied().unwrap_or(0);
        let last = self.uses.keys().next_back().copied().unwrap_or(0);
        [first.min(0), last.max(0)]
    }

    /// Whether its cells can be shifted out of neighbours, and are worth it.
    pub fn can_shift(&self, lanes: i64) -> bool {
        let [lower, upper] = self.reach();
        lanes * self.bytes == LINE && lower.min(-upper) > -lanes && [lower, upper] != [0, 0]
    }

    /// Vectors that an iteration takes over from the one before, where cells are shifted.
    fn carried(&self) -> usize {
        self.reach().iter().filter(|end| **end != 0).count()
    }
}

/// How the rows of a function are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Rows together.
    pub rows: i64,
    /// Whether cells are shifted out of neighbours, where [`RowRead::can_shift`].
    pub shifts: bool,
}

/// What a vector of one row takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Cycles.
    pub cycles: f64,
    /// Lines that are loaded.
    pub lines: f64,
}

/// The rows that a number of neighbouring rows read.
pub fn of_rows<'c>(
    program: &Program<'c>,
    function: Op<'c>,
    rows: i64,
) -> Result<Vec<RowRead<'c>>, Error> {
    let mut reads: BTreeMap<(&str, Vec<i64>), RowRead> = BTreeMap::new();
    for argument in stencil::arguments(function)? {
        let Argument::Read { field, offset } = argument else { continue };
        let bytes = bytes_of(program.field(field)?.element);
        for beside in 0..rows {
            let away = away(&offset, beside);
            let new = RowRead { field, away: away.clone(), bytes, uses: BTreeMap::new() };
            let read = reads.entry((field, away)).or_insert(new);
            *read.uses.entry(offset.last().copied().unwrap_or(0)).or_default() += 1;
        }
    }
    Ok(reads.into_values().collect())
}

/// The distance of the row that is read at an offset from a row beside the first.
pub fn away(offset: &[i64], beside: i64) -> Vec<i64> {
    let mut away = offset.split_last().map(|(_, row)| row.to_vec()).unwrap_or_default();
    if let Some(last) = away.last_mut() {
        *last += beside;
    }
    away
}

/// The way that takes the fewest cycles for a vector of a row, with these; of several the one of
/// the most rows.
pub fn way<'c>(
    program: &Program<'c>,
    function: Op<'c>,
    (lanes, registers): (i64, usize),
) -> Result<(Way, Cost), Error> {
    let counted = |op: &Op<'c>| {
        let name = mlir::name(*op);
        (name.starts_with("arith.") || name.starts_with("math.")) && name != "arith.constant"
    };
    let operations = mlir::walk(function).iter().filter(|op| counted(op)).count();
    let mut best: Option<(Cost, Way)> = None;
    for rows in (0..).map(|power| 1 << power).take_while(|rows| *rows <= MOST_ROWS) {
        let reads = of_rows(program, function, rows)?;
        for shifts in [false, true] {
            let way = Way { rows, shifts };
            let Some(cost) = cost(&reads, operations, way, (lanes, registers)) else { continue };
            if best.is_none_or(|(least, _)| cost.cycles <= least.cycles) {
                best = Some((cost, way));
            }
        }
    }
    let (cost, way) = best.ok_or_else(|| Error::internal("no way to compute a row"))?;
    Ok((way, cost))
}

/// What a vector of one row takes; none where the registers do not suffice.
fn cost(
    reads: &[RowRead],
    operations: usize,
    way: Way,
    (lanes, registers): (i64, usize),
) -> Option<Cost> {
    let (mut lines, mut shifted, mut kept) = (0.0, 0, 0);
    for read in reads {
        let part = (lanes * read.bytes) as f64 / LINE as f64;
        if way.shifts && read.can_shift(lanes) {
            lines += part;
            shifted += read.uses.keys().filter(|cells| **cells != 0).count();
            kept += 1 + read.carried();
            continue;
        }
        for (cells, uses) in &read.uses {
            lines += if *cells == 0 { part } else { part * (1.0 + part) };
            kept += usize::from(*uses > 1);
        }
    }
    let fits = way.rows == 1 && !way.shifts || kept + OWN <= registers;
    let done = operations * usize::try_from(way.rows).unwrap_or(1) + shifted;
    let cycles = f64::max(lines, done as f64 / 2.0) / way.rows as f64;
    fits.then_some(Cost { cycles, lines: lines / way.rows as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reads of `heat2d` in f32: five cells of A and one of K.
    fn heat(rows: i64) -> Vec<RowRead<'static>> {
        let mut reads = Vec::new();
        for away in -1..=rows {
            let sides: &[i64] = if (0..rows).contains(&away) { &[-1, 0, 1] } else { &[0] };
            let around = (away - 1..=away + 1).filter(|row| (0..rows).contains(row)).count();
            let uses = |cells: &i64| (*cells, if *cells == 0 { around } else { 1 });
            let uses = sides.iter().map(uses).collect();
            reads.push(RowRead { field: "A", away: vec![away], bytes: 4, uses });
            if (0..rows).contains(&away) {
                let uses = [(0, 1)].into();
                reads.push(RowRead { field: "K", away: vec![away], bytes: 4, uses });
            }
        }
        reads
    }

    /// By hand: one row has six loads, two of them across lines: 8 lines, and 9 operations. Four
    /// rows have 6 + 4 rows to load, which are 10 lines, and 36 operations and 8 shifts: 22 cycles.
    /// Without shifts they are 10 + 8 * 2 = 26 lines. Shifts keep 4 * 3 vectors.
    #[test]
    fn cycles_by_hand() {
        let of = |rows, shifts, registers| {
            let way = Way { rows, shifts };
            cost(&heat(rows), 9, way, (16, registers)).map(|cost| cost.cycles)
        };
        assert_eq!(of(1, false, 32), Some(8.0));
        assert_eq!(of(4, false, 32), Some(26.0 / 4.0));
        assert_eq!(of(4, true, 32), Some(22.0 / 4.0));
        assert_eq!(of(4, true, 19), None);
        // Vectors of half a line: 6 + 4 of half a line, and 8 that cross in half of all cases.
        let narrow = cost(&heat(4), 9, Way { rows: 4, shifts: true }, (8, 16));
        assert_eq!(narrow, Some(Cost { cycles: 18.0 / 4.0, lines: 11.0 / 4.0 }));
    }
}
