//! A plan of a program's declarations alone: enough to bind sizes and to read inputs before
//! anything is compiled.

use crate::control::Control;
use crate::executable::Target;
use crate::failure::Failure;
use crate::level::Level;
use crate::nest;
use crate::session::Session;
use stencil_frontend::program::{Affine, Program, Region, Role};
use stencil_frontend::source::Source;
use stencil_runtime::expr::Expr;
use stencil_runtime::plan::{self, Plan};

/// The plan of a module in MLIR: of a function of affine loops without kernels, of another module
/// whole.
///
/// # Errors
/// The module's faults.
pub(crate) fn of_module(session: &Session, source: &Source) -> Result<Plan, Failure> {
    if nest::is_nest(source)? {
        let reference = session.executable(source, Target::Reference, Control::default())?;
        return Ok(reference.plan().clone());
    }
    let compiled = session.compile(source, &[Level::Plan], Control::default())?;
    compiled.plan().cloned().ok_or_else(|| Failure::internal("a compile without a plan"))
}

/// The declarations of a checked program as a plan without kernels and launches.
///
/// # Errors
/// An internal fault, where an extent of the program can't be written down.
pub fn declarations(program: &Program) -> Result<Plan, Failure> {
    let mut fields = Vec::new();
    for field in program.fields.values() {
        fields.push(plan::FieldDecl {
            name: field.name.clone(),
            element: field.element,
            boolean: field.boolean,
            member: field.member.clone(),
            role: match field.role {
                Role::State => plan::Role::State,
                Role::Const => plan::Role::Const,
                Role::Temp => plan::Role::Temp,
                Role::Reduction => plan::Role::Reduction,
            },
            extents: extents(program, &program.grids[field.grid].region)?,
            value: Vec::new(),
        });
    }
    let params = program.params.values();
    Ok(Plan {
        format: plan::FORMAT,
        program: program.name.clone(),
        target: plan::CompiledFor::default(),
        params: params
            .clone()
            .filter(|param| param.value.is_none())
            .map(|param| param.name.clone())
            .collect(),
        constants: params.filter_map(|param| Some((param.name.clone(), param.value?))).collect(),
        scalars: program
            .scalars
            .values()
            .map(|scalar| plan::ScalarDecl {
                name: scalar.name.clone(),
                element: scalar.element,
                default: scalar.default.clone(),
            })
            .collect(),
        fields,
        buffers: Vec::new(),
        steps: expression(program, &program.steps)?,
        checks: Vec::new(),
        index_width: 64,
        kernels: Vec::new(),
        schedule: Vec::new(),
        settings: plan::Settings::default(),
    })
}

fn expression(program: &Program, affine: &Affine) -> Result<Expr, Failure> {
    affine.show(&program.params).parse().map_err(Failure::internal)
}

fn extents(program: &Program, region: &Region) -> Result<Vec<Expr>, Failure> {
    let extent = |(lower, upper): (&Affine, &Affine)| {
        let cells = upper.minus(lower).and_then(|cells| cells.shifted(1));
        let overflow = || Failure::internal("a checked grid whose extents overflow");
        expression(program, &cells.ok_or_else(overflow)?)
    };
    region.lower.iter().zip(&region.upper).map(extent).collect()
}
