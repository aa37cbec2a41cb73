//! Runs kernels with planted errors, and makes a table of what was found.

use super::{Case, Outcome, bind_sizes, compile, difference, expected, simulate, with_blocks};
use melior::Context;
use std::collections::BTreeMap;
use stencil_dialects::mlir;
use stencil_passes::launch_plan;
use stencil_runtime::array::Array;
use stencil_runtime::bind::Bound;
use stencil_runtime::execute::{self, Control};
use stencil_runtime::plan::Plan;
use stencil_simulator::bands::Overlapping;
use stencil_simulator::mutate::Mutation::{
    self, DropPeer, ForgetEpoch, ShiftEpoch, ShiftFlag, SwapFlags, WeakenSignal, WeakenWait,
};
use stencil_simulator::mutate::Peer::{Signal, Wait};
use stencil_simulator::{Options, Settings, Simulator};

/// Errors of the flag by which a block waits for the tile row above, and of its own.
pub const FLAGS: &[Mutation] = &[
    DropPeer(Signal, 0),
    DropPeer(Wait, 0),
    WeakenSignal(0),
    WeakenWait(0),
    ShiftFlag(Wait, 0, 1),
    ShiftFlag(Wait, 0, -1),
    ShiftFlag(Signal, 0, 1),
    SwapFlags(Wait, 0),
    SwapFlags(Signal, 0),
    ShiftEpoch(Wait, 0, 1),
    ShiftEpoch(Wait, 0, -1),
    ShiftEpoch(Signal, 0, 1),
    ShiftEpoch(Signal, 0, -1),
    ForgetEpoch(Wait, 0),
    ForgetEpoch(Signal, 0),
];

/// Reads from two rows above: two threads of a tile read the tile row above.
pub const FAR: &str = "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\n\
                       fn f -> A [2..N-1, 1..M-2] = 0.5*A'[-2,1] + 0.25*A'[-1,0] + A'[0,-1]\n\
                       steps 1\n";

/// The order in which blocks or bands of launches run.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// Blocks by number.
    Numbers,
    /// Blocks permuted by a seed.
    Blocks(u64),
    /// Launches in bands, permuted by a seed.
    Bands(u64),
}

/// A compiled kernel, and how it is run.
pub struct Subject<'c> {
    pub name: &'c str,
    context: &'c Context,
    /// The gpu level.
    text: String,
    /// Where the text has none.
    plan: Option<Plan>,
    bound: Bound,
    inputs: BTreeMap<String, Array>,
    expected: BTreeMap<String, Array>,
    /// All are tried until one finds something.
    orders: Vec<Order>,
}

impl<'c> Subject<'c> {
    /// A case with a size for each param, and blocks for resident kernels.
    pub fn of_case(
        context: &'c Context,
        name: &'c str,
        case: &Case,
        (sizes, steps): (&[i64], i64),
        blocks: i64,
    ) -> Self {
        let (module, _) = compile(context, case);
        with_blocks(context, &module, blocks);
        let plan = launch_plan::of(context, &module).unwrap_or_else(|error| panic!("{error}"));
        let (bound, inputs) = bind_sizes(&plan, sizes, steps);
        let expected = expected(case, &bound, &inputs);
        let text = module.as_operation().to_string();
        let orders = vec![Order::Numbers];
        Self { name, context, text, plan: None, bound, inputs, expected, orders }
    }

    /// A kernel by hand, with its plan and result.
    pub fn of_text(
        context: &'c Context,
        name: &'c str,
        (text, plan): (&str, Plan),
        (bound, inputs): (Bound, BTreeMap<String, Array>),
        expected: BTreeMap<String, Array>,
    ) -> Self {
        let (text, plan, orders) = (text.to_owned(), Some(plan), vec![Order::Numbers]);
        Self { name, context, text, plan, bound, inputs, expected, orders }
    }

    /// The same in other orders.
    pub fn in_orders(self, orders: &[Order]) -> Self {
        Self { orders: orders.to_vec(), ..self }
    }

    /// What is found with an error planted, or without one: an error of the simulator, a difference
    /// from the oracle, or `clean`.
    pub fn verdict(&self, mutation: Option<Mutation>) -> String {
        let (context, name) = (self.context, self.name);
        let module = mlir::parse_module(context, &self.text, name)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        if let Some(mutation) = mutation {
            let planted = mutation.plant(context, &module);
            let planted = planted.unwrap_or_else(|error| panic!("{mutation:?}: {error}"));
            assert!(planted, "{name}: {mutation:?} has no place");
        }
        mlir::verify(context, &module).unwrap_or_else(|error| panic!("{mutation:?}: {error}"));
        let plan = self.plan.clone().map_or_else(|| launch_plan::of(context, &module), Ok);
        let plan = plan.unwrap_or_else(|error| panic!("{mutation:?}: {error}"));
        let verdicts = self.orders.iter().map(|order| self.judge(self.run(&module, &plan, *order)));
        verdicts.into_iter().find(|verdict| verdict != "clean").unwrap_or("clean".to_owned())
    }

    fn run(
        &self,
        module: &melior::ir::Module,
        plan: &Plan,
        order: Order,
    ) -> Result<BTreeMap<String, Array>, String> {
        // A mutant that does not end is found soon.
        let settings = Settings { instruction_limit: 1 << 20, ..Settings::default() };
        let whole = |seed| {
            let settings = Settings { seed, ..settings.clone() };
            let options = Options { settings, ..Options::default() };
            let outcome = simulate(module, plan, &self.bound, &self.inputs, options);
            outcome.map(|Outcome { outputs, .. }| outputs)
        };
        match order {
            Order::Numbers => whole(None),
            Order::Blocks(seed) => whole(Some(seed)),
            Order::Bands(seed) => {
                // A band writes its own cells alone.
                let settings = Settings { poison_outputs: false, workers: 1, ..settings };
                let options = Options { settings, ..Options::default() };
                let simulator =
                    Simulator::new(module, options).map_err(|error| error.to_string())?;
                let mut target = Overlapping::new(simulator, plan, 0, seed);
                let control = &mut Control::default();
                execute::run(plan, &self.bound, &self.inputs, &mut target, control)
                    .map(|outcome| outcome.outputs)
                    .map_err(|error| error.to_string())
            }
        }
    }

    fn judge(&self, result: Result<BTreeMap<String, Array>, String>) -> String {
        match result {
            Err(error) => {
                let line = error.lines().next().unwrap_or_default();
                let what = line.split_once(": ").map_or(line, |(_, rest)| rest);
                format!("error: {}", what.split(" in kernel").next().unwrap_or(what))
            }
            Ok(outputs) => match difference(&outputs, &self.expected) {
                Some(difference) => {
                    format!("differs: {}", difference.split(" (first").next().unwrap_or_default())
                }
                None => "clean".to_owned(),
            },
        }
    }
}

/// Kernels, planted errors and verdicts.
#[derive(Default)]
pub struct Table(pub String);

impl Table {
    /// Nothing is found in the kernel as it is, and something in each of its mutants.
    pub fn add(&mut self, subject: &Subject, mutations: &[Mutation]) {
        let whole = subject.verdict(None);
        assert_eq!(whole, "clean", "{} without an error", subject.name);
        self.row(subject, "nothing", &whole);
        let mut left: Vec<&Mutation> = Vec::new();
        for mutation in mutations {
            let verdict = subject.verdict(Some(*mutation));
            self.row(subject, &format!("{mutation:?}"), &verdict);
            left.extend((verdict == "clean").then_some(mutation));
        }
        assert!(left.is_empty(), "{} with {left:?}: nothing is found", subject.name);
    }

    /// These change the text, but never a result, for the reason beside each.
    pub fn add_equal(&mut self, subject: &Subject, mutations: &[(Mutation, &str)]) {
        for (mutation, reason) in mutations {
            let verdict = subject.verdict(Some(*mutation));
            assert_eq!(verdict, "clean", "{}: {mutation:?}", subject.name);
            self.row(subject, &format!("{mutation:?}"), &format!("equal: {reason}"));
        }
    }

    fn row(&mut self, subject: &Subject, planted: &str, verdict: &str) {
        self.0 += &format!("{:<10} {planted:<28} {verdict}\n", subject.name);
    }
}
