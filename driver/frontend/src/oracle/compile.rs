//! Flattens the expressions of a piece into operations.

use super::code::{Code, Constant, Environment, Layout, Op, Register, Source};
use super::outside::{Map, Reach};
use crate::program::*;
use std::collections::{BTreeMap, HashMap};
use stencil_runtime::array::{Cell, Element, with_cell};
use stencil_runtime::number::Number;

impl Code {
    /// The code for the values of a piece of so many dimensions, of a function that updates some
    /// fields.
    pub fn new(
        Piece { lets, values, .. }: &Piece,
        rank: usize,
        updates: &[FieldId],
        environment: &Environment,
    ) -> Self {
        let mut compiler = Compiler {
            environment,
            rank,
            updates,
            used: HashMap::new(),
            locals: BTreeMap::new(),
            outside: None,
        };
        let mut ops = Vec::new();
        for (id, value) in lets {
            let slot = compiler.expr(value, &mut ops);
            compiler.locals.insert(*id, slot);
        }
        // Results stay taken, so that a later value does not overwrite an earlier one.
        let results = values.iter().map(|value| compiler.expr(value, &mut ops).register).collect();
        Self { ops, results }
    }
}

/// Where a value is.
#[derive(Clone, Copy)]
struct Slot {
    register: Register,
    ty: Type,
    /// Whether its user may give the register back; that of a `let` stays until its body is done.
    owned: bool,
}

struct Compiler<'a> {
    environment: &'a Environment<'a>,
    rank: usize,
    updates: &'a [FieldId],
    /// For each type, which registers are taken.
    used: HashMap<Type, Vec<bool>>,
    locals: BTreeMap<LocalId, Slot>,
    /// In the expression of a boundary rule: the read that it stands for.
    outside: Option<Outside>,
}

/// A read that may lie outside the grid.
#[derive(Clone)]
enum Outside {
    /// At an offset.
    Offset(Reach),
    /// At a place that is computed.
    Gathered(Gathered),
}

/// Cells at places that are computed.
#[derive(Clone)]
struct Gathered {
    field: FieldId,
    /// Registers of the coordinates.
    at: Vec<Register>,
    /// First and last coordinate of the field's grid.
    bounds: Vec<(i64, i64)>,
}

impl<'a> Compiler<'a> {
    fn expr(&mut self, expr: &Expr, ops: &mut Vec<Op>) -> Slot {
        let ty = expr.ty;
        match &expr.kind {
            ExprKind::Float(value) => self.fill(ty, |element| Number::float(element, *value), ops),
            ExprKind::Int(value) => self.fill(ty, |element| Number::integer(element, *value), ops),
            ExprKind::Bool(value) => self.condition(*value, ops),
            ExprKind::Scalar(id) => {
                let index = cranelift_entity::EntityRef::index(*id);
                let value = self.environment.scalars.get(index).copied();
                self.fill(ty, |_| value, ops)
            }
            ExprKind::Param(id) => {
                let value = self.environment.sizes.get(id).copied();
                self.fill(ty, |_| value.map(Number::I64), ops)
            }
            ExprKind::Read { field, offset, current } => {
                self.read(ty, *field, (offset, *current), ops)
            }
            ExprKind::Nearest(field) => match self.outside.clone() {
                Some(Outside::Offset(reach)) => self.reach(ty, Source::Old(*field), reach, ops),
                Some(Outside::Gathered(place)) => {
                    self.gather(ty, &Gathered { field: *field, ..place }, Some(Map::Nearest), ops)
                }
                None => self.fill(ty, |_| None, ops), // The checker lets it stand in rules alone.
            },
            ExprKind::Gather { field, at } => self.gathered(ty, *field, at, ops),
            ExprKind::Coordinate(dimension) => self.coordinate(ty, *dimension, ops),
            ExprKind::Step => {
                let to = self.take(ty);
                ops.push(Op::Step { to: to.register });
                to
            }
            ExprKind::Local(id) => match self.locals.get(id) {
                Some(slot) => Slot { owned: false, ..*slot },
                None => self.fill(ty, |_| None, ops), // The checker binds before it uses.
            },
            ExprKind::Unary(op, a) => {
                let a = self.expr(a, ops);
                let to = self.take(ty);
                ops.push(Op::Unary { to: to.register, ty, op: *op, a: a.register });
                self.give(a);
                to
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, expr, ops),
            ExprKind::If(condition, yes, no) => self.branch(ty, condition, [Ok(yes), Ok(no)], ops),
            ExprKind::Let(id, value, body) => self.bind(*id, value, body, ops),
            ExprKind::Call(function, arguments) => self.call(ty, *function, arguments, ops),
            ExprKind::Cast(a) => {
                let slot = self.expr(a, ops);
                let to = self.take(ty);
                ops.push(Op::Cast { to: to.register, ty, from: a.ty, a: slot.register });
                self.give(slot);
                to
            }
        }
    }

    fn gathered(&mut self, ty: Type, field: FieldId, at: &[Expr], ops: &mut Vec<Op>) -> Slot {
        let slots: Vec<Slot> = at.iter().map(|at| self.expr(at, ops)).collect();
        let at = slots.iter().map(|slot| slot.register).collect();
        let bounds = self.environment.bounds_of(field).to_vec();
        let to = self.read_at(ty, Gathered { field, at, bounds }, ops);
        slots.into_iter().for_each(|slot| self.give(slot));
        to
    }

    /// The point's coordinate; in a boundary rule that of the point outside.
    fn coordinate(&mut self, ty: Type, dimension: usize, ops: &mut Vec<Op>) -> Slot {
        let to = self.take(ty);
        let last = dimension + 1 == self.rank;
        let plus = match &self.outside {
            Some(Outside::Gathered(place)) => {
                let from = place.at.get(dimension).copied().unwrap_or(to.register);
                ops.push(Op::Copy { to: to.register, from });
                return to;
            }
            Some(Outside::Offset(reach)) => reach.offset.get(dimension).copied().unwrap_or(0),
            None => 0,
        };
        ops.push(Op::Coordinate { to: to.register, dimension, last, plus });
        to
    }

    fn call(
        &mut self,
        ty: Type,
        function: MathFunction,
        arguments: &[Expr],
        ops: &mut Vec<Op>,
    ) -> Slot {
        let slots: Vec<Slot> = arguments.iter().map(|a| self.expr(a, ops)).collect();
        let to = self.take(ty);
        let mut arguments = [0; 3];
        for (register, slot) in arguments.iter_mut().zip(&slots) {
            *register = slot.register;
        }
        ops.push(Op::Call { to: to.register, ty, function, arguments });
        slots.into_iter().for_each(|slot| self.give(slot));
        to
    }

    /// A number of the type; 0 where there is none, which the checker excludes.
    fn fill(
        &mut self,
        ty: Type,
        number: impl Fn(Element) -> Option<Number>,
        ops: &mut Vec<Op>,
    ) -> Slot {
        let to = self.take(ty);
        let value = match ty {
            Type::Bool => Constant::Bool(false),
            Type::Element(element) => {
                let zero = with_cell!(element, T => <T as Cell>::number(T::default()));
                Constant::Number(number(element).unwrap_or(zero))
            }
        };
        ops.push(Op::Fill { to: to.register, value });
        to
    }

    fn condition(&mut self, value: bool, ops: &mut Vec<Op>) -> Slot {
        let to = self.take(Type::Bool);
        ops.push(Op::Fill { to: to.register, value: Constant::Bool(value) });
        to
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        a: &Expr,
        b: &Expr,
        whole: &Expr,
        ops: &mut Vec<Op>,
    ) -> Slot {
        match op {
            BinaryOp::And => return self.branch(Type::Bool, a, [Ok(b), Err(false)], ops),
            BinaryOp::Or => return self.branch(Type::Bool, a, [Err(true), Ok(b)], ops),
            _ => {}
        }
        let operands = a.ty;
        let (a, b) = (self.expr(a, ops), self.expr(b, ops));
        let to = self.take(whole.ty);
        let (register, a_register, b_register) = (to.register, a.register, b.register);
        ops.push(match whole.ty {
            Type::Bool => {
                Op::Compare { to: register, ty: operands, op, a: a_register, b: b_register }
            }
            ty => Op::Binary { to: register, ty, op, a: a_register, b: b_register },
        });
        self.give(a);
        self.give(b);
        to
    }

    /// `if`; a side is an expression or a constant condition.
    fn branch(
        &mut self,
        ty: Type,
        condition: &Expr,
        sides: [Result<&Expr, bool>; 2],
        ops: &mut Vec<Op>,
    ) -> Slot {
        let condition = self.expr(condition, ops);
        let [yes, no] = sides.map(|side| {
            move |compiler: &mut Self, inner: &mut Vec<Op>| match side {
                Ok(expr) => compiler.expr(expr, inner),
                Err(value) => compiler.condition(value, inner),
            }
        });
        self.choose(ty, condition, yes, no, ops)
    }

    /// One of two sides, by a condition; each adds its operations to a list of its own.
    fn choose(
        &mut self,
        ty: Type,
        condition: Slot,
        yes: impl FnOnce(&mut Self, &mut Vec<Op>) -> Slot,
        no: impl FnOnce(&mut Self, &mut Vec<Op>) -> Slot,
        ops: &mut Vec<Op>,
    ) -> Slot {
        let to = self.take(ty);
        let (mut first, mut second) = (Vec::new(), Vec::new());
        // A side's result is copied before anything else runs.
        let yes = yes(self, &mut first);
        self.give(yes);
        let no = no(self, &mut second);
        self.give(no);
        let sides = Box::new([(first, yes.register), (second, no.register)]);
        ops.push(Op::Branch { to: to.register, ty, condition: condition.register, sides });
        self.give(condition);
        to
    }

    /// A read at constant offsets, by the field's boundary rule where it has one.
    fn read(
        &mut self,
        ty: Type,
        field: FieldId,
        (offset, current): (&[i64], bool),
        ops: &mut Vec<Op>,
    ) -> Slot {
        let bounds = self.environment.bounds_of(field);
        let reach = |map| Reach { offset: offset.to_vec(), bounds: bounds.to_vec(), map };
        let updated = self.updates.iter().position(|updated| *updated == field);
        let from = updated.filter(|_| current).map_or(Source::Old(field), Source::New);
        match self.rule(field) {
            None => {
                let to = self.take(ty);
                ops.push(Op::Read { to: to.register, from, layout: Layout::new(bounds, offset) });
                to
            }
            Some(Ok(map)) => self.reach(ty, from, reach(map), ops),
            Some(Err(value)) => {
                let condition = self.take(Type::Bool);
                let reach = reach(Map::Nearest);
                ops.push(Op::Inside { to: condition.register, reach: reach.clone() });
                let within = |compiler: &mut Self, inner: &mut Vec<Op>| {
                    compiler.reach(ty, from, reach.clone(), inner)
                };
                let beyond = Outside::Offset(reach.clone());
                self.choose(
                    ty,
                    condition,
                    within,
                    |compiler, inner| compiler.rule_value(value, beyond, inner),
                    ops,
                )
            }
        }
    }

    /// An absolute read, by the field's boundary rule where it has one.
    fn read_at(&mut self, ty: Type, place: Gathered, ops: &mut Vec<Op>) -> Slot {
        match self.rule(place.field) {
            None => self.gather(ty, &place, None, ops),
            Some(Ok(map)) => self.gather(ty, &place, Some(map), ops),
            Some(Err(value)) => {
                let condition = self.take(Type::Bool);
                let (at, bounds) = (place.at.clone(), place.bounds.clone());
                ops.push(Op::Holds { to: condition.register, at, bounds });
                // A side runs for all cells of a strip, so that places outside come here too.
                let nearest = Some(Map::Nearest);
                let within = |compiler: &mut Self, inner: &mut Vec<Op>| {
                    compiler.gather(ty, &place, nearest, inner)
                };
                let beyond = Outside::Gathered(place.clone());
                self.choose(
                    ty,
                    condition,
                    within,
                    |compiler, inner| compiler.rule_value(value, beyond, inner),
                    ops,
                )
            }
        }
    }

    /// The boundary rule of a field: which cell it takes, or the expression.
    fn rule(&self, field: FieldId) -> Option<Result<Map, &'a Expr>> {
        let environment = self.environment;
        Some(match environment.program.fields.get(field)?.boundary.as_ref()? {
            Boundary::Nearest => Ok(Map::Nearest),
            Boundary::Periodic => Ok(Map::Periodic),
            Boundary::Reflect => Ok(Map::Reflect),
            Boundary::Value(value) => Err(value),
        })
    }

    /// The expression of a boundary rule, for a read outside.
    fn rule_value(&mut self, value: &Expr, outside: Outside, ops: &mut Vec<Op>) -> Slot {
        // The rule's locals are numbered apart from those of the piece.
        let locals = std::mem::take(&mut self.locals);
        self.outside = Some(outside);
        let slot = self.expr(value, ops);
        self.outside = None;
        self.locals = locals;
        slot
    }

    fn gather(&mut self, ty: Type, place: &Gathered, map: Option<Map>, ops: &mut Vec<Op>) -> Slot {
        let to = self.take(ty);
        let Gathered { field, at, bounds } = place.clone();
        ops.push(Op::Gather { to: to.register, field, at, bounds, map });
        to
    }

    fn reach(&mut self, ty: Type, from: Source, reach: Reach, ops: &mut Vec<Op>) -> Slot {
        let to = self.take(ty);
        ops.push(Op::Reach { to: to.register, from, reach });
        to
    }

    fn bind(&mut self, id: LocalId, value: &Expr, body: &Expr, ops: &mut Vec<Op>) -> Slot {
        let value = self.expr(value, ops);
        self.locals.insert(id, value);
        let result = self.expr(body, ops);
        self.locals.remove(&id);
        let same = result.register == value.register && result.ty == value.ty;
        if same && value.owned {
            return value; // The body is the local itself, whose register passes on.
        }
        self.give(value);
        result
    }

    fn take(&mut self, ty: Type) -> Slot {
        let used = self.used.entry(ty).or_default();
        let register = used.iter().position(|taken| !taken).unwrap_or(used.len());
        match used.get_mut(register) {
            Some(taken) => *taken = true,
            None => used.push(true),
        }
        Slot { register, ty, owned: true }
    }

    fn give(&mut self, slot: Slot) {
        let used = self.used.get_mut(&slot.ty);
        if let Some(taken) = used.and_then(|used| used.get_mut(slot.register))
            && slot.owned
        {
            *taken = false;
        }
    }
}
