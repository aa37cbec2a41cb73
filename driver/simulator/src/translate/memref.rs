//! `memref`: where memory lies, loads and stores.

use super::types::{DYNAMIC, list, memref_type};
use super::{Memref, Translator, Value, malformed, unsupported};
use crate::program::{Access, Dimension, Input, Instr, Operand, Reg};
use crate::value::{Binary, Kind};
use melior::ir::ValueLike;
use melior::ir::r#type::ShapedTypeLike;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::tiled::CONSTANT_SPACE;

/// Bytes that the widest access of a thread moves.
const WIDEST: u64 = 16;

impl<'c> Translator<'c> {
    pub(super) fn memref(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        match name {
            "load" => {
                let kind = self.kind(op, self.result_type(op)?)?;
                self.load(op, 0, kind, 1)
            }
            "store" => {
                let value = self.number(op, 0)?;
                self.store(op, vec![value], 1)
            }
            "reinterpret_cast" => {
                let source = self.memref_of(op, 0)?;
                let [offsets, sizes, strides] = self.lists(op, 1)?;
                let offset = offsets.first().copied().unwrap_or(Operand::Constant(0));
                self.define(op, 0, Value::Memref(Memref { offset, sizes, strides, ..source }))
            }
            "subview" => self.subview(op),
            "view" => self.view(op),
            "get_global" => self.constant_memory(op),
            "cast" | "memory_space_cast" | "assume_alignment" => {
                let source = self.memref_of(op, 0)?;
                self.define(op, 0, Value::Memref(source))
            }
            "dim" => {
                let source = self.memref_of(op, 0)?;
                let Operand::Constant(index) = self.operand(self.number(op, 1)?) else {
                    return Err(malformed(op));
                };
                let size = usize::try_from(index)
                    .ok()
                    .and_then(|index| source.sizes.get(index).copied())
                    .ok_or_else(|| malformed(op))?;
                let reg = self.register(size);
                self.define(op, 0, Value::Numbers(self.index, vec![reg]))
            }
            "extract_aligned_pointer_as_index" => {
                // The byte in its buffer: buffers are aligned to any vector.
                let base = self.memref_of(op, 0)?.base;
                let bytes = self.constant(i64::from(i32::MAX));
                let byte = self.arithmetic(Binary::And, base, bytes);
                self.define(op, 0, Value::Numbers(self.index, vec![byte]))
            }
            "prefetch" => {
                let access = Box::new(self.access(op, 0, 1)?);
                self.emit(Instr::Prefetch { access });
                Ok(())
            }
            // Upstream's `flatten-memref` leaves it to another pass.
            "extract_strided_metadata" => Err(unsupported(
                op,
                "memref.extract_strided_metadata (run the pass expand-strided-metadata before)",
            )),
            _ => Err(unsupported(op, format_args!("memref.{name}"))),
        }
    }

    /// The entries of offsets, sizes and strides, static ones and operands after the source.
    fn lists(&self, op: Op<'c>, mut operand: usize) -> Result<[Vec<Operand>; 3], Error> {
        let mut read = |name| {
            list(op, name)?
                .into_iter()
                .map(|entry| {
                    if entry != DYNAMIC {
                        return Ok(Operand::Constant(entry));
                    }
                    operand += 1;
                    Ok(self.operand(self.number(op, operand - 1)?))
                })
                .collect::<Result<Vec<_>, Error>>()
        };
        Ok([read("static_offsets")?, read("static_sizes")?, read("static_strides")?])
    }

    fn subview(&mut self, op: Op<'c>) -> Result<(), Error> {
        let source = self.memref_of(op, 0)?;
        let [offsets, sizes, strides] = self.lists(op, 1)?;
        let mut offset = source.offset;
        let mut result = Memref { sizes: Vec::new(), strides: Vec::new(), ..source.clone() };
        let rank = memref_type(op, self.result_type(op)?)?.rank();
        let mut drop = sizes.len().saturating_sub(rank);
        for (((start, size), step), stride) in
            offsets.into_iter().zip(sizes).zip(strides).zip(&source.strides)
        {
            let moved = self.combine(Binary::MulI, start, *stride);
            offset = self.combine(Binary::AddI, offset, moved);
            if drop > 0 && size == Operand::Constant(1) {
                drop -= 1;
                continue;
            }
            result.sizes.push(size);
            result.strides.push(self.combine(Binary::MulI, step, *stride));
        }
        result.offset = offset;
        self.define(op, 0, Value::Memref(result))
    }

    fn view(&mut self, op: Op<'c>) -> Result<(), Error> {
        let source = self.memref_of(op, 0)?;
        let bytes = self.number(op, 1)?;
        let base = self.fresh();
        self.emit(Instr::Advance { to: base, base: source.base, bytes });
        let memref = self.whole(op, self.result_type(op)?, base)?;
        self.define(op, 0, Value::Memref(memref))
    }

    /// A variable in constant memory, which a buffer of the plan is.
    fn constant_memory(&mut self, op: Op<'c>) -> Result<(), Error> {
        let ty = memref_type(op, self.result_type(op)?)?;
        let space = ty.memory_space().and_then(attribute::as_integer);
        let name = mlir::attribute(op, "name").and_then(attribute::as_symbol);
        let Some(name) = name.filter(|_| space == Some(CONSTANT_SPACE)) else {
            return Err(unsupported(op, "variables in other than constant memory"));
        };
        let known = self.kernel.constants.iter().position(|(known, _)| known == name);
        let place = match known {
            Some(place) => place,
            None => {
                let element = self.kind(op, ty.element())?;
                self.kernel.constants.push((name.to_owned(), element));
                self.kernel.constants.len() - 1
            }
        };
        let base = self.input(Input::Argument(self.kernel.parameters.len() + place));
        let memref = self.whole(op, ty.into(), base)?;
        self.define(op, 0, Value::Memref(memref))
    }

    /// A choice between two memrefs: of all that their cells' places come from.
    pub(super) fn select_memref(&mut self, op: Op<'c>) -> Result<(), Error> {
        let condition = self.number(op, 0)?;
        let (one, other) = (self.memref_of(op, 1)?, self.memref_of(op, 2)?);
        let base = self.chosen(condition, [one.base, other.base].map(Operand::Register));
        let base = self.register(base);
        let offset = self.chosen(condition, [one.offset, other.offset]);
        let each = |translator: &mut Self, one: Vec<Operand>, other: Vec<Operand>| -> Vec<_> {
            let pairs = one.into_iter().zip(other);
            pairs.map(|(one, other)| translator.chosen(condition, [one, other])).collect()
        };
        let sizes = each(self, one.sizes, other.sizes);
        let strides = each(self, one.strides, other.strides);
        let element = one.element;
        self.define(op, 0, Value::Memref(Memref { base, offset, sizes, strides, element }))
    }

    fn chosen(&mut self, condition: Reg, [one, other]: [Operand; 2]) -> Operand {
        if one == other {
            return one;
        }
        let (a, b) = (self.register(one), self.register(other));
        let to = self.fresh();
        self.emit(Instr::Select { to, condition, a, b });
        Operand::Register(to)
    }

    fn combine(&mut self, binary: Binary, a: Operand, b: Operand) -> Operand {
        match (binary, a, b) {
            (Binary::AddI, Operand::Constant(0), other)
            | (Binary::AddI, other, Operand::Constant(0)) => return other,
            (Binary::MulI, Operand::Constant(1), other)
            | (Binary::MulI, other, Operand::Constant(1)) => return other,
            _ => {}
        }
        let (a, b) = (self.register(a), self.register(b));
        let reg = self.arithmetic(binary, a, b);
        self.operand(reg)
    }

    /// The access of an operation whose operand `memref` is followed by its indices.
    pub(super) fn access(&self, op: Op<'c>, memref: usize, count: usize) -> Result<Access, Error> {
        let source = self.memref_of(op, memref)?;
        let alignment = self
            .integer_attribute(op, "alignment")
            .and_then(|bytes| u64::try_from(bytes).ok())
            .unwrap_or(0);
        let dimensions = source
            .sizes
            .iter()
            .zip(&source.strides)
            .enumerate()
            .map(|(place, (size, stride))| {
                Ok(Dimension {
                    index: self.number(op, memref + 1 + place)?,
                    size: *size,
                    stride: *stride,
                })
            })
            .collect::<Result<Vec<_>, Error>>()?;
        if source.element == Kind::I1 {
            return Err(unsupported(op, "elements of one bit in memory"));
        }
        if count > 1 && source.strides.last() != Some(&Operand::Constant(1)) {
            return Err(unsupported(
                op,
                "a vector across elements that are not known to be contiguous",
            ));
        }
        let element = source.element.bytes();
        Ok(Access {
            base: source.base,
            offset: source.offset,
            dimensions: dimensions.into(),
            element: source.element,
            count: u32::try_from(count).map_err(|_| malformed(op))?,
            alignment: alignment.max(element),
            width: alignment.max(element).min(element * count as u64).min(WIDEST),
            narrow: self.index == Kind::Index32,
        })
    }

    pub(super) fn load(
        &mut self,
        op: Op<'c>,
        memref: usize,
        kind: Kind,
        count: usize,
    ) -> Result<(), Error> {
        let access = Box::new(self.access(op, memref, count)?);
        if access.element != kind {
            return Err(unsupported(op, "a load of another type than the memory's"));
        }
        let to: Vec<_> = (0..count).map(|_| self.fresh()).collect();
        self.emit(Instr::Load { to: to.clone().into(), access });
        self.define(op, 0, Value::Numbers(kind, to))
    }

    pub(super) fn store(&mut self, op: Op<'c>, from: Vec<Reg>, memref: usize) -> Result<(), Error> {
        let access = Box::new(self.access(op, memref, from.len())?);
        self.emit(Instr::Store { from: from.into(), access });
        Ok(())
    }

    /// A shared buffer that the kernel declares.
    pub(super) fn shared_buffer(
        &mut self,
        op: Op<'c>,
        argument: mlir::Val<'c>,
    ) -> Result<(), Error> {
        let place = self.kernel.shared.len();
        let base = self.input(Input::Shared(place));
        let ty = argument.r#type();
        let memref = self.whole(op, ty, base)?;
        self.kernel.shared.push((format!("shared buffer {place}"), self.bytes_of(op, ty)?));
        self.values.insert(mlir::key(argument), Value::Memref(memref));
        Ok(())
    }
}
