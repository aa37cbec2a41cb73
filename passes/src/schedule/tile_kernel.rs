//! Builds a tile kernel: the loads, applies and stores of some steps of a group of functions.

use crate::analysis::footprint;
use crate::schedule::launch_groups::Group;
use crate::schedule::regions::Regions;
use crate::subject::Subject;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;
use std::fmt::Display;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{self, Apply};
use stencil_dialects::tiled::{self, Schedule};

/// Builds the kernel of a name at the end of the module.
pub fn build<'c>(
    builder: &Builder<'c>,
    name: &str,
    subject: &Subject<'c, '_>,
    group: &Group<'c, '_>,
    steps: i64,
    schedule: &Schedule,
    regions: &Regions<'c>,
) -> Result<(), Error> {
    let program = subject.program;
    let attributes = tiled::schedule_attributes(builder, schedule);
    let (_, entry) = builder.function(name, &[], &[], &attributes)?;
    let body = builder.at(entry);
    let mut tiles = BTreeMap::new();
    // Loads stand in the order of the declarations, so that kernels read alike.
    for field in &program.fields {
        if let Some(halo) = regions.loads.get(field.name) {
            tiles.insert(field.name, tiled::load(&body, field.name, halo)?);
        }
    }
    for ((step, apply), region) in group.steps(steps).iter().zip(&regions.applies) {
        let at = Builder { location: apply.op.location(), ..body };
        let mut inputs = Vec::new();
        for name in inputs_of(subject, group, apply)? {
            let tile = tiles
                .get(name)
                .ok_or_else(|| Error::internal(format!("no tile of @{name} reaches an apply")))?;
            inputs.push((name, *tile));
        }
        let pieces = stencil::pieces_attribute(&at, &apply.pieces);
        let outputs = tiled::apply(&at, &inputs, &apply.updates, region, pieces, *step)?;
        tiles.extend(apply.updates.iter().copied().zip(outputs));
    }
    for field in &program.fields {
        let stored = group.transfers.stored.contains(field.name);
        if let (true, Some(tile)) = (stored, tiles.get(field.name)) {
            tiled::store(&body, field.name, *tile)?;
        }
    }
    body.op("func.return", &[], &[], &[])?;
    Ok(())
}

/// The fields whose old values an apply takes, in the order of their declarations.
fn inputs_of<'c>(
    subject: &Subject<'c, '_>,
    group: &Group<'c, '_>,
    apply: &Apply<'c>,
) -> Result<Vec<&'c str>, Error> {
    let program = subject.program;
    let reads = footprint::of_pieces(program, &apply.pieces)?;
    let mut names: Vec<&str> = reads.into_iter().map(|read| read.field).collect();
    names.extend(apply.updates.iter().filter(|field| group.keeps(apply, field)));
    names.sort_by_key(|name| program.fields.iter().position(|field| field.name == *name));
    names.dedup();
    Ok(names)
}

/// A name for a kernel: the program's name in letters that PTX has, with a number. Another number
/// follows where a declaration has that name.
pub fn name(subject: &Subject, number: impl Display) -> String {
    let program = &subject.program.name;
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let letters = program.chars().map(letter).collect::<String>();
    let first = program.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let prefix = if first { "" } else { "k_" };
    stencil::unused_name(subject.module, &format!("{prefix}{letters}_{number}"))
}
