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

/// Chunks under way, of which each has slots of its own.
const CHUNKS: usize = 2;

/// A copy of the first bytes of a buffer to a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    from: sys::CUdeviceptr,
    bytes: usize,
    to: Handle<u64>,
}

impl Look {
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
    /// Those that are not known yet, with the slot of each and the number of its chunk.
    under_way: VecDeque<(u64, usize, usize)>,
    /// What the others found.
    found: BTreeMap<u64, [u8; 8]>,
    stream: Arc<Stream>,
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

    /// A look in a chunk, at its place among those of the chunk, with its number.
    pub fn take(
        &mut self,
        (from, bytes): (sys::CUdeviceptr, usize),
        chunk: usize,
        place: usize,
    ) -> Result<(u64, Look), CudaError> {
        if self.slots.is_none() {
            self.slots = Some(Slots::new(&self.stream)?);
        }
        let slot = chunk % CHUNKS * LOOKS + place;
        let to = self.slots.as_ref().map_or(Handle::NONE, |slots| slots.at(slot));
        let number = self.taken;
        self.taken += 1;
        self.under_way.push_back((number, slot, chunk));
        Ok((number, Look { from, bytes: bytes.min(size_of::<u64>()), to }))
    }

    /// Notes what the looks of the first `ended` chunks found. Their slots serve other chunks.
    pub fn note(&mut self, ended: usize) {
        while let Some((number, slot, _)) =
            self.under_way.pop_front_if(|(_, _, chunk)| *chunk < ended)
        {
            let value = self.slots.as_ref().map_or([0; 8], |slots| slots.read(slot));
            self.found.insert(number, value);
        }
    }

    /// What a look found, where it is known; it is told once.
    pub fn found(&mut self, look: u64) -> Option<[u8; 8]> {
        self.found.remove(&look)
    }
}

/// Memory of the host that the device stores to.
#[derive(Debug)]
struct Slots {
    first: Handle<u64>,
    stream: Arc<Stream>,
}

impl Slots {
    const COUNT: usize = CHUNKS * LOOKS;

    fn new(stream: &Arc<Stream>) -> Result<Self, CudaError> {
        let mut first = null_mut();
        // SAFETY: the context is current; the driver writes one address, which `drop` frees.
        let result = unsafe { sys::cuMemAllocHost_v2(&mut first, Self::COUNT * size_of::<u64>()) };
        stream.ok("cuMemAllocHost", result)?;
        Ok(Self { first: Handle(first.cast()), stream: Arc::clone(stream) })
    }

    fn at(&self, slot: usize) -> Handle<u64> {
        // SAFETY: the slot is one of those of the memory.
        Handle(unsafe { self.first.0.add(slot.min(Self::COUNT - 1)) })
    }

    fn read(&self, slot: usize) -> [u8; 8] {
        // SAFETY: the slot lives and is aligned; the device's stores to it have ended, and the
        // compiler must not know of them.
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
