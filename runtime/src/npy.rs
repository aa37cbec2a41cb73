//! `.npy` files in and out.
//!
//! Reading takes C and Fortran order and either byte order, and always gives a row-major array.
//! Writing gives C order, little endian, and leaves either the whole file or none.

use crate::array::{Array, ArrayError, Data, Element, each_cell, shape_text};
use crate::record::Layout;
use crate::whole_file::{self, write_whole};
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar, WriterBuilder};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file could not be read or written.
#[derive(Debug, Error)]
pub enum NpyError {
    /// The file can't be opened or read.
    #[error("can't read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file can't be written.
    #[error("can't write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is no `.npy` file, or its header is damaged.
    #[error("{} is no readable .npy file: {message}; write it with numpy.save", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// The type of its cells is none that a field can have.
    #[error("{} holds cells of type {found}; a field is of {} (convert it with numpy's \
        astype)", path.display(), element_names())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The type in NumPy's words.
        found: String,
    },
    /// The file ends early.
    #[error("{} is truncated: {found} bytes of data where {shape} {element} needs {wanted}; copy \
        or write it anew", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes of data found.
        found: u64,
        /// Bytes of data wanted.
        wanted: u64,
        /// The shape in its header.
        shape: String,
        /// The type in its header.
        element: Element,
    },
    /// The file goes on after its data.
    #[error("{} has bytes left after the data of {shape} {element}; it is damaged, write it \
        anew", path.display())]
    Trailing {
        /// The file.
        path: PathBuf,
        /// The shape in its header.
        shape: String,
        /// The type in its header.
        element: Element,
    },
    /// Another type than wanted.
    #[error("{} holds {found} cells where {wanted} is wanted; convert it with numpy's \
        astype", path.display())]
    Element {
        /// The file.
        path: PathBuf,
        /// Type of its cells.
        found: Element,
        /// Type wanted.
        wanted: Element,
    },
    /// Another number of dimensions than wanted.
    #[error("{} has {found} dimensions ({shape}) where {wanted} are wanted; reshape \
        it", path.display())]
    Rank {
        /// The file.
        path: PathBuf,
        /// Its number of dimensions.
        found: usize,
        /// Its shape.
        shape: String,
        /// Dimensions wanted.
        wanted: usize,
    },
    /// Cells of another type than wanted.
    #[error("{} holds cells of type {found} where {wanted} is wanted; make it with numpy.dtype, \
        without padding", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// The type in NumPy's words.
        found: String,
        /// The type wanted, likewise.
        wanted: String,
    },
    /// The numbers of a struct's cells in column-major order.
    #[error("{} holds structs in Fortran order; save numpy.ascontiguousarray of \
        it", path.display())]
    Fortran {
        /// The file.
        path: PathBuf,
    },
    /// Vecs of another length.
    #[error("{} has {found} numbers in its last dimension where vecs of {wanted} are wanted; \
        reshape it", path.display())]
    Lanes {
        /// The file.
        path: PathBuf,
        /// Extent of the last dimension.
        found: usize,
        /// Lanes wanted.
        wanted: usize,
    },
    /// The array can't be held.
    #[error("can't hold {}: {source}", path.display())]
    Array {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ArrayError,
    },
}

fn element_names() -> String {
    Element::ALL.map(Element::name).join(", ")
}

/// Reads an array of any supported type and shape.
///
/// # Errors
/// When the file is missing, damaged, truncated or of another type.
pub fn read(path: &Path) -> Result<Array, NpyError> {
    let fail = |source| NpyError::Read { path: path.to_path_buf(), source };
    let mut file = BufReader::new(File::open(path).map_err(fail)?);
    let header = NpyHeader::from_reader(&mut file)
        .map_err(|e| NpyError::Header { path: path.to_path_buf(), message: header_message(&e) })?;
    let (element, swapped) = element_of(&header.dtype()).ok_or_else(|| NpyError::Unsupported {
        path: path.to_path_buf(),
        found: header.dtype().descr().trim_matches('\'').to_string(),
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
            on_disk.len().saturating_sub(header_bytes(&mut file).map_err(fail)?),
            wanted,
            &shape,
            element,
        ));
    }

    let mut array = Array::zeros(element, &shape).map_err(no_array)?;
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
        Order::Fortran => row_major(array).map_err(no_array),
    }
}

/// Reads an array that must have the given type and number of dimensions.
///
/// # Errors
/// As [`read`], and when type or rank are others.
pub fn read_as(path: &Path, element: Element, rank: usize) -> Result<Array, NpyError> {
    let array = read(path)?;
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

/// The type of a cell in NumPy's words, little endian.
fn dtype(layout: &Layout) -> io::Result<DType> {
    Ok(match layout {
        Layout::Number(element) => DType::new_scalar(
            element.descr().parse().map_err(|e| io::Error::other(format!("{e}")))?,
        ),
        Layout::Vec(count, of) => DType::Array(*count as u64, Box::new(dtype(of)?)),
        Layout::Struct(members) => {
            let member = |(name, layout): &(String, Layout)| {
                Ok(npyz::Field { name: name.clone(), dtype: dtype(layout)? })
            };
            DType::Record(members.iter().map(member).collect::<io::Result<_>>()?)
        }
    })
}

/// Reverses the bytes of every number on a machine that is not little endian.
fn little_endian(layout: &Layout, cells: &mut [u8]) {
    fn sizes(layout: &Layout, all: &mut Vec<usize>) {
        match layout {
            Layout::Number(element) => all.push(element.size()),
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

/// Reads an array of structs: its shape, and the bytes of its cells. It must have the given type
/// and number of dimensions.
pub(crate) fn read_records(
    path: &Path,
    layout: &Layout,
    rank: usize,
) -> Result<(Vec<usize>, Vec<u8>), NpyError> {
    let fail = |source| NpyError::Read { path: path.to_path_buf(), source };
    let mut file = BufReader::new(File::open(path).map_err(fail)?);
    let header = NpyHeader::from_reader(&mut file)
        .map_err(|e| NpyError::Header { path: path.to_path_buf(), message: header_message(&e) })?;
    let wanted = dtype(layout).map_err(fail)?;
    if header.dtype() != wanted {
        let (found, wanted) = (header.dtype().descr(), wanted.descr());
        return Err(NpyError::Record { path: path.to_path_buf(), found, wanted });
    }
    let dimensions = header.shape();
    let shape: Vec<usize> = dimensions.iter().filter_map(|&n| usize::try_from(n).ok()).collect();
    if dimensions.len() != rank || shape.len() != rank {
        let (found, shape) = (dimensions.len(), shape_text(&shape));
        return Err(NpyError::Rank { path: path.to_path_buf(), found, shape, wanted: rank });
    }
    if header.order() == Order::Fortran && rank > 1 {
        return Err(NpyError::Fortran { path: path.to_path_buf() });
    }
    let mut cells = Vec::new();
    file.read_to_end(&mut cells).map_err(fail)?;
    let bytes = wanted
        .num_bytes()
        .and_then(|cell| shape.iter().try_fold(cell, |n, &extent| n.checked_mul(extent)));
    if bytes != Some(cells.len()) {
        let message = format!(
            "{} bytes of data do not fill {} of its cells",
            cells.len(),
            shape_text(&shape)
        );
        return Err(NpyError::Header { path: path.to_path_buf(), message });
    }
    little_endian(layout, &mut cells);
    Ok((shape, cells))
}

/// Writes cells of any type from their bytes: C order, little endian.
pub(crate) fn write_records(
    out: &mut dyn Write,
    layout: &Layout,
    shape: &[usize],
    cells: &[u8],
) -> io::Result<()> {
    let mut shape: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
    let mut cell = dtype(layout)?;
    // An array's type has no extents of its own: they are the last dimensions.
    while let DType::Array(count, of) = cell {
        shape.push(count);
        cell = *of;
    }
    let options = npyz::WriteOptions::new_header_only().dtype(cell).shape(&shape);
    let out = options.writer(out).write_header_only()?;
    if cfg!(target_endian = "little") {
        return out.write_all(cells);
    }
    let mut cells = cells.to_vec();
    little_endian(layout, &mut cells);
    out.write_all(&cells)
}

/// Writes an array: C order, little endian. The file appears whole or not at all.
///
/// # Errors
/// When the folder or the file can't be written.
pub fn write(path: &Path, array: &Array) -> Result<(), NpyError> {
    let layout = Layout::Number(array.element());
    write_whole(path, |file| write_records(file, &layout, array.shape(), array.bytes()))
        .map_err(|source| NpyError::Write { path: path.to_path_buf(), source })
}

/// Whether a file can lie there, as far as can be told before it is written: for a word before a
/// long run.
///
/// # Errors
/// Why it can't.
pub fn check_place(path: &Path) -> Result<(), NpyError> {
    let fail = |source| NpyError::Write { path: path.to_path_buf(), source };
    whole_file::check_place(path).map_err(fail)
}

/// The type of a cell, and whether its bytes must be swapped on this machine.
fn element_of(dtype: &DType) -> Option<(Element, bool)> {
    let DType::Plain(plain) = dtype else {
        return None;
    };
    let kind = match plain.type_char() {
        TypeChar::Float => 'f',
        TypeChar::Int => 'i',
        TypeChar::Uint => 'u',
        _ => return None,
    };
    let descr = format!("<{kind}{}", plain.size_field());
    let element = Element::ALL.into_iter().find(|element| element.descr() == descr)?;
    let swapped = match plain.endianness() {
        Endianness::Little => cfg!(target_endian = "big"),
        Endianness::Big => cfg!(target_endian = "little"),
        Endianness::Irrelevant => false,
    };
    Some((element, swapped))
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
fn row_major(array: Array) -> Result<Array, ArrayError> {
    fn transpose<T: Copy>(shape: &[usize], cells: &[T]) -> Vec<T> {
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
        let mut out = Vec::with_capacity(cells.len());
        while out.len() < cells.len() {
            out.extend(cells.get(at).copied());
            for ((i, &extent), &stride) in index.iter_mut().zip(shape).zip(&strides).rev() {
                *i += 1;
                at += stride;
                if *i < extent {
                    break;
                }
                at -= stride * extent;
                *i = 0;
            }
        }
        out
    }
    let (shape, data) = array.into_parts();
    let data = each_cell!(Data, data, wrap(v) => wrap(transpose(&shape, &v)));
    Array::new(shape, data)
}

fn header_bytes(file: &mut BufReader<File>) -> io::Result<u64> {
    io::Seek::stream_position(file)
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

fn header_message(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "it ends within its header".to_string();
    }
    // The parser of the header's dictionary reports over several lines with a caret.
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_end_matches(':').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An `.npy` file of version 1.0 made by hand, independent of the writer.
    fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let text =
            format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
        bytes.extend(u16::try_from(padded).unwrap().to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(10 + padded - 1, b' ');
        bytes.push(b'\n');
        bytes.extend(data);
        raw(&bytes)
    }

    fn raw(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    fn error_of(file: (tempfile::TempDir, PathBuf)) -> String {
        let text = read(&file.1).unwrap_err().to_string();
        text.replace(&file.1.display().to_string(), "a.npy")
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        for (element, shape) in [
            (Element::F32, vec![3, 5]),
            (Element::F64, vec![2, 3, 4]),
            (Element::I32, vec![7]),
            (Element::I64, vec![0, 2]),
            (Element::F16, vec![5, 3]),
            (Element::U32, vec![2, 2]),
            (Element::U64, vec![3]),
        ] {
            let array = Array::noise(element, &shape, 1).unwrap();
            let path = folder.path().join(format!("{element}.npy"));
            write(&path, &array).unwrap();
            assert_eq!(read(&path).unwrap(), array);
            assert_eq!(
                std::fs::metadata(&path).unwrap().len() as usize % 64,
                array.bytes().len() % 64
            );
        }
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            7,
            "no temporary file is left"
        );
    }

    #[test]
    fn orders_of_cells_and_bytes() {
        let little: Vec<u8> = (1..=6i32).flat_map(i32::to_le_bytes).collect();
        let big: Vec<u8> = (1..=6i32).flat_map(i32::to_be_bytes).collect();
        let rows = Array::new(vec![2, 3], Data::I32(vec![1, 2, 3, 4, 5, 6])).unwrap();
        let columns = Array::new(vec![2, 3], Data::I32(vec![1, 3, 5, 2, 4, 6])).unwrap();
        assert_eq!(read(&file("<i4", "False", "(2, 3)", &little).1).unwrap(), rows);
        assert_eq!(read(&file(">i4", "False", "(2, 3)", &big).1).unwrap(), rows);
        assert_eq!(read(&file("<i4", "True", "(2, 3)", &little).1).unwrap(), columns);
        assert_eq!(read(&file(">i4", "True", "(2, 3)", &big).1).unwrap(), columns);
    }

    #[test]
    fn an_empty_shape_does_not_hide_an_overflow() {
        let text =
            error_of(file("<f4", "True", "(9223372036854775807, 9223372036854775807, 0)", &[]));
        assert!(text.starts_with("can't hold a.npy: size overflow"), "{text}");
    }

    #[test]
    fn three_dimensions_in_fortran_order() {
        let cells: Vec<u8> = (0..24i32).flat_map(i32::to_le_bytes).collect();
        let array = read(&file("<i4", "True", "(2, 3, 4)", &cells).1).unwrap();
        for (i, j, k) in [(0, 0, 0), (1, 0, 0), (0, 2, 1), (1, 2, 3)] {
            assert_eq!(array.get((i * 3 + j) * 4 + k), Some((i + 2 * (j + 3 * k)) as f64));
        }
    }

    #[test]
    fn damaged_files_are_refused() {
        let whole = [0u8; 24];
        assert_eq!(
            error_of(file("<f4", "False", "(2, 3)", &whole[..23])),
            "a.npy is truncated: 23 bytes of data where 2x3 f32 needs 24; copy or write it anew"
        );
        assert_eq!(
            error_of(file("<f8", "False", "(1000000, 1000000)", &whole)),
            "a.npy is truncated: 24 bytes of data where 1000000x1000000 f64 needs 8000000000000; \
             copy or write it anew"
        );
        assert_eq!(
            error_of(file("<f4", "False", "(2, 2)", &whole)),
            "a.npy has bytes left after the data of 2x2 f32; it is damaged, write it anew"
        );
        assert_eq!(
            error_of(file("<c8", "False", "(3,)", &whole)),
            "a.npy holds cells of type <c8; a field is of f16, f32, f64, i32, i64, u32, u64 \
             (convert it with numpy's astype)"
        );
        let huge =
            error_of(file("<f4", "False", "(9223372036854775807, 9223372036854775807)", &whole));
        assert!(huge.starts_with("can't hold a.npy: size overflow"), "{huge}");
        assert_eq!(
            error_of(raw(b"\x93NUMPY\x01\x00\x76\x00{'descr'")),
            "a.npy is no readable .npy file: it ends within its header; write it with numpy.save"
        );
        assert_eq!(
            error_of(raw(b"PNG")),
            "a.npy is no readable .npy file: magic not found for NPY file; write it with numpy.save"
        );
        let text = error_of(file("<f4", "Perhaps", "(6,)", &whole));
        assert!(
            text.starts_with("a.npy is no readable .npy file: ") && !text.contains('\n'),
            "{text}"
        );
        assert!(
            read(Path::new("/no/such.npy"))
                .unwrap_err()
                .to_string()
                .starts_with("can't read /no/such.npy: ")
        );
    }

    #[test]
    fn type_and_rank_are_checked() {
        let (_folder, path) = file("<f4", "False", "(2, 3)", &[0; 24]);
        assert!(read_as(&path, Element::F32, 2).is_ok());
        let text = read_as(&path, Element::F64, 2).unwrap_err().to_string();
        assert!(
            text.ends_with("holds f32 cells where f64 is wanted; convert it with numpy's astype"),
            "{text}"
        );
        let text = read_as(&path, Element::F32, 3).unwrap_err().to_string();
        assert!(text.ends_with("has 2 dimensions (2x3) where 3 are wanted; reshape it"), "{text}");
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        std::fs::write(&path, "before").unwrap();
        let failure = write_whole(&path, |file| {
            file.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        });
        assert_eq!(failure.unwrap_err().to_string(), "disk full");
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let array = Array::zeros(Element::F32, &[1]).unwrap();
        let text = write(Path::new("/no/such/folder/a.npy"), &array).unwrap_err().to_string();
        assert!(text.starts_with("can't write /no/such/folder/a.npy: "), "{text}");
    }
}
