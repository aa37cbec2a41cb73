//! The lanes of a block: what combines two values, and how the values of all lanes become one.

use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, ShapedTypeLike, Type, TypeLike, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{Combine, Field};

/// How two values become one.
#[derive(Clone, Copy)]
pub struct Operator<'c> {
    /// How values are combined.
    pub combine: Combine,
    /// Their type.
    pub element: Type<'c>,
    /// Whether they are unsigned integers.
    pub unsigned: bool,
}

/// The lanes of a block, one thread each.
pub struct Lanes<'c> {
    /// How values are combined.
    pub operator: Operator<'c>,
    /// The number of the lane.
    pub thread: Val<'c>,
    /// A shared buffer with a value for each lane.
    pub shared: Val<'c>,
    /// How many lanes there are: a power of two.
    pub count: i64,
}

impl<'c> Operator<'c> {
    /// How the values of a reduction are combined, of which a field holds the result.
    pub fn of(field: &Field<'c>, combine: Combine) -> Self {
        Self { combine, element: field.element, unsigned: field.unsigned }
    }

    /// Whether all orders of the values give the same result.
    pub fn takes_any_order(&self) -> bool {
        self.combine != Combine::Sum || !self.element.is_float()
    }

    /// The value that changes no other.
    pub fn neutral(&self, builder: &Builder<'c>) -> Result<Val<'c>, Error> {
        let most = |greatest: bool| -> Result<Val<'c>, Error> {
            if self.element.is_float() {
                let sign = if greatest { 1.0 } else { -1.0 };
                return builder.float(self.element, sign * f64::INFINITY);
            }
            let bits = mlir::bit_width(self.element).unwrap_or(64).min(64);
            let signed = i64::MAX >> (64 - bits);
            builder.constant(
                self.element,
                match (self.unsigned, greatest) {
                    (true, true) => -1,
                    (true, false) => 0,
                    (false, true) => signed,
                    (false, false) => -signed - 1,
                },
            )
        };
        match self.combine {
            Combine::Sum => builder.zero(self.element),
            Combine::Min => most(true),
            Combine::Max => most(false),
            Combine::All => builder.constant(self.element, 1),
        }
    }

    /// Both values combined. No flag allows another order or a contraction.
    pub fn combine(
        &self,
        builder: &Builder<'c>,
        first: Val<'c>,
        second: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        let name = match (self.combine, self.element.is_float(), self.unsigned) {
            (Combine::Sum, true, _) => "arith.addf",
            (Combine::Sum, false, _) => "arith.addi",
            (Combine::Min | Combine::All, true, _) => "arith.minimumf",
            (Combine::Max, true, _) => "arith.maximumf",
            (Combine::Min | Combine::All, false, false) => "arith.minsi",
            (Combine::Max, false, false) => "arith.maxsi",
            (Combine::Min | Combine::All, false, true) => "arith.minui",
            (Combine::Max, false, true) => "arith.maxui",
        };
        builder.binary(name, first, second)
    }
}

/// Combines the values of all lanes, for each of some reductions: the upper half with the lower
/// one, until one lane is left. The first lane alone may take the [`result`](Lanes::result)s.
pub fn halve<'c>(
    builder: &Builder<'c>,
    reductions: &[Lanes<'c>],
    own: &[Val<'c>],
) -> Result<(), Error> {
    let Some(Lanes { thread, count, .. }) = reductions.first() else { return Ok(()) };
    for (lanes, own) in reductions.iter().zip(own) {
        builder.store(*own, lanes.shared, &[*thread])?;
    }
    let mut half = count / 2;
    while half > 0 {
        builder.op("gpu.barrier", &[], &[], &[])?;
        let lower = builder.compare(Compare::Lt, *thread, builder.index(half)?)?;
        builder.when(lower, |builder| {
            let above = builder.add_constant(*thread, half)?;
            for lanes in reductions {
                let first = builder.load(lanes.shared, &[*thread])?;
                let second = builder.load(lanes.shared, &[above])?;
                let value = lanes.operator.combine(builder, first, second)?;
                builder.store(value, lanes.shared, &[*thread])?;
            }
            Ok(())
        })?;
        half /= 2;
    }
    Ok(())
}

impl<'c> Lanes<'c> {
    /// What [`halve`] leaves in the first lane.
    pub fn result(&self, builder: &Builder<'c>) -> Result<Val<'c>, Error> {
        builder.load(self.shared, &[builder.index(0)?])
    }
}

/// The number of the thread in its block.
pub fn thread_id<'c>(builder: &Builder<'c>) -> Result<Val<'c>, Error> {
    number(builder, "gpu.thread_id")
}

/// The number of the block.
pub fn block_id<'c>(builder: &Builder<'c>) -> Result<Val<'c>, Error> {
    number(builder, "gpu.block_id")
}

fn number<'c>(builder: &Builder<'c>, name: &str) -> Result<Val<'c>, Error> {
    let dimension = Attribute::parse(builder.context, "#gpu<dim x>");
    let dimension = dimension.ok_or_else(|| Error::internal("gpu is not loaded"))?;
    builder.value(name, &[], builder.index_type(), &[("dimension", dimension)])
}

/// A kernel's argument as an array of so many cells.
pub fn view<'c>(builder: &Builder<'c>, buffer: Val<'c>, count: Val<'c>) -> Result<Val<'c>, Error> {
    let context = builder.context;
    let memref = MemRefType::try_from(buffer.r#type());
    let memref = memref.map_err(|error| Error::internal(error.to_string()))?;
    let layout = melior::ir::attribute::StridedLayoutAttribute::new(context, 0, &[1]);
    let ty = MemRefType::new(memref.element(), &[i64::MIN], Some(layout.into()), None);
    builder.value(
        "memref.reinterpret_cast",
        &[buffer, count],
        ty.into(),
        &[
            ("static_offsets", attribute::integers(context, &[0])),
            ("static_sizes", attribute::integers(context, &[i64::MIN])),
            ("static_strides", attribute::integers(context, &[1])),
            ("operandSegmentSizes", attribute::integers32(context, &[1, 0, 1, 0])),
        ],
    )
}

/// The one value of a list.
pub fn only<'c>(values: &[Val<'c>]) -> Result<Val<'c>, Error> {
    match values {
        [value] => Ok(*value),
        _ => Err(Error::internal(format!("{} values in place of one", values.len()))),
    }
}
