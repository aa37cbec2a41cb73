//! The shared buffers of a block's tile: which tile value lies in which.

use crate::analysis::shared_slots::{self, Life};
use crate::kernel::shared_memory;
use melior::ir::Type;
use melior::ir::r#type::MemRefType;
use std::collections::BTreeMap;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Kernel, TileOp};

/// Which shared buffer holds which tile value.
pub struct Buffers<'c> {
    /// The types of all buffers.
    pub types: Vec<MemRefType<'c>>,
    slot_of: BTreeMap<usize, usize>,
}

impl<'c> Buffers<'c> {
    /// Values whose lives do not overlap share a buffer; those that no apply reads have none.
    pub fn plan(
        builder: &Builder<'c>,
        program: &Program<'c>,
        kernel: &Kernel<'c>,
    ) -> Result<Self, Error> {
        let mut keys = Vec::new();
        let mut lives: Vec<Life<String>> = Vec::new();
        let mut elements: BTreeMap<String, Type<'c>> = BTreeMap::new();
        for (position, op) in kernel.body.iter().enumerate() {
            let defined: Vec<Val> = match op {
                TileOp::Load { tile, .. } => vec![*tile],
                TileOp::Apply(apply) => apply.outputs.iter().map(|(_, tile)| *tile).collect(),
                TileOp::Store { .. } => Vec::new(),
            };
            for tile in defined {
                let reader = |op: &TileOp<'c>| match op {
                    TileOp::Apply(apply) => apply.inputs.iter().any(|(_, input)| *input == tile),
                    _ => false,
                };
                let Some(last) = kernel.body.iter().rposition(reader) else { continue };
                let held = kernel.tile(tile)?;
                let element = program.field(held.field)?.element;
                elements.insert(element.to_string(), element);
                keys.push(mlir::key(tile));
                lives.push(Life {
                    kind: element.to_string(),
                    extents: held.halo.extents(&kernel.schedule.tile),
                    first: position,
                    last,
                });
            }
        }
        let (slots, assigned) = shared_slots::assign(&lives);
        let types = slots
            .iter()
            .map(|slot| {
                let element = elements
                    .get(&slot.kind)
                    .copied()
                    .ok_or_else(|| Error::internal("a slot of no type"))?;
                shared_memory::shared_type(builder, &slot.extents, element)
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { types, slot_of: keys.into_iter().zip(assigned).collect() })
    }

    /// The place of a tile value's buffer.
    pub fn slot(&self, tile: Val) -> Option<usize> {
        self.slot_of.get(&mlir::key(tile)).copied()
    }
}
