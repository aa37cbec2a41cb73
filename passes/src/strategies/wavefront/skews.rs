//! The skews of a kernel where they are larger than its grid may be wide.
//!
//! A read of the same sweep far to the right gives a skew of as many times. On a grid of fewer
//! points the read is outside, and a row need only wait for the whole row before it. Therefore no
//! row lies farther behind the one before than that one has times. Otherwise a kernel would spend
//! times without points, as many as the read is far.

use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// Times between rows along each dimension but the fastest, and the tiles of a tile row.
pub struct Skews<'c> {
    /// One per dimension.
    pub skews: Vec<Val<'c>>,
    /// None where all skews are near, so that the tiles follow from the sizes alone.
    pub tiles: Option<Val<'c>>,
}

/// Whether some skew is larger than a tile is wide.
pub fn are_far(skews: &[i64], width: i64) -> bool {
    skews.iter().any(|skew| *skew > width)
}

impl<'c> Skews<'c> {
    /// Those of tiles of some rows and a width, for rows of so many points. A skew within the width
    /// of a tile is near: it stays as it is.
    pub fn of(
        builder: &Builder<'c>,
        skews: &[i64],
        (heights, width): (&[i64], i64),
        points: Val<'c>,
    ) -> Result<Self, Error> {
        let far = are_far(skews, width);
        let mut times = points;
        let mut found = Vec::new();
        // The last dimension comes first: the others count its times.
        for (skew, height) in skews.iter().zip(heights).rev() {
            let mut skew = builder.index(*skew)?;
            if far {
                skew = builder.binary("arith.minsi", skew, times)?;
                let rows = builder.index(height - 1)?;
                times = builder.add(times, builder.binary("arith.muli", skew, rows)?)?;
            }
            found.insert(0, skew);
        }
        let tiles = || {
            let last = builder.add_constant(times, width - 1)?;
            builder.binary("arith.divsi", last, builder.index(width)?)
        };
        Ok(Self { skews: found, tiles: far.then(tiles).transpose()? })
    }
}
