//! The numbers of which a declared field consists: they stand side by side and fill its cells, so
//! that files of such cells can be split and joined.

use super::{FieldDecl, Role};
use crate::npy::{self, MOST_DESCRIPTION, MOST_STRUCTS};
use crate::record::Layout;
use std::collections::BTreeSet;

/// Checks the members of all fields.
pub(super) fn agree(fields: &[FieldDecl]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    fields
        .chunk_by(|one, other| one.declared_name() == other.declared_name())
        .filter_map(|parts| Some((parts, parts.first()?)))
        .try_for_each(|(parts, first)| {
            let name = first.declared_name();
            if !names.insert(name) {
                return Err(format!("the parts of the field `{name}` stand apart"));
            }
            match parts {
                [whole] if whole.member.is_none() => Ok(()),
                _ => fill(parts, first, name),
            }
        })
}

/// Checks that some fields are the parts of a declared one.
fn fill(parts: &[FieldDecl], first: &FieldDecl, declared: &str) -> Result<(), String> {
    let at = |part: &FieldDecl, what: &str| Err(format!("field `{}` {what}", part.name));
    let mut leaves: Vec<(&str, Layout)> = Vec::new();
    let bytes: usize = parts.iter().map(|part| part.element.size()).sum();
    let mut begin = 0;
    for part in parts {
        let path = part.name.strip_prefix(declared);
        let (Some(member), Some(path)) = (&part.member, path.filter(|path| !path.is_empty()))
        else {
            return at(part, &format!("is no part of the field `{declared}`"));
        };
        if (part.role, &part.extents) != (first.role, &first.extents) {
            return at(part, &format!("differs from `{}` in its role or extents", first.name));
        }
        // A temp field is in no file, and parts that nobody reads need not be there.
        if part.role != Role::Temp && (member.offset, member.size) != (begin, bytes) {
            return at(
                part,
                &format!(
                    "is at byte {} of {}, and the numbers before it leave it byte {begin} of \
                     {bytes}",
                    member.offset, member.size
                ),
            );
        }
        begin += part.element.size();
        leaves.push((path, part.layout()));
    }
    match Layout::of(&leaves) {
        _ if first.role == Role::Temp => Ok(()),
        Some(layout) => writable(&layout, declared),
        None => Err(format!("the parts of the field `{declared}` are no struct and no vec")),
    }
}

/// Checks that files of such cells can be read again.
fn writable(layout: &Layout, declared: &str) -> Result<(), String> {
    if layout.structs() > MOST_STRUCTS {
        return Err(format!(
            "the field `{declared}` has structs inside each other, more than {MOST_STRUCTS} deep"
        ));
    }
    let characters = npy::description(layout);
    if characters > MOST_DESCRIPTION {
        return Err(format!(
            "the type of the field `{declared}` has {characters} characters in the header of an \
             .npy file, more than {MOST_DESCRIPTION}"
        ));
    }
    Ok(())
}
