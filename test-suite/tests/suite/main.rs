//! Snapshot tests over the built tools and whole programs. The tools must be built before:
//! `cargo build --release && cargo nextest run --release -p stencil-test-suite`.

mod agreement;
mod build_script;
mod checkpoints;
mod command_line;
mod compiles;
mod conformance;
mod devices;
mod diagnostics;
mod documents;
mod finite;
mod host_memory;
mod index_width;
mod large;
mod layouts;
mod limits;
mod math;
mod memory;
mod module_limits;
mod names;
mod operations;
mod out_of_core;
mod outputs;
mod plans;
mod processor;
mod snapshots;

/// Compares a text with its stored snapshot, which stands in a file of the given name.
fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("../snapshots");
    settings.bind(|| insta::assert_snapshot!(name, text));
}
