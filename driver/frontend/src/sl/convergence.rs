//! `Converged`: the run ends where all cells have converged.
//!
//! The function computes a second field, the temp field `still`: whether the cell has converged in
//! this iteration. The reduction `converged` is the smallest of its values, and the condition of
//! `until`, which is looked at as often as `ConvergedEvery` says.

use super::lower::Lowered;
use super::tree::File;
use super::types;
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::*;
use crate::source::Span;
use cranelift_entity::EntityRef;
use stencil_runtime::array::Element;

/// The types in which the condition of a cell is kept, and that of all.
const KEPT: Element = Element::U8;
const REDUCED: Element = Element::U32;

/// Iterations between two looks.
pub fn every(file: &File, errors: &mut Vec<Diagnostic>) -> i64 {
    let Some(every) = &file.every else { return 1 };
    let most = limits::EVERY;
    let found = i64::try_from(every.node).ok().filter(|found| (1..=most).contains(found));
    if found.is_none() {
        let message = format!("the condition is looked at every 1 to {most} iterations");
        errors.push(Diagnostic::error(message, every.span, ""));
    }
    if file.converged.is_none() {
        let message = "`ConvergedEvery` needs a block `Converged`";
        errors.push(Diagnostic::error(message, every.span, ""));
    }
    found.unwrap_or(1)
}

/// The two blocks as one: the value of the cell gets the name `first`, which the other one uses.
pub fn joined(mut cell: Lowered, converged: Lowered, first: usize) -> Lowered {
    let (id, ty, span) = (LocalId::new(first), cell.value.ty, cell.value.span);
    let local = Expr { kind: ExprKind::Local(id), ty, span };
    let value = std::mem::replace(&mut cell.value, local);
    for list in [&mut cell.lets, &mut cell.all] {
        list.push((id, value.clone()));
    }
    cell.lets.extend(converged.lets);
    cell.all.extend(converged.all);
    let condition = types::condition(converged.value);
    cell.more.push(types::convert(condition, KEPT));
    cell
}

/// Adds the field, the reduction and the end of the run to a program.
pub fn ends(program: &mut Program, span: Span, every: i64) {
    let Some(grid) = program.grids.keys().next() else { return };
    let Some(region) = program.grids.get(grid).map(|grid| grid.region.clone()) else { return };
    let rank = region.lower.len();
    let point = Region { lower: vec![Affine::number(0)], upper: vec![Affine::number(0)] };
    let one = program.grids.push(Grid { name: "one".into(), region: point, span });
    let field = |name: &str, role, element, grid| {
        let (name, boundary, member) = (name.to_owned(), None, None);
        Field { name, role, element, boolean: element == KEPT, member, grid, boundary, span }
    };
    let still = program.fields.push(field("still", Role::Temp, KEPT, grid));
    let converged = program.fields.push(field("converged", Role::Reduction, REDUCED, one));
    for function in &mut program.functions {
        function.updates.push(still);
    }
    let number = |element| move |kind| Expr { kind, ty: Type::Element(element), span };
    let cell = ExprKind::Read { field: still, offset: vec![0; rank], current: false };
    let cell = types::condition(number(KEPT)(cell));
    program.reductions.push(Reduction {
        field: converged,
        combine: Combine::All,
        piece: Piece {
            region,
            lets: Vec::new(),
            values: vec![types::convert(cell, REDUCED)],
            span,
        },
        initial: None,
        place: program.functions.len(),
        repeats: Vec::new(),
        span,
    });
    let zero = Expr { kind: ExprKind::Int(0), ty: Type::Element(Element::I64), span };
    let all = number(REDUCED)(ExprKind::Gather { field: converged, at: vec![zero] });
    let condition = types::condition(all);
    program.until = Some(Until { condition, every, text: "converged".to_owned(), span });
}
