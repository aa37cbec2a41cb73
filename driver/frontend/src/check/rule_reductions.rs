//! Reductions in boundary rules: each has a value wherever the rule is used.

use super::Checker;
use super::reductions::FIRST_VALUE;
use crate::diagnostics::Diagnostic;
use crate::program::*;
use crate::source::Span;

/// The use of a reduction by the boundary rule of a field.
pub(super) struct RuleUse {
    /// The field of the rule.
    pub(super) of: FieldId,
    /// The field of the reduction.
    pub(super) reduction: FieldId,
    /// Where it stands.
    pub(super) span: Span,
}

impl Checker<'_> {
    /// Refuses a rule whose field is read in the first step before the reduction has a value.
    pub(super) fn reduced_before_rules(&mut self) {
        for used in std::mem::take(&mut self.rule_uses) {
            let found = self.program.reductions.iter().enumerate();
            let Some((number, reduction)) =
                found.into_iter().find(|(_, one)| one.field == used.reduction)
            else {
                continue;
            };
            if reduction.initial.is_some() {
                continue;
            }
            let leaves = self.leaf_fields(used.of);
            let before = (reduction.place, number + 1);
            let Some((reader, at)) = self.program.first_reader(&leaves, before) else { continue };
            let (name, of) = (self.field_name(used.reduction), self.field_name(used.of));
            let message =
                format!("`{name}` has no value in the first step where `{reader}` reads `{of}`");
            let error = Diagnostic::error(message, used.span, "read in this rule")
                .see(at, format!("reads `{of}`"))
                .see(reduction.span, "computed here");
            self.report(error.help(FIRST_VALUE));
        }
    }
}
