//! The header of a `.npy` file: read within limits, and its types.
//!
//! The library that parses a header takes twice as long for each bracket inside another, and holds
//! it several times over. A header is therefore measured before it is parsed. The library accepts
//! more than NumPy does; the rest is refused afterwards.

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
    let header = header.map_err(|error| damaged(header_message(&error)))?;
    as_numpy_reads(bytes.get(preamble(&bytes)..).unwrap_or_default()).map_err(damaged)?;
    Ok((file, header))
}

/// Bytes before the text of a header: its length has 2 bytes in version 1, and 4 in later ones.
fn preamble(bytes: &[u8]) -> usize {
    PREAMBLE + if bytes.get(6) == Some(&1) { 2 } else { 4 }
}

/// The bytes of the header, no more than allowed; else what is wrong.
fn measured(file: &mut impl Read) -> io::Result<Result<Vec<u8>, String>> {
    let mut bytes = Vec::new();
    file.take(PREAMBLE as u64).read_to_end(&mut bytes)?;
    let preamble = preamble(&bytes);
    file.take((preamble - PREAMBLE) as u64).read_to_end(&mut bytes)?;
    let length = bytes.get(PREAMBLE..).unwrap_or_default();
    let length = length.iter().rev().fold(0, |all, byte| all << 8 | usize::from(*byte));
    if !bytes.starts_with(b"\x93NUMPY") {
        return Ok(Ok(bytes));
    }
    if length > MOST_BYTES {
        return Ok(Err(format!("its header has {length} bytes, more than {MOST_BYTES}")));
    }
    file.take(length as u64).read_to_end(&mut bytes)?;
    let text = bytes.get(preamble..).unwrap_or_default();
    if tokens(text).iter().any(|token| token.depth > MOST_DEPTH) {
        let words =
            format!("its header has brackets inside each other, more than {MOST_DEPTH} deep");
        return Ok(Err(words));
    }
    Ok(Ok(bytes))
}

/// A quoted text, a word or number, or another character of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'t> {
    text: &'t [u8],
    /// How many brackets are open here, the token's own one included.
    depth: usize,
}

/// The tokens of a header's text, spaces left out.
fn tokens(text: &[u8]) -> Vec<Token<'_>> {
    let (mut tokens, mut depth, mut rest) = (Vec::new(), 0usize, text);
    while let Some(first) = rest.first() {
        let length = match first {
            b'\'' | b'"' => quoted(rest, *first),
            _ if is_word(first) => rest.iter().take_while(|byte| is_word(byte)).count(),
            _ => 1,
        };
        let (text, after) = rest.split_at(length);
        depth += usize::from(matches!(text, b"(" | b"[" | b"{"));
        if !first.is_ascii_whitespace() {
            tokens.push(Token { text, depth });
        }
        depth = depth.saturating_sub(usize::from(matches!(text, b")" | b"]" | b"}")));
        rest = after;
    }
    tokens
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}

/// Bytes of a quoted text at the beginning of `text`, both marks included.
fn quoted(text: &[u8], mark: u8) -> usize {
    let mut bytes = text.iter().enumerate().skip(1);
    while let Some((place, byte)) = bytes.next() {
        match *byte {
            b'\\' => drop(bytes.next()),
            byte if byte == mark => return place + 1,
            _ => {}
        }
    }
    text.len()
}

/// What the parser of headers accepts and NumPy refuses. `text` is a dictionary.
fn as_numpy_reads(text: &[u8]) -> Result<(), String> {
    let tokens = tokens(text);
    let words = |token: &Token| {
        let text = String::from_utf8_lossy(token.text);
        text.trim_matches(['\'', '"']).chars().take(MOST_SHOWN).collect::<String>()
    };
    let is_padded = |token: &&Token| {
        let digits = token.text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'_');
        digits
            && token.text.starts_with(b"0")
            && token.text.iter().any(|byte| matches!(byte, b'1'..=b'9'))
    };
    if let Some(number) = tokens.iter().find(is_padded) {
        return Err(format!("its header has the number {}, which begins with a 0", words(number)));
    }
    let pairs = tokens.windows(3).filter_map(|three| match three {
        [key, colon, value] if colon.text == b":" && colon.depth == 1 => Some((words(key), value)),
        _ => None,
    });
    let mut seen = Vec::new();
    for (key, value) in pairs {
        if !["descr", "fortran_order", "shape"].contains(&key.as_str()) {
            return Err(format!(
                "its header has the key '{key}', where descr, fortran_order and shape are wanted"
            ));
        }
        if seen.contains(&key) {
            return Err(format!("its header has the key '{key}' twice"));
        }
        if key == "shape" && value.text != b"(" {
            return Err("the shape in its header is no tuple, such as (7, 5)".to_owned());
        }
        seen.push(key);
    }
    Ok(())
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
    let text = error.to_string();
    if text.contains("must be string or list") {
        return "the type of a member in its header is a tuple; give the member's extents as one \
                shape, as in ('m', '<i4', (3, 2))"
            .to_string();
    }
    // The parser of the header's dictionary reports over several lines with a caret.
    text.lines().next().unwrap_or_default().trim_end_matches(':').to_string()
}
