//! Passes from the gpu level to the gpu level.

pub mod lower_peer;
