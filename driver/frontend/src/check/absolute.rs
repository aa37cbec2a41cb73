//! Absolute reads of programs that another front end made: that they lie inside.

use super::prove::Facts;
use super::{Checker, Scope};
use crate::ast;
use crate::diagnostics::Diagnostic;
use crate::program::{Affine, Expr, ExprKind, FieldId, LocalId, Param, ParamId, Program, Region};
use crate::source::{Source, Span};
use cranelift_entity::PrimaryMap;

/// An expression, and the points where it is evaluated.
pub struct Space {
    /// The points.
    pub region: Region,
    /// What stands for the region in messages.
    pub span: Span,
    /// Locals in the order in which they are bound.
    pub lets: Vec<(LocalId, Expr)>,
    /// The value.
    pub value: Expr,
    /// The field whose absolute reads are checked.
    pub field: FieldId,
    /// Whose data it is, for messages.
    pub owner: String,
}

/// Checks that all absolute reads lie in their grid, and that the program is not too large. What
/// only the sizes of a run can tell becomes a condition of the program.
pub fn absolute_reads(
    program: Program,
    source: &Source,
    spaces: Vec<Space>,
) -> (Program, Vec<Diagnostic>) {
    let file = ast::File::default();
    let mut checker = Checker::new(&file, source, &[]);
    checker.program = program;
    for space in spaces {
        let grids: Vec<_> = checker.program.grids.values().take(1).cloned().collect();
        let mut facts = Facts::of_piece(&space.region, &[]);
        if let Some(grid) = grids.first() {
            facts.add_points(&grid.region);
        }
        facts.add_order(&Affine::number(1), &Affine::param(ParamId::STEPS));
        let region = Some((space.region.clone(), space.span));
        let function = space.owner.clone();
        checker.scope = Scope { facts, region, function, ..Scope::default() };
        for (id, value) in &space.lets {
            checker.inside(value, &space);
            let range = checker.range(value);
            checker.scope.ranges.insert(*id, range);
        }
        checker.inside(&space.value, &space);
    }
    checker.not_too_large();
    let Checker { program, errors, .. } = checker;
    (program, errors)
}

impl Checker<'_> {
    /// Checks the reads in an expression.
    fn inside(&mut self, expr: &Expr, space: &Space) {
        expr.children().into_iter().for_each(|child| self.inside(child, space));
        let ExprKind::Gather { field, at } = &expr.kind else { return };
        if *field != space.field {
            return;
        }
        let (found, asked) = (self.errors.len(), self.program.checks.len());
        self.gather_inside(*field, at, expr.span);
        let (text, owner) = (crate::lexer::shorten(self.source.slice(expr.span)), &space.owner);
        if let Some(error) = self.errors.get_mut(found) {
            let remark = error.labels.iter().find(|label| label.primary);
            let (place, remark) = remark
                .map_or((expr.span, String::new()), |label| (label.span, label.message.clone()));
            let message = format!("`{text}` may lie outside of the data of {owner}SetData");
            *error = Diagnostic::error(message, place, remark)
                .help(
                    "keep it inside, as in `max(0, min(i, 99))`; a condition around the read does \
                     not help",
                )
                .note(
                    "an index may be `y * input_size.x + x`, or sums of sizes and numbers; \
                     products of sizes have bounds where -D fixes the sizes",
                );
            self.errors.truncate(found + 1);
        }
        let params = &self.program.params;
        for check in self.program.checks.iter_mut().skip(asked) {
            let needed = compared(&check.value, params);
            check.message = format!("`{text}` needs {needed} for the data of {owner}SetData");
        }
    }
}

/// A condition with what is added on the left and what is subtracted on the right:
/// `count >= size_x+1`.
fn compared(value: &Affine, params: &PrimaryMap<ParamId, Param>) -> String {
    let side = |sign: i64| {
        let terms = value.terms.iter().filter(|(_, factor)| factor.signum() == sign);
        let terms = terms.map(|(id, factor)| (*id, factor.saturating_mul(sign))).collect();
        let constant = value.constant.saturating_mul(sign).max(0);
        Affine { constant, terms }.show(params)
    };
    format!("{} >= {}", side(1), side(-1))
}
