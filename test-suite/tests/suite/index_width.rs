//! How many bits the address arithmetic of the PTX has. A wrong one shows only in runs on grids of
//! more than 2^31 cells, which no other test has; here the instructions that know a size are looked
//! at.

use stencil_runtime::plan::Plan;
use stencil_test_suite::Scratch;

/// Plan and PTX of a program whose text the caller may change.
fn compiled(program: &str, edit: &[(&str, &str)], arguments: &[&str]) -> (Plan, String) {
    let scratch = Scratch::new();
    scratch.copy(&format!("programs/{program}.stencil"));
    let mut text = scratch.read(&format!("{program}.stencil"));
    for (from, to) in edit {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    scratch.write("a.stencil", text);
    let outcome = scratch
        .run("stencilc", &[&["a.stencil", "--emit=ptx,plan", "-o", "a"], arguments].concat());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{program} {arguments:?}");
    let plan = Plan::from_json(&scratch.read("a.plan.json"), "plan")
        .unwrap_or_else(|error| panic!("{error}"));
    (plan, scratch.read("a.ptx"))
}

/// How many instructions of some kinds in 32 and in 64 bits have one of some numbers as an operand.
fn with_numbers(ptx: &str, kinds: &[&str], numbers: &[i64]) -> [usize; 2] {
    let mut found = [0, 0];
    for line in ptx.lines() {
        let line = line.trim().trim_end_matches(';');
        let Some((operation, operands)) = line.split_once(char::is_whitespace) else { continue };
        let numbered = operands
            .split(", ")
            .any(|one| one.trim().parse().is_ok_and(|number| numbers.contains(&number)));
        if numbered && kinds.iter().any(|kind| operation.starts_with(kind)) {
            found[usize::from(operation.ends_with("64"))] += 1;
        }
    }
    found
}

/// Products of a row's or a plane's number with its cells or bytes (`f32`).
fn strides(ptx: &str, cells: i64) -> [usize; 2] {
    with_numbers(ptx, &["mul.lo", "mad.lo"], &[cells, 4 * cells])
}

#[test]
fn grids_of_two_and_three_dimensions() {
    // Just above and just below 2^31 cells.
    let cases = [
        ("heat2d", ["N=46341", "M=46342"], 46342, ["N=46339", "M=46338"], 46338),
        ("jacobi3d", ["N=1289", "M=1301"], 1301 * 1301, ["N=1277", "M=1283"], 1283 * 1301),
    ];
    for (program, large, large_stride, small, small_stride) in cases {
        for strategy in ["naive", "block", "stream"] {
            let of = |[n, m]: [&str; 2]| {
                let depth: &[&str] = if program == "jacobi3d" { &["-D", "L=1301"] } else { &[] };
                compiled(
                    program,
                    &[],
                    &[&["--strategy", strategy, "-D", n, "-D", m], depth].concat(),
                )
            };
            let (plan, ptx) = of(large);
            let [narrow, wide] = strides(&ptx, large_stride);
            assert_eq!(
                (plan.index_width, narrow, wide > 0),
                (64, 0, true),
                "{program} {strategy}\n{ptx}"
            );
            let (plan, ptx) = of(small);
            let [narrow, _] = strides(&ptx, small_stride);
            // With four rows beside a point's own, 64 bits take a naive thread fewer instructions.
            let chosen =
                if (program, strategy) == ("jacobi3d", "naive") { (64, false) } else { (32, true) };
            assert_eq!((plan.index_width, narrow > 0), chosen, "{program} {strategy}\n{ptx}");
        }
    }
}

#[test]
fn grids_of_one_dimension() {
    let ends = |last: i64| (last - 64..last + 64).collect::<Vec<_>>();
    let kinds = ["setp", "sub", "add", "min", "max"];
    for strategy in ["naive", "block", "warp"] {
        let (plan, ptx) =
            compiled("jacobi1d3", &[], &["--strategy", strategy, "-D", "N=2147483653"]);
        let [narrow, wide] = with_numbers(&ptx, &kinds, &ends(2_147_483_653));
        assert_eq!((plan.index_width, narrow, wide > 0), (64, 0, true), "{strategy}\n{ptx}");
        let (plan, ptx) =
            compiled("jacobi1d3", &[], &["--strategy", strategy, "-D", "N=2000000003"]);
        let [narrow, wide] = with_numbers(&ptx, &kinds, &ends(2_000_000_003));
        assert_eq!((plan.index_width, narrow > 0, wide), (32, true, 0), "{strategy}\n{ptx}");
    }
}

#[test]
fn sizes_in_the_file_and_of_a_run() {
    for strategy in ["naive", "block", "stream"] {
        let fixed = [("param N", "param N = 46341"), ("param M", "param M = 2 * 23171")];
        let (plan, ptx) = compiled("heat2d", &fixed, &["--strategy", strategy]);
        assert_eq!((plan.index_width, strides(&ptx, 46342)[0]), (64, 0), "{strategy}\n{ptx}");
        // A size of a run may be anything, so it is passed and multiplied in 64 bits.
        let (plan, ptx) = compiled("heat2d", &[], &["--strategy", strategy]);
        assert_eq!((plan.index_width, plan.params.len()), (64, 2));
        let parameter =
            |word: &str| ptx.lines().filter(|line| line.trim().starts_with(word)).count();
        // Each kernel has three buffers, two sizes and the step, and of a stream the first row of
        // tiles.
        let each = if strategy == "stream" { 7 } else { 6 };
        assert_eq!(parameter(".param .u64"), each * plan.kernels.len(), "{strategy}\n{ptx}");
        let products =
            |kind: &str| ptx.lines().filter(|line| line.trim().starts_with(kind)).count();
        assert!(products("mul.lo.s64") > 0, "{strategy}\n{ptx}");
        assert_eq!(products("mul.lo.s32") + products("mad.lo.s32"), 0, "{strategy}\n{ptx}");
    }
}

/// A signal of open length drives one cell; `role` and `read` are those of the signal.
fn driven(role: &str, read: &str) -> String {
    format!(
        "param N = 1024\nparam T\ngrid G = [0..N-1]\ngrid S = [0..T-1]\nfield A : f32 on G\n\
         {role}field s : f32 on S\nfn f -> A [i in 1..N-2] = A[-1] + \
         (if i == 9 then {read} else 0)\nsteps T\n"
    )
}

#[test]
fn the_size_of_a_table() {
    let width = |text: String, strategy: &str| {
        let scratch = Scratch::new();
        scratch.write("a.stencil", text);
        let arguments = ["a.stencil", "--emit=plan", "-o", "a.plan.json", "--strategy", strategy];
        let outcome = scratch.run("stencilc", &arguments);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{strategy}");
        let plan = Plan::from_json(&scratch.read("a.plan.json"), "plan");
        plan.unwrap_or_else(|error| panic!("{error}")).index_width
    };
    for strategy in ["naive", "block", "warp"] {
        assert_eq!(width(driven("const ", "s(t)"), strategy), 32, "{strategy}");
        // The points of a state field are counted, and so is a field that is read at offsets.
        assert_eq!(width(driven("", "s(t)"), strategy), 64, "{strategy}");
        let beside = driven("const ", "s[0]").replace("i in 1..N-2", "i in 1..T-1");
        assert_eq!(width(beside, strategy), 64, "{strategy}");
        let long = driven("const ", "s(t)").replace("param T\n", "param T = 2147483649\n");
        assert_eq!(width(long, strategy), 64, "{strategy}");
    }
}
