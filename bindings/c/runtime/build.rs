//! The name by which programs load the library: it has the part of the version that changes when
//! the interface does.

fn main() {
    let version = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libstencil_runtime.so.{version}");
    println!("cargo::rerun-if-changed=build.rs");
}
