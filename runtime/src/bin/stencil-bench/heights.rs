//! The time of each pyramid height of a plan that leaves it to the run.

use serde::Serialize;
use std::error::Error;
use stencil_runtime::bind::Bound;
use stencil_runtime::execute::heights::NAME;
use stencil_runtime::plan::{Node, Plan};

/// The runs with one pyramid height.
#[derive(Clone, Debug, Serialize)]
pub struct HeightTime {
    /// The alternative's name.
    pub height: String,
    /// Device time of each measured run in seconds.
    pub seconds: Vec<f64>,
}

/// Times every alternative of the plan's heights.
///
/// # Errors
/// Those of `time`.
pub fn every(
    plan: &Plan,
    bound: &Bound,
    mut time: impl FnMut(&Bound) -> Result<Vec<f64>, Box<dyn Error>>,
) -> Result<Vec<HeightTime>, Box<dyn Error>> {
    let mut times = Vec::new();
    for node in &plan.schedule {
        let Node::Choose(choose) = node else { continue };
        for one in choose.among.iter().filter(|_| choose.name == NAME) {
            let mut bound = bound.clone();
            bound.choices.insert(NAME.to_owned(), one.name.clone());
            times.push(HeightTime { height: one.name.clone(), seconds: time(&bound)? });
        }
    }
    Ok(times)
}
