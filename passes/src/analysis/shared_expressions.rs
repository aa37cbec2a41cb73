//! Expressions that a point function evaluates for several points.
//!
//! Values are of one class if they are the same operations on reads of the same fields, whose
//! offsets differ by one vector: their shift.

use melior::ir::operation::OperationLike;
use melior::ir::r#type::TypeLike;
use melior::ir::{Type, ValueLike};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, Argument};

/// What a value is but for the point that it is of.
#[derive(Clone)]
struct Known {
    /// The number of its class: values of one class are the same expression of other cells.
    class: usize,
    /// The offset of its first read: values of one class differ by it alone. None where it reads
    /// no cells.
    shift: Option<Vec<i64>>,
    /// Whether it has a division, a root or a function.
    is_long: bool,
}

/// An expression that the function evaluates at several places.
pub struct Group<'c> {
    /// Type of the values.
    pub element: Type<'c>,
    /// The offset of each place from the function's point, and the value there. Places may be
    /// equal.
    pub uses: Vec<(Vec<i64>, Val<'c>)>,
}

/// The expressions of a point function.
pub struct Expressions<'c> {
    /// The function.
    pub function: Op<'c>,
    /// Its arguments.
    pub arguments: Vec<(Argument<'c>, Val<'c>)>,
    /// All operations, in order.
    pub ops: Vec<Op<'c>>,
    known: BTreeMap<usize, Known>,
}

impl<'c> Expressions<'c> {
    /// Finds the classes of all values.
    ///
    /// # Errors
    /// A function without a body.
    pub fn of(function: Op<'c>) -> Result<Self, Error> {
        let arguments = stencil::arguments_with_values(function)?;
        let ops = mlir::operations(stencil::function_body(function)?);
        let (mut known, mut classes) = (BTreeMap::new(), BTreeMap::new());
        let mut class = |key: String| {
            let number = classes.len();
            *classes.entry(key).or_insert(number)
        };
        for (argument, value) in &arguments {
            let (key, shift) = match argument {
                Argument::Read { field, offset } => (format!("@{field}"), Some(offset.clone())),
                Argument::Scalar(_) | Argument::Param(_) => (format!("{argument:?}"), None),
                _ => continue,
            };
            let found = Known { class: class(key), shift, is_long: false };
            known.insert(mlir::key(*value), found);
        }
        for op in &ops {
            let (&[result], 0) = (mlir::results(*op).as_slice(), op.region_count()) else {
                continue;
            };
            let operands: Option<Vec<&Known>> = mlir::operands(*op)
                .into_iter()
                .map(|operand| known.get(&mlir::key(operand)))
                .collect();
            let Some(operands) = operands.filter(|_| is_pure(*op)) else { continue };
            let shift = operands.iter().find_map(|operand| operand.shift.clone());
            let mut key = kind(*op);
            for operand in &operands {
                let from = |own: &Vec<i64>| -> Vec<i64> {
                    own.iter().zip(shift.iter().flatten()).map(|(own, all)| own - all).collect()
                };
                key += &format!(" {}:{:?}", operand.class, operand.shift.as_ref().map(from));
            }
            let is_long = is_long(*op) || operands.iter().any(|operand| operand.is_long);
            known.insert(mlir::key(result), Known { class: class(key), shift, is_long });
        }
        Ok(Self { function, arguments, ops, known })
    }

    /// The largest long expressions that have several places.
    pub fn shared(&self) -> Vec<Group<'c>> {
        let mut places: BTreeMap<usize, BTreeSet<&Vec<i64>>> = BTreeMap::new();
        let results = || self.ops.iter().flat_map(|op| mlir::results(*op));
        for value in results() {
            if let Some(Known { class, shift: Some(shift), is_long: true }) = self.of_value(value) {
                places.entry(*class).or_default().insert(shift);
            }
        }
        let repeated = |value: Val<'c>| {
            let known = self.of_value(value).filter(|known| known.shift.is_some())?;
            places.get(&known.class).filter(|places| places.len() > 1).map(|_| known)
        };
        // Values that something else than a larger expression uses.
        let mut wanted: BTreeSet<usize> = BTreeSet::new();
        for op in &self.ops {
            let inner = mlir::walk(*op).into_iter().flat_map(mlir::operands);
            if mlir::results(*op).first().is_none_or(|result| repeated(*result).is_none()) {
                wanted.extend(inner.map(mlir::key));
            }
        }
        let mut groups: BTreeMap<usize, Group<'c>> = BTreeMap::new();
        for value in results() {
            let Some(Known { class, shift: Some(shift), .. }) = repeated(value) else { continue };
            let is_number = value.r#type().is_f32() || value.r#type().is_f64();
            if wanted.contains(&mlir::key(value)) && is_number {
                let new = || Group { element: value.r#type(), uses: Vec::new() };
                groups.entry(*class).or_insert_with(new).uses.push((shift.clone(), value));
            }
        }
        let several = |group: &Group| {
            group.uses.iter().map(|(shift, _)| shift).collect::<BTreeSet<_>>().len() > 1
        };
        groups.into_values().filter(several).collect()
    }

    fn of_value(&self, value: Val<'c>) -> Option<&Known> {
        self.known.get(&mlir::key(value))
    }

    /// The operations that values need, in order, and the arguments that these need. Some values
    /// are taken as given, so that what they need is left out.
    pub fn needed(
        &self,
        of: &[Val<'c>],
        without: &BTreeSet<usize>,
    ) -> (Vec<Op<'c>>, BTreeSet<usize>) {
        let mut values: BTreeSet<usize> = of.iter().map(|value| mlir::key(*value)).collect();
        let mut found = Vec::new();
        for op in self.ops.iter().rev() {
            let results = mlir::results(*op);
            let makes = |value: &Val<'c>| {
                values.contains(&mlir::key(*value)) && !without.contains(&mlir::key(*value))
            };
            if results.iter().any(makes) {
                values.extend(mlir::walk(*op).into_iter().flat_map(mlir::operands).map(mlir::key));
                found.push(*op);
            }
        }
        found.reverse();
        (found, values)
    }

    /// What an expression reads, as offsets from its own point.
    pub fn reads(&self, group: &Group<'c>) -> Vec<(&'c str, Vec<i64>)> {
        let Some((shift, value)) = group.uses.first() else { return Vec::new() };
        let (_, needed) = self.needed(&[*value], &BTreeSet::new());
        let arguments =
            self.arguments.iter().filter(|(_, value)| needed.contains(&mlir::key(*value)));
        arguments
            .filter_map(|(argument, _)| match argument {
                Argument::Read { field, offset } => Some((*field, minus(offset, shift))),
                _ => None,
            })
            .collect()
    }
}

/// What an operation is but for its operands: name, types and all attributes.
fn kind(op: Op) -> String {
    let types = mlir::results(op).into_iter().map(|result| result.r#type().to_string());
    let mut kind = format!("{} {}", mlir::name(op), types.collect::<Vec<_>>().join(" "));
    for (name, attribute) in op.attributes() {
        kind += &format!(" {:?}={}", mlir::identifier(name), mlir::attribute_key(attribute));
    }
    kind
}

/// An offset, seen from another one.
pub fn minus(offset: &[i64], shift: &[i64]) -> Vec<i64> {
    offset.iter().zip(shift).map(|(offset, shift)| offset - shift).collect()
}

/// Whether a function has two long operations: of one, nothing is shared.
pub fn has_several_long(function: Op) -> bool {
    mlir::walk(function).into_iter().filter(|op| is_long(*op)).nth(1).is_some()
}

/// Whether an operation is the same for the same operands, wherever it stands.
fn is_pure(op: Op) -> bool {
    ["arith.", "math."].iter().any(|dialect| mlir::name(op).starts_with(dialect))
}

/// Whether the device has a sequence of instructions for an operation, and not one.
fn is_long(op: Op) -> bool {
    const SHORT: [&str; 5] = ["math.absf", "math.fma", "math.copysign", "math.floor", "math.ceil"];
    let name = mlir::name(op);
    name == "arith.divf" || name.starts_with("math.") && !SHORT.contains(&name)
}
