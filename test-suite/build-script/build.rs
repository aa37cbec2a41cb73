//! Compiles each program of `src/` by the tool `stencilc` to a plan and its PTX in `OUT_DIR`.
//!
//! The tool is that of the environment variable `STENCILC`, or the one on the search path. A build
//! that has none gets an error at the place where the program is used.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-env-changed=STENCILC");
    let tool = env::var_os("STENCILC").unwrap_or_else(|| OsString::from("stencilc"));
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for entry in Path::new("src").read_dir()? {
        let program = entry?.path();
        if program.extension().is_some_and(|extension| extension == "stencil") {
            println!("cargo::rerun-if-changed={}", program.display());
            compile(&tool, &program, &out)?;
        }
    }
    Ok(())
}

fn compile(tool: &OsString, program: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let stem = out.join(program.file_stem().unwrap_or_default());
    let mut stencilc = Command::new(tool);
    stencilc.arg(program).args(["--emit=ptx,plan", "--arch=sm_80", "-o"]).arg(&stem);
    match stencilc.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("stencilc refused {} ({status})", program.display()).into()),
        // The crate itself says so, where it is used.
        Err(error) => {
            println!("cargo::warning={}: {error}; set STENCILC", tool.display());
            std::fs::write(stem.with_extension("plan.json"), "")?;
            Ok(std::fs::write(stem.with_extension("ptx"), "")?)
        }
    }
}
