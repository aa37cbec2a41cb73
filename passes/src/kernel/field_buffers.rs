//! Buffers of fields: their extents, and a kernel's argument as a memref of the grid's shape.

use crate::analysis::index_width::constant_extents;
use melior::Context;
use melior::ir::r#type::MemRefType;
use melior::ir::{AffineExpr, AffineMap};
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Program;

/// Cells per dimension, slowest first, as expressions in the run-time sizes.
pub fn extents<'c>(
    context: &'c Context,
    lower: AffineMap<'c>,
    upper: AffineMap<'c>,
) -> Result<Vec<AffineExpr<'c>>, Error> {
    (0..lower.result_count())
        .map(|dimension| {
            let bound = |map: AffineMap<'c>| {
                map.result(dimension).map_err(|error| Error::internal(error.to_string()))
            };
            let constant = |value| AffineExpr::constant(context, value);
            Ok(bound(upper)? + bound(lower)? * constant(-1) + constant(1))
        })
        .collect()
}

/// A field's buffer, shaped like its grid.
pub fn whole_grid<'c>(
    builder: &Builder<'c>,
    program: &Program<'c>,
    field: &str,
    buffer: Val<'c>,
    params: &[Val<'c>],
) -> Result<Val<'c>, Error> {
    let grid = program.grid_of(field)?;
    let element = program.field(field)?.element;
    let rank = grid.rank();
    let (mut static_sizes, mut static_strides) = (vec![i64::MIN; rank], vec![i64::MIN; rank]);
    let (mut sizes, mut strides) = (Vec::new(), Vec::new());
    let constants = constant_extents(grid.lower, grid.upper);
    if let Some(last) = static_strides.last_mut() {
        *last = 1;
    }
    match &constants {
        Some(extents) => {
            let mut stride = 1_i64;
            let places = static_sizes.iter_mut().zip(&mut static_strides);
            for ((size, place), extent) in places.zip(extents).rev() {
                (*size, *place) = (*extent, stride);
                stride = stride.saturating_mul((*extent).max(1));
            }
        }
        None => {
            let mut stride: Option<Val> = None;
            for (dimension, extent) in
                extents(builder.context, grid.lower, grid.upper)?.into_iter().enumerate().rev()
            {
                let extent = builder.affine(extent, &[], params)?;
                sizes.push(extent);
                strides.extend(stride);
                if dimension > 0 {
                    stride = Some(match stride {
                        Some(stride) => builder.binary("arith.muli", stride, extent)?,
                        None => extent,
                    });
                }
            }
            sizes.reverse();
            strides.reverse();
        }
    }
    let context = builder.context;
    let layout = melior::ir::attribute::StridedLayoutAttribute::new(context, 0, &static_strides);
    let ty = MemRefType::new(element, &static_sizes, Some(layout.into()), None);
    let segments = [1, 0, sizes.len() as i32, strides.len() as i32];
    let operands = [&[buffer], sizes.as_slice(), strides.as_slice()].concat();
    builder.value(
        "memref.reinterpret_cast",
        &operands,
        ty.into(),
        &[
            ("static_offsets", attribute::integers(context, &[0])),
            ("static_sizes", attribute::integers(context, &static_sizes)),
            ("static_strides", attribute::integers(context, &static_strides)),
            ("operandSegmentSizes", attribute::integers32(context, &segments)),
        ],
    )
}
