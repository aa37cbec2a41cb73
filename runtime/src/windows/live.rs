//! The cells that later launches and the results read, at some points of a run, and which buffers
//! need an array on the host for them.

use super::error::WindowError;
use super::survey::Survey;
use crate::bind::{Buffer, BufferId};
use crate::plan::Role;
use crate::ranks::Region;

/// What is needed between the passes of a run.
#[derive(Clone, Debug)]
pub struct Live {
    /// Between passes, from the start to the end of the run: the memory of each buffer of the plan.
    pub memory: Vec<Vec<BufferId>>,
    /// Between passes, for each memory: the cells whose values are needed.
    pub cells: Vec<Vec<Region>>,
    /// For each buffer of the plan the number of its array on the host; none where nothing of it is
    /// needed between passes.
    pub hosts: Vec<Option<usize>>,
    /// For each buffer without an array another one that holds its cells: those that no launch
    /// writes, and with which both begin alike.
    pub lender: Vec<Option<usize>>,
}

impl Live {
    /// Of a run whose passes end before some launches, the last one at the end.
    ///
    /// # Errors
    /// A fault of the bookkeeping.
    pub fn new(survey: &Survey<'_>, ends: &[usize], temps: bool) -> Result<Self, WindowError> {
        let points: Vec<usize> = std::iter::once(0).chain(ends.iter().copied()).collect();
        let memory = survey.memory(&points);
        let cells = needed(survey, &points, &memory, temps)?;
        let (hosts, lender) = hosts(survey, &memory, &cells);
        Ok(Self { memory, cells, hosts, lender })
    }

    /// For each memory whether it holds nothing that is needed before any of the first passes.
    pub fn scratch(&self, passes: usize) -> Vec<bool> {
        let count = self.memory.first().map_or(0, Vec::len);
        let points = || self.cells.iter().take(passes);
        let free =
            |memory: usize| points().all(|cells| cells.get(memory).is_some_and(Region::is_empty));
        (0..count).map(free).collect()
    }

    /// The buffers of the plan that are needed at a point, with their memory and cells.
    pub fn at(&self, point: usize) -> impl Iterator<Item = (usize, BufferId, &Region)> {
        let (memory, cells) = (self.memory.get(point), self.cells.get(point));
        let all = memory.into_iter().flatten().enumerate();
        all.filter_map(move |(place, memory)| Some((place, *memory, cells?.get(memory.0)?)))
            .filter(|(_, _, cells)| !cells.is_empty())
    }
}

/// For each point and memory the cells that are read from there on.
fn needed(
    survey: &Survey<'_>,
    points: &[usize],
    memory: &[Vec<BufferId>],
    temps: bool,
) -> Result<Vec<Vec<Region>>, WindowError> {
    let mut cells = vec![Region::default(); survey.forms.len()];
    let last = memory.last().map(Vec::as_slice).unwrap_or_default();
    for (field, parts) in survey.plan.fields.iter().zip(&survey.bound.values) {
        if !field.role.is_output() && (!temps || field.role != Role::Temp) {
            continue;
        }
        for held in parts {
            let Some(memory) = last.get(held.buffer) else { continue };
            if let Some(cells) = cells.get_mut(memory.0) {
                *cells = survey.form(*memory)?.whole().into();
            }
        }
    }
    let mut all = Vec::new();
    let mut end = survey.launches.len();
    for point in points.iter().rev() {
        for place in (*point..end).rev() {
            let (launch, kind) = survey.launch(place)?;
            for (place, buffer) in survey.cut(launch) {
                let writes = kind.all.writes.get(place).filter(|writes| !writes.is_empty());
                if let (Some(cells), Some(writes)) = (cells.get_mut(buffer.0), writes) {
                    *cells = cells.without(writes);
                }
            }
            for (place, buffer) in survey.cut(launch) {
                if let (Some(cells), Some(reads)) =
                    (cells.get_mut(buffer.0), kind.all.reads.get(place))
                {
                    cells.add(reads);
                }
            }
        }
        end = *point;
        all.push(cells.clone());
    }
    all.reverse();
    Ok(all)
}

/// The arrays of the host, and who lends cells to whom.
fn hosts(
    survey: &Survey<'_>,
    memory: &[Vec<BufferId>],
    cells: &[Vec<Region>],
) -> (Vec<Option<usize>>, Vec<Option<usize>>) {
    let count = survey.forms.len();
    let fixed = unwritten(survey);
    // Whether the cells that are needed of a buffer are never written.
    let mut lends = vec![true; count];
    let mut used = vec![false; count];
    for (memory, cells) in memory.iter().zip(cells) {
        for (place, memory) in memory.iter().enumerate() {
            let Some(cells) = cells.get(memory.0).filter(|cells| !cells.is_empty()) else {
                continue;
            };
            let is_fixed = fixed.get(place).is_some_and(|fixed| cells.without(fixed).is_empty());
            if let (Some(lends), Some(used)) = (lends.get_mut(place), used.get_mut(place)) {
                (*lends, *used) = (*lends && is_fixed, true);
            }
        }
    }
    let buffers = &survey.bound.buffers;
    let is_alike = |one: &Buffer, other: &Buffer| {
        let (name, constant) = (other.name.clone(), other.constant.clone());
        one.input.is_some() && Buffer { name, constant, ..one.clone() } == *other
    };
    let together = |one: usize, other: usize| {
        survey.groups.iter().any(|group| group.contains(&one) && group.contains(&other))
    };
    let has = |place: usize| used.get(place) == Some(&true) && lends.get(place) == Some(&false);
    let (mut hosts, mut lender) = (vec![None; count], vec![None; count]);
    let mut next = 0;
    for (place, buffer) in buffers.iter().enumerate() {
        if used.get(place) != Some(&true) {
            continue;
        }
        let from = (0..count).find(|other| {
            let alike = buffers.get(*other).is_some_and(|other| is_alike(buffer, other));
            !survey.is_whole(BufferId(place))
                && !has(place)
                && has(*other)
                && together(place, *other)
                && alike
        });
        if let (Some(host), Some(lender)) = (hosts.get_mut(place), lender.get_mut(place)) {
            *lender = from;
            if from.is_none() {
                *host = Some(next);
                next += 1;
            }
        }
    }
    (hosts, lender)
}

/// For each buffer the cells that no launch writes, in no memory that it may have.
fn unwritten(survey: &Survey<'_>) -> Vec<Region> {
    let mut written = vec![Region::default(); survey.forms.len()];
    for (launch, kind) in survey.launches.iter().zip(&survey.kind) {
        let Some(kind) = survey.kinds.get(*kind) else { continue };
        for (place, buffer) in survey.cut(launch) {
            if let (Some(written), Some(writes)) =
                (written.get_mut(buffer.0), kind.all.writes.get(place))
            {
                written.add(writes);
            }
        }
    }
    let mut fixed: Vec<Region> =
        survey.forms.iter().map(|form| Region::from(form.whole())).collect();
    for group in &survey.groups {
        for place in group {
            for other in group.iter().filter_map(|other| written.get(*other)) {
                if let Some(fixed) = fixed.get_mut(*place) {
                    *fixed = fixed.without(other);
                }
            }
        }
    }
    fixed
}
