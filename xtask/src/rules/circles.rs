//! No files of different folders of a crate import each other in a circle.
//!
//! A file imports another where it names an item of it, in a `use` or by a path through modules. A
//! name that a module re-exports belongs to the file that it comes from. `mod` lines are no
//! imports: a module may use its children and they may use it, as long as they share a folder.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use super::imports::{Imports, Modules};
use super::names::is_test;
use super::{Break, Tree};

/// Imports from another folder that lead back to the file in which they stand.
pub fn find(tree: &Tree) -> Vec<Break> {
    let sources: Vec<_> = tree.sources.iter().filter(|source| !is_test(&source.name)).collect();
    let modules = Modules::of(&sources);
    let imports: Imports = modules.imports();
    let mut broken = Vec::new();
    for (file, targets) in &imports {
        for (target, line) in targets {
            if !share_folder(file, target)
                && let Some(way) = way(&imports, target, file)
            {
                let circle = [&[*file][..], &way].concat().join(" -> ");
                broken.push(Break::new(file, *line, format!("a circle of imports: {circle}")));
            }
        }
    }
    broken
}

/// Whether two files lie side by side, or one is the module of the other's folder.
fn share_folder(one: &str, other: &str) -> bool {
    let folder = |file| Path::new(file).parent();
    let own_folder = |file| Path::new(file).with_extension("");
    folder(one) == folder(other)
        || folder(one) == Some(&own_folder(other))
        || folder(other) == Some(&own_folder(one))
}

/// The shortest way along imports from one file to another, both included.
fn way<'a>(imports: &Imports<'a>, from: &'a str, to: &str) -> Option<Vec<&'a str>> {
    let mut came_from: BTreeMap<&str, Option<&str>> = BTreeMap::from([(from, None)]);
    let mut queue = VecDeque::from([from]);
    while let Some(file) = queue.pop_front() {
        if file == to {
            let mut way: Vec<&str> =
                std::iter::successors(Some(file), |file| came_from[file]).collect();
            way.reverse();
            return Some(way);
        }
        for next in imports.get(file).into_iter().flat_map(BTreeMap::keys) {
            if !came_from.contains_key(next) {
                came_from.insert(next, Some(file));
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The circles of a crate whose file `a/mod.rs` has this text.
    fn circles(a: &str) -> Vec<Break> {
        find(&Tree::of(&[
            ("c/src/lib.rs", "pub mod a;\npub mod b;\npub mod d;\n"),
            ("c/src/a/mod.rs", a),
            ("c/src/a/x.rs", "pub fn x() {}\npub struct X;\n"),
            ("c/src/b.rs", "mod y;\nuse std::fmt;\npub fn b() { y::y() }\n"),
            ("c/src/b/y.rs", "use crate::d::D;\npub fn y() { super::b() }\n"),
            ("c/src/d.rs", "use crate::a::X;\nuse crate::a::{self, x};\npub struct D(X);\n"),
        ]))
    }

    #[test]
    fn a_circle_through_folders_is_found_and_shown() {
        let broken = circles("mod x;\npub use x::X;\npub use crate::b::b;\n");
        // `d` imports from `a/x.rs` alone, which imports nothing.
        assert!(broken.is_empty(), "{broken:?}");
        let broken = circles("mod x;\npub struct X;\nuse crate::b;\nfn a() { b::b() }\n");
        let places: Vec<_> = broken.iter().map(|b| (b.file.as_str(), b.line)).collect();
        assert_eq!(places, [("c/src/a/mod.rs", 4), ("c/src/b/y.rs", 1), ("c/src/d.rs", 1)]);
        assert_eq!(
            broken[0].what,
            "a circle of imports: c/src/a/mod.rs -> c/src/b.rs -> c/src/b/y.rs -> c/src/d.rs \
             -> c/src/a/mod.rs"
        );
    }

    #[test]
    fn a_circle_in_one_folder_and_one_of_tests_are_none() {
        assert!(circles("mod x;\n").is_empty());
        let test = "mod x;\npub struct X;\n#[cfg(test)]\nmod tests {\n    use crate::b::b;\n}\n";
        assert!(circles(test).is_empty());
    }
}
