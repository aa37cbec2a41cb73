//! Arrays of structs in the plan: their buffers, and the place of each field in them.

use super::{buffer, next};
use crate::analysis::record_use;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Field, Layout, Program, Record, layout_note};
use stencil_dialects::tiled::{Binding, Launch};
use stencil_runtime::plan::{BufferDecl, BufferLayout, FieldDecl, Part, RecordSettings, Start};

/// A number of an array of structs.
pub struct Number<'c, 'p> {
    record: Record<'c, 'p>,
    place: usize,
}

/// The number that a field is, if it is one. The kernels must fit the layout.
///
/// # Errors
/// Kernels that use the other layout.
pub fn number<'c, 'p>(
    program: &'p Program<'c>,
    field: &Field<'c>,
    launches: &[Launch<'c>],
) -> Result<Option<Number<'c, 'p>>, Error> {
    let (Some(_), Some(member)) = (field.layout, field.member) else { return Ok(None) };
    let fault = || Error::internal(format!("no array of structs @{}", member.field));
    let record = program.record(member.field).ok_or_else(fault)?;
    let place = record.place_of(field.name).ok_or_else(fault)?;
    let alone = launches.iter().find(|launch| !record_use::of(&record, launch).is_none());
    let together = record_use::is_interleaved(&record, launches);
    let wrong = |text: String| Err(Error::new(mlir::place(field.op.location()), text));
    match (record.layout, alone) {
        (Layout::Relaid, Some(launch)) if record.kernel_block.is_some() => wrong(format!(
            "@{} has buffers of the numbers of @{}, which is an array of blocks in kernels; run \
             interleave-records behind coalesce-relayout",
            launch.name, record.name
        )),
        (Layout::Aos, Some(launch)) => wrong(format!(
            "@{} has buffers of the numbers of @{}, which is an array of structs; run \
             coalesce-relayout or interleave-records behind the lowerings",
            launch.name, record.name
        )),
        (Layout::Relaid, Some(_)) if !together => wrong(format!(
            "no kernel moves the array of structs @{} to the buffers of its numbers; \
             coalesce-relayout makes one",
            record.name
        )),
        _ => Ok(Some(Number { record, place })),
    }
}

impl Number<'_, '_> {
    /// Whether kernels have a buffer of the number.
    pub fn has_buffer(&self) -> bool {
        self.record.kernel_block.is_none()
    }

    /// Where the number's value lies, in place of a buffer of its own.
    pub fn value(&self, own: Vec<Part>) -> Vec<Part> {
        let in_record = |part: Part| Part {
            buffer: self.record.name.to_owned(),
            number: u32::try_from(self.place).ok(),
            ..part
        };
        own.into_iter().map(in_record).collect()
    }

    /// The buffers of the array of structs, beside its first number.
    pub fn buffers(&self, first: &FieldDecl, launches: &[Launch]) -> Vec<BufferDecl> {
        if self.place > 0 {
            return Vec::new();
        }
        let name = self.record.name;
        let numbers = u32::try_from(self.record.numbers.len()).unwrap_or(u32::MAX);
        let block = u32::try_from(self.record.block).unwrap_or(u32::MAX);
        let of = |name_of_buffer: String| BufferDecl {
            layout: BufferLayout::Records { numbers, block },
            start: Start::Record(name.to_owned()),
            ..buffer(first, name_of_buffer)
        };
        let written = launches.iter().any(|launch| launch.bindings.contains(&Binding::Write(name)));
        // Blocks that a kernel makes have no value before.
        let start = match self.record.layout {
            Layout::Aos => Start::Record(name.to_owned()),
            Layout::Relaid => Start::Zeros,
        };
        let second = written.then(|| BufferDecl { start, ..of(next(name)) });
        std::iter::once(of(name.to_owned())).chain(second).collect()
    }
}

/// How the declared fields of structs and vecs lie in memory, where a note says so, and the arrays
/// of affine loops that have a note.
pub fn settings(program: &Program) -> Result<Vec<RecordSettings>, Error> {
    let mut all = Vec::new();
    for field in &program.fields {
        let note = layout_note(field)?;
        if let (None, Some(note)) = (field.member, note) {
            all.push(RecordSettings {
                field: field.name.to_owned(),
                layout: "row-major".to_owned(),
                note: note.to_owned(),
            });
        }
        let Some(member) = field.member.filter(|member| member.offset == 0) else { continue };
        if field.layout.is_none() && note.is_none() {
            continue;
        }
        all.push(RecordSettings {
            field: member.field.to_owned(),
            layout: match (field.layout, field.block, field.kernel_block) {
                (None, ..) => "soa".to_owned(),
                (Some(layout), _, Some(inside)) => {
                    format!("{} to blocks of {inside} cells", layout.name())
                }
                (Some(layout), 1, None) => layout.name().to_owned(),
                (Some(layout), block, None) => {
                    format!("{}, blocks of {block} cells", layout.name())
                }
            },
            note: note.unwrap_or("kernels use it as it is").to_owned(),
        });
    }
    Ok(all)
}
