//! Passes in any order: each works on what the others leave, or refuses it in words.

use melior::Context;
use melior::ir::Module;
use melior::ir::operation::Operation;
use std::collections::BTreeMap;
use stencil_compiler::{Choice, Config, Control, Level, Options, Session, Source};
use stencil_dialects::mlir;
use stencil_passes::pass::{Info, Step};
use stencil_passes::pipeline_text;
use stencil_passes::registry;
use stencil_passes::runner::Runner;

/// Sums over boxes in planes, which `split-sums` cuts where a stream computes them.
const BOX: &str = "grid G = [0..63, 0..63, 0..63]
field A : f32 on G
fn box -> A [1..62, 1..62, 1..62] =
    0.5*A[-1,-1,-1] + 0.4*A[-1,0,0] + 0.3*A[-1,1,1]
    + 0.6*A[0,-1,1] + 0.7*A[0,0,0] + 0.8*A[0,1,-1]
    + 0.9*A[1,-1,0] + 0.2*A[1,0,-1] + 0.1*A[1,1,0]
steps 3";
/// A division by a number, and neighbours without the point.
const PLATE: &str = "param N
grid G = [0..N-1, 0..N-1]
field A : f32 on G
fn plate -> A [1..N-2, 1..N-2] =
    (A[-1,-1] + A[-1,0] + A[-1,1] + A[0,-1] + A[0,1] + A[1,-1] + A[1,0] + A[1,1]) / 8
steps 4";
/// A sweep, a temp field, and a function that reads it at other points.
const MIXED: &str = "param N
grid G = [0..N-1, 0..N-1]
field A : f32 on G
temp field S : f32 on G
fn sum -> S [1..N-1, 1..N-1] = A[0,0] + S'[-1,0] + S'[0,-1] - S'[-1,-1]
fn mean -> A [2..N-3, 2..N-3] = (S[1,1] - S[-2,1] - S[1,-2] + S[-2,-2]) / 9
steps 2";
/// Two fields in one dimension, one of which takes the other's value.
const WAVE: &str = "grid G = [0..511]
field P : f64 on G
field U : f64 on G
fn next -> (P, U) [1..510] = (U[0], 2*U[0] - P[0] + 0.25*(U[-1] + U[1] - 2*U[0]))
steps 5";

const PROGRAMS: [(&str, &str, &str); 4] = [
    ("box", BOX, "stream"),
    ("plate", PLATE, "stream"),
    ("mixed-sweep", MIXED, "naive"),
    ("wave", WAVE, "warp"),
];

/// The text of a program at the levels on which passes of ours work.
fn levels(name: &str, text: &str, strategy: &str) -> Vec<String> {
    let choice = Choice { strategy: Some(strategy.to_owned()), ..Choice::default() };
    let config = Config { choice, no_fuse: true, ..Config::default() };
    let session = Session::new(Options { config, ..Options::default() });
    let levels = [Level::Stencil, Level::Tiled, Level::Gpu, Level::Nvvm];
    let source = Source::new(format!("{name}.stencil"), text);
    let compiled = session.compile(&source, &levels, Control::default()).unwrap();
    let texts = levels.iter().map(|level| compiled.text(*level).unwrap().to_owned());
    texts.collect()
}

/// A pass with the options that keep it from a search among schedules.
fn step(info: &Info, strategy: &str) -> Step {
    let takes_it = info.options.iter().any(|(name, _)| *name == "strategy");
    let options = if takes_it { format!("{{strategy={strategy}}}") } else { String::new() };
    pipeline_text::parse(&format!("{}{options}", info.name)).unwrap().remove(0)
}

/// The modules that passes have made, each once, and what each pass makes of each.
struct States<'c> {
    context: &'c Context,
    steps: Vec<Step>,
    modules: Vec<Module<'c>>,
    numbers: BTreeMap<String, usize>,
    made: BTreeMap<(usize, usize), Option<usize>>,
}

impl<'c> States<'c> {
    fn number(&mut self, module: Module<'c>) -> usize {
        let next = self.modules.len();
        let number = *self.numbers.entry(module.as_operation().to_string()).or_insert(next);
        if number == next {
            self.modules.push(module);
        }
        number
    }

    /// The number of what a pass makes of a module; none where it refuses the module in words.
    fn after(&mut self, number: usize, pass: usize) -> Option<usize> {
        if let Some(made) = self.made.get(&(number, pass)) {
            return *made;
        }
        let module = Operation::clone(&self.modules[number].as_operation());
        let mut module = Module::from_operation(module).unwrap();
        let step = std::slice::from_ref(&self.steps[pass]);
        let made = match Runner::default().run(self.context, &mut module, step) {
            Ok(()) => Some(self.number(module)),
            Err(error) => {
                let before = self.modules[number].as_operation();
                assert!(!error.is_internal(), "{}: {error}\n{before}", step[0].text());
                None
            }
        };
        self.made.insert((number, pass), made);
        made
    }
}

#[test]
fn passes_in_any_order_work_or_refuse_in_words() {
    let context = stencil_dialects::context().unwrap();
    for (name, text, strategy) in PROGRAMS {
        let steps: Vec<Step> = registry::passes().map(|info| step(info, strategy)).collect();
        let passes = 0..steps.len();
        let (modules, numbers, made) = Default::default();
        let mut states = States { context: &context, steps, modules, numbers, made };
        let mut starts = Vec::new();
        for text in levels(name, text, strategy) {
            starts.push(states.number(mlir::parse_module(&context, &text, name).unwrap()));
        }
        // Tile kernels before the passes that split them.
        let tilings = ["tile-wavefront", "tile-overlapped"].into_iter();
        let tilings = tilings.map(|name| registry::passes().position(|info| info.name == name));
        starts.extend(
            tilings.fold(starts.first().copied(), |state, pass| states.after(state?, pass?)),
        );
        for start in starts {
            for (one, other) in
                passes.clone().flat_map(|one| passes.clone().map(move |two| (one, two)))
            {
                let mut word = [one, other, one, other].into_iter();
                word.try_fold(start, |state, pass| states.after(state, pass));
            }
        }
        println!("{name}: {} modules, {} runs", states.modules.len(), states.made.len());
        assert!(states.modules.len() > 10, "{name}: {}", states.modules.len());
    }
}
