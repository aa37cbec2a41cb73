//! Tiles and transposed arrays of affine loops on the simulator: the same bits with fewer accesses
//! to global memory, no bank conflict, and no barrier too many.

use std::collections::BTreeMap;
use std::path::Path;
use stencil_compiler::stages::{self, Compilation};
use stencil_compiler::{Config, Control, Options, Source};
use stencil_dialects::mlir;
use stencil_passes::gpu::eliminate_barriers::EliminateBarriers;
use stencil_passes::pass::Pass;
use stencil_runtime::array::{Array, Element};
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::execute;
use stencil_runtime::number::{Number, Numeral};
use stencil_simulator::{Counts, Settings, Simulator, Traffic};

/// Arrays with their shapes, outputs first, and run-time scalars.
pub struct Case {
    pub program: &'static str,
    pub arrays: &'static [(&'static str, &'static [usize])],
    pub scalars: &'static [(&'static str, f32)],
    pub sizes: &'static [(&'static str, i64)],
}

pub const MM: Case = Case {
    program: "mm-f32",
    arrays: &[("C", &[131, 140]), ("A", &[131, 21]), ("B", &[21, 140])],
    scalars: &[("alpha", 1.5), ("beta", 0.25)],
    sizes: &[],
};
const MV: Case = Case {
    program: "mv",
    arrays: &[("x", &[140]), ("A", &[140, 150]), ("y", &[150])],
    scalars: &[],
    sizes: &[],
};
const CONV: Case = Case {
    program: "conv2d",
    arrays: &[("O", &[37, 41]), ("A", &[39, 43]), ("W", &[3, 3])],
    scalars: &[],
    sizes: &[("N", 37), ("M", 41)],
};

/// The outputs' bytes, and the counters.
pub type Ran = Result<(Vec<Vec<u8>>, Counts), String>;

/// Three steps, whose sweeps store rows and columns.
const ADI: Case = Case {
    program: "adi",
    arrays: &[("u", &[96, 96])],
    scalars: &[("r", 0.3)],
    sizes: &[("T", 3)],
};

/// Runs the kernels of a case, whose text may be changed.
fn run(case: &Case, tiles: bool, change: impl FnOnce(String) -> String) -> Ran {
    run_with(case, |config| config.no_nest_tiles = !tiles, change)
}

/// The same with any options.
pub fn run_with(
    case: &Case,
    set: impl FnOnce(&mut Config),
    change: impl FnOnce(String) -> String,
) -> Ran {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite/nests");
    let text = std::fs::read_to_string(folder.join(format!("{}.mlir", case.program))).unwrap();
    let source = Source::new("nest.mlir", text.as_str());
    let mut options = Options::default();
    set(&mut options.config);
    let context = stages::context(&source).unwrap();
    let mut compilation =
        Compilation::new(&context, &source, &options, Control::default()).unwrap();
    compilation.to_gpu().unwrap();
    let plan = compilation.plan().unwrap();
    let changed = change(stages::text(&compilation.module));
    let module = mlir::parse_module(&context, &changed, "changed.mlir").unwrap();
    let arrays: BTreeMap<String, Array> = (1..)
        .zip(case.arrays)
        .map(|(seed, (name, shape))| {
            ((*name).to_owned(), Array::noise(Element::F32, shape, seed).unwrap())
        })
        .collect();
    let shapes = arrays.iter().map(|(name, array)| (name.clone(), array.shape().to_vec()));
    let scalar =
        |(name, value): &(&str, f32)| ((*name).to_owned(), Numeral::from(Number::F32(*value)));
    let request = Request {
        shapes: shapes.collect(),
        sizes: case.sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect(),
        scalars: case.scalars.iter().map(scalar).collect(),
        ..Request::default()
    };
    let bound = bind(&plan, &request).unwrap();
    let settings = Settings { seed: Some(5), ..Settings::default() };
    let options = stencil_simulator::Options { settings, ..stencil_simulator::Options::default() };
    let mut simulator = Simulator::new(&module, options).unwrap();
    let mut control = execute::Control::default();
    let ran = execute::run(&plan, &bound, &arrays, &mut simulator, &mut control);
    let outputs = ran.map_err(|error| error.to_string())?.outputs;
    let bytes = outputs.values().map(|array| array.bytes().to_vec()).collect();
    Ok((bytes, simulator.report().total()))
}

#[test]
fn tiles_load_less_from_global_memory() {
    // How many times fewer sectors at least.
    for (case, times) in [(MM, 3), (MV, 3), (CONV, 4)] {
        let (plain, before) = run(&case, false, |text| text).unwrap();
        let (tiled, after) = run(&case, true, |text| text).unwrap();
        let (before, least) = (before.global_read.moved, after.global_read.moved * times);
        assert_eq!(tiled, plain, "{}", case.program);
        assert!(before >= least, "{}: {before} sectors and {least}", case.program);
        assert!(after.barriers > 0, "{}", case.program);
    }
}

#[test]
fn transposed_arrays_use_their_sectors() {
    for tiles in [true, false] {
        let ran = |transposes: bool| {
            let set = |config: &mut Config| {
                config.no_nest_tiles = !tiles;
                config.transpose_arrays = transposes;
            };
            run_with(&ADI, set, |text| text).unwrap()
        };
        let ((plain, before), (transposed, after)) = (ran(false), ran(true));
        assert_eq!(plain, transposed);
        let part = |of: &Traffic| of.ideal as f64 / of.moved as f64;
        let [stored, kept] = [&before.global_write, &after.global_write].map(part);
        assert!(stored < 0.2 && kept > 0.7, "{stored} {kept}");
        // The transform counts, and its loads use an eighth of their sectors.
        let moved = [&before, &after].map(|of| of.global_read.moved + of.global_write.moved);
        assert!(moved[0] * 2 > moved[1] * if tiles { 8 } else { 3 }, "{moved:?}");
    }
}

#[test]
fn rows_of_copies_have_pads_where_threads_read_columns() {
    let (_, counts) = run(&MV, true, |text| text).unwrap();
    assert!(counts.shared_read.moved > 0);
    assert_eq!(counts.shared_read.moved, counts.shared_read.ideal);
}

#[test]
fn threads_that_only_copy_compute_nothing() {
    // Five blocks of 32 threads that compute, and 150 terms.
    let (_, counts) = run(&MV, true, |text| text).unwrap();
    assert_eq!(counts.flops.add + counts.flops.fma, 5 * 32 * 150);
}

/// Kernels without the barriers that `eliminate-barriers` leaves out.
fn lean(text: &str) -> String {
    let context = stencil_dialects::context().unwrap();
    let mut module = mlir::parse_module(&context, text, "lean.mlir").unwrap();
    EliminateBarriers.run(&context, &mut module).unwrap();
    stages::text(&module)
}

#[test]
fn no_barrier_can_be_left_out() {
    // Of two in a convolution one is needed: it has one tile.
    for (case, some) in [(MM, 4), (MV, 4), (CONV, 1)] {
        let mut texts = String::new();
        run(&case, true, |text| {
            texts = lean(&text);
            texts.clone()
        })
        .unwrap();
        let barriers = texts.matches("gpu.barrier").count();
        assert!(barriers >= some, "{}: {barriers}", case.program);
        for left_out in 0..barriers {
            let without = |text: String| {
                let text = lean(&text);
                let place = text.match_indices("gpu.barrier").nth(left_out).unwrap().0;
                format!("{}{}", &text[..place], &text[place + "gpu.barrier".len()..])
            };
            let outcome = run(&case, true, without);
            assert!(outcome.is_err(), "{}: without barrier {left_out}", case.program);
        }
    }
}
