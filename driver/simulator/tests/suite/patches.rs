//! The strategy `patch`: its kernels equal the oracle, and errors planted in them are found.

use crate::common::planted::{Subject, Table};
use crate::common::{Case, check_case};
use stencil_simulator::mutate::Mutation::*;
use stencil_simulator::mutate::Space::{Global, Shared};

fn patch(program: &str, tile: &[i64], per_thread: &[i64], height: i64) -> Case {
    let case = Case::block(program, tile, height).per_thread(per_thread);
    Case { strategy: "patch".to_owned(), ..case }
}

// One row a lane and more, rows that come from the second part above, rows of lanes that share a
// warp, vectors of one access and of several, several fields and functions, boundary rules.
#[test]
fn patches_equal_the_oracle() {
    for (program, tile, per_thread, height) in [
        ("heat2d", [16, 32], [2, 4], 2),
        ("heat2d", [7, 8], [1, 2], 3),
        ("fdtd2d", [9, 24], [3, 4], 3),
        ("box2d2r", [12, 32], [1, 4], 2),
        ("box2d2r", [5, 48], [3, 8], 3),
        ("j2d9pt", [20, 16], [4, 2], 2),
        ("jacobi2d_f64", [11, 40], [2, 4], 4),
        ("hotspot2d", [16, 32], [4, 4], 3),
        ("blur2d", [10, 12], [2, 3], 2),
        ("torus2d", [9, 20], [3, 4], 2),
        ("life2d", [16, 64], [2, 4], 2),
    ] {
        check_case(&patch(&source(program), &tile, &per_thread, height), 53, 7);
    }
}

// In three dimensions: parts of planes and of rows, lanes that share a warp, footprints from star
// to box and radius 2.
#[test]
fn patches_of_planes_equal_the_oracle() {
    for (program, tile, per_thread, height) in [
        ("star3d1r", [4, 6, 12], [1, 2, 4], 2),
        ("star3d1r", [5, 4, 8], [2, 1, 2], 3),
        ("star3d2r", [4, 4, 16], [1, 3, 4], 2),
        ("j3d27pt", [6, 4, 12], [3, 2, 4], 2),
        ("wave3d", [4, 4, 8], [2, 2, 1], 2),
        ("torus3d", [4, 6, 16], [2, 2, 4], 2),
        ("jacobi3d_f64", [3, 5, 8], [1, 2, 2], 1),
    ] {
        check_case(&patch(program, &tile, &per_thread, height), 19, 4);
    }
}

/// A program of the test suite by its name, or one on a torus.
fn source(program: &str) -> String {
    match program {
        "torus2d" => "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\n\
                      boundary A = periodic\nfn ring -> A [0..N-1, 0..M-1] =\n\
                      0.25 * (A[-1,1] + A[1,0] + A[0,-1] + A[0,2])\nsteps 7\n"
            .to_owned(),
        name => name.to_owned(),
    }
}

#[test]
fn errors_in_patches_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    // Tiles at rims and inside; rows above and below come from other parts.
    let case = patch("heat2d", &[8, 32], &[2, 4], 2);
    let patches = Subject::of_case(&context, "patch", &case, (&[45, 131], 3), 1);
    let found = [
        DropBarrier(0),
        DropBarrier(1),
        DropBarrier(2),
        DropBarrier(3),
        DivergentBarrier(0),
        DivergentBarrier(-1),
        DropShuffle(0),
        DropShuffle(1),
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
        OpenGuard(1),
        OpenGuard(-1),
        CloseGuard(1),
        CloseGuard(-1),
        ShortFactor(0),
        ShortFactor(1),
        ShortFactor(2),
        ShortFactor(3),
        ShiftTerm(0),
        WrongLimit(0),
        SwapSelect(0),
        SwapSelect(-1),
        AliasShared,
        ReadOutput,
        ShortGrid,
        SwapThreads,
    ];
    table.add(&patches, &found);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_in_patches_with_a_margin_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    // The sizes are known: tiles at the ends of the grid hold cells of the margin too, and lanes
    // check those columns alone that may lie at a rim.
    let text = "grid G = [0..39, 0..95]\nfield A : f32 on G\n\
                fn mean -> A [1..38, 1..94] = 0.25 * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1])\n\
                steps 3\n";
    let case = patch(text, &[12, 24], &[2, 4], 2);
    let margin = Subject::of_case(&context, "margin", &case, (&[], 3), 1);
    let found = [
        DropBarrier(0),
        DropBarrier(2),
        DropShuffle(0),
        ShiftLoad(Shared, -1),
        DropStore(Shared, -1),
        DropStore(Global, -1),
        OpenGuard(0),
        OpenGuard(-1),
        CloseGuard(-1),
        ShortFactor(0),
        ShortFactor(1),
        WrongLimit(0),
        WrongLimit(1),
        SwapSelect(0),
        SwapSelect(1),
        SwapSelect(-1),
        ShortGrid,
    ];
    table.add(&margin, &found);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_in_patches_of_planes_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    let case = patch("star3d1r", &[4, 4, 8], &[1, 2, 4], 2);
    let planes = Subject::of_case(&context, "planes", &case, (&[13, 24, 27], 3), 1);
    let found = [
        DropBarrier(0),
        DropBarrier(1),
        DropBarrier(-1),
        DropShuffle(0),
        ShiftLane(-1),
        ShiftLoad(Shared, 0),
        ShiftLoad(Shared, -1),
        ShiftStore(Shared, 0),
        DropStore(Shared, 0),
        DropStore(Shared, -1),
        DropStore(Global, 0),
        DropStore(Global, -1),
        OpenGuard(0),
        OpenGuard(-1),
        CloseGuard(-1),
        ShortFactor(0),
        ShortFactor(2),
        AliasShared,
        ReadOutput,
        ShortGrid,
    ];
    table.add(&planes, &found);
    insta::assert_snapshot!(table.0);
}
