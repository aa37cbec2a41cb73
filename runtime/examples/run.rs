//! Loads a plan with the PTX beside it, and runs it on seeded noise on the first CUDA device.
//!
//! ```text
//! cargo run -p stencil-runtime --example run -- heat2d.plan.json N=512 M=512
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use stencil_runtime::array::Array;
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::cuda::Cuda;
use stencil_runtime::execute::{Control, run};
use stencil_runtime::input::assignment;
use stencil_runtime::plan::{Plan, ptx_beside};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: run NAME.plan.json [SIZE=NUMBER]...")?;
    let sizes: BTreeMap<String, i64> =
        arguments.map(|argument| assignment(&argument)).collect::<Result<_, _>>()?;
    let plan = Plan::load(Path::new(&file))?;
    let bound = bind(&plan, &Request { sizes, ..Request::default() })?;
    let mut inputs = BTreeMap::new();
    for (field, shape) in plan.fields.iter().zip(&bound.shapes) {
        if field.role.is_input() {
            inputs.insert(field.name.clone(), Array::noise(field.element, shape, 1)?);
        }
    }
    let code = std::fs::read(ptx_beside(Path::new(&file)))?;
    let mut program = Cuda::open(0)?.load(&plan, &code)?;
    let outcome = run(&plan, &bound, &inputs, &mut program, &mut Control::default())?;
    let (steps, elapsed) = (outcome.launched.steps, outcome.launched.elapsed);
    println!("{steps} steps in {:.3?}", elapsed.unwrap_or_default());
    for (name, array) in &outcome.outputs {
        println!("{name}: {}, the first cell {:?}", array.kind(), array.get(0));
    }
    Ok(())
}
