//! The strategy `relay`: its kernels equal the oracle, and errors planted in them are found.

use crate::common::planted::{Subject, Table};
use crate::common::{Case, check_case};
use stencil_simulator::mutate::Mutation::*;
use stencil_simulator::mutate::Space::{Global, Shared};

/// Tiles of a program with so many cells a lane, steps, and most warps of a block.
fn relay(program: &str, tile: [i64; 2], [width, height, warps]: [i64; 3], options: &str) -> Case {
    let [rows, columns] = tile;
    let passes = format!(
        "tile-overlapped{{strategy=relay tile={rows},{columns} per-thread=1,{width} \
         pyramid-height={height}}},rotate-buffers,split-interior,lower-relay{{warps={warps} \
         {options}}}"
    );
    Case { passes: Some(passes), ..Case::naive(program) }
}

// One warp and several, one step a warp and several, several rows between barriers, rows of whole
// accesses and of single cells, stars and boxes of radius 1 and 2, boundary rules, 8 to 64 bits.
#[test]
fn relays_equal_the_oracle() {
    for (program, tile, shape, options) in [
        ("star2d1r", [16, 56], [3, 4, 4], ""),
        ("star2d1r", [7, 40], [3, 4, 2], "rows=2"),
        ("star2d1r", [5, 16], [1, 4, 1], "prefetch=0"),
        ("box2d1r", [12, 37], [3, 6, 3], "rows=3"),
        ("box2d2r", [9, 48], [3, 2, 2], ""),
        ("j2d9pt", [20, 80], [5, 6, 3], "rows=2"),
        ("jacobi2d_f64", [11, 44], [3, 8, 4], ""),
        ("blur2d", [10, 64], [3, 4, 4], ""),
        ("torus2d", [9, 50], [3, 3, 3], ""),
        ("life2d", [16, 60], [3, 4, 2], "rows=2"),
        ("edges2d", [13, 70], [5, 4, 2], ""),
        ("clock2d", [13, 40], [3, 6, 3], ""),
    ] {
        check_case(&relay(&source(program), tile, shape, options), 67, 9);
    }
}

/// A program of the test suite by its name; or one on a torus, one with pieces and a rule, and one
/// that depends on the step.
fn source(program: &str) -> String {
    let grid = "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\n";
    match program {
        "torus2d" => format!(
            "{grid}boundary A = periodic\nfn ring -> A [0..N-1, 0..M-1] =\n\
             0.25 * (A[-1,1] + A[1,0] + A[0,-1] + A[0,2])\nsteps 7\n"
        ),
        "edges2d" => format!(
            "{grid}boundary A = reflect\nfn f -> A {{\n\
             [0..N-1, 0..0] = A[0,0]\n\
             [0..N-1, 1..M-1] = 0.25 * (A[-1,0] + A[2,0] + A[0,-1] + A[0,1])\n}}\nsteps 7\n"
        ),
        "clock2d" => format!(
            "{grid}fn f -> A [1..N-2, 1..M-2] = 0.5 * (A[-1,0] + A[0,1]) + f32(t % 3)\n\
             steps 7\n"
        ),
        name => name.to_owned(),
    }
}

#[test]
fn errors_in_relays_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    // Tiles at rims of rows and of columns, and inside.
    let case = relay("star2d1r", [12, 56], [3, 2, 2], "");
    let relays = Subject::of_case(&context, "relay", &case, (&[45, 231], 3), 1);
    let found = [
        DropBarrier(0),
        DropBarrier(1),
        DropBarrier(-1),
        DivergentBarrier(0),
        DivergentBarrier(-1),
        DropShuffle(0),
        DropShuffle(-1),
        ShiftLane(0),
        ShiftLane(-1),
        ShiftLoad(Global, 0),
        ShiftLoad(Global, -1),
        ShiftLoad(Shared, 0),
        ShiftLoad(Shared, -1),
        ShiftStore(Shared, 0),
        ShiftStore(Shared, -1),
        ShiftStore(Global, 0),
        ShiftStore(Global, -1),
        DropStore(Shared, 0),
        DropStore(Shared, -1),
        DropStore(Global, 0),
        DropStore(Global, -1),
        OpenGuard(0),
        OpenGuard(-1),
        CloseGuard(-1),
        ShortFactor(0),
        ShortFactor(1),
        ShortFactor(2),
        ShortFactor(3),
        ShiftTerm(0),
        WrongLimit(1),
        SwapSelect(0),
        SwapSelect(-1),
        ReadOutput,
        ShortGrid,
        SwapThreads,
    ];
    table.add(&relays, &found);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_in_relays_of_known_sizes_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    // The first row of tiles is short, and lanes check those columns alone that may lie at a rim.
    let text = "grid G = [0..59, 0..159]\nfield A : f64 on G\n\
                fn mean -> A [1..58, 1..158] = 0.25 * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1])\n\
                steps 7\n";
    let case = relay(text, [10, 48], [3, 4, 2], "rows=2");
    let known = Subject::of_case(&context, "known", &case, (&[], 7), 1);
    let found = [
        DropBarrier(0),
        DropBarrier(-1),
        DropShuffle(0),
        DropShuffle(-1),
        ShiftLoad(Shared, 0),
        ShiftLoad(Shared, -1),
        DropStore(Shared, -1),
        DropStore(Global, 0),
        DropStore(Global, -1),
        OpenGuard(0),
        OpenGuard(-1),
        CloseGuard(-1),
        ShortFactor(0),
        ShortFactor(1),
        SwapSelect(0),
        SwapSelect(-1),
        ShortGrid,
    ];
    table.add(&known, &found);
    insta::assert_snapshot!(table.0);
}
