//! Buffers of a device as other devices of the same process see them.

use super::buffer::View;
use super::clock::Event;
use super::error::CudaError;
use super::program::Program;
use crate::bind::BufferId;
use crate::execute::Shown;
use std::ops::Range;
use std::sync::Arc;

/// A point in the order of a device's work, and where buffers lie whose cells are there behind it.
#[derive(Debug)]
struct Peer {
    point: Event,
    views: Vec<(BufferId, View)>,
}

/// Shows buffers of a program behind the work so far, all of which is sent.
pub(super) fn show(program: &Program, buffers: &[BufferId]) -> Result<Shown, CudaError> {
    let views = buffers.iter().map(|id| Ok((*id, program.buffer(*id)?.view())));
    let views = views.collect::<Result<_, CudaError>>()?;
    let point = Event::new(&program.stream)?;
    point.record()?;
    Ok(Arc::new(Peer { point, views }))
}

/// Starts copies of bytes of a buffer that another program shows to the same place here.
pub(super) fn fetch(
    program: &Program,
    shown: &Shown,
    buffer: BufferId,
    runs: &[Range<usize>],
) -> Result<(), CudaError> {
    let own = program.buffer(buffer)?;
    let views = shown.downcast_ref::<Peer>().map(|peer| &peer.views);
    let view = views.and_then(|views| views.iter().find(|(id, _)| *id == buffer));
    let nobody = || program.mismatch(format!("nobody shows buffer {}", buffer.0));
    let (_, view) = view.ok_or_else(nobody)?;
    for run in runs {
        if !own.fetch(*view, run)? {
            let text = format!("a copy between devices reaches beyond buffer {}", buffer.0);
            return Err(program.mismatch(text));
        }
    }
    Ok(())
}

/// The work of a program from now on comes behind what another one showed.
pub(super) fn follow(program: &Program, shown: &Shown) -> Result<(), CudaError> {
    let unknown = || program.mismatch("a target of another kind shows its work".to_owned());
    let peer = shown.downcast_ref::<Peer>().ok_or_else(unknown)?;
    peer.point.hold(&program.stream)
}
