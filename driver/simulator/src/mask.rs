//! Which threads of a block are active.

const WORDS: usize = 16;

/// A set of up to 1024 threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask {
    words: [u64; WORDS],
    count: u32,
}

impl Mask {
    /// The first so many threads.
    pub fn first(threads: usize) -> Self {
        Self::of(threads, |_| true)
    }

    /// The threads below `threads` for which the test holds.
    pub fn of(threads: usize, mut test: impl FnMut(usize) -> bool) -> Self {
        let mut words = [0; WORDS];
        let mut count = 0;
        for (place, word) in words.iter_mut().enumerate() {
            for bit in 0..64 {
                let lane = place * 64 + bit;
                if lane >= threads {
                    return Self { words, count };
                }
                let active = test(lane);
                *word |= u64::from(active) << bit;
                count += u32::from(active);
            }
        }
        Self { words, count }
    }

    /// The threads of this set for which the test holds.
    pub fn keep(&self, mut test: impl FnMut(usize) -> bool) -> Self {
        let mut kept = Self { words: [0; WORDS], count: 0 };
        for lane in self.lanes() {
            if test(lane) {
                kept.words[lane / 64] |= 1 << (lane % 64);
                kept.count += 1;
            }
        }
        kept
    }

    /// The threads of this set that are not in the other.
    pub fn without(&self, other: &Self) -> Self {
        let mut left = *self;
        left.count = 0;
        for (word, other) in left.words.iter_mut().zip(other.words) {
            *word &= !other;
            left.count += word.count_ones();
        }
        left
    }

    /// How many threads.
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The active threads of a warp of 32 or 64 lanes, as bits.
    pub fn warp(&self, warp: usize, lanes: usize) -> u64 {
        let word = self.words.get(warp * lanes / 64).copied().unwrap_or(0);
        if lanes == 64 { word } else { u64::from((word >> (warp * lanes % 64)) as u32) }
    }

    /// The threads in order.
    pub fn lanes(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(place, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                if rest == 0 {
                    return None;
                }
                let bit = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                Some(place * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        let all = Mask::first(100);
        let even = all.keep(|lane| lane % 2 == 0);
        assert_eq!((all.count(), even.count(), all.without(&even).count()), (100, 50, 50));
        assert_eq!(even.lanes().take(3).collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!((all.warp(3, 32), all.warp(1, 64)), (0xf, 0xf_ffff_ffff));
        assert_eq!(even.warp(1, 32), 0x5555_5555);
        assert!(even.keep(|_| false).is_empty());
        assert_eq!(Mask::first(1024).lanes().last(), Some(1023));
    }
}
