//! Values for run-time sizes, where a model needs some.

use melior::ir::AffineMap;
use stencil_dialects::affine;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::stencil::{Grid, Program};
use stencil_runtime::expr::{Expr, Sizes};

/// Points of a dimension of a run-time size, by the number of dimensions.
pub const LARGE: [i64; 3] = [1 << 28, 1 << 14, 1 << 9];

/// Values for the run-time sizes.
pub struct Large<'c> {
    names: Vec<&'c str>,
    sizes: Sizes,
}

impl<'c> Large<'c> {
    /// Large ones, for a program.
    pub fn of(program: &Program<'c>) -> Self {
        let rank = program.grids.iter().map(Grid::rank).max().unwrap_or(1);
        let size = LARGE.get(rank.saturating_sub(1)).copied().unwrap_or(1);
        let sizes = program.params.iter().map(|name| ((*name).to_owned(), size)).collect();
        Self { names: program.params.clone(), sizes }
    }

    /// The value of a size.
    pub fn of_name(&self, name: &str) -> Option<i64> {
        self.sizes.get(name).copied()
    }

    /// The values of a map.
    ///
    /// # Errors
    /// A decline: sizes that are too large.
    pub fn evaluate(&self, map: AffineMap) -> Result<Vec<i64>, Error> {
        let internal = |error: &dyn std::fmt::Display| Error::internal(error.to_string());
        (0..map.result_count())
            .map(|index| {
                let result = map.result(index).map_err(|error| internal(&error))?;
                let text = affine::text(result, &self.names);
                let expression = text.parse::<Expr>().map_err(|error| internal(&error))?;
                let value = expression.evaluate(&self.sizes);
                value.map_err(|error| Error::declined(Decline::Sizes, error.to_string()))
            })
            .collect()
    }

    /// Points of a grid.
    ///
    /// # Errors
    /// As for [`Self::evaluate`].
    pub fn points(&self, grid: &Grid) -> Result<f64, Error> {
        let extents = self.extents(grid.lower, grid.upper)?;
        Ok(extents.into_iter().map(|points| points as f64).product())
    }
    /// Points per dimension of a box, both ends inclusive.
    ///
    /// # Errors
    /// As for [`Self::evaluate`].
    pub fn extents(&self, lower: AffineMap, upper: AffineMap) -> Result<Vec<i64>, Error> {
        let ends = self.evaluate(lower)?.into_iter().zip(self.evaluate(upper)?);
        let points = |(lower, upper): (i64, i64)| upper.saturating_sub(lower).saturating_add(1);
        Ok(ends.map(points).map(|points| points.max(0)).collect())
    }
}
