//! `stencil-bench`: runs launch plans on a CUDA device, checks and measures them.

#![forbid(unsafe_code)]

mod check;
mod heights;
mod measure;
mod options;
mod report;

use clap::Parser;
use measure::{Job, Loaded, Measurement, Shared, measure};
use options::Options;
use report::{Measurements, State};
use std::error::Error;
use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write, stderr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stencil_runtime::cuda::{Cuda, DeviceFacts};
use stencil_runtime::input::Source;
use stencil_runtime::message::shortened;
use stencil_runtime::standard_output::{self, print};
use stencil_runtime::tune::{Entry, Schedules};
use stencil_runtime::whole_file::{check_distinct, check_place};

fn main() -> ExitCode {
    // A tool that can't be told of signals still works.
    #[cfg(unix)]
    let _ = stencil_runtime::signals::end_in_order(|| false);
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) if error.use_stderr() => {
            say(format_args!("{}", error.render().to_string().trim_end()));
            return ExitCode::FAILURE;
        }
        Err(help) => {
            let printed = standard_output::write(|_| help.print());
            return printed.map_or_else(|error| failed(&error), |()| ExitCode::SUCCESS);
        }
    };
    match bench(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => failed(error.as_ref()),
    }
}

/// Says what went wrong. A reader of standard output that has gone needs no word.
fn failed(error: &(dyn Error + 'static)) -> ExitCode {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    if kind != Some(ErrorKind::BrokenPipe) {
        say(format_args!("error: {error}"));
    }
    ExitCode::FAILURE
}

/// Writes a message to standard error, as far as that is possible.
fn say(message: Arguments<'_>) {
    let _ = writeln!(stderr(), "{}", shortened(&message.to_string()));
}

/// Does what was asked; false when a plan failed or gave a wrong result.
fn bench(options: &Options) -> Result<bool, Box<dyn Error>> {
    if let Some(page) = options.page()? {
        print(page.as_bytes())?;
        return Ok(true);
    }
    options.check()?;
    if options.ptx.is_some() && options.plans.len() > 1 {
        return Err("--ptx names the code of one plan, but several plans are given".into());
    }
    // The user's errors are reported before a device is asked for.
    let mut plans = Vec::new();
    for plan in &options.plans {
        plans.push(Loaded::read(plan, options.ptx.as_deref())?);
    }
    let reference =
        options.reference.as_deref().map(|plan| Loaded::read(plan, None)).transpose()?;
    check_places(options, plans.iter().chain(&reference))?;
    if options.tune.is_some() && (options.reference.is_none() || options.check_steps == Some(0)) {
        return Err(
            "--tune remembers checked schedules alone; give it a plan to check against with \
            --reference"
                .into(),
        );
    }
    let mut schedules =
        options.tune.as_deref().map(Schedules::load).transpose()?.unwrap_or_default();
    let mut shared = Shared::default();
    let mut first =
        plans.first().map(|plan| Job::prepare(plan, options, &mut shared)).transpose()?;

    let cuda = Cuda::open(options.device)?;
    let copy_bandwidth = cuda.copy_bandwidth()?;
    let device = cuda.facts();
    print(headline(device, copy_bandwidth).as_bytes())?;

    let mut results = Vec::new();
    let mut failures = Vec::new();
    let mut state = None;
    for (loaded, plan) in plans.iter().zip(&options.plans) {
        let job = first.take().map_or_else(|| Job::prepare(loaded, options, &mut shared), Ok);
        match job.and_then(|job| {
            measure(&cuda, copy_bandwidth, job, &mut shared, reference.as_ref(), options)
        }) {
            Ok(result) => results.push(result),
            Err(error) => {
                say(format_args!("error: {}: {error}", plan.display()));
                failures.push((plan.display().to_string(), error.to_string()));
            }
        }
        state = State::ask(&device.uuid).or(state);
    }
    let mut words = shown(&results, state.as_ref());
    // A failure of one output loses none of the others.
    let tuned = options.tune.as_deref().map(|path| {
        let best = tune(&results, &device.name)?;
        remember(&mut schedules, best, path)
    });
    if let Some(Ok(sentence)) = &tuned {
        words += sentence;
    }
    let written = options.json.as_deref().map(|path| {
        let record = Measurements {
            date: report::now(),
            version: env!("CARGO_PKG_VERSION"),
            device,
            state,
            copy_bandwidth,
            results: &results,
            failures: &failures,
        };
        record.write(path).map_err(|e| format!("can't write {}: {e}", path.display()))
    });
    print(words.as_bytes())?;
    written.transpose()?;
    tuned.transpose()?;
    let passed = |result: &Measurement| result.check.as_ref().is_none_or(|check| check.passed);
    Ok(failures.is_empty() && results.iter().all(passed))
}

/// The device of the measurements.
fn headline(device: &DeviceFacts, copy_bandwidth: f64) -> String {
    format!(
        "{} ({}, {} multiprocessors, up to {:.0} MHz), CUDA {}; copy {:.2} TB/s\n",
        device.name,
        device.architecture,
        device.multiprocessors,
        device.max_clock_mhz,
        device.cuda,
        copy_bandwidth * 1e-12
    )
}

/// Refuses outputs that are inputs or one file, and places that can't be written, before a run.
fn check_places<'l>(
    options: &'l Options,
    plans: impl Iterator<Item = &'l Loaded>,
) -> Result<(), Box<dyn Error>> {
    let outputs: Vec<&Path> =
        [&options.json, &options.tune].into_iter().flatten().map(PathBuf::as_path).collect();
    let data = options.inputs.iter().filter_map(|(_, source)| match source {
        Source::File(path) => Some(path.as_path()),
        Source::Random(_) | Source::Zeros => None,
    });
    let wanted = options.expect.iter().map(|(_, path)| path.as_path());
    let inputs: Vec<&Path> = plans.flat_map(Loaded::files).chain(data).chain(wanted).collect();
    check_distinct(&outputs, &inputs)?;
    for output in outputs {
        if output == Path::new("-") {
            return Err("--json and --tune can't write to standard output; name a file".into());
        }
        check_place(output)
            .map_err(|error| format!("can't write {}: {error}", output.display()))?;
    }
    Ok(())
}

/// The results, and how the device was after the last run.
fn shown(results: &[Measurement], state: Option<&State>) -> String {
    let mut text = String::new();
    if !results.is_empty() {
        text += &format!("\n{}\n", report::table(results).trim_end());
    }
    if let Some(state) = state {
        text += &format!(
            "\nafter the last run: driver {}, {} MHz, memory {} MHz, {} degrees C, {} W\n",
            state.driver, state.clock_mhz, state.memory_clock_mhz, state.temperature, state.power
        );
    }
    text
}

/// Adds a schedule to those in a file; a sentence about it.
fn remember(schedules: &mut Schedules, best: Entry, path: &Path) -> Result<String, Box<dyn Error>> {
    let sentence = format!(
        "\nfastest: {}, {:.1} GCells/s; remembered in {}\n",
        best.program,
        best.gcells,
        path.display()
    );
    schedules.remember(best);
    schedules.save(path)?;
    Ok(sentence)
}

/// The fastest of the plans whose results were right.
fn tune(results: &[Measurement], device: &str) -> Result<Entry, Box<dyn Error>> {
    let right =
        results.iter().filter(|result| result.check.as_ref().is_some_and(|check| check.passed));
    let best = right
        .max_by(|a, b| a.gcells.median.total_cmp(&b.gcells.median))
        .ok_or("no plan gave a right result")?;
    if best.settings.fingerprint.is_empty()
        || results.iter().any(|other| other.settings.fingerprint != best.settings.fingerprint)
    {
        return Err(
            "--tune compares the plans of one program that stencilc --candidates made".into()
        );
    }
    let points = best.shape.iter().map(|cells| *cells as u64).fold(1, u64::saturating_mul);
    Ok(Entry {
        fingerprint: best.settings.fingerprint.clone(),
        device: device.to_owned(),
        size_class: points.max(1).ilog2(),
        program: best.program.clone(),
        settings: best.settings.clone(),
        gcells: best.gcells.median,
    })
}
