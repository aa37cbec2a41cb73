//! Arrays in constant memory on the simulator: the bits of kernels without it, fewer accesses to
//! global memory, and faults of the module and of the plan that are found.

use std::collections::BTreeMap;
use stencil_compiler::stages::{self, Compilation};
use stencil_compiler::{Control, Options, Source};
use stencil_dialects::mlir;
use stencil_runtime::array::{Array, Element};
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::execute;
use stencil_runtime::plan::{Plan, Start};
use stencil_simulator::{Counts, Simulator};

const CONV: &str = include_str!("../../../../test-suite/nests/conv2d.mlir");

/// The result's bytes and the counters of a convolution, whose module and plan may be changed.
fn run(
    constants: bool,
    change: impl FnOnce(String) -> String,
    damage: impl FnOnce(&mut Plan),
) -> Result<(Vec<u8>, Counts), String> {
    let source = Source::new("conv2d.mlir", CONV);
    let mut options = Options::default();
    options.config.no_place_constants = !constants;
    let context = stages::context(&source).unwrap();
    let mut compilation =
        Compilation::new(&context, &source, &options, Control::default()).unwrap();
    compilation.to_gpu().unwrap();
    let mut plan = compilation.plan().unwrap();
    damage(&mut plan);
    plan.validate().map_err(|error| error.to_string())?;
    let changed = change(stages::text(&compilation.module));
    let module = mlir::parse_module(&context, &changed, "changed.mlir").unwrap();
    let arrays: [(&str, &[usize]); 3] = [("O", &[37, 41]), ("A", &[39, 43]), ("W", &[3, 3])];
    let arrays: BTreeMap<String, Array> = (1..)
        .zip(arrays)
        .map(|(seed, (name, shape))| {
            (name.to_owned(), Array::noise(Element::F32, shape, seed).unwrap())
        })
        .collect();
    let shapes = arrays.iter().map(|(name, array)| (name.clone(), array.shape().to_vec()));
    let sizes = [("N".to_owned(), 37), ("M".to_owned(), 41)];
    let request = Request { shapes: shapes.collect(), sizes: sizes.into(), ..Request::default() };
    let bound = bind(&plan, &request).unwrap();
    let mut simulator = Simulator::new(&module, stencil_simulator::Options::default()).unwrap();
    let mut control = execute::Control::default();
    let ran = execute::run(&plan, &bound, &arrays, &mut simulator, &mut control);
    let outputs = ran.map_err(|error| error.to_string())?.outputs;
    Ok((outputs["O"].bytes().to_vec(), simulator.report().total()))
}

/// The place of the buffer in constant memory.
fn constant(plan: &Plan) -> usize {
    plan.buffers.iter().position(|buffer| buffer.constant.is_some()).unwrap()
}

#[test]
fn constant_memory_gives_the_same_bits_with_fewer_loads() {
    let (on, few) = run(true, |text| text, |_| ()).unwrap();
    let (off, more) = run(false, |text| text, |_| ()).unwrap();
    assert_eq!(on, off);
    assert!(few.global_read.moved < more.global_read.moved);
    assert!(few.shared_read.moved < more.shared_read.moved);
}

#[test]
fn faults_of_a_kernel_that_reads_constant_memory_are_found() {
    let (right, _) = run(true, |text| text, |_| ()).unwrap();
    // Another view of the variable.
    let moved = |offset: i64, strides: &'static str| {
        move |text: String| {
            let cast = "offset: [0], sizes: [3, 3], strides: [3, 1] : memref<9xf32, 4>";
            assert!(text.contains(cast));
            let offset_text = format!("offset: [{offset}]");
            let changed = cast.replace("offset: [0]", &offset_text).replace("[3, 1]", strides);
            let ty = format!("strided<{strides}, offset: {offset}>, 4");
            text.replace(cast, &changed).replace("strided<[3, 1]>, 4", &ty)
        }
    };
    let (other, _) = run(true, moved(0, "[1, 3]"), |_| ()).unwrap();
    assert_ne!(right, other);
    let beyond = run(true, moved(1, "[3, 1]"), |_| ()).unwrap_err();
    assert!(beyond.contains("out of bounds"), "{beyond}");
}

#[test]
fn faults_of_a_plan_with_constant_memory_are_found() {
    let (right, _) = run(true, |text| text, |_| ()).unwrap();
    // The variable of another compile, none, and one that is too large.
    let renamed = |plan: &mut Plan| {
        let place = constant(plan);
        plan.buffers[place].constant = Some("conv2d_0_other".to_owned());
    };
    for found in [
        run(true, |text| text, renamed).unwrap_err(),
        run(true, |text| text, |plan| drop(plan.buffers.pop())).unwrap_err(),
    ] {
        assert!(found.contains("the variable `conv2d_0_constant`"), "{found}");
    }
    let large = |plan: &mut Plan| {
        let place = constant(plan);
        plan.buffers[place].extents[0] = "5462".parse().unwrap();
    };
    let found = run(true, |text| text, large).unwrap_err();
    assert!(found.contains("does not fit in the 65536 bytes of constant memory"), "{found}");
    // A variable that is never filled.
    let empty = |plan: &mut Plan| {
        let place = constant(plan);
        plan.buffers[place].start = Start::Zeros;
    };
    let found = run(true, |text| text, empty).unwrap_err();
    assert!(found.contains("begin with an input"), "{found}");
    assert_eq!(run(true, |text| text, |_| ()).unwrap().0, right);
}
