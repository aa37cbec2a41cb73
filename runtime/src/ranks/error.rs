//! Why a run on several devices fails.

use super::link::LinkError;
use crate::launch::LaunchError;
use thiserror::Error;

/// Why a run on several devices fails.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RankError {
    /// A launch can't be shared out.
    #[error(
        "kernel `{kernel}` can't be shared out between devices: {why}; run the program on one \
         device"
    )]
    Shared {
        /// The kernel.
        kernel: String,
        /// The reason.
        why: String,
    },
    /// The plan does something between launches that needs one device.
    #[error(
        "the plan of {program} has a node `{node}`, which runs on one device; leave --devices out"
    )]
    Node {
        /// The program.
        program: String,
        /// The node's kind.
        node: &'static str,
    },
    /// The system makes no thread for a device.
    #[error("no threads for {wanted} devices: {error}; take fewer devices, or raise the limit")]
    Threads {
        /// How many devices there are.
        wanted: usize,
        /// The system's reason.
        error: String,
    },
    /// A size of the plan has no value.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Devices do not understand each other.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The bookkeeping of cells is wrong.
    #[error("internal fault: {0}; please report it")]
    Fault(String),
}

impl RankError {
    /// Whether another device failed, and this one ends because of it.
    pub fn is_of_another(&self) -> bool {
        matches!(self, Self::Link(LinkError::Ended { .. }))
    }
}
