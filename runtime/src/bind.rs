//! Binds a plan to sizes: finds every run-time size, checks them, and lays out the buffers.
//!
//! Sizes come from the user and from the shapes of the arrays: an extent that is affine in the
//! params is an equation, and equations with one unknown are solved until none is left. What is
//! given twice must agree.

use crate::array::{Element, shape_text};
use crate::expr::{Affine, Expr, ExprError, Sizes};
use crate::number::{Number, Numeral};
use crate::plan::{FieldDecl, Plan, Role};
use std::collections::BTreeMap;
use thiserror::Error;

/// Why a plan can't run with these sizes and scalars.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BindError {
    /// A size is given that the program does not have.
    #[error("{program} has no run-time size `{name}`; it has {known}")]
    UnknownSize {
        /// The program.
        program: String,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A size is given that the compile fixed.
    #[error(
        "`{name}` was fixed to {fixed} when {program} was compiled; compile it again with -D \
         {name}={wanted}"
    )]
    Fixed {
        /// The program.
        program: String,
        /// The size.
        name: String,
        /// Its value.
        fixed: i64,
        /// The value given.
        wanted: i64,
    },
    /// A size has no value.
    #[error(
        "the run-time size `{name}` has no value; give one with --size {name}=... or an array \
         whose shape tells it{}",
        told_by(fields)
    )]
    MissingSize {
        /// The size.
        name: String,
        /// The fields whose shape would tell it.
        fields: Vec<String>,
    },
    /// The shape of an array and the sizes known so far exclude each other.
    #[error(
        "array `{field}` is {shape}, but its dimension {dimension} must be {wanted} ({because})"
    )]
    Shape {
        /// The field.
        field: String,
        /// The array's shape.
        shape: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The extent wanted, with its value.
        wanted: String,
        /// Where the sizes come from.
        because: String,
    },
    /// An extent can't come from any whole size.
    #[error(
        "array `{field}` is {shape}, but no whole `{name}` makes its dimension {dimension} \
         (`{extent}`) so"
    )]
    NoSize {
        /// The field.
        field: String,
        /// The array's shape.
        shape: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The extent in the plan.
        extent: Expr,
        /// The size that was sought.
        name: String,
    },
    /// An array has another number of dimensions than its field.
    #[error("array `{field}` is {shape}; the program wants {wanted} dimensions ({extents})")]
    Rank {
        /// The field.
        field: String,
        /// The array's shape.
        shape: String,
        /// The field's number of dimensions.
        wanted: usize,
        /// The field's extents.
        extents: String,
    },
    /// A field would have a negative extent.
    #[error(
        "field `{field}` would have {value} cells in dimension {dimension} (`{extent}`, {sizes}); \
         use larger sizes"
    )]
    Negative {
        /// The field.
        field: String,
        /// The dimension, from 0.
        dimension: usize,
        /// The extent in the plan.
        extent: Expr,
        /// Its value.
        value: i64,
        /// The sizes.
        sizes: String,
    },
    /// A field has more cells than the kernels can index.
    #[error(
        "size overflow: field `{field}` has {cells} cells ({shape}), more than {width}-bit indices \
         reach; compile with these sizes fixed (-D) or use smaller ones"
    )]
    Index {
        /// The field.
        field: String,
        /// Its cells.
        cells: String,
        /// Its shape.
        shape: String,
        /// Bits of an index.
        width: u32,
    },
    /// A condition of the plan does not hold.
    #[error("{message} ({sizes})")]
    Check {
        /// The plan's words.
        message: String,
        /// The sizes.
        sizes: String,
    },
    /// The number of steps is negative.
    #[error("{0} steps can't be run; give 0 or more with --steps")]
    Steps(i64),
    /// A scalar is given that the program does not have.
    #[error("{program} has no scalar `{name}`; it has {known}")]
    UnknownScalar {
        /// The program.
        program: String,
        /// The name given.
        name: String,
        /// The names there are.
        known: String,
    },
    /// A scalar has neither a value nor a default.
    #[error("the scalar `{0}` has no value; give one with --set {0}=...")]
    MissingScalar(String),
    /// A number does not fit the scalar's type.
    #[error("{value} is no {element}, the type of the scalar `{name}`")]
    Scalar {
        /// The scalar.
        name: String,
        /// Its type.
        element: Element,
        /// The value given.
        value: Numeral,
    },
    /// An expression of the plan has no value.
    #[error(transparent)]
    Expr(#[from] ExprError),
}

/// What the user gives beside the plan and the data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Run-time sizes by name.
    pub sizes: Sizes,
    /// Number of steps; `None` for the plan's own.
    pub steps: Option<i64>,
    /// Run-time scalars by name.
    pub scalars: BTreeMap<String, Numeral>,
    /// Shapes of the arrays that are there, by field.
    pub shapes: BTreeMap<String, Vec<usize>>,
}

/// A device buffer: its place in [`Bound::buffers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub usize);

/// A device buffer to be allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The field that it holds, by place in [`Plan::fields`].
    pub field: usize,
    /// The field's name.
    pub name: String,
    /// Type of a cell.
    pub element: Element,
    /// Number of cells.
    pub cells: usize,
}

impl Buffer {
    /// Its size in bytes; no overflow, since [`bind`] checked it.
    pub fn bytes(&self) -> usize {
        self.cells * self.element.size()
    }
}

/// A plan's sizes, scalars and buffers, all known and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// All sizes, with the fixed ones and `steps`.
    pub sizes: Sizes,
    /// Number of steps.
    pub steps: i64,
    /// Cells per dimension of each field, in the plan's order.
    pub shapes: Vec<Vec<usize>>,
    /// The device buffers, those of one field side by side.
    pub buffers: Vec<Buffer>,
    /// The first buffer of each field, in the plan's order.
    pub first_buffer: Vec<BufferId>,
    /// The scalars' values, each of its own type, by name.
    pub scalars: BTreeMap<String, Number>,
}

impl Bound {
    /// Bytes of all buffers together.
    pub fn device_bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.bytes() as u64).sum()
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
    let mut known = given_sizes(plan, request)?;
    solve(plan, request, &mut known)?;
    if let Some(name) = plan.params.iter().find(|name| !known.contains_key(*name)) {
        let fields =
            plan.fields.iter().filter(|field| field.role != Role::Temp && tells(field, name));
        let mut fields: Vec<String> =
            fields.map(|field| field.declared_name().to_owned()).collect();
        fields.dedup();
        return Err(BindError::MissingSize { name: name.clone(), fields });
    }
    let mut sizes: Sizes = known.iter().map(|(name, size)| (name.clone(), size.value)).collect();
    compare_shapes(plan, request, &sizes, &known)?;

    let steps = match request.steps {
        Some(steps) => steps,
        None => plan.steps.evaluate(&sizes)?,
    };
    if steps < 0 {
        return Err(BindError::Steps(steps));
    }
    sizes.insert("steps".to_string(), steps);

    let shapes = plan
        .fields
        .iter()
        .map(|field| shape_of(plan, field, &sizes))
        .collect::<Result<Vec<_>, _>>()?;
    check(plan, &sizes)?;
    let mut buffers = Vec::new();
    let mut first_buffer = Vec::new();
    for (place, (field, shape)) in plan.fields.iter().zip(&shapes).enumerate() {
        first_buffer.push(BufferId(buffers.len()));
        for _ in 0..field.buffers {
            let cells = shape.iter().product();
            buffers.push(Buffer {
                field: place,
                name: field.name.clone(),
                element: field.element,
                cells,
            });
        }
    }
    Ok(Bound { steps, shapes, buffers, first_buffer, scalars: scalars(plan, request)?, sizes })
}

/// A size and where it comes from.
struct Size {
    value: i64,
    from: String,
}

fn given_sizes(plan: &Plan, request: &Request) -> Result<BTreeMap<String, Size>, BindError> {
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
fn solve(
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
                field: field.name.clone(),
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
                    field: field.name.clone(),
                    shape: shape_text(shape),
                    dimension: *dimension,
                    extent: (*extent).clone(),
                    name: name.clone(),
                }
            })?;
            let from = format!("dimension {dimension} of array `{}`", field.name);
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

fn compare_shapes(
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
                field: field.name.clone(),
                shape: shape_text(shape),
                dimension,
                wanted,
                because: reasons.join("; "),
            });
        }
    }
    Ok(())
}

fn shape_of(plan: &Plan, field: &FieldDecl, sizes: &Sizes) -> Result<Vec<usize>, BindError> {
    let mut shape = Vec::new();
    for (dimension, extent) in field.extents.iter().enumerate() {
        let value = extent.evaluate(sizes)?;
        shape.push(usize::try_from(value).map_err(|_| BindError::Negative {
            field: field.name.clone(),
            dimension,
            extent: extent.clone(),
            value,
            sizes: sizes_text(sizes),
        })?);
    }
    // An extent of 0 counts as 1, so that no product of some extents overflows anywhere.
    let cells: u128 =
        shape.iter().fold(1u128, |n, &extent| n.saturating_mul(extent.max(1) as u128));
    // The memory of the largest array that any machine can hold bounds 64-bit indices.
    let most = if plan.index_width == 32 { i32::MAX as u128 } else { (isize::MAX as u128) / 64 };
    if cells > most {
        return Err(BindError::Index {
            field: field.name.clone(),
            cells: cells.to_string(),
            shape: shape_text(&shape),
            width: plan.index_width,
        });
    }
    Ok(shape)
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

fn tells(field: &FieldDecl, name: &str) -> bool {
    field.extents.iter().filter_map(Expr::affine).any(|affine| affine.terms.contains_key(name))
}

fn told_by(fields: &[String]) -> String {
    if fields.is_empty() { String::new() } else { format!(" (--in {}=...)", fields.join(", ")) }
}

fn sizes_text(sizes: &Sizes) -> String {
    listed(sizes.iter().map(|(name, value)| format!("{name} = {value}")))
}

fn listed(items: impl Iterator<Item = impl ToString>) -> String {
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    if items.is_empty() { "none".to_string() } else { items.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::heat;

    fn request(sizes: &[(&str, i64)], shapes: &[(&str, &[usize])]) -> Request {
        Request {
            sizes: sizes.iter().map(|(name, value)| (name.to_string(), *value)).collect(),
            shapes: shapes.iter().map(|(name, shape)| (name.to_string(), shape.to_vec())).collect(),
            ..Request::default()
        }
    }

    fn error(sizes: &[(&str, i64)], shapes: &[(&str, &[usize])]) -> String {
        bind(&heat(), &request(sizes, shapes)).unwrap_err().to_string()
    }

    #[test]
    fn sizes_come_from_the_user_or_from_arrays() {
        let from_user = bind(&heat(), &request(&[("N", 8), ("M", 3)], &[])).unwrap();
        let from_arrays = bind(&heat(), &request(&[], &[("A", &[8, 7])])).unwrap();
        let from_both = bind(&heat(), &request(&[("M", 3), ("Q", 5)], &[("K", &[8])])).unwrap();
        assert_eq!(from_user, from_arrays);
        assert_eq!(from_user, from_both);
        assert_eq!(from_user.shapes, [vec![8, 7], vec![8], vec![5]]);
        assert_eq!(from_user.first_buffer, [BufferId(0), BufferId(2), BufferId(3)]);
        assert_eq!(from_user.device_bytes(), 2 * 8 * 7 * 4 + 8 * 4 + 5 * 8);
        assert_eq!((from_user.steps, from_user.sizes["steps"]), (10, 10));
        assert_eq!(from_user.scalars["alpha"], Number::F32(0.1));
        assert_eq!(from_user.sizes_text(), "M = 3, N = 8, Q = 5, steps = 10");
    }

    #[test]
    fn equations_are_solved_in_any_order() {
        let mut plan = heat();
        plan.fields[0].extents = vec!["N + M".parse().unwrap(), "N * M".parse().unwrap()];
        let bound = bind(&plan, &request(&[], &[("A", &[11, 24]), ("K", &[8])])).unwrap();
        assert_eq!((bound.sizes["N"], bound.sizes["M"]), (8, 3));
        let text =
            bind(&plan, &request(&[], &[("A", &[11, 25]), ("K", &[8])])).unwrap_err().to_string();
        assert_eq!(
            text,
            "array `A` is 11x25, but its dimension 1 must be 24, `N * M` (N = 8, dimension 0 of \
             array `K`; M = 3, dimension 0 of array `A`)"
        );
    }

    #[test]
    fn contradictions_name_both_sides() {
        for (text, wanted) in [
            (
                error(&[("N", 400)], &[("A", &[344, 403])]),
                "array `A` is 344x403, but its dimension 0 must be 400, `N` (N = 400, given)",
            ),
            (
                error(&[], &[("A", &[344, 403]), ("K", &[343])]),
                "array `K` is 343, but its dimension 0 must be 344, `N` (N = 344, dimension 0 of \
                 array `A`)",
            ),
            (
                error(&[], &[("A", &[344, 402])]),
                "array `A` is 344x402, but no whole `M` makes its dimension 1 (`2 * M + 1`) so",
            ),
            (
                error(&[], &[("A", &[344])]),
                "array `A` is 344; the program wants 2 dimensions (N, 2 * M + 1)",
            ),
            (
                error(&[("N", 8)], &[]),
                "the run-time size `M` has no value; give one with --size M=... or an array whose \
                 shape tells it (--in A=...)",
            ),
            (error(&[("L", 8)], &[]), "heat has no run-time size `L`; it has N, M"),
            (
                error(&[("Q", 8)], &[]),
                "`Q` was fixed to 5 when heat was compiled; compile it again with -D Q=8",
            ),
            (
                error(&[("N", 2), ("M", 3)], &[]),
                "the grid must have 3 rows (M = 3, N = 2, Q = 5, steps = 10)",
            ),
            (
                error(&[("N", 9), ("M", -3)], &[]),
                "field `A` would have -5 cells in dimension 1 (`2 * M + 1`, M = -3, N = 9, Q = 5, \
                 steps = 10); use larger sizes",
            ),
            (
                error(&[("N", 1 << 20), ("M", 1 << 20)], &[]),
                "size overflow: field `A` has 2199024304128 cells (1048576x2097153), more than \
                 32-bit indices reach; compile with these sizes fixed (-D) or use smaller ones",
            ),
            (
                error(&[("N", 8), ("M", i64::MAX)], &[]),
                "size overflow: `2 * M` does not fit in 64 bits; use smaller sizes",
            ),
        ] {
            assert_eq!(text, wanted);
        }
    }

    #[test]
    fn an_empty_field_does_not_hide_an_overflow() {
        let mut plan = heat();
        plan.fields[0].extents = ["N", "N", "0"].map(|extent| extent.parse().unwrap()).to_vec();
        plan.index_width = 64;
        let text = bind(&plan, &request(&[("N", 1 << 40), ("M", 3)], &[])).unwrap_err().to_string();
        assert!(text.contains("size overflow: field `A`"), "{text}");
    }

    #[test]
    fn void_checks_do_not_count() {
        assert!(bind(&heat(), &request(&[("N", 2), ("M", 0)], &[])).is_ok());
    }

    #[test]
    fn steps_and_scalars() {
        let with = |steps, name: &str, value| {
            let scalars = BTreeMap::from([(name.to_string(), Numeral::from(value))]);
            let request =
                Request { steps: Some(steps), scalars, ..request(&[("N", 8), ("M", 3)], &[]) };
            bind(&heat(), &request).map_err(|e| e.to_string())
        };
        assert_eq!(with(0, "alpha", 0.25).unwrap().scalars["alpha"], Number::F32(0.25));
        assert_eq!(
            with(-1, "alpha", 0.25).unwrap_err(),
            "-1 steps can't be run; give 0 or more with --steps"
        );
        assert_eq!(with(1, "beta", 0.25).unwrap_err(), "heat has no scalar `beta`; it has alpha");
        let mut plan = heat();
        plan.scalars[0].default = None;
        let text = bind(&plan, &request(&[("N", 8), ("M", 3)], &[])).unwrap_err().to_string();
        assert_eq!(text, "the scalar `alpha` has no value; give one with --set alpha=...");
    }
}
