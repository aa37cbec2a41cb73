//! Arrays to `.npy` files.

use super::error::NpyError;
use super::header;
use crate::array::Array;
use crate::cell::Layout;
use crate::whole_file::{self, write_whole};
use npyz::{DType, WriterBuilder};
use std::io::{self, Write};
use std::path::Path;

/// Bytes of cells that are in memory at a time.
const TOGETHER: usize = 1 << 22;

/// Reads numbers of a leaf, by its place among those of a cell, from a cell on.
pub type ReadLeaf<'a> = &'a mut dyn FnMut(usize, usize, &mut [u8]) -> io::Result<()>;

/// Writes cells of any type: C order, little endian. `leaves` has the size of each number of a
/// cell, in bytes.
///
/// # Errors
/// The system's error, or that of `read`.
pub(crate) fn write_records(
    out: &mut dyn Write,
    layout: &Layout,
    shape: &[usize],
    leaves: &[usize],
    read: ReadLeaf<'_>,
) -> io::Result<()> {
    let cells: usize = shape.iter().product();
    let mut shape: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
    let mut cell = header::dtype(layout)?;
    // An array's type has no extents of its own: they are the last dimensions.
    while let DType::Array(count, of) = cell {
        shape.push(count);
        cell = *of;
    }
    let options = npyz::WriteOptions::new_header_only().dtype(cell).shape(&shape);
    let out = options.writer(out).write_header_only()?;
    let cell: usize = leaves.iter().sum();
    if cell == 0 {
        return Ok(());
    }
    let together = (TOGETHER / cell).clamp(1, cells.max(1));
    let largest = leaves.iter().copied().max().unwrap_or(0);
    let (mut joined, mut one) = (room(together * cell)?, room(together * largest)?);
    for first in (0..cells).step_by(together) {
        let count = together.min(cells - first);
        joined.resize(count * cell, 0);
        let mut offset = 0;
        for (place, size) in leaves.iter().enumerate() {
            if *size == cell {
                read(place, first, &mut joined)?;
                break;
            }
            one.resize(count * size, 0);
            read(place, first, &mut one)?;
            for (to, number) in joined.chunks_exact_mut(cell).zip(one.chunks_exact(*size)) {
                if let Some(part) = to.get_mut(offset..offset + size) {
                    part.copy_from_slice(number);
                }
            }
            offset += size;
        }
        little_endian(layout, &mut joined);
        out.write_all(&joined)?;
    }
    Ok(())
}

/// Memory for so many bytes.
fn room(bytes: usize) -> io::Result<Vec<u8>> {
    let mut room = Vec::new();
    room.try_reserve_exact(bytes)?;
    Ok(room)
}

/// Writes cells of any type, with an array for each number of a cell.
///
/// # Errors
/// The system's error; also where the arrays have several lengths.
pub(crate) fn write_arrays(
    out: &mut dyn Write,
    layout: &Layout,
    leaves: &[&Array],
) -> io::Result<()> {
    let shape = leaves.first().map_or(&[][..], |leaf| leaf.shape());
    let sizes: Vec<_> = leaves.iter().map(|leaf| leaf.element().size()).collect();
    write_records(out, layout, shape, &sizes, &mut |place, first, to| {
        let (leaf, size) = leaves.get(place).zip(sizes.get(place)).unzip();
        let begin = first * size.unwrap_or(&0);
        let part = leaf.and_then(|leaf| leaf.bytes().get(begin..begin + to.len()));
        to.copy_from_slice(part.ok_or_else(|| io::Error::other("arrays of several lengths"))?);
        Ok(())
    })
}

/// Writes an array: C order, little endian. The file appears whole or not at all.
///
/// # Errors
/// When the folder or the file can't be written.
pub fn write(path: &Path, array: &Array) -> Result<(), NpyError> {
    let layout = Layout::Number(array.element());
    write_whole(path, |file| write_arrays(file, &layout, &[array]))
        .map_err(|source| NpyError::Write { path: path.to_path_buf(), source })
}

/// Whether a file can be written there, as far as can be told before. It lets a tool refuse a place
/// before a long run.
///
/// # Errors
/// Why it can't.
pub fn check_place(path: &Path) -> Result<(), NpyError> {
    let fail = |source| NpyError::Write { path: path.to_path_buf(), source };
    whole_file::check_place(path).map_err(fail)
}

/// Reverses the bytes of every number on a machine that is not little endian.
pub(super) fn little_endian(layout: &Layout, cells: &mut [u8]) {
    fn sizes(layout: &Layout, all: &mut Vec<usize>) {
        match layout {
            Layout::Number(element) => all.push(element.size()),
            Layout::Bool => all.push(1),
            Layout::Vec(count, of) => (0..*count).for_each(|_| sizes(of, all)),
            Layout::Struct(members) => members.iter().for_each(|(_, layout)| sizes(layout, all)),
        }
    }
    if cfg!(target_endian = "little") {
        return;
    }
    let mut all = Vec::new();
    sizes(layout, &mut all);
    for cell in cells.chunks_exact_mut(all.iter().sum::<usize>().max(1)) {
        let mut rest = cell;
        for size in &all {
            let (number, others) = rest.split_at_mut((*size).min(rest.len()));
            number.reverse();
            rest = others;
        }
    }
}
