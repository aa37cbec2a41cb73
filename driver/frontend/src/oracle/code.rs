//! Expressions as lists of operations on registers. A register holds one value for each cell of
//! a strip; registers of different types are numbered apart.

use super::outside::{Map, Reach};
use crate::program::*;
use crate::sizes::Sizes;
use cranelift_entity::PrimaryMap;
use std::collections::{BTreeMap, HashMap};
use stencil_runtime::array::{Cell, Element, with_cell};
use stencil_runtime::number::Number;

/// Number of a register among those of its type.
pub type Register = usize;

/// What is known before a run.
pub struct Environment<'a> {
    /// The program.
    pub program: &'a Program,
    /// Values of the run-time sizes.
    pub sizes: &'a Sizes,
    /// Values of the scalars, in order of declaration.
    pub scalars: &'a [Number],
    /// First and last coordinate of every grid.
    pub bounds: &'a PrimaryMap<GridId, Vec<(i64, i64)>>,
}

impl Environment<'_> {
    /// First and last coordinate of a field's grid.
    pub fn bounds_of(&self, field: FieldId) -> &[(i64, i64)] {
        let field = self.program.fields.get(field);
        field.and_then(|field| self.bounds.get(field.grid)).map_or(&[], Vec::as_slice)
    }
}

/// Where a field's cells lie: row-major from the first point of its grid.
pub struct Layout {
    /// Linear index that the point at 0 would have.
    start: i64,
    /// Cells to the next point along a dimension.
    strides: Vec<i64>,
}

impl Layout {
    /// The cells at an offset from each point, on a grid with these first and last coordinates.
    pub fn new(bounds: &[(i64, i64)], offset: &[i64]) -> Self {
        let (mut start, mut stride, mut strides) = (0_i64, 1_i64, Vec::new());
        for ((first, last), offset) in bounds.iter().zip(offset).rev() {
            start = start.wrapping_add(offset.wrapping_sub(*first).wrapping_mul(stride));
            strides.push(stride);
            stride = stride.wrapping_mul((last - first + 1).max(0));
        }
        strides.reverse();
        Self { start, strides }
    }

    /// The linear index at a point, which must lie on the grid with its offset.
    pub fn index(&self, point: &[i64]) -> usize {
        let along = point.iter().zip(&self.strides);
        along.fold(self.start, |index, (at, stride)| index.wrapping_add(at.wrapping_mul(*stride)))
            as usize
    }
}

/// The code of a piece.
pub struct Code {
    /// In order.
    pub ops: Vec<Op>,
    /// Registers of the values, in the order of the updated fields.
    pub results: Vec<Register>,
}

/// An operation; its last register or its only one without a name is the result, of type `ty`.
pub enum Op {
    /// The same value for all cells.
    Fill { to: Register, value: Constant },
    /// A field's cells at an offset.
    Read { to: Register, field: FieldId, layout: Layout },
    /// A field's cells, or what a boundary rule takes for those outside the grid.
    Reach { to: Register, reach: Reach },
    /// Whether a read lies inside the grid.
    Inside { to: Register, reach: Reach },
    /// A field's cells at places that are computed, on a grid with these first and last
    /// coordinates; with a map, others stand for those outside.
    Gather {
        to: Register,
        field: FieldId,
        at: Vec<Register>,
        bounds: Vec<(i64, i64)>,
        map: Option<Map>,
    },
    /// Whether such places lie inside the grid.
    Holds { to: Register, at: Vec<Register>, bounds: Vec<(i64, i64)> },
    /// The same value as in another register.
    Copy { to: Register, from: Register },
    /// The coordinate along a dimension, `plus` cells further; `last` for the dimension in which a
    /// strip runs.
    Coordinate { to: Register, dimension: usize, last: bool, plus: i64 },
    /// The number of the step.
    Step { to: Register },
    /// `-a`, or `!a` for a condition.
    Unary { to: Register, ty: Type, a: Register },
    /// Arithmetic.
    Binary { to: Register, ty: Type, op: BinaryOp, a: Register, b: Register },
    /// A comparison of two values of type `ty`.
    Compare { to: Register, ty: Type, op: BinaryOp, a: Register, b: Register },
    /// A math function.
    Call { to: Register, ty: Type, function: MathFunction, arguments: [Register; 3] },
    /// A conversion.
    Cast { to: Register, ty: Type, from: Type, a: Register },
    /// `if`: each side runs only where some cell needs it.
    Branch { to: Register, ty: Type, condition: Register, sides: Box<[(Vec<Op>, Register); 2]> },
}

/// A value that is known before a run.
#[derive(Clone, Copy)]
pub enum Constant {
    /// A number of its type.
    Number(Number),
    /// A condition.
    Bool(bool),
}

impl Code {
    /// The code for the values of a piece of so many dimensions.
    pub fn new(
        lets: &[(LocalId, Expr)],
        values: &[Expr],
        rank: usize,
        environment: &Environment,
    ) -> Self {
        let mut compiler = Compiler {
            environment,
            rank,
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
    Place(Place),
}

/// Cells at places that are computed.
#[derive(Clone)]
struct Place {
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
            ExprKind::Read { field, offset } => self.read(ty, *field, offset, ops),
            ExprKind::Nearest(field) => match self.outside.clone() {
                Some(Outside::Offset(reach)) => {
                    self.reach(ty, Reach { field: *field, ..reach }, ops)
                }
                Some(Outside::Place(place)) => {
                    self.gather(ty, &Place { field: *field, ..place }, Some(Map::Nearest), ops)
                }
                None => self.fill(ty, |_| None, ops), // The checker lets it stand in rules alone.
            },
            ExprKind::Gather { field, at } => {
                let slots: Vec<Slot> = at.iter().map(|at| self.expr(at, ops)).collect();
                let at = slots.iter().map(|slot| slot.register).collect();
                let place = Place {
                    field: *field,
                    at,
                    bounds: self.environment.bounds_of(*field).to_vec(),
                };
                let to = self.read_at(ty, place, ops);
                slots.into_iter().for_each(|slot| self.give(slot));
                to
            }
            ExprKind::Coordinate(dimension) => {
                let to = self.take(ty);
                let last = dimension + 1 == self.rank;
                // In a boundary rule it is that of the point outside.
                let plus = match &self.outside {
                    Some(Outside::Place(place)) => {
                        let from = place.at.get(*dimension).copied().unwrap_or(to.register);
                        ops.push(Op::Copy { to: to.register, from });
                        return to;
                    }
                    Some(Outside::Offset(reach)) => {
                        reach.offset.get(*dimension).copied().unwrap_or(0)
                    }
                    None => 0,
                };
                ops.push(Op::Coordinate { to: to.register, dimension: *dimension, last, plus });
                to
            }
            ExprKind::Step => {
                let to = self.take(ty);
                ops.push(Op::Step { to: to.register });
                to
            }
            ExprKind::Local(id) => match self.locals.get(id) {
                Some(slot) => Slot { owned: false, ..*slot },
                None => self.fill(ty, |_| None, ops), // The checker binds before it uses.
            },
            ExprKind::Unary(_, a) => {
                let a = self.expr(a, ops);
                let to = self.take(ty);
                ops.push(Op::Unary { to: to.register, ty, a: a.register });
                self.give(a);
                to
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, expr, ops),
            ExprKind::If(condition, yes, no) => self.branch(ty, condition, [Ok(yes), Ok(no)], ops),
            ExprKind::Let(id, value, body) => self.bind(*id, value, body, ops),
            ExprKind::Call(function, arguments) => {
                let slots: Vec<Slot> = arguments.iter().map(|a| self.expr(a, ops)).collect();
                let to = self.take(ty);
                let mut registers = [0; 3];
                for (register, slot) in registers.iter_mut().zip(&slots) {
                    *register = slot.register;
                }
                ops.push(Op::Call {
                    to: to.register,
                    ty,
                    function: *function,
                    arguments: registers,
                });
                slots.into_iter().for_each(|slot| self.give(slot));
                to
            }
            ExprKind::Cast(a) => {
                let slot = self.expr(a, ops);
                let to = self.take(ty);
                ops.push(Op::Cast { to: to.register, ty, from: a.ty, a: slot.register });
                self.give(slot);
                to
            }
        }
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
    fn read(&mut self, ty: Type, field: FieldId, offset: &[i64], ops: &mut Vec<Op>) -> Slot {
        let bounds = self.environment.bounds_of(field);
        let reach = |map| Reach { field, offset: offset.to_vec(), bounds: bounds.to_vec(), map };
        match self.rule(field) {
            None => {
                let to = self.take(ty);
                ops.push(Op::Read { to: to.register, field, layout: Layout::new(bounds, offset) });
                to
            }
            Some(Ok(map)) => self.reach(ty, reach(map), ops),
            Some(Err(value)) => {
                let condition = self.take(Type::Bool);
                let reach = reach(Map::Nearest);
                ops.push(Op::Inside { to: condition.register, reach: reach.clone() });
                let within = |compiler: &mut Self, inner: &mut Vec<Op>| {
                    compiler.reach(ty, reach.clone(), inner)
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
    fn read_at(&mut self, ty: Type, place: Place, ops: &mut Vec<Op>) -> Slot {
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
                let beyond = Outside::Place(place.clone());
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

    fn gather(&mut self, ty: Type, place: &Place, map: Option<Map>, ops: &mut Vec<Op>) -> Slot {
        let to = self.take(ty);
        let Place { field, at, bounds } = place.clone();
        ops.push(Op::Gather { to: to.register, field, at, bounds, map });
        to
    }

    fn reach(&mut self, ty: Type, reach: Reach, ops: &mut Vec<Op>) -> Slot {
        let to = self.take(ty);
        ops.push(Op::Reach { to: to.register, reach });
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
