//! Which boxes of points lie within others, for all run-time sizes that a run may have.

use crate::affine::{Facts, Linear};
use crate::stencil::{Check, Field, Grid, Piece, Program};
use melior::ir::AffineMap;

/// A box of points, both ends inclusive, with one bound a dimension; empty where an upper bound
/// lies below the lower one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// First point.
    pub lower: Vec<Linear>,
    /// Last point.
    pub upper: Vec<Linear>,
}

impl Bounds {
    /// The box between two maps; none where they are not linear.
    pub fn of(lower: AffineMap, upper: AffineMap) -> Option<Self> {
        Some(Self { lower: Linear::of_map(lower)?, upper: Linear::of_map(upper)? })
    }

    /// The points of a grid.
    pub fn of_grid(grid: &Grid) -> Option<Self> {
        Self::of(grid.lower, grid.upper)
    }

    /// The points of a piece.
    pub fn of_piece(piece: &Piece) -> Option<Self> {
        Self::of(piece.lower, piece.upper)
    }

    /// The box, an offset further; none where it leaves 64 bits.
    pub fn moved(&self, offset: &[i64]) -> Option<Self> {
        let by = |bounds: &[Linear]| -> Option<Vec<Linear>> {
            bounds.iter().zip(offset).map(|(bound, cells)| shifted(bound, *cells)).collect()
        };
        Some(Self { lower: by(&self.lower)?, upper: by(&self.upper)? })
    }

    /// Whether the box holds no point, whatever the sizes.
    pub fn is_empty(&self) -> bool {
        self.lengths().iter().any(Linear::is_always_negative)
    }

    /// Points along each dimension, less one: not negative where the box holds a point.
    fn lengths(&self) -> Vec<Linear> {
        differences(&self.upper, &self.lower)
    }
}

fn shifted(bound: &Linear, by: i64) -> Option<Linear> {
    Some(Linear { constant: bound.constant.checked_add(by)?, ..bound.clone() })
}

fn differences(upper: &[Linear], lower: &[Linear]) -> Vec<Linear> {
    upper.iter().zip(lower).filter_map(|(upper, lower)| upper.minus(lower)).collect()
}

/// Values that are not negative if the piece holds a point: its lengths and its margins.
pub fn of_points(piece: &Piece, grids: &[&Grid]) -> Vec<Linear> {
    let Some(bounds) = Bounds::of_piece(piece) else { return Vec::new() };
    let mut known = bounds.lengths();
    for grid in grids.iter().filter_map(|grid| Bounds::of_grid(grid)) {
        known.extend(differences(&bounds.lower, &grid.lower));
        known.extend(differences(&grid.upper, &bounds.upper));
    }
    known
}

/// Values that are not negative if each of the pieces holds a point, because a `stencil.check`
/// guards them. Conditions on the number of steps are left out: they prove nothing about sizes.
pub fn checked_values<'p>(
    program: &'p Program,
    pieces: &'p [&Piece],
) -> impl Iterator<Item = Linear> + 'p {
    let holds = |(lower, upper): (AffineMap, AffineMap)| {
        pieces.iter().any(|piece| piece.lower == lower && piece.upper == upper)
    };
    let of_sizes = |check: &&Check| check.value.symbol_count() == program.params.len();
    let checks = program.checks.iter().filter(of_sizes);
    let checks = checks.filter(move |check| check.unless_empty.is_none_or(holds));
    checks.filter_map(|check| check.linear.clone())
}

/// The cells of a field that have a value: all, or those of some boxes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Defined {
    /// Every cell of the field's grid.
    All,
    /// The cells that pieces cover, if no proof shows that these are all.
    Pieces(Vec<Bounds>),
}

impl Defined {
    /// The same and what some pieces cover, of a field on a grid.
    pub fn and(self, program: &Program, grid: &Grid, pieces: &[Piece]) -> Self {
        let Self::Pieces(mut boxes) = self else { return Self::All };
        let before = boxes.len();
        for piece in pieces.iter().filter_map(Bounds::of_piece) {
            if !boxes.contains(&piece) {
                boxes.push(piece);
            }
        }
        if boxes.len() == before {
            return Self::Pieces(boxes);
        }
        let known: Vec<_> = checked_values(program, &[]).collect();
        let whole = Bounds::of_grid(grid).is_some_and(|grid| covered(&grid, &boxes, &known));
        if whole { Self::All } else { Self::Pieces(boxes) }
    }

    /// Whether it is every cell. `false` means that no proof was found.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::All)
    }

    /// Whether it holds every cell of a field that the points of a piece read at an offset. `false`
    /// means that no proof was found. A boundary rule may send a read to any cell.
    pub fn holds_read(
        &self,
        program: &Program,
        piece: &Piece,
        field: &Field,
        offset: &[i64],
    ) -> bool {
        let Self::Pieces(boxes) = self else { return true };
        if field.boundary.is_some() && offset.iter().any(|cells| *cells != 0) {
            return false;
        }
        let mut known: Vec<_> = checked_values(program, &[piece]).collect();
        known.extend(of_points(piece, &[]));
        let read = Bounds::of_piece(piece).and_then(|piece| piece.moved(offset));
        read.is_some_and(|read| covered(&read, boxes, &known))
    }
}

/// Comparisons of bounds that a proof may take.
const MOST_COMPARISONS: u32 = 4000;

/// Whether boxes cover another one wherever the known values are not negative. `false` means that
/// no proof was found. One box after the other is taken away, and what is left of the target is cut
/// into boxes along its sides.
pub fn covered(target: &Bounds, boxes: &[Bounds], known: &[Linear]) -> bool {
    !boxes.is_empty()
        && Proof { left: MOST_COMPARISONS }.covered(target, boxes, known.iter().collect())
}

struct Proof {
    left: u32,
}

impl Proof {
    fn covered(&mut self, target: &Bounds, boxes: &[Bounds], mut known: Facts) -> bool {
        // An empty box is covered, so that the target may be taken to hold a point.
        let lengths = target.lengths();
        lengths.iter().for_each(|length| known.add(length));
        if lengths.iter().any(|length| self.is_negative(length, &known)) {
            return true;
        }
        let Some((first, rest)) = boxes.split_first() else { return false };
        let mut middle = target.clone();
        for dimension in 0..target.lower.len() {
            let Some(parts) = self.cut(&mut middle, first, dimension, &known) else { return false };
            for part in parts {
                // A part as large as the target gains nothing: the box does without.
                if part == *target {
                    return self.covered(target, rest, known);
                }
                if !self.covered(&part, rest, known.clone()) {
                    return false;
                }
            }
        }
        true
    }

    /// The parts of a box before and after another one along a dimension; the rest is left in
    /// `middle`. Where bounds can't be compared the parts are larger than they need be.
    fn cut(
        &mut self,
        middle: &mut Bounds,
        by: &Bounds,
        dimension: usize,
        known: &Facts,
    ) -> Option<Vec<Bounds>> {
        let (first, last) = (by.lower.get(dimension)?.clone(), by.upper.get(dimension)?.clone());
        let (lower, upper) =
            (middle.lower.get(dimension)?.clone(), middle.upper.get(dimension)?.clone());
        let (before, after) = (shifted(&first, -1)?, shifted(&last, 1)?);
        let mut parts = Vec::new();
        if !self.at_most(&first, &lower, known) {
            let mut part = middle.clone();
            if self.at_most(&before, &upper, known) {
                *part.upper.get_mut(dimension)? = before;
            }
            parts.push(part);
        }
        if !self.at_most(&upper, &last, known) {
            let mut part = middle.clone();
            if self.at_most(&lower, &after, known) {
                *part.lower.get_mut(dimension)? = after;
            }
            parts.push(part);
        }
        if self.at_most(&lower, &first, known) {
            *middle.lower.get_mut(dimension)? = first;
        }
        if self.at_most(&last, &upper, known) {
            *middle.upper.get_mut(dimension)? = last;
        }
        Some(parts)
    }

    fn at_most(&mut self, small: &Linear, large: &Linear, known: &Facts) -> bool {
        self.left = self.left.saturating_sub(1);
        let gap = large.minus(small);
        self.left > 0 && gap.is_some_and(|gap| known.imply(&gap))
    }

    /// Whether a value is below 0.
    fn is_negative(&mut self, value: &Linear, known: &Facts) -> bool {
        let minus_one = Linear { constant: -1, coefficients: vec![0; value.coefficients.len()] };
        self.at_most(value, &minus_one, known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `constant + n * N + m * M`.
    fn at(constant: i64, n: i64, m: i64) -> Linear {
        Linear { constant, coefficients: vec![n, m] }
    }

    /// A box of rows and columns.
    fn rows_and_columns(rows: [Linear; 2], columns: [Linear; 2]) -> Bounds {
        let ([top, bottom], [left, right]) = (rows, columns);
        Bounds { lower: vec![top, left], upper: vec![bottom, right] }
    }

    fn whole() -> Bounds {
        rows_and_columns([at(0, 0, 0), at(-1, 1, 0)], [at(0, 0, 0), at(-1, 0, 1)])
    }

    fn inner(rim: i64) -> Bounds {
        rows_and_columns([at(rim, 0, 0), at(-1 - rim, 1, 0)], [at(rim, 0, 0), at(-1 - rim, 0, 1)])
    }

    /// The first and the last row, and of the rows between the first and the last cell.
    fn rims() -> Vec<Bounds> {
        vec![
            rows_and_columns([at(0, 0, 0), at(0, 0, 0)], [at(0, 0, 0), at(-1, 0, 1)]),
            rows_and_columns([at(-1, 1, 0), at(-1, 1, 0)], [at(0, 0, 0), at(-1, 0, 1)]),
            rows_and_columns([at(1, 0, 0), at(-2, 1, 0)], [at(0, 0, 0), at(0, 0, 0)]),
            rows_and_columns([at(1, 0, 0), at(-2, 1, 0)], [at(-1, 0, 1), at(-1, 0, 1)]),
        ]
    }

    #[test]
    fn a_box_covers_itself_and_what_lies_within() {
        assert!(covered(&whole(), &[whole()], &[]));
        assert!(covered(&inner(1), &[whole()], &[]));
        assert!(!covered(&whole(), &[inner(1)], &[]));
        assert!(!covered(&whole(), &[], &[]));
    }

    #[test]
    fn an_interior_and_its_rims_cover_a_grid_of_any_size_in_any_order() {
        let mut boxes = [rims(), vec![inner(1)]].concat();
        for _ in 0..boxes.len() {
            assert!(covered(&whole(), &boxes, &[]), "{boxes:?}");
            boxes.rotate_left(1);
        }
        // Without any one of them a cell is missing.
        for missing in 0..boxes.len() {
            let mut others = boxes.clone();
            others.remove(missing);
            assert!(!covered(&whole(), &others, &[]), "{missing}");
        }
    }

    #[test]
    fn halves_meet_where_a_check_says_so() {
        // Rows up to M - 1 and from M on: rows up to N - 1 are covered whichever is larger.
        let above = rows_and_columns([at(0, 0, 0), at(-1, 0, 1)], [at(0, 0, 0), at(-1, 0, 1)]);
        let below = rows_and_columns([at(0, 0, 1), at(-1, 1, 0)], [at(0, 0, 0), at(-1, 0, 1)]);
        assert!(covered(&whole(), &[above.clone(), below], &[]));
        // With rows from M + 1 on, row M is missing unless N is at most M.
        let late = rows_and_columns([at(1, 0, 1), at(-1, 1, 0)], [at(0, 0, 0), at(-1, 0, 1)]);
        assert!(!covered(&whole(), &[above.clone(), late.clone()], &[]));
        assert!(covered(&whole(), &[above, late], &[at(0, -1, 1)]));
    }

    #[test]
    fn a_box_moved_beyond_another_leaves_it() {
        let moved = inner(1).moved(&[1, 0]).unwrap();
        assert!(covered(&moved, &[whole()], &[]));
        assert!(!covered(&moved, &[inner(1)], &[]));
        assert!(covered(&inner(2).moved(&[1, -1]).unwrap(), &[inner(1)], &[]));
        assert!(inner(1).moved(&[i64::MAX, 0]).is_none());
    }

    #[test]
    fn fixed_sizes_need_no_symbols() {
        let row = |first, last| Bounds {
            lower: vec![Linear { constant: first, coefficients: Vec::new() }],
            upper: vec![Linear { constant: last, coefficients: Vec::new() }],
        };
        assert!(covered(&row(0, 9), &[row(5, 9), row(0, 4)], &[]));
        assert!(!covered(&row(0, 9), &[row(6, 9), row(0, 4)], &[]));
        assert!(covered(&row(3, 2), &[row(7, 7)], &[]));
    }
}
