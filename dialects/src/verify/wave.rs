//! Skewing vectors of tile kernels: every dependence leads to an earlier time and to no later row.

use super::at;
use crate::error::Error;
use crate::mlir;
use crate::stencil::Program;
use crate::tiled::{Kernel, MOST_CELLS, SHEAR, Skew, Waiting, Wave};

/// Checks the skewing vector of a kernel, if it has one, against the dependences of its applies.
pub(super) fn verify(program: &Program, kernel: &Kernel, rank: usize) -> Result<(), Error> {
    verify_sweeps(program, kernel)?;
    let Some(skew) = &kernel.wave.skew else {
        return match mlir::attribute(kernel.op, SHEAR) {
            Some(_) => Err(at(kernel.op, "tiled.shear needs a tiled.skew beside it")),
            None => Ok(()),
        };
    };
    let wrong = |message: String| Err(at(kernel.op, message));
    if skew.times.len() + 1 != rank {
        return wrong(format!(
            "tiled.skew {:?} needs a number for each dimension but the fastest of {rank}",
            skew.times
        ));
    }
    // No dependence reaches farther, so none needs more.
    let possible = 0..=MOST_CELLS + 1;
    if skew.times.iter().chain([&skew.shear]).any(|times| !possible.contains(times)) {
        return wrong(format!(
            "tiled.skew {:?} and tiled.shear {} must be from 0 to {}; run hyperplane-skew for ones \
             that fit",
            skew.times,
            skew.shear,
            possible.end()
        ));
    }
    if skew.shear > 0 && rank != 3 {
        return wrong("tiled.shear is for grids of three dimensions".to_owned());
    }
    for apply in kernel.applies() {
        for vector in program.dependences(&apply.pieces)? {
            if !points_back(skew, &vector) {
                return wrong(format!(
                    "the dependence {vector:?} leads to no earlier time, or to a later row, under \
                     tiled.skew {:?} and tiled.shear {}; run hyperplane-skew for ones that fit",
                    skew.times, skew.shear
                ));
            }
        }
    }
    Ok(())
}

/// Checks the sweeps of a launch, if it has several. Those of a kernel that is no wavefront are
/// rounds of as many steps each.
fn verify_sweeps(program: &Program, kernel: &Kernel) -> Result<(), Error> {
    let Some(sweeps) = kernel.wave.sweeps else { return Ok(()) };
    let mut wavefront = kernel.wave != Wave { sweeps: Some(sweeps), ..Wave::default() };
    for apply in kernel.applies() {
        wavefront |= !program.dependences(&apply.pieces)?.is_empty();
    }
    if !wavefront {
        if sweeps < 2 || kernel.schedule.steps % sweeps != 0 {
            let message = format!(
                "tiled.sweeps is from 2 on and divides tiled.steps, but they are {sweeps} and {}; \
                 run stay-resident, which sets both",
                kernel.schedule.steps
            );
            return Err(at(kernel.op, message));
        }
        return Ok(());
    }
    if sweeps < 2 || sweeps != kernel.schedule.steps {
        let message = format!(
            "tiled.sweeps is from 2 on and equal to tiled.steps, but they are {sweeps} and {}; run \
             sweeps-in-flight, which sets both",
            kernel.schedule.steps
        );
        return Err(at(kernel.op, message));
    }
    if kernel.wave.waiting != Some(Waiting::Peer) || kernel.wave.skew.is_none() {
        let message = "several sweeps of a launch need skewed tiles whose blocks wait by flags; \
                       run hyperplane-skew and peer-sync before sweeps-in-flight";
        return Err(at(kernel.op, message));
    }
    Ok(())
}

fn points_back(skew: &Skew, vector: &[i64]) -> bool {
    skew.distance(vector)
        .is_some_and(|(rows, times)| times < 0 && rows.iter().all(|rows| *rows <= 0))
}
