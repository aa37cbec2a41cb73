//! Tests of the crate as a whole, by theme.

mod bounds;
mod checks;
mod edges;
mod fuzz;
mod lets;
mod meaning;
mod programs;
mod random;
mod ranges;
mod reductions;
mod shapes;
mod sl;
mod syntax;
mod walk;

use crate::diagnostics::{Look, render};
use crate::program::Program;
use crate::sizes::Sizes;
use crate::source::Source;

/// The program, or the rendered diagnostics as a panic.
fn program(text: &str) -> Program {
    let source = Source::new("test.stencil", text);
    match crate::load(&source, &[]) {
        (Some(program), _) => program,
        (None, errors) => panic!("{}", render(&errors, &source, Look::Plain)),
    }
}

/// The messages of the diagnostics.
fn messages(text: &str) -> Vec<String> {
    let (program, errors) = crate::load(&Source::new("test.stencil", text), &[]);
    assert_eq!(program.is_some(), errors.is_empty());
    errors.into_iter().map(|error| error.message).collect()
}

/// A program with one f32 field of one dimension.
fn line(rest: &str) -> String {
    format!("param N\ngrid G = [0..N-1]\nfield A : f32 on G\n{rest}\n")
}

/// The size of every param that ends a dimension of a grid alone, as in `0..N-1`, for arrays of a
/// shape.
fn sizes_for(program: &Program, shape: &[usize]) -> Sizes {
    let mut sizes = Sizes::new();
    for grid in program.grids.values() {
        for ((lower, upper), found) in grid.region.lower.iter().zip(&grid.region.upper).zip(shape) {
            assert!(lower.terms.is_empty());
            if let [(id, 1)] = upper.terms.as_slice() {
                sizes.insert(*id, *found as i64 - 1 + lower.constant - upper.constant);
            }
        }
    }
    sizes
}

/// The sources of a folder of the test suite, by name.
fn suite(folder: &str) -> Vec<Source> {
    let path =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite").join(folder);
    let mut sources = Vec::new();
    for entry in std::fs::read_dir(&path).unwrap_or_else(|error| panic!("{path:?}: {error}")) {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "stencil") {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            sources.push(Source::new(name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    sources.sort_by(|a, b| a.name.cmp(&b.name));
    sources
}
