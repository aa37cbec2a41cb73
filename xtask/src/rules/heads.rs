//! Every Rust file begins by saying what it is for, and only the adapters hold `unsafe`.

use super::source::{Kind, Token};
use super::{Break, Tree};

/// The files that may hold `unsafe`: what follows pointers of C and Python, the adapter to MLIR's C
/// interface, those to CUDA's driver, what loads and calls machine code, what handles crashes, the
/// allocator of the tools, mapped files, and what looks at standard output before `main`.
const MAY_BE_UNSAFE: [&str; 25] = [
    "bindings/c/runtime/src/caller.rs",
    "bindings/python/src/memory.rs",
    "dialects/src/mlir.rs",
    "passes/src/llvm/load_object.rs",
    "runtime/src/allocator.rs",
    "runtime/src/array/mapped.rs",
    "runtime/src/cpu/code.rs",
    "runtime/src/crash.rs",
    "runtime/src/cuda/buffer.rs",
    "runtime/src/cuda/call.rs",
    "runtime/src/cuda/clock.rs",
    "runtime/src/cuda/device.rs",
    "runtime/src/cuda/error.rs",
    "runtime/src/cuda/graph.rs",
    "runtime/src/cuda/handle.rs",
    "runtime/src/cuda/joint.rs",
    "runtime/src/cuda/kernel.rs",
    "runtime/src/cuda/look.rs",
    "runtime/src/cuda/module.rs",
    "runtime/src/cuda/pinned.rs",
    "runtime/src/cuda/slots.rs",
    "runtime/src/cuda/stream.rs",
    "runtime/src/cuda/strips.rs",
    "runtime/src/host/raw.rs",
    "runtime/src/standard_output.rs",
];

/// Files without a head comment.
pub fn without_head(tree: &Tree) -> Vec<Break> {
    let bare = tree.sources.iter().filter(|source| !source.text.starts_with("//!"));
    let what = "begins without a `//!` comment that says what it is for";
    bare.map(|source| Break::new(&source.name, 1, what)).collect()
}

/// The folder of the C interface, whose functions have the attribute `unsafe(no_mangle)`: it gives
/// a function a name that C finds, and reads no memory.
const EXPORTS: &str = "bindings/c/";

/// The first `unsafe` of each file that may have none.
pub fn unsafe_code(tree: &Tree) -> Vec<Break> {
    let others = tree.sources.iter().filter(|source| !MAY_BE_UNSAFE.contains(&&*source.name));
    others
        .filter_map(|source| {
            let exports = source.name.starts_with(EXPORTS);
            let is_export =
                |next: &[Token]| exports && next.iter().any(|t| t.is(Kind::Word, "no_mangle"));
            let tokens = source.tokens.iter().enumerate().filter(|(place, token)| {
                let next = source.tokens.get(place + 1..place + 3).unwrap_or_default();
                token.is(Kind::Word, "unsafe") && !is_export(next)
            });
            let mut places = tokens.map(|(_, token)| token);
            let line = places.next()?.line;
            let (allowed, more) = (MAY_BE_UNSAFE.join(" and "), places.count());
            let what = format!("unsafe code (and {more} places more); it belongs in {allowed}");
            Some(Break::new(&source.name, line, what))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_found_only_where_it_is_code() {
        let fine = "//! Head.\n#![forbid(unsafe_code)]\n// unsafe\nconst A: &str = \"unsafe\";\n";
        assert!(unsafe_code(&Tree::of(&[("passes/src/lib.rs", fine)])).is_empty());
        let bad = "//! Head.\nfn a() {\n    unsafe { b() }\n}\n";
        let broken = unsafe_code(&Tree::of(&[("passes/src/lib.rs", bad)]));
        assert_eq!((broken.len(), broken[0].line), (1, 3));
        assert!(broken[0].what.starts_with("unsafe code (and 0 places more)"));
        assert!(unsafe_code(&Tree::of(&[(MAY_BE_UNSAFE[0], bad)])).is_empty());
    }

    #[test]
    fn a_name_for_c_is_no_unsafe_code_of_the_c_interface() {
        let text = "//! Head.\n#[unsafe(no_mangle)]\npub extern \"C\" fn a() {}\n";
        assert!(unsafe_code(&Tree::of(&[("bindings/c/a.rs", text)])).is_empty());
        assert_eq!(unsafe_code(&Tree::of(&[("passes/src/a.rs", text)])).len(), 1);
        let both = format!("{text}fn b() {{ unsafe {{ c() }} }}\n");
        assert_eq!(unsafe_code(&Tree::of(&[("bindings/c/a.rs", &both)])).len(), 1);
    }

    #[test]
    fn a_file_without_a_head_comment_is_found() {
        let tree = Tree::of(&[("a.rs", "use std::fs;\n"), ("b.rs", "//! Head.\n")]);
        let broken = without_head(&tree);
        assert_eq!((broken.len(), broken[0].file.as_str()), (1, "a.rs"));
    }
}
