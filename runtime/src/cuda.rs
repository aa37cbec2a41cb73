//! The CUDA driver as a [`Target`]: with the files of `cuda/` the one place of this crate with
//! `unsafe`.
//!
//! The driver library is looked for at run time; without one, or without a device, every entry
//! point returns an error. [`Cuda`] is a device, [`Program`] a loaded module with its buffers.
//!
//! Safety, once for all of them: handles come from the driver and are private; a [`Program`]
//! borrows its [`Cuda`], so its context outlives it; both hold raw pointers, so they stay on the
//! thread that made them, where their context is current; copies are checked against the size of
//! the buffer; launches are checked against the parameters that the kernel declares.
#![allow(unsafe_code)] // The driver's interface is C.

mod clock;
mod graph;
mod memory;

use crate::bind::{Bound, BufferId};
use crate::execute::{Target, TargetError};
use crate::launch::{Copy, Launch, Value};
use crate::plan::{Kernel, Plan};
use clock::Clock;
use cudarc::driver::sys::{
    self, CUdevice_attribute as DeviceAttribute, CUfunction_attribute as FunctionAttribute,
    CUresult,
};
pub use graph::GraphSettings;
use graph::Graphs;
use memory::Memory;
use serde::Serialize;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::rc::Rc;
use std::time::Duration;
use thiserror::Error;

/// The oldest driver interface with all the functions used here: CUDA 12.8.
const OLDEST_DRIVER: i32 = 12_080;

/// Shared memory of a block that needs no permission, in bytes.
const PLAIN_SHARED: u64 = 48 * 1024;

/// Why the driver did not do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CudaError {
    /// There is no driver library.
    #[error("no CUDA driver found (libcuda.so): install NVIDIA's driver, or run on another target")]
    NoDriver,
    /// The driver is too old.
    #[error(
        "the CUDA driver knows CUDA {found}, {wanted} or later is needed: update NVIDIA's driver"
    )]
    OldDriver {
        /// The newest CUDA version that the driver knows.
        found: String,
        /// The version that is needed.
        wanted: String,
    },
    /// There is no device of this number.
    #[error("no CUDA device {ordinal}: the driver sees {count}{}", if *count == 0 { " (is \
        CUDA_VISIBLE_DEVICES empty, or the device not passed into the container?)" } else { "" })]
    NoDevice {
        /// The number asked for, from 0.
        ordinal: i32,
        /// How many devices there are.
        count: i32,
    },
    /// A call failed.
    #[error("{call} failed on {device}: {reason}")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// The device.
        device: String,
        /// The driver's name and text for the error.
        reason: String,
    },
    /// The device has too little memory.
    #[error(
        "out of memory on {device}: {wanted} bytes are wanted, {free} of {total} are free; use \
         smaller sizes"
    )]
    OutOfMemory {
        /// The device.
        device: String,
        /// Bytes wanted in all.
        wanted: u64,
        /// Bytes free.
        free: u64,
        /// Bytes of the device.
        total: u64,
    },
    /// The PTX or cubin can't be loaded.
    #[error(
        "{device} rejects the code of {program} (made for {target}): {reason}{}",
        log_text(log)
    )]
    Code {
        /// The device.
        device: String,
        /// The program.
        program: String,
        /// The architecture that the plan names.
        target: String,
        /// The driver's name and text for the error.
        reason: String,
        /// What the driver's assembler said.
        log: String,
    },
    /// The code and the plan don't fit together.
    #[error("the code of {program} does not fit its plan: {message}; compile the program again")]
    Mismatch {
        /// The program.
        program: String,
        /// What does not fit.
        message: String,
    },
    /// A block wants more shared memory than the device has.
    #[error(
        "kernel `{kernel}` wants {wanted} bytes of shared memory a block, {device} gives at most \
         {most}; compile with a smaller tile or pyramid height"
    )]
    Shared {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// Bytes wanted.
        wanted: u64,
        /// Bytes there are.
        most: u64,
    },
    /// A kernel could not be launched.
    #[error(
        "kernel `{kernel}` can't be launched on {device} with {grid:?} blocks of {block:?} \
         threads: {reason} [{call}]"
    )]
    Launch {
        /// The kernel.
        kernel: String,
        /// The device.
        device: String,
        /// Blocks in x, y, z.
        grid: [u32; 3],
        /// Threads of a block in x, y, z.
        block: [u32; 3],
        /// The driver's function that refused it.
        call: &'static str,
        /// The driver's name and text for the error.
        reason: String,
    },
    /// A kernel failed while it ran.
    #[error("{kernels} failed on {device}: {reason} [{call}]; compute-sanitizer finds the place")]
    Run {
        /// The kernel, or those of which it is one.
        kernels: String,
        /// The device.
        device: String,
        /// The driver's function that reported it.
        call: &'static str,
        /// The driver's name and text for the error.
        reason: String,
    },
}

/// What is known of a device, for reports.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceFacts {
    /// The driver's name of it.
    pub name: String,
    /// Its identity, in the form of `nvidia-smi`.
    pub uuid: String,
    /// Its architecture: `sm_90`.
    pub architecture: String,
    /// Streaming multiprocessors.
    pub multiprocessors: i32,
    /// Highest clock of the multiprocessors in MHz.
    pub max_clock_mhz: f64,
    /// Highest clock of the memory in MHz.
    pub max_memory_clock_mhz: f64,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of the level 2 cache.
    pub l2: i32,
    /// Most bytes of shared memory of a block.
    pub shared_per_block: u64,
    /// The newest CUDA version that the driver knows: `13.0`.
    pub cuda: String,
}

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

/// A CUDA device, ready for work.
#[derive(Debug)]
pub struct Cuda {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    facts: DeviceFacts,
}

impl Cuda {
    /// Opens device number `ordinal`, from 0.
    ///
    /// # Errors
    /// Without a driver, with one that is too old, without such a device.
    pub fn open(ordinal: i32) -> Result<Cuda, CudaError> {
        // The checks come first: the bindings panic where the library or a function is missing.
        let is_driver =
            || unsafe { sys::culib().get::<unsafe extern "C" fn()>(b"cuDriverGetVersion").is_ok() };
        if !unsafe { sys::is_culib_present() } || !is_driver() {
            return Err(CudaError::NoDriver);
        }
        let general = "the CUDA driver";
        let mut version = 0;
        ok(general, "cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) })?;
        if version < OLDEST_DRIVER {
            return Err(CudaError::OldDriver {
                found: version_text(version),
                wanted: version_text(OLDEST_DRIVER),
            });
        }
        match unsafe { sys::cuInit(0) } {
            CUresult::CUDA_ERROR_NO_DEVICE => {
                return Err(CudaError::NoDevice { ordinal, count: 0 });
            }
            result => ok(general, "cuInit", result)?,
        }
        let mut count = 0;
        ok(general, "cuDeviceGetCount", unsafe { sys::cuDeviceGetCount(&mut count) })?;
        if !(0..count).contains(&ordinal) {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let mut device = 0;
        ok(general, "cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, ordinal) })?;
        let facts = facts(device, version)?;

        let mut context = null_mut();
        ok(&facts.name, "cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&mut context, device)
        })?;
        let mut cuda = Cuda { device, context, stream: null_mut(), facts };
        cuda.enter()?;
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        let mut stream = null_mut();
        cuda.ok("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut stream, flags) })?;
        cuda.stream = stream;
        Ok(cuda)
    }

    /// What is known of the device.
    pub fn facts(&self) -> &DeviceFacts {
        &self.facts
    }

    /// Bytes of device memory that are free, and all.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn memory(&self) -> Result<(u64, u64), CudaError> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        self.ok("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((free as u64, total as u64))
    }

    /// Measures a copy within device memory: bytes per second, reads and writes counted together.
    /// Copies 1 GiB, or an eighth of what is free if that is less, 20 times.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn copy_bandwidth(&self) -> Result<f64, CudaError> {
        const TIMES: u32 = 20;
        let (free, _) = self.memory()?;
        let bytes = (1u64 << 30).min(free / 8).max(1) as usize;
        let (from, to) = (Memory::new(self, bytes)?, Memory::new(self, bytes)?);
        let clock = Clock::new(self)?;
        let copy = || {
            self.ok("cuMemcpyDtoDAsync", unsafe {
                sys::cuMemcpyDtoDAsync_v2(to.address, from.address, bytes, self.stream)
            })
        };
        (0..3).try_for_each(|_| copy())?;
        clock.start()?;
        (0..TIMES).try_for_each(|_| copy())?;
        let elapsed = clock.stop()?;
        Ok(2.0 * bytes as f64 * f64::from(TIMES) / elapsed.as_secs_f64())
    }

    /// Loads the code of a plan: PTX text or a cubin.
    ///
    /// # Errors
    /// When the driver rejects the code, when a kernel is missing or has other parameters than in
    /// the plan, when a block wants more shared memory than there is.
    pub fn load<'c>(&'c self, plan: &Plan, code: &[u8]) -> Result<Program<'c>, CudaError> {
        self.enter()?;
        let module = Module::new(self, plan, code)?;
        for kernel in &plan.kernels {
            let (found, wanted) = (ptx_parameters(code, &kernel.name), plan.parameters(kernel));
            if let Some(found) = found.filter(|found| *found != wanted) {
                let message = format!(
                    "kernel `{}` has {found} parameters, the plan gives {wanted}",
                    kernel.name
                );
                return Err(CudaError::Mismatch { program: plan.program.clone(), message });
            }
        }
        let mut functions = Vec::new();
        for kernel in &plan.kernels {
            functions.push(self.function(plan, kernel, &module)?);
        }
        Ok(Program {
            clock: Clock::new(self)?,
            cuda: self,
            functions,
            name: plan.program.clone(),
            buffers: Vec::new(),
            saved: Vec::new(),
            graphs: None,
            _module: module,
        })
    }

    fn function(
        &self,
        plan: &Plan,
        kernel: &Kernel,
        module: &Module<'_>,
    ) -> Result<Function, CudaError> {
        let mismatch =
            |message: String| CudaError::Mismatch { program: plan.program.clone(), message };
        let name = CString::new(kernel.name.as_str()).map_err(|e| mismatch(e.to_string()))?;
        let mut handle = null_mut();
        match unsafe { sys::cuModuleGetFunction(&mut handle, module.handle, name.as_ptr()) } {
            CUresult::CUDA_ERROR_NOT_FOUND => {
                return Err(mismatch(format!("it has no kernel `{}`", kernel.name)));
            }
            result => self.ok("cuModuleGetFunction", result)?,
        }
        let attribute = |attribute| -> Result<c_int, CudaError> {
            let mut value = 0;
            self.ok("cuFuncGetAttribute", unsafe {
                sys::cuFuncGetAttribute(&mut value, attribute, handle)
            })?;
            Ok(value)
        };
        let static_shared = attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        let wanted =
            u64::try_from(static_shared).unwrap_or(0).saturating_add(kernel.dynamic_shared);
        if wanted > self.facts.shared_per_block {
            return Err(CudaError::Shared {
                kernel: kernel.name.clone(),
                device: self.facts.name.clone(),
                wanted,
                most: self.facts.shared_per_block,
            });
        }
        let dynamic = c_int::try_from(kernel.dynamic_shared).unwrap_or(c_int::MAX);
        if wanted > PLAIN_SHARED {
            let raise = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            self.ok("cuFuncSetAttribute", unsafe {
                sys::cuFuncSetAttribute(handle, raise, dynamic)
            })?;
        }
        let threads: u32 = kernel.block.iter().product();
        let most = attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
        if i64::from(threads) > i64::from(most) {
            return Err(mismatch(format!(
                "kernel `{}` runs with at most {most} threads a block, the plan wants {threads}",
                kernel.name
            )));
        }
        let mut blocks = 0;
        let threads = c_int::try_from(threads).unwrap_or(c_int::MAX);
        self.ok("cuOccupancyMaxActiveBlocksPerMultiprocessor", unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                handle,
                threads,
                dynamic as usize,
            )
        })?;
        Ok(Function {
            handle,
            name: kernel.name.as_str().into(),
            parameters: self.parameters(handle, plan.parameters(kernel))?,
            dynamic_shared: dynamic as c_uint,
            facts: KernelFacts {
                name: kernel.name.clone(),
                registers: attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
                static_shared,
                dynamic_shared: kernel.dynamic_shared,
                local: attribute(FunctionAttribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
                blocks_per_multiprocessor: blocks,
            },
        })
    }

    /// The sizes in bytes of a kernel's first `count` parameters; fewer where it has fewer. The
    /// driver has no question for the number itself, and asking for one too many is an error that
    /// sanitizers report.
    fn parameters(&self, function: sys::CUfunction, count: usize) -> Result<Vec<usize>, CudaError> {
        let mut sizes = Vec::new();
        while sizes.len() < count {
            let (mut offset, mut size) = (0, 0);
            match unsafe { sys::cuFuncGetParamInfo(function, sizes.len(), &mut offset, &mut size) }
            {
                CUresult::CUDA_ERROR_INVALID_VALUE => break,
                result => self.ok("cuFuncGetParamInfo", result)?,
            }
            sizes.push(size);
        }
        Ok(sizes)
    }

    /// Makes this device's context the current one of the thread.
    fn enter(&self) -> Result<(), CudaError> {
        self.ok("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    fn synchronize(&self) -> Result<(), CudaError> {
        self.ok("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.stream) })
    }

    fn ok(&self, call: &'static str, result: CUresult) -> Result<(), CudaError> {
        ok(&self.facts.name, call, result)
    }

    /// What the driver's function `by` made of a call of a kernel.
    fn took(&self, call: &Call, by: &'static str, result: CUresult) -> Result<(), CudaError> {
        if result == CUresult::CUDA_SUCCESS {
            return Ok(());
        }
        Err(CudaError::Launch {
            kernel: call.kernel.to_string(),
            device: self.facts.name.clone(),
            grid: call.grid,
            block: call.block,
            call: by,
            reason: reason(result),
        })
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // Nothing can be done about a failure here.
        let _ = self.enter();
        unsafe {
            if !self.stream.is_null() {
                let _ = sys::cuStreamDestroy_v2(self.stream);
            }
            let _ = sys::cuDevicePrimaryCtxRelease_v2(self.device);
        }
    }
}

/// The number of a kernel's parameters in PTX text; none in a cubin.
fn ptx_parameters(code: &[u8], kernel: &str) -> Option<usize> {
    let text = std::str::from_utf8(code).ok()?;
    let (_, rest) = text.split_once(&format!(".entry {kernel}("))?;
    Some(rest.split_once(')')?.0.matches(".param").count())
}

/// A loaded program with its device buffers. It runs plans through [`crate::execute`].
#[derive(Debug)]
pub struct Program<'c> {
    // Fields are dropped in this order: all of them before the module and the device.
    clock: Clock<'c>,
    buffers: Vec<Memory<'c>>,
    saved: Vec<Memory<'c>>,
    /// What sends launches as graphs; they are sent one by one where there is none.
    graphs: Option<Graphs<'c>>,
    functions: Vec<Function>,
    /// The program's name.
    name: String,
    _module: Module<'c>,
    cuda: &'c Cuda,
}

#[derive(Debug)]
struct Function {
    handle: sys::CUfunction,
    name: Rc<str>,
    /// Bytes of each parameter.
    parameters: Vec<usize>,
    dynamic_shared: c_uint,
    facts: KernelFacts,
}

/// A launch as the driver takes it.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    /// The kernel's name, for errors.
    kernel: Rc<str>,
    function: sys::CUfunction,
    grid: [u32; 3],
    block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    shared: c_uint,
    words: Vec<Word>,
}

impl Call {
    /// Whether the two differ in no more than their arguments.
    fn is_like(&self, other: &Call) -> bool {
        (self.function, self.grid, self.block, self.shared)
            == (other.function, other.grid, other.block, other.shared)
    }

    /// Where the driver reads the arguments.
    fn pointers(&self) -> Vec<*mut c_void> {
        self.words.iter().map(|word| (&raw const *word).cast_mut().cast()).collect()
    }
}

impl<'c> Program<'c> {
    /// What the driver made of the kernels, in the plan's order.
    pub fn kernels(&self) -> Vec<KernelFacts> {
        self.functions.iter().map(|function| function.facts.clone()).collect()
    }

    /// From the next run on launches are sent as graphs of many. That spares the time between short
    /// kernels, and launches overlap where that is possible; the measured time is then that of the
    /// graphs.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn use_graphs(&mut self, settings: GraphSettings) -> Result<(), CudaError> {
        self.cuda.enter()?;
        self.graphs = Some(Graphs::new(self.cuda, settings)?);
        Ok(())
    }

    /// The most bands of a launch so far.
    pub fn most_bands(&self) -> usize {
        self.graphs.as_ref().map_or(1, Graphs::most_bands)
    }

    /// Keeps a copy of all buffers on the device, for [`Program::restore`].
    ///
    /// # Errors
    /// When the device has no room for it, or the copy fails.
    pub fn save(&mut self) -> Result<(), CudaError> {
        self.saved.clear();
        for buffer in &self.buffers {
            let memory = Memory::new(self.cuda, buffer.bytes)?;
            memory.copy_from(buffer)?;
            self.saved.push(memory);
        }
        self.cuda.synchronize()
    }

    /// Gives all buffers what they held when they were saved.
    ///
    /// # Errors
    /// When a copy fails.
    pub fn restore(&self) -> Result<(), CudaError> {
        self.cuda.enter()?;
        self.buffers
            .iter()
            .zip(&self.saved)
            .try_for_each(|(buffer, saved)| buffer.copy_from(saved))?;
        self.cuda.synchronize()
    }

    fn buffer(&self, id: BufferId) -> Result<&Memory<'_>, CudaError> {
        self.buffers.get(id.0).ok_or_else(|| self.mismatch(format!("there is no buffer {}", id.0)))
    }

    /// A buffer of just this many bytes.
    fn sized_buffer(&self, id: BufferId, bytes: usize) -> Result<&Memory<'_>, CudaError> {
        let memory = self.buffer(id)?;
        if memory.bytes == bytes {
            return Ok(memory);
        }
        Err(self.mismatch(format!("buffer {} has {} bytes, its data {bytes}", id.0, memory.bytes)))
    }

    fn mismatch(&self, message: String) -> CudaError {
        CudaError::Mismatch { program: self.name.clone(), message }
    }

    fn function(&self, launch: &Launch<'_>) -> Result<&Function, CudaError> {
        let name = &launch.kernel.name;
        let function = self.functions.get(launch.index).filter(|function| *function.name == **name);
        function.ok_or_else(|| self.mismatch(format!("there is no kernel `{name}`")))
    }

    fn call(&self, launch: &Launch<'_>) -> Result<Call, CudaError> {
        let (name, function) = (&launch.kernel.name, self.function(launch)?);
        let mut words = Vec::with_capacity(launch.arguments.len());
        let mut sizes = Vec::with_capacity(launch.arguments.len());
        for argument in &launch.arguments {
            let (word, size) = match argument {
                Value::Buffer(id) => (Word::of(&self.buffer(*id)?.address.to_ne_bytes()), 8),
                Value::Number(number) => {
                    let bytes = number.bytes();
                    (Word::of(&bytes), bytes.len())
                }
            };
            words.push(word);
            sizes.push(size);
        }
        if sizes != function.parameters {
            return Err(self.mismatch(format!(
                "kernel `{name}` has parameters of {:?} bytes, the plan passes {sizes:?}",
                function.parameters
            )));
        }
        Ok(Call {
            kernel: Rc::clone(&function.name),
            function: function.handle,
            grid: launch.grid,
            block: launch.kernel.block,
            shared: function.dynamic_shared,
            words,
        })
    }

    /// Blocks of the launch that the device runs at a time.
    fn resident(&self, launch: &Launch<'_>) -> Result<u64, CudaError> {
        let blocks = self.function(launch)?.facts.blocks_per_multiprocessor;
        Ok(u64::from(blocks.unsigned_abs())
            * u64::from(self.cuda.facts.multiprocessors.unsigned_abs()))
    }

    /// Adds a launch to those that are sent next, and sends what is full.
    fn gather(&self, graphs: &mut Graphs<'c>, launch: &Launch<'_>) -> Result<(), CudaError> {
        if graphs.are_full_before(launch) {
            graphs.send(|| self.clock.start())?;
        }
        graphs.add(launch, self.resident(launch)?, |part| self.call(part))
    }

    fn send(&self, launch: &Launch<'_>) -> Result<(), CudaError> {
        let call = self.call(launch)?;
        let mut pointers = call.pointers();
        let ([gx, gy, gz], [bx, by, bz]) = (call.grid, call.block);
        let result = unsafe {
            sys::cuLaunchKernel(
                call.function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                call.shared,
                self.cuda.stream,
                pointers.as_mut_ptr(),
                null_mut(),
            )
        };
        self.cuda.took(&call, "cuLaunchKernel", result)
    }

    /// Sends what was gathered and waits for it.
    fn settle(&mut self) -> Result<(), CudaError> {
        self.cuda.enter()?;
        if let Some(graphs) = &mut self.graphs {
            let sent = graphs.send(|| self.clock.start());
            sent.map_err(|error| self.not_sent(error))?;
        }
        self.cuda.synchronize().map_err(|error| self.of_kernels(error))
    }

    /// Waits for the launches.
    fn end(&mut self) -> Result<Duration, CudaError> {
        self.cuda.enter()?;
        if let Some(graphs) = &mut self.graphs {
            let sent = graphs.send(|| self.clock.start());
            sent.map_err(|error| self.not_sent(error))?;
        }
        self.clock.stop().map_err(|error| self.of_kernels(error))
    }

    /// Why a launch could not be sent: if a kernel before it failed, that is the reason. Waits for
    /// what was sent.
    fn not_sent(&self, error: CudaError) -> CudaError {
        self.cuda.synchronize().map_or_else(|fault| self.of_kernels(fault), |()| error)
    }

    /// An error of a kernel that ran, told as such.
    fn of_kernels(&self, error: CudaError) -> CudaError {
        match error {
            CudaError::Call { call, device, reason } => {
                let names: Vec<_> =
                    self.functions.iter().map(|function| format!("`{}`", function.name)).collect();
                let kernels = match names.as_slice() {
                    [name] => format!("kernel {name}"),
                    names => format!("one of the kernels {}", names.join(", ")),
                };
                CudaError::Run { kernels, device, call, reason }
            }
            other => other,
        }
    }
}

impl Target for Program<'_> {
    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError> {
        self.cuda.enter()?;
        self.saved.clear();
        self.buffers.clear();
        let wanted = bound.device_bytes();
        let (free, total) = self.cuda.memory()?;
        let out_of_memory =
            || CudaError::OutOfMemory { device: self.cuda.facts.name.clone(), wanted, free, total };
        if wanted > free {
            return Err(out_of_memory().into());
        }
        let mut buffers = Vec::new();
        for buffer in &bound.buffers {
            match Memory::new(self.cuda, buffer.bytes()) {
                Ok(memory) => buffers.push(memory),
                Err(CudaError::OutOfMemory { .. }) => return Err(out_of_memory().into()),
                Err(error) => return Err(error.into()),
            }
        }
        self.buffers = buffers;
        Ok(())
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        self.cuda.enter()?;
        let memory = self.sized_buffer(buffer, bytes.len())?;
        self.cuda.ok("cuMemcpyHtoDAsync", unsafe {
            sys::cuMemcpyHtoDAsync_v2(
                memory.address,
                bytes.as_ptr().cast(),
                bytes.len(),
                self.cuda.stream,
            )
        })?;
        Ok(self.cuda.synchronize()?)
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        self.cuda.enter()?;
        let from = self.buffer(from)?;
        self.sized_buffer(to, from.bytes)?.copy_from(from)?;
        Ok(self.cuda.synchronize()?)
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        self.cuda.enter()?;
        match &mut self.graphs {
            Some(graphs) => graphs.begin(),
            None => self.clock.start()?,
        }
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        let sent = match self.graphs.take() {
            Some(mut graphs) => {
                let sent = self.gather(&mut graphs, launch);
                self.graphs = Some(graphs);
                sent
            }
            None => self.send(launch),
        };
        Ok(sent.map_err(|error| self.not_sent(error))?)
    }

    fn exchange(&mut self, copy: &Copy) -> Result<(), TargetError> {
        self.settle()?;
        let (from, to) = (self.buffer(copy.from)?, self.buffer(copy.to)?);
        let (from_end, to_end) =
            (copy.from_byte.checked_add(copy.bytes), copy.to_byte.checked_add(copy.bytes));
        let inside = from_end.is_some_and(|end| end <= from.bytes)
            && to_end.is_some_and(|end| end <= to.bytes);
        if !inside {
            return Err(self.mismatch("an exchange reaches beyond a buffer".to_string()).into());
        }
        self.cuda.ok("cuMemcpyDtoDAsync", unsafe {
            sys::cuMemcpyDtoDAsync_v2(
                to.address + copy.to_byte as u64,
                from.address + copy.from_byte as u64,
                copy.bytes,
                self.cuda.stream,
            )
        })?;
        Ok(())
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        Ok(self.settle()?)
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        Ok(Some(self.end()?))
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.cuda.enter()?;
        if let Some(graphs) = &mut self.graphs {
            graphs.begin();
        }
        Ok(self.cuda.synchronize().map_err(|error| self.of_kernels(error))?)
    }

    fn download(&mut self, buffer: BufferId, bytes: &mut [u8]) -> Result<(), TargetError> {
        self.cuda.enter()?;
        let memory = self.sized_buffer(buffer, bytes.len())?;
        self.cuda.ok("cuMemcpyDtoHAsync", unsafe {
            sys::cuMemcpyDtoHAsync_v2(
                bytes.as_mut_ptr().cast(),
                memory.address,
                bytes.len(),
                self.cuda.stream,
            )
        })?;
        Ok(self.cuda.synchronize()?)
    }
}

/// The memory of one kernel argument: 2, 4 or 8 bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(8))]
struct Word([u8; 8]);

impl Word {
    fn of(bytes: &[u8]) -> Word {
        let mut word = Word([0; 8]);
        word.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        word
    }
}

/// Code loaded on a device.
#[derive(Debug)]
struct Module<'c> {
    cuda: &'c Cuda,
    handle: sys::CUmodule,
}

impl<'c> Module<'c> {
    fn new(cuda: &'c Cuda, plan: &Plan, code: &[u8]) -> Result<Module<'c>, CudaError> {
        let rejected = |reason: String, log: String| CudaError::Code {
            device: cuda.facts.name.clone(),
            program: plan.program.clone(),
            target: plan.target.arch.clone(),
            reason,
            log,
        };
        // PTX is text that must end with a NUL; a cubin is an ELF file that tells its own length.
        let mut image = code.to_vec();
        if !code.starts_with(b"\x7fELF") {
            if code.contains(&0) || !code.windows(8).any(|part| part == b".version") {
                return Err(rejected(
                    "it is neither PTX text nor a cubin".to_string(),
                    String::new(),
                ));
            }
            image.push(0);
        }
        let mut log = vec![0u8; 16 * 1024];
        let mut options = [
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
            sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        ];
        // The driver takes the size in the place of a pointer.
        let mut values =
            [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
        let mut handle = null_mut();
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
            return Ok(Module { cuda, handle });
        }
        let log = CStr::from_bytes_until_nul(&log)
            .map(|log| log.to_string_lossy().into_owned())
            .unwrap_or_default();
        Err(rejected(reason(result), log))
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        let _ = self.cuda.enter();
        let _ = unsafe { sys::cuModuleUnload(self.handle) };
    }
}

fn facts(device: sys::CUdevice, version: i32) -> Result<DeviceFacts, CudaError> {
    let mut text = [0 as c_char; 256];
    let length = c_int::try_from(text.len() - 1).unwrap_or(0);
    ok("the CUDA driver", "cuDeviceGetName", unsafe {
        sys::cuDeviceGetName(text.as_mut_ptr(), length, device)
    })?;
    let name: Vec<u8> = text.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect();
    let name = String::from_utf8_lossy(&name).into_owned();
    let attribute = |attribute| -> Result<c_int, CudaError> {
        let mut value = 0;
        ok(&name, "cuDeviceGetAttribute", unsafe {
            sys::cuDeviceGetAttribute(&mut value, attribute, device)
        })?;
        Ok(value)
    };
    let mut memory = 0;
    ok(&name, "cuDeviceTotalMem", unsafe { sys::cuDeviceTotalMem_v2(&mut memory, device) })?;
    let mut uuid = sys::CUuuid_st { bytes: [0; 16] };
    ok(&name, "cuDeviceGetUuid", unsafe { sys::cuDeviceGetUuid_v2(&mut uuid, device) })?;
    let major = attribute(DeviceAttribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(DeviceAttribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let shared = attribute(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    Ok(DeviceFacts {
        uuid: uuid_text(&uuid.bytes.map(|c| c as u8)),
        architecture: format!("sm_{major}{minor}"),
        multiprocessors: attribute(DeviceAttribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        max_clock_mhz: f64::from(attribute(DeviceAttribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?)
            / 1000.0,
        max_memory_clock_mhz: f64::from(attribute(
            DeviceAttribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE,
        )?) / 1000.0,
        memory: memory as u64,
        l2: attribute(DeviceAttribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        shared_per_block: u64::try_from(shared).unwrap_or(0),
        cuda: version_text(version),
        name,
    })
}

/// `GPU-` and the bytes in groups of 4, 2, 2, 2 and 6.
fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = "GPU".to_string();
    for (place, byte) in bytes.iter().enumerate() {
        if matches!(place, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

fn version_text(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn log_text(log: &str) -> String {
    if log.trim().is_empty() { String::new() } else { format!("\n{}", log.trim_end()) }
}

fn ok(device: &str, call: &'static str, result: CUresult) -> Result<(), CudaError> {
    if result == CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(CudaError::Call { call, device: device.to_string(), reason: reason(result) })
}

/// The driver's name and text for an error: `CUDA_ERROR_INVALID_VALUE (invalid argument)`.
fn reason(result: CUresult) -> String {
    let text = |call: unsafe fn(CUresult, *mut *const c_char) -> CUresult| {
        let mut text = null();
        // The driver returns text that lives as long as the library.
        unsafe {
            match call(result, &mut text) {
                CUresult::CUDA_SUCCESS if !text.is_null() => {
                    Some(CStr::from_ptr(text).to_string_lossy().into_owned())
                }
                _ => None,
            }
        }
    };
    let name = text(sys::cuGetErrorName).unwrap_or_else(|| format!("error {}", result as u32));
    match text(sys::cuGetErrorString) {
        Some(text) => format!("{name} ({text})"),
        None => name,
    }
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
    fn opening_a_device_that_is_not_there_is_an_error() {
        // Without a driver or with any number of devices: never a panic.
        match Cuda::open(i32::MAX) {
            Err(
                CudaError::NoDriver
                | CudaError::NoDevice { .. }
                | CudaError::OldDriver { .. }
                | CudaError::Call { .. },
            ) => {}
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn versions_and_identities() {
        assert_eq!(version_text(13_000), "13.0");
        assert_eq!(version_text(12_080), "12.8");
        let bytes = std::array::from_fn(|i| i as u8);
        assert_eq!(uuid_text(&bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn words_start_with_the_number() {
        assert_eq!(Word::of(&1.5f32.to_ne_bytes()).0[..4], 1.5f32.to_ne_bytes());
        assert_eq!(Word::of(&(-2i64).to_ne_bytes()).0, (-2i64).to_ne_bytes());
    }
}
