//! Which file imports which, read off `use` items and paths through modules.

use std::collections::{BTreeMap, HashMap};

use super::source::{Kind, Source, Token};

/// For each file the files that it imports, with the first line that does.
pub type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, usize>>;

/// A path in code, word by word.
type Words = Vec<String>;

/// The modules of all crates.
pub struct Modules<'a> {
    files: HashMap<Place, File<'a>>,
}

/// A module: the folder of its crate's root, and its path from there.
type Place = (String, Words);

struct File<'a> {
    source: &'a Source,
    uses: Vec<Use>,
}

/// A name that a `use` item brings in.
struct Use {
    path: Words,
    /// The name in this file; `*` for all names of a module.
    name: String,
    /// Whether other modules can see it here.
    is_export: bool,
    line: usize,
}

impl<'a> Modules<'a> {
    /// Finds the module of each file.
    pub fn of(sources: &[&'a Source]) -> Self {
        let roots: Vec<&str> = sources.iter().filter_map(|source| root_folder(source)).collect();
        let mut files = HashMap::new();
        for source in sources {
            let above = |root: &&&str| {
                source.name.strip_prefix(**root).is_some_and(|rest| rest.starts_with('/'))
            };
            let Some(root) = roots.iter().filter(above).max_by_key(|root| root.len()) else {
                continue;
            };
            let path = source.name[root.len() + 1..].trim_end_matches(".rs");
            let mut words: Words = path.split('/').map(str::to_owned).collect();
            // Where a crate has a library, nothing can import from the tool beside it.
            let library = format!("{root}/lib.rs");
            let is_tool = path == "main" && sources.iter().any(|other| other.name == library);
            if !is_tool
                && words.last().is_some_and(|last| ["mod", "lib", "main"].contains(&&**last))
            {
                words.pop();
            }
            let uses = uses(&source.tokens);
            files.insert((root.to_string(), words), File { source, uses });
        }
        Self { files }
    }

    /// Every file's imports, from files of its own crate.
    pub fn imports(&self) -> Imports<'a> {
        let mut imports = Imports::new();
        for (place, file) in &self.files {
            let targets: &mut BTreeMap<&str, usize> = imports.entry(&file.source.name).or_default();
            for (path, line) in self.paths(file) {
                if let Some((target, rest)) = self.resolve(place, &path, 0)
                    && !rest.is_empty()
                    && target != file.source.name
                {
                    let first = targets.entry(target).or_insert(line);
                    *first = line.min(*first);
                }
            }
        }
        imports
    }

    /// The paths to items that a file names: by `use`, and by paths of two words and more.
    fn paths(&self, file: &File) -> Vec<(Words, usize)> {
        let imported = file.uses.iter().filter(|used| !used.is_export || used.name == "*");
        let mut paths: Vec<_> = imported.map(|used| (used.path.clone(), used.line)).collect();
        let tokens = &file.source.tokens;
        let is_path = |at: usize| tokens.get(at).is_some_and(|token| token.is(Kind::Mark, "::"));
        let mut at = 0;
        while at < tokens.len() {
            if is_use(tokens, at) {
                at += tokens[at..].iter().take_while(|token| !token.is(Kind::Mark, ";")).count();
                continue;
            }
            let begins = tokens[at].kind == Kind::Word && is_path(at + 1) && !tokens[at].is_test;
            let inside = at > 0 && is_path(at - 1);
            let mut words = vec![tokens[at].text.clone()];
            let line = tokens[at].line;
            while tokens[at].kind == Kind::Word
                && is_path(at + 1)
                && tokens.get(at + 2).is_some_and(|token| token.kind == Kind::Word)
            {
                at += 2;
                words.push(tokens[at].text.clone());
            }
            if begins && !inside && words.len() > 1 {
                paths.push((words, line));
            }
            at += 1;
        }
        paths
    }

    /// The file in which a path's module lies, and the words after the module.
    fn resolve(&self, from: &Place, path: &[String], depth: usize) -> Option<(&'a str, Words)> {
        // Names can be re-exported in a circle.
        if depth > 8 {
            return None;
        }
        let (root, here) = from;
        let at = |words: &[String]| self.files.get(&(root.clone(), words.to_vec()));
        let (first, rest) = path.split_first()?;
        let mut module = match first.as_str() {
            "crate" => Vec::new(),
            "self" => here.clone(),
            "super" => here[..here.len().checked_sub(1)?].to_vec(),
            word => {
                let child = [here.as_slice(), &[word.to_owned()]].concat();
                if at(&child).is_some() {
                    child
                } else {
                    let used = at(here)?.uses.iter().find(|used| used.name == word)?;
                    // `use x::x` must not lead to itself.
                    let long = [used.path.as_slice(), rest].concat();
                    return (long != path).then(|| self.resolve(from, &long, depth + 1))?;
                }
            }
        };
        let mut rest = rest.to_vec();
        while let Some(word) = rest.first() {
            if word == "super" {
                module.pop()?;
            } else {
                module.push(word.clone());
                if at(&module).is_none() {
                    module.pop();
                    break;
                }
            }
            rest.remove(0);
        }
        let file = at(&module)?;
        let exported = rest
            .first()
            .and_then(|word| file.uses.iter().find(|used| used.is_export && used.name == *word));
        if let Some(exported) = exported {
            let long = [exported.path.as_slice(), &rest[1..]].concat();
            let place = (root.clone(), module);
            return self.resolve(&place, &long, depth + 1);
        }
        Some((&file.source.name, rest))
    }
}

/// The folder of a crate, where the file is the crate's root.
fn root_folder<'a>(source: &&'a Source) -> Option<&'a str> {
    let (folder, file) = source.name.rsplit_once('/')?;
    ["lib.rs", "main.rs"].contains(&file).then_some(folder)
}

/// All names that a file's `use` items bring in, those of tests left out.
fn uses(tokens: &[Token]) -> Vec<Use> {
    let mut uses = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.is_test || !is_use(tokens, at) {
            continue;
        }
        let is_export =
            at > 0 && (tokens[at - 1].is(Kind::Word, "pub") || tokens[at - 1].is(Kind::Close, ")"));
        let mut names = Vec::new();
        tree(&tokens[at + 1..], &mut Vec::new(), &mut names);
        uses.extend(names.into_iter().map(|(path, name)| Use {
            path,
            name,
            is_export,
            line: token.line,
        }));
    }
    uses
}

/// Whether a `use` item begins here; `use<'a>` lists what a type captures.
fn is_use(tokens: &[Token], at: usize) -> bool {
    let captures = tokens.get(at + 1).is_some_and(|next| next.is(Kind::Mark, "<"));
    tokens[at].is(Kind::Word, "use") && !captures
}

/// Reads one tree of a `use` item: a path, or paths in braces. Returns how many tokens it has.
fn tree(tokens: &[Token], prefix: &mut Words, names: &mut Vec<(Words, String)>) -> usize {
    let outer = prefix.len();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        match (token.kind, token.text.as_str()) {
            (Kind::Open, _) => {
                at += 1;
                while tokens.get(at).is_some_and(|token| token.kind != Kind::Close) {
                    at += tree(&tokens[at..], prefix, names).max(1);
                    at += usize::from(tokens.get(at).is_some_and(|t| t.is(Kind::Mark, ",")));
                }
                prefix.truncate(outer);
                return at + 1;
            }
            (Kind::Word, "as") => {
                let name = tokens.get(at + 1).map(|token| token.text.clone());
                names.push((prefix.clone(), name.unwrap_or_default()));
                prefix.truncate(outer);
                return at + 2;
            }
            (Kind::Word, _) | (Kind::Mark, "*") => prefix.push(token.text.clone()),
            (Kind::Mark, "::") => (),
            _ => break,
        }
        at += 1;
    }
    if prefix.len() > 1 && prefix.last().is_some_and(|word| word == "self") {
        prefix.pop();
    }
    names.push((prefix.clone(), prefix.last().cloned().unwrap_or_default()));
    prefix.truncate(outer);
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_of_names_are_read() {
        let code = "use a::{self, b, c::{d as e, f::*}};\npub use g::h;\n\
                    fn i() -> impl J + use<'_> {}\n#[cfg(test)]\nuse k::l;\n";
        let source = Source::read("a.rs", code).unwrap();
        let found: Vec<_> = uses(&source.tokens)
            .iter()
            .map(|used| format!("{} {} {}", used.path.join("::"), used.name, used.is_export))
            .collect();
        let wanted =
            ["a a false", "a::b b false", "a::c::d e false", "a::c::f::* * false", "g::h h true"];
        assert_eq!(found, wanted);
    }

    #[test]
    fn paths_lead_to_files() {
        let sources = [
            ("c/src/lib.rs", "pub mod a;\npub mod b;\n"),
            ("c/src/a.rs", "use crate::b;\nfn f() { b::x::g(); super::h(); Vec::new() }\n"),
            ("c/src/b/mod.rs", "mod x;\nuse x::{g};\nuse other::b;\n"),
            ("c/src/b/x.rs", "use super::super::a::f;\n"),
            ("c/src/bin/t/main.rs", "mod a;\nuse crate::a::g;\n"),
            ("c/src/bin/t/a.rs", ""),
        ]
        .map(|(name, text)| Source::read(name, text).unwrap());
        let sources: Vec<_> = sources.iter().collect();
        let found: Vec<_> = Modules::of(&sources)
            .imports()
            .into_iter()
            .flat_map(|(file, targets)| targets.into_iter().map(move |(to, line)| (file, to, line)))
            .collect();
        let wanted = [
            ("c/src/a.rs", "c/src/b/x.rs", 2),
            ("c/src/a.rs", "c/src/lib.rs", 2),
            ("c/src/b/mod.rs", "c/src/b/x.rs", 2),
            ("c/src/b/x.rs", "c/src/a.rs", 1),
            ("c/src/bin/t/main.rs", "c/src/bin/t/a.rs", 2),
        ];
        assert_eq!(found, wanted);
    }
}
