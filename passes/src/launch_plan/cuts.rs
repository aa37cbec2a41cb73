//! How the blocks of launches may be shared out between devices, as a plan has it.

use super::values::{count, expression};
use melior::ir::AffineMap;
use std::collections::BTreeMap;
use stencil_dialects::affine;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Boundary, Program};
use stencil_dialects::tiled::{Binding, Cut, CutRead, Halo, Launch, Order, Parts};
use stencil_runtime::device;
use stencil_runtime::expr::Expr;
use stencil_runtime::plan::{self, Argument, Near, Use};

/// The cut of a launch with some arguments; none where its blocks can't be shared out.
pub fn of(
    program: &Program,
    launch: &Launch,
    arguments: &[Argument],
    names: &[&str],
) -> Result<Option<plan::Cut>, Error> {
    let Some(cut) = &launch.cut else { return Ok(None) };
    if launch.flags.is_some() || launch.turns.is_some() || launch.sweeps.is_some() {
        return Ok(None);
    }
    let mut uses = BTreeMap::new();
    for (binding, argument) in launch.bindings.iter().zip(arguments) {
        let Some(buffer) = argument.buffer() else { continue };
        let used = match binding {
            Binding::Unless(_) => Use::Whole,
            Binding::Partials(_) => Use::Blocks(match cut.parts {
                Parts::Points(_) => 1,
                Parts::Tiles { .. } => {
                    count((launch.block.iter().product::<i64>() / i64::from(device::WARP)).max(1))?
                }
            }),
            Binding::Read(name) | Binding::ReadWrite(name) | Binding::Write(name) => {
                match of_field(program, cut, (name, binding), names)? {
                    Some(used) => used,
                    None => return Ok(None),
                }
            }
            _ => continue,
        };
        if used != Use::Near(Near::default()) {
            uses.insert(buffer.to_owned(), used);
        }
    }
    let order = match cut.parts {
        Parts::Tiles { order: Order::RimFirst { halves: false }, .. } => plan::Order::RimFirst,
        Parts::Tiles { order: Order::RimFirst { halves: true }, .. } => {
            plan::Order::RimFirstInHalves
        }
        Parts::Tiles { order: Order::RowMajor, .. } | Parts::Points(_) => plan::Order::RowMajor,
    };
    Ok(Some(plan::Cut { parts: parts(cut, names)?, order, uses }))
}

/// What each block computes.
fn parts(cut: &Cut, names: &[&str]) -> Result<plan::Parts, Error> {
    let (lower, upper) = (texts(cut.lower, names)?, texts(cut.upper, names)?);
    Ok(match &cut.parts {
        Parts::Tiles { counts, tile, before, .. } => {
            let counts = texts(*counts, names)?;
            let ends = counts.iter().zip(lower.iter().zip(&upper)).zip(tile.iter().zip(before));
            let tiles = ends.map(|((number, (lower, upper)), (cells, before))| {
                Ok(plan::Tiles {
                    count: expression(number)?,
                    first: expression(lower)?,
                    last: expression(upper)?,
                    cells: count(*cells)?,
                    before: *before,
                })
            });
            plan::Parts::Tiles(tiles.collect::<Result<_, Error>>()?)
        }
        Parts::Points(points) => {
            let faster = lower.iter().zip(&upper).skip(1);
            let extents = faster.map(|(lower, upper)| format!("({upper} - ({lower}) + 1)"));
            let row = extents.reduce(|all, one| format!("{all} * {one}"));
            let first = lower.first().ok_or_else(|| Error::internal("a box of no dimensions"))?;
            plan::Parts::Points(plan::Points {
                first: expression(first)?,
                row: expression(row.as_deref().unwrap_or("1"))?,
                points: count(*points)?,
            })
        }
    })
}

/// The cells of a field that a block uses; none where they are not known.
fn of_field(
    program: &Program,
    cut: &Cut,
    (name, binding): (&str, &Binding),
    names: &[&str],
) -> Result<Option<Use>, Error> {
    let Ok(field) = program.field(name) else { return Ok(None) };
    if field.role.is_reduced() {
        return Ok(Some(Use::Whole));
    }
    let read = cut.reads.iter().find(|read| read.field == name);
    let reach = match (read, binding) {
        (_, Binding::Write(_)) => None,
        (Some(CutRead { reach: None, .. }), _) => return Ok(Some(Use::Whole)),
        (Some(read), _) => Some(read),
        // What a kernel updates in place it need not have loaded.
        (None, Binding::ReadWrite(_)) => None,
        (None, _) => return Ok(None),
    };
    let origin = program.grid_of(name)?.lower;
    let rank = cut.lower.result_count();
    if origin.result_count() != rank {
        return Ok(None);
    }
    // Points of a box are cut along the slowest dimension alone.
    let rank = if matches!(cut.parts, Parts::Points(_)) { 1 } else { rank };
    let origin = texts(origin, names)?;
    let origin = if origin.iter().all(|first| first == "0") { &[] } else { origin.as_slice() };
    let origin = origin.iter().take(rank).map(|first| expression(first));
    let near = Near { origin: origin.collect::<Result<Vec<Expr>, _>>()?, ..Near::default() };
    let Some((read, halo)) = reach.and_then(|read| Some((read, read.reach.as_ref()?))) else {
        return Ok(Some(Use::Near(near)));
    };
    let cells = |of: &dyn Fn(usize) -> i64| {
        let all: Vec<i64> = (0..rank).map(of).collect();
        if all.iter().all(|cells| *cells == 0) { Vec::new() } else { all }
    };
    let loaded = read.loaded.as_ref().unwrap_or(halo);
    let lower = |halo: &Halo, place: usize| -halo.lower.get(place).copied().unwrap_or(0);
    let upper = |halo: &Halo, place: usize| halo.upper.get(place).copied().unwrap_or(0);
    Ok(Some(Use::Near(Near {
        below: cells(&|place| lower(halo, place)),
        above: cells(&|place| upper(halo, place)),
        spare_below: cells(&|place| lower(loaded, place) - lower(halo, place)),
        spare_above: cells(&|place| upper(loaded, place) - upper(halo, place)),
        wraps: read.wraps,
        mirrors: field.boundary == Some(Boundary::Reflect),
        ..near
    })))
}

fn texts(map: AffineMap, names: &[&str]) -> Result<Vec<String>, Error> {
    let text = |index| {
        let result = map.result(index).map_err(|error| Error::internal(error.to_string()))?;
        Ok(affine::text(result, names))
    };
    (0..map.result_count()).map(text).collect()
}
