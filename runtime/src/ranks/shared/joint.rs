//! Buffers that devices have together: who makes them, and who waits for whom.

use super::Shared;
use crate::bind::{Bound, BufferId};
use crate::execute::{Joined, Shown, TargetError};
use crate::launch::Launch;
use crate::ranks::order::{Deed, Deeds};
use crate::ranks::region::Region;
use crate::ranks::work::{Work, key};
use std::ops::Range;

impl Shared<'_> {
    pub(super) fn is_joint(&self, buffer: BufferId) -> bool {
        self.joint.get(buffer.0) == Some(&true)
    }

    /// The cells of a buffer that this device fills at the beginning.
    pub(super) fn filled(&self, buffer: BufferId) -> Region {
        match self.is_joint(buffer) {
            true => self.ledger.own(buffer, self.link.device()),
            false => self.ledger.valid(buffer, self.link.device()),
        }
    }

    /// Makes the buffers that the devices have together.
    pub(super) fn join(
        &mut self,
        bound: &Bound,
        homes: &[Vec<Region>],
    ) -> Result<Option<Shown>, TargetError> {
        if !self.joint.contains(&true) {
            return Ok(None);
        }
        self.exchanges += 1;
        if self.link.device() > 0 {
            return Ok(Some(self.link.spread(self.exchanges, None)?));
        }
        let mut buffers = Vec::new();
        for (place, (buffer, form)) in bound.buffers.iter().zip(&self.forms).enumerate() {
            let id = BufferId(place);
            if self.is_joint(id) {
                let homes = homes.get(place).into_iter().flatten().enumerate();
                let parts = homes.flat_map(|(device, cells)| {
                    form.runs(cells.areas()).into_iter().map(move |run| (run, device))
                });
                let mut parts: Vec<_> = parts.collect();
                parts.sort_unstable_by_key(|(run, _)| run.start);
                buffers.push(Joined { buffer: id, bytes: buffer.bytes(), parts });
            }
        }
        let shown = self.target.join(&buffers)?;
        Ok(Some(self.link.spread(self.exchanges, Some(shown))?))
    }

    /// Puts what devices do in a launch behind what others did before.
    pub(super) fn order_launch(
        &mut self,
        launch: &Launch<'_>,
        works: &[Work],
    ) -> Result<(), TargetError> {
        if !self.joint.contains(&true) {
            return Ok(());
        }
        let buffers = launch.buffers().filter(|(_, buffer)| self.is_joint(*buffer));
        let buffers: Vec<_> = buffers.collect();
        let places = buffers.iter().map(|(_, buffer)| buffer.0).collect();
        let kind = (key(launch.node), launch.grid, places);
        let of = |work: &Work| {
            let mut deeds = Deeds::new();
            for (place, buffer) in &buffers {
                let deed = deeds.entry(*buffer).or_default();
                work.reads.get(*place).into_iter().for_each(|cells| deed.reads.add(cells));
                work.writes.get(*place).into_iter().for_each(|cells| deed.writes.add(cells));
            }
            deeds
        };
        let pairs = self.order.next(kind, || works.iter().map(of).collect());
        self.order_pairs(&pairs)
    }

    /// Puts a look at cells that all devices take behind what others did before.
    pub(super) fn order_look(
        &mut self,
        buffer: BufferId,
        bytes: &Range<usize>,
        cells: Region,
    ) -> Result<(), TargetError> {
        let kind = (0, [0; 3], vec![buffer.0, bytes.start, bytes.end]);
        let deed = Deed { reads: cells, ..Deed::default() };
        let all = vec![Deeds::from([(buffer, deed)]); self.devices.count()];
        let pairs = self.order.next(kind, || all);
        self.order_pairs(&pairs)
    }

    fn order_pairs(&mut self, pairs: &[(usize, usize)]) -> Result<(), TargetError> {
        if pairs.is_empty() {
            return Ok(());
        }
        self.exchanges += 1;
        self.link.order(self.exchanges, pairs, self.target)
    }

    /// Puts what any device does next behind what all others did before, where they have buffers
    /// together.
    pub(super) fn order_all(&mut self) -> Result<(), TargetError> {
        if !self.joint.contains(&true) {
            return Ok(());
        }
        let all = 0..self.devices.count();
        let pairs = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
        let pairs: Vec<_> = pairs.filter(|(from, to)| from != to).collect();
        self.order_pairs(&pairs)
    }
}
