//! Machine code of kernels, and the calls of its functions. All `unsafe` code for them is here.

#![allow(unsafe_code, reason = "machine code is called by its address")]

use super::memory::Memory;
use super::workers::{Order, Workers};
use crate::bind::BufferId;
use crate::launch::{Launch, Value};
use crate::plan::Plan;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// Machine code of a plan's kernels in this process.
///
/// # Safety
/// If the code has the symbol of a plan ([`Plan::code_symbol`]), it must be the address of a table
/// with an entry for each kernel of the plan, in the plan's order. An entry is the address of a
/// function `extern "C" fn(*const u64, i64, *mut u8)`, or null for a kernel without code. Table and
/// functions must stay there as long as the code does.
///
/// A function is called with the arguments of a launch of the plan, the number of a tile and memory
/// of the thread, as `docs/plan.md` describes them. It must return, and read and write only that
/// memory and the buffers of the launch. Calls for different tiles run at once: no call may write
/// what another one accesses, except by atomic operations.
pub unsafe trait Code: Debug + Send + Sync {
    /// The address of a symbol.
    ///
    /// # Errors
    /// Why the code does not have it.
    fn symbol(&self, name: &str) -> Result<usize, String>;
}

/// Computes one tile of a kernel.
type TileFunction = unsafe extern "C" fn(arguments: *const u64, tile: i64, memory: *mut u8);

/// The kernels of a plan, and the code that holds them.
#[derive(Debug)]
pub struct Kernels {
    /// None for a kernel without code.
    functions: Vec<Option<TileFunction>>,
    /// Which arguments of each are buffers.
    arguments: Vec<Vec<bool>>,
    /// Keeps the functions in memory.
    _code: Arc<dyn Code>,
}

impl Kernels {
    /// The kernels of a plan.
    ///
    /// # Errors
    /// Code that was not made together with the plan.
    pub fn new(plan: &Plan, code: Arc<dyn Code>) -> Result<Self, String> {
        let symbol = plan.code_symbol().map_err(|error| error.to_string())?;
        let address = code.symbol(&symbol)?;
        if address == 0 || !address.is_multiple_of(align_of::<Option<TileFunction>>()) {
            return Err(format!("its symbol {symbol} is no table of functions"));
        }
        let table = std::ptr::with_exposed_provenance::<Option<TileFunction>>(address);
        // SAFETY: by the contract of `Code` the address is that of a table of so many functions,
        // each null or of this type. `Option` of a function is null for `None`.
        let functions = unsafe { std::slice::from_raw_parts(table, plan.kernels.len()) }.to_vec();
        let arguments = plan.kernels.iter().map(|kernel| {
            let launch = plan.launches().find(|launch| launch.kernel == kernel.name);
            let arguments = launch.map(|launch| launch.arguments.as_slice()).unwrap_or_default();
            arguments.iter().map(|argument| argument.buffer().is_some()).collect()
        });
        Ok(Self { functions, arguments: arguments.collect(), _code: code })
    }

    /// Computes all tiles of a launch by the threads.
    ///
    /// # Errors
    /// A launch for which there is no code, or memory that a thread does not get.
    pub fn run(
        &self,
        launch: &Launch<'_>,
        workers: &Workers,
        buffers: &mut [Memory],
    ) -> Result<(), String> {
        let function = self.functions.get(launch.index).copied().flatten();
        let function = function.ok_or_else(|| format!("`{}` has no code", launch.kernel.name))?;
        let given = launch.arguments.iter().map(|value| matches!(value, Value::Buffer(_)));
        if !self.arguments.get(launch.index).is_some_and(|own| own.iter().copied().eq(given)) {
            return Err(format!("`{}` is launched with other arguments", launch.kernel.name));
        }
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
        let bytes = usize::try_from(launch.kernel.dynamic_shared).unwrap_or(usize::MAX);
        let [_, 1, 1] = launch.grid else { return Err("a launch of a GPU".to_owned()) };
        let numbers = launch.blocks();
        let tiles = numbers.iter().map(|range| range.end - range.start).sum();
        let order = if launch.node.cooperative { Order::Ascending } else { Order::Any };
        let tile = |place: u32, memory: &mut Memory| {
            let Some(tile) = numbered(&numbers, place) else { return };
            // SAFETY: `self` keeps the function. The words are the arguments of the launch. This
            // call of `run` borrows all buffers, and `each_tile` returns after the last tile. The
            // memory is the thread's own and has the bytes that the plan asks for. Each tile is
            // computed once. A launch whose tiles wait for others gets them in ascending order.
            unsafe { function(words.as_ptr(), i64::from(tile), memory.start()) }
        };
        workers.each_tile((tiles, order), bytes, tile).map_err(|error| error.to_string())
    }
}

/// The number at a place of some ranges, one behind the other.
fn numbered(ranges: &[Range<u32>], mut place: u32) -> Option<u32> {
    for range in ranges {
        let length = range.end - range.start;
        if place < length {
            return Some(range.start + place);
        }
        place -= length;
    }
    None
}
