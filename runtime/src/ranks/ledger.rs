//! Which device holds which cells: who wrote them last, and who has a copy.
//!
//! Every device keeps the same ledger, so that all of them derive the same transfers from it and
//! nobody has to ask.

use super::error::RankError;
use super::region::Region;
use super::work::Form;
use crate::bind::BufferId;

/// Cells that one device sends to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The device that holds them.
    pub from: usize,
    /// The device that needs them.
    pub to: usize,
    /// Their memory.
    pub buffer: BufferId,
    /// The cells.
    pub cells: Region,
}

/// The cells of all memories.
#[derive(Clone, Debug)]
pub struct Ledger {
    memories: Vec<Memory>,
}

/// The cells of a memory.
#[derive(Clone, Debug)]
struct Memory {
    /// For each device the cells that it wrote last; each cell is that of one device.
    own: Vec<Region>,
    /// For each device the cells whose value it has.
    valid: Vec<Region>,
}

impl Ledger {
    /// A ledger of memories of which each device begins with some cells; a cell that several have
    /// is that of the first one. Gives what each device must begin with so that no cell is lost.
    pub fn new(forms: &[Form], mut held: Vec<Vec<Region>>, devices: usize) -> Self {
        let mut memories = Vec::new();
        for (form, held) in forms.iter().zip(&mut held) {
            held.resize(devices, Region::default());
            // Cells that nobody uses are shared out by rows.
            let mut left = Region::from(form.whole());
            held.iter().for_each(|one| left = left.without(one));
            for (device, one) in held.iter_mut().enumerate() {
                let at = |device: usize| form.rows * device / devices.max(1);
                let mut rows = form.whole();
                rows.rows = at(device)..at(device + 1);
                one.add(&left.common(&rows.into()));
            }
            let mut own: Vec<Region> = Vec::new();
            let mut taken = Region::default();
            for one in held.iter() {
                own.push(one.without(&taken));
                taken.add(one);
            }
            memories.push(Memory { own, valid: held.clone() });
        }
        Self { memories }
    }

    /// The cells of a memory whose value a device has.
    pub fn valid(&self, buffer: BufferId, device: usize) -> Region {
        let found = self.memories.get(buffer.0).and_then(|memory| memory.valid.get(device));
        found.cloned().unwrap_or_default()
    }

    /// The cells of a memory that a device wrote last.
    pub fn own(&self, buffer: BufferId, device: usize) -> Region {
        let found = self.memories.get(buffer.0).and_then(|memory| memory.own.get(device));
        found.cloned().unwrap_or_default()
    }

    /// The transfers by which a device gets cells that it needs and does not have. It has them
    /// from then on.
    ///
    /// # Errors
    /// Cells that no device holds.
    pub fn fetch(
        &mut self,
        device: usize,
        buffer: BufferId,
        needed: &Region,
    ) -> Result<Vec<Transfer>, RankError> {
        let missing = needed.without(&self.valid(buffer, device));
        if missing.is_empty() {
            return Ok(Vec::new());
        }
        let fault = |text: &str| RankError::Fault(format!("memory {}: {text}", buffer.0));
        let memory = self.memories.get_mut(buffer.0).ok_or_else(|| fault("there is none"))?;
        let (mut transfers, mut found) = (Vec::new(), 0);
        for (from, own) in memory.own.iter().enumerate() {
            let cells = own.common(&missing);
            if !cells.is_empty() {
                found += cells.cells();
                transfers.push(Transfer { from, to: device, buffer, cells });
            }
        }
        if found != missing.cells() {
            return Err(fault("no device holds some of its cells"));
        }
        let valid = memory.valid.get_mut(device).ok_or_else(|| fault("no such device"))?;
        valid.add(&missing);
        Ok(transfers)
    }

    /// Notes the cells of a memory that devices wrote at the same time. Where several wrote a cell,
    /// all have its value, and it is that of the first one.
    pub fn wrote(&mut self, buffer: BufferId, written: &[Region]) {
        let Some(memory) = self.memories.get_mut(buffer.0) else { return };
        let mut all = Region::default();
        written.iter().for_each(|one| all.add(one));
        let mut taken = Region::default();
        let devices = memory.own.iter_mut().zip(&mut memory.valid);
        for ((own, valid), written) in devices.zip(written) {
            *own = own.without(&all);
            own.add(&written.without(&taken));
            taken.add(written);
            *valid = valid.without(&all);
            valid.add(written);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::region::Area;
    use super::*;
    use std::ops::Range;

    fn rows(rows: Range<usize>) -> Region {
        Area { rows, columns: 0..1 }.into()
    }

    fn ledger() -> Ledger {
        let form = Form { rows: 12, columns: 1, bytes: 4, of_cells: true };
        let held = vec![vec![rows(0..7), rows(5..10)]];
        Ledger::new(&[form], held, 2)
    }

    fn transfer(from: usize, to: usize, cells: Range<usize>) -> Transfer {
        Transfer { from, to, buffer: BufferId(0), cells: rows(cells) }
    }

    #[test]
    fn cells_that_nobody_uses_are_those_of_somebody() {
        let ledger = ledger();
        assert_eq!(ledger.own(BufferId(0), 0), rows(0..7));
        assert_eq!(ledger.own(BufferId(0), 1), rows(7..12));
        assert_eq!(ledger.valid(BufferId(0), 1), rows(5..12));
    }

    /// Two devices write six rows each and read one row beyond.
    #[test]
    fn neighbours_send_the_rows_that_the_other_one_reads() {
        let (mut ledger, memory) = (ledger(), BufferId(0));
        // At the beginning both have what they read.
        assert_eq!(ledger.fetch(0, memory, &rows(0..7)).unwrap(), []);
        ledger.wrote(memory, &[rows(0..6), rows(6..12)]);
        assert_eq!(ledger.fetch(0, memory, &rows(0..7)).unwrap(), [transfer(1, 0, 6..7)]);
        assert_eq!(ledger.fetch(1, memory, &rows(5..12)).unwrap(), [transfer(0, 1, 5..6)]);
        // Another launch that reads the same cells needs no transfer.
        assert_eq!(ledger.fetch(1, memory, &rows(4..12)).unwrap(), [transfer(0, 1, 4..5)]);
        assert_eq!(ledger.fetch(1, memory, &rows(4..12)).unwrap(), []);
    }

    /// The tiles of the next launch lie elsewhere.
    #[test]
    fn cuts_may_move_from_launch_to_launch() {
        let (mut ledger, memory) = (ledger(), BufferId(0));
        ledger.wrote(memory, &[rows(0..8), rows(8..12)]);
        assert_eq!(ledger.fetch(1, memory, &rows(3..12)).unwrap(), [transfer(0, 1, 3..8)]);
        ledger.wrote(memory, &[rows(0..4), rows(4..12)]);
        assert_eq!(ledger.own(memory, 0), rows(0..4));
        assert_eq!(ledger.fetch(0, memory, &rows(0..5)).unwrap(), [transfer(1, 0, 4..5)]);
    }

    #[test]
    fn what_all_compute_nobody_sends() {
        let (mut ledger, memory) = (ledger(), BufferId(0));
        ledger.wrote(memory, &[rows(0..12), rows(0..12)]);
        assert_eq!(ledger.fetch(1, memory, &rows(0..12)).unwrap(), []);
        assert_eq!((ledger.own(memory, 0), ledger.own(memory, 1)), (rows(0..12), rows(0..0)));
    }
}
