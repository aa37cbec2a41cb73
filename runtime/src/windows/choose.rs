//! How many launches a pass has, and how many rows a window: those with the shortest time by a
//! model, of windows that fit.
//!
//! Windows begin at a tile, or in the middle of one: then a halo of half a tile costs no more than
//! the tiles that it lies in. A window's halo ends within its neighbour, whose rows alone are still
//! as they were before the pass.
//!
//!
//! Of two passes of which one is the end of the other, windows are the same there. The longest pass
//! is followed back once for all shorter ones, until its windows are too large.

use super::Shape;
use super::error::WindowError;
use super::limit::DeviceMemory;
use super::live::Live;
use super::measure::{Needed, device_bytes, grow, is_within, lent};
use super::model::{Rates, computes, copies};
use super::survey::Survey;
use super::window::{Backwards, Cut, Loans, Window};
use crate::plan::Parts;
use crate::ranks::Region;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// Steps after which buffers have the memory of the start, at most.
const MOST_TURNS: usize = 4;
/// Launches of a pass after which it is looked whether a longer one may be better.
const LOOK: usize = 2;
/// The part of the shortest time so far that a longer pass must promise.
const SHORTER: f64 = 0.99;

/// Passes and windows of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cutting {
    /// The launch behind each pass.
    pub ends: Vec<usize>,
    /// The windows of each pass, by their rows.
    pub cuts: Vec<Cut>,
}

impl Cutting {
    /// How many there are.
    pub fn shape(&self) -> Shape {
        Shape { passes: self.ends.len(), windows: self.cuts.len() }
    }

    /// The launches of a pass.
    pub fn launches(&self, pass: usize) -> Range<usize> {
        let end = |pass: Option<usize>| pass.and_then(|pass| self.ends.get(pass)).copied();
        end(pass.checked_sub(1)).unwrap_or(0)..end(Some(pass)).unwrap_or(0)
    }

    /// A window of a pass, and what its buffers lend each other.
    ///
    /// # Errors
    /// A launch whose tiles are unknown.
    pub fn window(
        &self,
        survey: &Survey<'_>,
        live: &Live,
        pass: usize,
        cut: &Cut,
    ) -> Result<(Window, Loans), WindowError> {
        let missing = || WindowError::Fault("a window is not part of the run".to_owned());
        let after = live.cells.get(pass + 1).ok_or_else(missing)?;
        let window = Window::new(survey, self.launches(pass), after, cut)?;
        Ok(lent(window, live, pass))
    }
}

/// A way to cut a run, as far as its first pass shows.
#[derive(Clone, Copy, Debug)]
struct Choice {
    /// Seconds of the run.
    seconds: f64,
    /// Bytes of the first pass.
    bytes: u64,
    /// Launches of a pass.
    launches: usize,
    /// Rows of tiles of a window, and whether it begins in the middle of one.
    tiles: usize,
    shift: bool,
}

/// The passes and windows of a run in so much memory, with what it needs.
///
/// # Errors
/// When no window fits.
pub fn cutting(
    survey: &Survey<'_>,
    memory: DeviceMemory,
    temps: bool,
) -> Result<(Cutting, Needed), WindowError> {
    let count = survey.launches.len();
    if count == 0 {
        let cutting = Cutting { ends: Vec::new(), cuts: Vec::new() };
        let live = Rc::new(Live::new(survey, &[], temps)?);
        let none = || WindowError::Fault("a run without launches has windows".to_owned());
        let needed = Needed::of(survey, &cutting, live, u64::MAX)?.ok_or_else(none)?;
        return Ok((cutting, needed.0));
    }
    let mut choices = choices(survey, memory, temps)?;
    let mut lives = BTreeMap::new();
    let mut measured = |choice: &Choice, most: u64| {
        let grid = Grid::of(survey, choice.launches - 1)?;
        let cuts = grid.cuts(choice.tiles, choice.shift);
        let cutting = Cutting { ends: ends(count, choice.launches), cuts };
        let live = match lives.get(&choice.launches) {
            Some(live) => Rc::clone(live),
            None => Rc::new(Live::new(survey, &cutting.ends, temps)?),
        };
        lives.insert(choice.launches, Rc::clone(&live));
        let needed = Needed::of(survey, &cutting, live, most)?;
        Ok::<_, WindowError>(needed.map(|(needed, bytes)| (cutting, needed, bytes)))
    };
    choices.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    for choice in choices.iter().filter(|choice| choice.bytes <= memory.0) {
        if let Some((cutting, needed, _)) = measured(choice, memory.0)? {
            return Ok((cutting, needed));
        }
    }
    // The least that all passes take is no less than that of the first one.
    let mut least = u64::MAX;
    choices.sort_by_key(|choice| choice.bytes);
    for choice in &choices {
        if choice.bytes >= least {
            break;
        }
        if let Some((.., bytes)) = measured(choice, least)? {
            least = bytes;
        }
    }
    let program = survey.plan.program.clone();
    Err(WindowError::Memory { program, limit: memory, needed: least })
}

/// The choices of a run by their first passes.
fn choices(
    survey: &Survey<'_>,
    memory: DeviceMemory,
    temps: bool,
) -> Result<Vec<Choice>, WindowError> {
    let (mut found, mut best) = (Vec::new(), f64::INFINITY);
    let lengths = lengths(survey);
    let live = Live::new(survey, &lengths, temps)?;
    for (turn, lengths) in alike(survey, &live, &lengths).into_iter().enumerate() {
        let Some((_, longest)) = lengths.last() else { continue };
        let grid = Grid::of(survey, longest - 1)?;
        for (tiles, shift) in grid.choices() {
            let cuts = grid.cuts(tiles, shift);
            let mut probe = Probe::new(survey, &live, &lengths, &cuts)?;
            for (place, length) in lengths.iter().enumerate() {
                // The shortest pass needs the least memory: it is tried always.
                let limits = match turn + place {
                    0 => (f64::INFINITY, DeviceMemory(u64::MAX)),
                    _ => (best * SHORTER, memory),
                };
                let Some((seconds, bytes)) = probe.pass(*length, limits)? else { break };
                found.push(Choice { seconds, bytes, launches: length.1, tiles, shift });
                if bytes <= memory.0 {
                    best = best.min(seconds);
                }
            }
        }
    }
    Ok(found)
}

/// Lengths of passes with their places in the list, together with those of which they are the end.
fn alike(survey: &Survey<'_>, live: &Live, lengths: &[usize]) -> Vec<Vec<(usize, usize)>> {
    let launch = |place: usize| {
        let launch = survey.launches.get(place);
        (survey.kind.get(place), launch.map(|launch| launch.buffers().collect::<Vec<_>>()))
    };
    let is_end = |(place, length): (usize, usize), (other, longest): (usize, usize)| {
        live.cells.get(place + 1) == live.cells.get(other + 1)
            && (0..length).all(|at| launch(at) == launch(longest - length + at))
    };
    let mut all: Vec<Vec<(usize, usize)>> = Vec::new();
    for one in lengths.iter().copied().enumerate().rev() {
        let found =
            all.iter_mut().find(|group| group.first().is_some_and(|other| is_end(one, *other)));
        match found {
            Some(group) => group.push(one),
            None => all.push(vec![one]),
        }
    }
    all.iter_mut().for_each(|group| group.reverse());
    all.reverse();
    all
}

/// For each memory whether it holds nothing before the first pass, of some length, and before the
/// second one, if there is one.
fn live_scratch(live: &Live, place: usize, passes: usize) -> Vec<bool> {
    let is_empty = |point: usize, memory: usize| {
        let cells = live.cells.get(point).and_then(|cells| cells.get(memory));
        cells.is_some_and(Region::is_empty)
    };
    let count = live.memory.first().map_or(0, Vec::len);
    let is_free = |memory| is_empty(0, memory) && (passes == 1 || is_empty(place + 1, memory));
    (0..count).map(is_free).collect()
}

/// Launches of a pass that are tried: those of whole steps, up to all of them. Behind them each
/// buffer has the memory that it had before, if that is possible.
fn lengths(survey: &Survey<'_>) -> Vec<usize> {
    let count = survey.launches.len();
    let step = survey.launches.iter().position(|launch| launch.node.steps > 0);
    let step = step.map_or(1, |place| place + 1);
    let turns: Vec<usize> = (0..=MOST_TURNS).map(|times| (times * step).min(count)).collect();
    let memory = survey.memory(&turns);
    let same = (1..=MOST_TURNS).find(|times| memory.get(*times) == memory.first());
    let step = step * same.unwrap_or(1);
    let mut found = Vec::new();
    let mut times = 1;
    while times * step < count {
        found.push(times * step);
        times = (times * 5 / 4).max(times + 1);
    }
    found.push(count);
    // Passes that are all but equally long.
    let even = |length: &usize| {
        let passes = count.div_ceil(*length);
        (count.div_ceil(passes)).next_multiple_of(step).min(count)
    };
    let mut found: Vec<usize> = found.iter().map(even).collect();
    found.dedup();
    found
}

/// The launches behind passes of some length.
fn ends(count: usize, launches: usize) -> Vec<usize> {
    let passes = count.div_ceil(launches.max(1));
    (1..=passes).map(|pass| (pass * launches).min(count)).collect()
}

/// Where windows may begin without computing rows of tiles twice.
struct Grid {
    rows: usize,
    /// The first row of the second row of tiles.
    second: usize,
    /// Rows of a row of tiles.
    tile: usize,
}

impl Grid {
    /// By the tiles of a launch.
    fn of(survey: &Survey<'_>, place: usize) -> Result<Self, WindowError> {
        let (launch, kind) = survey.launch(place)?;
        let rows = survey
            .cut(launch)
            .into_iter()
            .filter_map(|(_, buffer)| survey.forms.get(buffer.0).map(|form| form.rows));
        let rows = rows.max().unwrap_or(1);
        let cut = launch.node.cut.as_deref();
        let tile = match cut.map(|cut| &cut.parts) {
            Some(Parts::Tiles(tiles)) => tiles.first().map_or(1, |one| one.cells as usize),
            _ => 1,
        };
        let mut second = tile;
        for (place, buffer) in survey.cut(launch) {
            if kind.sharing.tiles.first().is_some_and(|count| *count > 1) {
                let own = kind.sharing.own_rows(place, survey.form(buffer)?, 1)?;
                if tile > 1 && !own.is_empty() {
                    second = own.start;
                }
            }
        }
        Ok(Self { rows, second: second.clamp(1, rows.max(1)), tile: tile.max(1) })
    }

    /// Windows that are tried: their rows of tiles, from all down to one, and whether they begin in
    /// the middle of a tile.
    fn choices(&self) -> Vec<(usize, bool)> {
        let mut found = Vec::new();
        let mut tiles = self.rows.div_ceil(self.tile).max(1);
        while tiles > 0 {
            found.push((tiles, false));
            if self.tile > 1 {
                found.push((tiles, true));
            }
            tiles = if tiles > 16 { tiles * 7 / 8 } else { tiles - 1 };
        }
        found
    }

    /// Windows of some rows of tiles.
    fn cuts(&self, tiles: usize, shift: bool) -> Vec<Cut> {
        let mut cuts = Vec::new();
        let mut start = 0;
        let shift = if shift { self.tile / 2 } else { 0 };
        while start < self.rows.max(1) {
            let next = match start {
                0 => self.second + (tiles - 1) * self.tile + shift,
                start => start + tiles * self.tile,
            };
            let last = next >= self.rows;
            let end = if last { self.rows } else { next };
            cuts.push(Cut { rows: start..end, last });
            start = end.max(start + 1);
        }
        cuts
    }
}

/// The windows of a pass, as the model sees them.
struct Probe<'s, 'p> {
    survey: &'s Survey<'p>,
    live: &'s Live,
    rates: Rates,
    /// Some windows, each with its place, the number of those that it stands for, and the seconds
    /// of its launches.
    windows: Vec<(Backwards, usize, usize, f64)>,
    /// The launches of the longest pass, and those that were followed back.
    longest: usize,
    done: usize,
    cuts: &'s [Cut],
}

impl<'s, 'p> Probe<'s, 'p> {
    /// Of the windows of the first pass: the first one, one in the middle for all but two, and the
    /// last one.
    fn new(
        survey: &'s Survey<'p>,
        live: &'s Live,
        lengths: &[(usize, usize)],
        cuts: &'s [Cut],
    ) -> Result<Self, WindowError> {
        let none = || WindowError::Fault("a run without windows".to_owned());
        let (place, longest) = *lengths.last().ok_or_else(none)?;
        let after = live.cells.get(place + 1).ok_or_else(none)?;
        let last = cuts.len().saturating_sub(1);
        let mut windows = Vec::new();
        for (place, count) in
            [(0, 1), (cuts.len() / 2, last.saturating_sub(1)), (last, usize::from(last > 0))]
        {
            if count > 0 {
                let cut = cuts.get(place).ok_or_else(none)?;
                windows.push((Backwards::new(survey, after, cut), place, count, 0.0));
            }
        }
        let rates = Rates::of(survey);
        Ok(Self { survey, live, rates, windows, longest, done: 0, cuts })
    }

    /// Seconds of all passes and bytes of the first one if they have so many launches, no fewer
    /// than before. None where halos reach beyond the neighbours, where the run takes at least
    /// `most` seconds, or where it did not fit before: longer passes are no better.
    fn pass(
        &mut self,
        (place, launches): (usize, usize),
        (most, memory): (f64, DeviceMemory),
    ) -> Result<Option<(f64, u64)>, WindowError> {
        while self.done < launches {
            if self.done > 0 && self.done.is_multiple_of(LOOK) && !self.may_fit(most, memory) {
                return Ok(None);
            }
            self.done += 1;
            for (window, _, _, seconds) in &mut self.windows {
                if let Some(part) = window.launch(self.survey, self.longest - self.done)? {
                    *seconds += computes(self.survey, self.rates, &part);
                }
            }
        }
        let Self { survey, live, rates, cuts, .. } = *self;
        let mut rows = vec![0; survey.forms.len()];
        let (mut sum, mut ends) = (0.0, 0_f64);
        for (window, at, count, seconds) in &self.windows {
            let (window, _) = lent(window.so_far.clone(), live, 0);
            if !is_within(survey, &window, cuts, *at) {
                return Ok(None);
            }
            grow(&mut rows, &window);
            let copies = copies(survey, rates, &window);
            sum += seconds.max(copies) * *count as f64;
            // The first window comes before anything computes, and the last one leaves behind it.
            ends = ends.max(copies);
        }
        let passes = survey.launches.len().div_ceil(launches);
        let scratch = live_scratch(live, place, passes);
        let bytes = device_bytes(survey, &mut rows, &scratch, cuts.len());
        Ok(Some((sum * passes as f64 + 2.0 * ends, bytes)))
    }

    /// Whether a pass that goes on before the launches so far may fit, and may take less than so
    /// many seconds. Launches before take no less time than these: their halos are larger.
    fn may_fit(&self, most: f64, memory: DeviceMemory) -> bool {
        let Self { survey, cuts, .. } = *self;
        let mut rows = vec![0; survey.forms.len()];
        let (mut sum, mut ends) = (0.0, 0_f64);
        for (window, at, count, seconds) in &self.windows {
            if !is_within(survey, &window.so_far, cuts, *at) {
                return false;
            }
            grow(&mut rows, &window.so_far);
            sum += seconds * *count as f64;
            ends = ends.max(copies(survey, self.rates, &window.so_far));
        }
        let least = device_bytes(survey, &mut rows, &vec![true; survey.forms.len()], cuts.len());
        let passes = survey.launches.len() as f64 / self.done as f64;
        least <= memory.0 && sum * passes + 2.0 * ends < most
    }
}
