//! Copies of parts of arrays to shared memory, by all threads of a block: neighbouring threads take
//! neighbouring elements (the cyclic shares of the paper's section 5.2), whatever the references
//! are.
//!
//! ```text
//! cell = thread + n * threads;  place = first place + (cell / row, cell % row)
//! %x = scf.if (place lies in the array) { memref.load %A[place] } else { 0 }
//! memref.store %x, %shared[cell / row, cell % row]
//! ```
//!
//! What lies outside of the array is 0; no iteration reads it.

use super::tile_shape::Buffer;
use melior::ir::ShapedTypeLike;
use melior::ir::r#type::MemRefType;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::Val;

/// The copy of a part of an array.
pub struct Copying<'c> {
    /// The array.
    pub array: Val<'c>,
    /// Its extents.
    pub cells: Vec<Val<'c>>,
    /// The shared buffer.
    pub buffer: Val<'c>,
    /// The extents of the part.
    pub extents: Vec<i64>,
    /// The array's dimensions in the order of the buffer.
    pub order: Vec<usize>,
    /// The number of the thread in its block.
    pub thread: Val<'c>,
    /// Threads of a block.
    pub threads: i64,
}

impl<'c> Copying<'c> {
    fn volume(&self) -> i64 {
        self.extents.iter().product()
    }

    /// Elements of each thread.
    pub fn shares(&self) -> i64 {
        (self.volume() + self.threads - 1) / self.threads
    }

    /// The places of a thread's element in the part, and whether there is one; none if each thread
    /// has one.
    fn place(
        &self,
        builder: &Builder<'c>,
        share: Val<'c>,
        last: bool,
    ) -> Result<(Vec<Val<'c>>, Option<Val<'c>>), Error> {
        let first = builder.multiply_constant(share, self.threads)?;
        let mut cell = builder.add(first, self.thread)?;
        let exists = match last && self.volume() % self.threads != 0 {
            true => {
                let volume = builder.index(self.volume())?;
                Some(builder.compare(Compare::Below, cell, volume)?)
            }
            false => None,
        };
        let mut place = Vec::new();
        for (dimension, extent) in self.extents.iter().enumerate().rev() {
            if dimension == 0 {
                place.push(cell);
                break;
            }
            let extent = builder.index(*extent)?;
            place.push(builder.binary("arith.remui", cell, extent)?);
            cell = builder.binary("arith.divui", cell, extent)?;
        }
        place.reverse();
        Ok((place, exists))
    }

    /// A thread's element of the part that begins at some place of the array.
    pub fn fetch(
        &self,
        builder: &Builder<'c>,
        share: Val<'c>,
        last: bool,
        first: &[Val<'c>],
    ) -> Result<Val<'c>, Error> {
        let (place, exists) = self.place(builder, share, last)?;
        let (mut indices, mut conditions) = (Vec::new(), Vec::from_iter(exists));
        for ((place, first), cells) in place.iter().zip(first).zip(&self.cells) {
            let index = builder.add(*first, *place)?;
            conditions.push(builder.compare(Compare::Below, index, *cells)?);
            indices.push(index);
        }
        let element = MemRefType::try_from(melior::ir::ValueLike::r#type(&self.array))
            .map_err(|error| Error::internal(error.to_string()))?
            .element();
        let inside = builder.all(&conditions)?;
        let inside = inside.ok_or_else(|| Error::internal("an array without dimensions"))?;
        let loaded = builder.choose(
            inside,
            &[element],
            |builder| Ok(vec![builder.load(self.array, &indices)?]),
            |builder| Ok(vec![builder.zero(element)?]),
        )?;
        loaded.first().copied().ok_or_else(|| Error::internal("a load without a value"))
    }

    /// Stores a thread's element to the shared buffer.
    pub fn put(
        &self,
        builder: &Builder<'c>,
        share: Val<'c>,
        last: bool,
        value: Val<'c>,
    ) -> Result<(), Error> {
        let (place, exists) = self.place(builder, share, last)?;
        let place = Buffer::ordered(&self.order, &place);
        match exists {
            Some(exists) => {
                builder.when(exists, |builder| builder.store(value, self.buffer, &place))
            }
            None => builder.store(value, self.buffer, &place),
        }
    }

    /// Copies all shares of a thread.
    pub fn all(&self, builder: &Builder<'c>, first: &[Val<'c>]) -> Result<(), Error> {
        let (zero, one) = (builder.index(0)?, builder.index(1)?);
        let shares = builder.index(self.shares())?;
        builder.repeat((zero, shares, one), |builder, share| {
            let value = self.fetch(builder, share, true, first)?;
            self.put(builder, share, true, value)
        })
    }
}
