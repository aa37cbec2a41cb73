//! Binds a plan to sizes: finds every run-time size, checks them, and lays out the buffers.
//!
//! Sizes come from the user and from the shapes of the arrays: an extent that is affine in the
//! params is an equation, and equations with one unknown are solved until none is left. Sizes that
//! are given twice must agree.

mod buffers;
mod error;
mod sizes;
#[cfg(test)]
mod tests;

use crate::expr::Sizes;
use crate::number::{Number, Numeral};
use crate::plan::{FieldDecl, MOST_STEPS, Node, Plan};
pub use buffers::{Buffer, BufferId, Held};
pub use error::BindError;
use std::collections::BTreeMap;

/// The user's choices for a run, beside the plan and the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Run-time sizes by name.
    pub sizes: Sizes,
    /// Number of steps; `None` for the plan's own.
    pub steps: Option<i64>,
    /// Steps that were taken before: the number of the first step, from 0.
    pub first_step: i64,
    /// Run-time scalars by name.
    pub scalars: BTreeMap<String, Numeral>,
    /// Shapes of the arrays that are there, by field.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// Alternatives of the schedule, by the name of their choice; the plan chooses the others.
    pub choices: BTreeMap<String, String>,
}

/// A plan's sizes, scalars and buffers, all known and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// All sizes, with the fixed ones and `steps`.
    pub sizes: Sizes,
    /// Number of steps.
    pub steps: i64,
    /// The number of the first step.
    pub first_step: i64,
    /// Cells per dimension of each field, in the plan's order.
    pub shapes: Vec<Vec<usize>>,
    /// The device buffers, in the plan's order.
    pub buffers: Vec<Buffer>,
    /// Where each field's value lies, in the plan's order.
    pub values: Vec<Vec<Held>>,
    /// The scalars' values, each of its own type, by name.
    pub scalars: BTreeMap<String, Number>,
    /// Alternatives that the caller chose, by the name of their choice.
    pub choices: BTreeMap<String, String>,
}

impl Bound {
    /// Bytes of all buffers together.
    pub fn device_bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.bytes() as u64).fold(0, u64::saturating_add)
    }

    /// Bytes of some fields on the host.
    pub fn field_bytes(&self, plan: &Plan, of: impl Fn(&FieldDecl) -> bool) -> u64 {
        let fields = plan.fields.iter().zip(&self.shapes).filter(|(field, _)| of(field));
        let bytes = fields.map(|(field, shape)| {
            let cells = shape.iter().fold(1_u64, |all, cells| all.saturating_mul(*cells as u64));
            cells.saturating_mul(field.element.size() as u64)
        });
        bytes.fold(0, u64::saturating_add)
    }

    /// The sizes for messages: `N = 344, M = 403`.
    pub fn sizes_text(&self) -> String {
        sizes_text(&self.sizes)
    }
}

/// Finds and checks all that a run of the plan needs to know.
///
/// # Errors
/// When a size or scalar is missing, unknown or contradicted, when a condition of the plan does
/// not hold, or when a size overflows.
pub fn bind(plan: &Plan, request: &Request) -> Result<Bound, BindError> {
    let mut known = sizes::given(plan, request)?;
    sizes::solve(plan, request, &mut known)?;
    let missing = plan.params.iter().filter(|name| !known.contains_key(*name));
    let missing: Vec<_> = missing.cloned().collect();
    if !missing.is_empty() {
        return Err(sizes::missing(plan, request, missing));
    }
    let mut sizes: Sizes = known.iter().map(|(name, size)| (name.clone(), size.value)).collect();
    sizes::compare_shapes(plan, request, &sizes, &known)?;

    let steps = match request.steps {
        Some(steps) => steps,
        None => plan.steps.evaluate(&sizes)?,
    };
    if !(0..=MOST_STEPS).contains(&steps) {
        return Err(BindError::Steps(steps));
    }
    let first_step = request.first_step;
    if !(0..=MOST_STEPS - steps).contains(&first_step) {
        return Err(BindError::FirstStep(first_step));
    }
    // Conditions bound the number of the last step, the schedule counts the steps of this run.
    sizes.insert("steps".to_string(), first_step + steps);

    let shapes = plan
        .fields
        .iter()
        .map(|field| buffers::shape_of(plan, field, &sizes))
        .collect::<Result<Vec<_>, _>>()?;
    check(plan, &sizes)?;
    sizes.insert("steps".to_string(), steps);
    let buffers = plan
        .buffers
        .iter()
        .map(|buffer| buffers::bound(plan, buffer, &shapes, &sizes))
        .collect::<Result<Vec<_>, _>>()?;
    let values = buffers::values(plan, &shapes, &buffers, &sizes)?;
    Ok(Bound {
        steps,
        first_step,
        shapes,
        buffers,
        values,
        scalars: scalars(plan, request)?,
        choices: choices(plan, request)?,
        sizes,
    })
}

fn check(plan: &Plan, sizes: &Sizes) -> Result<(), BindError> {
    for condition in &plan.checks {
        let mut void = false;
        for expr in &condition.unless_negative {
            void |= expr.evaluate(sizes)? < 0;
        }
        if !void && condition.value.evaluate(sizes)? < 0 {
            return Err(BindError::Check {
                message: condition.message.clone(),
                sizes: sizes_text(sizes),
            });
        }
    }
    Ok(())
}

fn scalars(plan: &Plan, request: &Request) -> Result<BTreeMap<String, Number>, BindError> {
    if let Some(name) =
        request.scalars.keys().find(|name| plan.scalars.iter().all(|scalar| scalar.name != **name))
    {
        return Err(BindError::UnknownScalar {
            program: plan.program.clone(),
            name: name.clone(),
            known: listed(plan.scalars.iter().map(|scalar| &scalar.name)),
        });
    }
    let mut values = BTreeMap::new();
    for scalar in &plan.scalars {
        let value = request.scalars.get(&scalar.name).or(scalar.default.as_ref());
        let value = value.ok_or_else(|| BindError::MissingScalar(scalar.name.clone()))?;
        let number = value.number(scalar.element).ok_or_else(|| BindError::Scalar {
            name: scalar.name.clone(),
            element: scalar.element,
            value: value.clone(),
        })?;
        values.insert(scalar.name.clone(), number);
    }
    Ok(values)
}

fn choices(plan: &Plan, request: &Request) -> Result<BTreeMap<String, String>, BindError> {
    let mut known = Vec::new();
    for node in plan.nodes() {
        if let Node::Choose(choose) = node {
            known.extend(choose.among.iter().map(|one| (&choose.name, &one.name)));
        }
    }
    for (name, wanted) in &request.choices {
        if !known.contains(&(name, wanted)) {
            return Err(BindError::UnknownChoice {
                program: plan.program.clone(),
                name: name.clone(),
                wanted: wanted.clone(),
                known: listed(known.iter().map(|(name, wanted)| format!("`{name}` of `{wanted}`"))),
            });
        }
    }
    Ok(request.choices.clone())
}

fn sizes_text(sizes: &Sizes) -> String {
    listed(sizes.iter().map(|(name, value)| format!("{name} = {value}")))
}

fn listed(items: impl Iterator<Item = impl ToString>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    if items.is_empty() { "none".to_string() } else { items.join(", ") }
}
