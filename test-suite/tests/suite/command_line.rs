//! Messages of the tools for wrong command lines and inputs: one message, exit code 1, and not one
//! file more than before.

use crate::snapshot;
use std::path::PathBuf;
use stencil_runtime::array::{Array, Element};
use stencil_runtime::npy;
use stencil_test_suite::{Scratch, root};

/// A module that is compiled for one device.
const TARGET: &str = "module attributes {stencil.target = {arch = \"sm_90\", \
    device = \"NVIDIA H200\", contract = true, fast_math = false}} {}\n";

const EXP: &str =
    "param N\ngrid G = [0..N-1]\nfield A : f32 on G\nfn f -> A [0..N-1] = exp(A[0])\nsteps 4\n";
const SCALAR: &str = "param N\nscalar c : f32\ngrid G = [0..N-1]\nfield A : f32 on G\nfn f -> A \
    [0..N-1] = c*A[0]\nsteps 4\n";
const SQUARE: &str = "param N\ngrid G = [0..2*N-1, 0..2*N-1]\nfield A : f32 on G\nfn f -> A \
    [0..N-1, 0..N-1] = A[0,1]\nsteps 4\n";
const VEC: &str = "param N\ngrid G = [0..N-1]\nfield V : vec<2, f32> on G\nfn f -> V [0..N-1] = \
    V[0]\nsteps 4\n";
const MANY_STEPS: &str = "param N\nparam K\ngrid G = [0..N-1]\nfield A : f32 on G\nfn f -> A \
    [0..N-1] = A[0]\nsteps 5*K\n";
const BRANCH: &str = "module {\n  func.func @f(%a: f32) -> f32 {\n    return %b : f32\n  }\n}\n";
const WRONG_ROLE: &str = r#"module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>} {
  "stencil.grid"() {sym_name = "G", lower = affine_map<()[n] -> (0)>, upper = affine_map<()[n] -> (n - 1)>} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "input"} : () -> ()
}
"#;

/// Programs and inputs, right and wrong.
fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    scratch.copy("programs/fdtd2d.stencil");
    for (name, text) in [
        ("exp.stencil", EXP),
        ("scalar.stencil", SCALAR),
        ("square.stencil", SQUARE),
        ("vec.stencil", VEC),
        ("many-steps.stencil", MANY_STEPS),
        ("broken.mlir", BRANCH),
        ("wrong-role.mlir", WRONG_ROLE),
        ("empty.mlir", ""),
        ("plain.mlir", "module {}\n"),
        ("target.mlir", TARGET),
        ("empty.stencil", ""),
        ("text.npy", "344 403\n"),
        ("broken.plan.json", "{\"format\": 2,"),
    ] {
        scratch.write(name, text);
    }
    scratch.write("binary.stencil", [0x93, 0xff, 0x00, 0x41]);
    let array = |name: &str, element, shape: &[usize]| {
        let noise = Array::noise(element, shape, 1).unwrap_or_else(|error| panic!("{error}"));
        npy::write(&scratch.path().join(name), &noise).unwrap_or_else(|error| panic!("{error}"));
    };
    array("a.npy", Element::F32, &[16, 16]);
    array("wide.npy", Element::F32, &[16, 20]);
    array("line.npy", Element::F32, &[16]);
    array("pairs.npy", Element::F32, &[16, 2]);
    array("odd.npy", Element::F32, &[15, 15]);
    array("double.npy", Element::F64, &[16, 16]);
    let whole =
        std::fs::read(scratch.path().join("a.npy")).unwrap_or_else(|error| panic!("{error}"));
    scratch.write("short.npy", &whole[..whole.len() - 3]);
    scratch.write("long.npy", [whole.as_slice(), b"more"].concat());
    scratch.write("header.npy", &whole[..40]);
    std::os::unix::fs::symlink("/dev/zero", scratch.path().join("endless.mlir"))
        .unwrap_or_else(|error| panic!("{error}"));
    std::fs::create_dir(scratch.path().join("folder")).unwrap_or_else(|error| panic!("{error}"));
    scratch
}

/// Checks that a command line is refused; the words are the snapshot of the case's name.
fn refused(case: &str, command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (tool, arguments) = words.split_first().unwrap_or_else(|| panic!("{case} calls nothing"));
    let outcome = scratch().run(tool, arguments);
    assert_eq!(outcome.code, Some(1), "{command}\n{}", outcome.stderr);
    assert_eq!(outcome.stdout, "", "{command}");
    assert_eq!(outcome.new_files, [""; 0], "{command} left files behind");
    snapshot(&format!("command_line__{case}"), &format!("$ {command}\n{}", outcome.stderr));
}

macro_rules! refused {
    ($($case:ident: $command:literal;)*) => {
        $(#[test]
        fn $case() {
            refused(stringify!($case), $command);
        })*
    };
}

refused! {
    // Files.
    program_missing: "stencilc heat.stencil -o out.ptx";
    program_not_text: "stencilc binary.stencil -o out.ptx";
    program_empty: "stencilc empty.stencil -o out.ptx";
    program_a_folder: "stencilc folder -o out.ptx";
    program_endless: "stencilc /dev/zero -o out.ptx";
    program_endless_as_syntax_tree: "stencilc --emit=ast /dev/zero -o out.stencil";
    program_endless_run: "stencilc run /dev/zero --in A=zeros";
    ir_endless: "stencil-opt /dev/zero -o out.mlir";
    ir_endless_compiled: "stencilc endless.mlir -o out.ptx";
    plan_endless: "stencil-bench /dev/zero";
    schedules_endless: "stencilc heat2d.stencil --schedules /dev/zero -o out.ptx";
    libdevice_endless: "stencilc exp.stencil --libdevice /dev/zero -o out.ptx";
    output_in_no_folder: "stencilc heat2d.stencil -o missing/heat.ptx";
    output_a_folder: "stencilc heat2d.stencil -o folder";
    result_in_no_folder: "stencilc run heat2d.stencil --target reference --steps 1 --in A=a.npy \
        --in K=zeros --out A=missing/a.npy";
    second_result_in_no_folder: "stencilc run fdtd2d.stencil --target reference --size N=9 --size \
        M=9 --steps 1 --in Ex=zeros --in Ey=zeros --in Hz=zeros --out Ex=out.npy --out \
        Ey=missing/b.npy";
    result_a_folder: "stencilc run heat2d.stencil --target reference --steps 1 --in A=a.npy \
        --in K=zeros --out A=folder";
    plan_missing: "stencil-bench heat2d.plan.json";
    plan_broken: "stencil-bench broken.plan.json";
    schedules_missing: "stencilc heat2d.stencil --schedules schedules.json -o out.ptx";

    // Inputs.
    input_missing: "stencilc run heat2d.stencil --in A=a.npy --out A=out.npy";
    input_unknown: "stencilc run heat2d.stencil --in A=a.npy --in K=zeros --in B=zeros --out \
        A=out.npy";
    input_twice: "stencilc run heat2d.stencil --in A=a.npy --in K=zeros --in A=zeros --out \
        A=out.npy";
    input_no_file: "stencilc run heat2d.stencil --in A=b.npy --in K=zeros --out A=out.npy";
    input_no_kind: "stencilc run heat2d.stencil --in A=a.npy --in K=ones --out A=out.npy";
    input_shape: "stencilc run heat2d.stencil --in A=a.npy --in K=wide.npy --out A=out.npy";
    input_shape_against_define: "stencilc run heat2d.stencil -D N=17 --in A=a.npy --in K=zeros \
        --out A=out.npy";
    input_shape_of_vecs: "stencilc run vec.stencil --size N=17 --in V=pairs.npy --out V=out.npy";
    input_vecs_of_another_length: "stencilc run vec.stencil --in V=wide.npy --out V=out.npy";
    input_vecs_of_another_rank: "stencilc run vec.stencil --in V=line.npy --out V=out.npy";
    input_rank: "stencilc run heat2d.stencil --in A=line.npy --in K=zeros --out A=out.npy";
    input_odd_extent: "stencilc run square.stencil --in A=odd.npy --out A=out.npy";
    input_type: "stencilc run heat2d.stencil --in A=double.npy --in K=zeros --out A=out.npy";
    input_truncated: "stencilc run heat2d.stencil --in A=short.npy --in K=zeros --out A=out.npy";
    input_too_long: "stencilc run heat2d.stencil --in A=long.npy --in K=zeros --out A=out.npy";
    input_header_truncated: "stencilc run heat2d.stencil --in A=header.npy --in K=zeros --out \
        A=out.npy";
    input_not_npy: "stencilc run heat2d.stencil --in A=text.npy --in K=zeros --out A=out.npy";
    input_seed: "stencilc run heat2d.stencil --in A=random:one --in K=zeros --out A=out.npy";
    input_without_name: "stencilc run heat2d.stencil --in a.npy --out A=out.npy";
    output_without_file: "stencilc run heat2d.stencil --in A=a.npy --in K=zeros --out A=";
    output_const: "stencilc run heat2d.stencil --in A=a.npy --in K=zeros --out K=out.npy";
    output_unknown: "stencilc run heat2d.stencil --in A=a.npy --in K=zeros --out B=out.npy";
    output_twice: "stencilc run heat2d.stencil --in A=a.npy --in K=zeros --out A=out.npy --out \
        A=other.npy";

    // Sizes, scalars, steps.
    define_unknown: "stencilc heat2d.stencil -D n=16 -o out.ptx";
    define_twice: "stencilc heat2d.stencil -D N=16 -D N=17 -o out.ptx";
    define_no_number: "stencilc heat2d.stencil -D N=many -o out.ptx";
    define_of_scalar: "stencilc heat2d.stencil -D alpha=0.2 -o out.ptx";
    define_negative: "stencilc heat2d.stencil -D N=-4 -o out.ptx";
    define_overflow: "stencilc heat2d.stencil -D N=9223372036854775807 -D M=2 -o out.ptx";
    size_missing: "stencilc run heat2d.stencil --in A=zeros --in K=zeros --out A=out.npy";
    size_unknown: "stencilc run heat2d.stencil --size P=4 --in A=a.npy --in K=zeros --out \
        A=out.npy";
    size_against_shape: "stencilc run heat2d.stencil --size N=17 --in A=a.npy --in K=zeros --out \
        A=out.npy";
    size_overflow: "stencilc run heat2d.stencil --size N=4294967296 --size M=4294967296 --in \
        A=zeros --in K=zeros --out A=out.npy";
    choice_unknown: "stencilc run heat2d.stencil --target sim --choose work=large --in A=a.npy \
        --in K=zeros --out A=out.npy";
    scalar_unknown: "stencilc run heat2d.stencil --set beta=1 --in A=a.npy --in K=zeros --out \
        A=out.npy";
    scalar_no_number: "stencilc run heat2d.stencil --set alpha=hot --in A=a.npy --in K=zeros --out \
        A=out.npy";
    scalar_too_large: "stencilc run heat2d.stencil --set alpha=1e99 --in A=a.npy --in K=zeros \
        --out A=out.npy";
    scalar_too_small: "stencilc run heat2d.stencil --set alpha=1e-50 --in A=a.npy --in K=zeros \
        --out A=out.npy";
    scalar_missing: "stencilc run scalar.stencil --in A=line.npy --out A=out.npy";
    candidates_none: "stencilc heat2d.stencil --candidates 0 -o out.ptx";
    seed_negative: "stencilc run heat2d.stencil --target sim --seed=-1 --in A=a.npy --in K=zeros \
        --out A=out.npy";
    steps_too_many: "stencilc run heat2d.stencil --steps=281474976710657 --in A=a.npy --in K=zeros \
        --out A=out.npy";
    steps_of_sizes_too_many: "stencilc run many-steps.stencil --size N=10 --size \
        K=1000000000000000 --in A=zeros --out A=out.npy";
    steps_negative: "stencilc run heat2d.stencil --steps=-1 --in A=a.npy --in K=zeros --out \
        A=out.npy";

    // Schedules.
    report_of_reference: "stencilc run heat2d.stencil --target reference --report-json out.ptx \
        --in A=a.npy --in K=zeros";
    check_of_reference: "stencilc run heat2d.stencil --target reference --check --in A=a.npy --in \
        K=zeros --out A=out.npy";
    passes_with_tile: "stencilc heat2d.stencil --passes tile-overlapped,lower-block --tile 16,16 \
        -o out.ptx";
    tolerance_no_number: "stencilc run heat2d.stencil --check --tolerance nan --in A=a.npy --in \
        K=zeros --out A=out.npy";
    strategy_with_options: "stencilc heat2d.stencil --strategy naive,pyramid-height=1 -o out.ptx";
    height_negative: "stencilc heat2d.stencil --pyramid-height -1 -o out.ptx";
    strategy_unknown: "stencilc heat2d.stencil --strategy blocks -o out.ptx";
    tile_rank: "stencilc heat2d.stencil --tile 64 -o out.ptx";
    tile_zero: "stencilc heat2d.stencil --tile 0,64 -o out.ptx";
    tile_no_number: "stencilc heat2d.stencil --tile 8x64 -o out.ptx";
    tile_shared_memory: "stencilc heat2d.stencil --strategy block --pyramid-height 4 --tile \
        256,256 --per-thread 64 -o out.ptx";
    tile_threads: "stencilc heat2d.stencil --strategy block --tile 64,128 --per-thread 4 -o \
        out.ptx";
    height_shared_memory: "stencilc heat2d.stencil --strategy block --tile 32,64 --per-thread 4 \
        --pyramid-height 64 -o out.ptx";
    height_too_large: "stencilc heat2d.stencil --pyramid-height 100000 -o out.ptx";
    height_naive: "stencilc heat2d.stencil --strategy naive --pyramid-height 4 -o out.ptx";
    per_thread_rank: "stencilc heat2d.stencil --per-thread 1,2,3 -o out.ptx";

    // Options.
    option_unknown: "stencilc heat2d.stencil --pyramid 4 -o out.ptx";
    option_without_value: "stencilc heat2d.stencil --tile";
    level_unknown: "stencilc heat2d.stencil --emit=cubin -o out";
    c_of_the_name_of_a_header: "stencilc heat2d.stencil --emit=c -o stencil";
    levels_without_output: "stencilc heat2d.stencil --emit=ptx,plan";
    option_of_run: "stencilc heat2d.stencil --steps 4 -o out.ptx";
    size_without_run: "stencilc heat2d.stencil --size N=16 -o out.ptx";
    arch_unknown: "stencilc heat2d.stencil --arch=sm_9 -o out.ptx";
    arch_other: "stencilc heat2d.stencil --arch=gfx90a -o out.ptx";
    arch_of_another_device: "stencilc heat2d.stencil --arch=sm_80 --device=H100 -o out.ptx";
    device_unknown: "stencilc heat2d.stencil --device=H800 -o out.ptx";
    device_of_other_ir: "stencilc target.mlir --device=H100 -o out.ptx";
    tolerance_without_check: "stencilc run heat2d.stencil --tolerance 1 --in A=a.npy --in K=zeros";
    libdevice_missing: "stencilc exp.stencil --libdevice missing.bc -o out.ptx";
    libdevice_broken: "stencilc exp.stencil --libdevice text.npy -o out.ptx";
    no_arguments: "stencilc";
    plan_as_program: "stencilc run broken.plan.json --in A=a.npy";
    plan_to_compile: "stencilc broken.plan.json -o out.ptx";
    two_programs: "stencilc 3d heat2d.stencil";
    two_programs_to_run: "stencilc run 3d heat2d.stencil";
    sizes_missing: "stencilc run heat2d.stencil --in A=zeros --in K=zeros";
    size_twice: "stencilc run heat2d.stencil -D N=5 --size N=6 --size M=5 --in A=zeros \
        --in K=zeros";

    // IR and pipelines.
    ir_unreadable: "stencil-opt broken.mlir -o out.mlir";
    ir_unreadable_compiled: "stencilc broken.mlir -o out.ptx";
    ir_wrong_attribute: "stencil-opt wrong-role.mlir --pass-pipeline=stencil-verify -o out.mlir";
    ir_wrong_attribute_compiled: "stencilc wrong-role.mlir -o out.ptx";
    ir_empty: "stencil-opt empty.mlir -o out.mlir";
    ir_of_another_kind: "stencilc plain.mlir -o out.ptx";
    ir_as_syntax_tree: "stencilc wrong-role.mlir --emit=ast -o out.stencil";
    ir_run: "stencilc run wrong-role.mlir --in A=zeros";
    pass_unknown: "stencil-opt plain.mlir --pass-pipeline=tile-overlap -o out.mlir";
    pass_option_unknown: "stencil-opt plain.mlir --pass-pipeline=tile-overlapped{tiles=4} \
        -o out.mlir";
    pass_option_value: "stencilc heat2d.stencil \
        --passes=tile-overlapped,lower-block{max-shared=48k} -o out.ptx";
    passes_unfinished: "stencilc heat2d.stencil --passes=tile-overlapped --emit=plan -o out.json";
}

/// Its options are `stencilc`'s, and it takes the same files.
#[test]
fn help_of_run_names_what_runs() {
    let outcome = scratch().run("stencilc", &["run", "--help"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains(
            "The program: .stencil, .sl, or .mlir with affine loops or the dialect stencil\n"
        ),
        "{}",
        outcome.stdout
    );
}

/// The outcome depends on the machine: no driver, or no device that the tool may see.
#[test]
fn no_device() {
    let arguments = [
        "run",
        "heat2d.stencil",
        "--target",
        "cuda",
        "--in",
        "A=a.npy",
        "--in",
        "K=zeros",
        "--out",
        "A=out.npy",
    ];
    let outcome = scratch().run("stencilc", &arguments);
    assert_eq!(
        (outcome.code, outcome.new_files.as_slice()),
        (Some(1), &[][..]),
        "{}",
        outcome.stderr
    );
    let words = ["error: no CUDA driver found", "error: no CUDA device 0"];
    assert!(words.iter().any(|words| outcome.stderr.starts_with(words)), "{}", outcome.stderr);
}

/// A file that stands where the output goes keeps its contents when the run fails.
#[test]
fn an_older_output_survives_a_failure() {
    let scratch = scratch();
    scratch.write("out.ptx", "older");
    assert_eq!(
        scratch
            .run(
                "stencilc",
                &[
                    "heat2d.stencil",
                    "--strategy",
                    "block",
                    "--tile",
                    "64,128",
                    "--per-thread",
                    "4",
                    "-o",
                    "out.ptx"
                ]
            )
            .code,
        Some(1)
    );
    assert_eq!(scratch.read("out.ptx"), "older");
    assert_eq!(scratch.run("stencilc", &["heat2d.stencil", "-o", "out.ptx"]).code, Some(0));
    assert!(scratch.read("out.ptx").contains(".entry heat2d_1"));
}

/// A message quotes the value of an option, which may be of any length, in part.
#[test]
fn messages_about_long_values_are_short() {
    let long = "x".repeat(50_000);
    for (tool, option) in [("stencilc", "--emit"), ("stencil-bench", "--device")] {
        let outcome = scratch().run(tool, &["heat2d.stencil", &format!("{option}={long}")]);
        assert_eq!(outcome.code, Some(1), "{tool}");
        assert!(outcome.stderr.contains("letters more"), "{tool}: {}", outcome.stderr);
        assert!(outcome.stderr.len() < 2000, "{tool}: {}", outcome.stderr.len());
    }
}

/// One wrong bit in libdevice: LLVM refuses the file, crashes with the sentence for that, or does
/// not look at the bit.
#[test]
fn a_damaged_libdevice_is_told() {
    let installed = ".toolchain/cuda/nvidia/cu13/nvvm/libdevice/libdevice.10.bc";
    let named = std::env::var_os("STENCILC_LIBDEVICE").map(PathBuf::from);
    let bytes = std::fs::read(named.unwrap_or_else(|| root().join("..").join(installed))).unwrap();
    let scratch = Scratch::new();
    scratch.write(
        "sine.stencil",
        "param N\ngrid G = [0..N-1]\nfield A : f32 on G\nfn f -> A [0..N-1] = sin(A[0])\nsteps 1\n",
    );
    let mut refused = 0;
    for place in 1..16 {
        let mut damaged = bytes.clone();
        damaged[place * bytes.len() / 16] ^= 1 << (place % 8);
        scratch.write("damaged.bc", damaged);
        let options = ["sine.stencil", "--libdevice", "damaged.bc", "-o", "out.ptx"];
        let outcome = scratch.run("stencilc", &options);
        assert!(matches!(outcome.code, Some(0 | 1)), "{place}: {}", outcome.stderr);
        if outcome.code == Some(1) {
            refused += 1;
            assert!(outcome.stderr.contains("damaged.bc"), "{place}: {}", outcome.stderr);
        }
    }
    assert!(refused > 0);
}

/// The simulator finds what the author of a nest got wrong; the compiler has no fault.
#[test]
fn a_division_by_zero_of_a_nest_is_its_authors() {
    let scratch = Scratch::new();
    scratch.write(
        "divide.mlir",
        "func.func @f(%a: memref<4xi8> {stencil.name = \"a\"}, %s: i8 {stencil.name = \"s\"}) {\n\
         affine.for %i = 0 to 4 {\n%v = affine.load %a[%i] : memref<4xi8>\n\
         %r = arith.divsi %v, %s : i8\naffine.store %r, %a[%i] : memref<4xi8>\n}\nreturn\n}\n",
    );
    for target in ["reference", "sim"] {
        let options = ["run", "divide.mlir", "--target", target, "--set", "s=0", "--in", "a=zeros"];
        let outcome = scratch.run("stencilc", &options);
        assert_eq!(outcome.code, Some(1), "{target}: {}", outcome.stderr);
        assert!(outcome.stderr.contains("division by zero"), "{target}: {}", outcome.stderr);
    }
}
