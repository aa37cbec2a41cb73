//! Sweeps that leave rows in memory in place of fields: what they leave is that of the oracle, and
//! errors planted in what hands rows on, keeps them and finds the best place are found.

use crate::common::Case;
use crate::common::planted::{FLAGS, Order, Subject, Table};
use melior::Context;
use stencil_simulator::mutate::Mutation::{self, *};
use stencil_simulator::mutate::Space::Global;

const ORDERS: [Order; 3] = [Order::Numbers, Order::Blocks(1), Order::Blocks(2)];

/// Every value depends on all above and to the left, so that none is lost unseen.
const MIXED: &str = "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\ngrid P = [0..N-1]\n\
                     grid L = [N-1, 0..M-1]\ntemp field H : i32 on G\nconst field p : i32 on P\n\
                     field last : i32 on L\n\
                     fn f -> H [i in 1..N-1, 1..M-1] = 3*H'[-1,0] + 5*H'[0,-1] + 7*H'[-1,-1] + p(i)\n\
                     fn keep -> last [N-1, 0..M-1] = H[0,0]\n\
                     reduce top : i64 = argmax(H[0,0]) on [1..N-1, 1..M-1]\nsteps 1\n";

fn subject<'c>(context: &'c Context, name: &'c str, text: &str, sizes: &[i64]) -> Subject<'c> {
    let case = Case::strip(text, &[64, 8]).per_thread(&[2, 1]);
    Subject::of_case(context, name, &case, (sizes, 2), 2).in_orders(&ORDERS)
}

#[test]
fn explore() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let rows = subject(&context, "rows", MIXED, &[201, 29]);
    eprintln!("whole {}", rows.verdict(None));
    let all: Vec<Box<dyn Fn(isize) -> Mutation>> = vec![
        Box::new(|n| DropStore(Global, n)), Box::new(|n| ShiftStore(Global, n)),
        Box::new(|n| ShiftLoad(Global, n)), Box::new(WrongLimit), Box::new(SwapSelect),
        Box::new(OpenGuard), Box::new(CloseGuard), Box::new(ShiftTerm), Box::new(NarrowMask), Box::new(|n| StaleCarry(n, 0)), Box::new(|n| StaleCarry(n, 1)),
    ];
    let only: Option<usize> = std::env::var("ONLY").ok().and_then(|n| n.parse().ok());
    for (k, make) in all.iter().enumerate() {
        if only.is_some_and(|only| only != k) { continue }
        for n in 0..60 {
            let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rows.verdict(Some(make(n)))));
            match verdict {
                Ok(verdict) => eprintln!("{:?} {verdict}", make(n)),
                Err(_) => break,
            }
        }
    }
}
