//! Builders of the operations.

use super::{
    APPLY, Apply, Halo, INTERIOR, KEEPS, KERNEL, Keeps, LOAD, PARTIAL, REPEAT, STEPS, STORE, TILE,
};
use crate::attribute;
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op, Val};
use crate::stencil::{self, Piece};
use melior::ir::{AffineMap, Attribute, Type};
use std::collections::BTreeMap;

/// `!tiled.tile`.
fn tile_type<'c>(builder: &Builder<'c>) -> Result<Type<'c>, Error> {
    Type::parse(builder.context, "!tiled.tile")
        .ok_or_else(|| Error::internal("the tiled dialect is not loaded"))
}

/// Builds `tiled.load`.
pub fn load<'c>(builder: &Builder<'c>, field: &str, halo: &Halo) -> Result<Val<'c>, Error> {
    let [lower, upper] = halo_attributes(builder, halo);
    builder.value(
        LOAD,
        &[],
        tile_type(builder)?,
        &[("field", attribute::symbol(builder.context, field)), lower, upper],
    )
}

fn halo_attributes<'c>(builder: &Builder<'c>, halo: &Halo) -> [(&'static str, Attribute<'c>); 2] {
    let bounds = |bounds: &[i64]| attribute::integers(builder.context, bounds);
    [("lower", bounds(&halo.lower)), ("upper", bounds(&halo.upper))]
}

/// Builds `tiled.apply`; returns the updated tiles.
pub fn apply<'c>(
    builder: &Builder<'c>,
    inputs: &[(&str, Val<'c>)],
    updates: &[&str],
    halo: &Halo,
    pieces: Attribute<'c>,
    step: i64,
) -> Result<Vec<Val<'c>>, Error> {
    Ok(mlir::results(build_apply(
        builder,
        inputs,
        updates,
        halo,
        pieces,
        step,
        (None, Keeps::Old),
    )?))
}

/// Builds a `tiled.apply` that completes the partial result of another, or makes one.
pub fn apply_in_part<'c>(
    builder: &Builder<'c>,
    of: &Apply<'c>,
    pieces: &[Piece<'c>],
    partial: Option<Val<'c>>,
    keeps: Keeps,
) -> Result<Op<'c>, Error> {
    let updates: Vec<_> = of.outputs.iter().map(|(field, _)| *field).collect();
    let pieces = stencil::pieces_attribute(builder, pieces);
    build_apply(builder, &of.inputs, &updates, &of.halo, pieces, of.step, (partial, keeps))
}

fn build_apply<'c>(
    builder: &Builder<'c>,
    inputs: &[(&str, Val<'c>)],
    updates: &[&str],
    halo: &Halo,
    pieces: Attribute<'c>,
    step: i64,
    (partial, keeps): (Option<Val<'c>>, Keeps),
) -> Result<Op<'c>, Error> {
    let context = builder.context;
    let [lower, upper] = halo_attributes(builder, halo);
    let outputs = vec![tile_type(builder)?; updates.len()];
    let (names, mut tiles): (Vec<_>, Vec<_>) = inputs.iter().copied().unzip();
    let mut attributes = vec![
        ("reads", attribute::symbols(context, &names)),
        ("updates", attribute::symbols(context, updates)),
        ("pieces", pieces),
        ("step", attribute::integer(context, step)),
        lower,
        upper,
    ];
    if let Some(partial) = partial {
        tiles.push(partial);
        attributes.push((PARTIAL, Attribute::unit(context)));
    }
    match keeps {
        Keeps::Old => {}
        Keeps::Partial => attributes.push((KEEPS, attribute::string(context, "partial"))),
        Keeps::Nothing => attributes.push((KEEPS, attribute::string(context, "nothing"))),
    }
    builder.op(APPLY, &tiles, &outputs, &attributes)
}

/// Builds `tiled.store`.
pub fn store<'c>(builder: &Builder<'c>, field: &str, tile: Val<'c>) -> Result<Op<'c>, Error> {
    builder.op(STORE, &[tile], &[], &[("field", attribute::symbol(builder.context, field))])
}

/// Builds `tiled.repeat`.
pub fn repeat<'c>(
    builder: &Builder<'c>,
    count: AffineMap<'c>,
    kernels: &[String],
) -> Result<Op<'c>, Error> {
    let kernels = attribute::symbols(builder.context, kernels);
    builder.op(REPEAT, &[], &[], &[("count", mlir::map_attribute(count)), ("kernels", kernels)])
}

/// Makes a tile kernel run code without checks in tiles away from every rim. `pieces` has, for each
/// apply in order, the number of the piece that covers it there.
pub fn set_interior(builder: &Builder, kernel: Op, pieces: &[i64]) {
    mlir::set_attribute(kernel, INTERIOR, attribute::integers(builder.context, pieces));
}

/// Gives a tile kernel another tile.
pub fn set_tile(builder: &Builder, kernel: Op, tile: &[i64]) {
    mlir::set_attribute(kernel, TILE, attribute::integers(builder.context, tile));
}

/// Says which kernel a `stencil.apply` is tiled by already.
pub fn set_kernel(builder: &Builder, apply: Op, kernel: &str) {
    mlir::set_attribute(apply, KERNEL, attribute::symbol(builder.context, kernel));
}

/// The kernel by which a `stencil.apply` is tiled already, if it is.
pub fn kernel_of<'c>(apply: Op<'c>) -> Option<&'c str> {
    mlir::attribute(apply, KERNEL).and_then(attribute::as_symbol)
}

/// Copies a kernel to the end of the module under another name.
///
/// # Errors
/// A fault of the compiler.
pub fn copy<'c>(builder: &Builder<'c>, kernel: Op<'c>, name: &str) -> Result<Op<'c>, Error> {
    mlir::copy_to(kernel, builder.block, &mut BTreeMap::new());
    let copy = mlir::operations(builder.block).pop();
    let copy = copy.ok_or_else(|| Error::internal("no copy of a tile kernel"))?;
    mlir::set_attribute(copy, "sym_name", attribute::string(builder.context, name));
    Ok(copy)
}

/// Makes a kernel take so many steps of the run.
pub fn set_steps<'c>(builder: &Builder<'c>, kernel: Op<'c>, steps: i64) {
    mlir::set_attribute(kernel, STEPS, attribute::integer(builder.context, steps));
}
