//! Kernels on the simulator, in one program that links soon.

mod ahead;
mod bank_pad;
mod baselines;
mod combinations;
mod common;
mod constants;
mod devices;
mod hand;
mod kernels;
mod mutants;
mod nest_tiles;
mod nests;
mod orders;
mod patches;
mod plans;
mod quotients;
mod relays;
mod residents;
mod rows;
mod series;
mod sweeps;
mod traffic;
mod vector_copies;
mod waves;
mod windows;
