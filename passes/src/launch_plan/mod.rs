//! The launch plan of a module on the gpu level: plain data that the runtime executes.
//!
//! Needs: a module whose tile kernels are all lowered. Changes nothing.

mod cuts;
mod heights;
mod launches;
mod records;
mod reductions;
mod values;

use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{AffineMap, Module, ShapedTypeLike, Type, ValueLike};
use stencil_dialects::affine::{self, Linear};
use stencil_dialects::error::Error;
use stencil_dialects::limits::GRID_END;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Check, Field, Program, Role, Scalar};
use stencil_dialects::tiled::{self, Binding, Constant, Launch, Region};
use stencil_runtime::array::Element;
use stencil_runtime::expr::Expr;
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::{
    self, BufferDecl, BufferKind, BufferLayout, FieldDecl, Kernel, Part, Plan, PlanError,
    ScalarDecl, Settings, Start,
};
use stencil_runtime::watch;

use crate::analysis::grid_ends::{FarEnd, far_ends};
use crate::kernel::field_buffers::extents;
use crate::strategies;
use crate::subject::shared_by;
use crate::target::Target;
use melior::Context;
use values::{all, count, element, expression, member, number, single};

/// Reads the plan off a module, with the target that the module records. An error where a tile
/// kernel is not lowered yet, where the module has no host schedule, and where kernels and schedule
/// contradict each other.
pub fn of<'c>(context: &'c Context, module: &Module<'c>) -> Result<Plan, Error> {
    let program = Program::read(module)?;
    let target = Target::of(module)?;
    let launches = tiled::launches(module)?;
    if launches.is_empty() || !tiled::kernels(module)?.is_empty() {
        return Err(Error::user(
            "the module is not on the gpu level: every tile kernel must be lowered before a plan \
             can be made",
        ));
    }
    reductions::are_combined(&program)?;
    let repeats = tiled::repeats(module)?;
    if repeats.is_empty() {
        return Err(Error::user("the module has no launch schedule; add a tiled.repeat"));
    }
    let names = names(&program);
    let (fields, mut buffers) = fields(context, &program, &launches, &names)?;
    let constants = tiled::constants(module)?;
    let constants = constants.iter().map(|one| constant(&fields, one));
    buffers.extend(constants.collect::<Result<Vec<_>, _>>()?);
    for launch in &launches {
        buffers.extend(flags(launch, &names)?);
    }
    buffers.extend(reductions::partials(&program, &launches, &names)?);
    let most = launches.iter().map(|launch| launch.schedule.steps).max().unwrap_or(1);
    let main = launches.iter().find(|launch| launch.schedule.steps == most);
    let Launch { schedule: main, sweeps, .. } =
        main.cloned().ok_or_else(|| Error::internal("no main kernel"))?;
    let rounds = sweeps.filter(|_| strategies::stays_resident(&main.strategy)).unwrap_or(1);
    let plan = Plan {
        format: plan::FORMAT,
        program: program.name.clone(),
        target: plan::CompiledFor {
            device: Some(target.record().device),
            devices: Some(shared_by(module)?)
                .filter(|all| all.count() > 1)
                .map(|all| all.to_string()),
            contract: target.arithmetic.contract,
            fast_math: target.arithmetic.fast_math,
            arch: target.arch,
        },
        params: program.params.iter().map(|name| (*name).to_owned()).collect(),
        constants: program
            .constants
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        scalars: program.scalars.iter().map(scalar).collect::<Result<_, _>>()?,
        fields,
        buffers,
        steps: steps(&program, &names)?,
        checks: checks(context, &program, &names)?,
        index_width: tiled::index_width(module),
        kernels: launches.iter().map(kernel).collect::<Result<_, _>>()?,
        schedule: reductions::schedule(&program, &repeats, &launches, &names)?,
        settings: Settings {
            strategy: main.strategy,
            tile: main.tile,
            pyramid_height: most / rounds.max(1),
            per_thread: main.per_thread,
            region: (main.region != Region::default()).then(|| main.region.name().to_owned()),
            copies: None,
            fingerprint: String::new(),
            records: records::settings(&program)?,
        },
    };
    // What IR by hand may get wrong, such as too many threads for a block.
    plan.validate().map_err(|error| match error {
        PlanError::Invalid { program, message } => {
            Error::user(format!("{program} has no valid plan: {message}; correct its IR"))
        }
        error => Error::user(error.to_string()),
    })?;
    Ok(plan)
}

/// A run-time scalar.
fn scalar(scalar: &Scalar) -> Result<ScalarDecl, Error> {
    let element = element(scalar.element, scalar.unsigned)?;
    let default = scalar.default.and_then(|default| number(element, default)).map(Numeral::from);
    Ok(ScalarDecl { name: scalar.name.to_owned(), element, default })
}

/// What formulas of a plan may name.
fn names<'c>(program: &Program<'c>) -> Vec<&'c str> {
    program.params.iter().copied().chain(["steps"]).collect()
}

/// Whether the plan says how the blocks of a launch may be shared out between devices.
pub fn is_cut(program: &Program, launch: &Launch) -> Result<bool, Error> {
    Ok(launches::node(program, launch, &names(program))?.cut.is_some())
}

/// The conditions on the sizes: those of the module, and those of grids that it leaves open.
fn checks(context: &Context, program: &Program, names: &[&str]) -> Result<Vec<plan::Check>, Error> {
    let mut all =
        program.checks.iter().map(|at| check(at, names)).collect::<Result<Vec<_>, Error>>()?;
    for FarEnd { grid, margin } in far_ends(program) {
        let map = Linear::map(context, names.len(), &[margin]);
        let message = format!("the grid `{grid}` must lie between -{GRID_END} and {GRID_END}");
        all.push(plan::Check { value: single(map, names)?, unless_negative: Vec::new(), message });
    }
    Ok(all)
}

/// A condition on the sizes.
fn check(check: &Check, names: &[&str]) -> Result<plan::Check, Error> {
    let mut unless_negative = Vec::new();
    if let Some((lower, upper)) = check.unless_empty {
        for (lower, upper) in all(lower, names)?.into_iter().zip(all(upper, names)?) {
            unless_negative.push(expression(&format!("{upper} - ({lower})"))?);
        }
    }
    // `names` has the steps too.
    if check.value.symbol_count() == names.len() {
        unless_negative.push(expression("steps - 1")?);
    }
    let message = check.message.to_owned();
    Ok(plan::Check { value: single(check.value, names)?, unless_negative, message })
}

/// The steps of a run unless told otherwise: a number, or the sum of those of several that are
/// positive.
fn steps(program: &Program, names: &[&str]) -> Result<Expr, Error> {
    match all(program.steps, names)?.as_slice() {
        [steps] => Ok(steps.clone()),
        several => {
            let terms = several.iter().map(ToString::to_string).filter(|term| term != "0");
            let terms: Vec<_> = terms.map(|term| format!("max(0, {term})")).collect();
            expression(&if terms.is_empty() { "0".to_owned() } else { terms.join(" + ") })
        }
    }
}

/// The fields and their buffers. A field has one buffer if a kernel uses it or it is an input; a
/// second one if a kernel writes the next value.
fn fields<'c>(
    context: &'c Context,
    program: &Program<'c>,
    launches: &[Launch<'c>],
    names: &[&str],
) -> Result<(Vec<FieldDecl>, Vec<BufferDecl>), Error> {
    let (mut fields, mut buffers) = (Vec::new(), Vec::new());
    let mut rotates = Vec::new();
    for launch in launches {
        rotates.extend(tiled::rotations(launch.op)?.into_iter().flatten());
    }
    for field in &program.fields {
        if field.role.is_reduced() {
            let (declared, buffer) = reductions::cell(field)?;
            fields.extend(declared);
            buffers.push(buffer);
            continue;
        }
        let grid = program.grid_of(field.name)?;
        let cells = extents(context, grid.lower, grid.upper)?;
        let bound =
            |wanted: Binding| launches.iter().any(|launch| launch.bindings.contains(&wanted));
        let written = bound(Binding::Write(field.name));
        let taken = bound(Binding::Read(field.name)) || bound(Binding::ReadWrite(field.name));
        let declared = FieldDecl {
            name: field.name.to_owned(),
            element: element(field.element, field.unsigned)?,
            boolean: field.boolean,
            member: field.member.map(member).transpose()?,
            role: match field.role {
                Role::State => plan::Role::State,
                Role::Const => plan::Role::Const,
                // Reductions have no cells beside their value.
                Role::Temp | Role::Reduction | Role::Condition => plan::Role::Temp,
            },
            extents: cells
                .into_iter()
                .map(|extent| expression(&affine::text(extent, names)))
                .collect::<Result<_, _>>()?,
            value: Vec::new(),
        };
        let number = records::number(program, field, launches)?;
        if let Some(number) = &number {
            buffers.extend(number.buffers(&declared, launches));
            if number.has_buffer() {
                let own = written.then(|| next(field.name));
                let own = std::iter::once(field.name.to_owned()).chain(own);
                let empty = |name| BufferDecl { start: Start::Zeros, ..buffer(&declared, name) };
                buffers.extend(own.map(empty));
            }
            let value = number.value(parts(context, program, field, names)?);
            fields.push(FieldDecl { value, ..declared });
            continue;
        }
        // A temp field that no kernel takes lives in tiles alone.
        let mut value = Vec::new();
        if written || taken || rotates.contains(&field.name) || field.role != Role::Temp {
            value = parts(context, program, field, names)?;
            buffers.push(buffer(&declared, field.name.to_owned()));
        }
        if written {
            buffers.push(buffer(&declared, next(field.name)));
        }
        fields.push(FieldDecl { value, ..declared });
    }
    Ok((fields, buffers))
}

/// Where a field's value lies in its buffer: everywhere, or in some boxes.
fn parts<'c>(
    context: &'c Context,
    program: &Program<'c>,
    field: &Field<'c>,
    names: &[&str],
) -> Result<Vec<Part>, Error> {
    let buffer = field.name.to_owned();
    let Some(boxes) = tiled::computed(field)? else {
        return Ok(vec![Part { buffer, cells: None, number: None }]);
    };
    let unknown = || Error::internal(format!("bounds of @{} that are not linear", field.name));
    let origin = Linear::of_map(program.grid_of(field.name)?.lower).ok_or_else(unknown)?;
    // A plan counts cells from 0.
    let cells = |bounds: AffineMap<'c>| -> Result<Vec<Expr>, Error> {
        let bounds = Linear::of_map(bounds).ok_or_else(unknown)?;
        let moved = bounds.iter().zip(&origin).map(|(bound, first)| bound.minus(first));
        let moved: Vec<_> = moved.collect::<Option<_>>().ok_or_else(unknown)?;
        all(Linear::map(context, program.params.len(), &moved), names)
    };
    let part = |(lower, upper): (AffineMap<'c>, AffineMap<'c>)| {
        let bounds = cells(lower)?.into_iter().zip(cells(upper)?);
        let cells = Some(bounds.map(|(first, last)| [first, last]).collect());
        Ok(Part { buffer: buffer.clone(), cells, number: None })
    };
    boxes.into_iter().map(part).collect()
}

fn buffer(field: &FieldDecl, name: String) -> BufferDecl {
    BufferDecl {
        name,
        kind: BufferKind::Field,
        element: field.element,
        extents: field.extents.clone(),
        origin: Vec::new(),
        layout: BufferLayout::RowMajor,
        start: match field.role {
            plan::Role::Reduction => Start::Zeros,
            // A temp field starts as zeros, or where another run ended.
            _ => Start::Input(field.name.clone()),
        },
        constant: None,
        device: 0,
    }
}

/// The buffer of a variable in constant memory.
fn constant(fields: &[FieldDecl], constant: &Constant) -> Result<BufferDecl, Error> {
    let name = constant.field;
    let field = fields.iter().find(|field| field.name == name);
    let field = field.filter(|field| field.role == plan::Role::Const).ok_or_else(|| {
        let text = format!("@{} holds `{name}`, which is no const field", constant.symbol);
        Error::new(mlir::place(constant.op.location()), text)
    })?;
    // No field has a space in its name.
    let buffer = buffer(field, format!("{name} in constant memory"));
    Ok(BufferDecl { constant: Some(constant.symbol.to_owned()), ..buffer })
}

/// The buffer of a kernel's flags, if it has some.
fn flags(launch: &Launch, names: &[&str]) -> Result<Option<BufferDecl>, Error> {
    let Some(count) = launch.flags else { return Ok(None) };
    let count = single(count, names)?;
    // Threads of a processor wait without a record.
    let watched = mlir::name(launch.op) == "gpu.func";
    let (kind, count) = match watched {
        true => (BufferKind::Watched, watch::with_record(count)),
        false => (BufferKind::Flags, watch::cells(count)),
    };
    Ok(Some(BufferDecl {
        name: flags_name(launch),
        kind,
        element: Element::I32,
        extents: vec![count],
        origin: Vec::new(),
        layout: BufferLayout::RowMajor,
        start: Start::Zeros,
        constant: None,
        device: 0,
    }))
}

/// The name of the buffer of a kernel's flags; no field has a space in its name.
fn flags_name(launch: &Launch) -> String {
    format!("flags of {}", launch.name)
}

/// The name of the buffer that rotates with another one.
fn next(buffer: &str) -> String {
    format!("{buffer}'")
}

fn kernel(launch: &Launch) -> Result<Kernel, Error> {
    let block: Vec<u32> =
        launch.block.iter().filter_map(|threads| u32::try_from(*threads).ok()).collect();
    let block = <[u32; 3]>::try_from(block)
        .map_err(|_| Error::internal("a block has three positive sizes"))?;
    let shared = |ty: Type| -> u64 {
        let Ok(memref) = MemRefType::try_from(ty) else { return 0 };
        let cells = mlir::static_cells(ty).and_then(|cells| u64::try_from(cells).ok()).unwrap_or(0);
        cells.saturating_mul(u64::from(mlir::bit_width(memref.element()).unwrap_or(0))) / 8
    };
    let arguments = mlir::entry(launch.op).map(mlir::arguments).unwrap_or_default();
    let shared_arguments = mlir::name(launch.op) == "gpu.func";
    let static_shared = arguments
        .iter()
        .filter(|_| shared_arguments)
        .skip(launch.bindings.len())
        .map(|buffer| shared(buffer.r#type()))
        .fold(0, u64::saturating_add);
    Ok(Kernel {
        name: launch.name.to_owned(),
        block,
        static_shared,
        dynamic_shared: count(launch.dynamic_shared)?,
    })
}
