//! The memory of a device that a run in windows takes, over all of its passes.

use super::choose::Cutting;
use super::error::WindowError;
use super::live::Live;
use super::survey::Survey;
use super::window::{Cut, Loans, Window};
use std::rc::Rc;

/// Windows that lie on the device at a time: one computes, while one leaves and one comes.
pub const SIDES: usize = 2;
/// Bytes by which a window may begin later in its memory, so that rows keep their alignment.
pub const ALIGNMENT: usize = 256;

/// What a run in windows needs.
#[derive(Clone, Debug)]
pub struct Needed {
    /// What is needed between passes.
    pub live: Rc<Live>,
    /// For each memory the rows of the largest window.
    pub rows: Vec<usize>,
    /// Memory that holds nothing between passes, until the last one. Both sides have one slot for
    /// it.
    pub scratch: Vec<bool>,
}

impl Needed {
    /// The needs of a run, and the bytes of the device's memory that it takes; none where a window
    /// needs rows beyond those of the one before it, or more than `most` bytes.
    ///
    /// # Errors
    /// A window whose launches are unknown.
    pub fn of(
        survey: &Survey<'_>,
        cutting: &Cutting,
        live: Rc<Live>,
        most: u64,
    ) -> Result<Option<(Self, u64)>, WindowError> {
        let scratch = live.scratch(cutting.ends.len());
        let (mut rows, mut bytes) = (vec![0; survey.forms.len()], 0);
        let mut seen: Vec<usize> = Vec::new();
        for pass in 0..cutting.ends.len() {
            let is_like = |other: &usize| is_like(survey, &live, cutting, [pass, *other]);
            if seen.iter().any(is_like) {
                continue;
            }
            seen.push(pass);
            for (place, cut) in cutting.cuts.iter().enumerate() {
                let window = cutting.window(survey, &live, pass, cut)?.0;
                grow(&mut rows, &window);
                bytes = device_bytes(survey, &mut rows, &scratch, cutting.cuts.len());
                if !is_within(survey, &window, &cutting.cuts, place) || bytes > most {
                    return Ok(None);
                }
            }
        }
        Ok(Some((Self { live, rows, scratch }, bytes)))
    }
}

/// Whether two passes have the same windows: launches of the same kinds, of the same memory, behind
/// which the same cells are needed.
fn is_like(survey: &Survey<'_>, live: &Live, cutting: &Cutting, passes: [usize; 2]) -> bool {
    let [one, other] = passes;
    let kinds = |pass: usize| survey.kind.get(cutting.launches(pass));
    kinds(one) == kinds(other)
        && live.memory.get(one) == live.memory.get(other)
        && live.cells.get(one + 1) == live.cells.get(other + 1)
}

/// Makes room for a window.
pub fn grow(rows: &mut [usize], window: &Window) {
    for (rows, holds) in rows.iter_mut().zip(&window.holds) {
        *rows = (*rows).max(holds.len());
    }
}

/// Bytes of device memory of windows with so many rows, which [`even`] makes equal; `cuts` are the
/// windows of a pass.
pub fn device_bytes(survey: &Survey<'_>, rows: &mut [usize], scratch: &[bool], cuts: usize) -> u64 {
    even(survey, rows);
    let mut all = 0_u64;
    let buffers = rows.iter().zip(&survey.forms).zip(&survey.bound.buffers);
    for ((((rows, form), buffer), whole), scratch) in buffers.zip(&survey.whole).zip(scratch) {
        let sides = if *scratch { 1 } else { cuts.min(SIDES) };
        all += match whole {
            true => buffer.bytes() as u64,
            false if *rows == 0 => 0,
            false => (sides * (rows * form.columns * form.bytes + ALIGNMENT)) as u64,
        };
    }
    all
}

/// Whether a window needs rows of the window before, and of none before that one.
pub fn is_within(survey: &Survey<'_>, window: &Window, cuts: &[Cut], place: usize) -> bool {
    let Some(before) = place.checked_sub(1).and_then(|place| cuts.get(place)) else { return true };
    let needs = window.needs.iter().zip(&survey.forms);
    let mut needs = needs.filter(|(needs, _)| !needs.is_empty());
    needs.all(|(needs, form)| before.of(*form).start <= needs.rows().start)
}

/// Gives memory that rotates slots of as many rows, so that each may take the place of another.
fn even(survey: &Survey<'_>, rows: &mut [usize]) {
    for group in &survey.groups {
        for place in group {
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
pub fn lent(mut window: Window, live: &Live, point: usize) -> (Window, Loans) {
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
