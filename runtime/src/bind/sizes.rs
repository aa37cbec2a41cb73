//! Run-time sizes: from the user, and from the shapes of the arrays as equations.

use super::{BindError, Request, listed};
use crate::array::shape_text;
use crate::expr::{Affine, Expr, Sizes};
use crate::plan::{FieldDecl, Plan};
use std::collections::BTreeMap;

/// A size and where it comes from.
pub struct Size {
    /// The value.
    pub value: i64,
    from: String,
}

/// The sizes that the compile fixed and that the user gives.
pub fn given(plan: &Plan, request: &Request) -> Result<BTreeMap<String, Size>, BindError> {
    let mut known = BTreeMap::new();
    for (name, &value) in &plan.constants {
        known.insert(name.clone(), Size { value, from: "fixed by the compile".to_string() });
    }
    for (name, &value) in &request.sizes {
        if let Some(&fixed) = plan.constants.get(name) {
            if fixed != value {
                let program = plan.program.clone();
                return Err(BindError::Fixed { program, name: name.clone(), fixed, wanted: value });
            }
            continue;
        }
        if !plan.params.contains(name) {
            return Err(BindError::UnknownSize {
                program: plan.program.clone(),
                name: name.clone(),
                known: listed(plan.params.iter()),
            });
        }
        known.insert(name.clone(), Size { value, from: "given".to_string() });
    }
    Ok(known)
}

/// Solves the equations that the shapes of the arrays pose, one unknown at a time.
pub fn solve(
    plan: &Plan,
    request: &Request,
    known: &mut BTreeMap<String, Size>,
) -> Result<(), BindError> {
    let mut equations = Vec::new();
    for field in &plan.fields {
        let Some(shape) = request.shapes.get(&field.name) else {
            continue;
        };
        if shape.len() != field.extents.len() {
            return Err(BindError::Rank {
                field: field.declared_name().to_owned(),
                shape: shape_text(shape),
                wanted: field.extents.len(),
                extents: listed(field.extents.iter()),
            });
        }
        for (dimension, (extent, &found)) in field.extents.iter().zip(shape).enumerate() {
            if let Some(affine) = extent.affine() {
                equations.push((field, shape, dimension, extent, affine, found));
            }
        }
    }
    loop {
        let before = known.len();
        for (field, shape, dimension, extent, affine, found) in &equations {
            let mut unknown = affine.terms.iter().filter(|(name, _)| !known.contains_key(*name));
            let (Some((name, &coefficient)), None) = (unknown.next(), unknown.next()) else {
                continue;
            };
            let value = solved(affine, name, coefficient, *found, known).ok_or_else(|| {
                BindError::NoSize {
                    field: field.declared_name().to_owned(),
                    shape: shape_text(shape),
                    dimension: *dimension,
                    extent: (*extent).clone(),
                    name: name.clone(),
                }
            })?;
            let name_of_field = field.declared_name();
            let from = format!("dimension {dimension} of array `{name_of_field}`");
            known.insert(name.clone(), Size { value, from });
        }
        if known.len() == before {
            return Ok(());
        }
    }
}

/// The value of `name` in `affine == found`; `None` where it is not whole or overflows.
fn solved(
    affine: &Affine,
    name: &str,
    coefficient: i64,
    found: usize,
    known: &BTreeMap<String, Size>,
) -> Option<i64> {
    let mut rest = i128::try_from(found).ok()? - i128::from(affine.constant);
    for (other, &factor) in affine.terms.iter().filter(|(other, _)| *other != name) {
        rest -= i128::from(factor) * i128::from(known.get(other)?.value);
    }
    let coefficient = i128::from(coefficient);
    if rest % coefficient != 0 {
        return None;
    }
    i64::try_from(rest / coefficient).ok()
}

/// Refuses arrays whose shapes the sizes contradict.
pub fn compare_shapes(
    plan: &Plan,
    request: &Request,
    sizes: &Sizes,
    known: &BTreeMap<String, Size>,
) -> Result<(), BindError> {
    for field in &plan.fields {
        let Some(shape) = request.shapes.get(&field.name) else {
            continue;
        };
        for (dimension, (extent, &found)) in field.extents.iter().zip(shape).enumerate() {
            let wanted = extent.evaluate(sizes)?;
            if i64::try_from(found) == Ok(wanted) {
                continue;
            }
            let mut reasons = Vec::new();
            extent.for_each_name(&mut |name| {
                if let Some(size) = known.get(name) {
                    let reason = format!("{name} = {}, {}", size.value, size.from);
                    if !reasons.contains(&reason) {
                        reasons.push(reason);
                    }
                }
            });
            if reasons.is_empty() {
                reasons.push("fixed by the compile".to_string());
            }
            let wanted = match extent.as_int() {
                Some(value) => value.to_string(),
                None => format!("{wanted}, `{extent}`"),
            };
            return Err(BindError::Shape {
                field: field.declared_name().to_owned(),
                shape: shape_text(shape),
                dimension,
                wanted,
                because: reasons.join("; "),
            });
        }
    }
    Ok(())
}

/// The error of a size without a value, and the fields without a shape that would tell it.
pub fn missing(plan: &Plan, request: &Request, names: Vec<String>) -> BindError {
    let told = |field: &&FieldDecl| {
        !request.shapes.contains_key(&field.name) && names.iter().any(|name| tells(field, name))
    };
    let fields = plan.fields.iter().filter(|field| field.role.is_input()).filter(told);
    let mut fields: Vec<String> = fields.map(|field| field.declared_name().to_owned()).collect();
    fields.dedup();
    BindError::MissingSize { names, fields }
}

fn tells(field: &FieldDecl, name: &str) -> bool {
    field.extents.iter().filter_map(Expr::affine).any(|affine| affine.terms.contains_key(name))
}
