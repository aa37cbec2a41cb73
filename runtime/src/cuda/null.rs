//! A kernel that does nothing: what a launch costs by itself.

use super::call::Call;
use super::clock::Clock;
use super::device::Device;
use super::error::CudaError;
use super::handle::Handle;
use super::module::Module;
use super::stream::Stream;
use crate::plan::Plan;
use cudarc::driver::sys;
use std::ffi::CString;
use std::sync::Arc;
use std::time::Duration;

/// The oldest architecture that every driver of ours translates.
const PTX: &[u8] =
    b".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry null()\n{\n\tret;\n}\n";

/// The kernel, loaded.
#[derive(Debug)]
pub(super) struct Null {
    function: Handle<sys::CUfunc_st>,
    _module: Arc<Module>,
}

impl Null {
    /// Loads it on a device; the plan is for messages.
    pub fn new(device: &Arc<Device>, plan: &Plan) -> Result<Option<Self>, CudaError> {
        let module = Module::new(device, plan, PTX)?;
        let Ok(name) = CString::new("null") else { return Ok(None) };
        let function = module.function(&name)?;
        Ok(function.map(|function| Self { function, _module: module }))
    }

    /// The time of some launches of it. The context must be current.
    pub fn time(
        &self,
        (grid, block): ([u32; 3], [u32; 3]),
        times: u32,
        (stream, clock): (&Stream, &Clock),
    ) -> Result<Duration, CudaError> {
        let call = self.call(grid, block);
        // The first launch loads the code.
        call.send(stream)?;
        clock.start()?;
        for _ in 0..times {
            call.send(stream)?;
        }
        clock.stop()
    }

    /// A launch of it.
    fn call(&self, grid: [u32; 3], block: [u32; 3]) -> Call {
        Call {
            kernel: "null".into(),
            function: self.function,
            grid,
            block,
            shared: 0,
            cooperative: false,
            cluster: None,
            words: Vec::new(),
            addresses: Vec::new(),
        }
    }
}
