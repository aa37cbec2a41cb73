//! The launches of a run as one CUDA graph: sent together, and each band of a launch ordered after just those
//! that it waits for ([`crate::bands`]).

use super::{Cuda, CudaError, Function, Word};
use crate::bands::Cut;
use crate::launch::Launch;
use cudarc::driver::sys;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;

/// A graph that grows launch by launch.
#[derive(Debug)]
pub struct Graph<'c> {
    cuda: &'c Cuda,
    handle: sys::CUgraph,
    /// The last launch's bands and their nodes.
    last: Option<(Cut, Vec<sys::CUgraphNode>)>,
}

impl<'c> Graph<'c> {
    /// A graph of no launches.
    pub fn new(cuda: &'c Cuda) -> Result<Self, CudaError> {
        let mut graph = Self { cuda, handle: null_mut(), last: None };
        cuda.ok("cuGraphCreate", unsafe { sys::cuGraphCreate(&mut graph.handle, 0) })?;
        Ok(graph)
    }

    /// The nodes that a band of the next launch waits for.
    pub fn waits(&self, cut: &Cut, band: &Range<u32>) -> Vec<sys::CUgraphNode> {
        let Some((before, nodes)) = &self.last else { return Vec::new() };
        cut.waits(band, before).filter_map(|place| nodes.get(place)).copied().collect()
    }

    /// Adds a kernel. The driver copies the arguments at once.
    pub fn node(
        &self,
        function: &Function,
        launch: &Launch<'_>,
        words: &mut [Word],
        waits: &[sys::CUgraphNode],
    ) -> Result<sys::CUgraphNode, CudaError> {
        let mut pointers: Vec<*mut c_void> = words.iter_mut().map(|word| (&raw mut *word).cast()).collect();
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (launch.grid, launch.kernel.block);
        let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
            func: function.handle,
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: function.dynamic_shared,
            kernelParams: pointers.as_mut_ptr(),
            extra: null_mut(),
            kern: null_mut(),
            ctx: null_mut(),
        };
        let mut node = null_mut();
        self.cuda.ok("cuGraphAddKernelNode", unsafe {
            sys::cuGraphAddKernelNode_v2(&mut node, self.handle, waits.as_ptr(), waits.len(), &parameters)
        })?;
        Ok(node)
    }

    /// Ends a launch, whose nodes are those of its bands in order.
    pub fn follow(&mut self, cut: Cut, nodes: Vec<sys::CUgraphNode>) {
        self.last = Some((cut, nodes));
    }

    /// Makes the graph ready on the device.
    pub fn instantiate(&self) -> Result<Ready<'c>, CudaError> {
        let mut ready = Ready { cuda: self.cuda, handle: null_mut() };
        self.cuda.ok("cuGraphInstantiateWithFlags", unsafe {
            sys::cuGraphInstantiateWithFlags(&mut ready.handle, self.handle, 0)
        })?;
        self.cuda.ok("cuGraphUpload", unsafe { sys::cuGraphUpload(ready.handle, self.cuda.stream) })?;
        self.cuda.synchronize()?;
        Ok(ready)
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            let _ = unsafe { sys::cuGraphDestroy(self.handle) };
        }
    }
}

/// A graph that the device can run.
pub struct Ready<'c> {
    cuda: &'c Cuda,
    handle: sys::CUgraphExec,
}

impl Ready<'_> {
    /// Sends it.
    pub fn launch(&self) -> Result<(), CudaError> {
        self.cuda.ok("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.handle, self.cuda.stream) })
    }
}

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            let _ = unsafe { sys::cuGraphExecDestroy(self.handle) };
        }
    }
}
