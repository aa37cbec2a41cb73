//! Runs on a target whose launches take the time that a test wants.

use super::*;
use crate::array::{Array, Element};
use crate::bind::{BufferId, Request, bind};
use crate::execute::{TargetError, run};
use crate::launch::{Copy, Launch, Value};
use std::collections::BTreeMap;
use std::time::Duration;

/// A plan of one field and these heights, the usual one first: the kernel `kN` takes N steps.
fn plan(heights: &[i64]) -> Plan {
    let launch = |steps: i64| {
        format!(
            r#"{{"launch": {{"kernel": "k{steps}", "grid": ["100", "1", "1"], "steps": {steps},
                 "arguments": [{{"read": "A"}}, {{"write": "A'"}}], "rotate": [["A", "A'"]]}}}}"#
        )
    };
    let repeat = |count: String, steps: i64| {
        format!(r#"{{"repeat": {{"count": "{count}", "body": [{}]}}}}"#, launch(steps))
    };
    let list = |(place, height): (usize, &i64)| {
        let mut body = vec![repeat(format!("steps floordiv {height}"), *height)];
        if *height > 1 {
            body.push(repeat(format!("steps mod {height}"), 1));
        }
        let when = if place + 1 == heights.len() { "" } else { r#""when": "0","# };
        format!(
            r#"{{"name": "{height}", {when} "pyramid_height": {height}, "tile": [40, 40],
                 "reach": [1, 1], "body": [{}]}}"#,
            body.join(",")
        )
    };
    let among: Vec<String> = heights.iter().enumerate().map(list).collect();
    let kernels: Vec<String> = heights
        .iter()
        .map(|height| {
            format!(
                r#"{{"name": "k{height}", "block": [32, 1, 1], "static_shared": 0,
                     "dynamic_shared": 0}}"#
            )
        })
        .collect();
    let buffer = |name: &str| {
        format!(
            r#"{{"name": "{name}", "kind": "field", "element": "i32", "extents": ["3"],
                 "start": {{"input": "A"}}}}"#
        )
    };
    let text = format!(
        r#"{{"format": 2, "program": "p",
            "target": {{"arch": "sm_90", "contract": false, "fast_math": false}},
            "params": [], "constants": {{}}, "scalars": [],
            "fields": [{{"name": "A", "element": "i32", "role": "state", "extents": ["3"],
                         "value": [{{"buffer": "A"}}]}}],
            "buffers": [{}, {}], "steps": "10", "checks": [], "index_width": 64,
            "kernels": [{}],
            "schedule": [{{"choose": {{"name": "pyramid_height", "among": [{}]}}}}],
            "settings": {{"strategy": "block", "tile": [40, 40], "pyramid_height": 1,
                          "per_thread": [1, 1]}}}}"#,
        buffer("A"),
        buffer("A'"),
        kernels.join(","),
        among.join(",")
    );
    Plan::from_json(&text, "test").unwrap()
}

/// Adds the steps of a launch to every cell; a launch takes `seconds` of its steps.
struct Timed<F> {
    seconds: F,
    buffers: Vec<Vec<u8>>,
    elapsed: f64,
    /// Launches by their steps.
    launched: BTreeMap<i64, u64>,
    measures: bool,
}

impl<F: Fn(i64) -> f64> Target for Timed<F> {
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
        self.elapsed = 0.0;
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        let steps = i64::from(launch.node.steps);
        let [Value::Buffer(from), Value::Buffer(to)] = launch.arguments[..] else {
            panic!("two buffers")
        };
        let cells = self.buffers[from.0].chunks_exact(4);
        let cells: Vec<u8> = cells
            .flat_map(|cell| {
                (i32::from_ne_bytes(cell.try_into().unwrap()) + steps as i32).to_ne_bytes()
            })
            .collect();
        self.buffers[to.0] = cells;
        self.elapsed += (self.seconds)(steps);
        *self.launched.entry(steps).or_default() += 1;
        Ok(())
    }

    fn exchange(&mut self, copy: &Copy) -> Result<(), TargetError> {
        panic!("{copy:?}")
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        Ok(Some(Duration::from_secs_f64(self.elapsed)))
    }

    fn null(
        &mut self,
        grid: [u32; 3],
        block: [u32; 3],
        times: u32,
    ) -> Result<Option<Duration>, TargetError> {
        assert_eq!((grid, block), ([100, 1, 1], [32, 1, 1]));
        Ok(self.measures.then(|| Duration::from_micros(2) * times))
    }

    fn resident(&self, _: usize) -> Option<u64> {
        Some(50)
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

/// Runs some steps, checks that none is lost, and tells the height with the launches of each.
fn chosen(
    heights: &[i64],
    steps: i64,
    measures: bool,
    seconds: impl Fn(i64) -> f64,
) -> (Option<Chosen>, BTreeMap<i64, u64>) {
    let plan = plan(heights);
    let bound = bind(&plan, &Request { steps: Some(steps), ..Request::default() }).unwrap();
    let launched = BTreeMap::new();
    let mut target = Timed { seconds, buffers: Vec::new(), elapsed: 0.0, launched, measures };
    let inputs = BTreeMap::from([("A".to_owned(), Array::zeros(Element::I32, &[3]).unwrap())]);
    let mut seen = 0;
    let mut progress = |progress: crate::execute::RunProgress| {
        assert!(progress.steps > seen && progress.of == steps, "{progress:?} after {seen}");
        seen = progress.steps;
    };
    let mut control = Control { progress: Some(&mut progress), ..Control::default() };
    let outcome = run(&plan, &bound, &inputs, &mut target, &mut control).unwrap();
    assert_eq!(seen, steps);
    let value = outcome.outputs["A"].get(1).unwrap().to_string();
    assert_eq!(value, steps.to_string());
    assert_eq!(outcome.launched.steps, steps);
    assert_eq!(outcome.launched.count, target.launched.values().sum::<u64>());
    (outcome.launched.height, target.launched)
}

const HEIGHTS: [i64; 5] = [4, 1, 2, 3, 8];

#[test]
fn the_fastest_height_is_taken_and_no_step_is_lost() {
    // A launch costs 20 microseconds and then 3 per step, or a step becomes dear with the height.
    for (best, seconds) in [
        ("8", (|steps| 20e-6 + 3e-6 * steps as f64) as fn(i64) -> f64),
        ("1", |steps| 5e-6 * (steps * steps) as f64),
        ("3", |steps| if steps == 3 { 3e-6 } else { 10e-6 * steps as f64 }),
        ("2", |steps| 8e-6 + 2e-6 * (steps * steps) as f64),
    ] {
        for steps in [100_000, 99_999] {
            let (chosen, _) = chosen(&HEIGHTS, steps, true, seconds);
            let chosen = chosen.unwrap();
            assert_eq!(chosen.height, best, "{chosen:?}");
            assert!(chosen.steps <= steps / 4 && chosen.steps > 0, "{chosen:?}");
            assert_eq!(chosen.predicted.len(), 5);
            assert!((chosen.null - 2e-6).abs() < 1e-12);
        }
    }
}

#[test]
fn a_fast_height_behind_a_slow_one_is_found() {
    // Two steps run by another strategy, which is slow; the model sees a slope that goes up.
    let heights = [32, 1, 2, 3, 4, 6, 8, 12, 16, 24];
    let seconds = |steps: i64| match steps {
        1 => 2.8e-6,
        2 => 19e-6,
        _ => 2e-6 * steps as f64 + 2.2e-6,
    };
    let (found, launched) = chosen(&heights, 100_000, true, seconds);
    let found = found.unwrap();
    assert_eq!(found.height, "32", "{found:?}");
    assert!(found.steps <= 25_000, "{found:?}");
    assert!(launched.contains_key(&32));
    // A run of few steps measures each height with few launches, as far as they last. Height 24
    // loses 1 %.
    for steps in (2048..10_000).step_by(97) {
        let found = chosen(&heights, steps, true, seconds).0.unwrap();
        assert!(["24", "32"].contains(&&*found.height), "{steps}: {found:?}");
        assert!(found.steps <= steps / 4, "{steps}: {found:?}");
    }
}

#[test]
fn short_runs_measure_little() {
    let seconds = |steps: i64| 20e-6 + 3e-6 * steps as f64;
    let (none, launched) = chosen(&HEIGHTS, 63, true, seconds);
    assert_eq!((none, launched), (None, BTreeMap::from([(4, 15), (1, 3)])));
    // There are no steps for the heights 3, 4 and 8: the model decides.
    let (short, _) = chosen(&HEIGHTS, 64, true, seconds);
    let short = short.unwrap();
    assert_eq!(short.height, "8", "{short:?}");
    assert_eq!(short.measured.len(), 2, "{short:?}");
}

#[test]
fn a_target_without_a_clock_takes_the_usual_height() {
    let (found, launched) = chosen(&HEIGHTS, 400, false, |_| 0.0);
    assert_eq!(found.unwrap().height, "4");
    assert_eq!(launched, BTreeMap::from([(4, 100)]));
}

#[test]
fn a_choice_is_remembered_by_device_program_and_sizes() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heights.json");
    let plan = plan(&HEIGHTS);
    let request = |steps| Request { steps: Some(steps), ..Request::default() };
    let bound = bind(&plan, &request(1000)).unwrap();
    let mut memory = Memory::of(file.clone());
    assert_eq!(memory.find(&plan, &bound, "H200"), None);
    memory.remember(&plan, &bound, "H200", "8");
    for memory in [memory, Memory::of(file.clone())] {
        // Another number of steps is no other size.
        let longer = bind(&plan, &request(2000)).unwrap();
        assert_eq!(memory.find(&plan, &longer, "H200"), Some("8".to_owned()));
        assert_eq!(memory.find(&plan, &bound, "A100"), None);
        let mut other = plan.clone();
        other.index_width = 32;
        assert_eq!(memory.find(&other, &bound, "H200"), None);
    }
    std::fs::write(&file, "no json").unwrap();
    assert_eq!(Memory::of(file).find(&plan, &bound, "H200"), None);
}

#[test]
fn a_choice_of_the_caller_stands() {
    let plan = plan(&HEIGHTS);
    let choices = BTreeMap::from([(NAME.to_owned(), "2".to_owned())]);
    let request = Request { steps: Some(1000), choices, ..Request::default() };
    assert!(open(&plan, &bind(&plan, &request).unwrap()).is_none());
    let request = Request { steps: Some(1000), ..Request::default() };
    assert!(open(&plan, &bind(&plan, &request).unwrap()).is_some());
}
