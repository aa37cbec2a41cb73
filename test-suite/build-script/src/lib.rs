//! A program that was compiled when this crate was built.

#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::error::Error;
use stencil_runtime::array::{Array, Data};
use stencil_runtime::bind::{Request, bind};
use stencil_runtime::cuda::Cuda;
use stencil_runtime::execute::{Control, run};
use stencil_runtime::plan::Plan;

const PLAN: &str = include_str!(concat!(env!("OUT_DIR"), "/heat.plan.json"));
const CODE: &str = include_str!(concat!(env!("OUT_DIR"), "/heat.ptx"));

/// The launch plan of `heat.stencil`.
///
/// # Errors
/// Where the build found no `stencilc`.
pub fn plan() -> Result<Plan, Box<dyn Error>> {
    if PLAN.is_empty() {
        return Err("this crate was built without stencilc; set STENCILC and build again".into());
    }
    Ok(Plan::from_json(PLAN, "heat.stencil")?)
}

/// Its PTX.
pub fn code() -> &'static str {
    CODE
}

/// Temperatures of a rod after some steps, on the first CUDA device.
///
/// # Errors
/// Without a device, with fewer than three cells.
pub fn heat(rod: Vec<f32>, steps: i64) -> Result<Vec<f32>, Box<dyn Error>> {
    let plan = plan()?;
    let array = Array::new(vec![rod.len()], Data::F32(rod))?;
    let shapes = [("A".to_owned(), array.shape().to_vec())].into();
    let bound = bind(&plan, &Request { steps: Some(steps), shapes, ..Request::default() })?;
    let inputs = BTreeMap::from([("A".to_owned(), array)]);
    let mut program = Cuda::open(0)?.load(&plan, CODE.as_bytes())?;
    let mut outcome = run(&plan, &bound, &inputs, &mut program, &mut Control::default())?;
    match outcome.outputs.remove("A").map(Array::into_parts) {
        Some((_, Data::F32(rod))) => Ok(rod),
        _ => Err("the run has no result".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_is_there_or_the_remedy_is_told() {
        match plan() {
            Ok(plan) => assert_eq!(
                (&*plan.program, plan.params.as_slice()),
                ("heat", &["N".to_owned()][..])
            ),
            Err(error) => assert!(error.to_string().contains("set STENCILC"), "{error}"),
        }
    }
}
