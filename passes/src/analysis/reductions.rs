//! Which reductions each step has to compute, and which the last one alone.

use stencil_dialects::error::Error;
use stencil_dialects::stencil::{self, Program, Reduce};

/// The reductions of a program, in order.
#[derive(Clone, Debug, Default)]
pub struct Reductions<'c, 'p> {
    /// Those that an apply or a reduction of the next steps reads, or that an apply follows.
    pub each_step: Vec<&'p Reduce<'c>>,
    /// Those behind the last apply, whose values nothing but the caller and the condition of the
    /// run sees.
    pub last_step: Vec<&'p Reduce<'c>>,
}

/// The reductions of a program. The condition that ends a run counts as one that nothing reads.
pub fn of<'c, 'p>(program: &'p Program<'c>) -> Result<Reductions<'c, 'p>, Error> {
    let mut read = Vec::new();
    let condition = program.until.as_ref().map(|until| until.condition);
    let applied = program.applies.iter().flat_map(|apply| &apply.pieces);
    let others = program.reduces.iter().filter(|reduce| Some(reduce.field) != condition);
    let functions = applied.map(|piece| piece.function).chain(others.map(|one| one.function));
    for function in functions {
        let gathers = stencil::gathers(program.function(function)?)?;
        read.extend(gathers.into_iter().map(|gather| gather.field));
    }
    let mut found = Reductions::default();
    for (number, reduce) in program.reduces.iter().enumerate() {
        let gathers = stencil::gathers(program.function(reduce.function)?)?;
        // A value of the step before has to be there still.
        let mut later = program.reduces.iter().skip(number);
        let before = later.any(|other| gathers.iter().any(|gather| gather.field == other.field));
        let behind = reduce.place == program.applies.len();
        let last = behind && !before && !read.contains(&reduce.field);
        let list = if last { &mut found.last_step } else { &mut found.each_step };
        list.push(reduce);
    }
    Ok(found)
}
