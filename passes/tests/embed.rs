//! The example `embed`, which cargo builds with the tests, and what FileCheck finds in its PTX.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn file_check() -> PathBuf {
    let llvm = std::env::var_os("LLVM_SYS_221_PREFIX")
        .map_or_else(|| PathBuf::from("/usr/lib/llvm-22"), PathBuf::from);
    llvm.join("bin/FileCheck")
}

#[test]
fn the_example_prints_the_expected_ptx() {
    let test = std::env::current_exe().expect("the test's own path");
    let example = test.ancestors().nth(2).expect("the build folder").join("examples/embed");
    let output =
        Command::new(&example).output().expect("the example, built by cargo along with this test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/embed.rs");
    let mut check =
        Command::new(file_check()).arg(source).stdin(Stdio::piped()).spawn().expect("FileCheck");
    check.stdin.take().expect("a pipe").write_all(&output.stdout).expect("FileCheck reads");
    assert!(check.wait().expect("FileCheck ends").success());
}
