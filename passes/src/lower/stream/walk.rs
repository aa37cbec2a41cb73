//! The walk of a block along its tile: the loops over planes.

use super::super::emit::Frame;
use super::super::evaluate::{At, Distance, Rules, cell_in_registers};
use super::super::interior::{self, Limits};
use super::super::lanes;
use super::super::pieces::{self, Candidate};
use super::checks::{self, Beyond, Cells, Cut};
use super::in_flight::InFlight;
use super::patch::Patch;
use super::shared::{Shared, Turn};
use crate::analysis::index_width::constant_extents;
use melior::ir::operation::OperationLike;
use melior::ir::{Module, ValueLike};
use std::collections::{BTreeMap, VecDeque};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;
use stencil_dialects::stencil::{Grid, Piece};
use stencil_dialects::tiled::{self, Apply, Kernel, TileOp};

/// Rows that a tile at a rim loads before their turn in two dimensions.
const RIM_AHEAD: i64 = 2;

/// The code of one walk.
pub struct Walk<'c, 'p> {
    frame: &'p Frame<'c, 'p>,
    module: &'p Module<'c>,
    kernel: &'p Kernel<'c>,
    patch: &'p Patch<'c>,
    shared: Shared<'c, 'p>,
    cells: Cells<'c>,
    /// For each row of the lane whether its cells belong to the tile.
    in_tile: Vec<Val<'c>>,
    /// Limits of code without checks.
    limits: Option<Limits<'c>>,
    /// Planes of the tile that lie in the grid.
    planes: Val<'c>,
    ends: Vec<Ends<'c>>,
    /// What the tile holds beyond the grid.
    beyond: Beyond,
}

/// Whether a tile is the first or the last along a dimension, and so holds cells of the margin; none
/// without one.
struct Ends<'c> {
    is: Option<[Val<'c>; 2]>,
}

impl<'c> Ends<'c> {
    fn all(frame: &Frame<'c, '_>, kernel: &Kernel<'c>) -> Result<Vec<Self>, Error> {
        let builder = &frame.builder;
        let bounds = frame.bounds(builder, frame.hull.lower)?.into_iter().zip(frame.bounds(builder, frame.hull.upper)?);
        let places = frame.origin.iter().zip(&kernel.schedule.tile).zip(&frame.margin).zip(bounds);
        let ends = places.map(|(((origin, tile), margin), (lower, upper))| {
            let [before, after] = *margin;
            if (before, after) == (0, 0) {
                return Ok(Self { is: None });
            }
            let first = builder.compare(Compare::Le, *origin, builder.add_constant(lower, before)?)?;
            let last = builder.compare(Compare::Ge, builder.add_constant(*origin, tile - 1 + after)?, upper)?;
            Ok(Self { is: Some([first, last]) })
        });
        ends.collect()
    }

    /// Whether a coordinate belongs to a tile from `origin` on, of `cells` cells and what it holds of the
    /// margin.
    fn holds(
        &self,
        builder: &Builder<'c>,
        coordinate: Val<'c>,
        origin: Option<Val<'c>>,
        cells: i64,
    ) -> Result<Val<'c>, Error> {
        let origin = origin.ok_or_else(|| Error::internal("a tile of no dimensions"))?;
        let beyond = builder.binary("arith.subi", coordinate, origin)?;
        let cells = builder.index(cells)?;
        let Some([first, last]) = self.is else { return builder.compare(Compare::Below, beyond, cells) };
        let after = builder.compare(Compare::Ge, beyond, builder.index(0)?)?;
        let before = builder.compare(Compare::Lt, beyond, cells)?;
        builder.binary(
            "arith.andi",
            builder.binary("arith.ori", after, first)?,
            builder.binary("arith.ori", before, last)?,
        )
    }
}

/// What is checked of cells at a rim.
struct Checks<'c> {
    /// Grids, one an operation that loads or stores, and the cells inside that are loaded.
    grids: BTreeMap<usize, (Cut<'c>, Cells<'c>)>,
    /// Of applies that compute cells beyond the grid as the grid repeated, the cells that these stand for.
    repeated: BTreeMap<usize, Cells<'c>>,
    /// Pieces, by their operation and place.
    pieces: BTreeMap<(usize, usize), Cut<'c>>,
}

impl<'c> Checks<'c> {
    fn grid(&self, operation: usize) -> Result<&(Cut<'c>, Cells<'c>), Error> {
        self.grids.get(&operation).ok_or_else(|| Error::internal("a field without checks"))
    }

    fn piece(&self, place: (usize, usize)) -> Result<&Cut<'c>, Error> {
        self.pieces.get(&place).ok_or_else(|| Error::internal("a piece without checks"))
    }
}

/// Which planes of a loop lie at no rim.
enum Planes<'c> {
    /// All of them.
    Free,
    /// Those of the iterations from one to another; others take another body.
    Partly([Val<'c>; 2]),
    /// Nobody knows.
    Checked,
}

/// Which rims a loop may meet.
#[derive(Clone, Copy)]
struct Rims<'c, 'r> {
    /// Of planes: the first and last of the grid or of a piece.
    planes: bool,
    /// Of rows and columns, with what is checked.
    cells: Option<&'r Checks<'c>>,
}

impl<'c, 'p> Walk<'c, 'p> {
    /// Computes what all loops need.
    pub fn new(
        frame: &'p Frame<'c, 'p>,
        module: &'p Module<'c>,
        kernel: &'p Kernel<'c>,
        patch: &'p Patch<'c>,
        tile_planes: Val<'c>,
    ) -> Result<Self, Error> {
        let builder = &frame.builder;
        let (width, height) = (patch.width, patch.height);
        let columns = kernel.schedule.tile.last().copied().unwrap_or(1);
        let ([first_plane, .., first_column], [.., lane]) = (frame.origin.as_slice(), frame.thread.as_slice()) else {
            return Err(Error::internal("a tile of no dimensions"));
        };
        let offset = builder.binary("arith.muli", *lane, builder.index(width)?)?;
        let column = builder.add_constant(builder.add(*first_column, offset)?, -patch.left)?;
        let ends = Ends::all(frame, kernel)?;
        let last = ends.last().ok_or_else(|| Error::internal("a tile of no dimensions"))?;
        let lane_in_tile = last.holds(builder, column, frame.origin.last().copied(), columns)?;
        let (mut rows, mut in_tile) = (vec![None], vec![lane_in_tile]);
        if let ([_, first_row, _], [_, part, _], [_, tile_rows, _]) =
            (frame.origin.as_slice(), frame.thread.as_slice(), kernel.schedule.tile.as_slice())
        {
            (rows, in_tile) = (Vec::new(), Vec::new());
            let first = builder.binary("arith.muli", *part, builder.index(height)?)?;
            let first = builder.add_constant(builder.add(*first_row, first)?, -patch.top)?;
            for number in 0..height {
                let row = builder.add_constant(first, number)?;
                rows.push(Some(row));
                let of_rows = ends.get(1).ok_or_else(|| Error::internal("a tile without rows"))?;
                let row_in_tile = of_rows.holds(builder, row, Some(*first_row), *tile_rows)?;
                in_tile.push(builder.binary("arith.andi", row_in_tile, lane_in_tile)?);
            }
        }
        let columns = (0..width).map(|cell| builder.add_constant(column, cell)).collect::<Result<_, _>>()?;
        let limits = Limits::of(frame, kernel, |op, halo| patch.reach(kernel, op, halo))?;
        // Without checks all cells of the patch are computed, those beyond the halo too.
        let limits = limits.filter(|_| patch.total.values().all(|total| *total));
        let mut walk = Self {
            frame,
            module,
            kernel,
            patch,
            shared: Shared::new(frame, builder, patch)?,
            cells: Cells { rows, columns },
            in_tile,
            limits,
            planes: tile_planes,
            ends,
            beyond: if tiled::wraps(module, frame.program, kernel)? { Beyond::Repeated } else { Beyond::Nearest },
        };
        let last_plane = frame.bounds(builder, frame.hull.upper)?.first().copied();
        let last_plane = last_plane.ok_or_else(|| Error::internal("a grid of no dimensions"))?;
        let left = builder.add_constant(builder.binary("arith.subi", last_plane, *first_plane)?, 1)?;
        // A half of the last tile may begin beyond it.
        let left = builder.binary("arith.maxsi", left, builder.index(0)?)?;
        walk.planes = builder.binary("arith.minsi", tile_planes, left)?;
        Ok(walk)
    }

    /// The whole tile: a version without checks of rows and columns for most tiles, and one with. In
    /// two dimensions few tiles lie at a rim: the version without checks is for those at no rim at all,
    /// which saves registers, and so does a short body of the other version. So it is where an apply has
    /// several pieces, because those beside the main one are told apart by all dimensions.
    pub fn tile(&self) -> Result<(), Error> {
        let builder = &self.frame.builder;
        let first = self.frame.origin.first().copied().ok_or_else(|| Error::internal("a tile of no dimensions"))?;
        let first = builder.add_constant(first, self.patch.first)?;
        let end = builder.add_constant(builder.add(first, self.planes)?, self.patch.fill)?;
        let all = (self.start(builder, first)?, end);
        let Some(limits) = &self.limits else { return self.version(builder, all, true, &Planes::Checked) };
        let free = limits.range(self.frame, builder)?;
        let mut conditions: Vec<_> = limits.condition(self.frame, builder, self.kernel, 1)?.into_iter().collect();
        for end in self.ends.iter().filter_map(|ends| ends.is).flatten() {
            conditions.push(builder.compare(Compare::Eq, end, builder.constant(builder.integer_type(1), 0)?)?);
        }
        let (mut inner, mut outer) = (Planes::Partly(free), Planes::Partly(free));
        let several = |op: &TileOp| matches!(op, TileOp::Apply(apply) if apply.pieces.len() > 1);
        if self.frame.origin.len() == 2 || self.kernel.body.iter().any(several) {
            (inner, outer) = (Planes::Free, Planes::Checked);
            // The last body may go on beyond the end.
            let last = builder.add_constant(end, self.patch.pipeline.unroll - 2)?;
            conditions.extend(self.within(builder, (first, last), free)?);
        } else if self.patch.selects {
            // So many selects that one copy of them is enough.
            outer = Planes::Checked;
        }
        let version =
            |cells, planes| move |builder: &Builder<'c>| self.version(builder, all, cells, planes).map(|()| Vec::new());
        match builder.all(&conditions)? {
            Some(interior) => builder.choose(interior, &[], version(false, &inner), version(true, &outer)).map(|_| ()),
            None => self.version(builder, all, false, &inner),
        }
    }

    /// Whether the first and the last iteration keep to the limits.
    fn within(
        &self,
        builder: &Builder<'c>,
        (first, last): (Val<'c>, Val<'c>),
        [lower, upper]: [Val<'c>; 2],
    ) -> Result<[Val<'c>; 2], Error> {
        Ok([builder.compare(Compare::Ge, first, lower)?, builder.compare(Compare::Le, last, upper)?])
    }

    /// The loop over planes.
    fn version(
        &self,
        builder: &Builder<'c>,
        (start, end): (Val<'c>, Val<'c>),
        cells: bool,
        planes: &Planes<'c>,
    ) -> Result<(), Error> {
        let checks = if cells { Some(self.checks(builder)?) } else { None };
        let rims = |planes| Rims { planes, cells: checks.as_ref() };
        let (checked, ahead) = (matches!(planes, Planes::Checked), self.patch.pipeline.ahead);
        let (unroll, ahead) = if checked { (1, ahead.min(RIM_AHEAD)) } else { (self.patch.pipeline.unroll, ahead) };
        let initial = self.initial(builder, start, ahead, rims(!matches!(planes, Planes::Free)))?;
        let free = |builder: &Builder<'c>, plane, carried: &[Val<'c>]| {
            self.planes(builder, plane, unroll, rims(false), initial.with(carried))
        };
        let one = |builder: &Builder<'c>, plane, carried: &[Val<'c>]| {
            self.planes(builder, plane, 1, rims(true), initial.with(carried))
        };
        let bounds = (start, end, builder.index(unroll)?);
        builder.carry(bounds, &initial.flat(), |builder, plane, carried| match planes {
            Planes::Free => free(builder, plane, carried),
            Planes::Checked => one(builder, plane, carried),
            Planes::Partly(limits) => {
                let last = builder.add_constant(plane, unroll - 1)?;
                let [after, before] = self.within(builder, (plane, last), *limits)?;
                let types: Vec<_> = carried.iter().map(|value| value.r#type()).collect();
                builder.choose(
                    builder.binary("arith.andi", after, before)?,
                    &types,
                    |builder| free(builder, plane, carried),
                    |builder| {
                        let bounds = (plane, builder.add_constant(plane, unroll)?, builder.index(1)?);
                        builder.carry(bounds, carried, one)
                    },
                )
            }
        })?;
        Ok(())
    }

    /// The first iteration: none is for planes before the grid alone, unless they hold it repeated.
    fn start(&self, builder: &Builder<'c>, first: Val<'c>) -> Result<Val<'c>, Error> {
        let mut begin: Option<Val<'c>> = None;
        if self.beyond == Beyond::Repeated {
            return Ok(first);
        }
        let tiles = self.kernel.body.iter().flat_map(|op| match op {
            TileOp::Load { field, tile, .. } => vec![(*field, *tile)],
            TileOp::Apply(apply) => apply.outputs.clone(),
            TileOp::Store { .. } => Vec::new(),
        });
        for (field, tile) in tiles {
            let bounds = self.frame.bounds(builder, self.frame.program.grid_of(field)?.lower)?;
            let Some(bound) = bounds.first() else { continue };
            let bound = builder.add_constant(*bound, self.patch.window(tile)?.lag)?;
            begin = Some(begin.map_or(Ok(bound), |begin| builder.binary("arith.minsi", begin, bound))?);
        }
        begin.map_or(Ok(first), |begin| builder.binary("arith.maxsi", begin, first))
    }

    /// Some planes from one on; what is in flight after them.
    fn planes(
        &self,
        builder: &Builder<'c>,
        first: Val<'c>,
        count: i64,
        rims: Rims<'c, '_>,
        mut state: InFlight<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        for number in 0..count {
            self.iteration(builder, &mut state, builder.add_constant(first, number)?, rims)?;
            state.age();
        }
        Ok(state.flat())
    }

    fn checks(&self, builder: &Builder<'c>) -> Result<Checks<'c>, Error> {
        let (mut grids, mut pieces, mut repeated) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let cut = |bounds, cells: &Cells<'c>| Cut::new(self.frame, builder, bounds, cells);
        for (operation, op) in self.kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { field, .. } | TileOp::Store { field, .. } => {
                    let grid = self.frame.program.grid_of(field)?;
                    let bounds = (grid.lower, grid.upper);
                    let inside = self.cells.inside(self.frame, builder, bounds, self.beyond, self.vector(field)?)?;
                    grids.insert(operation, (cut(bounds, &self.cells)?, inside));
                }
                TileOp::Apply(apply) => {
                    if let Some(grid) = self.repeated_grid(apply)? {
                        let bounds = (grid.lower, grid.upper);
                        repeated.insert(operation, self.cells.inside(self.frame, builder, bounds, self.beyond, 1)?);
                    }
                    let cells = repeated.get(&operation).unwrap_or(&self.cells);
                    for (place, piece) in apply.pieces.iter().enumerate() {
                        pieces.insert((operation, place), cut((piece.lower, piece.upper), cells)?);
                    }
                }
            }
        }
        Ok(Checks { grids, pieces, repeated })
    }

    /// The grid that an apply computes cells beyond of, as the grid repeated; none for other applies. All
    /// fields of such a kernel lie on the same points.
    fn repeated_grid(&self, apply: &Apply<'c>) -> Result<Option<&'p Grid<'c>>, Error> {
        if self.beyond == Beyond::Nearest || !apply.reaches_beyond() {
            return Ok(None);
        }
        apply.outputs.first().map(|(field, _)| self.frame.program.grid_of(field)).transpose()
    }

    /// Zeros in all windows and in shared memory, and the first planes of the loads.
    fn initial(
        &self,
        builder: &Builder<'c>,
        start: Val<'c>,
        ahead: i64,
        rims: Rims<'c, '_>,
    ) -> Result<InFlight<'c>, Error> {
        let mut zeros = Vec::new();
        for element in &self.patch.elements {
            zeros.push(builder.zero(*element)?);
        }
        let mut waiting = vec![VecDeque::new(); zeros.len()];
        for (operation, op) in self.kernel.body.iter().enumerate() {
            let TileOp::Load { field, tile, .. } = op else { continue };
            let Some(queue) = waiting.get_mut(self.patch.place(*tile)?) else { continue };
            for number in 0..ahead {
                let plane = builder.add_constant(start, number - self.patch.window(*tile)?.lag)?;
                queue.push_back(self.load(builder, operation, field, plane, rims)?);
            }
        }
        self.shared.clear(builder, start, &zeros)?;
        Ok(InFlight::new(&self.patch.pipeline, self.patch.width, &zeros, waiting))
    }

    /// One plane of every value; `plane` is that of values without lag.
    fn iteration(
        &self,
        builder: &Builder<'c>,
        state: &mut InFlight<'c>,
        plane: Val<'c>,
        rims: Rims<'c, '_>,
    ) -> Result<(), Error> {
        let lag = |tile| self.patch.window(tile).map(|window| window.lag);
        let turn = self.shared.turn(builder, plane)?;
        for (operation, op) in self.kernel.body.iter().enumerate() {
            match op {
                TileOp::Load { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let place = self.patch.place(*tile)?;
                    let ahead = builder.add_constant(plane, state.ahead(place) - lag(*tile)?)?;
                    let cells = state.exchange(place, self.load(builder, operation, field, ahead, rims)?)?;
                    if rims.cells.is_none() && !rims.planes {
                        self.prefetch(builder, field, ahead)?;
                    }
                    self.push(builder, state, place, &cells, &turn)?;
                }
                TileOp::Apply(apply) => {
                    let builder = &Builder { location: apply.op.location(), ..*builder };
                    let Some((_, first)) = apply.outputs.first() else { continue };
                    let plane = builder.add_constant(plane, -lag(*first)?)?;
                    let cells = self.apply(builder, state, operation, apply, plane, rims)?;
                    for (number, (_, tile)) in apply.outputs.iter().enumerate() {
                        let cells: Vec<_> = cells.iter().filter_map(|values| values.get(number)).copied().collect();
                        self.push(builder, state, self.patch.place(*tile)?, &cells, &turn)?;
                    }
                }
                TileOp::Store { op, field, tile } => {
                    let builder = &Builder { location: op.location(), ..*builder };
                    let plane = builder.add_constant(plane, -lag(*tile)?)?;
                    let place = self.patch.place(*tile)?;
                    let cells = self
                        .positions()
                        .map(|position| state.get(place, position, 0))
                        .collect::<Result<Vec<_>, _>>()?;
                    self.store(builder, operation, field, &cells, plane, rims)?;
                }
            }
        }
        self.shared.hand_over(builder, state, &turn)
    }

    /// Positions of the lane's own cells, row by row.
    fn positions(&self) -> impl Iterator<Item = (i64, i64)> + use<'c> {
        let (height, width) = (self.patch.height, self.patch.width);
        (0..height).flat_map(move |row| (0..width).map(move |column| (row, column)))
    }

    /// A value's new plane: the lane's own cells, and those of others that come in now.
    fn push(
        &self,
        builder: &Builder<'c>,
        state: &mut InFlight<'c>,
        value: usize,
        cells: &[Val<'c>],
        turn: &Turn<'c>,
    ) -> Result<(), Error> {
        for (position, cell) in self.positions().zip(cells) {
            state.push(value, position, *cell)?;
        }
        self.shared.take(builder, state, value, turn)?;
        let windows = &self.patch.pipeline.windows;
        let window = windows.get(value).ok_or_else(|| Error::internal("a value without a window"))?;
        for row in &window.rows {
            for edge in &row.edges {
                let width = self.patch.width;
                let cell = state.get(value, (row.row, edge.column.rem_euclid(width)), edge.first)?;
                let cell = lanes::shuffle(builder, cell, edge.column.div_euclid(width))?;
                state.push(value, (row.row, edge.column), cell)?;
            }
        }
        Ok(())
    }

    /// Cells of the widest access to a field's rows that is sure to be aligned.
    fn vector(&self, field: &str) -> Result<i64, Error> {
        let program = self.frame.program;
        let grid = program.grid_of(field)?;
        let cells = lanes::vector_length(program.field(field)?.element, self.patch.width);
        let shift = interior::difference(self.frame.hull.lower, grid.lower).and_then(|gap| gap.last().copied());
        let pitch = constant_extents(grid.lower, grid.upper).and_then(|extents| extents.last().copied());
        let aligned = |value: Option<i64>| value.is_some_and(|value| value % cells == 0);
        Ok(if aligned(shift) && aligned(pitch) { cells } else { 1 })
    }

    fn load(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        plane: Val<'c>,
        rims: Rims<'c, '_>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let (buffer, vector) = (self.frame.source(field)?, self.vector(field)?);
        let grid = self.frame.program.grid_of(field)?;
        let plane = if rims.planes { self.beyond.plane(self.frame, builder, grid, plane)? } else { plane };
        let at = match rims.cells {
            Some(checks) => &checks.grid(operation)?.1,
            None => &self.cells,
        };
        let cells = |builder: &Builder<'c>| {
            let mut loaded = Vec::new();
            for row in &at.rows {
                for column in at.columns.iter().step_by(usize::try_from(vector).unwrap_or(1)) {
                    let at = self.frame.cell(builder, field, &Cells::point(plane, *row, *column))?;
                    loaded.extend(lanes::load(builder, buffer, &at, vector, vector)?);
                }
            }
            Ok(loaded)
        };
        let checked = rims.planes || rims.cells.is_some();
        let some = if checked { checks::some(self.frame, builder, grid)? } else { None };
        let Some(some) = some else { return cells(builder) };
        let types = vec![self.frame.program.field(field)?.element; at.each().count()];
        builder.choose(some, &types, cells, |builder| types.iter().map(|ty| builder.zero(*ty)).collect())
    }

    /// Asks for the lane's cells some planes after one that is loaded.
    fn prefetch(&self, builder: &Builder<'c>, field: &str, loaded: Val<'c>) -> Result<(), Error> {
        let distance = self.patch.pipeline.prefetch;
        if distance == 0 {
            return Ok(());
        }
        let plane = builder.add_constant(loaded, distance)?;
        let each = lanes::cells_of_a_sector(self.frame.program.field(field)?.element);
        for row in &self.cells.rows {
            for column in self.cells.columns.iter().step_by(each) {
                let at = self.frame.cell(builder, field, &Cells::point(plane, *row, *column))?;
                lanes::prefetch(builder, self.frame.source(field)?, &at)?;
            }
        }
        Ok(())
    }

    fn store(
        &self,
        builder: &Builder<'c>,
        operation: usize,
        field: &str,
        cells: &[Val<'c>],
        plane: Val<'c>,
        rims: Rims<'c, '_>,
    ) -> Result<(), Error> {
        let grid = rims.cells.map(|checks| checks.grid(operation)).transpose()?.map(|(grid, _)| grid);
        let (buffer, vector) = (self.frame.target(field)?, self.vector(field)?);
        // Where groups of cells lie all inside or all outside of the grid, the first tells.
        let group = usize::try_from(if grid.is_some() { vector } else { self.patch.width }).unwrap_or(1).max(1);
        let width = usize::try_from(self.patch.width).unwrap_or(1).max(1);
        let first = self.frame.origin.first().copied().ok_or_else(|| Error::internal("a tile of no dimensions"))?;
        let in_planes = builder.compare(Compare::Below, builder.binary("arith.subi", plane, first)?, self.planes)?;
        let in_planes = if rims.planes && !self.frame.hull.alike {
            let own = self.frame.program.grid_of(field)?;
            let own = checks::in_planes(self.frame, builder, (own.lower, own.upper), plane)?;
            builder.binary("arith.andi", in_planes, own)?
        } else {
            in_planes // The loop ends with the grid's planes.
        };
        for (number, (cells, (row, column))) in cells.chunks(group).zip(self.cells.each().step_by(group)).enumerate() {
            let in_tile = self.in_tile.get(number * group / width).copied();
            let in_grid = grid.and_then(|grid| grid.cells.get(number * group)).copied();
            let conditions: Vec<_> = [Some(in_planes), in_tile, in_grid].into_iter().flatten().collect();
            builder.when(builder.all(&conditions)?.unwrap_or(in_planes), |builder| {
                let at = self.frame.cell(builder, field, &Cells::point(plane, row, column))?;
                lanes::store(builder, cells, buffer, &at, vector)
            })?;
        }
        Ok(())
    }

    /// New values of a plane: for each cell of the lane one of every updated field.
    fn apply(
        &self,
        builder: &Builder<'c>,
        state: &InFlight<'c>,
        operation: usize,
        apply: &Apply<'c>,
        plane: Val<'c>,
        rims: Rims<'c, '_>,
    ) -> Result<Vec<Vec<Val<'c>>>, Error> {
        let plane = match self.repeated_grid(apply)? {
            Some(grid) if rims.planes => self.beyond.plane(self.frame, builder, grid, plane)?,
            _ => plane,
        };
        let free = rims.cells.is_none() && !rims.planes;
        let rules = match self.beyond {
            _ if free => Rules::Unneeded,
            Beyond::Repeated => Rules::Wrapped,
            Beyond::Nearest => Rules::All,
        };
        let points = rims.cells.and_then(|checks| checks.repeated.get(&operation)).unwrap_or(&self.cells);
        let cell =
            |(position, (row, column))| Cell { state, apply, position, point: Cells::point(plane, row, column), rules };
        let cells: Vec<_> = self.positions().zip(points.each()).map(cell).collect();
        if free {
            let piece = apply.main.ok_or_else(|| Error::internal("an apply of no main piece"))?;
            return cells.iter().map(|at| self.evaluate(builder, at, &piece)).collect();
        }
        // Without checks of cells there is one piece.
        let mut cuts = Vec::new();
        for (place, piece) in apply.pieces.iter().enumerate() {
            let cut = rims.cells.map(|checks| checks.piece((operation, place))).transpose()?;
            cuts.push((piece, cut));
        }
        let all = |builder: &Builder<'c>, planes: &[Option<Val<'c>>]| {
            let cell = |(number, at): (usize, &Cell<'c, '_>)| {
                let mut candidates = Vec::new();
                for ((piece, cut), plane) in cuts.iter().zip(planes) {
                    let inside = cut.and_then(|cut| cut.cells.get(number)).copied();
                    let conditions: Vec<_> = plane.iter().copied().chain(inside).collect();
                    let Some(covered) = builder.all(&conditions)? else { return self.evaluate(builder, at, piece) };
                    let total = self.patch.total.get(piece.function) == Some(&true);
                    candidates.push(Candidate { piece, covered, total });
                }
                let evaluate = |builder: &Builder<'c>, piece: &Piece<'c>| self.evaluate(builder, at, piece);
                pieces::values(builder, &candidates, &self.old(builder, at)?, &evaluate)
            };
            cells.iter().enumerate().map(cell).collect::<Result<Vec<_>, _>>()
        };
        if !rims.planes {
            return all(builder, &vec![None; cuts.len()]);
        }
        let mut in_planes = Vec::new();
        for (piece, _) in &cuts {
            in_planes.push(checks::in_planes(self.frame, builder, (piece.lower, piece.upper), plane)?);
        }
        // The usual single piece is a branch for the whole plane; several are conditions of each cell.
        if let [inside] = in_planes.as_slice() {
            let old = cells.iter().map(|at| self.old(builder, at)).collect::<Result<Vec<_>, _>>()?.concat();
            let types: Vec<_> = old.iter().map(|value| value.r#type()).collect();
            let new = |builder: &Builder<'c>| all(builder, &[None]).map(|cells| cells.concat());
            let flat = builder.choose(*inside, &types, new, |_| Ok(old))?;
            return Ok(flat.chunks(apply.outputs.len().max(1)).map(<[_]>::to_vec).collect());
        }
        all(builder, &in_planes.into_iter().map(Some).collect::<Vec<_>>())
    }

    /// The values of the updated fields before the apply; zeros for those that have none where no piece
    /// lies.
    fn old(&self, builder: &Builder<'c>, at: &Cell<'c, '_>) -> Result<Vec<Val<'c>>, Error> {
        let old = |(field, _): &(&str, _)| match at.apply.kept(field) {
            Some(tile) => self.held(at, tile, &vec![0; at.point.len()]),
            None => builder.zero(self.frame.program.field(field)?.element),
        };
        at.apply.outputs.iter().map(old).collect()
    }

    fn evaluate(&self, builder: &Builder<'c>, at: &Cell<'c, '_>, piece: &Piece<'c>) -> Result<Vec<Val<'c>>, Error> {
        let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
            cell_in_registers(builder, distances, &|offset| self.read(at, field, offset))
        };
        let partial = at.apply.partial.map(|tile| self.held(at, tile, &vec![0; at.point.len()])).transpose()?;
        let (point, step) = (at.point.as_slice(), at.apply.step);
        let at = At { point, step, rules: at.rules, fetch: &fetch, partial };
        self.frame.evaluate(builder, self.module, piece, &at)
    }

    fn read(&self, at: &Cell<'c, '_>, field: &str, offset: &[i64]) -> Result<Val<'c>, Error> {
        let tile = at.apply.input(field).ok_or_else(|| Error::internal(format!("no tile of @{field}")))?;
        self.held(at, tile, offset)
    }

    /// A cell of a tile at an offset.
    fn held(&self, at: &Cell<'c, '_>, tile: Val<'c>, offset: &[i64]) -> Result<Val<'c>, Error> {
        let (row, column) = at.position;
        let (plane, position) = match offset {
            [plane, columns] => (plane, (row, column + columns)),
            [plane, rows, columns] => (plane, (row + rows, column + columns)),
            _ => return Err(Error::internal("a read that has not two or three offsets")),
        };
        let Some((_, output)) = at.apply.outputs.first() else { return Err(Error::internal("an apply of nothing")) };
        let age = self.patch.window(*output)?.lag - plane - self.patch.window(tile)?.lag;
        at.state.get(self.patch.place(tile)?, position, age)
    }
}

/// A cell whose new values are computed.
struct Cell<'c, 's> {
    state: &'s InFlight<'c>,
    apply: &'s Apply<'c>,
    /// Its place in the lane: row and column.
    position: (i64, i64),
    point: Vec<Val<'c>>,
    rules: Rules,
}
