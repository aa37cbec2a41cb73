//! The temp fields whose values a step has from the one before.

use crate::failure::Failure;
use crate::session::Session;
use crate::stages;
use stencil_frontend::program::{Field, FieldId, Function, Program, Role};
use stencil_frontend::source::Source;
use stencil_runtime::plan::{self, Plan};

impl Session {
    /// The declared names of temp fields that a run needs from step to step, each once. The values
    /// of any other are computed in each step before it reads them, or are zeros in all of them.
    ///
    /// # Errors
    /// The source's faults.
    pub fn carried(&self, source: &Source) -> Result<Vec<String>, Failure> {
        if stages::is_mlir(source) {
            return Ok(kept(&self.declared(source)?));
        }
        let program = self.check(source)?;
        let temps = program.fields.iter().filter(|(_, field)| field.role == Role::Temp);
        let carried = temps.filter(|(id, field)| is_carried(&program, *id, field));
        let mut names: Vec<_> =
            carried.map(|(_, field)| field.declared_name().to_owned()).collect();
        names.dedup();
        Ok(names)
    }
}

/// The declared names of temp fields that the kernels of a plan keep in memory, each once. A plan
/// does not tell which of them a step reads before it writes them.
pub fn kept(plan: &Plan) -> Vec<String> {
    let temps = plan.fields.iter().filter(|field| field.role == plan::Role::Temp);
    let kept = temps.filter(|field| !field.value.is_empty());
    let mut names: Vec<_> = kept.map(|field| field.declared_name().to_owned()).collect();
    names.dedup();
    names
}

fn is_carried(program: &Program, id: FieldId, field: &Field) -> bool {
    let writes = |function: &&Function| function.updates.contains(&id);
    let mut writers = program.functions.iter().filter(writes);
    let Some(first) = writers.next() else { return false };
    let reads = |function: &Function| {
        function.pieces.iter().flat_map(|piece| piece.exprs()).any(|expr| expr.reads_any(&[id]))
    };
    let place = program.functions.iter().take_while(|function| !writes(function)).count();
    let earlier = program.functions.iter().take(place + 1).any(reads)
        || program.reductions.iter().any(|reduction| {
            reduction.place <= place && reduction.piece.exprs().any(|expr| expr.reads_any(&[id]))
        });
    // Where others write cells too, the first one must renew all of them.
    let grid = &program.grids[field.grid].region;
    earlier || (writers.next().is_some() && first.pieces.iter().all(|one| one.region != *grid))
}

#[cfg(test)]
mod tests {
    use crate::{Options, Session, Source};

    #[test]
    fn a_temp_field_is_carried_where_a_step_reads_old_values() {
        let all = "fn d -> D [0..N-1] = A[0]";
        let inner = "fn d -> D [1..N-2] = A[0]";
        let f = "fn f -> A [0..N-1] = A[0] + D[0]";
        let m = "reduce m : f64 = max(D[0]) on [0..N-1]";
        for (items, is_carried) in [
            (vec![all, f], false),
            (vec![all, f, m], false),
            (vec![inner, f, m], false),
            (vec![f, all], true),
            (vec![m, all, f], true),
            (vec!["fn d -> D [0..N-1] = D[0] + A[0]", f], true),
            (vec![all, "fn e -> D [1..N-2] = D[-1]", f], false),
            (vec![inner, "fn e -> D [0..N-1] = D[0] + 1", f], true),
        ] {
            let text = format!(
                "param N\ngrid G = [0..N-1]\nfield A : f64 on G\ntemp field D : f64 on G\n{}\n\
                 steps 5\n",
                items.join("\n")
            );
            let session = Session::new(Options::default());
            let found = session.carried(&Source::new("a.stencil", &text)).unwrap();
            assert_eq!(found, vec!["D"; usize::from(is_carried)], "{text}");
        }
    }
}
