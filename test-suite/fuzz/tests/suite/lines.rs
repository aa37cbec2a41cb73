//! Cases that are judged by a line each, on two threads.

use melior::Context;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many of so many cases gave each line; none may have failed.
pub fn count(cases: u64, line: impl Fn(u64, &Context) -> String + Sync) -> BTreeMap<String, u64> {
    let next = AtomicU64::new(0);
    let counts = Mutex::new(BTreeMap::<String, u64>::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let context = stencil_dialects::context().unwrap();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= cases {
                        break;
                    }
                    let line = line(index, &context);
                    assert!(!line.starts_with("failed"), "case {index}: {line}");
                    *counts.lock().unwrap().entry(line).or_default() += 1;
                }
            });
        }
    });
    counts.into_inner().unwrap()
}
