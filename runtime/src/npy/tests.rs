//! `.npy` files: what is written is read, orders, and damaged files.

use super::*;
use crate::array::Backing;
use crate::array::{Array, Data, Element, bf16};
use crate::cell::Layout;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// An `.npy` file of version 1.0 made by hand, independent of the writer.
fn file(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> (TempDir, PathBuf) {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
    bytes.extend(u16::try_from(padded).unwrap().to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.resize(10 + padded - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(data);
    raw(&bytes)
}

fn raw(bytes: &[u8]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn error_of(file: (TempDir, PathBuf)) -> String {
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
        (Element::Bf16, vec![4, 3]),
        (Element::I8, vec![7]),
        (Element::U8, vec![7]),
        (Element::I16, vec![7]),
        (Element::U16, vec![7]),
    ] {
        let array = Array::noise(element, &shape, 1).unwrap();
        let path = folder.path().join(format!("{element}.npy"));
        write(&path, &array).unwrap();
        assert_eq!(read(&path).unwrap(), array);
        assert_eq!(std::fs::metadata(&path).unwrap().len() as usize % 64, array.bytes().len() % 64);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 12, "no temporary file is left");
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
fn short_numbers_have_the_names_of_numpy() {
    let read = |descr, data: &[u8]| read(&file(descr, "False", "(2,)", data).1).unwrap();
    assert_eq!(read("|u1", &[1, 255]), Array::new(vec![2], Data::U8(vec![1, 255])).unwrap());
    assert_eq!(read("|i1", &[1, 255]), Array::new(vec![2], Data::I8(vec![1, -1])).unwrap());
    assert_eq!(read(">u2", &[1, 2, 0, 3]), Array::new(vec![2], Data::U16(vec![258, 3])).unwrap());
    let halves = Array::new(vec![2], Data::Bf16([1.0, -2.5].map(bf16::from_f32).to_vec())).unwrap();
    // NumPy's own name of two bytes, and that of the package ml_dtypes.
    assert_eq!(read("|V2", &[0x80, 0x3f, 0x20, 0xc0]), halves);
    assert_eq!(read("<V2", &[0x80, 0x3f, 0x20, 0xc0]), halves);
}

/// Numbers are swapped as they are read; the message for other cells says how to do it.
#[test]
fn the_other_order_of_bytes_has_a_remedy() {
    let complex = |element| {
        Layout::Struct(vec![
            ("re".to_owned(), Layout::Number(element)),
            ("im".to_owned(), Layout::Number(element)),
        ])
    };
    let error = |descr| {
        let (_folder, path) = file(descr, "False", "(1,)", &[0; 16]);
        let text = read_records(&path, &complex(Element::F64), 1).unwrap_err().to_string();
        text.replace(&path.display().to_string(), "a.npy")
    };
    assert_eq!(
        error(">c16"),
        "a.npy holds cells of type '>c16' where '<c16' is wanted; save \
         a.astype(a.dtype.newbyteorder('<')), which swaps its bytes"
    );
    assert_eq!(
        error(">c8"),
        "a.npy holds cells of type '>c8' where '<c16' is wanted; convert it with numpy's astype"
    );
}

#[test]
fn an_empty_shape_does_not_hide_an_overflow() {
    let text = error_of(file("<f4", "True", "(9223372036854775807, 9223372036854775807, 0)", &[]));
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
        "a.npy holds cells of type <c8; a field is of f16, bf16, f32, f64, i8, i16, i32, i64, u8, \
         u16, u32, u64, bool, complex numbers, vecs or structs (convert it with numpy's astype)"
    );
    let huge = error_of(file("<f4", "False", "(9223372036854775807, 9223372036854775807)", &whole));
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
    assert!(text.starts_with("a.npy is no readable .npy file: ") && !text.contains('\n'), "{text}");
    assert!(
        read(Path::new("/no/such.npy"))
            .unwrap_err()
            .to_string()
            .starts_with("can't read /no/such.npy: ")
    );
}

/// NumPy refuses them too.
#[test]
fn headers_that_numpy_refuses_are_refused() {
    let shape = |shape| error_of(file("<f4", "False", shape, &[0; 24]));
    for (text, wanted) in [
        (shape("[2, 3]"), "the shape in its header is no tuple, such as (7, 5)"),
        (shape("(02, 3)"), "its header has the number 02, which begins with a 0"),
        (shape("(0_2, 3)"), "its header has the number 0_2, which begins with a 0"),
        (
            shape("(2, 3), 'more': {'shape': 1}"),
            "its header has the key 'more', where descr, fortran_order and shape are wanted",
        ),
        (shape("(2, 3), 5: 6"), "key is not string"),
        (shape("(2, 3), 'shape': (3, 2)"), "its header has the key 'shape' twice"),
    ] {
        let whole = format!("a.npy is no readable .npy file: {wanted}; write it with numpy.save");
        assert_eq!(text, whole);
    }
    assert!(read(&file("<f4", "False", "(0x2, 3, 1, 1_0, 00)", &[]).1).is_ok());
    assert!(read(&file("<f4", "False", "()", &[0; 4]).1).is_ok());
}

#[test]
fn type_and_rank_are_checked() {
    let (_folder, path) = file("<f4", "False", "(2, 3)", &[0; 24]);
    assert!(read_as(&path, Element::F32, 2, &Backing::Memory).is_ok());
    let text = read_as(&path, Element::F64, 2, &Backing::Memory).unwrap_err().to_string();
    assert!(
        text.ends_with("holds f32 cells where f64 is wanted; convert it with numpy's astype"),
        "{text}"
    );
    let text = read_as(&path, Element::F32, 3, &Backing::Memory).unwrap_err().to_string();
    assert!(text.ends_with("has 2 dimensions (2x3) where 3 are wanted; reshape it"), "{text}");
}

#[test]
fn a_place_that_is_missing_is_told() {
    let array = Array::zeros(Element::F32, &[1]).unwrap();
    let text = write(Path::new("/no/such/folder/a.npy"), &array).unwrap_err().to_string();
    assert!(text.starts_with("can't write /no/such/folder/a.npy: "), "{text}");
}

/// A header of structs inside each other, the innermost with so many members.
fn nested(depth: usize, members: usize) -> (TempDir, PathBuf) {
    let mut descr = "'<f4'".to_owned();
    for level in 0..depth {
        let count = if level == 0 { members } else { 1 };
        let members: Vec<_> = (0..count).map(|name| format!("('m{name}', {descr})")).collect();
        descr = format!("[{}]", members.join(", "));
    }
    let text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (1,)}}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(text.len()).unwrap().to_le_bytes());
    bytes.extend(text.as_bytes());
    raw(&bytes)
}

#[test]
fn deep_and_long_headers_are_refused_before_they_are_parsed() {
    let start = Instant::now();
    for (file, wanted) in [
        (nested(12, 1), "its header has brackets inside each other, more than 10 deep"),
        (nested(4, 1000), "its header has 16970 bytes, more than 10000"),
        (raw(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{"), "its header has 4294967295 bytes"),
    ] {
        let text = error_of(file);
        assert!(text.starts_with("a.npy is no readable .npy file: "), "{text}");
        assert!(text.contains(wanted), "{text}");
    }
    // The slowest header that is parsed.
    let text = error_of(nested(4, 550));
    assert!(text.starts_with("a.npy holds cells of type [('m0', [('m0', "), "{text}");
    assert!(text.len() < 300, "{text}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}

#[test]
fn brackets_in_names_are_no_depth() {
    let file = file("[((('); x = r'\\\\'", "False", "(3,)", &[]);
    assert!(!error_of(file).contains("deep"));
}
