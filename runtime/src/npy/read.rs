//! Arrays from `.npy` files.

use super::error::NpyError;
use super::header;
use super::write::little_endian;
use crate::array::{
    Array, ArrayError, Backing, Cell, DataMut, DataRef, Element, each_cell, shape_text,
};
use crate::cell::Layout;
use npyz::Order;
use std::io::{self, Read, Seek};
use std::path::Path;

/// Reads an array of any supported type and shape.
///
/// # Errors
/// When the file is missing, damaged, truncated or of another type.
pub fn read(path: &Path) -> Result<Array, NpyError> {
    read_on(path, &Backing::Memory)
}

/// As [`read`], to where the array is to lie.
fn read_on(path: &Path, backing: &Backing) -> Result<Array, NpyError> {
    let fail = |source| NpyError::Read { path: path.to_path_buf(), source };
    let (mut file, header) = header::open(path)?;
    let (element, swapped) =
        header::element_of(&header.dtype()).ok_or_else(|| NpyError::Unsupported {
            path: path.to_path_buf(),
            found: header::shown(&header.dtype()).trim_matches('\'').to_string(),
        })?;

    let no_array = |source| NpyError::Array { path: path.to_path_buf(), source };
    let too_large = |_| no_array(ArrayError::TooLarge { shape: Vec::new(), element });
    let shape = header
        .shape()
        .iter()
        .map(|&n| usize::try_from(n))
        .collect::<Result<Vec<_>, _>>()
        .map_err(too_large)?;
    // A damaged header must not make us ask for the memory of an array that can't be there.
    let on_disk = file.get_ref().metadata().map_err(fail)?;
    if let Some(wanted) = bytes_of(&shape, element)
        && on_disk.is_file()
        && wanted > on_disk.len()
    {
        return Err(truncated(
            path,
            on_disk.len().saturating_sub(file.stream_position().map_err(fail)?),
            wanted,
            &shape,
            element,
        ));
    }

    let mut array = Array::zeros_on(element, &shape, backing).map_err(no_array)?;
    let found = fill(&mut file, array.bytes_mut()).map_err(fail)?;
    let wanted = array.bytes().len();
    if found < wanted {
        return Err(truncated(path, found as u64, wanted as u64, &shape, element));
    }
    if fill(&mut file, &mut [0]).map_err(fail)? > 0 {
        return Err(NpyError::Trailing {
            path: path.to_path_buf(),
            shape: shape_text(&shape),
            element,
        });
    }
    if swapped {
        for number in array.bytes_mut().chunks_exact_mut(element.size()) {
            number.reverse();
        }
    }
    match header.order() {
        Order::C => Ok(array),
        Order::Fortran => row_major(&array, backing).map_err(no_array),
    }
}

/// Reads an array that must have the given type and number of dimensions.
///
/// # Errors
/// As [`read`], and when type or rank are others.
pub fn read_as(
    path: &Path,
    element: Element,
    rank: usize,
    backing: &Backing,
) -> Result<Array, NpyError> {
    let array = read_on(path, backing).map_err(|error| match error {
        NpyError::Unsupported { path, found } if found == header::BOOL => {
            NpyError::Bool { path, wanted: element }
        }
        other => other,
    })?;
    if array.element() != element {
        return Err(NpyError::Element {
            path: path.to_path_buf(),
            found: array.element(),
            wanted: element,
        });
    }
    if array.shape().len() != rank {
        return Err(NpyError::Rank {
            path: path.to_path_buf(),
            found: array.shape().len(),
            shape: shape_text(array.shape()),
            wanted: rank,
        });
    }
    Ok(array)
}

/// Reads an array of structs: its shape, and the bytes of its cells. It must have the given type
/// and number of dimensions.
pub(crate) fn read_records(
    path: &Path,
    layout: &Layout,
    rank: usize,
) -> Result<(Vec<usize>, Vec<u8>), NpyError> {
    let fail = |source| NpyError::Read { path: path.to_path_buf(), source };
    let (file, header) = header::open(path)?;
    let wanted = header::dtype(layout).map_err(fail)?;
    if header.dtype() != wanted {
        let is_swapped = header.dtype().descr().replace('>', "<") == wanted.descr();
        let (found, wanted) = (header::shown(&header.dtype()), header::shown(&wanted));
        let remedy = match layout {
            _ if is_swapped => "save a.astype(a.dtype.newbyteorder('<')), which swaps its bytes",
            Layout::Bool => "convert it with numpy's astype",
            _ if layout.complex().is_some() => "convert it with numpy's astype",
            _ => "make it with numpy.dtype, without padding",
        };
        return Err(NpyError::Record { path: path.to_path_buf(), found, wanted, remedy });
    }
    let dimensions = header.shape();
    let shape: Vec<usize> = dimensions.iter().filter_map(|&n| usize::try_from(n).ok()).collect();
    if dimensions.len() != rank || shape.len() != rank {
        let (found, shape) = (dimensions.len(), shape_text(&shape));
        return Err(NpyError::Rank { path: path.to_path_buf(), found, shape, wanted: rank });
    }
    let columns_first = header.order() == Order::Fortran && rank > 1;
    if columns_first && *layout != Layout::Bool {
        return Err(NpyError::Fortran { path: path.to_path_buf() });
    }
    let bytes = wanted
        .num_bytes()
        .and_then(|cell| shape.iter().try_fold(cell, |n, &extent| n.checked_mul(extent)));
    // One more than there should be tells of a file that goes on.
    let most = bytes.map_or(0, |bytes| bytes as u64).saturating_add(1);
    let mut cells = Vec::new();
    file.take(most).read_to_end(&mut cells).map_err(fail)?;
    if bytes != Some(cells.len()) {
        let held = if cells.len() as u64 == most { "more bytes" } else { "fewer bytes" };
        let message = format!("it has {held} of data than {} of its cells are", shape_text(&shape));
        return Err(NpyError::Header { path: path.to_path_buf(), message });
    }
    little_endian(layout, &mut cells);
    if columns_first {
        cells = in_row_major(&shape, &cells).collect();
    }
    Ok((shape, cells))
}

/// Reads until `buffer` is full or the file ends; says how many bytes came.
fn fill(file: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut found = 0;
    while let Some(rest) = buffer.get_mut(found..).filter(|rest| !rest.is_empty()) {
        match file.read(rest) {
            Ok(0) => break,
            Ok(n) => found += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}

/// The same array with its cells, now in column-major order, put into row-major order.
fn row_major(array: &Array, backing: &Backing) -> Result<Array, ArrayError> {
    let mut turned = Array::zeros_on(array.element(), array.shape(), backing)?;
    let to = turned.data_mut();
    each_cell!(DataRef, array.data(), _wrap(from) => transpose(array.shape(), from, to));
    Ok(turned)
}

/// Puts cells in column-major order into row-major order.
fn transpose<T: Cell>(shape: &[usize], from: &[T], mut to: DataMut<'_>) {
    // Both are of one type.
    if let Some(to) = T::of_mut(&mut to) {
        to.iter_mut().zip(in_row_major(shape, from)).for_each(|(to, cell)| *to = cell);
    }
}

/// Cells in column-major order, one after the other in row-major order.
fn in_row_major<T: Copy>(shape: &[usize], cells: &[T]) -> impl Iterator<Item = T> {
    let strides: Vec<usize> = shape
        .iter()
        .scan(1usize, |stride, &extent| {
            let own = *stride;
            *stride *= extent;
            Some(own)
        })
        .collect();
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    (0..cells.len()).filter_map(move |_| {
        let cell = cells.get(at).copied();
        for ((i, &extent), &stride) in index.iter_mut().zip(shape).zip(&strides).rev() {
            *i += 1;
            at += stride;
            if *i < extent {
                break;
            }
            at -= stride * extent;
            *i = 0;
        }
        cell
    })
}

/// Bytes of the data; `None` where that overflows.
fn bytes_of(shape: &[usize], element: Element) -> Option<u64> {
    shape.iter().try_fold(element.size() as u64, |n, &extent| n.checked_mul(extent as u64))
}

fn truncated(path: &Path, found: u64, wanted: u64, shape: &[usize], element: Element) -> NpyError {
    NpyError::Truncated {
        path: path.to_path_buf(),
        found,
        wanted,
        shape: shape_text(shape),
        element,
    }
}
