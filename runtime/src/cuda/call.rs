//! A launch as the driver takes it.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::{CudaError, reason};
use super::handle::Handle;
use super::stream::Stream;
use crate::bind::BufferId;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// The memory of one kernel argument: 2, 4 or 8 bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(8))]
pub(super) struct Word([u8; 8]);

impl Word {
    /// The first 8 bytes of an argument.
    pub fn of(bytes: &[u8]) -> Word {
        let mut word = Word([0; 8]);
        word.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        word
    }
}

/// A launch as the driver takes it. The kernel must outlive it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    /// The kernel's name, for errors.
    pub kernel: Arc<str>,
    pub function: Handle<sys::CUfunc_st>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared: c_uint,
    /// Whether all blocks are on the device at once.
    pub cooperative: bool,
    /// Blocks of a cluster.
    pub cluster: Option<[u32; 3]>,
    pub words: Vec<Word>,
    /// The places of those words that are addresses, and of which buffers.
    pub addresses: Vec<(usize, BufferId)>,
}

impl Call {
    /// Gives the words that are addresses those of the buffers now, in the plan's order.
    pub fn readdress(&mut self, buffers: &[u64]) {
        for (place, buffer) in &self.addresses {
            if let (Some(word), Some(now)) = (self.words.get_mut(*place), buffers.get(buffer.0)) {
                *word = Word::of(&now.to_ne_bytes());
            }
        }
    }

    /// Whether the two differ in no more than their arguments.
    pub fn is_like(&self, other: &Call) -> bool {
        (self.function, self.grid, self.block, self.shared, self.cooperative, self.cluster)
            == (
                other.function,
                other.grid,
                other.block,
                other.shared,
                other.cooperative,
                other.cluster,
            )
    }

    /// Sends the launch by itself. The context must be current.
    pub fn send(&self, stream: &Stream) -> Result<(), CudaError> {
        let mut pointers = self.pointers();
        let mut attributes = self.attributes();
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (self.grid, self.block);
        let launch = sys::CUlaunchConfig {
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: self.shared,
            hStream: stream.raw(),
            attrs: attributes.as_mut_ptr(),
            numAttrs: attributes.len() as c_uint,
        };
        // SAFETY: the function is loaded and the attributes are as many as said. Each parameter has
        // a pointer to at least its bytes, which `Kernel::call` checked; the driver copies them
        // before it returns.
        let result = unsafe {
            sys::cuLaunchKernelEx(&launch, self.function.0, pointers.as_mut_ptr(), null_mut())
        };
        self.took(stream, "cuLaunchKernelEx", result)
    }

    /// Attributes of the launch: whether it is cooperative, and its clusters.
    fn attributes(&self) -> Vec<sys::CUlaunchAttribute> {
        let attribute = |id, value| sys::CUlaunchAttribute { id, pad: [0; 4], value };
        let cooperative = self.cooperative.then(|| {
            let value = sys::CUlaunchAttributeValue { cooperative: 1 };
            attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, value)
        });
        let cluster = self.cluster.map(|[x, y, z]| {
            let cluster = sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x, y, z };
            let value = sys::CUlaunchAttributeValue { clusterDim: cluster };
            attribute(sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, value)
        });
        cooperative.into_iter().chain(cluster).collect()
    }

    /// Adds the launch to a graph, behind some of its nodes.
    pub fn add(
        &self,
        stream: &Stream,
        graph: Handle<sys::CUgraph_st>,
        waits: &[sys::CUgraphNode],
    ) -> Result<Handle<sys::CUgraphNode_st>, CudaError> {
        let mut handle = null_mut();
        // SAFETY: the graph is there, and `waits` are handles of its nodes. The function and its
        // arguments are as for a launch; the driver copies them.
        let result = self.with_parameters(|parameters| unsafe {
            let (waits, count) = (waits.as_ptr(), waits.len());
            sys::cuGraphAddKernelNode_v2(&mut handle, graph.0, waits, count, parameters)
        });
        self.took(stream, "cuGraphAddKernelNode", result)?;
        for attribute in self.attributes() {
            // SAFETY: the node is there, and the value is one of this attribute.
            let result = unsafe {
                sys::cuGraphKernelNodeSetAttribute(handle, attribute.id, &attribute.value)
            };
            self.took(stream, "cuGraphKernelNodeSetAttribute", result)?;
        }
        Ok(Handle(handle))
    }

    /// Hands the launch to the driver as the parameters of a graph's node; `take` must copy them.
    pub fn with_parameters(
        &self,
        take: impl FnOnce(&sys::CUDA_KERNEL_NODE_PARAMS) -> CUresult,
    ) -> CUresult {
        let mut pointers = self.pointers();
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (self.grid, self.block);
        take(&sys::CUDA_KERNEL_NODE_PARAMS {
            func: self.function.0,
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: self.shared,
            kernelParams: pointers.as_mut_ptr(),
            extra: null_mut(),
            kern: null_mut(),
            ctx: null_mut(),
        })
    }

    /// The outcome of the driver's function `by` for this launch.
    pub fn took(
        &self,
        stream: &Stream,
        by: &'static str,
        result: CUresult,
    ) -> Result<(), CudaError> {
        if result == CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        Err(CudaError::Launch {
            kernel: self.kernel.to_string(),
            device: stream.device().label().to_owned(),
            grid: self.grid,
            block: self.block,
            call: by,
            reason: reason(result),
        })
    }

    /// Where the driver reads the arguments.
    fn pointers(&self) -> Vec<*mut c_void> {
        self.words.iter().map(|word| (&raw const *word).cast_mut().cast()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_start_with_the_number() {
        assert_eq!(Word::of(&1.5f32.to_ne_bytes()).0[..4], 1.5f32.to_ne_bytes());
        assert_eq!(Word::of(&(-2i64).to_ne_bytes()).0, (-2i64).to_ne_bytes());
    }
}
