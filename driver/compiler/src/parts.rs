//! What a run in parts must know of a program. Each part begins with the state fields that the one
//! before ended with, and with nothing else of it.

use crate::failure::Failure;
use crate::session::Session;
use crate::stages;
use stencil_dialects::affine::Linear;
use stencil_dialects::cover::{Bounds, covered};
use stencil_frontend::program::{
    Affine, Boundary, Field, FieldId, Function, Program, Region, Role,
};
use stencil_frontend::source::Source;
use stencil_runtime::plan::{self, Argument, Plan, Start};

/// What a run in parts would lose or change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The declared names of temp fields of which a step reads values of the step before, each
    /// once. Where the program is known by its plan alone: those that lie in memory.
    pub temps: Vec<String>,
    /// The reductions of which a step reads the value of the step before.
    pub reductions: Vec<String>,
    /// After how many steps the run looks whether it ends early, if it does.
    pub every: Option<i64>,
    /// Whether the program is known by its plan alone.
    is_of_plan: bool,
}

impl Session {
    /// What a run of a source in parts must know; `declared` is the source's
    /// [`Session::declared`].
    ///
    /// # Errors
    /// The source's faults.
    pub fn parts(&self, source: &Source, declared: &Plan) -> Result<Parts, Failure> {
        if stages::is_mlir(source) {
            return Ok(Parts::of_plan(declared));
        }
        Ok(Parts::of_program(&self.check(source)?))
    }
}

impl Parts {
    /// Those of a plan with kernels. It does not tell which temp fields a step reads before it
    /// writes them. A launch that reads and writes a reduction's value counts as one that computes
    /// it: where it reads the value of the step before, the language asks for a first value.
    pub fn of_plan(plan: &Plan) -> Self {
        let temps = plan.fields.iter().filter(|field| field.role == plan::Role::Temp);
        let in_memory = temps.filter(|field| !field.value.is_empty());
        let mut temps: Vec<_> = in_memory.map(|field| field.declared_name().to_owned()).collect();
        temps.dedup();
        let fields = plan.fields.iter().filter(|field| field.role == plan::Role::Reduction);
        let read =
            fields.filter(|field| field.value.iter().any(|part| is_read(plan, &part.buffer)));
        let reductions = read.map(|field| field.name.clone()).collect();
        Self { temps, reductions, every: plan.steps_between_looks(), is_of_plan: true }
    }

    fn of_program(program: &Program) -> Self {
        let temps = program.fields.iter().filter(|(_, field)| field.role == Role::Temp);
        let carried = temps.filter(|(id, field)| is_carried(program, *id, field));
        let mut temps: Vec<_> =
            carried.map(|(_, field)| field.declared_name().to_owned()).collect();
        temps.dedup();
        let reductions = program.reductions.iter().enumerate();
        let carried = reductions
            .filter(|(number, one)| reads_old(program, one.field, (one.place, number + 1)));
        let names = carried.filter_map(|(_, one)| program.fields.get(one.field));
        let reductions = names.map(|field| field.declared_name().to_owned()).collect();
        let every = program.until.as_ref().map(|until| until.every);
        Self { temps, reductions, every, is_of_plan: false }
    }

    /// Checks that a run may begin after some steps, and be cut after each so many.
    ///
    /// # Errors
    /// Why it would have other results than a run in one part, and the remedy.
    pub fn check(&self, first_step: i64, every: Option<i64>) -> Result<(), String> {
        check_looks(self.every, every.into_iter().chain([first_step]))?;
        if every.is_none() {
            return Ok(());
        }
        if let Some(name) = self.reductions.first() {
            let reads = if self.is_of_plan { "may read" } else { "reads" };
            return Err(format!(
                "a step {reads} the reduction `{name}` of the step before, and a run in parts \
                 would lose its value; leave out `every`"
            ));
        }
        match self.temps.first() {
            Some(name) if self.is_of_plan => Err(format!(
                "the kernels keep the temp field `{name}` in memory, and a run in parts may lose \
                 values that a step reads; compile it as a state field, or leave out `every`"
            )),
            Some(name) => Err(format!(
                "the program keeps the temp field `{name}` from step to step, and a run in parts \
                 would lose it; declare it without `temp`, `field {name}`, or leave out `every`"
            )),
            None => Ok(()),
        }
    }
}

/// Checks that a run which looks after each `every` steps whether it ends early may begin or pause
/// after some numbers of steps.
pub(crate) fn check_looks(
    every: Option<i64>,
    mut steps: impl Iterator<Item = i64>,
) -> Result<(), String> {
    let Some(every) = every else { return Ok(()) };
    match steps.find(|step| step % every != 0) {
        Some(step) => Err(format!(
            "the run may end after every {every} steps, so it can begin and pause only after \
             multiples of {every}; {step} is none"
        )),
        None => Ok(()),
    }
}

/// Whether launches read a buffer's value from before the step.
fn is_read(plan: &Plan, buffer: &str) -> bool {
    let starts = plan.buffer(buffer).is_some_and(|one| one.start != Start::Zeros);
    let arguments = plan.launches().flat_map(|launch| &launch.arguments);
    let mut uses = arguments.filter(|argument| argument.buffer() == Some(buffer));
    starts || matches!(uses.next(), Some(Argument::Read(_)))
}

/// Whether a temp field has values that a later step reads.
fn is_carried(program: &Program, id: FieldId, field: &Field) -> bool {
    let writes = |function: &&Function| function.updates.contains(&id);
    let mut writers = program.functions.iter().filter(writes);
    let Some(first) = writers.next() else { return false };
    let place = program.functions.iter().take_while(|function| !writes(function)).count();
    let reductions = program.reductions.iter().filter(|one| one.place <= place).count();
    // Where others write cells too, the first one must renew all of them.
    reads_old(program, id, (place + 1, reductions))
        || (writers.next().is_some() && !renews(program, first, &program.grids[field.grid].region))
}

/// Whether one of a step's first functions and reductions reads a field, also by a boundary rule.
fn reads_old(program: &Program, id: FieldId, items: (usize, usize)) -> bool {
    let through = |(other, field): &(FieldId, &Field)| {
        let rule = field.boundary.as_ref();
        *other == id || matches!(rule, Some(Boundary::Value(value)) if value.reads_any(&[id]))
    };
    let fields: Vec<_> = program.fields.iter().filter(through).map(|(id, _)| id).collect();
    program.first_reader(&fields, items).is_some()
}

/// Whether the pieces of a function together are a whole grid, whatever the sizes.
fn renews(program: &Program, function: &Function, grid: &Region) -> bool {
    let linear = |affine: &Affine| {
        let mut coefficients = vec![0; program.params.len()];
        for (param, coefficient) in &affine.terms {
            let place = program.params.keys().position(|one| one == *param)?;
            *coefficients.get_mut(place)? = *coefficient;
        }
        Some(Linear { constant: affine.constant, coefficients })
    };
    let bounds = |region: &Region| {
        let all = |ends: &[Affine]| ends.iter().map(linear).collect::<Option<Vec<_>>>();
        Some(Bounds { lower: all(&region.lower)?, upper: all(&region.upper)? })
    };
    let pieces: Vec<_> = function.pieces.iter().filter_map(|piece| bounds(&piece.region)).collect();
    let checks = program.checks.iter().filter(|check| check.unless_empty.is_none());
    let known: Vec<_> = checks.filter_map(|check| linear(&check.value)).collect();
    bounds(grid).is_some_and(|grid| covered(&grid, &pieces, &known))
}

#[cfg(test)]
mod tests {
    use super::Parts;
    use crate::{Control, Level, Options, Session, Source};

    /// What is found of a program, and of its plan.
    fn parts(items: &[&str], steps: &str) -> [Parts; 2] {
        let text = format!(
            "param N\ngrid G = [0..N-1]\nfield A : f64 on G\ntemp field D : f64 on G\n{}\n\
             {steps}\n",
            items.join("\n")
        );
        let (session, source) = (Session::new(Options::default()), Source::new("a.stencil", &text));
        let compiled = session.compile(&source, &[Level::Plan], Control::default()).unwrap();
        let plan = compiled.plan().unwrap();
        [session.parts(&source, plan).unwrap(), Parts::of_plan(plan)]
    }

    const ALL: &str = "fn d -> D [0..N-1] = A[0]";
    const F: &str = "fn f -> A [0..N-1] = A[0] + D[0]";

    #[test]
    fn a_temp_field_is_carried_where_a_step_reads_old_values() {
        let inner = "fn d -> D [1..N-2] = A[0]";
        let pieces = "fn d -> D {\n[0..N-2] = A[0]\n[N-1] = 0\n}";
        let some = "fn d -> D {\n[0..N-3] = A[0]\n[N-1] = 0\n}";
        let m = "reduce m : f64 = max(D[0]) on [0..N-1]";
        let e = "fn e -> D [1..N-2] = D[-1]";
        for (items, is_carried) in [
            (vec![ALL, F], false),
            (vec![ALL, F, m], false),
            (vec![inner, F, m], false),
            (vec![F, ALL], true),
            (vec![m, ALL, F], true),
            (vec!["fn d -> D [0..N-1] = D[0] + A[0]", F], true),
            (vec![ALL, e, F], false),
            (vec![pieces, e, F], false),
            (vec![some, e, F], true),
            (vec![inner, "fn e -> D [0..N-1] = D[0] + 1", F], true),
        ] {
            let [found, _] = parts(&items, "steps 5");
            assert_eq!(found.temps, vec!["D"; usize::from(is_carried)], "{items:?}");
            assert_eq!(found.check(0, Some(1)).is_err(), is_carried, "{items:?}");
        }
    }

    #[test]
    fn a_reduction_is_carried_where_a_step_reads_its_value_before_it_is_computed() {
        let m = "reduce m : f64 = max(A[0]) on [0..N-1]";
        let reads = "fn g -> A [0..N-1] = A[0] / m";
        for (items, is_carried) in [
            (vec![m, reads], false),
            (vec![reads, "reduce m : f64 = max(A[0]) on [0..N-1] initially 1"], true),
            (vec![ALL, F, "reduce m : f64 = sum(m + A[0]) on [0..N-1] initially 0"], true),
            (vec![ALL, F, "reduce m : f64 = sum(m + A[0]) on [0..1] initially 0"], true),
            (
                vec![
                    "boundary A = m",
                    "fn g -> A [0..N-1] = A[1]",
                    "reduce m : f64 = sum(A[0]) on [0..N-1] initially 0",
                ],
                true,
            ),
            (vec![ALL, F, m, "reduce n : f64 = sum(m + A[0]) on [0..1]"], false),
        ] {
            for found in parts(&items, "steps 5") {
                assert_eq!(found.reductions, vec!["m"; usize::from(is_carried)], "{items:?}");
            }
        }
    }

    #[test]
    fn parts_begin_where_the_run_may_look() {
        let m = "reduce m : f64 = max(A[0]) on [0..N-1]";
        for found in parts(&[ALL, F, m], "steps 9 until abs(m) < 2*m every 2") {
            assert_eq!((found.every, found.reductions.len()), (Some(2), 0));
            let found = Parts { temps: Vec::new(), ..found };
            assert_eq!(found.check(4, Some(6)), Ok(()));
            assert!(found.check(0, Some(5)).unwrap_err().ends_with("5 is none"));
            assert!(found.check(3, None).unwrap_err().ends_with("3 is none"));
        }
        assert_eq!(parts(&[ALL, F, m], "steps 9").map(|found| found.every), [None, None]);
    }
}
