//! Which applies of a step share a kernel.
//!
//! A kernel's tiles cover the hull of the grids of its updated fields. Where the grids of a step
//! differ by more than a rim, as those of other sizes or ranks do, the step is cut into groups of
//! consecutive applies whose hull is tight; then each group is a kernel, and no launch takes more
//! than one step. The step is also cut where a periodic field is read and the fields lie on
//! different points. A function that reads values of its own sweep is a kernel too, of the
//! strategy that `tile-wavefront` gives it. Functions that a step repeats are groups of their own,
//! whose kernels may take several repetitions. A reduction that each step computes stands between
//! kernels. An absolute read needs its field whole: it begins a group where one before it updates
//! the field.

use crate::analysis::footprint;
use crate::analysis::hull::{self, Hull};
use crate::analysis::reductions;
use crate::analysis::sweep_rows::{Enough, SweepRows};
use crate::analysis::transfers::{self, Transfers};
use melior::Context;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Apply, Program, Repetition};
use stencil_dialects::tiled;

/// Consecutive applies of one kernel, whose tiles cover one hull.
#[derive(Clone)]
pub struct Group<'c, 'p> {
    /// In their order.
    pub applies: Vec<&'p Apply<'c>>,
    /// How many applies of the step stand before them.
    pub place: usize,
    /// What the tiles cover.
    pub hull: Hull<'c>,
    /// What the kernel has to load and to store.
    pub transfers: Transfers<'c>,
    /// Whether its apply reads values of its own sweep. Such an apply is a group by itself.
    pub sweeps: bool,
    /// Whether its applies read fields at computed places that they update: then the fields must
    /// be whole before each step, and no launch takes several.
    pub gathers_own: bool,
    /// How often a step repeats its applies, from the outside.
    pub repeats: Vec<Repetition>,
}

impl<'c, 'p> Group<'c, 'p> {
    /// The applies of some steps, each with its step; of some repetitions in one step, if the step
    /// repeats them.
    pub fn steps(&self, steps: i64) -> Vec<(i64, &'p Apply<'c>)> {
        let place = |step| if self.repeats.is_empty() { step } else { 0 };
        let of = |step| self.applies.iter().map(move |apply| (place(step), *apply));
        (0..steps).flat_map(of).collect()
    }

    /// The same group where rows of some fields are enough.
    pub fn with_rows(&self, enough: &SweepRows<'c, '_>) -> Self {
        let mut group = self.clone();
        for Enough { field, kept, .. } in &enough.last {
            group.transfers.stored.remove(field);
            group.transfers.fresh.insert(field);
            if *kept > 0 {
                group.transfers.last_rows.insert(field);
            }
        }
        group
    }

    /// Whether an apply keeps a field's values where its pieces leave cells out: unless it is the
    /// first in a step to update one whose old values nobody reads.
    pub fn keeps(&self, apply: &Apply<'c>, field: &str) -> bool {
        let first = self.applies.iter().find(|apply| apply.updates.contains(&field));
        !self.transfers.fresh.contains(field)
            || first.is_none_or(|first| !std::ptr::eq(*first, apply))
    }
}

/// Cuts a step where the updated grids differ by more than rims, and where a reduction stands that
/// each step computes; with `alone`, after each apply.
pub fn of<'c, 'p>(
    context: &'c Context,
    program: &'p Program<'c>,
    alone: bool,
) -> Result<Vec<Group<'c, 'p>>, Error> {
    let cuts: Vec<usize> =
        reductions::of(program)?.each_step.iter().map(|reduce| reduce.place).collect();
    let hull = |applies: &[&Apply<'c>]| {
        let updated: Vec<&str> =
            applies.iter().flat_map(|apply| apply.updates.iter().copied()).collect();
        hull::of(context, program, &updated)
    };
    let mut groups: Vec<Group> = Vec::new();
    for (place, apply) in program.applies.iter().enumerate() {
        let alone = alone || cuts.contains(&place);
        let sweeps = !program.dependences(&apply.pieces)?.is_empty();
        let beside = |last: &&mut Group| last.repeats == apply.repeats && !sweeps && !last.sweeps;
        if let Some(last) = groups.last_mut().filter(beside).filter(|_| !alone) {
            let joined = [last.applies.as_slice(), &[apply]].concat();
            let together = repeats_alike(context, program, &joined)?
                && program.gathered_by(&apply.pieces)?.is_disjoint(&updated_by(&last.applies));
            if let Some(hull) = hull(&joined)?.filter(|hull| hull.tight && together) {
                last.applies = joined;
                last.hull = hull;
                last.gathers_own = gathers_own(program, &last.applies)?;
                continue;
            }
        }
        let hull = hull(&[apply])?
            .ok_or_else(|| Error::internal("an apply to grids of different ranks"))?;
        let transfers = Transfers::default();
        let (applies, repeats) = (vec![apply], apply.repeats.clone());
        let gathers_own = gathers_own(program, &applies)?;
        groups.push(Group { applies, place, hull, transfers, sweeps, gathers_own, repeats });
    }
    let launches: Vec<_> = groups.iter().map(|group| group.applies.clone()).collect();
    for (group, transfers) in groups.iter_mut().zip(transfers::of(program, &launches)?) {
        group.transfers = transfers;
    }
    Ok(groups)
}

/// The fields that some applies update.
fn updated_by<'c>(applies: &[&Apply<'c>]) -> BTreeSet<&'c str> {
    applies.iter().flat_map(|apply| apply.updates.iter().copied()).collect()
}

/// Whether applies read a field at computed places that one of them updates.
fn gathers_own<'c>(program: &Program<'c>, applies: &[&Apply<'c>]) -> Result<bool, Error> {
    let updated = updated_by(applies);
    for apply in applies {
        if !program.gathered_by(&apply.pieces)?.is_disjoint(&updated) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether applies may stand in one kernel that computes more than its tile: unless they read a
/// periodic field and have fields on other points too.
pub fn repeats_alike<'c>(
    context: &'c Context,
    program: &Program<'c>,
    applies: &[&Apply<'c>],
) -> Result<bool, Error> {
    let mut periodic = false;
    let mut fields: Vec<&str> =
        applies.iter().flat_map(|apply| apply.updates.iter().copied()).collect();
    for apply in applies {
        periodic |= tiled::reads_periodic(program, &apply.pieces)?;
        fields.extend(
            footprint::of_pieces(program, &apply.pieces)?.into_iter().map(|read| read.field),
        );
    }
    Ok(!periodic || hull::of(context, program, &fields)?.is_some_and(|hull| hull.alike))
}
