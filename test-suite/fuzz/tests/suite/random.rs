//! Random programs in every test run: the kernels on the simulator against the oracle.

use crate::lines;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use stencil_fuzz::check::check;
use stencil_fuzz::model::Case;
use stencil_fuzz::record;
use stencil_fuzz::summary::Summary;
use stencil_fuzz::{generate, nests, shrink};

const SEED: u64 = 0;

/// Runs so many cases on two threads. None may fail, and so many of a hundred must reach a
/// comparison that could have failed.
fn agree(cases: u64, case: fn(u64, u64) -> Case, most: u64) -> Summary {
    let next = AtomicU64::new(0);
    let summary = Mutex::new(Summary::default());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let context = stencil_dialects::context().unwrap();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= cases {
                        break;
                    }
                    let case = case(SEED, index);
                    let verdict = check(&case, &context);
                    summary.lock().unwrap().add(&case, &verdict);
                    if let Some((small, fault, message)) =
                        shrink::failure(&case, &verdict, 300, &context)
                    {
                        failures.lock().unwrap().push(format!(
                            "case {index}\n{}",
                            record::text(&small, fault, &message, "case.stencil")
                        ));
                    }
                }
            });
        }
    });
    let (summary, failures) = (summary.into_inner().unwrap(), failures.into_inner().unwrap());
    println!("{summary}");
    assert!(failures.is_empty() && summary.failures() == 0, "{}", failures.join("\n"));
    let telling = summary.verdicts.get("agreed").copied().unwrap_or(0);
    assert!(summary.cases() == cases && telling * 100 > cases * most, "{summary}");
    summary
}

#[test]
fn random_programs_agree_with_the_oracle() {
    agree(500, generate::case, 60);
}

#[test]
fn random_sweeps_agree_with_the_oracle() {
    agree(300, generate::sweep, 55);
}

/// Most programs run in several windows or passes, and few are refused.
#[test]
fn random_programs_agree_out_of_core() {
    let summary = agree(120, generate::out_of_core, 60);
    let count = |is: fn(&str) -> bool| -> u64 {
        let all = summary.kinds.iter().filter(|(kind, _)| is(kind));
        all.map(|(_, count)| count).sum()
    };
    let refused = count(|kind| kind.starts_with("out of core: refused"));
    let cut = count(|kind| kind.starts_with("out of core") && kind.contains("several"));
    assert!(refused * 10 < cut && cut >= 50, "{summary}");
}

#[test]
fn random_nests_agree_with_their_interpreter() {
    let counts = lines::count(300, |index, context| {
        nests::check(&nests::generate::nest(SEED, index), context).line()
    });
    // Each way to carry a nest out occurs, and most cases could have failed.
    let of = |how: &str| counts.get(&format!("accepted {how}")).copied().unwrap_or(0);
    let ways = [
        "by one thread",
        "by threads along one axis",
        "by threads along two axes",
        "with a loop of launches",
        "with tiles in shared memory",
    ];
    assert!(ways.iter().all(|how| of(how) >= 10), "{counts:?}");
    assert!(ways.iter().map(|how| of(how)).sum::<u64>() >= 180, "{counts:?}");
}
