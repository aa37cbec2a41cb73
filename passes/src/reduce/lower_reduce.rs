//! `lower-reduce`: reductions become kernels.
//!
//! Needs: tile kernels, and a host schedule that names the fields of reductions among them.
//! Guarantees: two kernels for each reduction, and their names in place of the field's in the
//! schedule; no `stencil.reduce` any more. The first kernel combines the points of each block, the
//! second one the results of the blocks. A box that is known to fit one block needs the first
//! alone.
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
use crate::kernel::function::{self, KernelFunction};
use crate::kernel::scope::Scope;
use crate::kernel::signature::read_by;
use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineExpr, AffineMap, Module};
use std::collections::BTreeSet;
use stencil_dialects::affine::symbolic;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Val};
use stencil_dialects::stencil::{self, Piece, Program, Reduce};
use stencil_dialects::tiled::{self, Binding, Kernel};

/// Points of a block.
pub const BLOCK: i64 = 8192;
/// Threads of a block.
pub const THREADS: i64 = 256;

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
    let subject = Subject::of(module, &program)?;
    for reduce in &program.reduces {
        let lowering = Lowering { context, subject: &subject, reduce };
        let repeats = tiled::repeats(module)?;
        let launched = repeats.iter().any(|repeat| repeat.kernels.contains(&reduce.field));
        // Tile kernels may have taken a reduction over, in all places or in some.
        let names = if launched { lowering.kernels()? } else { Vec::new() };
        let builder = Builder::new(context, reduce.op.location(), mlir::body(module));
        for repeat in repeats {
            let list = repeat.kernels.iter().flat_map(|name| match *name == reduce.field {
                true => names.clone(),
                false => vec![(*name).to_owned()],
            });
            tiled::set_kernels(&builder, repeat.op, &list.collect::<Vec<_>>());
        }
        mlir::erase(reduce.op);
        let kernels = tiled::kernels(module)?;
        let mut pieces = kernels.iter().flat_map(Kernel::applies).flat_map(|apply| &apply.pieces);
        if !pieces.any(|piece| piece.function == reduce.function) {
            mlir::erase(stencil::function(module, reduce.function)?);
        }
    }
    Ok(())
}

/// A reduction on its way to kernels.
pub struct Lowering<'c, 'p> {
    /// The context.
    pub context: &'c Context,
    /// The module.
    pub subject: &'p Subject<'c, 'p>,
    /// The reduction.
    pub reduce: &'p Reduce<'c>,
}

impl<'c> Lowering<'c, '_> {
    /// Builds the kernels; gives their names in order.
    fn kernels(&self) -> Result<Vec<String>, Error> {
        let Self { subject: Subject { module, program, .. }, reduce, .. } = self;
        let name = stencil::unused_name(module, &kernel_name(reduce.field));
        let piece = program.reduced(reduce)?;
        let extents = constant_extents(piece.lower, piece.upper);
        let points = extents.and_then(|extents| {
            extents.iter().try_fold(1_i64, |points, extent| points.checked_mul(*extent))
        });
        let alone = points.is_some_and(|points| (1..=BLOCK).contains(&points));
        let processor = self.subject.processor.is_some();
        match processor {
            true => on_processor::over_points(self, &name, alone)?,
            false => self.over_points(&name, alone)?,
        }
        if alone {
            return Ok(vec![name]);
        }
        let all = stencil::unused_name(module, &format!("{name}_all"));
        match processor {
            true => on_processor::over_blocks(self, &all)?,
            false => self.over_blocks(&all)?,
        }
        Ok(vec![name, all])
    }

    /// The kernel that combines the points of each block; `alone` where there is one block, whose
    /// result is that of the whole box.
    fn over_points(&self, name: &str, alone: bool) -> Result<(), Error> {
        let Self { context, subject, reduce } = *self;
        let (module, program) = (subject.module, subject.program);
        let piece = program.reduced(reduce)?;
        let rank = piece.lower.result_count();
        let outer = function::container(context, module, reduce.op.location())?;
        let read: BTreeSet<&str> = read_by(program, reduce.function)?;
        let mut bindings = partials::fields_first(program, &read, alone.then_some(reduce.field));
        if !alone {
            bindings.push(Binding::Partials(reduce.field));
        }
        let mut tile = vec![1; rank.saturating_sub(1)];
        tile.push(BLOCK);
        let mut per_thread = vec![1; rank.saturating_sub(1)];
        per_thread.push(BLOCK / THREADS);
        let schedule = partials::schedule(tile, per_thread);
        let threads = i32::try_from(THREADS).unwrap_or(i32::MAX);
        let axes = self.axes(piece.lower, piece.upper)?;
        let mut attributes = tiled::axes_attributes(&outer, &axes, [threads, 1, 1], &schedule);
        attributes.push(tiled::block_points_attribute(&outer, BLOCK));
        let operator = Operator::of(program.field(reduce.field)?, reduce.combine);
        let made =
            partials::function(&outer, subject, (name, operator), bindings, attributes, THREADS)?;
        let builder = &made.builder;
        let scope = self.scope(&made, piece, self.step(builder, made.arguments.step)?);
        let sources = &made.arguments.sources;
        let points = Points::new(builder, &scope, piece, sources, THREADS)?;
        let block = block::block_id(builder)?;
        let lanes = partials::lanes(&made, operator, THREADS)?;
        let first = builder.multiply_constant(block, BLOCK)?;
        let own = points.combined(builder, &lanes, first, BLOCK / THREADS)?;
        lanes.halve(builder, own)?;
        let first = builder.compare(Compare::Eq, lanes.thread, builder.index(0)?)?;
        builder.when(first, |builder| {
            let result = lanes.result(builder)?;
            if alone {
                let neutral = lanes.operator.neutral(builder)?;
                let value = lanes.operator.combine(builder, neutral, result)?;
                return partials::store(builder, &made, reduce.field, value);
            }
            let count = points.blocks(builder, BLOCK)?;
            let partials = block::view(builder, partials::buffer(&made)?, count)?;
            builder.store(result, partials, &[block])
        })?;
        builder.op("gpu.return", &[], &[], &[])?;
        function::load_gathered(builder, &scope, made.op, sources)
    }

    /// The kernel that combines the results of the blocks.
    fn over_blocks(&self, name: &str) -> Result<(), Error> {
        let Self { context, subject, reduce } = *self;
        let piece = subject.program.reduced(reduce)?;
        let operator = Operator::of(subject.program.field(reduce.field)?, reduce.combine);
        let location = reduce.op.location();
        let kernel = PartialsKernel { context, subject, field: reduce.field, operator, location };
        kernel.build(name, |made| {
            let builder = &made.builder;
            let scope = self.scope(made, piece, made.arguments.step);
            let points = Points::new(builder, &scope, piece, &made.arguments.sources, 1)?;
            points.blocks(builder, BLOCK)
        })
    }

    /// The names that a kernel over the box can use.
    fn scope(&self, made: &KernelFunction<'c>, piece: Piece<'c>, step: Val<'c>) -> Scope<'c, '_> {
        Scope {
            module: self.subject.module,
            program: self.subject.program,
            hull: Hull { lower: piece.lower, upper: piece.upper, alike: true, tight: true },
            params: made.arguments.params.clone(),
            scalars: made.arguments.scalars.clone(),
            step,
        }
    }

    /// The number of the step that the reduction belongs to.
    pub fn step(&self, builder: &Builder<'c>, launched: Val<'c>) -> Result<Val<'c>, Error> {
        let module = self.subject.module;
        let kernels = tiled::kernels(module)?;
        for repeat in tiled::repeats(module)? {
            let mut rest = repeat.kernels.iter().skip_while(|name| **name != self.reduce.field);
            let takes = |name: &&str| {
                kernels.iter().any(|kernel| kernel.name == *name && kernel.schedule.steps > 0)
            };
            if rest.any(takes) {
                return Ok(launched);
            }
        }
        builder.add_constant(launched, -1)
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
    let letter = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    format!("reduce_{}", field.chars().map(letter).collect::<String>())
}
