//! Looks at a condition that the device takes while a run goes on: copies to memory of the host, as
//! nodes of graphs.
#![allow(unsafe_code)] // The driver's interface is C.

use super::error::CudaError;
use super::handle::Handle;
use super::stream::Stream;
use cudarc::driver::sys::{self, CUmemorytype};
use std::collections::{BTreeMap, VecDeque};
use std::ptr::{null, null_mut};
use std::sync::Arc;

/// Looks of a chunk at most. The launches of two chunks do not overlap, and those of two chunks may
/// be sent in vain.
pub(super) const LOOKS: usize = 16;

/// Chunks that are under way at most. Each has slots of its own.
pub(super) const CHUNKS: usize = 2;

/// A copy of the first bytes of a buffer to a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    from: sys::CUdeviceptr,
    bytes: usize,
    to: Slot,
}

/// Where the device stores what a look finds: eight bytes of the host's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot(*mut u64);

// SAFETY: the address alone is copied from thread to thread. Only `Slots::read` looks behind it.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl Look {
    /// A look at nothing, which no driver takes.
    #[cfg(test)]
    pub const fn nowhere() -> Self {
        Self { from: 0, bytes: 0, to: Slot(null_mut()) }
    }

    /// Adds it to a graph, behind some of its nodes. The context must be current.
    pub fn add(
        &self,
        stream: &Stream,
        graph: Handle<sys::CUgraph_st>,
        waits: &[sys::CUgraphNode],
    ) -> Result<Handle<sys::CUgraphNode_st>, CudaError> {
        let mut context = null_mut();
        // SAFETY: the driver writes one handle.
        stream.ok("cuCtxGetCurrent", unsafe { sys::cuCtxGetCurrent(&mut context) })?;
        let copy = sys::CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcDevice: self.from,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: self.to.0.cast(),
            WidthInBytes: self.bytes,
            Height: 1,
            Depth: 1,
            srcXInBytes: 0,
            srcY: 0,
            srcZ: 0,
            srcLOD: 0,
            srcHost: null(),
            srcArray: null_mut(),
            reserved0: null_mut(),
            srcPitch: 0,
            srcHeight: 0,
            dstXInBytes: 0,
            dstY: 0,
            dstZ: 0,
            dstLOD: 0,
            dstDevice: 0,
            dstArray: null_mut(),
            reserved1: null_mut(),
            dstPitch: 0,
            dstHeight: 0,
        };
        let mut handle = null_mut();
        // SAFETY: the graph is there, and `waits` are handles of its nodes. The driver copies what
        // describes the copy; both sides have so many bytes, and live as long as the graph.
        let result = unsafe {
            let (waits, count) = (waits.as_ptr(), waits.len());
            sys::cuGraphAddMemcpyNode(&mut handle, graph.0, waits, count, &copy, context)
        };
        stream.ok("cuGraphAddMemcpyNode", result).map(|()| Handle(handle))
    }
}

/// The looks of a run.
#[derive(Debug)]
pub(super) struct Looks {
    slots: Option<Slots>,
    /// Looks that were taken.
    taken: u64,
    /// Those that are not known yet.
    under_way: VecDeque<UnderWay>,
    /// What the others found.
    found: BTreeMap<u64, [u8; 8]>,
    stream: Arc<Stream>,
}

/// A look that was sent.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    number: u64,
    slot: usize,
    /// The number of its chunk.
    chunk: usize,
}

impl Looks {
    /// None so far.
    pub fn new(stream: &Arc<Stream>) -> Self {
        Self {
            slots: None,
            taken: 0,
            under_way: VecDeque::new(),
            found: BTreeMap::new(),
            stream: Arc::clone(stream),
        }
    }

    /// Forgets all looks. None may be under way.
    pub fn clear(&mut self) {
        self.under_way.clear();
        self.found.clear();
    }

    /// A look at some bytes in a chunk, at its place among those of the chunk, with its number.
    pub fn take(
        &mut self,
        (from, bytes): (sys::CUdeviceptr, usize),
        chunk: usize,
        place: usize,
    ) -> Result<(u64, Look), CudaError> {
        let slots = match &mut self.slots {
            Some(slots) => slots,
            none => none.insert(Slots::new(&self.stream)?),
        };
        let (number, slot) = (self.taken, chunk % CHUNKS * LOOKS + place % LOOKS);
        self.taken += 1;
        self.under_way.push_back(UnderWay { number, slot, chunk });
        Ok((number, Look { from, bytes: bytes.min(size_of::<u64>()), to: slots.at(slot) }))
    }

    /// Notes what the looks of the first `ended` chunks found. Their slots serve other chunks.
    pub fn note(&mut self, ended: usize) {
        let Some(slots) = &self.slots else { return };
        while let Some(look) = self.under_way.pop_front_if(|look| look.chunk < ended) {
            self.found.insert(look.number, slots.read(look.slot));
        }
    }

    /// What a look found, where it is known; it is told once.
    pub fn found(&mut self, look: u64) -> Option<[u8; 8]> {
        self.found.remove(&look)
    }
}

/// The slots of all chunks that are under way.
#[derive(Debug)]
struct Slots {
    first: Slot,
    stream: Arc<Stream>,
}

impl Slots {
    const COUNT: usize = CHUNKS * LOOKS;

    fn new(stream: &Arc<Stream>) -> Result<Self, CudaError> {
        let mut first = null_mut();
        // SAFETY: the context is current; the driver writes one address, which `drop` frees.
        let result = unsafe { sys::cuMemAllocHost_v2(&mut first, Self::COUNT * size_of::<u64>()) };
        stream.ok("cuMemAllocHost", result)?;
        Ok(Self { first: Slot(first.cast()), stream: Arc::clone(stream) })
    }

    fn at(&self, slot: usize) -> Slot {
        // SAFETY: the place is one of those of the memory.
        Slot(unsafe { self.first.0.add(slot % Self::COUNT) })
    }

    /// What the device has stored, once the look has ended.
    fn read(&self, slot: usize) -> [u8; 8] {
        // SAFETY: the slot lives and is aligned; volatile, because the device writes it.
        unsafe { self.at(slot).0.read_volatile() }.to_ne_bytes()
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let _ = self.stream.enter();
        // SAFETY: the memory is freed once, after the work that stores to it: programs wait for
        // their work before they drop what it uses.
        let _ = unsafe { sys::cuMemFreeHost(self.first.0.cast()) };
    }
}
