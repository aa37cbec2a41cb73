//! Sequences: fields along one dimension that points read at their own row or column, such as the
//! two texts of an alignment. A tile's part of them lies in shared memory, loaded a tile ahead.

use super::geometry::{FARTHEST, Geometry};
use crate::kernel::lanes::WARP;
use melior::ir::{Module, Type};
use std::collections::BTreeMap;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Argument, Gather, Piece, Program};

/// A sequence that a tile reads.
#[derive(Clone, Debug)]
pub struct Sequence<'c> {
    /// The field.
    pub field: &'c str,
    /// The type of its values.
    pub element: Type<'c>,
    /// The dimension of the points that it follows: 0 for rows, 1 for columns.
    pub dimension: usize,
    /// The least and the largest distance from a point's row or column.
    pub reach: [i64; 2],
}

impl Sequence<'_> {
    /// Values of a tile.
    pub fn length(&self, geometry: &Geometry) -> i64 {
        let own = match self.dimension {
            0 => geometry.strip(),
            _ => geometry.depth() + geometry.width,
        };
        own + self.reach[1] - self.reach[0]
    }

    /// Where the first value lies, from the tile's first row or time.
    pub fn first(&self, geometry: &Geometry) -> i64 {
        self.reach[0] - if self.dimension == 0 { 0 } else { geometry.depth() }
    }

    /// The place of a value at a distance from a lane's row at time 0, as a factor and a constant.
    /// The factor is of the lane, or of the lanes behind it where the sequence follows columns: no
    /// term is negative, so that LLVM sees that no sum of them wraps.
    pub fn place(&self, geometry: &Geometry, row: i64, distance: i64) -> [i64; 2] {
        let (factor, own) = match self.dimension {
            0 => (geometry.rows, row),
            _ => (geometry.lag, -geometry.skew * row - geometry.lag * (WARP - 1)),
        };
        [factor, own + distance - self.first(geometry)]
    }
}

/// A read of a sequence: its field, the dimension and the distance.
pub type Read<'c> = (&'c str, usize, i64);

/// The sequences that pieces read.
pub fn of<'c>(
    (module, program): (&Module<'c>, &Program<'c>),
    pieces: &[Piece<'c>],
) -> Result<Vec<Sequence<'c>>, Error> {
    let mut found: Vec<Sequence> = Vec::new();
    for piece in pieces {
        for read in reads(stencil::function(module, piece.function)?)? {
            let Some((field, dimension, distance)) = read.1 else { continue };
            let reach = [distance; 2];
            let same = |other: &&mut Sequence| (other.field, other.dimension) == (field, dimension);
            match found.iter_mut().find(same) {
                Some(sequence) => {
                    let [low, high] = sequence.reach;
                    sequence.reach = [low.min(distance), high.max(distance)];
                }
                None => {
                    let element = program.field(field)?.element;
                    found.push(Sequence { field, element, dimension, reach });
                }
            }
        }
    }
    Ok(found)
}

/// The absolute reads of a point function in the order of the text, those of sequences as such.
pub fn reads<'c>(function: Op<'c>) -> Result<Vec<(Gather<'c>, Option<Read<'c>>)>, Error> {
    let mut constants = BTreeMap::new();
    // The dimension and the distance of each value that is a coordinate, or some cells beside one.
    let mut coordinates = BTreeMap::new();
    for (argument, value) in stencil::arguments_with_values(function)? {
        if let Argument::Coordinate(dimension) = argument {
            coordinates.insert(mlir::key(value), (dimension, 0_i64));
        }
    }
    for op in mlir::walk(function) {
        let results = mlir::results(op);
        let (Some(result), operands) = (results.first(), mlir::operands(op)) else { continue };
        let key = |place: usize| operands.get(place).map(|value: &Val| mlir::key(*value));
        let constant = |place| key(place).and_then(|key| constants.get(&key).copied());
        let coordinate = |place| key(place).and_then(|key| coordinates.get(&key).copied());
        let beside = match mlir::name(op) {
            "arith.constant" => {
                let value = mlir::attribute(op, "value").and_then(attribute::as_integer);
                constants.extend(value.map(|value| (mlir::key(*result), value)));
                None
            }
            "arith.addi" => coordinate(0).zip(constant(1)).or(coordinate(1).zip(constant(0))).map(
                |((dimension, at), cells): ((usize, i64), i64)| (dimension, at.checked_add(cells)),
            ),
            "arith.subi" => coordinate(0).zip(constant(1)).map(
                |((dimension, at), cells): ((usize, i64), i64)| (dimension, at.checked_sub(cells)),
            ),
            _ => None,
        };
        if let Some((dimension, Some(at))) = beside {
            coordinates.insert(mlir::key(*result), (dimension, at));
        }
    }
    let read = |gather: &Gather<'c>| match gather.at.as_slice() {
        [at] => coordinates
            .get(&mlir::key(*at))
            .filter(|(_, distance)| distance.unsigned_abs() <= FARTHEST)
            .map(|(dimension, distance)| (gather.field, *dimension, *distance)),
        _ => None,
    };
    Ok(stencil::gathers(function)?
        .into_iter()
        .map(|gather| (gather.clone(), read(&gather)))
        .collect())
}

/// Turns of a warp's lanes for so many values, shared among some warps.
pub fn turns(values: i64, warps: i64) -> i64 {
    let step = (WARP * warps).max(1);
    (values + step - 1) / step
}
