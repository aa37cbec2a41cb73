//! Runs out of core: the bits are the oracle's, and a halo that is too short is found.

use crate::common::{Case, bind, compile, difference, expected};
use crate::devices::shorten;
use stencil_runtime::execute::Control;
use stencil_runtime::plan::Plan;
use stencil_runtime::windows::{DeviceMemory, run, windows_of};
use stencil_simulator::{Options, Simulator};

/// The fault of a run in at least so many windows; none where it has none.
fn found(case: &Case, (size, steps): (i64, i64), windows: usize, short: bool) -> Option<String> {
    let context = stencil_dialects::context().unwrap();
    let (module, mut plan): (_, Plan) = compile(&context, case);
    if short {
        shorten(&mut plan.schedule);
    }
    let (bound, inputs) = bind(&plan, size, steps);
    let all = bound.device_bytes();
    let mut tried = (1..=64).rev().map(|part| DeviceMemory(all * part / 64));
    let fits = |memory: &DeviceMemory| {
        windows_of(&plan, &bound, *memory).is_ok_and(|shape| shape.windows >= windows)
    };
    let Some(memory) = tried.find(fits) else { panic!("{case:?}: never {windows} windows") };
    let mut simulator = Simulator::new(&module, Options::default()).unwrap();
    let run =
        run((&plan, &bound, &inputs), &mut simulator, memory, (None, &mut Control::default()));
    match run {
        Ok((outcome, _)) => difference(&outcome.outputs, &expected(case, &bound, &inputs)),
        Err(error) => Some(error.to_string()),
    }
}

fn agrees(case: &Case, run: (i64, i64), windows: usize) {
    assert_eq!(found(case, run, windows, false), None, "{case:?}");
}

#[test]
fn results_are_those_in_core() {
    for windows in [2, 3] {
        agrees(&Case::block("heat2d", &[4, 16], 2), (61, 12), windows);
        agrees(&Case::naive("wave2d"), (41, 5), windows);
        agrees(&Case::stream("heat2d", &[8, 112], 2), (61, 11), windows);
        agrees(&Case::stream("fdtd2d", &[8, 112], 2), (61, 6), windows);
        agrees(&Case::plane("star3d2r", &[4, 8, 32], 1), (37, 4), windows);
        agrees(&Case::warp("jacobi1d5", 2, 3), (1500, 7), windows);
    }
}

#[test]
fn what_needs_the_whole_grid_is_refused() {
    let refused = |case: &Case| {
        let context = stencil_dialects::context().unwrap();
        let (_, plan): (_, Plan) = compile(&context, case);
        let (bound, _) = bind(&plan, 33, 2);
        windows_of(&plan, &bound, DeviceMemory(1 << 20)).unwrap_err().to_string()
    };
    let text = refused(&Case::wavefront("sor2d", &[8, 8]));
    assert!(text.contains("kernel `sor2d_0` can't run on a part of the grid"), "{text}");
    assert!(text.contains("blocks wait for each other"), "{text}");
    let text = refused(&Case::block("srad", &[8, 16], 1));
    assert!(text.contains("as a reduction does"), "{text}");
    let text = refused(&Case::block("torus3d", &[4, 4, 16], 2));
    assert!(text.contains("periodic"), "{text}");
    let text = refused(&Case::block("conjugate-gradients", &[8, 16], 1));
    assert!(text.contains("leave --device-memory out"), "{text}");
}

#[test]
fn a_limit_without_a_window_is_refused() {
    let context = stencil_dialects::context().unwrap();
    let (_, plan): (_, Plan) = compile(&context, &Case::block("heat2d", &[8, 16], 3));
    let (bound, _) = bind(&plan, 61, 9);
    let text = windows_of(&plan, &bound, DeviceMemory(1000)).unwrap_err().to_string();
    assert!(text.starts_with("--device-memory 1000 bytes is too small: the smallest"), "{text}");
}

/// A halo that is a row short gives a wrong result, or the simulator sees that a cell is missing.
#[test]
fn a_halo_that_is_too_short_is_found() {
    for case in [Case::block("heat2d", &[4, 16], 2), Case::stream("heat2d", &[8, 112], 2)] {
        assert!(found(&case, (61, 12), 3, true).is_some(), "{case:?}");
    }
}
