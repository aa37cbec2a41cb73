//! Runs on a target that keeps bytes.

use super::*;
use crate::array::{Data, DataRef};
use crate::bind::{Request, bind};
use crate::launch::Value;
use crate::launch::tests::bound;
use crate::launch::{Copy, Launch};
use crate::plan::tests::heat;
use crate::plan::{BufferKind, Start};
use crate::watch;
use std::sync::atomic::Ordering;

/// Keeps buffers as bytes. A kernel named `two` adds 2 to every cell of its first argument and
/// writes the sum to its third; `one` adds 1 and writes to its second.
#[derive(Default)]
struct Fake {
    buffers: Vec<Vec<u8>>,
    log: Vec<String>,
    running: bool,
    refuse: Option<&'static str>,
    /// The bytes of the last buffer after a launch.
    leaves: Option<Vec<u8>>,
}

impl Target for Fake {
    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError> {
        self.buffers = bound.buffers.iter().map(|buffer| vec![0; buffer.bytes()]).collect();
        Ok(())
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        self.buffers[buffer.0].copy_from_slice(bytes);
        Ok(())
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        self.buffers[to.0] = self.buffers[from.0].clone();
        Ok(())
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        assert!(!self.running);
        self.running = true;
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        assert!(self.running);
        let name = launch.kernel.name.as_str();
        if self.refuse == Some(name) {
            return Err(format!("launch of `{name}` refused").into());
        }
        let buffer = |place: usize| match launch.arguments[place] {
            Value::Buffer(BufferId(buffer)) => buffer,
            Value::Number(_) => panic!("argument {place} of {name} is no buffer"),
        };
        let (amount, from, to) = match name {
            "two" => (2.0, buffer(0), buffer(2)),
            "one" => (1.0, buffer(0), buffer(1)),
            _ => panic!("unknown kernel"),
        };
        self.log
            .push(format!("{name} at {} from {from} to {to} on {:?}", launch.step, launch.grid));
        assert_ne!(from, to);
        let cells: Vec<f32> =
            self.buffers[from].chunks_exact(4).map(bytemuck::pod_read_unaligned).collect();
        let cells: Vec<f32> = cells.iter().map(|x| x + amount).collect();
        self.buffers[to] = bytemuck::cast_slice(&cells).to_vec();
        if let (Some(left), Some(last)) = (&self.leaves, self.buffers.last_mut()) {
            last.clone_from(left);
        }
        Ok(())
    }

    fn exchange(&mut self, copy: &Copy) -> Result<(), TargetError> {
        panic!("no plan of these tests has parts: {copy:?}")
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        assert!(self.running);
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        self.running = false;
        Ok(Some(Duration::from_millis(3)))
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.log.push("abandoned".to_owned());
        self.finish().map(drop)
    }

    fn download(
        &mut self,
        buffer: BufferId,
        first: usize,
        bytes: &mut [u8],
    ) -> Result<(), TargetError> {
        bytes.copy_from_slice(&self.buffers[buffer.0][first..first + bytes.len()]);
        Ok(())
    }
}

fn inputs(bound: &Bound) -> BTreeMap<String, Array> {
    let array = |place: usize| Array::noise(Element::F32, &bound.shapes[place], 1).unwrap();
    BTreeMap::from([("A".to_string(), array(0)), ("K".to_string(), array(1))])
}

#[test]
fn buffers_swap_between_launches() {
    for steps in 0..8 {
        let (plan, bound) = (heat(), bound(20, steps));
        let inputs = inputs(&bound);
        let mut fake = Fake::default();
        let outcome = run(&plan, &bound, &inputs, &mut fake, &mut Control::default()).unwrap();
        let (DataRef::F32(before), DataRef::F32(after)) =
            (inputs["A"].data(), outcome.outputs["A"].data())
        else {
            panic!("wrong type");
        };
        for (before, after) in before.iter().zip(after) {
            assert!(
                (before + steps as f32 - after).abs() < 1e-5,
                "{steps} steps: {before} became {after}"
            );
        }
        assert_eq!(outcome.launched.count, (steps / 2 + steps % 2) as u64);
        assert_eq!(outcome.launched.elapsed, Some(Duration::from_millis(3)));
        assert_eq!(outcome.outputs.keys().collect::<Vec<_>>(), ["A"]);
    }
}

#[test]
fn inputs_are_checked() {
    let (plan, bound) = (heat(), bound(20, 5));
    let mut given = inputs(&bound);
    given.insert("Q".to_string(), given["K"].clone());
    let text = check_inputs(&plan, &bound, &given).unwrap_err().to_string();
    assert_eq!(text, "heat has no input `Q`; it has A, K");
    given.remove("Q");
    given.insert("K".to_string(), Array::zeros(Element::F64, &[20]).unwrap());
    let text = check_inputs(&plan, &bound, &given).unwrap_err().to_string();
    assert_eq!(text, "the data of field `K` is f64 20 where f32 20 is wanted");
    given.remove("K");
    let text = check_inputs(&plan, &bound, &given).unwrap_err().to_string();
    assert_eq!(text, "field `K` has no data; give it with --in K=FILE.npy, random:SEED or zeros");
}

#[test]
fn runs_report_progress_and_can_be_cancelled() {
    let (plan, bound) = (heat(), bound(20, 7));
    let cancel = AtomicBool::new(false);
    let mut seen = Vec::new();
    let mut progress = |p: RunProgress| {
        seen.push((p.launches, p.steps, p.of));
        cancel.store(p.steps >= 4, Ordering::Relaxed);
    };
    let mut control =
        Control { progress: Some(&mut progress), cancel: Some(&cancel), ..Control::default() };
    let mut fake = Fake::default();
    let result = run(&plan, &bound, &inputs(&bound), &mut fake, &mut control);
    assert!(matches!(result, Err(ExecuteError::Cancelled(4))), "{result:?}");
    assert_eq!(seen, [(1, 2, 7), (2, 4, 7)]);
    assert!(!fake.running);
    assert_eq!(fake.log[2..], ["abandoned"]);
}

#[test]
fn the_words_of_the_target_reach_the_user() {
    let (plan, bound) = (heat(), bound(20, 7));
    let mut fake = Fake { refuse: Some("one"), ..Fake::default() };
    let result = run(&plan, &bound, &inputs(&bound), &mut fake, &mut Control::default());
    assert_eq!(result.unwrap_err().to_string(), "launch of `one` refused");
    assert_eq!(
        fake.log,
        [
            "two at 0 from 0 to 1 on [2, 1, 1]",
            "two at 2 from 1 to 0 on [2, 1, 1]",
            "two at 4 from 0 to 1 on [2, 1, 1]",
            "abandoned"
        ]
    );
}

/// A run asks for the record of a wait, and fails where there is one.
#[test]
fn a_wait_that_does_not_end_is_an_error() {
    let mut plan = heat();
    let mut flags = plan.buffers[3].clone();
    (flags.name, flags.kind) = ("flags of two".to_owned(), BufferKind::Watched);
    (flags.element, flags.start) = (Element::I32, Start::Zeros);
    flags.extents = vec![watch::with_record("2".parse().unwrap())];
    plan.buffers.push(flags);
    let sizes = [("N".to_owned(), 20), ("M".to_owned(), 1)].into();
    let request = Request { sizes, steps: Some(3), ..Request::default() };
    let bound = bind(&plan, &request).unwrap();
    let mut fake = Fake::default();
    let start =
        |fake: &mut Fake| run(&plan, &bound, &inputs(&bound), fake, &mut Control::default());
    start(&mut fake).unwrap();
    let bytes = |flags: [i32; 2], record: [i32; watch::CELLS]| {
        let mut cells = vec![0; 2 * watch::APART];
        (cells[0], cells[watch::APART]) = (flags[0], flags[1]);
        cells.extend(record);
        cells.into_iter().flat_map(i32::to_ne_bytes).collect::<Vec<_>>()
    };
    assert_eq!(fake.buffers.last(), Some(&bytes([0, 0], [watch::WATCHED, 0, -1, 0])));
    fake.leaves = Some(bytes([7, 4], [watch::WRITTEN, 3, 1, 9]));
    assert_eq!(
        start(&mut fake).unwrap_err().to_string(),
        "block 3 waited in vain for flag 1 of `flags of two` to reach 9; it stands at 4. The \
         results are wrong. This is a fault of the compiler; please report it"
    );
}

#[test]
fn numbers_of_a_record_lie_side_by_side_on_the_target() {
    let plan = crate::plan::records::tests::points();
    let sizes = [("N".to_owned(), 2), ("M".to_owned(), 3)];
    let bound = bind(&plan, &Request { sizes: sizes.into(), ..Request::default() }).unwrap();
    let array = |first: u8| {
        let cells = (0..6).map(|cell| f32::from(first + 10 * cell)).collect::<Vec<f32>>();
        Array::new(vec![2, 3], Data::F32(cells)).unwrap()
    };
    let inputs = BTreeMap::from([("P.x".to_owned(), array(1)), ("P.y".to_owned(), array(2))]);
    let mut target = Fake::default();
    target.allocate(&bound).unwrap();
    upload(&plan, &bound, &inputs, &mut target).unwrap();
    let cells: &[f32] = bytemuck::cast_slice(&target.buffers[0]);
    assert_eq!(cells, [1, 2, 11, 12, 21, 22, 31, 32, 41, 42, 51, 52].map(|n| n as f32));
    assert_eq!(target.buffers[0], target.buffers[1]);
    let current = [BufferId(0), BufferId(1)];
    let outputs = download(&plan, &bound, &inputs, &current, false, &mut target).unwrap();
    assert_eq!(outputs, inputs);
}
