//! The work of a block on its tile, as far as it is known at compile time: the pipeline of the tile
//! kernel, the first iteration, row and column, and the rows that go through shared memory.

use super::lower_stream::decline;
use super::pipeline::{self, Graph, Pipeline, Read, Row, Value, Window};
use super::{registers, selects};
use crate::analysis::footprint;
use crate::kernel::block_limits::steps_per_launch;
use crate::kernel::lanes::{self, WARP};
use crate::kernel::pieces;
use crate::subject::Subject;
use melior::ir::Type;
use std::collections::BTreeMap;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Halo, Kernel, TileOp};

/// The cells of a plane that a lane holds, and how lanes make up a block. Planes, rows and columns
/// are relative to the tile's first cell.
pub struct Layout<'c> {
    /// Lags and windows, one for each tile value.
    pub pipeline: Pipeline,
    /// Registers that a lane may take.
    pub limit: i64,
    /// The types of the values' cells.
    pub elements: Vec<Type<'c>>,
    /// Cells per lane in a row.
    pub width: i64,
    /// Rows per lane.
    pub rows_per_lane: i64,
    /// Lanes side by side along a row.
    pub lanes: i64,
    /// Rows of lanes.
    pub parts: i64,
    /// Cells before the tile's first column, a multiple of `width`.
    pub left: i64,
    /// Rows before the tile's first.
    pub top: i64,
    /// The first iteration's plane.
    pub first: i64,
    /// Iterations beyond the tile's planes.
    pub fill: i64,
    /// The numbers of tile values in the pipeline, by [`mlir::key`].
    pub values: BTreeMap<usize, usize>,
    /// Whether the tile goes on beyond the grid as the grid repeated.
    pub wraps: bool,
    /// Whether reads near the grid's rim select among cells by boundary rules.
    pub selects: bool,
    /// Point functions that may run where no piece covers the cell, by name.
    pub total: BTreeMap<&'c str, bool>,
}

/// The most registers for the cells of a lane, where reads select by boundary rules. Beyond this
/// limit and the next one, MLIR and LLVM take minutes for a kernel, which would spill.
const MOST_REGISTERS: i64 = 512;
/// The same, where there are no such rules.
const MOST_REGISTERS_WITHOUT: i64 = 1024;

/// The numbers of tile values in a graph by [`mlir::key`], and the types of their cells.
type Values<'c> = (BTreeMap<usize, usize>, Vec<Type<'c>>);

/// The tile graph of a kernel as the pipeline analysis sees it, and its values.
fn graph<'c>(
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    lane: (i64, i64),
) -> Result<(Graph, Values<'c>), Error> {
    let mut graph = Graph { split: kernel.split, ..Graph::empty(lane) };
    let mut elements = Vec::new();
    let mut numbers = BTreeMap::new();
    for (operation, op) in kernel.body.iter().enumerate() {
        let mut produce = |graph: &mut Graph, field: &str, tile| -> Result<(), Error> {
            numbers.insert(mlir::key(tile), graph.values.len());
            let element = program.field(field)?.element;
            graph.values.push(Value { operation, words: lanes::words(element) });
            elements.push(element);
            Ok(())
        };
        match op {
            TileOp::Load { field, tile, .. } => produce(&mut graph, field, *tile)?,
            TileOp::Apply(apply) => {
                for (field, tile) in &apply.outputs {
                    produce(&mut graph, field, *tile)?;
                }
                graph.hold(footprint::long_operations(program, &apply.pieces)?);
                let here = kernel.schedule.tile.iter().map(|_| 0).collect::<Vec<_>>();
                let kept = apply.outputs.iter().filter_map(|(field, _)| apply.kept(field));
                let mut reads: Vec<_> =
                    kept.chain(apply.partial).map(|tile| (tile, here.clone())).collect();
                for read in footprint::of_pieces(program, &apply.pieces)? {
                    let tile = apply.input(read.field);
                    let tile =
                        tile.ok_or_else(|| Error::internal(format!("no tile of @{}", read.field)))?;
                    reads.extend(read.offsets().into_iter().map(|offset| (tile, offset)));
                }
                for (tile, offset) in reads {
                    let value = numbers
                        .get(&mlir::key(tile))
                        .copied()
                        .ok_or_else(|| Error::internal("a tile is read before it is made"))?;
                    graph.reads.push(Read { operation, value, offset });
                }
            }
            TileOp::Store { .. } => {}
        }
    }
    Ok((graph, (numbers, elements)))
}

/// Cells of a tile in a plane, and of a lane.
struct Shape {
    /// Rows of the tile; 1 in two dimensions.
    tile_rows: i64,
    /// Columns of the tile.
    columns: i64,
    /// Rows per lane.
    rows_per_lane: i64,
    /// Cells per lane along a row.
    width: i64,
}

impl Shape {
    fn of(kernel: &Kernel) -> Result<Self, Error> {
        let (tile, per_thread) = (&kernel.schedule.tile, &kernel.schedule.per_thread);
        match (tile.as_slice(), per_thread.as_slice()) {
            (&[_, columns], &[1, width]) => {
                Ok(Self { tile_rows: 1, columns, rows_per_lane: 1, width })
            }
            (&[_, tile_rows, columns], &[1, rows_per_lane, width]) => {
                Ok(Self { tile_rows, columns, rows_per_lane, width })
            }
            _ => Err(decline(
                kernel,
                Decline::TileShape,
                format!(
                    "the strategy stream needs a grid of two dimensions and tiled.per_thread = \
                     [1, cells per lane], or one of three and [1, rows per lane, cells per lane], \
                     and here tile and tiled.per_thread are {tile:?} and {per_thread:?}"
                ),
            )),
        }
    }
}

/// Declines a kernel whose lanes hold so many cells that code for them would take minutes to make.
fn admit_registers(
    kernel: &Kernel,
    (rows_per_lane, width): (i64, i64),
    selects: i64,
    registers: i64,
) -> Result<(), Error> {
    let steps = steps_per_launch(&kernel.schedule);
    let too_many = |message| Err(decline(kernel, Decline::Registers, message));
    if selects > 0 && registers > MOST_REGISTERS {
        return too_many(format!(
            "by their boundary rules the reads of a lane with {rows_per_lane} x {width} cells and \
             {steps} may take {selects} cells, of which it holds {registers} in registers, and the \
             strategy stream holds {MOST_REGISTERS} at most; give a lane fewer cells, make the \
             pyramid height smaller, or choose another strategy"
        ));
    }
    if registers > MOST_REGISTERS_WITHOUT {
        return too_many(format!(
            "the planes in flight of a lane with {rows_per_lane} x {width} cells and {steps} \
             take {registers} registers, and the strategy stream holds \
             {MOST_REGISTERS_WITHOUT} at most; give a lane fewer cells, make the pyramid height \
             smaller, or choose another strategy"
        ));
    }
    Ok(())
}

impl<'c> Layout<'c> {
    /// The pipeline of a kernel whose lanes hold so many rows and columns, without a place.
    pub fn in_flight(
        subject: &Subject<'c, '_>,
        kernel: &Kernel<'c>,
        (rows_per_lane, width): (i64, i64),
    ) -> Result<Self, Error> {
        let (module, program) = (subject.module, subject.program);
        let applies = kernel.applies().map(|apply| (kernel.op, apply.pieces.as_slice()));
        let selects = selects::of(program, applies, (rows_per_lane, width))?;
        let (graph, (values, elements)) = graph(program, kernel, (rows_per_lane, width))?;
        let pipeline = pipeline::of(&graph, subject.device);
        admit_registers(kernel, (rows_per_lane, width), selects, pipeline.registers)?;
        let mut layout = Self {
            pipeline,
            limit: 0,
            elements,
            width,
            rows_per_lane,
            lanes: WARP,
            parts: 1,
            left: 0,
            top: 0,
            first: 0,
            fill: 0,
            values,
            wraps: tiled::wraps(program, kernel)?,
            selects: selects > 0,
            total: BTreeMap::new(),
        };
        for piece in kernel.applies().flat_map(|apply| &apply.pieces) {
            layout.total.insert(piece.function, pieces::is_total(module, program, piece)?);
        }
        Ok(layout)
    }

    /// Plans a kernel.
    pub fn plan(subject: &Subject<'c, '_>, kernel: &Kernel<'c>) -> Result<Self, Error> {
        let Shape { tile_rows, columns, rows_per_lane, width } = Shape::of(kernel)?;
        let mut layout = Self::in_flight(subject, kernel, (rows_per_lane, width))?;
        let [right, bottom] = layout.place_halo(kernel)?;
        let needed = layout.left + columns + right;
        if columns % width != 0 {
            return Err(decline(
                kernel,
                Decline::TileShape,
                format!(
                    "a tile's columns must be a multiple of the {width} cells per lane along a \
                     row, and {columns} are not"
                ),
            ));
        }
        if needed > WARP * width {
            return Err(decline(
                kernel,
                Decline::TileShape,
                format!(
                    "a tile {columns} columns wide with {} needs {needed} columns with its halo, \
                     and a warp with {width} cells per lane has {}",
                    steps_per_launch(&kernel.schedule),
                    WARP * width
                ),
            ));
        }
        if kernel.schedule.tile.len() == 3 {
            // Narrow tiles leave room for more rows: two or more of their rows share a warp.
            layout.lanes =
                WARP.min((needed as u64).div_ceil(width as u64).next_power_of_two() as i64);
            let rows_of_warps = WARP / layout.lanes;
            let parts = (layout.top + tile_rows + bottom + rows_per_lane - 1) / rows_per_lane;
            layout.parts = (parts + rows_of_warps - 1) / rows_of_warps * rows_of_warps;
        }
        let threads = layout.threads(kernel).into_iter().product();
        layout.limit = registers::limit(layout.pipeline.registers, threads, subject.device);
        Ok(layout)
    }

    /// Finds the first iteration, row and column. Returns the cells of the halo behind the tile's
    /// last column and row.
    fn place_halo(&mut self, kernel: &Kernel<'c>) -> Result<[i64; 2], Error> {
        let (mut right, mut bottom, mut first, mut last) = (0, 0, Vec::new(), Vec::new());
        for op in &kernel.body {
            let halo = match op {
                TileOp::Load { tile, .. } => &kernel.tile(*tile)?.halo,
                TileOp::Apply(apply) => &apply.halo,
                TileOp::Store { tile, .. } => {
                    last.push(self.window(*tile)?.lag);
                    continue;
                }
            };
            let ([before, .., west], [_, .., east]) =
                (halo.lower.as_slice(), halo.upper.as_slice())
            else {
                continue;
            };
            self.left = self.left.max(-west);
            right = right.max(*east);
            if let ([_, north, _], [_, south, _]) = (halo.lower.as_slice(), halo.upper.as_slice()) {
                self.top = self.top.max(-north);
                bottom = bottom.max(*south);
            }
            if let Some((_, tile)) = Self::source(op) {
                first.push(before + self.window(tile)?.lag);
            }
        }
        self.first = first.into_iter().min().unwrap_or(0);
        self.fill = last.into_iter().max().unwrap_or(0) - self.first;
        self.left = lanes::whole(self.left, self.width);
        Ok([right, bottom])
    }

    /// The tile of an operation with which the pipeline begins, and its field: a load, or an apply
    /// that has no operand.
    pub fn source(op: &TileOp<'c>) -> Option<(&'c str, Val<'c>)> {
        match op {
            TileOp::Load { field, tile, .. } => Some((field, *tile)),
            TileOp::Apply(apply) if apply.inputs.is_empty() && apply.partial.is_none() => {
                apply.outputs.first().copied()
            }
            _ => None,
        }
    }

    /// Positions of a lane's own cells, row by row.
    pub fn positions(&self) -> impl Iterator<Item = (i64, i64)> + use<'c> {
        let (rows_per_lane, width) = (self.rows_per_lane, self.width);
        (0..rows_per_lane).flat_map(move |row| (0..width).map(move |column| (row, column)))
    }

    /// A tile value's number in the pipeline.
    pub fn value(&self, tile: Val) -> Result<usize, Error> {
        self.values
            .get(&mlir::key(tile))
            .copied()
            .ok_or_else(|| Error::internal("a tile of another kernel"))
    }

    /// The window of a tile value.
    pub fn window(&self, tile: Val) -> Result<&Window, Error> {
        self.pipeline
            .windows
            .get(self.value(tile)?)
            .ok_or_else(|| Error::internal("a tile without a window"))
    }

    /// The lane's rows of a window that other parts need, each once.
    pub fn shared_rows(&self, window: &Window) -> Vec<i64> {
        let foreign = window
            .rows
            .iter()
            .map(|row| row.row)
            .filter(|row| !(0..self.rows_per_lane).contains(row));
        let mut rows: Vec<i64> = foreign.map(|row| row.rem_euclid(self.rows_per_lane)).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Cells at both ends of the grid that need no tile of their own. In three dimensions there is
    /// no halo where the grid ends, so the first and the last tile hold valid cells there. This
    /// holds for columns only if tiles then still begin with a sector. In two dimensions the first
    /// tile of a column has only the rows at the rim, because code with checks is slower. Tiles
    /// that wrap around the grid all need their halo.
    pub fn margin(&self, kernel: &Kernel) -> Vec<[i64; 2]> {
        if self.wraps {
            return Vec::new();
        }
        match kernel.schedule.tile.as_slice() {
            [_, rows, columns] => {
                let right = self.lanes * self.width - self.left - columns;
                let whole =
                    self.elements.iter().all(|element| lanes::whole_sectors(*element, self.left));
                let columns = if whole { [self.left, right] } else { [0, 0] };
                vec![[0, 0], [self.top, self.parts * self.rows_per_lane - self.top - rows], columns]
            }
            [planes, _] => {
                let first = self.pipeline.first_tile();
                vec![[if *planes > first { first - planes } else { 0 }, 0], [0, 0]]
            }
            other => vec![[0, 0]; other.len()],
        }
    }

    /// Parts that the rows of a window come from, by their distance: the first and the last.
    pub fn neighbours(&self, window: &Window) -> (i64, i64) {
        let distance =
            |row: Option<&Row>| row.map_or(0, |row| row.row.div_euclid(self.rows_per_lane));
        (distance(window.rows.first()), distance(window.rows.last()))
    }

    /// Threads of a block per dimension, slowest first.
    pub fn threads(&self, kernel: &Kernel) -> Vec<i64> {
        match kernel.schedule.tile.len() {
            3 => vec![1, self.parts, self.lanes],
            _ => vec![1, self.lanes],
        }
    }

    /// The first plane that a launch touches, relative to the tile's first.
    fn before(kernel: &Kernel<'c>) -> Result<i64, Error> {
        let mut before = 0;
        for op in &kernel.body {
            let halo = match op {
                TileOp::Load { tile, .. } => &kernel.tile(*tile)?.halo,
                TileOp::Apply(apply) => &apply.halo,
                TileOp::Store { .. } => continue,
            };
            before = before.min(halo.lower.first().copied().unwrap_or(0));
        }
        Ok(before)
    }

    /// The cells around a tile that a load touches. All loads begin with the first iteration, and
    /// the last body may go on beyond the last one.
    pub fn loaded(&self, kernel: &Kernel<'c>, load: &TileOp<'c>) -> Result<Halo, Error> {
        let mut all = self.touched(kernel, load, &Halo::none(kernel.schedule.tile.len()))?;
        let TileOp::Load { tile, .. } = load else { return Ok(all) };
        let lag = self.window(*tile)?.lag;
        let last = self.first + self.fill + self.pipeline.unroll - 1 + self.pipeline.ahead;
        if let (Some(first), Some(end)) = (all.lower.first_mut(), all.upper.first_mut()) {
            (*first, *end) = (self.first - lag, last - lag);
        }
        Ok(all)
    }

    /// The cells that iteration `k` touches where nothing is checked: planes from `k` on, and whole
    /// lanes' rows and columns from the tile's first cell on.
    pub fn touched(
        &self,
        kernel: &Kernel<'c>,
        op: &TileOp<'c>,
        halo: &Halo,
    ) -> Result<Halo, Error> {
        let tile = match op {
            TileOp::Load { tile, .. } | TileOp::Store { tile, .. } => Some(*tile),
            TileOp::Apply(apply) => apply.outputs.first().map(|(_, tile)| *tile),
        };
        let lag = tile.map_or(Ok(0), |tile| self.window(tile).map(|window| window.lag))?;
        let mut touched = halo.clone();
        let plane =
            if matches!(op, TileOp::Load { .. }) { self.pipeline.ahead - lag } else { -lag };
        if let (Some(first), Some(last)) = (touched.lower.first_mut(), touched.upper.first_mut()) {
            let prefetch =
                if matches!(op, TileOp::Load { .. }) { self.pipeline.prefetch } else { 0 };
            (*first, *last) = (plane, plane + prefetch);
            // Pieces of fields with a rule go up to the grid's ends, and the rule reads before the
            // first plane. No apply reads farther than the launch does.
            if (self.selects || self.wraps) && matches!(op, TileOp::Apply(_)) {
                *first += Self::before(kernel)?;
            }
        }
        if !matches!(op, TileOp::Load { .. }) {
            return Ok(touched);
        }
        let columns = kernel.schedule.tile.last().copied().unwrap_or(1);
        if let (Some(west), Some(east)) = (touched.lower.last_mut(), touched.upper.last_mut()) {
            (*west, *east) = (-self.left, self.lanes * self.width - self.left - columns);
        }
        if let ([_, rows, _], [_, north, _], [_, south, _]) = (
            kernel.schedule.tile.as_slice(),
            touched.lower.as_mut_slice(),
            touched.upper.as_mut_slice(),
        ) {
            (*north, *south) = (-self.top, self.parts * self.rows_per_lane - self.top - rows);
        }
        Ok(touched)
    }
}
