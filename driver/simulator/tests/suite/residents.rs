//! The strategy `resident`: its kernels equal the oracle in any order of blocks, and errors planted
//! between two rounds are found.

use crate::common::planted::{Order, Subject, Table};
use crate::common::{Case, check_case};
use melior::Context;
use stencil_simulator::mutate::Mutation::*;
use stencil_simulator::mutate::Peer::{Signal, Wait};
use stencil_simulator::mutate::Space::{Global, Shared};

/// A program on a known grid, in the dimensions of a tile.
fn source(kind: &str) -> String {
    let two = "grid G = [0..30, 0..52]\nfield A : f32 on G\n";
    let three = "grid G = [0..10, 0..13, 0..18]\nfield A : f32 on G\n";
    let all = match kind {
        "star" => format!(
            "{two}fn mean -> A [1..29, 1..51] =\n\
             0.25 * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1])\n"
        ),
        // All neighbours, at different distances, and the number of the step.
        "upwind" => format!(
            "{two}fn wind -> A [2..29, 3..51] =\n\
             0.25 * (A[-2,-3] + A[1,1] + A[0,-1] + A[0,0]) + f32(t % 3)\n"
        ),
        "two" => "grid G = [0..30, 0..52]\nfield P : f32 on G\nfield U : f32 on G\n\
                  const field C : f32 on G\n\
                  fn wave -> (P, U) [1..29, 1..51] = (U[0,0], 2*U[0,0] - P[0,0] +\n\
                  C[0,0] * (U[-1,0] + U[1,0] + U[0,-1] + U[0,1] - 4*U[0,0]))\n"
            .to_owned(),
        "rule" => format!(
            "{two}boundary A = reflect\nfn f -> A [0..30, 0..52] =\n\
             0.25 * (A[-1,0] + A[2,0] + A[0,-1] + A[0,1])\n"
        ),
        "partial" => {
            format!("{}fn f -> A [1..29, 1..51] = A[-1,0] / A[0,1]\n", two.replace("f32", "i32"))
        }
        "cross" => format!(
            "{three}fn f -> A [1..9, 1..12, 1..17] = 0.125 * (A[-1,0,0] + A[1,0,0] + A[0,-1,0]\n\
             + A[0,1,0] + A[0,0,-1] + A[0,0,1] + 2*A[0,0,0])\n"
        ),
        _ => format!(
            "{three}fn f -> A [1..9, 1..12, 1..17] =\n\
             0.25 * (A[-1,-1,-1] + A[1,1,0] + A[0,1,-1] + A[0,0,1])\n"
        ),
    };
    all + "steps 7\n"
}

/// Rounds of some steps.
fn resident(kind: &str, tile: &[i64], per_thread: &[i64], (height, rounds): (i64, i64)) -> Case {
    let list = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let passes = format!(
        "tile-overlapped{{strategy=resident tile={} per-thread={} pyramid-height={height}}},\
         stay-resident{{rounds={rounds}}},split-interior,lower-resident",
        list(tile),
        list(per_thread)
    );
    Case { passes: Some(passes), ..Case::naive(&source(kind)) }
}

// Odd and even rounds, and rounds and steps that are left over; several fields, boundary rules,
// functions without a result for some operands, and a tile that is the whole grid.
#[test]
fn residents_equal_the_oracle() {
    for (kind, tile, per_thread, rounds) in [
        ("star", vec![8, 16], vec![2, 4], (2, 3)),
        ("star", vec![5, 8], vec![1, 2], (1, 4)),
        ("star", vec![31, 56], vec![4, 4], (1, 7)),
        ("upwind", vec![9, 16], vec![3, 4], (2, 2)),
        ("two", vec![8, 12], vec![2, 2], (3, 2)),
        ("rule", vec![7, 20], vec![2, 4], (2, 3)),
        ("partial", vec![8, 16], vec![2, 4], (1, 3)),
        ("cross", vec![4, 5, 8], vec![2, 2, 4], (2, 3)),
        ("cross", vec![3, 4, 16], vec![1, 3, 4], (1, 7)),
        ("corners", vec![4, 4, 8], vec![2, 3, 2], (2, 3)),
    ] {
        check_case(&resident(kind, &tile, &per_thread, rounds), 1, 7);
    }
}

// The grid is smaller than a tile with its halo.
#[test]
fn small_grids_have_a_tile_by_default() {
    for (rows, columns) in [(2, 2), (4, 4), (7, 60), (9, 7)] {
        let source = format!(
            "grid G = [0..{rows}, 0..{columns}]\nfield A : f32 on G\n\
             fn mean -> A [1..{}, 1..{}] = 0.25 * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1])\n\
             steps 7\n",
            rows - 1,
            columns - 1
        );
        let passes = "tile-overlapped{strategy=resident pyramid-height=3},\
                      stay-resident{rounds=2},split-interior,lower-resident";
        check_case(&Case { passes: Some(passes.to_owned()), ..Case::naive(&source) }, 1, 7);
    }
}

/// Orders of blocks.
const ORDERS: [Order; 4] = [Order::Numbers, Order::Blocks(1), Order::Blocks(2), Order::Blocks(3)];

fn subject<'c>(context: &'c Context, name: &'c str, case: &Case, blocks: i64) -> Subject<'c> {
    Subject::of_case(context, name, case, (&[], 12), blocks).in_orders(&ORDERS)
}

#[test]
fn errors_between_rounds_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    let case = resident("star", &[8, 16], &[2, 4], (2, 3));
    let found = [
        DropPeer(Wait, -1),
        DropPeer(Wait, -2),
        DropPeer(Signal, -1),
        DropPeer(Signal, -2),
        WeakenWait(-1),
        WeakenSignal(-1),
        ShiftFlag(Wait, -1, 1),
        ShiftFlag(Signal, -1, 1),
        ShiftEpoch(Wait, -1, -1),
        ShiftEpoch(Signal, -1, 1),
        ForgetEpoch(Wait, -1),
        ForgetEpoch(Signal, -1),
        DropBarrier(-1),
        DropBarrier(-2),
        DropStore(Global, -1),
        DropStore(Shared, -1),
        ShiftLoad(Global, -1),
        OpenGuard(-1),
    ];
    table.add(&subject(&context, "rows", &case, 9), &found);
    let case = resident("cross", &[4, 5, 8], &[2, 2, 4], (1, 6));
    let found = [DropPeer(Wait, -1), DropPeer(Signal, -1), ForgetEpoch(Wait, -1), DropBarrier(-1)];
    table.add(&subject(&context, "planes", &case, 6), &found);
    insta::assert_snapshot!(table.0);
}
