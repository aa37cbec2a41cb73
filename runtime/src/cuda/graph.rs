//! The launches of a run as CUDA graphs, in which each band of a launch is ordered after just those
//! that it waits for ([`crate::bands`]).
//!
//! A run is sent in chunks of a bounded number of launches, each chunk as a graph: a [`Chunk`]
//! gathers launches as plain data, and [`Graphs`] sends it. A chunk that is like an earlier one
//! runs from the graph of that one; most runs are made up of one chunk many times over and a
//! remainder.
#![allow(unsafe_code)] // The driver's interface is C.

use super::buffer::Buffer;
use super::call::Call;
use super::chunk::{Chunk, Node, Work};
use super::clock::Event;
use super::error::CudaError;
use super::handle::Handle;
use super::look::{CHUNKS, Looks};
use super::stream::Stream;
use crate::bind::BufferId;
use crate::launch::Launch;
use cudarc::driver::sys;
use std::ptr::null_mut;
use std::sync::Arc;

/// Graphs that are kept; a run has few kinds of chunks. The driver frees one that is under way when
/// it ends.
const KEPT: usize = 4;

/// The same out of core: the first window of a pass, the last one and those between have graphs of
/// their own, and so have those of a last pass of other launches. With these six kinds all graphs
/// of passes of up to five chunks are kept.
pub(super) const KEPT_OF_WINDOWS: usize = 32;

/// How launches are sent as graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// Launches of a chunk, and those up to the end of its last step come with them. Launches of
    /// two chunks do not overlap, so that a chunk should be long; a run tells how far it is, and
    /// can be cancelled, from chunk to chunk. A chunk with looks at a condition ends with a look:
    /// the 16th, or the first behind half as many launches. Where so many launches lie between two
    /// looks that it would have 16 times as many, it ends before.
    pub chunk: usize,
    /// Whether all launches are cut that can be, those too that do not fill the device: for tests.
    pub cut_all: bool,
}

impl Default for GraphSettings {
    fn default() -> Self {
        Self { chunk: 64, cut_all: false }
    }
}

/// Sends the launches of a run in chunks, at most two ahead of the device.
#[derive(Debug)]
pub(super) struct Graphs {
    stream: Arc<Stream>,
    settings: GraphSettings,
    /// The launches that are not sent yet.
    chunk: Chunk,
    /// Chunks of the run that were sent.
    sent: usize,
    most_bands: usize,
    looks: Looks,
    /// The graphs that are kept, the last one used first, and how many there may be.
    ready: Vec<Ready>,
    kept: usize,
    /// The ends of the last chunks.
    ends: [Event; CHUNKS],
}

impl Graphs {
    /// Nothing gathered yet.
    pub fn new(stream: &Arc<Stream>, settings: GraphSettings) -> Result<Self, CudaError> {
        Ok(Self {
            settings,
            chunk: Chunk::default(),
            sent: 0,
            most_bands: 1,
            looks: Looks::new(stream),
            ready: Vec::new(),
            kept: KEPT,
            ends: [Event::new(stream)?, Event::new(stream)?],
            stream: Arc::clone(stream),
        })
    }

    /// How launches are sent.
    pub fn settings(&self) -> GraphSettings {
        self.settings
    }

    /// The most bands of a launch so far.
    pub fn most_bands(&self) -> usize {
        self.most_bands
    }

    /// Keeps so many graphs from now on.
    pub fn keep(&mut self, count: usize) {
        self.kept = count;
    }

    /// Begins a run; what was gathered before and not sent is dropped.
    pub fn begin(&mut self) {
        self.drop_ahead();
        self.sent = 0;
    }

    /// Drops what was gathered and not sent, and all looks.
    pub fn drop_ahead(&mut self) {
        self.chunk = Chunk::default();
        self.looks.clear();
    }

    /// Notes that all chunks that were sent have ended.
    pub fn ended(&mut self) {
        self.looks.note(self.sent);
    }

    /// Gathers a look at the condition in a buffer; `values` are the memories that hold values of
    /// the run then. Gives its number; none where the chunk has as many looks as it may.
    pub fn look(
        &mut self,
        (condition, buffer, bytes): (BufferId, &Buffer, usize),
        values: Vec<BufferId>,
    ) -> Result<Option<u64>, CudaError> {
        if self.chunk.ends_with_looks {
            return Ok(None);
        }
        self.stream.enter()?;
        let from = (buffer.address(), bytes.min(buffer.bytes()));
        let (number, look) = self.looks.take(from, self.sent, self.chunk.looks)?;
        self.chunk.add_look(look, (condition, values), self.settings.chunk);
        if self.chunk.ends_with_looks {
            self.catch_up()?;
        }
        Ok(Some(number))
    }

    /// What a look found, where it is known.
    pub fn found(&mut self, look: u64) -> Option<[u8; 8]> {
        self.looks.found(look)
    }

    /// Whether nothing waits to be sent.
    pub fn is_empty(&self) -> bool {
        self.chunk.nodes.is_empty()
    }

    /// Whether [`Graphs::send`] must come before this launch is added.
    pub fn are_full_before(&self, launch: &Launch<'_>) -> bool {
        self.chunk.ends_before(launch, self.settings.chunk)
    }

    /// Gathers a launch of which the device runs `resident` blocks at a time; `call` makes calls of
    /// its bands.
    pub fn add(
        &mut self,
        launch: &Launch<'_>,
        resident: u64,
        call: impl Fn(&Launch<'_>) -> Result<Call, CudaError>,
    ) -> Result<(), CudaError> {
        let resident = if self.settings.cut_all { 0 } else { resident };
        self.most_bands = self.most_bands.max(self.chunk.add(launch, resident, call)?);
        Ok(())
    }

    /// Sends what was gathered, once the chunk before the last one sent has ended. Calls `start`
    /// before the run's first chunk, when its graph is ready. Launches that are apart from the
    /// steps have no graph: the device does them while that of the steps is made.
    pub fn send(&mut self, start: impl FnOnce() -> Result<(), CudaError>) -> Result<(), CudaError> {
        self.stream.enter()?;
        let Chunk { nodes, apart, .. } = std::mem::take(&mut self.chunk);
        let ready = if apart { None } else { Some(self.graph_of(&nodes)?) };
        if self.sent == 0 {
            self.stream.synchronize()?;
            start()?;
        }
        match ready {
            Some(ready) => self.launch(ready),
            None => self.in_turn(|stream| {
                nodes.iter().try_for_each(|node| match &node.work {
                    Work::Call(call) => call.send(stream),
                    Work::Look(_) => Ok(()),
                })
            }),
        }
    }

    /// Sends a chunk behind the work of the stream. Only a run of many chunks is waited for: then
    /// the chunk before the last one sent has ended.
    pub fn replay(&mut self, nodes: &[Node]) -> Result<(), CudaError> {
        self.stream.enter()?;
        let ready = self.graph_of(nodes)?;
        self.launch(ready)
    }

    /// The graph of a chunk: one that is kept, with other arguments where it needs them, or a new
    /// one.
    fn graph_of(&mut self, nodes: &[Node]) -> Result<Ready, CudaError> {
        let same = self.ready.iter().position(|ready| ready.nodes == nodes);
        let like = || self.ready.iter().position(|ready| ready.is_like(nodes));
        match same.or_else(like) {
            Some(place) => {
                let mut ready = self.ready.remove(place);
                if same.is_none() {
                    ready.set(nodes)?;
                }
                Ok(ready)
            }
            None => Ready::new(&self.stream, nodes.to_vec()),
        }
    }

    /// Waits until the chunk before the last one sent has ended.
    fn catch_up(&mut self) -> Result<(), CudaError> {
        if let Some(before) = self.sent.checked_sub(1).filter(|before| *before > 0) {
            let [_, end] = &self.ends;
            end.wait()?;
            self.looks.note(before);
        }
        Ok(())
    }

    fn launch(&mut self, ready: Ready) -> Result<(), CudaError> {
        self.in_turn(|_| ready.launch())?;
        self.ready.insert(0, ready);
        self.ready.truncate(self.kept);
        Ok(())
    }

    /// Sends a chunk, once the one before the last one sent has ended.
    fn in_turn(
        &mut self,
        send: impl FnOnce(&Arc<Stream>) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        self.catch_up()?;
        self.ends.rotate_left(1);
        let [end, _] = &self.ends;
        send(&self.stream)?;
        end.record()?;
        self.sent += 1;
        Ok(())
    }
}

/// A graph that the device can run.
#[derive(Debug)]
struct Ready {
    graph: Handle<sys::CUgraph_st>,
    runnable: Handle<sys::CUgraphExec_st>,
    nodes: Vec<Node>,
    /// The driver's handle of each node.
    handles: Vec<Handle<sys::CUgraphNode_st>>,
    stream: Arc<Stream>,
}

impl Ready {
    /// Waits for what was sent before, and then for the graph to lie on the device. A graph may be
    /// uploaded while another runs, but on an H200 with driver 580.159 the device then failed, or
    /// never ended, in most processes that ran several programs whose graphs took a tenth of a
    /// second (decision 011).
    fn new(stream: &Arc<Stream>, nodes: Vec<Node>) -> Result<Self, CudaError> {
        let mut graph = null_mut();
        // SAFETY: the driver writes one handle, which `drop` destroys; 0 is the only flag.
        stream.ok("cuGraphCreate", unsafe { sys::cuGraphCreate(&mut graph, 0) })?;
        let mut ready = Self {
            graph: Handle(graph),
            runnable: Handle::NONE,
            nodes,
            handles: Vec::new(),
            stream: Arc::clone(stream),
        };
        ready.add_nodes()?;
        ready.instantiate()?;
        stream.synchronize()?;
        // SAFETY: the graph is instantiated, and the stream is of its context.
        let result = unsafe { sys::cuGraphUpload(ready.runnable.0, stream.raw()) };
        stream.ok("cuGraphUpload", result)?;
        stream.synchronize()?;
        Ok(ready)
    }

    fn add_nodes(&mut self) -> Result<(), CudaError> {
        for node in &self.nodes {
            let before = |place: &usize| self.handles.get(*place).map(|handle| handle.0);
            let waits: Vec<_> = node.waits.iter().filter_map(before).collect();
            self.handles.push(match &node.work {
                Work::Call(call) => call.add(&self.stream, self.graph, &waits)?,
                Work::Look(look) => look.add(&self.stream, self.graph, &waits)?,
            });
        }
        Ok(())
    }

    fn instantiate(&mut self) -> Result<(), CudaError> {
        const CALL: &str = "cuGraphInstantiateWithParams";
        let mut parameters = sys::CUDA_GRAPH_INSTANTIATE_PARAMS {
            flags: 0,
            hUploadStream: null_mut(),
            hErrNode_out: null_mut(),
            result_out: sys::CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS,
        };
        // SAFETY: the graph is there; the driver writes one handle, which `drop` destroys, and into
        // the parameters.
        let result = unsafe {
            sys::cuGraphInstantiateWithParams(&mut self.runnable.0, self.graph.0, &mut parameters)
        };
        // Where the driver names no node, the error is not that of one launch.
        let named = self.handles.iter().position(|handle| handle.0 == parameters.hErrNode_out);
        match named.and_then(|place| self.nodes.get(place)).map(|node| &node.work) {
            Some(Work::Call(call)) => call.took(&self.stream, CALL, result),
            _ => self.stream.ok(CALL, result),
        }
    }

    fn is_like(&self, nodes: &[Node]) -> bool {
        self.nodes.len() == nodes.len()
            && self.nodes.iter().zip(nodes).all(|(node, other)| node.is_like(other))
    }

    /// Sets the arguments of nodes that are like its own. Launches that were sent before keep their
    /// arguments.
    fn set(&mut self, nodes: &[Node]) -> Result<(), CudaError> {
        for ((node, old), handle) in nodes.iter().zip(&self.nodes).zip(&self.handles) {
            if let Work::Call(call) = &node.work
                && node != old
            {
                // SAFETY: the node is one of this graph; function and arguments are as for a
                // launch, and the driver copies them.
                let result = call.with_parameters(|parameters| unsafe {
                    let runnable = self.runnable.0;
                    sys::cuGraphExecKernelNodeSetParams_v2(runnable, handle.0, parameters)
                });
                call.took(&self.stream, "cuGraphExecKernelNodeSetParams", result)?;
            }
        }
        self.nodes = nodes.to_vec();
        Ok(())
    }

    fn launch(&self) -> Result<(), CudaError> {
        // SAFETY: the graph is instantiated, and the stream is of its context.
        let result = unsafe { sys::cuGraphLaunch(self.runnable.0, self.stream.raw()) };
        self.stream.ok("cuGraphLaunch", result)
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let _ = self.stream.enter();
        // SAFETY: both are destroyed once; the driver keeps a graph that runs until it ends.
        unsafe {
            if !self.runnable.is_none() {
                let _ = sys::cuGraphExecDestroy(self.runnable.0);
            }
            let _ = sys::cuGraphDestroy(self.graph.0);
        }
    }
}
