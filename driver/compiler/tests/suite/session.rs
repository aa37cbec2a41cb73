//! What a session promises: plain data that can be sent, no state between sessions, progress,
//! cancellation, errors with places.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use stencil_compiler::{
    Arithmetic, Array, Choice, Class, Compiled, Config, Control, Element, Executable, Failure,
    Level, Look, Options, Outcome, Pause, Pauses, Progress, Request, Session, Source, Target,
    compare,
};
use stencil_runtime::plan::Settings;
use stencil_runtime::tune::{Entry, Schedules};

const HEAT: &str = "param N\nparam M\nscalar w : f32 = 0.25\ngrid G = [0..N-1, 0..M-1]\n\
    field A : f32 on G\nfn heat -> A [1..N-2, 1..M-2] = \
    w*(A[-1,0] + A[1,0] + A[0,-1] + A[0,1])\nsteps 9\n";
const WAVE: &str = "param N\ngrid G = [0..N-1]\nfield U : f64 on G\nfield P : f64 on G\n\
    fn wave -> (U, P) [1..N-2] = (2*U[0] - P[0] + 0.1*(U[-1] - 2*U[0] + U[1]), U[0])\nsteps 7\n";
const SIMULATOR: Target = Target::Simulator { seed: None };

fn heat() -> Source {
    Source::new("heat.stencil", HEAT)
}

fn options(strategy: &str) -> Options {
    let choice = Choice { strategy: Some(strategy.to_owned()), ..Choice::default() };
    Options {
        config: Config { choice, ..Config::default() },
        arithmetic: Arithmetic { contract: false, fast_math: false },
        ..Options::default()
    }
}

fn arrays(fields: &[(&str, Element, &[usize])]) -> BTreeMap<String, Array> {
    let array = |(name, element, shape): &(&str, Element, &[usize])| {
        ((*name).to_owned(), Array::noise(*element, shape, 3).unwrap())
    };
    fields.iter().map(array).collect()
}

fn heat_inputs() -> BTreeMap<String, Array> {
    arrays(&[("A", Element::F32, &[40, 70])])
}

fn run(session: &Session, source: &Source, target: Target) -> Outcome {
    let executable = session.executable(source, target, Control::default()).unwrap();
    let inputs = match source.name.starts_with("heat") {
        true => heat_inputs(),
        false => arrays(&[("U", Element::F64, &[300]), ("P", Element::F64, &[300])]),
    };
    executable.run(&inputs, Request::default(), Control::default()).unwrap()
}

fn assert_plain<T: Send + Sync + Clone + 'static>() {}

#[test]
fn everything_can_be_sent_to_another_thread() {
    assert_plain::<Session>();
    assert_plain::<Options>();
    assert_plain::<Compiled>();
    assert_plain::<Executable>();
    assert_plain::<Outcome>();
    assert_plain::<Failure>();
}

/// One after the other, then side by side: every text and every bit is the same.
#[test]
fn sessions_of_several_threads_do_not_disturb_each_other() {
    let wave = Source::new("wave.stencil", WAVE);
    let work = [
        (Session::new(options("block")), heat()),
        (Session::new(options("naive")), wave.clone()),
        (Session::new(options("stream")), heat()),
        (Session::new(options("warp")), wave),
    ];
    let levels = Level::ALL.into_iter().filter(|level| *level != Level::Asm);
    let levels: Vec<Level> = levels.collect();
    let all = |(session, source): &(Session, Source)| {
        let compiled = session.compile(source, &levels, Control::default()).unwrap();
        let texts: Vec<_> =
            compiled.texts().map(|(level, text)| (level, text.to_owned())).collect();
        (texts, run(session, source, SIMULATOR).outputs)
    };
    let alone: Vec<_> = work.iter().map(all).collect();
    let together: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = work.iter().map(|part| scope.spawn(move || all(part))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(alone[0].0.len(), levels.len());
    assert!(alone == together);
}

#[test]
fn every_target_gives_the_same_bits_and_runs_again() {
    let session = Session::new(options("block"));
    let reference = run(&session, &heat(), Target::Reference);
    let simulated = session.executable(&heat(), SIMULATOR, Control::default()).unwrap();
    for _ in 0..2 {
        let again = simulated.run(&heat_inputs(), Request::default(), Control::default()).unwrap();
        let arithmetic = session.options().arithmetic;
        let checked = compare(&reference.outputs, &again.outputs, arithmetic, None).unwrap();
        assert!(checked.iter().all(|field| field.comparison.exact()));
        assert!(again.launches > 0 && again.steps == 9 && again.cells == 40 * 70);
        let counters = again.counters.unwrap();
        let of_heat = counters.kernels[0].parts.iter().find(|part| part.name == "heat");
        assert!(
            of_heat.is_some_and(|part| part.cells > 0) && counters.kernels[0].redundant.is_some()
        );
    }
    let no_steps = Request { steps: Some(0), ..Request::default() };
    let outcome = simulated.run(&heat_inputs(), no_steps, Control::default()).unwrap();
    assert_eq!((outcome.launches, outcome.outputs), (0, heat_inputs()));
}

#[test]
fn ir_compiles_and_runs_as_its_program() {
    let session = Session::new(options("naive"));
    let compiled = session.compile(&heat(), &[Level::Stencil], Control::default()).unwrap();
    assert_eq!((compiled.ptx(), compiled.plan()), (None, None));
    let ir = Source::new("heat.mlir", compiled.text(Level::Stencil).unwrap());
    assert_eq!(run(&session, &ir, SIMULATOR).outputs, run(&session, &heat(), SIMULATOR).outputs);
    let levels = [Level::Ptx, Level::Plan];
    let [from_ir, from_text] =
        [&ir, &heat()].map(|source| session.compile(source, &levels, Control::default()).unwrap());
    assert_eq!((from_ir.ptx(), from_ir.plan()), (from_text.ptx(), from_text.plan()));
}

/// A sweep whose points are computed by a function of the embedding program.
fn with_element(element: &str) -> Source {
    let text = r#"
#first = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
#one = affine_map<()[n] -> (1)>
#inner = affine_map<()[n] -> (n - 2)>
module @sweep attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (3)>} {
  "stencil.grid"() {sym_name = "G", lower = #first, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @compute_element(%before: f32, %old: f32) -> f32 {
    ELEMENT
  }
  func.func private @point(
      %before: f32 {stencil.current = @A, stencil.offset = array<i64: -1>},
      %old: f32 {stencil.read = @A, stencil.offset = array<i64: 1>}) -> f32 {
    %new = func.call @compute_element(%before, %old) : (f32, f32) -> f32
    func.return %new : f32
  }
  "stencil.apply"() {updates = [@A],
    pieces = [{function = @point, lower = #one, upper = #inner}]} : () -> ()
}
"#;
    Source::new("sweep.mlir", text.replace("ELEMENT", element))
}

#[test]
fn point_functions_may_call_functions_of_the_embedding_program() {
    let element = "%half = arith.constant 0.5 : f32
                   %part = arith.mulf %half, %before : f32
                   %sum = arith.addf %part, %old : f32
                   func.return %sum : f32";
    let program = Source::new(
        "sweep.stencil",
        "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n\
         fn point -> A [1..N-2] = 0.5*A'[-1] + A[1]\nsteps 3\n",
    );
    let session = Session::new(options("wavefront"));
    let inputs = [("A".to_owned(), Array::noise(Element::F32, &[40], 7).unwrap())].into();
    let run = |source: &Source| {
        let executable = session.executable(source, SIMULATOR, Control::default()).unwrap();
        executable.run(&inputs, Request::default(), Control::default()).unwrap().outputs
    };
    assert_eq!(run(&with_element(element)), run(&program));
    let endless = "%new = func.call @compute_element(%old, %before) : (f32, f32) -> f32
                   func.return %new : f32";
    let failure = session.executable(&with_element(endless), SIMULATOR, Control::default());
    let message = failure.err().unwrap().to_string();
    assert!(message.contains("func.call can't stand in a point function"), "{message}");
}

#[test]
fn the_simulator_finds_a_gather_outside_of_its_grid() {
    let text = r#"
#first = affine_map<()[n] -> (0)>
#last = affine_map<()[n] -> (n - 1)>
module attributes {stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (3)>} {
  "stencil.grid"() {sym_name = "G", lower = #first, upper = #last} : () -> ()
  "stencil.field"() {sym_name = "A", grid = @G, type = f32, role = "state"} : () -> ()
  func.func private @next(%i: i64 {stencil.coord = 0 : i64}) -> f32 {
    %one = arith.constant 1 : i64
    %at = arith.addi %i, %one : i64
    %new = "stencil.gather"(%at) {field = @A} : (i64) -> f32
    func.return %new : f32
  }
  "stencil.apply"() {updates = [@A],
    pieces = [{function = @next, lower = #first, upper = #last}]} : () -> ()
}
"#;
    let (source, session) = (Source::new("next.mlir", text), Session::new(options("naive")));
    let executable = session.executable(&source, SIMULATOR, Control::default()).unwrap();
    let inputs = [("A".to_owned(), Array::noise(Element::F32, &[40], 7).unwrap())].into();
    let ran = executable.run(&inputs, Request::default(), Control::default());
    let error = ran.map(drop).unwrap_err().to_string();
    assert!(error.contains("out of bounds") || error.contains("outside"), "{error}");
}

#[test]
fn progress_names_each_pass_and_counts_every_step() {
    let session = Session::new(options("block"));
    for target in [Target::Reference, SIMULATOR] {
        let mut passes = Vec::new();
        let mut steps = Vec::new();
        let mut hook = |progress: Progress<'_>| match progress {
            Progress::Pass { name, ir } => passes.push((name.to_owned(), ir())),
            Progress::Steps { done, of } => steps.push((done, of)),
            Progress::Candidates { .. } => unreachable!(),
        };
        let mut control = Control { progress: Some(&mut hook), ..Control::default() };
        let executable = session.executable(&heat(), target, control.reborrow()).unwrap();
        executable.run(&heat_inputs(), Request::default(), control).unwrap();
        assert!(steps.is_sorted() && steps.last() == Some(&(9, 9)), "{steps:?}");
        let lowered = passes.iter().find(|(name, _)| name == "lower-block");
        match target {
            Target::Reference => assert_eq!(passes, []),
            _ => assert!(lowered.is_some_and(|(_, ir)| ir.contains("gpu.func"))),
        }
    }
}

#[test]
fn a_compile_is_cancelled_between_levels() {
    let session = Session::new(options("naive"));
    let cancel = Arc::new(AtomicBool::new(false));
    let mut passes = Vec::new();
    let mut hook = |progress: Progress<'_>| {
        if let Progress::Pass { name, .. } = progress {
            passes.push(name.to_owned());
            cancel.fetch_or(name == "tile-overlapped", Ordering::Relaxed);
        }
    };
    let control =
        Control { progress: Some(&mut hook), cancel: Arc::clone(&cancel), ..Control::default() };
    cancel.store(true, Ordering::Relaxed);
    let control_at_once = Control { cancel: Arc::clone(&cancel), ..Control::default() };
    let failure = session.compile(&heat(), &[Level::Ptx], control_at_once).unwrap_err();
    assert_eq!(failure.class, Class::Cancelled);
    cancel.store(false, Ordering::Relaxed);
    let failure = session.compile(&heat(), &[Level::Tiled, Level::Ptx], control).unwrap_err();
    assert_eq!((failure.class, failure.class.exit_code()), (Class::Cancelled, 1));
    assert!(passes.iter().any(|name| name == "stencil-verify"), "{passes:?}");
    assert!(!passes.iter().any(|name| name.starts_with("lower-")), "{passes:?}");
}

#[test]
fn a_run_is_cancelled_from_another_thread() {
    let session = Session::new(options("naive"));
    for target in [Target::Reference, SIMULATOR] {
        let executable = session.executable(&heat(), target, Control::default()).unwrap();
        let cancel = Arc::new(AtomicBool::new(false));
        let (begun, wait) = std::sync::mpsc::channel();
        let (inputs, cancelled) = (heat_inputs(), Arc::clone(&cancel));
        let running = thread::spawn(move || {
            let mut hook = |_: Progress<'_>| {
                let _ = begun.send(());
            };
            let control =
                Control { progress: Some(&mut hook), cancel: cancelled, ..Control::default() };
            // Without an end it takes hours.
            let request = Request { steps: Some(1 << 40), ..Request::default() };
            executable.run(&inputs, request, control)
        });
        wait.recv().unwrap();
        cancel.store(true, Ordering::Relaxed);
        let failure = running.join().unwrap().unwrap_err();
        assert_eq!(failure.class, Class::Cancelled, "{failure}");
    }
}

#[test]
fn failures_have_places_and_classes() {
    let session = Session::default();
    let failure = session
        .compile(
            &Source::new("a.stencil", "grid G = [0..K]\nsteps 1\n"),
            &[Level::Ptx],
            Control::default(),
        )
        .unwrap_err();
    let message = &failure.messages()[0];
    let place = message.place.as_ref().unwrap();
    assert_eq!((place.file.as_str(), place.line, place.column), ("a.stencil", 1, 14));
    assert!(message.text.contains("`K`"), "{message:?}");
    assert_eq!(failure.class, Class::Input);
    assert!(
        failure.to_string().contains("grid G = [0..K]") && !failure.to_string().contains('\u{1b}')
    );
    assert!(failure.text(Look::Coloured).contains('\u{1b}'));

    let executable = session.executable(&heat(), Target::Reference, Control::default()).unwrap();
    let run = |inputs| executable.run(&inputs, Request::default(), Control::default());
    let missing = run(BTreeMap::new()).unwrap_err();
    assert!(missing.to_string().contains("`N`, `M` have no values"), "{missing}");
    let wrong = run(arrays(&[("A", Element::F64, &[9, 9])])).unwrap_err();
    assert!(wrong.to_string().contains("field `A`"), "{wrong}");
}

#[test]
fn a_report_has_schedule_kernels_and_candidates() {
    let session = Session::new(options("block"));
    let levels = [Level::Plan, Level::Ptx];
    let compiled = session.compile(&heat(), &levels, Control::default()).unwrap();
    let report = session.report(&heat(), &compiled).unwrap();
    let plan = compiled.plan().unwrap();
    assert_eq!((report.settings.strategy.as_str(), &report.program), ("block", &plan.program));
    let names = |kernel: &stencil_compiler::KernelReport| kernel.name.clone();
    assert_eq!(
        report.kernels.iter().map(names).collect::<Vec<_>>(),
        plan.kernels.iter().map(|kernel| kernel.name.clone()).collect::<Vec<_>>()
    );
    assert!(report.candidates.as_ref().is_some_and(|candidates| !candidates.is_empty()));
    assert!(report.to_string().contains("strategy block"), "{report}");
    let without = session.compile(&heat(), &[Level::Ptx], Control::default()).unwrap();
    assert!(session.report(&heat(), &without).is_err());
}

/// A file of schedules that was edited by hand.
#[test]
fn a_device_is_named_by_itself_or_with_its_architecture() {
    let target = |arch: Option<&str>, device: Option<&str>| {
        let [arch, device] = [arch, device].map(|name| name.map(str::to_owned));
        let session = Session::new(Options { arch, device, ..options("naive") });
        let compiled = session.compile(&heat(), &[Level::Plan], Control::default())?;
        let target = compiled.plan().unwrap().target.clone();
        Ok::<_, Failure>((target.arch, target.device.unwrap_or_default()))
    };
    let is = |arch: &str, device: &str| (arch.to_owned(), device.to_owned());
    assert_eq!(target(None, None).unwrap(), is("sm_90", "NVIDIA H200"));
    assert_eq!(target(None, Some("h100")).unwrap(), is("sm_90", "NVIDIA H100 80GB HBM3"));
    assert_eq!(target(None, Some("NVIDIA A40")).unwrap(), is("sm_86", "NVIDIA A40"));
    assert_eq!(target(Some("sm_120"), None).unwrap(), is("sm_120", "NVIDIA GeForce RTX 5090"));
    assert_eq!(target(Some("sm_100a"), Some("B200")).unwrap(), is("sm_100a", "NVIDIA B200"));
    assert!(target(Some("sm_80"), Some("H100")).is_err());
    assert!(target(None, Some("H800")).is_err());
}

#[test]
fn a_wrong_schedule_names_the_file_that_it_comes_from() {
    let session = Session::default();
    let settings = Settings {
        strategy: "block".to_owned(),
        tile: vec![64, 512],
        pyramid_height: 1,
        per_thread: vec![1, 1],
        ..Settings::default()
    };
    let entry = Entry {
        fingerprint: session.fingerprint(&heat()).unwrap(),
        device: "NVIDIA H200".to_owned(),
        size_class: 28,
        program: "heat".to_owned(),
        settings,
        gcells: 1.0,
    };
    let schedules = Schedules { entries: vec![entry] };
    let measured = session.with_schedules(&heat(), &schedules, "mine.json").unwrap();
    let failure = measured.compile(&heat(), &[Level::Ptx], Control::default()).unwrap_err();
    let text = failure.to_string();
    assert!(text.contains("threads") && text.contains("mine.json"), "{text}");
}

/// A program at the limit of terms compiles on the stack that a thread has by default.
#[test]
fn deep_expressions_need_no_large_stack() {
    for (terms, fast_math) in
        [("A[-1]", true), ("A[-1]", false), ("K(i)", false), ("W[-1].0", false)]
    {
        let sum = vec![terms; 1500].join(" + ");
        let text = format!(
            "param N\ngrid G = [0..N-1]\nfield A : f32 on G\nconst field K : f32 on G\n\
             boundary K = nearest\nconst field W : vec<2, f32> on G\n\
             boundary W = vec(nearest.1, nearest.0)\n\
             fn f -> A [i in 1..N-2] = {sum}\nsteps 3\n"
        );
        let source = Source::new("deep.stencil", text.as_str());
        let arithmetic = Arithmetic { contract: true, fast_math };
        let session = Session::new(Options { arithmetic, ..options("naive") });
        let compile =
            move || session.compile(&source, &[Level::Stencil], Control::default()).map(drop);
        let thread = thread::Builder::new().stack_size(2 << 20).spawn(compile).unwrap();
        let result = thread.join().unwrap();
        assert!(result.is_ok(), "{terms}: {}", result.unwrap_err());
    }
}

/// A program that the language accepts is a module within the limits of modules.
#[test]
fn modules_and_programs_have_the_same_limits() {
    use stencil_dialects::limits as modules;
    use stencil_frontend::limits as programs;
    assert_eq!(modules::PARAMS, programs::PARAMS);
    assert_eq!(modules::SCALARS, programs::SCALARS);
    assert_eq!(modules::FIELDS, programs::FIELDS);
    assert_eq!(modules::UPDATES, programs::CELL);
    assert_eq!(modules::APPLIES, programs::FUNCTIONS);
    assert_eq!(modules::PIECES, programs::PIECES);
    assert_eq!(modules::ALL_PIECES, programs::ALL_PIECES);
    assert_eq!(modules::READS, programs::READS);
    assert_eq!(modules::CHECKS, programs::CHECKS);
    assert_eq!(modules::RULE_OFFSET, programs::RULE_OFFSET);
    assert_eq!(modules::GRID_END, programs::GRID_END);
    assert_eq!(modules::PIECE_END, programs::PIECE_END);
    assert_eq!(modules::STEPS, programs::STEPS);
}

/// The values at a pause, as inputs of a run with that first step, end with the same bits.
#[test]
fn a_run_goes_on_from_a_pause() {
    let session = Session::new(options("naive"));
    for target in [Target::Reference, SIMULATOR] {
        let executable = session.executable(&heat(), target, Control::default()).unwrap();
        let inputs = arrays(&[("A", Element::F32, &[9, 9])]);
        let request = Request::default;
        let whole = executable.run(&inputs, request(), Control::default()).unwrap();
        let mut seen = Vec::new();
        let mut kept = BTreeMap::new();
        let mut call = |pause: &Pause<'_>| {
            seen.push((pause.step, pause.last));
            if pause.step == 4 {
                let copy = |(name, array): (&String, &Array)| (name.clone(), array.copy().unwrap());
                kept = pause.values.iter().map(copy).collect();
            }
            Ok(())
        };
        let pauses = Pauses { every: vec![NonZeroU64::new(4).unwrap()], call: &mut call };
        let control = Control { pauses: Some(pauses), ..Control::default() };
        let parts = executable.run(&inputs, request(), control).unwrap();
        assert_eq!(seen, [(4, false), (8, false), (9, true)]);
        assert_eq!((parts.steps, &parts.outputs), (9, &whole.outputs));
        let rest = Request { first_step: 4, steps: Some(5), ..request() };
        let rest = executable.run(&kept, rest, Control::default()).unwrap();
        assert_eq!((rest.steps, &rest.outputs), (5, &whole.outputs));
    }
}
