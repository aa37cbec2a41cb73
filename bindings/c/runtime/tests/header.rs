//! The headers are what cbindgen makes of the crates.

#![forbid(unsafe_code)]

use std::path::Path;

/// Compares a header with what cbindgen makes of files of a crate.
fn compare(header: &str, folder: &str, files: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = root.join(folder);
    let config = cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap();
    let sources = files.iter().map(|name| folder.join("src").join(name));
    let builder = sources.fold(cbindgen::Builder::new(), |all, one| all.with_src(one));
    let mut made = Vec::new();
    builder.with_config(config).generate().unwrap().write(&mut made);
    let made = String::from_utf8(made).unwrap();
    let file = root.join("include").join(header);
    if std::env::var_os("STENCIL_UPDATE_HEADERS").is_some() {
        std::fs::write(&file, &made).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == made,
        "{header} is old; STENCIL_UPDATE_HEADERS=1 cargo test -p stencil-c-runtime makes it"
    );
}

#[test]
fn the_headers_are_current() {
    compare("stencil.h", "runtime", &["fault.rs", "exports.rs", "exports_fields.rs"]);
    compare("stencilc.h", "compiler", &["exports.rs"]);
}
