//! Whether an array of structs is worth a transform to an array for each number, and back.
//!
//! A warp's access to one number of 32 neighbouring cells touches each 32-byte sector of these
//! cells, or one for each cell where a cell is longer. From an array of its own it touches the
//! bytes of the number alone, and from blocks that fill sectors as well (CUDA C++ Programming
//! Guide, device memory accesses; Ryoo et al., PPoPP 2008, figure 5). The model compares bytes that
//! pass between the level 1 caches and the rest of the memory:
//!
//! - A cache keeps a sector until the other numbers in it are read, so a cell's sectors are read
//!   once. They count in full, however few of their numbers are read.
//! - Stores go through the cache: each number counts the sectors that its store touches.
//! - The transform reads and writes each byte of a cell once, and once more at the end of a run
//!   that has the result there.

/// Bytes of a sector.
pub const SECTOR: i64 = 32;

/// The numbers of a cell that a launch reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberUse {
    /// Numbers that it reads.
    pub read: i64,
    /// Numbers that it writes.
    pub written: i64,
}

/// Bytes of a cell, by both ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayout {
    /// Those that the transform moves in a run.
    pub moved: i64,
    /// Those that `steps` steps save.
    pub saved: i64,
    /// Steps of the launches that were counted.
    pub steps: i64,
}

/// The cells of an array of structs, or of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Numbers of a cell.
    pub numbers: i64,
    /// Bytes of a number.
    pub bytes: i64,
    /// Cells whose numbers lie side by side; 1 for an array of structs.
    pub block: i64,
}

/// Counts the bytes of a record in launches that take `steps` steps together. Its value goes back
/// to the array of structs where `back` holds.
pub fn relayout(
    Cells { numbers, bytes, block }: Cells,
    launches: &[NumberUse],
    steps: i64,
    back: bool,
) -> Relayout {
    let cell = numbers.saturating_mul(bytes);
    let touched = cell.min(bytes.max(SECTOR / block.max(1)));
    let saved = launches.iter().map(|launch| {
        let read = cell.min(launch.read * touched) - launch.read * bytes;
        read + launch.written * (touched - bytes)
    });
    let saved = saved.sum::<i64>().max(0);
    Relayout { moved: cell * if back { 4 } else { 2 }, saved, steps: steps.max(1) }
}

impl Relayout {
    /// Steps of the shortest run that moves fewer bytes with the transform than without; none
    /// where no run does.
    pub fn pays_from(&self) -> Option<i64> {
        let whole = self.moved.saturating_mul(self.steps);
        whole.checked_div(self.saved).map(|steps| steps.saturating_add(1))
    }

    /// Bytes of a cell that a step saves.
    pub fn saved_by_a_step(&self) -> f64 {
        self.saved as f64 / self.steps as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn populations_of_a_lattice_pay_at_once() {
        // d2q9: 36 bytes, nine stores of a sector each in place of four bytes.
        let all = NumberUse { read: 9, written: 9 };
        let d2q9 = Cells { numbers: 9, bytes: 4, block: 1 };
        let found = relayout(d2q9, &[all], 1, true);
        assert_eq!(found, Relayout { moved: 144, saved: 9 * 28, steps: 1 });
        assert_eq!(found.pays_from(), Some(1));
        // Ten steps a launch save a tenth in each: 25.2 bytes.
        let found = relayout(d2q9, &[all], 10, true);
        assert_eq!((found.pays_from(), found.saved_by_a_step()), (Some(6), 25.2));
    }

    #[test]
    fn blocks_that_fill_sectors_never_pay() {
        // Nine stores of four bytes; with two cells a block each number counts 16.
        let all = NumberUse { read: 9, written: 9 };
        let blocks = |block| relayout(Cells { numbers: 9, bytes: 4, block }, &[all], 1, true);
        assert_eq!((blocks(32).saved, blocks(8).saved), (0, 0));
        assert_eq!((blocks(2).saved, blocks(32).pays_from()), (9 * 12, None));
    }

    #[test]
    fn short_cells_need_more_steps() {
        // Two numbers of 4 bytes: a store touches 8 bytes in place of 4.
        let both = NumberUse { read: 2, written: 2 };
        let found = relayout(Cells { numbers: 2, bytes: 4, block: 1 }, &[both], 1, true);
        assert_eq!((found.moved, found.saved, found.pays_from()), (32, 8, Some(5)));
        // Numbers of 32 bytes fill sectors.
        assert_eq!(
            relayout(Cells { numbers: 4, bytes: 32, block: 1 }, &[both], 1, true).pays_from(),
            None
        );
    }

    #[test]
    fn reads_alone_pay_where_numbers_are_left_out() {
        let const_field = |read| {
            relayout(
                Cells { numbers: 3, bytes: 4, block: 1 },
                &[NumberUse { read, written: 0 }],
                1,
                false,
            )
        };
        // All are read: a cache serves them from the same sectors.
        assert_eq!(const_field(3).pays_from(), None);
        // One of three: 12 bytes in place of 4.
        assert_eq!(const_field(1), Relayout { moved: 24, saved: 8, steps: 1 });
        assert_eq!(const_field(1).pays_from(), Some(4));
    }
}
