//! Sweeps that leave rows in memory in place of fields: what they leave is that of the oracle, and
//! errors planted in what hands rows on, keeps them and finds the best place are found.

use crate::common::Case;
use crate::common::planted::{FLAGS, Order, Subject, Table};
use melior::Context;
use stencil_simulator::mutate::Mutation::*;
use stencil_simulator::mutate::Space::Global;

const ORDERS: [Order; 3] = [Order::Numbers, Order::Blocks(1), Order::Blocks(2)];

/// Every value depends on all above and to the left, so that none is lost unseen.
const MIXED: &str = "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\ngrid P = [0..N-1]\n\
                     grid L = [N-1, 0..M-1]\ntemp field H : i32 on G\nconst field p : i32 on P\n\
                     field last : i32 on L\n\
                     fn f -> H [i in 1..N-1, 1..M-1] = \
                     3*H'[-1,0] + 5*H'[0,-1] + 7*H'[-1,-1] + p(i)\n\
                     fn keep -> last [N-1, 0..M-1] = H[0,0]\n\
                     reduce top : i64 = argmax(H[0,0]) on [1..N-1, 1..M-1]\nsteps 1\n";

/// Two rows are handed on, and two kept. Reductions of unsigned numbers over boxes of other sizes,
/// the first with rows and a column that no piece covers.
const TWO: &str = "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\ngrid L = [N-2..N-1, 0..M-1]\n\
                   temp field H : u32 on G\nfield last : u32 on L\n\
                   fn f -> H [i in 2..N-1, 1..M-2] = 3*H'[-2,1] + 5*H'[0,-1] + 7*H'[-1,0] + 1\n\
                   fn keep -> last [N-2..N-1, 0..M-1] = last[0,0] + H[0,0]\n\
                   reduce top : i64 = argmax(H[0,0] / 7) on [0..N-1, 0..M-1]\n\
                   reduce low : i64 = argmin(H[0,0]) on [2..N-1, 1..M-2]\n\
                   reduce odd : i64 = count(H[0,0] % 2 == 1) on [3..N-1, 2..M-3]\nsteps 3\n";

fn subject<'c>(
    context: &'c Context,
    (text, per_thread): (&str, i64),
    sizes: &[i64],
    blocks: i64,
) -> Subject<'c> {
    let case = Case::strip(text, &[64, 8]).per_thread(&[per_thread, 1]);
    Subject::of_case(context, "rows", &case, (sizes, 2), blocks).in_orders(&ORDERS)
}

#[test]
fn what_a_sweep_leaves_is_that_of_the_oracle() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let sizes =
        [[1, 1], [1, 29], [29, 1], [2, 7], [64, 9], [65, 33], [66, 8], [129, 20], [200, 75]];
    for (text, least) in [("affine-gap-score", 1), (MIXED, 1), (TWO, 4)] {
        for size in sizes.iter().filter(|size| size.iter().all(|cells| *cells >= least)) {
            for (blocks, per_thread) in [(1, 2), (3, 1), (40, 2)] {
                // A lane has as many rows as are read above.
                let per_thread = if least == 4 { 2 } else { per_thread };
                let verdict = subject(&context, (text, per_thread), size, blocks).verdict(None);
                assert_eq!(verdict, "clean", "{text} {size:?} on {blocks} blocks");
            }
        }
    }
}

#[test]
fn errors_in_rows_that_sweeps_leave_are_found() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let mut table = Table::default();
    let rows = subject(&context, (MIXED, 2), &[201, 61], 2);
    let found = [
        // The row that is kept, the rows that are handed on inside the grid and at its ends, the
        // value of a row and its place.
        DropStore(Global, 13),
        DropStore(Global, 22),
        DropStore(Global, 29),
        DropStore(Global, 37),
        DropStore(Global, 38),
        ShiftStore(Global, 13),
        ShiftStore(Global, 22),
        ShiftStore(Global, 29),
        ShiftStore(Global, 38),
        // Slots of a ring; the last value of a row, the best one, and its place.
        NarrowMask(0),
        SwapSelect(24),
        StaleCarry(6, 0),
        StaleCarry(6, 3),
        StaleCarry(6, 4),
    ];
    table.add(&rows, &[FLAGS, &found].concat());
    insta::assert_snapshot!(table.0);
}
