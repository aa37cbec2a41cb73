//! Plans by hand: members of the format that no compiled program has yet, sent launch by launch and
//! as graphs.

use crate::driver::{count, on_driver};
use std::collections::BTreeMap;
use stencil_runtime::array::{Array, DataRef, Element};
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::cuda::{Cuda, GraphSettings};
use stencil_runtime::execute::{Control, Target, run};
use stencil_runtime::plan::Plan;
use stencil_runtime::ranks::{self, Devices};
use stencil_runtime::windows::{self, DeviceMemory};

/// A plan for a field `A`, with the sizes `N` and `P` and the kernels that its schedule launches.
fn plan(extents: &str, value: &str, buffers: &[String], schedule: &str) -> Plan {
    let kernel = |name| {
        format!(
            "{{\"name\": \"{name}\", \"block\": [32, 1, 1], \"static_shared\": 0, \
             \"dynamic_shared\": 0}}"
        )
    };
    let kernels: Vec<_> = KERNELS
        .iter()
        .filter(|(name, _)| schedule.contains(&format!("\"{name}\"")))
        .map(|(name, _)| kernel(name))
        .collect();
    let text = format!(
        r#"{{"format": 2, "program": "hand",
        "target": {{"arch": "sm_90", "contract": false, "fast_math": false}},
        "params": ["N", "P"], "constants": {{}}, "scalars": [],
        "fields": [{{"name": "A", "element": "f32", "role": "state", "extents": [{extents}],
                     "value": [{value}]}}],
        "buffers": [{}], "steps": "4", "checks": [], "index_width": 32,
        "kernels": [{}], "schedule": [{schedule}],
        "settings": {{"strategy": "hand", "tile": [], "pyramid_height": 1, "per_thread": []}}}}"#,
        buffers.join(", "),
        kernels.join(", ")
    );
    Plan::from_json(&text, "hand.plan.json").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The kernels of the driver with their parameters.
const KERNELS: [(&str, &str); 10] = [
    ("smooth", ".u64 a, .u64 b, .u32 c"),
    ("smooth_rows", ".u64 a, .u64 b, .u32 c, .u32 d"),
    ("in_clusters", ".u64 a, .u64 b, .u32 c"),
    ("halve", ".u64 a, .u32 b"),
    ("smooth_unless", ".u64 a, .u64 b, .u32 c, .u64 d"),
    ("met", ".u64 a, .u64 b, .u32 c"),
    ("to_pitch", ".u64 a, .u64 b, .u32 c, .u32 d"),
    ("from_pitch", ".u64 a, .u64 b, .u32 c, .u32 d"),
    ("to_diagonals", ".u64 a, .u64 b, .u32 c, .u32 d"),
    ("to_blocks", ".u64 a, .u64 b, .u32 c, .u32 d"),
];

fn code() -> String {
    let entry = |(name, parameters): &(&str, &str)| {
        let parameters = parameters.replace(".u", ".param .u");
        format!(".visible .entry {name}({parameters}) {{ ret; }}\n")
    };
    format!(".version 8.0\n{}", KERNELS.iter().map(entry).collect::<String>())
}

/// A buffer that begins with the cells of `A`, and what else it has.
fn buffer(name: &str, extents: &str, more: &str) -> String {
    format!(
        "{{\"name\": \"{name}\", \"kind\": \"field\", \"element\": \"f32\", \
         \"extents\": [{extents}], {more}\"start\": {{\"input\": \"A\"}}}}"
    )
}

/// A launch from one buffer to another, with more arguments and members.
fn launch(kernel: &str, [from, to]: [&str; 2], steps: u32, size: &str, more: &str) -> String {
    format!(
        "{{\"launch\": {{\"kernel\": \"{kernel}\", \"grid\": [\"N ceildiv 32\", \"1\", \"1\"], \
         \"steps\": {steps}, \"arguments\": [{{\"read\": \"{from}\"}}, {{\"write\": \"{to}\"}}, \
         {size}]{more}}}}}"
    )
}

fn repeat(count: &str, body: &str) -> String {
    format!("{{\"repeat\": {{\"count\": \"{count}\", \"body\": [{body}]}}}}")
}

const N: &str = "{\"param\": \"N\"}";
const P: &str = "{\"param\": \"P\"}";
const HERE: &str = "{\"buffer\": \"A\"}";
const SWAP: &str = ", \"rotate\": [[\"A\", \"B\"]]";

fn request(n: i64, p: i64, steps: i64) -> Request {
    let sizes = [("N".to_owned(), n), ("P".to_owned(), p)].into();
    Request { sizes, steps: Some(steps), ..Request::default() }
}

/// The result for `A` on the driver, sent one by one and as graphs.
fn result(plan: &Plan, request: &Request) -> Result<Vec<f32>, String> {
    let cuda = Cuda::open(0).unwrap();
    let bound = bind(plan, request).map_err(|error| error.to_string())?;
    let inputs = BTreeMap::from([("A".to_owned(), noise_of(&bound))]);
    let results = [None, Some(3), Some(64)].map(|chunk| {
        let mut program = cuda.load(plan, code().as_bytes()).map_err(|error| error.to_string())?;
        if let Some(chunk) = chunk {
            program.use_graphs(GraphSettings { chunk, cut_all: false }).unwrap();
        }
        let outcome = run(plan, &bound, &inputs, &mut program, &mut Control::default())
            .map_err(|error| error.to_string())?;
        let DataRef::F32(cells) = outcome.outputs["A"].data() else { panic!("wrong type") };
        Ok(cells.to_vec())
    });
    let [one_by_one, small, graphs] = results;
    assert_eq!((&one_by_one, &small), (&graphs, &graphs));
    graphs
}

fn noise_of(bound: &Bound) -> Array {
    Array::noise(Element::F32, &bound.shapes[0], 1).unwrap()
}

fn noise(cells: usize) -> Vec<f32> {
    let array = Array::noise(Element::F32, &[cells], 1).unwrap();
    let DataRef::F32(cells) = array.data() else { panic!("wrong type") };
    cells.to_vec()
}

fn smoothed(cells: usize, steps: i64) -> Vec<f32> {
    let mut cells = noise(cells);
    for _ in 0..steps {
        let old = cells.clone();
        for (place, around) in old.windows(3).enumerate() {
            cells[place + 1] = 0.5 * (around[0] + around[2]);
        }
    }
    cells
}

#[test]
fn scratch_holds_what_a_launch_hands_on() {
    on_driver("plans::scratch_holds_what_a_launch_hands_on", &[], || {
        let scratch = buffer("S", "\"N\"", "")
            .replace("\"field\"", "\"scratch\"")
            .replace("{\"input\": \"A\"}", "\"zeros\"");
        let pair = [launch("smooth", ["A", "S"], 0, N, ""), launch("smooth", ["S", "A"], 1, N, "")];
        let buffers = [buffer("A", "\"N\"", ""), scratch];
        let plan = plan("\"N\"", HERE, &buffers, &repeat("steps", &pair.join(", ")));
        assert_eq!(result(&plan, &request(50, 0, 3)).unwrap(), smoothed(50, 6));
    });
}

#[test]
fn the_plan_or_the_caller_chooses() {
    on_driver("plans::the_plan_or_the_caller_chooses", &[], || {
        let large = repeat("steps", &launch("smooth", ["A", "B"], 1, N, SWAP));
        let small = repeat("steps", &launch("halve", ["A", "B"], 1, N, ""))
            .replace("{\"read\": \"A\"}, {\"write\": \"B\"}", "{\"read_write\": \"A\"}");
        let choose = format!(
            "{{\"choose\": {{\"name\": \"work\", \"among\": [\
             {{\"name\": \"large\", \"when\": \"N - 50\", \"body\": [{large}]}}, \
             {{\"name\": \"small\", \"body\": [{small}]}}]}}}}"
        );
        let buffers = [buffer("A", "\"N\"", ""), buffer("B", "\"N\"", "")];
        let plan = plan("\"N\"", HERE, &buffers, &choose);
        let halved = |n| noise(n).iter().map(|cell| cell * 0.25).collect::<Vec<_>>();
        let chosen = |n, name: &str| {
            let choices = [("work".to_owned(), name.to_owned())].into();
            result(&plan, &Request { choices, ..request(n, 0, 2) })
        };
        assert_eq!(result(&plan, &request(50, 0, 2)).unwrap(), smoothed(50, 2));
        assert_eq!(result(&plan, &request(49, 0, 2)).unwrap(), halved(49));
        assert_eq!(chosen(50, "small").unwrap(), halved(50));
        assert_eq!(chosen(49, "large").unwrap(), smoothed(49, 2));
        assert!(chosen(49, "huge").unwrap_err().starts_with("hand has no choice `work` of `huge`"));
    });
}

/// A run that ends from step `P` on. It sends steps behind that, which do nothing.
#[test]
fn launches_are_sent_before_the_look_before_them_is_known() {
    let test = "plans::launches_are_sent_before_the_look_before_them_is_known";
    let log = on_driver(test, &[], || {
        let unless = format!("{N}, {{\"unless\": \"met\"}}");
        let step = launch("smooth_unless", ["A", "B"], 1, &unless, SWAP);
        let met = "{\"launch\": {\"kernel\": \"met\", \"grid\": [\"1\", \"1\", \"1\"], \
                   \"steps\": 0, \"arguments\": [{\"read_write\": \"met\"}, \"step\", \
                   {\"param\": \"P\"}]}}";
        let until = format!(
            "{{\"until\": {{\"reduction\": \"met\", \"is\": \"not_equal\", \
             \"limit\": {{\"value\": 0}}, \"every\": 1, \"most\": \"steps floordiv 2\", \
             \"ahead\": true, \"body\": [{step}, {step}, {met}], \
             \"otherwise\": [{}]}}}}",
            repeat("steps mod 2", &step)
        );
        let value = "{\"name\": \"met\", \"kind\": \"reduction\", \"element\": \"i32\", \
                     \"extents\": [\"1\"], \"start\": \"zeros\"}";
        let buffers = [buffer("A", "\"N\"", ""), buffer("B", "\"N\"", ""), value.to_owned()];
        let plan = plan("\"N\"", HERE, &buffers, &until);
        for (ends, steps, taken) in
            [(2, 9, 2), (3, 9, 4), (8, 9, 8), (20, 9, 9), (60, 200, 60), (61, 200, 62), (9, 0, 0)]
        {
            let found = result(&plan, &request(50, ends, steps)).unwrap();
            assert_eq!(found, smoothed(50, taken), "until step {ends} of {steps}");
        }
    });
    let Some(log) = log else { return };
    // Of 145 steps in each of three runs.
    assert!(count(&log, "smooth_unless 0") > 3 * 145 + 20, "nothing was sent ahead");
    assert!(count(&log, "cuGraphAddMemcpyNode 0") > 0, "no look was taken ahead");
}

/// `A` in two parts, each with two cells of the other; the second lies on a device.
fn parts(device: u32) -> Plan {
    let value = "{\"buffer\": \"A\", \"cells\": [[\"0\", \"N floordiv 2 - 1\"]]}, \
                 {\"buffer\": \"C\", \"cells\": [[\"N floordiv 2\", \"N - 1\"]]}";
    let part = |name, origin: &str, device: u32| {
        let more = format!("\"origin\": [\"{origin}\"], \"device\": {device}, ");
        buffer(name, "\"N floordiv 2 + 2\"", &more)
    };
    let second = "N floordiv 2 - 2";
    let buffers = [
        part("A", "0", 0),
        part("B", "0", 0),
        part("C", second, device),
        part("D", second, device),
    ];
    let on = format!(", \"rotate\": [[\"C\", \"D\"]], \"device\": {device}");
    let pair = [launch("smooth", ["A", "B"], 0, P, SWAP), launch("smooth", ["C", "D"], 1, P, &on)];
    let pair = pair.join(", ");
    let exchange = "{\"exchange\": {\"field\": \"A\", \"depth\": 2}}";
    let body = format!("{pair}, {pair}, {exchange}");
    plan("\"N\"", value, &buffers, &repeat("steps floordiv 2", &body))
}

#[test]
fn parts_exchange_their_rims() {
    let log = on_driver("plans::parts_exchange_their_rims", &[], || {
        for n in [8, 60] {
            for steps in [0, 2, 6] {
                let found = result(&parts(0), &request(n, n / 2 + 2, steps)).unwrap();
                assert_eq!(found, smoothed(n as usize, steps), "{n} cells, {steps} steps");
            }
        }
    });
    let Some(log) = log else { return };
    // Two sizes, one by one and as two kinds of graphs. Each exchanges four times, by two copies,
    // in three runs that begin with copies of two buffers.
    assert_eq!(count(&log, "cuMemcpyDtoDAsync_v2 0"), 2 * 3 * (4 * 2 + 3 * 2));
}

#[test]
fn a_plan_for_two_devices_is_refused() {
    let log = on_driver("plans::a_plan_for_two_devices_is_refused", &[], || {
        assert_eq!(
            result(&parts(1), &request(8, 6, 2)).unwrap_err(),
            "hand runs on 2 devices, the target has 1; compile it for fewer devices, or run it on \
             another target"
        );
    });
    let Some(log) = log else { return };
    assert_eq!(count(&log, "cuMemAlloc_v2 0"), 0);
}

#[test]
fn data_go_to_and_from_every_layout() {
    on_driver("plans::data_go_to_and_from_every_layout", &[], || {
        const PITCH: &str = "\"layout\": {\"padded\": {\"pitch\": \"P\"}}, ";
        const DIAGONALS: &str = "\"layout\": {\"hybrid\": {\"rows\": 4}}, ";
        const BLOCKS: &str = "\"layout\": {\"blocked\": {\"block\": [4, 8]}}, ";
        let sizes = format!("{N}, {P}");
        for (from, to, kernel) in [
            ("", PITCH, "to_pitch"),
            (PITCH, "", "from_pitch"),
            ("", DIAGONALS, "to_diagonals"),
            ("", BLOCKS, "to_blocks"),
        ] {
            let buffers = [buffer("A", "\"8\", \"N\"", from), buffer("B", "\"8\", \"N\"", to)];
            let launch = launch(kernel, ["A", "B"], 1, &sizes, "");
            let plan = plan("\"8\", \"N\"", "{\"buffer\": \"B\"}", &buffers, &launch);
            assert_eq!(result(&plan, &request(20, 32, 1)).unwrap(), noise(160), "{kernel}");
        }
    });
}

#[test]
fn blocks_come_in_whole_clusters() {
    on_driver("plans::blocks_come_in_whole_clusters", &[], || {
        let more = format!("{SWAP}, \"cluster\": [2, 1, 1]");
        let launch = launch("in_clusters", ["A", "B"], 1, N, &more);
        let buffers = [buffer("A", "\"N\"", ""), buffer("B", "\"N\"", "")];
        let plan = plan("\"N\"", HERE, &buffers, &repeat("steps", &launch));
        assert_eq!(result(&plan, &request(50, 0, 7)).unwrap(), smoothed(50, 7));
        let error = result(&plan, &request(70, 0, 7)).unwrap_err();
        assert!(error.contains("[3, 1, 1] blocks, which are no whole clusters"), "{error}");
    });
}

/// Blocks of 32 cells, each of which reads a cell on both sides. A device that has no part beside
/// another one's fetches nothing, and none reads what it neither wrote nor fetched: its memory
/// holds zeros there.
#[test]
fn devices_fetch_from_each_other() {
    let settings = [("FAKE_CUDA_DEVICES", "3")];
    let log = on_driver("plans::devices_fetch_from_each_other", &settings, || {
        run_on_three(300, "row");
    });
    let Some(log) = log else { return };
    // Inputs are whole at first. Eight exchanges follow in each run: two devices have one
    // neighbour, and one has two.
    for (device, neighbours) in [(0, 1), (1, 2), (2, 1)] {
        let fetches = count(&log, &format!("cuMemcpyAsync {device}"));
        assert_eq!(fetches, 2 * 8 * neighbours, "device {device}");
        assert_eq!(count(&log, &format!("cuStreamWaitEvent {device}")), 2 * fetches);
    }
}

/// Buffers of 6 pages lie on three devices, which wait for their neighbours and copy nothing.
#[test]
fn devices_have_buffers_together() {
    let settings = [("FAKE_CUDA_DEVICES", "3"), ("FAKE_CUDA_JOINT", "1")];
    let log = on_driver("plans::devices_have_buffers_together", &settings, || {
        run_on_three(6 * 1024, "row");
    });
    let Some(log) = log else { return };
    for (device, neighbours) in [(0, 1), (1, 2), (2, 1)] {
        // Two buffers in two runs.
        assert_eq!(count(&log, &format!("cuMemCreate {device}")), 2 * 2, "device {device}");
        assert_eq!(count(&log, &format!("cuMemAlloc_v2 {device}")), 0);
        assert_eq!(count(&log, &format!("cuMemcpyAsync {device}")), 0);
        // All wait for all at both ends.
        let waits = count(&log, &format!("cuStreamWaitEvent {device}"));
        assert_eq!(waits, 2 * (2 * 2 + 8 * neighbours), "device {device}");
    }
    assert_eq!(count(&log, "cuMemAddressReserve 0"), count(&log, "cuMemAddressFree 0"));
}

/// Devices launch blocks by their numbers where the kernel takes the first one.
#[test]
fn devices_share_blocks_by_number() {
    let settings = [("FAKE_CUDA_DEVICES", "3"), ("FAKE_CUDA_JOINT", "1")];
    let log = on_driver("plans::devices_share_blocks_by_number", &settings, || {
        run_on_three(6 * 1024, "first_block");
    });
    let Some(log) = log else { return };
    for device in 0..3 {
        // Nine launches one by one; the others are in graphs.
        assert_eq!(count(&log, &format!("cuLaunchKernelEx {device}")), 9, "device {device}");
    }
}

/// Smooths a line of cells on three devices in tiles of 32, by launches and by graphs.
fn run_on_three(length: i64, first: &str) {
    let near = r#"{"near": {"below": [1], "above": [1]}}"#;
    let tiles = r#"{"count": "N ceildiv 32", "first": "0", "last": "N - 1", "cells": 32}"#;
    let bands = r#""bands": {"rows": "N ceildiv 32", "reach": 1}, "#;
    let bands = if first == "row" { bands } else { "" };
    let cut = format!(r#"{{"parts": {{"tiles": [{tiles}]}}, "uses": {{"A": {near}}}}}"#);
    let more = format!(r#"{SWAP}, {bands}"cut": {cut}"#);
    let launch = launch("smooth_rows", ["A", "B"], 1, &format!("{N}, \"{first}\""), &more);
    let buffers = [buffer("A", "\"N\"", ""), buffer("B", "\"N\"", "")];
    let plan = plan("\"N\"", HERE, &buffers, &repeat("steps", &launch));
    let bound = bind(&plan, &request(length, 0, 9)).unwrap();
    let inputs = BTreeMap::from([("A".to_owned(), noise_of(&bound))]);
    for graphs in [false, true] {
        let opened: Vec<Cuda> = (0..3).map(|ordinal| Cuda::open(ordinal).unwrap()).collect();
        let mut programs = Vec::new();
        let peers = Cuda::connect(&opened).unwrap();
        for cuda in &opened {
            let mut program = cuda.load(&plan, code().as_bytes()).unwrap();
            if graphs {
                program.use_graphs(GraphSettings { chunk: 3, cut_all: true }).unwrap();
            }
            if let Some(peers) = &peers {
                program.join_peers(peers.clone());
            }
            programs.push(program);
        }
        let mut targets: Vec<&mut (dyn Target + Send)> =
            programs.iter_mut().map(|program| program as _).collect();
        let run = (&plan, &bound, &inputs);
        let mut links = ranks::channels(3, ranks::PATIENCE);
        let mut control = Control::default();
        let devices = Devices::along(3);
        let ran = ranks::on_threads(run, devices, &mut targets, &mut links, (None, &mut control));
        let outcome = ran.unwrap();
        let DataRef::F32(cells) = outcome.outputs["A"].data() else { panic!("wrong type") };
        assert_eq!(*cells, smoothed(length as usize, 9), "graphs: {graphs}");
    }
}

/// Out of core, in windows of some rows of blocks: each launch finds its cells where they would lie
/// in the whole field.
#[test]
fn a_field_goes_through_the_device_in_windows() {
    let length = 6400;
    let test = "plans::a_field_goes_through_the_device_in_windows";
    let log = on_driver(test, &[], || {
        let cut = r#", "bands": {"rows": "N ceildiv 32", "reach": 1}, "cut": {"parts": {"tiles": [
            {"count": "N ceildiv 32", "first": "0", "last": "N - 1", "cells": 32}]},
            "uses": {"A": {"near": {"below": [1], "above": [1]}}}}"#;
        let sizes = format!("{N}, \"row\"");
        let body = launch("smooth_rows", ["A", "B"], 1, &sizes, &format!("{SWAP}{cut}"));
        let buffers = [buffer("A", "\"N\"", ""), buffer("B", "\"N\"", "")];
        let plan = plan("\"N\"", HERE, &buffers, &repeat("steps", &body));
        let cuda = Cuda::open(0).unwrap();
        for (steps, chunk) in [(9, None), (40, Some(3)), (41, Some(64))] {
            let bound = bind(&plan, &request(length, 1, steps)).unwrap();
            let inputs = BTreeMap::from([("A".to_owned(), noise_of(&bound))]);
            let mut program = cuda.load(&plan, code().as_bytes()).unwrap();
            if let Some(chunk) = chunk {
                program.use_graphs(GraphSettings { chunk, cut_all: true }).unwrap();
            }
            let (run, memory) = ((&plan, &bound, &inputs), DeviceMemory(16 << 10));
            let mut control = Control::default();
            let ran = windows::run(run, &mut program, memory, (None, &mut control));
            let (outcome, shape) = ran.unwrap();
            assert!(shape.windows >= 4, "{shape:?}");
            let DataRef::F32(cells) = outcome.outputs["A"].data() else { panic!("wrong type") };
            assert_eq!(*cells, smoothed(length as usize, steps), "{steps} steps");
        }
    });
    let Some(log) = log else { return };
    // A stream for each direction beside that of the launches, in each of three runs.
    assert_eq!(count(&log, "cuStreamCreate 0"), 9);
}
