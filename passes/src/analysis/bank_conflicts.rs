//! Conflicts of a warp's accesses to a shared buffer, counted from the lanes' addresses.
//!
//! Shared memory has banks of one word of 4 bytes; consecutive words lie in consecutive banks. A
//! request is served once for each distinct word of its busiest bank, and lanes that access the
//! same word share it. Accesses of 8 bytes make two requests (of half a warp), those of 16 bytes
//! four. A word that all lanes access is served once, so that a stride of 0 is no conflict. Source:
//! CUDA C++ Programming Guide, "Shared Memory".
//!
//! The degree of conflicts of a full warp at a constant stride of `s` words is `gcd(s, banks)`
//! (Baskaran et al., A Compiler Framework for Optimization of Affine Loop Nests for General Purpose
//! Computations on GPUs, section 6), which a test compares with the count.

use super::lane_values::LANES;
use stencil_runtime::device::{Device, WIDEST_ACCESS};

/// Bytes of a bank's word.
pub const WORD: i64 = 4;

/// What a warp accesses at once in a buffer of rows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// For each active lane the row and, within it, the first element.
    pub cells: Vec<Option<(i64, i64)>>,
    /// Elements of a lane, one after the other.
    pub elements: i64,
    /// Bytes that each lane's address is promised to be a multiple of; at least an element.
    pub alignment: i64,
}

/// What accesses cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Requests.
    pub requests: u64,
    /// Words served one after the other, summed over the requests: each one's degree of conflicts.
    pub served: u64,
}

impl Cost {
    /// The sum with so many times another.
    pub fn plus(self, times: u64, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(times.saturating_mul(other.requests)),
            served: self.served.saturating_add(times.saturating_mul(other.served)),
        }
    }

    /// Clocks: equation 5 of the paper, `C(n) = t_start + t_request * n`, summed over the requests.
    pub fn clocks(self, device: &Device) -> f64 {
        device.bank_start_clocks * self.requests as f64
            + device.bank_request_clocks * self.served as f64
    }
}

impl Reference {
    /// The cost in a buffer whose rows are so many elements apart.
    pub fn cost(&self, row: i64, element: i64, banks: u32) -> Cost {
        let whole = element * self.elements;
        // As many bytes at once as the alignment allows.
        let width = self.alignment.max(element).min(whole).min(WIDEST_ACCESS.into()).max(1);
        let parts = (whole / width).max(1);
        let group = LANES / usize::try_from(((width + WORD - 1) / WORD).clamp(1, 4)).unwrap_or(1);
        let mut cost = Cost::default();
        for part in 0..parts {
            for lanes in self.cells.chunks(group) {
                let addresses = lanes.iter().flatten();
                let addresses =
                    addresses.map(|(r, c)| r.wrapping_mul(row).wrapping_add(*c) * element);
                let served = served(addresses.map(|start| start + part * width), width, banks);
                cost = cost.plus(1, Cost { requests: u64::from(served > 0), served });
            }
        }
        cost
    }
}

/// Distinct words of the busiest bank.
fn served(starts: impl Iterator<Item = i64>, width: i64, banks: u32) -> u64 {
    // A lane's 16 bytes lie in four words, or in five where they are not aligned.
    let (mut words, mut count) = ([0_i64; 5 * LANES], 0);
    for start in starts {
        for word in start.div_euclid(WORD)..=(start + width - 1).div_euclid(WORD) {
            if let Some(slot) = words.get_mut(count) {
                *slot = word;
                count += 1;
            }
        }
    }
    let words = words.get_mut(..count).unwrap_or_default();
    words.sort_unstable();
    let (mut loads, mut last) = (vec![0_u64; banks as usize], None);
    for word in words.iter().copied().filter(|word| last.replace(*word) != Some(*word)) {
        let bank = usize::try_from(word.rem_euclid(banks.into())).ok();
        if let Some(load) = bank.and_then(|bank| loads.get_mut(bank)) {
            *load += 1;
        }
    }
    loads.into_iter().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_integer::gcd;
    use stencil_runtime::device::BEST_DESCRIBED;

    fn lanes(cell: impl Fn(i64) -> (i64, i64)) -> Reference {
        let cells = (0..LANES as i64).map(|lane| Some(cell(lane))).collect();
        Reference { cells, elements: 1, alignment: 4 }
    }

    #[test]
    fn a_constant_stride_conflicts_as_its_divisor_with_the_banks() {
        for stride in 1..=100 {
            let counted = lanes(|lane| (0, lane * stride)).cost(0, 4, 32);
            assert_eq!(counted, Cost { requests: 1, served: gcd(stride, 32) as u64 }, "{stride}");
        }
        // A stride of 0 is a broadcast, and no conflict of degree 32.
        assert_eq!(lanes(|_| (0, 5)).cost(0, 4, 32).served, 1);
    }

    #[test]
    fn wide_accesses_go_in_parts_of_a_warp() {
        // 8 bytes a lane: two requests of 32 words each.
        assert_eq!(lanes(|lane| (0, lane)).cost(0, 8, 32), Cost { requests: 2, served: 2 });
        // A column of rows of 16 doubles: all lanes of a half in one pair of banks.
        assert_eq!(lanes(|lane| (lane, 0)).cost(16, 8, 32), Cost { requests: 2, served: 32 });
        // Four elements at once where the alignment says so, and one by one where it does not.
        let vectors = |alignment| Reference { elements: 4, alignment, ..lanes(|l| (0, 4 * l)) };
        assert_eq!(vectors(16).cost(0, 4, 32), Cost { requests: 4, served: 4 });
        assert_eq!(vectors(4).cost(0, 4, 32), Cost { requests: 4, served: 16 });
        // Two lanes share a word of two halves.
        let halves = Reference { alignment: 2, ..lanes(|lane| (0, lane)) };
        assert_eq!(halves.cost(0, 2, 32), Cost { requests: 1, served: 1 });
    }

    #[test]
    fn lanes_that_do_not_run_cost_nothing() {
        let idle = Reference { cells: vec![None; LANES], elements: 1, alignment: 4 };
        assert_eq!(idle.cost(33, 4, 32), Cost::default());
    }

    #[test]
    fn clocks_are_linear_in_the_degree() {
        let device = BEST_DESCRIBED;
        let clocks = Cost { requests: 3, served: 40 }.clocks(device);
        let expected = 3.0 * device.bank_start_clocks + 40.0 * device.bank_request_clocks;
        assert_eq!(clocks.to_bits(), expected.to_bits());
    }
}
