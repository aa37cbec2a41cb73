//! Plants errors in launches of several sweeps, each of which follows the one before: the simulator
//! must find every one of them. Numbers count from the end: the last kernel has two sweeps.

use crate::common::Case;
use crate::common::planted::{Order, Subject, Table};
use melior::Context;
use stencil_simulator::mutate::Mutation::*;
use stencil_simulator::mutate::Peer::{Signal, Wait};

/// Orders of blocks.
const ORDERS: [Order; 4] = [Order::Numbers, Order::Blocks(1), Order::Blocks(2), Order::Blocks(3)];

/// A program in two launches of two sweeps each, with so many blocks.
fn subject<'c>(
    context: &'c Context,
    name: &'c str,
    case: Case,
    (sizes, blocks): (&[i64], i64),
) -> Subject<'c> {
    let case = Case { pyramid_height: Some(2), ..case };
    Subject::of_case(context, name, &case, (sizes, 4), blocks).in_orders(&ORDERS)
}

#[test]
fn errors_between_sweeps_of_wavefronts_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    // Five tile rows of five rows; the waits are for the tile rows of the sweep before above,
    // beside and below, then for the one above of the same sweep. `ShiftFlag(Wait, -2, 1)` changes
    // nothing: a tile then waits for the row two below, which is behind the row below. At the last
    // but one row, where that is no row, the tile above has waited for the row that is needed.
    let case = Case::wavefront("heat2d-sweep", &[5, 4]);
    let wavefront = subject(&context, "wavefront", case, (&[25, 29], 10));
    let found = [
        DropPeer(Wait, -1),
        DropPeer(Wait, -2),
        DropPeer(Signal, -1),
        WeakenWait(-2),
        WeakenSignal(-1),
        ShiftFlag(Wait, -2, -1),
        // The tile row of the same sweep: it is not there yet when it is waited for.
        ShiftFlag(Wait, -2, 5),
        ShiftFlag(Signal, -1, 5),
        SwapFlags(Wait, -2),
        ShiftEpoch(Wait, -2, -1),
        ShiftEpoch(Signal, -1, 1),
        ForgetEpoch(Wait, -2),
        ForgetEpoch(Signal, -1),
        DropBarrier(-2),
    ];
    table.add(&wavefront, &found);
    let case = Case::wavefront("gauss-seidel3d", &[2, 3, 4]);
    let planes = subject(&context, "planes", case, (&[5, 8, 9], 18));
    table.add(&planes, &[DropPeer(Signal, -1), ForgetEpoch(Wait, -3)]);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_between_sweeps_of_strips_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    // The waits are for the sweep before, the tile row above, and the sweep before again.
    let case = Case::strip("sor2d", &[64, 32]).per_thread(&[1, 1]);
    let strips = subject(&context, "strips", case, (&[140, 101], 6));
    let found = [
        DropPeer(Wait, -1),
        DropPeer(Wait, -2),
        DropPeer(Wait, -3),
        DropPeer(Signal, -1),
        WeakenWait(-1),
        WeakenSignal(-1),
        ShiftFlag(Wait, -1, 3),
        ShiftFlag(Wait, -1, -1),
        ShiftFlag(Signal, -1, 3),
        SwapFlags(Wait, -1),
        ShiftEpoch(Wait, -1, -1),
        ShiftEpoch(Signal, -1, 1),
        ForgetEpoch(Wait, -1),
        ForgetEpoch(Signal, -1),
    ];
    table.add(&strips, &found);
    insta::assert_snapshot!(table.0);
}
