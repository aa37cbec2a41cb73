//! A kernel of a loaded module with its facts, and a call of it.
#![allow(unsafe_code)] // The driver's interface is C.

use super::call::{Call, Word};
use super::error::CudaError;
use super::handle::Handle;
use super::module::Module;
use crate::launch::Launch;
use crate::plan::{self, Plan};
use cudarc::driver::sys::{self, CUfunction_attribute as Attribute, CUresult};
use serde::Serialize;
use std::ffi::{CString, c_int, c_uint};
use std::sync::Arc;

/// Shared memory of a block that needs no permission, in bytes.
const PLAIN_SHARED: u64 = 48 * 1024;

/// Facts of a kernel, as the driver reports them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelFacts {
    /// Its name.
    pub name: String,
    /// Registers of a thread.
    pub registers: i32,
    /// Bytes of static shared memory of a block.
    pub static_shared: i32,
    /// Bytes of dynamic shared memory of a block.
    pub dynamic_shared: u64,
    /// Bytes of local memory of a thread: spilled registers and arrays that are no registers.
    pub local: i32,
    /// Blocks that fit on a multiprocessor at once.
    pub blocks_per_multiprocessor: i32,
}

/// A kernel, ready to be launched. Its facts are found once, when it is loaded.
#[derive(Debug)]
pub(super) struct Kernel {
    handle: Handle<sys::CUfunc_st>,
    name: Arc<str>,
    /// Bytes of each parameter.
    parameters: Vec<usize>,
    block: [u32; 3],
    dynamic_shared: c_uint,
    /// Blocks that the device runs at once.
    resident: u64,
    facts: KernelFacts,
    module: Arc<Module>,
}

impl Kernel {
    /// Finds a kernel of the plan in its module and checks that the two fit together.
    pub fn new(
        plan: &Plan,
        kernel: &plan::Kernel,
        module: &Arc<Module>,
    ) -> Result<Self, CudaError> {
        let mismatch =
            |message: String| CudaError::Mismatch { program: plan.program.clone(), message };
        let device = module.device();
        let name = CString::new(kernel.name.as_str()).map_err(|e| mismatch(e.to_string()))?;
        let function = module
            .function(&name)?
            .ok_or_else(|| mismatch(format!("it has no kernel `{}`", kernel.name)))?;
        let function = Function { handle: function, module };

        let static_shared = function.attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let wanted =
            u64::try_from(static_shared).unwrap_or(0).saturating_add(kernel.dynamic_shared);
        if wanted > device.facts().shared_per_block {
            return Err(CudaError::Shared {
                kernel: kernel.name.clone(),
                device: device.label().to_owned(),
                wanted,
                most: device.facts().shared_per_block,
            });
        }
        let dynamic = c_int::try_from(kernel.dynamic_shared).unwrap_or(c_int::MAX);
        if wanted > PLAIN_SHARED {
            function.allow_shared(dynamic)?;
        }
        let threads: u32 = kernel.block.iter().product();
        let most = function.attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        if i64::from(threads) > i64::from(most) {
            return Err(mismatch(format!(
                "kernel `{}` runs with at most {most} threads a block, the plan wants {threads}",
                kernel.name
            )));
        }
        let blocks = function.resident(threads, dynamic)?;
        let multiprocessors = device.facts().multiprocessors.unsigned_abs();
        Ok(Self {
            handle: function.handle,
            name: kernel.name.as_str().into(),
            parameters: function.parameters(plan.parameters(kernel))?,
            block: kernel.block,
            dynamic_shared: dynamic.unsigned_abs(),
            resident: u64::from(blocks.unsigned_abs()) * u64::from(multiprocessors),
            facts: KernelFacts {
                name: kernel.name.clone(),
                registers: function.attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
                static_shared,
                dynamic_shared: kernel.dynamic_shared,
                local: function.attribute(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
                blocks_per_multiprocessor: blocks,
            },
            module: Arc::clone(module),
        })
    }

    /// Its name in the code.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its facts.
    pub fn facts(&self) -> &KernelFacts {
        &self.facts
    }

    /// Blocks that the device runs at once.
    pub fn resident(&self) -> u64 {
        self.resident
    }

    /// Refuses a cooperative launch of more blocks than the device runs at once.
    pub fn admit(&self, launch: &Launch<'_>) -> Result<(), CudaError> {
        let blocks = launch.grid.iter().map(|blocks| u64::from(*blocks)).product();
        if !launch.node.cooperative || blocks <= self.resident {
            return Ok(());
        }
        let device = self.module.device().label().to_owned();
        Err(CudaError::Together {
            kernel: self.name.to_string(),
            device,
            blocks,
            most: self.resident,
        })
    }

    /// A call with these arguments; when they do not fit its parameters, why.
    pub fn call(&self, launch: &Launch<'_>, arguments: &[(Word, usize)]) -> Result<Call, String> {
        let fits = arguments.iter().map(|(_, size)| size).eq(&self.parameters);
        if !fits {
            let sizes: Vec<_> = arguments.iter().map(|(_, size)| size).collect();
            return Err(format!(
                "kernel `{}` has parameters of {:?} bytes, the plan passes {sizes:?}",
                self.name, self.parameters
            ));
        }
        Ok(Call {
            kernel: Arc::clone(&self.name),
            function: self.handle,
            grid: launch.grid,
            block: self.block,
            shared: self.dynamic_shared,
            cooperative: launch.node.cooperative,
            cluster: launch.node.cluster,
            words: arguments.iter().map(|(word, _)| *word).collect(),
            addresses: launch.buffers().collect(),
        })
    }
}

/// A function of a module, whose context is current.
struct Function<'m> {
    handle: Handle<sys::CUfunc_st>,
    module: &'m Module,
}

impl Function<'_> {
    fn ok(&self, call: &'static str, result: CUresult) -> Result<(), CudaError> {
        self.module.device().ok(call, result)
    }

    fn attribute(&self, attribute: Attribute) -> Result<c_int, CudaError> {
        let mut value = 0;
        // SAFETY: the module of the function is loaded; the driver writes one number.
        let result = unsafe { sys::cuFuncGetAttribute(&mut value, attribute, self.handle.0) };
        self.ok("cuFuncGetAttribute", result).map(|()| value)
    }

    /// Lets a block have so many bytes of dynamic shared memory.
    fn allow_shared(&self, bytes: c_int) -> Result<(), CudaError> {
        let raise = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the module of the function is loaded.
        let result = unsafe { sys::cuFuncSetAttribute(self.handle.0, raise, bytes) };
        self.ok("cuFuncSetAttribute", result)
    }

    /// Blocks that fit on a multiprocessor at once.
    fn resident(&self, threads: u32, dynamic_shared: c_int) -> Result<c_int, CudaError> {
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        let shared = usize::try_from(dynamic_shared).unwrap_or(0);
        let mut blocks = 0;
        // SAFETY: the module of the function is loaded; the driver writes one number.
        let result = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                self.handle.0,
                threads,
                shared,
            )
        };
        self.ok("cuOccupancyMaxActiveBlocksPerMultiprocessor", result).map(|()| blocks)
    }

    /// The sizes in bytes of the first `count` parameters; fewer where it has fewer. The driver has
    /// no question for the number itself, and asking for one too many is an error that sanitizers
    /// report.
    fn parameters(&self, count: usize) -> Result<Vec<usize>, CudaError> {
        let mut sizes = Vec::new();
        while sizes.len() < count {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the module of the function is loaded; the driver writes two numbers, or
            // refuses a place where there is no parameter.
            let result = unsafe {
                sys::cuFuncGetParamInfo(self.handle.0, sizes.len(), &mut offset, &mut size)
            };
            match result {
                CUresult::CUDA_ERROR_INVALID_VALUE => break,
                result => self.ok("cuFuncGetParamInfo", result)?,
            }
            sizes.push(size);
        }
        Ok(sizes)
    }
}

/// Checks the numbers of parameters that PTX text declares; a cubin does not tell them.
pub(super) fn check_parameters(plan: &Plan, code: &[u8]) -> Result<(), CudaError> {
    for kernel in &plan.kernels {
        let wanted = plan.parameters(kernel);
        let found = ptx_parameters(code, &kernel.name).unwrap_or(wanted);
        if found != wanted {
            let message =
                format!("kernel `{}` has {found} parameters, the plan gives {wanted}", kernel.name);
            return Err(CudaError::Mismatch { program: plan.program.clone(), message });
        }
    }
    Ok(())
}

/// The number of a kernel's parameters in PTX text; none in a cubin.
fn ptx_parameters(code: &[u8], kernel: &str) -> Option<usize> {
    let text = std::str::from_utf8(code).ok()?;
    let (_, rest) = text.split_once(&format!(".entry {kernel}("))?;
    Some(rest.split_once(')')?.0.matches(".param").count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_in_ptx() {
        let ptx = b".version 8.4\n.visible .entry k_2(\n .param .u64 a,\n .param .u32 b\n)\n{ \
            ld.param.u64 }";
        assert_eq!(ptx_parameters(ptx, "k_2"), Some(2));
        assert_eq!(ptx_parameters(ptx, "k"), None);
        assert_eq!(ptx_parameters(b"\x7fELF\xff", "k_2"), None);
    }
}
