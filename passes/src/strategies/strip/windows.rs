//! Values of the same sweep in registers: each lane keeps the last values of its rows, and of the
//! rows of the lane above that it reads.

use super::geometry::{Geometry, Source};
use melior::ir::Type;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{Argument, Piece, Program};

/// The values of a field that a lane keeps.
#[derive(Clone)]
pub struct Window<'c> {
    /// The field.
    pub field: &'c str,
    /// The type of its values.
    pub element: Type<'c>,
    /// For each row of the lane, how many times back values are read.
    own: Vec<usize>,
    /// For each row of the lane above, the last one first.
    above_depths: Vec<usize>,
}

impl Window<'_> {
    /// Rows of the lane above whose values are read.
    pub fn above(&self) -> i64 {
        i64::try_from(self.above_depths.len()).unwrap_or(i64::MAX)
    }
}

/// The windows of all fields whose values are read in their own sweep.
pub fn windows<'c>(
    program: &Program<'c>,
    pieces: &[Piece<'c>],
    geometry: &Geometry,
) -> Result<Vec<Window<'c>>, Error> {
    let mut windows: Vec<Window> = Vec::new();
    for piece in pieces {
        for argument in program.arguments(piece.function)? {
            let Argument::Current { field, offset } = argument else { continue };
            let &[rows, columns] = offset.as_slice() else {
                return Err(Error::internal("a value of the same sweep of another rank"));
            };
            if windows.iter().all(|window| window.field != *field) {
                let own = vec![0; usize::try_from(geometry.rows).unwrap_or(1)];
                let element = program.field(field)?.element;
                windows.push(Window { field, element, own, above_depths: Vec::new() });
            }
            let Some(window) = windows.iter_mut().find(|window| window.field == *field) else {
                continue;
            };
            for row in 0..geometry.rows {
                window.reach(geometry.source(row, [rows, columns]));
            }
        }
    }
    for window in &mut windows {
        // The last rows go to the lane below, one time later.
        let handed_on = window.above_depths.len();
        for depth in window.own.iter_mut().rev().take(handed_on) {
            *depth = (*depth).max(1);
        }
    }
    windows.sort_by_key(|window| window.field);
    Ok(windows)
}

impl Window<'_> {
    fn reach(&mut self, source: Source) {
        let (rows, row, ago) = match source {
            Source::Own { row, ago } => (&mut self.own, row, ago),
            Source::Above { row, ago } => (&mut self.above_depths, row - 1, ago),
        };
        let row = usize::try_from(row).unwrap_or(0);
        if rows.len() <= row {
            // A row between two that are read is handed on too.
            rows.resize(row + 1, 1);
        }
        if let Some(depth) = rows.get_mut(row) {
            *depth = (*depth).max(usize::try_from(ago).unwrap_or(0));
        }
    }
}

/// The values that a lane keeps of a field, the newest of each row first.
#[derive(Clone)]
pub struct Kept<'c> {
    own: Vec<Vec<Val<'c>>>,
    above: Vec<Vec<Val<'c>>>,
    now: Vec<Val<'c>>,
}

impl<'c> Kept<'c> {
    /// The newest value of a row of the times before, from the last row as 1.
    pub fn last(&self, row: i64) -> Result<Val<'c>, Error> {
        let found = from_last(&self.own, row).and_then(|values| values.first().copied());
        found.ok_or_else(|| Error::internal("a row that no lane hands on"))
    }

    /// Takes the value of a row of the lane above, from its last row as 1.
    pub fn take(&mut self, row: i64, value: Val<'c>) {
        let row = usize::try_from(row - 1).ok();
        if let Some(values) = row.and_then(|row| self.above.get_mut(row)) {
            values.insert(0, value);
        }
    }

    /// The values of the rows of this time that are computed.
    pub fn of_this_time(&self) -> &[Val<'c>] {
        &self.now
    }

    /// Adds the value of the next row of this time.
    pub fn push(&mut self, value: Val<'c>) {
        self.now.push(value);
    }

    /// The value of the same sweep at a source.
    pub fn at(&self, source: Source) -> Result<Val<'c>, Error> {
        let (rows, row, ago) = match source {
            Source::Own { row, ago: 0 } => {
                let row = usize::try_from(row).ok();
                let value = row.and_then(|row| self.now.get(row).copied());
                return value.ok_or_else(|| Error::internal("a row that is not computed yet"));
            }
            Source::Own { row, ago } => (&self.own, row, ago),
            Source::Above { row, ago } => (&self.above, row - 1, ago),
        };
        let found = usize::try_from(row).ok().and_then(|row| rows.get(row));
        let value = found.and_then(|row| row.get(usize::try_from(ago - 1).ok()?).copied());
        value.ok_or_else(|| Error::internal("a value that no lane keeps"))
    }
}

/// The entry of a row, counted from the last as 1.
fn from_last<T>(rows: &[T], row: i64) -> Option<&T> {
    rows.get(rows.len().checked_sub(usize::try_from(row).ok()?)?)
}

/// The types of the values that a lane carries from a time to the next.
pub fn types<'c>(windows: &[Window<'c>]) -> Vec<Type<'c>> {
    windows.iter().flat_map(|window| vec![window.element; window.carried()]).collect()
}

/// Zeros for [`types`].
pub fn zeros<'c>(windows: &[Window<'c>], builder: &Builder<'c>) -> Result<Vec<Val<'c>>, Error> {
    types(windows).into_iter().map(|ty| builder.zero(ty)).collect()
}

impl<'c> Window<'c> {
    /// The newest value of the lane above comes with the next time.
    fn carried(&self) -> usize {
        let above = self.above_depths.iter().map(|depth| depth.saturating_sub(1));
        self.own.iter().copied().chain(above).sum()
    }

    fn unpack(&self, values: &mut impl Iterator<Item = Val<'c>>) -> Kept<'c> {
        let mut rows = |depths: &[usize], less: usize| -> Vec<Vec<Val<'c>>> {
            let depths = depths.iter().map(|depth| depth.saturating_sub(less));
            depths.map(|depth| values.by_ref().take(depth).collect()).collect()
        };
        let own = rows(&self.own, 0);
        Kept { own, above: rows(&self.above_depths, 1), now: Vec::new() }
    }

    fn pack(&self, kept: &Kept<'c>) -> Vec<Val<'c>> {
        let own = self.own.iter().zip(&kept.own).zip(&kept.now);
        let own = own.flat_map(|((depth, old), new)| {
            std::iter::once(*new).chain(old.iter().copied()).take(*depth)
        });
        let above = self.above_depths.iter().zip(&kept.above);
        let above =
            above.flat_map(|(depth, values)| values.iter().copied().take(depth.saturating_sub(1)));
        own.chain(above).collect()
    }
}

/// The values of each field, from those that the loop carries.
pub fn unpack<'c>(windows: &[Window<'c>], values: &[Val<'c>]) -> Vec<Kept<'c>> {
    let mut values = values.iter().copied();
    windows.iter().map(|window| window.unpack(&mut values)).collect()
}

/// The values that the loop carries to the next time.
pub fn pack<'c>(windows: &[Window<'c>], kept: &[Kept<'c>]) -> Vec<Val<'c>> {
    windows.iter().zip(kept).flat_map(|(window, kept)| window.pack(kept)).collect()
}
