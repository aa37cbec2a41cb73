//! Passes from the gpu level to the gpu level.

pub mod bank_pad;
pub mod guard_launches;
pub mod lower_peer;
mod watched_wait;
