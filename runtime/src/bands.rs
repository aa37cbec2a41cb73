//! Launches that overlap: each is cut into bands of its rows of blocks. A band waits only for those
//! bands of the launches before that it shares cells with. The blocks of one launch therefore fill
//! the device while the last ones of the launch before end.
//!
//! A run that looks at a condition sends launches behind a look before it knows the result. They
//! store nothing once they see that a condition held ([`Argument::Unless`]). A launch that would
//! overwrite the values of the look waits for the condition. Another one may begin before it, so
//! that the launches of two looks overlap too: what it stores is not read where the condition held.
//!
//! A row shares cells with rows no farther away than its reach ([`Rows`]). Bands in reach of a band
//! wrote the cells that it reads, and read the cells that it writes. It waits for them, and they
//! in turn waited for those in their reach. Any two bands of different launches that share a cell
//! therefore run in order.

use crate::bind::BufferId;
use crate::launch::{Launch, Rows};
use crate::plan::Argument;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Bands of a launch are at most so many. On an H200 programs with 6 ran at 0.99 to 1.04 of their
/// rate with 20 at 16,384^2 cells, and at 1.00 to 1.40 of it at 4,096^2.
const MOST: u32 = 6;

/// A band of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Band<'p> {
    /// The launch of its rows alone.
    pub launch: Launch<'p>,
    /// The numbers of the bands that must have ended before.
    pub waits: Vec<usize>,
}

/// Launches one after the other, in bands that are numbered from 0. A launch waits for those before
/// that it shares a buffer with, unless both only read it. For the condition by which it may do
/// nothing, [`Chain::look`] says what it waits for. A launch whose blocks wait for each other runs
/// alone.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Bands so far; a look is one.
    bands: usize,
    /// The launches and looks so far, with the number of the first band of each.
    placed: Vec<(Cut, usize)>,
    uses: BTreeMap<BufferId, Uses>,
    /// The last launch whose blocks wait for each other. It runs alone.
    fence: Option<usize>,
    /// The writers of the condition at the last two looks, the older one first.
    conditions: [Option<usize>; 2],
    /// The memory that held values at the last look.
    values: Vec<BufferId>,
}

/// The launches that use a buffer, by their places in the chain.
#[derive(Clone, Debug, Default)]
struct Uses {
    writer: Option<usize>,
    /// Those that read it since.
    readers: Vec<usize>,
}

impl Uses {
    /// The launches that a reader or a writer waits for.
    fn before(&self, writes: bool) -> &[usize] {
        // Readers waited for the writer before them.
        if writes && !self.readers.is_empty() { &self.readers } else { self.writer.as_slice() }
    }
}

impl Chain {
    /// Adds a launch, for a device that runs `resident` of its blocks at a time; gives its bands,
    /// one where it stays whole.
    pub fn add<'p>(&mut self, launch: &Launch<'p>, resident: u64) -> Vec<Band<'p>> {
        let cut = Cut::of(launch, resident);
        let earlier = self.earlier(launch);
        let bands: Vec<_> = cut
            .bands
            .iter()
            .map(|rows| Band { launch: launch.band(rows), waits: self.waits(&cut, rows, &earlier) })
            .collect();
        let place = self.place(cut);
        for (argument, buffer) in used(launch) {
            let uses = self.uses.entry(buffer).or_default();
            match argument.written() {
                Some(_) => *uses = Uses { writer: Some(place), readers: Vec::new() },
                None => uses.readers.push(place),
            }
        }
        if launch.node.cooperative {
            self.fence = Some(place);
        }
        bands
    }

    /// Adds a look at the condition in a buffer; `values` are the memories that hold values of the
    /// run then. Gives the bands that it waits for. A launch behind it that stores to this memory
    /// waits for the condition. Others wait for the condition of the look before.
    pub fn look(&mut self, buffer: BufferId, values: Vec<BufferId>) -> Vec<usize> {
        let uses = self.uses.entry(buffer).or_default();
        let writer = uses.writer;
        uses.readers.push(self.placed.len());
        let [_, last] = self.conditions;
        self.conditions = [last, writer];
        self.values = values;
        let whole = Range { start: 0, end: 1 };
        let cut = Cut { kernel: usize::MAX, rows: None, bands: vec![whole.clone()] };
        let waits = self.waits(&cut, &whole, &writer.into_iter().collect());
        self.place(cut);
        waits
    }

    fn place(&mut self, cut: Cut) -> usize {
        let first = self.bands;
        self.bands += cut.bands.len();
        self.placed.push((cut, first));
        self.placed.len() - 1
    }

    /// The launches that a launch waits for.
    fn earlier(&self, launch: &Launch<'_>) -> BTreeSet<usize> {
        if launch.node.cooperative {
            return (self.fence.unwrap_or(0)..self.placed.len()).collect();
        }
        let mut stored = used(launch).filter(|(argument, _)| argument.written().is_some());
        let ends_values = stored.any(|(_, buffer)| self.values.contains(&buffer));
        let mut earlier: BTreeSet<usize> = self.fence.into_iter().collect();
        for (argument, buffer) in used(launch) {
            if matches!(argument, Argument::Unless(_)) {
                let [before, last] = self.conditions;
                earlier.extend(if ends_values { last } else { before });
            } else if let Some(uses) = self.uses.get(&buffer) {
                earlier.extend(uses.before(argument.written().is_some()));
            }
        }
        earlier
    }

    /// The bands that a band of a launch waits for.
    fn waits(&self, cut: &Cut, rows: &Range<u32>, earlier: &BTreeSet<usize>) -> Vec<usize> {
        let earlier = earlier.iter().filter_map(|place| self.placed.get(*place));
        let waits = earlier
            .flat_map(|(before, first)| cut.waits(rows, before).map(move |place| first + place));
        waits.collect()
    }
}

/// The arguments of a launch that are buffers.
fn used<'l>(launch: &'l Launch<'_>) -> impl Iterator<Item = (&'l Argument, BufferId)> {
    launch.buffers().filter_map(|(place, buffer)| Some((launch.node.arguments.get(place)?, buffer)))
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
        let (first, all) = launch.rows.map_or((0, 1), |rows| (rows.first, rows.count));
        let fills = u64::from(launch.grid[0]) > resident;
        let rows = launch.rows.filter(|_| fills);
        let count = rows.map_or(1, |rows| (rows.count / rows.reach.max(1)).clamp(1, MOST));
        let start = |band: u32| {
            first
                + u32::try_from(u64::from(all) * u64::from(band) / u64::from(count)).unwrap_or(all)
        };
        Self {
            kernel: launch.index,
            rows,
            bands: (0..count).map(|band| start(band)..start(band + 1)).collect(),
        }
    }

    /// The places of the bands of the launch before that a band waits for. Launches of different
    /// kernels have different rows, and so all bands wait for all. Where launches have some of the
    /// kernel's rows, each has those of the next one.
    fn waits<'s>(
        &self,
        band: &Range<u32>,
        before: &'s Self,
    ) -> impl Iterator<Item = usize> + use<'s> {
        let of = |cut: &Self| cut.rows.map(|rows| (rows.all, rows.reach));
        let alike = self.kernel == before.kernel && of(self) == of(before);
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
        let value = |(place, argument): (usize, &Argument)| match argument.buffer() {
            Some(_) => Value::Buffer(BufferId(place)),
            None => Value::Number(Number::I32(0)),
        };
        let arguments = node.arguments.iter().enumerate().map(value).collect();
        Launch {
            kernel: &plan.kernels[index],
            index,
            node,
            grid: [3 * count, 1, 1],
            step: 0,
            apart: false,
            arguments,
            rows: Some(Rows { all: count, first: 0, count, reach }),
            part: None,
        }
    }

    #[test]
    fn bands_cover_all_rows_and_wait_for_their_neighbours() {
        let plan = banded();
        let launch = launch(&plan, 0, 41, 1);
        let cut = Cut::of(&launch, 100);
        assert_eq!(cut.bands.len(), 6);
        assert_eq!((cut.bands[0].clone(), cut.bands[5].clone()), (0..6, 34..41));
        assert!(cut.bands.windows(2).all(|pair| pair[0].end == pair[1].start));
        let waits = |band: usize| cut.waits(&cut.bands[band], &cut).collect::<Vec<_>>();
        assert_eq!((waits(0), waits(3), waits(5)), (vec![0, 1], vec![2, 3, 4], vec![4, 5]));
        let blocks: u32 = cut.bands.iter().map(|band| launch.band(band).grid[0]).sum();
        assert_eq!(blocks, 123);
        let mut arguments = launch.node.arguments.iter();
        let row = arguments.position(|argument| *argument == Argument::Row);
        assert_eq!(
            launch.band(&cut.bands[5]).arguments[row.unwrap()],
            Value::Number(Number::I32(34))
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

    /// Launches of the first kernel, each from the last one's buffer to the other, with a look at
    /// buffer 9 between them. A kernel writes it behind each launch.
    #[test]
    fn launches_behind_a_look_wait_where_they_end_its_values() {
        let (mut plan, mut chain) = (banded(), Chain::default());
        plan.kernels.push(plan.kernels[0].clone());
        let mut step = plan.launches().next().unwrap().clone();
        (step.bands, step.rotate) = (None, Vec::new());
        step.arguments = vec![
            Argument::Read("A".to_owned()),
            Argument::Write("B".to_owned()),
            Argument::Unless("met".to_owned()),
        ];
        let mut condition = step.clone();
        condition.arguments =
            vec![Argument::Read("B".to_owned()), Argument::ReadWrite("met".to_owned())];
        let met = BufferId(9);
        let mut add = |node: &crate::plan::Launch, buffers: &[usize]| {
            let arguments = buffers.iter().map(|id| Value::Buffer(BufferId(*id))).collect();
            let launch = Launch {
                kernel: &plan.kernels[0],
                index: 0,
                node,
                grid: [1, 1, 1],
                step: 0,
                apart: false,
                arguments,
                rows: None,
                part: None,
            };
            let waits = chain.add(&launch, 100).remove(0).waits;
            let look = node.arguments.len() == 2;
            (waits, look.then(|| chain.look(met, vec![BufferId(buffers[0])])))
        };
        let first = add(&step, &[0, 1, 9]);
        assert_eq!(first, (vec![], None));
        assert_eq!(add(&condition, &[1, 9]), (vec![0], Some(vec![1])));
        // The next launch stores to memory without values. It runs beside the condition.
        assert_eq!(add(&step, &[1, 0, 9]), (vec![0], None));
        // The one behind it waits for the condition of the first look.
        assert_eq!(add(&step, &[0, 1, 9]), (vec![1, 3], None));
        // The condition waits for all that look at it, and for the look.
        assert_eq!(add(&condition, &[1, 9]), (vec![2, 3, 4], Some(vec![5])));
        // A launch of the third turn waits for the condition of the first.
        assert_eq!(add(&step, &[1, 0, 9]), (vec![1, 4], None));
    }

    #[test]
    fn launches_whose_blocks_wait_run_alone() {
        let (plan, mut chain) = (banded(), Chain::default());
        let launch = launch(&plan, 0, 6, 1);
        let mut node = launch.node.clone();
        node.cooperative = true;
        chain.add(&launch, 0);
        let alone = Launch { node: &node, rows: None, ..launch.clone() };
        assert_eq!(chain.add(&alone, 0)[0].waits, (0..6).collect::<Vec<_>>());
        assert!(chain.add(&launch, 0).iter().all(|band| band.waits == [6]));
    }

    #[test]
    fn bands_wait_for_all_of_another_kernel() {
        let plan = banded();
        let (one, other) =
            (Cut::of(&launch(&plan, 0, 5, 1), 0), Cut::of(&launch(&plan, 1, 4, 1), 0));
        assert_eq!(other.waits(&other.bands[3], &one).count(), 5);
        assert_eq!(one.waits(&one.bands[3], &other).count(), 4);
    }
}
