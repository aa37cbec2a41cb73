//! Builders of the declarations.

use super::{
    APPLY, BOOLEAN, BOUNDARY, Boundary, CHECK, CONSTANTS, FIELD, GRID, MEMBER, Member, PARAMS,
    Piece, REPEATED, Repetition, Role, SCALAR, STEPS,
};
use crate::attribute;
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::ir::{AffineMap, Attribute, Module, Type};

/// Makes a module a stencil program.
pub fn set_program<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    params: &[&str],
    constants: &[(&str, i64)],
    steps: AffineMap<'c>,
) {
    let (op, context) = (mlir::module_op(module), builder.context);
    mlir::set_attribute(op, PARAMS, attribute::strings(context, params));
    mlir::set_attribute(op, STEPS, mlir::map_attribute(steps));
    if !constants.is_empty() {
        let entries: Vec<_> = constants
            .iter()
            .map(|(name, value)| {
                attribute::dictionary(
                    context,
                    &[
                        ("name", attribute::string(context, name)),
                        ("value", attribute::integer(context, *value)),
                    ],
                )
            })
            .collect();
        mlir::set_attribute(op, CONSTANTS, attribute::array(context, &entries));
    }
}

/// Builds `stencil.grid`.
pub fn grid<'c>(
    builder: &Builder<'c>,
    name: &str,
    lower: AffineMap<'c>,
    upper: AffineMap<'c>,
) -> Result<Op<'c>, Error> {
    let name = attribute::string(builder.context, name);
    builder.op(
        GRID,
        &[],
        &[],
        &[
            ("sym_name", name),
            ("lower", mlir::map_attribute(lower)),
            ("upper", mlir::map_attribute(upper)),
        ],
    )
}

/// Builds `stencil.field`.
pub fn field<'c>(
    builder: &Builder<'c>,
    name: &str,
    grid: &str,
    element: Type<'c>,
    role: Role,
    boundary: Option<Boundary<'c>>,
) -> Result<Op<'c>, Error> {
    let context = builder.context;
    let mut attributes = vec![
        ("sym_name", attribute::string(context, name)),
        ("grid", attribute::symbol(context, grid)),
        ("type", attribute::ty(element)),
        ("role", attribute::string(context, role.name())),
    ];
    attributes.extend(boundary.map(|rule| (BOUNDARY, rule.attribute(builder))));
    builder.op(FIELD, &[], &[], &attributes)
}

/// Makes a field a part of a declared field of structs or vecs.
pub fn set_member<'c>(builder: &Builder<'c>, field: Op<'c>, member: Member) {
    let context = builder.context;
    let entries = [
        ("field", attribute::string(context, member.field)),
        ("offset", attribute::integer(context, member.offset)),
        ("size", attribute::integer(context, member.size)),
    ];
    mlir::set_attribute(field, MEMBER, attribute::dictionary(context, &entries));
}

/// Marks a `ui8` field as one of `bool`: files hold NumPy's `bool`.
pub fn set_boolean<'c>(builder: &Builder<'c>, field: Op<'c>) {
    mlir::set_attribute(field, BOOLEAN, Attribute::unit(builder.context));
}

/// Builds `stencil.scalar`.
pub fn scalar<'c>(
    builder: &Builder<'c>,
    name: &str,
    element: Type<'c>,
    default: Option<Attribute<'c>>,
) -> Result<Op<'c>, Error> {
    let context = builder.context;
    let default: Vec<_> = default.into_iter().collect();
    builder.op(
        SCALAR,
        &[],
        &[],
        &[
            ("sym_name", attribute::string(context, name)),
            ("type", attribute::ty(element)),
            ("default", attribute::array(context, &default)),
        ],
    )
}

/// The attribute that [`super::as_pieces`] reads.
pub fn pieces_attribute<'c>(builder: &Builder<'c>, pieces: &[Piece<'c>]) -> Attribute<'c> {
    let context = builder.context;
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| {
            attribute::dictionary(
                context,
                &[
                    ("function", attribute::symbol(context, piece.function)),
                    ("lower", mlir::map_attribute(piece.lower)),
                    ("upper", mlir::map_attribute(piece.upper)),
                ],
            )
        })
        .collect();
    attribute::array(context, &pieces)
}

/// Builds `stencil.apply`.
pub fn apply<'c>(
    builder: &Builder<'c>,
    updates: &[&str],
    pieces: &[Piece<'c>],
) -> Result<Op<'c>, Error> {
    let updates = attribute::symbols(builder.context, updates);
    builder.op(
        APPLY,
        &[],
        &[],
        &[("updates", updates), ("pieces", pieces_attribute(builder, pieces))],
    )
}

/// Repeats an apply or a reduction in each step, together with its neighbours of the same number.
pub fn set_repeats<'c>(builder: &Builder<'c>, op: Op<'c>, repeats: &[Repetition]) {
    if repeats.is_empty() {
        return;
    }
    let numbers: Vec<i64> = repeats.iter().flat_map(|one| [one.number, one.count]).collect();
    mlir::set_attribute(op, REPEATED, attribute::integers(builder.context, &numbers));
}

/// Builds `stencil.check`.
pub fn check<'c>(
    builder: &Builder<'c>,
    value: AffineMap<'c>,
    unless_empty: Option<(AffineMap<'c>, AffineMap<'c>)>,
    message: &str,
) -> Result<Op<'c>, Error> {
    let bounds: Vec<_> = unless_empty
        .into_iter()
        .flat_map(|(lower, upper)| [mlir::map_attribute(lower), mlir::map_attribute(upper)])
        .collect();
    builder.op(
        CHECK,
        &[],
        &[],
        &[
            ("value", mlir::map_attribute(value)),
            ("unless_empty", attribute::array(builder.context, &bounds)),
            ("message", attribute::string(builder.context, message)),
        ],
    )
}
