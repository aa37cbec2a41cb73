//! Errors in the code of a kernel: loops, branches, buffers, launches.

use super::Planted;
use super::editor::Editor;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, AffineMap, Attribute, Type, ValueLike};
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

impl<'c> Editor<'c> {
    pub fn guard(&self, place: isize, open: bool) -> Planted {
        self.decide(self.nth("scf.if", place), open)
    }

    pub fn forget_condition(&self, place: isize) -> Planted {
        let body = self.nth("gpu.func", place).and_then(mlir::entry).map(mlir::operations);
        let guard = |op: &Op| mlir::name(*op) == "scf.if";
        self.decide(body.into_iter().flatten().find(guard), true)
    }

    fn decide(&self, branch: Option<Op<'c>>, open: bool) -> Planted {
        let Some(op) = branch else { return Ok(None) };
        let condition = self.constant(
            op,
            melior::ir::r#type::IntegerType::new(self.context, 1).into(),
            i64::from(open),
        )?;
        mlir::set_operand(op, 0, condition);
        Ok(Some(()))
    }

    pub fn diverge(&self, place: isize) -> Planted {
        let Some(op) = self.nth("gpu.barrier", place) else { return Ok(None) };
        let dimension = Attribute::parse(self.context, "#gpu<dim x>")
            .ok_or_else(|| Error::internal("no gpu dialect"))?;
        let thread =
            self.before(op, "gpu.thread_id", &[], self.index(), &[("dimension", dimension)])?;
        let limit = self.constant(op, self.index(), 7)?;
        let i1 = melior::ir::r#type::IntegerType::new(self.context, 1).into();
        let few = self.before(
            op,
            "arith.cmpi",
            &[thread, limit],
            i1,
            &[("predicate", attribute::integer(self.context, 2))],
        )?;
        self.replace_where(op, few)
    }

    /// The first buffers of one field with these two bindings, in one kernel.
    pub fn buffers(&self, first: &str, second: &str) -> Option<(Val<'c>, Val<'c>)> {
        self.all.iter().filter(|op| mlir::name(**op) == "gpu.func").find_map(|op| {
            let bound = attribute::as_array(mlir::attribute(*op, "arg_attrs")?)?;
            let arguments = mlir::arguments(mlir::entry(*op)?);
            let text = |argument: Attribute<'c>, name| {
                attribute::entry(argument, name).and_then(attribute::as_string)
            };
            let all: Vec<_> = bound
                .iter()
                .zip(arguments)
                .map(|(bound, value)| {
                    (text(*bound, "tiled.binding"), text(*bound, "tiled.name"), value)
                })
                .collect();
            all.iter().find_map(|(binding, field, value)| {
                let other =
                    all.iter().find(|(other, name, _)| *other == Some(second) && name == field)?;
                (*binding == Some(first)).then_some((*value, other.2))
            })
        })
    }

    /// The second shared buffer of a kernel becomes the first, seen through its own shape.
    pub fn alias(&self) -> Planted {
        let shared = |op: Op<'c>| {
            let arguments = mlir::entry(op).map(mlir::arguments).unwrap_or_default();
            arguments
                .into_iter()
                .filter(|value| value.r#type().to_string().contains("workgroup"))
                .collect::<Vec<_>>()
        };
        for op in self.all.iter().copied().filter(|op| mlir::name(*op) == "gpu.func") {
            let mut buffers = shared(op);
            buffers.sort_by_key(|buffer| std::cmp::Reverse(cells(&buffer.r#type().to_string())));
            let ([large, small, ..], Some(entry)) = (buffers.as_slice(), mlir::entry(op)) else {
                continue;
            };
            let Some(first) = mlir::operations(entry).first().copied() else { continue };
            let ty = small.r#type();
            let extents = extents(&ty.to_string());
            let strides: Vec<_> = (0..extents.len())
                .map(|place| extents.iter().skip(place + 1).product::<i64>())
                .collect();
            let list =
                |values: &[i64]| values.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
            let text = ty.to_string();
            let layout =
                text.replacen(", #gpu", &format!(", strided<[{}]>, #gpu", list(&strides)), 1);
            let layout = Type::parse(self.context, &layout)
                .ok_or_else(|| Error::internal(format!("{layout} is no type")))?;
            let attributes = [
                ("static_offsets", attribute::integers(self.context, &[0])),
                ("static_sizes", attribute::integers(self.context, &extents)),
                ("static_strides", attribute::integers(self.context, &strides)),
                ("operandSegmentSizes", attribute::integers32(self.context, &[1, 0, 0, 0])),
            ];
            let view =
                self.before(first, "memref.reinterpret_cast", &[*large], layout, &attributes)?;
            let same = self.before(first, "memref.cast", &[view], ty, &[])?;
            mlir::replace_uses(*small, same);
            return Ok(Some(()));
        }
        Ok(None)
    }

    /// A map of each kernel gives one less.
    pub fn less(&self, name: &str) -> Option<()> {
        let found = self.all.iter().filter(|op| mlir::attribute(**op, name).is_some());
        let mut planted = None;
        for op in found.copied().collect::<Vec<_>>() {
            let map = attribute::as_map(mlir::attribute(op, name)?)?;
            let less = map.result(0).ok()? + AffineExpr::constant(self.context, -1);
            let map = AffineMap::new(self.context, map.dim_count(), map.symbol_count(), &[less]);
            mlir::set_attribute(op, name, mlir::map_attribute(map));
            planted = Some(());
        }
        planted
    }

    /// A loop takes every second round only.
    pub fn double_step(&self, place: isize) -> Planted {
        let Some(op) = self.nth("scf.for", place) else { return Ok(None) };
        let Ok(step) = op.operand(2) else { return Ok(None) };
        let step = mlir::value(step);
        let doubled = self.before(op, "arith.addi", &[step, step], self.index(), &[])?;
        mlir::set_operand(op, 2, doubled);
        Ok(Some(()))
    }

    /// A loop hands on what it got, in place of a new value.
    pub fn stale(&self, place: isize, value: usize) -> Option<()> {
        let carries = |op| !mlir::results(op).is_empty();
        let body = mlir::entry(self.nth_where("scf.for", place, carries)?)?;
        let old = mlir::arguments(body).get(value + 1).copied()?;
        let last = mlir::operations(body).last().copied()?;
        last.operand(value).ok()?;
        mlir::set_operand(last, value, old);
        Some(())
    }

    /// A comparison takes its limit in, or leaves it out.
    pub fn wrong_limit(&self, place: isize) -> Option<()> {
        let op = self.nth("arith.cmpi", place)?;
        let predicate = attribute::as_integer(mlir::attribute(op, "predicate")?)?;
        // Those with and without the limit are neighbours: `<` is 2, and `<=` is 3.
        mlir::set_attribute(op, "predicate", attribute::integer(self.context, predicate ^ 1));
        Some(())
    }

    /// A mask of slots has half of its values.
    pub fn narrow(&self, place: isize) -> Planted {
        let Some(op) = self.nth_index("arith.andi", place) else { return Ok(None) };
        let Ok(mask) = op.operand(1) else { return Ok(None) };
        let one = self.constant(op, self.index(), 1)?;
        let half = self.before(op, "arith.shrui", &[mlir::value(mask), one], self.index(), &[])?;
        mlir::set_operand(op, 1, half);
        Ok(Some(()))
    }

    /// The kernels take another number for an argument: where a band begins, or their turn.
    pub fn shift_bound(&self, binding: &str, by: i64) -> Planted {
        let mut planted = None;
        for (kernel, argument) in self.bound(binding) {
            let Some(entry) = mlir::entry(kernel) else { continue };
            let Some(first) = mlir::operations(entry).first().copied() else { continue };
            let by = self.constant(first, self.index(), by)?;
            let shifted = self.before(first, "arith.addi", &[by, by], self.index(), &[])?;
            mlir::replace_uses(argument, shifted);
            // The constant and the sum come first now.
            if let Some(sum) = mlir::operations(entry).get(1) {
                mlir::set_operand(*sum, 0, argument);
            }
            planted = Some(());
        }
        Ok(planted)
    }

    pub fn swap_threads(&self) -> Option<()> {
        let (first, second) = (self.nth("gpu.thread_id", 0)?, self.nth("gpu.thread_id", 1)?);
        let (a, b) = (mlir::attribute(first, "dimension")?, mlir::attribute(second, "dimension")?);
        mlir::set_attribute(first, "dimension", b);
        mlir::set_attribute(second, "dimension", a);
        Some(())
    }
}

/// The extents in a type's text: `memref<18x34xf32, ...>`.
fn extents(ty: &str) -> Vec<i64> {
    let shape =
        ty.split_once('<').map_or("", |(_, rest)| rest).split(',').next().unwrap_or_default();
    shape.split('x').map_while(|part| part.parse().ok()).collect()
}

fn cells(ty: &str) -> i64 {
    extents(ty).iter().product()
}
