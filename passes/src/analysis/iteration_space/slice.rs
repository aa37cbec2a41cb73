//! Takes the iteration space out of a kernel: backwards from the bounds of loops and the conditions
//! of branches that have accesses to global memory in them.

use super::places::accessed;
use super::{Body, Branch, Carried, Loop, Place, Position, Space, Step};
use crate::analysis::lane_values;
use crate::analysis::operation_cost::Costs;
use melior::ir::AffineExpr;
use melior::ir::operation::OperationLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute;
use stencil_dialects::mlir::{self, Blk, Op, Val};
use stencil_runtime::device::WARP;

/// Takes the operations out of a kernel that bounds and conditions around accesses need.
/// With costs, takes all loops and branches, and the places of accesses.
pub(super) fn of<'c>(kernel: Op<'c>, costs: Option<Costs<'c>>) -> Space {
    let Some(entry) = mlir::entry(kernel) else { return Space::default() };
    let mut slice = Slice::of(kernel, costs);
    slice.mark(kernel);
    let arguments = mlir::arguments(entry).into_iter().enumerate();
    let needed = |(number, value): (usize, Val<'c>)| Some((number, slice.place(value)?));
    let arguments = arguments.filter_map(needed).collect();
    let mut body = Body::default();
    mlir::blocks(kernel, 0).into_iter().for_each(|block| slice.block(block, &mut body));
    Space { places: slice.places, arguments, body, has_costs: slice.costs.is_some() }
}

/// Stands for a number that is an operand in a list of numbers.
pub(super) const DYNAMIC: i64 = i64::MIN;

/// Where a value comes from.
#[derive(Clone, Copy)]
pub(super) enum Origin<'c> {
    /// A result of an operation.
    Result(Op<'c>, usize),
    /// An argument of an operation's region.
    Argument(Op<'c>, usize),
}

/// The operations of a kernel that bounds and conditions need.
pub(super) struct Slice<'c> {
    pub(super) origins: BTreeMap<usize, Origin<'c>>,
    /// Operations with accesses in their regions.
    around: BTreeSet<usize>,
    /// The places of values that are needed.
    needed: BTreeMap<usize, Place>,
    places: usize,
    /// Those of all operations, where they count too.
    costs: Option<Costs<'c>>,
}

/// An operation's identity.
fn id(op: Op) -> usize {
    op.to_raw().ptr as usize
}

impl<'c> Slice<'c> {
    fn of(kernel: Op<'c>, costs: Option<Costs<'c>>) -> Self {
        let mut origins = BTreeMap::new();
        for op in mlir::walk(kernel) {
            for (number, result) in mlir::results(op).into_iter().enumerate() {
                origins.insert(mlir::key(result), Origin::Result(op, number));
            }
            let regions = 0..op.region_count();
            for block in regions.flat_map(|region| mlir::blocks(op, region)) {
                for (number, argument) in mlir::arguments(block).into_iter().enumerate() {
                    origins.insert(mlir::key(argument), Origin::Argument(op, number));
                }
            }
        }
        let (around, needed) = (BTreeSet::new(), BTreeMap::new());
        Self { origins, around, needed, places: 0, costs }
    }

    /// Finds out what is around the accesses inside of an operation, and what that needs.
    fn mark(&mut self, op: Op<'c>) -> bool {
        let accessed = accessed(op);
        let mut has_access = accessed.is_some() || self.costs.is_some();
        if self.costs.is_some() {
            let made_of = accessed.map(|accessed| self.made_of(&accessed));
            made_of.into_iter().flatten().for_each(|value| self.need(value));
        }
        let regions = 0..op.region_count();
        for inner in regions.flat_map(|region| mlir::blocks(op, region)).flat_map(mlir::operations)
        {
            has_access |= self.mark(inner);
        }
        if has_access && op.region_count() > 0 {
            self.around.insert(id(op));
            let decisive = match mlir::name(op) {
                "scf.if" => 1,
                "scf.for" => 3,
                _ => 0,
            };
            mlir::operands(op).into_iter().take(decisive).for_each(|value| self.need(value));
        }
        has_access
    }

    /// Notes that a value is needed, and all that it is made of.
    fn need(&mut self, value: Val<'c>) {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if self.needed.contains_key(&mlir::key(value)) {
                continue;
            }
            self.needed.insert(mlir::key(value), Place(self.places));
            self.places += 1;
            match self.origins.get(&mlir::key(value)).copied() {
                Some(Origin::Result(op, number)) => match mlir::name(op) {
                    "scf.if" => {
                        open.extend(mlir::operands(op).first());
                        let sides =
                            (0..2).filter_map(|side| mlir::yields(op, side).get(number).copied());
                        open.extend(sides);
                    }
                    "scf.for" => open.extend(handed_on(op, number)),
                    "memref.dim" => open.extend(self.extent(op).and_then(Result::ok)),
                    _ if is_integer_operation(op) => open.extend(mlir::operands(op)),
                    _ => {}
                },
                Some(Origin::Argument(op, number)) if mlir::name(op) == "scf.for" => {
                    match number.checked_sub(1) {
                        Some(number) => open.extend(handed_on(op, number)),
                        None => open.extend(mlir::operands(op).into_iter().take(3)),
                    }
                }
                _ => {}
            }
        }
    }

    /// The size of a dimension of a `memref.reinterpret_cast`: a value or a constant.
    fn extent(&self, op: Op<'c>) -> Option<Result<Val<'c>, i64>> {
        let operands = mlir::operands(op);
        let made = |value: &Val<'c>| match self.origins.get(&mlir::key(*value)).copied() {
            Some(Origin::Result(op, _)) => Some(op),
            _ => None,
        };
        let index = usize::try_from(lane_values::constant(made(operands.get(1)?)?)?).ok()?;
        let cast = made(operands.first()?)?;
        if mlir::name(cast) != "memref.reinterpret_cast" {
            return None;
        }
        let list = |name| mlir::attribute(cast, name).and_then(attribute::as_integers);
        let (offsets, sizes) = (list("static_offsets")?, list("static_sizes")?);
        let size = *sizes.get(index)?;
        if size != DYNAMIC {
            return Some(Err(size));
        }
        // The operands behind the source are the run-time offsets, then the run-time sizes.
        let before = offsets.iter().chain(sizes.iter().take(index));
        let place = 1 + before.filter(|entry| **entry == DYNAMIC).count();
        mlir::operands(cast).get(place).copied().map(Ok)
    }

    pub(super) fn place(&self, value: Val<'c>) -> Option<Place> {
        self.needed.get(&mlir::key(value)).copied()
    }

    /// A place that no other value has.
    fn fresh(&mut self) -> Place {
        self.places += 1;
        Place(self.places - 1)
    }

    fn places<const N: usize>(&self, values: &[Val<'c>]) -> Option<[Place; N]> {
        let places: Option<Vec<_>> = values.iter().take(N).map(|one| self.place(*one)).collect();
        places?.try_into().ok()
    }

    fn block(&mut self, block: Blk<'c>, body: &mut Body) {
        for op in mlir::operations(block) {
            let accessed = accessed(op);
            if let Some(accessed) = &accessed {
                let moved = accessed.moved();
                body.moved.loaded += moved.loaded;
                body.moved.stored += moved.stored;
            }
            if let Some(costs) = &self.costs {
                body.cost.add(&costs.cost(op), 1.0);
                body.accesses.extend(accessed.iter().flat_map(|one| self.accesses(one)));
            }
            let needed = mlir::results(op).iter().any(|result| self.place(*result).is_some());
            if !needed && !self.around.contains(&id(op)) {
                continue;
            }
            match mlir::name(op) {
                "scf.if" => body.steps.extend(self.branch(op).map(Step::Branch)),
                "scf.for" => body.steps.extend(self.repeat(op).map(Step::Loop)),
                // Other regions run once.
                _ if op.region_count() > 0 => (0..op.region_count())
                    .flat_map(|region| mlir::blocks(op, region))
                    .for_each(|inner| self.block(inner, body)),
                _ => {
                    self.integer(op, &mut body.steps);
                }
            }
        }
    }

    fn region(&mut self, op: Op<'c>, region: usize) -> Body {
        let mut body = Body::default();
        mlir::blocks(op, region).into_iter().for_each(|block| self.block(block, &mut body));
        body
    }

    fn branch(&mut self, op: Op<'c>) -> Option<Branch> {
        let [condition] = self.places(&mlir::operands(op))?;
        let sides = [self.region(op, 0), self.region(op, 1)];
        let [yes, no] = [0, 1].map(|side| mlir::yields(op, side));
        let values = mlir::results(op).into_iter().zip(yes.into_iter().zip(no));
        let results = values.filter_map(|(result, (yes, no))| {
            Some((self.place(result)?, [self.place(yes)?, self.place(no)?]))
        });
        Some(Branch { condition, results: results.collect(), sides })
    }

    fn repeat(&mut self, op: Op<'c>) -> Option<Loop> {
        let operands = mlir::operands(op);
        let bounds = self.places(&operands)?;
        let arguments = mlir::entry(op).map(mlir::arguments).unwrap_or_default();
        let (counter, arguments) = arguments.split_first()?;
        let counter = self.place(*counter);
        let mut body = self.region(op, 0);
        if self.costs.is_some() {
            self.iteration(op, &mut body);
        }
        let inits = operands.get(3..).unwrap_or_default();
        let results = mlir::results(op);
        let handed = arguments.iter().zip(inits).zip(mlir::yields(op, 0)).zip(results);
        let carried = handed.filter_map(|(((argument, first), next), result)| {
            let [argument, first, next, result] =
                [*argument, *first, next, result].map(|value| self.place(value));
            Some(Carried { argument: argument?, first: first?, next: next?, result: result? })
        });
        Some(Loop { bounds, counter, carried: carried.collect(), body })
    }

    /// An operation on integers; nothing for others, whose values are not known.
    fn integer(&mut self, op: Op<'c>, steps: &mut Vec<Step>) -> Option<()> {
        let to = self.place(*mlir::results(op).first()?)?;
        let (name, operands) = (mlir::name(op), mlir::operands(op));
        let step = match name {
            "arith.constant" => Step::Constant(to, lane_values::constant(op)?),
            // Memory of a device begins at a multiple of every alignment that kernels ask for.
            "memref.extract_aligned_pointer_as_index" => Step::Constant(to, 0),
            "arith.select" => Step::Select(to, self.places(&operands)?),
            "arith.cmpi" => Step::Binary(to, lane_values::comparison(op)?, self.places(&operands)?),
            "memref.dim" => match self.extent(op)? {
                Ok(size) => Step::Same(to, self.place(size)?),
                Err(constant) => Step::Constant(to, constant),
            },
            "affine.apply" => return self.apply(op, to, steps),
            "gpu.global_id" => return global_id(self, op, to, steps),
            _ if lane_values::is_cast(name) => {
                let [from] = self.places(&operands)?;
                Step::Same(to, from)
            }
            _ if name.starts_with("gpu.") => match position(op)? {
                Ok(position) => Step::Position(to, position),
                Err(constant) => Step::Constant(to, constant),
            },
            _ => Step::Binary(to, lane_values::binary(name)?, self.places(&operands)?),
        };
        steps.push(step);
        Some(())
    }

    fn apply(&mut self, op: Op<'c>, to: Place, steps: &mut Vec<Step>) -> Option<()> {
        let map = mlir::attribute(op, "map").and_then(attribute::as_map)?;
        let operands: Vec<_> = mlir::operands(op).iter().map(|one| self.place(*one)).collect();
        let result = self.expression(map.result(0).ok()?, &operands, map.dim_count(), steps)?;
        steps.push(Step::Same(to, result));
        Some(())
    }

    fn expression(
        &mut self,
        expression: AffineExpr,
        operands: &[Option<Place>],
        dims: usize,
        steps: &mut Vec<Step>,
    ) -> Option<Place> {
        if expression.is_dim() {
            return operands.get(expression.dim_position()).copied().flatten();
        }
        if expression.is_symbol() {
            return operands.get(dims + expression.symbol_position()).copied().flatten();
        }
        if expression.is_constant() {
            let to = self.fresh();
            steps.push(Step::Constant(to, expression.constant_value()));
            return Some(to);
        }
        let left = self.expression(expression.lhs(), operands, dims, steps)?;
        let right = self.expression(expression.rhs(), operands, dims, steps)?;
        let to = self.fresh();
        steps.push(Step::Binary(to, lane_values::of_expression(expression)?, [left, right]));
        Some(to)
    }
}

/// What a value that iterations hand on is made of.
fn handed_on<'c>(op: Op<'c>, number: usize) -> Vec<Val<'c>> {
    let operands = mlir::operands(op);
    let inside = mlir::entry(op).map(mlir::arguments).unwrap_or_default();
    let ends = [operands.get(3 + number), mlir::yields(op, 0).get(number), inside.get(number + 1)]
        .map(|value| value.copied());
    let result = mlir::results(op).get(number).copied();
    operands.iter().take(3).copied().chain(ends.into_iter().flatten()).chain(result).collect()
}

/// Whether the result of an operation is a function of integers.
fn is_integer_operation(op: Op) -> bool {
    let name = mlir::name(op);
    matches!(name, "arith.select" | "arith.cmpi" | "affine.apply")
        || lane_values::is_cast(name)
        || lane_values::binary(name).is_some()
}

/// A number of a thread or block, or a constant.
fn position(op: Op) -> Option<Result<Position, i64>> {
    Some(Ok(match mlir::name(op) {
        "gpu.thread_id" => Position::Thread(lane_values::axis(op)?),
        "gpu.block_id" => Position::Block(lane_values::axis(op)?),
        "gpu.grid_dim" => Position::Blocks(lane_values::axis(op)?),
        "gpu.block_dim" => Position::Threads(lane_values::axis(op)?),
        "gpu.lane_id" => Position::Lane,
        "gpu.subgroup_id" => Position::Warp,
        "gpu.subgroup_size" => return Some(Err(WARP.into())),
        _ => return None,
    }))
}

/// The block's number times its threads, plus the thread's number.
fn global_id(slice: &mut Slice, op: Op, to: Place, steps: &mut Vec<Step>) -> Option<()> {
    let axis = lane_values::axis(op)?;
    let [block, threads, start, thread] = [(); 4].map(|()| slice.fresh());
    steps.push(Step::Position(block, Position::Block(axis)));
    steps.push(Step::Position(threads, Position::Threads(axis)));
    steps.push(Step::Position(thread, Position::Thread(axis)));
    steps.push(Step::Binary(start, lane_values::binary("arith.muli")?, [block, threads]));
    steps.push(Step::Binary(to, lane_values::binary("arith.addi")?, [start, thread]));
    Some(())
}
