//! Fields of vecs and structs that a run is given as arrays of structs: kernels that use them as
//! they are access few bytes of each sector that they touch, and kernels behind the transform most.
//! Results are the same, bit for bit.

use serde_json::Value;
use stencil_test_suite::Scratch;

/// A program with its sizes.
const PROGRAMS: [(&str, &[&str]); 2] = [
    ("d2q9", &["--size", "N=34", "--size", "M=256"]),
    ("d3q19", &["--size", "N=5", "--size", "M=6", "--size", "L=256"]),
];

/// Strategies that have an array of structs, with the programs that they take.
const STRATEGIES: [(&str, &[&str]); 6] = [
    ("naive", &["d2q9", "d3q19"]),
    ("block", &["d2q9"]),
    ("stream", &["d2q9", "d3q19"]),
    ("plane", &["d2q9"]),
    ("patch", &["d2q9", "d3q19"]),
    ("resident", &["d2q9"]),
];

/// The result of a run on the simulator, and its counters by kernel.
fn run(program: &str, sizes: &[&str], layout: &str) -> (Vec<u8>, Vec<Value>) {
    run_by("naive", program, sizes, layout)
}

/// The same by another strategy.
fn run_by(strategy: &str, program: &str, sizes: &[&str], layout: &str) -> (Vec<u8>, Vec<Value>) {
    run_with(&["--strategy", strategy], program, sizes, layout)
}

fn run_with(
    options: &[&str],
    program: &str,
    sizes: &[&str],
    layout: &str,
) -> (Vec<u8>, Vec<Value>) {
    let scratch = Scratch::new();
    scratch.copy(&format!("programs/{program}.stencil"));
    let file = format!("{program}.stencil");
    let run = ["run", &file, "--target", "sim", "--steps", "3", "--in", "F=random:1", "--check"];
    let written = ["--out", "F=f.npy", "--report-json", "counters.json", "--layout", layout];
    let outcome = scratch.run("stencilc", &[&run, sizes, options, written.as_slice()].concat());
    assert_eq!(outcome.code, Some(0), "{program} {layout}\n{}", outcome.stderr);
    let report: Value = serde_json::from_str(&scratch.read("counters.json")).unwrap();
    (
        std::fs::read(scratch.path().join("f.npy")).unwrap(),
        report["kernels"].as_array().unwrap().clone(),
    )
}

/// The part of the sectors that accesses to global memory touch, which they would touch if their
/// bytes lay side by side.
fn efficiency(kernel: &Value) -> f64 {
    of_all(std::slice::from_ref(kernel))
}

/// The same of several kernels together.
fn of_all(kernels: &[Value]) -> f64 {
    let count = |what: &str| {
        let of = |kernel: &Value, way: &str| kernel["total"][way][what].as_f64().unwrap();
        let both = |kernel| of(kernel, "global_read") + of(kernel, "global_write");
        kernels.iter().map(both).sum::<f64>()
    };
    count("ideal") / count("moved")
}

/// By the schedule that the compiler chooses.
#[test]
fn the_chosen_schedule_is_coalesced_behind_the_transform() {
    for (program, sizes) in PROGRAMS {
        let run = |layout| run_with(&[], program, sizes, layout);
        let ((separate, _), (direct, scattered)) = (run("soa"), run("aos-direct"));
        let (relaid, kernels) = run("aos");
        assert!(direct == separate && relaid == separate, "{program}");
        let (before, after) = (of_all(&scattered), of_all(&kernels));
        assert!(before < 0.3 && after > 0.9, "{program}: {before} {after}");
    }
}

#[test]
fn arrays_of_structs_are_coalesced_behind_the_transform() {
    for (program, sizes) in PROGRAMS {
        let (fields, _) = run(program, sizes, "soa");
        let (direct, [kernel]) = with_kernels(run(program, sizes, "aos-direct"));
        assert!(efficiency(&kernel) < 0.3, "{program}: {}", efficiency(&kernel));
        assert!(fields == direct, "{program}");
        // The model's choice are blocks.
        for layout in ["aos", "aos-blocks", "aos-relaid"] {
            let (relaid, kernels) = with_kernels::<3>(run(program, sizes, layout));
            for kernel in &kernels {
                let name = kernel["name"].as_str().unwrap();
                let found = efficiency(kernel);
                assert!(found > 0.9, "{program} {layout} {name}: {found}");
            }
            assert_eq!(kernels[1]["name"], "pack_F");
            assert_eq!(kernels[2]["name"], "unpack_F");
            assert_eq!(kernels[1]["launches"], 1);
            assert!(fields == relaid, "{program} {layout}");
            // The transform reads and writes each number once.
            let moved = |kernel: &Value| kernel["total"]["global_read"]["bytes"].as_u64().unwrap();
            assert_eq!(moved(&kernels[1]), moved(&kernels[2]));
            let header = 10 + usize::from(u16::from_le_bytes([fields[8], fields[9]]));
            assert_eq!(moved(&kernels[1]), (fields.len() - header) as u64, "{program} {layout}");
        }
        // Blocks are as coalesced as arrays of their own, without a transform.
        let (blocks, [kernel]) = with_kernels(run(program, sizes, "blocks"));
        assert!(efficiency(&kernel) > 0.9, "{program}: {}", efficiency(&kernel));
        assert!(fields == blocks, "{program}");
    }
}

fn with_kernels<const COUNT: usize>(
    (result, kernels): (Vec<u8>, Vec<Value>),
) -> (Vec<u8>, [Value; COUNT]) {
    (result, kernels.try_into().unwrap())
}

/// Kernels behind the transform, and those on blocks, are as coalesced as those of separate arrays.
#[test]
fn all_strategies_are_coalesced_behind_the_transform() {
    let mut taken = 0;
    for (strategy, program, sizes) in STRATEGIES.into_iter().flat_map(|(strategy, programs)| {
        let takes = move |(program, _): &(&str, _)| programs.contains(program);
        PROGRAMS.into_iter().filter(takes).map(move |(program, sizes)| (strategy, program, sizes))
    }) {
        let of = |layout| run_by(strategy, program, sizes, layout);
        let (separate, wanted) = of("soa");
        let (direct, scattered) = of("aos-direct");
        let (relaid, kernels) = of("aos-relaid");
        let (to_blocks, in_place) = of("aos");
        let (blocks, blocked) = of("blocks");
        assert!(
            [direct, relaid, to_blocks, blocks].iter().all(|one| *one == separate),
            "{strategy} {program}"
        );
        for relaid in [&kernels, &in_place] {
            assert_eq!(relaid.len(), wanted.len() + 2, "{strategy} {program}");
        }
        for (place, kernel) in wanted.iter().enumerate() {
            let best = efficiency(kernel);
            println!("{program} {strategy}: {:.3}, {best:.3}", efficiency(&scattered[place]));
            assert!(efficiency(&scattered[place]) < 0.3, "{strategy} {program}");
            assert!(best > 5.0 * efficiency(&scattered[place]), "{strategy} {program}: {best}");
            assert_eq!(efficiency(&kernels[place]), best, "{strategy} {program}");
            assert_eq!(efficiency(&in_place[place]), best, "{strategy} {program}");
            assert_eq!(efficiency(&blocked[place]), best, "{strategy} {program}");
        }
        for moves in kernels[wanted.len()..].iter().chain(&in_place[wanted.len()..]) {
            assert!(efficiency(moves) > 0.99, "{strategy} {program} {}", moves["name"]);
        }
        taken += 1;
    }
    assert_eq!(taken, 9);
}

#[test]
fn all_strategies_take_arrays_of_structs() {
    for (strategy, _) in STRATEGIES {
        for (layout, columns) in
            [("aos-direct", 70), ("aos-relaid", 70), ("aos-blocks", 72), ("blocks", 70)]
        {
            let columns = format!("M={columns}");
            let scratch = Scratch::new();
            scratch.copy("programs/d2q9.stencil");
            let words = [
                "run",
                "d2q9.stencil",
                "--target",
                "sim",
                "--steps",
                "3",
                "--in",
                "F=random:2",
                "--size",
                "N=40",
                "--size",
                &columns,
                "--check",
                "--strategy",
                strategy,
                "--layout",
                layout,
            ];
            let outcome = scratch.run("stencilc", &words);
            assert_eq!(outcome.code, Some(0), "{strategy} {layout}\n{}", outcome.stderr);
        }
    }
}

#[test]
fn buffers_that_are_handed_on_are_relaid() {
    let scratch = Scratch::new();
    let program = "param N\nstruct Wave { before : f32, now : f32 }\ngrid G = [0..N-1]\n\
                   field W : Wave on G\nfn wave -> W [1..N-2] = Wave { before: W[0].now,\n\
                   now: 1.5*W[0].now - W[0].before + 0.25*(W[-1].now + W[1].now) }\nsteps 7";
    scratch.write("wave.stencil", program);
    let run = ["run", "wave.stencil", "--target", "sim", "--in", "W=random:3"];
    // The last block has fewer cells.
    for (layout, size) in [("aos", "N=1000"), ("blocks", "N=1001")] {
        let words = ["--check", "--layout", layout, "--size", size];
        let outcome = scratch.run("stencilc", &[&run, words.as_slice()].concat());
        assert_eq!(outcome.code, Some(0), "{layout}: {}", outcome.stderr);
    }
}

#[test]
fn processors_and_affine_loops_have_no_layout() {
    let scratch = Scratch::new();
    scratch.copy("programs/d2q9.stencil");
    scratch.copy("nests/mv.mlir");
    for (words, text) in [
        (["d2q9.stencil", "--arch=x86-64-v3"], "the option layout is for GPUs"),
        (["mv.mlir", "--emit=gpu"], "the option layout is for stencil programs"),
    ] {
        let outcome = scratch.run("stencilc", &[words.as_slice(), &["--layout=aos"]].concat());
        assert_eq!(outcome.code, Some(1), "{words:?}");
        assert!(outcome.stderr.contains(text), "{}", outcome.stderr);
    }
}
