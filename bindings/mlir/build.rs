//! Compiles the part of the plugin that is in C++, against the headers of the LLVM that the rest is
//! linked with.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

type Failed = Box<dyn std::error::Error>;

fn main() -> Result<(), Failed> {
    const SHIM: &str = "src/shim.cpp";
    println!("cargo::rerun-if-changed={SHIM}");
    println!("cargo::rerun-if-env-changed=MLIR_SYS_220_PREFIX");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let prefix = env::var("MLIR_SYS_220_PREFIX")?;
    let (object, archive) = (out.join("shim.o"), out.join("libstencil_shim.a"));
    let mut cxx = Command::new(env::var("CXX").unwrap_or_else(|_| "c++".to_owned()));
    cxx.args(["-std=c++17", "-O1", "-fPIC", "-fno-exceptions", "-fno-rtti", "-c", SHIM, "-o"]);
    run(cxx.arg(&object).arg(format!("-I{}", Path::new(&prefix).join("include").display())))?;
    run(Command::new("ar").arg("rcs").arg(&archive).arg(&object))?;
    println!("cargo::rustc-link-search=native={}", out.display());
    println!("cargo::rustc-link-lib=static=stencil_shim");
    Ok(())
}

fn run(command: &mut Command) -> Result<(), Failed> {
    match command.status()?.success() {
        true => Ok(()),
        false => Err(format!("{command:?} failed").into()),
    }
}
