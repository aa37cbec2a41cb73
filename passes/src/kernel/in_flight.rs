//! The sweeps, or rounds, of a launch that has several: which buffers each reads and writes. Those
//! of even and of odd ones are exchanged, except where a field has one buffer.

use super::scope::Scope;
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};

/// Buffers by their field.
pub type Buffers<'c> = BTreeMap<&'c str, Val<'c>>;

/// A tile row of a launch with several sweeps.
#[derive(Clone, Copy)]
pub struct TileRow<'c> {
    /// The sweep, from 0.
    pub sweep: Val<'c>,
    /// The tile row in its sweep.
    pub row: Val<'c>,
    /// The number of the sweep's first tile row among those of all sweeps.
    pub first: Val<'c>,
}

impl<'c> TileRow<'c> {
    /// Tile row `number` of all sweeps, which have so many each.
    pub fn of(builder: &Builder<'c>, number: Val<'c>, rows: Val<'c>) -> Result<Self, Error> {
        let sweep = builder.binary("arith.divsi", number, rows)?;
        let first = builder.binary("arith.muli", sweep, rows)?;
        Ok(Self { sweep, row: builder.binary("arith.subi", number, first)?, first })
    }
}

/// What a sweep reads and writes, and its names.
pub struct OfSweep<'c, 'p> {
    pub scope: Scope<'c, 'p>,
    pub sources: Buffers<'c>,
    pub targets: Buffers<'c>,
}

impl<'c, 'p> OfSweep<'c, 'p> {
    /// Those of a sweep, from those of the first.
    pub fn of(
        builder: &Builder<'c>,
        sweep: Val<'c>,
        (scope, sources, targets): (&Scope<'c, 'p>, &Buffers<'c>, &Buffers<'c>),
    ) -> Result<Self, Error> {
        let one = builder.index(1)?;
        let odd = builder.binary("arith.andi", sweep, one)?;
        let odd = builder.compare(Compare::Eq, odd, one)?;
        let (mut from, mut to) = (sources.clone(), targets.clone());
        for (field, target) in targets {
            let Some(source) = sources.get(field) else { continue };
            if mlir::key(*source) != mlir::key(*target) {
                from.insert(field, builder.select(odd, *target, *source)?);
                to.insert(field, builder.select(odd, *source, *target)?);
            }
        }
        Ok(Self { scope: scope.later(builder, sweep)?, sources: from, targets: to })
    }
}
