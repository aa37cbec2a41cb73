//! Buffers that rotate after a launch, and the cells of a field that such a rotation keeps right.

use super::{Kernel, TileOp};
use crate::attribute::{self, read};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use crate::stencil::{Field, Piece, Program};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Attribute};

const ROTATES: &str = "tiled.rotates";
const COMPUTED: &str = "tiled.computed";

/// Lists of fields: after the launch of a kernel the first of each list has the buffer that the
/// second had before it, and so on. The last one is stored, and its next buffer becomes current.
pub fn rotations<'c>(kernel: Op<'c>) -> Result<Vec<Vec<&'c str>>, Error> {
    if mlir::attribute(kernel, ROTATES).is_none() {
        return Ok(Vec::new());
    }
    let lists = |attribute: Attribute<'c>| {
        attribute::as_array(attribute)?.into_iter().map(attribute::as_symbols).collect()
    };
    read(kernel, ROTATES, lists)
}

/// Sets what [`rotations`] reads.
pub fn set_rotations(builder: &Builder, kernel: Op, lists: &[Vec<&str>]) {
    let context = builder.context;
    let lists: Vec<_> = lists.iter().map(|list| attribute::symbols(context, list)).collect();
    mlir::set_attribute(kernel, ROTATES, attribute::array(context, &lists));
}

/// The attribute of a tile kernel that its lowered form has too.
pub fn rotations_attribute<'c>(kernel: Op<'c>) -> Option<(&'static str, Attribute<'c>)> {
    Some((ROTATES, mlir::attribute(kernel, ROTATES)?))
}

/// The first and last points of the boxes of a field's buffer that are its value; all other cells
/// have the value that they began with. None where the whole buffer is.
pub fn computed<'c>(
    field: &Field<'c>,
) -> Result<Option<Vec<(AffineMap<'c>, AffineMap<'c>)>>, Error> {
    if mlir::attribute(field.op, COMPUTED).is_none() {
        return Ok(None);
    }
    let bounds = |entry: Attribute<'c>| {
        let map = |name| attribute::as_map(attribute::entry(entry, name)?);
        Some((map("lower")?, map("upper")?))
    };
    let boxes = |attribute: Attribute<'c>| {
        attribute::as_array(attribute)?.into_iter().map(bounds).collect()
    };
    read(field.op, COMPUTED, boxes).map(Some)
}

/// Sets what [`computed`] reads: the boxes of some pieces.
pub fn set_computed<'c>(builder: &Builder<'c>, field: Op<'c>, pieces: &[Piece<'c>]) {
    let context = builder.context;
    let bounds = |piece: &Piece<'c>| {
        let (lower, upper) = (mlir::map_attribute(piece.lower), mlir::map_attribute(piece.upper));
        attribute::dictionary(context, &[("lower", lower), ("upper", upper)])
    };
    let boxes: Vec<_> = pieces.iter().map(bounds).collect();
    mlir::set_attribute(field, COMPUTED, attribute::array(context, &boxes));
}

/// Checks the rotations of a tile kernel: fields of one type on one grid, of which the last is
/// stored and the others are not, each in one list.
pub(crate) fn verify_rotations(program: &Program, kernel: &Kernel) -> Result<(), Error> {
    let wrong = |message: String| Error::new(mlir::place(kernel.op.location()), message);
    let mut seen = Vec::new();
    for list in rotations(kernel.op)? {
        let (Some(last), true) = (list.last(), list.len() > 1) else {
            return Err(wrong(format!("{ROTATES} needs lists of two fields or more")));
        };
        let whole = program.field(last)?;
        for name in &list {
            let field = program.field(name)?;
            let stores = kernel.body.iter();
            let stored =
                stores.filter(|op| matches!(op, TileOp::Store { field, .. } if field == name));
            if stored.count() != usize::from(name == last) {
                return Err(wrong(format!(
                    "of the fields {list:?} that rotate, @{} alone is to be stored",
                    whole.name
                )));
            }
            let kind = |field: &Field| (field.element.to_string(), field.unsigned);
            if (field.grid, kind(field)) != (whole.grid, kind(whole)) || seen.contains(name) {
                return Err(wrong(format!(
                    "@{name} can't rotate: it needs the grid and the type of @{}, and to be in one \
                     list alone",
                    whole.name
                )));
            }
            seen.push(*name);
        }
    }
    Ok(())
}
