//! Shapes of fields from sizes.

use super::program;
use crate::sizes::{check, extents};
use cranelift_entity::EntityRef;

const PLATE: &str = "param N\nparam M\ngrid G = [0..N-1, 1..2*M]\nfield A : f32 on G\n\
                     const field K : f32 on G\nfn f -> A [0, 1] = A[1, 0]\nsteps N - 3\n";

#[test]
fn sizes_give_the_shapes() {
    let plate = program(PLATE);
    let (n, m) = (crate::program::ParamId::new(0), crate::program::ParamId::new(1));
    let sizes = [(n, 7), (m, 5)].into();
    assert_eq!(extents(&plate, &sizes).unwrap()[crate::program::FieldId::new(1)], [7, 10]);
    check(&plate, &sizes, 1).unwrap();
}

#[test]
fn what_does_not_fit_is_named() {
    let plate = program(PLATE);
    let (n, m) = (crate::program::ParamId::new(0), crate::program::ParamId::new(1));
    let message = check(&plate, &[(n, 1), (m, 5)].into(), 1).unwrap_err().to_string();
    assert!(message.contains("N >= 2") && message.contains("here N = 1, M = 5"), "{message}");
    let message = extents(&plate, &[(n, 7)].into()).unwrap_err().to_string();
    assert!(message.contains("`M` is not known") && message.contains("-D M="), "{message}");
    let message = extents(&plate, &[(n, -1), (m, 5)].into()).unwrap_err().to_string();
    assert!(message.contains("`A` would have -1 cells"), "{message}");
}

#[test]
fn sizes_beyond_64_bits_are_refused() {
    let cube = program(
        "param N\ngrid G = [0..N-1, 0..N-1, 0..N-1]\nfield A : f32 on G\nfn f -> A [0, 0, 0] = \
         1\nsteps 1\n",
    );
    let id = crate::program::ParamId::new(0);
    assert!(extents(&cube, &[(id, 1 << 19)].into()).is_ok());
    assert!(extents(&cube, &[(id, 1 << 20)].into()).is_err());
    assert!(extents(&cube, &[(id, i64::MAX)].into()).is_err());
    let plate = program(PLATE);
    assert!(
        extents(&plate, &[(id, 1), (crate::program::ParamId::new(1), i64::MAX)].into()).is_err()
    );
}
