//! The rounds of a launch: their code, and what blocks do between two of them.

use super::rims::{self, Among, Rims};
use crate::analysis::index_width::constant_extents;
use crate::kernel::frame::Frame;
use crate::kernel::peers::Peers;
use crate::kernel::tile_kernels;
use crate::kernel::tile_place;
use crate::strategies::patch::layout::{Layout, of_three};
use crate::strategies::patch::masks::Mask;
use crate::strategies::patch::place::Place;
use crate::strategies::patch::rims::{ApplyRims, Packed};
use crate::strategies::patch::tile_code::{Checks, TileCode, Values};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{Type, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::tiled::{self, Halo, Kernel, TileOp};

/// The rounds of a kernel.
pub struct Rounds {
    /// How many.
    rounds: i64,
    /// Steps of each.
    steps: i64,
    /// Tiles per dimension.
    counts: Vec<i64>,
}

/// A field that a kernel updates.
struct Updated<'c> {
    /// The number of its store among the kernel's operations.
    operation: usize,
    field: &'c str,
    /// The tile values that are loaded and stored.
    loaded: Val<'c>,
    stored: Val<'c>,
    /// Which rows a block stores and exchanges.
    rims: Rims<'c>,
}

impl<'c> Updated<'c> {
    /// The checks of accesses, where the conditions of rows hold outside of the grid too.
    fn checks<'r>(&self, checks: Option<&'r Checks<'c>>) -> Option<&'r Checks<'c>> {
        checks.filter(|_| !self.rims.in_grid)
    }
}

/// How the blocks of a launch meet.
struct Meeting<'c> {
    peers: Peers<'c>,
    block: Val<'c>,
    among: Among<'c>,
}

impl Rounds {
    /// The rounds of a kernel; none where it has no `tiled.sweeps`.
    ///
    /// # Errors
    /// The declines of `lower-resident`, and those of [`Layout::plan`].
    pub fn plan<'c>(
        context: &'c Context,
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
    ) -> Result<Option<Self>, Error> {
        let Some(rounds) = kernel.wave.sweeps else { return Ok(None) };
        let at = |error: Error| error.at(mlir::place(kernel.op.location()));
        let layout = Layout::plan(subject, kernel)?;
        let hull = tile_kernels::hull(context, subject.program, kernel)?;
        let decline = |reason, message: &str| Err(at(Error::declined(reason, message)));
        let Some(extents) = constant_extents(hull.lower, hull.upper) else {
            return decline(
                Decline::Sizes,
                "the strategy resident needs a grid whose size is known; give the sizes, or choose \
                 another strategy",
            );
        };
        if layout.wraps {
            return decline(
                Decline::Sync,
                "the strategy resident has no tiles that go on where a grid repeats; choose \
                 another strategy",
            );
        }
        if !tiled::rotations(kernel.op)?.is_empty() || !exchanges_fields(subject, kernel)? {
            return decline(
                Decline::Height,
                "the strategy resident updates fields that a launch loads and stores, and reads \
                 none of them at computed places; choose another strategy",
            );
        }
        let held = kernel.tiles().map(|tile| subject.program.grid_of(tile.field));
        let held = held.collect::<Result<Vec<_>, _>>()?;
        let margin = tile_place::margin(&hull, &held, &layout.margin(kernel)?);
        let tiles = extents.iter().zip(&margin).zip(&kernel.schedule.tile);
        let count = |((extent, [before, after]), tile): ((&i64, &[i64; 2]), &i64)| {
            ((extent - before - after + tile - 1) / tile).max(1)
        };
        let counts: Vec<i64> = tiles.map(count).collect();
        let (tile, all) = (of_three(&kernel.schedule.tile, 1)?, of_three(&counts, 1)?);
        for op in &kernel.body {
            let TileOp::Load { tile: loaded, .. } = op else { continue };
            let needed = rims::needed(&kernel.tile(*loaded)?.halo, layout.width)?;
            let near = tile.iter().zip(all).zip(needed);
            if near.into_iter().any(|((tile, count), needed)| count > 1 && *tile < needed) {
                return decline(
                    Decline::TileShape,
                    "a tile of the strategy resident must have the cells of a neighbour's halo; \
                     make the tile larger or the pyramid height smaller",
                );
            }
        }
        Ok(Some(Self { rounds, steps: kernel.schedule.steps / rounds.max(1), counts }))
    }

    /// The blocks of a launch.
    pub fn blocks(&self) -> i64 {
        self.counts.iter().product()
    }

    /// The code of a tile for all rounds.
    ///
    /// # Errors
    /// A fault of the compiler.
    pub fn body<'c>(
        &self,
        code: &TileCode<'c, '_>,
        builder: &Builder<'c>,
        checked: bool,
    ) -> Result<(), Error> {
        let checks = code.rims(builder, checked)?;
        let mut packed = BTreeMap::new();
        for (operation, checks) in checks.iter().flat_map(|checks| &checks.applies) {
            packed.insert(*operation, (checks, checks.packed(builder)?));
        }
        let meeting = self.meeting(code, builder)?;
        let updated = updated(code, builder, (&meeting.among, checks.as_ref()))?;
        let held = held(code, builder, &updated, checks.as_ref())?;
        let first = |field: &Updated<'c>| held.get(&mlir::key(field.loaded)).cloned();
        let initial: Vec<_> = updated.iter().filter_map(first).flatten().collect();
        let each = code.layout.positions().count().max(1);
        let types: Vec<Type<'c>> = initial.iter().map(|cell| cell.r#type()).collect();
        let bounds = (builder.index(0)?, builder.index(self.rounds)?, builder.index(1)?);
        builder.carry(bounds, &initial, |builder, round, carried| {
            let steps = builder.multiply_constant(round, self.steps)?;
            let frame = code.frame.later(builder, steps)?;
            let code = TileCode { frame: &frame, ..*code };
            let mut held = held.clone();
            for (field, cells) in updated.iter().zip(carried.chunks(each)) {
                held.insert(mlir::key(field.loaded), cells.to_vec());
            }
            let values = steps_of_round(&code, builder, &held, &packed)?;
            let last = builder.index(self.rounds - 1)?;
            let last = builder.compare(Compare::Eq, round, last)?;
            let (values, checks) = (&values, checks.as_ref());
            let cells = code.place.cells.inside_loop(builder)?;
            let place = Place { cells, ..code.place.clone() };
            let code = TileCode { place: &place, ..code };
            builder.choose(
                last,
                &types,
                |builder| {
                    let frame = self.buffers(&code, self.rounds % 2 == 0);
                    let (code, mut all) = (TileCode { frame: &frame, ..code }, Vec::new());
                    for field in &updated {
                        let cells = values.cells(field.stored)?;
                        let rows = field.rims.own.conditions(builder)?;
                        let rows = (rows.as_slice(), field.checks(checks));
                        code.store(builder, field.operation, (field.field, cells), rows)?;
                        all.extend_from_slice(cells);
                    }
                    Ok(all)
                },
                |builder| {
                    let fields = (updated.as_slice(), values);
                    self.exchange(builder, (&code, checks), fields, (&meeting, round))
                },
            )
        })?;
        Ok(())
    }

    /// The flags of a launch, and the block's place.
    fn meeting<'c>(
        &self,
        code: &TileCode<'c, '_>,
        builder: &Builder<'c>,
    ) -> Result<Meeting<'c>, Error> {
        let flags = code.frame.flags.ok_or_else(|| Error::internal("a launch without flags"))?;
        let sizes = (builder.index(self.blocks())?, builder.index(self.rounds)?);
        let peers = Peers::new(builder, flags, sizes)?;
        let block = tile_place::number(builder, "gpu.block_id", "x")?;
        let counts = self.counts.iter().map(|count| builder.index(*count));
        let counts = counts.collect::<Result<Vec<_>, _>>()?;
        let numbers = tile_place::row_major(builder, block, &counts)?;
        Ok(Meeting { peers, block, among: Among { numbers, counts: self.counts.clone() } })
    }

    /// What blocks do between a round and the next: the lane's cells with what neighbours gave.
    fn exchange<'c>(
        &self,
        builder: &Builder<'c>,
        (code, checks): (&TileCode<'c, '_>, Option<&Checks<'c>>),
        (updated, values): (&[Updated<'c>], &Values<'c>),
        (meeting, round): (&Meeting<'c>, Val<'c>),
    ) -> Result<Vec<Val<'c>>, Error> {
        let odd = builder.binary("arith.andi", round, builder.index(1)?)?;
        let odd = builder.compare(Compare::Ne, odd, builder.index(0)?)?;
        let frames = [false, true].map(|odd| self.buffers(code, odd));
        let [even_code, odd_code] = frames.each_ref().map(|frame| TileCode { frame, ..*code });
        let fields = (updated, values, checks);
        let rows = masks(builder, updated, |rims| rims.given.as_ref())?;
        builder.choose(
            odd,
            &[],
            |builder| give(builder, &odd_code, fields, &rows),
            |builder| give(builder, &even_code, fields, &rows),
        )?;
        builder.op("gpu.barrier", &[], &[], &[])?;
        self.meet(builder, code, meeting, builder.add_constant(round, 1)?)?;
        builder.op("gpu.barrier", &[], &[], &[])?;
        let rows = masks(builder, updated, |rims| rims.taken.as_ref())?;
        let mut types = Vec::new();
        for field in updated {
            types.extend(values.cells(field.stored)?.iter().map(|cell| cell.r#type()));
        }
        builder.choose(
            odd,
            &types,
            |builder| take(builder, &odd_code, fields, &rows),
            |builder| take(builder, &even_code, fields, &rows),
        )
    }

    /// The frame of even or of odd rounds, which exchange buffers.
    fn buffers<'c, 'f>(&self, code: &TileCode<'c, 'f>, odd: bool) -> Frame<'c, 'f> {
        if odd { code.frame.exchanged() } else { code.frame.clone() }
    }

    /// Raises the block's flag, and waits for those of its neighbours: each by a thread.
    fn meet<'c>(
        &self,
        builder: &Builder<'c>,
        code: &TileCode<'c, '_>,
        meeting: &Meeting<'c>,
        done: Val<'c>,
    ) -> Result<(), Error> {
        let Meeting { peers, block, among } = meeting;
        let (mut thread, threads) = (builder.index(0)?, code.layout.threads());
        for (own, count) in code.frame.thread.iter().zip(&threads) {
            thread = builder.add(builder.multiply_constant(thread, *count)?, *own)?;
        }
        let leads = builder.compare(Compare::Eq, thread, builder.index(0)?)?;
        builder.when(leads, |builder| peers.signal(builder, *block, done))?;
        let cut = self.counts.iter().filter(|count| **count > 1).count();
        let around = (0..cut).fold(1, |all, _| all * 3);
        let all = threads.iter().product();
        let bounds = (thread, builder.index(around)?, builder.index(all)?);
        builder.repeat(bounds, |builder, mut place| {
            let (mut number, mut there) = (builder.index(0)?, Vec::new());
            for (own, count) in among.numbers.iter().zip(&among.counts) {
                number = builder.multiply_constant(number, *count)?;
                if *count < 2 {
                    continue;
                }
                let three = builder.index(3)?;
                let beside = builder.binary("arith.remui", place, three)?;
                place = builder.binary("arith.divui", place, three)?;
                let along = builder.add_constant(builder.add(*own, beside)?, -1)?;
                there.push(builder.compare(Compare::Below, along, builder.index(*count)?)?);
                number = builder.add(number, along)?;
            }
            there.push(builder.compare(Compare::Ne, number, *block)?);
            let there = builder.all(&there)?;
            let there = there.ok_or_else(|| Error::internal("a block without a place"))?;
            builder.when(there, |builder| peers.wait(builder, number, done))
        })
    }
}

/// Fields of a round with their values, and the checks of accesses to them.
type Fields<'c, 'f> = (&'f [Updated<'c>], &'f Values<'c>, Option<&'f Checks<'c>>);

/// The conditions of masks, where fields have them.
fn masks<'c>(
    builder: &Builder<'c>,
    updated: &[Updated<'c>],
    of: for<'m> fn(&'m Rims<'c>) -> Option<&'m Mask<'c>>,
) -> Result<Vec<Option<Vec<Val<'c>>>>, Error> {
    let conditions = |mask: &Mask<'c>| mask.conditions(builder);
    updated.iter().map(|field| of(&field.rims).map(conditions).transpose()).collect()
}

/// Stores the rows that neighbours need.
fn give<'c>(
    builder: &Builder<'c>,
    code: &TileCode<'c, '_>,
    (updated, values, checks): Fields<'c, '_>,
    rows: &[Option<Vec<Val<'c>>>],
) -> Result<Vec<Val<'c>>, Error> {
    for (field, rows) in updated.iter().zip(rows) {
        let Some(rows) = rows else { continue };
        let cells = (field.field, values.cells(field.stored)?);
        code.store(builder, field.operation, cells, (rows, field.checks(checks)))?;
    }
    Ok(Vec::new())
}

/// A lane's cells, with the rows that neighbours have stored.
fn take<'c>(
    builder: &Builder<'c>,
    code: &TileCode<'c, '_>,
    (updated, values, checks): Fields<'c, '_>,
    rows: &[Option<Vec<Val<'c>>>],
) -> Result<Vec<Val<'c>>, Error> {
    let mut all = Vec::new();
    for (field, rows) in updated.iter().zip(rows) {
        let cells = values.cells(field.stored)?;
        let Some(rows) = rows else {
            all.extend_from_slice(cells);
            continue;
        };
        let from = (field.operation, field.field, code.frame.target(field.field)?);
        all.extend(code.renew(builder, from, cells, (rows, field.checks(checks)))?);
    }
    Ok(all)
}

/// Whether a kernel loads each field that it stores, and reads none of them at computed places.
fn exchanges_fields<'c>(subject: &Subject<'c, '_>, kernel: &Kernel<'c>) -> Result<bool, Error> {
    let loads = |name: &str| {
        let is = |op: &TileOp| matches!(op, TileOp::Load { field, .. } if *field == name);
        kernel.body.iter().any(is)
    };
    for apply in kernel.applies() {
        let gathered = subject.program.gathered_by(&apply.pieces)?;
        if gathered.into_iter().any(|field| kernel.stores(field)) {
            return Ok(false);
        }
    }
    let stored = kernel.body.iter().filter_map(|op| match op {
        TileOp::Store { field, .. } => Some(*field),
        _ => None,
    });
    Ok(stored.into_iter().all(loads))
}

/// A lane's cells of tile values that are loaded, by [`mlir::key`].
type Held<'c> = BTreeMap<usize, Vec<Val<'c>>>;

/// The first loads: of a field that others store, the rows within the halo alone.
fn held<'c>(
    code: &TileCode<'c, '_>,
    builder: &Builder<'c>,
    updated: &[Updated<'c>],
    checks: Option<&Checks<'c>>,
) -> Result<Held<'c>, Error> {
    let mut held = Held::new();
    for field in updated {
        let element = code.frame.scope.program.field(field.field)?.element;
        let none = code.layout.positions().map(|_| builder.zero(element));
        let none = none.collect::<Result<Vec<_>, _>>()?;
        let from = (field.operation, field.field, code.frame.source(field.field)?);
        let rows = (field.rims.reached.as_slice(), field.checks(checks));
        held.insert(mlir::key(field.loaded), code.renew(builder, from, &none, rows)?);
    }
    for (operation, op) in code.kernel.body.iter().enumerate() {
        if let TileOp::Load { field, tile, .. } = op
            && !held.contains_key(&mlir::key(*tile))
        {
            held.insert(mlir::key(*tile), code.load(builder, operation, field, checks)?);
        }
    }
    Ok(held)
}

/// The applies of a round.
fn steps_of_round<'c>(
    code: &TileCode<'c, '_>,
    builder: &Builder<'c>,
    held: &Held<'c>,
    packed: &BTreeMap<usize, (&ApplyRims<'c>, Packed<'c>)>,
) -> Result<Values<'c>, Error> {
    let mut values = Values::default();
    for (operation, op) in code.kernel.body.iter().enumerate() {
        match op {
            TileOp::Load { tile, .. } => {
                let cells = held.get(&mlir::key(*tile)).cloned().unwrap_or_default();
                code.begin(builder, *tile, cells, &mut values)?;
            }
            TileOp::Apply(apply) => {
                let checks = packed.get(&operation);
                let checks = checks.map(|(checks, packed)| checks.unpacked(builder, packed));
                code.apply(builder, apply, &mut values, checks.transpose()?.as_ref())?;
            }
            TileOp::Store { .. } => {}
        }
    }
    Ok(values)
}

/// The fields that a kernel updates.
fn updated<'c>(
    code: &TileCode<'c, '_>,
    builder: &Builder<'c>,
    how: (&Among<'c>, Option<&Checks<'c>>),
) -> Result<Vec<Updated<'c>>, Error> {
    let mut all = Vec::new();
    for (operation, op) in code.kernel.body.iter().enumerate() {
        let TileOp::Store { field, tile, .. } = op else { continue };
        let loaded = code.kernel.body.iter().find_map(|op| match op {
            TileOp::Load { field: other, tile, .. } if other == field => Some(*tile),
            _ => None,
        });
        let loaded = loaded.ok_or_else(|| Error::internal("a field that no launch loads"))?;
        let halo: &Halo = &code.kernel.tile(loaded)?.halo;
        let rims = Rims::of(code, builder, (field, operation, halo), how)?;
        all.push(Updated { operation, field, loaded, stored: *tile, rims });
    }
    Ok(all)
}
