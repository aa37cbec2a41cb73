//! Names of attributes: MLIR keeps an attribute whatever its name, so a misspelt one would be
//! dropped without a word, and the module would be another program.

use super::at;
use crate::attribute;
use crate::error::Error;
use crate::mlir::{self, Op};
use crate::{Signature, peer, stencil, tiled};
use melior::ir::{Attribute, Module};

/// The prefixes of our attributes.
const OURS: [&str; 3] = ["stencil.", "tiled.", "peer."];

/// Our attributes of a module.
const MODULE: &[&str] =
    &["stencil.params", "stencil.steps", "stencil.constants", "stencil.target", "stencil.devices"];

/// The attributes that tell what an argument of a point function stands for; an argument has one.
const MEANINGS: &[&str] = &[
    "stencil.read",
    "stencil.current",
    "stencil.scalar",
    "stencil.param",
    "stencil.coord",
    "stencil.step",
    "stencil.nearest",
    "stencil.partial",
];

/// The other attributes of an argument of a function: the last two of functions of affine loops.
const ARGUMENT: &[&str] = &["stencil.offset", "stencil.name", "stencil.extents"];

/// The attributes of `tiled` that stand at operations of other dialects and at their arguments.
const TILED: &[&str] = &[
    "tiled.bank_pad",
    "tiled.bank_pad_words",
    "tiled.binding",
    "tiled.block",
    "tiled.block_points",
    "tiled.constant",
    "tiled.cut",
    "tiled.dynamic_shared",
    "tiled.flags",
    "tiled.grid",
    "tiled.heights",
    "tiled.index_width",
    "tiled.interior",
    "tiled.lacking_registers",
    "tiled.last_rows",
    "tiled.layout_note",
    "tiled.name",
    "tiled.nest_constants",
    "tiled.nest_tile",
    "tiled.not_constant",
    "tiled.not_tiled",
    "tiled.pace",
    "tiled.per_thread",
    "tiled.reach",
    "tiled.region",
    "tiled.rotates",
    "tiled.row_values",
    "tiled.rows",
    "tiled.shear",
    "tiled.skew",
    "tiled.steps",
    "tiled.strategy",
    "tiled.sweeps",
    "tiled.sync",
    "tiled.tile",
    "tiled.transposed",
    "tiled.turns",
    "tiled.unroll",
];

/// An attribute that is a dictionary or a list of them, the keys that it needs, and those that it
/// may have.
const DICTIONARIES: &[(&str, &[&str], &[&str])] = &[
    ("pieces", &["function", "lower", "upper"], &[]),
    ("stencil.constants", &["name", "value"], &[]),
    ("stencil.member", &["field", "offset", "size"], &[]),
    ("stencil.combined", &["into", "operation"], &[]),
    ("tiled.cut", &["lower", "upper", "reads"], &["counts", "tile", "before", "order", "points"]),
    ("tiled.nest_tile", &[], &["per_thread", "threads", "time", "copiers", "blocked"]),
];

/// A key, what its value is in words, and whether a value is of that kind.
type Kind = (&'static str, &'static str, fn(Attribute) -> bool);

/// The kinds of the values of keys.
const KINDS: &[Kind] = &[
    ("function", "a symbol", |value| attribute::as_symbol(value).is_some()),
    ("lower", "an affine map", |value| attribute::as_map(value).is_some()),
    ("upper", "an affine map", |value| attribute::as_map(value).is_some()),
    ("name", "a string", |value| attribute::as_string(value).is_some()),
    ("value", "an integer", |value| attribute::as_integer(value).is_some()),
];

/// Refuses attributes of unknown names, and arguments that stand for two things.
pub(super) fn verify(module: &Module, errors: &mut Vec<Error>) {
    for op in mlir::walk(mlir::module_op(module)) {
        let name = mlir::name(op);
        let own = mlir::own_attributes(op);
        if !own.is_empty() {
            errors.extend(of_operation(op, name, &own).err());
        }
        if name.ends_with(".func") {
            errors.extend(of_arguments(op).err());
        }
    }
}

/// Checks the attributes of an operation.
fn of_operation<'c>(op: Op<'c>, name: &str, own: &[(&str, Attribute<'c>)]) -> Result<(), Error> {
    let declared = signature(name);
    for (attribute, value) in own {
        let known = match declared {
            Some(signature) => {
                let foreign = attribute.contains('.') && !is_ours(attribute);
                let declared = [signature.attributes, signature.optional].concat();
                if foreign || declared.contains(attribute) { None } else { Some(declared) }
            }
            None if attribute.starts_with("tiled.") => unless_known(attribute, TILED),
            None if name == "builtin.module" => unless_known(attribute, MODULE),
            None => unless_known(attribute, &[]),
        };
        if let Some(known) = known {
            return Err(at(op, unknown(attribute, name, &known)));
        }
        keys(op, attribute, *value)?;
    }
    Ok(())
}

/// Checks the attributes of a function's arguments.
fn of_arguments(function: Op) -> Result<(), Error> {
    let all = mlir::attribute(function, "arg_attrs").and_then(attribute::as_array);
    for (index, argument) in all.unwrap_or_default().into_iter().enumerate() {
        let entries = mlir::entries(argument).unwrap_or_default();
        for (attribute, _) in &entries {
            let known = if attribute.starts_with("tiled.") {
                unless_known(attribute, TILED)
            } else {
                unless_known(attribute, &[MEANINGS, ARGUMENT].concat())
            };
            if let Some(known) = known {
                return Err(at(function, unknown(attribute, "an argument", &known)));
            }
        }
        let mut meanings =
            entries.iter().filter(|(name, _)| MEANINGS.contains(name)).map(|(name, _)| *name);
        if let (Some(one), Some(other)) = (meanings.next(), meanings.next()) {
            let message = format!(
                "argument {index} has both {one} and {other}, and it stands for one thing; remove \
                 one of them"
            );
            return Err(at(function, message));
        }
    }
    Ok(())
}

/// Checks the keys of an attribute that is a dictionary, or a list of dictionaries.
fn keys<'c>(op: Op<'c>, name: &str, value: Attribute<'c>) -> Result<(), Error> {
    let Some((_, needed, optional)) = DICTIONARIES.iter().find(|(known, ..)| *known == name) else {
        return Ok(());
    };
    let all = attribute::as_array(value).unwrap_or_else(|| vec![value]);
    for (index, dictionary) in all.iter().enumerate() {
        let Some(entries) = mlir::entries(*dictionary) else {
            let message = format!("{name} needs a dictionary with {}", list(needed));
            return Err(at(op, format!("{message}, not {dictionary}")));
        };
        let place = if all.len() > 1 { format!("{name}[{index}]") } else { name.to_owned() };
        let known = [*needed, *optional].concat();
        if let Some((key, _)) = entries.iter().find(|(key, _)| !known.contains(key)) {
            let message = format!("there is no key {key} of {place}; it has {}", list(&known));
            return Err(at(op, message));
        }
        if let Some(key) = needed.iter().find(|key| !entries.iter().any(|(at, _)| at == *key)) {
            let message = format!("{place} lacks the key {key}; it needs {}", list(needed));
            return Err(at(op, message));
        }
        for (key, value) in entries {
            if let Some((_, kind, _)) =
                KINDS.iter().find(|(known, _, is)| *known == key && !is(value))
            {
                return Err(at(op, format!("{key} of {place} is {kind}, not {value}")));
            }
        }
    }
    Ok(())
}

/// The declaration of an operation of ours.
fn signature(name: &str) -> Option<&'static Signature> {
    if !is_ours(name) {
        return None;
    }
    let mut all = [stencil::OPERATIONS, tiled::OPERATIONS, peer::OPERATIONS].into_iter().flatten();
    all.find(|signature| signature.name == name)
}

fn is_ours(name: &str) -> bool {
    OURS.iter().any(|prefix| name.starts_with(prefix))
}

/// The known names, where an attribute of ours is none of them.
fn unless_known(attribute: &str, known: &[&'static str]) -> Option<Vec<&'static str>> {
    (is_ours(attribute) && !known.contains(&attribute)).then(|| known.to_vec())
}

fn unknown(attribute: &str, owner: &str, known: &[&str]) -> String {
    let all = list(known);
    if known.is_empty() {
        format!("there is no attribute {attribute} of {owner}; remove it")
    } else if known == TILED {
        format!("there is no attribute {attribute}; there are {all}")
    } else {
        format!("there is no attribute {attribute}; {owner} has {all}")
    }
}

/// `a, b and c`.
fn list(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => names.concat(),
    }
}
