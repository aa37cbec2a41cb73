//! A libdevice that is missing is told before the passes that take long.

use stencil_compiler::{Choice, Config, Control, Level, Options, Progress, Session, Source};

/// The passes that run on a program without libdevice until it fails, or `None` if it compiles.
fn passes_without_libdevice(of: &str, value: &str) -> Option<Vec<String>> {
    let text = format!(
        "param N\ngrid G = [0..N-1]\nfield A : {of} on G\nboundary A = sin(nearest)\n\
         fn f -> A [1..N-2] = {value}\nsteps 4\n"
    );
    let choice = Choice { strategy: Some("naive".to_owned()), ..Choice::default() };
    let config = Config { choice, ..Config::default() };
    let libdevice = Some("/no/such/libdevice.10.bc".into());
    let session = Session::new(Options { config, libdevice, ..Options::default() });
    let mut passes = Vec::new();
    let mut progress = |progress: Progress<'_>| {
        if let Progress::Pass { name, .. } = progress {
            passes.push(name.to_owned());
        }
    };
    let control = Control { progress: Some(&mut progress), ..Control::default() };
    match session.compile(&Source::new("f.stencil", text), &[Level::Ptx], control) {
        Ok(_) => None,
        Err(failure) => {
            let words = "/no/such/libdevice.10.bc: libdevice can't be read: No such file";
            assert!(failure.to_string().contains(words), "{value}: {failure}");
            Some(passes)
        }
    }
}

#[test]
fn a_missing_libdevice_is_told_before_the_schedule_is_chosen() {
    let functions = ["exp", "exp2", "log", "log2", "sin", "cos", "tan", "tanh", "erf", "cbrt"];
    let functions = functions.map(|name| format!("{name}(A[0])"));
    let others = ["pow(A[0], 1.5)", "atan2(A[0], 1.5)"].map(str::to_owned);
    for value in functions.iter().chain(&others) {
        for of in ["f32", "f64"] {
            let passes = passes_without_libdevice(of, value);
            let passes = passes.unwrap_or_else(|| panic!("{value} of {of} needs no libdevice"));
            assert!(!passes.iter().any(|name| name.starts_with("choose-schedule")), "{passes:?}");
        }
    }
    // Their code is our own, or they are gone before code is made.
    for value in [
        "sqrt(A[0]) + rsqrt(A[0]) + abs(A[0]) + floor(A[0]) + ceil(A[0]) + fma(A[0], 2.0, 3.0)",
        "min(A[0], 2.0) + max(A[0], 1.0) + sign(A[0])",
        "A[0] + exp(2.0)",
        // No read leaves the grid, so the boundary rule has no code.
        "A[-1] + A[1]",
        "if 1.0 > 2.0 then exp(A[0]) else A[0]",
    ] {
        assert_eq!(passes_without_libdevice("f32", value), None, "{value}");
    }
}
