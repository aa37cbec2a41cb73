//! Old values in shared memory: the cells that the lanes of a strip read in a tile, each row skewed
//! as its points are.

use super::geometry::{FARTHEST, Geometry};
use crate::analysis::footprint;
use melior::ir::Type;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::stencil::{Piece, Program};

/// The old values of a field that a tile reads.
#[derive(Clone, Debug)]
pub struct OldValues<'c> {
    /// The field.
    pub field: &'c str,
    /// The type of its values.
    pub element: Type<'c>,
    /// Lanes above the strip and below it whose rows are read.
    pub lanes: [i64; 2],
    /// Columns before the tile's first.
    pub before: i64,
    /// Columns of a row.
    pub columns: i64,
    /// Whether only points that no piece covers read them.
    pub only_rims: bool,
}

impl OldValues<'_> {
    /// Where the value at an offset from a lane's row lies: the lanes between, the row of that
    /// lane, and the place at time 0 of the tile.
    pub fn place(&self, geometry: &Geometry, row: i64, offset: [i64; 2]) -> [i64; 3] {
        let [lanes, row, column] = skewed(geometry, row, offset);
        [lanes + self.lanes[0], row, column + self.before]
    }

    /// Lanes whose rows are there.
    pub fn all_lanes(&self) -> i64 {
        self.lanes[0] + crate::kernel::lanes::WARP + self.lanes[1]
    }
}

/// The lanes between, the row of that lane, and the columns between, each row skewed.
fn skewed(geometry: &Geometry, row: i64, [rows, columns]: [i64; 2]) -> [i64; 3] {
    let to = row + rows;
    let (lanes, to) = (to.div_euclid(geometry.rows), to.rem_euclid(geometry.rows));
    [lanes, to, columns + geometry.lag * lanes + geometry.skew * (to - row)]
}

/// The old values that pieces read, and those that a function keeps where no piece lies.
pub fn of<'c>(
    program: &Program<'c>,
    pieces: &[Piece<'c>],
    kept: &[&'c str],
    geometry: &Geometry,
) -> Result<Vec<OldValues<'c>>, Error> {
    let mut found: Vec<OldValues> = Vec::new();
    let mut add = |field: &'c str, offset: [i64; 2], only_rims: bool| -> Result<(), Error> {
        let element = program.field(field)?.element;
        if found.iter().all(|old| old.field != field) {
            found.push(OldValues {
                field,
                element,
                lanes: [0; 2],
                before: 0,
                columns: 0,
                only_rims,
            });
        }
        let Some(old) = found.iter_mut().find(|old| old.field == field) else { return Ok(()) };
        old.only_rims &= only_rims;
        for row in 0..geometry.rows {
            let [lanes, _, column] = skewed(geometry, row, offset);
            old.lanes = [old.lanes[0].max(-lanes), old.lanes[1].max(lanes)];
            old.before = old.before.max(-column);
            old.columns = old.columns.max(column + geometry.width);
        }
        Ok(())
    };
    for read in footprint::of_pieces(program, pieces)? {
        let [[row, column], upper] = [&read.reach.lower, &read.reach.upper]
            .map(|ends| <[i64; 2]>::try_from(ends.as_slice()).unwrap_or([i64::MAX; 2]));
        let far = row.unsigned_abs().max(column.unsigned_abs()) > FARTHEST;
        let spread = [row, column] != upper;
        let ruled =
            program.field(read.field)?.boundary.is_some() && (spread || [row, column] != [0; 2]);
        if ruled || spread || far {
            let how = if ruled {
                "by a boundary rule".to_owned()
            } else {
                format!("more than {FARTHEST} cells away")
            };
            let message =
                format!("the function reads @{} {how}; leave the strategy open", read.field);
            return Err(Error::declined(Decline::FarRead, message));
        }
        add(read.field, [row, column], false)?;
    }
    for field in kept {
        add(field, [0, 0], true)?;
    }
    for old in &mut found {
        old.columns += old.before;
    }
    Ok(found)
}
