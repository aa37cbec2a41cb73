//! Copies `passes/src` and changes the copy as docs/add-a-strategy.md tells its reader to: a block
//! of Rust is a new file, a block of changes is applied to a file. The text before a block names
//! the file.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folder that the document changes.
const SOURCES: &str = "passes/src/";

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../..");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let (document, sources) = (root.join("docs/add-a-strategy.md"), root.join(SOURCES));
    for path in [&document, &sources] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let copy = out.join("src");
    if copy.exists() {
        fs::remove_dir_all(&copy)?;
    }
    copy_folder(&sources, &copy)?;
    change(&fs::read_to_string(document)?, &copy)?;
    fs::write(out.join("modules.rs"), modules(&copy)?)?;
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (from, to) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() { copy_folder(&from, &to)? } else { fs::write(to, fs::read(from)?)? }
    }
    Ok(())
}

/// Makes the changes of the document's blocks, in order.
fn change(document: &str, copy: &Path) -> Result<(), Box<dyn Error>> {
    let mut file = PathBuf::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.split('`').find_map(|word| word.strip_prefix(SOURCES)) {
            file = copy.join(name);
        }
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match kind {
            "rust" => {
                fs::create_dir_all(file.parent().ok_or("a block without a file")?)?;
                fs::write(&file, block.join("\n") + "\n")?;
            }
            "diff" => {
                let side = |other: char| -> String {
                    let lines = block.iter().filter(|line| !line.starts_with(other));
                    lines.map(|line| line.get(1..).unwrap_or_default().to_owned() + "\n").collect()
                };
                let (before, after) = (side('+'), side('-'));
                let text = fs::read_to_string(&file)?;
                if text.matches(&before).count() != 1 {
                    let name = file.strip_prefix(copy).unwrap_or(&file).display();
                    return Err(format!(
                        "{SOURCES}{name} has no one place of these lines of \
                         docs/add-a-strategy.md; change the document to fit the file:\n{before}"
                    )
                    .into());
                }
                fs::write(&file, text.replace(&before, &after))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// The modules of the copy's `lib.rs`, each with its path.
fn modules(copy: &Path) -> Result<String, Box<dyn Error>> {
    let mut modules = String::new();
    for line in fs::read_to_string(copy.join("lib.rs"))?.lines() {
        let Some(name) = line.strip_prefix("pub mod ").and_then(|line| line.strip_suffix(';'))
        else {
            continue;
        };
        let file = copy.join(format!("{name}.rs"));
        let file = if file.exists() { file } else { copy.join(name).join("mod.rs") };
        writeln!(modules, "#[path = {file:?}]\npub mod {name};")?;
    }
    Ok(modules)
}
