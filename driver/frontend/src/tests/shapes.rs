//! Sizes from the shapes of arrays.

use super::program;
use crate::sizes::{check, extents, solve, steps};
use cranelift_entity::EntityRef;

const PLATE: &str = "param N\nparam M\ngrid G = [0..N-1, 1..2*M]\nfield A : f32 on G\n\
                     const field K : f32 on G\nfn f -> A [0, 1] = A[1, 0]\nsteps N - 3\n";

#[test]
fn shapes_give_the_sizes() {
    let plate = program(PLATE);
    let sizes = solve(&plate, &[("A", &[7, 10]), ("K", &[7, 10])]).unwrap();
    assert_eq!(sizes.values().copied().collect::<Vec<_>>(), [7, 5]);
    assert_eq!(extents(&plate, &sizes).unwrap()[crate::program::FieldId::new(1)], [7, 10]);
    assert_eq!(steps(&plate, &sizes).unwrap(), 4);
    check(&plate, &sizes).unwrap();
}

#[test]
fn what_does_not_fit_is_named() {
    let plate = program(PLATE);
    let fails = |arrays: &[(&str, &[usize])], words: &[&str]| {
        let message = solve(&plate, arrays).unwrap_err().to_string();
        assert!(words.iter().all(|word| message.contains(word)), "{message}");
    };
    fails(&[("A", &[7, 10]), ("K", &[8, 10])], &["`K`", "8x10", "`A` makes N = 7"]);
    fails(&[("A", &[7, 9])], &["`A`", "9 in dimension 1", "2*M"]);
    fails(&[("A", &[7])], &["`A`", "2 dimensions"]);
    fails(&[("B", &[7])], &["no field `B`"]);
    fails(&[], &["`N` is not known", "-D N="]);
    let sizes = solve(&plate, &[("A", &[1, 10])]).unwrap();
    let message = check(&plate, &sizes).unwrap_err().to_string();
    assert!(message.contains("N >= 2") && message.contains("here N = 1, M = 5"), "{message}");
    assert!(steps(&plate, &sizes).is_err());
}

#[test]
fn sizes_beyond_64_bits_are_refused() {
    let cube =
        program("param N\ngrid G = [0..N-1, 0..N-1, 0..N-1]\nfield A : f32 on G\nfn f -> A [0, 0, 0] = 1\nsteps 1\n");
    let id = crate::program::ParamId::new(0);
    assert!(extents(&cube, &[(id, 1 << 19)].into()).is_ok());
    assert!(extents(&cube, &[(id, 1 << 20)].into()).is_err());
    assert!(extents(&cube, &[(id, i64::MAX)].into()).is_err());
    let plate = program(PLATE);
    assert!(extents(&plate, &[(id, 1), (crate::program::ParamId::new(1), i64::MAX)].into()).is_err());
}
