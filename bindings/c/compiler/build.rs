//! Gives the library the name by which programs find it, which is that of its installed file.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // Arguments for cdylibs alone would reach the libraries of other packages too.
        println!("cargo::rustc-link-arg=-Wl,-soname,libstencilc.so");
    }
}
