//! Plans in text, and runs of them with kernels by hand.

use stencil_dialects::mlir;
use stencil_runtime::array::{Array, DataRef, Element};
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::execute::{self, Control, Inputs, Outcome, Taken};
use stencil_runtime::plan::Plan;
use stencil_simulator::{Options, Simulator};

/// The kernels, for `N` cells of `A`, of which a thread takes one, or 8 rows of `N` cells.
///
/// | kernel | arguments | effect |
/// |---|---|---|
/// | `smooth` | read A, write B, N | `B[i] = (A[i-1] + A[i+1]) / 2`, its ends as they are |
/// | `leap` | read P, read U, write V, N | `V = 2 * U - P` |
/// | `halve_all` | read_write A, N | `A = A / 2` |
/// | `halve` | read_write A, write R, N | the same, and `R = A[0]` |
/// | `to_pitch`, `from_pitch` | read A, write B, N, P | copies rows to and from a pitch of `P` |
/// | `to_diagonals` | read A, write B, N | copies rows to a hybrid layout of bands of 4 |
/// | `to_blocks` | read A, write B, N | copies rows to blocks of 4 by 8 |
/// | `relay` | read_write A, read_write F, epoch, N | `A[b] += A[b-1]`, block after block |
pub const KERNELS: &str = include_str!("../../data/plans.mlir");

/// A plan of these declarations, with the size `N`.
pub fn plan(fields: &[&str], buffers: &[&str], kernels: &[&str], schedule: &str) -> Plan {
    plan_of("\"N\"", fields, buffers, kernels, schedule)
}

/// A plan with these sizes. Kernels are those of [`KERNELS`], with blocks of 32 threads.
pub fn plan_of(
    params: &str,
    fields: &[&str],
    buffers: &[&str],
    kernels: &[&str],
    schedule: &str,
) -> Plan {
    let kernels: Vec<_> = kernels
        .iter()
        .map(|name| {
            format!(
                "{{\"name\": \"{name}\", \"block\": [32, 1, 1], \"static_shared\": 0, \
                 \"dynamic_shared\": 0}}"
            )
        })
        .collect();
    let text = format!(
        r#"{{"format": 2, "program": "hand",
        "target": {{"arch": "sim", "contract": false, "fast_math": false}},
        "params": [{params}], "constants": {{}},
        "scalars": [{{"name": "eps", "element": "f32", "default": 0.1}}],
        "fields": [{}], "buffers": [{}], "steps": "4", "checks": [], "index_width": 64,
        "kernels": [{}], "schedule": {schedule},
        "settings": {{"strategy": "hand", "tile": [], "pyramid_height": 1, "per_thread": []}}}}"#,
        fields.join(", "),
        buffers.join(", "),
        kernels.join(", ")
    );
    Plan::from_json(&text, "hand.plan.json").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A state field of `N` cells whose value lies in a buffer of its name.
pub fn field(name: &str) -> String {
    format!(
        "{{\"name\": \"{name}\", \"element\": \"f32\", \"role\": \"state\", \"extents\": [\"N\"], \
         \"value\": [{{\"buffer\": \"{name}\"}}]}}"
    )
}

/// A buffer of `N` cells that starts with a field.
pub fn buffer(name: &str, input: &str) -> String {
    format!(
        "{{\"name\": \"{name}\", \"kind\": \"field\", \"element\": \"f32\", \"extents\": [\"N\"], \
         \"start\": {{\"input\": \"{input}\"}}}}"
    )
}

/// A launch of one step with a block for each 32 cells, and what else its node has.
pub fn launch(kernel: &str, arguments: &str, more: &str) -> String {
    format!(
        "{{\"launch\": {{\"kernel\": \"{kernel}\", \"grid\": [\"N ceildiv 32\", \"1\", \"1\"], \
         \"steps\": 1, \"arguments\": [{arguments}, {{\"param\": \"N\"}}]{more}}}}}"
    )
}

pub const SMOOTH: &str = "{\"read\": \"A\"}, {\"write\": \"B\"}";
pub const SWAP: &str = ", \"rotate\": [[\"A\", \"B\"]]";

pub fn repeat(count: &str, body: &str) -> String {
    format!("{{\"repeat\": {{\"count\": \"{count}\", \"body\": [{body}]}}}}")
}

pub fn smooth(schedule: &str) -> Plan {
    plan(&[&field("A")], &[&buffer("A", "A"), &buffer("B", "A")], &["smooth"], schedule)
}

/// The result of a run, with its snapshots.
pub type Run = Result<(Outcome, Vec<Taken>), String>;

pub fn run(plan: &Plan, request: Request, options: Options) -> Run {
    let context = stencil_dialects::context().map_err(|error| error.to_string())?;
    let module =
        mlir::parse_module(&context, KERNELS, "plans.mlir").map_err(|error| error.to_string())?;
    let mut simulator = Simulator::new(&module, options).map_err(|error| error.to_string())?;
    let bound = bind(plan, &request).map_err(|error| error.to_string())?;
    let inputs = inputs(plan, &bound);
    let mut taken = Vec::new();
    let mut snapshot = |one| taken.push(one);
    let mut control = Control { snapshot: Some(&mut snapshot), ..Control::default() };
    let outcome = execute::run(plan, &bound, &inputs, &mut simulator, &mut control)
        .map_err(|error| error.to_string())?;
    Ok((outcome, taken))
}

pub fn size(n: i64, steps: i64) -> Request {
    Request { sizes: [("N".to_owned(), n)].into(), steps: Some(steps), ..Request::default() }
}

fn inputs(plan: &Plan, bound: &Bound) -> Inputs {
    let noise = |(place, shape): (usize, &Vec<usize>)| {
        let array = Array::noise(Element::F32, shape, place as u64 + 1).unwrap();
        (plan.fields[place].name.clone(), array)
    };
    bound.shapes.iter().enumerate().map(noise).collect()
}

/// The input of the first field of `n` cells.
pub fn noise(n: usize) -> Vec<f32> {
    cells(&Array::noise(Element::F32, &[n], 1).unwrap())
}

pub fn cells(array: &Array) -> Vec<f32> {
    let DataRef::F32(cells) = array.data() else { panic!("cells of {}", array.kind()) };
    cells.to_vec()
}

pub fn smoothed(cells: &[f32], steps: usize) -> Vec<f32> {
    let mut cells = cells.to_vec();
    for _ in 0..steps {
        let old = cells.clone();
        for (place, around) in old.windows(3).enumerate() {
            cells[place + 1] = (around[0] + around[2]) * 0.5;
        }
    }
    cells
}

pub fn result(plan: &Plan, n: i64, steps: i64) -> Vec<f32> {
    let (outcome, _) =
        run(plan, size(n, steps), Options::default()).unwrap_or_else(|error| panic!("{error}"));
    cells(&outcome.outputs["A"])
}
