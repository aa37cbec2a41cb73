//! `stencil-fuzz`: many random cases, on several processes.

#![forbid(unsafe_code)]

use clap::{Parser, ValueEnum};
use melior::Context;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use stencil_fuzz::check::{Fault, Verdict, check};
use stencil_fuzz::model::Case;
use stencil_fuzz::mutate::Corpus;
use stencil_fuzz::outcome::Outcome;
use stencil_fuzz::pool::{self, End, Pool};
use stencil_fuzz::random::Random;
use stencil_fuzz::summary::Summary;
use stencil_fuzz::windows::Fate;
use stencil_fuzz::{generate, hostile, ir, nests, orders, record, shrink, sl, text};

/// Run random programs on the simulator and compare with the oracle, bit for bit; or damaged
/// inputs and hostile use, for which the tools must print a message.
#[derive(Clone, Debug, Parser)]
#[command(name = "stencil-fuzz", version)]
struct Args {
    /// What the cases are
    #[arg(value_enum, default_value_t = Kind::Programs)]
    kind: Kind,
    /// How many cases
    #[arg(long, default_value_t = 500)]
    cases: u64,
    /// The seed; seed and number make a case
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The number of the first case
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Processes
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: u64,
    /// Where failing cases go
    #[arg(long, default_value = "fuzz-failures")]
    out: PathBuf,
    /// Most runs to make a failing program smaller
    #[arg(long, default_value_t = 600)]
    attempts: usize,
    /// Most seconds a case, with making it smaller (default 300 for programs, 120 for orders, 40
    /// for others)
    #[arg(long)]
    limit: Option<u64>,
    /// Print the cases and run nothing
    #[arg(long)]
    print: bool,
    /// Run every so many-th case, and tell of each on standard output: for worker processes
    #[arg(long, hide = true)]
    every: Option<u64>,
}

impl Args {
    /// The most seconds of a case.
    fn limit(&self) -> u64 {
        self.limit.unwrap_or(match self.kind {
            kind if kind.is_program() => 300,
            // Lists of dozens of passes, and shorter ones where they fail.
            Kind::Orders => 120,
            _ => 40,
        })
    }
}

/// Kinds of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Valid programs with schedules, sizes and data
    Programs,
    /// Small ones that read values of their own sweep, by strategies and by lists of passes
    Sweeps,
    /// Small ones with reductions, some of which end the run
    Reductions,
    /// Valid programs, sweeps and reductions among them, on the processor of this machine
    Processor,
    /// Valid programs of two and three dimensions by the strategy `patch`
    Patches,
    /// Valid programs of one field of two dimensions by the strategy `relay`
    Relays,
    /// Valid programs of many rows, in core, on several devices and out of core
    Windows,
    /// Functions of affine loops
    Nests,
    /// Passes in any order, over programs, affine loops, kernels by hand and lit tests
    Orders,
    /// Damaged source text
    Text,
    /// Damaged text of SL
    Sl,
    /// Damaged MLIR
    Ir,
    /// Command lines, files in the way, signals, damaged plans and headers for the built tools
    Hostile,
}

impl Kind {
    /// Whether its cases are valid programs.
    fn is_program(self) -> bool {
        !matches!(
            self,
            Self::Nests | Self::Orders | Self::Text | Self::Sl | Self::Ir | Self::Hostile
        )
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match (args.print, args.every, args.kind) {
        (true, ..) => print(&args).map(|()| ExitCode::SUCCESS),
        (_, Some(every), kind) if kind.is_program() => Ok(program_worker(&args, every)),
        (_, Some(every), _) => damage_worker(&args, every),
        (.., kind) if kind.is_program() => programs(&args),
        _ => damaged(&args),
    };
    done.unwrap_or_else(|message| {
        eprintln!("error: {message}");
        ExitCode::from(2)
    })
}

/// The source of inputs of a kind that is no program: most are damaged.
enum Damage {
    Nests,
    Orders(Vec<String>),
    Text(Corpus),
    Sl(Corpus),
    Ir(ir::Inputs),
    Hostile(hostile::Inputs),
}

impl Damage {
    fn new(kind: Kind, context: &Context) -> Result<Self, String> {
        match kind {
            Kind::Nests => Ok(Self::Nests),
            Kind::Orders => orders::files().map(Self::Orders),
            Kind::Ir => ir::inputs(context).map(Self::Ir),
            Kind::Hostile => hostile::inputs().map(Self::Hostile),
            Kind::Sl => sl::corpus().map(Self::Sl).map_err(|error| error.to_string()),
            _ => text::corpus().map(Self::Text).map_err(|error| error.to_string()),
        }
    }

    fn text(&self, seed: u64, index: u64) -> Result<String, String> {
        Ok(match self {
            Self::Nests => {
                let nest = nests::generate::nest(seed, index);
                format!("// Tiles: {:?}, sizes: {:?}\n{}", nest.tiles, nest.sizes, nest.text)
            }
            Self::Text(corpus) => text::input(corpus, seed, index),
            Self::Sl(corpus) => sl::input(corpus, seed, index),
            Self::Ir(inputs) => ir::input(inputs, seed, index).text,
            Self::Hostile(inputs) => hostile::attempt(inputs, seed, index).script(),
            Self::Orders(files) => orders::order(files, seed, index).text(&new_context()?),
        })
    }

    fn check(&self, seed: u64, index: u64, context: &Context) -> Outcome {
        match self {
            Self::Nests => nests::check(&nests::generate::nest(seed, index), context),
            Self::Text(corpus) => {
                let choice = &mut Random::of_case(!seed, index);
                text::check(&text::input(corpus, seed, index), context, choice)
            }
            Self::Sl(corpus) => {
                let choice = &mut Random::of_case(!seed, index);
                sl::check(&sl::input(corpus, seed, index), context, choice)
            }
            Self::Ir(inputs) => ir::check(&ir::input(inputs, seed, index), context),
            Self::Hostile(inputs) => hostile::check(inputs, seed, index),
            Self::Orders(files) => orders::check(&orders::order(files, seed, index), context),
        }
    }
}

/// The program of a number.
fn case(args: &Args, index: u64) -> Case {
    match args.kind {
        Kind::Sweeps => generate::sweep(args.seed, index),
        Kind::Reductions => generate::reduction(args.seed, index),
        Kind::Processor => generate::on_processor(args.seed, index),
        Kind::Patches => generate::in_patches(args.seed, index),
        Kind::Relays => generate::in_relays(args.seed, index),
        Kind::Windows => generate::out_of_core(args.seed, index),
        _ => generate::case(args.seed, index),
    }
}

fn new_context() -> Result<Context, String> {
    stencil_dialects::context().map_err(|error| error.to_string())
}

/// Prints a line; a full disk and a closed pipe are errors.
fn say(line: impl Display) -> Result<(), String> {
    writeln!(std::io::stdout(), "{line}").map_err(|error| format!("standard output: {error}"))
}

fn print(args: &Args) -> Result<(), String> {
    let damage = match args.kind {
        kind if kind.is_program() => None,
        kind => Some(Damage::new(kind, &new_context()?)?),
    };
    for index in args.first..args.first.saturating_add(args.cases) {
        let Some(damage) = &damage else {
            let case = case(args, index);
            say(format!("# case {index} of seed {}", args.seed))?;
            for schedule in &case.schedules {
                say(format!("# {}", record::command_line(&case, schedule, "case.stencil")))?;
            }
            say(case.program.text())?;
            continue;
        };
        say(damage.text(args.seed, index)?)?;
    }
    Ok(())
}

fn pool(args: &Args) -> Pool {
    let end = args.first.saturating_add(args.cases);
    let kind =
        args.kind.to_possible_value().map(|kind| kind.get_name().to_owned()).unwrap_or_default();
    let limit = args.limit();
    let attempts = args.attempts as u64;
    let numbers =
        [("--seed", args.seed), ("--cases", end), ("--attempts", attempts), ("--limit", limit)];
    let numbers =
        numbers.into_iter().flat_map(|(name, value)| [name.to_owned(), value.to_string()]);
    let out = ["--out".to_owned(), args.out.display().to_string()];
    Pool {
        arguments: [kind].into_iter().chain(numbers).chain(out).collect(),
        first: args.first,
        cases: args.cases,
        jobs: args.jobs,
        limit: Duration::from_secs(limit),
    }
}

/// A context keeps all that it has ever seen, so a worker takes a new one now and then.
struct Contexts {
    current: Context,
    uses: u64,
}

impl Contexts {
    fn new() -> Result<Self, String> {
        Ok(Self { current: new_context()?, uses: 0 })
    }

    fn next(&mut self) -> Option<&Context> {
        self.uses += 1;
        if self.uses.is_multiple_of(200) {
            self.current = new_context().ok()?;
        }
        Some(&self.current)
    }
}

/// Runs the programs of one worker.
fn program_worker(args: &Args, every: u64) -> ExitCode {
    let Ok(mut contexts) = Contexts::new() else { return ExitCode::from(2) };
    pool::work(args.first, args.cases, every, |index| {
        let context = contexts.next()?;
        let case = case(args, index);
        let verdict = check(&case, context);
        let mut message = String::new();
        if let Some((small, fault, text)) = shrink::failure(&case, &verdict, args.attempts, context)
        {
            let stem = format!("seed{}-case{index}", args.seed);
            message = match record::write(&small, fault, &text, &args.out, &stem) {
                Ok(path) => format!("{fault:?}, see {}", path.display()),
                Err(error) => format!("{fault:?}, and it can't be written: {error}"),
            };
        }
        Some(match &verdict {
            Verdict::Agreed { telling, windows } => {
                let fate = windows.as_ref().map(Fate::line).unwrap_or_default();
                format!("agreed {telling} {}", fate.lines().next().unwrap_or_default())
            }
            Verdict::Refused(message) => {
                format!("refused {}", message.lines().next().unwrap_or_default())
            }
            Verdict::Declined(message) => {
                format!("declined {}", message.lines().next().unwrap_or_default())
            }
            Verdict::Failed(fault, _) => format!("failed {fault:?} {message}"),
        })
    })
}

/// Runs the damaged inputs of one worker.
fn damage_worker(args: &Args, every: u64) -> Result<ExitCode, String> {
    let mut contexts = Contexts::new()?;
    let damage = Damage::new(args.kind, &contexts.current)?;
    Ok(pool::work(args.first, args.cases, every, |index| {
        let begin = Instant::now();
        let outcome = damage.check(args.seed, index, contexts.next()?);
        // Far less than the limit after which the process is ended.
        // Hostile attempts have limits of their own.
        let limited = args.kind != Kind::Hostile && !matches!(outcome, Outcome::Failed(..));
        let slow = limited && begin.elapsed() > Duration::from_secs(args.limit() / 4);
        let message = || format!("{:.1} s", begin.elapsed().as_secs_f64());
        Some(if slow { Outcome::Failed(Fault::Slow, message()) } else { outcome }.line())
    }))
}

/// Runs programs on the workers and counts what they tell.
fn programs(args: &Args) -> Result<ExitCode, String> {
    let mut summary = Summary::default();
    pool::lead(&pool(args), &mut |number, end| {
        let case = case(args, number);
        let verdict = match end {
            End::Line(line) => verdict(line).ok_or_else(|| format!("a worker says '{line}'"))?,
            End::Died(status) => {
                let message = format!("the process that compiled it ended: {status}");
                let stem = format!("seed{}-case{number}", args.seed);
                let path = record::write(&case, Fault::Crash, &message, &args.out, &stem)
                    .map_err(|error| error.to_string())?;
                Verdict::Failed(Fault::Crash, format!("Crash, see {}", path.display()))
            }
        };
        if let Verdict::Failed(_, message) = &verdict {
            eprintln!("case {number}: {message}");
        }
        summary.add(&case, &verdict);
        Ok(matches!(verdict, Verdict::Failed(..)))
    })?;
    say(&summary)?;
    Ok(ExitCode::from(u8::from(summary.failures() > 0)))
}

/// Runs damaged inputs on the workers and counts what they tell; inputs that fail are written out.
fn damaged(args: &Args) -> Result<ExitCode, String> {
    let damage = Damage::new(args.kind, &new_context()?)?;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut failures = 0_u64;
    pool::lead(&pool(args), &mut |number, end| {
        let line = match end {
            End::Line(line) => line.to_owned(),
            End::Died(status) => {
                Outcome::Failed(Fault::Crash, format!("the process ended: {status}")).line()
            }
        };
        let failed = line.starts_with("failed ");
        if failed {
            failures += 1;
            let extension = match args.kind {
                Kind::Ir | Kind::Nests | Kind::Orders => "mlir",
                Kind::Hostile => "sh",
                Kind::Sl => "sl",
                _ => "stencil",
            };
            let path =
                args.out.join(format!("{extension}-seed{}-case{number}.{extension}", args.seed));
            let mut text = damage.text(args.seed, number)?;
            if args.kind == Kind::Orders {
                text = format!("// {line}\n{text}");
            }
            let written =
                std::fs::create_dir_all(&args.out).and_then(|()| std::fs::write(&path, text));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
            eprintln!("case {number}: {line}, see {}", path.display());
        }
        let words = if failed { 2 } else { usize::MAX };
        *counts.entry(line.split(' ').take(words).collect::<Vec<_>>().join(" ")).or_default() += 1;
        Ok(failed)
    })?;
    say(format!("{} cases", counts.values().sum::<u64>()))?;
    for (what, count) in counts {
        say(format!("{count:>9}  {what}"))?;
    }
    Ok(ExitCode::from(u8::from(failures > 0)))
}

/// The verdict in a worker's line.
fn verdict(line: &str) -> Option<Verdict> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "agreed" => {
            let (telling, fate) = rest.split_once(' ').unwrap_or((rest, ""));
            Some(Verdict::Agreed { telling: telling == "true", windows: Fate::of_line(fate) })
        }
        "refused" => Some(Verdict::Refused(rest.to_owned())),
        "declined" => Some(Verdict::Declined(rest.to_owned())),
        "failed" => {
            let fault = Fault::ALL
                .iter()
                .copied()
                .find(|fault| rest.starts_with(&format!("{fault:?} ")))?;
            Some(Verdict::Failed(fault, rest.to_owned()))
        }
        _ => None,
    }
}
