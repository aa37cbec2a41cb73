//! The search for the first NaN or infinity of a run.

use super::OracleError;
use super::job::Job;
use crate::program::{FieldId, GridId, Program, Role};
use crate::source::Span;
use cranelift_entity::PrimaryMap;
use stencil_runtime::array::Array;
use stencil_runtime::number::Numeral;

/// What the search needs to know of a program.
pub struct Finite<'a> {
    /// The program.
    pub program: &'a Program,
    /// First and last coordinate of every grid.
    pub bounds: &'a PrimaryMap<GridId, Vec<(i64, i64)>>,
}

impl Finite<'_> {
    /// Checks the inputs.
    pub fn inputs(&self, fields: &PrimaryMap<FieldId, Array>) -> Result<(), OracleError> {
        let inputs = self.program.fields.iter();
        let mut inputs =
            inputs.filter(|(_, field)| matches!(field.role, Role::State | Role::Const));
        inputs.try_for_each(|(id, _)| self.field(fields, id, None, |_| None))
    }

    /// Checks the fields that a function has updated.
    pub fn function(
        &self,
        fields: &PrimaryMap<FieldId, Array>,
        job: &Job,
        step: u64,
    ) -> Result<(), OracleError> {
        let mut updates = job.updates.iter().enumerate();
        updates.try_for_each(|(place, updated)| {
            self.field(fields, updated.field, Some(step), |point| job.span(point, place))
        })
    }

    /// Checks a field; `span` tells where the value of a point stands.
    pub fn field(
        &self,
        fields: &PrimaryMap<FieldId, Array>,
        id: FieldId,
        step: Option<u64>,
        span: impl Fn(&[i64]) -> Option<Span>,
    ) -> Result<(), OracleError> {
        let (Some(field), Some(array)) = (self.program.fields.get(id), fields.get(id)) else {
            return Ok(());
        };
        let Some(cell) = array.first_not_finite() else { return Ok(()) };
        let bounds = match field.role {
            Role::Reduction => None,
            _ => self.bounds.get(field.grid),
        };
        let mut rest = cell;
        let mut point = Vec::new();
        for (first, last) in bounds.into_iter().flatten().rev() {
            let extent = usize::try_from(last - first + 1).unwrap_or(0).max(1);
            point.push(first + (rest % extent) as i64);
            rest /= extent;
        }
        point.reverse();
        let value = array.number(cell).map(|value| Numeral::from(value).to_string());
        Err(OracleError::NotFinite {
            field: field.name.clone(),
            span: span(&point),
            point,
            value: value.unwrap_or_default(),
            step,
        })
    }
}

/// The words for a value that is a NaN or an infinity.
pub fn lost(field: &str, point: &[i64], value: &str, step: Option<u64>) -> String {
    let point: Vec<_> = point.iter().map(i64::to_string).collect();
    let at = if point.is_empty() { String::new() } else { format!(" at ({})", point.join(", ")) };
    match step {
        Some(step) => format!("`{field}` becomes {value}{at} in step {step}"),
        None => format!("`{field}` is {value}{at} before the first step"),
    }
}
