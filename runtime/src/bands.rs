//! Launches that overlap: each is cut into bands of its rows of blocks. A band waits only for those
//! bands of the launch before that it shares cells with. The blocks of one launch therefore fill
//! the device while the last ones of the launch before end.
//!
//! A row shares cells with rows no farther away than its reach ([`Rows`]). Bands in reach of a band
//! wrote the cells that it reads, and read the cells that it writes. It waits for them, and they
//! in turn waited for those in their reach. Any two bands of different launches that share a cell
//! therefore run in order.

use crate::launch::{Launch, Rows};
use std::ops::Range;

/// Bands of a launch are at most so many. On an H200 20 bands were as fast as 14, or faster, in two
/// dimensions.
const MOST: u32 = 20;

/// A band of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Band<'p> {
    /// The launch of its rows alone.
    pub launch: Launch<'p>,
    /// The numbers of the bands that must have ended before.
    pub waits: Vec<usize>,
}

/// Launches one after the other, in bands that are numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Bands so far.
    bands: usize,
    /// The last launch, and the number of its first band.
    last: Option<(Cut, usize)>,
}

impl Chain {
    /// Adds a launch, for a device that runs `resident` of its blocks at a time; gives its bands,
    /// one where it stays whole.
    pub fn add<'p>(&mut self, launch: &Launch<'p>, resident: u64) -> Vec<Band<'p>> {
        let cut = Cut::of(launch, resident);
        let waits = |rows| match &self.last {
            Some((before, first)) => cut.waits(rows, before).map(|place| first + place).collect(),
            None => Vec::new(),
        };
        let bands: Vec<_> = cut
            .bands
            .iter()
            .map(|rows| Band { launch: launch.band(rows), waits: waits(rows) })
            .collect();
        self.last = Some((cut, self.bands));
        self.bands += bands.len();
        bands
    }
}

/// A launch in bands.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cut {
    /// The kernel's place in its plan.
    kernel: usize,
    rows: Option<Rows>,
    /// The bands, by their rows; one where the launch is whole.
    bands: Vec<Range<u32>>,
}

impl Cut {
    /// A launch that does not fill the device stays whole.
    fn of(launch: &Launch<'_>, resident: u64) -> Self {
        let all = launch.rows.map_or(1, |rows| rows.count);
        let fills = u64::from(launch.grid[0]) > resident;
        let rows = launch.rows.filter(|_| fills);
        let count = rows.map_or(1, |rows| (rows.count / rows.reach.max(1)).clamp(1, MOST));
        let start = |band: u32| {
            u32::try_from(u64::from(all) * u64::from(band) / u64::from(count)).unwrap_or(all)
        };
        Self {
            kernel: launch.index,
            rows,
            bands: (0..count).map(|band| start(band)..start(band + 1)).collect(),
        }
    }

    /// The places of the bands of the launch before that a band waits for. Launches of different
    /// kernels have different rows, and so all bands wait for all.
    fn waits<'s>(
        &self,
        band: &Range<u32>,
        before: &'s Self,
    ) -> impl Iterator<Item = usize> + use<'s> {
        let alike = self.kernel == before.kernel && self.rows == before.rows;
        let near = self
            .rows
            .filter(|_| alike)
            .map(|rows| band.start.saturating_sub(rows.reach)..band.end.saturating_add(rows.reach));
        let bands = before.bands.iter().enumerate();
        bands
            .filter(move |(_, other)| {
                near.as_ref().is_none_or(|near| other.start < near.end && near.start < other.end)
            })
            .map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::Value;
    use crate::number::Number;
    use crate::plan::tests::banded;

    fn launch(plan: &crate::plan::Plan, index: usize, count: u32, reach: u32) -> Launch<'_> {
        let node = plan.launches().nth(index).unwrap();
        let arguments = node.arguments.iter().map(|_| Value::Number(Number::I32(0))).collect();
        Launch {
            kernel: &plan.kernels[index],
            index,
            node,
            grid: [3 * count, 1, 1],
            step: 0,
            arguments,
            rows: Some(Rows { count, reach }),
        }
    }

    #[test]
    fn bands_cover_all_rows_and_wait_for_their_neighbours() {
        let plan = banded();
        let launch = launch(&plan, 0, 41, 1);
        let cut = Cut::of(&launch, 100);
        assert_eq!(cut.bands.len(), 20);
        assert_eq!((cut.bands[0].clone(), cut.bands[19].clone()), (0..2, 38..41));
        assert!(cut.bands.windows(2).all(|pair| pair[0].end == pair[1].start));
        let waits = |band: usize| cut.waits(&cut.bands[band], &cut).collect::<Vec<_>>();
        assert_eq!((waits(0), waits(7), waits(19)), (vec![0, 1], vec![6, 7, 8], vec![18, 19]));
        let blocks: u32 = cut.bands.iter().map(|band| launch.band(band).grid[0]).sum();
        assert_eq!(blocks, 123);
        let mut arguments = launch.node.arguments.iter();
        let row = arguments.position(|argument| *argument == crate::plan::Argument::Row);
        assert_eq!(
            launch.band(&cut.bands[19]).arguments[row.unwrap()],
            Value::Number(Number::I32(38))
        );
    }

    #[test]
    fn launches_stay_whole_where_cutting_gains_nothing() {
        let plan = banded();
        let few = launch(&plan, 0, 41, 1);
        let whole = Cut::of(&few, 123);
        let band = |cut: &Cut, place: usize| (cut.bands[place].start, cut.bands[place].end);
        assert_eq!((whole.bands.len(), band(&whole, 0)), (1, (0, 41)));
        assert_eq!(few.band(&whole.bands[0]), few);
        let far = Cut::of(&launch(&plan, 0, 3, 4), 0);
        assert_eq!((far.bands.len(), band(&far, 0)), (1, (0, 3)));
        let pairs = Cut::of(&launch(&plan, 0, 6, 2), 0);
        assert_eq!((pairs.bands.len(), band(&pairs, 1)), (3, (2, 4)));
    }

    #[test]
    fn bands_that_share_cells_run_in_order() {
        let plan = banded();
        for (count, reach) in (1..=48).flat_map(|count| (0..=5).map(move |reach| (count, reach))) {
            let cut = Cut::of(&launch(&plan, 0, count, reach), 0);
            // For each band of the fourth launch the bands of the ones before that run before it.
            let mut before = vec![vec![false; cut.bands.len()]; cut.bands.len()];
            (0..cut.bands.len()).for_each(|place| before[place][place] = true);
            for _ in 0..3 {
                let step = |row: &Vec<bool>| {
                    let waits = (0..row.len())
                        .filter(|place| row[*place])
                        .flat_map(|place| cut.waits(&cut.bands[place], &cut).collect::<Vec<_>>());
                    let mut next = vec![false; row.len()];
                    waits.for_each(|place| next[place] = true);
                    next
                };
                before = before.iter().map(step).collect();
                for (band, before) in cut.bands.iter().zip(&before) {
                    for (other, runs_before) in cut.bands.iter().zip(before) {
                        let apart =
                            band.start.max(other.start).saturating_sub(band.end.min(other.end) - 1);
                        assert!(
                            *runs_before || apart > reach,
                            "{count} rows, reach {reach}: {other:?} and {band:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn a_chain_numbers_bands_from_launch_to_launch() {
        let (plan, mut chain) = (banded(), Chain::default());
        let launch = launch(&plan, 0, 6, 1);
        let mut waits =
            || chain.add(&launch, 0).into_iter().map(|band| band.waits).collect::<Vec<_>>();
        assert_eq!(waits(), vec![Vec::<usize>::new(); 6]);
        assert_eq!(waits()[1..3], [vec![0, 1, 2], vec![1, 2, 3]]);
        assert_eq!(waits()[1..3], [vec![6, 7, 8], vec![7, 8, 9]]);
        let last = chain.add(&launch, 100);
        assert_eq!(last, [Band { launch: launch.clone(), waits: (12..18).collect() }]);
    }

    #[test]
    fn bands_wait_for_all_of_another_kernel() {
        let plan = banded();
        let (one, other) =
            (Cut::of(&launch(&plan, 0, 9, 1), 0), Cut::of(&launch(&plan, 1, 8, 1), 0));
        assert_eq!(other.waits(&other.bands[3], &one).count(), 9);
        assert_eq!(one.waits(&one.bands[3], &other).count(), 8);
    }
}
