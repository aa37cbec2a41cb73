//! The functions that a tile's function calls, each for one operation over a box of cells.
//!
//! A function takes the arguments of its kernel that it needs, the box, and the places of the
//! values that it reads and writes. Actions that differ in their memory alone share one function,
//! also those of several kernels: the code of a program does not grow with its steps.

use super::boxes::Cells;
use super::lanes;
use super::layout::{Layout, Work, bytes_of};
use super::place::{self, Place};
use super::point_code::PointCode;
use crate::kernel::evaluate::{At, Distance, Rules};
use crate::kernel::host_function::{self, HostFunction};
use crate::kernel::scope::Scope;
use crate::kernel::signature::Signature;
use crate::kernel::tile_kernels;
use crate::subject::Subject;
use melior::Context;
use melior::ir::Type;
use melior::ir::operation::OperationLike;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil;
use stencil_dialects::tiled::{Apply, Binding, Kernel};

/// Makes the functions of a module, each once.
#[derive(Default)]
pub struct BoxFunctions {
    made: RefCell<BTreeMap<String, String>>,
}

/// The function of an action.
pub struct BoxFunction<'c> {
    /// Its name.
    pub name: String,
    /// The arguments of the kernel that it takes: the first of its own.
    bindings: Vec<Binding<'c>>,
}

/// The kernel whose functions are made.
#[derive(Clone, Copy)]
pub struct Subjects<'c, 'p> {
    /// The context.
    pub context: &'c Context,
    /// The module.
    pub subject: &'p Subject<'c, 'p>,
    /// The kernel.
    pub kernel: &'p Kernel<'c>,
    /// Whether its tiles go on beyond the grid as the grid repeated.
    pub wraps: bool,
    /// The arguments of the kernel.
    pub signature: &'p Signature<'c>,
    /// Bytes of a vector.
    pub vector: i64,
}

/// The fields whose cells an action takes: their places are its last arguments, in this order.
pub fn fields<'c>(layout: &Layout<'c, '_>, work: &Work<'c, '_>) -> Vec<(&'c str, Val<'c>)> {
    match work {
        Work::Load(field, tile) | Work::Store(field, tile) => {
            vec![(*field, *tile), (*field, *tile)]
        }
        Work::Apply(apply) => {
            let outputs = apply.outputs.iter().filter(|(_, tile)| is_kept(layout, *tile));
            apply.inputs.iter().chain(outputs).copied().collect()
        }
    }
}

/// The fields whose memory an action reads for cells that keep their value, because their old value
/// is a renamed one: their places follow those of [`fields`].
pub fn rims<'c>(layout: &Layout<'c, '_>, work: &Work<'c, '_>) -> Vec<&'c str> {
    let Work::Apply(apply) = work else { return Vec::new() };
    let kept = apply.outputs.iter().filter(|(_, tile)| is_kept(layout, *tile));
    let renamed = |field: &str| apply.kept(field).is_some_and(|old| layout.renames.has(old));
    kept.map(|(field, _)| *field).filter(|field| renamed(field)).collect()
}

/// Whether anybody needs a new value.
fn is_kept(layout: &Layout, tile: Val) -> bool {
    layout.window(tile).is_some() || layout.direct(tile).is_some()
}

impl BoxFunctions {
    /// The function of an action, made where there is none yet.
    pub fn of<'c>(
        &self,
        subjects: Subjects<'c, '_>,
        layout: &Layout<'c, '_>,
        work: &Work<'c, '_>,
    ) -> Result<BoxFunction<'c>, Error> {
        let Subjects { context, subject, kernel, wraps, .. } = subjects;
        let location = kernel.op.location();
        let outer = host_function::container(context, subject.module, location)?;
        let (what, location) = match work {
            Work::Load(field, _) => (format!("load {}", cells(subject, field)?), location),
            Work::Store(field, _) => (format!("store {}", cells(subject, field)?), location),
            Work::Apply(apply) => {
                let rims = rims(layout, work);
                (format!("{} {rims:?}", describe(layout, apply, wraps)), apply.op.location())
            }
        };
        let bindings = needed(subjects, work)?;
        let hull = tile_kernels::hull(context, subject.program, kernel)?;
        let key = format!("{what} {bindings:?} {wraps} {hull:?}");
        let known = self.made.borrow().get(&key).cloned();
        if let Some(name) = known {
            return Ok(BoxFunction { name, bindings });
        }
        let name = format!("box.{}", self.made.borrow().len());
        let outer = Builder { location, ..outer };
        let signature = Signature::of_bindings(&outer, subject.program, bindings.clone())?;
        make(subjects, &outer, (&name, &signature), layout, work)?;
        self.made.borrow_mut().insert(key, name.clone());
        Ok(BoxFunction { name, bindings })
    }
}

/// The arguments of the kernel that an action needs: sizes, scalars, the step, and the fields that
/// its points read at computed places. Other fields lie at the places that it is given.
fn needed<'c>(subjects: Subjects<'c, '_>, work: &Work<'c, '_>) -> Result<Vec<Binding<'c>>, Error> {
    let Subjects { subject, signature, .. } = subjects;
    let pieces = if let Work::Apply(apply) = work { apply.pieces.as_slice() } else { &[] };
    let gathered = pieces.iter().map(|piece| {
        let function = stencil::function(subject.module, piece.function)?;
        subject.program.gathered_in(function)
    });
    let gathered: BTreeSet<_> =
        gathered.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let needed = signature.bindings.iter().filter(|binding| match binding {
        Binding::Read(field) | Binding::ReadWrite(field) => gathered.contains(field),
        binding => matches!(binding, Binding::Param(_) | Binding::Scalar(_) | Binding::Step),
    });
    Ok(needed.cloned().collect())
}

/// The cells of a field, as the copies that share a function have them.
fn cells(subject: &Subject, field: &str) -> Result<String, Error> {
    let field = subject.program.field(field)?;
    Ok(format!("{} {}", field.grid, field.element))
}

/// A key: applies with the same one share a function.
fn describe<'c>(layout: &Layout<'c, '_>, apply: &Apply<'c>, wraps: bool) -> String {
    let pieces = mlir::attribute(apply.op, "pieces").map(|pieces| pieces.to_string());
    let inputs: Vec<_> = apply.inputs.iter().map(|(field, _)| *field).collect();
    let outputs: Vec<_> =
        apply.outputs.iter().map(|(field, tile)| (*field, is_kept(layout, *tile))).collect();
    let beyond = wraps && apply.reaches_beyond();
    format!("{pieces:?} {inputs:?} {outputs:?} {beyond}")
}

/// Builds the function of an action.
fn make<'c>(
    subjects: Subjects<'c, '_>,
    outer: &Builder<'c>,
    (name, signature): (&str, &Signature<'c>),
    layout: &Layout<'c, '_>,
    work: &Work<'c, '_>,
) -> Result<(), Error> {
    let Subjects { context, subject, kernel, wraps, vector, .. } = subjects;
    let rank = kernel.schedule.tile.len();
    let fields = fields(layout, work);
    let mut types: Vec<Type<'c>> = vec![outer.index_type(); 2 * rank];
    let mut widest = 1;
    let rims = rims(layout, work);
    for field in fields.iter().map(|(field, _)| field).chain(&rims) {
        let element = subject.program.field(field)?.element;
        widest = widest.max(bytes_of(element));
        types.extend(Place::types(outer, element));
    }
    let private = [host_function::private(context)];
    let made = host_function::build(outer, subject, name, (signature, &types), &private)?;
    let hull = tile_kernels::hull(context, subject.program, kernel)?;
    let scope = made.scope(subject, hull);
    let (ends, places) = made.others.split_at((2 * rank).min(made.others.len()));
    let region: Vec<_> = ends.chunks_exact(2).map(|ends| [ends[0], ends[1]]).collect();
    let places = places.chunks(place::ARGUMENTS).map(Place::read).collect::<Result<Vec<_>, _>>()?;
    let body = Body { made: &made, scope: &scope, region: Cells(region), wraps, vector };
    match work {
        Work::Load(field, _) => body.load(field, &places)?,
        Work::Store(field, _) => body.store(field, &places)?,
        Work::Apply(apply) => {
            let mut places = places.into_iter();
            let inputs = apply.inputs.iter().map(|(field, _)| *field).zip(&mut places).collect();
            let outputs = apply.outputs.iter();
            let outputs: Vec<_> = outputs
                .map(|(_, tile)| if is_kept(layout, *tile) { places.next() } else { None })
                .collect();
            let code = PointCode {
                scope: &scope,
                inputs: &inputs,
                outputs: &outputs,
                wraps,
                lanes: (vector / widest).max(1),
                registers: subject.vector_registers(),
            };
            body.apply(apply, &code, &rims.into_iter().zip(places).collect())?;
        }
    }
    made.finish(&scope)
}

/// The body of a function.
struct Body<'c, 'p> {
    made: &'p HostFunction<'c>,
    scope: &'p Scope<'c, 'p>,
    region: Cells<'c>,
    wraps: bool,
    vector: i64,
}

impl<'c> Body<'c, '_> {
    /// The points of a field's grid.
    fn grid(&self, field: &str) -> Result<Cells<'c>, Error> {
        let grid = self.scope.program.grid_of(field)?;
        Cells::of(&self.made.builder, self.scope, (grid.lower, grid.upper))
    }

    /// Copies cells of a field; those beyond its grid are those that they repeat.
    fn load(&self, field: &str, places: &[Place<'c>]) -> Result<(), Error> {
        let builder = &self.made.builder;
        let [from, to] = two(places)?;
        let grid = self.grid(field)?;
        let inside = self.region.within(builder, &grid)?;
        self.copy_rows(&inside, (&from, &to))?;
        if !self.wraps {
            return Ok(());
        }
        let declared = self.scope.program.grid_of(field)?;
        let there = self.scope.holds_points(builder, declared.lower, declared.upper)?;
        builder.when(there, |builder| {
            self.region.each_outside(builder, &grid, &mut |builder, cell| {
                let repeated = self.scope.wrapped(builder, field, cell)?;
                copy_cell(builder, (from, &repeated), (to, cell))
            })
        })
    }

    /// Copies the tile's own cells to a field.
    fn store(&self, field: &str, places: &[Place<'c>]) -> Result<(), Error> {
        let builder = &self.made.builder;
        let [from, to] = two(places)?;
        self.copy_rows(&self.region.within(builder, &self.grid(field)?)?, (&from, &to))
    }

    /// Copies rows of cells.
    fn copy_rows(&self, cells: &Cells<'c>, places: (&Place<'c>, &Place<'c>)) -> Result<(), Error> {
        let ends = cells.row()?;
        cells.each_row(&self.made.builder, &mut |builder, row| {
            copy_part(builder, self.vector, places, (row, ends))
        })
    }

    /// The new values of an apply. Where no piece lies the old ones are copied; then the pieces
    /// follow, the first one last, which so has all points that it covers.
    fn apply(
        &self,
        apply: &Apply<'c>,
        code: &PointCode<'c, '_>,
        rims: &BTreeMap<&str, Place<'c>>,
    ) -> Result<(), Error> {
        let builder = &self.made.builder;
        let hull = &self.scope.hull;
        let points = Cells::of(builder, self.scope, (hull.lower, hull.upper))?;
        let inside = match self.wraps {
            true => self.region.within(builder, &points)?,
            false => self.region.clone(),
        };
        let Some(main) = apply.main.as_ref().or(apply.pieces.first()) else {
            return Err(Error::internal("an apply without pieces"));
        };
        let main = Cells::of(builder, self.scope, (main.lower, main.upper))?;
        for ((field, _), to) in apply.outputs.iter().zip(code.outputs) {
            let (Some(to), Some(_)) = (to, apply.kept(field)) else { continue };
            let from = rims.get(field).map_or_else(|| code.input(field), Ok)?;
            let own = inside.within(builder, &self.grid(field)?)?;
            own.each_part_outside(builder, &main, &mut |builder, row, ends| {
                copy_part(builder, self.vector, (from, to), (row, ends))
            })?;
        }
        for piece in apply.pieces.iter().rev() {
            code.piece(builder, piece, &inside)?;
        }
        let Some((field, _)) = apply.outputs.first() else { return Ok(()) };
        if !self.wraps || !apply.reaches_beyond() {
            return Ok(());
        }
        let there = self.scope.holds_points(builder, hull.lower, hull.upper)?;
        builder.when(there, |builder| {
            self.region.each_outside(builder, &points, &mut |builder, cell| {
                let point = self.scope.wrapped(builder, field, cell)?;
                let fetch = |builder: &Builder<'c>, field: &str, distances: &[Distance<'c>]| {
                    code.fetch(builder, field, (cell, distances))
                };
                let at = At {
                    point: &point,
                    step: 0,
                    rules: Rules::Wrapped,
                    fetch: &fetch,
                    current: None,
                    partial: None,
                };
                let values = self.scope.new_values(builder, apply, &apply.pieces, &at)?;
                code.store(builder, &values, cell)
            })
        })
    }
}

fn two<'c>(places: &[Place<'c>]) -> Result<[Place<'c>; 2], Error> {
    match places {
        [from, to] => Ok([*from, *to]),
        _ => Err(Error::internal("a copy of other than two places")),
    }
}

/// Copies a cell.
fn copy_cell<'c>(
    builder: &Builder<'c>,
    (from, source): (Place<'c>, &[Val<'c>]),
    (to, target): (Place<'c>, &[Val<'c>]),
) -> Result<(), Error> {
    let value = builder.load(from.flat(builder)?, &[from.number(builder, source)?])?;
    builder.store(value, to.flat(builder)?, &[to.number(builder, target)?])
}

/// Copies a part of a row, in vectors where it is as long as one. Vectors begin at multiples of
/// their lanes, which are aligned in windows; the first begins with the part, and the last ends
/// with it. They copy some cells twice: both places are different memory, or the same cells.
fn copy_part<'c>(
    builder: &Builder<'c>,
    vector: i64,
    (from, to): (&Place<'c>, &Place<'c>),
    (row, [first, end]): (&[Val<'c>], [Val<'c>; 2]),
) -> Result<(), Error> {
    let (source, target) = (from.row_start(builder, row)?, to.row_start(builder, row)?);
    let (from, to) = (from.flat(builder)?, to.flat(builder)?);
    let single = |builder: &Builder<'c>| {
        builder.repeat((first, end, builder.index(1)?), |builder, at| {
            let value = builder.load(from, &[builder.add(source, at)?])?;
            builder.store(value, to, &[builder.add(target, at)?])
        })
    };
    let element = place::element(from)?;
    let lanes = vector / bytes_of(element);
    if lanes <= 1 {
        return single(builder);
    }
    let ty = lanes::vector_type(element, lanes)?;
    let vectors = |builder: &Builder<'c>| {
        let start = builder.binary("arith.andi", first, builder.index(-lanes)?)?;
        let last = builder.add_constant(end, -lanes)?;
        builder.repeat((start, end, builder.index(lanes)?), |builder, at| {
            let at = builder.binary("arith.maxsi", at, first)?;
            let at = builder.binary("arith.minsi", at, last)?;
            let cells = [from, builder.add(source, at)?];
            let cells = builder.value("vector.load", &cells, ty, &[])?;
            let there = [cells, to, builder.add(target, at)?];
            builder.op("vector.store", &there, &[], &[]).map(drop)
        })
    };
    let cells = builder.binary("arith.subi", end, first)?;
    let enough = builder.compare(Compare::Ge, cells, builder.index(lanes)?)?;
    let none = |()| Vec::new();
    builder
        .choose(
            enough,
            &[],
            |builder| vectors(builder).map(none),
            |builder| single(builder).map(none),
        )
        .map(drop)
}

impl<'c> BoxFunction<'c> {
    /// The first operands of a call, in a kernel with this signature and these arguments, for an
    /// action of a step.
    pub fn operands(
        &self,
        builder: &Builder<'c>,
        (signature, bound): (&Signature<'c>, &[Val<'c>]),
        step: i64,
    ) -> Result<Vec<Val<'c>>, Error> {
        let all = signature.bindings.iter().zip(bound);
        let taken = all.filter(|(binding, _)| self.bindings.contains(binding));
        let values = taken.map(|(binding, value)| match binding {
            Binding::Step => builder.add_constant(*value, step),
            _ => Ok(*value),
        });
        values.collect()
    }
}
