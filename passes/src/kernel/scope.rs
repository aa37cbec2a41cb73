//! The names that code of a kernel can use: sizes, scalars, the step, and the points of the grid.
//! Nothing here knows on what kind of device the code runs.

use crate::analysis::hull::Hull;
use melior::ir::{AffineMap, Module, ValueLike};
use std::collections::BTreeMap;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::Program;

/// What a point function, a boundary rule and a check can refer to.
#[derive(Clone)]
pub struct Scope<'c, 'p> {
    /// The module with the point functions.
    pub module: &'p Module<'c>,
    /// The declarations.
    pub program: &'p Program<'c>,
    /// The points that tiles cover: the hull of the stored fields' grids.
    pub hull: Hull<'c>,
    /// Run-time sizes, as `index`.
    pub params: Vec<Val<'c>>,
    /// Run-time scalars.
    pub scalars: BTreeMap<&'c str, Val<'c>>,
    /// The number of the first step, as `i64`.
    pub step: Val<'c>,
}

impl<'c> Scope<'c, '_> {
    /// The same names some steps later; `steps` is an `index`.
    pub fn later(&self, builder: &Builder<'c>, steps: Val<'c>) -> Result<Self, Error> {
        let steps = builder.value("arith.index_cast", &[steps], self.step.r#type(), &[])?;
        Ok(Self { step: builder.add(self.step, steps)?, ..self.clone() })
    }

    /// The bounds of a map of run-time sizes as values.
    pub fn bounds(&self, builder: &Builder<'c>, map: AffineMap<'c>) -> Result<Vec<Val<'c>>, Error> {
        (0..map.result_count())
            .map(|index| {
                builder.affine(
                    map.result(index).map_err(|error| Error::internal(error.to_string()))?,
                    &[],
                    &self.params,
                )
            })
            .collect()
    }

    /// The condition that a point lies in a box, both ends inclusive.
    pub fn inside(
        &self,
        builder: &Builder<'c>,
        point: &[Val<'c>],
        lower: AffineMap<'c>,
        upper: AffineMap<'c>,
    ) -> Result<Val<'c>, Error> {
        let mut conditions = Vec::new();
        for ((coordinate, lower), upper) in
            point.iter().zip(self.bounds(builder, lower)?).zip(self.bounds(builder, upper)?)
        {
            conditions.push(builder.compare(Compare::Ge, *coordinate, lower)?);
            conditions.push(builder.compare(Compare::Le, *coordinate, upper)?);
        }
        builder.all(&conditions)?.ok_or_else(|| Error::internal("a box of no dimensions"))
    }

    /// The condition that a box holds points.
    pub fn holds_points(
        &self,
        builder: &Builder<'c>,
        lower: AffineMap<'c>,
        upper: AffineMap<'c>,
    ) -> Result<Val<'c>, Error> {
        let ends = self.bounds(builder, lower)?.into_iter().zip(self.bounds(builder, upper)?);
        let conditions = ends.map(|(lower, upper)| builder.compare(Compare::Le, lower, upper));
        let all = builder.all(&conditions.collect::<Result<Vec<_>, _>>()?)?;
        all.ok_or_else(|| Error::internal("a box of no dimensions"))
    }

    /// Indices of a point in a field's buffer: its coordinates less the grid's first point.
    pub fn cell(
        &self,
        builder: &Builder<'c>,
        field: &str,
        point: &[Val<'c>],
    ) -> Result<Vec<Val<'c>>, Error> {
        let lower = self.bounds(builder, self.program.grid_of(field)?.lower)?;
        point
            .iter()
            .zip(lower)
            .map(|(coordinate, first)| builder.binary("arith.subi", *coordinate, first))
            .collect()
    }
}
