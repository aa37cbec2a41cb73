//! A kernel of a loaded module with its facts, and a call of it.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::{CudaError, reason};
use super::handle::Handle;
use super::module::Module;
use super::stream::Stream;
use crate::plan::{self, Plan};
use cudarc::driver::sys::{self, CUfunction_attribute as Attribute, CUresult};
use serde::Serialize;
use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// Shared memory of a block that needs no permission, in bytes.
const PLAIN_SHARED: u64 = 48 * 1024;

/// What the driver made of a kernel.
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
    _module: Arc<Module>,
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
            parameters: function.parameters(kernel.arguments.len())?,
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
            _module: Arc::clone(module),
        })
    }

    /// Its name in the code.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the driver made of it.
    pub fn facts(&self) -> &KernelFacts {
        &self.facts
    }

    /// Blocks that the device runs at once.
    pub fn resident(&self) -> u64 {
        self.resident
    }

    /// A call with these arguments; when they do not fit its parameters, why.
    pub fn call(&self, grid: [u32; 3], arguments: &[(Word, usize)]) -> Result<Call, String> {
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
            grid,
            block: self.block,
            shared: self.dynamic_shared,
            words: arguments.iter().map(|(word, _)| *word).collect(),
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
    pub words: Vec<Word>,
}

impl Call {
    /// Whether the two differ in no more than their arguments.
    pub fn is_like(&self, other: &Call) -> bool {
        (self.function, self.grid, self.block, self.shared)
            == (other.function, other.grid, other.block, other.shared)
    }

    /// Sends the launch by itself. The context must be current.
    pub fn send(&self, stream: &Stream) -> Result<(), CudaError> {
        let mut pointers = self.pointers();
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid, self.block);
        // SAFETY: the function is loaded; each parameter has a pointer to at least its bytes, which
        // `Kernel::call` checked, and the driver copies them before it returns.
        let result = unsafe {
            sys::cuLaunchKernel(
                self.function.0,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                self.shared,
                stream.raw(),
                pointers.as_mut_ptr(),
                null_mut(),
            )
        };
        self.took(stream, "cuLaunchKernel", result)
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

    /// What the driver's function `by` made of the launch.
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

/// Checks the numbers of parameters that PTX text declares; a cubin does not tell them.
pub(super) fn check_parameters(plan: &Plan, code: &[u8]) -> Result<(), CudaError> {
    for kernel in &plan.kernels {
        let wanted = kernel.arguments.len();
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

    #[test]
    fn words_start_with_the_number() {
        assert_eq!(Word::of(&1.5f32.to_ne_bytes()).0[..4], 1.5f32.to_ne_bytes());
        assert_eq!(Word::of(&(-2i64).to_ne_bytes()).0, (-2i64).to_ne_bytes());
    }
}
