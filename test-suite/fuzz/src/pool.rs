//! Cases on worker processes, so that one that dies or hangs is a failure of its case alone.
//!
//! A worker is this program with `--every`. It runs every so many-th case, and standard output gets
//! one line before a case, `case NUMBER`, and one after it, the verdict.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Memory of a worker in KiB; who asks for more dies.
const MEMORY: &str = "8000000";

/// The cases and who runs them.
#[derive(Clone, Debug)]
pub struct Pool {
    /// Arguments of a worker, besides `--first` and `--every`.
    pub arguments: Vec<String>,
    /// The first case.
    pub first: u64,
    /// How many there are.
    pub cases: u64,
    /// How many processes share them.
    pub jobs: u64,
    /// Time for a case; beyond it its process is ended.
    pub limit: Duration,
}

/// The end of a case.
#[derive(Debug)]
pub enum End<'l> {
    /// The worker's line.
    Line(&'l str),
    /// Its process ended, or was ended because it took too long.
    Died(ExitStatus),
}

/// Receives the end of a case; returns whether it is a failure.
pub type Told<'t> = &'t mut dyn FnMut(u64, End) -> Result<bool, String>;

/// Runs a worker's cases: from `first`, every `every`-th below `end`. The function gives a line.
pub fn work(
    first: u64,
    end: u64,
    every: u64,
    mut case: impl FnMut(u64) -> Option<String>,
) -> ExitCode {
    // The panic's message is part of the verdict.
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout();
    let mut index = first;
    while index < end {
        let told = writeln!(out, "case {index}").and_then(|()| out.flush());
        let Some(line) = case(index) else { return ExitCode::from(2) };
        let line = line.lines().next().unwrap_or_default();
        if told.and_then(|()| writeln!(out, "{line}")).and_then(|()| out.flush()).is_err() {
            return ExitCode::from(2);
        }
        index += every.max(1);
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

/// Starts the workers, tells of each case, and starts those anew that died.
///
/// # Errors
/// When a worker can't be started, says what none should, or ends in between cases.
pub fn lead(pool: &Pool, told: Told) -> Result<(), String> {
    // Each process has a case.
    let jobs = pool.jobs.min(pool.cases);
    pool.first.checked_add(pool.cases).ok_or("there are no such numbers")?;
    let (sender, receiver) = mpsc::channel();
    let start = |job: u64, first: u64| start(pool, job, first, &sender);
    let mut workers = Vec::new();
    for job in 0..jobs {
        workers.push(start(job, pool.first + job)?);
    }
    let (begin, mut shown, mut looked) = (Instant::now(), Instant::now(), Instant::now());
    let (mut done, mut failures) = (0_u64, 0_u64);
    let mut running = workers.len();
    while running > 0 {
        let event = receiver.recv_timeout(Duration::from_secs(2));
        if shown.elapsed() > Duration::from_secs(10) {
            shown = Instant::now();
            let rate = done as f64 / begin.elapsed().as_secs_f64();
            eprintln!(
                "{done} of {} cases, {failures} failures, {rate:.1} cases a second",
                pool.cases
            );
        }
        if looked.elapsed() > Duration::from_secs(1) {
            looked = Instant::now();
            end_slow(&mut workers, pool.limit)?;
        }
        let (job, event) = match event {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let Some(worker) = workers.get_mut(job as usize) else { continue };
        let mut count = |number: u64, end: End| -> Result<(), String> {
            failures += u64::from(told(number, end)?);
            done += 1;
            Ok(())
        };
        match (event, worker.current) {
            (Event::Line(line), None) => {
                let number = line.strip_prefix("case ").and_then(|number| number.parse().ok());
                let number: u64 = number.ok_or_else(|| format!("a worker says '{line}'"))?;
                worker.current = Some((number, Instant::now()));
                worker.next = number + jobs;
            }
            (Event::Line(line), Some((number, _))) => {
                worker.current = None;
                count(number, End::Line(&line))?;
            }
            (Event::End, Some((number, _))) => {
                let status = worker.child.wait().map_err(|error| error.to_string())?;
                count(number, End::Died(status))?;
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
    eprintln!("{done} cases from number {}, {:.0} s", pool.first, begin.elapsed().as_secs_f64());
    Ok(())
}

/// Starts a worker whose lines go to `sender`, with its number.
fn start(
    pool: &Pool,
    job: u64,
    first: u64,
    sender: &mpsc::Sender<(u64, Event)>,
) -> Result<Worker, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")])
        .arg(program)
        .args(&pool.arguments)
        .args(["--first", &first.to_string(), "--every", &pool.jobs.min(pool.cases).to_string()])
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
}

/// Ends the workers that take longer for a case than they may.
fn end_slow(workers: &mut [Worker], limit: Duration) -> Result<(), String> {
    for worker in workers {
        if worker.current.is_some_and(|(_, since)| since.elapsed() > limit) {
            worker.child.kill().map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}
