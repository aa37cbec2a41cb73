//! Errors in how blocks wait for each other.

use super::editor::Editor;
use super::{Peer, Planted};
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike};
use melior::ir::r#type::IntegerType;
use melior::ir::{Type, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::peer;

impl Peer {
    fn name(self) -> &'static str {
        match self {
            Peer::Signal => peer::SIGNAL,
            Peer::Wait => peer::WAIT,
            Peer::Arrive => peer::ARRIVE,
        }
    }
}

impl<'c> Editor<'c> {
    /// A signal, a wait or an arrival.
    pub fn peer(&self, peer: Peer, place: isize) -> Option<Op<'c>> {
        self.nth(peer.name(), place)
    }

    /// Leaves it out; an arrival finds nothing there.
    pub fn drop_peer(&self, peer: Peer, place: isize) -> Planted {
        let Some(op) = self.peer(peer, place) else { return Ok(None) };
        for result in mlir::results(op) {
            let zero = self.constant(op, result.r#type(), 0)?;
            mlir::replace_uses(result, zero);
        }
        mlir::erase(op);
        Ok(Some(()))
    }

    /// Neighbours' flags are exchanged: 0 and 1, 2 and 3.
    pub fn swap_flags(&self, peer: Peer, place: isize) -> Planted {
        let Some(op) = self.peer(peer, place) else { return Ok(None) };
        let Ok(index) = op.operand(1) else { return Ok(None) };
        let one = self.constant(op, self.index(), 1)?;
        let other = self.before(op, "arith.xori", &[mlir::value(index), one], self.index(), &[])?;
        mlir::set_operand(op, 1, other);
        Ok(Some(()))
    }

    /// An arrival is a load, a sum and a store.
    pub fn weaken_arrive(&self, place: isize) -> Planted {
        let Some(op) = self.peer(Peer::Arrive, place) else { return Ok(None) };
        let (operands, results) = (mlir::operands(op), mlir::results(op));
        let ([counter, index, count], [result]) = (operands.as_slice(), results.as_slice()) else {
            return Ok(None);
        };
        let ty = count.r#type();
        let before = self.before(op, "memref.load", &[*counter, *index], ty, &[])?;
        let sum = self.before(op, "arith.addi", &[before, *count], ty, &[])?;
        self.store(op, &[sum, *counter, *index])?;
        mlir::replace_uses(*result, before);
        mlir::erase(op);
        Ok(Some(()))
    }

    /// Inserts a plain store before an operation.
    fn store(&self, op: Op<'c>, operands: &[Val<'c>]) -> Result<(), Error> {
        let store = OperationBuilder::new("memref.store", op.location())
            .add_operands(operands)
            .build()
            .map_err(|error| Error::internal(error.to_string()))?;
        let block = op.block().ok_or_else(|| Error::internal("an operation outside any block"))?;
        block.insert_operation_before(op, store);
        Ok(())
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
        let [flags, index, count] = operands.as_slice() else { return Ok(None) };
        self.store(op, &[*count, *flags, *index])?;
        mlir::erase(op);
        Ok(Some(()))
    }

    /// Before a wait a plain load looks whether the flag is there already.
    pub fn weaken_wait(&self, place: isize) -> Planted {
        let Some(op) = self.peer(Peer::Wait, place) else { return Ok(None) };
        let operands = mlir::operands(op);
        let [flags, index, count] = operands.as_slice() else { return Ok(None) };
        let i32_type: Type = IntegerType::new(self.context, 32).into();
        let i1_type: Type = IntegerType::new(self.context, 1).into();
        let flag = self.before(op, "memref.load", &[*flags, *index], i32_type, &[])?;
        let less = [("predicate", attribute::integer(self.context, 2))];
        let late = self.before(op, "arith.cmpi", &[flag, *count], i1_type, &less)?;
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
