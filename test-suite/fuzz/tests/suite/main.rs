//! A first part of each kind of random case.

mod damaged;
mod orders;
mod random;
