//! Content of a memory, to and from the host; the shadow is left as it is.

use super::Memory;
use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use stencil_runtime::array::noise_bits;

impl Memory {
    /// Fills the buffer from the host; all of it counts as written.
    pub fn fill(&mut self, bytes: &[u8]) {
        for (word, bytes) in self.words.iter_mut().zip(bytes.chunks(self.unit)) {
            let mut all = [0; 4];
            all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            *word.get_mut() = u32::from_le_bytes(all);
        }
        self.poison = None;
    }

    /// Fills some bytes from the host, from the first byte of a word on; says whether they are
    /// there.
    pub fn fill_part(&mut self, byte: usize, bytes: &[u8]) -> bool {
        let words = bytes.chunks(self.unit).map(|bytes| {
            let mut all = [0; 4];
            all.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            u32::from_le_bytes(all)
        });
        let words: Vec<u32> = words.collect();
        self.put_part(byte, &words, &vec![false; words.len()])
    }

    /// Puts noise in the place of some bytes, which counts as written.
    pub fn scramble_part(&mut self, bytes: &Range<usize>) {
        let noise: Vec<u8> =
            bytes.clone().map(|byte| noise_bits(0x5c7a, byte as u64) as u8).collect();
        self.fill_part(bytes.start, &noise);
    }

    /// Nobody wrote the words of some bytes any more.
    pub fn poison_part(&mut self, bytes: &Range<usize>) {
        let words = bytes.start / self.unit..bytes.end / self.unit;
        let all = self.words.len();
        let poison = self.poison.get_or_insert_with(|| vec![false; all].into_boxed_slice());
        if let Some(part) = poison.get_mut(words) {
            part.fill(true);
        }
    }

    /// Copies the buffer to the host, from the first byte of a word on; fails with the first byte
    /// there that nobody wrote.
    pub fn download(&self, first: usize, bytes: &mut [u8]) -> Result<(), usize> {
        let words = first / self.unit..(first + bytes.len()).div_ceil(self.unit);
        let poison = self.poison.as_ref().and_then(|poison| poison.get(words.clone()));
        if let Some(word) = poison.and_then(|poison| poison.iter().position(|poisoned| *poisoned)) {
            return Err((words.start + word) * self.unit);
        }
        let words = self.words.get(words).unwrap_or_default();
        for (word, bytes) in words.iter().zip(bytes.chunks_mut(self.unit)) {
            bytes
                .iter_mut()
                .zip(word.load(Relaxed).to_le_bytes())
                .for_each(|(to, from)| *to = from);
        }
        Ok(())
    }

    /// The words as they are.
    pub fn snapshot(&self) -> Vec<u32> {
        self.words.iter().map(|word| word.load(Relaxed)).collect()
    }

    /// The bits that a word has.
    pub fn word_mask(&self) -> u32 {
        u32::MAX >> (32 - 8 * self.unit.clamp(1, 4))
    }

    /// Puts a snapshot back.
    pub fn restore(&self, snapshot: &[u32]) {
        for (word, old) in self.words.iter().zip(snapshot) {
            word.store(*old, Relaxed);
        }
    }

    /// The words, and which of them nobody wrote.
    pub fn content(&self) -> (Vec<u32>, Option<Box<[bool]>>) {
        (self.snapshot(), self.poison.clone())
    }

    /// Takes the content of another buffer.
    pub fn put(&mut self, words: Vec<u32>, poison: Option<Box<[bool]>>) {
        self.restore(&words);
        self.poison = poison;
    }

    /// The words of some bytes, and which of them nobody wrote; none where they reach beyond it.
    pub fn part(&self, byte: usize, bytes: usize) -> Option<(Vec<u32>, Vec<bool>)> {
        let (first, count) = (byte / self.unit, bytes / self.unit);
        let words = self.words.get(first..first.checked_add(count)?)?;
        let poisoned =
            |word: usize| self.poison.as_ref().is_some_and(|all| all.get(word) == Some(&true));
        let poison = (first..first + count).map(poisoned).collect();
        Some((words.iter().map(|word| word.load(Relaxed)).collect(), poison))
    }

    /// Puts words, and which of them nobody wrote, in the place of others; says whether they fit.
    pub fn put_part(&mut self, byte: usize, words: &[u32], poison: &[bool]) -> bool {
        let first = byte / self.unit;
        let Some(places) =
            first.checked_add(words.len()).and_then(|end| self.words.get(first..end))
        else {
            return false;
        };
        for (place, word) in places.iter().zip(words) {
            place.store(*word, Relaxed);
        }
        if self.poison.is_none() && poison.contains(&true) {
            self.poison = Some(vec![false; self.words.len()].into_boxed_slice());
        }
        if let Some(all) = &mut self.poison {
            all.iter_mut().skip(first).zip(poison).for_each(|(to, from)| *to = *from);
        }
        true
    }

    /// Says that some words count as written.
    pub fn count_as_written(&mut self, words: &[usize]) {
        if let Some(poison) = &mut self.poison {
            for word in words {
                if let Some(poisoned) = poison.get_mut(*word) {
                    *poisoned = false;
                }
            }
        }
    }
}
