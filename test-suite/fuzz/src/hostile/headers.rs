//! Arrays whose header is damaged.

use super::PROGRAM;
use super::attempt::{Attempt, Class};
use super::folder::Thing;
use crate::random::Random;

const ROWS: usize = 6;
const COLUMNS: usize = 5;

/// A whole array of the program's shape.
pub fn array() -> Vec<u8> {
    file(1, &header("'<f4'", "(6, 5)"), &[0x3f; ROWS * COLUMNS * 4])
}

fn header(descr: &str, shape: &str) -> String {
    format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}")
}

/// The bytes of a file of a version.
fn file(version: u8, header: &str, cells: &[u8]) -> Vec<u8> {
    let before = if version == 1 { 10 } else { 12 };
    let length = (before + header.len() + 1).next_multiple_of(64) - before;
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    bytes.extend(&(length as u32).to_le_bytes()[..before - 8]);
    bytes.extend(header.bytes());
    bytes.resize(before + length - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(cells);
    bytes
}

/// An attempt of this class.
pub fn attempt(random: &mut Random) -> Attempt {
    let things = vec![
        ("p.stencil".to_owned(), Thing::File(PROGRAM.into())),
        ("a.npy".to_owned(), Thing::File(damaged(random))),
        ("b.npy".to_owned(), Thing::File(b"old\n".into())),
    ];
    let (field, other) = if random.percent(80) { ("A", "K") } else { ("K", "A") };
    let out = random.pick(&["b.npy", "c.npy"]);
    let mut attempt = Attempt::new(Class::Headers, "stencilc", things)
        .with(["run", "p.stencil", "--target=reference", "--in"])
        .with([format!("{field}=a.npy"), format!("--in={other}=zeros"), format!("--out=A={out}")]);
    attempt.outputs = vec![out.into()];
    attempt
}

fn damaged(random: &mut Random) -> Vec<u8> {
    let cells = [0x3f; ROWS * COLUMNS * 4];
    let version = random.pick(&[1, 1, 2, 3]);
    let mut bytes = match random.below(6) {
        0 => file(version, &header(&descr(random), "(6, 5)"), &cells),
        1 => file(version, &header("'<f4'", &shape(random)), &cells),
        2 => file(version, &deep(random), &cells),
        3 => file(version, &header(&descr(random), &shape(random)), &cells),
        _ => file(version, &header("'<f4'", "(6, 5)"), &cells),
    };
    match random.below(6) {
        0 => {
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len().min(100));
                bytes[at] ^= 1 << random.below(8);
            }
        }
        1 => bytes.truncate(random.below(bytes.len() + 1)),
        2 => {
            // Another length of the header.
            let length = random.pick(&[0_u32, 1, 53, 0xffff, 0x7fff_ffff, 0xffff_ffff]);
            let end = if version == 1 { 10 } else { 12 };
            bytes[8..end].copy_from_slice(&length.to_le_bytes()[..end - 8]);
        }
        3 => bytes.extend(vec![0; random.pick(&[1, 4, 5000])]),
        4 => bytes[6] = random.pick(&[0, 1, 2, 3, 4, 255]),
        _ => {}
    }
    bytes
}

fn descr(random: &mut Random) -> String {
    let plain = [
        "'<f8'",
        "'>f4'",
        "'|f4'",
        "'=f4'",
        "'<f2'",
        "'<i8'",
        "'|b1'",
        "'|O'",
        "'<U7'",
        "'|V0'",
        "'<M8[ns]'",
        "'<f99999999999999999999'",
        "'<f0'",
        "'<f-4'",
        "''",
        "'",
        "None",
        "4",
        "[]",
        "{}",
        "[('x', '<f4')]",
        "[('x', '<f4', (2, 2))]",
        "[('', '<f4')]",
        "('<f4', (2,))",
        "[('x', '<f4', (4294967296, 4294967296))]",
        "[('x', '<f4'), ('x', '<f4')]",
        "True",
    ];
    if random.percent(70) {
        return random.pick(&plain).to_owned();
    }
    // A type of types.
    let depth = random.pick(&[2, 3, 11, 12, 40, 3_000]);
    "[('a', ".repeat(depth) + "'<f4'" + &")]".repeat(depth)
}

fn shape(random: &mut Random) -> String {
    let numbers = [
        "0",
        "1",
        "5",
        "6",
        "-1",
        "30",
        "2147483648",
        "4294967296",
        "9223372036854775807",
        "18446744073709551616",
        "1.5",
        "'6'",
        "None",
        "",
        "0x6",
        "6L",
        "True",
        "()",
    ];
    match random.below(8) {
        0 => random.pick(&["", "6", "None", "[6, 5]", "(6 5)", "((6, 5))", "(,)", "()"]).to_owned(),
        1 => format!("({})", "1, ".repeat(random.pick(&[3, 33, 5_000]))),
        _ => {
            let count = random.pick(&[1, 2, 2, 2, 2, 3]);
            let list: Vec<_> = (0..count).map(|_| random.pick(&numbers)).collect();
            format!("({},)", list.join(", "))
        }
    }
}

/// A header that is deep, long, or no dictionary of the right members.
fn deep(random: &mut Random) -> String {
    let many = random.pick(&[5, 13, 100, 20_000]);
    match random.below(9) {
        0 => "(".repeat(many),
        1 => "{'descr': ".repeat(many),
        2 => format!("{}{}", "[".repeat(many), "]".repeat(many)),
        3 => header("'<f4'", "(6, 5)").repeat(2),
        4 => format!("{{{}}}", "'descr': '<f4', ".repeat(many)),
        5 => header("'<f4'", "(6, 5)").replace("False", random.pick(&["True", "0", "None", "x"])),
        6 => header("'<f4'", "(6, 5)").replace("'shape'", random.pick(&["'Shape'", "shape", "''"])),
        7 => header(&format!("'{}'", "f".repeat(many)), "(6, 5)"),
        _ => format!("{{'x{}': 1}}", "\\".repeat(many)),
    }
}
