//! Types of the IR as kinds of registers.

use super::{Memref, Translator, malformed, unsupported};
use crate::program::{Operand, Reg};
use crate::value::Kind;
use melior::ir::r#type::{DimSize, MemRefType, ShapedTypeLike};
use melior::ir::{Type, TypeLike};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

/// MLIR's mark of an entry that is no constant.
pub(super) const DYNAMIC: i64 = i64::MIN;

/// The kind of a type of numbers by its keyword.
pub fn number_kind(keyword: &str) -> Option<Kind> {
    Some(match keyword {
        "i1" => Kind::I1,
        "i8" => Kind::I8,
        "i16" => Kind::I16,
        "i32" => Kind::I32,
        "i64" => Kind::I64,
        "f16" => Kind::F16,
        "bf16" => Kind::Bf16,
        "f32" => Kind::F32,
        "f64" => Kind::F64,
        "index" => Kind::Index64,
        _ => return None,
    })
}

impl<'c> Translator<'c> {
    /// The kind of a number type.
    pub(super) fn kind(&self, op: Op<'c>, ty: Type<'c>) -> Result<Kind, Error> {
        let kind = mlir::number_keyword(ty).and_then(|keyword| self.kind_of(keyword));
        kind.ok_or_else(|| unsupported(op, format_args!("the type {ty}")))
    }

    fn kind_of(&self, keyword: &str) -> Option<Kind> {
        match number_kind(keyword)? {
            Kind::Index64 => Some(self.index),
            other => Some(other),
        }
    }

    /// The kind of a number or of a vector's elements, and how many there are.
    pub(super) fn shape(&self, op: Op<'c>, ty: Type<'c>) -> Result<(Kind, usize), Error> {
        let (kind, extents) = self.extents(op, ty)?;
        Ok((kind, extents.iter().product()))
    }

    /// The kind and extents of a number (none) or of a vector.
    pub(super) fn extents(&self, op: Op<'c>, ty: Type<'c>) -> Result<(Kind, Vec<usize>), Error> {
        if !ty.is_vector() {
            return Ok((self.kind(op, ty)?, Vec::new()));
        }
        // The C interface has no view of vector types in the safe wrapper; their text is
        // `vector<2x4xf32>`.
        let text = ty.to_string();
        let inner = text.strip_prefix("vector<").and_then(|rest| rest.strip_suffix('>'));
        let parsed = inner.and_then(|inner| {
            let (extents, element) =
                inner.rsplit_once('x').map_or(("", inner), |(extents, element)| (extents, element));
            // `index` ends in an x: the element is then what follows the last digit and its x.
            let (extents, element) = if inner.ends_with("xindex") {
                (inner.strip_suffix("xindex")?, "index")
            } else {
                (extents, element)
            };
            let extents = extents
                .split('x')
                .filter(|part| !part.is_empty())
                .map(|part| part.parse().ok())
                .collect::<Option<Vec<usize>>>()?;
            Some((self.kind_of(element)?, extents))
        });
        parsed.ok_or_else(|| unsupported(op, format_args!("the type {ty}")))
    }

    /// A memref of the type's own offset, sizes and strides, which must be static or rank 0.
    pub(super) fn whole(&self, op: Op<'c>, ty: Type<'c>, base: Reg) -> Result<Memref, Error> {
        let ty = memref_type(op, ty)?;
        let element = self.kind(op, ty.element())?;
        let (strides, offset) =
            if ty.rank() == 0 { (Vec::new(), 0) } else { ty.strides_and_offset() };
        let fixed =
            |value: i64| if value == DYNAMIC { None } else { Some(Operand::Constant(value)) };
        // A buffer of one dimension and unknown size reaches as far as its memory.
        let sizes = (0..ty.rank())
            .map(|index| match ty.dim_size(index) {
                Ok(DimSize::Static(size)) => i64::try_from(size).ok().map(Operand::Constant),
                Ok(DimSize::Dynamic) if ty.rank() == 1 => Some(Operand::Constant(i64::MAX)),
                _ => None,
            })
            .collect::<Option<Vec<_>>>();
        let strides = strides.into_iter().map(fixed).collect::<Option<Vec<_>>>();
        match (sizes, strides, fixed(offset)) {
            (Some(sizes), Some(strides), Some(offset)) => {
                Ok(Memref { base, offset, sizes, strides, element })
            }
            _ => Err(unsupported(
                op,
                "buffers of unknown sizes in more than one dimension; pass memref<element> and \
                 memref.reinterpret_cast it",
            )),
        }
    }

    /// Bytes of a memref of static shape, with the padding of its layout.
    pub(super) fn bytes_of(&self, op: Op<'c>, ty: Type<'c>) -> Result<u64, Error> {
        let ty = memref_type(op, ty)?;
        let element = self.kind(op, ty.element())?;
        let (strides, offset) =
            if ty.rank() == 0 { (Vec::new(), 0) } else { ty.strides_and_offset() };
        let mut last = offset;
        for (index, stride) in strides.iter().enumerate() {
            let Ok(DimSize::Static(size)) = ty.dim_size(index) else { return Err(malformed(op)) };
            last = i64::try_from(size)
                .ok()
                .and_then(|size| size.checked_sub(1)?.checked_mul(*stride)?.checked_add(last))
                .ok_or_else(|| malformed(op))?;
        }
        let elements = u64::try_from(last)
            .ok()
            .and_then(|last| last.checked_add(1))
            .ok_or_else(|| malformed(op))?;
        elements.checked_mul(element.bytes()).ok_or_else(|| malformed(op))
    }
}

pub(super) fn memref_type<'c>(op: Op<'c>, ty: Type<'c>) -> Result<MemRefType<'c>, Error> {
    MemRefType::try_from(ty).map_err(|_| malformed(op))
}

/// `array<i64: ...>` with the sentinel for dynamic entries.
pub(super) fn list(op: Op, name: &str) -> Result<Vec<i64>, Error> {
    mlir::attribute(op, name)
        .and_then(stencil_dialects::attribute::as_integers)
        .ok_or_else(|| malformed(op))
}
