//! Compiles a program of the test suite, runs it on the simulator and on the oracle.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod hand;
pub mod plans;
pub mod planted;

use melior::Context;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::{AffineExpr, AffineMap, Module, Type, ValueLike};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use stencil_compiler::stages::{Compilation, check};
use stencil_compiler::{
    Arithmetic, Choice, Config, Control as Hooks, Options as CompileOptions, Source,
};
use stencil_dialects::attribute;
use stencil_dialects::mlir;
use stencil_frontend::oracle;
use stencil_runtime::array::Array;
use stencil_runtime::bind::{Bound, Request};
use stencil_runtime::execute::{self, Control};
use stencil_runtime::input::{self, Source as Input};
use stencil_runtime::plan::Plan;
use stencil_simulator::{Options, Report, Simulator, mark_applies};

/// A program with its schedule.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of a program of the test suite, or the text of one.
    pub program: String,
    pub strategy: String,
    pub tile: Option<Vec<i64>>,
    pub pyramid_height: Option<i64>,
    pub per_thread: Option<Vec<i64>>,
    pub contract: bool,
    /// Passes to the gpu level in place of the compiler's own.
    pub passes: Option<String>,
}

impl Case {
    pub fn naive(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            strategy: "naive".to_owned(),
            tile: None,
            pyramid_height: None,
            per_thread: None,
            contract: false,
            passes: None,
        }
    }

    pub fn block(program: &str, tile: &[i64], pyramid_height: i64) -> Self {
        let case = Self::naive(program);
        Self {
            strategy: "block".to_owned(),
            tile: Some(tile.to_vec()),
            pyramid_height: Some(pyramid_height),
            ..case
        }
    }

    pub fn wavefront(program: &str, tile: &[i64]) -> Self {
        let case = Self::naive(program);
        let (strategy, pyramid_height) = ("wavefront".to_owned(), Some(1));
        Self { strategy, pyramid_height, tile: Some(tile.to_vec()), ..case }
    }

    pub fn strip(program: &str, tile: &[i64]) -> Self {
        Self { strategy: "strip".to_owned(), ..Self::wavefront(program, tile) }
    }

    /// Wavefronts by passes: `between` comes after the one that tiles them. At most so many blocks
    /// run; functions without primed reads are `naive`.
    pub fn combination(program: &str, between: &str, tile: &[i64], blocks: u32) -> Self {
        let shape: Vec<_> = tile.iter().map(i64::to_string).collect();
        let passes = format!(
            "tile-wavefront{{strategy=wavefront tile={}}}{between},\
             tile-overlapped{{strategy=naive}},lower-naive,lower-wavefront{{blocks={blocks}}}",
            shape.join(",")
        );
        Self { passes: Some(passes), ..Self::naive(program) }
    }

    pub fn stream(program: &str, tile: &[i64], pyramid_height: i64) -> Self {
        let case = Self::block(program, tile, pyramid_height);
        Self { strategy: "stream".to_owned(), ..case }
    }

    /// Tiles of planes, with so many cells in a thread's segment.
    pub fn plane(program: &str, tile: &[i64], cells: i64) -> Self {
        let mut per_thread = vec![1; tile.len()];
        per_thread[tile.len() - 1] = cells;
        let case = Self::block(program, tile, 1).per_thread(&per_thread);
        Self { strategy: "plane".to_owned(), ..case }
    }

    pub fn warp(program: &str, cells: i64, pyramid_height: i64) -> Self {
        let case = Self::block(program, &[], pyramid_height).per_thread(&[cells]);
        Self { strategy: "warp".to_owned(), tile: None, ..case }
    }

    pub fn per_thread(self, cells: &[i64]) -> Self {
        Self { per_thread: Some(cells.to_vec()), ..self }
    }

    pub fn source(&self) -> Source {
        if self.program.contains('\n') {
            return Source { name: "case.stencil".to_owned(), text: self.program.clone() };
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../test-suite/programs")
            .join(format!("{}.stencil", self.program));
        let text = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Source { name: format!("{}.stencil", self.program), text }
    }

    pub fn options(&self) -> CompileOptions {
        CompileOptions {
            defines: Vec::new(),
            config: Config {
                choice: Choice {
                    strategy: Some(self.strategy.clone()),
                    tile: self.tile.clone(),
                    pyramid_height: self.pyramid_height,
                    per_thread: self.per_thread.clone(),
                    ..Choice::default()
                },
                ..Config::default()
            },
            arithmetic: Arithmetic { contract: self.contract, fast_math: false },
            passes: self.passes.clone(),
            ..CompileOptions::default()
        }
    }
}

/// The gpu level of a case, with its plan.
pub fn compile<'c>(context: &'c Context, case: &Case) -> (Module<'c>, Plan) {
    let (source, options) = (case.source(), case.options());
    let mut compilation = Compilation::new(context, &source, &options, Hooks::default())
        .unwrap_or_else(|failure| panic!("{failure}"));
    mark_applies(context, &compilation.module);
    compilation.to_gpu().unwrap_or_else(|failure| panic!("{failure}"));
    let plan = compilation.plan().unwrap_or_else(|failure| panic!("{failure}"));
    (compilation.module, plan)
}

/// Lets the resident kernels of a module have so many blocks.
pub fn with_blocks(context: &Context, module: &Module, blocks: i64) {
    for kernel in mlir::walk(mlir::module_op(module)) {
        let grid = mlir::attribute(kernel, "tiled.grid").and_then(attribute::as_map);
        let Some(grid) = grid.filter(|_| mlir::attribute(kernel, "tiled.flags").is_some()) else {
            continue;
        };
        let few = [AffineExpr::constant(context, blocks)];
        let few = AffineMap::new(context, grid.dim_count(), grid.symbol_count(), &few);
        mlir::set_attribute(kernel, "tiled.grid", mlir::map_attribute(few));
        // The loop over tile rows goes on by as many.
        let count = grid.result(0).unwrap_or_else(|error| panic!("{error}")).constant_value();
        let is_index = |op: &mlir::Op| {
            mlir::name(*op) == "arith.constant"
                && mlir::results(*op).iter().any(|value| value.r#type() == Type::index(context))
        };
        for op in mlir::walk(kernel).into_iter().filter(is_index) {
            if mlir::attribute(op, "value").and_then(attribute::as_integer) == Some(count) {
                let blocks = IntegerAttribute::new(Type::index(context), blocks);
                mlir::set_attribute(op, "value", blocks.into());
            }
        }
    }
}

/// Sizes, steps and inputs for a plan: `size` cells in each dimension.
pub fn bind(plan: &Plan, size: i64, steps: i64) -> (Bound, BTreeMap<String, Array>) {
    // Sizes that differ find swapped dimensions.
    let sizes: Vec<_> = (0..plan.params.len()).map(|place| size + 3 * place as i64).collect();
    bind_sizes(plan, &sizes, steps)
}

/// The same with a size for each param.
pub fn bind_sizes(plan: &Plan, sizes: &[i64], steps: i64) -> (Bound, BTreeMap<String, Array>) {
    let sizes = plan.params.iter().cloned().zip(sizes.iter().copied()).collect();
    let request = Request { sizes, steps: Some(steps), ..Request::default() };
    input::prepare(plan, request, &BTreeMap::new(), |place| Some(Input::Random(place as u64 + 7)))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Dimensions of the field that is updated first.
pub fn rank(case: &Case) -> usize {
    let program = check(&case.source(), &CompileOptions::default())
        .unwrap_or_else(|failure| panic!("{failure}"));
    let field = program.functions[0].updates[0];
    program.grids[program.fields[field].grid].region.lower.len()
}

/// The oracle's result.
pub fn expected(
    case: &Case,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
) -> BTreeMap<String, Array> {
    let program = check(&case.source(), &CompileOptions::default())
        .unwrap_or_else(|failure| panic!("{failure}"));
    let sizes = program
        .params
        .iter()
        .filter_map(|(id, param)| Some((id, *bound.sizes.get(&param.name)?)))
        .collect();
    let scalars =
        bound.scalars.iter().map(|(name, value)| (name.clone(), (*value).into())).collect();
    let mut fields = inputs.clone();
    let steps = u64::try_from(bound.steps).unwrap_or(0);
    oracle::run(&program, &sizes, &scalars, steps, &mut fields, &mut |_, _| {
        ControlFlow::Continue(())
    })
    .unwrap_or_else(|error| panic!("{error}"));
    fields
}

/// The result of a run.
pub struct Outcome {
    pub outputs: BTreeMap<String, Array>,
    pub report: Report,
}

/// Runs a module on the simulator.
pub fn simulate(
    module: &Module,
    plan: &Plan,
    bound: &Bound,
    inputs: &BTreeMap<String, Array>,
    options: Options,
) -> Result<Outcome, String> {
    let mut simulator = Simulator::new(module, options).map_err(|error| error.to_string())?;
    let outcome = execute::run(plan, bound, inputs, &mut simulator, &mut Control::default())
        .map_err(|error| error.to_string())?;
    Ok(Outcome { outputs: outcome.outputs, report: simulator.report() })
}

/// The first output that differs from the oracle's, if any.
pub fn difference(
    outputs: &BTreeMap<String, Array>,
    expected: &BTreeMap<String, Array>,
) -> Option<String> {
    outputs.iter().find_map(|(name, array)| {
        let comparison = stencil_runtime::compare::compare(array, expected.get(name)?).ok()?;
        (!comparison.exact()).then(|| format!("{name}: {comparison}"))
    })
}

/// Compiles, simulates and compares.
pub fn check_case(case: &Case, size: i64, steps: i64) -> Report {
    let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
    let (module, plan) = compile(&context, case);
    let (bound, inputs) = bind(&plan, size, steps);
    let outcome = simulate(&module, &plan, &bound, &inputs, Options::default())
        .unwrap_or_else(|error| panic!("{case:?}: {error}"));
    if let Some(difference) = difference(&outcome.outputs, &expected(case, &bound, &inputs)) {
        panic!("{case:?}: {difference}");
    }
    outcome.report
}
