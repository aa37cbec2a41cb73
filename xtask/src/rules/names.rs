//! Names that belong in one place: those of strategies, and those of devices.

use std::collections::BTreeSet;

use super::source::{Kind, Token};
use super::{Break, Tree};

/// Each strategy has a folder here, named as the strategy is.
const STRATEGIES: &str = "passes/src/strategies/";

/// Code that spells strategies' names as text, and why.
const MAY_NAME_STRATEGIES: [&str; 3] = [
    // The array protocols of Python have streams of CUDA.
    "bindings/python/src/arrays.rs",
    // Asks two compilers for the same strategies, and one of them may not be of this tree.
    "xtask/src/same_code/cases.rs",
    // Options of a schedule; that of the threads of a block is called as a strategy is.
    "passes/src/schedule/choice.rs",
];

/// Code of passes that knows devices or architectures, and why.
const MAY_NAME_DEVICES: [&str; 2] = [
    // A target is a device with the arithmetic that is allowed.
    "passes/src/target.rs",
    // The architectures for which LLVM's backend is asked for code.
    "passes/src/llvm/emit_ptx.rs",
];

/// Devices by their short names.
const DEVICES: [&str; 8] = ["V100", "A100", "H100", "H200", "GH200", "B100", "B200", "GB200"];

/// Strategies' names in string literals and in the help that clap makes of comments, outside their
/// folders and tests.
pub fn strategies(tree: &Tree) -> Vec<Break> {
    let names: BTreeSet<&str> = tree
        .sources
        .iter()
        .filter_map(|source| source.name.strip_prefix(STRATEGIES)?.split_once('/'))
        .map(|(folder, _)| folder)
        .collect();
    if names.is_empty() {
        let what = "no folder of a strategy was found, so their names are unknown";
        return vec![Break::new(STRATEGIES, 1, what)];
    }
    let elsewhere = |name: &str| {
        !name.starts_with(STRATEGIES) && !is_test(name) && !MAY_NAME_STRATEGIES.contains(&name)
    };
    let what = |name: &str| {
        format!("the strategy's name \"{name}\"; it belongs in its descriptor, below {STRATEGIES}")
    };
    let says = |token: &Token| {
        let is_text = matches!(token.kind, Kind::Text | Kind::RawText);
        named(&token.text, &names).filter(|_| is_text).map(what)
    };
    let mut broken = places(tree, elsewhere, says);
    for source in tree.sources.iter().filter(|source| elsewhere(&source.name)) {
        if source.tokens.iter().any(|token| token.is(Kind::Word, "clap")) {
            for (line, text) in comments(&source.docs) {
                let found = named(&text, &names).map(what);
                broken.extend(found.map(|what| Break::new(&source.name, line, what)));
            }
        }
    }
    broken
}

/// The name of a strategy that a text gives: all of the text, a word after `strategy`, or a word of
/// a list. Names are words of the language too, so others are let be.
fn named<'n>(text: &str, names: &BTreeSet<&'n str>) -> Option<&'n str> {
    if let Some(name) = names.get::<str>(text) {
        return Some(name);
    }
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let words: Vec<_> = text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
    let found = |place: usize| {
        let name = words.get(place).and_then(|word| names.get::<str>(word))?;
        let before: Vec<_> = words[..place].iter().rev().take(2).copied().collect();
        let is_listed = |other: &str| names.contains::<str>(other) && other != *name;
        let says = match before.as_slice() {
            ["or" | "and", other] => is_listed(other),
            [other, ..] => is_listed(other) || other.trim_start_matches('-').starts_with("strateg"),
            [] => false,
        };
        says.then_some(*name)
    };
    (0..words.len()).find_map(found)
}

/// Comments with the line in which each begins, their lines joined.
fn comments(docs: &[Token]) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let mut next = 0;
    for doc in docs.iter().filter(|doc| !doc.is_test) {
        match comments.last_mut().filter(|_| doc.line == next) {
            Some((_, text)) => text.push_str(&doc.text),
            None => comments.push((doc.line, doc.text.clone())),
        }
        next = doc.last_line + 1;
    }
    comments
}

/// Devices and architectures that passes name, outside tests.
pub fn devices(tree: &Tree) -> Vec<Break> {
    let is_pass = |name: &str| {
        name.starts_with("passes/src/") && !is_test(name) && !MAY_NAME_DEVICES.contains(&name)
    };
    let says = |token: &Token| {
        let mut words = token.text.split(|c: char| !c.is_alphanumeric() && c != '_');
        let name = words.find(|word| DEVICES.contains(word) || is_architecture(word))?;
        Some(format!("a pass names {name}; it should ask its target"))
    };
    places(tree, is_pass, says)
}

/// Places in which a token has something to say, of the files that `of` accepts.
fn places(
    tree: &Tree,
    of: impl Fn(&str) -> bool,
    says: impl Fn(&Token) -> Option<String>,
) -> Vec<Break> {
    let mut broken = Vec::new();
    for source in tree.sources.iter().filter(|source| of(&source.name)) {
        for token in source.tokens.iter().filter(|token| !token.is_test) {
            broken.extend(says(token).map(|what| Break::new(&source.name, token.line, what)));
        }
    }
    broken
}

fn is_architecture(word: &str) -> bool {
    word.strip_prefix("sm_").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Whether a file holds nothing but tests.
pub fn is_test(name: &str) -> bool {
    name.starts_with("test-suite/")
        || name.split('/').any(|part| part == "tests" || part == "tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRATEGY: (&str, &str) =
        ("passes/src/strategies/weave/mod.rs", "const NAME: &str = \"weave\";\n");

    fn lines(broken: &[Break]) -> Vec<(&str, usize)> {
        broken.iter().map(|found| (found.file.as_str(), found.line)).collect()
    }

    #[test]
    fn a_strategys_name_is_found_where_it_does_not_belong() {
        let code = "// \"weave\"\n/// \"weave\"\n\
                    fn a(s: &str) -> bool {\n    matches!(s, \"weave\")\n}\n\
                    const B: &str = \"weaves\";\n\
                    #[cfg(test)]\nmod tests {\n    const C: &str = \"weave\";\n}\n";
        let tree = Tree::of(&[
            STRATEGY,
            ("driver/src/a.rs", code),
            ("driver/tests/a.rs", code),
            (MAY_NAME_STRATEGIES[0], code),
        ]);
        assert_eq!(lines(&strategies(&tree)), [("driver/src/a.rs", 4)]);
        assert_eq!(lines(&strategies(&Tree::of(&[]))), [(STRATEGIES, 1)]);
    }

    #[test]
    fn a_strategys_name_is_found_in_a_text_that_means_it() {
        let names = BTreeSet::from(["weave", "knot"]);
        for text in [
            "weave",
            "the strategy weave",
            "--strategy=weave",
            "one of weave, knot",
            "a weave or knot",
        ] {
            assert!(named(text, &names).is_some(), "{text}");
        }
        for text in
            ["", "a weave of threads", "lower-weave", "weave or more", "strategies are many"]
        {
            assert_eq!(named(text, &names), None, "{text}");
        }
    }

    #[test]
    fn a_strategys_name_is_found_in_help() {
        let help = "use clap::Args;\n/// Fast: the\n/// strategy weave.\nstruct A;\n";
        let tree =
            Tree::of(&[STRATEGY, ("driver/src/a.rs", help), ("driver/src/b.rs", &help[16..])]);
        assert_eq!(lines(&strategies(&tree)), [("driver/src/a.rs", 2)]);
    }

    #[test]
    fn a_device_is_found_in_passes_alone() {
        let code = "//! As on an H200 (sm_90).\nuse device::H200;\nconst A: &str = \"for sm_90\";\n\
                    const B: u32 = device::H200.rate;\nconst SM_9: u32 = 0x200;\n\
                    #[test]\nfn t() { assert_eq!(H200, \"sm_80\") }\nconst C: &str = \"sm_80a\";\n";
        let tree = Tree::of(&[
            ("passes/src/a.rs", code),
            ("runtime/src/device.rs", code),
            (MAY_NAME_DEVICES[0], code),
        ]);
        let at = |line| ("passes/src/a.rs", line);
        assert_eq!(lines(&devices(&tree)), [at(2), at(3), at(4), at(8)]);
    }
}
