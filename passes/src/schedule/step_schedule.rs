//! The host schedule around the launches of a step: the loop up to a condition, and the reductions
//! that the last step alone computes.
//!
//! - Without either, `steps` steps.
//! - With reductions of the last step, `steps` steps, and then these. A run of no steps has none.
//! - With `until ... every K`, a loop of `K` steps, the reductions and the condition. If it never
//!   held, the `steps mod K` steps that are left over follow, and the reductions.

use crate::analysis::reductions;
use melior::ir::AffineExpr;
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::limits::STEPS;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Height, Part};

/// Lists of launches, each with how often it is done.
pub type Launches<'c> = Vec<(AffineExpr<'c>, Vec<String>)>;

/// Builds the host schedule of a program.
pub struct StepSchedule<'c, 'p> {
    /// The declarations.
    pub program: &'p Program<'c>,
    /// Builds at the end of the module.
    pub builder: &'p Builder<'c>,
    /// The pyramid height, where it is one of several alternatives.
    pub height: Option<Height>,
}

impl<'c> StepSchedule<'c, '_> {
    /// The schedule of all steps, where `of` has the launches of so many steps.
    ///
    /// # Errors
    /// Faults of the compiler.
    pub fn all(&self, of: impl Fn(AffineExpr<'c>) -> Launches<'c>) -> Result<(), Error> {
        let Self { program, builder, .. } = self;
        let constant = |value| AffineExpr::constant(builder.context, value);
        let steps = AffineExpr::symbol(builder.context, program.params.len());
        let last = reductions::of(program)?.last_step;
        let condition = program.until.as_ref().map(|until| until.condition);
        let looked: Vec<String> = last.iter().map(|one| one.field.to_owned()).collect();
        let own: Vec<String> =
            looked.iter().filter(|name| Some(name.as_str()) != condition).cloned().collect();
        let Some(until) = &program.until else {
            self.part(of(steps), None)?;
            let some = AffineExpr::ceil_div(steps, constant(STEPS));
            return self.part(vec![(some, own)], None);
        };
        let every = constant(until.every);
        let mut body = of(every);
        body.push((constant(1), looked));
        self.part(body, Some(Part::Body))?;
        if until.every == 1 {
            return Ok(());
        }
        let left = AffineExpr::modulo(steps, every);
        let mut behind = of(left);
        behind.push((AffineExpr::ceil_div(left, every), own));
        self.part(behind, Some(Part::Otherwise))
    }

    /// One part of the schedule; lists that are never done are left out.
    fn part(&self, launches: Launches<'c>, part: Option<Part>) -> Result<(), Error> {
        let symbols = self.program.params.len() + 1;
        for (count, kernels) in launches {
            let never = count.is_constant() && count.constant_value() == 0;
            if never || kernels.is_empty() {
                continue;
            }
            let count = symbolic(self.builder.context, symbols, &[count]);
            let repeat = tiled::repeat(self.builder, count, &kernels)?;
            if let Some(height) = &self.height {
                tiled::set_height(self.builder, repeat, height);
            }
            if let Some(part) = part {
                tiled::set_part(self.builder, repeat, part);
            }
        }
        Ok(())
    }
}
