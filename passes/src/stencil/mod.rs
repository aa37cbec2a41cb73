//! Passes on the stencil level.

pub mod aos_fields;
pub mod compute_element;
pub mod fuse_functions;
pub mod late_values_last;
pub mod relax_arithmetic;
pub mod share_subexpressions;
pub mod verify;
