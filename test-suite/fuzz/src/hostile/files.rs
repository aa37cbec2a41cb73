//! Outputs that are inputs, each other, links, folders, devices, or nowhere.

use super::PROGRAM;
use super::attempt::{Attempt, Class, joined};
use super::folder::Thing;
use super::headers;
use crate::random::Random;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;

const MODULE: &str = "module {\n}\n";

/// Places in the folder, with what is there.
fn things() -> Vec<(String, Thing)> {
    let file = |text: &str| Thing::File(text.into());
    let link = |to: &str| Thing::Link(to.to_owned());
    let things = [
        ("p.stencil", file(PROGRAM)),
        ("m.mlir", file(MODULE)),
        ("s.json", file("{\"format\": 1, \"schedules\": []}\n")),
        ("a.npy", Thing::File(headers::array())),
        ("k.npy", Thing::File(headers::array())),
        ("old", file("old\n")),
        ("old.ptx", file("old\n")),
        ("old.plan.json", file("old\n")),
        ("mixed.stencil", file("old\n")),
        ("mixed.gpu.mlir", Thing::Folder),
        ("mixed.plan.json", Thing::Folder),
        ("sub", Thing::Folder),
        ("sub/deep", Thing::Folder),
        ("readonly", Thing::ReadOnly(b"old\n".into())),
        ("link-to-p", link("p.stencil")),
        ("link-to-a", link("./sub/../a.npy")),
        ("link-to-old", link("old")),
        ("link-to-sub", link("sub")),
        ("link-to-null", link("/dev/null")),
        ("dangling", link("nothing")),
        ("loop", link("loop")),
        ("hard-p", Thing::HardLink("p.stencil".to_owned())),
        ("hard-a", Thing::HardLink("a.npy".to_owned())),
        ("hard-old", Thing::HardLink("old.ptx".to_owned())),
        ("stem.stencil", link("p.stencil")),
        ("stem.plan.json", Thing::ReadOnly(b"old\n".into())),
    ];
    things.into_iter().map(|(name, thing)| (name.to_owned(), thing)).collect()
}

const PLACES: [&str; 38] = [
    "new",
    "new.npy",
    "./new",
    "sub/../new",
    "sub/new",
    "sub/deep/../../new",
    "link-to-sub/new",
    "link-to-sub/../new",
    "old",
    "./old",
    "link-to-old",
    "hard-old",
    "p.stencil",
    "./p.stencil",
    "sub/../p.stencil",
    "link-to-p",
    "hard-p",
    "p",
    "a.npy",
    "link-to-a",
    "hard-a",
    "k.npy",
    "sub//..//./k.npy",
    "s.json",
    "m.mlir",
    "sub",
    "sub/",
    ".",
    "..",
    "",
    "readonly",
    "dangling",
    "loop",
    "missing/new",
    "p.stencil/new",
    "link-to-null",
    "mixed",
    "stem",
];

fn place(random: &mut Random) -> OsString {
    match random.below(20) {
        0 => "/dev/full".into(),
        1 => "/dev/null".into(),
        2 => "n".repeat(random.pick(&[240, 255, 256, 5_000])).into(),
        3 => OsString::from_vec(b"new\xff\xfe".to_vec()),
        4 => random.pick(&["-new", "new file", "new\nline", "/proc/new", "=", "new="]).into(),
        _ => random.pick(&PLACES).into(),
    }
}

/// An attempt of this class.
pub fn attempt(random: &mut Random) -> Attempt {
    match random.below(10) {
        0..4 => compile(random),
        4..9 => run(random),
        _ => {
            let place = place(random);
            let mut attempt = Attempt::new(Class::Files, "stencil-opt", things())
                .with(["m.mlir"])
                .with([joined("--output=", &place)]);
            attempt.outputs = vec![place];
            attempt
        }
    }
}

/// Levels that are soon made, with the extension of each.
const LEVELS: [(&str, &str); 5] = [
    ("ast", ".stencil"),
    ("stencil", ".stencil.mlir"),
    ("tiled", ".tiled.mlir"),
    ("gpu", ".gpu.mlir"),
    ("plan", ".plan.json"),
];

fn compile(random: &mut Random) -> Attempt {
    let source = random.pick(&["p.stencil", "./p.stencil", "link-to-p", "hard-p"]);
    let mut place = place(random);
    let mut levels: Vec<_> = (0..1 + random.below(3)).map(|_| random.pick(&LEVELS)).collect();
    if random.percent(3) {
        levels.push(("ptx", ".ptx"));
    }
    let names: Vec<_> = levels.iter().map(|(level, _)| *level).collect();
    levels.sort_unstable();
    levels.dedup();
    if levels.len() > 1 && place.as_encoded_bytes().starts_with(b"/dev") {
        // Nothing is to be left beside a device.
        place = "new".into();
    }
    let mut attempt = Attempt::new(Class::Files, "stencilc", things())
        .with([source.to_owned(), format!("--emit={}", names.join(","))])
        .with([joined("--output=", &place)]);
    attempt.outputs = match &levels[..] {
        [_] => vec![place],
        // Several levels have the place as the beginning of their names.
        _ => levels.iter().map(|(_, end)| named(&place, end)).collect(),
    };
    attempt
}

fn named(stem: &OsStr, end: &str) -> OsString {
    let mut name = stem.to_owned();
    name.push(end);
    name
}

fn run(random: &mut Random) -> Attempt {
    let input = random.pick(&["a.npy", "./a.npy", "link-to-a", "hard-a", "k.npy"]);
    let place_of_a = place(random);
    let mut attempt = Attempt::new(Class::Files, "stencilc", things())
        .with(["run", "p.stencil"])
        .with([format!("--in=A={input}"), "--in=K=k.npy".to_owned()])
        .with([joined("--out=A=", &place_of_a)]);
    attempt.outputs = vec![place_of_a];
    if random.percent(40) {
        let report = if random.percent(30) { attempt.outputs[0].clone() } else { place(random) };
        attempt = attempt.with([joined("--report-json=", &report)]).with(["--target=sim"]);
        attempt.outputs.push(report);
    } else {
        attempt = attempt.with(["--target=reference"]);
    }
    if random.percent(10) {
        // A field may go to one place alone, and a const field to none.
        let (field, place) = (random.pick(&["A=", "K=", "B="]), place(random));
        attempt = attempt.with([joined("--out=", &joined(field, &place))]);
    }
    attempt
}
