//! What a block holds of each field while it walks along the slowest dimension: planes of a
//! thread's own cells in registers, and planes with their halo in a ring of shared memory.
//!
//! Planes are numbered from the one that is computed. A thread has one *segment* of neighbouring
//! cells of a row. Reads of its own segment come from registers, all others from the ring:
//!
//! ```text
//! A[-2,0,0] A[0,0,0] A[2,0,0]    planes -2 to 2 in registers
//! A[0,-2,0] A[0,0,1]             plane 0 in the ring, with 2 rows before and a segment behind
//! ```

use melior::ir::Type;
use std::collections::BTreeSet;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{Argument, Program};
use stencil_dialects::tiled::{Apply, Kernel, TileOp};

/// A segment of cells relative to a thread's own: plane, row, segment along the row.
pub type Place = [i64; 3];

/// A field's planes in shared memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// The first and the last plane that is read.
    pub planes: [i64; 2],
    /// Rows before the tile's first and behind its last.
    pub rows: [i64; 2],
    /// Segments of cells before the tile's first and behind its last.
    pub segments: [i64; 2],
    /// Whether cells are read beyond both a row and a column of the tile.
    pub corners: bool,
    /// The segments that a thread reads.
    pub reads: BTreeSet<Place>,
}

impl Ring {
    /// Planes that it has room for: those that are read, and the next one.
    pub fn slots(&self) -> i64 {
        self.planes[1] - self.planes[0] + 2
    }

    fn add(&mut self, place: Place) {
        let [plane, row, segment] = place;
        let [first, last] = self.planes;
        let is_first = self.reads.is_empty();
        self.planes = if is_first { [plane, plane] } else { [first.min(plane), last.max(plane)] };
        self.rows = [self.rows[0].max(-row), self.rows[1].max(row)];
        self.segments = [self.segments[0].max(-segment), self.segments[1].max(segment)];
        self.corners |= row != 0 && segment != 0;
        self.reads.insert(place);
    }
}

/// What a block holds of a field.
#[derive(Clone, Debug, PartialEq)]
pub struct Held<'c> {
    /// The field.
    pub field: &'c str,
    /// Type of a cell.
    pub element: Type<'c>,
    /// The first and the last plane in registers; the last is below the first where there is none.
    pub planes: [i64; 2],
    /// Planes in shared memory, if other segments than a thread's own are read.
    pub ring: Option<Ring>,
    /// The farthest read per dimension, slowest first.
    pub reach: Vec<i64>,
}

impl Held<'_> {
    /// Planes in registers.
    pub fn count(&self) -> i64 {
        self.planes[1] - self.planes[0] + 1
    }
}

/// What a block holds of each field that a kernel of one apply loads, for threads with segments of
/// `width` cells.
pub fn of<'c>(
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    apply: &Apply<'c>,
    width: i64,
) -> Result<Vec<Held<'c>>, Error> {
    let rank = kernel.schedule.tile.len();
    let mut all = Vec::new();
    for op in &kernel.body {
        let TileOp::Load { field, tile, .. } = op else { continue };
        if apply.input(field) == Some(*tile) {
            let offsets = offsets(program, apply, field, *tile)?;
            all.push(of_field(field, program.field(field)?.element, &offsets, (rank, width)));
        }
    }
    Ok(all)
}

/// The offsets at which an apply needs a field, its own cell among them where it keeps it.
fn offsets<'c>(
    program: &Program<'c>,
    apply: &Apply<'c>,
    name: &str,
    tile: Val<'c>,
) -> Result<BTreeSet<Vec<i64>>, Error> {
    let mut offsets = BTreeSet::new();
    for piece in &apply.pieces {
        for argument in program.arguments(piece.function)? {
            match argument {
                Argument::Read { field, offset } if *field == name => {
                    offsets.insert(offset.clone());
                }
                _ => {}
            }
        }
    }
    if apply.outputs.iter().any(|(field, _)| apply.kept(field) == Some(tile)) {
        offsets.insert(vec![0; apply.halo.lower.len()]);
    }
    Ok(offsets)
}

fn of_field<'c>(
    field: &'c str,
    element: Type<'c>,
    offsets: &BTreeSet<Vec<i64>>,
    (rank, width): (usize, i64),
) -> Held<'c> {
    let mut own: Option<[i64; 2]> = None;
    let mut ring = Ring::default();
    let mut reach = vec![0; rank];
    for offset in offsets {
        for (far, cells) in reach.iter_mut().zip(offset) {
            *far = cells.saturating_abs().max(*far);
        }
        let (plane, row, column) = match *offset.as_slice() {
            [plane, row, column] => (plane, row, column),
            [plane, column] => (plane, 0, column),
            _ => continue,
        };
        for segment in (0..width).map(|cell| (cell + column).div_euclid(width)) {
            if (row, segment) == (0, 0) {
                own = Some(own.map_or([plane; 2], |[a, b]| [a.min(plane), b.max(plane)]));
            } else {
                ring.add([plane, row, segment]);
            }
        }
    }
    let ring = (!ring.reads.is_empty()).then_some(ring);
    // A plane enters the ring from registers, or as it is loaded.
    let last = ring.as_ref().map(|ring| ring.planes[1]);
    let planes = match (own, last) {
        (Some([first, own]), Some(last)) => [first.min(last + 1), own.max(last)],
        (Some(own), None) => own,
        (None, Some(last)) => [last + 1, last],
        (None, None) => [0, -1],
    };
    Held { field, element, planes, ring, reach }
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::Context;

    fn held<'c>(context: &'c Context, offsets: &[[i64; 3]], width: i64) -> Held<'c> {
        let offsets = offsets.iter().map(|offset| offset.to_vec()).collect();
        of_field("A", Type::float32(context), &offsets, (3, width))
    }

    #[test]
    fn a_star_has_one_plane_in_the_ring() {
        let context = Context::new();
        let star: Vec<_> = (-2..=2).flat_map(|d| [[d, 0, 0], [0, d, 0], [0, 0, d]]).collect();
        let held = held(&context, &star, 4);
        assert_eq!((held.planes, held.count(), held.reach.as_slice()), ([-2, 2], 5, &[2; 3][..]));
        let ring = held.ring.clone().unwrap();
        assert_eq!((ring.planes, ring.rows, ring.segments), ([0, 0], [2, 2], [1, 1]));
        assert!(!ring.corners && ring.slots() == 2);
        // Four rows beside the own one, and a segment on each side.
        assert_eq!(ring.reads.len(), 6);
    }

    #[test]
    fn a_cube_has_all_planes_in_the_ring_and_in_registers() {
        let context = Context::new();
        let cube: Vec<_> = (0..27).map(|n| [n / 9 - 1, n / 3 % 3 - 1, n % 3 - 1]).collect();
        let held = held(&context, &cube, 2);
        let ring = held.ring.unwrap();
        assert_eq!((held.planes, ring.planes, ring.slots()), ([-1, 1], [-1, 1], 4));
        assert!(ring.corners);
        assert_eq!(ring.reads.len(), 3 * (9 - 1));
    }

    #[test]
    fn a_plane_that_only_the_ring_needs_is_in_no_register() {
        let context = Context::new();
        let held = held(&context, &[[1, 4, 0]], 4);
        assert_eq!((held.planes, held.count()), ([2, 1], 0));
        assert_eq!(held.ring.map(|ring| (ring.planes, ring.rows)), Some(([1, 1], [0, 4])));
        // One far before the own cell stays in registers until it enters the ring.
        let behind = super::tests::held(&context, &[[-2, 1, 0], [0, 0, 0]], 4);
        assert_eq!((behind.planes, behind.count()), ([-1, 0], 2));
        // A segment far along the row: both segments that its cells lie in.
        let held = super::tests::held(&context, &[[0, 0, 6]], 4);
        assert_eq!(held.ring.map(|ring| (ring.segments, ring.reads.len())), Some(([0, 2], 2)));
    }
}
