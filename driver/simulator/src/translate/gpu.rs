//! `gpu`, `nvgpu` and `peer`: numbers of threads and blocks, barriers, shuffles, flags.

use super::control::is_token;
use super::types::list;
use super::{Memref, Translator, Value, malformed, unsupported};
use crate::program::{Access, Input, Instr, Operand, Shuffle};
use crate::value::{Binary, Kind};
use melior::ir::operation::OperationLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

impl<'c> Translator<'c> {
    pub(super) fn gpu(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        let input = match name {
            "thread_id" => Input::Thread(axis(op)?),
            "block_id" => Input::Block(axis(op)?),
            "block_dim" => Input::BlockSize(axis(op)?),
            "grid_dim" => Input::GridSize(axis(op)?),
            "lane_id" => Input::Lane,
            "subgroup_id" => Input::Warp,
            "global_id" => return self.global_id(op),
            "subgroup_size" => {
                let reg = self.constant(32);
                return self.define(op, 0, Value::Numbers(self.index, vec![reg]));
            }
            "barrier" => {
                self.emit(Instr::Barrier);
                return Ok(());
            }
            "shuffle" => return self.shuffle(op),
            "dynamic_shared_memory" => {
                let base = self.input(Input::DynamicShared);
                let sizes = vec![Operand::Constant(
                    i64::try_from(self.kernel.dynamic_shared).unwrap_or(i64::MAX),
                )];
                let memref = Memref {
                    base,
                    offset: Operand::Constant(0),
                    sizes,
                    strides: vec![Operand::Constant(1)],
                    element: Kind::I8,
                };
                return self.define(op, 0, Value::Memref(memref));
            }
            "return" => return Ok(()),
            _ => return Err(unsupported(op, format_args!("gpu.{name}"))),
        };
        let reg = match input {
            Input::BlockSize(axis) => {
                self.constant(self.kernel.block.get(axis).copied().unwrap_or(1).into())
            }
            input => self.input(input),
        };
        self.define(op, 0, Value::Numbers(self.index, vec![reg]))
    }

    fn global_id(&mut self, op: Op<'c>) -> Result<(), Error> {
        let axis = axis(op)?;
        let (block, thread) = (self.input(Input::Block(axis)), self.input(Input::Thread(axis)));
        let size = self.constant(self.kernel.block.get(axis).copied().unwrap_or(1).into());
        let start = self.arithmetic(Binary::MulI, block, size);
        let reg = self.arithmetic(Binary::AddI, start, thread);
        self.define(op, 0, Value::Numbers(self.index, vec![reg]))
    }

    fn shuffle(&mut self, op: Op<'c>) -> Result<(), Error> {
        let (kind, value) = self.numbers(op, 0)?;
        let (offset, width) = (self.number(op, 1)?, self.number(op, 2)?);
        let text = mlir::attribute(op, "mode").map(|mode| mode.to_string()).unwrap_or_default();
        let mode = match text
            .trim_start_matches("#gpu<shuffle_mode ")
            .trim_start_matches("#gpu.shuffle_mode<")
            .trim_end_matches('>')
            .trim()
        {
            "xor" => Shuffle::Xor,
            "up" => Shuffle::Up,
            "down" => Shuffle::Down,
            "idx" => Shuffle::Index,
            _ => return Err(malformed(op)),
        };
        let valid = self.fresh();
        let mut to = Vec::new();
        for value in value {
            let reg = self.fresh();
            self.emit(Instr::Shuffle { mode, to: reg, valid, value, offset, width });
            to.push(reg);
        }
        self.define(op, 0, Value::Numbers(kind, to))?;
        self.define(op, 1, Value::Numbers(Kind::I1, vec![valid]))
    }

    pub(super) fn nvgpu(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        match name {
            "device_async_copy" => self.copy_async(op)?,
            "device_async_create_group" => {
                self.emit(Instr::CopyGroup);
            }
            "device_async_wait" => {
                let groups = self
                    .integer_attribute(op, "numGroups")
                    .and_then(|groups| u32::try_from(groups).ok())
                    .unwrap_or(0);
                self.emit(Instr::CopyWait { groups });
            }
            _ => return Err(unsupported(op, format_args!("nvgpu.{name}"))),
        }
        if is_token(op) {
            self.define(op, 0, Value::Nothing)?;
        }
        Ok(())
    }

    fn copy_async(&mut self, op: Op<'c>) -> Result<(), Error> {
        let segments = list(op, "operandSegmentSizes")?;
        let segment = |place: usize| {
            segments.get(place).and_then(|size| usize::try_from(*size).ok()).unwrap_or(0)
        };
        let source = segment(0) + segment(1);
        let count = self
            .integer_attribute(op, "dstElements")
            .and_then(|count| usize::try_from(count).ok())
            .ok_or_else(|| malformed(op))?;
        let aligned = |access: Access| {
            let bytes = access.element.bytes() * u64::from(access.count);
            Box::new(Access { alignment: bytes, width: bytes.min(16), ..access })
        };
        let to = aligned(self.access(op, 0, count)?);
        let from = aligned(self.access(op, source, count)?);
        if ![4, 8, 16].contains(&to.alignment) {
            return Err(unsupported(op, "asynchronous copies of other than 4, 8 or 16 bytes"));
        }
        let place = source + segment(2) + segment(3);
        let valid = if segment(4) == 1 { Some(self.number(op, place)?) } else { None };
        self.emit(Instr::CopyAsync { from, to, valid });
        Ok(())
    }

    pub(super) fn peer(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        let flags = self.memref_of(op, 0)?;
        let epoch = self.number(op, 2)?;
        if flags.sizes.len() != 1 || flags.element != Kind::I32 {
            return Err(unsupported(op, "flags other than a memref of one dimension and i32"));
        }
        let access = Box::new(self.access(op, 0, 1)?);
        self.kernel.peer = true;
        match name {
            "signal" => self.emit(Instr::Signal { access, epoch }),
            "wait" => self.emit(Instr::Wait { access, epoch }),
            "arrive" => {
                let to = self.fresh();
                self.emit(Instr::Arrive { access, count: epoch, to });
                return self.define(op, 0, Value::Numbers(Kind::I32, vec![to]));
            }
            _ => return Err(unsupported(op, format_args!("peer.{name}"))),
        };
        Ok(())
    }
}

fn axis(op: Op) -> Result<usize, Error> {
    let text = op.attribute("dimension").map(|axis| axis.to_string()).unwrap_or_default();
    // `#gpu<dim x>`
    match text.trim_end_matches('>').trim_end().chars().next_back() {
        Some('x') => Ok(0),
        Some('y') => Ok(1),
        Some('z') => Ok(2),
        _ => Err(malformed(op)),
    }
}
