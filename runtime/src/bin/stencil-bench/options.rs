//! The command line of `stencil-bench`.

use clap::{CommandFactory, Parser};
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use stencil_runtime::cuda::GraphSettings;
use stencil_runtime::input::{Source, assignment};
use stencil_runtime::number::Numeral;
use stencil_runtime::ranks::LinkRate;

/// Runs compiled stencil programs on a CUDA device, checks their results and measures them.
///
/// Prints one row a plan: grid points times steps over kernel time (transfers excluded), and how
/// that compares with what copying the fields once a step would allow.
#[derive(Clone, Debug, Parser)]
#[command(name = "stencil-bench", version)]
pub struct Options {
    /// Launch plans; the PTX of x.plan.json is x.ptx beside it.
    #[arg(
        value_name = "PLAN",
        required_unless_present_any = ["completions", "man", "probe_link"]
    )]
    pub plans: Vec<PathBuf>,

    /// The PTX (or cubin) of the only plan.
    #[arg(long, value_name = "FILE")]
    pub ptx: Option<PathBuf>,

    /// A run-time size; sizes not given come from the shapes of the .npy files.
    #[arg(short = 'D', long = "size", value_name = "NAME=SIZE", value_parser = assignment::<i64>)]
    pub define: Vec<(String, i64)>,

    /// Steps of a run; the plan's own unless given.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub steps: Option<i64>,

    /// A run-time scalar.
    #[arg(long, value_name = "NAME=NUMBER", value_parser = assignment::<Numeral>)]
    pub set: Vec<(String, Numeral)>,

    /// The list that a `choose` node of the plan takes; the plan's conditions choose unless given.
    /// A reference chooses by its own conditions.
    #[arg(long, value_name = "NAME=BODY", value_parser = assignment::<String>)]
    pub choose: Vec<(String, String)>,

    /// Also time each pyramid height of a plan that leaves it to the run.
    #[arg(long)]
    pub every_height: bool,

    /// Data of a field: FILE.npy, random:SEED or zeros; random:1, random:2, ... in the order of
    /// the fields unless given.
    #[arg(long = "in", value_name = "FIELD=SOURCE", value_parser = assignment::<Source>)]
    pub inputs: Vec<(String, Source)>,

    /// Measured runs.
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub repeat: u32,

    /// Runs before them.
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub warmup: u32,

    /// Milliseconds before each run. A device at its power limit lowers its clock: runs without a
    /// pause say what it can keep up, those with one what a single run takes.
    #[arg(long, value_name = "MS", default_value_t = 100)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=60_000))]
    pub pause: u64,

    /// Plan of the same program to compare the results with, run on the same device and data.
    #[arg(long, value_name = "PLAN", conflicts_with = "expect")]
    pub reference: Option<PathBuf>,

    /// Wanted result of a field.
    #[arg(long, value_name = "FIELD=FILE.npy", value_parser = assignment::<PathBuf>)]
    pub expect: Vec<(String, PathBuf)>,

    /// Steps of the run whose result is checked; those of a measured run unless given.
    #[arg(long, value_name = "T", allow_negative_numbers = true)]
    pub check_steps: Option<i64>,

    /// Largest error of a cell, relative to the field's largest value; 0 wants the same bits.
    #[arg(long, value_name = "REL", default_value_t = 0.0, value_parser = tolerance)]
    pub tolerance: f64,

    /// Send the launches of a run together, as CUDA graphs of many.
    #[arg(long)]
    pub graph: bool,

    /// Cut launches into bands that overlap even where they do not fill the device: for tests.
    #[arg(long, requires = "graph")]
    pub cut_all: bool,

    /// Launches of a graph.
    #[arg(long, value_name = "N", requires = "graph", value_parser = chunk)]
    #[arg(default_value_t = GraphSettings::default().chunk)]
    pub chunk: usize,

    /// Fused multiply-adds of a point and step: also print the ratio to the FMA limit.
    #[arg(long, value_name = "K")]
    pub fma_per_point: Option<f64>,

    /// Remember the fastest of the plans, which stencilc --candidates made, in a file that
    /// stencilc --schedules reads. A plan whose result is wrong, or unchecked, never wins.
    #[arg(long, value_name = "FILE")]
    pub tune: Option<PathBuf>,

    /// Number of the CUDA device.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub device: i32,

    /// Write the results as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Measure how fast threads of this machine send cells to each other, print it as STENCILC_LINK
    /// has it, and end.
    #[arg(long)]
    pub probe_link: bool,

    /// Print completions for a shell and end.
    #[arg(long, value_name = "SHELL", hide = true, exclusive = true)]
    pub completions: Option<clap_complete::Shell>,

    /// Print the manual page and end.
    #[arg(long, hide = true, exclusive = true)]
    pub man: bool,
}

impl Options {
    /// Refuses a name that an option gives two values.
    pub fn check(&self) -> Result<(), String> {
        once("-D", &self.define)?;
        once("--set", &self.set)?;
        once("--choose", &self.choose)?;
        once("--in", &self.inputs)?;
        once("--expect", &self.expect)
    }

    /// The text that was asked for instead of a run.
    pub fn page(&self) -> io::Result<Option<String>> {
        let mut command = Options::command();
        let mut page = Vec::new();
        if let Some(shell) = self.completions {
            clap_complete::generate(shell, &mut command, "stencil-bench", &mut page);
        } else if self.man {
            clap_mangen::Man::new(command).render(&mut page)?;
        } else if self.probe_link {
            let rate = LinkRate::measure_threads().map_err(io::Error::other)?;
            page.extend(format!("{rate}\n").bytes());
        } else {
            return Ok(None);
        }
        Ok(Some(String::from_utf8_lossy(&page).into_owned()))
    }
}

fn once<T>(option: &str, given: &[(String, T)]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    match given.iter().find(|(name, _)| !names.insert(name)) {
        Some((name, _)) => Err(format!("{option} {name}=... is given twice")),
        None => Ok(()),
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => Err("a finite number from 0 is wanted".to_string()),
    }
}

fn chunk(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|launches| *launches > 0)
        .ok_or_else(|| "a number from 1 is wanted".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }
}
