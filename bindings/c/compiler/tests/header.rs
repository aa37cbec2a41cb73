//! `stencilc.h` is what cbindgen makes of the crate.

#![forbid(unsafe_code)]

use std::path::Path;

#[test]
fn the_header_is_current() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let sources = [root.join("src/exports.rs")];
    let builder = sources.iter().fold(cbindgen::Builder::new(), |all, one| all.with_src(one));
    let mut made = Vec::new();
    builder.with_config(config).generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let file = root.join("../include/stencilc.h");
    if std::env::var_os("STENCIL_UPDATE_HEADERS").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == made,
        "stencilc.h is old; STENCIL_UPDATE_HEADERS=1 cargo test -p stencil-c-compiler makes it"
    );
}
