//! Machine code of kernels, and the calls of its functions. All `unsafe` code for them is here.

#![allow(unsafe_code, reason = "machine code is called by its address")]

use super::memory::Memory;
use crate::bind::BufferId;
use crate::launch::{Launch, Value};
use crate::plan::Plan;
use rayon::ThreadPool;
use std::fmt::Debug;
use std::mem::transmute;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Machine code of a plan's kernels in this process.
///
/// # Safety
/// For each kernel of the plan that it was made with, `address` must give the address of a function
/// `extern "C" fn(*const u64, i64, *mut u8)` that stays there as long as the code does. Called with
/// a launch's arguments, a tile's number below the launch's blocks, and as many bytes of memory as
/// the plan has for the kernel, which begin a line of a cache, it must read and write only that
/// memory and the launch's buffers, and return. Calls for different tiles of a launch may run at
/// once: none of them writes what another one reads or writes.
pub unsafe trait Code: Debug + Send + Sync {
    /// The address of a kernel's function; 0 for one that has no code, as it has no tiles.
    ///
    /// # Errors
    /// Why it is not there.
    fn address(&self, kernel: &str) -> Result<usize, String>;
}

/// The function of a kernel: it computes the tile of a number.
type TileFunction = unsafe extern "C" fn(arguments: *const u64, tile: i64, memory: *mut u8);

/// The kernels of a plan, and the code that holds them.
#[derive(Debug)]
pub struct Kernels {
    /// None where a kernel has no tile, whatever it is launched with, and so no code.
    functions: Vec<Option<TileFunction>>,
    /// The code stays as long as its functions.
    _code: Arc<dyn Code>,
}

/// What a launch needs that is none of its arguments.
pub struct Place<'p> {
    /// The threads.
    pub threads: &'p ThreadPool,
    /// The memory of each.
    pub memories: &'p [Mutex<Memory>],
    /// The buffers of the plan.
    pub buffers: &'p mut [Memory],
}

impl Kernels {
    /// The kernels of a plan.
    ///
    /// # Errors
    /// Why the code does not have one.
    pub fn new(plan: &Plan, code: Arc<dyn Code>) -> Result<Self, String> {
        let functions = plan.kernels.iter().map(|kernel| {
            let address = code.address(&kernel.name)?;
            // SAFETY: the address is that of such a function, by the contract of `Code`.
            Ok((address != 0).then(|| unsafe { transmute::<usize, TileFunction>(address) }))
        });
        let functions = functions.collect::<Result<_, String>>()?;
        Ok(Self { functions, _code: code })
    }

    /// Computes all tiles of a launch, each by one of the threads.
    ///
    /// # Errors
    /// What the launch has that this program has not.
    pub fn run(&self, launch: &Launch<'_>, place: Place<'_>) -> Result<(), String> {
        let Place { threads, memories, buffers } = place;
        let function = self.functions.get(launch.index).copied().flatten();
        let function = function.ok_or_else(|| format!("`{}` has no code", launch.kernel.name))?;
        let mut words = Vec::with_capacity(launch.arguments.len());
        for argument in &launch.arguments {
            words.push(match argument {
                Value::Buffer(BufferId(number)) => {
                    let buffer = buffers.get_mut(*number);
                    let buffer = buffer.ok_or_else(|| format!("there is no buffer {number}"))?;
                    buffer.start() as u64
                }
                Value::Number(number) => {
                    let mut word = [0; 8];
                    for (to, from) in word.iter_mut().zip(number.bytes()) {
                        *to = from;
                    }
                    u64::from_ne_bytes(word)
                }
            });
        }
        let wanted = usize::try_from(launch.kernel.dynamic_shared).unwrap_or(usize::MAX);
        let [tiles, 1, 1] = launch.grid else { return Err("a launch of a GPU".to_owned()) };
        let next = AtomicU32::new(0);
        let work = |memory: &mut Memory| {
            assert!(memory.len() >= wanted, "the memory of a thread is too small");
            loop {
                let tile = next.fetch_add(1, Ordering::Relaxed);
                if tile >= tiles {
                    return;
                }
                // SAFETY: the code is still there. The words are the launch's arguments, and this
                // function borrows all buffers to its end, by which all threads have ended. The
                // memory is this thread's alone and as large as the plan has it. Each number of a
                // tile is given once.
                unsafe { function(words.as_ptr(), i64::from(tile), memory.start()) }
            }
        };
        match memories {
            [memory] => work(&mut memory.lock().unwrap_or_else(PoisonError::into_inner)),
            [memory, ..] if tiles == 1 => {
                work(&mut memory.lock().unwrap_or_else(PoisonError::into_inner));
            }
            _ => drop(threads.broadcast(|thread| {
                if let Some(memory) = memories.get(thread.index()) {
                    work(&mut memory.lock().unwrap_or_else(PoisonError::into_inner));
                }
            })),
        }
        Ok(())
    }
}
