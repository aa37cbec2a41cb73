//! Sets of cells of a buffer: boxes along its two slowest dimensions, whole along the others.

use std::ops::Range;

/// A box of cells: rows along the slowest dimension, columns along the next one. A buffer of one
/// dimension has one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Along the slowest dimension.
    pub rows: Range<usize>,
    /// Along the next one.
    pub columns: Range<usize>,
}

impl Area {
    /// Whether it has no cell.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() || self.columns.is_empty()
    }

    /// The cells that both have.
    pub fn common(&self, other: &Self) -> Self {
        let both = |one: &Range<usize>, other: &Range<usize>| {
            one.start.max(other.start)..one.end.min(other.end)
        };
        Self { rows: both(&self.rows, &other.rows), columns: both(&self.columns, &other.columns) }
    }

    /// The cells that the other one does not have, in up to four boxes.
    fn without(&self, other: &Self) -> Vec<Self> {
        let common = self.common(other);
        if common.is_empty() {
            return vec![self.clone()];
        }
        let beside = |columns| Self { rows: common.rows.clone(), columns };
        let all = [
            Self { rows: self.rows.start..common.rows.start, columns: self.columns.clone() },
            beside(self.columns.start..common.columns.start),
            beside(common.columns.end..self.columns.end),
            Self { rows: common.rows.end..self.rows.end, columns: self.columns.clone() },
        ];
        all.into_iter().filter(|area| !area.is_empty()).collect()
    }

    /// Both as one box, where they are one.
    fn joined(&self, other: &Self) -> Option<Self> {
        let next = |one: &Range<usize>, other: &Range<usize>| {
            (one.end == other.start).then_some(one.start..other.end)
        };
        if self.columns == other.columns {
            let rows = next(&self.rows, &other.rows).or_else(|| next(&other.rows, &self.rows))?;
            return Some(Self { rows, columns: self.columns.clone() });
        }
        if self.rows != other.rows {
            return None;
        }
        let columns = next(&self.columns, &other.columns);
        let columns = columns.or_else(|| next(&other.columns, &self.columns))?;
        Some(Self { rows: self.rows.clone(), columns })
    }
}

/// A set of cells, as boxes of which no two have a cell in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region(Vec<Area>);

impl From<Area> for Region {
    fn from(area: Area) -> Self {
        Self(if area.is_empty() { Vec::new() } else { vec![area] })
    }
}

impl Region {
    /// Its boxes.
    pub fn areas(&self) -> &[Area] {
        &self.0
    }

    /// Whether it has no cell.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The rows from the first cell to the last one.
    pub fn rows(&self) -> Range<usize> {
        let first = self.0.iter().map(|area| area.rows.start).min().unwrap_or(0);
        first..self.0.iter().map(|area| area.rows.end).max().unwrap_or(first)
    }

    /// Adds the cells of another one.
    pub fn add(&mut self, other: &Self) {
        for area in other.without(self).0 {
            self.push(area);
        }
    }

    fn push(&mut self, mut area: Area) {
        while let Some((place, joined)) =
            self.0.iter().enumerate().find_map(|(place, one)| Some((place, one.joined(&area)?)))
        {
            self.0.swap_remove(place);
            area = joined;
        }
        self.0.push(area);
    }

    /// The cells that another one does not have.
    pub fn without(&self, other: &Self) -> Self {
        let mut left = self.0.clone();
        for area in &other.0 {
            left = left.iter().flat_map(|one| one.without(area)).collect();
        }
        let mut all = Self::default();
        left.into_iter().for_each(|area| all.push(area));
        all
    }

    /// The cells that both have.
    pub fn common(&self, other: &Self) -> Self {
        let pairs = self.0.iter().flat_map(|one| other.0.iter().map(|other| one.common(other)));
        let mut all = Self::default();
        pairs.filter(|area| !area.is_empty()).for_each(|area| all.push(area));
        all
    }

    /// How many cells of the two dimensions it has.
    pub fn cells(&self) -> usize {
        self.0.iter().map(|area| area.rows.len().saturating_mul(area.columns.len())).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::noise_bits;
    use std::collections::BTreeSet;

    fn area(rows: Range<usize>, columns: Range<usize>) -> Area {
        Area { rows, columns }
    }

    #[test]
    fn a_hole_leaves_four_boxes() {
        let whole = Region::from(area(0..4, 0..4));
        let ring = whole.without(&area(1..3, 1..3).into());
        assert_eq!((ring.cells(), ring.areas().len()), (12, 4));
        let mut filled = ring.clone();
        filled.add(&area(1..3, 1..3).into());
        assert_eq!(filled.cells(), 16);
        assert!(whole.without(&filled).is_empty() && filled.without(&whole).is_empty());
    }

    #[test]
    fn rows_side_by_side_are_one_box() {
        let mut rows = Region::from(area(0..2, 0..1));
        rows.add(&area(4..6, 0..1).into());
        rows.add(&area(1..5, 0..1).into());
        assert_eq!(rows.areas(), [area(0..6, 0..1)]);
    }

    /// Random sets against sets of single cells.
    #[test]
    fn sets_are_those_of_their_cells() {
        let mut seed = 0;
        let mut below = |limit: u64| {
            seed += 1;
            (noise_bits(7, seed) % limit) as usize
        };
        let cells = |region: &Region| -> BTreeSet<(usize, usize)> {
            let areas = region.areas().iter();
            let cells = areas.flat_map(|area| {
                area.rows.clone().flat_map(|row| area.columns.clone().map(move |at| (row, at)))
            });
            cells.collect()
        };
        for _ in 0..300 {
            let mut random = || {
                let mut all = Region::default();
                for _ in 0..below(4) {
                    let (row, column) = (below(6), below(6));
                    all.add(&area(row..row + below(4), column..column + below(4)).into());
                }
                all
            };
            let (one, other) = (random(), random());
            let (own, others) = (cells(&one), cells(&other));
            assert_eq!(one.cells(), own.len(), "{one:?} has a cell twice");
            assert_eq!(cells(&one.common(&other)), &own & &others);
            assert_eq!(cells(&one.without(&other)), &own - &others);
            let mut both = one.clone();
            both.add(&other);
            assert_eq!(cells(&both), &own | &others);
            assert_eq!(both.cells(), (&own | &others).len());
        }
    }
}
