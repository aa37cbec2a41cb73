//! What a warp does along the fastest dimension: vectors of neighbouring cells from and to global
//! memory, and cells of other lanes by shuffles.

use super::interior;
use super::scope::Scope;
use crate::analysis::index_width::constant_extents;
use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, ShapedTypeLike, Type, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_runtime::device;

/// Lanes of a warp.
pub const WARP: i64 = device::WARP as i64;

/// Bytes of the widest access to global memory.
pub const WIDEST: i64 = device::WIDEST_ACCESS as i64;

/// Registers of 32 bits that a value of a type takes.
pub fn words(ty: Type) -> i64 {
    i64::from(mlir::bit_width(ty).unwrap_or(64).div_ceil(32))
}

/// Cells of a type in the widest access that divides `width` cells, a power of two, as alignments
/// are; 1 if only single cells fit.
pub fn vector_length(ty: Type, width: i64) -> i64 {
    let cells = WIDEST * 8 / i64::from(mlir::bit_width(ty).unwrap_or(64)).max(8);
    (1..=cells).rev().find(|cells| cells.count_ones() == 1 && width % cells == 0).unwrap_or(1)
}

/// Cells of the widest access to a field's rows that is sure to be aligned, for lanes of `width`
/// cells.
pub fn aligned_cells(scope: &Scope, field: &str, width: i64) -> Result<i64, Error> {
    let (program, grid) = (scope.program, scope.program.grid_of(field)?);
    let cells = vector_length(program.field(field)?.element, width);
    let aligned = |value: Option<i64>| value.is_some_and(|value| value % cells == 0);
    let shift = interior::difference(scope.hull.lower, grid.lower);
    let shift = shift.and_then(|gap| gap.last().copied());
    // The second row begins where the first one ends.
    let pitch = constant_extents(grid.lower, grid.upper);
    let pitch = pitch.and_then(|extents| extents.last().copied());
    Ok(if aligned(shift) && (grid.rank() == 1 || aligned(pitch)) { cells } else { 1 })
}

/// Cells rounded up to whole lanes of `width` each; 0 for fewer than none.
pub fn whole(cells: i64, width: i64) -> i64 {
    (cells.max(0) + width - 1) / width * width
}

/// Bytes of global memory that are written at once: tiles that begin within one cost a second
/// access.
const SECTOR: i64 = device::SECTOR as i64;

/// Whether so many cells of a type are whole sectors.
pub fn whole_sectors(ty: Type, cells: i64) -> bool {
    cells * i64::from(mlir::bit_width(ty).unwrap_or(64)) % (8 * SECTOR) == 0
}

/// Cells of a type in a sector, at least 1.
pub fn cells_of_a_sector(ty: Type) -> usize {
    (8 * SECTOR / i64::from(mlir::bit_width(ty).unwrap_or(64)).max(8)).max(1) as usize
}

/// Asks for a cell's surroundings from the level 2 cache; `convert-prefetch-to-nvvm` says so to the
/// device.
pub fn prefetch<'c>(builder: &Builder<'c>, buffer: Val<'c>, at: &[Val<'c>]) -> Result<(), Error> {
    let read = |text| {
        Attribute::parse(builder.context, text)
            .ok_or_else(|| Error::internal(format!("`{text}` is no attribute")))
    };
    let attributes = [
        ("isWrite", read("false")?),
        ("localityHint", read("2 : i32")?),
        ("isDataCache", read("true")?),
    ];
    builder.op("memref.prefetch", &[&[buffer], at].concat(), &[], &attributes).map(|_| ())
}

/// The cell that the lane `distance` further on holds; some cell for lanes that have none there.
pub fn shuffle<'c>(builder: &Builder<'c>, value: Val<'c>, distance: i64) -> Result<Val<'c>, Error> {
    let (mode, distance) = if distance < 0 { ("up", -distance) } else { ("down", distance) };
    let distance = builder.constant(builder.integer_type(32), distance)?;
    exchange(builder, value, (mode, distance))
}

/// The value that a lane holds, for all lanes; the lane is an `index`.
pub fn broadcast<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    lane: Val<'c>,
) -> Result<Val<'c>, Error> {
    let lane = builder.value("arith.index_cast", &[lane], builder.integer_type(32), &[])?;
    exchange(builder, value, ("idx", lane))
}

/// Exchanges values of 8, 16, 32 or 64 bits by a mode of shuffle and its operand.
fn exchange<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    from: (&str, Val<'c>),
) -> Result<Val<'c>, Error> {
    let ty = value.r#type();
    let bits = mlir::bit_width(ty).unwrap_or(0);
    match bits {
        32 => shuffle_word(builder, value, from),
        8 | 16 => {
            let (short, word) = (builder.integer_type(bits), builder.integer_type(32));
            let as_type = |value: Val<'c>, ty| match value.r#type() == ty {
                true => Ok(value),
                false => builder.value("arith.bitcast", &[value], ty, &[]),
            };
            let wide = builder.value("arith.extui", &[as_type(value, short)?], word, &[])?;
            let wide = shuffle_word(builder, wide, from)?;
            as_type(builder.value("arith.trunci", &[wide], short, &[])?, ty)
        }
        64 => {
            let (word, long) = (builder.integer_type(32), builder.integer_type(64));
            let is_integer = ty == long;
            let all = if is_integer {
                value
            } else {
                builder.value("arith.bitcast", &[value], long, &[])?
            };
            let half = builder.constant(long, 32)?;
            let high = builder.binary("arith.shrui", all, half)?;
            let mut parts = Vec::new();
            for part in [all, high] {
                let part = builder.value("arith.trunci", &[part], word, &[])?;
                parts.push(builder.value(
                    "arith.extui",
                    &[shuffle_word(builder, part, from)?],
                    long,
                    &[],
                )?);
            }
            let [low, high] = parts.as_slice() else {
                return Err(Error::internal("a long value has two halves"));
            };
            let joined =
                builder.binary("arith.ori", *low, builder.binary("arith.shli", *high, half)?)?;
            if is_integer { Ok(joined) } else { builder.value("arith.bitcast", &[joined], ty, &[]) }
        }
        _ => Err(Error::internal(format!("cells of {bits} bits can't be exchanged between lanes"))),
    }
}

fn shuffle_word<'c>(
    builder: &Builder<'c>,
    value: Val<'c>,
    (mode, operand): (&str, Val<'c>),
) -> Result<Val<'c>, Error> {
    let mode = Attribute::parse(builder.context, &format!("#gpu<shuffle_mode {mode}>"))
        .ok_or_else(|| Error::internal("the gpu dialect is not loaded"))?;
    let word = builder.integer_type(32);
    let operands = [value, operand, builder.constant(word, WARP)?];
    let op = builder.op(
        "gpu.shuffle",
        &operands,
        &[value.r#type(), builder.integer_type(1)],
        &[("mode", mode)],
    )?;
    mlir::results(op).first().copied().ok_or_else(|| Error::internal("gpu.shuffle: has no result"))
}

fn vector_type<'c>(element: Type<'c>, cells: i64) -> Result<Type<'c>, Error> {
    let cells =
        u64::try_from(cells).map_err(|_| Error::internal("a vector of a negative length"))?;
    Ok(Type::vector(&[cells], element))
}

fn alignment<'c>(builder: &Builder<'c>, element: Type, cells: i64) -> Attribute<'c> {
    attribute::integer(
        builder.context,
        i64::from(mlir::bit_width(element).unwrap_or(8)) / 8 * cells,
    )
}

/// Loads `width` cells from a place on, `vector` at a time.
pub fn load<'c>(
    builder: &Builder<'c>,
    buffer: Val<'c>,
    at: &[Val<'c>],
    width: i64,
    vector: i64,
) -> Result<Vec<Val<'c>>, Error> {
    let element = MemRefType::try_from(buffer.r#type())
        .map_err(|error| Error::internal(error.to_string()))?
        .element();
    let mut cells = Vec::new();
    for first in (0..width).step_by(usize::try_from(vector).unwrap_or(1)) {
        let at = moved(builder, at, first)?;
        if vector == 1 {
            cells.push(builder.load(buffer, &at)?);
            continue;
        }
        let operands = [&[buffer], at.as_slice()].concat();
        let loaded = builder.value(
            "vector.load",
            &operands,
            vector_type(element, vector)?,
            &[("alignment", alignment(builder, element, vector))],
        )?;
        for position in 0..vector {
            let position = [("static_position", attribute::integers(builder.context, &[position]))];
            cells.push(builder.value("vector.extract", &[loaded], element, &position)?);
        }
    }
    Ok(cells)
}

/// Stores cells from a place on, `vector` at a time.
pub fn store<'c>(
    builder: &Builder<'c>,
    cells: &[Val<'c>],
    buffer: Val<'c>,
    at: &[Val<'c>],
    vector: i64,
) -> Result<(), Error> {
    let length = usize::try_from(vector).unwrap_or(1).max(1);
    for (number, part) in (0_i64..).zip(cells.chunks(length)) {
        let at = moved(builder, at, number * vector)?;
        match part {
            [single] => builder.store(*single, buffer, &at)?,
            several => {
                let Some(first) = several.first() else { continue };
                let value = builder.value(
                    "vector.from_elements",
                    several,
                    vector_type(first.r#type(), vector)?,
                    &[],
                )?;
                let operands = [&[value, buffer], at.as_slice()].concat();
                builder.op(
                    "vector.store",
                    &operands,
                    &[],
                    &[("alignment", alignment(builder, first.r#type(), vector))],
                )?;
            }
        }
    }
    Ok(())
}

/// A place some cells further along the fastest dimension.
fn moved<'c>(builder: &Builder<'c>, at: &[Val<'c>], cells: i64) -> Result<Vec<Val<'c>>, Error> {
    let mut at = at.to_vec();
    if let Some(last) = at.last_mut() {
        *last = builder.add_constant(*last, cells)?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::Context;

    #[test]
    fn accesses_are_as_wide_as_the_device_aligns_them() {
        let context = Context::new();
        let (single, double) = (Type::float32(&context), Type::float64(&context));
        let lengths = |ty| [1, 2, 3, 4, 6, 8].map(|width| vector_length(ty, width));
        assert_eq!(lengths(single), [1, 2, 1, 4, 2, 4]);
        assert_eq!(lengths(double), [1, 2, 1, 2, 2, 2]);
        assert_eq!(lengths(Type::float16(&context)), [1, 2, 1, 4, 2, 8]);
    }
}
