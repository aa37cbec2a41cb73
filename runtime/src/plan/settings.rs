//! How the kernels of a plan were made. A run does not depend on it.

use serde::{Deserialize, Serialize};

/// How the kernels were made, for reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// `naive`, `block`, ...
    pub strategy: String,
    /// Cells of a tile's result per dimension, slowest first.
    pub tile: Vec<i64>,
    /// Steps per launch of the main kernel.
    pub pyramid_height: i64,
    /// Cells per thread and dimension.
    pub per_thread: Vec<i64>,
    /// `fixed` where all functions of a launch compute the same cells; left out where each computes
    /// only the cells that are needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// How a function of affine loops shares copies; only of candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<CopySettings>,
    /// The key by which a measured schedule is remembered (`crate::tune`); only of candidates.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// How declared fields of structs and vecs lie in memory, where that was asked for, and arrays
    /// of affine loops whose order of dimensions was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<RecordSettings>,
}

/// How a declared field of structs or vecs, or an array of affine loops, lies in memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RecordSettings {
    /// The declared field.
    pub field: String,
    /// `aos`: kernels use an array of structs; `relaid`: kernels at both ends of a run move it to
    /// fields of its own for each number and back; `soa`: it is no array of structs; `row-major`:
    /// it is an array of affine loops.
    pub layout: String,
    /// Why.
    pub note: String,
}

/// How the blocks of a function of affine loops share copies in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CopySettings {
    /// Threads that share the copies of one that computes, itself included.
    pub copiers: i64,
    /// Iterations of a loop in time that share a copy.
    pub time: i64,
}
