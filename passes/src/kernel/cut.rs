//! How the blocks of a launch may be shared out between devices, read off its tile kernel: a block
//! reads the cells that the kernel loads around its tile, and stores its tile.

use crate::analysis::hull::Hull;
use crate::subject::Subject;
use melior::Context;
use melior::ir::{AffineExpr, AffineMap, Attribute};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{self, Argument, Piece};
use stencil_dialects::tiled::{self, Cut, CutRead, Halo, Kernel, Order, Parts, TileOp};

/// The tiles of a launch.
pub struct Tiling<'c, 's> {
    /// Tiles per dimension.
    pub counts: &'s [AffineExpr<'c>],
    /// Cells by which tiles begin behind the first point, per dimension.
    pub before: Vec<i64>,
    /// Tiles of a block.
    pub each: i64,
    /// How blocks are numbered.
    pub order: Order,
    /// The cells around a tile that the kernel loads of fields, where these are more than those of
    /// its tiles.
    pub loads: &'s [(&'c str, Halo)],
}

/// The attribute that tells the cut of a tile kernel over a hull; none where a block has several
/// tiles of several dimensions.
///
/// # Errors
/// A function or a field that is not there.
pub fn of_tiles<'c>(
    context: &'c Context,
    builder: &Builder<'c>,
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    hull: &Hull<'c>,
    tiling: Tiling<'c, '_>,
) -> Result<Option<(&'static str, Attribute<'c>)>, Error> {
    let mut tile = kernel.schedule.tile.clone();
    let mut counts = tiling.counts.to_vec();
    match (tile.as_mut_slice(), counts.as_mut_slice()) {
        _ if tiling.each == 1 => {}
        ([cells], [count]) => {
            *cells = cells.saturating_mul(tiling.each);
            *count = AffineExpr::ceil_div(*count, AffineExpr::constant(context, tiling.each));
        }
        _ => return Ok(None),
    }
    let counts = symbolic(context, subject.program.params.len(), &counts);
    let before = match tiling.before.len() == tile.len() {
        true => tiling.before,
        false => vec![0; tile.len()],
    };
    let cut = Cut {
        lower: hull.lower,
        upper: hull.upper,
        parts: Parts::Tiles { counts, tile, before, order: tiling.order },
        reads: reads(subject, kernel, tiling.loads)?,
    };
    Ok(Some(tiled::cut_attribute(builder, &cut)))
}

/// What a tile kernel reads of each field. A field that it gathers may be read anywhere.
fn reads<'c>(
    subject: &Subject<'c, '_>,
    kernel: &Kernel<'c>,
    loads: &[(&'c str, Halo)],
) -> Result<Vec<CutRead<'c>>, Error> {
    let wraps = tiled::wraps(subject.program, kernel)?;
    let mut loaded: BTreeMap<&'c str, Halo> = BTreeMap::new();
    let mut gathered = BTreeSet::new();
    for op in &kernel.body {
        match op {
            TileOp::Load { field, tile, .. } => {
                let halo = &kernel.tile(*tile)?.halo;
                let all = loaded.get(field).map_or_else(|| halo.clone(), |one| one.hull(halo));
                loaded.insert(*field, all);
            }
            TileOp::Apply(apply) => {
                for piece in &apply.pieces {
                    let function = stencil::function(subject.module, piece.function)?;
                    gathered.extend(subject.program.gathered_in(function)?);
                }
            }
            TileOp::Store { .. } => {}
        }
    }
    loaded.retain(|field, _| !gathered.contains(field));
    let near = loaded.into_iter().map(|(field, reach)| {
        let own = loads.iter().filter(|(name, _)| *name == field).map(|(_, halo)| halo);
        let all = own.fold(reach.clone(), |all, halo| all.hull(halo));
        let loaded = (all != reach).then_some(all);
        CutRead { field, reach: Some(reach), loaded, wraps }
    });
    Ok(near.chain(gathered.into_iter().map(anywhere)).collect())
}

/// A field of which any cell may be read.
fn anywhere(field: &str) -> CutRead<'_> {
    CutRead { field, reach: None, loaded: None, wraps: false }
}

/// The attribute that tells the cut of a kernel over the points of a box, `points` a block, with
/// their values by some pieces.
///
/// # Errors
/// A function or a field that is not there.
pub fn of_points<'c>(
    builder: &Builder<'c>,
    subject: &Subject<'c, '_>,
    pieces: &[Piece<'c>],
    (lower, upper): (AffineMap<'c>, AffineMap<'c>),
    points: i64,
) -> Result<(&'static str, Attribute<'c>), Error> {
    let program = subject.program;
    let wraps = tiled::reads_periodic(program, pieces)?;
    let mut near: BTreeMap<&'c str, Halo> = BTreeMap::new();
    let mut gathered = BTreeSet::new();
    for piece in pieces {
        gathered.extend(program.gathered(piece.function)?);
        for argument in program.arguments(piece.function)? {
            if let Argument::Read { field, offset } = argument {
                let halo = Halo::of_read(program.field(field)?, offset);
                let all = near.get(field).map_or_else(|| halo.clone(), |one| one.hull(&halo));
                near.insert(*field, all);
            }
        }
    }
    near.retain(|field, _| !gathered.contains(field));
    let near = near.into_iter();
    let near = near.map(|(field, halo)| CutRead { field, reach: Some(halo), loaded: None, wraps });
    let reads = near.chain(gathered.into_iter().map(anywhere)).collect();
    Ok(tiled::cut_attribute(builder, &Cut { lower, upper, parts: Parts::Points(points), reads }))
}
