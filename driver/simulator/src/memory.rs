//! Memory with a shadow: for every word who wrote it last and who read it since. A word has 4
//! bytes, or 1 or 2 where the buffer holds numbers of so many, which threads write on their own.
//!
//! Words are atomics, so that blocks may run on several threads of the host; whether two accesses
//! race is decided from the stamps, never from the order in which the host happened to run them.
//! `memory/host.rs` moves content between the host and a buffer.

mod host;
#[cfg(test)]
mod tests;

use crate::clock::{Stamp, Timeline};
use crate::program::Usage;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64};

/// A buffer: its words and their shadow.
#[derive(Debug, Default)]
pub struct Memory {
    words: Vec<AtomicU32>,
    /// Bytes of a word: 1, 2 or 4.
    unit: usize,
    /// Whether this launch may write; otherwise readers are not noted.
    tracked: bool,
    /// Last write of each word.
    written: Vec<AtomicU64>,
    write_site: Vec<AtomicU16>,
    /// A read of each word since.
    read: Vec<AtomicU64>,
    /// Site of that read in the low half; another thread that reads in the same interval in the
    /// high half.
    read_site: Vec<AtomicU32>,
    /// Readers in no order with each other, where several blocks read and flags order them.
    readers: Mutex<BTreeMap<usize, Vec<(Stamp, u16)>>>,
    /// Words that nobody wrote, neither the host nor an earlier launch.
    poison: Option<Box<[bool]>>,
}

/// Why an access is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflict {
    /// Nobody wrote the word.
    Unwritten,
    /// Another access in no order with this one.
    Race {
        /// Who.
        other: Stamp,
        /// At which site.
        site: u16,
        /// Whether the other one writes.
        write: bool,
    },
}

/// Who accesses.
#[derive(Clone, Copy, Debug)]
pub struct Accessor<'t> {
    /// The block's time.
    pub time: &'t Timeline,
    /// The thread in its block.
    pub thread: u32,
    /// The operation.
    pub site: u16,
    /// Whether other host threads run blocks of the same launch.
    pub concurrent: bool,
    /// Whether flags order blocks.
    pub peer: bool,
}

impl Memory {
    /// Bytes of the host for a word, its shadow, and a copy of it.
    pub const HOST_BYTES: usize = 4 + 22 + 1 + 4;

    /// Memory of so many bytes in words of `unit` bytes, poisoned or zero.
    pub fn new(bytes: usize, unit: usize, poisoned: bool) -> Self {
        let words = bytes.div_ceil(unit);
        Self {
            unit,
            words: (0..words).map(|_| AtomicU32::new(0)).collect(),
            poison: poisoned.then(|| vec![true; words].into_boxed_slice()),
            ..Self::default()
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        (self.words.len() * self.unit) as u64
    }

    /// Bytes of a word.
    pub fn unit(&self) -> usize {
        self.unit
    }

    /// Bytes that the launch wrote.
    pub fn bytes_written(&self) -> u64 {
        (self.written.iter().filter(|written| written.load(Relaxed) != 0).count() * self.unit)
            as u64
    }

    /// Prepares the shadow for a launch.
    pub fn begin(&mut self, usage: Usage, poison_outputs: bool) {
        self.tracked = usage != Usage::Read;
        if !self.tracked {
            return;
        }
        let words = self.words.len();
        fn clear<T: Default>(shadow: &mut Vec<T>, words: usize) {
            shadow.clear();
            shadow.resize_with(words, T::default);
        }
        clear(&mut self.written, words);
        clear(&mut self.write_site, words);
        clear(&mut self.read, words);
        clear(&mut self.read_site, words);
        self.readers = Mutex::default();
        if usage == Usage::Write && poison_outputs {
            self.poison = Some(vec![true; words].into_boxed_slice());
        }
    }

    /// Forgets who accessed what in this launch; the content stays.
    pub fn forget_accesses(&self) {
        for (written, read) in self.written.iter().zip(&self.read) {
            written.store(0, Relaxed);
            read.store(0, Relaxed);
        }
    }

    /// Ends a launch: words that it wrote are no longer poisoned.
    pub fn end(&mut self) {
        if let Some(poison) = &mut self.poison {
            let mut left = false;
            for (poisoned, written) in poison.iter_mut().zip(&self.written) {
                *poisoned &= written.load(Relaxed) == 0;
                left |= *poisoned;
            }
            if !self.tracked || left {
                return;
            }
            self.poison = None;
        }
    }

    /// Forgets all content: for the shared memory of the next block.
    pub fn forget(&mut self) {
        self.begin(Usage::ReadWrite, false);
    }

    fn is_poisoned(&self, index: usize) -> bool {
        self.poison.as_ref().and_then(|poison| poison.get(index)).is_some_and(|poisoned| *poisoned)
    }

    /// The word, without any check; 0 outside.
    pub fn peek(&self, index: usize) -> u32 {
        self.words.get(index).map_or(0, |word| word.load(Relaxed))
    }

    /// Reads a word; `index` must be in range.
    #[inline]
    pub fn load(&self, index: usize, by: Accessor) -> Result<u32, Conflict> {
        let word = &self.words[index];
        if !self.tracked {
            return if self.poison.is_some() && self.is_poisoned(index) {
                Err(Conflict::Unwritten)
            } else {
                Ok(word.load(Relaxed))
            };
        }
        self.note_reader(index, by);
        let written = Stamp::from_bits(self.written[index].load(if by.concurrent {
            SeqCst
        } else {
            Relaxed
        }));
        if written.is_none() {
            if self.is_poisoned(index) {
                return Err(Conflict::Unwritten);
            }
        } else if !by.time.after(written, by.thread) {
            return Err(Conflict::Race {
                other: written,
                site: self.write_site[index].load(Relaxed),
                write: true,
            });
        }
        Ok(word.load(Relaxed))
    }

    /// Writes a word; `index` must be in range.
    #[inline]
    pub fn store(&self, index: usize, value: u32, by: Accessor) -> Result<(), Conflict> {
        self.mark(index, by, by.time.stamp(by.thread))?;
        self.words[index].store(value, Relaxed);
        Ok(())
    }

    /// Stores an epoch atomically: ordered writes before it, but no read or plain write beside it.
    pub fn store_atomic(&self, index: usize, value: u32, by: Accessor) -> Result<(), Conflict> {
        let written = Stamp::from_bits(self.written[index].load(Relaxed));
        if !written.is_none() && !written.is_atomic() && !by.time.after(written, by.thread) {
            return Err(Conflict::Race {
                other: written,
                site: self.write_site[index].load(Relaxed),
                write: true,
            });
        }
        self.end_reads(index, by)?;
        self.written[index].store(by.time.stamp(by.thread).atomic().bits(), Relaxed);
        self.write_site[index].store(by.site, Relaxed);
        self.words[index].store(value, Relaxed);
        Ok(())
    }

    /// Loads a flag atomically.
    pub fn load_atomic(&self, index: usize, by: Accessor) -> Result<u32, Conflict> {
        if !self.tracked {
            return Ok(self.peek(index));
        }
        let written = Stamp::from_bits(self.written[index].load(Relaxed));
        if written.is_none() {
            if self.is_poisoned(index) {
                return Err(Conflict::Unwritten);
            }
        } else if !written.is_atomic() && !by.time.after(written, by.thread) {
            return Err(Conflict::Race {
                other: written,
                site: self.write_site[index].load(Relaxed),
                write: true,
            });
        }
        Ok(self.words[index].load(Relaxed))
    }

    /// Notes a write without a value: an asynchronous copy that is under way.
    pub fn announce(&self, index: usize, by: Accessor) -> Result<(), Conflict> {
        self.mark(index, by, by.time.stamp(by.thread))?;
        self.write_site[index].store(by.site, Relaxed);
        Ok(())
    }

    #[inline]
    fn mark(&self, index: usize, by: Accessor, mine: Stamp) -> Result<(), Conflict> {
        let written = if by.concurrent {
            self.written[index].swap(mine.bits(), SeqCst)
        } else {
            let old = self.written[index].load(Relaxed);
            self.written[index].store(mine.bits(), Relaxed);
            old
        };
        let written = Stamp::from_bits(written);
        let other_write = !written.is_none() && !by.time.after(written, by.thread);
        if other_write {
            return Err(Conflict::Race {
                other: written,
                site: self.write_site[index].load(Relaxed),
                write: true,
            });
        }
        self.write_site[index].store(by.site, Relaxed);
        self.end_reads(index, by)
    }

    /// All reads so far must be ordered before a write.
    #[inline]
    fn end_reads(&self, index: usize, by: Accessor) -> Result<(), Conflict> {
        let read =
            Stamp::from_bits(self.read[index].load(if by.concurrent { SeqCst } else { Relaxed }));
        if !read.is_none() {
            if let Some((other, site)) = self.unordered_reader(index, read, by) {
                return Err(Conflict::Race { other, site, write: false });
            }
            self.read[index].store(0, Relaxed);
            if by.peer && read.is_several() {
                self.forget_readers(index);
            }
        }
        Ok(())
    }

    /// A reader that this write is not ordered after.
    fn unordered_reader(&self, index: usize, read: Stamp, by: Accessor) -> Option<(Stamp, u16)> {
        let sites = self.read_site[index].load(Relaxed);
        if by.peer
            && read.is_several()
            && let Ok(readers) = self.readers.lock()
        {
            return readers
                .get(&index)?
                .iter()
                .find(|(stamp, _)| !by.time.after(*stamp, by.thread))
                .copied();
        }
        if !read.is_several_blocks() && by.time.after(read, by.thread) {
            return None;
        }
        // If two threads read in one interval, name the one that is not the writer.
        let other_thread = sites >> 16;
        let other =
            if read.block() == by.time.block && read.thread() == by.thread && other_thread != 0 {
                Stamp::new(read.block(), read.clock(), other_thread - 1)
            } else {
                read
            };
        Some((other, sites as u16))
    }

    fn forget_readers(&self, index: usize) {
        if let Ok(mut readers) = self.readers.lock() {
            readers.remove(&index);
        }
    }

    #[inline]
    fn note_reader(&self, index: usize, by: Accessor) {
        let mine = by.time.stamp(by.thread);
        let cell = &self.read[index];
        let mut old = cell.load(Relaxed);
        loop {
            let before = Stamp::from_bits(old);
            let new = if before.is_several_blocks() {
                return;
            } else if before.is_none()
                || (!by.peer || !before.is_several()) && by.time.after(before, by.thread)
            {
                mine
            } else if by.peer {
                return self.note_several(index, before, mine, by);
            } else if before.block() != mine.block() {
                before.several_blocks()
            } else if before.is_several() {
                return;
            } else {
                before.several()
            };
            if by.concurrent {
                if let Err(now) = cell.compare_exchange(old, new.bits(), SeqCst, SeqCst) {
                    old = now;
                    continue;
                }
            } else {
                cell.store(new.bits(), Relaxed);
            }
            let sites = &self.read_site[index];
            if new.is_several() {
                let second =
                    if before.block() == mine.block() { (mine.thread() + 1) << 16 } else { 0 };
                sites.store(sites.load(Relaxed) & 0xffff | second, Relaxed);
            } else {
                sites.store(u32::from(by.site), Relaxed);
            }
            return;
        }
    }

    /// Keeps the whole list of readers: between blocks that flags order, each may be ordered
    /// before the next write or not.
    #[cold]
    fn note_several(&self, index: usize, before: Stamp, mine: Stamp, by: Accessor) {
        let Ok(mut readers) = self.readers.lock() else { return };
        let list = readers.entry(index).or_default();
        if list.is_empty() {
            list.push((before, self.read_site[index].load(Relaxed) as u16));
        }
        list.retain(|(stamp, _)| !by.time.after(*stamp, by.thread));
        list.push((mine, by.site));
        self.read[index].store(mine.several().bits(), Relaxed);
    }
}
