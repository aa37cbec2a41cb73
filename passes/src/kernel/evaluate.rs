//! Evaluation of point functions: which piece covers a point, what each argument stands for, and
//! which cell a read takes that lies outside the grid.
//!
//! Outside cells are nowhere stored: a boundary rule changes where a read goes. Read at `p + o`,
//! the rule maps the coordinate to one inside, and the read goes to `p + d` in place of `p + o`,
//! with `d` as [`Halo::of_read`](stencil_dialects::tiled::Halo::of_read) bounds it. The expression
//! of a rule is evaluated only where the read lies outside.

use super::boundary::{self, Edges};
use super::scope::Scope;
use melior::ir::Type;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{self, Argument, Boundary, Piece};
use stencil_dialects::tiled::{Apply, Halo};

/// How far from the point a cell is read, along one dimension.
#[derive(Clone, Copy)]
pub enum Distance<'c> {
    /// Cells known at compile time.
    Constant(i64),
    /// Cells that a boundary rule finds, as `index`, from a least to a most.
    Mapped(Val<'c>, [i64; 2]),
}

impl<'c> Distance<'c> {
    /// A coordinate or index at this distance from another.
    pub fn from(self, builder: &Builder<'c>, start: Val<'c>) -> Result<Val<'c>, Error> {
        match self {
            Self::Constant(cells) => builder.add_constant(start, cells),
            Self::Mapped(cells, _) => builder.add(start, cells),
        }
    }
}

/// The cell at some distances, for a lowering that holds cells in registers and so can take them at
/// known offsets alone: where a rule finds the distance, all cells that it may be, and a select for
/// each.
pub fn cell_in_registers<'c>(
    builder: &Builder<'c>,
    distances: &[Distance<'c>],
    at: &dyn Fn(&[i64]) -> Result<Val<'c>, Error>,
) -> Result<Val<'c>, Error> {
    let Some((distance, rest)) = distances.split_first() else { return at(&[]) };
    let beyond = |cells: i64| {
        cell_in_registers(builder, rest, &|offset: &[i64]| at(&[&[cells], offset].concat()))
    };
    match distance {
        Distance::Constant(cells) => beyond(*cells),
        Distance::Mapped(found, [least, most]) => {
            let mut value = beyond(*least)?;
            for cells in least + 1..=*most {
                let here = builder.compare(Compare::Eq, *found, builder.index(cells)?)?;
                value = builder.select(here, beyond(cells)?, value)?;
            }
            Ok(value)
        }
    }
}

/// Fetches a cell's old value: the field, and the distance from the point along each dimension.
pub type Fetch<'c, 'r> = dyn Fn(&Builder<'c>, &str, &[Distance<'c>]) -> Result<Val<'c>, Error> + 'r;

/// Which boundary rules an evaluation has to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// None: no read lies outside the grid.
    Unneeded,
    /// All.
    All,
    /// Those along the fastest dimension: no read leaves the grid along another.
    Fastest,
    /// All but `periodic`: the tile goes on beyond the grid as the grid repeated.
    Wrapped,
}

/// Where and from what a point function is evaluated.
pub struct At<'c, 'a> {
    /// The point's coordinates.
    pub point: &'a [Val<'c>],
    /// The step within the launch.
    pub step: i64,
    /// Which boundary rules reads follow.
    pub rules: Rules,
    /// Where old values come from.
    pub fetch: &'a Fetch<'c, 'a>,
    /// Where values of the same sweep come from, in a lowering that has them.
    pub current: Option<&'a Fetch<'c, 'a>>,
    /// What another function computed of the new value.
    pub partial: Option<Val<'c>>,
}

impl<'c> Scope<'c, '_> {
    /// The new values of an apply's fields at a point: those of the piece that covers it, else the
    /// old ones.
    pub fn new_values(
        &self,
        builder: &Builder<'c>,
        apply: &Apply<'c>,
        pieces: &[Piece<'c>],
        at: &At<'c, '_>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let Some((piece, rest)) = pieces.split_first() else {
            let here = vec![Distance::Constant(0); at.point.len()];
            let old = |(field, _): &(&str, _)| {
                // A field without a tile has no value here, and nobody asks for one.
                if apply.kept(field).is_none() {
                    return Ok(vec![builder.zero(self.program.field(field)?.element)?]);
                }
                let fetch = |builder: &Builder<'c>| Ok(vec![(at.fetch)(builder, field, &here)?]);
                self.where_it_lies(
                    builder,
                    field,
                    at.point,
                    &[self.program.field(field)?.element],
                    fetch,
                )
            };
            return Ok(apply.outputs.iter().map(old).collect::<Result<Vec<_>, _>>()?.concat());
        };
        let covered = self.inside(builder, at.point, piece.lower, piece.upper)?;
        let types = apply
            .outputs
            .iter()
            .map(|(field, _)| Ok(self.program.field(field)?.element))
            .collect::<Result<Vec<_>, Error>>()?;
        builder.choose(
            covered,
            &types,
            |builder| self.evaluate(builder, piece, at),
            |builder| self.new_values(builder, apply, rest, at),
        )
    }

    /// Code for a point where it lies on a field's grid, with zeros as its results elsewhere. Where
    /// the stored fields lie on the same points there is no condition: the caller sees to it.
    pub fn where_it_lies(
        &self,
        builder: &Builder<'c>,
        field: &str,
        point: &[Val<'c>],
        results: &[Type<'c>],
        code: impl FnOnce(&Builder<'c>) -> Result<Vec<Val<'c>>, Error>,
    ) -> Result<Vec<Val<'c>>, Error> {
        if self.hull.alike {
            return code(builder);
        }
        let grid = self.program.grid_of(field)?;
        let inside = self.inside(builder, point, grid.lower, grid.upper)?;
        builder.choose(inside, results, code, |builder| {
            results.iter().map(|ty| builder.zero(*ty)).collect()
        })
    }

    /// Evaluates a piece's point function at a point that the piece covers.
    pub fn evaluate(
        &self,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        at: &At<'c, '_>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let function = stencil::function(self.module, piece.function)?;
        let mut values = Vec::new();
        for argument in stencil::arguments(function)? {
            values.push(match &argument {
                Argument::Read { field, offset } => {
                    self.read(builder, piece, at, (field, offset))?
                }
                Argument::Current { field, offset } => {
                    self.current(builder, at, (field, offset))?
                }
                Argument::Partial => at
                    .partial
                    .ok_or_else(|| Error::internal("no partial result reaches a point"))?,
                other => self.outer(builder, other, at.point, at.step)?,
            });
        }
        Ok(mlir::inline_block(stencil::function_body(function)?, &values, builder.block))
    }

    /// The value of an argument that is no cell.
    pub(crate) fn outer(
        &self,
        builder: &Builder<'c>,
        argument: &Argument,
        point: &[Val<'c>],
        step: i64,
    ) -> Result<Val<'c>, Error> {
        let i64_type = builder.integer_type(64);
        match argument {
            Argument::Scalar(name) => self
                .scalars
                .get(name)
                .copied()
                .ok_or_else(|| Error::internal(format!("no scalar @{name} reaches the kernel"))),
            Argument::Param(name) => {
                let position = self.program.params.iter().position(|param| param == name);
                let value = position.and_then(|position| self.params.get(position)).copied();
                let value = value
                    .ok_or_else(|| Error::internal(format!("no size {name} reaches the kernel")))?;
                builder.value("arith.index_cast", &[value], i64_type, &[])
            }
            Argument::Coordinate(dimension) => {
                let value = point
                    .get(*dimension)
                    .copied()
                    .ok_or_else(|| Error::internal("a coordinate beyond the rank"))?;
                builder.value("arith.index_cast", &[value], i64_type, &[])
            }
            Argument::Step => builder.add(self.step, builder.constant(i64_type, step)?),
            Argument::Read { .. }
            | Argument::Current { .. }
            | Argument::Nearest
            | Argument::Partial => Err(Error::internal("a cell where none can be read")),
        }
    }

    /// The value that a cell at an offset got in the same sweep; 0 outside the field's grid, where
    /// the function takes the value of the field's boundary rule.
    fn current(
        &self,
        builder: &Builder<'c>,
        at: &At<'c, '_>,
        (name, offset): (&str, &[i64]),
    ) -> Result<Val<'c>, Error> {
        let fetch = at.current.ok_or_else(|| {
            let message = "the strategy of the kernel computes all points at once, and the \
                           function reads values of its own sweep; take a strategy for sweeps";
            Error::declined(Decline::Sweep, message).at(mlir::place(builder.location))
        })?;
        let field = self.program.field(name)?;
        let distances: Vec<_> = offset.iter().map(|cells| Distance::Constant(*cells)).collect();
        if field.boundary.is_none() {
            return fetch(builder, name, &distances);
        }
        let cells = at.point.iter().zip(&distances);
        let cells: Vec<_> = cells
            .map(|(start, distance)| distance.from(builder, *start))
            .collect::<Result<_, _>>()?;
        let grid = self.program.grid_of(name)?;
        let inside = self.inside(builder, &cells, grid.lower, grid.upper)?;
        let values = builder.choose(
            inside,
            &[field.element],
            |builder| Ok(vec![fetch(builder, name, &distances)?]),
            |builder| Ok(vec![builder.zero(field.element)?]),
        )?;
        values.first().copied().ok_or_else(|| Error::internal("scf.if without a result"))
    }

    /// A cell's old value at an offset from the point, by the boundary rule of the field.
    fn read(
        &self,
        builder: &Builder<'c>,
        piece: &Piece<'c>,
        at: &At<'c, '_>,
        (name, offset): (&str, &[i64]),
    ) -> Result<Val<'c>, Error> {
        let field = self.program.field(name)?;
        let straight: Vec<_> = offset.iter().map(|cells| Distance::Constant(*cells)).collect();
        let rule = match (at.rules, field.boundary) {
            (Rules::Unneeded, _) | (_, None) | (Rules::Wrapped, Some(Boundary::Periodic)) => {
                return (at.fetch)(builder, name, &straight);
            }
            (_, Some(rule)) => rule,
        };
        let mut distances = straight.clone();
        let reach = Halo::of_read(field, offset);
        let (mut reached, mut outside) = (at.point.to_vec(), Vec::new());
        for (dimension, cells) in offset.iter().enumerate() {
            let (Some(coordinate), Some(distance)) =
                (reached.get_mut(dimension), distances.get_mut(dimension))
            else {
                return Err(Error::internal("an offset beyond the rank"));
            };
            let start = *coordinate;
            *coordinate = builder.add_constant(start, *cells)?;
            if at.rules == Rules::Fastest && dimension + 1 < offset.len() {
                continue;
            }
            let edges = Edges::new(self, builder, piece, field, dimension, *cells)?;
            outside.extend(edges.outside(builder, *coordinate)?);
            if edges.crossed() {
                let mapped = match rule {
                    Boundary::Nearest | Boundary::Value(_) => {
                        edges.nearest(builder, *coordinate)?
                    }
                    Boundary::Periodic => edges.repeated(builder, *coordinate)?,
                    Boundary::Reflect => edges.mirrored(builder, *coordinate, *cells)?,
                };
                let [Some(least), Some(most)] =
                    [&reach.lower, &reach.upper].map(|ends| ends.get(dimension).copied())
                else {
                    return Err(Error::internal("an offset beyond the rank"));
                };
                *distance =
                    Distance::Mapped(builder.binary("arith.subi", mapped, start)?, [least, most]);
            }
        }
        let Boundary::Value(function) = rule else { return (at.fetch)(builder, name, &distances) };
        let Some(outside) = boundary::any(builder, &outside)? else {
            return (at.fetch)(builder, name, &straight);
        };
        let beyond = |builder: &Builder<'c>| {
            let nearest = |builder: &Builder<'c>| (at.fetch)(builder, name, &distances);
            self.ruled(builder, function, (&reached, at.step), &nearest)
        };
        let within = |builder: &Builder<'c>| Ok(vec![(at.fetch)(builder, name, &straight)?]);
        let values = builder.choose(outside, &[field.element], beyond, within)?;
        values.first().copied().ok_or_else(|| Error::internal("scf.if without a result"))
    }

    /// The value of a boundary rule's function at a point outside the grid, at a step of the
    /// launch, from the value of the nearest cell inside.
    pub fn beyond(
        &self,
        builder: &Builder<'c>,
        function: &str,
        outside: (&[Val<'c>], i64),
        nearest: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        let values = self.ruled(builder, function, outside, &|_| Ok(nearest))?;
        values.first().copied().ok_or_else(|| Error::internal("a rule without a value"))
    }

    /// The results of a boundary rule's function.
    fn ruled(
        &self,
        builder: &Builder<'c>,
        function: &str,
        (point, step): (&[Val<'c>], i64),
        nearest: &dyn Fn(&Builder<'c>) -> Result<Val<'c>, Error>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let function = stencil::function(self.module, function)?;
        let mut values = Vec::new();
        for argument in stencil::arguments(function)? {
            values.push(match &argument {
                Argument::Nearest => nearest(builder)?,
                other => self.outer(builder, other, point, step)?,
            });
        }
        Ok(mlir::inline_block(stencil::function_body(function)?, &values, builder.block))
    }

    /// The coordinate inside a field's grid that a coordinate stands for where the grid repeats.
    pub fn wrapped(
        &self,
        builder: &Builder<'c>,
        field: &str,
        point: &[Val<'c>],
    ) -> Result<Vec<Val<'c>>, Error> {
        let grid = self.program.grid_of(field)?;
        let (lower, upper) = (self.bounds(builder, grid.lower)?, self.bounds(builder, grid.upper)?);
        let bounds = lower.into_iter().zip(upper);
        point
            .iter()
            .zip(bounds)
            .map(|(at, (first, last))| boundary::repeated(builder, *at, first, last))
            .collect()
    }
}
