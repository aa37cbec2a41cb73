//! Reads at offsets: inside their field's grid.

use super::regions::{bounds_of, may_be_empty};
use super::{Checker, Read};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::{Affine, Check, Grid, Region};
use crate::source::Span;

impl Checker<'_> {
    /// Every read of a piece lies inside its field's grid; one message a field, dimension and side.
    pub(super) fn reads_inside(
        &mut self,
        region: &Region,
        grids: &[Grid],
        reads: &[Read],
        at: Span,
    ) {
        let facts = self.scope.facts.clone();
        let mut told = Vec::new();
        let mut checked: Vec<(Affine, Region)> = Vec::new();
        for read in reads {
            let Some(field) = self.program.fields.get(read.field) else {
                continue;
            };
            let Some(grid) = self.program.grids.get(field.grid).cloned() else {
                continue;
            };
            let ruled = self.bounded.contains_key(field.declared_name());
            self.not_too_far(read, ruled);
            if ruled && grids.iter().any(|other| other.region == grid.region) {
                continue;
            }
            for (dimension, offset) in read.offset.iter().enumerate() {
                let both = (bounds_of(region, dimension), bounds_of(&grid.region, dimension));
                let (Some((lower, upper)), Some((first, last))) = both else {
                    continue;
                };
                // What lies beside the grid's points is known, but the point itself must be one.
                let offset = if ruled { 0 } else { *offset };
                for (point, edge, before) in [(lower, first, true), (upper, last, false)] {
                    let reached = point.shifted(offset);
                    let value = reached.as_ref().and_then(|reached| match before {
                        true => reached.minus(edge),
                        false => edge.minus(reached),
                    });
                    let (Some(reached), Some(value)) = (reached, value) else {
                        self.overflow("the place of this read", read.span);
                        continue;
                    };
                    let key = (read.field, dimension, before);
                    if facts.prove(&value) || told.contains(&key) {
                        continue;
                    }
                    if facts.refute(&value) {
                        told.push(key);
                        self.read_outside(read, dimension, &grid, (point, &reached), at, ruled);
                    } else if !checked.iter().any(|(known, _)| *known == value) {
                        let needed = value.show_condition(&self.program.params);
                        let message = format!(
                            "`{}` in the piece `{}` of `{}` {} outside the grid's {} unless \
                             {needed}",
                            crate::lexer::shorten(self.source.slice(read.span)),
                            crate::lexer::shorten(self.source.slice(at)),
                            self.scope.function,
                            if ruled { "is read from points" } else { "reads" },
                            self.show_range(&grid.region, dimension),
                        );
                        let unless_empty = may_be_empty(region);
                        checked.push((value.clone(), region.clone()));
                        self.program.checks.push(Check {
                            value,
                            unless_empty,
                            message,
                            span: read.span,
                        });
                    }
                }
            }
        }
    }

    /// Offsets are limited, by less where a rule says what lies outside.
    fn not_too_far(&mut self, read: &Read, ruled: bool) {
        let most = if ruled { limits::RULE_OFFSET } else { limits::OFFSET };
        if read.offset.iter().any(|offset| offset.unsigned_abs() > most) {
            let text = crate::lexer::shorten(self.source.slice(read.span));
            let message = format!("`{text}` reads too far from its point");
            let error = Diagnostic::error(message, read.span, "");
            let rule = if ruled { "with a boundary rule, " } else { "" };
            self.report(error.help(format!("{rule}offsets go from -{most} to {most}")));
        }
    }

    fn read_outside(
        &mut self,
        read: &Read,
        dimension: usize,
        grid: &Grid,
        (point, reached): (&Affine, &Affine),
        at: Span,
        ruled: bool,
    ) {
        let params = &self.program.params;
        let (point, reached) = (point.show(params), reached.show(params));
        let text = crate::lexer::shorten(self.source.slice(read.span));
        let range = self.show_range(&grid.region, dimension);
        let name = self.scope.coordinates.get(dimension).cloned().flatten();
        let axis = name.map_or(format!("dimension {dimension}"), |name| format!("`{}`", name.node));
        let (message, label, help) = if ruled {
            let message = format!("`{text}` is read from points outside the grid's {range}");
            let help = "shrink the box: a `boundary` rule is for reads from the field's own points";
            (message, format!("read from {point} in {axis}"), help)
        } else {
            let help = "shrink the box, or give the field a `boundary` rule; an `if` does not \
                guard a read";
            (
                format!("`{text}` reads outside the grid's {range}"),
                format!("reads {reached} in {axis}"),
                help,
            )
        };
        let mut error = Diagnostic::error(message, read.span, label);
        if let Some(call) = &read.call {
            error = error.see(call.span, format!("in this call of `{}`", call.name));
        }
        let error = error
            .see(at, format!("has the point {point} in {axis}"))
            .note(format!(
                "`{}` lies on {} = {range} in dimension {dimension}",
                self.field_name(read.field),
                grid.name
            ))
            .help(help);
        self.report(error);
    }
}
