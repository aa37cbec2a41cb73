//! Programs at the edges of the language: the reference and the compiled code agree.

use stencil_test_suite::Scratch;

/// Runs a program on the simulator by the strategies naive and block, and compares with the
/// reference.
fn agree(text: &str, arguments: &str) {
    agree_by(&["naive", "block"], text, arguments);
}

/// The same with other strategies.
fn agree_by(strategies: &[&str], text: &str, arguments: &str) {
    for strategy in strategies {
        let scratch = Scratch::new();
        scratch.write("edge.stencil", text);
        let words = format!(
            "run edge.stencil --target sim --check --fp-contract=off --strategy {strategy} \
             {arguments}"
        );
        let words: Vec<&str> = words.split_whitespace().collect();
        let outcome = scratch.run("stencilc", &words);
        assert_eq!(outcome.code, Some(0), "{words:?}\n{text}\n{}", outcome.stderr);
        let said = outcome.stdout + &outcome.stderr;
        assert!(said.contains("agree bit for bit"), "{text}\n{said}");
    }
}

#[test]
fn grids_at_the_largest_coordinates() {
    let end: i64 = 1 << 60;
    for rule in ["nearest", "periodic", "reflect", "f32(x0 % 7) + nearest"] {
        for (first, last) in [(end - 10, end), (-end, 10 - end)] {
            let text = format!(
                "grid G = [{first}..{last}]\nfield A : f32 on G\nboundary A = {rule}\n\
                 fn f -> A [i in {first}..{last}] = A[-1] + 2*A[1] + A[3] + f32(i % 5)\nsteps 5\n"
            );
            agree_by(&["naive", "block", "warp"], &text, "--in A=random:1");
        }
    }
}

#[test]
fn pieces_that_fit_by_another_dimension_or_hold_no_point() {
    let text = "param N\nparam M\ngrid G = [1..N, 0..M-1]\nfield A : f32 on G\n\
                fn f -> A [N..2*M-1, 0] = 7\nsteps 2\n";
    agree(text, "--size N=3 --size M=2 --in A=random:1");
    let text = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n\
                fn f -> A { [N..N-1] = 7 [1..N-2] = A[-1] [N+5..3] = A[1] }\n\
                fn g -> A [N..N-2] = A[7]\nsteps 2\n";
    agree(text, "--size N=9 --in A=random:1");
}

/// Runs a program on every target without a device, and expects the error of sizes that are too
/// large.
fn too_large(name: &str, text: &str, arguments: &str) {
    for target in ["reference", "sim"] {
        let scratch = Scratch::new();
        scratch.write(name, text);
        let words = format!("run {name} --target {target} {arguments} --out A=o.npy");
        let words: Vec<&str> = words.split_whitespace().collect();
        let outcome = scratch.run("stencilc", &words);
        assert_eq!((outcome.code, outcome.new_files.len()), (Some(1), 0), "{words:?}\n{text}");
        let refused = ["size overflow", "within 2^61 of 0", "between -2305843009213693952"];
        let refused = refused.iter().any(|words| outcome.stderr.contains(words));
        assert!(refused, "{words:?}\n{text}\n{}", outcome.stderr);
    }
}

#[test]
fn bounds_that_leave_64_bits_are_refused() {
    let start = "param N\nparam M\ngrid G = [0..8]\ngrid H = [0..M]\nfield A : f32 on G\n\
                 field B : f32 on H\nfn g -> B [0..M] = B[0] + 1\n";
    // 2^44 * 1048576 is 2^64, which would wrap to 0; half of it to the lowest number.
    for bounds in ["N*1048576..8", "0..8 - N*1048576", "5 - N*1048576..-N*1048576"] {
        let text = format!("{start}fn f -> A [{bounds}] = A[0] + 1\nsteps 1\n");
        for size in [1_i64 << 44, 1 << 43, (1 << 41) + 1] {
            too_large(
                "far.stencil",
                &text,
                &format!("--in A=zeros --in B=zeros --size M=8 --size N={size}"),
            );
        }
        agree(&text, "--in A=random:1 --in B=zeros --size M=8 --size N=0");
    }
    // With all grids known, indices have 32 bits only if the bounds of pieces are known too.
    let text = "param N\ngrid G = [0..8]\nfield A : f32 on G\n\
                fn f -> A [N*1048576..8] = A[0] + 1\nsteps 2\n";
    agree(text, "--in A=random:1 --size N=4096");
    // A grid whose size is open makes indices of 64 bits.
    let text = "param N\nparam M\ngrid G = [0..M]\nfield A : f32 on G\n\
                fn f -> A [N*1048576..M] = A[0] + 1\nsteps 2\n";
    agree(text, "--in A=random:1 --size N=2199023255552 --size M=8");
}

#[test]
fn bounds_of_affine_loops_that_leave_64_bits_are_refused() {
    for bounds in [
        "0 to min affine_map<()[s] -> (8, s * 1048576)>()[%n]",
        "0 to min affine_map<()[s] -> (8, 8 - s * 1048576)>()[%n]",
        "max affine_map<()[s] -> (0, s * -524288)>()[%n] to 8",
        "max affine_map<()[s] -> (0, s * 262144)>()[%n] to 8",
    ] {
        let text = format!(
            "func.func @nest(%a: memref<8xf32> {{stencil.name = \"A\"}}, \
             %n: index {{stencil.name = \"N\"}}) {{\n\
             affine.for %i = {bounds} {{\n\
             %0 = affine.load %a[%i] : memref<8xf32>\n\
             %1 = arith.addf %0, %0 : f32\n\
             affine.store %1, %a[%i] : memref<8xf32>\n}}\nreturn\n}}\n"
        );
        too_large("far.mlir", &text, "--in A=zeros --size N=17592186044416");
    }
}

/// xorshift; the same numbers on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn bound(&mut self) -> String {
        let number = self.below(4);
        match self.below(6) {
            0 => number.to_string(),
            1 => format!("N-{number}"),
            2 => format!("M-{number}"),
            3 => format!("2*M-{number}"),
            4 => format!("N-M+{number}"),
            _ => format!("2*N-M-{number}"),
        }
    }
}

#[test]
fn no_later_level_refuses_what_the_checker_accepts() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut compiled = 0;
    for _ in 0..2000 {
        let mut pieces = String::new();
        for _ in 0..1 + random.below(2) {
            let [a, b, c, d] = [(); 4].map(|()| random.bound());
            pieces += &format!("  [{a}..{b}, {c}..{d}] = A[0, {}]\n", random.below(3));
        }
        let text = format!(
            "param N\nparam M\ngrid G = [1..N, 0..M-1]\nfield A : f32 on G\n\
             fn f -> A {{\n{pieces}}}\nsteps 1\n"
        );
        let source = stencil_frontend::source::Source::new("edge.stencil", text.as_str());
        if stencil_frontend::load(&source, &[]).0.is_none() {
            continue;
        }
        let scratch = Scratch::new();
        scratch.write("edge.stencil", &text);
        let words = ["edge.stencil", "--strategy", "naive", "--emit=tiled", "-o", "out.mlir"];
        let outcome = scratch.run("stencilc", &words);
        assert_eq!(outcome.code, Some(0), "{text}\n{}", outcome.stderr);
        compiled += 1;
        if compiled == 100 {
            return;
        }
    }
    panic!("{compiled} programs");
}

#[test]
fn numbers_at_their_edges() {
    let line = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n";
    let values = [
        // Zeros of both signs, told apart by what they divide.
        "1 / min(A[0] * 0, -(A[0] * 0)) + 2 / max(A[0] * 0, -(A[0] * 0))",
        "f32(rsqrt(f16(A[0])))",
        "f32(i32(7/2)) + f32(7/2) * A[0]",
        "f32(i / (i - i)) + f32(i % (i - i))",
    ];
    for value in values {
        let text = format!("{line}fn f -> A [i in 0..N-1] = {value}\nsteps 1\n");
        agree(&text, "--size N=40 --in A=random:3");
    }
    for (ty, place) in
        [("u32", "U[0] - 3"), ("u64", "U[0] - 3"), ("u64", "U[0] + 9223372036854775808")]
    {
        for rule in ["nearest", "periodic", "if x0 < 0 then 7 else f32(x0)"] {
            let text = format!(
                "{line}grid T = [0..6]\nconst field K : f32 on T\nconst field U : {ty} on G\n\
                 boundary K = {rule}\nfn f -> A [0..N-1] = K({place})\nsteps 1\n"
            );
            agree(&text, "--size N=40 --in A=zeros --in K=random:1 --in U=random:2");
        }
    }
    let text = format!("{line}scalar s : i32 = -0\nfn f -> A [0..N-1] = f32(s) + A[0]\nsteps 1\n");
    agree(&text, "--size N=4 --in A=random:1");
}

#[test]
fn cells_of_bool() {
    let text = "param N\nstruct S { lit : bool, v : vec<2, bool>, x : f32 }\n\
        grid G = [0..N-1, 0..39]\nfield A : bool on G\nfield B : vec<3, bool> on G\n\
        field C : S on G\nfield n : i32 on G\nconst field m : bool on G\n\
        boundary A = x0 < 0 || nearest\nboundary m = nearest\n\
        let most(a, b, c) = a && b || b && c || a && c\n\
        fn f -> A [0..N-1, 0..39] = if m[0,1] then most(A[-1,0], A[0,0] != A[0,1], A[1,0]) \
        else !A[0,-1] == true\n\
        fn g -> B [0..N-1, 0..39] = { let b = !B[0,0]; \
        vec(b.1, b.2, A[0,0]) || vec(false, b.0, bool(n[0,0])) }\n\
        fn h -> (C, n) [0..N-1, 1..39] = (S { lit: A[0,0], v: vec(C[0,-1].lit, C[0,0].x > 0.5), \
        x: f32(A[0,0]) + C[0,0].x * 0.5 }, n[0,0] + i32(m[0,0]))\n\
        reduce some : bool = any(A[0,0]) on [0..N-1, 0..39]\n\
        reduce many : i64 = count(C[0,0].v.1) on [0..N-1, 0..39]\nsteps 5\n";
    agree(
        text,
        "--size N=21 --in A=random:1 --in B=random:2 --in C=random:3 --in n=random:4 \
         --in m=random:5",
    );
}

#[test]
fn vecs_of_vecs_and_structs() {
    let text = "param N\nstruct S { u : f32, v : vec<2, f32> }\ngrid G = [0..N-1, 0..N-1]\n\
        field T : vec<2, vec<2, f32>> on G\nfield W : vec<3, S> on G\n\
        field Z : vec<2, complex64> on G\nboundary T = nearest\n\
        fn f -> T [0..N-1, 0..N-1] = 0.5 * T[0,0] + vec(T[-1,0].1, T[0,1].0) / 4\n\
        fn g -> W [1..N-2, 1..N-2] = { let w = W[0,0]; let z = W[1,0].2; \
        vec(w.1, S { u: z.u - z.v.0, v: T[0,0].0 }, w.0) }\n\
        fn h -> Z [1..N-2, 1..N-2] = if W[0,0].0.u > 0.5 \
        then vec(cmul(Z[0,0].1, Z[0,1].0), Z[0,0].0) else -Z[0,-1]\nsteps 3\n";
    agree(text, "--size N=20 --in T=random:1 --in W=random:2 --in Z=random:3");
}

#[test]
fn planes_and_lines_beside_three_dimensions() {
    let text = "param N\ngrid G = [0..10, 0..N-1, 0..39]\ngrid P = [0..N-1, 0..39]\n\
        grid L = [0..10]\nfield A : f32 on G\nfield eta : f32 on P\nconst field w : f32 on L\n\
        fn f -> A [k in 1..9, j in 1..N-2, i in 1..38] = \
        A[0,0,0] + w(k) * eta(j, i) * (A[-1,0,0] - A[1,0,0])\n\
        fn bottom -> A [0..0, j in 0..N-1, i in 0..39] = A[0,0,0] + eta(j, i)\n\
        fn top -> eta [j in 0..N-1, i in 0..39] = (A(0, j, i) + A(10, j, i) + eta[0,0]) / 3\n\
        steps 4\n";
    agree(text, "--size N=13 --in A=random:1 --in eta=random:2 --in w=random:3");
}
