//! Lists of passes in any order, in every test run.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use stencil_fuzz::orders;

const SEED: u64 = 0;
const CASES: u64 = 150;

#[test]
fn passes_in_any_order_keep_the_result_or_refuse_in_words() {
    let files = orders::files().unwrap();
    let next = AtomicU64::new(0);
    let counts = Mutex::new(BTreeMap::<String, u64>::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let context = stencil_dialects::context().unwrap();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= CASES {
                        break;
                    }
                    let order = orders::order(&files, SEED, index);
                    let line = orders::check(&order, &context).line();
                    assert!(!line.starts_with("failed"), "case {index}: {line}");
                    *counts.lock().unwrap().entry(line).or_default() += 1;
                }
            });
        }
    });
    // Most lists reach a comparison that could have failed.
    let counts = counts.into_inner().unwrap();
    let of = |how: &str| -> u64 {
        let line = format!("accepted {how}");
        counts.iter().filter(|(found, _)| found.starts_with(&line)).map(|(_, count)| count).sum()
    };
    let least: [(&str, u64); 3] = [("programs", 35), ("nests", 15), ("kernels", 15)];
    assert!(least.iter().all(|(how, least)| of(how) >= *least), "{counts:?}");
}
