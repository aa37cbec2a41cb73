//! Plants errors in correct kernels: the simulator must find every one of them.

use crate::common::planted::{FAR, FLAGS, Order, Subject, Table};
use crate::common::{Case, bind};
use melior::Context;
use stencil_runtime::array::{Array, Data};
use stencil_runtime::plan::Plan;
use stencil_simulator::mutate::Mutation::*;
use stencil_simulator::mutate::Peer::{Signal, Wait};
use stencil_simulator::mutate::Space::{Global, Shared};

fn context() -> Context {
    stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"))
}

/// The kernel by hand.
fn wave(context: &Context) -> Subject<'_> {
    let text = include_str!("../data/wave.mlir");
    let plan = Plan::from_json(include_str!("../data/wave.plan.json"), "wave.plan.json")
        .unwrap_or_else(|error| panic!("{error}"));
    let (bound, inputs) = bind(&plan, 9, 1);
    let mut expected = inputs.clone();
    let columns = bound.shapes[0][1];
    for array in expected.values_mut() {
        let (_, Data::F32(mut cells)) = array.clone().into_parts() else { panic!("A is f32") };
        for cell in columns..cells.len() {
            cells[cell] = cells[cell - columns] * 0.5 + 1.0;
        }
        *array = Array::new(array.shape().to_vec(), Data::F32(cells))
            .unwrap_or_else(|error| panic!("{error}"));
    }
    Subject::of_text(context, "wave", (text, plan), (bound, inputs), expected)
}

#[test]
fn errors_in_naive_and_block_kernels_are_found() {
    let (context, mut table) = (context(), Table::default());
    // A size that leaves tiles at the rim and tiles inside.
    let case = |name, case| Subject::of_case(&context, name, &case, (&[70, 73], 3), 1);
    let naive = [
        SwapLoadIndices(Global, 0),
        ShiftLoad(Global, 1),
        ShiftStore(Global, 0),
        DropStore(Global, 0),
        OpenGuard(0),
        OpenGuard(1),
        CloseGuard(0),
        WrongPitch(0),
        WrongPitch(2),
        ReadOutput,
        WriteInput,
        ShortGrid,
        SwapThreads,
    ];
    table.add(&case("naive", Case::naive("heat2d")), &naive);
    let block = [
        DropBarrier(0),
        DropBarrier(1),
        DropBarrier(-1),
        DivergentBarrier(0),
        ShrinkLoop(0),
        ShrinkLoop(1),
        GrowLoop(0),
        DoubleStep(0),
        SwapLoadIndices(Shared, 0),
        SwapStoreIndices(Shared, 0),
        ShiftLoad(Shared, 1),
        ShiftStore(Shared, 0),
        ShiftStore(Global, 0),
        DropStore(Shared, 0),
        DropStore(Shared, -1),
        DropStore(Global, 0),
        OpenGuard(0),
        OpenGuard(-1),
        CloseGuard(1),
        WrongPitch(0),
        AliasShared,
        ShortGrid,
        ShortFactor(1),
        SwapThreads,
    ];
    table.add(&case("block 2", Case::block("heat2d", &[16, 32], 2)), &block);
    let block = [
        DropBarrier(0),
        DropBarrier(1),
        DropBarrier(2),
        ShrinkLoop(2),
        ShiftLoad(Shared, 3),
        AliasShared,
        ShortFactor(1),
    ];
    table.add(&case("block 3", Case::block("heat2d", &[16, 32], 3)), &block);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_in_a_wave_by_hand_are_found() {
    let (context, mut table) = (context(), Table::default());
    let orders = [Order::Numbers, Order::Blocks(1), Order::Blocks(2)];
    let found = [
        DropBarrier(0),
        DropBarrier(1),
        DivergentBarrier(0),
        DropPeer(Signal, 0),
        DropPeer(Wait, 0),
        WeakenSignal(0),
        WeakenWait(0),
        ShiftFlag(Wait, 0, 1),
        ShiftEpoch(Wait, 0, 1),
        OpenGuard(1),
    ];
    table.add(&wave(&context).in_orders(&orders), &found);
    insta::assert_snapshot!(table.0);
}

/// Rows of 131 cells: the third tile of five lies inside, where code without checks runs.
const ROWS: &[i64] = &[45, 131];

#[test]
fn errors_in_streams_are_found() {
    let (context, mut table) = (context(), Table::default());
    let case = Case::stream("heat2d", &[8, 32], 2);
    let stream = Subject::of_case(&context, "stream", &case, (ROWS, 3), 1);
    let found = [
        LateLoop(0),
        LateLoop(1),
        ShrinkLoop(1),
        DoubleStep(0),
        StaleCarry(0, 0),
        StaleCarry(0, 8),
        StaleCarry(1, 6),
        DropShuffle(0),
        DropShuffle(6),
        ShiftLane(1),
        ShiftLane(8),
        ShiftLoad(Global, 0),
        ShiftStore(Global, 1),
        DropStore(Global, 2),
        OpenGuard(1),
        OpenGuard(4),
        CloseGuard(1),
        CloseGuard(4),
        ShortFactor(2),
        ShiftTerm(5),
        WrongLimit(2),
        SwapSelect(0),
        SwapSelect(7),
        ShiftPrefetch(0, 1000),
        ShiftPrefetch(7, 1000),
        ShiftRows(1),
    ];
    table.add(&stream, &found);
    let equal = [
        (DropPrefetch(0), "a prefetch brings rows into a cache and no value into a register"),
        (DropPrefetch(7), "the same in the code with checks"),
        (ShiftPrefetch(0, 1), "the same: another row of the grid is brought"),
    ];
    table.add_equal(&stream, &equal);
    insta::assert_snapshot!(table.0);
}

// 2 x 3 of the tiles of a launch are halves: those of the first and the last column.
#[test]
fn errors_in_streams_with_halves_are_found() {
    let (context, mut table) = (context(), Table::default());
    let text = "grid G = [0..22, 0..9]\nfield A : f64 on G\n\
                fn mean -> A [1..21, 1..8] = 0.25 * (A[-1,0] + A[1,0] + A[0,-1] + A[0,1])\n\
                steps 3\n";
    let case = Case::stream(text, &[7, 6], 1);
    let halves = Subject::of_case(&context, "halves", &case, (&[], 3), 1);
    let found = [
        ShrinkLoop(1),
        LateLoop(1),
        StaleCarry(1, 0),
        StaleCarry(1, 4),
        OpenGuard(4),
        OpenGuard(5),
        CloseGuard(4),
        CloseGuard(5),
        ShortFactor(0),
        ShortFactor(1),
        ShortFactor(2),
        ShortFactor(3),
        ShiftTerm(5),
        WrongLimit(2),
        WrongLimit(3),
        WrongLimit(5),
        SwapSelect(0),
        SwapSelect(2),
        SwapSelect(4),
        ShortGrid,
    ];
    table.add(&halves, &found);
    insta::assert_snapshot!(table.0);
}

// Launches in bands: what a plan says of rows, and where a band begins.
#[test]
fn errors_in_bands_are_found() {
    let (context, mut table) = (context(), Table::default());
    let orders = [0, 1, 2, 3].map(Order::Bands);
    let two = Case::stream("heat2d", &[8, 32], 2);
    let three = Case::stream("star3d1r", &[4, 6, 12], 2).per_thread(&[1, 2, 4]);
    let two = Subject::of_case(&context, "bands", &two, (ROWS, 5), 1);
    let three = Subject::of_case(&context, "bands 3-D", &three, (&[19, 8, 14], 5), 1);
    let found = [ShortReach, ShortRows, ShiftRows(1), ShiftRows(-1), ShortGrid];
    for bands in [two, three] {
        table.add(&bands.in_orders(&orders), &found);
    }
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_in_streams_of_planes_are_found() {
    let (context, mut table) = (context(), Table::default());
    let case = Case::stream("star3d1r", &[4, 6, 12], 2).per_thread(&[1, 2, 4]);
    let planes = Subject::of_case(&context, "planes", &case, (&[11, 14, 19], 3), 1);
    let found = [
        DropBarrier(5),
        DropBarrier(7),
        DropBarrier(9),
        DivergentBarrier(6),
        ShrinkLoop(2),
        GrowLoop(3),
        LateLoop(3),
        DoubleStep(2),
        NarrowMask(6),
        NarrowMask(7),
        NarrowMask(9),
        AliasShared,
        ReadOutput,
        ShortGrid,
    ];
    table.add(&planes, &found);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_in_planes_are_found() {
    let (context, mut table) = (context(), Table::default());
    let case = Case::plane("star3d2r", &[4, 3, 10], 1);
    let planes = Subject::of_case(&context, "planes", &case, (&[11, 8, 20], 3), 1);
    let found = [
        DropBarrier(0),
        DropBarrier(1),
        DivergentBarrier(0),
        ShrinkLoop(0),
        GrowLoop(0),
        LateLoop(0),
        DoubleStep(0),
        StaleCarry(0, 0),
        StaleCarry(0, 5),
        ShiftLoad(Shared, 0),
        ShiftLoad(Shared, 5),
        ShiftStore(Shared, 0),
        ShiftStore(Shared, -1),
        DropStore(Shared, 0),
        DropStore(Shared, -1),
        DropStore(Global, 0),
        OpenGuard(-2),
        CloseGuard(-1),
        ReadOutput,
        ShortGrid,
    ];
    table.add(&planes, &found);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_in_warps_are_found() {
    let (context, mut table) = (context(), Table::default());
    let case = Case::warp("jacobi1d3", 4, 4);
    let warp = Subject::of_case(&context, "warp", &case, (&[600], 6), 1);
    let found = [
        ShrinkLoop(0),
        GrowLoop(1),
        DoubleStep(0),
        StaleCarry(0, 0),
        StaleCarry(1, 2),
        DropShuffle(0),
        DropShuffle(3),
        ShiftLane(1),
        ShiftLane(4),
        ShiftLoad(Global, 0),
        ShiftStore(Global, 4),
        DropStore(Global, 1),
        OpenGuard(1),
        CloseGuard(2),
        ShortFactor(0),
        ShortFactor(3),
        ShiftTerm(0),
        ShiftTerm(4),
        WrongLimit(1),
        WrongLimit(4),
        SwapSelect(0),
        SwapSelect(4),
        ShortGrid,
    ];
    table.add(&warp, &found);
    insta::assert_snapshot!(table.0);
}

/// Orders of blocks in which wavefronts run.
const ORDERS: [Order; 3] = [Order::Numbers, Order::Blocks(1), Order::Blocks(2)];

#[test]
fn errors_in_wavefronts_are_found() {
    let (context, mut table) = (context(), Table::default());
    let of_case = |name, case, sizes, blocks| {
        Subject::of_case(&context, name, &case, (sizes, 2), blocks).in_orders(&ORDERS)
    };
    // With 5 rows and 4 times, a wait has no time to spare.
    let case = Case::wavefront("smith-waterman", &[5, 4]);
    let wavefront = of_case("wavefront", case, &[21, 29], 3);
    let loops = [ShrinkLoop(1), ShrinkLoop(2), GrowLoop(2), DoubleStep(2), ShortFactor(0)];
    table.add(&wavefront, &[&[DropBarrier(1)], FLAGS, &loops, &[ShortGrid]].concat());
    let equal = [
        (DropBarrier(0), "the thread that waits is the only one that reads the row above"),
        (OpenGuard(3), "all threads signal the same count, after the same barrier"),
        (GrowLoop(1), "a tile without points; waits of the next launch are for two more"),
    ];
    table.add_equal(&wavefront, &equal);
    // The second thread reads the row above too, and what its tile must wait for.
    let two = of_case("two rows", Case::wavefront(FAR, &[5, 4]), &[23, 19], 3);
    table.add(&two, &[DropBarrier(0), DropBarrier(1), ShortFactor(1)]);
    // One tile a row: a count beyond it is the next launch's.
    let one = of_case("one tile", Case::wavefront("smith-waterman", &[5, 8]), &[21, 3], 3);
    table.add(&one, &[GrowLoop(1), ForgetEpoch(Wait, 0)]);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_in_wavefronts_of_planes_are_found() {
    let (context, mut table) = (context(), Table::default());
    let case = Case::wavefront("gauss-seidel3d", &[2, 3, 4]);
    // A block for each tile row: none knows of others but by waits.
    let planes = Subject::of_case(&context, "planes", &case, (&[7, 13, 9], 2), 40);
    let found = [
        DropBarrier(1),
        DropPeer(Wait, 0),
        DropPeer(Wait, 1),
        DropPeer(Signal, 0),
        WeakenWait(1),
        ShiftFlag(Wait, 1, 1),
        ShiftEpoch(Wait, 0, -1),
        ShiftEpoch(Wait, 1, -1),
        ForgetEpoch(Wait, 1),
        ShrinkLoop(2),
        ShortFactor(0),
        ShortFactor(2),
        ShortFactor(3),
        ShortFactor(4),
    ];
    table.add(&planes.in_orders(&ORDERS), &found);
    insta::assert_snapshot!(table.0);
}

#[test]
fn errors_in_strips_are_found() {
    let (context, mut table) = (context(), Table::default());
    let of_case = |name, rows| {
        let case = Case::strip("sor2d", &[64, 8]).per_thread(&[rows, 1]);
        Subject::of_case(&context, name, &case, (&[140, 61], 2), 2)
    };
    let found = [
        DropBarrier(0),
        DropPeer(Signal, 0),
        DropPeer(Wait, 0),
        WeakenSignal(0),
        WeakenWait(0),
        ShiftFlag(Wait, 0, 1),
        ShiftFlag(Signal, 0, 1),
        SwapFlags(Wait, 0),
        SwapFlags(Signal, 0),
        ShiftEpoch(Wait, 0, 1),
        ShiftEpoch(Signal, 0, -1),
        ForgetEpoch(Wait, 0),
        ForgetEpoch(Signal, 0),
        NarrowMask(0),
        NarrowMask(1),
        DropShuffle(0),
        ShiftLane(0),
    ];
    // Two strips in a block, and one of two rows in a lane.
    let two = of_case("two strips", 1).in_orders(&ORDERS[..2]);
    table.add(&two, &found);
    let one = of_case("one strip", 2).in_orders(&ORDERS[..2]);
    let of_one = [
        DropBarrier(0),
        ShiftEpoch(Wait, 0, -1),
        ShiftEpoch(Signal, 0, 1),
        ShrinkLoop(0),
        ShrinkLoop(2),
        LateLoop(2),
        StaleCarry(0, 0),
        StaleCarry(0, 1),
        NarrowMask(3),
        NarrowMask(4),
        ShiftLane(1),
        DropShuffle(1),
        ShiftLoad(Shared, 0),
        ShiftStore(Shared, 1),
        DropStore(Shared, 1),
        ShortFactor(4),
        ShiftTerm(2),
        SwapSelect(1),
        AliasShared,
    ];
    table.add(&one, &of_one);
    let equal = [(
        GrowLoop(2),
        "a turn without tiles; waits of the next launch are for more than one tile",
    )];
    table.add_equal(&one, &equal);
    insta::assert_snapshot!(table.0);
}
