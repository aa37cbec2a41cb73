//! Buffers of a device as other devices of the same process see them.

use super::buffer::View;
use super::clock::Event;
use super::error::CudaError;
use super::stream::Stream;
use crate::bind::BufferId;
use std::sync::Arc;

/// A point in the order of a device's work, and where buffers lie whose cells are there behind it.
#[derive(Debug)]
pub(super) struct Peer {
    point: Event,
    views: Vec<(BufferId, View)>,
}

impl Peer {
    /// Buffers behind the work so far. The context must be current.
    pub fn new(stream: &Arc<Stream>, views: Vec<(BufferId, View)>) -> Result<Self, CudaError> {
        let point = Event::new(stream)?;
        point.record()?;
        Ok(Self { point, views })
    }

    /// The work of another stream from now on comes behind the point. Its context must be current.
    pub fn hold(&self, stream: &Stream) -> Result<(), CudaError> {
        self.point.hold(stream)
    }

    /// A buffer, if it is shown.
    pub fn view(&self, buffer: BufferId) -> Option<View> {
        self.views.iter().find(|(id, _)| *id == buffer).map(|(_, view)| *view)
    }
}
