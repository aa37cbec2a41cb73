//! The result of a run.

use crate::failure::Failure;
use crate::timeline::Timeline;
use crate::traffic::{Compared, Traffic};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use stencil_runtime::array::Array;
use stencil_runtime::bind::Bound;
use stencil_runtime::windows::Shape;

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The state fields after the last step. A field of structs or vecs has an array for each
    /// number of a cell: `A.u`, `V.0`.
    pub outputs: BTreeMap<String, Array>,
    /// Steps taken; fewer than asked for where an `until` of the plan ended early.
    pub steps: i64,
    /// How the program's `until` ended, where it has one.
    pub ended: Option<Ended>,
    /// Kernels launched; none by the reference.
    pub launches: u64,
    /// How long the steps took; a simulated device has no time.
    pub elapsed: Option<Duration>,
    /// Cells of the largest field.
    pub cells: usize,
    /// The device's name, where it has one.
    pub device: Option<String>,
    /// Counters of the simulator.
    pub counters: Option<stencil_simulator::Report>,
    /// Loads and stores of the simulator by the model, if they were asked for.
    pub traffic: Option<Traffic>,
    /// When each device computed and waited, if it was asked for.
    pub timeline: Option<Timeline>,
    /// How a run out of core was cut.
    pub windows: Option<Shape>,
}

impl Outcome {
    /// The simulator's counters as text, and the model's bytes beside those that it counted.
    pub fn counted(&self) -> Option<String> {
        let counted = self.counters.as_ref()?;
        let compared = self.traffic.as_ref().map(|model| Compared { model, counted }.to_string());
        Some(format!("{counted}{}", compared.unwrap_or_default()))
    }

    /// The same as JSON.
    ///
    /// # Errors
    /// An internal fault, where something in it has no JSON form.
    pub fn counted_json(&self) -> Result<Option<String>, Failure> {
        let Some(counters) = &self.counters else { return Ok(None) };
        let value = serde_json::to_value(Counted { counters, model: self.traffic.as_ref() });
        Ok(Some(format!("{:#}\n", value.map_err(Failure::internal)?)))
    }

    /// An outcome without results yet.
    pub(crate) fn of(bound: &Bound) -> Self {
        let cells = bound.shapes.iter().map(|shape| shape.iter().product()).max();
        Self {
            outputs: BTreeMap::new(),
            steps: bound.steps,
            ended: None,
            launches: 0,
            elapsed: None,
            cells: cells.unwrap_or(0),
            device: None,
            counters: None,
            traffic: None,
            timeline: None,
            windows: None,
        }
    }
}

/// The simulator's counters with the model's bytes, as JSON has them.
#[derive(Serialize)]
struct Counted<'a> {
    #[serde(flatten)]
    counters: &'a stencil_simulator::Report,
    model: Option<&'a Traffic>,
}

/// How the `until` of a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The condition as it is written.
    pub condition: String,
    /// Whether it was met; the run took all its steps where not.
    pub met: bool,
}
