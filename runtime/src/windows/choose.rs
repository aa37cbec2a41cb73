//! How many launches a pass has, and how many rows a window: those with the shortest time by a
//! model, of windows that fit.
//!
//! Windows begin at a tile, or in the middle of one: then a halo of half a tile costs no more than
//! the tiles that it lies in. A window's halo ends within its neighbour, whose rows alone are still
//! as they were before the pass.
//!
//! A window of `n` rows of tiles takes the longer of two times in a pass. Its launches take, for
//! each cell, the time to move it between chip and device memory once a launch, and the time to
//! compute it once a step. Its copies take their bytes over the rate of the connection, each way.
//! More launches a pass need fewer copies a step, and more rows of halo, which are computed twice.

use super::Shape;
use super::error::WindowError;
use super::limit::DeviceMemory;
use super::live::Live;
use super::survey::Survey;
use super::window::{Cut, Part, Window};
use crate::bind::BufferId;
use crate::device::{device_named, device_of};
use crate::plan::Parts;
use crate::ranks::{Region, groups};

/// Windows that lie on the device at a time: one computes, while one leaves and one comes.
pub const SIDES: usize = 2;
/// Bytes by which a window may begin later in its memory, so that rows keep their alignment.
pub const ALIGNMENT: usize = 256;
/// Multiply-adds a cell and step. By their rates on an H200 kernels of many steps a launch took,
/// beside moving the cells, as long as 4 (star2d1r), 8 (box2d1r) and 14 (star3d1r) of them, and
/// star2d1r in windows as long as 3.5. Few are better than many: a pass that is too short waits for
/// copies, and one that is too long computes some more rows twice.
const WORK: f64 = 3.5;
/// The part of a connection's rate that copies have which go both ways at a time: on an H200 48 of
/// 64 GB/s.
const BOTH_WAYS: f64 = 0.75;
/// Steps after which buffers have the memory of the start, at most.
const MOST_TURNS: usize = 4;
/// Rates of a device that is not described: of its memory, its connection, and multiply-adds.
const USUAL: (f64, f64, f64) = (100e9, 10e9, 100e9);

/// Passes and windows of a run.
#[derive(Clone, Debug)]
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
}

/// Rates of a device.
#[derive(Clone, Copy, Debug)]
struct Rates {
    memory: f64,
    host: f64,
    operations: f64,
    launch: f64,
}

impl Rates {
    fn of(survey: &Survey<'_>) -> Self {
        let target = &survey.plan.target;
        let wide = survey.bound.buffers.iter().any(|buffer| buffer.element.size() > 4);
        let named = target.device.as_deref().and_then(device_named);
        match named.or_else(|| device_of(&target.arch)) {
            Some(device) => Self {
                memory: device.copy_bandwidth,
                host: device.host_bandwidth * BOTH_WAYS,
                operations: if wide { device.fma_f64 } else { device.fma_f32 },
                launch: device.launch_seconds,
            },
            None => {
                let (memory, host, operations) = USUAL;
                Self { memory, host, operations, launch: 0.0 }
            }
        }
    }
}

/// A choice with its predicted time.
struct Choice {
    seconds: f64,
    launches: usize,
    tiles: usize,
    shift: bool,
}

/// The passes and windows of a run in so much memory.
///
/// # Errors
/// When no window fits.
pub fn cutting(
    survey: &Survey<'_>,
    memory: DeviceMemory,
    temps: bool,
) -> Result<Cutting, WindowError> {
    let count = survey.launches.len();
    if count == 0 {
        return Ok(Cutting { ends: Vec::new(), cuts: Vec::new() });
    }
    let rates = Rates::of(survey);
    let (mut best, mut least): (Option<Choice>, u64) = (None, u64::MAX);
    let lengths = lengths(survey);
    let live = Live::new(survey, &lengths, temps)?;
    for (place, launches) in lengths.into_iter().enumerate() {
        let passes = count.div_ceil(launches);
        let grid = Grid::of(survey, launches - 1)?;
        let scratch = live_scratch(&live, place);
        for (tiles, shift) in grid.choices() {
            let cuts = grid.cuts(tiles, shift);
            let probe = Probe::new(survey, &live, (place, launches), &cuts)?;
            let needed = probe.bytes(survey, &scratch);
            if !probe.within {
                continue;
            }
            least = least.min(needed);
            if needed <= memory.0 {
                let seconds = probe.seconds(survey, rates, passes);
                if best.as_ref().is_none_or(|best| seconds < best.seconds) {
                    best = Some(Choice { seconds, launches, tiles, shift });
                }
            }
        }
    }
    let program = survey.plan.program.clone();
    let Some(best) = best else {
        return Err(WindowError::Memory { program, limit: memory, needed: least });
    };
    let grid = Grid::of(survey, best.launches - 1)?;
    Ok(Cutting { ends: ends(count, best.launches), cuts: grid.cuts(best.tiles, best.shift) })
}

/// For each memory whether it holds nothing before and behind the first pass, of some length.
fn live_scratch(live: &Live, place: usize) -> Vec<bool> {
    let is_empty = |point: usize, memory: usize| {
        let cells = live.cells.get(point).and_then(|cells| cells.get(memory));
        cells.is_some_and(Region::is_empty)
    };
    let count = live.memory.first().map_or(0, Vec::len);
    (0..count).map(|memory| is_empty(0, memory) && is_empty(place + 1, memory)).collect()
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
struct Probe {
    /// Some windows, each with the number of those that it stands for.
    windows: Vec<(Window, usize)>,
    /// For each memory the rows of the largest window.
    rows: Vec<usize>,
    cuts: usize,
    /// Whether halos end within the neighbours.
    within: bool,
}

impl Probe {
    /// Of the windows of the first pass: the first one, one in the middle for all but two, and the
    /// last one.
    fn new(
        survey: &Survey<'_>,
        live: &Live,
        (place, launches): (usize, usize),
        cuts: &[Cut],
    ) -> Result<Self, WindowError> {
        let none = || WindowError::Fault("a run without windows".to_owned());
        let after = live.cells.get(place + 1).ok_or_else(none)?;
        let (mut rows, mut windows) = (vec![0; survey.forms.len()], Vec::new());
        let mut within = true;
        let between = cuts.len().saturating_sub(2);
        let last = cuts.len().saturating_sub(1);
        for (place, count) in [(0, 1), (cuts.len() / 2, between), (last, usize::from(last > 0))] {
            if count == 0 {
                continue;
            }
            let cut = cuts.get(place).ok_or_else(none)?;
            let window = lent(Window::new(survey, 0..launches, after, cut)?, live, 0).0;
            for (rows, holds) in rows.iter_mut().zip(&window.holds) {
                *rows = (*rows).max(holds.len());
            }
            within &= is_within(survey, &window, cuts, place);
            windows.push((window, count));
        }
        even(survey, &mut rows);
        Ok(Self { windows, rows, cuts: cuts.len(), within })
    }

    /// Bytes of device memory.
    fn bytes(&self, survey: &Survey<'_>, scratch: &[bool]) -> u64 {
        let mut all = 0_u64;
        let buffers = self.rows.iter().zip(&survey.forms).zip(&survey.bound.buffers);
        for ((((rows, form), buffer), whole), scratch) in buffers.zip(&survey.whole).zip(scratch) {
            let sides = if *scratch { 1 } else { self.cuts.min(SIDES) };
            all += match whole {
                true => buffer.bytes() as u64,
                false if *rows == 0 => 0,
                false => (sides * (rows * form.columns * form.bytes + ALIGNMENT)) as u64,
            };
        }
        all
    }

    /// Seconds of all passes.
    fn seconds(&self, survey: &Survey<'_>, rates: Rates, passes: usize) -> f64 {
        let windows = || self.windows.iter();
        let each = windows().map(|(window, count)| {
            computes(survey, rates, window).max(copies(survey, rates, window)) * *count as f64
        });
        // The first window comes before anything computes, and the last one leaves behind it.
        let ends = windows().map(|(window, _)| copies(survey, rates, window)).fold(0.0, f64::max);
        each.sum::<f64>() * passes as f64 + 2.0 * ends
    }
}

/// Seconds of the copies of a window, which go both ways at a time.
fn copies(survey: &Survey<'_>, rates: Rates, window: &Window) -> f64 {
    let bytes = |cells: &[Region]| -> f64 {
        let all = cells.iter().zip(&survey.forms);
        all.map(|(cells, form)| (cells.rows().len() * form.columns * form.bytes) as f64).sum()
    };
    bytes(&window.needs).max(bytes(&window.gives)) / rates.host
}

/// Seconds of the launches of a window.
fn computes(survey: &Survey<'_>, rates: Rates, window: &Window) -> f64 {
    let mut seconds = 0.0;
    for Part { place, work, spoils } in &window.works {
        let Ok((launch, _)) = survey.launch(*place) else { continue };
        let (mut bytes, mut cells) = (0_f64, 0_f64);
        for (place, buffer) in survey.cut(launch) {
            let Some(form) = survey.forms.get(buffer.0) else { continue };
            let row = (form.columns * form.bytes) as f64;
            let of = |cells: Option<&Region>| cells.map_or(0, |cells| cells.rows().len()) as f64;
            let writes = of(spoils.get(place)) * row;
            bytes += writes + of(work.loads.get(place)) * row;
            let size = survey.bound.buffers.get(buffer.0).map_or(4, |one| one.element.size());
            cells = cells.max(writes / size as f64);
        }
        let steps = f64::from(launch.node.steps.max(1));
        seconds += bytes / rates.memory + cells * steps * WORK / rates.operations + rates.launch;
    }
    seconds
}

/// Whether a window needs rows of the window before, and of none before that one.
pub fn is_within(survey: &Survey<'_>, window: &Window, cuts: &[Cut], place: usize) -> bool {
    let Some(before) = place.checked_sub(1).and_then(|place| cuts.get(place)) else { return true };
    let needs = window.needs.iter().zip(&survey.forms);
    let mut needs = needs.filter(|(needs, _)| !needs.is_empty());
    needs.all(|(needs, form)| before.of(*form).start <= needs.rows().start)
}

/// Gives memory that rotates slots of as many rows, so that each may take the place of another.
pub fn even(survey: &Survey<'_>, rows: &mut [usize]) {
    for group in groups(survey.plan, survey.bound) {
        for place in &group {
            let form = survey.forms.get(*place);
            let same = group.iter().filter(|other| survey.forms.get(**other) == form);
            let most = same.filter_map(|other| rows.get(*other)).max().copied();
            if let (Some(rows), Some(most)) = (rows.get_mut(*place), most) {
                *rows = if *rows == 0 { 0 } else { most };
            }
        }
    }
}

/// The window with what its buffers lend each other: for each loan the memory that lends, the one
/// that takes, and the cells.
pub fn lent(
    mut window: Window,
    live: &Live,
    point: usize,
) -> (Window, Vec<(BufferId, BufferId, Region)>) {
    let memory = live.memory.get(point).map(Vec::as_slice).unwrap_or_default();
    let mut loans = Vec::new();
    for (place, lender) in live.lender.iter().enumerate() {
        let pair = lender.and_then(|lender| Some((*memory.get(lender)?, *memory.get(place)?)));
        let Some((from, to)) = pair else { continue };
        let cells = window.lend(from, to);
        if !cells.is_empty() {
            loans.push((from, to, cells));
        }
    }
    (window, loans)
}
