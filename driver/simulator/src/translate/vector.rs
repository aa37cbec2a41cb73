//! `vector`: elements are registers, so most operations only rename them.

use super::types::{DYNAMIC, list};
use super::{Translator, Value, malformed, unsupported};
use crate::program::{Flop, Instr, Reg};
use crate::value::{Binary, Kind, Predicate};
use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

/// One entry of a position: its number, or the register that holds it, and the elements inside.
type Part = (Option<usize>, Option<Reg>, usize);

impl<'c> Translator<'c> {
    pub(super) fn vector(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        match name {
            "load" => {
                let (kind, count) = self.shape(op, self.result_type(op)?)?;
                self.load(op, 0, kind, count)
            }
            "store" => {
                let (_, from) = self.numbers(op, 0)?;
                self.store(op, from, 1)
            }
            "from_elements" => {
                let (kind, _) = self.shape(op, self.result_type(op)?)?;
                let regs = (0..mlir::operands(op).len())
                    .map(|index| self.number(op, index))
                    .collect::<Result<_, _>>()?;
                self.define(op, 0, Value::Numbers(kind, regs))
            }
            "to_elements" => {
                let (kind, regs) = self.numbers(op, 0)?;
                for (index, reg) in regs.into_iter().enumerate() {
                    self.define(op, index, Value::Numbers(kind, vec![reg]))?;
                }
                Ok(())
            }
            "broadcast" | "splat" => self.broadcast(op),
            "shape_cast" => {
                let (kind, regs) = self.numbers(op, 0)?;
                self.define(op, 0, Value::Numbers(kind, regs))
            }
            "extract" => self.extract(op),
            "insert" => self.insert(op),
            "shuffle" => {
                let ((kind, mut regs), (_, second)) = (self.numbers(op, 0)?, self.numbers(op, 1)?);
                let (_, extents) = self.extents(op, self.operand_of(op, 0)?.r#type())?;
                let group = extents.iter().skip(1).product::<usize>().max(1);
                regs.extend(second);
                let mut chosen = Vec::new();
                for index in list(op, "mask")? {
                    let start = usize::try_from(index).unwrap_or(0) * group;
                    chosen.extend_from_slice(
                        regs.get(start..start + group).ok_or_else(|| malformed(op))?,
                    );
                }
                self.define(op, 0, Value::Numbers(kind, chosen))
            }
            "extract_strided_slice" | "insert_strided_slice" => self.strided_slice(op, name),
            "fma" => self.math(op, "fma"),
            "reduction" => self.reduction(op),
            _ => Err(unsupported(op, format_args!("vector.{name}"))),
        }
    }

    fn broadcast(&mut self, op: Op<'c>) -> Result<(), Error> {
        let (kind, from) = self.numbers(op, 0)?;
        let (_, have) = self.extents(op, self.operand_of(op, 0)?.r#type())?;
        let (_, want) = self.extents(op, self.result_type(op)?)?;
        let skip = want.len().saturating_sub(have.len());
        let count: usize = want.iter().product();
        let regs = (0..count)
            .map(|flat| {
                let (mut rest, mut source, mut stride) = (flat, 0, 1);
                for (place, extent) in want.iter().enumerate().rev() {
                    let index = rest % extent;
                    rest /= extent;
                    if let Some(extent) = place.checked_sub(skip).and_then(|place| have.get(place))
                    {
                        source += if *extent == 1 { 0 } else { index } * stride;
                        stride *= extent;
                    }
                }
                from.get(source).copied().ok_or_else(|| malformed(op))
            })
            .collect::<Result<_, _>>()?;
        self.define(op, 0, Value::Numbers(kind, regs))
    }

    /// Where a position lies: the number of elements there, and their start, if it is known.
    fn position(
        &self,
        op: Op<'c>,
        extents: &[usize],
        first_dynamic: usize,
    ) -> Result<(usize, Vec<Part>), Error> {
        let position = list(op, "static_position")?;
        let mut dynamic = first_dynamic;
        let mut parts = Vec::new();
        for (place, index) in position.iter().enumerate() {
            let inner: usize = extents.iter().skip(place + 1).product();
            if *index == DYNAMIC {
                parts.push((None, Some(self.number(op, dynamic)?), inner));
                dynamic += 1;
            } else {
                parts.push((usize::try_from(*index).ok(), None, inner));
            }
        }
        Ok((extents.iter().skip(position.len()).product(), parts))
    }

    fn extract(&mut self, op: Op<'c>) -> Result<(), Error> {
        let (kind, from) = self.numbers(op, 0)?;
        let (_, extents) = self.extents(op, self.operand_of(op, 0)?.r#type())?;
        let (count, parts) = self.position(op, &extents, 1)?;
        let Some(start) = constant_start(&parts) else {
            let [(None, Some(index), 1)] = parts.as_slice() else {
                return Err(unsupported(op, "a run-time position in more than one dimension"));
            };
            let picked = self.pick(&from, *index);
            return self.define(op, 0, Value::Numbers(kind, vec![picked]));
        };
        let regs = from.get(start..start + count).ok_or_else(|| malformed(op))?.to_vec();
        self.define(op, 0, Value::Numbers(kind, regs))
    }

    fn insert(&mut self, op: Op<'c>) -> Result<(), Error> {
        let ((_, value), (kind, mut into)) = (self.numbers(op, 0)?, self.numbers(op, 1)?);
        let (_, extents) = self.extents(op, self.operand_of(op, 1)?.r#type())?;
        let (count, parts) = self.position(op, &extents, 2)?;
        let Some(start) = constant_start(&parts) else {
            let ([(None, Some(index), 1)], [value]) = (parts.as_slice(), value.as_slice()) else {
                return Err(unsupported(op, "a run-time position in more than one dimension"));
            };
            for (place, reg) in into.iter_mut().enumerate() {
                let condition = self.equals(*index, place);
                let to = self.fresh();
                self.emit(Instr::Select { to, condition, a: *value, b: *reg });
                *reg = to;
            }
            return self.define(op, 0, Value::Numbers(kind, into));
        };
        let slots = into.get_mut(start..start + count).ok_or_else(|| malformed(op))?;
        for (slot, reg) in slots.iter_mut().zip(value) {
            *slot = reg;
        }
        self.define(op, 0, Value::Numbers(kind, into))
    }

    fn equals(&mut self, index: Reg, place: usize) -> Reg {
        let place = self.constant(i64::try_from(place).unwrap_or(i64::MAX));
        let to = self.fresh();
        self.emit(Instr::Compare {
            predicate: Predicate::Integer(0),
            kind: Kind::I64,
            to,
            a: index,
            b: place,
        });
        to
    }

    fn pick(&mut self, from: &[Reg], index: Reg) -> Reg {
        let mut picked = from.first().copied().unwrap_or(index);
        for (place, reg) in from.iter().enumerate().skip(1) {
            let condition = self.equals(index, place);
            let to = self.fresh();
            self.emit(Instr::Select { to, condition, a: *reg, b: picked });
            picked = to;
        }
        picked
    }

    fn strided_slice(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        let extract = name == "extract_strided_slice";
        let (offsets, strides) = (list(op, "offsets")?, list(op, "strides")?);
        if strides.iter().any(|stride| *stride != 1) {
            return Err(unsupported(op, "a stride other than 1"));
        }
        let (kind, first) = self.numbers(op, 0)?;
        let (whole, part_type) = if extract {
            (0, self.result_type(op)?)
        } else {
            (1, self.operand_of(op, 0)?.r#type())
        };
        let (_, extents) = self.extents(op, self.operand_of(op, whole)?.r#type())?;
        let (_, part) = self.extents(op, part_type)?;
        let skip = extents.len() - part.len().min(extents.len());
        let mut all = if extract { first.clone() } else { self.numbers(op, 1)?.1 };
        let mut taken = Vec::new();
        for flat in 0..part.iter().product() {
            let (mut rest, mut place, mut stride) = (flat, 0, 1);
            for (dimension, extent) in extents.iter().enumerate().rev() {
                let offset = offsets
                    .get(dimension)
                    .and_then(|offset| usize::try_from(*offset).ok())
                    .unwrap_or(0);
                let index = dimension
                    .checked_sub(skip)
                    .and_then(|dimension| part.get(dimension))
                    .map_or(0, |extent| {
                        let index = rest % extent;
                        rest /= extent;
                        index
                    });
                place += (offset + index) * stride;
                stride *= extent;
            }
            let slot = all.get_mut(place).ok_or_else(|| malformed(op))?;
            if extract {
                taken.push(*slot);
            } else {
                *slot = first.get(flat).copied().ok_or_else(|| malformed(op))?;
            }
        }
        self.define(op, 0, Value::Numbers(kind, if extract { taken } else { all }))
    }

    fn reduction(&mut self, op: Op<'c>) -> Result<(), Error> {
        let (kind, from) = self.numbers(op, 0)?;
        let text = mlir::attribute(op, "kind").map(|kind| kind.to_string()).unwrap_or_default();
        let combining = text.split(['<', '>']).nth(1).unwrap_or_default();
        let (binary, flop) = match (combining, kind.is_float()) {
            ("add", true) => (Binary::AddF, Flop::Add),
            ("add", false) => (Binary::AddI, Flop::None),
            ("mul", true) => (Binary::MulF, Flop::Mul),
            ("mul", false) => (Binary::MulI, Flop::None),
            ("minsi", _) => (Binary::MinS, Flop::None),
            ("maxsi", _) => (Binary::MaxS, Flop::None),
            ("minimumf", _) => (Binary::Minimum, Flop::None),
            ("maximumf", _) => (Binary::Maximum, Flop::None),
            ("minnumf", _) => (Binary::Minnum, Flop::None),
            ("maxnumf", _) => (Binary::Maxnum, Flop::None),
            _ => return Err(unsupported(op, format_args!("the reduction {combining}"))),
        };
        let start = if op.operand_count() > 1 { Some(self.number(op, 1)?) } else { None };
        self.flop = flop;
        let mut result = start;
        for reg in from {
            result = Some(match result {
                None => reg,
                Some(before) => {
                    let to = self.fresh();
                    self.emit(Instr::Binary { op: binary, kind, to, a: before, b: reg });
                    to
                }
            });
        }
        self.define(op, 0, Value::Numbers(kind, vec![result.ok_or_else(|| malformed(op))?]))
    }
}

fn constant_start(parts: &[Part]) -> Option<usize> {
    parts.iter().map(|(index, _, inner)| index.map(|index| index * inner)).sum()
}
