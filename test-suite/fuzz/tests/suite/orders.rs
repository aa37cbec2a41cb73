//! Lists of passes in any order, in every test run.

use crate::lines;
use stencil_fuzz::orders;

const SEED: u64 = 0;
const CASES: u64 = 150;

#[test]
fn passes_in_any_order_keep_the_result_or_refuse_in_words() {
    let files = orders::files().unwrap();
    let counts = lines::count(CASES, |index, context| {
        orders::check(&orders::order(&files, SEED, index), context).line()
    });
    // Most lists reach a comparison that could have failed.
    let of = |how: &str| -> u64 {
        let line = format!("accepted {how}");
        counts.iter().filter(|(found, _)| found.starts_with(&line)).map(|(_, count)| count).sum()
    };
    let least: [(&str, u64); 3] = [("programs", 35), ("nests", 15), ("kernels", 15)];
    assert!(least.iter().all(|(how, least)| of(how) >= *least), "{counts:?}");
}
