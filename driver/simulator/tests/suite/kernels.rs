//! Real kernels: compiled, run on the simulator, compared with the oracle bit for bit.

use crate::common::{Case, check_case};
use stencil_runtime::bind::{self, Request};
use stencil_runtime::plan::Plan;
use stencil_simulator::{Options, Settings};

#[test]
fn heat_point_by_point_and_in_blocks_equals_the_oracle() {
    for case in [
        Case::naive("heat2d"),
        Case::block("heat2d", &[16, 32], 2),
        Case::block("heat2d", &[16, 32], 3),
    ] {
        let report = check_case(&case, 70, 7);
        println!("{report}");
    }
}

// heat is `a + alpha * k * (n + s + w + e - 4 * a)`: two of its three products go into a sum, and
// they still round on their own unless the simulator is told to contract.
#[test]
fn contracted_pairs_are_counted_as_one() {
    let plain = check_case(&Case::naive("heat2d"), 40, 1).total();
    let contracted = check_case(&Case { contract: true, ..Case::naive("heat2d") }, 40, 1).total();
    let per_cell = |count: u64| count / plain.cells;
    assert_eq!([plain.flops.add, plain.flops.mul, plain.flops.fma].map(per_cell), [5, 3, 0]);
    assert_eq!(
        [contracted.flops.add, contracted.flops.mul, contracted.flops.fma].map(per_cell),
        [3, 1, 2]
    );
}

#[test]
fn every_program_of_the_suite_equals_the_oracle() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite/programs");
    let mut names: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| {
            Some(entry.ok()?.file_name().into_string().ok()?.strip_suffix(".stencil")?.to_owned())
        })
        .collect();
    names.sort();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let rank = crate::common::rank(&Case::naive(&name));
        let (tile, size): (&[i64], _) = match rank {
            1 => (&[64], 300),
            2 => (&[8, 32], 45),
            _ => (&[4, 4, 16], 21),
        };
        if Case::naive(&name).source().text.contains("'[") {
            let tiles: [&[i64]; 2] =
                if rank == 3 { [&[3, 4, 8], &[1, 2, 5]] } else { [&[8, 16], &[5, 3]] };
            for tile in tiles {
                check_case(&Case::wavefront(&name, tile), size, 2);
            }
            if rank == 2 {
                check_case(&Case::strip(&name, &[64, 8]).per_thread(&[2, 1]), size, 2);
                check_case(&Case::strip(&name, &[96, 4]).per_thread(&[1, 1]), 131, 1);
            }
            continue;
        }
        check_case(&Case::naive(&name), size, 3);
        // A reduction that functions read is computed between the steps, and a field that is read
        // at computed places is whole before each. Nine fields of two steps do not fit in a block.
        let reduces = Case::naive(&name).source().text.contains("\nreduce ");
        let alone =
            reduces || ["acoustic2d", "semi-lagrange2d", "elastic3d"].contains(&name.as_str());
        check_case(&Case::block(&name, tile, if alone { 1 } else { 2 }), size, 5);
    }
}

// A field on a grid without points is not loaded, and neither is its nearest cell.
#[test]
fn strips_beside_a_grid_without_points() {
    let text = "param N\ngrid G = [0..N-1, 0..N-1]\ngrid H = [0..N-42, 0..N-42]\n\
                field A : f32 on G\nconst field K : f32 on H\n\
                fn f -> A [1..N-43, 1..N-43] = A'[-1,0] + K[0,1] + A[0,0]\nsteps 1";
    for size in [41, 42, 43, 80] {
        check_case(&Case::strip(text, &[64, 8]).per_thread(&[2, 1]), size, 1);
    }
}

// The second function reads a cell that the first leaves as it was.
#[test]
fn values_of_the_same_sweep_where_a_buffer_could_rotate() {
    let text = "param N\ngrid G = [0..N-1, 0..N-1]\nfield B : i64 on G\nfield C : i64 on G\n\
                fn h -> (B, C) [1..N-1, 0..N-1] = (C[0,0], 7)\n\
                fn g -> B [1..N-1, 0..N-1] = B'[-1,0]\nsteps 1";
    check_case(&Case::strip(text, &[64, 8]).per_thread(&[2, 1]), 33, 1);
    check_case(&Case::wavefront(text, &[16, 8]), 33, 1);
}

// A lane needs values of the row above from before its own first time; and rows without columns.
#[test]
fn strips_with_dependences_to_the_right_and_empty_rows() {
    let text = |piece: &str, value: &str| {
        format!(
            "param M\ngrid G = [0..139, 0..M-1]\nfield A : i32 on G\n\
             fn f -> A {piece} = {value}\nsteps 1"
        )
    };
    for (piece, value) in [
        ("[2..139, 0..M-4]", "A'[-1,3] + A'[-2,0]"),
        ("[2..139, 1..M-4]", "A'[-1,2] + A'[-2,-1]"),
        ("[1..139, 5..M-6]", "A'[-1,5] + A'[-1,-5]"),
    ] {
        for (tile, each) in [([64, 8], [2, 1]), ([192, 2], [3, 1]), ([256, 32], [2, 1])] {
            let case = Case::strip(&text(piece, value), &tile).per_thread(&each);
            check_case(&case, 21, 1);
        }
    }
    let case = Case::strip(&text("[1..139, 0..M-1]", "A'[-1,0]"), &[64, 8]).per_thread(&[2, 1]);
    for columns in [0, 1, 2] {
        check_case(&case, columns, 1);
    }
}

// Const fields along one dimension: read beside a point on both sides, returned as they are, in
// pieces of their own, on a grid with fewer cells than the points, and on one without cells.
#[test]
fn strips_read_sequences() {
    let text = |function: &str| {
        format!(
            "param M\ngrid G = [0..69, 0..M-1]\ngrid GI = [-3..72]\ngrid GJ = [0..M-1]\n\
             grid W = [0..9]\nfield A : f32 on G\nfield B : i64 on G\nconst field p : f32 on GI\n\
             const field q : f32 on GJ\nconst field r : i64 on GI\nconst field w : f32 on W\n\
             {function}\nsteps 2"
        )
    };
    for function in [
        "fn f -> A [i in 1..69, j in 1..M-2] = A'[-1,0] + p(i-4) * q(j+1) - p(i+3)",
        "fn f -> (A, B) [i in 0..69, j in 1..M-1] = (q(j), B'[0,-1] + r(i))",
        "fn f -> (A, B) [i in 1..69, j in 0..M-1] = (A'[-1,0], r(i))",
        "fn f -> A {\n[i in 0..0, j in 0..M-1] = q(j)\n\
         [i in 1..69, j in 0..M-1] = A'[-1,0] + p(i)\n}",
        "fn f -> A [i in 1..9, j in 0..M-1] = A'[-1,0] + w(i)",
        "fn f -> A [i in 1..69, j in 0..M-1] = A'[-1,0] + w(3) - (if p(i) > 0.5 then q(j) else 1)",
    ] {
        for (tile, each) in [([64, 8], [2, 1]), ([192, 2], [3, 1]), ([32, 32], [1, 1])] {
            let case = Case::strip(&text(function), &tile).per_thread(&each);
            for columns in [45, 2, 0] {
                check_case(&case, columns, 2);
            }
        }
    }
}

// 512 x 512, 16 steps, four steps a launch: within 10 s on two cores, below 1 GB.
#[test]
fn large_runs_are_fast_enough() {
    let start = std::time::Instant::now();
    let report = check_case(&Case::block("heat2d", &[32, 32], 4), 512, 16);
    let seconds = start.elapsed().as_secs_f64();
    println!("{seconds:.2} s\n{report}");
    assert!(seconds < 10.0, "{seconds} s");
}

// N = 130, tiles of 64, two steps a launch; the function covers 1 to 128. First step: 1..64,
// 63..128 and 127..128, that is 64 + 66 + 2 cells; second step: 1..63, 64..127 and 128, that is 63
// + 64 + 1. Loads: 0..65, 62..129 and 126..129, that is 66 + 68 + 4 cells. A barrier before each
// step.
#[test]
fn cells_and_traffic_of_a_tile_worked_by_hand() {
    let report = check_case(&Case::block("jacobi1d3", &[64], 2), 130, 2);
    let total = report.total();
    assert_eq!(total.cells, 132 + 128, "{report}");
    assert_eq!(total.global_read.bytes, 4 * (66 + 68 + 4), "{report}");
    assert_eq!(total.global_write.bytes, 4 * 130, "{report}");
    assert_eq!(total.barriers, 2 * 3, "{report}");
    assert_eq!(report.kernels[0].cell_steps, 2 * 130);
}

// Strips narrower and wider than the grid, heights that leave steps over, several functions with
// lags of their own, several fields at once, and rows beside a const field.
#[test]
fn warps_equal_the_oracle() {
    for program in ["jacobi1d3", "jacobi1d5_f64", "jacobi1d7"] {
        for (cells, height, steps) in [(1, 2, 3), (4, 5, 9), (32, 13, 27)] {
            let case = Case {
                strategy: "warp".to_owned(),
                tile: None,
                per_thread: Some(vec![cells]),
                pyramid_height: Some(height),
                ..Case::naive(program)
            };
            check_case(&case, 2503, steps);
        }
    }
}

#[test]
fn streams_equal_the_oracle() {
    for program in ["heat2d", "fdtd2d", "box2d2r", "j2d9pt", "jacobi2d_f64"] {
        for (tile, height) in [(Some([16, 32]), 2), (Some([9, 64]), 3), (None, 4)] {
            let case = Case {
                strategy: "stream".to_owned(),
                tile: tile.map(|tile| tile.to_vec()),
                pyramid_height: Some(height),
                ..Case::naive(program)
            };
            check_case(&case, 53, 7);
        }
    }
}

// In three dimensions: tiles of one and of many parts of a block, lanes that share a warp with the
// row below, one row per lane and more, and footprints from star to box and radius 2.
#[test]
fn streams_of_planes_equal_the_oracle() {
    for (program, per_thread) in [
        ("star3d1r", [1, 2, 4]),
        ("star3d2r", [1, 1, 2]),
        ("j3d27pt", [1, 3, 4]),
        ("wave3d", [1, 2, 1]),
        ("jacobi3d_f64", [1, 2, 2]),
    ] {
        for (tile, height) in [([4, 6, 12], 2), ([9, 5, 8], 1), ([32, 24, 16], 3)] {
            let case = Case {
                strategy: "stream".to_owned(),
                tile: Some(tile.to_vec()),
                per_thread: Some(per_thread.to_vec()),
                pyramid_height: Some(height),
                ..Case::naive(program)
            };
            check_case(&case, 19, 4);
        }
    }
}

// Blocks of one thread and of many, segments of one cell to four, halos of no, one and several
// segments a thread, planes of the ring before, at and behind the own one, several functions.
#[test]
fn planes_equal_the_oracle() {
    for (program, tile, cells) in [
        ("acoustic3d-order8", vec![5, 4, 8], 4),
        ("acoustic3d-order4", vec![30, 1, 2], 2),
        ("elastic3d", vec![7, 5, 6], 1),
        ("box3d2r", vec![4, 3, 12], 4),
        ("torus3d", vec![3, 4, 6], 3),
        ("star2d4r", vec![9, 16], 4),
        ("fdtd2d", vec![50, 10], 2),
        ("jacobi2d_f64", vec![1, 1], 1),
    ] {
        check_case(&Case::plane(program, &tile, cells), 19, 4);
    }
}

// The row of a const field that belongs to the step, also where a launch takes several steps.
#[test]
fn a_step_chooses_a_row() {
    let program = "param N\nparam T\ngrid G = [0..N-1]\ngrid Wall = [0..T-1, 0..N-1]\n\
                   field A : i32 on G\nconst field wall : i32 on Wall\nboundary A = nearest\n\
                   fn down -> A [i in 0..N-1] = wall(t+1, i) + min(A[0], min(A[-1], A[1]))\n\
                   steps T - 1\n";
    let sweep = program.replace("min(A[-1], A[1])", "A[1]").replace("boundary A = nearest\n", "");
    let sweep = sweep.replace("[i in 0..N-1]", "[i in 1..N-2]").replace("A[0],", "A'[-1],");
    let wavefront = Case::wavefront(&sweep, &[8]);
    for case in
        [Case::naive(program), Case::block(program, &[16], 3), Case::warp(program, 2, 4), wavefront]
    {
        // 40 cells and 43 rows.
        check_case(&case, 40, 42);
    }
    let context = stencil_dialects::context().unwrap();
    let (_, plan) = crate::common::compile(&context, &Case::block(program, &[16], 3));
    let sizes = [("N", 40), ("T", 43)].map(|(name, size)| (name.to_owned(), size)).into();
    let request = Request { sizes, steps: Some(43), ..Request::default() };
    let error = bind::bind(&plan, &request).unwrap_err().to_string();
    assert!(error.contains("unless T-steps >= 1") && error.contains("steps = 43"), "{error}");
}

/// Runs the wavefronts of a program under a limit of instructions, with a number of epochs per
/// launch; the difference from the oracle's result, or the simulator's error.
fn sweeps(case: &Case, (size, steps): (i64, i64), epochs: u32, limit: u64) -> Option<String> {
    let context = stencil_dialects::context().unwrap();
    let (module, plan) = crate::common::compile(&context, case);
    let text = plan.to_json().unwrap();
    assert!(text.contains("\"epochs\": 1"));
    let text = text.replace("\"epochs\": 1", &format!("\"epochs\": {epochs}"));
    let plan = Plan::from_json(&text, "case.plan.json").unwrap();
    let (bound, inputs) = crate::common::bind(&plan, size, steps);
    let settings = Settings { instruction_limit: limit, ..Settings::default() };
    let options = Options { settings, ..Options::default() };
    match crate::common::simulate(&module, &plan, &bound, &inputs, options) {
        Ok(run) => {
            crate::common::difference(&run.outputs, &crate::common::expected(case, &bound, &inputs))
        }
        Err(error) => Some(error),
    }
}

// Rows of 40 cells: the cell 32,768 to the right is outside of each.
#[test]
fn a_wavefront_spends_no_time_on_the_length_of_a_read() {
    let text = "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\n\
                boundary A = 0\n\
                fn f -> A [0..N-1, 0..M-1] = A[0,0] + A'[-1,32768] + 0.5*A'[-2,7] + A'[0,-1]\n\
                steps 1\n";
    let case = Case::wavefront(text, &[8, 16]);
    assert_eq!(sweeps(&case, (40, 2), 1, 500_000), None);
}

#[test]
fn skews_are_cut_in_three_dimensions_too() {
    let text = "param N\nparam M\nparam L\ngrid G = [0..N-1, 0..M-1, 0..L-1]\n\
                field A : f32 on G\nboundary A = 0\n\
                fn f -> A [0..N-1, 0..M-1, 0..L-1] = A[0,0,0] + A'[-1,-1,9000] + A'[-1,2,3]\n\
                + 0.5*A'[0,-1,8000] + A'[0,-2,5] + A'[0,0,-1]\nsteps 1\n";
    let case = Case::wavefront(text, &[3, 4, 8]);
    assert_eq!(sweeps(&case, (9, 2), 1, 1_000_000), None);
}

// Four tiles a row: from the third launch on, the flags are beyond 2^31.
#[test]
fn flags_of_wavefronts_may_wrap() {
    let case = Case::wavefront("smith-waterman", &[8, 16]);
    assert_eq!(sweeps(&case, (45, 6), 1 << 28, 1 << 32), None);
}
