//! Pipelines of small tile graphs, worked by hand.

use super::*;
use stencil_runtime::device::H200;

/// The pipeline on an H200.
fn found(graph: &Graph) -> Pipeline {
    of(graph, &H200)
}

fn value(operation: usize) -> Value {
    Value { operation, words: 1 }
}

fn reads<const RANK: usize>(operation: usize, value: usize, offsets: &[[i64; RANK]]) -> Vec<Read> {
    offsets.iter().map(|offset| Read { operation, value, offset: offset.to_vec() }).collect()
}

/// The window of a value whose planes are single rows.
fn flat(lag: i64, last: i64, edges: Vec<Edge>) -> Window {
    Window { lag, rows: vec![Row { row: 0, first: 0, last, edges }], shared: None }
}

fn last(window: &Window) -> i64 {
    window.rows[0].last
}

const STAR: [[i64; 2]; 5] = [[-1, 0], [0, -1], [0, 0], [0, 1], [1, 0]];

#[test]
fn two_steps_of_a_star() {
    let values = (0..3).map(value).collect();
    let reads = [reads(1, 0, &STAR), reads(2, 1, &STAR)].concat();
    let pipeline =
        found(&Graph { values, reads, rows_per_lane: 1, width: 4, scratch: 0, split: true });
    // The edges of the middle row alone are read, when it is one iteration old.
    let edges = vec![Edge { column: -1, first: 1, last: 1 }, Edge { column: 4, first: 1, last: 1 }];
    assert_eq!(pipeline.windows[0], flat(0, 2, edges.clone()));
    assert_eq!(pipeline.windows[1], flat(1, 2, edges));
    assert_eq!(pipeline.windows[2], flat(2, 0, Vec::new()));
    assert_eq!(pipeline.unroll, 3);
    // Two rows of four cells of each of two values, three rows ahead, and one row of results.
    assert_eq!(pipeline.registers, registers::OVERHEAD + 16 + 12 + 4);
}

#[test]
fn edges_of_a_box_live_as_long_as_its_rows() {
    let offsets: Vec<[i64; 2]> = (-1..=1).flat_map(|y| (-1..=1).map(move |x| [y, x])).collect();
    let pipeline = found(&Graph {
        values: vec![value(0), value(1)],
        reads: reads(1, 0, &offsets),
        rows_per_lane: 1,
        width: 2,
        scratch: 0,
        split: true,
    });
    let edges = vec![Edge { column: -1, first: 0, last: 2 }, Edge { column: 2, first: 0, last: 2 }];
    assert_eq!(pipeline.windows[0], flat(0, 2, edges));
    assert_eq!(pipeline.windows[0].carried(2), 8);
}

#[test]
fn rows_of_other_parts_take_an_iteration() {
    // The star's rows beside the point lie in the plane before the newest, so they cost no lag.
    let star = [[-1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]];
    let graph = |offsets: &[[i64; 3]]| Graph {
        values: vec![value(0), value(1)],
        reads: reads(1, 0, offsets),
        rows_per_lane: 2,
        width: 4,
        scratch: 0,
        split: true,
    };
    let pipeline = found(&graph(&star));
    let row = |row, first, last, edges| Row { row, first, last, edges };
    let edges = vec![Edge { column: -1, first: 1, last: 1 }, Edge { column: 4, first: 1, last: 1 }];
    let rows = vec![
        row(-1, 1, 1, Vec::new()),
        row(0, 0, 2, edges.clone()),
        row(1, 0, 2, edges),
        row(2, 1, 1, Vec::new()),
    ];
    assert_eq!(pipeline.windows[0], Window { lag: 0, rows, shared: Some(0) });
    assert_eq!((pipeline.windows[0].carried(4), pipeline.windows[1].lag), (16, 1));
    // A box reads them of the newest plane, and waits for them.
    let cube: Vec<[i64; 3]> =
        (0..27_i64).map(|place| [place / 9 - 1, place / 3 % 3 - 1, place % 3 - 1]).collect();
    let pipeline = found(&graph(&cube));
    assert_eq!((pipeline.windows[0].shared, pipeline.windows[1].lag), (Some(0), 2));
    assert_eq!(
        pipeline.windows[0].rows.iter().map(|row| (row.first, row.last)).collect::<Vec<_>>(),
        [(1, 3), (0, 3), (0, 3), (1, 3)]
    );
}

#[test]
fn rows_wait_with_their_part_until_they_are_wanted() {
    // Rows of radius 2 are read two planes behind the newest; their parts keep them that long.
    let star = [[-2, 0, 0], [0, -2, 0], [0, 2, 0], [2, 0, 0]];
    let graph = Graph {
        values: vec![value(0), value(1)],
        reads: reads(1, 0, &star),
        rows_per_lane: 1,
        width: 4,
        scratch: 0,
        split: true,
    };
    let pipeline = found(&graph);
    assert_eq!(pipeline.windows[0].shared, Some(1));
    let found: Vec<_> =
        pipeline.windows[0].rows.iter().map(|row| (row.row, row.first, row.last)).collect();
    assert_eq!(found, [(-2, 2, 2), (0, 0, 4), (2, 2, 2)]);
}

#[test]
fn three_functions_of_fdtd() {
    // Loads Ex, Ey, Hz; then ey, ex, hz of one step, each also reading the field it updates.
    let values = (0..6).map(value).collect();
    let reads = [
        reads(3, 1, &[[0, 0]]),
        reads(3, 2, &[[0, 0], [-1, 0]]),
        reads(4, 0, &[[0, 0]]),
        reads(4, 2, &[[0, 0], [0, -1]]),
        reads(5, 2, &[[0, 0]]),
        reads(5, 4, &[[0, 1], [0, 0]]),
        reads(5, 3, &[[1, 0], [0, 0]]),
    ]
    .concat();
    let pipeline =
        found(&Graph { values, reads, rows_per_lane: 1, width: 4, scratch: 0, split: true });
    assert_eq!(
        pipeline.windows.iter().map(|window| window.lag).collect::<Vec<_>>(),
        [0, 0, 0, 0, 0, 1]
    );
    assert_eq!(pipeline.windows.iter().map(last).collect::<Vec<_>>(), [0, 0, 1, 1, 1, 0]);
    assert_eq!(pipeline.windows[4].rows[0].edges, [Edge { column: 4, first: 1, last: 1 }]);
    assert_eq!(pipeline.unroll, 2);
}

#[test]
fn a_wave_carries_a_const_field_to_its_last_step() {
    // Loads P, U, C; two steps of (P, U) = (U, f(P, U, C)). C is read first by the first step.
    let values = vec![value(0), value(1), value(2), value(3), value(3), value(4), value(4)];
    let step = |operation, p, u| {
        [reads(operation, p, &[[0, 0]]), reads(operation, u, &STAR), reads(operation, 2, &[[0, 0]])]
            .concat()
    };
    let reads = [step(3, 0, 1), step(4, 3, 4)].concat();
    let pipeline =
        found(&Graph { values, reads, rows_per_lane: 1, width: 4, scratch: 0, split: true });
    let found: Vec<_> = pipeline.windows.iter().map(|window| (window.lag, last(window))).collect();
    assert_eq!(found, [(1, 0), (0, 2), (1, 1), (1, 1), (1, 2), (2, 0), (2, 0)]);
    // Two windows of two rows and two of three: six rows change names alone, but three cost
    // less.
    assert_eq!(pipeline.unroll, 3);
}

#[test]
fn footprints_that_lean_to_one_side() {
    // Rows above alone: nothing waits. Rows below alone: the step runs two rows behind.
    let above = found(&Graph {
        values: vec![value(0), value(1)],
        reads: reads(1, 0, &[[-2, 0], [0, 3]]),
        rows_per_lane: 1,
        width: 2,
        scratch: 0,
        split: true,
    });
    assert_eq!((above.windows[1].lag, last(&above.windows[0])), (0, 2));
    assert_eq!(
        above.windows[0].rows[0].edges.iter().map(|edge| edge.column).collect::<Vec<_>>(),
        [3, 4]
    );
    let below = found(&Graph {
        values: vec![value(0), value(1)],
        reads: reads(1, 0, &[[0, 0], [2, -1]]),
        rows_per_lane: 1,
        width: 2,
        scratch: 0,
        split: true,
    });
    assert_eq!((below.windows[1].lag, last(&below.windows[0])), (2, 2));
    assert_eq!(below.windows[0].rows[0].edges, [Edge { column: -1, first: 0, last: 0 }]);
}
