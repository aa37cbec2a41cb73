//! The limits of a program as a module. `docs/ir.md` has them in a table.

use crate::limits::{constants, each, joined, shown};
use std::time::{Duration, Instant};
use stencil_frontend::limits;
use stencil_test_suite::Scratch;

/// The verifier looks at a module at a limit within this time.
const SOON: Duration = Duration::from_secs(60);

/// A module whose parts are so many.
fn module(
    params: usize,
    scalars: usize,
    fields: usize,
    checks: usize,
    applies: &[usize],
) -> String {
    let names = joined(params, ", ", |n| format!("\"P{n}\""));
    let symbols = joined(params, ", ", |n| format!("p{n}"));
    let map = |result: &str| format!("affine_map<()[{symbols}] -> ({result})>");
    let (zero, last) = (map("0"), map("999"));
    let scalars = each(scalars, |n| {
        format!(
            "\"stencil.scalar\"() {{sym_name = \"s{n}\", type = f32, default = []}} : () -> ()\n"
        )
    });
    let fields = each(fields, |n| {
        format!(
            "\"stencil.field\"() {{sym_name = \"A{n}\", grid = @G, type = f32, role = \"state\"}} \
             : () -> ()\n"
        )
    });
    let checks = each(checks, |n| {
        let value = map(&n.to_string());
        format!(
            "\"stencil.check\"() {{value = {value}, unless_empty = [], message = \"c\"}} \
             : () -> ()\n"
        )
    });
    let applies = applies.iter().map(|pieces| {
        let pieces = joined(*pieces, ", ", |n| {
            let at = map(&n.to_string());
            format!("{{function = @f, lower = {at}, upper = {at}}}")
        });
        format!("\"stencil.apply\"() {{updates = [@A0], pieces = [{pieces}]}} : () -> ()\n")
    });
    format!(
        "module attributes {{stencil.params = [{names}], stencil.steps = {zero}}} {{\n\
         \"stencil.grid\"() {{sym_name = \"G\", lower = {zero}, upper = {last}}} : () -> ()\n\
         {scalars}{fields}{checks}\
         func.func private @f(%a: f32 {{stencil.read = @A0, stencil.offset = array<i64: 0>}}, \
         %b: f32 {{stencil.read = @A0, stencil.offset = array<i64: 0>}}, \
         %c: f32 {{stencil.read = @A0, stencil.offset = array<i64: 0>}}) -> f32 {{\n\
         return %a : f32 }}\n\
         {}}}\n",
        applies.collect::<String>()
    )
}

/// A compiler that makes modules meets the limits of the language.
#[test]
fn modules_beyond_a_limit_are_refused_with_it() {
    use limits::{ALL_PIECES, CHECKS, FIELDS, FUNCTIONS, PARAMS, PIECES, READS, SCALARS};
    let functions = vec![1; FUNCTIONS];
    let too_many = vec![1; FUNCTIONS + 1];
    for (module, most) in [
        (module(1, 0, 1, 0, &[1]), None),
        (module(PARAMS, SCALARS, FIELDS, CHECKS, &functions), None),
        (module(PARAMS + 1, 0, 1, 0, &[1]), Some((PARAMS, "run-time sizes"))),
        (module(1, SCALARS + 1, 1, 0, &[1]), Some((SCALARS, "scalars"))),
        (module(1, 0, FIELDS + 1, 0, &[1]), Some((FIELDS, "fields"))),
        (module(1, 0, 1, 10 * CHECKS, &[1]), Some((CHECKS, "checks"))),
        (module(1, 0, 1, 0, &too_many), Some((FUNCTIONS, "applies"))),
        (module(1, 0, 1, 0, &[PIECES + 1]), Some((PIECES, "pieces, and this one has 201"))),
        (module(1, 0, 1, 0, &[10 * PIECES]), Some((ALL_PIECES, "pieces"))),
        (module(1, 0, 1, 0, &[READS / 6 + 1; 2]), Some((READS, "reads"))),
    ] {
        let scratch = Scratch::new();
        scratch.write("limit.mlir", &module);
        let start = Instant::now();
        let arguments = ["limit.mlir", "--pass-pipeline=stencil-verify", "-o", "out.mlir"];
        let outcome = scratch.run("stencil-opt", &arguments);
        assert!(start.elapsed() < SOON, "{most:?}");
        match most {
            None => assert_eq!(outcome.code, Some(0), "{}", outcome.stderr),
            Some((most, what)) => {
                let words = format!("has at most {most} {what}");
                assert_eq!(outcome.code, Some(1), "{words}");
                assert!(outcome.stderr.contains(&words), "{words}: {}", outcome.stderr);
            }
        }
    }
}

/// Each limit of modules is one of the language, and `docs/ir.md` names it.
#[test]
fn the_limits_of_modules_are_those_of_the_language() {
    use stencil_dialects::limits as of_modules;
    macro_rules! equal {
        ($($name:ident = $language:ident)*) => {
            [$((
                stringify!($name),
                of_modules::$name as usize,
                limits::$language as usize,
            )),*]
        };
    }
    let mut all = equal! {
        PARAMS = PARAMS SCALARS = SCALARS FIELDS = FIELDS UPDATES = CELL APPLIES = FUNCTIONS
        REPETITIONS = REPETITIONS REPEATS = REPEATS EVERY = EVERY PIECES = PIECES
        ALL_PIECES = ALL_PIECES READS = READS OPERATIONS = OPERATIONS CHECKS = CHECKS
        RULE_OFFSET = RULE_OFFSET GRID_END = GRID_END PIECE_END = PIECE_END
        BOUND_SIZES = BOUND_PARAMS MOST_CELLS = MOST_CELLS STEPS = STEPS
    };
    all.sort_unstable();
    let names: Vec<_> = all.iter().map(|(name, ..)| *name).collect();
    let mut known = constants(include_str!("../../../dialects/src/limits.rs"));
    known.sort_unstable();
    assert_eq!(names, known);
    let (_, table) = include_str!("../../../docs/ir.md").split_once("### Limits").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    for (name, own, language) in all {
        // An operation of the language is up to five of a module.
        let times = if name == "OPERATIONS" { 10 } else { 1 };
        assert_eq!(own, times * language, "{name}");
        let is_named = match name {
            "REPEATS" => table.contains("at most two within each other") && own == 2,
            "MOST_CELLS" => table.contains("2^59 cells"),
            _ => shown(own).iter().any(|number| table.contains(&format!("\n| {number} | "))),
        };
        assert!(is_named, "{name}");
    }
}

/// A function of so many operations is refused as an input, and its text is read in time.
#[test]
fn operations_of_a_module_beyond_the_limit_are_refused_with_it() {
    let most = stencil_dialects::limits::OPERATIONS;
    // The function itself and its return are operations too.
    for (added, pieces) in [(most - 2, 1), (most - 1, 1), (most / 100 - 1, 100)] {
        let sum = each(added, |n| {
            let last = n.checked_sub(1).map_or("%a".to_owned(), |last| format!("%v{last}"));
            format!("%v{n} = arith.addf {last}, %b : f32\n")
        });
        let result = format!("{sum}return %v{} : f32 }}", added - 1);
        let text = module(1, 0, 1, 0, &[pieces]).replace("return %a : f32 }", &result);
        let scratch = Scratch::new();
        scratch.write("limit.mlir", &text);
        let arguments = ["limit.mlir", "--pass-pipeline=stencil-verify", "-o", "out.mlir"];
        let outcome = scratch.run("stencil-opt", &arguments);
        let refused = (added + 2) * pieces > most;
        assert_eq!(outcome.code, Some(i32::from(refused)), "{added} {pieces} {}", outcome.stderr);
        let words = "has at most 100000 operations of point functions";
        assert_eq!(outcome.stderr.contains(words), refused, "{}", outcome.stderr);
    }
}

/// MLIR would overflow its stack at these, or never end.
#[test]
fn aliases_that_stand_for_too_much_are_refused() {
    let chain = |sigil: char, first: &str, count: usize, of: &dyn Fn(String) -> String| {
        let line = |n| format!("{sigil}a{} = {}\n", n + 1, of(format!("{sigil}a{n}")));
        let used = format!("module attributes {{x.y = {sigil}a{count}, ");
        let module = module(1, 0, 1, 0, &[1]).replace("module attributes {", &used);
        format!("{sigil}a0 = {first}\n{}{module}", each(count, line))
    };
    let twice = |a| format!("[{a}, {a}]");
    for (text, fault) in [
        (chain('#', "1", 17, &twice), None),
        (chain('#', "1", 20_000, &|a| format!("[{a}]")), Some("more than 400 levels deep")),
        (chain('#', "1", 60, &twice), Some("the alias #a18 written out has more than 1048576")),
        (chain('!', "i1", 60, &|a| format!("tuple<{a}, {a}>")), Some("the alias !a18 written out")),
    ] {
        for (tool, option) in
            [("stencilc", "--emit=stencil"), ("stencil-opt", "--pass-pipeline=stencil-verify")]
        {
            let scratch = Scratch::new();
            scratch.write("limit.mlir", &text);
            let outcome = scratch.run(tool, &["limit.mlir", option, "-o", "out.mlir"]);
            let code = Some(i32::from(fault.is_some()));
            assert_eq!(outcome.code, code, "{tool} {fault:?}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(fault.unwrap_or_default()), "{}", outcome.stderr);
        }
    }
}
