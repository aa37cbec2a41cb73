//! The cost of a warp's access: 32-byte sectors of global memory, wavefronts of shared memory.
//!
//! Global memory moves whole sectors of 32 bytes. An access costs as many sectors as its threads
//! touch; the ideal is as many as its distinct bytes fill. Shared memory has 32 banks of 4 bytes.
//! One wavefront serves every bank once, and threads that access the same word share it. 32 lanes
//! go together, of accesses of 8 bytes 16, of 16 bytes 8.

use serde::Serialize;

/// Most lanes of a warp.
pub const MOST_LANES: usize = 64;
const SECTOR: u64 = 32;
const BANKS: usize = 32;
const BANK_BYTES: u64 = 4;

/// Traffic of an operation, summed over warps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Accesses by warps.
    pub requests: u64,
    /// Bytes that the threads asked for.
    pub bytes: u64,
    /// Sectors (global) or wavefronts (shared).
    pub moved: u64,
    /// The least for the same bytes.
    pub ideal: u64,
    /// The worst access: `moved` of one warp.
    pub worst: u64,
}

impl Traffic {
    /// Adds those of another.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.moved += other.moved;
        self.ideal += other.ideal;
        self.worst = self.worst.max(other.worst);
    }

    /// Adds one access of a warp: the first byte of each active thread, and bytes a thread.
    pub fn global(&mut self, addresses: &[u64], width: u64) {
        if addresses.is_empty() {
            return;
        }
        // A thread's access is aligned to its width, at most 16, so it lies in one sector.
        let (sectors, starts) = distinct(addresses, SECTOR, width);
        self.note(addresses.len(), width, sectors, (starts * width).div_ceil(SECTOR));
    }

    /// Adds one access of a warp to shared memory: for each lane its first byte, if it is active.
    pub fn shared(&mut self, lanes: &[Option<u64>], width: u64) {
        let active = lanes.iter().flatten().count();
        if active == 0 {
            return;
        }
        let (mut wavefronts, mut ideal) = (0, 0);
        for part in lanes.chunks(BANKS / width.div_ceil(BANK_BYTES).clamp(1, 4) as usize) {
            let (cost, least) = wavefronts_of(part, width);
            wavefronts += cost;
            ideal += least;
        }
        self.note(active, width, wavefronts, ideal);
    }

    fn note(&mut self, active: usize, width: u64, moved: u64, ideal: u64) {
        self.requests += 1;
        self.bytes += active as u64 * width;
        self.moved += moved;
        self.ideal += ideal;
        self.worst = self.worst.max(moved);
    }
}

/// Distinct lines of the given size, and distinct starts.
fn distinct(addresses: &[u64], line: u64, width: u64) -> (u64, u64) {
    let mut sorted = [0_u64; MOST_LANES];
    let mut count = 0;
    let mut ordered = true;
    for (slot, address) in sorted.iter_mut().zip(addresses) {
        ordered &= count == 0 || *address >= addresses[count - 1];
        *slot = *address;
        count += 1;
    }
    let sorted = &mut sorted[..count];
    if !ordered {
        sorted.sort_unstable();
    }
    let (mut lines, mut starts) = (0, 0);
    let (mut last_line, mut last_start) = (u64::MAX, u64::MAX);
    for address in sorted {
        if *address != last_start {
            starts += 1;
            last_start = *address;
        }
        // An unaligned access may reach into the next line.
        for candidate in *address / line..=(*address + width - 1) / line {
            if last_line == u64::MAX || candidate > last_line {
                lines += 1;
                last_line = candidate;
            }
        }
    }
    (lines, starts)
}

/// Wavefronts that a part of a warp needs, and the least for as many distinct words.
fn wavefronts_of(lanes: &[Option<u64>], width: u64) -> (u64, u64) {
    let mut words = [0_u64; BANKS * 4];
    let mut count = 0;
    let mut ordered = true;
    for address in lanes.iter().flatten() {
        let first = address / BANK_BYTES;
        for word in first..=(address + width - 1) / BANK_BYTES {
            ordered &= count == 0 || word > words[count - 1];
            if let Some(slot) = words.get_mut(count) {
                *slot = word;
                count += 1;
            }
        }
    }
    let words = &mut words[..count];
    if !ordered {
        words.sort_unstable();
    }
    let mut banks = [0_u64; BANKS];
    let (mut distinct, mut last) = (0_u64, u64::MAX);
    for word in words {
        if *word != last {
            last = *word;
            distinct += 1;
            banks[(*word % BANKS as u64) as usize] += 1;
        }
    }
    (banks.into_iter().max().unwrap_or(0), distinct.div_ceil(BANKS as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn global(address: impl Fn(u64) -> u64, width: u64) -> (u64, u64) {
        let addresses: Vec<_> = (0..32).map(address).collect();
        let mut traffic = Traffic::default();
        traffic.global(&addresses, width);
        (traffic.moved, traffic.ideal)
    }

    fn shared(address: impl Fn(u64) -> u64, width: u64) -> (u64, u64) {
        let addresses: Vec<_> = (0..32).map(|lane| Some(address(lane))).collect();
        let mut traffic = Traffic::default();
        traffic.shared(&addresses, width);
        (traffic.moved, traffic.ideal)
    }

    // 32 threads x 4 bytes = 128 bytes = 4 sectors of 32.
    #[test]
    fn sectors_of_a_row() {
        assert_eq!(global(|lane| lane * 4, 4), (4, 4));
        // One element off: bytes 4 to 131 touch sectors 0 to 4.
        assert_eq!(global(|lane| lane * 4 + 4, 4), (5, 4));
        // Every second float: 256 bytes, 8 sectors for 128 bytes.
        assert_eq!(global(|lane| lane * 8, 4), (8, 4));
        // A column of a wide array: a sector each.
        assert_eq!(global(|lane| lane * 4096, 4), (32, 4));
        // All threads one word.
        assert_eq!(global(|_| 64, 4), (1, 1));
        // 16 bytes a thread: 512 bytes.
        assert_eq!(global(|lane| lane * 16, 16), (16, 16));
        // The order of the threads makes no difference.
        assert_eq!(global(|lane| (31 - lane) * 4, 4), (4, 4));
    }

    #[test]
    fn wavefronts_of_words() {
        assert_eq!(shared(|lane| lane * 4, 4), (1, 1));
        // Stride 2: lanes 0 and 16 share bank 0.
        assert_eq!(shared(|lane| lane * 8, 4), (2, 1));
        // Stride 32: all in bank 0.
        assert_eq!(shared(|lane| lane * 128, 4), (32, 1));
        // Stride 33, the padded column: no conflict.
        assert_eq!(shared(|lane| lane * 132, 4), (1, 1));
        // One word for all: broadcast.
        assert_eq!(shared(|_| 12, 4), (1, 1));
        // Two rows of 16 threads in a tile of 18 floats: words 0-15 and 18-33; 32 and 33 meet 0 and
        // 1.
        assert_eq!(shared(|lane| (lane / 16 * 18 + lane % 16) * 4, 4), (2, 1));
    }

    // 8 bytes: each half-warp moves 32 words; 16 bytes: each quarter-warp does.
    #[test]
    fn wavefronts_of_wide_accesses() {
        assert_eq!(shared(|lane| lane * 8, 8), (2, 2));
        assert_eq!(shared(|lane| lane * 16, 16), (4, 4));
        // Doubles at stride 2: 16 lanes on 16 even bank pairs twice.
        assert_eq!(shared(|lane| lane * 16, 8), (4, 2));
    }

    #[test]
    fn inactive_lanes_cost_nothing() {
        let mut traffic = Traffic::default();
        let lanes: Vec<_> = (0..32).map(|lane| (lane < 16).then_some(lane * 8)).collect();
        traffic.shared(&lanes, 8);
        assert_eq!((traffic.requests, traffic.moved, traffic.bytes), (1, 1, 128));
        traffic.shared(&[None; 32], 8);
        assert_eq!(traffic.requests, 1);
    }
}
