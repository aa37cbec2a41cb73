//! A run on several devices: each launch is cut between its tiles, each device runs its part, and
//! gets the cells around its tiles from the devices that wrote them.
//!
//! Kernels stay as they are. Each device has the whole address range of every buffer, so that
//! coordinates, boundary rules and rims are those of the whole grid. Devices that reach each
//! other's memory have buffers together: they wait for each other, and exchange nothing. Otherwise
//! the cells alone are valid that the device wrote or received. With `T` steps a launch the
//! exchange is `T` times as deep, and once in `T` steps.
//!
//! | file | what it holds |
//! |---|---|
//! | `devices.rs` | how many devices, in which grid |
//! | `rate.rs` | how fast devices send cells, and a probe of it |
//! | `region.rs` | sets of cells |
//! | `numbering.rs` | which blocks have some tiles |
//! | `work.rs` | the part of a launch that a device computes: blocks, cells read, cells written |
//! | `ledger.rs` | which device holds which cells, and the transfers that follow |
//! | `order.rs` | who waits for whom, where devices have memory together |
//! | `survey.rs` | what devices use in a whole run, and what they can have together |
//! | `groups.rs` | buffers that are held alike |
//! | `link.rs` | the trait of connections between devices |
//! | `channels.rs` | links between threads |
//! | `shared.rs` | one of the devices as a target |
//! | `timeline.rs` | when each device computes and waits |
//! | `values.rs` | values of the first device for all others |
//! | `run.rs` | a run on threads, and a process's part of one |

#![allow(clippy::single_range_in_vec_init, reason = "lists of one range are meant")]

mod channels;
mod devices;
mod error;
mod groups;
mod ledger;
mod link;
mod numbering;
mod order;
mod rate;
mod region;
mod run;
mod shared;
mod survey;
mod timeline;
mod values;
mod work;

pub use channels::{Channels, channels};
pub use devices::{DeviceList, Devices};
pub use error::RankError;
pub(crate) use groups::groups;
pub use link::{Link, LinkError, Parcel, by_messages};
pub use rate::LinkRate;
pub(crate) use region::{Area, Region};
pub(crate) use run::fixed;
pub use run::{PATIENCE, on_threads, take_part};
pub use shared::{Shared, Traffic};
pub(crate) use timeline::MOST_LAUNCHES;
pub use timeline::{Span, Timeline, Track};
pub(crate) use work::{Blocks, Form, Sharing, Work, key};
