//! Where barriers have to stand between uses of shared buffers.

use std::collections::BTreeSet;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;

/// Which buffers were written and read since the last barrier.
#[derive(Default)]
pub struct Hazards {
    written: BTreeSet<usize>,
    read: BTreeSet<usize>,
}

impl Hazards {
    /// Puts a barrier before an operation that reads what was written, or writes what was touched.
    pub fn before(
        &mut self,
        builder: &Builder,
        reads: &[usize],
        writes: &[usize],
    ) -> Result<(), Error> {
        let raw = reads.iter().any(|slot| self.written.contains(slot));
        let war = writes.iter().any(|slot| self.written.contains(slot) || self.read.contains(slot));
        if raw || war {
            builder.op("gpu.barrier", &[], &[], &[])?;
            *self = Self::default();
        }
        self.written.extend(writes);
        self.read.extend(reads);
        Ok(())
    }
}
