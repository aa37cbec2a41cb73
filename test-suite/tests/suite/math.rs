//! Operations of `math` in IR by hand: every target has them, for every type of floats.

use stencil_test_suite::Scratch;

/// All operations that the lowerings have, with how many floats each takes.
const OPERATIONS: [(&str, usize); 35] = [
    ("absf", 1),
    ("acos", 1),
    ("acosh", 1),
    ("asin", 1),
    ("asinh", 1),
    ("atan", 1),
    ("atan2", 2),
    ("atanh", 1),
    ("cbrt", 1),
    ("ceil", 1),
    ("copysign", 2),
    ("cos", 1),
    ("cosh", 1),
    ("erf", 1),
    ("erfc", 1),
    ("exp", 1),
    ("exp2", 1),
    ("expm1", 1),
    ("floor", 1),
    ("fma", 3),
    ("isfinite", 1),
    ("isnan", 1),
    ("log", 1),
    ("log10", 1),
    ("log1p", 1),
    ("log2", 1),
    ("powf", 2),
    ("round", 1),
    ("roundeven", 1),
    ("rsqrt", 1),
    ("sin", 1),
    ("sinh", 1),
    ("sqrt", 1),
    ("tan", 1),
    ("tanh", 1),
];

/// A program with a field for each operation, from one of small and one of large numbers.
fn program(ty: &str) -> String {
    let field = |name: &str, role: &str| {
        format!(
            "\"stencil.field\"() {{grid = @G, role = \"{role}\", sym_name = \"{name}\", type = \
             {ty}}} : () -> ()\n"
        )
    };
    let mut text = format!(
        "module @p attributes {{stencil.params = [], stencil.steps = affine_map<() -> (1)>}} {{\n\
         \"stencil.grid\"() {{lower = affine_map<() -> (0)>, sym_name = \"G\", upper = \
         affine_map<() -> (63)>}} : () -> ()\n{}",
        field("x", "const")
    );
    for (name, operands) in OPERATIONS {
        let numbers = vec!["%x"; operands].join(", ");
        // acosh is for numbers from 1 on, and small ones show digits that a sum with 1 loses.
        let scaled = match name {
            "acosh" => "arith.addf %a, %one",
            "expm1" | "log1p" | "asinh" | "atanh" => "arith.mulf %a, %small",
            _ => "arith.mulf %a, %one",
        };
        let value = match name.starts_with("is") {
            true => format!("%b = math.{name} %x : {ty}\n%y = arith.uitofp %b : i1 to {ty}\n"),
            false => format!("%y = math.{name} {numbers} : {ty}\n"),
        };
        text += &format!(
            "{}func.func private @f.{name}(%a: {ty} {{stencil.offset = array<i64: 0>, \
             stencil.read = @x}}) -> {ty} {{\n%one = arith.constant 1.0 : {ty}\n%small = \
             arith.constant 9.765625e-4 : {ty}\n%x = {scaled} : {ty}\n{value}return %y : {ty}\n}}\n\
             \"stencil.apply\"() {{pieces = [{{function = @f.{name}, lower = affine_map<() -> \
             (0)>, upper = affine_map<() -> (63)>}}], updates = [@{name}]}} : () -> ()\n",
            field(name, "state")
        );
    }
    text + "}\n"
}

#[test]
fn every_operation_has_code_for_every_target() {
    let scratch = Scratch::new();
    for ty in ["f16", "bf16", "f32", "f64"] {
        let file = format!("{ty}.mlir");
        scratch.write(&file, program(ty));
        let mut results = Vec::new();
        for target in ["sim", "cpu"] {
            let mut words = vec!["run", &file, "--target", target, "--fp-contract=off"];
            words.extend(["--in", "x=random:7"]);
            let names: Vec<String> = OPERATIONS
                .iter()
                .flat_map(|(name, _)| {
                    let files = [format!("{name}=zeros"), format!("{name}={target}-{name}.npy")];
                    ["--in", "--out"].into_iter().zip(files).flat_map(|(a, b)| [a.to_owned(), b])
                })
                .collect();
            words.extend(names.iter().map(String::as_str));
            let outcome = scratch.run("stencilc", &words);
            assert_eq!(outcome.code, Some(0), "{ty} {target}\n{}", outcome.stderr);
            let read = |(name, _): (&str, usize)| {
                std::fs::read(scratch.path().join(format!("{target}-{name}.npy"))).expect("a file")
            };
            results.push(OPERATIONS.map(read));
        }
        for (place, (name, _)) in OPERATIONS.iter().enumerate() {
            assert!(results[0][place] == results[1][place], "{name} of {ty} differs");
        }
        for (arch, emit) in [("sm_90", "--emit=ptx"), ("gfx942", "--emit=asm")] {
            let outcome = scratch.run("stencilc", &[&file, "--arch", arch, emit, "-o", "code"]);
            assert_eq!(outcome.code, Some(0), "{ty} {arch}\n{}", outcome.stderr);
        }
    }
}

#[test]
fn a_number_of_64_bits_becomes_one_of_16_by_one_rounding() {
    // 1 + 2^-8 + 2^-40 lies above the middle of two bf16, and its f32 in the middle.
    let scratch = Scratch::new();
    let text = program("f64")
        .split("\"stencil.field\"() {grid = @G, role = \"state\"")
        .next()
        .expect("a head")
        .to_owned()
        + "\"stencil.field\"() {grid = @G, role = \"state\", sym_name = \"y\", type = bf16} : () \
           -> ()\nfunc.func private @f(%a: f64 {stencil.offset = array<i64: 0>, stencil.read = \
           @x}) -> bf16 {\n%c = arith.constant 1.003906250000909 : f64\n%b = arith.addf %a, %c : \
           f64\n%y = arith.truncf %b : f64 to bf16\nreturn %y : bf16\n}\n\
           \"stencil.apply\"() {pieces = [{function = @f, lower = affine_map<() -> (0)>, upper = \
           affine_map<() -> (63)>}], updates = [@y]} : () -> ()\n}\n";
    scratch.write("t.mlir", &text);
    for target in ["sim", "cpu"] {
        let words = ["run", "t.mlir", "--target", target, "--in", "x=zeros", "--in"];
        let outcome =
            scratch.run("stencilc", &[&words[..], &["y=zeros", "--out", "y=y.npy"]].concat());
        assert_eq!(outcome.code, Some(0), "{target}\n{}", outcome.stderr);
        let bytes = std::fs::read(scratch.path().join("y.npy")).expect("a file");
        assert_eq!(bytes[bytes.len() - 2..], 0x3f81_u16.to_le_bytes(), "{target}");
    }
}
