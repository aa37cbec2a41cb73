//! `lower-reduce`: reductions become kernels.
//!
//! Needs: tile kernels, and a host schedule that names the fields of reductions among them.
//! Guarantees: two kernels for each reduction, and their names in place of the field's in the
//! schedule; no `stencil.reduce` any more. The first kernel combines the points of each block, the
//! second one the results of the blocks. A box that is known to fit one block needs the first
//! alone. Up to four reductions that follow each other over one box share their kernels, which read
//! a field once for all of them, unless one needs the value of another one.
//!
//! The order of the combinations is that of the language. A block has 8,192 points, one behind the
//! other in the row-major box. Its 256 lanes take them in turn. The halves of the lanes are
//! combined until one is left. The second kernel does the same with 1,024 lanes. No operation of
//! this order may be contracted or re-associated, whatever the target allows.
//!
//! ```text
//! "stencil.reduce"() {field = @worst, grid = @worst.box, function = @f, operation = "max"}
//! "tiled.repeat"() {count = ..., kernels = [@heat, @worst]}
//! ```
//! becomes
//! ```text
//! gpu.func @reduce_worst(%A read, %partials, ...) {
//!   %own = scf.for 32 times { max(%own, f(point)) }
//!   halves of the 256 values in shared memory: max; thread 0: store partials[block]
//! }
//! gpu.func @reduce_worst_all(%partials, %worst read_write, ...) { the same over %partials }
//! "tiled.repeat"() {count = ..., kernels = [@heat, @reduce_worst, @reduce_worst_all]}
//! ```
//!
//! For a processor the kernels are functions of `on_processor.rs`, in the same order.
//!
//! A reduction behind the last kernel that takes a step belongs to that step: the number of the
//! step is then one less than that of the launch.

use super::block::{self, Operator};
use super::on_processor;
use super::partials::{self, PartialsKernel};
use super::points::Points;
use crate::analysis::hull::Hull;
use crate::analysis::index_width::constant_extents;
use crate::kernel::cut;
use crate::kernel::function::{self, KernelFunction};
use crate::kernel::scope::Scope;
use crate::kernel::signature::read_by;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, AffineMap, Location, Module};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{self, Argument, Boundary, Piece, Program, Reduce};
use stencil_dialects::tiled::{self, Kernel};

/// Points of a block.
pub const BLOCK: i64 = 8192;
/// Threads of a block.
pub const THREADS: i64 = 256;
/// The most reductions of one kernel: their lanes meet in shared memory.
const TOGETHER: usize = 4;

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "lower-reduce",
    summary: "lower reductions to kernels: one over the points, one over its blocks",
    options: &[],
    read: |_: &Options| Ok(Box::new(LowerReduce)),
};

/// The pass.
pub struct LowerReduce;

impl Pass for LowerReduce {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn has_work(&self, module: &Module) -> Result<bool, Error> {
        Ok(!Program::read(module)?.reduces.is_empty())
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        run(context, module)
    }
}

fn run<'c>(context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
    let program = Program::read(module)?;
    let repeats = tiled::repeats(module)?;
    if let (Some(reduce), true) = (program.reduces.first(), repeats.is_empty()) {
        return Err(Error::new(
            mlir::place(reduce.op.location()),
            "no launch schedule says yet when this value is computed; run lower-reduce behind \
             tile-overlapped",
        ));
    }
    let subject = Subject::of(module, &program)?;
    // Tile kernels, and those that are lowered already.
    let (tiled, lowered) = (tiled::kernels(module)?, tiled::launches(module)?);
    let tiled = tiled.iter().map(|kernel| (kernel.name, &kernel.schedule));
    let lowered = lowered.iter().map(|launch| (launch.name, &launch.schedule));
    let counting: BTreeSet<String> = tiled
        .chain(lowered)
        .filter(|(_, schedule)| schedule.steps > 0)
        .map(|(name, _)| name.to_owned())
        .collect();
    let builder = Builder::new(context, mlir::module_op(module).location(), mlir::body(module));
    let mut made = BTreeMap::new();
    for repeat in repeats {
        let last = repeat.kernels.iter().rposition(|name| counting.contains(*name));
        let mut list = Vec::new();
        let mut place = 0;
        while let Some(name) = repeat.kernels.get(place) {
            let together = together(&program, repeat.kernels.get(place..).unwrap_or_default())?;
            if together.is_empty() {
                list.push((*name).to_owned());
                place += 1;
                continue;
            }
            let mut counted = last.is_none_or(|last| last < place);
            counted &= asks_for_step(&program, &together)?;
            let fields: Vec<&str> = together.iter().map(|reduce| reduce.field).collect();
            place += fields.len();
            let names = match made.entry((fields, counted)) {
                Entry::Occupied(names) => names.into_mut(),
                Entry::Vacant(open) => {
                    let subject = &subject;
                    let reduces = together;
                    open.insert(Lowering { context, subject, reduces, counted }.kernels()?)
                }
            };
            list.extend_from_slice(names);
        }
        tiled::set_kernels(&builder, repeat.op, &list);
    }
    for reduce in &program.reduces {
        mlir::erase(reduce.op);
        let kernels = tiled::kernels(module)?;
        let mut pieces = kernels.iter().flat_map(Kernel::applies).flat_map(|apply| &apply.pieces);
        if !pieces.any(|piece| piece.function == reduce.function) {
            mlir::erase(stencil::function(module, reduce.function)?);
        }
    }
    Ok(())
}

/// The reductions at the beginning of a list of launches that one kernel computes: over one box,
/// and none reads the value of another one before it.
fn together<'c, 'p>(
    program: &'p Program<'c>,
    names: &[&str],
) -> Result<Vec<&'p Reduce<'c>>, Error> {
    let (mut found, mut fields) = (Vec::<&Reduce>::new(), BTreeSet::new());
    for name in names.iter().take(TOGETHER) {
        let Some(reduce) = program.reduces.iter().find(|reduce| reduce.field == *name) else {
            break;
        };
        if let Some(first) = found.first() {
            let (own, first) = (program.reduced(reduce)?, program.reduced(first)?);
            let alike = (own.lower, own.upper) == (first.lower, first.upper);
            if !alike
                || fields.contains(reduce.field)
                || !program.gathered(reduce.function)?.is_disjoint(&fields)
            {
                break;
            }
        }
        fields.insert(reduce.field);
        found.push(reduce);
    }
    Ok(found)
}

/// Whether a value at a point depends on the number of the step, by itself or by a boundary rule.
fn asks_for_step(program: &Program, reduces: &[&Reduce]) -> Result<bool, Error> {
    for reduce in reduces {
        for argument in program.arguments(reduce.function)? {
            match argument {
                Argument::Step => return Ok(true),
                Argument::Read { field, .. } => {
                    if let Some(Boundary::Value(rule)) = program.field(field)?.boundary
                        && program.arguments(rule)?.contains(&Argument::Step)
                    {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(false)
}

/// Reductions on their way to kernels.
pub struct Lowering<'c, 'p> {
    /// The context.
    pub context: &'c Context,
    /// The module.
    pub subject: &'p Subject<'c, 'p>,
    /// Over one box, in their order.
    pub reduces: Vec<&'p Reduce<'c>>,
    /// Whether they need the number of their step behind the launch that counts the step.
    pub counted: bool,
}

impl<'c> Lowering<'c, '_> {
    /// Builds the kernels; gives their names in order.
    fn kernels(&self) -> Result<Vec<String>, Error> {
        let Self { subject: Subject { module, .. }, reduces, .. } = self;
        let (Some(first), Some(last)) = (reduces.first(), reduces.last()) else {
            return Err(Error::internal("kernels of no reduction"));
        };
        let mut name = kernel_name(first.field);
        if reduces.len() > 1 {
            name = format!("{name}_to_{}", letters(last.field));
        }
        let name = stencil::unused_name(module, &name);
        let pieces = self.pieces()?;
        let piece = pieces.first().ok_or_else(|| Error::internal("no box"))?;
        let extents = constant_extents(piece.lower, piece.upper);
        let points = extents.and_then(|extents| {
            extents.iter().try_fold(1_i64, |points, extent| points.checked_mul(*extent))
        });
        let alone = points.is_some_and(|points| (1..=BLOCK).contains(&points));
        let processor = self.subject.processor.is_some();
        let box_of_all = (pieces.as_slice(), piece);
        match processor {
            true => on_processor::over_points(self, &name, box_of_all, alone)?,
            false => self.over_points(&name, box_of_all, alone)?,
        }
        if alone {
            return Ok(vec![name]);
        }
        let all = stencil::unused_name(module, &format!("{name}_all"));
        match processor {
            true => on_processor::over_blocks(self, &all, box_of_all)?,
            false => self.over_blocks(&all, box_of_all)?,
        }
        Ok(vec![name, all])
    }

    /// The values at the points of the box.
    fn pieces(&self) -> Result<Vec<Piece<'c>>, Error> {
        self.reduces.iter().map(|reduce| self.subject.program.reduced(reduce)).collect()
    }

    /// The fields of the values, and how values are combined.
    pub fn reductions(&self) -> Result<Vec<(&'c str, Operator<'c>)>, Error> {
        let program = self.subject.program;
        let one = |reduce: &&Reduce<'c>| {
            Ok((reduce.field, Operator::of(program.field(reduce.field)?, reduce.combine)))
        };
        self.reduces.iter().map(one).collect()
    }

    /// The fields that the values are computed of.
    pub fn read(&self) -> Result<BTreeSet<&str>, Error> {
        let read = self.reduces.iter().map(|reduce| read_by(self.subject.program, reduce.function));
        Ok(read.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The place of the first reduction in the source.
    pub fn location(&self) -> Location<'c> {
        let place = self.reduces.first().map(|reduce| reduce.op.location());
        place.unwrap_or_else(|| mlir::module_op(self.subject.module).location())
    }

    /// The kernel that combines the points of each block; `alone` where there is one block, whose
    /// results are those of the whole box.
    fn over_points(
        &self,
        name: &str,
        (pieces, piece): (&[Piece<'c>], &Piece<'c>),
        alone: bool,
    ) -> Result<(), Error> {
        let Self { context, subject, .. } = *self;
        let (module, program) = (subject.module, subject.program);
        let rank = piece.lower.result_count();
        let outer = function::container(context, module, self.location())?;
        let reductions = self.reductions()?;
        let fields: Vec<&str> = reductions.iter().map(|(field, _)| *field).collect();
        let operators: Vec<Operator> = reductions.iter().map(|(_, operator)| *operator).collect();
        let bindings = partials::over_points(program, &self.read()?, &fields, alone);
        let mut tile = vec![1; rank.saturating_sub(1)];
        tile.push(BLOCK);
        let mut per_thread = vec![1; rank.saturating_sub(1)];
        per_thread.push(BLOCK / THREADS);
        let schedule = partials::schedule(tile, per_thread);
        let threads = i32::try_from(THREADS).unwrap_or(i32::MAX);
        let axes = self.axes(piece.lower, piece.upper)?;
        let mut attributes = tiled::axes_attributes(&outer, &axes, [threads, 1, 1], &schedule);
        attributes.push(tiled::block_points_attribute(&outer, BLOCK));
        let of_box = (piece.lower, piece.upper);
        attributes.push(cut::of_points(&outer, subject, pieces, of_box, BLOCK)?);
        let made =
            partials::function(&outer, subject, (name, &operators), bindings, attributes, THREADS)?;
        let builder = &made.builder;
        let step = builder.add_constant(made.arguments.step, -i64::from(self.counted))?;
        let scope = self.scope(&made, piece, step);
        let sources = &made.arguments.sources;
        let points = Points::new(builder, &scope, pieces, sources, THREADS)?;
        let block = block::block_id(builder)?;
        let lanes = partials::lanes(&made, &operators, THREADS)?;
        let first = builder.multiply_constant(block, BLOCK)?;
        let own = points.combined(builder, &lanes, first, BLOCK / THREADS)?;
        block::halve(builder, &lanes, &own)?;
        let first = builder.compare(Compare::Eq, block::thread_id(builder)?, builder.index(0)?)?;
        builder.when(first, |builder| {
            let count = if alone { None } else { Some(points.blocks(builder, BLOCK)?) };
            for (lanes, field) in lanes.iter().zip(&fields) {
                let result = lanes.result(builder)?;
                let Some(count) = count else {
                    let neutral = lanes.operator.neutral(builder)?;
                    let value = lanes.operator.combine(builder, neutral, result)?;
                    partials::store(builder, &made.arguments, field, value)?;
                    continue;
                };
                let partials =
                    block::view(builder, partials::buffer(&made.arguments, field)?, count)?;
                builder.store(result, partials, &[block])?;
            }
            Ok(())
        })?;
        builder.op("gpu.return", &[], &[], &[])?;
        function::load_gathered(builder, &scope, made.op, sources)
    }

    /// The kernel that combines the results of the blocks.
    fn over_blocks(
        &self,
        name: &str,
        (pieces, piece): (&[Piece<'c>], &Piece<'c>),
    ) -> Result<(), Error> {
        let Self { context, subject, .. } = *self;
        let (reductions, location) = (self.reductions()?, self.location());
        let kernel = PartialsKernel { context, subject, reductions: &reductions, location };
        kernel.build(name, |made| {
            let builder = &made.builder;
            let scope = self.scope(made, piece, made.arguments.step);
            let points = Points::new(builder, &scope, pieces, &made.arguments.sources, 1)?;
            points.blocks(builder, BLOCK)
        })
    }

    /// The names that a kernel over the box can use.
    fn scope(&self, made: &KernelFunction<'c>, piece: &Piece<'c>, step: Val<'c>) -> Scope<'c, '_> {
        Scope {
            module: self.subject.module,
            program: self.subject.program,
            hull: Hull { lower: piece.lower, upper: piece.upper, alike: true, tight: true },
            params: made.arguments.params.clone(),
            scalars: made.arguments.scalars.clone(),
            step,
        }
    }

    /// The extents of the box along each dimension, of which none is negative.
    pub fn axes(
        &self,
        lower: AffineMap<'c>,
        upper: AffineMap<'c>,
    ) -> Result<Vec<AffineMap<'c>>, Error> {
        let extents = crate::kernel::field_buffers::extents(self.context, lower, upper)?;
        let symbols = self.subject.program.params.len();
        let zero = AffineExpr::constant(self.context, 0);
        Ok(extents
            .into_iter()
            .map(|extent| symbolic(self.context, symbols, &[extent, zero]))
            .collect())
    }
}

/// A name that PTX allows.
pub fn kernel_name(field: &str) -> String {
    format!("reduce_{}", letters(field))
}

fn letters(field: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    field.chars().map(letter).collect()
}
