//! Windows by hand.

use super::choose::cutting;
use super::live::Live;
use super::measure::{device_bytes, grow};
use super::survey::Survey;
use super::window::{Cut as Rows, Window};
use super::{DeviceMemory, WindowError, windows_of};
use crate::bind::{Bound, Request, bind};
use crate::plan::tests::{banded, launch};
use crate::plan::{Argument, Cut, Near, Order, Parts, Plan, Tiles, Use};
use std::ops::Range;

/// Rows of 3 cells in tiles of 16 rows. A launch reads 2 rows on each side of what it computes.
fn plan() -> Plan {
    let mut plan = banded();
    for place in [0, 1] {
        let expr = |text: &str| text.parse().unwrap();
        let tiles = Tiles {
            count: expr("N ceildiv 16"),
            first: expr("0"),
            last: expr("N - 1"),
            cells: 16,
            before: 0,
        };
        let near = |reach: i64| {
            Use::Near(Near { below: vec![reach], above: vec![reach], ..Near::default() })
        };
        let one = launch(&mut plan, place);
        one.grid[0] = expr("N ceildiv 16");
        one.arguments.retain(|argument| argument.buffer() != Some("W"));
        let uses = [("A".to_owned(), near(2))].into();
        let parts = Parts::Tiles(vec![tiles]);
        one.cut = Some(Box::new(Cut { parts, order: Order::RowMajor, uses }));
    }
    plan
}

fn sized(plan: &Plan, rows: i64, steps: i64) -> Bound {
    let sizes = [("N".to_owned(), rows), ("M".to_owned(), 1)].into();
    let request = Request { sizes, steps: Some(steps), ..Request::default() };
    bind(plan, &request).unwrap()
}

/// The window of some rows in a pass of all launches.
fn window(plan: &Plan, bound: &Bound, rows: Range<usize>) -> Window {
    let survey = Survey::new(plan, bound).unwrap();
    let all = survey.launches.len();
    let live = Live::new(&survey, &[all], false).unwrap();
    let cut = Rows { rows, last: false };
    Window::new(&survey, 0..all, &live.cells[1], &cut).unwrap()
}

/// Three launches of two steps: of 160 to 224 the first one computes 156 to 228, from 154 to 230.
#[test]
fn a_halo_shrinks_from_launch_to_launch() {
    let plan = plan();
    let bound = sized(&plan, 320, 6);
    let window = window(&plan, &bound, 160..224);
    // Behind three launches the field lies in the second buffer, before in the first one.
    assert_eq!(window.gives[1].rows(), 160..224);
    assert!(window.gives[0].is_empty() && window.needs[1].is_empty());
    assert_eq!(window.needs[0].rows(), 154..230);
    let writes: Vec<_> = window.works.iter().map(|part| part.work.writes[2].rows()).collect();
    assert_eq!(writes, [156..228, 158..226, 160..224]);
    // Tiles are whole: the first launches compute rows 144 to 240.
    let spoils: Vec<_> = window.works.iter().map(|part| part.spoils[2].rows()).collect();
    assert_eq!(spoils, [144..240, 144..240, 160..224]);
    assert_eq!(window.holds[0], 142..242);
    // The constant field has rows of one cell.
    assert_eq!(window.needs[2].rows(), 156..228);
}

#[test]
fn windows_at_the_ends_have_one_halo() {
    let plan = plan();
    let bound = sized(&plan, 320, 4);
    assert_eq!(window(&plan, &bound, 0..64).needs[0].rows(), 0..68);
    assert_eq!(window(&plan, &bound, 256..320).needs[0].rows(), 252..320);
}

#[test]
fn buffers_that_hold_nothing_between_passes_need_no_array() {
    let plan = plan();
    let bound = sized(&plan, 320, 12);
    let survey = Survey::new(&plan, &bound).unwrap();
    let live = Live::new(&survey, &[2, 4, 6], false).unwrap();
    assert_eq!(live.hosts[..3], [Some(0), None, Some(1)]);
    assert_eq!(live.scratch(3)[..3], [false, true, false]);
    // An odd number of launches leaves the field in the other memory.
    let live = Live::new(&survey, &[3, 6], false).unwrap();
    assert_eq!(live.hosts[..3], [Some(0), None, Some(1)]);
    assert_eq!(live.scratch(2)[..3], [false, false, false]);
    assert_eq!(live.memory[1][0].0, 1);
}

#[test]
fn less_memory_makes_more_windows() {
    let plan = plan();
    let bound = sized(&plan, 3200, 40);
    let all = bound.device_bytes();
    let counts = [1, 2, 4, 8]
        .map(|part| windows_of(&plan, &bound, DeviceMemory(all * 2 / part)).unwrap().windows);
    assert!(counts.windows(2).all(|pair| pair[0] <= pair[1]), "{counts:?}");
    assert!(counts[3] >= 5, "{counts:?}");
    let error = windows_of(&plan, &bound, DeviceMemory(500)).unwrap_err().to_string();
    assert!(error.contains("--device-memory 500 bytes is too small"), "{error}");
}

#[test]
fn launches_of_the_whole_grid_are_refused() {
    let bound = sized(&banded(), 320, 6);
    let error = windows_of(&banded(), &bound, DeviceMemory(1 << 20)).unwrap_err().to_string();
    assert!(error.contains("kernel `two` can't run on a part of the grid"), "{error}");
    let mut whole = plan();
    let one = launch(&mut whole, 0);
    one.arguments = vec![Argument::Read("A".to_owned()), Argument::Write("A'".to_owned())];
    if let Some(cut) = &mut one.cut {
        cut.uses = [("A".to_owned(), Use::Whole)].into();
    }
    let error = windows_of(&whole, &bound, DeviceMemory(1 << 20)).unwrap_err().to_string();
    assert!(error.contains("reads any cell of what it writes"), "{error}");
}

/// Four steps by `two`, whose halo is 2 rows, and a fifth by `one`, whose halo is 30: the window of
/// the last pass is the largest one.
#[test]
fn the_limit_holds_in_the_last_pass_too() {
    let mut plan = plan();
    let cut = launch(&mut plan, 1).cut.as_mut().unwrap();
    let far = Near { below: vec![30], above: vec![30], ..Near::default() };
    cut.uses = [("A".to_owned(), Use::Near(far))].into();
    let bound = sized(&plan, 1600, 41);
    let survey = Survey::new(&plan, &bound).unwrap();
    let (mut larger, mut refused) = (0, 0);
    for percent in 1..=100 {
        let memory = DeviceMemory(bound.device_bytes() * percent / 100);
        let (cutting, needed) = match cutting(&survey, memory, false) {
            Ok(found) => found,
            Err(WindowError::Memory { needed, .. }) => {
                assert!(needed > memory.0);
                windows_of(&plan, &bound, DeviceMemory(needed)).unwrap();
                refused += 1;
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        let mut rows = vec![Vec::new(); cutting.ends.len()];
        for (pass, rows) in rows.iter_mut().enumerate() {
            rows.resize(survey.forms.len(), 0);
            for cut in &cutting.cuts {
                grow(rows, &cutting.window(&survey, &needed.live, pass, cut).unwrap().0);
            }
        }
        let most = |memory: usize| rows.iter().map(|rows| rows[memory]).max().unwrap();
        assert!((0..survey.forms.len()).all(|memory| most(memory) <= needed.rows[memory]));
        let bytes = |mut rows: Vec<usize>| {
            device_bytes(&survey, &mut rows, &needed.scratch, cutting.cuts.len())
        };
        assert!(bytes(needed.rows.clone()) <= memory.0);
        larger += usize::from(bytes(rows[0].clone()) < bytes(needed.rows.clone()));
    }
    assert!(larger > 10 && refused > 0, "{larger} {refused}");
}
