//! The name by which programs load the library: it changes with the interface.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libstencil_runtime.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
