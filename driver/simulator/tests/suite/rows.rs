//! Sweeps that leave rows in memory in place of fields: what they leave is that of the oracle, and
//! errors planted in what hands rows on, keeps them and finds the best place are found.

use crate::common::Case;
use crate::common::planted::{FLAGS, Order, Subject, Table};
use melior::Context;
use stencil_simulator::mutate::Mutation::*;
use stencil_simulator::mutate::Space::Global;

const ORDERS: [Order; 3] = [Order::Numbers, Order::Blocks(1), Order::Blocks(2)];

fn subject<'c>(context: &'c Context, name: &'c str, text: &str, sizes: &[i64]) -> Subject<'c> {
    let case = Case::strip(text, &[64, 8]).per_thread(&[2, 1]);
    Subject::of_case(context, name, &case, (sizes, 2), 2).in_orders(&ORDERS)
}

#[test]
fn explore() {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let rows = subject(&context, "rows", "affine-gap-score", &[201, 29]);
    eprintln!("whole {}", rows.verdict(None));
    let all: Vec<Box<dyn Fn(isize) -> stencil_simulator::mutate::Mutation>> = vec![
        Box::new(|n| DropStore(Global, n)), Box::new(|n| ShiftStore(Global, n)),
        Box::new(|n| ShiftLoad(Global, n)), Box::new(WrongLimit), Box::new(SwapSelect),
        Box::new(OpenGuard), Box::new(CloseGuard), Box::new(ShiftTerm), Box::new(NarrowMask),
    ];
    let only: Option<usize> = std::env::var("ONLY").ok().and_then(|n| n.parse().ok());
    for (k, make) in all.iter().enumerate() {
        if only.is_some_and(|only| only != k) { continue }
        for n in 0..400 {
            let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| rows.verdict(Some(make(n)))));
            match verdict {
                Ok(verdict) => eprintln!("{:?} {verdict}", make(n)),
                Err(_) => break,
            }
        }
    }
}
