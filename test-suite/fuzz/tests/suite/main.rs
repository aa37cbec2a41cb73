//! A first part of each kind of random case.

mod damaged;
mod lines;
mod orders;
mod random;
