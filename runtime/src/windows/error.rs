//! Why a run out of core fails.

use super::limit::DeviceMemory;
use crate::launch::LaunchError;
use crate::ranks::RankError;
use thiserror::Error;

/// Why a run out of core fails.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum WindowError {
    /// A launch needs more than a window of the grid.
    #[error(
        "kernel `{kernel}` can't run on a part of the grid: {why}; leave --device-memory out, so \
         that the whole grid lies on the device"
    )]
    Kernel {
        /// The kernel.
        kernel: String,
        /// The reason.
        why: String,
    },
    /// The plan does something between launches that needs the whole grid.
    #[error(
        "the plan of {program} has a node `{node}`, which needs the whole grid on the device; \
         leave --device-memory out"
    )]
    Node {
        /// The program.
        program: String,
        /// The node's kind.
        node: &'static str,
    },
    /// The limit is too small.
    #[error(
        "--device-memory {limit} is too small: the smallest window of {program} takes {needed} \
         bytes; give more memory, or compile with smaller tiles (--tile)"
    )]
    Memory {
        /// The program.
        program: String,
        /// The limit.
        limit: DeviceMemory,
        /// Bytes of the smallest window that was found.
        needed: u64,
    },
    /// A launch whose parts are unknown.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The bookkeeping is wrong.
    #[error("internal fault: {0}; please report it")]
    Fault(String),
}

impl From<RankError> for WindowError {
    fn from(error: RankError) -> Self {
        match error {
            RankError::Shared { kernel, why } => Self::Kernel { kernel, why },
            RankError::Launch(error) => Self::Launch(error),
            other => Self::Fault(other.to_string()),
        }
    }
}
