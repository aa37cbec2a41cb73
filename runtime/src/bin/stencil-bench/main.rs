//! `stencil-bench`: runs launch plans on a CUDA device, checks and measures them.

#![forbid(unsafe_code)]

mod measure;
mod options;
mod report;

use clap::Parser;
use measure::{Job, Loaded, Measurement, measure};
use options::Options;
use report::{Record, State};
use std::error::Error;
use std::process::ExitCode;
use stencil_runtime::cuda::Cuda;

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => {
            // If even the message can't be printed, the exit code still tells.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
    };
    match bench(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what was asked; false when a plan failed or gave a wrong result.
fn bench(options: &Options) -> Result<bool, Box<dyn Error>> {
    if options.print_page()? {
        return Ok(true);
    }
    if options.ptx.is_some() && options.plans.len() > 1 {
        return Err("--ptx names the code of one plan, but several plans are given".into());
    }
    // What the user got wrong should come out before a device is asked for.
    let mut plans = Vec::new();
    for plan in &options.plans {
        plans.push(Loaded::read(plan, options.ptx.as_deref())?);
    }
    let reference = options.reference.as_deref().map(|plan| Loaded::read(plan, None)).transpose()?;
    let first = plans.first().map(|plan| Job::prepare(plan, options)).transpose()?;

    let cuda = Cuda::open(options.device)?;
    let copy_bandwidth = cuda.copy_bandwidth()?;
    let device = cuda.facts();
    println!(
        "{} ({}, {} multiprocessors, up to {:.0} MHz), CUDA {}; copy {:.2} TB/s",
        device.name,
        device.architecture,
        device.multiprocessors,
        device.max_clock_mhz,
        device.cuda,
        copy_bandwidth * 1e-12
    );

    let mut results = Vec::new();
    let mut failures = Vec::new();
    let mut state = None;
    let jobs = first.into_iter().map(Ok).chain(plans.iter().skip(1).map(|plan| Job::prepare(plan, options)));
    for (job, plan) in jobs.zip(&options.plans) {
        match job.and_then(|job| measure(&cuda, copy_bandwidth, job, reference.as_ref(), options)) {
            Ok(result) => results.push(result),
            Err(error) => {
                eprintln!("error: {}: {error}", plan.display());
                failures.push((plan.display().to_string(), error.to_string()));
            }
        }
        state = State::ask(&device.uuid).or(state);
    }
    if !results.is_empty() {
        println!("\n{}", report::table(&results).trim_end());
    }
    if let Some(state) = &state {
        println!(
            "\nafter the last run: driver {}, {} MHz, memory {} MHz, {} degrees C, {} W",
            state.driver, state.clock_mhz, state.memory_clock_mhz, state.temperature, state.power
        );
    }
    if let Some(path) = &options.json {
        let record = Record {
            date: report::now(),
            version: env!("CARGO_PKG_VERSION"),
            device,
            state,
            copy_bandwidth,
            results: &results,
            failures: &failures,
        };
        record.write(path).map_err(|e| format!("can't write {}: {e}", path.display()))?;
    }
    let passed = |result: &Measurement| result.check.as_ref().is_none_or(|check| check.passed);
    Ok(failures.is_empty() && results.iter().all(passed))
}
