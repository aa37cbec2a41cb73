//! The launch plan of a module on the gpu level: plain data that the runtime executes.
//!
//! Needs: a module whose tile kernels are all lowered. Changes nothing.

use melior::ir::r#type::MemRefType;
use melior::ir::{AffineMap, Attribute, Module, ShapedTypeLike, Type, ValueLike};
use stencil_dialects::affine;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{Member, Program, Role};
use stencil_dialects::tiled::{self, Binding, Launch, Region};
use stencil_runtime::array::Element;
use stencil_runtime::expr::Expr;
use stencil_runtime::number::{Number, Numeral};
use stencil_runtime::plan::{
    self, Argument, FieldDecl, Kernel, Plan, Repeat, ScalarDecl, Settings,
};

use crate::kernel::emit::extents;
use melior::Context;

/// Reads the plan off a module. `arch` (such as `sm_90`), `contract` and `fast_math` are written
/// down as they are given: they say how the PTX beside the plan is made. An error where a tile
/// kernel is not lowered yet, where the module has no host schedule, and where kernels and schedule
/// contradict each other.
pub fn of<'c>(
    context: &'c Context,
    module: &Module<'c>,
    arch: &str,
    contract: bool,
    fast_math: bool,
) -> Result<Plan, Error> {
    let program = Program::read(module)?;
    let launches = tiled::launches(module)?;
    if launches.is_empty() || !tiled::kernels(module)?.is_empty() {
        return Err(Error::user(
            "the module is not on the gpu level: every tile kernel must be lowered before a plan \
             can be made",
        ));
    }
    let repeats = tiled::repeats(module)?;
    if repeats.is_empty() {
        return Err(Error::user("the module has no launch schedule; add a tiled.repeat"));
    }
    let names: Vec<&str> = program.params.iter().copied().chain(["steps"]).collect();
    let mut fields = Vec::new();
    for field in &program.fields {
        let grid = program.grid_of(field.name)?;
        let cells = extents(context, grid.lower, grid.upper)?;
        let bound =
            |wanted: Binding| launches.iter().any(|launch| launch.bindings.contains(&wanted));
        let taken = bound(Binding::Read(field.name)) || bound(Binding::ReadWrite(field.name));
        fields.push(FieldDecl {
            name: field.name.to_owned(),
            element: element(field.element, field.unsigned)?,
            member: field.member.map(member).transpose()?,
            role: match field.role {
                Role::State => plan::Role::State,
                Role::Const => plan::Role::Const,
                Role::Temp => plan::Role::Temp,
            },
            extents: cells
                .into_iter()
                .map(|extent| expression(&affine::text(extent, &names)))
                .collect::<Result<_, _>>()?,
            // A temp field that no kernel takes lives in tiles alone.
            buffers: match (bound(Binding::Write(field.name)), taken || field.role != Role::Temp) {
                (true, _) => 2,
                (false, true) => 1,
                (false, false) => 0,
            },
        });
    }
    let height = launches.iter().map(|launch| launch.schedule.steps).max().unwrap_or(1);
    let main = launches
        .iter()
        .find(|launch| launch.schedule.steps == height)
        .map(|launch| launch.schedule.clone());
    let main = main.ok_or_else(|| Error::internal("no main kernel"))?;
    let plan = Plan {
        format: plan::FORMAT,
        program: program.name.clone(),
        target: arch.to_owned(),
        params: program.params.iter().map(|name| (*name).to_owned()).collect(),
        constants: program
            .constants
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value))
            .collect(),
        scalars: program
            .scalars
            .iter()
            .map(|scalar| {
                let element = element(scalar.element, scalar.unsigned)?;
                let default =
                    scalar.default.and_then(|default| number(element, default)).map(Numeral::from);
                Ok(ScalarDecl { name: scalar.name.to_owned(), element, default })
            })
            .collect::<Result<_, Error>>()?,
        fields,
        steps: single(program.steps, &names)?,
        checks: program
            .checks
            .iter()
            .map(|check| {
                let mut unless_negative = Vec::new();
                if let Some((lower, upper)) = check.unless_empty {
                    for (lower, upper) in all(lower, &names)?.into_iter().zip(all(upper, &names)?) {
                        unless_negative.push(expression(&format!("{upper} - ({lower})"))?);
                    }
                }
                Ok(plan::Check {
                    value: single(check.value, &names)?,
                    unless_negative,
                    message: check.message.to_owned(),
                })
            })
            .collect::<Result<_, Error>>()?,
        index_width: tiled::index_width(module),
        kernels: launches.iter().map(|launch| kernel(launch, &names)).collect::<Result<_, _>>()?,
        schedule: repeats
            .into_iter()
            .map(|repeat| {
                let kernels = repeat.kernels.into_iter().map(str::to_owned).collect();
                Ok(Repeat { count: single(repeat.count, &names)?, kernels })
            })
            .collect::<Result<_, Error>>()?,
        settings: Settings {
            strategy: main.strategy,
            tile: main.tile,
            pyramid_height: height,
            per_thread: main.per_thread,
            region: (main.region != Region::default()).then(|| main.region.name().to_owned()),
            contract,
            fast_math,
            fingerprint: String::new(),
        },
    };
    // What IR by hand may get wrong, such as too many threads for a block.
    plan.validate().map_err(|error| Error::user(error.to_string()))?;
    Ok(plan)
}

fn kernel(launch: &Launch, names: &[&str]) -> Result<Kernel, Error> {
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
    let static_shared = arguments
        .iter()
        .skip(launch.bindings.len())
        .map(|buffer| shared(buffer.r#type()))
        .fold(0, u64::saturating_add);
    let one = || expression("1");
    Ok(Kernel {
        name: launch.name.to_owned(),
        grid: [single(launch.grid, names)?, one()?, one()?],
        block,
        static_shared,
        dynamic_shared: u64::try_from(launch.dynamic_shared).unwrap_or(0),
        steps: u32::try_from(launch.schedule.steps).unwrap_or(0),
        arguments: launch
            .bindings
            .iter()
            .map(|binding| match binding {
                Binding::Read(name) => Argument::Read((*name).to_owned()),
                Binding::Write(name) => Argument::Write((*name).to_owned()),
                Binding::ReadWrite(name) => Argument::ReadWrite((*name).to_owned()),
                Binding::Param(name) => Argument::Param((*name).to_owned()),
                Binding::Scalar(name) => Argument::Scalar((*name).to_owned()),
                Binding::Step => Argument::Step,
                Binding::Row => Argument::Row,
            })
            .collect(),
        bands: launch
            .bands
            .map(|bands| {
                let reach = u32::try_from(bands.reach).unwrap_or(u32::MAX);
                Ok::<_, Error>(plan::Bands { rows: single(bands.rows, names)?, reach })
            })
            .transpose()?,
    })
}

fn all(map: AffineMap, names: &[&str]) -> Result<Vec<Expr>, Error> {
    (0..map.result_count())
        .map(|index| {
            expression(&affine::text(
                map.result(index).map_err(|error| Error::internal(error.to_string()))?,
                names,
            ))
        })
        .collect()
}

fn single(map: AffineMap, names: &[&str]) -> Result<Expr, Error> {
    all(map, names)?.into_iter().next().ok_or_else(|| Error::internal("an empty map"))
}

fn expression(text: &str) -> Result<Expr, Error> {
    text.parse::<Expr>().map_err(|error| Error::internal(format!("'{text}': {error}")))
}

fn element(ty: Type, unsigned: bool) -> Result<Element, Error> {
    let name = ty.to_string();
    let name = if unsigned { name.replacen('i', "u", 1) } else { name };
    Element::from_name(&name)
        .ok_or_else(|| Error::user(format!("there are no cells of type {name}")))
}

fn member(member: Member) -> Result<plan::Member, Error> {
    let bytes = |number: i64| {
        usize::try_from(number)
            .map_err(|_| Error::user(format!("a part of @{} at {number} bytes", member.field)))
    };
    Ok(plan::Member {
        field: member.field.to_owned(),
        offset: bytes(member.offset)?,
        size: bytes(member.size)?,
    })
}

/// A default as a number of its scalar's type.
fn number(element: Element, default: Attribute) -> Option<Number> {
    if let Some(value) = attribute::as_float(default) {
        return Number::float(element, value);
    }
    let bits = attribute::as_integer(default)?;
    Number::integer(
        element,
        if element.is_unsigned() { i128::from(bits as u64) } else { bits.into() },
    )
}
