//! What the checker says about bounds, against counting: random boxes and reads, all small sizes.

use super::fuzz::Random;
use crate::program::{Program, Region};
use crate::sizes::{Sizes, bounds, check};
use crate::source::Source;
use cranelift_entity::EntityRef;
use std::collections::BTreeSet;

/// Sizes up to this are tried.
const LARGEST: i64 = 7;

fn bound(random: &mut Random) -> String {
    let number = random.below(4);
    match random.below(6) {
        0 | 1 => number.to_string(),
        2 | 3 => format!("N-{number}"),
        4 => format!("M-{number}"),
        _ => format!("N-M+{number}"),
    }
}

fn range(random: &mut Random) -> String {
    match random.below(4) {
        0 => bound(random),
        _ => format!("{}..{}", bound(random), bound(random)),
    }
}

fn text(random: &mut Random, dimensions: usize) -> String {
    let list = |random: &mut Random, one: fn(&mut Random) -> String| {
        (0..dimensions).map(|_| one(random)).collect::<Vec<_>>().join(", ")
    };
    let grid = if dimensions == 1 { "0..N" } else { "0..N, 1..M+1" };
    let mut pieces = String::new();
    for _ in 0..1 + random.below(2) {
        let region = list(random, range);
        let offset = list(random, |random| (random.below(3) as i64 - 1).to_string());
        pieces += &format!("  [{region}] = A[{offset}]\n");
    }
    format!(
        "param N\nparam M\ngrid G = [{grid}]\nfield A : f32 on G\nfn f -> A {{\n{pieces}}}\nsteps \
         1\n"
    )
}

type Point = Vec<i64>;

fn points(region: &[(i64, i64)]) -> BTreeSet<Point> {
    let mut all = BTreeSet::from([Vec::new()]);
    for (lower, upper) in region {
        let extend = |point: &Point| {
            (*lower..=*upper).map(|at| [point.as_slice(), &[at]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extend).collect();
    }
    all
}

/// Whether every piece and read lies in the grid and pieces are disjoint, by counting points.
fn is_right(program: &Program, sizes: &Sizes) -> bool {
    let all = |region: &Region| points(&bounds(program, region, sizes).unwrap());
    let grid = all(&program.grids.values().next().unwrap().region);
    let mut covered = BTreeSet::new();
    for piece in &program.functions[0].pieces {
        let crate::program::ExprKind::Read { offset, .. } = &piece.values[0].kind else { panic!() };
        for point in all(&piece.region) {
            let read: Point = point.iter().zip(offset).map(|(at, offset)| at + offset).collect();
            if !grid.contains(&point) || !grid.contains(&read) || !covered.insert(point) {
                return false;
            }
        }
    }
    true
}

#[test]
fn checks_are_sound_and_errors_are_true() {
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut accepted, mut decided, mut refused) = (0, 0, 0);
    for _ in 0..3000 {
        let dimensions = 1 + random.below(2);
        let text = text(&mut random, dimensions);
        let (program, errors) = crate::load(&Source::new("bounds", text.as_str()), &[]);
        let Some(program) = program else {
            refused +=
                usize::from(!errors.iter().any(|error| error.message.starts_with("it depends")));
            continue;
        };
        accepted += 1;
        decided += usize::from(program.checks.len() == 2);
        for (n, m) in (0..=LARGEST).flat_map(|n| (0..=LARGEST).map(move |m| (n, m))) {
            let sizes = Sizes::from([(EntityRef::new(0), n), (EntityRef::new(1), m)]);
            let right = is_right(&program, &sizes);
            match check(&program, &sizes, 1) {
                Ok(()) => assert!(right, "N = {n}, M = {m} passes\n{text}"),
                // Disjointness may be asked for in one dimension where another would do.
                Err(error) if error.to_string().contains("overlap") => {}
                Err(error) => assert!(!right, "N = {n}, M = {m}: {error}\n{text}"),
            }
        }
    }
    // All three answers occur often enough to mean something.
    assert!(accepted > 300 && decided > 20 && refused > 300, "{accepted} {decided} {refused}");
}

#[test]
fn errors_hold_for_all_sizes() {
    // With the same text and sizes given, a faulty piece that holds a point stays faulty.
    let mut random = Random(0xfeed_5678_9abc_def1);
    let mut faulty = 0;
    for _ in 0..1500 {
        let text = text(&mut random, 1);
        let load =
            |defines: &[(String, i64)]| crate::load(&Source::new("bounds", text.as_str()), defines);
        let (program, errors) = load(&[]);
        if program.is_some() || errors.iter().any(|error| error.message.starts_with("it depends")) {
            continue;
        }
        faulty += 1;
        for (n, m) in (0..=LARGEST).flat_map(|n| (0..=LARGEST).map(move |m| (n, m))) {
            let (fixed, _) = load(&[("N".into(), n), ("M".into(), m)]);
            if let Some(fixed) = fixed {
                let regions = fixed.functions[0].pieces.iter().map(|piece| &piece.region);
                // A piece that is empty at these sizes is left out where it is not the only one.
                let left_out = regions.len() < text.matches("] = ").count();
                let empty = |region: &Region| {
                    points(&bounds(&fixed, region, &Sizes::new()).unwrap()).is_empty()
                };
                assert!(
                    left_out || regions.into_iter().any(empty),
                    "N = {n}, M = {m} is right\n{text}{errors:?}"
                );
            }
        }
    }
    assert!(faulty > 100, "{faulty}");
}
