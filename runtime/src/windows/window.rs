//! What a window computes in a pass, which cells it needs before, and which rows it holds.
//!
//! It follows from the last launch back to the first one: a launch has to compute the cells that
//! are needed behind it, and then needs the cells that these read. It computes whole rows of tiles.
//! What they have beyond the needed cells has any value.

use super::error::WindowError;
use super::survey::{Kind, Survey};
use crate::bind::BufferId;
use crate::launch::Launch;
use crate::ranks::{Blocks, Form, Region, Work, key};
use std::collections::BTreeMap;
use std::ops::Range;

/// Cells that memory lends other memory in a window: the one that lends, and the one that takes.
pub type Loans = Vec<(BufferId, BufferId, Region)>;

/// Rows of tiles, and the rows of cells that are needed of them.
type Tiles = (Range<u32>, Range<i64>);

/// What a window does in a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The launch, by its place in the run.
    pub place: usize,
    /// The blocks, and the cells whose values matter.
    pub work: Work,
    /// For each argument the cells that are written, with those whose values do not matter.
    pub spoils: Vec<Region>,
}

/// A window of a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// The launches that it takes part in.
    pub works: Vec<Part>,
    /// For each memory the cells that it needs before.
    pub needs: Vec<Region>,
    /// For each memory the rows that it uses.
    pub holds: Vec<Range<usize>>,
    /// For each memory its own cells behind the pass, those that are needed.
    pub gives: Vec<Region>,
}

/// The rows of a window, along the slowest dimension of the grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The rows.
    pub rows: Range<usize>,
    /// Whether no window follows: it has the last rows of larger fields too.
    pub last: bool,
}

impl Cut {
    /// The rows of a buffer.
    pub fn of(&self, form: Form) -> Range<usize> {
        let end = if self.last { form.rows } else { self.rows.end.min(form.rows) };
        self.rows.start.min(end)..end
    }
}

impl Window {
    /// The window of some rows in a pass of some launches, behind which `after` is needed of each
    /// memory.
    ///
    /// # Errors
    /// A launch whose tiles are unknown.
    pub fn new(
        survey: &Survey<'_>,
        pass: Range<usize>,
        after: &[Region],
        cut: &Cut,
    ) -> Result<Self, WindowError> {
        let mut window = Backwards::new(survey, after, cut);
        let mut works = Vec::new();
        for place in pass.rev() {
            works.extend(window.launch(survey, place)?);
        }
        works.reverse();
        Ok(Self { works, ..window.so_far })
    }

    /// The rows of tiles that compute what is needed behind a launch, and the rows that are, in the
    /// coordinates of the program; none where nothing is.
    fn tiles(
        &self,
        survey: &Survey<'_>,
        launch: &Launch<'_>,
        kind: &Kind<'_>,
    ) -> Result<Option<Tiles>, WindowError> {
        let mut found: Option<Tiles> = None;
        for (place, buffer) in survey.cut(launch) {
            let (Some(needed), Some(writes), Some(Some(form))) =
                (self.needs.get(buffer.0), kind.all.writes.get(place), kind.forms.get(place))
            else {
                continue;
            };
            let rows = needed.common(writes).rows();
            if rows.is_empty() {
                continue;
            }
            let count = kind.sharing.tiles.first().copied().unwrap_or(0);
            let own = |tile: u32| kind.sharing.own_rows(place, *form, tile);
            let start = first(count, |tile| Ok(own(tile)?.end > rows.start))?;
            let end = first(count, |tile| Ok(own(tile)?.start >= rows.end))?;
            let rows = kind.sharing.part(place, &rows)?;
            let (tiles, part) = found.get_or_insert((start..end, rows.clone()));
            *tiles = tiles.start.min(start)..tiles.end.max(end);
            *part = part.start.min(rows.start)..part.end.max(rows.end);
        }
        Ok(found.filter(|(tiles, _)| !tiles.is_empty()))
    }

    /// Notes what a launch uses: what it writes is needed no more before it, what it reads is.
    fn add(&mut self, buffers: Vec<(usize, BufferId)>, work: &Work) {
        for (place, buffer) in &buffers {
            if let (Some(needs), Some(writes)) =
                (self.needs.get_mut(buffer.0), work.writes.get(*place))
            {
                *needs = needs.without(writes);
            }
        }
        for (place, buffer) in &buffers {
            if let (Some(needs), Some(reads)) =
                (self.needs.get_mut(buffer.0), work.reads.get(*place))
            {
                needs.add(reads);
            }
        }
    }

    /// Notes the rows that a launch uses.
    fn hold(&mut self, buffers: Vec<(usize, BufferId)>, work: &Work) {
        for (place, buffer) in buffers {
            let used = [work.loads.get(place), work.writes.get(place), work.reads.get(place)];
            let Some(holds) = self.holds.get_mut(buffer.0) else { continue };
            for rows in used.into_iter().flatten().map(Region::rows) {
                *holds = joined(holds, &rows);
            }
        }
    }

    /// The cells that it needs of a memory are needed of another one in its place.
    pub fn lend(&mut self, from: BufferId, to: BufferId) -> Region {
        let cells = self.needs.get_mut(to.0).map(std::mem::take).unwrap_or_default();
        if let Some(needs) = self.needs.get_mut(from.0) {
            needs.add(&cells);
        }
        if let Some(holds) = self.holds.get_mut(from.0) {
            *holds = joined(holds, &cells.rows());
        }
        cells
    }
}

/// A window that is followed from the end of a pass to its start, launch by launch.
pub struct Backwards {
    /// What is known of it, but for the works of its launches.
    pub so_far: Window,
    /// Tiles of a kernel's launch behind: those before have them too, so that each launch waits
    /// for the one before alone.
    tiles: BTreeMap<usize, Range<u32>>,
}

impl Backwards {
    /// The window of some rows at the end of a pass, behind which `after` is needed of each memory.
    pub fn new(survey: &Survey<'_>, after: &[Region], cut: &Cut) -> Self {
        let mut gives = Vec::new();
        for (form, cells) in survey.forms.iter().zip(after) {
            let whole = form.whole();
            let own = crate::ranks::Area { rows: cut.of(*form), ..whole };
            // Memory that lies on the device whole is none of the window's.
            let is_whole = survey.is_whole(BufferId(gives.len()));
            gives.push(if is_whole { Region::default() } else { cells.common(&own.into()) });
        }
        let (needs, holds) = (gives.clone(), gives.iter().map(Region::rows).collect());
        let so_far = Window { works: Vec::new(), needs, holds, gives };
        Self { so_far, tiles: BTreeMap::new() }
    }

    /// Takes the launch before, by its place in the run; none where the window has no part in it.
    ///
    /// # Errors
    /// A launch whose tiles are unknown.
    pub fn launch(
        &mut self,
        survey: &Survey<'_>,
        place: usize,
    ) -> Result<Option<Part>, WindowError> {
        let window = &mut self.so_far;
        let (launch, kind) = survey.launch(place)?;
        let Some((tiles, part)) = window.tiles(survey, launch, kind)? else { return Ok(None) };
        let tiles = match self.tiles.get(&key(launch.node)) {
            Some(other) => tiles.start.min(other.start)..tiles.end.max(other.end),
            None => tiles,
        };
        self.tiles.insert(key(launch.node), tiles.clone());
        let work = kind.sharing.work(&kind.forms, &kind.sharing.rows(tiles))?;
        window.hold(survey.cut(launch), &work);
        let spoils = work.writes.clone();
        let work = match survey.is_exact() {
            true => work,
            false => kind.sharing.narrowed(work, &kind.forms, &part)?,
        };
        window.add(survey.cut(launch), &work);
        Ok(Some(Part { place, work, spoils }))
    }
}

/// Both, and what lies between them.
pub fn joined(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    match (one.is_empty(), other.is_empty()) {
        (true, _) => other.clone(),
        (_, true) => one.clone(),
        _ => one.start.min(other.start)..one.end.max(other.end),
    }
}

/// The first of some numbers for which something holds; it holds for all behind it.
fn first(count: u32, holds: impl Fn(u32) -> Result<bool, WindowError>) -> Result<u32, WindowError> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle)? { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

/// The part of a launch with some blocks. Rows of one that may be cut into bands may be cut again.
pub fn part_of<'p>(launch: &Launch<'p>, blocks: &Blocks) -> Launch<'p> {
    match blocks {
        Blocks::Band { own, .. } if launch.rows.is_some() => launch.some_rows(own),
        _ => blocks.part_of(launch),
    }
}
