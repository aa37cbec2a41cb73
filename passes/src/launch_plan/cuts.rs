//! How the blocks of launches may be shared out between devices, as a plan has it.

use super::launches::blocks;
use super::values::{all, count, expression};
use melior::ir::AffineMap;
use stencil_dialects::affine;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Binding, Cut, CutRead, Launch, Order, Parts};
use stencil_runtime::device;
use stencil_runtime::expr::Expr;
use stencil_runtime::plan::{self, Points, Reach, Span, Use};

/// The cut of a launch; none where its blocks can't be shared out.
pub fn of(program: &Program, launch: &Launch, names: &[&str]) -> Result<Option<plan::Cut>, Error> {
    let Some(cut) = &launch.cut else { return Ok(None) };
    if launch.flags.is_some() || launch.turns.is_some() || launch.sweeps.is_some() {
        return Ok(None);
    }
    let mut uses = Vec::new();
    for binding in &launch.bindings {
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
        uses.push(used);
    }
    let (tiles, order) = match &cut.parts {
        Parts::Tiles { counts, order, .. } => (all(*counts, names)?, *order),
        Parts::Points(_) => (vec![blocks(launch, names)?], Order::RowMajor),
    };
    let order = match order {
        Order::RowMajor => plan::Order::RowMajor,
        Order::RimFirst { halves: false } => plan::Order::RimFirst,
        Order::RimFirst { halves: true } => plan::Order::RimFirstInHalves,
    };
    Ok(Some(plan::Cut { tiles, order, uses }))
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
    let reach = |dimension: usize| {
        let found = reach.and_then(|read| Some((read, read.reach.as_ref()?)));
        found.map_or_else(Reach::default, |(read, halo)| {
            let at = |cells: &[i64]| cells.get(dimension).copied().unwrap_or(0);
            let loaded = read.loaded.as_ref().unwrap_or(halo);
            Reach {
                below: -at(&halo.lower),
                above: at(&halo.upper),
                spare_below: at(&halo.lower) - at(&loaded.lower),
                spare_above: at(&loaded.upper) - at(&halo.upper),
                wraps: read.wraps,
            }
        })
    };
    let origin = program.grid_of(name)?.lower;
    if origin.result_count() != cut.lower.result_count() {
        return Ok(None);
    }
    let from = |bound: AffineMap| -> Result<Vec<Expr>, Error> {
        let (bound, origin) = (texts(bound, names)?, texts(origin, names)?);
        let moved = bound.iter().zip(&origin).map(|(bound, first)| match first.as_str() {
            "0" => expression(bound),
            first => expression(&format!("{bound} - ({first})")),
        });
        moved.collect()
    };
    let (first, last) = (from(cut.lower)?, from(cut.upper)?);
    Ok(Some(match &cut.parts {
        Parts::Tiles { tile, before, .. } => {
            let ends = first.into_iter().zip(last).zip(tile.iter().zip(before)).enumerate();
            let spans = ends.map(|(dimension, ((first, last), (cells, before)))| {
                let (cells, before) = (count(*cells)?, *before);
                Ok(Span { first, last, cells, before, reach: reach(dimension) })
            });
            Use::Tiles(spans.collect::<Result<_, Error>>()?)
        }
        Parts::Points(points) => {
            let (lower, upper) = (texts(cut.lower, names)?, texts(cut.upper, names)?);
            let faster = lower.iter().zip(&upper).skip(1);
            let extents = faster.map(|(lower, upper)| format!("({upper} - ({lower}) + 1)"));
            let row = extents.reduce(|all, one| format!("{all} * {one}"));
            let row = expression(&row.unwrap_or_else(|| "1".to_owned()))?;
            let first = first.into_iter().next();
            let first = first.ok_or_else(|| Error::internal("a box of no dimensions"))?;
            Use::Points(Points { first, row, points: count(*points)?, reach: reach(0) })
        }
    }))
}

fn texts(map: AffineMap, names: &[&str]) -> Result<Vec<String>, Error> {
    let text = |index| {
        let result = map.result(index).map_err(|error| Error::internal(error.to_string()))?;
        Ok(affine::text(result, names))
    };
    (0..map.result_count()).map(text).collect()
}
