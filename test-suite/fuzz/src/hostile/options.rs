//! Command lines of the real options, with good and bad values.

use super::attempt::{Attempt, Class, joined};
use super::folder::Thing;
use super::{NEST, PROGRAM, REDUCING, SWEEP, headers};
use crate::random::Random;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

/// The kind of an option's value.
#[derive(Clone, Copy)]
enum Value {
    None,
    Number,
    Numbers,
    Word(&'static [&'static str]),
    /// `NAME=NUMBER`.
    Pair,
    /// `NAME=DATA`.
    Data,
    /// A file to read.
    Input,
    /// A file to write.
    Output,
    /// `NAME=FILE` to write.
    Results,
}

use Value::{Data, Input, None as Nothing, Number, Numbers, Output, Pair, Results, Word};

const LEVELS: &[&str] = &[
    "ast",
    "stencil",
    "tiled",
    "gpu",
    "plan",
    "ast,plan",
    "stencil,stencil",
    "ptx",
    "nvvm",
    "llvm",
    "asm",
    ",",
];
const STRATEGIES: &[&str] = &[
    "naive",
    "block",
    "stream",
    "plane",
    "warp",
    "wavefront",
    "strip",
    "slab",
    "rows",
    "naive{x=1}",
    "Block",
];
const ARCHITECTURES: &[&str] =
    &["sm_75", "sm_90", "sm_90a", "sm_1", "90", "native", "znver4", "neoverse-v2", "gfx942"];
const PASSES: &[&str] = &[
    "builtin.module(choose-schedule,tile-overlapped)",
    "builtin.module(choose-schedule{tile=0})",
    "choose-schedule{pyramid-height=99999999999999999999}",
    "builtin.module(((((",
    "no-such-pass",
    "canonicalize",
    "builtin.module(func.func(cse))",
    "choose-schedule{",
];

const COMMON: [(&str, Value); 23] = [
    ("--heights", Numbers),
    ("--device", Word(&["h200", "a100", "H200", "mi300x", ""])),
    ("--no-nest-tiles", Nothing),
    ("--no-vector-copies", Nothing),
    ("--unroll-by-registers", Nothing),
    ("--no-place-constants", Nothing),
    ("--transpose-arrays", Nothing),
    ("-D", Pair),
    ("--arch", Word(ARCHITECTURES)),
    ("--strategy", Word(STRATEGIES)),
    ("--tile", Numbers),
    ("--block", Numbers),
    ("--pyramid-height", Number),
    ("--per-thread", Numbers),
    ("--region", Word(&["shrinking", "fixed", "growing"])),
    ("--no-fuse", Nothing),
    ("--no-split-interior", Nothing),
    ("--fp-contract", Word(&["on", "off", "ON"])),
    ("--fast-math", Nothing),
    ("--schedules", Input),
    ("--passes", Word(PASSES)),
    ("--libdevice", Input),
    ("--timing", Nothing),
];
const COMPILE: [(&str, Value); 8] = [
    ("--report", Nothing),
    ("--report-json", Output),
    ("--roofline", Output),
    ("--wave", Output),
    ("--emit", Word(LEVELS)),
    ("--print-ir-after-all", Nothing),
    ("--candidates", Number),
    ("--help", Nothing),
];
const MEMORY: &[&str] = &["1", "64KiB", "1MiB", "4GiB", "0", "4GB", "-1GiB", "99999999999TiB"];
const DEVICES: &[&str] = &[
    "1",
    "2",
    "3",
    "2x2",
    "4x1",
    "1x3",
    "0,1",
    "2,",
    "0,0",
    ",",
    "0",
    "2x",
    "x",
    "4097",
    "2X2",
    "2x2x2",
    "99999999999999999999",
];
const LINKS: &[&str] = &["10000:50000", "0:1", "1:0", "5", "-1:2", "4294967295:4294967295"];
const RUN: [(&str, Value); 27] = [
    ("--threads", Number),
    ("--devices", Word(DEVICES)),
    ("--device-memory", Word(MEMORY)),
    ("--host-memory", Word(MEMORY)),
    ("--link", Word(LINKS)),
    ("--timeline", Output),
    ("--first-step", Number),
    ("--checkpoint", Output),
    ("--checkpoint-every", Number),
    ("--resume", Input),
    ("--out", Results),
    ("--choose", Pair),
    ("--report-json", Output),
    ("--check-finite", Nothing),
    ("--snapshot-every", Number),
    ("--colors", Word(&["gray", "viridis", "coolwarm", "Gray", "none"])),
    ("--range", Numbers),
    ("--target", Word(&["reference", "sim", "auto", "cuda", "cpu", "gpu"])),
    ("--steps", Number),
    ("--size", Pair),
    ("--set", Pair),
    ("--in", Data),
    ("--report", Nothing),
    ("--seed", Number),
    ("--check", Nothing),
    ("--tolerance", Number),
    ("--version", Nothing),
];
const OPT: [(&str, Value); 6] = [
    ("--pass-pipeline", Word(PASSES)),
    ("--split-input-file", Nothing),
    ("--verify-diagnostics", Nothing),
    ("--print-ir-after-all", Nothing),
    ("--timing", Nothing),
    ("--print-irdl", Nothing),
];
const BENCH: [(&str, Value); 20] = [
    ("--choose", Pair),
    ("--cut-all", Nothing),
    ("--tune", Output),
    ("--json", Output),
    ("--ptx", Input),
    ("-D", Pair),
    ("--steps", Number),
    ("--set", Pair),
    ("--in", Data),
    ("--repeat", Number),
    ("--warmup", Number),
    ("--pause", Number),
    ("--reference", Input),
    ("--expect", Data),
    ("--check-steps", Number),
    ("--tolerance", Number),
    ("--graph", Nothing),
    ("--chunk", Number),
    ("--fma-per-point", Number),
    ("--device", Number),
];

/// Steps and sizes between 50 and 2^31 are left out: work that takes long is no fault.
const NUMBERS: [&str; 26] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "8",
    "32",
    "-1",
    "-2",
    "-9223372036854775808",
    "9223372036854775808",
    "18446744073709551616",
    "1e300",
    "0.5",
    "nan",
    "inf",
    "-0",
    "",
    " ",
    "0x10",
    "1,",
    "\u{663}",
    "1_000",
    "+4",
    "--",
    "999999999999999999999999999999999999999999999999999999999999999999",
];
const LARGE: [&str; 3] = ["2147483648", "4611686018427387904", "9223372036854775807"];
const NAMES: [&str; 10] = ["N", "M", "A", "K", "alpha", "G", "heat", "", "=", "\u{1F600}"];
const FILES: [&str; 8] =
    ["p.stencil", "a.npy", "missing", ".", "s.json", "/dev/null", "", "p.stencil/x"];

/// Places of outputs, each of which a success may make.
const OUTPUTS: [&str; 8] =
    ["o.npy", "o.png", "o.gif", "o.json", "o{step}.npy", "o", "o.svg", "sub/o"];
/// Outputs whose name holds the number of steps.
const NUMBERED: [&str; 4] = ["o0.npy", "o1.npy", "o2.npy", "o3.npy"];

/// An attempt of this class.
pub fn attempt(random: &mut Random) -> Attempt {
    let program = random.pick(&[PROGRAM, PROGRAM, REDUCING, SWEEP]);
    let things = vec![
        ("p.stencil".to_owned(), Thing::File(program.into())),
        ("n.mlir".to_owned(), Thing::File(NEST.into())),
        ("m.mlir".to_owned(), Thing::File(b"module {\n}\n".into())),
        ("a.npy".to_owned(), Thing::File(headers::array())),
        (
            "s.json".to_owned(),
            Thing::File(random.pick(&["", "{}", "[]", "{\"format\": 1}"]).into()),
        ),
    ];
    let level = ["--emit", random.pick(&["ast", "stencil", "tiled", "gpu", "plan"])];
    let of_run = ["run", "--target=reference", "--in", "A=a.npy", "--in=K=random:3"];
    let (tool, begin, options): (_, &[&str], _) = match random.below(10) {
        0..5 => ("stencilc", &level, [&COMMON[..], &COMPILE].concat()),
        5..8 => ("stencilc", &of_run, [&COMMON[..], &RUN].concat()),
        8 => ("stencil-opt", &[], OPT.to_vec()),
        _ => ("stencil-bench", &[], BENCH.to_vec()),
    };
    // Less than all that it needs, now and then.
    let begin = if random.percent(95) { begin } else { begin.get(..1).unwrap_or_default() };
    let file = match tool {
        "stencil-opt" => random.pick(&["m.mlir", "n.mlir"]),
        "stencilc" if random.percent(15) => "n.mlir",
        _ => "p.stencil",
    };
    let attempt = Attempt::new(Class::Options, tool, things).with(begin);
    let mut attempt = with_options(attempt, &options, file, random);
    attempt.may_make.extend(OUTPUTS.iter().chain(&NUMBERED).map(Into::into));
    attempt.full = [random.percent(3), random.percent(3)];
    attempt
}

fn with_options(
    mut attempt: Attempt,
    options: &[(&str, Value)],
    file: &str,
    random: &mut Random,
) -> Attempt {
    let run = attempt.arguments.first().is_some_and(|word| word == "run");
    for _ in 0..random.below(5) {
        let (name, value) = random.pick(options);
        for _ in 0..1 + usize::from(random.percent(10)) {
            let large = !run || name != "--steps";
            let Some(word) = value_of(value, large, random) else {
                attempt.arguments.push(name.into());
                continue;
            };
            if let Output = value {
                attempt.may_make.push(word.clone());
            }
            match random.below(8) {
                0 => attempt.arguments.push(name.into()),
                1..5 if name.starts_with("--") => {
                    attempt.arguments.push(joined(&format!("{name}="), &word));
                }
                _ => attempt.arguments.extend([name.into(), word]),
            }
        }
    }
    if random.percent(3) {
        // Behind an option without its value it names an output.
        let word = odd(random);
        attempt.may_make.push(word.clone());
        attempt.arguments.push(word);
    }
    // The program comes anywhere, twice, or not at all.
    let count = if random.percent(94) { 1 } else { random.pick(&[0, 2]) };
    for _ in 0..count {
        let start = usize::from(run);
        let at = match random.percent(80) {
            true => attempt.arguments.len(),
            false => start + random.below(attempt.arguments.len() + 1 - start),
        };
        attempt.arguments.insert(at, file.into());
    }
    attempt
}

/// Something that no option takes.
fn odd(random: &mut Random) -> OsString {
    match random.below(4) {
        0 => OsString::from_vec(vec![0xff, 0xfe, b'=']),
        1 => "x".repeat(random.pick(&[300, 100_000])).into(),
        2 => random.pick(&["--no-such", "-", "--", "-x", "run", "help", "\n", "\u{1b}[31m"]).into(),
        _ => "".into(),
    }
}

fn number(large: bool, random: &mut Random) -> &'static str {
    if large && random.percent(15) { random.pick(&LARGE) } else { random.pick(&NUMBERS) }
}

fn value_of(value: Value, large: bool, random: &mut Random) -> Option<OsString> {
    if !matches!(value, Nothing) && random.percent(3) {
        return Some(odd(random));
    }
    Some(match value {
        Nothing => return None,
        Number => number(large, random).into(),
        Numbers => {
            let numbers = (0..1 + random.below(3)).map(|_| number(large, random));
            numbers.collect::<Vec<_>>().join(",").into()
        }
        Word(words) => random.pick(words).into(),
        Pair => {
            let sign = if random.percent(95) { "=" } else { "" };
            format!("{}{sign}{}", random.pick(&NAMES), number(large, random)).into()
        }
        Data => {
            let data = match random.below(4) {
                0 => format!("random:{}", number(true, random)),
                1 => random.pick(&["zeros", "Zeros", "random", "random:"]).to_owned(),
                _ => random.pick(&FILES).to_owned(),
            };
            joined(&format!("{}=", random.pick(&NAMES)), OsStr::new(&data))
        }
        Input => random.pick(&FILES).into(),
        Output => random.pick(&OUTPUTS).into(),
        Results => {
            let name = random.pick(&["A", "A", "worst", "K", "G"]);
            format!("{name}={}", random.pick(&OUTPUTS)).into()
        }
    })
}
