//! Plants errors in the baselines of wavefronts, whose blocks meet at barriers of the whole grid,
//! by launches or by flags between square tiles: the simulator must find every one of them.

use crate::common::Case;
use crate::common::planted::{FAR, FLAGS, Order, Subject, Table};
use melior::Context;
use stencil_simulator::mutate::Mutation::{self, *};
use stencil_simulator::mutate::Peer::{Arrive, Signal, Wait};

/// Orders of blocks.
const ORDERS: [Order; 4] = [Order::Numbers, Order::Blocks(1), Order::Blocks(2), Order::Blocks(3)];

fn context() -> Context {
    stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"))
}

/// The wavefront of a program in tiles of 5 x 4 points, in three blocks and two sweeps.
fn subject<'c>(context: &'c Context, name: &'c str, program: &str, between: &str) -> Subject<'c> {
    let case = Case::combination(program, between, &[5, 4], 3);
    Subject::of_case(context, name, &case, (&[30, 22], 2), 3).in_orders(&ORDERS)
}

/// Reads of a later column: rows lie two times apart.
const LATER: &str = "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\n\
                     fn f -> A [1..N-1, 1..M-2] = 0.5*A'[-1,1] + 0.25*A'[-1,-1] + A'[0,-1]\n\
                     steps 1\n";

/// Errors of the barrier of all blocks.
const BARRIER: &[Mutation] = &[
    DropPeer(Arrive, 0),
    DropPeer(Wait, 0),
    WeakenArrive(0),
    WeakenWait(0),
    ShiftFlag(Wait, 0, 1),
    ShiftFlag(Arrive, 0, 1),
    SwapFlags(Wait, 0),
    SwapFlags(Arrive, 0),
    ShiftEpoch(Wait, 0, 1),
    ShiftEpoch(Wait, 0, -1),
    ShiftEpoch(Arrive, 0, 1),
    ShiftEpoch(Arrive, 0, -1),
    ForgetEpoch(Wait, 0),
    DropBarrier(0),
    CloseGuard(4),
    OpenGuard(5),
    SwapSelect(0),
    ShortGrid,
    ShrinkLoop(0),
    LateLoop(0),
    ShortFactor(0),
];

/// Errors of tiles on diagonals, behind so many loops and factors: the last tile row of a diagonal,
/// the diagonals of the rows before, the rows of a tile, the skew, the times of a tile.
fn diagonals(behind: isize) -> Vec<Mutation> {
    let factors = (1..=5).map(|place| ShortFactor(behind + place));
    let loops = [0, 1].map(|place| behind + place);
    let shrunk = loops.map(ShrinkLoop);
    factors.chain(shrunk).chain(loops.map(LateLoop)).collect()
}

/// What only takes longer, behind so many factors.
fn passed_over(behind: isize) -> (Mutation, &'static str) {
    (ShortFactor(behind), "tile rows without a tile on the diagonal are passed over")
}

#[test]
fn errors_of_grid_barriers_are_found() {
    let (context, mut table) = (context(), Table::default());
    let square = subject(&context, "square", "smith-waterman", ",grid-sync");
    let skewed = subject(&context, "skewed", "smith-waterman", ",hyperplane-skew,grid-sync");
    let later = subject(&context, "later", LATER, ",hyperplane-skew,grid-sync");
    table.add(&square, &[BARRIER, &diagonals(1)].concat());
    table.add(&skewed, &[BARRIER, &diagonals(1)].concat());
    table.add(&later, &[&[ShortFactor(0)], diagonals(1).as_slice()].concat());
    let one = "the thread that waits is the only one that reads the row above";
    table.add_equal(&square, &[passed_over(1), (DropBarrier(1), one)]);
    // With 9 rows and 4 times, no barrier has time to spare.
    let case = Case::combination(FAR, ",hyperplane-skew,grid-sync", &[9, 4], 3);
    let far = Subject::of_case(&context, "far", &case, (&[30, 22], 2), 3).in_orders(&ORDERS);
    table.add(&far, &[DropBarrier(0), DropBarrier(1), DivergentBarrier(0), DivergentBarrier(1)]);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_of_launches_by_turns_are_found() {
    let (context, mut table) = (context(), Table::default());
    let turns = [ShortTurns, ShiftTurn(1), ShiftTurn(-1), DropBarrier(0)];
    let square = subject(&context, "square", "smith-waterman", "");
    let skewed = subject(&context, "skewed", "smith-waterman", ",hyperplane-skew");
    let later = subject(&context, "later", LATER, ",hyperplane-skew");
    for turned in [&square, &skewed, &later] {
        table.add(turned, &[&turns, diagonals(0).as_slice()].concat());
    }
    let shared = "the blocks that are left take its tile rows";
    table.add_equal(&square, &[passed_over(0), (ShortGrid, shared)]);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_of_flags_are_found() {
    let (context, mut table) = (context(), Table::default());
    let flags = subject(&context, "flags", "smith-waterman", ",peer-sync");
    let loops = [DropBarrier(1), ShrinkLoop(1), ShrinkLoop(2)];
    let factors = [ShortFactor(1), ShortFactor(2), ShortFactor(3), ShortGrid];
    table.add(&flags, &[FLAGS, &loops, &factors].concat());
    // The strategy's own way, with a skew of two times.
    let later = subject(&context, "later", LATER, ",hyperplane-skew,peer-sync");
    let factors = [SwapFlags(Wait, 0), SwapFlags(Signal, 0), ShortFactor(2), ShortFactor(3)];
    table.add(&later, &factors);
    insta::assert_snapshot!(table.0);
}
