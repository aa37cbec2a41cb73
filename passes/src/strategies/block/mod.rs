//! The strategy `block`: tiles in shared memory.

mod buffers;
pub mod lower_block;
