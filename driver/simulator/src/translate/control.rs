//! `scf`: structured control flow as masks.

use super::{Memref, Translator, Value, malformed, unsupported};
use crate::program::{Instr, Operand, Reg};
use crate::value::Binary;
use melior::ir::ValueLike;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Blk, Op, Val};

impl<'c> Translator<'c> {
    pub(super) fn control(&mut self, op: Op<'c>, name: &str) -> Result<(), Error> {
        match name {
            "for" => self.for_loop(op),
            "if" => self.branch(op),
            "while" => self.while_loop(op),
            "yield" | "condition" => Ok(()), // read by the operation around it
            _ => Err(unsupported(op, format_args!("scf.{name}"))),
        }
    }

    /// New registers for a value that a loop or a branch assigns.
    fn variable(&mut self, op: Op<'c>, like: &Value) -> Result<Value, Error> {
        Ok(match like {
            Value::Numbers(kind, regs) => {
                Value::Numbers(*kind, regs.iter().map(|_| self.fresh()).collect())
            }
            Value::Memref(memref) => {
                let mut own = |_: &Operand| Operand::Register(self.fresh());
                let (sizes, strides) = (
                    memref.sizes.iter().map(&mut own).collect(),
                    memref.strides.iter().map(&mut own).collect(),
                );
                let offset = own(&memref.offset);
                Value::Memref(Memref {
                    base: self.fresh(),
                    offset,
                    sizes,
                    strides,
                    element: memref.element,
                })
            }
            Value::Nothing => return Err(unsupported(op, "a token carried through control flow")),
        })
    }

    /// The registers of a variable.
    fn registers(value: &Value) -> Vec<Reg> {
        let register = |operand: &Operand| {
            if let Operand::Register(reg) = operand { Some(*reg) } else { None }
        };
        match value {
            Value::Numbers(_, regs) => regs.clone(),
            Value::Memref(memref) => std::iter::once(memref.base)
                .chain(register(&memref.offset))
                .chain(memref.sizes.iter().chain(&memref.strides).filter_map(register))
                .collect(),
            Value::Nothing => Vec::new(),
        }
    }

    /// The registers of a value, constants included, in the order of [`Self::registers`].
    fn sources(&mut self, value: &Value) -> Vec<Reg> {
        match value {
            Value::Memref(memref) => {
                let mut regs = vec![memref.base, self.register(memref.offset)];
                for operand in memref.sizes.iter().chain(&memref.strides) {
                    regs.push(self.register(*operand));
                }
                regs
            }
            other => Self::registers(other),
        }
    }

    /// Assigns values to variables, all at once.
    fn assign(&mut self, op: Op<'c>, variables: &[Value], values: &[Value]) -> Result<(), Error> {
        if variables.len() != values.len() {
            return Err(malformed(op));
        }
        let mut moves = Vec::new();
        for (variable, value) in variables.iter().zip(values) {
            let (to, from) = (Self::registers(variable), self.sources(value));
            if to.len() != from.len() {
                return Err(malformed(op));
            }
            moves.extend(to.into_iter().zip(from).filter(|(to, from)| to != from));
        }
        // A source that an earlier move overwrites is saved first.
        let targets: std::collections::HashMap<_, _> =
            moves.iter().enumerate().map(|(place, (to, _))| (*to, place)).collect();
        let mut saved = std::collections::HashMap::new();
        for (place, (_, from)) in moves.iter().enumerate() {
            if targets.get(from).is_some_and(|overwritten| *overwritten < place)
                && !saved.contains_key(from)
            {
                let to = self.fresh();
                self.emit(Instr::Move { to, from: *from });
                saved.insert(*from, to);
            }
        }
        for (place, (to, from)) in moves.iter().enumerate() {
            let overwritten = targets.get(from).is_some_and(|overwritten| *overwritten < place);
            let from = if overwritten { saved.get(from).copied().unwrap_or(*from) } else { *from };
            self.emit(Instr::Move { to: *to, from });
        }
        Ok(())
    }

    fn values_of(&self, op: Op<'c>, operands: &[Val<'c>]) -> Result<Vec<Value>, Error> {
        operands.iter().map(|operand| self.value(op, *operand)).collect()
    }

    fn bind(&mut self, block: Blk<'c>, skip: usize, variables: &[Value]) {
        for (argument, variable) in mlir::arguments(block).into_iter().skip(skip).zip(variables) {
            self.values.insert(mlir::key(argument), variable.clone());
        }
    }

    /// Translates the operations of a block; returns the operands of its terminator.
    fn body(&mut self, op: Op<'c>, block: Blk<'c>) -> Result<Vec<Value>, Error> {
        self.block(block)?;
        match mlir::operations(block).last() {
            Some(end) if mlir::name(*end) == "scf.yield" => {
                self.values_of(op, &mlir::operands(*end))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn results(&mut self, op: Op<'c>, variables: Vec<Value>) -> Result<(), Error> {
        for (index, variable) in variables.into_iter().enumerate() {
            self.define(op, index, variable)?;
        }
        Ok(())
    }

    fn for_loop(&mut self, op: Op<'c>) -> Result<(), Error> {
        let (from, bound, step) = (self.number(op, 0)?, self.number(op, 1)?, self.number(op, 2)?);
        let kind = self.numbers(op, 0)?.0;
        let body = mlir::entry(op).ok_or_else(|| malformed(op))?;
        let unsigned = mlir::attribute(op, "unsignedCmp").is_some();
        let site = self.site;
        let initial = self.values_of(op, mlir::operands(op).get(3..).unwrap_or_default())?;
        let carried =
            initial.iter().map(|value| self.variable(op, value)).collect::<Result<Vec<_>, _>>()?;
        let index = self.fresh();
        if self.operand(step) != Operand::Constant(1) {
            self.emit(Instr::CheckStep { step });
        }
        self.emit(Instr::Move { to: index, from });
        self.assign(op, &carried, &initial)?;
        self.emit(Instr::Push);
        let head = self.emit(Instr::While { index, bound, unsigned, exit: 0 });
        self.values.insert(
            mlir::key(*mlir::arguments(body).first().ok_or_else(|| malformed(op))?),
            Value::Numbers(kind, vec![index]),
        );
        self.bind(body, 1, &carried);
        let next = self.body(op, body)?;
        self.site = site;
        self.assign(op, &carried, &next)?;
        self.emit(Instr::Binary { op: Binary::AddI, kind, to: index, a: index, b: step });
        self.emit(Instr::Jump { to: head });
        let exit = self.emit(Instr::Pop);
        if let Some(Instr::While { exit: target, .. }) = self.kernel.code.get_mut(head) {
            *target = exit;
        }
        self.results(op, carried)
    }

    fn branch(&mut self, op: Op<'c>) -> Result<(), Error> {
        let condition = self.number(op, 0)?;
        let site = self.site;
        let start = self.emit(Instr::If { condition, otherwise: 0 });
        let then = mlir::entry(op).ok_or_else(|| malformed(op))?;
        let values = self.body(op, then)?;
        let variables =
            values.iter().map(|value| self.variable(op, value)).collect::<Result<Vec<_>, _>>()?;
        self.site = site;
        self.assign(op, &variables, &values)?;
        let middle = self.emit(Instr::Else { end: 0 });
        if let Some(other) = mlir::blocks(op, 1).first() {
            let values = self.body(op, *other)?;
            self.site = site;
            self.assign(op, &variables, &values)?;
        }
        let end = self.emit(Instr::Pop);
        if let Some(Instr::If { otherwise, .. }) = self.kernel.code.get_mut(start) {
            *otherwise = middle;
        }
        if let Some(Instr::Else { end: target }) = self.kernel.code.get_mut(middle) {
            *target = end;
        }
        self.results(op, variables)
    }

    fn while_loop(&mut self, op: Op<'c>) -> Result<(), Error> {
        let (Some(before), Some(after)) = (mlir::entry(op), mlir::blocks(op, 1).first().copied())
        else {
            return Err(malformed(op));
        };
        let site = self.site;
        let initial = self.values_of(op, &mlir::operands(op))?;
        let carried =
            initial.iter().map(|value| self.variable(op, value)).collect::<Result<Vec<_>, _>>()?;
        self.assign(op, &carried, &initial)?;
        self.bind(before, 0, &carried);
        self.emit(Instr::Push);
        let head = self.here();
        self.block(before)?;
        let condition_op = mlir::operations(before).last().copied().ok_or_else(|| malformed(op))?;
        let condition = self.number(condition_op, 0)?;
        let passed =
            self.values_of(op, mlir::operands(condition_op).get(1..).unwrap_or_default())?;
        let results =
            passed.iter().map(|value| self.variable(op, value)).collect::<Result<Vec<_>, _>>()?;
        self.site = site;
        self.assign(op, &results, &passed)?;
        let test = self.emit(Instr::Keep { condition, exit: 0 });
        self.bind(after, 0, &results);
        let next = self.body(op, after)?;
        self.site = site;
        self.assign(op, &carried, &next)?;
        self.emit(Instr::Jump { to: head });
        let exit = self.emit(Instr::Pop);
        if let Some(Instr::Keep { exit: target, .. }) = self.kernel.code.get_mut(test) {
            *target = exit;
        }
        self.results(op, results)
    }
}

/// Whether a result is a token, which the simulator does not carry.
pub(super) fn is_token(op: Op) -> bool {
    op.result(0).is_ok_and(|result| result.r#type().to_string().contains("token"))
}
