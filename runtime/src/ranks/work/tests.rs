//! The work of devices, by hand.

use super::*;
use crate::bind::{Request, bind};
use crate::plan::tests::banded;
use crate::plan::{Bands, Order, Plan};
use crate::plan::{Points, Tiles};

fn expr(text: &str) -> crate::expr::Expr {
    text.parse().unwrap()
}

/// Rows of 16, the first of which begin later or earlier.
fn tiles(before: i64) -> Parts {
    let (first, last) = (expr("0"), expr("N - 1"));
    Parts::Tiles(vec![Tiles { count: expr("4"), first, last, cells: 16, before }])
}

fn reach(below: i64, above: i64) -> Near {
    Near { below: vec![below], above: vec![above], ..Near::default() }
}

fn rows(rows: Range<usize>) -> Region {
    Area { rows, columns: 0..1 }.into()
}

const FORM: Form = Form { rows: 50, columns: 1, bytes: 4, of_cells: true };

/// A plan and the sizes of a run with 50 rows.
fn sized() -> (Plan, Bound) {
    let plan = banded();
    let sizes = [("N".to_owned(), 50), ("M".to_owned(), 3)].into();
    let bound = bind(&plan, &Request { sizes, ..Request::default() }).unwrap();
    (plan, bound)
}

/// A launch from a buffer to another, in parts, with what it uses of both.
fn launch(parts: Parts, uses: [Option<Use>; 2]) -> plan::Launch {
    let (plan, _) = sized();
    let uses = ["A", "A'"].into_iter().zip(uses);
    let uses = uses.filter_map(|(name, used)| Some((name.to_owned(), used?))).collect();
    plan::Launch {
        arguments: vec![Argument::Read("A".to_owned()), Argument::Write("A'".to_owned())],
        bands: None,
        cut: Some(Box::new(Cut { parts, order: Order::RowMajor, uses })),
        rotate: Vec::new(),
        ..plan.launches().next().unwrap().clone()
    }
}

fn works(launch: &plan::Launch, devices: &str) -> Vec<Work> {
    let (_, bound) = sized();
    let forms = [Some(FORM), Some(FORM)];
    of_launch(launch, &bound, [4, 1, 1], &forms, devices.parse().unwrap()).unwrap()
}

/// 50 rows in tiles of 16, which reach 2 rows back and 3 ahead.
#[test]
fn devices_read_around_their_tiles() {
    let launch = launch(tiles(0), [Some(Use::Near(reach(2, 3))), None]);
    let works = works(&launch, "3");
    let cells = |work: &Work| (work.reads[0].clone(), work.writes[1].clone());
    // Of four tiles the devices have one, one and two.
    assert_eq!(cells(&works[0]), (rows(0..19), rows(0..16)));
    assert_eq!(cells(&works[1]), (rows(14..35), rows(16..32)));
    assert_eq!(cells(&works[2]), (rows(30..50), rows(32..50)));
    assert_eq!(works[1].blocks, Blocks::Numbers(vec![1..2]));
    assert!(works.iter().all(|work| work.writes[0].is_empty() && work.reads[1].is_empty()));
}

/// Tiles that begin 10 rows earlier, so that the first one has 6 rows and the last one 12.
#[test]
fn the_first_and_the_last_tile_end_with_the_grid() {
    let launch = launch(tiles(-10), [Some(Use::Near(reach(1, 1))), None]);
    let own: Vec<_> = works(&launch, "4").iter().map(|work| work.writes[1].clone()).collect();
    assert_eq!(own, [rows(0..6), rows(6..22), rows(22..38), rows(38..50)]);
}

/// The grid repeats: the first device reads the last rows, and the last tile goes on at row 0.
#[test]
fn rows_beyond_a_grid_that_repeats_are_those_of_the_other_end() {
    let around = Near { wraps: true, ..reach(2, 2) };
    let works = works(&launch(tiles(0), [Some(Use::Near(around)), None]), "2");
    let mut first = rows(0..34);
    first.add(&rows(48..50));
    assert_eq!(works[0].reads[0], first);
    let mut second = rows(30..50);
    // Four tiles have 64 rows: 14 of them, and 2 beyond, are those of the beginning.
    second.add(&rows(0..16));
    assert_eq!(works[1].reads[0].without(&second), Region::default());
    assert_eq!(second.without(&works[1].reads[0]), Region::default());
    assert_eq!(works[1].writes[1], rows(32..50));
}

/// A buffer whose first row is row -3 of the program, in a launch over its rows 0 to 49.
#[test]
fn tiles_lie_at_the_origin_of_a_buffer() {
    let at = Near { origin: vec![expr("-3")], ..reach(1, 0) };
    let works = works(&launch(tiles(0), [Some(Use::Near(at)), None]), "4");
    assert_eq!((&works[0].reads[0], &works[1].reads[0]), (&rows(2..19), &rows(18..35)));
    assert_eq!(works[1].writes[1], rows(16..32));
}

/// A buffer whose rows begin behind those of the launch.
#[test]
fn rows_beyond_a_buffer_are_the_nearest_or_mirrored() {
    let beyond = |mirrors| {
        let at = Near { origin: vec![expr("8")], mirrors, ..reach(0, 0) };
        let works = works(&launch(tiles(0), [Some(Use::Near(at)), None]), "4");
        works.iter().map(|work| work.reads[0].clone()).collect::<Vec<_>>()
    };
    // Tiles of 16 rows begin at rows -8, 8, 24 and 40; the last one has rows 40 and 41.
    assert_eq!(beyond(false), [rows(0..8), rows(8..24), rows(24..40), rows(40..42)]);
    // Row -8 is row 8.
    assert_eq!(beyond(true)[0], rows(0..9));
    let at = Near { origin: vec![expr("20")], ..reach(0, 0) };
    let works = works(&launch(tiles(0), [Some(Use::Near(at)), None]), "4");
    // The first tile lies before the buffer.
    assert_eq!(works[0].reads[0], rows(0..1));
}

/// Cells that are loaded without need are no cells that must come from others.
#[test]
fn cells_that_do_not_matter_are_apart() {
    let spare = Near { spare_below: vec![1], spare_above: vec![4], ..reach(1, 1) };
    let works = works(&launch(tiles(0), [Some(Use::Near(spare)), None]), "4");
    assert_eq!((&works[1].reads[0], &works[1].loads[0]), (&rows(15..33), &rows(14..37)));
}

/// Blocks of 10 points of a box of 11 rows from row 5 on, of 3 points each.
#[test]
fn points_lie_in_the_rows_of_a_box() {
    let points = Parts::Points(Points { first: expr("5"), row: expr("3"), points: 10 });
    let uses = [Some(Use::Near(reach(0, 1))), Some(Use::Blocks(1))];
    let works = works(&launch(points, uses), "2");
    // Points 0 to 19 lie in rows 0 to 6 of the box, and points 20 to 39 in rows 6 to 13.
    assert_eq!((&works[0].reads[0], &works[0].writes[1]), (&rows(5..13), &rows(0..2)));
    assert_eq!((&works[1].reads[0], &works[1].writes[1]), (&rows(11..20), &rows(2..4)));
}

/// Where a launch has bands, devices have rows of it, numbered by the kernel.
#[test]
fn launches_in_bands_are_cut_between_their_rows() {
    let mut launch = launch(tiles(0), [None, None]);
    launch.bands = Some(Bands { rows: expr("4"), reach: 1 });
    let works = works(&launch, "4");
    assert_eq!(works[3].blocks, Blocks::Band { rows: 4, own: 3..4 });
}

#[test]
fn launches_that_cannot_be_shared_out_are_refused() {
    let (_, bound) = sized();
    let refused = |launch: &plan::Launch, grid, forms: &[Option<Form>]| {
        of_launch(launch, &bound, grid, forms, Devices::along(2)).unwrap_err().to_string()
    };
    let forms = [Some(FORM), Some(FORM)];
    let mut plain = launch(tiles(0), [Some(Use::Whole), Some(Use::Whole)]);
    let text = refused(&plain, [4, 1, 1], &forms);
    assert!(text.contains("`two` can't be shared out between devices: its blocks write"), "{text}");
    plain.cut = None;
    assert!(refused(&plain, [4, 1, 1], &forms).contains("not those of tiles"));
    plain.cooperative = true;
    assert!(refused(&plain, [1, 1, 1], &forms).contains("its blocks wait for each other"));
    let other = launch(tiles(0), [None, None]);
    assert!(refused(&other, [5, 1, 1], &forms).contains("its blocks are not those of its tiles"));
    let gaps = Form { of_cells: false, ..FORM };
    assert!(refused(&other, [4, 1, 1], &[Some(gaps), Some(FORM)]).contains("have gaps"));
}

/// One block without a cut, as that which combines the results of others.
#[test]
fn a_launch_of_one_block_is_done_by_all() {
    let mut launch = launch(tiles(0), [Some(Use::Whole), Some(Use::Whole)]);
    launch.cut = None;
    let (_, bound) = sized();
    let forms = [Some(FORM), Some(FORM)];
    let works = of_launch(&launch, &bound, [1, 1, 1], &forms, Devices::along(3)).unwrap();
    assert!(works.iter().all(|work| work.blocks == Blocks::All && work.is_some()));
    assert!(works.iter().all(|work| work.reads[0] == rows(0..50) && work.writes[1] == rows(0..50)));
}

#[test]
fn cells_of_a_buffer_are_runs_of_bytes() {
    let form = Form { rows: 3, columns: 4, bytes: 8, of_cells: true };
    let areas = [Area { rows: 0..2, columns: 0..4 }, Area { rows: 2..3, columns: 1..3 }];
    assert_eq!(form.runs(&areas), [0..64, 72..88]);
    assert_eq!(form.rows_of(&(40..72)), Area { rows: 1..3, columns: 0..4 });
}
