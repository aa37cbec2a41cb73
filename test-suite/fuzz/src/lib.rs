//! Random testing of the whole compiler: programs and schedules from a seed, each compiled, run on
//! the simulator, and compared bit for bit with the oracle.
//!
//! ```text
//! seed --generate--> Case --check--> Verdict --shrink--> a small Case --record--> .stencil, command line
//! ```
//!
//! A feature of the language enters in [`model`] (what it is), in [`mod@print`] (how it is
//! written), in [`generate`] (how often), and, where it can be made smaller, in [`shrink`]; what
//! names a place in [`transform`] too. Nothing here knows how a pass works: a case is judged by its
//! result alone.
//!
//! Functions of affine loops ([`nests`]) are judged likewise, by their interpreter. Lists of passes
//! in any order ([`orders`]) must keep the result of what they start from.
//!
//! More kinds of case are damaged inputs: source text ([`text`], [`sl`]) and MLIR ([`ir`]), for
//! which the tools must find words. The last kind is hostile use of the built tools ([`hostile`]).

#![forbid(unsafe_code)]

pub mod check;
pub mod combination;
pub mod devices;
pub mod generate;
pub mod hostile;
pub mod ir;
pub mod model;
pub mod mutate;
pub mod nests;
pub mod orders;
pub mod outcome;
pub mod outline;
pub mod pool;
pub mod print;
pub mod random;
pub mod record;
pub mod region;
pub mod run;
pub mod shrink;
pub mod sl;
pub mod summary;
pub mod text;
pub mod transform;
mod walk;
pub mod windows;
