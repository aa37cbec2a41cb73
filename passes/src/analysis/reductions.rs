//! Which reductions each step has to compute, and which the last one alone.

use stencil_dialects::error::Error;
use stencil_dialects::stencil::{self, Field, Program, Reduce};

/// The reductions of a program, in order.
#[derive(Clone, Debug, Default)]
pub struct Reductions<'c, 'p> {
    /// Those that an apply or a reduction of the next steps reads, or that an apply follows.
    pub each_step: Vec<&'p Reduce<'c>>,
    /// Those behind the last apply, whose values nothing but the caller and the condition of the
    /// run sees.
    pub last_step: Vec<&'p Reduce<'c>>,
}

/// A field whose points are stored by a kernel, and combined by none yet: the first one.
///
/// # Errors
/// A malformed attribute of a field.
pub fn uncombined<'c, 'p>(program: &'p Program<'c>) -> Result<Option<&'p Field<'c>>, Error> {
    for field in &program.fields {
        if stencil::combined(field)?.is_some() {
            return Ok(Some(field));
        }
    }
    Ok(None)
}

/// The reductions of a program.
pub fn of<'c, 'p>(program: &'p Program<'c>) -> Result<Reductions<'c, 'p>, Error> {
    let gathered = |function: &str| program.gathered(function);
    let mut applied = Vec::new();
    for piece in program.applies.iter().flat_map(|apply| &apply.pieces) {
        applied.extend(gathered(piece.function)?);
    }
    let reads = program.reduces.iter().map(|reduce| gathered(reduce.function));
    let reads = reads.collect::<Result<Vec<_>, Error>>()?;
    // Backwards: one that the last step's read is the last step's too, unless they read the value
    // of the step before.
    let mut last: Vec<bool> = Vec::new();
    for (number, reduce) in program.reduces.iter().enumerate().rev() {
        let mut later = program.reduces.iter().skip(number);
        let own = reads.get(number);
        let before = later.any(|other| own.is_some_and(|own| own.contains(other.field)));
        let each_step = last.iter().rev().map(|last| !last);
        let kept = std::iter::repeat_n(true, number + 1).chain(each_step);
        let read =
            reads.iter().zip(kept).any(|(fields, kept)| kept && fields.contains(reduce.field));
        let behind = reduce.place == program.applies.len();
        last.push(behind && !before && !read && !applied.contains(&reduce.field));
    }
    let mut found = Reductions::default();
    for (reduce, last) in program.reduces.iter().zip(last.into_iter().rev()) {
        let list = if last { &mut found.last_step } else { &mut found.each_step };
        list.push(reduce);
    }
    Ok(found)
}
