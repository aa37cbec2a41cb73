//! Programs on the processor of this machine: the results are those of the reference.

use stencil_test_suite::Scratch;

/// Runs a program of the suite on the processor and compares it with the reference.
fn agree(program: &str, arguments: &str) {
    let scratch = Scratch::new();
    scratch.copy(&format!("programs/{program}.stencil"));
    agree_on(&scratch.read(&format!("{program}.stencil")), arguments);
}

/// The same of a text.
fn agree_on(text: &str, arguments: &str) {
    let scratch = Scratch::new();
    scratch.write("p.stencil", text);
    let words =
        format!("run p.stencil --target cpu --threads 2 --check --fp-contract=off {arguments}");
    let words: Vec<&str> = words.split_whitespace().collect();
    let outcome = scratch.run("stencilc", &words);
    assert_eq!(outcome.code, Some(0), "{words:?}\n{}", outcome.stderr);
    let said = outcome.stdout + &outcome.stderr;
    assert!(said.contains("agree bit for bit"), "{words:?}\n{said}");
}

#[test]
fn frozen_rims_and_steps_that_are_left_over() {
    let data = "--size N=67 --size M=131 --in A=random:1 --in K=random:2";
    // Several tiles in both dimensions, and the compiler's own.
    for schedule in ["--tile 13,29 --pyramid-height 5", "--tile 1,1 --pyramid-height 3", ""] {
        agree("heat2d", &format!("{data} --steps 37 {schedule}"));
    }
}

#[test]
fn grids_that_repeat_and_other_rules() {
    let sizes = "--size N=19 --size M=23 --size L=37 --steps 9";
    agree("torus3d", &format!("{sizes} --in A=random:1"));
    agree("torus3d", &format!("{sizes} --in A=random:1 --tile 5,6,17 --pyramid-height 2"));
    agree("insulated2d", "--size N=31 --size M=43 --in A=random:1 --tile 9,11 --steps 12");
}

#[test]
fn several_functions_reductions_and_sweeps() {
    let two = "--size N=67 --size M=131 --steps 10";
    let waves = "--in Ex=random:1 --in Ey=random:2 --in Hz=random:3 --tile 21,37";
    agree("fdtd2d", &format!("{two} {waves} --pyramid-height 4"));
    agree("srad", &format!("{two} --in J=random:1"));
    agree("weno1d", "--size N=403 --in u=random:1 --steps 9");
    agree("unsharp", &format!("{two} --in A=random:1"));
    agree("smith-waterman", &format!("{two} --in H=random:1 --in p=random:2 --in q=random:3"));
}

#[test]
fn sweeps_run_on_several_threads() {
    let two = "--size N=67 --size M=131";
    let word = "--in p=random:2 --in q=random:3";
    for tile in ["", "--tile 3,5", "--tile 1,1", "--tile 200,300"] {
        agree("smith-waterman", &format!("{two} --in H=random:1 {word} {tile}"));
    }
    // Values to the upper right, several sweeps a step, planes, and one dimension.
    agree("relax2d", &format!("{two} --steps 7 --in A=random:1 --tile 5,4"));
    agree("heat2d-sweep", &format!("{two} --steps 7 --in A=random:1 --tile 2,9"));
    let three = "--size N=13 --size M=17 --size L=19 --in A=random:1 --steps 5";
    agree("gauss-seidel3d", &format!("{three} --tile 2,3,1"));
}

/// Each function of the C library, or the reference's own in its place.
#[test]
fn math_functions() {
    let functions = [
        "exp(A[0])",
        "exp2(A[0])",
        "log(A[0])",
        "log2(A[0])",
        "sin(9*A[0])",
        "cos(9*A[0])",
        "tan(9*A[0])",
        "atan2(A[0], A[1])",
        "tanh(A[0])",
        "erf(A[0])",
        "cbrt(50*A[0])",
        "pow(A[0], A[1])",
        "(9*A[0]) % A[1]",
    ];
    for element in ["f64", "f32", "f16", "bf16"] {
        for value in functions {
            let text = format!(
                "param N\ngrid G = [0..N-1]\nfield A : {element} on G\nboundary A = periodic\n\
                 fn f -> A [0..N-1] = {value}\nsteps 1\n"
            );
            agree_on(&text, "--size N=3000 --in A=random:1");
        }
    }
}

/// `P' = U`: the value lies in the memory of U, and that of the rim in the field's own.
#[test]
fn values_that_are_taken_over_from_another_field() {
    let three = "--size N=21 --size M=23 --size L=37 --in P=random:1 --in U=random:2 \
                 --in C=random:3";
    let two = "--size N=45 --size M=71 --steps 11";
    for (height, tile) in [(1, "7,5"), (2, "7,9"), (3, "16,33"), (5, "64,128")] {
        agree("wave3d", &format!("{three} --steps 11 --pyramid-height {height} --tile 6,{tile}"));
        let wave = format!("{three} --steps 7 --pyramid-height {height}");
        agree("acoustic3d-order8", &format!("{wave} --tile 8,{tile}"));
        for results in ["U[0,0], P[0,0]", "U[0,0], U[0,0]", "U[0,0], U[-1,0] + U[0,2] - P[0,0]"] {
            let text = format!(
                "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield P : f32 on G\n\
                 field U : f32 on G\nfn f -> (P, U) [2..N-2, 1..M-3] = ({results})\nsteps 11\n"
            );
            let words = format!("{two} --in P=random:1 --in U=random:2 --tile {tile}");
            agree_on(&text, &format!("{words} --pyramid-height {height}"));
        }
    }
}

/// A condition of a run that compares conditions, and one of a complex number.
#[test]
fn conditions_of_runs_bind_values() {
    for condition in ["r == (t == 1)", "cabs(vec(q, q)) > 20", "r != (q > 3)"] {
        let text = format!(
            "param N\ngrid G = [0..N-1]\nfield B : f64 on G\n\
             fn f -> B [0..N-1] = B[0] * 2 + 1\nreduce q : f64 = max(B[0]) on [0..N-1]\n\
             reduce r : bool = any(B[0] > 5) on [0..N-1]\nsteps 4 until {condition}\n"
        );
        agree_on(&text, "--size N=5 --in B=zeros");
    }
}

/// Runs the tool in a folder with a program, and gives what it prints.
fn said(words: &str, code: i32) -> String {
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    let words: Vec<&str> = words.split_whitespace().collect();
    let outcome = scratch.run("stencilc", &words);
    assert_eq!(outcome.code, Some(code), "{words:?}\n{}", outcome.stderr);
    outcome.stdout + &outcome.stderr
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let data = "--size N=9 --size M=9 --in A=zeros --in K=zeros --steps 1";
    for (words, message) in [
        ("heat2d.stencil --arch native --per-thread 2".to_owned(), "cells per thread are for GPUs"),
        (
            format!("run heat2d.stencil --target reference --threads 2 {data}"),
            "--threads is for the processor",
        ),
        ("heat2d.stencil --arch native --emit=obj".to_owned(), "an object file needs -o NAME"),
        ("heat2d.stencil --arch native --emit=ptx".to_owned(), "take llvm or asm"),
        ("heat2d.stencil --arch native --report".to_owned(), "code for NVIDIA's GPUs"),
        ("heat2d.stencil --arch gfx942 --report".to_owned(), "code for NVIDIA's GPUs"),
        ("heat2d.stencil --arch gfx942 --emit=c -o x".to_owned(), "a GPU of AMD's"),
        ("heat2d.stencil --emit=obj -o heat2d.o".to_owned(), "add --arch native"),
    ] {
        let said = said(&words, 1);
        assert!(said.starts_with("error: ") && said.contains(message), "{words}\n{said}");
    }
}

#[test]
fn a_run_says_what_it_runs_on_and_why() {
    let data = "--size N=9 --size M=9 --in A=zeros --in K=zeros --steps 1";
    let run = |options: &str| said(&format!("run heat2d.stencil {data} {options}"), 0);
    // With a CUDA device the first of these would run there.
    if std::env::var_os("CUDA_VISIBLE_DEVICES").is_none_or(|devices| devices.is_empty()) {
        assert!(run("").starts_with("target cpu, as there is no CUDA device\nprocessor, "));
        let said = run("--strategy block");
        assert!(said.starts_with("target reference, as there is no CUDA device, and"), "{said}");
    }
    assert!(run("--target cpu --threads 2").starts_with("processor, 2 threads: "));
    assert!(run("--arch native").starts_with("target cpu, as the architecture is that of a"));
}

#[test]
fn a_module_with_a_processor_as_its_target_is_compiled_for_it() {
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    let words = ["heat2d.stencil", "--arch", "x86-64-v3", "--emit=stencil", "-o", "heat2d.mlir"];
    assert_eq!(scratch.run("stencilc", &words).code, Some(0));
    let from_mlir = scratch.run("stencilc", &["heat2d.mlir", "--emit=asm"]);
    let direct = scratch.run("stencilc", &["heat2d.stencil", "--arch", "x86-64-v3"]);
    assert_eq!((from_mlir.code, direct.code), (Some(0), Some(0)), "{}", from_mlir.stderr);
    assert!(direct.stdout.contains("stencil_code_") && direct.stdout == from_mlir.stdout);
}
