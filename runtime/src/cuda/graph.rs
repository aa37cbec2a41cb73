//! The launches of a run as CUDA graphs, in which each band of a launch is ordered after just those
//! that it waits for ([`crate::bands`]).
//!
//! A run is sent in chunks of a bounded number of launches, each chunk as a graph: a [`Chunk`]
//! gathers launches as plain data, and [`Graphs`] sends it. A chunk that is like an earlier one
//! runs from the graph of that one; most runs are made up of one chunk many times over and a
//! remainder.
#![allow(unsafe_code)] // The driver's interface is C.

use super::call::Call;
use super::clock::Event;
use super::error::CudaError;
use super::handle::Handle;
use super::stream::Stream;
use crate::bands::{Band, Chain};
use crate::launch::Launch;
use cudarc::driver::sys;
use std::ptr::null_mut;
use std::sync::Arc;

/// Graphs that are kept; a run has few kinds of chunks. The driver frees one that is under way when
/// it ends.
const KEPT: usize = 4;

/// How launches are sent as graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphSettings {
    /// Launches of a chunk, and those up to the end of its last step come with them. Launches of
    /// two chunks do not overlap, so that a chunk should be long; a run tells how far it is, and
    /// can be cancelled, from chunk to chunk.
    pub chunk: usize,
    /// Whether all launches are cut that can be, those too that do not fill the device: for tests.
    pub cut_all: bool,
}

impl Default for GraphSettings {
    fn default() -> Self {
        Self { chunk: 64, cut_all: false }
    }
}

/// A call of a kernel, and the nodes before that it waits for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub call: Call,
    waits: Vec<usize>,
}

impl Node {
    /// Whether the two differ in no more than their arguments.
    fn is_like(&self, other: &Node) -> bool {
        self.waits == other.waits && self.call.is_like(&other.call)
    }
}

/// Launches that are sent together.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub nodes: Vec<Node>,
    chain: Chain,
    launches: usize,
    /// The last launch's step.
    step: Option<i64>,
}

impl Chunk {
    /// Whether a chunk of so many launches ends before this one. The launches of a step stay
    /// together: so chunks begin alike.
    pub fn ends_before(&self, launch: &Launch<'_>, launches: usize) -> bool {
        self.launches >= launches && self.step != Some(launch.step)
    }

    /// Adds a launch in its bands, of which `call` makes calls; gives their number.
    pub fn add(
        &mut self,
        launch: &Launch<'_>,
        resident: u64,
        call: impl Fn(&Launch<'_>) -> Result<Call, CudaError>,
    ) -> Result<usize, CudaError> {
        let bands = self.chain.add(launch, resident);
        let count = bands.len();
        for Band { launch, waits } in bands {
            self.nodes.push(Node { call: call(&launch)?, waits });
        }
        self.launches += 1;
        self.step = Some(launch.step);
        Ok(count)
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
    /// The graphs that are kept, the last one used first.
    ready: Vec<Ready>,
    /// The ends of the last two chunks.
    ends: [Event; 2],
}

impl Graphs {
    /// Nothing gathered yet.
    pub fn new(stream: &Arc<Stream>, settings: GraphSettings) -> Result<Self, CudaError> {
        Ok(Self {
            settings,
            chunk: Chunk::default(),
            sent: 0,
            most_bands: 1,
            ready: Vec::new(),
            ends: [Event::new(stream)?, Event::new(stream)?],
            stream: Arc::clone(stream),
        })
    }

    /// The most bands of a launch so far.
    pub fn most_bands(&self) -> usize {
        self.most_bands
    }

    /// Begins a run; what was gathered before and not sent is dropped.
    pub fn begin(&mut self) {
        self.chunk = Chunk::default();
        self.sent = 0;
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
    /// before the run's first chunk, when its graph is ready.
    pub fn send(&mut self, start: impl FnOnce() -> Result<(), CudaError>) -> Result<(), CudaError> {
        self.stream.enter()?;
        let nodes = std::mem::take(&mut self.chunk).nodes;
        let ready = self.graph_of(&nodes)?;
        if self.sent == 0 {
            self.stream.synchronize()?;
            start()?;
        }
        self.launch(ready)
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

    fn launch(&mut self, ready: Ready) -> Result<(), CudaError> {
        self.ends.rotate_left(1);
        let [end, _] = &self.ends;
        if self.sent > 1 {
            end.wait()?;
        }
        ready.launch()?;
        end.record()?;
        self.sent += 1;
        self.ready.insert(0, ready);
        self.ready.truncate(KEPT);
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
            let mut handle = null_mut();
            // SAFETY: the graph is there, and `waits` are handles of its nodes. The function and
            // its arguments are as for a launch; the driver copies them.
            let result = node.call.with_parameters(|parameters| unsafe {
                let (graph, count) = (self.graph.0, waits.len());
                sys::cuGraphAddKernelNode_v2(&mut handle, graph, waits.as_ptr(), count, parameters)
            });
            node.call.took(&self.stream, "cuGraphAddKernelNode", result)?;
            for attribute in node.call.attributes() {
                // SAFETY: the node is there, and the value is one of this attribute.
                let result = unsafe {
                    sys::cuGraphKernelNodeSetAttribute(handle, attribute.id, &attribute.value)
                };
                node.call.took(&self.stream, "cuGraphKernelNodeSetAttribute", result)?;
            }
            self.handles.push(Handle(handle));
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
        match named.and_then(|place| self.nodes.get(place)) {
            Some(node) => node.call.took(&self.stream, CALL, result),
            None => self.stream.ok(CALL, result),
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
            if node != old {
                // SAFETY: the node is one of this graph; function and arguments are as for a
                // launch, and the driver copies them.
                let result = node.call.with_parameters(|parameters| unsafe {
                    let runnable = self.runnable.0;
                    sys::cuGraphExecKernelNodeSetParams_v2(runnable, handle.0, parameters)
                });
                node.call.took(&self.stream, "cuGraphExecKernelNodeSetParams", result)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::call::Word;
    use crate::launch::tests::bound;
    use crate::launch::{Action, Launches, Value};
    use crate::plan::tests::banded;
    use crate::plan::{self, Node, Plan};

    /// The chunks of a run of the plan, for a device that runs `resident` blocks at a time.
    fn chunks(plan: &Plan, steps: i64, resident: u64) -> Vec<Chunk> {
        let (mut chunks, mut chunk) = (Vec::new(), Chunk::default());
        for action in Launches::new(plan, &bound(400, steps)).unwrap() {
            let Action::Launch(launch) = action else { panic!("{action:?}") };
            if chunk.ends_before(&launch, GraphSettings::default().chunk) {
                chunks.push(std::mem::take(&mut chunk));
            }
            let call = |part: &Launch<'_>| {
                let word = |value: &Value| match value {
                    Value::Buffer(id) => Word::of(&id.0.to_ne_bytes()),
                    Value::Number(number) => Word::of(&number.bytes()),
                };
                let words = part.arguments.iter().map(word).collect();
                let kernel = part.kernel.name.as_str().into();
                Ok(Call {
                    kernel,
                    function: Handle::NONE,
                    grid: part.grid,
                    block: part.kernel.block,
                    shared: 0,
                    cooperative: part.node.cooperative,
                    cluster: part.node.cluster,
                    words,
                    addresses: Vec::new(),
                })
            };
            chunk.add(&launch, resident, call).unwrap();
        }
        chunks.push(chunk);
        chunks
    }

    fn like(one: &Chunk, other: &Chunk) -> bool {
        one.nodes.len() == other.nodes.len()
            && one.nodes.iter().zip(&other.nodes).all(|(a, b)| a.is_like(b))
    }

    #[test]
    fn a_run_is_one_chunk_many_times_over_and_a_remainder() {
        // 500 launches of two steps and one of one; each of the two steps has 25 rows, and so 20
        // bands.
        let found = chunks(&banded(), 1001, 0);
        let sizes: Vec<_> = found.iter().map(|chunk| (chunk.launches, chunk.nodes.len())).collect();
        assert_eq!(sizes[..7], [(64, 64 * 20); 7]);
        assert_eq!(sizes[7..], [(53, 52 * 20 + 1)]);
        assert!(found[..7].windows(2).all(|pair| like(&pair[0], &pair[1])));
        assert!(!like(&found[6], &found[7]));
        // The number of the step is an argument of these kernels, and nothing else differs.
        let arguments = |chunk: &Chunk, node: usize| chunk.nodes[node].call.words.clone();
        let (first, second) = (arguments(&found[0], 21), arguments(&found[1], 21));
        let differing: Vec<_> =
            (0..first.len()).filter(|place| first[*place] != second[*place]).collect();
        assert_eq!(differing, [5]);
        assert_eq!(chunks(&banded(), 0, 0)[0].nodes, []);
    }

    #[test]
    fn nodes_wait_for_bands_of_their_chunk() {
        for chunk in chunks(&banded(), 1001, 0) {
            for (place, node) in chunk.nodes.iter().enumerate() {
                // A chunk begins when all launches before it have ended.
                assert_eq!(node.waits.is_empty(), place < 20);
                assert!(node.waits.iter().all(|wait| *wait < place));
            }
            assert_eq!(chunk.nodes[47].waits, [26, 27, 28]);
        }
        let whole = chunks(&banded(), 1001, 25);
        assert_eq!((whole[0].nodes.len(), &whole[0].nodes[9].waits), (64, &vec![8]));
    }

    #[test]
    fn the_launches_of_a_step_stay_together() {
        let mut plan = banded();
        let mut half = plan.kernels[1].clone();
        half.name = "half".to_owned();
        plan.kernels.push(half);
        let Node::Repeat(rest) = plan.schedule.remove(1) else { panic!("no repeat") };
        let Node::Launch(one) = &rest.body[0] else { panic!("no launch") };
        let half =
            Node::Launch(plan::Launch { kernel: "half".to_owned(), steps: 0, ..one.clone() });
        plan.schedule = vec![Node::Repeat(plan::Repeat {
            count: "steps".parse().unwrap(),
            body: vec![half.clone(), half, rest.body[0].clone()],
        })];
        let found = chunks(&plan, 100, 0);
        let sizes: Vec<_> = found.iter().map(|chunk| chunk.launches).collect();
        assert_eq!(sizes, [66, 66, 66, 66, 36]);
        assert!(like(&found[0], &found[3]));
    }
}
