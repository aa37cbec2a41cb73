//! Operations of a function of affine loops for several cells of a thread: iterations of the loops
//! in space that the thread has.
//!
//! An operation that depends on the counters of some axes alone is built once for all cells that
//! have these counters in common. In a product of matrices, a thread with 8 x 8 cells loads 8
//! elements of each matrix.

use super::launches::Function;
use super::nest_kernel::{bounds, largest, mapped};
use super::shared_tiles::{Home, TimeLoop, counters, factors};
use super::tile_shape::Buffer;
use melior::ir::operation::OperationLike;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// An index as a value and a constant.
#[derive(Clone, Copy, Debug)]
pub struct Offset<'c> {
    /// The value, if there is one.
    pub value: Option<Val<'c>>,
    /// What is added to it.
    pub constant: i64,
}

/// An iteration of the loops in space.
pub struct Cell<'c> {
    /// Its number among those of its thread, along each axis.
    pub place: Vec<i64>,
    /// Its counters without those of the block's first cell, along each axis.
    pub offsets: Vec<Offset<'c>>,
    /// Values of the function for this cell, by their keys.
    pub values: BTreeMap<usize, Val<'c>>,
}

/// The cells of a thread.
pub struct Cells<'c, 'p> {
    /// The function.
    pub function: &'p Function<'c, 'p>,
    /// The axis of each loop in space.
    pub axes: &'p BTreeMap<usize, usize>,
    /// Values that all cells have in common, by their keys.
    pub common: BTreeMap<usize, Val<'c>>,
    /// The cells.
    pub all: Vec<Cell<'c>>,
    /// The axes whose counters the values of cells depend on, by the values' keys.
    pub depends: BTreeMap<usize, BTreeSet<usize>>,
}

/// A tile of a loop in time.
pub struct Tile<'c, 't> {
    /// The loop.
    pub of: &'t TimeLoop<'c>,
    /// How many values each counter has in a tile.
    pub values: &'t BTreeMap<usize, i64>,
    /// The shared buffers of the copies.
    pub buffers: Vec<Val<'c>>,
    /// The dimensions of the arrays in the order of the buffers.
    pub orders: Vec<Vec<usize>>,
    /// The elements in registers, of each cell.
    pub registers: Vec<Vec<Val<'c>>>,
    /// The counters of the loop and of those within it, from the tile's first iteration on.
    pub offsets: BTreeMap<usize, Offset<'c>>,
}

impl<'c> Tile<'c, '_> {
    /// The registers of some cells that the loop stores to.
    pub fn stored(&self, cells: &[usize]) -> Vec<Val<'c>> {
        let registers = self.of.registers.iter().zip(&self.registers);
        let stored = registers.filter(|(register, _)| register.stored);
        stored.flat_map(|(_, of)| cells.iter().filter_map(|cell| of.get(*cell).copied())).collect()
    }

    /// Sets what [`stored`](Self::stored) returns.
    pub fn set_stored(&mut self, cells: &[usize], values: &[Val<'c>]) {
        let mut values = values.iter();
        let registers = self.of.registers.iter().zip(&mut self.registers);
        for (_, of) in registers.filter(|(register, _)| register.stored) {
            for cell in cells {
                if let (Some(slot), Some(value)) = (of.get_mut(*cell), values.next()) {
                    *slot = *value;
                }
            }
        }
    }
}

impl<'c> Cells<'c, '_> {
    /// The number of every cell.
    pub fn numbers(&self) -> Vec<usize> {
        (0..self.all.len()).collect()
    }

    /// A value of the function for a cell.
    pub fn value(&self, cell: usize, value: Val<'c>) -> Result<Val<'c>, Error> {
        let key = mlir::key(value);
        let own = self.all.get(cell).and_then(|cell| cell.values.get(&key));
        let found = own.or_else(|| self.common.get(&key)).copied();
        found.ok_or_else(|| Error::internal(format!("a cell without the value {value}")))
    }

    /// Sets a value of the function for some cells, which depends on counters of some axes.
    pub fn set(&mut self, cells: &[usize], of: Val<'c>, to: Val<'c>, depends: &BTreeSet<usize>) {
        for cell in cells {
            if let Some(cell) = self.all.get_mut(*cell) {
                cell.values.insert(mlir::key(of), to);
            }
        }
        self.depends.insert(mlir::key(of), depends.clone());
    }

    fn every_axis(&self) -> BTreeSet<usize> {
        self.axes.values().copied().collect()
    }

    /// Cells that have the counters of some axes in common.
    fn groups(&self, cells: &[usize], axes: &BTreeSet<usize>) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<Vec<i64>, Vec<usize>> = BTreeMap::new();
        for number in cells {
            let Some(cell) = self.all.get(*number) else { continue };
            let place = axes.iter().filter_map(|axis| cell.place.get(*axis).copied()).collect();
            groups.entry(place).or_default().push(*number);
        }
        groups.into_values().collect()
    }

    /// Builds operations for some cells, in the order of the text for each. In a tile, accesses
    /// find their elements where the tile has them.
    ///
    /// # Errors
    /// Internal ones.
    pub fn run(
        &mut self,
        builder: &Builder<'c>,
        ops: &[Op<'c>],
        cells: &[usize],
        tile: &mut Option<Tile<'c, '_>>,
    ) -> Result<(), Error> {
        for op in ops.iter().filter(|op| mlir::name(**op) != "affine.yield") {
            let builder = Builder { location: op.location(), ..*builder };
            match mlir::name(*op) {
                "affine.for" => self.repeat(&builder, *op, cells, tile)?,
                "affine.load" | "affine.store" => self.access(&builder, *op, cells, tile)?,
                _ => self.compute(&builder, *op, cells)?,
            }
        }
        Ok(())
    }

    /// An operation without accesses and regions.
    fn compute(&mut self, builder: &Builder<'c>, op: Op<'c>, cells: &[usize]) -> Result<(), Error> {
        let operands = mlir::operands(op);
        // A size is an argument of the kernel.
        if mlir::results(op).iter().all(|result| self.common.contains_key(&mlir::key(*result))) {
            return Ok(());
        }
        let of = |operand: &Val<'c>| self.depends.get(&mlir::key(*operand)).into_iter().flatten();
        let depends: BTreeSet<usize> = operands.iter().flat_map(of).copied().collect();
        for group in self.groups(cells, &depends) {
            let first = group.first().copied().unwrap_or(0);
            let mut values = BTreeMap::new();
            for operand in &operands {
                values.insert(mlir::key(*operand), self.value(first, *operand)?);
            }
            mlir::copy_to(op, builder.block, &mut values);
            for result in mlir::results(op) {
                if let Some(value) = values.get(&mlir::key(result)) {
                    self.set(&group, result, *value, &depends);
                }
            }
        }
        Ok(())
    }

    fn access(
        &mut self,
        builder: &Builder<'c>,
        op: Op<'c>,
        cells: &[usize],
        tile: &mut Option<Tile<'c, '_>>,
    ) -> Result<(), Error> {
        let accesses = &self.function.text.accesses;
        let place = accesses.iter().position(|access| access.op == op);
        let place = place.ok_or_else(|| Error::internal("an access that was not read"))?;
        let home = tile.as_ref().and_then(|tile| tile.of.homes.get(&place));
        let stores = mlir::name(op) == "affine.store";
        match (home.cloned().unwrap_or(Home::Memory), tile) {
            (Home::Register(number), Some(tile)) => {
                let every = self.every_axis();
                for cell in cells {
                    let slot = tile.registers.get_mut(number).and_then(|of| of.get_mut(*cell));
                    let slot = slot.ok_or_else(|| Error::internal("a cell without a register"))?;
                    match (stores, mlir::operands(op).first(), mlir::results(op).first()) {
                        (true, Some(stored), _) => *slot = self.value(*cell, *stored)?,
                        (false, _, Some(loaded)) => self.set(&[*cell], *loaded, *slot, &every),
                        _ => return Err(Error::internal("an access of nothing")),
                    }
                }
                Ok(())
            }
            // All threads read the same element, and so do all cells.
            (Home::Constant, Some(_)) => {
                let first = cells.first().copied().unwrap_or(0);
                let (array, indices) = self.element(builder, op, first)?;
                let loaded = builder.load(array, &indices)?;
                for result in mlir::results(op) {
                    self.set(cells, result, loaded, &BTreeSet::new());
                }
                Ok(())
            }
            (Home::Copied(number, shifts), Some(tile)) => {
                self.load_copy(builder, op, cells, (tile, number, &shifts))
            }
            _ => cells.iter().try_for_each(|cell| self.memory(builder, op, *cell)),
        }
    }

    /// A load or store in global memory.
    fn memory(&mut self, builder: &Builder<'c>, op: Op<'c>, cell: usize) -> Result<(), Error> {
        let operands = mlir::operands(op);
        let stores = mlir::name(op) == "affine.store";
        let (array, indices) = self.element(builder, op, cell)?;
        match (stores, operands.first(), mlir::results(op).first()) {
            (true, Some(stored), _) => builder.store(self.value(cell, *stored)?, array, &indices),
            (false, _, Some(result)) => {
                let loaded = builder.load(array, &indices)?;
                let every = self.every_axis();
                self.set(&[cell], *result, loaded, &every);
                Ok(())
            }
            _ => Err(Error::internal("an access of nothing")),
        }
    }

    /// The array and the indices of an access of a cell.
    fn element(
        &self,
        builder: &Builder<'c>,
        op: Op<'c>,
        cell: usize,
    ) -> Result<(Val<'c>, Vec<Val<'c>>), Error> {
        let memref = usize::from(mlir::name(op) == "affine.store");
        let operands = mlir::operands(op);
        let array = operands.get(memref).copied();
        let array = array.ok_or_else(|| Error::internal("an access without a memref"))?;
        let value = |value| self.value(cell, value);
        let indices = mapped(builder, op, "map", (memref + 1, operands.len()), value)?;
        Ok((self.value(cell, array)?, indices))
    }

    fn load_copy(
        &mut self,
        builder: &Builder<'c>,
        op: Op<'c>,
        cells: &[usize],
        (tile, number, shifts): (&Tile<'c, '_>, usize, &[i64]),
    ) -> Result<(), Error> {
        let nest = self.function.nest;
        let copy = tile.of.copies.get(number).zip(tile.buffers.get(number));
        let copy = copy.zip(tile.orders.get(number));
        let ((copy, buffer), order) = copy.ok_or_else(|| Error::internal("an unknown copy"))?;
        let all = copy.indices.iter().flat_map(|index| factors(nest, index));
        let axes: BTreeSet<usize> = all.filter_map(|(at, _)| self.axes.get(&at).copied()).collect();
        for group in self.groups(cells, &axes) {
            let cell = group.first().and_then(|first| self.all.get(*first));
            let cell = cell.ok_or_else(|| Error::internal("a group without a cell"))?;
            let mut indices = Vec::new();
            for (index, shift) in copy.indices.iter().zip(shifts) {
                let (mut constant, mut sum) = (*shift, None);
                for (at, factor) in factors(nest, index) {
                    let offset = match self.axes.get(&at) {
                        Some(axis) => cell.offsets.get(*axis),
                        None => tile.offsets.get(&at),
                    };
                    // The counter of the host's loop is the same in the whole launch.
                    let Some(offset) = offset else { continue };
                    constant += factor * offset.constant;
                    if factor < 0 {
                        let values = tile.values.get(&at).copied().unwrap_or(1);
                        constant -= factor * (values - 1);
                    }
                    let Some(value) = offset.value else { continue };
                    let term = builder.multiply_constant(value, factor)?;
                    sum = Some(match sum {
                        Some(sum) => builder.add(sum, term)?,
                        None => term,
                    });
                }
                indices.push(match sum {
                    Some(sum) => builder.add_constant(sum, constant)?,
                    None => builder.index(constant)?,
                });
            }
            let indices = Buffer::ordered(order, &indices);
            let loaded = builder.load(*buffer, &indices)?;
            for result in mlir::results(op) {
                self.set(&group, result, loaded, &axes);
            }
        }
        Ok(())
    }

    /// A loop within a thread, which carries the registers that it may store to.
    fn repeat(
        &mut self,
        builder: &Builder<'c>,
        op: Op<'c>,
        cells: &[usize],
        tile: &mut Option<Tile<'c, '_>>,
    ) -> Result<(), Error> {
        let first = cells.first().copied().unwrap_or(0);
        let at = counters(self.function, op).first().copied();
        let at = at.ok_or_else(|| Error::internal("a counter of no loop"))?;
        let step = self.function.nest.loops.get(at).map_or(1, |found| found.step);
        let value = |value| self.value(first, value);
        let (lower, upper) = bounds(builder, op, value)?;
        let lower = largest(builder, "arith.maxsi", &lower)?;
        let upper = largest(builder, "arith.minsi", &upper)?;
        let constant = tile.as_ref().and_then(|tile| tile.of.within.get(&at).copied().flatten());
        let body = mlir::entry(op).ok_or_else(|| Error::internal("a loop without a body"))?;
        let initial = tile.as_ref().map(|tile| tile.stored(cells)).unwrap_or_default();
        let step = builder.index(step)?;
        let last = builder.carry((lower, upper, step), &initial, |builder, counter, carried| {
            if let Some(tile) = tile {
                tile.set_stored(cells, carried);
                if let Some((start, _)) = constant {
                    let offset = Offset { value: Some(counter), constant: -start };
                    tile.offsets.insert(at, offset);
                }
            }
            if let Some(argument) = mlir::arguments(body).first() {
                self.set(cells, *argument, counter, &BTreeSet::new());
            }
            self.run(builder, &mlir::operations(body), cells, tile)?;
            Ok(tile.as_ref().map(|tile| tile.stored(cells)).unwrap_or_default())
        })?;
        if let Some(tile) = tile {
            tile.set_stored(cells, &last);
        }
        Ok(())
    }
}
