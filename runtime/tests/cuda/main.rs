//! The CUDA target on a driver made for these tests (`driver.c`), which is built here and found in
//! the place of `libcuda.so`. It needs no device and counts every object.

#![cfg(feature = "cuda")]

mod driver;
mod plans;

use driver::{count, here, on_driver};
use std::collections::BTreeMap;
use stencil_runtime::array::{Array, Data, Element};
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::cuda::{Cuda, CudaError, GraphSettings, Program};
use stencil_runtime::execute::{Control, Taken, Target, launch_all, run, upload};
use stencil_runtime::launch::{Action, Launches};
use stencil_runtime::plan::Plan;

const CELLS: i64 = 700;

fn plan() -> (Plan, Vec<u8>) {
    let plan = Plan::load(&here("data/smear.plan.json")).unwrap();
    (plan, std::fs::read(here("data/smear.ptx")).unwrap())
}

fn bound(plan: &Plan, steps: i64) -> Bound {
    let sizes = [("N".to_string(), CELLS)].into();
    bind(plan, &Request { sizes, steps: Some(steps), ..Request::default() }).unwrap()
}

fn inputs(seed: u64) -> BTreeMap<String, Array> {
    let array = Array::noise(Element::F32, &[CELLS as usize], seed).unwrap();
    BTreeMap::from([("A".to_string(), array)])
}

/// The recipe at the head of `smear.ptx`.
fn wanted(seed: u64, steps: i64) -> Array {
    let (_, Data::F32(mut a)) = inputs(seed)["A"].clone().into_parts() else {
        panic!("wrong type")
    };
    for step in 0..steps {
        let old = a.clone();
        for i in 1..old.len() - 1 {
            let sum = (old[i - 1] - old[i]) + (old[i + 1] - old[i]);
            a[i] = (old[i] + 0.25 * sum) + step as f32;
        }
    }
    Array::new(vec![a.len()], Data::F32(a)).unwrap()
}

fn loaded(cuda: &Cuda) -> Program {
    let (plan, code) = plan();
    cuda.load(&plan, &code).unwrap()
}

fn result(program: &mut Program, seed: u64, steps: i64) -> Array {
    let (plan, _) = plan();
    let bound = bound(&plan, steps);
    let outcome = run(&plan, &bound, &inputs(seed), program, &mut Control::default()).unwrap();
    assert!(outcome.launched.elapsed.is_some());
    outcome.outputs["A"].clone()
}

#[test]
fn a_run_gives_the_result_and_leaves_nothing() {
    let log = on_driver("a_run_gives_the_result_and_leaves_nothing", &[], || {
        let cuda = Cuda::open(0).unwrap();
        let facts = cuda.facts();
        assert_eq!(
            (&*facts.name, &*facts.architecture, &*facts.cuda),
            ("Fake GPU", "sm_90", "13.0")
        );
        let mut program = loaded(&cuda);
        assert_eq!(program.kernels()[0].blocks_per_multiprocessor, 2);
        assert_eq!(result(&mut program, 1, 7), wanted(1, 7));
        // The device closes with the last that uses it.
        drop(cuda);
        assert_eq!(result(&mut program, 2, 4), wanted(2, 4));
    });
    let Some(log) = log else { return };
    assert_eq!(count(&log, "smear 0"), 11);
    assert_eq!(count(&log, "cuMemAlloc_v2 0"), count(&log, "cuMemFree_v2 0"));
    assert_eq!(count(&log, "cuOccupancyMaxActiveBlocksPerMultiprocessor 0"), 1);
    assert_eq!(log.last().unwrap(), "cuDevicePrimaryCtxRelease_v2 0");
}

#[test]
fn graphs_give_the_same() {
    let log = on_driver("graphs_give_the_same", &[], || {
        let cuda = Cuda::open(0).unwrap();
        let mut program = loaded(&cuda);
        program.use_graphs(GraphSettings { chunk: 10, ..GraphSettings::default() }).unwrap();
        for steps in [57, 0, 60, 3] {
            assert_eq!(result(&mut program, 3, steps), wanted(3, steps));
        }
    });
    let Some(log) = log else { return };
    assert_eq!(count(&log, "cuLaunchKernelEx 0"), 0);
    // Graphs of 10, 7, 0 and 3 launches: those of 10 are made once.
    assert_eq!(count(&log, "cuGraphCreate 0"), 4);
    assert_eq!(count(&log, "cuGraphLaunch 0"), 6 + 1 + 6 + 1);
}

#[test]
fn saved_buffers_come_back() {
    on_driver("saved_buffers_come_back", &[], || {
        let cuda = Cuda::open(0).unwrap();
        let (mut program, (plan, _)) = (loaded(&cuda), plan());
        let bound = bound(&plan, 5);
        program.allocate(&bound).unwrap();
        upload(&plan, &bound, &inputs(1), &mut program).unwrap();
        program.save().unwrap();
        for _ in 0..2 {
            let launched =
                launch_all(&plan, &bound, &inputs(1), &mut program, &mut Control::default())
                    .unwrap();
            let mut found = Array::zeros(Element::F32, &[CELLS as usize]).unwrap();
            program.download(launched.current[0], 0, found.bytes_mut()).unwrap();
            assert_eq!(found, wanted(1, 5));
            program.restore().unwrap();
        }
    });
}

#[test]
fn two_devices_take_turns_in_one_thread() {
    let settings = [("FAKE_CUDA_DEVICES", "2")];
    let log = on_driver("two_devices_take_turns_in_one_thread", &settings, || {
        let (plan, _) = plan();
        let devices = [Cuda::open(0).unwrap(), Cuda::open(1).unwrap()];
        assert_ne!(devices[0].facts().uuid, devices[1].facts().uuid);
        for graphs in [false, true] {
            let mut programs: Vec<_> = devices.iter().map(loaded).collect();
            let bound = bound(&plan, 30);
            for (seed, program) in (1..).zip(&mut programs) {
                if graphs {
                    program.use_graphs(GraphSettings { chunk: 4, cut_all: false }).unwrap();
                }
                program.allocate(&bound).unwrap();
                upload(&plan, &bound, &inputs(seed), program).unwrap();
            }
            programs.iter_mut().for_each(|program| program.begin().unwrap());
            let mut launches = Launches::new(&plan, &bound).unwrap();
            for action in launches.by_ref() {
                let Action::Launch(launch) = action else { panic!("{action:?}") };
                programs.iter_mut().for_each(|program| program.launch(&launch).unwrap());
            }
            let mut found = Array::zeros(Element::F32, &[CELLS as usize]).unwrap();
            for (seed, program) in (1..).zip(&mut programs) {
                assert!(program.finish().unwrap().is_some());
                program.download(launches.current()[0], 0, found.bytes_mut()).unwrap();
                assert_eq!(found, wanted(seed, 30));
            }
        }
    });
    let Some(log) = log else { return };
    assert_eq!((count(&log, "smear 0"), count(&log, "smear 1")), (60, 60));
}

#[test]
fn programs_run_in_streams_and_threads_of_their_own() {
    let settings = [("FAKE_CUDA_DEVICES", "2")];
    let log = on_driver("programs_run_in_streams_and_threads_of_their_own", &settings, || {
        std::thread::scope(|scope| {
            for seed in 1..=4 {
                let cuda = Cuda::open((seed % 2) as i32).unwrap();
                let mut program = loaded(&cuda);
                scope.spawn(move || {
                    let steps = 20 + seed as i64;
                    assert_eq!(result(&mut program, seed, steps), wanted(seed, steps));
                });
            }
        });
    });
    let Some(log) = log else { return };
    assert_eq!((count(&log, "cuStreamCreate 0"), count(&log, "cuStreamCreate 1")), (2, 2));
    assert_eq!((count(&log, "smear 0"), count(&log, "smear 1")), (22 + 24, 21 + 23));
}

/// The error of a run on device 1, on which a call fails.
fn failing(test: &str, fail: &str, wanted: &str) {
    let settings = [("FAKE_CUDA_DEVICES", "2"), ("FAKE_CUDA_FAIL", fail)];
    on_driver(test, &settings, || {
        let (plan, code) = plan();
        let bound = bound(&plan, 3);
        for ordinal in 0..2 {
            let run = || -> Result<(), Box<dyn std::error::Error>> {
                let mut program = Cuda::open(ordinal)?.load(&plan, &code)?;
                run(&plan, &bound, &inputs(1), &mut program, &mut Control::default())?;
                Ok(())
            };
            match (ordinal, run()) {
                (0, found) => found.unwrap(),
                (_, found) => assert_eq!(found.unwrap_err().to_string(), wanted),
            }
        }
    });
}

#[test]
fn a_failed_copy_names_call_and_device() {
    failing(
        "a_failed_copy_names_call_and_device",
        "cuMemcpyHtoDAsync_v2 1 719",
        "cuMemcpyHtoDAsync failed on Fake GPU (device 1): FAKE_ERROR_719 (as planned)",
    );
}

#[test]
fn a_refused_launch_names_kernel_call_and_device() {
    failing(
        "a_refused_launch_names_kernel_call_and_device",
        "cuLaunchKernelEx 1 701",
        "kernel `smear` can't be launched on Fake GPU (device 1) with [3, 1, 1] blocks of \
         [256, 1, 1] threads: FAKE_ERROR_701 (as planned) [cuLaunchKernelEx]",
    );
}

#[test]
fn a_kernel_that_fails_is_named_with_its_device() {
    failing(
        "a_kernel_that_fails_is_named_with_its_device",
        "smear 1 700",
        "kernel `smear` failed on Fake GPU (device 1): FAKE_ERROR_700 (as planned) \
         [cuStreamSynchronize]; compute-sanitizer finds the place",
    );
}

#[test]
fn objects_that_were_made_go_when_a_later_one_fails() {
    failing(
        "objects_that_were_made_go_when_a_later_one_fails",
        "cuEventCreate 1 999",
        "cuEventCreate failed on Fake GPU (device 1): FAKE_ERROR_999 (as planned)",
    );
}

#[test]
fn too_little_memory_is_told() {
    let settings = [("FAKE_CUDA_MEMORY", "5000")];
    on_driver("too_little_memory_is_told", &settings, || {
        let (plan, _) = plan();
        let mut program = loaded(&Cuda::open(0).unwrap());
        let error = program.allocate(&bound(&plan, 1)).unwrap_err().to_string();
        assert_eq!(
            error,
            "out of memory on Fake GPU (device 0): 5600 bytes are wanted, 5000 of 5000 are free; \
             use smaller sizes"
        );
    });
}

#[test]
fn devices_and_drivers_that_are_missing_are_told() {
    let open = || Cuda::open(0).map(drop);
    on_driver(
        "devices_and_drivers_that_are_missing_are_told",
        &[("FAKE_CUDA_DEVICES", "0")],
        || {
            assert_eq!(open(), Err(CudaError::NoDevice { ordinal: 0, count: 0 }));
        },
    );
}

#[test]
fn an_old_driver_is_told() {
    on_driver("an_old_driver_is_told", &[("FAKE_CUDA_VERSION", "12040")], || {
        let error = Cuda::open(0).map(drop).unwrap_err().to_string();
        assert_eq!(
            error,
            "the CUDA driver knows CUDA 12.4, 12.8 or later is needed: update NVIDIA's driver"
        );
    });
}

/// A plan with three buffers that go round, flags, a loop that ends by a value, and a snapshot.
const WAVE: &str = r#"{
    "format": 2, "program": "wave",
    "target": {"arch": "sm_90", "contract": false, "fast_math": false},
    "params": ["N"], "constants": {}, "scalars": [],
    "fields": [{"name": "A", "element": "f32", "role": "state", "extents": ["N"],
                "value": [{"buffer": "old"}]}],
    "buffers": [
        {"name": "older", "kind": "field", "element": "f32", "extents": ["N"],
         "start": {"input": "A"}},
        {"name": "old", "kind": "field", "element": "f32", "extents": ["N"],
         "start": {"input": "A"}},
        {"name": "new", "kind": "field", "element": "f32", "extents": ["N"],
         "start": {"input": "A"}},
        {"name": "flags", "kind": "flags", "element": "i32", "extents": ["N ceildiv 256"],
         "start": "zeros"},
        {"name": "largest", "kind": "reduction", "element": "f32", "extents": ["1"],
         "start": "zeros"}],
    "steps": "10", "checks": [], "index_width": 32,
    "kernels": [{"name": "wave", "block": [256, 1, 1], "static_shared": 0, "dynamic_shared": 0}],
    "schedule": [
        {"until": {"reduction": "largest", "is": "at_most", "limit": {"value": 0.25}, "every": 3,
                   "most": "steps", "body": [
            {"launch": {"kernel": "wave", "grid": ["N ceildiv 256", "1", "1"], "steps": 1,
                        "arguments": [{"read": "older"}, {"read": "old"}, {"write": "new"},
                                      {"read_write": "flags"}, {"read_write": "largest"},
                                      {"param": "N"}, "epoch"],
                        "rotate": [["older", "old", "new"]], "cooperative": true, "epochs": 2}},
            {"snapshot": {"field": "A"}}]}}],
    "settings": {"strategy": "hand", "tile": [256], "pyramid_height": 1, "per_thread": [1]}
}"#;

const WAVE_CODE: &str = ".version 8.0 .visible .entry wave(.param .u64 a, .param .u64 b, \
    .param .u64 c, .param .u64 d, .param .u64 e, .param .u32 f, .param .u32 g) { ret; }";

#[test]
fn rotations_flags_and_loops_that_end_by_a_value() {
    let test = "rotations_flags_and_loops_that_end_by_a_value";
    let log = on_driver(test, &[], || {
        let plan = Plan::from_json(WAVE, "wave").unwrap();
        let cuda = Cuda::open(0).unwrap();
        // A step multiplies the largest cell by about 0.81: it is below a quarter after 7 steps,
        // and compared after 6 and 9.
        let (_, Data::F32(start)) = inputs(1)["A"].clone().into_parts() else {
            panic!("wrong type")
        };
        let mut states = vec![start.clone(), start];
        for step in 0..9 {
            let (older, old) = (&states[step], &states[step + 1]);
            states.push(old.iter().zip(older).map(|(x, y)| 0.5 * x + 0.25 * y).collect());
        }
        for graphs in [false, true] {
            let mut program = cuda.load(&plan, WAVE_CODE.as_bytes()).unwrap();
            if graphs {
                program.use_graphs(GraphSettings { chunk: 2, cut_all: false }).unwrap();
            }
            let mut taken = Vec::new();
            let mut take = |found: Taken| taken.push((found.step, found.value));
            let mut control = Control { snapshot: Some(&mut take), ..Control::default() };
            let bound = bound(&plan, 100);
            let outcome = run(&plan, &bound, &inputs(1), &mut program, &mut control).unwrap();
            assert_eq!((outcome.launched.steps, outcome.launched.iterations[0].met), (9, true));
            let array = |cells: &Vec<f32>| Array::new(vec![cells.len()], Data::F32(cells.clone()));
            assert_eq!(outcome.outputs["A"], array(&states[10]).unwrap());
            assert_eq!(taken.len(), 9);
            for (step, value) in taken {
                assert_eq!(value, array(&states[step as usize + 1]).unwrap());
            }
        }
    });
    let Some(log) = log else { return };
    assert_eq!(count(&log, "wave 0"), 18);
}

#[test]
fn blocks_that_wait_for_each_other_must_fit_at_once() {
    on_driver("blocks_that_wait_for_each_other_must_fit_at_once", &[], || {
        let plan = Plan::from_json(WAVE, "wave").unwrap();
        let sizes = [("N".to_string(), 256 * 9)].into();
        let bound = bind(&plan, &Request { sizes, ..Request::default() }).unwrap();
        let inputs = [("A".to_string(), Array::zeros(Element::F32, &[256 * 9]).unwrap())].into();
        let mut program = Cuda::open(0).unwrap().load(&plan, WAVE_CODE.as_bytes()).unwrap();
        let found = run(&plan, &bound, &inputs, &mut program, &mut Control::default());
        assert_eq!(
            found.unwrap_err().to_string(),
            "the 9 blocks of kernel `wave` wait for each other, Fake GPU (device 0) runs at most \
             8 at once; use smaller sizes, or compile the program for this device"
        );
    });
}
