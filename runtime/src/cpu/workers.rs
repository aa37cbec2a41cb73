//! Threads, the memory of each, and how they share the tiles of a launch.
//!
//! Tiles and bytes of buffers are cut into as many parts as there are threads. A thread begins with
//! its own part, then helps the others. A page of memory so lies near the thread that first wrote
//! it, and mostly the same thread computes its cells.

use super::memory::{Memory, NoMemory};
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Fewer bytes are not worth a thread.
const LEAST_BYTES: usize = 1 << 20;

/// The order in which tiles are begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Tiles do not depend on each other.
    Any,
    /// A tile may wait for tiles before it.
    Ascending,
}

/// Threads with their memory.
#[derive(Debug)]
pub struct Workers {
    pool: ThreadPool,
    /// Empty for a thread that has had no tile yet.
    memories: Vec<Mutex<Memory>>,
}

/// The tiles of a part that nobody has taken yet. Counters lie in lines of their own.
#[derive(Debug)]
#[repr(align(64))]
struct Part {
    next: AtomicU32,
    end: u32,
}

impl Part {
    fn take(&self) -> Option<u32> {
        // A counter that has reached the end stays near it: a worker comes there once.
        let tile = self.next.fetch_add(1, Ordering::Relaxed);
        (tile < self.end).then_some(tile)
    }
}

impl Workers {
    /// So many threads.
    ///
    /// # Errors
    /// When the system does not give them.
    pub fn new(threads: usize) -> Result<Self, ThreadPoolBuildError> {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
        let memories = (0..pool.current_num_threads()).map(|_| Mutex::default()).collect();
        Ok(Self { pool, memories })
    }

    /// How many threads there are.
    pub fn count(&self) -> usize {
        self.memories.len()
    }

    /// Frees the memory of the threads, until they have tiles again.
    pub fn free(&mut self) {
        for memory in &mut self.memories {
            *memory.get_mut().unwrap_or_else(PoisonError::into_inner) = Memory::default();
        }
    }

    /// Computes tiles, each once, by threads with memory of so many bytes.
    ///
    /// # Errors
    /// When a thread gets no memory; then some tiles are not computed.
    pub fn each_tile(
        &self,
        (tiles, order): (u32, Order),
        bytes: usize,
        compute: impl Fn(u32, &mut Memory) + Sync,
    ) -> Result<(), NoMemory> {
        let workers = self.count().min(tiles as usize);
        let parts = if order == Order::Ascending { 1 } else { workers };
        let parts: Vec<Part> = ranges(tiles as usize, parts)
            .map(|part| Part {
                next: AtomicU32::new(u32::try_from(part.start).unwrap_or(tiles)),
                end: u32::try_from(part.end).unwrap_or(tiles),
            })
            .collect();
        let failed = OnceLock::new();
        self.each(workers, |worker| {
            let Some(memory) = self.memories.get(worker) else { return };
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            let others = parts.iter().cycle().skip(worker % parts.len().max(1)).take(parts.len());
            for part in others {
                while let Some(tile) = part.take() {
                    if memory.len() < bytes {
                        match Memory::zeros(bytes) {
                            Ok(more) => *memory = more,
                            Err(error) => {
                                failed.get_or_init(|| error);
                                return;
                            }
                        }
                    }
                    compute(tile, &mut memory);
                }
            }
        });
        failed.into_inner().map_or(Ok(()), Err)
    }

    /// Writes zeros to fresh memory, each part by its thread.
    pub fn touch(&self, memory: &mut Memory) {
        self.each_part(memory.bytes_mut(), &|part, _| part.fill(0));
    }

    /// Copies bytes to memory of the same length, each part by its thread.
    pub fn copy(&self, from: &[u8], to: &mut [u8]) {
        self.each_part(to, &|part, at| {
            if let Some(from) = from.get(at) {
                part.copy_from_slice(from);
            }
        });
    }

    /// Hands parts of some bytes to the threads, each with its place.
    fn each_part(&self, bytes: &mut [u8], work: &(dyn Fn(&mut [u8], Range<usize>) + Sync)) {
        let count = self.count().min(bytes.len() / LEAST_BYTES).max(1);
        let mut parts = Vec::with_capacity(count);
        let mut rest = bytes;
        for range in ranges(rest.len(), count) {
            let (part, behind) = rest.split_at_mut(range.len());
            parts.push(Mutex::new((part, range)));
            rest = behind;
        }
        self.each(count, |worker| {
            if let Some(part) = parts.get(worker) {
                let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
                let (bytes, range) = &mut *part;
                work(bytes, range.clone());
            }
        });
    }

    /// Does the work of the first workers, each once. The numbers are those of threads if all of
    /// them have work.
    fn each(&self, workers: usize, work: impl Fn(usize) + Sync) {
        match workers {
            0 => {}
            1 => work(0),
            all if all == self.count() => drop(self.pool.broadcast(|thread| work(thread.index()))),
            some => self.pool.scope(|scope| {
                let work = &work;
                (0..some).for_each(|worker| scope.spawn(move |_| work(worker)));
            }),
        }
    }
}

/// Parts of nearly equal length, in order.
fn ranges(length: usize, parts: usize) -> impl Iterator<Item = Range<usize>> {
    let (short, longer) = (length / parts.max(1), length % parts.max(1));
    let start = move |part: usize| part * short + part.min(longer);
    (0..parts).map(move |part| start(part)..start(part + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tile_is_computed_once_by_a_thread_with_memory() {
        for threads in [1, 2, 5] {
            let workers = Workers::new(threads).unwrap();
            for (tiles, order) in
                [0, 1, 3, 5, 64].into_iter().flat_map(|n| [(n, Order::Any), (n, Order::Ascending)])
            {
                let counts: Vec<_> = (0..tiles).map(|_| AtomicU32::new(0)).collect();
                let compute = |tile: u32, memory: &mut Memory| {
                    assert_eq!(memory.len(), 100);
                    counts[tile as usize].fetch_add(1, Ordering::Relaxed);
                };
                workers.each_tile((tiles, order), 100, compute).unwrap();
                assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 1));
            }
            let error = workers.each_tile((2, Order::Any), usize::MAX / 2, |_, _| {});
            assert!(error.unwrap_err().to_string().contains("bytes"));
        }
    }

    #[test]
    fn a_thread_without_a_tile_takes_no_memory() {
        let mut workers = Workers::new(8).unwrap();
        let with = |workers: &Workers| {
            workers.memories.iter().filter(|memory| memory.lock().unwrap().len() > 0).count()
        };
        workers.each_tile((3, Order::Any), 100, |_, _| {}).unwrap();
        assert!((1..=3).contains(&with(&workers)));
        workers.free();
        assert_eq!(with(&workers), 0);
    }

    #[test]
    fn tiles_that_wait_for_those_before_them_all_end() {
        let workers = Workers::new(3).unwrap();
        let done = AtomicU32::new(0);
        let compute = |tile: u32, _: &mut Memory| {
            while done.load(Ordering::Acquire) < tile {
                std::thread::yield_now();
            }
            done.fetch_add(1, Ordering::Release);
        };
        workers.each_tile((500, Order::Ascending), 0, compute).unwrap();
        assert_eq!(done.into_inner(), 500);
    }

    #[test]
    fn bytes_are_copied_whole() {
        let workers = Workers::new(3).unwrap();
        let from: Vec<u8> = (0..5 * LEAST_BYTES + 7).map(|at| (at % 251) as u8).collect();
        let mut to = Memory::zeros(from.len()).unwrap();
        workers.copy(&from, to.bytes_mut());
        assert!(to.bytes() == from);
        workers.touch(&mut to);
        assert!(to.bytes().iter().all(|byte| *byte == 0));
    }
}
