//! The crate `stencil-passes`, changed as docs/add-a-strategy.md tells its reader to change it.

#![deny(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/modules.rs"));
