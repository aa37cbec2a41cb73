//! A schedule on trial: a copy of the module, tiled and lowered by the list of passes that a
//! compile runs (`lowering.rs`), of which the main kernels alone are kept.

use crate::analysis::tile_traffic::{self, Extents, TileTraffic};
use crate::schedule::large::Large;
use crate::schedule::lowering::{self, Settings};
use crate::strategies;
use crate::subject::Subject;
use melior::Context;
use melior::ir::operation::Operation;
use melior::ir::{AffineMap, Module};
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Choice};

/// A copy of the module.
///
/// # Errors
/// A fault of the compiler.
pub fn copied<'c>(subject: &Subject<'c, '_>) -> Result<Module<'c>, Error> {
    Module::from_operation(Operation::clone(&subject.module.as_operation()))
        .ok_or_else(|| Error::internal("a module's copy is no module"))
}

/// Brings a module's main kernels to the gpu level: those that take the most steps per launch.
/// Gives the traffic of each, and how often it stands in the host schedule.
///
/// # Errors
/// A decline of the schedule, and faults of the compiler.
pub fn lowered<'c>(
    context: &'c Context,
    module: &mut Module<'c>,
    choice: &Choice,
    settings: Settings,
) -> Result<Vec<(String, TileTraffic, usize)>, Error> {
    lowering::tile(choice).iter().try_for_each(|step| step.run(context, module))?;
    let main = tile_traffic::main_kernels(module)?;
    let main: Vec<_> =
        main.into_iter().map(|(kernel, times)| (kernel.name.to_owned(), times)).collect();
    for kernel in &tiled::kernels(module)? {
        if main.iter().all(|(name, _)| name != kernel.name) {
            mlir::erase(kernel.op);
        }
    }
    lowering::split(settings).iter().try_for_each(|step| step.run(context, module))?;
    let main = traffic_of(module, main)?;
    lowering::lower().iter().try_for_each(|step| step.run(context, module))?;
    Ok(main)
}

/// The traffic of kernels that are split, with the times that they stand in the host schedule.
fn traffic_of<'c>(
    module: &Module<'c>,
    main: Vec<(String, usize)>,
) -> Result<Vec<(String, TileTraffic, usize)>, Error> {
    let (program, kernels) = (Program::read(module)?, tiled::kernels(module)?);
    let sizes = Large::of(&program);
    let extents = |lower: AffineMap<'c>, upper: AffineMap<'c>| sizes.extents(lower, upper);
    let mut found = Vec::new();
    for (name, times) in main {
        let Some(kernel) = kernels.iter().find(|kernel| kernel.name == name) else { continue };
        let by_pieces =
            kernel.split || strategies::named(&kernel.schedule.strategy)?.loads_at_points();
        let extents: Option<Extents<'_, 'c>> = by_pieces.then_some(&extents);
        found.push((name, tile_traffic::of(&program, kernel, extents)?, times));
    }
    Ok(found)
}
