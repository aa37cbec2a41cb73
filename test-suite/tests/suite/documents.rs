//! The blocks of `docs/language.md`: what is marked `stencil` compiles and runs as the language has
//! it, what is marked `stencil-error` is refused. The promises of `docs/embedding.md` name tests.

use stencil_frontend::program::{Program, Role};
use stencil_frontend::source::Source;
use stencil_test_suite::{Scratch, root};

/// Every run-time size: large enough for all blocks, small enough to simulate in three dimensions.
const SIZE: i64 = 24;

/// The blocks of a document that are marked with a language, each with the line where it begins.
fn blocks(document: &str, language: &str) -> Vec<(usize, String)> {
    let path = root().join("../docs").join(document);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut found = Vec::new();
    let mut open: Option<(usize, &str, String)> = None;
    for (number, line) in text.lines().enumerate() {
        open = match (line.strip_prefix("```"), open) {
            (Some(mark), None) => Some((number + 1, mark, String::new())),
            (Some(_), Some((start, mark, block))) => {
                if mark == language {
                    found.push((start, block));
                }
                None
            }
            (None, Some((start, mark, block))) => Some((start, mark, block + line + "\n")),
            (None, None) => None,
        };
    }
    assert!(open.is_none(), "{document}: a block without an end");
    found
}

/// The program of a block, or what is wrong with it.
fn load(text: &str) -> Result<Program, String> {
    let source = Source::new("block.stencil", text);
    let (program, errors) = stencil_frontend::load(&source, &[]);
    program.ok_or_else(|| {
        stencil_frontend::diagnostics::render(
            &errors,
            &source,
            stencil_frontend::diagnostics::Look::Plain,
        )
    })
}

/// The command line that runs a program on the simulator and compares with the reference.
fn command(program: &Program, strategy: &str) -> Vec<String> {
    let words = "run block.stencil --target sim --check --fp-contract=off --steps 3 --strategy";
    let mut words: Vec<String> = words.split(' ').chain([strategy]).map(str::to_owned).collect();
    for param in program.params.values().filter(|param| param.value.is_none()) {
        words.extend(["--size".to_owned(), format!("{}={SIZE}", param.name)]);
    }
    // The leaves of a struct or vec follow each other, and are one input.
    let inputs = program.fields.values().filter(|field| field.role != Role::Temp);
    let mut inputs: Vec<_> =
        inputs.map(|field| field.name.split('.').next().unwrap_or_default()).collect();
    inputs.dedup();
    for (place, name) in inputs.into_iter().enumerate() {
        words.extend(["--in".to_owned(), format!("{name}=random:{place}")]);
    }
    for scalar in program.scalars.values().filter(|scalar| scalar.default.is_none()) {
        words.extend(["--set".to_owned(), format!("{}=0.5", scalar.name)]);
    }
    words
}

#[test]
fn programs_of_the_language_run_as_the_reference() {
    let blocks = blocks("language.md", "stencil");
    assert!(blocks.len() >= 10, "{}", blocks.len());
    let mut wrong = Vec::new();
    for (line, text) in blocks {
        let program = match load(&text) {
            Ok(program) => program,
            Err(message) => {
                wrong.push(format!("language.md:{line}:\n{message}"));
                continue;
            }
        };
        let scratch = Scratch::new();
        scratch.write("block.stencil", &text);
        for strategy in ["naive", "block"] {
            let words = command(&program, strategy);
            let outcome =
                scratch.run("stencilc", &words.iter().map(String::as_str).collect::<Vec<_>>());
            if outcome.code != Some(0) {
                wrong.push(format!(
                    "language.md:{line}: stencilc {}\n{}{}",
                    words.join(" "),
                    outcome.stdout,
                    outcome.stderr
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn errors_of_the_language_are_refused() {
    let blocks = blocks("language.md", "stencil-error");
    assert!(blocks.len() >= 5, "{}", blocks.len());
    for (line, text) in blocks {
        let scratch = Scratch::new();
        scratch.write("block.stencil", &text);
        let outcome = scratch.run("stencilc", &["block.stencil", "-o", "out.ptx"]);
        assert_eq!(
            (outcome.code, outcome.new_files.as_slice()),
            (Some(1), &[][..]),
            "language.md:{line}\n{text}"
        );
        let message = load(&text)
            .err()
            .unwrap_or_else(|| panic!("language.md:{line}: the checker takes it\n{text}"));
        // One fault a block: the document speaks of one.
        assert_eq!(message.matches("error: ").count(), 1, "language.md:{line}\n{message}");
    }
}

/// Each promise ends with the name of a test, in the file that is linked before.
#[test]
fn promises_of_embedding_name_tests_that_exist() {
    let docs = root().join("../docs");
    let read = |path: &std::path::Path| {
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let text = read(&docs.join("embedding.md"));
    let (_, promises) = text.split_once("## What is promised").unwrap_or_default();
    let mut found = 0;
    for part in promises.split("\nIn [").skip(1) {
        let (_, rest) = part.split_once("](").unwrap_or_default();
        let (file, promises) = rest.split_once("):").unwrap_or_default();
        let tests = read(&docs.join(file));
        for promise in promises.split("\n- ").skip(1) {
            let name = promise.trim().trim_end_matches("`.").rsplit('`').next();
            let test = format!("#[test]\nfn {}() {{", name.unwrap_or_default());
            let nested = test.replace('\n', "\n    ");
            assert!(tests.contains(&test) || tests.contains(&nested), "{file}: {promise}");
            found += 1;
        }
    }
    assert!(found >= 10, "{found}");
}
