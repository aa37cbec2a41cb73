//! Plans by hand, on the simulator: every member of the format that no compiled program has yet.

use crate::common::plans::*;
use stencil_dialects::mlir;
use stencil_runtime::array::{Array, Data, Element};
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::execute::{self, Control};
use stencil_runtime::launch::Iterations;
use stencil_runtime::plan::{Node, Plan};
use stencil_simulator::{Options, Settings, Simulator};

#[test]
fn a_rotation_of_two_is_a_swap() {
    let plan = smooth(&format!("[{}]", repeat("steps", &launch("smooth", SMOOTH, SWAP))));
    for steps in 0..4 {
        assert_eq!(result(&plan, 50, steps), smoothed(&noise(50), steps as usize), "{steps}");
    }
}

#[test]
fn a_rotation_of_three_hands_a_value_on() {
    let arguments = "{\"read\": \"P\"}, {\"read\": \"A\"}, {\"write\": \"B\"}";
    let rotate = ", \"rotate\": [[\"P\", \"A\", \"B\"]]";
    let plan = plan(
        &[&field("A"), &field("P")],
        &[&buffer("P", "P"), &buffer("A", "A"), &buffer("B", "A")],
        &["leap"],
        &format!("[{}]", repeat("steps", &launch("leap", arguments, rotate))),
    );
    for steps in 0..7 {
        let (outcome, _) = run(&plan, size(40, steps), Options::default()).unwrap();
        let (mut now, mut before) =
            (noise(40), cells(&Array::noise(Element::F32, &[40], 2).unwrap()));
        for _ in 0..steps {
            let next = now.iter().zip(&before).map(|(now, before)| now * 2.0 - before).collect();
            before = std::mem::replace(&mut now, next);
        }
        assert_eq!(cells(&outcome.outputs["A"]), now, "{steps}");
        assert_eq!(cells(&outcome.outputs["P"]), before, "{steps}");
    }
}

#[test]
fn scratch_holds_what_a_launch_hands_on() {
    let scratch = buffer("S", "A")
        .replace("\"field\"", "\"scratch\"")
        .replace("{\"input\": \"A\"}", "\"zeros\"");
    let there = launch("smooth", "{\"read\": \"A\"}, {\"write\": \"S\"}", "");
    let there = there.replace("\"steps\": 1", "\"steps\": 0");
    let back = launch("smooth", "{\"read\": \"S\"}, {\"write\": \"A\"}", "");
    let schedule = format!("[{}]", repeat("steps", &format!("{there}, {back}")));
    let plan = plan(&[&field("A")], &[&buffer("A", "A"), &scratch], &["smooth"], &schedule);
    assert_eq!(result(&plan, 50, 3), smoothed(&noise(50), 6));
}

#[test]
fn cells_in_no_part_of_a_value_keep_their_input() {
    let inner = field("A")
        .replace("{\"buffer\": \"A\"}", "{\"buffer\": \"A\", \"cells\": [[\"3\", \"N - 4\"]]}");
    let schedule = format!("[{}]", repeat("steps", &launch("smooth", SMOOTH, SWAP)));
    let plan = plan(&[&inner], &[&buffer("A", "A"), &buffer("B", "A")], &["smooth"], &schedule);
    let (before, mut after) = (noise(50), smoothed(&noise(50), 2));
    after[..3].copy_from_slice(&before[..3]);
    after[47..].copy_from_slice(&before[47..]);
    assert_eq!(result(&plan, 50, 2), after);
    // With 6 cells the part is empty; with 3 its last cell lies before its first by far.
    for size in [6, 3] {
        assert_eq!(result(&plan, size, 2), noise(size as usize));
    }
}

#[test]
fn nested_loops_iterate_each_time() {
    let inner = repeat("2", &launch("smooth", SMOOTH, SWAP));
    let plan = smooth(&format!("[{}]", repeat("steps floordiv 2", &inner)));
    assert_eq!(result(&plan, 50, 6), smoothed(&noise(50), 6));
    let error = run(&plan, size(50, 5), Options::default()).unwrap_err();
    assert_eq!(
        error,
        "the plan of hand is not valid: its schedule takes 4 of 5 steps; compile the program again"
    );
}

#[test]
fn snapshots_hand_over_the_current_value() {
    let every = "{\"snapshot\": {\"field\": \"A\"}}";
    let body = format!("{}, {every}", repeat("2", &launch("smooth", SMOOTH, SWAP)));
    let plan = smooth(&format!("[{every}, {}]", repeat("steps floordiv 2", &body)));
    let (_, taken) = run(&plan, size(50, 4), Options::default()).unwrap();
    let found: Vec<_> = taken.iter().map(|taken| (taken.step, cells(&taken.value))).collect();
    let wanted = [0, 2, 4].map(|step| (step, smoothed(&noise(50), step as usize)));
    assert_eq!(found, wanted);
}

/// `halve` until `R` is below a limit, compared after each two iterations.
fn until(limit: &str, is: &str) -> Plan {
    let body = launch("halve", "{\"read_write\": \"A\"}, {\"write\": \"R\"}", "");
    let reduction = buffer("R", "A")
        .replace("\"field\"", "\"reduction\"")
        .replace("[\"N\"]", "[\"1\"]")
        .replace("{\"input\": \"A\"}", "\"zeros\"");
    plan(
        &[&field("A")],
        &[&buffer("A", "A"), &reduction],
        &["halve"],
        &format!(
            "[{{\"until\": {{\"reduction\": \"R\", \"is\": \"{is}\", \"limit\": {limit}, \
             \"every\": 2, \"most\": \"steps\", \"body\": [{body}]}}}}]"
        ),
    )
}

#[test]
fn a_loop_ends_on_a_value() {
    let first = noise(20)[0];
    let iterations = |plan: &Plan, steps| {
        let (outcome, _) = run(plan, size(20, steps), Options::default()).unwrap();
        let halved = outcome.launched.iterations[0].count;
        let wanted: Vec<_> =
            noise(20).iter().map(|cell| cell * 0.5_f32.powi(halved as i32)).collect();
        assert_eq!(cells(&outcome.outputs["A"]), wanted);
        assert_eq!((outcome.launched.steps, outcome.launched.count), (halved, halved as u64));
        outcome.launched.iterations[0]
    };
    // The limit is passed after five halvings, and compared after six.
    let limit = first / 24.0;
    let value = until(&format!("{{\"value\": {limit:?}}}"), "less");
    assert_eq!(iterations(&value, 100), Iterations { count: 6, met: true });
    assert_eq!(iterations(&value, 6), Iterations { count: 6, met: true });
    assert_eq!(iterations(&value, 5), Iterations { count: 5, met: false });
    assert_eq!(iterations(&value, 0), Iterations { count: 0, met: false });
    let scalar = until("{\"scalar\": \"eps\"}", "at_most");
    let count = (1..).find(|times| times % 2 == 0 && first * 0.5_f32.powi(*times) <= 0.1).unwrap();
    assert_eq!(iterations(&scalar, 1 << 20), Iterations { count: count.into(), met: true });
}

#[test]
fn iterations_without_blocks_are_iterations() {
    let mut plan = until("{\"value\": 0.1}", "less");
    let Node::Until(node) = &mut plan.schedule[0] else { panic!("no loop") };
    let Node::Launch(launch) = &mut node.body[0] else { panic!("no launch") };
    launch.grid[0] = "N - 20".parse().unwrap();
    let (outcome, _) = run(&plan, size(20, 100), Options::default()).unwrap();
    assert_eq!(outcome.launched.iterations, [Iterations { count: 2, met: true }]);
    assert_eq!((outcome.launched.steps, outcome.launched.count), (2, 0));
}

#[test]
fn a_nan_meets_no_limit() {
    let plan = until("{\"value\": 1e30}", "less");
    let context = stencil_dialects::context().unwrap();
    let module = mlir::parse_module(&context, KERNELS, "plans.mlir").unwrap();
    let mut simulator = Simulator::new(&module, Options::default()).unwrap();
    let bound = bind(&plan, &size(20, 4)).unwrap();
    let inputs = [("A".to_owned(), Array::new(vec![20], Data::F32(vec![f32::NAN; 20])).unwrap())];
    let outcome =
        execute::run(&plan, &bound, &inputs.into(), &mut simulator, &mut Control::default());
    assert_eq!(outcome.unwrap().launched.iterations, [Iterations { count: 4, met: false }]);
}

#[test]
fn the_plan_or_the_caller_chooses() {
    let one = repeat("steps", &launch("smooth", SMOOTH, SWAP));
    let two = repeat("steps", &launch("halve_all", "{\"read_write\": \"A\"}", ""));
    let schedule = format!(
        "[{{\"choose\": {{\"name\": \"work\", \"among\": [\
         {{\"name\": \"large\", \"when\": \"N - 50\", \"tile\": [32], \"body\": [{one}]}}, \
         {{\"name\": \"small\", \"pyramid_height\": 1, \"body\": [{two}]}}]}}}}]"
    );
    let plan = plan(
        &[&field("A")],
        &[&buffer("A", "A"), &buffer("B", "A")],
        &["smooth", "halve_all"],
        &schedule,
    );
    let halved = |n: usize| noise(n).iter().map(|cell| cell * 0.25).collect::<Vec<_>>();
    assert_eq!(result(&plan, 50, 2), smoothed(&noise(50), 2));
    assert_eq!(result(&plan, 49, 2), halved(49));
    let chosen = |name: &str, n| {
        let choices = [("work".to_owned(), name.to_owned())].into();
        run(&plan, Request { choices, ..size(n, 2) }, Options::default())
            .map(|(outcome, _)| cells(&outcome.outputs["A"]))
    };
    assert_eq!(chosen("small", 50).unwrap(), halved(50));
    assert_eq!(chosen("large", 49).unwrap(), smoothed(&noise(49), 2));
    assert_eq!(
        chosen("huge", 49).unwrap_err(),
        "hand has no choice `work` of `huge`; it has `work` of `large`, `work` of `small`"
    );
}

/// `A` of `N` cells in two parts of `N / 2`, each with two cells more on the inside.
fn parts(depth: u32, device: u32) -> Plan {
    let field = field("A").replace(
        "[{\"buffer\": \"A\"}]",
        "[{\"buffer\": \"A\", \"cells\": [[\"0\", \"N floordiv 2 - 1\"]]}, \
         {\"buffer\": \"A1\", \"cells\": [[\"N floordiv 2\", \"N - 1\"]]}]",
    );
    let part = |name: &str, origin: &str, device: u32| {
        buffer(name, "A").replace("[\"N\"]", "[\"N floordiv 2 + 2\"]").replace(
            "\"start\"",
            &format!("\"origin\": [\"{origin}\"], \"device\": {device}, \"start\""),
        )
    };
    let half = |buffers: [&str; 2], steps: u32, device: u32| {
        let [from, to] = buffers;
        format!(
            "{{\"launch\": {{\"kernel\": \"smooth\", \"grid\": [\"N ceildiv 32\", \"1\", \"1\"], \
             \"steps\": {steps}, \"device\": {device}, \"arguments\": [{{\"read\": \"{from}\"}}, \
             {{\"write\": \"{to}\"}}, {{\"param\": \"H\"}}], \
             \"rotate\": [[\"{from}\", \"{to}\"]]}}}}"
        )
    };
    let pair = format!("{}, {}", half(["A", "B"], 0, 0), half(["A1", "B1"], 1, device));
    let exchange = format!("{{\"exchange\": {{\"field\": \"A\", \"depth\": {depth}}}}}");
    let body = format!("{pair}, {pair}, {exchange}");
    plan_of(
        "\"N\", \"H\"",
        &[&field],
        &[
            &part("A", "0", 0),
            &part("B", "0", 0),
            &part("A1", "N floordiv 2 - 2", device),
            &part("B1", "N floordiv 2 - 2", device),
        ],
        &["smooth"],
        &format!("[{}]", repeat("steps floordiv 2", &body)),
    )
}

#[test]
fn parts_exchange_their_rims() {
    for (n, device) in [(60, 0), (60, 1), (8, 1)] {
        let plan = parts(2, device);
        for steps in [0, 2, 6] {
            let mut request = size(n, steps);
            request.sizes.insert("H".to_owned(), n / 2 + 2);
            let (outcome, _) = run(&plan, request, Options::default()).unwrap();
            assert_eq!(
                cells(&outcome.outputs["A"]),
                smoothed(&noise(n as usize), steps as usize),
                "{n} cells, {steps} steps"
            );
        }
    }
    let mut request = size(60, 2);
    request.sizes.insert("H".to_owned(), 32);
    let error = run(&parts(3, 0), request.clone(), Options::default()).unwrap_err();
    assert_eq!(
        error,
        "the parts of field `A` can't exchange 3 rows: rows 30 to 33 lie outside a buffer; use \
         larger sizes or fewer parts"
    );
    request.sizes.insert("N".to_owned(), 4);
    request.sizes.insert("H".to_owned(), 4);
    let error = run(&parts(3, 0), request, Options::default()).unwrap_err();
    assert!(error.contains("can't exchange 3 rows: a part has 2 of them"), "{error}");
}

/// A field of 8 rows of `N` cells in a buffer of this layout, and a plan that copies it by a kernel
/// to one of another.
fn copied(from: &str, to: &str, kernel: &str, arguments: &str) -> Plan {
    let wide = |text: String| text.replace("[\"N\"]", "[\"8\", \"N\"]");
    let laid = |name: &str, layout: &str| {
        let layout = format!("\"layout\": {layout}, \"start\"");
        wide(buffer(name, "A")).replace("\"start\"", &layout)
    };
    let launch = format!(
        "[{{\"launch\": {{\"kernel\": \"{kernel}\", \"grid\": [\"1\", \"1\", \"1\"], \"steps\": 1, \
         \"arguments\": [{{\"read\": \"A\"}}, {{\"write\": \"B\"}}, {arguments}]}}}}]"
    );
    let value = wide(field("A")).replace("{\"buffer\": \"A\"}", "{\"buffer\": \"B\"}");
    plan_of("\"N\", \"P\"", &[&value], &[&laid("A", from), &laid("B", to)], &[kernel], &launch)
}

#[test]
fn data_go_to_and_from_every_layout() {
    const ROWS: &str = "\"row_major\"";
    const PITCH: &str = "{\"padded\": {\"pitch\": \"P\"}}";
    const DIAGONALS: &str = "{\"hybrid\": {\"rows\": 4}}";
    const BLOCKS: &str = "{\"blocked\": {\"block\": [4, 8]}}";
    let (n, p) = ("{\"param\": \"N\"}", "{\"param\": \"N\"}, {\"param\": \"P\"}");
    for (from, to, kernel, arguments) in [
        (ROWS, PITCH, "to_pitch", p),
        (PITCH, ROWS, "from_pitch", p),
        (ROWS, DIAGONALS, "to_diagonals", n),
        (ROWS, BLOCKS, "to_blocks", n),
    ] {
        let request = |pitch: i64| {
            let sizes = [("N".to_owned(), 20), ("P".to_owned(), pitch)].into();
            Request { sizes, steps: Some(1), ..Request::default() }
        };
        let plan = copied(from, to, kernel, arguments);
        let (outcome, _) = run(&plan, request(32), Options::default())
            .unwrap_or_else(|error| panic!("{kernel}: {error}"));
        assert_eq!(cells(&outcome.outputs["A"]), noise(160), "{kernel}");
        // Cells that the host puts there come back too.
        let still = Plan { schedule: Vec::new(), ..copied(to, to, kernel, arguments) };
        let (outcome, _) =
            run(&still, Request { steps: Some(0), ..request(32) }, Options::default())
                .unwrap_or_else(|error| panic!("{kernel}: {error}"));
        assert_eq!(cells(&outcome.outputs["A"]), noise(160), "{kernel}");
    }
    let narrow = copied(ROWS, PITCH, "to_pitch", p);
    let sizes = [("N".to_owned(), 20), ("P".to_owned(), 19)].into();
    let error = run(&narrow, Request { sizes, ..Request::default() }, Options::default());
    assert_eq!(
        error.unwrap_err(),
        "buffer `B` would have a pitch of 19 cells for rows of 20 (N = 20, P = 19, steps = 4); use \
         larger sizes or compile the program again"
    );
}

/// Blocks that add up a row, each after the one before it, once a step.
fn relay() -> Plan {
    let flags = "{\"name\": \"F\", \"kind\": \"flags\", \"element\": \"i32\", \
                 \"extents\": [\"N\"], \"start\": \"zeros\"}";
    let launch = "{\"launch\": {\"kernel\": \"relay\", \"grid\": [\"N\", \"1\", \"1\"], \
                  \"steps\": 1, \"arguments\": [{\"read_write\": \"A\"}, {\"read_write\": \"F\"}, \
                  \"epoch\", {\"param\": \"N\"}], \"cooperative\": true, \"epochs\": 1}}";
    plan(
        &[&field("A")],
        &[&buffer("A", "A"), flags],
        &["relay"],
        &format!("[{}]", repeat("steps", launch)),
    )
}

#[test]
fn flags_count_on_from_launch_to_launch() {
    let mut wanted = noise(9);
    for _ in 0..3 {
        for place in 1..9 {
            wanted[place] += wanted[place - 1];
        }
    }
    for seed in [None, Some(1), Some(2)] {
        let settings = Settings { seed, ..Settings::default() };
        let options = Options { settings, ..Options::default() };
        let (outcome, _) = run(&relay(), size(9, 3), options).unwrap();
        assert_eq!(cells(&outcome.outputs["A"]), wanted);
    }
    // Without counting on, no block of the second launch waits for another.
    let text = relay().to_json().unwrap().replace("\"epochs\": 1", "\"epochs\": 0");
    let plan = Plan::from_json(&text, "still.plan.json").unwrap();
    let error = run(&plan, size(9, 3), Options::default()).unwrap_err();
    assert!(error.contains("race"), "{error}");
}

#[test]
fn blocks_that_wait_for_each_other_report_progress() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&seen);
    let progress = move |kernel: &str, done, of| {
        log.lock().unwrap().push((kernel.to_owned(), done, of));
    };
    let options = Options { progress: Some(std::sync::Arc::new(progress)), ..Options::default() };
    run(&relay(), size(3, 1), options).unwrap();
    let wanted = [1, 2, 3].map(|done| ("relay".to_owned(), done, 3));
    assert_eq!(*seen.lock().unwrap(), wanted);
}

#[test]
fn a_buffer_has_the_type_that_the_kernel_takes() {
    let text = smooth("[]").to_json().unwrap().replace("\"f32\"", "\"f64\"");
    let node = format!("[{}]", repeat("steps", &launch("smooth", SMOOTH, SWAP)));
    let schedule = smooth(&node).schedule;
    let plan = Plan { schedule, ..Plan::from_json(&text, "wide.plan.json").unwrap() };
    let context = stencil_dialects::context().unwrap();
    let module = mlir::parse_module(&context, KERNELS, "plans.mlir").unwrap();
    let mut simulator = Simulator::new(&module, Options::default()).unwrap();
    let bound = bind(&plan, &size(20, 1)).unwrap();
    let inputs = [("A".to_owned(), Array::zeros(Element::F64, &[20]).unwrap())].into();
    let control = &mut Control::default();
    let error = execute::run(&plan, &bound, &inputs, &mut simulator, control).unwrap_err();
    assert_eq!(
        error.to_string(),
        "kernel `smooth`: argument 0 is a buffer of f64 where the buffer of A, of type F32 is \
         wanted; plan and module must come from one compile"
    );
}

#[test]
fn a_cooperative_launch_needs_room_for_all_its_blocks() {
    let settings = Settings { resident: Some(8), ..Settings::default() };
    let options = || Options { settings: settings.clone(), ..Options::default() };
    assert!(run(&relay(), size(8, 1), options()).is_ok());
    assert_eq!(
        run(&relay(), size(9, 1), options()).unwrap_err(),
        "kernel `relay` needs all its 9 blocks on the device at once, and 8 have room; use smaller \
         sizes"
    );
}

#[test]
fn blocks_come_in_whole_clusters() {
    let plan = |cluster: &str| {
        let more = format!("{SWAP}, \"cluster\": {cluster}");
        smooth(&format!("[{}]", repeat("steps", &launch("smooth", SMOOTH, &more))))
    };
    assert_eq!(result(&plan("[2, 1, 1]"), 50, 2), smoothed(&noise(50), 2));
    let error = run(&plan("[2, 1, 1]"), size(70, 2), Options::default()).unwrap_err();
    assert!(
        error.contains("[3, 1, 1] blocks, which are no whole clusters of [2, 1, 1]"),
        "{error}"
    );
}

#[test]
fn hostile_counts_end_in_an_error() {
    let node = launch("smooth", SMOOTH, SWAP).replace("\"steps\": 1", "\"steps\": 0");
    let most = "9223372036854775807";
    let deep = repeat(most, &repeat(most, &repeat(most, &node)));
    let error = run(&smooth(&format!("[{deep}]")), size(50, 0), Options::default()).unwrap_err();
    assert!(error.contains("actions in 0 steps; compile the program again"), "{error}");
    // Turns without actions take no time.
    let empty = node.replace("N ceildiv 32", "N - 50");
    let empty = repeat(most, &repeat(most, &format!("{empty}, {}", repeat(most, ""))));
    let plan = smooth(&format!("[{empty}]"));
    assert_eq!(run(&plan, size(50, 0), Options::default()).unwrap().0.launched.count, 0);
}

#[test]
fn buffers_that_no_machine_holds_are_an_error() {
    let plan = smooth(&format!("[{}]", repeat("steps", &launch("smooth", SMOOTH, SWAP))));
    let bound = bind(&plan, &size(1 << 50, 1)).unwrap();
    let context = stencil_dialects::context().unwrap();
    let module = mlir::parse_module(&context, "module {}", "empty").unwrap();
    let mut simulator = Simulator::new(&module, Options::default()).unwrap();
    let error = execute::Target::allocate(&mut simulator, &bound).unwrap_err().to_string();
    let words = "the run needs 67108864.0 GiB of memory for its fields, and ";
    assert!(error.starts_with(words), "{error}");
}
