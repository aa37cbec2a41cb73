//! Launch plans whose JSON is damaged: for the runtime in this process, and for `stencil-bench`,
//! which reads a plan and binds its sizes before it asks for a device.

use super::PROGRAM;
use super::attempt::{Attempt, Class};
use super::folder::Thing;
use crate::check::Fault;
use crate::outcome::{Outcome, attempt as caught};
use crate::random::Random;
use serde_json::{Map, Number, Value};
use std::path::Path;
use std::time::{Duration, Instant};
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::launch::Launches;
use stencil_runtime::plan::Plan;
use stencil_runtime::record::records;

/// Launches of a plan that are looked at.
const LAUNCHES: usize = 2_000;

/// Words that stand for what no value can hold, until the text is made.
const DEEP: &str = "@deep@";
const HUGE: &str = "@huge@";
const AGAIN: &str = "@again@";

/// A program whose cells are structs, with the names and sizes of the other.
const RECORDS: &str = "param N\nparam M\nstruct S { u: f32, v: vec<2, f16> }\n\
    grid G = [0..N-1, 0..M-1]\nfield A : S on G\nconst field K : vec<3, f32> on G\n\
    fn heat -> A [1..N-2, 1..M-2] =\n    S { u: A[-1,0].u + K[0,0].1, v: A[0,0].v }\nsteps 3\n";

/// Plans that the compiler makes of two programs with several schedules.
///
/// # Errors
/// When it makes none.
pub fn real(tools: &Path) -> Result<Vec<Value>, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let schedules: [(&str, &[&str]); 5] = [
        (PROGRAM, &[]),
        (PROGRAM, &["-D", "N=40"]),
        (PROGRAM, &["--pyramid-height=1"]),
        (PROGRAM, &["--tile=8,32", "--per-thread=1", "--fast-math"]),
        (RECORDS, &["--strategy=naive"]),
    ];
    let plan = |(program, schedule): &(&str, &[&str])| {
        let source = folder.path().join("p.stencil");
        std::fs::write(&source, program).map_err(|error| error.to_string())?;
        let made = super::command(tools, "stencilc", None)
            .args([source.as_os_str(), "--emit=plan".as_ref()])
            .args(*schedule)
            .output()
            .map_err(|error| error.to_string())?;
        let words = || String::from_utf8_lossy(&made.stderr);
        serde_json::from_slice(&made.stdout).map_err(|error| format!("{error}: {}", words()))
    };
    schedules.iter().map(plan).collect()
}

/// An attempt of this class.
pub fn attempt(plans: &[Value], random: &mut Random) -> Attempt {
    let mut plan = random.pick(plans);
    for _ in 0..1 + random.below(2) * random.below(3) {
        damage(&mut plan, random);
    }
    let mut text = plan.to_string();
    let depth = random.pick(&[20, 126, 128, 1_000, 100_000]);
    let deep = match random.percent(50) {
        true => "[".repeat(depth) + &"]".repeat(depth),
        false => "{\"a\":".repeat(depth) + "0" + &"}".repeat(depth),
    };
    text = text.replace(&format!("\"{DEEP}\""), &deep);
    text = text.replace(&format!("\"{HUGE}\""), &"9".repeat(random.pick(&[19, 20, 400, 5_000])));
    text = text.replace(AGAIN, "");
    if random.percent(3) {
        text.truncate(text.floor_char_boundary(random.below(text.len())));
    }
    let sizes = [("N", random.below(70)), ("M", random.below(70))];
    let things = vec![
        ("x.plan.json".to_owned(), Thing::File(text.clone().into())),
        ("x.ptx".to_owned(), Thing::File(b".version 8.0\n".into())),
    ];
    let mut attempt = Attempt::new(Class::Plans, "stencil-bench", things)
        .with(["x.plan.json"])
        .with(sizes.map(|(name, size)| format!("-D{name}={size}")));
    attempt.plan = Some(text);
    attempt
}

/// Reads, binds and walks a plan as a program would that embeds the runtime; the failure if one
/// is found.
pub fn check(text: &str) -> Option<Outcome> {
    let begin = Instant::now();
    let outcome = caught(|| {
        let words = |words: String| match words.trim().is_empty() {
            true => Err((Fault::Silent, "the runtime refuses without a word".to_owned())),
            false => Ok(Outcome::Refused),
        };
        let plan = match Plan::from_json(text, "x.plan.json") {
            Ok(plan) => plan,
            Err(error) => return words(error.to_string()),
        };
        let _ = records(&plan.fields);
        for size in [0, 1, 2, 33, i64::from(i32::MAX), i64::MAX] {
            let sizes = plan.params.iter().map(|name| (name.clone(), size)).collect();
            let request = Request { sizes, ..Request::default() };
            let bound = match bind(&plan, &request) {
                Ok(bound) => bound,
                Err(error) => {
                    words(error.to_string())?;
                    continue;
                }
            };
            let _ = (bound.device_bytes(), bound.sizes_text());
            match Launches::new(&plan, &bound) {
                Ok(launches) => drop(launches.take(LAUNCHES).count()),
                Err(error) => drop(words(error.to_string())?),
            }
        }
        Ok(Outcome::Accepted("by the runtime"))
    });
    match outcome {
        Outcome::Failed(..) => Some(outcome),
        _ if begin.elapsed() > Duration::from_secs(10) => {
            Some(Outcome::Failed(Fault::Slow, "the runtime takes over 10 s for a plan".to_owned()))
        }
        _ => None,
    }
}

/// Damages one value.
fn damage(plan: &mut Value, random: &mut Random) {
    let count = values(plan);
    let (from, to) = (random.below(count), 1 + random.below(count));
    let mut others = Vec::new();
    collect(plan, &mut others);
    let other = others.get(from).map_or(Value::Null, |value| (*value).clone());
    if let Some(value) = nth(plan, &mut { to }) {
        change(value, other, random);
    }
}

fn change(value: &mut Value, other: Value, random: &mut Random) {
    if let (Value::Object(members), 0..4) = (&mut *value, random.below(8)) {
        return members_of(members, other, random);
    }
    if let (Value::Array(list), 0..4) = (&mut *value, random.below(8)) {
        let at = random.below(list.len());
        match random.below(4) {
            _ if list.is_empty() => list.push(other),
            0 => drop(list.remove(at)),
            1 => list.insert(at, list[at].clone()),
            2 => list.swap(at, 0),
            _ => list.insert(at, other),
        }
        return;
    }
    *value = match random.below(10) {
        0 => Value::Null,
        1 => other,
        2 => random.pick(&[DEEP, HUGE]).into(),
        3..6 => number(random),
        _ => match value {
            Value::String(text) => expression(text, random).into(),
            Value::Number(_) => number(random),
            _ => other,
        },
    };
}

fn members_of(members: &mut Map<String, Value>, other: Value, random: &mut Random) {
    let names: Vec<_> = members.keys().cloned().collect();
    let Some(name) = names.get(random.below(names.len())).cloned() else {
        members.insert("x".to_owned(), other);
        return;
    };
    match random.below(4) {
        0 => drop(members.remove(&name)),
        1 => drop(members.insert(format!("{name}{AGAIN}"), other)),
        2 => {
            let with = random.pick(&names);
            let (a, b) = (members[&name].clone(), members[&with].clone());
            members.insert(name, b);
            members.insert(with, a);
        }
        _ => drop(members.insert(name, other)),
    }
}

fn number(random: &mut Random) -> Value {
    let numbers =
        [0, 1, -1, 2, 32, 1024, 1025, 1 << 31, (1 << 32) - 1, 1 << 40, i64::MAX, i64::MIN];
    match random.below(10) {
        0 => Value::from(u64::MAX),
        1 => {
            Number::from_f64(random.pick(&[1e300, 0.5, -1e-300])).map_or(Value::Null, Value::Number)
        }
        _ => random.pick(&numbers).into(),
    }
}

/// Another expression in the sizes, or another name.
fn expression(text: &str, random: &mut Random) -> String {
    let many = random.pick(&[3, 100, 200, 20_000]);
    let numbers = ["0", "-1", "2147483648", "9223372036854775807", "9223372036854775808", "1e300"];
    match random.below(12) {
        0 => String::new(),
        1 => "(".repeat(many) + text + &")".repeat(many),
        2 => "-".repeat(many) + text,
        3 => format!("{text}{}", " * N".repeat(many)),
        4 => format!("({text}) / 0"),
        5 => format!("({text}) % (N - N)"),
        6 => format!("({text}) * {}", random.pick(&numbers)),
        7 => random.pick(&numbers).to_owned(),
        8 => random.pick(&["N", "M", "A", "steps", "\0", "\u{1F600}", "N N", "min(", "f32"]).into(),
        9 => format!("max({text}, {})", random.pick(&numbers)),
        10 => format!("{text} - {}", random.pick(&numbers)),
        _ => text.chars().rev().collect(),
    }
}

/// How many values a value holds.
fn values(value: &Value) -> usize {
    let mut all = Vec::new();
    collect(value, &mut all);
    all.len()
}

fn collect<'v>(value: &'v Value, all: &mut Vec<&'v Value>) {
    all.push(value);
    match value {
        Value::Array(list) => list.iter().for_each(|value| collect(value, all)),
        Value::Object(members) => members.values().for_each(|value| collect(value, all)),
        _ => {}
    }
}

/// The value at a place, counted as [`collect`] does from 1.
fn nth<'v>(value: &'v mut Value, left: &mut usize) -> Option<&'v mut Value> {
    *left -= 1;
    if *left == 0 {
        return Some(value);
    }
    match value {
        Value::Array(list) => list.iter_mut().find_map(|value| nth(value, left)),
        Value::Object(members) => members.values_mut().find_map(|value| nth(value, left)),
        _ => None,
    }
}
