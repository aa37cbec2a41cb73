//! The limits of the language: an input at the limit compiles soon, one beyond it is refused with
//! the limit. `docs/language.md` has them in a table.

use crate::snapshot;
use stencil_frontend::diagnostics::{Look, render};
use stencil_frontend::limits::{self, BOUND_PARAMS};
use stencil_frontend::source::Source;
use stencil_test_suite::Scratch;
use stencil_test_suite::timing::slower;

/// How much longer than documented a row may take: other processes share caches and cores.
const FACTOR: f64 = 2.0;

/// A program on a line of N cells.
fn line(items: &str, function: &str) -> String {
    format!("param N\ngrid G = [0..N-1]\nfield A : f32 on G\n{items}{function}\nsteps 3\n")
}

/// A function of one piece.
fn one(value: &str) -> String {
    line("", &format!("fn f -> A [1..N-2] = {value}"))
}

pub fn each(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect()
}

pub fn joined(count: usize, by: &str, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(by)
}

/// A program whose cells have so many numbers.
fn cells(numbers: usize) -> String {
    let members = joined(numbers, ", ", |n| format!("m{n} : f32"));
    let values = joined(numbers, ", ", |n| format!("m{n}: A[-1].m{n} + A[1].m{n}"));
    format!(
        "param N\nstruct S {{ {members} }}\ngrid G = [0..N-1]\nfield A : S on G\n\
         fn f -> A [1..N-2] = S {{ {values} }}\nsteps 3\n"
    )
}

/// A program whose cells are numbers inside so many structs.
fn structs(deep: usize) -> String {
    let all = each(deep - 1, |n| format!("struct S{} {{ a : S{n}, b : bool }}\n", n + 1));
    let last = deep - 1;
    let path = ".a".repeat(last);
    format!(
        "param N\nstruct S0 {{ u : vec<2, f32>, v : f32 }}\n{all}grid G = [0..N-1]\n\
         field A : S{last} on G\nfield B : f32 on G\n\
         fn f -> A [1..N-2] = A[-1]\nfn g -> B [1..N-2] = A[0]{path}.v\nsteps 3\n"
    )
}

/// A program whose cells have a type of so many characters in a file.
fn description(characters: usize) -> String {
    // A member is `('name', [('name', '<f4'), ]), `, and brackets are around all.
    let (count, outer) = (50, 78);
    let inner = characters - 2 - count * (outer + 23);
    let length = |n| inner / count + usize::from(n < inner % count);
    let types = each(count, |n| format!("struct T{n} {{ {} : f32 }}\n", "v".repeat(length(n))));
    let members = joined(count, ", ", |n| format!("m{n:0>width$} : T{n}", width = outer - 1));
    format!(
        "param N\n{types}struct S {{ {members} }}\ngrid G = [0..N-1]\nfield A : S on G\n\
         fn f -> A [1..N-2] = A[-1]\nsteps 3\n"
    )
}

/// A program of so many functions, each of so many terms.
fn functions(count: usize, terms: usize) -> String {
    line(
        "",
        &each(count, |n| {
            let sum = joined(terms, " + ", |_| "A[-1]".to_owned());
            format!("fn step{n} -> A [1..N-2] = {sum}\n")
        }),
    )
}

fn pieces(functions: usize, count: usize) -> String {
    line(
        "",
        &each(functions, |n| {
            format!("fn step{n} -> A {{\n{}}}\n", each(count, |at| format!("[{at}] = {at}*A[0]\n")))
        }),
    )
}

fn grid(end: i64) -> String {
    let first = end - 10;
    format!(
        "grid G = [{first}..{end}]\nfield A : f32 on G\nboundary A = nearest\n\
         fn f -> A [{first}..{end}] = A[-1] + A[1]\nsteps 3\n"
    )
}

fn offset(cells: u64, rule: &str) -> String {
    let first = if rule.is_empty() { cells } else { 0 };
    line(rule, &format!("fn f -> A [{first}..N-1] = A[-{cells}]"))
}

/// Reads under a boundary rule, at far offsets in three dimensions, none of which comes twice.
fn rule_reads(count: usize) -> String {
    let far = |n: usize, factor: usize| (n * factor % 60_000) as i64 - 30_000;
    let read = |n| format!("A[{}, {}, {}]", far(n, 7919), far(n, 104_729), far(n, 15_485_863));
    let (sum, all) = (joined(count, " + ", read), "[0..N-1, 0..N-1, 0..N-1]");
    format!(
        "param N\ngrid G = {all}\nfield A : f16 on G\nboundary A = periodic\nfn f -> A {all} = \
         {sum}\nsteps 1\n"
    )
}

/// Functions by `let`, each of which calls the one before.
fn lets(count: usize) -> String {
    let items = each(count - 1, |n| format!("let g{}(a) = g{n}(a) + 1\n", n + 1));
    let function = format!("fn f -> A [0..N-1] = g{}(A[0])", count - 1);
    line(&format!("let g0(a) = a + 1\n{items}"), &function)
}

/// Operations within each other in calls within each other.
fn calls(depth: usize) -> String {
    let nested = |inner: &str, depth| {
        let (open, close) = ("abs(".repeat(depth), ")".repeat(depth));
        format!("{open}{inner}{close}")
    };
    let first = nested("a", depth / 3);
    let second = nested("g0(a)", depth / 3);
    let third = nested("g1(a)", depth - 2 * (depth / 3));
    let items = format!("let g0(a) = {first}\nlet g1(a) = {second}\nlet g2(a) = {third}\n");
    line(&items, "fn f -> A [0..N-1] = g2(A[0])")
}

/// A sum over so many numbers.
fn range(count: usize) -> String {
    one(&format!("sum(k in 1..{count}) A[-1] * k"))
}

/// A run that looks at its condition after so many steps.
fn looks(every: i64) -> String {
    let reduction = "reduce most : f32 = max(A[0]) on [0..N-1]\n";
    let program = line("", &format!("fn f -> A [1..N-2] = A[-1]\n{reduction}"));
    program.replace("steps 3", &format!("steps 3000000 until most < 0 every {every}"))
}

/// Pieces, each with so many params in its bounds.
fn bound(params: usize, pieces: usize) -> String {
    let names = each(params, |n| format!("param P{n}\n"));
    let place = joined(params, " + ", |n| format!("P{n}"));
    let pieces = each(pieces, |n| format!("[{place} + {n}] = A[0] + {n}\n"));
    line(&names, &format!("fn f -> A {{\n{pieces}}}"))
}

/// Repetitions of a function in a step.
fn repetitions(count: i64) -> String {
    line("", &format!("repeat {count} {{ fn f -> A [1..N-2] = A[-1] }}"))
}

/// The name of each limit, an input at it, and one beyond it.
fn all() -> Vec<(&'static str, String, String)> {
    let text = |bytes: usize| {
        let program = one("A[-1]");
        format!("{program}{}", "#".repeat(bytes - program.len()))
    };
    let name = |length: usize| line("", &format!("fn {} -> A [0] = 1", "f".repeat(length)));
    let nested = |depth: usize| one(&format!("{}1{}", "(".repeat(depth), ")".repeat(depth)));
    let terms = |count| one(&joined(count, " + ", |_| "A[-1]".to_owned()));
    let deep = |count: usize| {
        let lets = each(count, |n| format!("let x{} = x{n} + 1; ", n + 1));
        one(&format!("{{ let x0 = A[0]; {lets}x{count} }}"))
    };
    let params = |count: usize| {
        let sum = joined(count - 1, " + ", |n| format!("P{n}"));
        let function = format!("fn f -> A [1..N-2] = f32({sum})");
        line(&each(count - 1, |n| format!("param P{n}\n")), &function)
    };
    let scalars = |count: usize| {
        let sum = joined(count, " + ", |n| format!("s{n}"));
        let items = each(count, |n| format!("scalar s{n} : f32 = 1\n"));
        line(&items, &format!("fn f -> A [1..N-2] = {sum}"))
    };
    let fields = |numbers: usize| {
        let sum = joined(numbers - 1, " + ", |n| format!("K{n}[0]"));
        let items = each(numbers - 1, |n| format!("const field K{n} : f32 on G\n"));
        line(&items, &format!("fn f -> A [1..N-2] = {sum}"))
    };
    let updates = |count: usize| {
        let items = each(count - 1, |n| format!("field B{n} : f32 on G\n"));
        let names = joined(count - 1, ", ", |n| format!("B{n}"));
        let values = joined(count - 1, ", ", |n| format!("B{n}[1]"));
        line(&items, &format!("fn f -> (A, {names}) [1..N-2] = (A[1], {values})"))
    };
    let steps = |count: i64| one("A[-1]").replace("steps 3", &format!("steps {count}"));
    let reads = |count: usize| {
        let sum = joined(count, " + ", |n| format!("A[{n}]"));
        line("", &format!("fn f -> A [0..N-{count}] = {sum}"))
    };
    // The sizes are checked too, neither is negative, and so is the first point of the piece.
    let checks = |count: usize| {
        let sum = joined(count - 3, " + ", |n| format!("A[-{}]", n + 1));
        line("param P\n", &format!("fn f -> A [P..N-1] = {sum}"))
    };
    let rule = "boundary A = nearest\n";
    let (depth, operations) = (limits::DEPTH - 4, limits::OPERATIONS);
    vec![
        ("text", text(limits::TEXT), text(limits::TEXT + 1)),
        ("name", name(limits::NAME), name(limits::NAME + 1)),
        ("nesting", nested(limits::NESTING), nested(limits::NESTING + 1)),
        ("terms", terms(limits::TERMS), terms(limits::TERMS + 1)),
        ("depth", deep(depth), deep(depth + 1)),
        ("params", params(limits::PARAMS), params(limits::PARAMS + 1)),
        ("bound-params", bound(BOUND_PARAMS, limits::PIECES), bound(BOUND_PARAMS + 1, 1)),
        ("scalars", scalars(limits::SCALARS), scalars(limits::SCALARS + 1)),
        ("fields", fields(limits::FIELDS), fields(limits::FIELDS + 1)),
        ("cell", cells(limits::CELL), cells(limits::CELL + 1)),
        ("structs", structs(limits::STRUCTS), structs(limits::STRUCTS + 1)),
        ("description", description(limits::DESCRIPTION), description(limits::DESCRIPTION + 1)),
        ("updates", updates(limits::CELL), updates(limits::CELL + 1)),
        ("functions", functions(limits::FUNCTIONS, 2), functions(limits::FUNCTIONS + 1, 2)),
        ("lets", lets(limits::LETS), lets(limits::LETS + 1)),
        // A parameter is one level.
        ("call-depth", calls(limits::CALL_DEPTH - 5), calls(limits::CALL_DEPTH - 4)),
        ("repetitions", repetitions(limits::REPETITIONS), repetitions(limits::REPETITIONS + 1)),
        ("range", range(limits::TERMS), range(limits::TERMS + 1)),
        ("looks", looks(limits::EVERY), looks(limits::EVERY + 1)),
        ("pieces", pieces(1, limits::PIECES), pieces(1, limits::PIECES + 1)),
        ("all-pieces", pieces(2, limits::ALL_PIECES / 2), pieces(3, limits::ALL_PIECES / 2)),
        // A sum of n terms has 2 n - 1 operations.
        ("operations", functions(10, operations / 20), functions(10, operations / 20 + 1)),
        ("reads", reads(limits::READS), reads(limits::READS + 1)),
        ("rule-reads", rule_reads(limits::READS / 2), rule_reads(limits::READS / 2 + 1)),
        ("checks", checks(limits::CHECKS), checks(limits::CHECKS + 1)),
        ("offset", offset(limits::OFFSET, ""), offset(limits::OFFSET + 1, "")),
        ("rule-offset", offset(limits::RULE_OFFSET, rule), offset(limits::RULE_OFFSET + 1, rule)),
        ("grid-end", grid(limits::GRID_END), grid(limits::GRID_END + 1)),
        ("steps", steps(limits::STEPS), steps(limits::STEPS + 1)),
    ]
}

#[test]
fn what_is_beyond_a_limit_is_refused_with_it() {
    for (name, _, beyond) in all() {
        let scratch = Scratch::new();
        scratch.write("limit.stencil", &beyond);
        let arguments = ["limit.stencil", "--strategy", "naive", "-o", "out.ptx"];
        let outcome = scratch.run("stencilc", &arguments);
        assert_eq!((outcome.code, outcome.new_files.len()), (Some(1), 0), "{name}");
        assert!(outcome.stderr.len() < 4000, "{name}: {}", outcome.stderr.len());
        snapshot(&format!("limits__{name}"), &outcome.stderr);
    }
}

/// One error for each limit, and what stands behind is checked.
#[test]
fn a_limit_hides_no_other_error() {
    let long = "f".repeat(limits::NAME + 1);
    let text = format!("fn {long} -> A [0] = x\n");
    let text = pieces(3, limits::PIECES + 1).replace("steps 3", &format!("{text}steps M"));
    let source = Source::new("limit.stencil", text);
    let (program, errors) = stencil_frontend::load(&source, &[]);
    assert!(program.is_none());
    let text = render(&errors, &source, Look::Plain);
    let told: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("error: ")).collect();
    assert_eq!(
        told,
        [
            "a function has at most 200 pieces",
            "a function has at most 200 pieces",
            "a program has at most 400 pieces",
            "a function has at most 200 pieces",
            "a name has at most 100 characters",
            "unknown name `M`",
        ]
    );
}

/// Structs that double forty times would have 2^41 numbers.
#[test]
fn structs_that_double_are_refused_at_once() {
    let doubled = each(40, |n| format!("struct S{} {{ a : S{n}, b : S{n} }}\n", n + 1));
    let text = format!(
        "param N\nstruct S0 {{ a : f32, b : f32 }}\n{doubled}grid G = [0..N-1]\n\
         field A : S40 on G\nfn f -> A [1..N-2] = A[-1]\nsteps 3\n"
    );
    let begin = std::time::Instant::now();
    let source = Source::new("doubled.stencil", text);
    let (program, errors) = stencil_frontend::load(&source, &[]);
    assert!(program.is_none());
    let said = render(&errors, &source, Look::Plain);
    assert!(said.contains("structs are at most 4 deep inside each other"), "{said}");
    assert!(begin.elapsed().as_secs_f64() < 5.0, "{:?}", begin.elapsed());
}

/// The times of the table in the language's documentation, of the rows that have one.
fn documented_times() -> Vec<f64> {
    let page = include_str!("../../../docs/language.md");
    let (_, table) = page.split_once("\n## Limits\n").unwrap();
    let rows = table.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|'));
    let time = |row: &str| row.trim_end_matches(" s |").rsplit(' ').next()?.parse().ok();
    rows.filter_map(time).collect()
}

/// Programs at the limits, in the order of the table, compile by the schedule of the compiler's
/// choice in the time that it has.
#[test]
fn what_is_at_a_limit_compiles_in_the_documented_time() {
    let (all, documented) = (all(), documented_times());
    assert_eq!(all.len(), documented.len());
    let mut times = Vec::new();
    for ((name, at, _), documented) in all.into_iter().zip(documented) {
        let scratch = Scratch::new();
        scratch.write("limit.stencil", &at);
        let time = scratch.processor_time("stencilc", &["limit.stencil", "-o", "out.ptx"]);
        println!("{name:12} {time:.1} s, documented {documented} s");
        times.push((name, time, documented));
    }
    times.retain(|(_, time, documented)| *time > slower() * (1.0 + FACTOR * documented));
    assert!(times.is_empty(), "{times:?}");
}

/// What a run writes is read by the next one.
#[test]
fn cells_at_the_limits_go_through_files() {
    for (program, other) in
        [(structs(limits::STRUCTS), "--in B=zeros"), (description(limits::DESCRIPTION), "")]
    {
        let scratch = Scratch::new();
        scratch.write("cells.stencil", &program);
        let run = format!("stencilc run cells.stencil --target reference {other}");
        let line = format!(
            "{run} --size N=7 --in A=random:1 --out A=a.npy && {run} --in A=a.npy --out A=b.npy"
        );
        let outcome = scratch.shell(&line);
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    }
}

/// A piece whose bound a run's size brings beyond the limit, though it is empty.
#[test]
fn bounds_beyond_the_limit_are_refused_at_the_start_of_a_run() {
    let scratch = Scratch::new();
    scratch.write("far.stencil", line("param K\n", "fn f -> A [4*K..3*K] = A[0] + 1"));
    let run = |size: i64| {
        let command = "stencilc run far.stencil --target reference --size N=4 --in A=zeros";
        scratch.shell(&format!("{command} --out A=out.npy --size K={size}"))
    };
    let most = limits::PIECE_END / 4;
    assert_eq!(run(most).code, Some(0));
    let outcome = run(most + 1);
    assert_eq!(outcome.code, Some(1));
    snapshot("limits__piece-end", &outcome.stderr);
}

#[test]
fn the_front_end_needs_no_large_stack() {
    for (name, at, beyond) in all() {
        let load = move || {
            for text in [at, beyond] {
                let source = stencil_frontend::source::Source::new("limit.stencil", text);
                let (file, _) = stencil_frontend::parser::parse(&source);
                stencil_frontend::print::print(&file);
                stencil_frontend::load(&source, &[]);
            }
        };
        let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(load).expect("a thread");
        assert!(thread.join().is_ok(), "{name}");
    }
}

/// Limits by name. The test of the documents compares the names with the source.
macro_rules! named {
    ($($name:ident)*) => {
        [$((stringify!($name), limits::$name as usize)),*]
    };
}

/// The names of the constants of a file.
pub fn constants(text: &str) -> Vec<&str> {
    let names = text.lines().filter_map(|line| line.strip_prefix("pub const "));
    names.filter_map(|line| Some(line.split_once(':')?.0)).collect()
}

/// A number as the tables of the documents show it.
pub fn shown(number: usize) -> [String; 2] {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().collect();
    let groups = groups.iter().map(|group| String::from_utf8_lossy(group));
    let power = format!("2^{}", number.trailing_zeros());
    let shown = groups.collect::<Vec<_>>().join(",");
    [shown.clone(), if number.is_power_of_two() { power } else { shown }]
}

#[test]
fn the_documents_name_every_limit() {
    let language = include_str!("../../../docs/language.md");
    let (_, table) = language.split_once("\n## Limits\n").unwrap();
    let of_sl = include_str!("../../../docs/sl.md");
    let all = named! {
        TEXT NAME NESTING TERMS SL_OPERATORS SL_ARRAY SL_ITERATIONS DEPTH PARAMS SCALARS FIELDS CELL
        STRUCTS DESCRIPTION FUNCTIONS EVERY REPETITIONS REPEATS LETS CALL_DEPTH PIECES ALL_PIECES
        OPERATIONS READS CHECKS OFFSET RULE_OFFSET GRID_END PIECE_END BOUND_PARAMS MOST_CELLS STEPS
    };
    let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
    let source = include_str!("../../../driver/frontend/src/limits.rs");
    let mut known = constants(source);
    known.sort_unstable();
    let mut sorted = names.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, known);
    for (name, number) in all {
        let numbers = shown(number);
        let rows = if name.starts_with("SL_") { of_sl } else { table };
        let is_named = match name {
            "REPEATS" => table.contains("in at most two `repeat`s") && number == 2,
            "MOST_CELLS" => table.contains("2^59 cells") && number == 1 << 59,
            _ => numbers.iter().any(|number| rows.contains(&format!("\n| {number} | "))),
        };
        assert!(is_named, "{name}: {numbers:?} is missing");
    }
}
