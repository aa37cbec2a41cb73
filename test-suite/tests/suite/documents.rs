//! The blocks of the documents. Programs of `docs/language.md` compile and run, and its errors are
//! refused. IR of `docs/ir.md` compiles, or is printed as it stands there. Commands succeed. Quoted
//! code is that of the file named before it. Blocks of Rust that are whole programs are tested by
//! `driver/compiler` (doctests) and `test-suite/additions`. The promises of `docs/embedding.md`
//! name tests. [`PROOFS`] lists the proof of each block; a block without a proof has a mark.

use std::os::unix::fs::symlink;
use std::process::Command;
use stencil_frontend::program::{Program, Role};
use stencil_frontend::source::Source;
use stencil_test_suite::{Scratch, root, tool};

/// Every run-time size: large enough for all blocks, small enough to simulate in three dimensions.
const SIZE: i64 = 24;

/// Which blocks are proved: their language, the documents, and by what.
const PROOFS: [(&str, &[&str], &str); 15] = [
    ("sh", &RUN, "commands_of_the_documents_succeed"),
    ("stencil", &["docs/language.md"], "programs_of_the_language_run_as_the_reference"),
    ("stencil", &["README.md"], "the_program_of_the_readme_is_that_of_the_suite"),
    ("stencil-error", &["docs/language.md"], "errors_of_the_language_are_refused"),
    ("sl", &["docs/sl.md"], "programs_of_sl_are_accepted"),
    ("c", &["docs/sl.md"], "programs_of_sl_are_accepted"),
    ("mlir", &["docs/ir.md"], "ir_of_the_documents_is_real"),
    ("rust", &QUOTING, "quoted_code_is_that_of_its_file"),
    ("mlir", &QUOTING, "quoted_code_is_that_of_its_file"),
    ("rust", &["README.md", "docs/embedding.md"], "doctests of driver/compiler"),
    ("rust", &["docs/add-a-strategy.md"], "test-suite/additions"),
    ("diff", &["docs/add-a-strategy.md"], "test-suite/additions"),
    ("text", &["docs/language.md", "docs/inner-loops.md"], "printed_texts_are_printed"),
    ("python", &["README.md", "docs/python.md"], "stage python: test_documents.py"),
    ("json", &["docs/plan.md"], "the_plan_of_the_document_is_that_of_the_tests"),
];

/// Why a block is neither run nor compared here: it stands after the language.
const MARKS: [(&str, &str); 4] = [
    ("gpu", "it needs a GPU"),
    ("long", "it builds, or takes minutes"),
    ("gallery", "`xtask/src/gallery.rs` has the same commands, and compares them"),
    ("picture", "it is a drawing, or a fragment that is no code of ours"),
];

/// Documents whose commands are run.
const RUN: [&str; 8] = [
    "README.md",
    "docs/ir.md",
    "docs/add-a-pass.md",
    "docs/overlapped.md",
    "docs/plan.md",
    "docs/running.md",
    "docs/scaling.md",
    "docs/sl.md",
];

/// Documents that quote code.
const QUOTING: [&str; 2] = ["docs/add-a-pass.md", "docs/add-an-op.md"];

/// A block of a document.
#[derive(Clone)]
struct Block {
    /// The line where it begins.
    line: usize,
    /// The file that the text before it named last, in backquotes.
    file: String,
    text: String,
}

/// The blocks of a document that begin with just this language.
fn blocks(document: &str, language: &str) -> Vec<Block> {
    let blocks = all_blocks(document, &read(document)).into_iter();
    blocks.filter(|(mark, _)| mark == language).map(|(_, block)| block).collect()
}

fn read(document: &str) -> String {
    let path = root().join("..").join(document);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All blocks with their languages and marks.
fn all_blocks(document: &str, text: &str) -> Vec<(String, Block)> {
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
                found.push((mark.to_owned(), block));
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
    let inputs =
        program.fields.values().filter(|field| matches!(field.role, Role::State | Role::Const));
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
        let strategies: &[_] =
            if text.contains("'[") { &["wavefront"] } else { &["naive", "block"] };
        for strategy in strategies {
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
    let text = read("docs/embedding.md");
    let (_, promises) = text.split_once("## What is promised").unwrap_or_default();
    let mut found = 0;
    for part in promises.split("\nIn [").skip(1) {
        let (_, rest) = part.split_once("](").unwrap_or_default();
        let (file, promises) = rest.split_once("):").unwrap_or_default();
        let tests = read(&format!("docs/{file}"));
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
    let (modules, kernels): (Vec<_>, Vec<_>) = blocks.into_iter().partition(|block| {
        ["\nmodule ", "affine.for"].iter().any(|word| block.text.contains(word))
    });
    assert_eq!((modules.len(), kernels.len()), (2, 1));
    for Block { line, text, .. } in modules {
        let scratch = Scratch::new();
        scratch.write("block.mlir", text);
        let outcome = scratch.run("stencilc", &["block.mlir", "-o", "out.ptx"]);
        assert_eq!(outcome.code, Some(0), "ir.md:{line}\n{}", outcome.stderr);
    }
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    let line = "heat2d.stencil --strategy block --tile 32,64 --per-thread 4 --pyramid-height 2 \
                --no-split-interior --emit=tiled";
    let printed = scratch.run("stencilc", &line.split_whitespace().collect::<Vec<_>>()).stdout;
    for Block { line, text, .. } in kernels {
        assert!(words(&printed).contains(&words(&text)), "ir.md:{line}: {text}\nnot in\n{printed}");
    }
}

/// Runs the commands of a document, block by block.
fn run_commands(document: &str) -> usize {
    let scratch = Scratch::new();
    let folder = scratch.path();
    std::fs::create_dir(folder.join("target")).unwrap();
    symlink(tool("stencilc").with_file_name(""), folder.join("target/release")).unwrap();
    symlink(root(), folder.join("test-suite")).unwrap();
    symlink(root().join("../dialects"), folder.join("dialects")).unwrap();
    let mut run = 0;
    for Block { line, text, .. } in blocks(document, "sh") {
        let mut shell = Command::new("sh");
        shell.args(["-ec", &text]).current_dir(folder);
        let outcome = shell.env("CUDA_VISIBLE_DEVICES", "-1").output().unwrap();
        let messages = String::from_utf8_lossy(&outcome.stderr);
        assert!(outcome.status.success(), "{document}:{line}\n{messages}");
        run += text.lines().filter(|line| line.starts_with("target/release/")).count();
    }
    run
}

#[test]
fn commands_of_the_documents_succeed() {
    assert_eq!(RUN.map(run_commands), [4, 23, 3, 1, 1, 4, 3, 1], "commands that ran");
}

/// Blocks of a document that are neither proved nor marked.
fn unproved(document: &str, text: &str) -> Vec<String> {
    let known = |info: &str| {
        let proved = |(language, documents, _): &(&str, &[&str], &str)| {
            *language == info && documents.contains(&document)
        };
        let marked = info
            .split_once(' ')
            .is_some_and(|(_, mark)| MARKS.iter().any(|(known, _)| *known == mark));
        marked || PROOFS.iter().any(proved)
    };
    let found = all_blocks(document, text).into_iter().filter(|(info, _)| !known(info));
    found.map(|(info, block)| format!("{document}:{}: `{info}`", block.line)).collect()
}

#[test]
fn every_block_is_proved_or_marked() {
    let mut documents = vec!["README.md".to_owned(), "ARCHITECTURE.md".to_owned()];
    for folder in ["docs", "docs/decisions"] {
        for entry in std::fs::read_dir(root().join("..").join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            documents.extend(name.ends_with(".md").then(|| format!("{folder}/{name}")));
        }
    }
    assert!(documents.len() > 20, "{documents:?}");
    let wrong: Vec<_> = documents.iter().flat_map(|name| unproved(name, &read(name))).collect();
    assert!(wrong.is_empty(), "neither run, compared nor marked:\n{}", wrong.join("\n"));
    // The check can fail: commands of another document, and a mark that nobody knows.
    let text = "```sh\nls\n```\n```sh slow\nls\n```\n```sh long\nls\n```\n";
    assert_eq!(unproved("docs/new.md", text), ["docs/new.md:1: `sh`", "docs/new.md:4: `sh slow`"]);
}

/// A text with one space between words: lines are broken at other places in documents.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn printed_texts_are_printed() {
    let [message] = &blocks("docs/language.md", "text")[..] else { panic!("one message") };
    let refused = read("test-suite/tests/snapshots/diagnostics__read-outside.snap");
    assert!(words(&refused).contains(&words(&message.text)), "{}", message.text);
    let [code] = &blocks("docs/inner-loops.md", "text")[..] else { panic!("one listing") };
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    let arguments = ["heat2d.stencil", "--strategy", "naive", "--emit=ptx"];
    let printed = scratch.run("stencilc", &arguments).stdout;
    assert!(words(&printed).contains(&words(&code.text)), "{}\nnot in\n{printed}", code.text);
}

#[test]
fn the_plan_of_the_document_is_that_of_the_tests() {
    let plans = blocks("docs/plan.md", "json");
    assert_eq!(plans.len(), 1);
    assert_eq!(plans[0].text, read("runtime/tests/data/heat.plan.json"));
}

/// The variables that the tools read are those that the README lists.
#[test]
fn the_readme_lists_every_variable() {
    let sources =
        ["driver/src/cli/session.rs", "driver/src/message.rs", "driver/compiler/src/toolchain.rs"];
    let sources = sources.map(read).concat();
    let quoted = sources.split('"').skip(1).step_by(2);
    let mut variables: Vec<_> = quoted
        .filter(|word| ["STENCILC_", "CUDA_", "NO_COLOR"].iter().any(|name| word.starts_with(name)))
        .collect();
    variables.dedup();
    assert!(variables.len() >= 6, "{variables:?}");
    let readme = read("README.md");
    for variable in variables {
        assert!(readme.contains(&format!("`{variable}`")), "README.md has no `{variable}`");
    }
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
    for document in QUOTING {
        let quotes = [blocks(document, "rust"), blocks(document, "mlir")].concat();
        assert!(quotes.len() >= 5, "{document}: {}", quotes.len());
        for Block { line, file, text } in quotes {
            assert!(module(&file).contains(&text), "{document}:{line}: not in {file}\n{text}");
        }
    }
}

/// The programs of SL are accepted, the first one is that of the suite, and the functions in C are
/// those that are written for it.
#[test]
fn programs_of_sl_are_accepted() {
    let programs = blocks("docs/sl.md", "sl");
    assert!(programs.len() >= 2, "{}", programs.len());
    for block in &programs {
        let (program, _) = stencil_frontend::load(&Source::new("block.sl", &block.text), &[]);
        assert!(program.is_some(), "docs/sl.md:{}", block.line);
    }
    let hotspot = programs.first().map(|block| block.text.clone()).unwrap_or_default();
    assert_eq!(hotspot, read("test-suite/sl/Hotspot.sl"));
    let scratch = Scratch::new();
    scratch.write("Hotspot.sl", &hotspot);
    let outcome = scratch.run("stencilc", &["Hotspot.sl", "--emit=c", "-o", "Hotspot"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let header = scratch.read("Hotspot.h").replace("scalar_", "");
    let declared = header.replace("int32_t", "int");
    let declarations = blocks("docs/sl.md", "c");
    let lines: Vec<&str> = declarations.iter().flat_map(|block| block.text.lines()).collect();
    assert_eq!(lines.len(), 2);
    for line in lines {
        assert!(declared.contains(line), "{line}\n{declared}");
    }
}
