//! Passes from the gpu level to the gpu level.

pub mod bank_pad;
pub mod lower_peer;
mod watched_wait;
