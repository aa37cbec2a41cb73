//! The compile as its users call it, in one program that links soon.

mod choice;
mod libdevice;
mod model;
mod nest_model;
mod passes;
mod schedules;
mod session;
mod tile_search;
mod train;
