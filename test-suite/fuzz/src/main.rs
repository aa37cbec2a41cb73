//! `stencil-fuzz`: many random cases, on several processes.
//!
//! The cases are dealt to worker processes, which tell of each case before and after it. So a
//! worker that dies or hangs is a failure of a case by number, and the others go on.

#![forbid(unsafe_code)]

use clap::Parser;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use stencil_fuzz::check::{Fault, Verdict, check};
use stencil_fuzz::summary::Summary;
use stencil_fuzz::{generate, record, shrink};

/// Run random programs on the simulator and compare with the oracle, bit for bit.
#[derive(Clone, Debug, Parser)]
#[command(name = "stencil-fuzz", version)]
struct Args {
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
    #[arg(long, default_value_t = 1)]
    jobs: u64,
    /// Where failing programs go
    #[arg(long, default_value = "fuzz-failures")]
    out: PathBuf,
    /// Most runs to make a failing case smaller
    #[arg(long, default_value_t = 600)]
    attempts: usize,
    /// Most seconds a case, with making it smaller
    #[arg(long, default_value_t = 300)]
    limit: u64,
    /// Print the cases and run nothing
    #[arg(long)]
    print: bool,
    /// Run every so many-th case, and tell of each on standard output: for worker processes
    #[arg(long, hide = true)]
    every: Option<u64>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.print {
        for index in args.first..args.first.saturating_add(args.cases) {
            let case = generate::case(args.seed, index);
            println!("# case {index} of seed {}", args.seed);
            for schedule in &case.schedules {
                println!("# {}", record::command_line(&case, schedule, "case.stencil"));
            }
            println!("{}", case.program.text());
        }
        return ExitCode::SUCCESS;
    }
    match args.every {
        Some(every) => work(&args, every),
        None => match lead(&args) {
            Ok(summary) => {
                println!("{summary}");
                ExitCode::from(u8::from(summary.failures() > 0))
            }
            Err(message) => {
                eprintln!("error: {message}");
                ExitCode::from(2)
            }
        },
    }
}

/// Runs the cases of one worker. Standard output gets a line before a case, `case NUMBER`, and one
/// after, `done`; a failure is told between the two.
fn work(args: &Args, every: u64) -> ExitCode {
    // The panic's message is part of the verdict; the runs of the shrinker would print it over and over.
    std::panic::set_hook(Box::new(|_| {}));
    let mut context = None;
    let mut index = args.first;
    let end = args.cases;
    let mut count = 0_u64;
    while index < end {
        let mut out = std::io::stdout();
        // A context keeps all that it has ever seen.
        if count.is_multiple_of(200) {
            context = stencil_dialects::context().ok();
        }
        let Some(context) = &context else { return ExitCode::from(2) };
        let case = generate::case(args.seed, index);
        let told = writeln!(out, "case {index}").and_then(|()| out.flush());
        let verdict = check(&case, context);
        let failure = shrink::failure(&case, &verdict, args.attempts, context);
        let mut message = String::new();
        if let Some((small, fault, text)) = &failure {
            let stem = format!("seed{}-case{index}", args.seed);
            message = match record::write(small, *fault, text, &args.out, &stem) {
                Ok(path) => format!("{fault:?}, see {}", path.display()),
                Err(error) => format!("{fault:?}, and it can't be written: {error}"),
            };
        }
        let line = match &verdict {
            Verdict::Agreed { telling } => format!("agreed {telling}"),
            Verdict::Refused(_) => "refused".to_owned(),
            Verdict::Declined(message) => format!("declined {}", message.lines().next().unwrap_or_default()),
            Verdict::Failed(fault, _) => format!("failed {fault:?} {message}"),
        };
        if told.and_then(|()| writeln!(out, "{line}")).and_then(|()| out.flush()).is_err() {
            return ExitCode::from(2);
        }
        index += every;
        count += 1;
    }
    ExitCode::SUCCESS
}

struct Worker {
    child: Child,
    /// The case in work, since when.
    current: Option<(u64, Instant)>,
    next: u64,
}

enum Event {
    Line(String),
    End,
}

/// Starts the workers, counts what they tell, and starts those anew that died.
fn lead(args: &Args) -> Result<Summary, String> {
    let end = args.first.checked_add(args.cases).ok_or("there are no such numbers")?;
    let (sender, receiver) = mpsc::channel();
    let start = |job: u64, first: u64| -> Result<Worker, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args(["--seed", &args.seed.to_string(), "--first", &first.to_string(), "--cases", &end.to_string()])
            .args(["--every", &args.jobs.max(1).to_string(), "--attempts", &args.attempts.to_string(), "--out"])
            .arg(&args.out)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("no worker can be started: {error}"))?;
        let output = child.stdout.take().ok_or("a worker without output")?;
        let sender = sender.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send((job, Event::Line(line))).is_err() {
                    return;
                }
            }
            let _ = sender.send((job, Event::End));
        });
        Ok(Worker { child, current: None, next: first })
    };
    let mut workers = Vec::new();
    for job in 0..args.jobs.max(1) {
        workers.push(start(job, args.first + job)?);
    }
    let mut summary = Summary::default();
    let (begin, mut shown) = (Instant::now(), Instant::now());
    let mut running = workers.len();
    while running > 0 {
        let event = receiver.recv_timeout(Duration::from_secs(5));
        if shown.elapsed() > Duration::from_secs(10) {
            shown = Instant::now();
            let (done, seconds) = (summary.cases(), begin.elapsed().as_secs_f64());
            eprintln!(
                "{done} of {} cases, {} failures, {:.1} cases a second",
                args.cases,
                summary.failures(),
                done as f64 / seconds
            );
        }
        let (job, event) = match event {
            Ok((job, event)) => (job, event),
            Err(RecvTimeoutError::Timeout) => {
                for worker in &mut workers {
                    let slow = |(_, since): (u64, Instant)| since.elapsed() > Duration::from_secs(args.limit);
                    if worker.current.is_some_and(slow) {
                        worker.child.kill().map_err(|error| error.to_string())?;
                    }
                }
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let Some(worker) = workers.get_mut(job as usize) else { continue };
        match (event, worker.current) {
            (Event::Line(line), _) if line.starts_with("case ") => {
                let number = line.trim_start_matches("case ").parse().map_err(|_| format!("a worker says '{line}'"))?;
                worker.current = Some((number, Instant::now()));
                worker.next = number + args.jobs.max(1);
            }
            (Event::Line(line), Some((number, _))) => {
                worker.current = None;
                let verdict = verdict(&line).ok_or_else(|| format!("a worker says '{line}'"))?;
                if let Verdict::Failed(_, message) = &verdict {
                    eprintln!("case {number}: {message}");
                }
                summary.add(&generate::case(args.seed, number), &verdict);
            }
            (Event::Line(line), None) => return Err(format!("a worker says '{line}'")),
            (Event::End, Some((number, _))) => {
                let status = worker.child.wait().map_err(|error| error.to_string())?;
                let case = generate::case(args.seed, number);
                let message = format!("the process that compiled it ended: {status}");
                let stem = format!("seed{}-case{number}", args.seed);
                let path = record::write(&case, Fault::Crash, &message, &args.out, &stem)
                    .map_err(|error| error.to_string())?;
                eprintln!("case {number}: Crash, see {}", path.display());
                summary.add(&case, &Verdict::Failed(Fault::Crash, message));
                *worker = start(job, worker.next)?;
            }
            (Event::End, None) => {
                let status = worker.child.wait().map_err(|error| error.to_string())?;
                if !status.success() {
                    return Err(format!("a worker ended: {status}"));
                }
                running -= 1;
            }
        }
    }
    println!(
        "seed {}, cases {} to {}, {:.0} s on {} processes",
        args.seed,
        args.first,
        end.saturating_sub(1),
        begin.elapsed().as_secs_f64(),
        args.jobs.max(1)
    );
    Ok(summary)
}

/// What a worker's line says.
fn verdict(line: &str) -> Option<Verdict> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "agreed" => Some(Verdict::Agreed { telling: rest == "true" }),
        "refused" => Some(Verdict::Refused(String::new())),
        "declined" => Some(Verdict::Declined(rest.to_owned())),
        "failed" => {
            let fault = Fault::ALL.iter().copied().find(|fault| rest.starts_with(&format!("{fault:?} ")))?;
            Some(Verdict::Failed(fault, rest.to_owned()))
        }
        _ => None,
    }
}
