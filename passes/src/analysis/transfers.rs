//! What launches have to load and to store of the fields that they update.
//!
//! A launch need not load a field that it overwrites before reading. A temp field need not be
//! stored if every launch does so, unless a reduction reads it. Cells of a temp field that no piece
//! covers are zeros for the whole run, whether they are stored or not. A field for which that can't
//! be proved for all sizes is loaded and stored.

use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::cover::Defined;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Apply, Argument, Piece, Program, Role};

/// The fields that a launch updates and does not load, or stores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfers<'c> {
    /// Fields of which the launch reads no cell before it overwrites it. If the launch stores such
    /// a field, it overwrites every cell.
    pub fresh: BTreeSet<&'c str>,
    /// Fields whose new values the launch leaves behind.
    pub stored: BTreeSet<&'c str>,
    /// Fields of which the launch leaves last rows behind, and nothing else (`sweep_rows.rs`).
    pub last_rows: BTreeSet<&'c str>,
}

/// What the launches of a step transfer, each given by its applies in order. A launch that takes
/// several steps repeats the applies of one, and transfers the same.
pub fn of<'c>(
    program: &Program<'c>,
    launches: &[Vec<&Apply<'c>>],
) -> Result<Vec<Transfers<'c>>, Error> {
    let launches = launches
        .iter()
        .map(|applies| applies.iter().map(|apply| Access::of(program, apply)).collect())
        .collect::<Result<Vec<Vec<_>>, Error>>()?;
    let reduced = program.fields_reduced()?;
    let mut all = Vec::new();
    for accesses in &launches {
        let updated: BTreeSet<&str> =
            accesses.iter().flat_map(|access| access.apply.updates.iter().copied()).collect();
        let mut stored = BTreeSet::new();
        for field in &updated {
            if program.field(field)?.role != Role::Temp
                || reduced.contains(field)
                || outlives(program, &launches, field)?
                || accesses.iter().any(|access| access.current.contains_key(field))
            {
                stored.insert(*field);
            }
        }
        // A launch stores all its updates if no later launch needs any.
        if stored.is_empty() {
            stored.clone_from(&updated);
        }
        let mut fresh = BTreeSet::new();
        for field in updated {
            let (defined, reads) = overwritten(program, accesses, field)?;
            if reads.iter().all(|read| *read) && (!stored.contains(field) || defined.is_whole()) {
                fresh.insert(field);
            }
        }
        all.push(Transfers { fresh, stored, last_rows: BTreeSet::new() });
    }
    Ok(all)
}

/// An apply with the reads of its pieces, by field.
struct Access<'c, 'p> {
    apply: &'p Apply<'c>,
    /// Fields that it reads at computed places, as they were before the launch.
    gathered: BTreeSet<&'c str>,
    reads: Cells<'c, 'p>,
    /// Reads of values of its own sweep. Where no piece of it covers the cell, that is what the
    /// field had before.
    current: Cells<'c, 'p>,
}

/// Reads of fields: from the points of a piece, at an offset.
type Cells<'c, 'p> = BTreeMap<&'c str, Vec<(&'p Piece<'c>, &'p [i64])>>;

impl<'c, 'p> Access<'c, 'p> {
    fn of(program: &'p Program<'c>, apply: &'p Apply<'c>) -> Result<Self, Error> {
        let (mut reads, mut current) = (Cells::new(), Cells::new());
        for piece in &apply.pieces {
            for argument in program.arguments(piece.function)? {
                let (cells, field, offset) = match argument {
                    Argument::Read { field, offset } => (&mut reads, field, offset),
                    Argument::Current { field, offset } => (&mut current, field, offset),
                    _ => continue,
                };
                cells.entry(*field).or_default().push((piece, offset.as_slice()));
            }
        }
        Ok(Self { apply, gathered: program.gathered_by(&apply.pieces)?, reads, current })
    }
}

/// The cells of a field that a launch has overwritten at its end, and for each apply whether all
/// cells that it reads were overwritten before.
fn overwritten<'c>(
    program: &Program<'c>,
    accesses: &[Access<'c, '_>],
    name: &str,
) -> Result<(Defined, Vec<bool>), Error> {
    let field = program.field(name)?;
    let (mut defined, mut reads) = (Defined::Pieces(Vec::new()), Vec::new());
    for Access { apply, gathered, reads: old, current } in accesses {
        let held = |defined: &Defined, cells: &Cells| {
            let mut cells = cells.get(name).into_iter().flatten();
            cells.all(|(piece, offset)| defined.holds_read(program, piece, field, offset))
        };
        let old = !gathered.contains(name) && held(&defined, old);
        if apply.updates.contains(&name) {
            defined = defined.and(program, program.grid_of(name)?, &apply.pieces);
        }
        reads.push(old && held(&defined, current));
    }
    Ok((defined, reads))
}

/// Whether any launch may read what another one left in a field: some apply reads cells that were
/// not overwritten before in its own launch, and others may have been there since they did it last.
fn outlives<'c>(
    program: &Program<'c>,
    launches: &[Vec<Access<'c, '_>>],
    name: &str,
) -> Result<bool, Error> {
    let writers = |accesses: &[Access<'c, '_>]| {
        accesses.iter().filter(|access| access.apply.updates.contains(&name)).count()
    };
    let all: usize = launches.iter().map(|accesses| writers(accesses)).sum();
    for accesses in launches {
        let (_, reads) = overwritten(program, accesses, name)?;
        for (place, held) in reads.into_iter().enumerate() {
            // After the last writer, a cell that is not overwritten is written by no apply.
            if !held && accesses.get(..place).is_some_and(|before| writers(before) < all) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::ir::Module;

    /// A step: applies of `A`, `B` (temp) and `C` by pieces from first to last, each with the reads
    /// of its function.
    type Step<'s> = &'s [(&'s str, [&'s str; 2], &'s [(&'s str, i64)])];

    /// What the launches of such a step transfer, given how many applies each takes.
    fn transfers(step: Step, launches: &[usize]) -> Vec<(Vec<String>, Vec<String>)> {
        let map = |bound: &str| format!("affine_map<()[n] -> ({bound})>");
        let mut text = format!(
            "module attributes {{stencil.params = [\"N\"], stencil.steps = {}}} {{ \
             \"stencil.grid\"() {{sym_name = \"G\", lower = {}, upper = {}}} : () -> ()\n",
            map("4"),
            map("0"),
            map("n - 1")
        );
        for (field, role) in [("A", "state"), ("B", "temp"), ("C", "state")] {
            text += &format!(
                "\"stencil.field\"() {{sym_name = \"{field}\", grid = @G, type = f32, \
                 role = \"{role}\"}} : () -> ()\n"
            );
        }
        for (place, (updated, [first, last], reads)) in step.iter().enumerate() {
            let arguments: Vec<_> = (reads.iter().enumerate())
                .map(|(index, (field, offset))| {
                    format!(
                        "%{index}: f32 {{stencil.read = @{field}, stencil.offset = array<i64: \
                        {offset}>}}"
                    )
                })
                .collect();
            text += &format!(
                "func.func private @f{place}({}) -> f32 {{ %c = arith.constant 1.0 : f32 return %c \
                 : f32 }}\n\
                 \"stencil.apply\"() {{updates = [@{updated}], pieces = [{{function = @f{place}, \
                 lower = {}, upper = {}}}]}} : () -> ()\n",
                arguments.join(", "),
                map(first),
                map(last)
            );
        }
        let context = stencil_dialects::context().unwrap();
        let module = Module::parse(&context, &(text + "}")).unwrap();
        let program = Program::read(&module).unwrap();
        let mut rest = program.applies.iter();
        let launches: Vec<Vec<&Apply>> =
            launches.iter().map(|count| rest.by_ref().take(*count).collect()).collect();
        let names =
            |fields: BTreeSet<&str>| fields.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let found = of(&program, &launches).unwrap();
        found
            .into_iter()
            .map(|transfers| (names(transfers.fresh), names(transfers.stored)))
            .collect()
    }

    fn names(fields: &[&str]) -> Vec<String> {
        fields.iter().map(|field| (*field).to_owned()).collect()
    }

    #[test]
    fn a_temp_field_that_is_overwritten_where_it_is_read_stays_in_its_launch() {
        let read_inside: Step =
            &[("B", ["1", "n - 2"], &[("A", 1)]), ("A", ["2", "n - 3"], &[("B", -1), ("B", 1)])];
        assert_eq!(transfers(read_inside, &[2]), [(names(&["B"]), names(&["A"]))]);
        // The rim is read too. It is zero for ever, so it is loaded and never stored.
        let read_at_rim: Step =
            &[("B", ["1", "n - 2"], &[("A", 1)]), ("A", ["1", "n - 2"], &[("B", -1)])];
        assert_eq!(transfers(read_at_rim, &[2]), [(names(&[]), names(&["A"]))]);
    }

    #[test]
    fn what_another_launch_reads_is_stored() {
        let whole: Step =
            &[("B", ["0", "n - 1"], &[("A", 0)]), ("A", ["1", "n - 2"], &[("B", -1)])];
        assert_eq!(
            transfers(whole, &[1, 1]),
            [(names(&["B"]), names(&["B"])), (names(&[]), names(&["A"]))]
        );
        // Without the rim, what is stored needs the old rim.
        let part: Step = &[("B", ["1", "n - 1"], &[("A", 0)]), ("A", ["1", "n - 2"], &[("B", 0)])];
        assert_eq!(
            transfers(part, &[1, 1]),
            [(names(&[]), names(&["B"])), (names(&[]), names(&["A"]))]
        );
    }

    #[test]
    fn what_the_next_step_reads_is_stored() {
        // A reads what the step before wrote.
        let late: Step = &[("A", ["0", "n - 1"], &[("B", 0)]), ("B", ["0", "n - 1"], &[("C", 0)])];
        assert_eq!(transfers(late, &[2]), [(names(&["A"]), names(&["A", "B"]))]);
        // So does the second apply, at the cells that the last one writes.
        let twice: Step = &[
            ("B", ["1", "n - 2"], &[("C", 0)]),
            ("A", ["0", "n - 1"], &[("B", 0)]),
            ("B", ["0", "0"], &[("C", 0)]),
        ];
        assert_eq!(transfers(twice, &[3]), [(names(&["A"]), names(&["A", "B"]))]);
    }

    #[test]
    fn outputs_are_stored_and_loaded_where_they_are_not_whole() {
        let outputs: Step =
            &[("C", ["1", "n - 1"], &[("A", 0)]), ("A", ["0", "n - 1"], &[("C", 0)])];
        assert_eq!(transfers(outputs, &[2]), [(names(&[]), names(&["A", "C"]))]);
        let unread: Step = &[("A", ["0", "n - 1"], &[]), ("C", ["1", "n - 1"], &[("A", -1)])];
        assert_eq!(transfers(unread, &[2]), [(names(&["A"]), names(&["A", "C"]))]);
        // A launch stores all its updates if no later launch needs any.
        assert_eq!(
            transfers(&[("B", ["0", "n - 1"], &[])], &[1]),
            [(names(&["B"]), names(&["B"]))]
        );
    }
}
