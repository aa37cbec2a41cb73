//! A module: the code of a plan, loaded on a device.
#![allow(unsafe_code)] // The driver's interface is C.

use super::device::Device;
use super::error::{CudaError, reason};
use super::handle::Handle;
use crate::plan::Plan;
use cudarc::driver::sys::{self, CUresult};
use std::ffi::{CStr, CString, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// Bytes of what the driver's assembler may say.
const LOG_BYTES: usize = 16 * 1024;

/// Code on a device.
#[derive(Debug)]
pub(super) struct Module {
    handle: Handle<sys::CUmod_st>,
    device: Arc<Device>,
}

impl Module {
    /// Loads PTX text or a cubin.
    pub fn new(device: &Arc<Device>, plan: &Plan, code: &[u8]) -> Result<Arc<Self>, CudaError> {
        let rejected = |reason: String, log: String| CudaError::Code {
            device: device.label().to_owned(),
            program: plan.program.clone(),
            target: plan.target.arch.clone(),
            reason,
            log,
        };
        // PTX is text that must end with a NUL; a cubin is an ELF file that tells its own length.
        let mut image = code.to_vec();
        if !code.starts_with(b"\x7fELF") {
            if code.contains(&0) || !code.windows(8).any(|part| part == b".version") {
                let reason = "it is neither PTX text nor a cubin".to_string();
                return Err(rejected(reason, String::new()));
            }
            image.push(0);
        }
        let mut log = vec![0u8; LOG_BYTES];
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // The driver takes the size in the place of a pointer.
        let mut values =
            [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
        let mut handle = null_mut();
        device.enter()?;
        // SAFETY: the image ends as the driver expects; options and values are as many as said, and
        // the log has the size that its option gives. `drop` unloads the module.
        let result = unsafe {
            sys::cuModuleLoadDataEx(
                &mut handle,
                image.as_ptr().cast(),
                options.len() as c_uint,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if result == CUresult::CUDA_SUCCESS {
            return Ok(Arc::new(Self { handle: Handle(handle), device: Arc::clone(device) }));
        }
        let log = CStr::from_bytes_until_nul(&log)
            .map(|log| log.to_string_lossy().into_owned())
            .unwrap_or_default();
        Err(rejected(reason(result), log))
    }

    /// Its device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The function of this name; `None` where there is none. The context must be current.
    pub fn function(&self, name: &CString) -> Result<Option<Handle<sys::CUfunc_st>>, CudaError> {
        let mut handle = null_mut();
        // SAFETY: the module is loaded, the name a C string; the driver writes one handle, which
        // is valid as long as the module.
        match unsafe { sys::cuModuleGetFunction(&mut handle, self.handle.0, name.as_ptr()) } {
            CUresult::CUDA_ERROR_NOT_FOUND => Ok(None),
            result => self.device.ok("cuModuleGetFunction", result).map(|()| Some(Handle(handle))),
        }
    }

    /// The variable of this name; `None` where there is none. The context must be current.
    pub fn variable(&self, name: &CString) -> Result<Option<Variable>, CudaError> {
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: the module is loaded, the name a C string; the driver writes two numbers. The
        // address is valid as long as the module.
        let result = unsafe {
            sys::cuModuleGetGlobal_v2(&mut address, &mut bytes, self.handle.0, name.as_ptr())
        };
        match result {
            CUresult::CUDA_ERROR_NOT_FOUND => Ok(None),
            result => {
                self.device.ok("cuModuleGetGlobal", result)?;
                Ok(Some(Variable { address, bytes }))
            }
        }
    }
}

/// A variable of a module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Variable {
    /// Where it lies.
    pub address: sys::CUdeviceptr,
    /// Its size.
    pub bytes: usize,
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = self.device.enter();
        // SAFETY: kernels hold their module, and a program waits for its work before it drops
        // them, so that nothing of the module runs.
        let _ = unsafe { sys::cuModuleUnload(self.handle.0) };
    }
}
