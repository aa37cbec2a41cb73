//! Registers that the values of a loop take, counted as live ranges in the text.
//!
//! Constants are operands of instructions, conditions are predicates, and views of an array are the
//! array's pointer: none of these takes a register here. Neither do indices that an iteration
//! computes: they become offsets of the counter. Indices from before a loop count as one register,
//! whatever their width: of 64 bits, most upper halves are those of a few addresses.
//!
//! Hand-worked: a loop that carries an `f32` sum, loads two elements of `f32` at its counter and
//! adds their product to the sum. The counter, its end, the sum and two pointers are held from
//! iteration to iteration. An iteration has two loaded elements at once.

use melior::ir::ValueLike;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{MemRefType, TypeLike};
use std::collections::BTreeMap;
use stencil_dialects::mlir::{self, Op, Val};

/// Registers of 32 bits at a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoopRegisters {
    /// Of values that are there in every iteration: made before and needed in the loop or behind
    /// it, carried, and the counter.
    pub held: i64,
    /// Of values that an iteration makes, at the place where they are most.
    pub body: i64,
}

/// The values of a kernel, with the places in the text where they are made and last used.
pub struct LiveValues<'c> {
    order: Vec<Op<'c>>,
    /// By the keys of values.
    ranges: BTreeMap<usize, Range>,
}

/// A value: its registers, whether it is an index, and the places where it is made and used.
struct Range {
    words: i64,
    index: bool,
    made: usize,
    used: Vec<usize>,
}

impl Range {
    fn of(value: Val, made: usize) -> Self {
        let index = value.r#type().is_index();
        Self { words: words(value), index, made, used: Vec::new() }
    }
}

impl<'c> LiveValues<'c> {
    /// Reads a kernel.
    pub fn of(kernel: Op<'c>) -> Self {
        let order = mlir::walk(kernel);
        let mut live = Self { order, ranges: BTreeMap::new() };
        let mut views: BTreeMap<usize, usize> = BTreeMap::new();
        for (place, op) in live.order.iter().enumerate() {
            for operand in mlir::operands(*op) {
                let key = views.get(&mlir::key(operand)).copied().unwrap_or(mlir::key(operand));
                if let Some(range) = live.ranges.get_mut(&key) {
                    range.used.push(place);
                }
            }
            let is_view = mlir::name(*op).starts_with("memref.") && op.region_count() == 0;
            for result in mlir::results(*op) {
                let source = mlir::operands(*op).first().copied();
                match source.filter(|_| is_view && MemRefType::try_from(result.r#type()).is_ok()) {
                    Some(source) => {
                        let root = views.get(&mlir::key(source)).copied();
                        views.insert(mlir::key(result), root.unwrap_or(mlir::key(source)));
                    }
                    None if mlir::name(*op) == "arith.constant" => {}
                    None => {
                        let range = Range::of(result, place);
                        live.ranges.insert(mlir::key(result), range);
                    }
                }
            }
            for region in 0..op.region_count() {
                for argument in mlir::blocks(*op, region).into_iter().flat_map(mlir::arguments) {
                    let range = Range::of(argument, place);
                    live.ranges.insert(mlir::key(argument), range);
                }
            }
        }
        live
    }

    /// The registers of a loop.
    pub fn registers(&self, of: Op<'c>) -> Option<LoopRegisters> {
        let (first, last) = self.span(of)?;
        let mut around = Vec::new();
        let mut parent = of.parent_operation().map(mlir::op);
        while let Some(op) = parent {
            if mlir::name(op) == "scf.for" {
                around.push(self.span(op)?);
            }
            parent = op.parent_operation().map(mlir::op);
        }
        let mut changes: BTreeMap<usize, i64> = BTreeMap::new();
        let (mut held, mut arguments) = (0, 0);
        for range in self.ranges.values() {
            if range.made < first {
                // A value from before a loop around this one is needed again in its next iteration.
                let needed = |place: &usize| {
                    *place >= first
                        || around.iter().any(|(start, end)| {
                            range.made < *start && (*start..=*end).contains(place)
                        })
                };
                held += if range.used.iter().any(needed) { range.words } else { 0 };
            } else if range.made <= last {
                let end = range.used.iter().max().copied().unwrap_or(range.made);
                if range.made == first {
                    arguments += range.words;
                } else if !range.index {
                    *changes.entry(range.made).or_default() += range.words;
                    *changes.entry(end.min(last + 1)).or_default() -= range.words;
                }
            }
        }
        // Results of the loop are the values that it carries.
        let results: i64 = mlir::results(of)
            .into_iter()
            .filter_map(|result| self.ranges.get(&mlir::key(result)))
            .map(|range| range.words)
            .sum();
        let (mut live, mut body) = (0_i64, 0_i64);
        for change in changes.into_values() {
            live += change;
            body = body.max(live);
        }
        Some(LoopRegisters { held: held + arguments - results, body })
    }

    /// The places of an operation and of the last one in it.
    fn span(&self, op: Op<'c>) -> Option<(usize, usize)> {
        let first = self.order.iter().position(|other| *other == op)?;
        Some((first, first + mlir::walk(op).len() - 1))
    }
}

/// Registers of a value.
fn words(value: Val) -> i64 {
    let ty = value.r#type();
    if MemRefType::try_from(ty).is_ok() {
        let ty = ty.to_string();
        return if ty.contains("workgroup") { 0 } else { 2 };
    }
    if ty.is_index() {
        return 1;
    }
    let cells = mlir::vector_cells(ty).max(1);
    // The text of a vector ends with its element: `vector<4xf32>`.
    let text = ty.to_string();
    let digits = text.trim_end_matches('>').rsplit(|c: char| !c.is_ascii_digit()).next();
    match mlir::bit_width(ty).map(i64::from).or_else(|| digits?.parse().ok()) {
        None | Some(1) => 0,
        Some(bits) => bits.saturating_mul(cells).saturating_add(31) / 32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_products_holds_its_sum_and_two_pointers() {
        let context = stencil_dialects::context().unwrap();
        let text = "gpu.module @m { gpu.func @f(%a: memref<8xf32>, %b: memref<8xf32>, %n: index) \
                    kernel {
            %c0 = arith.constant 0 : index
            %c1 = arith.constant 1 : index
            %zero = arith.constant 0.0 : f32
            %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> f32 {
              %x = memref.load %a[%i] : memref<8xf32>
              %y = memref.load %b[%i] : memref<8xf32>
              %p = arith.mulf %x, %y : f32
              %t = arith.addf %s, %p : f32
              scf.yield %t : f32
            }
            memref.store %sum, %b[%c0] : memref<8xf32>
            gpu.return
          } }";
        let module = mlir::parse_module(&context, text, "kernel.mlir").unwrap();
        let all = mlir::walk(mlir::module_op(&module));
        let find = |name| all.iter().copied().find(|op| mlir::name(*op) == name).unwrap();
        let live = LiveValues::of(find("gpu.func"));
        let found = live.registers(find("scf.for"));
        assert_eq!(found, Some(LoopRegisters { held: 7, body: 2 }));
    }
}
