//! A kernel by hand with its plan, to be run as it is.

use super::{Outcome, bind};
use stencil_dialects::mlir;
use stencil_passes::pipeline_text;
use stencil_passes::runner::Runner;
use stencil_runtime::array::DataRef;
use stencil_runtime::device::{self, Device};
use stencil_runtime::execute::{self, Control};
use stencil_runtime::plan::Plan;
use stencil_simulator::error::SimulationError;
use stencil_simulator::{Counts, Options, Settings, Simulator, simulation_error};

/// A kernel of `blocks` times `threads` threads over `A` (read), `B` (written) and `F` (flags), of
/// `N` cells each; `shared` declares workgroup buffers.
pub struct Kernel<'k> {
    pub threads: u32,
    pub blocks: u32,
    pub cells: i64,
    pub shared: &'k str,
    pub body: &'k str,
    pub narrow: bool,
    /// Passes that run on the kernel before it does.
    pub passes: &'k str,
    /// The device, an H200 by default.
    pub device: &'static Device,
}

impl<'k> Kernel<'k> {
    pub fn new(threads: u32, body: &'k str) -> Self {
        let cells = i64::from(threads);
        let (shared, passes, device) = ("", "", &device::H200);
        Self { threads, blocks: 1, cells, shared, body, narrow: false, passes, device }
    }

    pub fn text(&self) -> String {
        let shared = if self.shared.is_empty() {
            String::new()
        } else {
            format!("workgroup({})", self.shared)
        };
        format!(
            r#"module @hand attributes {{gpu.container_module, tiled.index_width = {} : i64,
  stencil.target = {{arch = "{}", device = "{}", contract = false, fast_math = false}}}} {{
gpu.module @kernels {{
gpu.func @k(%a: memref<f32> {{tiled.binding = "read", tiled.name = "A"}}, %b: memref<f32> {{tiled.binding = "write", tiled.name = "B"}},
  %f: memref<i32> {{tiled.binding = "read_write", tiled.name = "F"}}, %N: index {{tiled.binding = "param", tiled.name = "N"}}) {shared} kernel
  attributes {{known_block_size = array<i32: {}, 1, 1>, tiled.grid = affine_map<()[n] -> ({})>, tiled.per_thread = array<i64: 1>,
              tiled.steps = 1 : i64, tiled.strategy = "hand", tiled.tile = array<i64: 1>}} {{
%A = memref.reinterpret_cast %a to offset: [0], sizes: [%N], strides: [1] : memref<f32> to memref<?xf32, strided<[1]>>
%B = memref.reinterpret_cast %b to offset: [0], sizes: [%N], strides: [1] : memref<f32> to memref<?xf32, strided<[1]>>
%F = memref.reinterpret_cast %f to offset: [0], sizes: [%N], strides: [1] : memref<i32> to memref<?xi32, strided<[1]>>
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%one = arith.constant 1 : i32
%w = arith.constant 32 : i32
%t = gpu.thread_id x
%bl = gpu.block_id x
%size = arith.constant {} : index
%base = arith.muli %bl, %size : index
%i = arith.addi %base, %t : index
%first = arith.cmpi eq, %t, %c0 : index
{}
gpu.return
}} }} }}"#,
            if self.narrow { 32 } else { 64 },
            self.device.target,
            self.device.name,
            self.threads,
            self.blocks,
            self.threads,
            self.body
        )
    }

    pub fn run(&self) -> Result<Outcome, Box<SimulationError>> {
        self.run_with(Settings::default())
    }

    pub fn run_with(&self, settings: Settings) -> Result<Outcome, Box<SimulationError>> {
        self.run_as(Options { settings, ..Options::default() })
    }

    pub fn run_as(&self, options: Options) -> Result<Outcome, Box<SimulationError>> {
        let context = stencil_dialects::context().unwrap();
        let text = self.text();
        let mut module = mlir::parse_module(&context, &text, "hand.mlir")
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
        let steps = pipeline_text::parse(self.passes).unwrap_or_else(|error| panic!("{error}"));
        let ran = Runner::default().run(&context, &mut module, &steps);
        ran.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let field = |name: &str, element: &str, role: &str| {
            format!(
                r#"{{"name": "{name}", "element": "{element}", "role": "{role}",
                "extents": ["N"], "value": [{{"buffer": "{name}"}}]}}"#
            )
        };
        let buffer = |name: &str, element: &str, start: &str| {
            format!(
                r#"{{"name": "{name}", "kind": "field", "element": "{element}",
                "extents": ["N"], "start": {start}}}"#
            )
        };
        let plan = format!(
            r#"{{"format": 2, "program": "hand",
            "target": {{"arch": "sim", "contract": false, "fast_math": false}},
            "params": ["N"], "constants": {{}}, "scalars": [], "fields": [{}, {}, {}],
            "buffers": [{}, {}, {}], "steps": "1", "checks": [], "index_width": {},
            "kernels": [{{"name": "k", "block": [{}, 1, 1], "static_shared": 0,
            "dynamic_shared": 0}}],
            "schedule": [{{"launch": {{"kernel": "k", "grid": ["{}", "1", "1"], "steps": 1,
            "arguments": [{{"read": "A"}}, {{"write": "B"}}, {{"read_write": "F"}},
            {{"param": "N"}}]}}}}],
            "settings": {{"strategy": "hand", "tile": [1], "pyramid_height": 1,
            "per_thread": [1]}}}}"#,
            field("A", "f32", "const"),
            field("B", "f32", "state"),
            field("F", "i32", "temp"),
            buffer("A", "f32", r#"{"input": "A"}"#),
            buffer("B", "f32", r#"{"input": "B"}"#),
            buffer("F", "i32", r#""zeros""#),
            if self.narrow { 32 } else { 64 },
            self.threads,
            self.blocks
        );
        let plan = Plan::from_json(&plan, "hand.plan.json").unwrap();
        let (bound, inputs) = bind(&plan, self.cells, 1);
        let mut simulator =
            Simulator::new(&module, options).unwrap_or_else(|error| panic!("{error}"));
        match execute::run(&plan, &bound, &inputs, &mut simulator, &mut Control::default()) {
            Ok(outcome) => Ok(Outcome { outputs: outcome.outputs, report: simulator.report() }),
            Err(error) => {
                Err(Box::new(simulation_error(&error).unwrap_or_else(|| panic!("{error}")).clone()))
            }
        }
    }

    pub fn counts(&self) -> Counts {
        self.run().unwrap_or_else(|error| panic!("{error}")).report.total()
    }

    pub fn result(&self) -> Vec<f32> {
        let outcome = self.run().unwrap_or_else(|error| panic!("{error}"));
        let DataRef::F32(cells) = outcome.outputs["B"].data() else { panic!("B is f32") };
        cells.to_vec()
    }

    pub fn error(&self) -> SimulationError {
        match self.run() {
            Ok(outcome) => panic!("no error; {}", outcome.report),
            Err(error) => *error,
        }
    }
}
