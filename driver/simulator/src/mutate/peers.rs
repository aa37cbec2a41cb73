//! Errors in how blocks wait for each other.

use super::editor::Editor;
use super::{Peer, Planted};
use melior::ir::Type;
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike};
use melior::ir::r#type::IntegerType;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::peer;

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Peer::Signal => peer::SIGNAL,
            Peer::Wait => peer::WAIT,
        }
    }
}

impl<'c> Editor<'c> {
    /// A signal or a wait.
    pub fn peer(&self, peer: Peer, place: isize) -> Option<Op<'c>> {
        self.nth(peer.name(), place)
    }

    /// An epoch lacks the launches before.
    pub fn forget_epoch(&self, peer: Peer, place: isize) -> Option<()> {
        let op = self.peer(peer, place)?;
        let sum = self.maker(mlir::value(op.operand(2).ok()?))?;
        mlir::set_operand(op, 2, mlir::value(sum.operand(1).ok()?));
        Some(())
    }

    /// A signal is a plain store.
    pub fn weaken_signal(&self, place: isize) -> Planted {
        let Some(op) = self.peer(Peer::Signal, place) else { return Ok(None) };
        let operands = mlir::operands(op);
        let [flags, index, epoch] = operands.as_slice() else { return Ok(None) };
        let store = OperationBuilder::new("memref.store", op.location())
            .add_operands(&[*epoch, *flags, *index])
            .build();
        if let Some(block) = op.block() {
            block.insert_operation_before(
                op,
                store.map_err(|error| Error::internal(error.to_string()))?,
            );
        }
        mlir::erase(op);
        Ok(Some(()))
    }

    /// Before a wait a plain load looks whether the flag is there already.
    pub fn weaken_wait(&self, place: isize) -> Planted {
        let Some(op) = self.peer(Peer::Wait, place) else { return Ok(None) };
        let operands = mlir::operands(op);
        let [flags, index, epoch] = operands.as_slice() else { return Ok(None) };
        let i32_type: Type = IntegerType::new(self.context, 32).into();
        let i1_type: Type = IntegerType::new(self.context, 1).into();
        let flag = self.before(op, "memref.load", &[*flags, *index], i32_type, &[])?;
        let less = [("predicate", attribute::integer(self.context, 2))];
        let late = self.before(op, "arith.cmpi", &[flag, *epoch], i1_type, &less)?;
        self.replace_where(op, late)
    }

    /// Tiles of a launch read one row of blocks less far than they do.
    pub fn short_reach(&self) -> Option<()> {
        let mut planted = None;
        for op in self.all.iter().copied() {
            let Some(reach) = mlir::attribute(op, "tiled.reach") else { continue };
            let reach = attribute::as_integer(reach)? - 1;
            mlir::set_attribute(op, "tiled.reach", attribute::integer(self.context, reach));
            planted = Some(());
        }
        planted
    }
}
