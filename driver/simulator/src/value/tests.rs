//! Values: widths, roundings, NaNs and conversions.

use super::*;

fn two(op: Binary, kind: Kind, a: u64, b: u64) -> u64 {
    let mut to = [0];
    binary(op, kind, &mut to, &[a], &[b]);
    to[0]
}

#[test]
fn integers_wrap_in_their_own_width() {
    assert_eq!(two(Binary::AddI, Kind::I32, i32::MAX as u64, 1) as i64, i64::from(i32::MIN));
    assert_eq!(two(Binary::MulI, Kind::I8, 100, 3) as i64, 44);
    assert_eq!(two(Binary::ShrU, Kind::I32, -1_i64 as u64, 28), 15);
    assert_eq!(two(Binary::ShrS, Kind::I32, -16_i64 as u64, 2) as i64, -4);
    assert_eq!(two(Binary::DivU, Kind::I32, -1_i64 as u64, 2), 0x7fff_ffff);
    assert_eq!(two(Binary::FloorDiv, Kind::Index64, -7_i64 as u64, 2) as i64, -4);
    assert_eq!(two(Binary::CeilDiv, Kind::Index64, 7, 2), 4);
    // The least integer has no opposite.
    let least = i64::MIN as u64;
    let third = 3_074_457_345_618_258_603;
    assert_eq!(two(Binary::CeilDiv, Kind::Index64, least, -3_i64 as u64), third);
    assert_eq!(two(Binary::CeilDiv, Kind::Index64, least, 2) as i64, -(1 << 62));
    assert_eq!(two(Binary::Mod, Kind::Index64, -1_i64 as u64, 8), 7);
    assert_eq!(two(Binary::DivS, Kind::I32, 5, 0), 0);
}

#[test]
fn f32_rounds_after_each_operation_and_fma_once() {
    let bits = |x: f32| u64::from(x.to_bits());
    let (a, b) = (1.0_f32 + f32::EPSILON, 1.0_f32 - f32::EPSILON);
    let product = two(Binary::MulF, Kind::F32, bits(a), bits(b));
    assert_eq!(f32::from_bits(product as u32), 1.0);
    let mut to = [0];
    fma(Kind::F32, &mut to, (&[bits(a)], &[bits(b)], &[bits(1.0)]), false, true);
    assert_eq!(f32::from_bits(to[0] as u32), -f32::EPSILON * f32::EPSILON);
}

#[test]
fn f16_rounds_after_each_operation_and_fma_once() {
    let bits = |x: f32| u64::from(f16::from_f32(x).to_bits());
    assert_eq!(two(Binary::AddF, Kind::F16, bits(2048.0), bits(1.0)), bits(2048.0));
    assert_eq!(two(Binary::AddF, Kind::F16, bits(65504.0), bits(65504.0)), bits(f32::INFINITY));
    let mut to = [0];
    fma(Kind::F16, &mut to, (&[bits(45.25)], &[bits(45.25)], &[bits(45.25)]), false, false);
    assert_eq!(to, [bits(2092.0)]);
    cast(
        Cast::Float,
        Kind::F64,
        Kind::F16,
        &mut to,
        &[(1.0 + 2.0_f64.powi(-11) + 2.0_f64.powi(-40)).to_bits()],
    );
    assert_eq!(to, [0x3c01]);
    cast(Cast::UnsignedToFloat, Kind::I32, Kind::F16, &mut to, &[-1_i64 as u64]);
    assert_eq!(to, [bits(f32::INFINITY)]);
}

#[test]
fn minima_and_nan() {
    let bits = |x: f32| u64::from(x.to_bits());
    assert!(
        f32::from_bits(two(Binary::Minimum, Kind::F32, bits(f32::NAN), bits(1.0)) as u32).is_nan()
    );
    assert_eq!(two(Binary::Minnum, Kind::F32, bits(f32::NAN), bits(1.0)), bits(1.0));
    assert_eq!(two(Binary::Minimum, Kind::F32, bits(0.0), bits(-0.0)), bits(-0.0));
    assert_eq!(two(Binary::Maximum, Kind::F32, bits(-0.0), bits(0.0)), bits(0.0));
}

#[test]
fn comparisons_know_nan_and_sign() {
    let mut to = [9];
    let nan = f64::NAN.to_bits();
    compare(Predicate::Float(6), Kind::F64, &mut to, &[nan], &[nan]); // one
    assert_eq!(to, [0]);
    compare(Predicate::Float(14), Kind::F64, &mut to, &[nan], &[0]); // une
    assert_eq!(to, [1]);
    compare(Predicate::Integer(6), Kind::I32, &mut to, &[1], &[-1_i64 as u64]); // ult
    assert_eq!(to, [1]);
}

#[test]
fn casts() {
    let mut to = [0];
    cast(Cast::Unsigned, Kind::I32, Kind::I64, &mut to, &[-1_i64 as u64]);
    assert_eq!(to, [0xffff_ffff]);
    cast(Cast::Bits, Kind::F32, Kind::I32, &mut to, &[0x8000_0000]);
    assert_eq!(to[0] as i64, i64::from(i32::MIN));
    cast(Cast::SignedToFloat, Kind::I64, Kind::F32, &mut to, &[(1 << 24) + 1]);
    assert_eq!(f32::from_bits(to[0] as u32), 16_777_216.0);
    cast(Cast::FloatToSigned, Kind::F64, Kind::I32, &mut to, &[1e10_f64.to_bits()]);
    assert_eq!(to[0] as i64, i64::from(i32::MAX));
}
