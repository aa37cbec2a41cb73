//! The command line of `stencilc`.

use crate::compile::{self, Level, Options, Timing};
use crate::files;
use crate::message::Failure;
use crate::run::{self, Job, Target};
use crate::toolchain;
use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use std::collections::BTreeMap;
use std::num::{IntErrorKind, ParseIntError};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use stencil_dialects::tiled::Choice;
use stencil_frontend::source::Source;
use stencil_passes::llvm::emit_ptx::ARCHITECTURES;
use stencil_passes::pipeline::Config;
use stencil_passes::schedule::lowering;
use stencil_passes::schedule::predict::Candidate;
use stencil_passes::target::Arithmetic;
use stencil_runtime::input::{Source as Input, assignment};
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::Plan;
use stencil_runtime::tune::Schedules;

/// Compile stencil programs to PTX, and run them.
#[derive(Debug, Parser)]
#[command(
    name = "stencilc",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    compile: CompileArgs,
    #[command(flatten)]
    common: Option<CommonArgs>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Compile a program, run it on data, and write its result
    Run(RunArgs),
}

#[derive(Debug, Args)]
struct CompileArgs {
    /// What to print; several are written to files named after -o
    #[arg(long, value_enum, value_delimiter = ',', default_value = "ptx")]
    emit: Vec<Level>,
    /// The file to write; with several --emit, the name that gets an extension each
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Print each kernel's schedule, registers, spills and shared memory (needs ptxas)
    #[arg(long)]
    report: bool,
    /// Compile the N schedules that are predicted to be fastest, for stencil-bench --tune; the
    /// files are named after -o with a number each
    #[arg(long, value_name = "N", requires = "output", conflicts_with_all = ["report", "passes"], value_parser = from_one)]
    candidates: Option<usize>,
}

#[derive(Debug, Args)]
#[command(mut_arg("file", |file| file.help("The program: .stencil")))]
struct RunArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// What to run on
    #[arg(long, value_enum, default_value = "auto")]
    target: Target,
    /// Steps to take; the program's own number if left out
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<i64>)]
    steps: Option<i64>,
    /// A run-time size that no input file tells: N=344 (-D fixes it at compile time)
    #[arg(long = "size", value_name = "PARAM=SIZE", value_parser = size)]
    sizes: Vec<(String, i64)>,
    /// A run-time scalar: alpha=0.2
    #[arg(long = "set", value_name = "NAME=NUMBER", value_parser = assignment::<Numeral>)]
    scalars: Vec<(String, Numeral)>,
    /// An input: A=a.npy, A=random:7 (seeded noise from 0 to 1) or A=zeros
    #[arg(long = "in", value_name = "FIELD=DATA", value_parser = assignment::<Input>)]
    inputs: Vec<(String, Input)>,
    /// Print the simulator's counters by kernel and function (--target sim)
    #[arg(long)]
    report: bool,
    /// Write the simulator's counters as JSON (--target sim)
    #[arg(long, value_name = "FILE")]
    report_json: Option<PathBuf>,
    /// Permute the order in which the simulator runs blocks
    #[arg(long, value_parser = whole::<u64>)]
    seed: Option<u64>,
    /// Where an output goes: A=b.npy
    #[arg(long = "out", value_name = "FIELD=FILE", value_parser = assignment::<PathBuf>)]
    outputs: Vec<(String, PathBuf)>,
    /// Compare the result with the reference (--target sim or cuda); a difference is an error
    #[arg(long)]
    check: bool,
    /// The largest error that passes --check, relative to the field's largest value
    #[arg(long, requires = "check", allow_negative_numbers = true, value_parser = tolerance)]
    tolerance: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Contraction {
    /// `a * b + c` may be rounded once
    On,
    /// Every operation is rounded by itself
    Off,
}

#[derive(Debug, Args)]
struct CommonArgs {
    /// The program: .stencil, or stencil IR as .mlir
    file: PathBuf,
    /// A value for a param: N=4096
    #[arg(short = 'D', value_name = "PARAM=SIZE", value_parser = size)]
    defines: Vec<(String, i64)>,
    /// The GPU architecture
    #[arg(long, default_value = "sm_90", value_parser = PossibleValuesParser::new(ARCHITECTURES))]
    arch: String,
    /// How tiles are run: naive, block, stream or warp
    #[arg(long, value_parser = word)]
    strategy: Option<String>,
    /// Cells of a tile per dimension, slowest first: 32,64
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true, value_parser = one_of_several)]
    tile: Option<Vec<i64>>,
    /// Steps a launch
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<i64>)]
    pyramid_height: Option<i64>,
    /// Cells a thread: one number a dimension, or one for the slowest, in streams for the fastest
    #[arg(long, value_delimiter = ',', allow_negative_numbers = true, value_parser = one_of_several)]
    per_thread: Option<Vec<i64>>,
    /// What each function of a launch computes: shrinking, what is needed at its step; fixed, the
    /// same cells in each step (strategies block and naive)
    #[arg(long, value_parser = word)]
    region: Option<String>,
    /// Keep all temp fields, those too that are cheaper to compute again where they are read
    #[arg(long)]
    no_fuse: bool,
    /// Run all tiles with checks, those too that lie away from every rim
    #[arg(long)]
    no_split_interior: bool,
    /// Whether `a * b + c` may be rounded once
    #[arg(long, value_enum, default_value = "on")]
    fp_contract: Contraction,
    /// Allow re-association, reciprocals and approximate functions
    #[arg(long)]
    fast_math: bool,
    /// Measured schedules to take where none is asked for (stencil-bench --tune writes them); else
    /// those in the file that STENCILC_SCHEDULES names, if it is there
    #[arg(long, value_name = "FILE")]
    schedules: Option<PathBuf>,
    /// Passes from the stencil level to the gpu level, in place of the compiler's own
    #[arg(long, value_name = "PIPELINE", conflicts_with_all = ["strategy", "tile", "pyramid_height", "per_thread", "region", "no_split_interior"])]
    passes: Option<String>,
    /// NVIDIA's libdevice.10.bc, for exp, log, sin, cos, tan, tanh and pow
    #[arg(long, value_name = "FILE")]
    libdevice: Option<PathBuf>,
    /// Print the IR to standard error after each pass
    #[arg(long)]
    print_ir_after_all: bool,
    /// Print to standard error how long each pass took
    #[arg(long)]
    timing: bool,
}

impl CommonArgs {
    fn options(&self, source: &Source) -> Result<Options, Failure> {
        unique("-D", &self.defines)?;
        let options = Options {
            defines: self.defines.clone(),
            config: Config {
                choice: Choice {
                    strategy: self.strategy.clone(),
                    tile: self.tile.clone(),
                    pyramid_height: self.pyramid_height,
                    per_thread: self.per_thread.clone(),
                    region: self.region.clone(),
                },
                no_fuse: self.no_fuse,
                lowering: lowering::Settings { no_split_interior: self.no_split_interior },
            },
            arithmetic: Arithmetic {
                contract: self.fp_contract == Contraction::On,
                fast_math: self.fast_math,
            },
            arch: self.arch.clone(),
            libdevice: self.libdevice.clone(),
            passes: self.passes.clone(),
            print_ir_after_all: self.print_ir_after_all,
        };
        let schedules = match (&self.schedules, std::env::var_os("STENCILC_SCHEDULES")) {
            (Some(file), _) => Schedules::read(file),
            // What the environment names need not be there yet.
            (None, Some(file)) if options.leaves_schedule_open() => {
                Schedules::load(Path::new(&file))
            }
            _ => return Ok(options),
        };
        compile::with_schedules(source, options, &schedules.map_err(Failure::user)?)
    }
}

impl Cli {
    /// Reads the command line. For an option of `run` without `run`, clap would propose to take it
    /// as a file's name.
    ///
    /// # Errors
    /// What is wrong with it, or the help that was asked for.
    pub fn read() -> Result<Self, clap::Error> {
        Self::try_parse().map_err(|mut error| {
            let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
                return error;
            };
            let command = Self::command();
            let mut of_run =
                command.find_subcommand("run").into_iter().flat_map(clap::Command::get_arguments);
            let is = |arg: &clap::Arg| {
                arg.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long))
            };
            if error.kind() == ErrorKind::UnknownArgument && of_run.any(is) {
                let instead =
                    if option == "--size" { "; -D fixes a size at compile time" } else { "" };
                let tip = format!("'{option}' is an option of 'stencilc run'{instead}");
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            error
        })
    }

    /// Does what the command line asks for.
    pub fn execute(self) -> Result<(), Failure> {
        match (self.command, self.common) {
            (Some(Command::Run(args)), _) => execute_run(&args),
            (None, Some(common)) => execute_compile(&common, &self.compile),
            (None, None) => Err(Failure::user("a program is missing; see stencilc --help")),
        }
    }
}

fn execute_compile(common: &CommonArgs, args: &CompileArgs) -> Result<(), Failure> {
    let source = files::read(&common.file)?;
    let options = common.options(&source)?;
    if let (Some(count), Some(stem)) = (args.candidates, &args.output) {
        return write_candidates(&source, &options, &args.emit, count, stem);
    }
    let mut wanted = args.emit.clone();
    if args.report {
        wanted.extend([Level::Plan, Level::Ptx]);
    }
    let (texts, timing) = compile::emit(&source, &options, &wanted)?;
    if common.timing {
        print_timing(&timing);
    }
    if args.report {
        eprint!("{}", report(&source, &options, &texts)?);
    }
    let asked: Vec<_> = texts.iter().filter(|(level, _)| args.emit.contains(level)).collect();
    match (asked.as_slice(), &args.output) {
        ([(_, text)], output) => files::write(output.as_deref(), text),
        (_, None) => Err(Failure::user(
            "several levels need -o NAME; each is written to a file of that name with its \
             extension",
        )),
        (several, Some(stem)) => several.iter().try_for_each(|(level, text)| {
            files::write(Some(&files::with_extension(stem, level.extension())), text)
        }),
    }
}

/// Compiles the schedules that are predicted to be fastest, each to files with its number.
fn write_candidates(
    source: &Source,
    options: &Options,
    wanted: &[Level],
    count: usize,
    stem: &Path,
) -> Result<(), Failure> {
    let fingerprint = compile::fingerprint(source, options)?;
    for (number, candidate) in
        compile::candidates(source, options)?.into_iter().take(count).enumerate()
    {
        let mut options = options.clone();
        options.config.choice = candidate.choice;
        for (level, text) in compile::emit(source, &options, wanted)?.0 {
            let text = if level == Level::Plan {
                let mut plan = Plan::from_json(&text, &source.name).map_err(Failure::user)?;
                plan.settings.fingerprint.clone_from(&fingerprint);
                plan.to_json().map_err(Failure::user)? + "\n"
            } else {
                text
            };
            let place = files::with_extension(stem, &format!("{number}.{}", level.extension()));
            files::write(Some(&place), &text)?;
        }
    }
    Ok(())
}

fn execute_run(args: &RunArgs) -> Result<(), Failure> {
    if args.target != Target::Sim
        && (args.report || args.report_json.is_some() || args.seed.is_some())
    {
        return Err(Failure::user(
            "--report, --report-json and --seed speak of the simulator; add --target sim or leave \
             them out",
        ));
    }
    let source = files::read(&args.common.file)?;
    let job = Job {
        target: args.target,
        steps: args.steps,
        sizes: unique("--size", &args.sizes)?,
        scalars: unique("--set", &args.scalars)?,
        inputs: unique("--in", &args.inputs)?,
        outputs: unique("--out", &args.outputs)?,
        check: args.check,
        report: args.report,
        report_json: args.report_json.clone(),
        seed: args.seed,
        tolerance: args.tolerance,
    };
    let report = run::run(&source, &args.common.options(&source)?, &job)?;
    eprint!("{report}");
    Ok(())
}

/// A strategy's name stands in a pipeline, where other letters have a meaning.
fn word(text: &str) -> Result<String, String> {
    let is_word = !text.is_empty()
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    if is_word {
        Ok(text.to_owned())
    } else {
        Err("a name of letters, digits and - is wanted".to_owned())
    }
}

fn from_one(text: &str) -> Result<usize, String> {
    whole(text).and_then(|number: usize| {
        if number > 0 { Ok(number) } else { Err("one at least is wanted".to_owned()) }
    })
}

fn whole<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
            "the number is too large".to_owned()
        }
        // One below zero fails where none may be.
        _ if text
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit())) =>
        {
            "no number below 0 is taken".to_owned()
        }
        _ => "a whole number is wanted".to_owned(),
    })
}

/// A number of a list.
fn one_of_several(text: &str) -> Result<i64, String> {
    whole(text).map_err(|said| format!("{said}; several have commas between them: 32,64"))
}

/// Splits `PARAM=SIZE`. A fraction stands where a scalar was meant.
fn size(text: &str) -> Result<(String, i64), String> {
    let (name, value) = assignment::<String>(text)?;
    match whole(&value) {
        Ok(size) => Ok((name, size)),
        Err(wanted) if value.contains('.') && value.parse::<Numeral>().is_ok() => Err(format!(
            "`{value}`: {wanted} (a scalar is set by stencilc run --set {name}={value})"
        )),
        Err(wanted) => Err(format!("`{value}`: {wanted}")),
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 => Ok(value),
        _ => Err("a number from 0 is wanted".to_owned()),
    }
}

fn unique<T: Clone>(option: &str, given: &[(String, T)]) -> Result<BTreeMap<String, T>, Failure> {
    let mut map = BTreeMap::new();
    for (name, value) in given {
        if map.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::user(format!("{option} {name}=... is given twice")));
        }
    }
    Ok(map)
}

fn print_timing(timing: &Timing) {
    for (pass, time) in timing {
        eprintln!("{:>10.3} ms  {pass}", time.as_secs_f64() * 1e3);
    }
    let total: f64 = timing.iter().map(|(_, time)| time.as_secs_f64()).sum();
    eprintln!("{:>10.3} ms  in all", total * 1e3);
}

/// The schedule that was taken, and what ptxas says of each kernel.
fn report(
    source: &Source,
    options: &Options,
    texts: &[(Level, String)],
) -> Result<String, Failure> {
    let find = |wanted| {
        texts
            .iter()
            .find(|(level, _)| *level == wanted)
            .map(|(_, text)| text.as_str())
            .unwrap_or_default()
    };
    let plan = Plan::from_json(find(Level::Plan), &source.name).map_err(Failure::user)?;
    let settings = &plan.settings;
    let list = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ");
    let mut text = format!(
        "{}: strategy {}, tile {} cells, {} cells a thread, pyramid height {}, {}-bit indices\n",
        plan.program,
        settings.strategy,
        list(&settings.tile),
        list(&settings.per_thread),
        settings.pyramid_height,
        plan.index_width
    );
    let resources = match toolchain::ptxas() {
        Some(ptxas) => Some(toolchain::assemble(&ptxas, find(Level::Ptx), &options.arch)?),
        None => None,
    };
    text += &format!(
        "{:<24} {:>8} {:>14} {:>10} {:>14}\n",
        "kernel", "threads", "shared bytes", "registers", "spilled bytes"
    );
    for kernel in &plan.kernels {
        let found = resources.iter().flatten().find(|resources| resources.name == kernel.name);
        let number =
            |value: Option<u32>| value.map_or_else(|| "?".to_owned(), |value| value.to_string());
        text += &format!(
            "{:<24} {:>8} {:>14} {:>10} {:>14}\n",
            kernel.name,
            kernel.block.iter().copied().fold(1, u32::saturating_mul),
            kernel.static_shared.saturating_add(kernel.dynamic_shared),
            number(found.map(|resources| resources.registers)),
            number(found.map(|resources| resources.spills))
        );
    }
    if options.passes.is_none() {
        text += &predictions(&compile::candidates(source, options)?);
    }
    if resources.is_none() {
        text += "registers and spills are unknown: ptxas was not found (set STENCILC_PTXAS, or run \
            cargo xtask setup)\n";
    }
    Ok(text)
}

/// Schedules that a report shows beside the chosen one.
const SHOWN: usize = 5;

/// The chosen schedule's predicted time by term, and the runners-up.
fn predictions(candidates: &[Candidate]) -> String {
    let list = |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
    let mut text =
        format!("predicted, of {} schedules, terms in ps a point and step:\n", candidates.len());
    text += &format!(
        "{:<8} {:>14} {:>10} {:>3} {:>10} {:>6}",
        "strategy", "tile", "per thread", "T", "GCells/s", "halo"
    );
    for (name, _) in
        candidates.first().map(|candidate| candidate.prediction.terms()).unwrap_or_default()
    {
        text += &format!(" {name:>10}");
    }
    for candidate in candidates.iter().take(SHOWN) {
        let work: f64 = candidate.kernels.iter().map(|work| work.redundancy).sum();
        text += &format!(
            "\n{:<8} {:>14} {:>10} {:>3} {:>10.1} {:>5.2}x",
            candidate.choice.strategy.as_deref().unwrap_or_default(),
            list(&candidate.tile),
            list(&candidate.per_thread),
            candidate.choice.pyramid_height.unwrap_or_default(),
            candidate.gcells(),
            work / candidate.kernels.len().max(1) as f64
        );
        for (_, seconds) in candidate.prediction.terms() {
            text += &format!(" {:>10.3}", seconds / candidate.points * 1e12);
        }
    }
    text + "\n"
}
