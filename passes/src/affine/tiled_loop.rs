//! A loop in time, tile by tile: copies, barriers, and the iterations between them.
//!
//! A thread loads its share of the next tile before it computes the current one, if it can hold it
//! in registers. Iterations that are no whole tile have code of their own. Copies that the loop
//! does not change are made once, before it.

use super::nest_kernel::{bounds, largest};
use super::shared_tiles::{Copy, TimeLoop};
use super::tiled_cells::{Offset, Tile};
use super::tiled_copy::Copying;
use super::tiled_fill::Walk;
use super::tiled_kernel::TiledCode;
use melior::ir::ValueLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::affine::Linear;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};

/// Iterations of one cell in a row without a branch.
const ITERATIONS: i64 = 8;

/// Elements of copies that a thread holds in registers at most.
const MOST_HELD: i64 = 40;

impl<'c, 'p> TiledCode<'c, 'p> {
    /// A loop in time, tile by tile.
    ///
    /// # Errors
    /// Internal ones.
    pub fn tiled(
        &mut self,
        builder: &Builder<'c>,
        number: usize,
        of: &'p TimeLoop<'c>,
    ) -> Result<(), Error> {
        let all = self.cells.numbers();
        let (lower, upper) = bounds(builder, of.op, |value| self.cells.value(0, value))?;
        let first = largest(builder, "arith.maxsi", &lower)?;
        let end = largest(builder, "arith.minsi", &upper)?;
        let any = builder.compare(Compare::Lt, first, end)?;
        let values = self
            .fitted
            .values
            .get(number)
            .ok_or_else(|| Error::internal("a loop without a tile"))?;
        let time = values.get(&of.at).copied().unwrap_or(1);
        let size = builder.index(time)?;
        let length = builder.binary("arith.subi", end, first)?;
        let length = builder.binary("arith.maxsi", length, builder.index(0)?)?;
        let rest = builder.binary("arith.remui", length, size)?;
        let whole = builder.binary("arith.subi", length, rest)?;
        let whole = builder.add(first, whole)?;
        let mut walk = self.walk(builder, number, of)?;
        self.load_registers(builder, of, &mut walk, any)?;
        let fetched = self.fetch(builder, &walk, (false, first))?;
        self.fill(builder, &walk, (false, first), &fetched)?;
        let fetched = self.fetch(builder, &walk, (true, first))?;
        let count = walk.tile.as_ref().map_or(0, |tile| tile.stored(&all).len());
        let stored = walk.tile.as_ref().map(|tile| tile.stored(&all)).unwrap_or_default();
        let initial = [stored, fetched].concat();
        let last = builder.carry((first, whole, size), &initial, |builder, start, carried| {
            let (stored, fetched) = carried.split_at(count.min(carried.len()));
            set(&mut walk, &all, stored);
            self.fill(builder, &walk, (true, start), fetched)?;
            let next = builder.add_constant(start, time)?;
            let next = self.fetch(builder, &walk, (true, next))?;
            self.compute_tile(builder, &mut walk, start, None)?;
            let stored = walk.tile.as_ref().map(|tile| tile.stored(&all)).unwrap_or_default();
            Ok([stored, next].concat())
        })?;
        let (stored, fetched) = last.split_at(count.min(last.len()));
        set(&mut walk, &all, stored);
        let remains = builder.compare(Compare::Lt, whole, end)?;
        let types: Vec<_> = stored.iter().map(|value| value.r#type()).collect();
        let then = |builder: &Builder<'c>| {
            self.fill(builder, &walk, (true, whole), fetched)?;
            self.compute_tile(builder, &mut walk, whole, Some(rest))?;
            Ok(walk.tile.as_ref().map(|tile| tile.stored(&all)).unwrap_or_default())
        };
        let made = builder.choose(remains, &types, then, |_| Ok(stored.to_vec()))?;
        set(&mut walk, &all, &made);
        self.store_registers(builder, of, &walk, any)
    }

    /// What the tiles of a loop have in common.
    fn walk(
        &self,
        builder: &Builder<'c>,
        number: usize,
        of: &'p TimeLoop<'c>,
    ) -> Result<Walk<'c, 'p>, Error> {
        let function = self.cells.function;
        let missing = || Error::internal("a tile without its parts");
        let values = self.fitted.values.get(number).ok_or_else(missing)?;
        let (mut thread, mut threads) = (builder.index(0)?, 1);
        for axis in &self.axes {
            thread = builder.add(thread, builder.multiply_constant(axis.thread, threads)?)?;
            threads *= axis.threads;
        }
        if let Some(copier) = self.copier {
            thread = builder.add(thread, builder.multiply_constant(copier, threads)?)?;
            threads *= self.fitted.copiers;
        }
        let (mut copyings, mut corners) = (Vec::new(), Vec::new());
        let buffers = self.buffers.get(number).ok_or_else(missing)?;
        let shapes = self.fitted.copies.get(number).ok_or_else(missing)?;
        for ((copy, buffer), shape) in of.copies.iter().zip(buffers).zip(shapes) {
            let array = function.text.arrays.get(copy.array).copied().ok_or_else(missing)?;
            let array = self.cells.value(0, array)?;
            let dim = |place| {
                let place = builder.index(i64::try_from(place).unwrap_or(i64::MAX))?;
                builder.value("memref.dim", &[array, place], builder.index_type(), &[])
            };
            let cells = (0..copy.indices.len()).map(dim).collect::<Result<_, Error>>()?;
            let (extents, order) = (shape.extents.clone(), shape.order.clone());
            copyings.push(Copying {
                array,
                cells,
                buffer: *buffer,
                extents,
                order,
                thread,
                threads,
            });
            corners.push(self.corner(builder, of, copy, values)?);
        }
        let moves = |copy: &Copy| copy.depends_on(function.nest, of.at);
        let moving: Vec<bool> = of.copies.iter().map(moves).collect();
        let held = [false, true].map(|moves| {
            let own = copyings.iter().zip(&moving).filter(|(_, moving)| **moving == moves);
            own.map(|(copying, _)| copying.shares()).sum::<i64>() <= MOST_HELD
        });
        let tile = Some(Tile {
            of,
            values,
            buffers: buffers.clone(),
            orders: shapes.iter().map(|shape| shape.order.clone()).collect(),
            registers: Vec::new(),
            offsets: BTreeMap::new(),
        });
        Ok(Walk { copyings, moving, corners, number, tile, held })
    }

    /// Loads the registers of each cell that has anything to do.
    fn load_registers(
        &mut self,
        builder: &Builder<'c>,
        of: &TimeLoop<'c>,
        walk: &mut Walk<'c, '_>,
        any: Val<'c>,
    ) -> Result<(), Error> {
        let mut registers = Vec::new();
        for register in &of.registers {
            let access = self.cells.function.text.accesses.get(register.access);
            let op = access.ok_or_else(|| Error::internal("an unknown access"))?.op;
            let mut of_cells = Vec::new();
            for (cell, runs) in self.runs.iter().enumerate() {
                let runs = builder.both(*runs, any)?;
                let element = self.element_type(op)?;
                let load = |builder: &Builder<'c>| {
                    let (array, indices) = self.element(builder, register.access, cell)?;
                    Ok(vec![builder.load(array, &indices)?])
                };
                let made = builder
                    .choose(runs, &[element], load, |builder| Ok(vec![builder.zero(element)?]))?;
                of_cells.extend(made);
            }
            registers.push(of_cells);
        }
        if let Some(tile) = &mut walk.tile {
            tile.registers = registers;
        }
        Ok(())
    }

    /// The array and the indices of an access whose index no loop in time changes.
    fn element(
        &self,
        builder: &Builder<'c>,
        access: usize,
        cell: usize,
    ) -> Result<(Val<'c>, Vec<Val<'c>>), Error> {
        let function = self.cells.function;
        let missing = || Error::internal("an unknown access");
        let reference = &function.text.accesses.get(access).ok_or_else(missing)?.reference;
        let array = function.text.arrays.get(reference.array).copied().ok_or_else(missing)?;
        let unknowns = || function.text.sizes.iter().chain(&function.text.counters);
        let index = |index: &Linear| {
            let mut sum = builder.index(index.constant)?;
            for (unknown, factor) in unknowns().zip(&index.coefficients).filter(|(_, f)| **f != 0) {
                let value = self.cells.value(cell, *unknown)?;
                sum = builder.add(sum, builder.multiply_constant(value, *factor)?)?;
            }
            Ok(sum)
        };
        let indices = reference.indices.iter().map(index).collect::<Result<_, Error>>()?;
        Ok((self.cells.value(cell, array)?, indices))
    }

    fn element_type(&self, op: mlir::Op<'c>) -> Result<melior::ir::Type<'c>, Error> {
        let (results, operands) = (mlir::results(op), mlir::operands(op));
        let value = results.first().or_else(|| operands.first());
        value.map(|value| value.r#type()).ok_or_else(|| Error::internal("an access of nothing"))
    }

    /// Stores the registers that the loop stores to, of each cell that has anything to do.
    fn store_registers(
        &self,
        builder: &Builder<'c>,
        of: &TimeLoop<'c>,
        walk: &Walk<'c, '_>,
        any: Val<'c>,
    ) -> Result<(), Error> {
        let registers = walk.tile.as_ref().map(|tile| tile.registers.as_slice());
        let registers = of.registers.iter().zip(registers.unwrap_or_default());
        for (register, of_cells) in registers.filter(|(register, _)| register.stored) {
            for (cell, (runs, value)) in self.runs.iter().zip(of_cells).enumerate() {
                let runs = builder.both(*runs, any)?;
                builder.when(runs, |builder| {
                    let (array, indices) = self.element(builder, register.access, cell)?;
                    builder.store(*value, array, &indices)
                })?;
            }
        }
        Ok(())
    }

    /// The iterations of a tile, all of them or some.
    fn compute_tile(
        &mut self,
        builder: &Builder<'c>,
        walk: &mut Walk<'c, 'p>,
        start: Val<'c>,
        some: Option<Val<'c>>,
    ) -> Result<(), Error> {
        let Some(of) = walk.tile.as_ref().map(|tile| tile.of) else { return Ok(()) };
        let time = self.fitted.values.get(walk.number).and_then(|values| values.get(&of.at));
        let time = time.copied().unwrap_or(1);
        let all = self.cells.numbers();
        let group = match some {
            None if of.uniform && all.len() > 1 => time,
            None if of.uniform => (1..=ITERATIONS).rev().find(|n| time % n == 0).unwrap_or(1),
            _ => 1,
        };
        let count = match some {
            Some(count) => count,
            None => builder.index(time)?,
        };
        let conditions = match (of.uniform, self.copier) {
            (true, None) => {
                return self.iterations(builder, walk, (start, count, group), &all);
            }
            (true, Some(_)) => vec![(all, self.computes(builder)?)],
            (false, _) => all.iter().map(|cell| vec![*cell]).zip(self.runs.clone()).collect(),
        };
        for (cells, runs) in conditions {
            let before = walk.tile.as_ref().map(|tile| tile.stored(&cells)).unwrap_or_default();
            let types: Vec<_> = before.iter().map(|value| value.r#type()).collect();
            let then = |builder: &Builder<'c>| {
                self.iterations(builder, walk, (start, count, group), &cells)?;
                Ok(walk.tile.as_ref().map(|tile| tile.stored(&cells)).unwrap_or_default())
            };
            let made = builder.choose(runs, &types, then, |_| Ok(before.clone()))?;
            set(walk, &cells, &made);
        }
        Ok(())
    }

    /// So many iterations of some cells, as a loop over groups that carries their registers.
    fn iterations(
        &mut self,
        builder: &Builder<'c>,
        walk: &mut Walk<'c, 'p>,
        (start, count, group): (Val<'c>, Val<'c>, i64),
        cells: &[usize],
    ) -> Result<(), Error> {
        let initial = walk.tile.as_ref().map(|tile| tile.stored(cells)).unwrap_or_default();
        let bounds = (builder.index(0)?, count, builder.index(group)?);
        let last = builder.carry(bounds, &initial, |builder, iteration, carried| {
            set(walk, cells, carried);
            self.unrolled(builder, walk, (start, Some(iteration)), group, cells)?;
            Ok(walk.tile.as_ref().map(|tile| tile.stored(cells)).unwrap_or_default())
        })?;
        set(walk, cells, &last);
        Ok(())
    }

    /// A group of iterations one after the other.
    fn unrolled(
        &mut self,
        builder: &Builder<'c>,
        walk: &mut Walk<'c, 'p>,
        (start, first): (Val<'c>, Option<Val<'c>>),
        group: i64,
        cells: &[usize],
    ) -> Result<(), Error> {
        (0..group).try_for_each(|constant| {
            self.iteration(builder, walk, (start, Offset { value: first, constant }), cells)
        })
    }

    fn iteration(
        &mut self,
        builder: &Builder<'c>,
        walk: &mut Walk<'c, 'p>,
        (start, offset): (Val<'c>, Offset<'c>),
        cells: &[usize],
    ) -> Result<(), Error> {
        let Some(tile) = &mut walk.tile else { return Ok(()) };
        let of = tile.of;
        let body = mlir::entry(of.op).ok_or_else(|| Error::internal("a loop without a body"))?;
        tile.offsets.insert(of.at, offset);
        let mut counter = builder.add_constant(start, offset.constant)?;
        if let Some(value) = offset.value {
            counter = builder.add(counter, value)?;
        }
        if let Some(argument) = mlir::arguments(body).first() {
            self.cells.set(cells, *argument, counter, &BTreeSet::new());
        }
        self.cells.run(builder, &mlir::operations(body), cells, &mut walk.tile)
    }
}

fn set<'c>(walk: &mut Walk<'c, '_>, cells: &[usize], values: &[Val<'c>]) {
    if let Some(tile) = &mut walk.tile {
        tile.set_stored(cells, values);
    }
}
