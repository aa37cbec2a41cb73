//! Waves of 64 lanes, as GPUs of AMD's have.

use crate::common::hand::Kernel;
use stencil_runtime::device;

#[test]
fn they_have_64_lanes() {
    let load = "%y = memref.load %A[%i] : memref<?xf32, strided<[1]>>\n\
                memref.store %y, %B[%i] : memref<?xf32, strided<[1]>>";
    let requests = |device| {
        let kernel = Kernel { device, ..Kernel::new(160, load) };
        (kernel.counts().global_read.requests, kernel.counts().global_read.moved)
    };
    // 160 threads: five warps of 32, or two waves of 64 and one of 32. They read 640 bytes, or 20
    // sectors.
    assert_eq!(requests(&device::H200), (5, 20));
    assert_eq!(requests(&device::MI300X), (3, 20));
}
