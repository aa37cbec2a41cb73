//! The strategy `naive`: one thread a point.

pub mod lower_naive;
