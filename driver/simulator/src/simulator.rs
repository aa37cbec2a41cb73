//! The simulator as a target of the runtime: the same plan, the same launches, another device.

use crate::argument::{kind, number_bits};
use crate::counters::Counters;
use crate::error::SimulationError;
use crate::launch::{self, LaunchError, Request};
use crate::machine::{BYTE_BITS, Global};
use crate::memory::Memory;
use crate::program::{Kernel, Parameter, Usage};
use crate::report::Report;
use crate::translate;
use melior::ir::Module;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stencil_dialects::error::Error;
use stencil_runtime::array::Element;
use stencil_runtime::bind::{self, Bound, BufferId};
use stencil_runtime::execute::{ExecuteError, Target, TargetError};
use stencil_runtime::launch::{Copy, Launch, Value};
use stencil_runtime::layout::Window;
use stencil_runtime::memory;
use thiserror::Error as ThisError;

pub use crate::launch::Settings;

/// Called with a kernel's name, its blocks done and all its blocks.
pub type BlockHook = Arc<dyn Fn(&str, u64, u64) + Send + Sync>;

/// How to translate and run.
#[derive(Clone, Default)]
pub struct Options {
    /// Whether products and sums that allow it become one operation. Off, each rounds on its own,
    /// and results equal those of a CPU bit for bit.
    pub contract: bool,
    /// Order of blocks, host threads, limits.
    pub settings: Settings,
    /// Set from elsewhere to end a run within a launch.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Called after each block.
    pub progress: Option<BlockHook>,
}

/// Why the simulator refuses a launch.
#[derive(Debug, ThisError)]
pub enum SimulatorError {
    /// The plan names a kernel that the module does not hold.
    #[error("the module has no kernel `{0}`; plan and module must come from one compile")]
    UnknownKernel(String),
    /// The plan has no buffer for a variable of the module.
    #[error(
        "the plan has no buffer of this type in constant memory for the variable `{0}`; plan and \
         module must come from one compile"
    )]
    Constant(String),
    /// The plan passes other arguments than the kernel takes.
    #[error(
        "kernel `{kernel}`: argument {place} is {found} where {wanted} is wanted; plan and module \
         must come from one compile"
    )]
    Argument {
        /// The kernel.
        kernel: String,
        /// Which, from 0.
        place: usize,
        /// The plan's argument.
        found: String,
        /// The kernel's parameter.
        wanted: String,
    },
    /// The plan has another block size.
    #[error(
        "kernel `{kernel}` is launched with blocks of {found:?} threads, but made for {wanted:?}; \
         plan and module must come from one compile"
    )]
    BlockSize {
        /// The kernel.
        kernel: String,
        /// In the plan.
        found: [u32; 3],
        /// In the module.
        wanted: [u32; 3],
    },
    /// A cooperative launch has more blocks than the device holds at once.
    #[error(
        "kernel `{kernel}` needs all its {blocks} blocks on the device at once, and {resident} \
         have room; use smaller sizes"
    )]
    Resident {
        /// The kernel.
        kernel: String,
        /// Its blocks.
        blocks: u64,
        /// Blocks that have room.
        resident: usize,
    },
    /// A buffer that was never allocated, or of another size.
    #[error("buffer {0} is not there, or has another size")]
    Buffer(usize),
    /// The machine has too little memory for the buffers and their shadows.
    #[error("out of memory: the simulator needs {0} bytes for buffers; use smaller sizes")]
    HostMemory(usize),
    /// An error of a kernel.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

struct Buffer {
    name: String,
    /// The variable in constant memory that it is.
    constant: Option<String>,
    memory: Memory,
    element: Element,
    /// Words between rows or blocks, which belong to no cell.
    padding: Vec<usize>,
    /// The kernel that wrote it last.
    writer: String,
}

impl Buffer {
    fn new(bound: &bind::Buffer) -> Self {
        let unit = bound.element.size().min(4);
        let words = bound.element.size() / unit;
        let cells = bound.all_cells();
        // The buffer as a field of its own, without the cells of any other.
        let field: Vec<_> = cells.iter().map(|cells| cells.end).collect();
        let mut held = vec![false; bound.cells];
        for number in 0..bound.record.len().max(1) {
            let window = Window { number, ..bound.window(&field, &cells) };
            window.for_each_run(|_, place, run, step| {
                let cells = held.iter_mut().skip(place).step_by(step);
                cells.take(run).for_each(|held| *held = true);
            });
        }
        let between = held.iter().enumerate().filter(|(_, held)| !**held);
        let padding = between.flat_map(|(cell, _)| cell * words..(cell + 1) * words).collect();
        Self {
            name: bound.name.clone(),
            constant: bound.constant.clone(),
            memory: Memory::new(bound.bytes(), unit, true),
            element: bound.element,
            padding,
            writer: String::new(),
        }
    }

    fn element_bytes(&self) -> u64 {
        self.element.size() as u64
    }
}

/// Bytes that a buffer needs of the host, with its shadow, while it is made and used.
fn host_bytes(bound: &bind::Buffer) -> usize {
    let words = bound.bytes() / bound.element.size().min(4);
    words.saturating_mul(Memory::HOST_BYTES).saturating_add(bound.cells)
}

/// Bits of the arguments of a launch, and the buffers behind them by number.
type Arguments = (Vec<u64>, Vec<(usize, Usage)>);

/// Executes the kernels of a gpu-level module.
pub struct Simulator {
    kernels: Vec<Kernel>,
    counters: Vec<Counters>,
    options: Options,
    buffers: Vec<Buffer>,
}

impl Simulator {
    /// Translates all kernels of a module.
    ///
    /// # Errors
    /// The first operation that the simulator does not know, with its place.
    pub fn new(module: &Module, options: Options) -> Result<Self, Error> {
        let kernels =
            translate::kernels(module, translate::Settings { contract: options.contract })?;
        let counters = kernels.iter().map(Counters::new).collect();
        Ok(Self { kernels, counters, options, buffers: Vec::new() })
    }

    /// The counts since the last [`Target::begin`].
    pub fn report(&self) -> Report {
        Report::new(self.kernels.iter().zip(&self.counters))
    }

    /// Names of the kernels, in order.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|kernel| kernel.name.as_str())
    }

    fn arguments(&self, kernel: &Kernel, values: &[Value]) -> Result<Arguments, SimulatorError> {
        let mut used: Vec<(usize, Usage)> = Vec::new();
        let mut bits = Vec::new();
        for (place, parameter) in kernel.parameters.iter().enumerate() {
            let value = values.get(place).copied();
            let wrong = |found: String| {
                let wanted = match parameter {
                    Parameter::Buffer { name, element, .. } => {
                        format!("the buffer of {name}, of type {element:?}")
                    }
                    Parameter::Number { name, kind } => format!("{name}, of type {kind:?}"),
                };
                SimulatorError::Argument { kernel: kernel.name.clone(), place, found, wanted }
            };
            bits.push(match (parameter, value) {
                (Parameter::Buffer { usage, element, .. }, Some(Value::Buffer(BufferId(id)))) => {
                    let buffer = self.buffers.get(id).ok_or(SimulatorError::Buffer(id))?;
                    if kind(buffer.element) != *element {
                        return Err(wrong(format!("a buffer of {}", buffer.element)));
                    }
                    let slot =
                        used.iter().position(|(other, _)| *other == id).unwrap_or_else(|| {
                            used.push((id, *usage));
                            used.len() - 1
                        });
                    // A buffer that is read and written is updated in place.
                    if let Some((_, before)) = used.get_mut(slot)
                        && *before != *usage
                    {
                        *before = Usage::ReadWrite;
                    }
                    (slot as u64) << BYTE_BITS
                }
                (Parameter::Number { kind, .. }, Some(Value::Number(number))) => {
                    number_bits(*kind, number).ok_or_else(|| wrong(format!("{number:?}")))?
                }
                (_, found) => {
                    return Err(wrong(
                        found.map_or("missing".to_owned(), |found| format!("{found:?}")),
                    ));
                }
            });
        }
        if values.len() != kernel.parameters.len() {
            return Err(SimulatorError::Argument {
                kernel: kernel.name.clone(),
                place: kernel.parameters.len(),
                found: "one too many".to_owned(),
                wanted: "none".to_owned(),
            });
        }
        for (name, element) in &kernel.constants {
            let is = |buffer: &Buffer| {
                buffer.constant.as_ref() == Some(name) && kind(buffer.element) == *element
            };
            let missing = || SimulatorError::Constant(name.clone());
            let id = self.buffers.iter().position(is).ok_or_else(missing)?;
            used.push((id, Usage::Read));
            bits.push((used.len() as u64 - 1) << BYTE_BITS);
        }
        Ok((bits, used))
    }

    fn run(&mut self, request: &Launch<'_>) -> Result<(), SimulatorError> {
        let name = request.kernel.name.as_str();
        let place = self.kernels.iter().position(|kernel| kernel.name == name);
        let (Some(place), Some(kernel)) = (place, place.and_then(|place| self.kernels.get(place)))
        else {
            return Err(SimulatorError::UnknownKernel(name.to_owned()));
        };
        if request.kernel.block != kernel.block {
            return Err(SimulatorError::BlockSize {
                kernel: name.to_owned(),
                found: request.kernel.block,
                wanted: kernel.block,
            });
        }
        let blocks: u64 = request.grid.iter().map(|extent| u64::from(*extent)).product();
        if let Some(resident) = self.options.settings.resident
            && request.node.cooperative
            && blocks > resident as u64
        {
            return Err(SimulatorError::Resident { kernel: name.to_owned(), blocks, resident });
        }
        let (bits, used) = self.arguments(kernel, &request.arguments)?;
        for (id, usage) in &used {
            if let Some(buffer) = self.buffers.get_mut(*id) {
                buffer.memory.begin(*usage, self.options.settings.poison_outputs);
                buffer.memory.count_as_written(&buffer.padding);
            }
        }
        let globals: Vec<_> = used
            .iter()
            .filter_map(|(id, usage)| {
                self.buffers.get(*id).map(|buffer| Global {
                    name: &buffer.name,
                    memory: &buffer.memory,
                    usage: *usage,
                    constant: buffer.constant.is_some(),
                })
            })
            .collect();
        let progress = self
            .options
            .progress
            .as_ref()
            .map(|progress| move |done: u64| progress(name, done, blocks));
        let mut counters = launch::run(
            &Request {
                kernel,
                grid: request.grid,
                part: request.part.as_deref(),
                arguments: &bits,
                buffers: &globals,
                cancel: self.options.cancel.as_deref(),
                progress: progress.as_ref().map(|progress| progress as &(dyn Fn(u64) + Sync)),
            },
            &self.options.settings,
        )?;
        counters.launches = 1;
        for (id, usage) in used {
            if let Some(buffer) = self.buffers.get_mut(id)
                && usage != Usage::Read
            {
                buffer.memory.end();
                buffer.writer = name.to_owned();
                counters.cells_written += buffer.memory.bytes_written() / buffer.element_bytes();
            }
        }
        if let Some(sum) = self.counters.get_mut(place) {
            sum.add(&counters);
        }
        Ok(())
    }

    fn any(&mut self, id: BufferId) -> Result<&mut Buffer, SimulatorError> {
        self.buffers.get_mut(id.0).ok_or(SimulatorError::Buffer(id.0))
    }

    fn buffer(&mut self, id: BufferId, bytes: usize) -> Result<&mut Buffer, SimulatorError> {
        let found = self.any(id)?;
        let same = found.memory.bytes() == bytes as u64;
        same.then_some(found).ok_or(SimulatorError::Buffer(id.0))
    }
}

impl Target for Simulator {
    fn devices(&self) -> u32 {
        u32::MAX
    }

    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError> {
        let bytes = bound.buffers.iter().map(host_bytes).fold(0, usize::saturating_add);
        // Shadows are made launch by launch, where a refusal would end the process.
        memory::require(bytes as u64)?;
        let mut room: Vec<u8> = Vec::new();
        room.try_reserve_exact(bytes).map_err(|_| SimulatorError::HostMemory(bytes))?;
        std::hint::black_box(&mut room);
        drop(room);
        self.buffers = bound.buffers.iter().map(Buffer::new).collect();
        Ok(())
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        self.buffer(buffer, bytes.len())?.memory.fill(bytes);
        Ok(())
    }

    fn put(&mut self, buffer: BufferId, first: usize, bytes: &[u8]) -> Result<(), TargetError> {
        match self.any(buffer)?.memory.fill_part(first, bytes) {
            true => Ok(()),
            false => Err(SimulatorError::Buffer(buffer.0).into()),
        }
    }

    fn scramble(&mut self, buffer: BufferId, runs: &[Range<usize>]) -> Result<(), TargetError> {
        let found = self.any(buffer)?;
        runs.iter().for_each(|run| found.memory.scramble_part(run));
        Ok(())
    }

    fn forget(&mut self, buffer: BufferId, runs: &[Range<usize>]) -> Result<(), TargetError> {
        let found = self.any(buffer)?;
        runs.iter().for_each(|run| found.memory.poison_part(run));
        Ok(())
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        let source = &self.any(from)?.memory;
        let ((words, poison), bytes) = (source.content(), source.bytes());
        self.buffer(to, bytes as usize)?.memory.put(words, poison);
        Ok(())
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        self.counters = self.kernels.iter().map(Counters::new).collect();
        Ok(())
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        Ok(self.run(launch)?)
    }

    fn exchange(&mut self, copy: &Copy) -> Result<(), TargetError> {
        let source = self.buffers.get(copy.from.0).ok_or(SimulatorError::Buffer(copy.from.0))?;
        let content = source.memory.part(copy.from_byte, copy.bytes);
        let (words, poison) = content.ok_or(SimulatorError::Buffer(copy.from.0))?;
        if !self.any(copy.to)?.memory.put_part(copy.to_byte, &words, &poison) {
            return Err(SimulatorError::Buffer(copy.to.0).into());
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        Ok(())
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        Ok(None)
    }

    fn download(
        &mut self,
        buffer: BufferId,
        first: usize,
        bytes: &mut [u8],
    ) -> Result<(), TargetError> {
        let holds = |buffer: &&Buffer| first as u64 + bytes.len() as u64 <= buffer.memory.bytes();
        let found = self.buffers.get(buffer.0).filter(holds);
        let buffer = found.ok_or(SimulatorError::Buffer(buffer.0))?;
        let length = buffer.memory.bytes();
        buffer.memory.download(first, bytes).map_err(|byte| {
            let error = launch::unwritten_output(
                &buffer.writer,
                &buffer.name,
                byte,
                buffer.element_bytes(),
                length,
            );
            SimulatorError::Launch(LaunchError::Kernel(error))
        })?;
        Ok(())
    }
}

/// The kernel's error inside a failure of the runtime, if that is what it is.
pub fn simulation_error(error: &ExecuteError) -> Option<&SimulationError> {
    let ExecuteError::Target(error) = error else { return None };
    match error.downcast_ref() {
        Some(SimulatorError::Launch(LaunchError::Kernel(found))) => Some(found),
        _ => None,
    }
}

/// Whether a run failed because the machine has too little memory for the simulator.
pub fn is_without_memory(error: &ExecuteError) -> bool {
    let ExecuteError::Target(error) = error else { return false };
    matches!(error.downcast_ref(), Some(SimulatorError::HostMemory(_)))
}
