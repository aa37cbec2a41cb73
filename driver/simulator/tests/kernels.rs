//! Real kernels: compiled, run on the simulator, compared with the oracle bit for bit.

mod common;

use common::{Case, check_case};

#[test]
fn heat_by_every_strategy_equals_the_oracle() {
    for case in [Case::naive("heat2d"), Case::block("heat2d", &[16, 32], 2), Case::block("heat2d", &[16, 32], 3)] {
        let report = check_case(&case, 70, 7);
        println!("{report}");
    }
}
