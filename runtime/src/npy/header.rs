//! The header of a `.npy` file: read within limits, and its types.
//!
//! The library that parses a header takes twice as long for each bracket inside another, and holds
//! it several times over. A header is therefore measured before it is parsed.

use super::error::NpyError;
use crate::array::Element;
use crate::cell::Layout;
use npyz::{DType, Endianness, NpyHeader, TypeChar};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Bytes of a header at most: NumPy's own limit (`max_header_size` of `numpy.load`).
const MOST_BYTES: usize = 10_000;

/// Structs inside each other at most.
pub const MOST_STRUCTS: usize = 4;

/// Brackets inside each other at most: two for a struct, the header's own, and a shape's.
const MOST_DEPTH: usize = 2 * MOST_STRUCTS + 2;

/// Characters of a type in a header at most. The other bytes are for the shape.
pub const MOST_DESCRIPTION: usize = 9_000;

/// NumPy's name of `bool`.
pub const BOOL: &str = "|b1";

/// Characters of a type in a message.
const MOST_SHOWN: usize = 120;

/// Magic string and version.
const PREAMBLE: usize = 8;

/// Opens a file and reads its header; the file is then at its data.
pub fn open(path: &Path) -> Result<(BufReader<File>, NpyHeader), NpyError> {
    let fail = |source| NpyError::Read { path: path.to_path_buf(), source };
    let damaged = |message| NpyError::Header { path: path.to_path_buf(), message };
    let mut file = BufReader::new(File::open(path).map_err(fail)?);
    let bytes = measured(&mut file).map_err(fail)?.map_err(damaged)?;
    let header = NpyHeader::from_reader(bytes.as_slice());
    Ok((file, header.map_err(|error| damaged(header_message(&error)))?))
}

/// The bytes of the header, no more than allowed; else what is wrong.
fn measured(file: &mut impl Read) -> io::Result<Result<Vec<u8>, String>> {
    let mut bytes = Vec::new();
    file.take(PREAMBLE as u64).read_to_end(&mut bytes)?;
    // The length has 2 bytes in version 1, and 4 in later ones.
    let width = if bytes.get(6) == Some(&1) { 2 } else { 4 };
    file.take(width).read_to_end(&mut bytes)?;
    let length = bytes.get(PREAMBLE..).unwrap_or_default();
    let length = length.iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte));
    if !bytes.starts_with(b"\x93NUMPY") {
        return Ok(Ok(bytes));
    }
    if length > MOST_BYTES {
        return Ok(Err(format!("its header has {length} bytes, more than {MOST_BYTES}")));
    }
    file.take(length as u64).read_to_end(&mut bytes)?;
    let text = bytes.get(PREAMBLE + width as usize..).unwrap_or_default();
    if depth(text) > MOST_DEPTH {
        let words =
            format!("its header has brackets inside each other, more than {MOST_DEPTH} deep");
        return Ok(Err(words));
    }
    Ok(Ok(bytes))
}

/// How many brackets are open at once at most, those in quotes left out.
fn depth(text: &[u8]) -> usize {
    let (mut open, mut most, mut quote) = (0usize, 0, None);
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match (quote, byte) {
            (Some(_), b'\\') => drop(bytes.next()),
            (Some(mark), byte) if mark == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(*byte),
            (None, b'(' | b'[' | b'{') => {
                open += 1;
                most = most.max(open);
            }
            (None, b')' | b']' | b'}') => open = open.saturating_sub(1),
            (None, _) => {}
        }
    }
    most
}

/// The type of a cell in NumPy's words, little endian.
pub fn dtype(layout: &Layout) -> io::Result<DType> {
    let scalar = |descr: &str| {
        Ok(DType::new_scalar(descr.parse().map_err(|e| io::Error::other(format!("{e}")))?))
    };
    if let Some(element) = layout.complex() {
        return scalar(if element == Element::F32 { "<c8" } else { "<c16" });
    }
    Ok(match layout {
        Layout::Number(element) => scalar(element.descr())?,
        Layout::Bool => scalar(BOOL)?,
        Layout::Vec(count, of) => DType::Array(*count as u64, Box::new(dtype(of)?)),
        Layout::Struct(members) => {
            let member = |(name, layout): &(String, Layout)| {
                Ok(npyz::Field { name: name.clone(), dtype: dtype(layout)? })
            };
            DType::Record(members.iter().map(member).collect::<io::Result<_>>()?)
        }
    })
}

/// Characters of a type in a header.
pub fn description(layout: &Layout) -> usize {
    dtype(layout).map_or(usize::MAX, |dtype| dtype.descr().chars().count())
}

/// The type of a cell, and whether its bytes must be swapped on this machine.
pub fn element_of(dtype: &DType) -> Option<(Element, bool)> {
    let DType::Plain(plain) = dtype else {
        return None;
    };
    let kind = match plain.type_char() {
        TypeChar::Float => 'f',
        TypeChar::Int => 'i',
        TypeChar::Uint => 'u',
        TypeChar::RawData => 'V',
        _ => return None,
    };
    let name = format!("{kind}{}", plain.size_field());
    let element = Element::ALL.into_iter().find(|one| one.descr().get(1..) == Some(&name))?;
    let swapped = match plain.endianness() {
        Endianness::Little => cfg!(target_endian = "big"),
        Endianness::Big => cfg!(target_endian = "little"),
        Endianness::Irrelevant => false,
    };
    Some((element, swapped))
}

/// A type in NumPy's words; of a long one the beginning.
pub fn shown(dtype: &DType) -> String {
    let mut text = dtype.descr();
    if let Some((end, _)) = text.char_indices().nth(MOST_SHOWN) {
        text.truncate(end);
        text.push_str("...");
    }
    text
}

/// The fault of a header, in one line.
fn header_message(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return "it ends within its header".to_string();
    }
    // The parser of the header's dictionary reports over several lines with a caret.
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_end_matches(':').to_string()
}
