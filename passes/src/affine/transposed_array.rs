//! An array of affine loops with another order of dimensions, in place of one that loops use.

use super::launches::Function;
use melior::Context;
use melior::ir::attribute::IntegerAttribute;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{DimSize, MemRefType};
use melior::ir::{AffineExpr, AffineMap, Region, ShapedTypeLike, Type, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Blk, Op, Val};
use stencil_dialects::tiled;

/// An array that is to be transposed.
pub struct Transposed<'c, 't> {
    /// Its name.
    pub name: &'t str,
    /// Its value.
    pub memref: Val<'c>,
    /// Its dimensions in their new order, the slowest first.
    pub order: Vec<usize>,
    /// Whether a loop stores to it. It is moved if it is an argument, and only changed if the
    /// function allocates it.
    pub stored: bool,
}

/// Cells along a dimension: a value where the type has no number.
#[derive(Clone, Copy)]
enum Cells<'c> {
    Static(i64),
    Dynamic(Val<'c>),
}

/// Changes all loops of the function to use the transposed array.
///
/// # Errors
/// Internal ones.
pub fn build<'c>(
    context: &'c Context,
    function: &Function<'c, '_>,
    of: &Transposed<'c, '_>,
) -> Result<(), Error> {
    let fault = || Error::internal("a function without a body");
    let entry = mlir::entry(function.op).ok_or_else(fault)?;
    let all = mlir::operations(entry);
    let (first, last) = (all.first(), all.last());
    let (first, last) = first.zip(last).ok_or_else(fault)?;
    let maker = all.iter().find(|op| mlir::results(**op).contains(&of.memref));
    let place = *maker.unwrap_or(first);
    let location = maker.map_or_else(|| function.op.location(), |op| op.location());
    let region = Region::new();
    let builder = Builder::new(context, location, mlir::append_block(&region, &[]));
    let cells = cells(&builder, of, maker.copied())?;
    let new = allocation(&builder, of, maker.copied(), &cells)?;
    let accesses = function.text.accesses.iter().map(|access| access.op);
    let accesses: Vec<Op> =
        accesses.filter(|op| mlir::operands(*op).contains(&of.memref)).collect();
    for op in accesses {
        let memref = usize::from(mlir::name(op) == "affine.store");
        let map = permuted(context, attribute::read(op, "map", attribute::as_map)?, &of.order)?;
        mlir::set_attribute(op, "map", mlir::map_attribute(map));
        mlir::set_operand(op, memref, new);
    }
    if let Some(maker) = maker {
        dims(context, function.op, of)?;
        mlir::move_all_before(builder.block, place);
        mlir::replace_uses(of.memref, new);
        mlir::erase(*maker);
        return Ok(());
    }
    let plain: Vec<usize> = (0..of.order.len()).collect();
    // The innermost loop numbers the threads of a warp, and its stores are coalesced.
    moving(&builder, &of.order, &cells, (of.memref, &plain), (new, &of.order))?;
    mlir::move_all_before(builder.block, place);
    if of.stored {
        let region = Region::new();
        let builder = builder.at(mlir::append_block(&region, &[]));
        moving(&builder, &plain, &cells, (new, &of.order), (of.memref, &plain))?;
        mlir::move_all_before(builder.block, *last);
    }
    Ok(())
}

/// The cells along each dimension of the array as it is.
fn cells<'c>(
    builder: &Builder<'c>,
    of: &Transposed<'c, '_>,
    maker: Option<Op<'c>>,
) -> Result<Vec<Cells<'c>>, Error> {
    let ty = array_type(of.memref)?;
    let mut sizes = maker.map(mlir::operands).unwrap_or_default().into_iter();
    let mut all = Vec::new();
    for dimension in 0..ty.rank() {
        let static_cells = ty.dim_size(dimension).map_err(|error| fault(&error))?;
        all.push(match static_cells {
            DimSize::Static(cells) => Cells::Static(i64::try_from(cells).unwrap_or(i64::MAX)),
            DimSize::Dynamic => Cells::Dynamic(match sizes.next() {
                Some(size) => size,
                None => {
                    let number = i64::try_from(dimension).unwrap_or(i64::MAX);
                    let number = builder.index(number)?;
                    builder.value("memref.dim", &[of.memref, number], builder.index_type(), &[])?
                }
            }),
        });
    }
    Ok(all)
}

/// Allocates the transposed array.
fn allocation<'c>(
    builder: &Builder<'c>,
    of: &Transposed<'c, '_>,
    maker: Option<Op<'c>>,
    cells: &[Cells<'c>],
) -> Result<Val<'c>, Error> {
    let (mut extents, mut sizes) = (Vec::new(), Vec::new());
    for cells in of.order.iter().filter_map(|dimension| cells.get(*dimension)) {
        match cells {
            Cells::Static(cells) => extents.push(*cells),
            Cells::Dynamic(size) => {
                extents.push(DYNAMIC);
                sizes.push(*size);
            }
        }
    }
    let ty = MemRefType::new(array_type(of.memref)?.element(), &extents, None, None);
    let count = i32::try_from(sizes.len()).unwrap_or(i32::MAX);
    let segments = ("operandSegmentSizes", attribute::integers32(builder.context, &[count, 0]));
    let name = maker.map_or("memref.alloc", mlir::name);
    let new = builder.op(name, &sizes, &[ty.into()], &[segments])?;
    tiled::set_transposed(builder.context, new, of.name);
    if let Some(note) = maker.map(tiled::layout_note).transpose()?.flatten() {
        tiled::set_layout_note(builder.context, new, note);
    }
    let result = mlir::results(new).first().copied();
    result.ok_or_else(|| Error::internal("an allocation without a result"))
}

/// The number that stands for a dynamic extent in MLIR.
const DYNAMIC: i64 = i64::MIN;

fn array_type(memref: Val<'_>) -> Result<MemRefType<'_>, Error> {
    MemRefType::try_from(memref.r#type()).map_err(|error| fault(&error))
}

fn fault(error: &melior::Error) -> Error {
    Error::internal(error.to_string())
}

/// Changes `memref.dim` of the array to ask for the dimension at its new place.
fn dims<'c>(context: &'c Context, function: Op<'c>, of: &Transposed<'c, '_>) -> Result<(), Error> {
    let all = mlir::walk(function);
    for op in all.iter().filter(|op| mlir::name(**op) == "memref.dim") {
        let operands = mlir::operands(*op);
        let [memref, number] = operands[..] else { continue };
        if memref != of.memref {
            continue;
        }
        let maker = all.iter().find(|op| mlir::results(**op).contains(&number));
        let old = maker.and_then(|op| mlir::attribute(*op, "value"));
        let old = old.and_then(attribute::as_integer).and_then(|old| usize::try_from(old).ok());
        let new = of.order.iter().position(|dimension| Some(*dimension) == old);
        let new = new.and_then(|new| i64::try_from(new).ok());
        let region = Region::new();
        let builder = Builder::new(context, op.location(), mlir::append_block(&region, &[]));
        let new = new.ok_or_else(|| Error::internal("a memref.dim of an unknown dimension"))?;
        mlir::set_operand(*op, 1, builder.index(new)?);
        mlir::move_all_before(builder.block, *op);
    }
    Ok(())
}

/// A map with its results in another order.
fn permuted<'c>(
    context: &'c Context,
    map: AffineMap<'c>,
    order: &[usize],
) -> Result<AffineMap<'c>, Error> {
    let results = order.iter().map(|dimension| map.result(*dimension));
    let results: Result<Vec<AffineExpr>, _> = results.collect();
    let results = results.map_err(|error| fault(&error))?;
    Ok(AffineMap::new(context, map.dim_count(), map.symbol_count(), &results))
}

/// Loops over all dimensions of an array, in this order, that copy an element each. The arrays
/// have the dimensions in orders of their own.
fn moving<'c>(
    builder: &Builder<'c>,
    loops: &[usize],
    cells: &[Cells<'c>],
    (from, order_from): (Val<'c>, &[usize]),
    (to, order_to): (Val<'c>, &[usize]),
) -> Result<(), Error> {
    let context = builder.context;
    let mut inner = *builder;
    let mut counters: Vec<Option<Val>> = vec![None; loops.len()];
    let mut ends: Vec<Blk> = Vec::new();
    for dimension in loops {
        let (body, counter) = repeat(&inner, cells.get(*dimension).copied())?;
        counters.iter_mut().skip(*dimension).take(1).for_each(|slot| *slot = Some(counter));
        ends.push(body);
        inner = inner.at(body);
    }
    let counters: Option<Vec<Val>> = counters.into_iter().collect();
    let counters = counters.ok_or_else(|| Error::internal("an order without a dimension"))?;
    let map = |order: &[usize]| {
        let results = order.iter().map(|dimension| AffineExpr::dim(context, *dimension));
        let results: Vec<AffineExpr> = results.collect();
        ("map", mlir::map_attribute(AffineMap::new(context, order.len(), 0, &results)))
    };
    let element: Type = array_type(from)?.element();
    let source = [&[from], counters.as_slice()].concat();
    let value = inner.value("affine.load", &source, element, &[map(order_from)])?;
    let target = [&[value, to], counters.as_slice()].concat();
    inner.op("affine.store", &target, &[], &[map(order_to)])?;
    for body in ends {
        builder.at(body).op("affine.yield", &[], &[], &[])?;
    }
    Ok(())
}

/// A loop over the cells along a dimension: its body, and its counter.
fn repeat<'c>(
    builder: &Builder<'c>,
    cells: Option<Cells<'c>>,
) -> Result<(Blk<'c>, Val<'c>), Error> {
    let context = builder.context;
    let constant = |number: i64| {
        let number = AffineExpr::constant(context, number);
        AffineMap::new(context, 0, 0, &[number])
    };
    let (upper, operands) = match cells {
        Some(Cells::Static(cells)) => (constant(cells), Vec::new()),
        Some(Cells::Dynamic(size)) => {
            (AffineMap::new(context, 0, 1, &[AffineExpr::symbol(context, 0)]), vec![size])
        }
        None => return Err(Error::internal("an array without a dimension")),
    };
    let region = Region::new();
    let body = mlir::append_block(&region, &[(builder.index_type(), builder.location)]);
    let counter = mlir::arguments(body).first().copied();
    let counter = counter.ok_or_else(|| Error::internal("a loop without a counter"))?;
    let count = i32::try_from(operands.len()).unwrap_or(i32::MAX);
    let attributes = [
        ("lowerBoundMap", mlir::map_attribute(constant(0))),
        ("upperBoundMap", mlir::map_attribute(upper)),
        ("step", IntegerAttribute::new(builder.index_type(), 1).into()),
        ("operandSegmentSizes", attribute::integers32(context, &[0, count, 0])),
    ];
    builder.op_with_regions("affine.for", &operands, &[], &attributes, vec![region])?;
    Ok((body, counter))
}
