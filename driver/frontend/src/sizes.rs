//! Values of the run-time sizes: from the shapes of arrays, and what follows from them.

use crate::program::{Affine, FieldId, Param, ParamId, Program, Region};
use crate::source::Span;
use cranelift_entity::PrimaryMap;
use std::collections::BTreeMap;
use stencil_runtime::array::shape_text;

/// A value for every run-time size.
pub type Sizes = BTreeMap<ParamId, i64>;

/// Why sizes do not fit a program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// A size has no value.
    #[error("the size `{name}` is not known; give it with -D {name}=...")]
    Unknown {
        /// The size.
        name: String,
    },
    /// A number does not fit its type.
    #[error("size overflow: {what} does not fit 64 bits")]
    Overflow {
        /// What was computed.
        what: String,
    },
    /// An array for a field that the program does not have.
    #[error("the program has no field `{name}`")]
    NoSuchField {
        /// The name.
        name: String,
    },
    /// An array has a shape that no size, or not the sizes found so far, can give.
    #[error("{message}")]
    Shape {
        /// A whole sentence naming the arrays.
        message: String,
    },
    /// A condition of the program fails.
    #[error("{message}")]
    Check {
        /// The condition's sentence, with the sizes.
        message: String,
        /// Where the source asks for it.
        span: Span,
    },
}

/// The value of an affine expression.
///
/// # Errors
/// A size without a value, and overflow of i64.
pub fn evaluate(affine: &Affine, params: &PrimaryMap<ParamId, Param>, sizes: &Sizes) -> Result<i64, SizeError> {
    let overflow = || SizeError::Overflow { what: format!("`{}`", affine.show(params)) };
    let mut sum = i128::from(affine.constant);
    for (id, coefficient) in &affine.terms {
        let name = params.get(*id).map_or("?", |param| &param.name);
        let value = sizes.get(id).ok_or_else(|| SizeError::Unknown { name: name.into() })?;
        let product = i128::from(*coefficient) * i128::from(*value);
        sum = sum.checked_add(product).ok_or_else(overflow)?;
    }
    i64::try_from(sum).map_err(|_| overflow())
}

/// First and last point of a region in every dimension, both inclusive.
///
/// # Errors
/// As [`evaluate`].
pub fn bounds(program: &Program, region: &Region, sizes: &Sizes) -> Result<Vec<(i64, i64)>, SizeError> {
    let value = |affine: &Affine| evaluate(affine, &program.params, sizes);
    let pairs = region.lower.iter().zip(&region.upper);
    pairs.map(|(lower, upper)| Ok((value(lower)?, value(upper)?))).collect()
}

/// Cells per dimension of every field, slowest dimension first.
///
/// # Errors
/// As [`evaluate`]; a negative extent; fields of more than 2^63 bytes.
pub fn extents(program: &Program, sizes: &Sizes) -> Result<PrimaryMap<FieldId, Vec<usize>>, SizeError> {
    let mut result = PrimaryMap::new();
    for field in program.fields.values() {
        let overflow = || SizeError::Overflow { what: format!("the size of the field `{}`", field.name) };
        let region = program.grids.get(field.grid).map(|grid| &grid.region);
        let mut shape = Vec::new();
        let mut bytes = 8i128;
        for (lower, upper) in region.map(|region| bounds(program, region, sizes)).transpose()?.unwrap_or_default() {
            let extent = i128::from(upper) - i128::from(lower) + 1;
            bytes = bytes.checked_mul(extent.max(1)).ok_or_else(overflow)?;
            if extent < 0 {
                let message = format!("the field `{}` would have {extent} cells in a dimension", field.name);
                return Err(SizeError::Shape { message });
            }
            shape.push(usize::try_from(extent).map_err(|_| overflow())?);
        }
        if bytes > i128::from(i64::MAX) {
            return Err(overflow());
        }
        result.push(shape);
    }
    Ok(result)
}

/// The number of steps that the program asks for.
///
/// # Errors
/// As [`evaluate`]; a negative number.
pub fn steps(program: &Program, sizes: &Sizes) -> Result<u64, SizeError> {
    let steps = evaluate(&program.steps, &program.params, sizes)?;
    let message = || format!("the number of steps is negative: {steps}");
    u64::try_from(steps).map_err(|_| SizeError::Shape { message: message() })
}

/// Whether the sizes satisfy all of `Program::checks`.
///
/// # Errors
/// The first condition that fails; as [`evaluate`].
pub fn check(program: &Program, sizes: &Sizes) -> Result<(), SizeError> {
    for check in &program.checks {
        let empty = match &check.unless_empty {
            Some(region) => bounds(program, region, sizes)?.iter().any(|(lower, upper)| lower > upper),
            None => false,
        };
        if !empty && evaluate(&check.value, &program.params, sizes)? < 0 {
            let message = format!("{}; here {}", check.message, show(program, sizes));
            return Err(SizeError::Check { message, span: check.span });
        }
    }
    Ok(())
}

/// `N = 344, M = 403`
fn show(program: &Program, sizes: &Sizes) -> String {
    let name = |id: &ParamId| program.params.get(*id).map_or("?", |param| &param.name);
    let pairs: Vec<_> = sizes.iter().map(|(id, value)| format!("{} = {value}", name(id))).collect();
    pairs.join(", ")
}

/// One dimension of one array: `extent` must be `found`.
struct Equation<'a> {
    array: &'a str,
    shape: &'a [usize],
    dimension: usize,
    extent: Affine,
    found: i128,
}

/// Finds the run-time sizes from the shapes of arrays, given by field. Each equation that has one
/// unknown size left gives it, until none does.
///
/// # Errors
/// Arrays whose rank or extents cannot be, or contradict each other (both are named); a size that
/// no array tells.
pub fn solve(program: &Program, arrays: &[(&str, &[usize])]) -> Result<Sizes, SizeError> {
    let mut equations = Vec::new();
    for (name, shape) in arrays {
        equations.extend(equations_of(program, name, shape)?);
    }
    // The value of a size, and the array that told it.
    let mut known: BTreeMap<ParamId, (i128, &str)> = BTreeMap::new();
    loop {
        let before = known.len();
        for equation in &equations {
            settle(program, equation, &mut known)?;
        }
        if known.len() == before {
            break;
        }
    }
    let mut sizes = Sizes::new();
    for (id, param) in &program.params {
        if param.value.is_some() {
            continue;
        }
        let Some((value, _)) = known.get(&id) else {
            return Err(SizeError::Unknown { name: param.name.clone() });
        };
        let overflow = |_| SizeError::Overflow { what: format!("the size `{}`", param.name) };
        sizes.insert(id, i64::try_from(*value).map_err(overflow)?);
    }
    Ok(sizes)
}

fn equations_of<'a>(program: &Program, name: &'a str, shape: &'a [usize]) -> Result<Vec<Equation<'a>>, SizeError> {
    let field = program.fields.values().find(|field| field.name == name);
    let field = field.ok_or_else(|| SizeError::NoSuchField { name: name.into() })?;
    let Some(grid) = program.grids.get(field.grid) else { return Ok(Vec::new()) };
    let dimensions = grid.region.lower.len();
    if shape.len() != dimensions {
        let message = format!(
            "the array for `{name}` has shape {}, but `{name}` has {dimensions} dimension{}",
            shape_text(shape),
            if dimensions == 1 { "" } else { "s" }
        );
        return Err(SizeError::Shape { message });
    }
    let ends = grid.region.lower.iter().zip(&grid.region.upper).zip(shape).enumerate();
    ends.map(|(dimension, ((lower, upper), found))| {
        let extent = upper.minus(lower).and_then(|difference| difference.shifted(1));
        let overflow = || SizeError::Overflow { what: format!("an extent of `{name}`") };
        let extent = extent.ok_or_else(overflow)?;
        Ok(Equation { array: name, shape, dimension, extent, found: *found as i128 })
    })
    .collect()
}

/// Uses one equation: finds its only unknown size, or compares where there is none.
fn settle<'a>(
    program: &Program,
    equation: &Equation<'a>,
    known: &mut BTreeMap<ParamId, (i128, &'a str)>,
) -> Result<(), SizeError> {
    let mut rest = equation.found - i128::from(equation.extent.constant);
    let mut unknown = Vec::new();
    for (id, coefficient) in &equation.extent.terms {
        match known.get(id) {
            // An i64 and a value that came from an array's extent: the product fits.
            Some((value, _)) => rest = rest.saturating_sub(i128::from(*coefficient).saturating_mul(*value)),
            None => unknown.push((*id, i128::from(*coefficient))),
        }
    }
    match unknown.as_slice() {
        [] if rest == 0 => Ok(()),
        [] => Err(conflict(program, equation, known)),
        [(id, coefficient)] => {
            let value = rest / coefficient;
            if rest % coefficient != 0 || value < 0 {
                return Err(conflict(program, equation, known));
            }
            known.insert(*id, (value, equation.array));
            Ok(())
        }
        _ => Ok(()),
    }
}

fn conflict(program: &Program, equation: &Equation, known: &BTreeMap<ParamId, (i128, &str)>) -> SizeError {
    let Equation { array, shape, dimension, extent, found } = equation;
    let told: Vec<String> = extent
        .terms
        .iter()
        .filter_map(|(id, _)| {
            let (value, by) = known.get(id)?;
            let name = &program.params.get(*id)?.name;
            Some(format!("the array for `{by}` makes {name} = {value}"))
        })
        .collect();
    let because = if told.is_empty() { String::new() } else { format!(", and {}", told.join(", ")) };
    let message = format!(
        "the array for `{array}` has shape {}: {found} in dimension {dimension}, where the program \
         says {}{because}",
        shape_text(shape),
        extent.show(&program.params),
    );
    SizeError::Shape { message }
}
