//! The command line of `stencilc`.

mod embedded;
mod help;
mod session;
mod values;

use crate::emit::{Emit, emitted};
use crate::opt::tell_crashes;
use crate::picture::Colors;
use crate::target::TargetName;
use crate::{compile, run};
use clap::builder::PossibleValuesParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
pub use embedded::{Described, embedded};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use stencil_compiler::{DeviceList, Devices, Failure, Link, LinkRate};
use stencil_runtime::input::{Source as Input, assignment};
use stencil_runtime::number::Numeral;
use stencil_runtime::windows::DeviceMemory;
pub use values::unique;
use values::{
    all_architectures, layouts, one_of_several, positive, range, several, size, strategy, threads,
    tolerance, whole, word,
};

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
pub(crate) struct CompileArgs {
    /// What to print, by default ptx, for a processor asm; several are written to files named after
    /// -o
    #[arg(long, value_delimiter = ',', value_parser = emitted())]
    pub(crate) emit: Vec<Emit>,
    /// The file to write; with several --emit, the name that gets an extension each
    #[arg(short, long)]
    pub(crate) output: Option<PathBuf>,
    /// Print each kernel's schedule, registers, spills and shared memory (needs ptxas)
    #[arg(long)]
    pub(crate) report: bool,
    /// Write the report as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "candidates")]
    pub(crate) report_json: Option<PathBuf>,
    /// Draw the predicted schedule under the roofline of the device, as SVG
    #[arg(long, value_name = "FILE", conflicts_with_all = ["candidates", "passes"])]
    pub(crate) roofline: Option<PathBuf>,
    /// Draw when each block of a wavefront computes which tile row, by the model, as SVG
    #[arg(long, value_name = "FILE", conflicts_with_all = ["candidates", "passes"])]
    pub(crate) wave: Option<PathBuf>,
    /// Compile the N schedules that are predicted to be fastest, or N tiles of affine loops that
    /// are worth measuring, for stencil-bench --tune; the files are named after -o with a number
    /// each
    #[arg(
        long,
        value_name = "N",
        requires = "output",
        conflicts_with_all = ["report", "passes"],
        value_parser = positive
    )]
    pub(crate) candidates: Option<usize>,
}

#[derive(Debug, Args)]
#[command(mut_arg("file", |file| {
    file.help("The program: .stencil, .sl, or .mlir with affine loops or the dialect stencil")
}))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) common: CommonArgs,
    /// What to run on
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) target: TargetName,
    /// Steps to take; the program's own number if left out
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<i64>)]
    pub(crate) steps: Option<i64>,
    /// Steps that were taken before; the first step then has this number, which `t` gives
    #[arg(long, value_name = "STEP", allow_negative_numbers = true, value_parser = whole::<i64>)]
    pub(crate) first_step: Option<i64>,
    /// A file for the state of the run, from which --resume goes on; an older one is replaced
    #[arg(long, value_name = "FILE", requires = "checkpoint_every")]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Write the checkpoint after every K steps
    #[arg(long, value_name = "K", requires = "checkpoint", value_parser = several)]
    pub(crate) checkpoint_every: Option<NonZeroU64>,
    /// Go on from a checkpoint of the same program; state fields need no --in then
    #[arg(long, value_name = "FILE")]
    pub(crate) resume: Option<PathBuf>,
    /// A run-time size that no input file determines: N=344 (-D fixes it at compile time)
    #[arg(long = "size", value_name = "PARAM=SIZE", value_parser = size)]
    pub(crate) sizes: Vec<(String, i64)>,
    /// A run-time scalar: alpha=0.2
    #[arg(long = "set", value_name = "NAME=NUMBER", value_parser = assignment::<Numeral>)]
    pub(crate) scalars: Vec<(String, Numeral)>,
    /// The list that a `choose` node of the plan takes; the plan's conditions choose if left out
    #[arg(long, value_name = "NAME=BODY", value_parser = assignment::<String>)]
    pub(crate) choose: Vec<(String, String)>,
    /// An input: A=a.npy, A=random:7 (seeded noise from 0 to 1) or A=zeros
    #[arg(long = "in", value_name = "FIELD=DATA", value_parser = assignment::<Input>)]
    pub(crate) inputs: Vec<(String, Input)>,
    /// Print the simulator's counters by kernel and function (--target sim)
    #[arg(long)]
    pub(crate) report: bool,
    /// Write the simulator's counters as JSON (--target sim)
    #[arg(long, value_name = "FILE")]
    pub(crate) report_json: Option<PathBuf>,
    /// Permute the order in which the simulator runs blocks
    #[arg(long, value_parser = whole::<u64>)]
    pub(crate) seed: Option<u64>,
    /// Threads that compute tiles (--target cpu); by default as many as the machine runs at once
    #[arg(long, value_parser = threads)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Device memory for a run out of core: the grid lies in the host's memory, and streams through
    /// so much of the device's, such as 4GiB
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = str::parse::<DeviceMemory>,
        conflicts_with = "devices"
    )]
    pub(crate) device_memory: Option<DeviceMemory>,
    /// Memory of the host for the fields of a run out of core; by default all that is free. Larger
    /// ones lie in files beside the output
    #[arg(
        long,
        value_name = "SIZE",
        value_parser = str::parse::<DeviceMemory>,
        requires = "device_memory"
    )]
    pub(crate) host_memory: Option<DeviceMemory>,
    /// Draw when each device computes and when it waits, as SVG
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    /// Where an output goes: A=b.npy, or a picture A=b.png, or an animation A=b.gif; {step} stands
    /// for the number of steps taken
    #[arg(long = "out", value_name = "FIELD=FILE", value_parser = assignment::<PathBuf>)]
    pub(crate) outputs: Vec<(String, PathBuf)>,
    /// End at the first NaN or infinity, with its step, cell and expression
    #[arg(long)]
    pub(crate) check_finite: bool,
    /// Write the outputs with {step} in their names, and a frame of each .gif, after every K steps
    #[arg(long, value_name = "K", value_parser = several)]
    pub(crate) snapshot_every: Option<NonZeroU64>,
    /// The colours of pictures (.png, .gif); by default viridis
    #[arg(long, value_enum)]
    pub(crate) colors: Option<Colors>,
    /// The values of the first and the last colour; by default the least and the greatest
    #[arg(long, value_name = "LOW,HIGH", allow_hyphen_values = true, value_parser = range)]
    pub(crate) range: Option<(f64, f64)>,
    /// Compare the result with the reference (--target sim, cpu or cuda); a difference is an error
    #[arg(long)]
    pub(crate) check: bool,
    /// The largest error that passes --check, relative to the field's largest value
    #[arg(long, requires = "check", allow_negative_numbers = true, value_parser = tolerance)]
    pub(crate) tolerance: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contraction {
    /// `a * b + c` may be rounded once
    On,
    /// Every operation is rounded by itself
    Off,
}

#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// The program: .stencil, .sl, or .mlir with affine loops or the dialect stencil
    pub(crate) file: PathBuf,
    /// A value for a param: N=4096
    #[arg(short = 'D', value_name = "PARAM=SIZE", value_parser = size)]
    pub(crate) defines: Vec<(String, i64)>,
    /// The architecture
    #[arg(long, value_parser = PossibleValuesParser::new(all_architectures()), help = help::arch())]
    pub(crate) arch: Option<String>,
    /// The GPU
    #[arg(long, value_name = "NAME", help = help::device())]
    pub(crate) device: Option<String>,
    /// How tiles are run
    #[arg(long, value_parser = strategy, help = help::strategy())]
    pub(crate) strategy: Option<String>,
    /// Cells of a tile per dimension, slowest first: 32,64
    #[arg(
        long,
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = one_of_several
    )]
    pub(crate) tile: Option<Vec<i64>>,
    /// Threads of a block
    #[arg(
        long,
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = one_of_several,
        help = help::block(),
        conflicts_with_all = ["tile", "passes"]
    )]
    pub(crate) block: Option<Vec<i64>>,
    /// Steps per launch
    #[arg(long, allow_negative_numbers = true, value_parser = whole::<i64>)]
    pub(crate) pyramid_height: Option<i64>,
    /// Steps per launch that a run chooses from, by measuring: 1,2,3,4,6,8
    #[arg(
        long,
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = one_of_several,
        conflicts_with_all = ["pyramid_height", "passes"]
    )]
    pub(crate) heights: Option<Vec<i64>>,
    /// Cells per thread
    #[arg(
        long,
        value_delimiter = ',',
        allow_negative_numbers = true,
        value_parser = one_of_several,
        help = help::per_thread()
    )]
    pub(crate) per_thread: Option<Vec<i64>>,
    /// Cells that each function of a launch computes
    #[arg(long, value_parser = word, help = help::region())]
    pub(crate) region: Option<String>,
    /// How many devices share a run: 4, 2x2 along two dimensions, or the numbers of GPUs: 0,2
    #[arg(long, value_name = "COUNT", value_parser = str::parse::<DeviceList>)]
    pub(crate) devices: Option<DeviceList>,
    /// How fast devices send cells: nanoseconds of a message, and MB a second. The default is that
    /// of STENCILC_LINK, if it is set
    #[arg(long, value_name = "NS:MB", value_parser = str::parse::<LinkRate>)]
    pub(crate) link: Option<LinkRate>,
    /// Keep all temp fields; by default a cheap one is computed again where it is read
    #[arg(long)]
    pub(crate) no_fuse: bool,
    /// How a run is given fields of structs and vecs
    #[arg(long, value_parser = PossibleValuesParser::new(layouts()), help = help::layout())]
    pub(crate) layout: Option<String>,
    /// No tiles with copies in shared memory for a function of affine loops
    #[arg(long, conflicts_with = "passes")]
    pub(crate) no_nest_tiles: bool,
    /// Copies of single elements to shared memory for a function of affine loops
    #[arg(long, conflicts_with = "passes")]
    pub(crate) no_vector_copies: bool,
    /// Choose by registers how often LLVM unrolls loops of a function of affine loops
    #[arg(long, conflicts_with = "passes")]
    pub(crate) unroll_by_registers: bool,
    /// No arrays in constant memory, small ones that all lanes of a warp read alike too
    #[arg(long, conflicts_with = "passes")]
    pub(crate) no_place_constants: bool,
    /// Give arrays of a function of affine loops another order of dimensions, if that moves fewer
    /// bytes
    #[arg(long, conflicts_with = "passes")]
    pub(crate) transpose_arrays: bool,
    /// Check bounds in every tile, also in tiles away from every rim
    #[arg(long)]
    pub(crate) no_split_interior: bool,
    /// Whether `a * b + c` may be rounded once
    #[arg(long, value_enum, default_value = "on")]
    pub(crate) fp_contract: Contraction,
    /// Allow re-association, reciprocals and approximate functions
    #[arg(long)]
    pub(crate) fast_math: bool,
    /// Measured schedules, as stencil-bench --tune writes them; used if no option names a schedule.
    /// The default is the file that STENCILC_SCHEDULES names, if it exists
    #[arg(long, value_name = "FILE")]
    pub(crate) schedules: Option<PathBuf>,
    /// Passes from the stencil level to the gpu level, in place of the compiler's own
    #[arg(
        long,
        value_name = "PIPELINE",
        conflicts_with_all = [
            "strategy", "tile", "pyramid_height", "per_thread",
            "region", "no_split_interior",
        ]
    )]
    pub(crate) passes: Option<String>,
    /// Measure on the first CUDA device how long a diagonal and a handover of wavefronts take, on
    /// so large a part of the grid, as 0.006, and choose the width of tiles by it
    #[arg(long, value_name = "PART", conflicts_with = "passes")]
    pub(crate) train: Option<f64>,
    /// Functions in MLIR for the place of the program's point functions, by their names; one called
    /// compute_element is for the only one
    #[arg(long, value_name = "FILE")]
    pub(crate) element: Option<PathBuf>,
    /// NVIDIA's libdevice.10.bc, for exp, log, sin, cos, tan, tanh and pow
    #[arg(long, value_name = "FILE")]
    pub(crate) libdevice: Option<PathBuf>,
    /// Print the IR to standard error after each pass
    #[arg(long)]
    pub(crate) print_ir_after_all: bool,
    /// Print to standard error how long each pass took
    #[arg(long)]
    pub(crate) timing: bool,
}

impl Cli {
    /// Reads the command line. For an option of `run` without `run`, clap would propose to take it
    /// as a file's name.
    ///
    /// # Errors
    /// What is wrong with it, or the help that was asked for.
    pub fn read() -> Result<Self, clap::Error> {
        Self::try_parse().map_err(|mut error| {
            help::several_programs(&mut error);
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
    ///
    /// # Errors
    /// What went wrong; then no output is written. `cancel` ends the work early.
    pub fn execute(self, cancel: &Arc<AtomicBool>) -> Result<(), Failure> {
        self.execute_with(cancel, None)
    }

    /// The same in one of several processes, which share a run: the first one says and writes what
    /// one process would. All have the same arguments.
    ///
    /// # Errors
    /// As [`Cli::execute`].
    pub fn execute_with(
        self,
        cancel: &Arc<AtomicBool>,
        process: Option<(Devices, &mut dyn Link)>,
    ) -> Result<(), Failure> {
        tell_crashes();
        match (self.command, self.common) {
            (Some(Command::Run(args)), _) => run::execute(&args, cancel, process),
            _ if process.is_some() => {
                Err(Failure::user("several processes share a run; the command is run"))
            }
            (None, Some(common)) => compile::execute(&common, &self.compile, cancel),
            (None, None) => Err(Failure::user("a program is missing; see stencilc --help")),
        }
    }
}
