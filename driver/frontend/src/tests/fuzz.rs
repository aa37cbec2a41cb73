//! Random text never panics and never takes long: token soup, and valid programs with faults.

use super::suite;
use crate::oracle;
use crate::parser::parse;
use crate::print::print;
use crate::program::Role;
use crate::sizes::{Sizes, extents};
use crate::source::Source;
use std::collections::BTreeMap;
use std::time::Instant;
use stencil_runtime::array::Array;

/// xorshift; the same numbers on every run.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }

    pub(super) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

const WORDS: [&str; 80] = [
    "param",
    "scalar",
    "struct",
    "grid",
    "field",
    "const",
    "temp",
    "boundary",
    "fn",
    "steps",
    "on",
    "in",
    "if",
    "then",
    "else",
    "let",
    "A",
    "B",
    "G",
    "N",
    "M",
    "f",
    "g",
    "i",
    "j",
    "t",
    "alpha",
    "f32",
    "f64",
    "i32",
    "i64",
    "u64",
    "f16",
    "vec",
    "nearest",
    "periodic",
    "min",
    "sqrt",
    "fma",
    "0",
    "1",
    "2",
    "10",
    "0.5",
    "1e-3",
    "9223372036854775807",
    "9223372036854775808",
    "[",
    "]",
    "(",
    ")",
    "{",
    "}",
    "..",
    "->",
    "=",
    "==",
    "<",
    ">=",
    "&&",
    "||",
    "&",
    "|",
    "^",
    "~",
    "<<",
    ">>",
    "!",
    "+",
    "-",
    "*",
    "/",
    "%",
    ",",
    ";",
    ":",
    ".",
    "'",
    "\n",
    "\u{fc}$",
];

fn soup(random: &mut Random) -> String {
    let length = 1 + random.below(120);
    let mut text = String::new();
    if random.below(2) == 0 {
        text.push_str("param N\ngrid G = [0..N-1]\nfield A : f32 on G\nfn f -> A [1..N-2] = ");
    }
    for _ in 0..length {
        text.push_str(random.pick(&WORDS));
        if random.below(4) > 0 {
            text.push(' ');
        }
    }
    text
}

/// Leaves out, repeats, moves or replaces a few words or characters.
fn mutate(random: &mut Random, text: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let (head, tail) = word.split_at(word.char_indices().next_back().map_or(0, |(at, _)| at));
        parts.extend([head.to_string(), tail.to_string()]);
    }
    for _ in 0..1 + random.below(4) {
        let (at, other) = (random.below(parts.len()), random.below(parts.len()));
        match random.below(5) {
            0 => parts[at].clear(),
            1 => parts[at] = parts[other].clone(),
            2 => parts.swap(at, other),
            3 => parts[at] = random.pick(&WORDS).to_string(),
            _ => parts.insert(at, format!(" {} ", random.pick(&WORDS))),
        }
    }
    parts.concat()
}

/// Loads a text; what loads also prints, parses back and runs, where it is small.
fn attempt(text: &str) -> bool {
    let source = Source::new("fuzz", text);
    let start = Instant::now();
    let (file, errors) = parse(&source);
    if errors.is_empty() {
        let printed = print(&file);
        let (again, errors) = parse(&Source::new("printed", printed.as_str()));
        assert_eq!(errors, [], "{text}\n{printed}");
        assert_eq!(file, again, "{text}\n{printed}");
    }
    let (program, errors) = crate::load(&source, &[]);
    assert_eq!(program.is_some(), errors.is_empty(), "{text}");
    crate::diagnostics::render(&errors, &source, crate::diagnostics::Look::Plain);
    let loaded = program.is_some();
    if let Some(program) = program {
        let sizes: Sizes = program
            .params
            .iter()
            .filter(|(_, p)| p.value.is_none())
            .map(|(id, _)| (id, 6))
            .collect();
        let small = |shape: &Vec<usize>| shape.iter().product::<usize>() < 10_000;
        if let Ok(shapes) = extents(&program, &sizes)
            && shapes.values().all(small)
        {
            let mut fields = BTreeMap::new();
            for (id, field) in program.fields.iter().filter(|(_, field)| field.role != Role::Temp) {
                fields.insert(
                    field.name.clone(),
                    Array::noise(field.element, &shapes[id], 7).unwrap(),
                );
            }
            // Missing scalars and failed checks are fine; a panic is not.
            let _ = oracle::run(&program, &sizes, &BTreeMap::new(), 2, &mut fields, &mut |_, _| {
                std::ops::ControlFlow::Continue(())
            });
        }
    }
    assert!(start.elapsed().as_secs() < 2, "{text}");
    loaded
}

#[test]
fn token_soup() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..10_000 {
        attempt(&soup(&mut random));
    }
}

#[test]
fn programs_with_faults() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut sources = suite("programs");
    sources.extend(suite("diagnostics"));
    let mut loaded = 0;
    for _ in 0..10_000 {
        let source = &sources[random.below(sources.len())];
        loaded += usize::from(attempt(&mutate(&mut random, &source.text)));
    }
    // Some faults are none: otherwise nothing but the parser would be tested.
    assert!(loaded > 200, "{loaded}");
}
