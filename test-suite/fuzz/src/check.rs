//! The conditions that a case must meet.
//!
//! The compiler takes the program or declines it with one of the known errors. The simulator finds
//! no fault, and its result is the oracle's, bit for bit. Each printed level, read again and taken
//! on from there, gives the same kernels and the same bits. The plan rejects the sizes that the
//! oracle rejects. The transposed program gives the transposed result, the shifted one the same.

use crate::devices;
use crate::model::Case;
use crate::outline;
use crate::random::Random;
use crate::run::{self, Arrays, Compiled};
use crate::summary::reason;
use crate::transform;
use crate::windows::{self, Fate};
use melior::Context;
use std::panic::{AssertUnwindSafe, catch_unwind};
use stencil_compiler::stages::text;
use stencil_runtime::compare::compare;
use stencil_runtime::plan::Plan;

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A panic.
    Panic,
    /// The compiler's process died, or did not end in time.
    Crash,
    /// An internal fault of the compiler.
    Internal,
    /// The compiler declines a program for a reason that is not known.
    UnknownDecline,
    /// The simulator finds a fault in the kernels.
    Simulator,
    /// The bits are not the oracle's.
    Difference,
    /// A printed level does not lead to the same kernels.
    RoundTrip,
    /// Oracle and plan disagree about sizes.
    Refusal,
    /// The transposed program gives another result.
    Transposed,
    /// The shifted program gives another result.
    Shifted,
    /// The same program with functions by `let` has another result, or is refused.
    Outlined,
    /// A diagnostic without a place in the text.
    Place,
    /// An input takes too long.
    Slow,
    /// A tool fails without a word.
    Silent,
    /// A file was changed that must not be, an output is not whole, or something is left behind.
    Lost,
    /// A second run of a pass changes something, against the pass's promise.
    Repeated,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Panic,
        Self::Crash,
        Self::Internal,
        Self::UnknownDecline,
        Self::Simulator,
        Self::Difference,
        Self::RoundTrip,
        Self::Refusal,
        Self::Transposed,
        Self::Shifted,
        Self::Outlined,
        Self::Place,
        Self::Slow,
        Self::Silent,
        Self::Lost,
        Self::Repeated,
    ];
}

/// Why a case ends before its result is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The compiler says why it won't compile this program.
    Declined(String),
    /// The sizes do not fit the program.
    Refused(String),
    /// A failure.
    Failed(Fault, String),
}

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All agrees. Whether any output cell holds a finite number that is not an input's.
    Agreed {
        /// Whether some cell of the result is finite and not what it was before the run.
        telling: bool,
        /// How it ran out of core, if it was to.
        windows: Option<Fate>,
    },
    /// Oracle and plan refuse the sizes.
    Refused(String),
    /// The compiler declines, for a known reason.
    Declined(String),
    /// A failure.
    Failed(Fault, String),
}

impl Verdict {
    /// Whether this is a failure like another one: of the same kind, for the same reason where it
    /// is a decline.
    pub fn fails_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Failed(fault, message), Self::Failed(wanted, for_this)) => {
                fault == wanted
                    && (*fault != Fault::UnknownDecline || reason(message) == reason(for_this))
            }
            _ => false,
        }
    }
}

/// Reasons to decline a valid program that the documents tell of: a part of each message.
const KNOWN: &[&str] = &[
    // A strategy that does not take the schedule, whatever its code is.
    "declined [",
    // Order of pieces or reads that hangs on the sizes.
    "may overlap",
    "it depends on the sizes whether the pieces",
    "` overlap",
    // Pieces and reads outside of the grid, for sizes that are fixed.
    "reads outside the grid",
    "is read from points outside the grid",
    "may lie outside the grid",
    "starts before the grid",
    "ends before it starts",
    "ends behind the grid",
    "holds no point",
    // Numbers for the dimensions of a grid that no function updates.
    "; give one per dimension",
    // A divisor that is a fixed size of 0.
    "division by zero",
];

/// Reasons to decline on the way from the gpu level to PTX.
const KNOWN_PTX: &[&str] = &["nothing defines the function", "needs NVIDIA's libdevice"];

/// Checks a case. Panics are caught and are failures.
pub fn check(case: &Case, context: &Context) -> Verdict {
    let result = catch_unwind(AssertUnwindSafe(|| attempt(case, context)));
    match result {
        Ok(Ok((telling, windows))) => Verdict::Agreed { telling, windows },
        Ok(Err(Stop::Refused(message))) => Verdict::Refused(message),
        Ok(Err(Stop::Declined(message))) => Verdict::Declined(message),
        Ok(Err(Stop::Failed(fault, message))) => Verdict::Failed(fault, message),
        Err(panic) => {
            let text = panic
                .downcast_ref::<String>()
                .map(String::as_str)
                .or(panic.downcast_ref::<&str>().copied());
            Verdict::Failed(Fault::Panic, text.unwrap_or("a panic without a message").to_owned())
        }
    }
}

fn attempt(case: &Case, context: &Context) -> Result<(bool, Option<Fate>), Stop> {
    let Some(inputs) = run::inputs(case) else {
        return Err(Stop::Refused("a negative extent".to_owned()));
    };
    let (expected, fate) = whole(case, context, &inputs, None)?;
    let mut declined = None;
    if case.transpose {
        let turn = |arrays: &Arrays| {
            arrays
                .iter()
                .map(|(name, array)| Some((name.clone(), transform::transpose(array).ok()?)))
                .collect()
        };
        let arrays = |arrays| -> Result<Arrays, Stop> {
            Option::ok_or_else(turn(arrays), || {
                Stop::Failed(Fault::Transposed, "no array".to_owned())
            })
        };
        let found = whole(
            &transform::transposed(case),
            context,
            &arrays(&inputs)?,
            Some((Fault::Transposed, &arrays(&expected)?)),
        );
        declined = declined.or(found.err());
    }
    if case.outline {
        outlined(case, &inputs, &expected)?;
    }
    if let Some(by) = &case.shift {
        let found = whole(
            &transform::shifted(case, by),
            context,
            &inputs,
            Some((Fault::Shifted, &expected)),
        );
        declined = declined.or(found.err());
    }
    // Another order of dimensions may need other proofs: that it is declined is no failure.
    match declined {
        Some(failed @ Stop::Failed(..)) => Err(failed),
        _ => Ok((telling(&inputs, &expected), fate)),
    }
}

/// The oracle's result of the same program with functions by `let`.
fn outlined(case: &Case, inputs: &Arrays, expected: &Arrays) -> Result<(), Stop> {
    let mut random = Random::of_case(case.data.seed, 3);
    let program = outline::outlined(&case.program, &mut random);
    let case = Case { program, ..case.clone() };
    let fault = |message: String| {
        let text = case.program.text();
        Stop::Failed(Fault::Outlined, format!("{message}\n{text}"))
    };
    let Some(schedule) = case.schedules.first() else { return Ok(()) };
    let source = run::source(&case);
    let checked = stencil_compiler::stages::check(&source, &run::options(&case, schedule));
    let checked = checked.map_err(|failure| fault(failure.to_string()))?;
    let found = run::reference(&case, &checked, inputs).map_err(fault)?;
    same(&found, expected).map_err(fault)
}

/// Whether the result says anything: a finite cell that the run changed.
fn telling(inputs: &Arrays, outputs: &Arrays) -> bool {
    outputs.iter().any(|(name, output)| {
        let input = inputs.get(name);
        (0..output.len()).any(|cell| {
            let after = output.get(cell);
            after.is_some_and(f64::is_finite) && after != input.and_then(|input| input.get(cell))
        })
    })
}

/// One program with all its schedules; gives the oracle's result, and how it ran out of core.
/// Where a result is known already, that of an equivalent program, it must be the oracle's too.
fn whole(
    case: &Case,
    context: &Context,
    inputs: &Arrays,
    known: Option<(Fault, &Arrays)>,
) -> Result<(Arrays, Option<Fate>), Stop> {
    let source = run::source(case);
    let first = case.schedules.first();
    let options = first.map(|schedule| run::options(case, schedule)).unwrap_or_default();
    let program = stencil_compiler::stages::check(&source, &options)
        .map_err(|failure| only_known(run::stop(&failure), KNOWN))?;
    let expected = run::reference(case, &program, inputs);
    if let (Some((fault, known)), Ok(expected)) = (known, &expected) {
        same(expected, known).map_err(|difference| {
            Stop::Failed(fault, format!("the oracle's own results: {difference}"))
        })?;
    }
    let (mut declined, mut fate) = (None, None);
    for schedule in &case.schedules {
        match one(case, context, schedule, inputs, &expected) {
            Ok(found) => fate = found.or(fate),
            Err(failed @ Stop::Failed(..)) => return Err(failed),
            Err(other) => declined = Some(other),
        }
    }
    match (declined, expected) {
        (Some(declined), _) => Err(declined),
        (None, Ok(expected)) => Ok((expected, fate)),
        (None, Err(message)) => Err(Stop::Refused(message)),
    }
}

fn one(
    case: &Case,
    context: &Context,
    schedule: &crate::model::Schedule,
    inputs: &Arrays,
    expected: &Result<Arrays, String>,
) -> Result<Option<Fate>, Stop> {
    let mut fate = None;
    if schedule.is_for_processor() {
        let found = run::on_processor(context, case, schedule, inputs);
        let found = found.map_err(|stop| only_known(stop, KNOWN));
        let found = found.map(|(found, ran)| {
            fate = ran;
            found
        });
        return judge(found, expected, Fault::Difference, "on the processor: ").map(|()| fate);
    }
    let compiled = run::compile(context, case, schedule).map_err(|stop| only_known(stop, KNOWN))?;
    let found = run::simulate(case, &compiled.module, &compiled.plan, inputs, false);
    judge(found, expected, Fault::Difference, "")?;
    if expected.is_ok() && compiled.plan.launches().any(|launch| launch.bands.is_some()) {
        let found = run::simulate(case, &compiled.module, &compiled.plan, inputs, true);
        judge(found, expected, Fault::Difference, "in bands that overlap: ")?;
    }
    if expected.is_ok() {
        let (module, plan) = (&compiled.module, &compiled.plan);
        if let Some(found) = devices::simulate(case, module, plan, inputs)? {
            judge(Ok(found), expected, Fault::Difference, "on several devices: ")?;
        }
        if case.windows {
            let (found, ran) = windows::simulate(case, module, plan, inputs)?;
            for (memory, found) in found {
                let what = format!("out of core in {memory}: ");
                judge(Ok(found), expected, Fault::Difference, &what)?;
            }
            fate = Some(ran);
        }
    }
    if case.round_trip {
        round_trip(case, context, &compiled, inputs, expected)?;
    }
    if case.ptx {
        run::ptx(context, case, schedule).map_err(|stop| match only_known(stop, KNOWN_PTX) {
            // The kernels were right; only what becomes of them later is declined.
            Stop::Declined(message) => Stop::Declined(format!("to PTX: {message}")),
            stop => stop,
        })?;
    }
    Ok(fate)
}

fn round_trip<'c>(
    case: &Case,
    context: &'c Context,
    compiled: &Compiled<'c>,
    inputs: &Arrays,
    expected: &Result<Arrays, String>,
) -> Result<(), Stop> {
    let round = |message: String| Stop::Failed(Fault::RoundTrip, message);
    let (module, plan) = again(context, compiled).map_err(round)?;
    if expected.is_ok() {
        let found = run::simulate(case, &module, &plan, inputs, false);
        judge(found, expected, Fault::RoundTrip, "from the printed gpu level: ")?;
    }
    Ok(())
}

/// Compares with the oracle's result, or its refusal.
pub(crate) fn judge(
    found: Result<Arrays, Stop>,
    expected: &Result<Arrays, String>,
    fault: Fault,
    what: &str,
) -> Result<(), Stop> {
    match (found, expected) {
        (Ok(found), Ok(expected)) => same(&found, expected)
            .map_err(|difference| Stop::Failed(fault, format!("{what}{difference}"))),
        (Err(Stop::Refused(message)), Err(_)) => Err(Stop::Refused(message)),
        (Err(Stop::Refused(message)), Ok(_)) => Err(Stop::Failed(
            Fault::Refusal,
            format!("the oracle runs, but the plan refuses: {message}"),
        )),
        (Ok(_), Err(message)) => Err(Stop::Failed(
            Fault::Refusal,
            format!("the kernels run, but the oracle refuses: {message}"),
        )),
        (Err(stop), _) => Err(stop),
    }
}

/// Compares two results bit by bit.
///
/// # Errors
/// The first field that differs.
pub fn same(found: &Arrays, expected: &Arrays) -> Result<(), String> {
    if found.keys().ne(expected.keys()) {
        return Err(format!("the outputs are {:?} and not {:?}", found.keys(), expected.keys()));
    }
    for (name, array) in found {
        let comparison =
            compare(array, &expected[name]).map_err(|error| format!("{name}: {error}"))?;
        if !comparison.exact() {
            return Err(format!("{name}: {comparison}"));
        }
    }
    Ok(())
}

/// The printed levels, read again: each must lead to the same text of the gpu level, which is
/// then read once more, to be run; the plan likewise.
fn again<'c>(
    context: &'c Context,
    compiled: &Compiled<'c>,
) -> Result<(melior::ir::Module<'c>, Plan), String> {
    let Some([stencil, tiled]) = &compiled.texts else { return Err("no text".to_owned()) };
    let gpu = &text(&compiled.module);
    let read = run::again(context, stencil, &[])?;
    unchanged("stencil", stencil, &text(&read))?;
    let lowered = run::again(context, tiled, &run::lowering())?;
    unchanged("gpu level from the printed tiled", gpu, &text(&lowered))?;
    let module = run::again(context, gpu, &[])?;
    let plan = run::plan(context, &module)?;
    if plan != compiled.plan {
        return Err("the printed gpu level has another plan".to_owned());
    }
    let json = plan.to_json().map_err(|error| error.to_string())?;
    let plan = Plan::from_json(&json, "again.plan.json").map_err(|error| error.to_string())?;
    if plan != compiled.plan {
        return Err("the plan is another one after it was written and read".to_owned());
    }
    Ok((module, plan))
}

fn unchanged(level: &str, before: &str, after: &str) -> Result<(), String> {
    if before == after {
        return Ok(());
    }
    let (line, (was, is)) = before
        .lines()
        .zip(after.lines())
        .enumerate()
        .find(|(_, (a, b))| a != b)
        .unwrap_or_default();
    Err(format!("the {level} level, read again, differs in line {}:\n{was}\n{is}", line + 1))
}

/// A decline for a reason that nobody has written down is a failure.
fn only_known(stop: Stop, known: &[&str]) -> Stop {
    match stop {
        Stop::Declined(message) if !known.iter().any(|part| message.contains(part)) => {
            Stop::Failed(Fault::UnknownDecline, message)
        }
        other => other,
    }
}
