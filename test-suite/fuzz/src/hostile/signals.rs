//! Signals at any moment of a compile or a run.

use super::PROGRAM;
use super::attempt::{Attempt, Class, Signal};
use super::folder::Thing;
use crate::random::Random;
use std::time::Duration;

const SIGNALS: [Signal; 5] = [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3), ("XCPU", 24)];

/// An attempt of this class.
pub fn attempt(random: &mut Random) -> Attempt {
    let old = |name: &str| (name.to_owned(), Thing::File(b"old\n".into()));
    let mut things = vec![("p.stencil".to_owned(), Thing::File(PROGRAM.into()))];
    if random.percent(50) {
        things.extend([old("b.npy"), old("o.ptx"), old("o.plan.json"), old("r.json")]);
    }
    let attempt = Attempt::new(Class::Signals, "stencilc", things);
    // Most of the time of each goes into another part of the work.
    let (arguments, outputs): (&[&str], &[&str]) = match random.below(4) {
        0 => (&["p.stencil", "--emit=ptx,plan", "-o", "o"], &["o.ptx", "o.plan.json"]),
        1 => (
            &[
                "run",
                "p.stencil",
                "--target=sim",
                "--in=A=zeros",
                "--in=K=random:1",
                "--out=A=b.npy",
                "--report-json=r.json",
                "--size=N=60",
                "--size=M=70",
            ],
            &["b.npy", "r.json"],
        ),
        2 => (
            &[
                "run",
                "p.stencil",
                "--target=reference",
                "--in=A=zeros",
                "--in=K=random:1",
                "--out=A=b.npy",
                "--size=N=200",
                "--size=M=200",
            ],
            &["b.npy"],
        ),
        _ => (
            &[
                "run",
                "p.stencil",
                "--target=reference",
                "--in=A=random:1",
                "--in=K=zeros",
                "--out=A=b.npy",
                "--size=N=2000",
                "--size=M=500",
                "--steps=0",
            ],
            &["b.npy"],
        ),
    };
    let mut attempt = attempt.with(arguments);
    attempt.outputs = outputs.iter().map(Into::into).collect();
    let most = random.pick(&[10_000, 40_000, 150_000]);
    let after = Duration::from_micros(random.below(most) as u64);
    attempt.signals = vec![(random.pick(&SIGNALS), after)];
    if random.percent(30) {
        // One more: Ctrl-C twice, or an impatient system.
        let wait = Duration::from_millis(random.below(200) as u64);
        let (first, _) = attempt.signals[0];
        let second = if random.percent(60) { first } else { random.pick(&SIGNALS) };
        attempt.signals.push((second, after + wait));
    }
    attempt
}
