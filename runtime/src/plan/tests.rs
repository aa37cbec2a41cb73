//! Plans that are read and written, and contradictions.

use super::*;

/// A program of two fields: `A` is double and updated by `two` (two steps a launch) and `one`,
/// `K` is only read.
pub(crate) const HEAT: &str = include_str!("../../tests/data/heat.plan.json");

pub(crate) fn heat() -> Plan {
    Plan::from_json(HEAT, "heat").unwrap()
}

/// The same, and the first kernel may be cut.
pub(crate) fn banded() -> Plan {
    let mut plan = heat();
    let two = launch(&mut plan, 0);
    two.arguments.push(Argument::Row);
    two.bands = Some(Bands { rows: "N ceildiv 16".parse().unwrap(), reach: 1 });
    plan.validate().unwrap();
    plan
}

/// The launch in the repeat at this place.
pub(crate) fn launch(plan: &mut Plan, place: usize) -> &mut Launch {
    match &mut plan.schedule[place] {
        Node::Repeat(repeat) => match &mut repeat.body[0] {
            Node::Launch(launch) => launch,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn error(from: &str, to: &str) -> String {
    assert!(HEAT.contains(from), "{from}");
    Plan::from_json(&HEAT.replacen(from, to, 1), "heat.plan.json").unwrap_err().to_string()
}

#[test]
fn plans_round_trip() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heat.plan.json");
    heat().save(&path).unwrap();
    assert_eq!(Plan::load(&path).unwrap(), heat());
    let text = heat().to_json().unwrap();
    assert!(text.contains("\"count\": \"steps floordiv 2\"") && text.ends_with("}\n"), "{text}");
}

#[test]
fn other_formats_are_refused_before_all_else() {
    assert_eq!(
        error("\"format\": 2, \"program\"", "\"format\": 1, \"title\""),
        "heat.plan.json is a plan of format 1, this program reads format 2; compile the program \
         again: stencilc PROGRAM.stencil --emit=ptx,plan -o NAME"
    );
    let text = error("\"program\"", "\"title\"");
    assert!(text.contains("is no launch plan: title: unknown key `title`"), "{text}");
    assert!(text.contains("line 2"), "{text}");
    let text = error("N ceildiv 16", "N / 16");
    assert!(text.contains("`N / 16` is no size expression"), "{text}");
}

/// The key of the fault, and what is expected there.
#[test]
fn faults_of_the_text_have_a_place() {
    for (from, to, wanted) in [
        (
            "\"start\": \"zeros\"",
            "\"start\": 4",
            "buffers[3].start: expected a string or an object at line 19",
        ),
        (
            "\"step\"]",
            "\"steps\"]",
            "schedule[0].repeat.body[0].launch.arguments[5]: unknown variant `steps`, expected one",
        ),
        (
            "\"buffers\": [",
            "\"buffers\": [7,",
            "buffers[0]: invalid type: integer `7`, expected an object",
        ),
        (
            "\"steps\": ",
            "\"steppes\": ",
            "steppes: unknown key `steppes`, expected one of `format`",
        ),
        ("\"index_width\": 32,", "", "missing key `index_width`"),
    ] {
        let text = error(from, to);
        let wanted = format!("heat.plan.json is no launch plan: {wanted}");
        assert!(text.starts_with(&wanted), "{wanted}\n{text}");
        assert!(!text.contains("struct"), "{text}");
    }
}

/// Contradictions of the plan of [`HEAT`]: a text of it, another in its place, and what is said.
const CONTRADICTIONS: &[(&str, &str, &str)] = &[
    (
        "\"kernel\": \"two\"",
        "\"kernel\": \"three\"",
        "schedule[0].repeat.body[0].launch: the kernel `three` is not declared",
    ),
    (
        "\"step\"]",
        "\"row\"]",
        "schedule[0].repeat.body[0].launch: an argument `row` and `bands` need each other",
    ),
    (
        "\"step\"]",
        "\"step\"], \"bands\": {\"rows\": \"N\", \"reach\": 1}",
        "schedule[0].repeat.body[0].launch: an argument `row` and `bands` need each other",
    ),
    (
        "{\"read\": \"K\"}",
        "{\"read\": \"L\"}",
        "schedule[0].repeat.body[0].launch: the argument {\"read\":\"L\"} is not declared",
    ),
    (
        "{\"param\": \"N\"}",
        "{\"param\": \"K\"}",
        "schedule[0].repeat.body[0].launch: the argument {\"param\":\"K\"} is not declared",
    ),
    (
        "{\"read\": \"K\"}",
        "{\"read_write\": \"A\"}",
        "schedule[0].repeat.body[0].launch: buffer `A` is passed twice, and written through one of \
         the arguments",
    ),
    (
        "\"rotate\": [[\"A\", \"A'\"]]",
        "\"rotate\": [[\"A\"]]",
        "schedule[0].repeat.body[0].launch: the rotation [\"A\"] needs two buffers, each \
         named once",
    ),
    (
        "\"rotate\": [[\"A\", \"A'\"]]",
        "\"rotate\": [[\"A\", \"A'\", \"A\"]]",
        "schedule[0].repeat.body[0].launch: the rotation [\"A\", \"A'\", \"A\"] needs two buffers, \
         each named once",
    ),
    (
        "\"rotate\": [[\"A\", \"A'\"]]",
        "\"rotate\": [[\"A\", \"B\"]]",
        "schedule[0].repeat.body[0].launch: the rotation [\"A\", \"B\"] needs buffers that are \
         declared",
    ),
    (
        "\"rotate\": [[\"A\", \"A'\"]]",
        "\"rotate\": [[\"A\", \"K\"]]",
        "schedule[0].repeat.body[0].launch: the buffers of the rotation [\"A\", \"K\"] differ in \
         more than how they start",
    ),
    (
        "\"rotate\": [[\"A\", \"A'\"]]",
        "\"cluster\": [4, 4, 1]",
        "schedule[0].repeat.body[0].launch: clusters of [4, 4, 1] blocks; 1 to 8 are possible",
    ),
    (
        "\"rotate\": [[\"A\", \"A'\"]]",
        "\"device\": 1",
        "schedule[0].repeat.body[0].launch: buffer `A` lies on device 0, the kernel runs on device \
         1",
    ),
    (
        "\"kernel\": \"one\"",
        "\"kernel\": \"two\"",
        "kernel `two` is launched with different kinds of arguments",
    ),
    ("[\"N\", \"M\"]", "[\"N\", \"M\", \"A\"]", "`A` is declared twice"),
    ("\"name\": \"A'\"", "\"name\": \"A\"", "buffer `A` is declared twice"),
    ("{\"name\": \"one\"", "{\"name\": \"two\"", "kernel `two` is declared twice"),
    (
        "\"block\": [16",
        "\"block\": [2000",
        "kernel `two` has blocks of [2000, 1, 1] threads; 1 to 1024 are possible",
    ),
    (
        "\"block\": [16",
        "\"block\": [0",
        "kernel `two` has blocks of [0, 1, 1] threads; 1 to 1024 are possible",
    ),
    ("\"index_width\": 32", "\"index_width\": 16", "an index has 16 bits, not 32 or 64"),
    (
        "[\"Q\"], \"value\"",
        "[\"steps\"], \"value\"",
        "field `W` is wrong: an extent, `steps`, uses the size `steps`, which is not declared \
         there",
    ),
    ("N - 3", "L - 3", "a check, `L - 3`, uses the size `L`, which is not declared there"),
    ("[{\"buffer\": \"K\"}]", "[]", "field `K` has a value that lies in no buffer"),
    (
        "[{\"buffer\": \"K\"}]",
        "[{\"buffer\": \"L\"}]",
        "field `K` lies in the buffer `L`, which is not declared",
    ),
    (
        "[{\"buffer\": \"K\"}]",
        "[{\"buffer\": \"A\"}]",
        "field `K` lies in `A`, which has f32 cells in 2 dimensions where f32 in 1 are needed",
    ),
    (
        "[{\"buffer\": \"K\"}]",
        "[{\"buffer\": \"K\", \"cells\": []}]",
        "field `K` has 1 dimensions and 0 numbers of the first cells",
    ),
    (
        "\"kind\": \"field\"",
        "\"kind\": \"scratch\"",
        "buffer `A` starts with the field `A`, which is not of the kind `field`",
    ),
    (
        "\"start\": \"zeros\"",
        "\"layout\": {\"hybrid\": {\"rows\": 4}}, \"start\": \"zeros\"",
        "buffer `W` has 1 dimensions and bands of 4 rows; a hybrid layout needs two dimensions and \
         one row at least",
    ),
    (
        "\"start\": \"zeros\"",
        "\"layout\": {\"blocked\": {\"block\": [0]}}, \"start\": \"zeros\"",
        "buffer `W` has 1 dimensions and blocks of [0] cells; a blocked layout needs a positive \
         number for each dimension",
    ),
    (
        "\"start\": \"zeros\"",
        "\"layout\": {\"padded\": {\"pitch\": \"steps\"}}, \"start\": \"zeros\"",
        "buffer `W` is wrong: a pitch, `steps`, uses the size `steps`, which is not declared there",
    ),
    (
        "\"start\": \"zeros\"",
        "\"origin\": [\"0\", \"0\"], \"start\": \"zeros\"",
        "buffer `W` has 1 dimensions and 2 numbers of the origin",
    ),
    (
        "\"kind\": \"field\", \"element\": \"f64\"",
        "\"kind\": \"scratch\", \"origin\": [\"0\"], \"element\": \"f64\"",
        "buffer `W` has an origin, and is not of the kind `field`",
    ),
    (
        "\"kind\": \"field\", \"element\": \"f64\"",
        "\"kind\": \"flags\", \"element\": \"f64\"",
        "buffer `W` holds flags of type f64; i32 or u32 is needed",
    ),
];

#[test]
fn contradictions_are_found() {
    for (from, to, wanted) in CONTRADICTIONS {
        let wanted = format!("the plan of heat is not valid: {wanted}; compile the program again");
        assert_eq!(error(from, to), wanted);
    }
}

/// The plan of [`HEAT`] with a reduction, and this node in the place of its last one.
fn with_node(node: &str) -> Result<Plan, String> {
    let mut plan = heat();
    let mut sum = plan.buffers[3].clone();
    (sum.name, sum.kind) = ("sum".to_owned(), BufferKind::Reduction);
    sum.extents = vec!["1".parse().unwrap()];
    plan.buffers.push(sum);
    plan.schedule.pop();
    plan.schedule.push(serde_json::from_str(node).map_err(|error| error.to_string())?);
    plan.validate().map_err(|error| error.to_string())?;
    Ok(plan)
}

#[test]
fn nodes_that_contradict_the_plan_are_found() {
    let until = |reduction: &str, limit: &str, every: u32| {
        format!(
            "{{\"until\": {{\"reduction\": \"{reduction}\", \"is\": \"less\", \"limit\": {limit}, \
             \"every\": {every}, \"most\": \"steps\", \"body\": []}}}}"
        )
    };
    let choose =
        |among: &str| format!("{{\"choose\": {{\"name\": \"how\", \"among\": [{among}]}}}}");
    let one = |name: &str, when: &str| format!("{{\"name\": \"{name}\", {when}\"body\": []}}");
    let when = "\"when\": \"N\", ";
    assert!(with_node(&until("sum", "{\"value\": 0.5}", 1)).is_ok());
    assert!(with_node(&choose(&(one("a", when) + ", " + &one("b", "")))).is_ok());
    for (node, wanted) in [
        (
            until("W", "{\"value\": 0.5}", 1),
            "until: `W` is no buffer of the kind `reduction` with one cell",
        ),
        (
            until("sum", "{\"value\": 0.5}", 0),
            "until: `every` is 0; the value is compared after one turn at least",
        ),
        (
            until("sum", "{\"scalar\": \"alpha\"}", 1),
            "until: the limit {\"scalar\":\"alpha\"} is no f64 as `sum` is",
        ),
        (choose(""), "choose: `how` has nothing to choose from"),
        (choose(&one("a", when)), "choose: the last alternative of `how` alone has no `when`"),
        (
            choose(&(one("a", when) + ", " + &one("a", ""))),
            "choose: `how` has two alternatives `a`",
        ),
        (
            "{\"exchange\": {\"field\": \"A\", \"depth\": 1}}".to_owned(),
            "exchange: the value of `A` does not lie in two or more buffers",
        ),
        (
            "{\"exchange\": {\"field\": \"B\", \"depth\": 1}}".to_owned(),
            "exchange: the field `B` is not declared",
        ),
        (
            "{\"snapshot\": {\"field\": \"B\"}}".to_owned(),
            "snapshot: there is no value of a field `B`",
        ),
    ] {
        let wanted = format!(
            "the plan of heat is not valid: schedule[1].{wanted}; compile the program again"
        );
        assert_eq!(with_node(&node).unwrap_err(), wanted);
    }
    let deep = format!(
        "{}{}",
        "{\"repeat\": {\"count\": \"1\", \"body\": [".repeat(300),
        "]}}".repeat(300)
    );
    assert!(with_node(&deep).unwrap_err().contains("recursion limit"));
}

#[test]
fn loops_are_as_deep_as_documented() {
    let nested = |loops: usize| {
        let mut plan = heat();
        // The first node is a loop itself.
        for _ in 1..loops {
            let body = vec![plan.schedule.remove(0)];
            plan.schedule.insert(0, Node::Repeat(Repeat { count: 1.into(), body }));
        }
        Plan::from_json(&plan.to_json().unwrap(), "x").map(|_| ()).map_err(|e| e.to_string())
    };
    assert_eq!(nested(40), Ok(()));
    assert!(nested(41).unwrap_err().contains("recursion limit"));
}

#[test]
fn the_ptx_lies_beside() {
    assert_eq!(ptx_beside(Path::new("out/heat.plan.json")), Path::new("out/heat.ptx"));
    assert_eq!(ptx_beside(Path::new("heat")), Path::new("heat.ptx"));
}

#[test]
fn members_fill_the_cells_of_their_field() {
    let part = |name: &str, field: &str, offset: usize, size: usize| {
        format!(
            "{{\"name\": \"{name}\", \"element\": \"f32\", \"role\": \"const\", \"extents\": \
             [\"N\"], \"value\": [{{\"buffer\": \"K\"}}], \"member\": {{\"field\": \"{field}\", \
             \"offset\": {offset}, \"size\": {size}}}}}"
        )
    };
    let mut fields = HEAT.split("\n        {");
    let from = fields.find(|field| field.contains("\"name\": \"K\", \"element\""));
    let from = format!("{{{}", from.unwrap());
    let heat = HEAT.replace("{\"input\": \"K\"}", "\"zeros\"");
    let with = |parts: &[String]| heat.replacen(&from, &(parts.join(",\n") + ","), 1);
    let (a, b) = (part("K.a", "K", 0, 8), part("K.b", "K", 4, 8));
    let plan = Plan::from_json(&with(&[a.clone(), b.clone()]), "x").unwrap();
    assert_eq!(crate::record::records(&plan.fields).len(), 3);
    let deep = format!("K{}", ".".repeat(1 << 20));
    let long = |more: usize| part(&format!("K.{}", "a".repeat(8_985 + more)), "K", 0, 4);
    for parts in [part("K.a.b.c.d", "K", 0, 4), long(0)] {
        assert!(Plan::from_json(&with(&[parts]), "x").is_ok());
    }
    for (parts, message) in [
        (vec![part("K.a.b.c.d.e", "K", 0, 4)], "has structs inside each other, more than 4 deep"),
        (vec![long(1)], "has 9001 characters in the header of an .npy file, more than 9000"),
        (vec![b.clone(), a.clone()], "field `K.b` is at byte 4 of 8"),
        (vec![a.clone()], "field `K.a` is at byte 0 of 8"),
        (vec![a.clone(), part("K.a", "K", 4, 8)], "`K.a` is declared twice"),
        (vec![a.clone(), part("K.0", "K", 4, 8)], "are no struct and no vec"),
        (vec![part("K.", "K", 0, 4)], "are no struct and no vec"),
        (vec![part(&deep, "K", 0, 4)], "are no struct and no vec"),
        (vec![part("K", "K", 0, 4)], "field `K` is no part of the field `K`"),
        (vec![part("W.x", "K", 0, 4)], "field `W.x` is no part of the field `K`"),
        (vec![a.clone(), b.replace("const", "state")], "differs from `K.a` in its role"),
        (vec![a.clone(), b.replace("[\"N\"]", "[\"M\"]")], "differs from `K.a` in its role"),
        (vec![a, part("L.x", "L", 0, 4), b], "the numbers before it leave it byte 0"),
    ] {
        let error = Plan::from_json(&with(&parts), "x").unwrap_err().to_string();
        assert!(error.contains(message), "{message}: {error}");
    }
}

#[test]
fn turns_and_their_argument_need_each_other() {
    let refused = |change: &dyn Fn(&mut Launch)| {
        let mut plan = banded();
        change(launch(&mut plan, 0));
        plan.validate().unwrap_err().to_string()
    };
    let text = refused(&|launch| launch.turns = Some("N".parse().unwrap()));
    assert!(text.contains("an argument `turn` and `turns` need each other"), "{text}");
    let text = refused(&|launch| launch.arguments.push(Argument::Turn));
    assert!(text.contains("an argument `turn` and `turns` need each other"), "{text}");
    let text = refused(&|launch| {
        launch.turns = Some("N".parse().unwrap());
        launch.arguments.push(Argument::Turn);
    });
    assert!(text.contains("a launch in bands has no `turns`"), "{text}");
}

/// Steps of the first kernel until a value is met, which the second one computes.
fn ahead(change: &dyn Fn(&mut Until, &mut Vec<BufferDecl>)) -> Option<String> {
    let mut plan = heat();
    let met = || "met".to_owned();
    let mut value = plan.buffers[3].clone();
    (value.name, value.kind, value.element) = (met(), BufferKind::Reduction, Element::I32);
    (value.extents, value.start) = (vec!["1".parse().unwrap()], Start::Zeros);
    plan.buffers.push(value);
    let (mut step, mut computes) = (launch(&mut plan, 0).clone(), launch(&mut plan, 1).clone());
    step.arguments.push(Argument::Unless(met()));
    computes.arguments.push(Argument::ReadWrite(met()));
    let mut until = Until {
        reduction: met(),
        is: Relation::NotEqual,
        limit: Limit::Value("0".parse().unwrap()),
        every: 1,
        text: String::new(),
        most: "steps".parse().unwrap(),
        ahead: true,
        body: vec![Node::Launch(step.clone()), Node::Launch(computes)],
        otherwise: vec![Node::Launch(step)],
    };
    change(&mut until, &mut plan.buffers);
    plan.schedule = vec![Node::Until(until)];
    plan.validate().err().map(|error| error.to_string())
}

#[test]
fn launches_are_sent_ahead_where_all_look_at_the_value() {
    assert_eq!(ahead(&|_, _| {}), None);
    let needs = |change: &dyn Fn(&mut Until)| {
        let error = ahead(&|until, _| change(until)).unwrap_or_default();
        assert!(error.contains("`ahead` needs an `until` at the end"), "{error}");
        assert_eq!(ahead(&|until, _| (change(until), until.ahead = false).1), None);
    };
    needs(&|until| until.every = 2);
    needs(&|until| until.body.reverse());
    needs(&|until| until.otherwise = vec![until.body[1].clone()]);
    needs(&|until| match (&mut until.body[0], until.otherwise.clear()) {
        (Node::Launch(launch), ()) => drop(launch.arguments.pop()),
        (other, ()) => panic!("{other:?}"),
    });
    let error = ahead(&|_, buffers| buffers[4].extents = vec!["N".parse().unwrap()]);
    assert!(error.unwrap_or_default().contains("`met` is no buffer of the kind `reduction`"));
}
