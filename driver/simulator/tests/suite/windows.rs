//! Runs out of core: the bits are the oracle's, and errors in halos and copies are found.

use crate::common::{Case, bind, compile, difference, expected};
use crate::devices::shorten;
use std::ops::Range;
use std::time::Duration;
use stencil_runtime::bind::{Bound, BufferId};
use stencil_runtime::execute::{Control, Layout, Slots, Strips, TargetError, Times};
use stencil_runtime::launch::Launch;
use stencil_runtime::plan::Plan;
use stencil_runtime::windows::{DeviceMemory, Held, run_on, windows_of};
use stencil_simulator::{Options, Simulator};

/// An error in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// None.
    Nothing,
    /// The plan has reaches that are a cell too short at one end.
    ShortReach,
    /// A copy to the device is a row too short, at its start or at its end.
    ShortLoad { start: bool },
    /// A copy to the device is left out.
    NoLoad,
    /// A slot holds rows of another window.
    Stale,
    /// A copy back is left out.
    NoStore,
    /// Copies back have a row too many, of the window before.
    LongStores,
}

/// A device with an error in one of its copies.
struct Faulty<'t> {
    held: Held<'t>,
    fault: Fault,
    /// Bytes of a row of all fields.
    row: usize,
    /// The copies so far, to the device and back.
    loads: usize,
    stores: usize,
    /// The last copy to the device that began at another row.
    before: Option<(usize, Range<usize>)>,
    /// Whether the error was made.
    done: bool,
}

/// The first copy that may be wrong.
const WRONG: usize = 3;

impl Faulty<'_> {
    fn is_due(&self, fault: Fault, copies: usize) -> bool {
        !self.done && self.fault == fault && copies > WRONG
    }
}

impl Slots for Faulty<'_> {
    fn open(&mut self, bound: &Bound, layout: &Layout) -> Result<(), TargetError> {
        self.held.open(bound, layout)
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        self.held.upload(buffer, bytes)
    }

    fn host(&mut self, host: usize) -> Result<&mut [u8], TargetError> {
        self.held.host(host)
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        self.held.begin()
    }

    fn assign(
        &mut self,
        slot: usize,
        buffer: BufferId,
        bytes: Range<usize>,
    ) -> Result<(), TargetError> {
        self.held.assign(slot, buffer, bytes)
    }

    fn load(&mut self, slot: usize, host: usize, bytes: Range<usize>) -> Result<(), TargetError> {
        self.loads += 1;
        for start in [false, true] {
            if self.is_due(Fault::ShortLoad { start }, self.loads) {
                self.done = true;
                let Range { start: first, end } = bytes;
                let short = if start { first + self.row..end } else { first..end - self.row };
                return self.held.load(slot, host, short);
            }
        }
        if self.is_due(Fault::NoLoad, self.loads) {
            self.done = true;
            return Ok(());
        }
        let before = self.before.clone().filter(|(other, before)| {
            *other == host && before.start != bytes.start && before.len() >= bytes.len()
        });
        if let (Some((_, before)), true) = (&before, self.is_due(Fault::Stale, self.loads)) {
            self.done = true;
            let own = self.held.host(host)?[bytes.clone()].to_vec();
            self.held.host(host)?.copy_within(before.start..before.start + own.len(), bytes.start);
            self.held.load(slot, host, bytes.clone())?;
            self.held.host(host)?[bytes].copy_from_slice(&own);
            return Ok(());
        }
        if host == 0 {
            self.before = Some((host, bytes.clone()));
        }
        self.held.load(slot, host, bytes)
    }

    fn duplicate(&mut self, from: usize, to: usize, strips: &Strips) -> Result<(), TargetError> {
        self.held.duplicate(from, to, strips)
    }

    fn enter(&mut self, slots: &[usize]) -> Result<(), TargetError> {
        self.held.enter(slots)
    }

    fn scramble(&mut self, buffer: BufferId, runs: &[Range<usize>]) -> Result<(), TargetError> {
        self.held.scramble(buffer, runs)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        self.held.launch(launch)
    }

    fn leave(&mut self) -> Result<(), TargetError> {
        self.held.leave()
    }

    fn store(&mut self, slot: usize, host: usize, bytes: Range<usize>) -> Result<(), TargetError> {
        self.stores += 1;
        if self.is_due(Fault::NoStore, self.stores) {
            self.done = true;
            return Ok(());
        }
        if bytes.start > 0 && self.fault == Fault::LongStores {
            self.done = true;
            return self.held.store(slot, host, bytes.start - self.row..bytes.end);
        }
        self.held.store(slot, host, bytes)
    }

    fn note_times(&mut self) {
        self.held.note_times();
    }

    fn times(&mut self) -> Result<Times, TargetError> {
        self.held.times()
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        self.held.finish()
    }
}

/// What goes wrong in a run in at least so many windows; none where nothing does.
fn found(case: &Case, (size, steps): (i64, i64), windows: usize, fault: Fault) -> Option<String> {
    let context = stencil_dialects::context().unwrap();
    let (module, mut plan): (_, Plan) = compile(&context, case);
    if fault == Fault::ShortReach {
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
    let shape = &bound.buffers[0].shape;
    let mut device = Faulty {
        held: Held::new(&mut simulator),
        fault,
        row: bound.buffers[0].bytes() / shape[0],
        loads: 0,
        stores: 0,
        before: None,
        done: false,
    };
    let run = (&plan, &bound, &inputs);
    let ran = run_on(run, &mut device, memory, (None, &mut Control::default()));
    let made = matches!(fault, Fault::Nothing | Fault::ShortReach) || device.done;
    assert!(made, "{case:?}: {fault:?} is not made");
    match ran {
        Ok((outcome, _)) => difference(&outcome.outputs, &expected(case, &bound, &inputs)),
        Err(error) => Some(error.to_string()),
    }
}

fn agrees(case: &Case, run: (i64, i64), windows: usize) {
    assert_eq!(found(case, run, windows, Fault::Nothing), None, "{case:?}");
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

/// `T` is a result that nobody writes: it lies on the device whole.
#[test]
fn a_result_that_is_read_anywhere_runs() {
    let text = "param N\nparam M\ngrid G = [0..N-1, 0..M-1]\nfield A : f32 on G\n\
                field T : f32 on G\nfn f -> A [i in 1..N-2, j in 1..M-2] = \
                0.5 * A[-1, 0] + 0.25 * A[1, 0] + T(N-1-i, j)\nsteps 6\n";
    agrees(&Case::block(text, &[4, 16], 1), (61, 6), 3);
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

/// Each planted error gives a wrong result, or the simulator sees that a cell is missing.
#[test]
fn errors_in_copies_and_halos_are_found() {
    let cases = [
        (Case::block("heat2d", &[4, 16], 2), (61, 12)),
        (Case::stream("heat2d", &[8, 112], 2), (61, 12)),
        (Case::stream("fdtd2d", &[8, 112], 2), (61, 6)),
    ];
    for (case, run) in &cases {
        for fault in [
            Fault::ShortReach,
            Fault::ShortLoad { start: true },
            Fault::ShortLoad { start: false },
            Fault::NoLoad,
            Fault::Stale,
            Fault::NoStore,
            Fault::LongStores,
        ] {
            let found = found(case, *run, 3, fault);
            assert!(found.is_some(), "{case:?}: {fault:?} is not found");
        }
    }
}
