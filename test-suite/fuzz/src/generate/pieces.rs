//! Pieces of a function: disjoint boxes in a grid, and values that read where they may.

use super::expressions::{Scope, any, value};
use crate::model::*;
use crate::random::Random;

/// The points that the grids of some fields have in common; their bounds differ by constants.
pub fn common(program: &Program, fields: &[usize]) -> Region {
    let mut common = program.grid_of(fields[0]).clone();
    for field in fields {
        let grid = program.grid_of(*field);
        for dimension in 0..common.rank() {
            let (lower, upper) = (&mut common.lower[dimension], &mut common.upper[dimension]);
            lower.constant = lower.constant.max(grid.lower[dimension].constant);
            upper.constant = upper.constant.min(grid.upper[dimension].constant);
        }
    }
    common
}

/// An end of a box: so far above the grid's lower end, or so far below its upper one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    Low(i64),
    High(i64),
}

impl End {
    /// The end in a dimension of a grid with such first and last points.
    pub fn of(&self, first: Affine, last: Affine) -> Affine {
        match self {
            Self::Low(distance) => first.plus(*distance),
            Self::High(distance) => last.plus(-distance),
        }
    }
}

/// The ends of a box in each dimension.
pub type Corners = Vec<(End, End)>;

/// Disjoint boxes in a grid of such extents, some of which may leave it.
pub fn boxes(random: &mut Random, extents: &[i64], ruled: bool) -> Vec<Corners> {
    let rank = extents.len();
    let usual = i64::from(!ruled || random.percent(20));
    let mut margin = |extent: i64| {
        let most = if random.percent(92) { ((extent - 1) / 2).max(0) } else { 5 };
        (if random.percent(60) { usual } else { random.range(0, 5 * usual) }).min(most)
    };
    let whole: Corners = extents
        .iter()
        .map(|extent| (End::Low(margin(*extent)), End::High(margin(*extent))))
        .collect();
    let mut boxes = vec![whole];
    if !random.percent(40) {
        return boxes;
    }
    // Boxes cut off both ends of a dimension may meet at small sizes; that is decided only where
    // sizes are known.
    let both_ends = random.percent(15);
    let sides: Vec<bool> = (0..rank).map(|_| random.percent(50)).collect();
    for _ in 0..random.range(1, 4) {
        let (place, dimension) = (random.below(boxes.len()), random.below(rank));
        let most = if random.percent(92) { ((extents[dimension] - 1) / 2).max(1) } else { 8 };
        let width = random.pick(&[1, 1, 2, 3, 8]).min(most);
        let (lower, upper) = boxes[place][dimension];
        let low = if both_ends { random.percent(50) } else { sides[dimension] };
        let cut = match (lower, upper, low) {
            (End::Low(first), End::High(_), true) => {
                (End::Low(first + width - 1), End::Low(first + width))
            }
            (End::Low(_), End::High(last), false) => {
                (End::High(last + width), End::High(last + width - 1))
            }
            (End::Low(first), End::Low(last), _) if first < last => {
                (End::Low(first), End::Low(first + 1))
            }
            (End::High(first), End::High(last), _) if first > last => {
                (End::High(last + 1), End::High(last))
            }
            _ => continue,
        };
        let mut second = boxes[place].clone();
        boxes[place][dimension].1 = cut.0;
        second[dimension].0 = cut.1;
        boxes.push(second);
    }
    let keep = random.below(boxes.len());
    let mut place = 0;
    boxes.retain(|_| {
        place += 1;
        place == keep + 1 || !random.percent(25)
    });
    // The order of pieces in a file has no meaning.
    let turn = random.below(boxes.len());
    boxes.rotate_left(turn);
    boxes
}

/// A piece of a function in a box, with a value for each field that it updates.
pub fn piece(
    random: &mut Random,
    program: &Program,
    updates: &[usize],
    common: &Region,
    corners: &Corners,
) -> Piece {
    let mut region = Region { lower: Vec::new(), upper: Vec::new() };
    // Whether offsets may be those that are right for these sizes, and not for all.
    let mut daring = Vec::new();
    for (dimension, (lower, upper)) in corners.iter().enumerate() {
        let (first, last) = (common.lower[dimension], common.upper[dimension]);
        region.lower.push(lower.of(first, last));
        region.upper.push(upper.of(first, last));
        let fixed = last.term.is_none_or(|(param, _)| program.params[param].known != Known::Run);
        daring.push(random.percent(if fixed { 70 } else { 15 }));
    }
    let inside: Vec<_> = (0..program.fields.len())
        .map(|field| room(program, program.grid_of(field), common, &region, &daring))
        .collect();
    let anywhere = |field: usize| {
        let own = updates.iter().any(|update| program.grid_of(*update) == program.grid_of(field));
        let inside = inside[field].as_ref();
        let at_points = own
            || inside.is_some_and(|all| all.iter().all(|(first, last)| *first <= 0 && *last >= 0));
        program.fields[field].rule.is_some()
            && program.grid_of(field).rank() == region.rank()
            && at_points
    };
    let offsets = (0..program.fields.len()).map(|field| {
        let inside = inside[field].clone().filter(|_| program.fields[field].rule.is_none());
        inside.or_else(|| anywhere(field).then(|| vec![(-4, 4); region.rank()]))
    });
    let offsets = offsets.collect();
    let mut scope = Scope::of_piece(program, region.rank(), offsets, inside);
    scope.updated = random.percent(8);
    let mut lets = Vec::new();
    if random.percent(if updates.len() > 1 { 40 } else { 5 }) {
        for _ in 0..random.range(1, 2) {
            let of = program.fields[random.pick(updates)].ty;
            let bound = any(random, &mut scope, of, 2);
            lets.push((scope.share(&bound), bound));
        }
    }
    let values =
        updates.iter().map(|field| value(random, &mut scope, program.fields[*field].ty)).collect();
    Piece { region, lets, values }
}

/// The offsets at which a piece may read from a grid, none where there are none in some dimension:
/// those that are right for all sizes, or for these.
fn room(
    program: &Program,
    grid: &Region,
    common: &Region,
    piece: &Region,
    daring: &[bool],
) -> Option<Vec<(i64, i64)>> {
    if !grid.is_like(common) {
        return None;
    }
    // How far the first bound is above the second.
    let above = |bound: Affine, other: Affine, least: i64, daring: bool| {
        let exact = (bound.term == other.term).then_some(bound.constant - other.constant);
        let here = daring.then(|| bound.value(&program.params) - other.value(&program.params));
        exact.unwrap_or(here.unwrap_or(least).max(least)).min(4)
    };
    let dimensions = (0..grid.rank()).map(|dimension| {
        let (first, last) = (grid.lower[dimension], grid.upper[dimension]);
        // A piece lies in the common points.
        let before = common.lower[dimension].constant - first.constant;
        let after = last.constant - common.upper[dimension].constant;
        let before = above(piece.lower[dimension], first, before, daring[dimension]);
        let after = above(last, piece.upper[dimension], after, daring[dimension]);
        (before + after >= 0).then_some((-before, after))
    });
    dimensions.collect()
}
