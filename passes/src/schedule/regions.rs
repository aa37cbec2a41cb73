//! Regions of tiles: the box of cells beyond a tile that each apply computes and that is loaded.
//!
//! Source: Holewinski, Pouchet, Sadayappan, "High-Performance Code Generation for Stencil
//! Computations on GPU Architectures", section 4.2, algorithm 2.

use crate::analysis::footprint;
use crate::schedule::launch_groups::Group;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Apply, Program};
use stencil_dialects::tiled::{Halo, MOST_CELLS};

/// The regions of algorithm 2: what each apply computes, and what is loaded.
#[derive(Debug, PartialEq)]
pub struct Regions<'c> {
    /// The cells that each apply computes, in order.
    pub applies: Vec<Halo>,
    /// The cells that are loaded of each field.
    pub loads: BTreeMap<&'c str, Halo>,
}

impl Regions<'_> {
    /// Gives all applies the largest region.
    pub fn fix(&mut self) {
        let rank = self.applies.first().map_or(0, |region| region.lower.len());
        let largest = self.applies.iter().fold(Halo::none(rank), |all, region| all.hull(region));
        self.applies.fill(largest);
    }

    /// Every box. Some applies load nothing and may reach farther than all loads.
    pub fn all(&self) -> impl Iterator<Item = &Halo> {
        self.applies.iter().chain(self.loads.values())
    }
}

/// Finds the regions of some steps of a group, backwards over functions and steps.
pub fn of<'c>(
    program: &Program<'c>,
    group: &Group<'c, '_>,
    steps: i64,
) -> Result<Regions<'c>, Error> {
    let tile = Halo::none(group.hull.rank());
    let applies = group.steps(steps);
    let mut needed: BTreeMap<&str, Halo> = BTreeMap::new();
    let mut computed = Vec::new();
    for (_, apply) in applies.iter().rev() {
        // The region holds the tile and every cell that later applies read.
        let mut region = tile.clone();
        for field in &apply.updates {
            if let Some(later) = needed.remove(field) {
                region = region.hull(&later);
            }
        }
        let mut need = |field, halo: Halo| {
            needed.entry(field).and_modify(|known| *known = known.hull(&halo)).or_insert(halo);
        };
        for field in apply.updates.iter().filter(|field| group.keeps(apply, field)) {
            need(*field, region.clone());
        }
        for read in footprint::of_pieces(program, &apply.pieces)? {
            need(read.field, region.reaching(&read.reach));
        }
        computed.push(region);
    }
    computed.reverse();
    let far = computed.iter().chain(needed.values()).any(|halo| !halo.is_near());
    if let (Some((_, apply)), true) = (applies.first(), far) {
        return Err(too_far(apply));
    }
    Ok(Regions { applies: computed, loads: needed })
}

/// Refuses offsets that no tile can hold, whatever the schedule is, before any is looked at.
pub fn refuse_far_reads(program: &Program) -> Result<(), Error> {
    for apply in &program.applies {
        if footprint::of_pieces(program, &apply.pieces)?.iter().any(|read| !read.reach.is_near()) {
            return Err(too_far(apply));
        }
    }
    Ok(())
}

fn too_far(apply: &Apply) -> Error {
    Error::declined(
        Decline::FarRead,
        format!(
            "a launch reads more than {MOST_CELLS} cells away from its tile; make the \
             offsets or the pyramid height smaller"
        ),
    )
    .at(mlir::place(apply.op.location()))
}

/// The cells before and after a tile of one dimension that some applies touch.
pub fn extent<'c>(
    program: &Program<'c>,
    group: &Group<'c, '_>,
    steps: i64,
) -> Result<[i64; 2], Error> {
    let regions = of(program, group, steps)?;
    let whole = regions.all().fold(Halo::none(1), |whole, halo| whole.hull(halo));
    Ok([-whole.lower.iter().sum::<i64>(), whole.upper.iter().sum::<i64>()])
}
