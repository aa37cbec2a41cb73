//! Boxes of points and their bounds.

use crate::model::{Affine, Param, Region};

impl Region {
    /// Dimensions.
    pub fn rank(&self) -> usize {
        self.lower.len()
    }

    /// Whether the bounds of two boxes differ by constants.
    pub fn is_like(&self, other: &Self) -> bool {
        let term = |bound: &Affine| bound.term;
        self.lower.iter().map(term).eq(other.lower.iter().map(term))
            && self.upper.iter().map(term).eq(other.upper.iter().map(term))
    }

    /// First and last point of each dimension.
    pub fn bounds(&self, params: &[Param]) -> Vec<(i64, i64)> {
        self.lower
            .iter()
            .zip(&self.upper)
            .map(|(lower, upper)| (lower.value(params), upper.value(params)))
            .collect()
    }
}
