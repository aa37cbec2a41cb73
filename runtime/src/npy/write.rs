//! Arrays to `.npy` files.

use super::error::NpyError;
use super::header;
use crate::array::Array;
use crate::cell::Layout;
use crate::whole_file::{self, write_whole};
use npyz::{DType, WriterBuilder};
use std::io::{self, Write};
use std::path::Path;

/// Cells that are joined in memory at a time.
const TOGETHER: usize = 1 << 14;

/// Writes cells of any type: C order, little endian. `leaves` has an array for each number of a
/// cell.
///
/// # Errors
/// The system's error.
pub(crate) fn write_records(
    out: &mut dyn Write,
    layout: &Layout,
    shape: &[usize],
    leaves: &[&Array],
) -> io::Result<()> {
    let mut shape: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
    let mut cell = header::dtype(layout)?;
    // An array's type has no extents of its own: they are the last dimensions.
    while let DType::Array(count, of) = cell {
        shape.push(count);
        cell = *of;
    }
    let options = npyz::WriteOptions::new_header_only().dtype(cell).shape(&shape);
    let out = options.writer(out).write_header_only()?;
    if let ([leaf], true) = (leaves, cfg!(target_endian = "little")) {
        return out.write_all(leaf.bytes());
    }
    let parts: Vec<_> = leaves.iter().map(|leaf| (leaf.bytes(), leaf.element().size())).collect();
    let cells = leaves.first().map_or(0, |leaf| leaf.len());
    let mut bytes = Vec::new();
    for first in (0..cells).step_by(TOGETHER) {
        bytes.clear();
        for cell in first..cells.min(first + TOGETHER) {
            for (leaf, size) in &parts {
                let number = leaf.get(cell * size..(cell + 1) * size);
                let number = number.ok_or_else(|| io::Error::other("arrays of several lengths"))?;
                bytes.extend_from_slice(number);
            }
        }
        little_endian(layout, &mut bytes);
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Writes an array: C order, little endian. The file appears whole or not at all.
///
/// # Errors
/// When the folder or the file can't be written.
pub fn write(path: &Path, array: &Array) -> Result<(), NpyError> {
    let layout = Layout::Number(array.element());
    write_whole(path, |file| write_records(file, &layout, array.shape(), &[array]))
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
