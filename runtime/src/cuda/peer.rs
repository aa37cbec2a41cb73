//! Buffers of a device as other devices of the same process see them, and buffers that they have
//! together.

use super::buffer::{Buffer, View};
use super::clock::Event;
use super::error::CudaError;
use super::joint::Joint;
use super::program::Program;
use crate::bind::BufferId;
use crate::execute::{Joined, Shown};
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
    let point = Event::untimed(&program.stream)?;
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

/// Buffers that devices have together.
type All = Vec<(BufferId, Arc<Joint>)>;

/// Makes buffers that a program has together with its peers.
pub(super) fn join(program: &Program, buffers: &[Joined]) -> Result<Shown, CudaError> {
    let alone = || program.mismatch("it has no peers".to_owned());
    let peers = program.peers.as_ref().ok_or_else(alone)?;
    program.stream.enter()?;
    let made = buffers.iter().map(|joined| {
        let joint = Joint::new(peers, joined)?;
        Ok((joined.buffer, Arc::new(joint)))
    });
    Ok(Arc::new(made.collect::<Result<All, CudaError>>()?))
}

/// Buffers that [`join`] made, as those of a program.
pub(super) fn joined(
    program: &Program,
    shown: Option<&Shown>,
) -> Result<Vec<(BufferId, Buffer)>, CudaError> {
    let Some(shown) = shown else { return Ok(Vec::new()) };
    let unknown = || program.mismatch("memory of another kind of target".to_owned());
    let all = shown.downcast_ref::<All>().ok_or_else(unknown)?;
    let buffers = all.iter().map(|(id, joint)| (*id, Buffer::joint(&program.stream, joint)));
    Ok(buffers.collect())
}
