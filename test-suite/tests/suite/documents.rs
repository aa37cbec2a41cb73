//! The blocks of the documents. Programs of `docs/language.md` compile and run, and its errors are
//! refused. IR of `docs/ir.md` compiles, or is printed as it stands there. Commands succeed. Quoted
//! code is that of the file named before it. Blocks of Rust that are whole programs are tested by
//! `driver/compiler` (doctests) and `test-suite/additions`. The promises of `docs/embedding.md`
//! name tests.

use std::os::unix::fs::symlink;
use std::process::Command;
use stencil_frontend::program::{Program, Role};
use stencil_frontend::source::Source;
use stencil_test_suite::{Scratch, root, tool};

/// Every run-time size: large enough for all blocks, small enough to simulate in three dimensions.
const SIZE: i64 = 24;

/// A block of a document.
#[derive(Clone)]
struct Block {
    /// The line where it begins.
    line: usize,
    /// The file that the text before it named last, in backquotes.
    file: String,
    text: String,
}

/// The blocks of a document that are marked with a language.
fn blocks(document: &str, language: &str) -> Vec<Block> {
    let path = root().join("..").join(document);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let is_file = |word: &&str| word.contains('/') && !word.contains([' ', '*']);
    let mut found = Vec::new();
    let mut file = String::new();
    let mut open: Option<(&str, Block)> = None;
    for (number, line) in text.lines().enumerate() {
        open = match (line.strip_prefix("```"), open) {
            (Some(mark), None) => {
                let (line, file) = (number + 1, file.clone());
                Some((mark, Block { line, file, text: String::new() }))
            }
            (Some(_), Some((mark, block))) => {
                if mark == language {
                    found.push(block);
                }
                None
            }
            (None, Some((mark, mut block))) => {
                block.text += &format!("{line}\n");
                Some((mark, block))
            }
            (None, None) => {
                let named = line.split('`').skip(1).step_by(2).filter(is_file).last();
                file = named.map_or(file, str::to_owned);
                None
            }
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
    let blocks = blocks("docs/language.md", "stencil");
    assert!(blocks.len() >= 10, "{}", blocks.len());
    let mut wrong = Vec::new();
    for Block { line, text, .. } in blocks {
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
    let blocks = blocks("docs/language.md", "stencil-error");
    assert!(blocks.len() >= 5, "{}", blocks.len());
    for Block { line, text, .. } in blocks {
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

#[test]
fn the_program_of_the_readme_is_that_of_the_suite() {
    let program = std::fs::read_to_string(root().join("programs/heat2d.stencil")).unwrap();
    let blocks = blocks("README.md", "stencil");
    assert_eq!(blocks.len(), 1);
    assert_eq!(blocks[0].text, program);
}

#[test]
fn ir_of_the_documents_is_real() {
    let blocks = blocks("docs/ir.md", "mlir");
    let (modules, kernels): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|block| block.text.contains("\nmodule "));
    assert_eq!((modules.len(), kernels.len()), (1, 1));
    for Block { line, text, .. } in modules {
        let scratch = Scratch::new();
        scratch.write("block.mlir", text);
        let outcome = scratch.run("stencilc", &["block.mlir", "-o", "out.ptx"]);
        assert_eq!(outcome.code, Some(0), "ir.md:{line}\n{}", outcome.stderr);
    }
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    let words = "heat2d.stencil --strategy block --tile 32,64 --per-thread 4 --pyramid-height 2 \
                 --no-split-interior --emit=tiled";
    let printed = scratch.run("stencilc", &words.split_whitespace().collect::<Vec<_>>()).stdout;
    for Block { line, text, .. } in kernels {
        for wanted in text.lines().map(str::trim) {
            let found = printed.lines().any(|line| line.trim() == wanted);
            assert!(found, "ir.md:{line}: no line\n{wanted}\nin\n{printed}");
        }
    }
}

/// Runs the commands of a document, block by block, but for those that build or need a device.
fn run_commands(document: &str) -> usize {
    let scratch = Scratch::new();
    let folder = scratch.path();
    std::fs::create_dir(folder.join("target")).unwrap();
    symlink(tool("stencilc").with_file_name(""), folder.join("target/release")).unwrap();
    symlink(root(), folder.join("test-suite")).unwrap();
    let elsewhere = |line: &&str| line.starts_with("cargo ") || line.contains("stencil-bench");
    let mut run = 0;
    for Block { line, text, .. } in blocks(document, "sh") {
        let text = text.replace("\\\n", " ");
        let script: Vec<_> = text.lines().filter(|line| !elsewhere(line)).collect();
        let mut shell = Command::new("sh");
        shell.args(["-ec", &script.join("\n")]).current_dir(folder);
        let outcome = shell.env("CUDA_VISIBLE_DEVICES", "-1").output().unwrap();
        let messages = String::from_utf8_lossy(&outcome.stderr);
        assert!(outcome.status.success(), "{document}:{line}\n{messages}");
        run += script.iter().filter(|line| line.starts_with("target/release/")).count();
    }
    run
}

#[test]
fn commands_of_the_documents_succeed() {
    assert_eq!(
        ["README.md", "docs/ir.md", "docs/add-a-pass.md"].map(run_commands),
        [4, 3, 3],
        "commands that ran"
    );
}

/// The text of a file, or of a module with all files in its folder.
fn module(name: &str) -> String {
    let path = root().join("..").join(name);
    if path.is_file() {
        return std::fs::read_to_string(path).unwrap();
    }
    let mut text = std::fs::read_to_string(path.with_extension("rs")).unwrap_or_default();
    for entry in std::fs::read_dir(path).into_iter().flatten() {
        text += &std::fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    text
}

#[test]
fn quoted_code_is_that_of_its_file() {
    for document in ["docs/add-a-pass.md", "docs/add-an-op.md"] {
        let quotes = [blocks(document, "rust"), blocks(document, "mlir")].concat();
        assert!(quotes.len() >= 5, "{document}: {}", quotes.len());
        for Block { line, file, text } in quotes {
            assert!(module(&file).contains(&text), "{document}:{line}: not in {file}\n{text}");
        }
    }
}
