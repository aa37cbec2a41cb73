//! A warp's strip, as far as it is known at compile time: what the pipeline analysis says of the
//! tile kernel, and where iterations and columns begin.

use super::super::emit::WARP;
use super::super::{lanes, pieces};
use super::refuse;
use crate::analysis::footprint;
use crate::analysis::stream_pipeline::{self, Graph, Pipeline, Read, Value};
use melior::ir::Module;
use std::collections::BTreeMap;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{Halo, Kernel, TileOp};

/// What a warp does, as far as it is known at compile time. Rows and columns are relative to the
/// tile's first cell.
pub struct Strip<'c> {
    /// Lags and windows, one a tile value.
    pub pipeline: Pipeline,
    /// Cells a lane.
    pub width: i64,
    /// Cells of the strip before the tile's first column, a multiple of `width`.
    pub left: i64,
    /// The first iteration's row.
    pub first: i64,
    /// Iterations beyond the tile's rows.
    pub fill: i64,
    /// The places of tile values in the pipeline, by [`mlir::key`].
    pub values: BTreeMap<usize, usize>,
    /// Point functions that may run where no piece covers the cell, by name.
    pub total: BTreeMap<&'c str, bool>,
}

/// The tile graph of a kernel as the pipeline analysis sees it, and the values' places in it.
fn graph<'c>(
    module: &Module<'c>,
    program: &Program<'c>,
    kernel: &Kernel<'c>,
    slack: i64,
) -> Result<(Graph, BTreeMap<usize, usize>), Error> {
    let width = kernel.schedule.per_thread.last().copied().unwrap_or(1);
    let mut graph = Graph { values: Vec::new(), reads: Vec::new(), width, slack, scratch: 0 };
    let mut places = BTreeMap::new();
    for (operation, op) in kernel.body.iter().enumerate() {
        let mut produce = |graph: &mut Graph, field: &str, tile| -> Result<(), Error> {
            places.insert(mlir::key(tile), graph.values.len());
            graph.values.push(Value { operation, words: lanes::words(program.field(field)?.element) });
            Ok(())
        };
        match op {
            TileOp::Load { field, tile, .. } => produce(&mut graph, field, *tile)?,
            TileOp::Apply(apply) => {
                for (field, tile) in &apply.outputs {
                    produce(&mut graph, field, *tile)?;
                }
                graph.scratch = graph.scratch.max(width * footprint::long_operations(module, &apply.pieces)?);
                let here = kernel.schedule.tile.iter().map(|_| 0).collect::<Vec<_>>();
                let kept = apply.outputs.iter().map(|(field, _)| (*field, here.clone()));
                let read =
                    footprint::of_pieces(module, &apply.pieces)?.into_iter().map(|read| (read.field, read.offset));
                for (field, offset) in kept.chain(read) {
                    let tile = apply.input(field).ok_or_else(|| Error::internal(format!("no tile of @{field}")))?;
                    let value = places
                        .get(&mlir::key(tile))
                        .copied()
                        .ok_or_else(|| Error::internal("a tile is read before it is made"))?;
                    graph.reads.push(Read { operation, value, offset });
                }
            }
            TileOp::Store { .. } => {}
        }
    }
    Ok((graph, places))
}

impl<'c> Strip<'c> {
    /// Plans a kernel.
    pub fn plan(module: &Module<'c>, program: &Program<'c>, kernel: &Kernel<'c>, slack: i64) -> Result<Self, Error> {
        let schedule = &kernel.schedule;
        let ([_, columns], [1, width]) = (schedule.tile.as_slice(), schedule.per_thread.as_slice()) else {
            return Err(refuse(
                kernel,
                format!(
                    "the strategy stream needs a grid of two dimensions and tiled.per_thread = [1, cells a lane], and here they are {:?} and {:?}",
                    schedule.tile, schedule.per_thread
                ),
            ));
        };
        let (graph, values) = graph(module, program, kernel, slack)?;
        let pipeline = stream_pipeline::of(&graph);
        let mut strip = Self { pipeline, width: *width, left: 0, first: 0, fill: 0, values, total: BTreeMap::new() };
        let (mut right, mut first, mut last) = (0, Vec::new(), Vec::new());
        for op in &kernel.body {
            let halo = match op {
                TileOp::Load { tile, .. } => &kernel.tile(*tile)?.halo,
                TileOp::Apply(apply) => &apply.halo,
                TileOp::Store { tile, .. } => {
                    last.push(strip.lag(*tile)?);
                    continue;
                }
            };
            let ([top, west], [_, east]) = (halo.lower.as_slice(), halo.upper.as_slice()) else { continue };
            strip.left = strip.left.max(-west);
            right = right.max(*east);
            if let TileOp::Load { tile, .. } = op {
                first.push(top + strip.lag(*tile)?);
            }
            if let TileOp::Apply(apply) = op {
                for piece in &apply.pieces {
                    strip.total.insert(piece.function, pieces::is_total(module, piece)?);
                }
            }
        }
        strip.first = first.into_iter().min().unwrap_or(0);
        strip.fill = last.into_iter().max().unwrap_or(0) - strip.first;
        strip.left = (strip.left + width - 1) / width * width;
        let needed = strip.left + columns + right;
        if columns % width != 0 || needed > WARP * width {
            return Err(refuse(
                kernel,
                format!(
                    "a tile {columns} columns wide with pyramid height {} needs {needed} columns with its halo, and a warp with {width} cells a lane has {}; \
                 the tile's columns must also be a multiple of {width}",
                    schedule.steps,
                    WARP * width
                ),
            ));
        }
        Ok(strip)
    }

    /// A tile value's place in the pipeline.
    pub fn place(&self, tile: Val) -> Result<usize, Error> {
        self.values.get(&mlir::key(tile)).copied().ok_or_else(|| Error::internal("a tile of another kernel"))
    }

    /// Rows that a tile value is behind.
    pub fn lag(&self, tile: Val) -> Result<i64, Error> {
        let place = self.place(tile)?;
        self.pipeline
            .windows
            .get(place)
            .map(|window| window.lag)
            .ok_or_else(|| Error::internal("a tile without a window"))
    }

    /// Iterations for a whole tile, full bodies of the loop.
    pub fn iterations(&self, kernel: &Kernel) -> i64 {
        let rows = kernel.schedule.tile.first().copied().unwrap_or(1) + self.fill;
        (rows + self.pipeline.unroll - 1) / self.pipeline.unroll * self.pipeline.unroll
    }

    /// The cells that a tile without checks touches: whole strips, and the rows that are loaded
    /// before the first and after the last that is needed.
    pub fn reach(&self, kernel: &Kernel<'c>, op: &TileOp<'c>, halo: &Halo) -> Halo {
        let TileOp::Load { tile, .. } = op else { return halo.clone() };
        let (Ok(lag), [rows, columns]) = (self.lag(*tile), kernel.schedule.tile.as_slice()) else {
            return halo.clone();
        };
        let last = self.first + self.iterations(kernel) - 1 + self.pipeline.ahead - lag;
        Halo {
            lower: vec![self.first - lag, -self.left],
            upper: vec![last - (rows - 1), WARP * self.width - self.left - columns],
        }
    }
}
