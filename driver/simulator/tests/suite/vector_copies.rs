//! `vectorize-copies` on the simulator: the same bits with fewer requests, whether rows are aligned
//! or not. A vector whose address is wrong would be a fault.

use crate::common::hand::Kernel;
use crate::nest_tiles::{Case, MM, run_with};
use stencil_runtime::array::DataRef;
use stencil_simulator::Counts;

/// Rows of `A` and `B` are multiples of 16 bytes.
const ALIGNED: Case =
    Case { arrays: &[("C", &[131, 140]), ("A", &[131, 20]), ("B", &[20, 140])], ..MM };

const TMV: Case = Case {
    program: "tmv",
    arrays: &[("x", &[140]), ("A", &[150, 140]), ("y", &[150])],
    scalars: &[],
    sizes: &[],
};

fn both(case: &Case) -> [Counts; 2] {
    let [one, other] = [true, false]
        .map(|single| run_with(case, |config| config.no_vector_copies = single, |t| t).unwrap());
    assert_eq!(one.0, other.0, "{}", case.program);
    [one.1, other.1]
}

#[test]
fn vectors_need_fewer_requests_where_rows_are_aligned() {
    // `B` and `C` have rows of 140 elements in both cases of a product, `A` of 21 or 20.
    for (case, least) in [(&TMV, 1.5), (&ALIGNED, 1.1), (&MM, 1.05)] {
        let [single, vectors] = both(case).map(|counts| counts.global_read);
        assert_eq!(single.bytes, vectors.bytes, "{}", case.program);
        let (before, after) = (single.requests as f64, vectors.requests as f64);
        assert!(before >= after * least, "{}: {before} and {after}", case.program);
    }
}

#[test]
fn no_row_is_aligned_in_an_array_with_odd_rows() {
    let odd = Case { arrays: &[("x", &[141]), ("A", &[150, 141]), ("y", &[150])], ..TMV };
    let [single, vectors] = both(&odd).map(|counts| counts.global_read);
    assert_eq!(single, vectors);
}

/// 256 cells are copied and read in reverse.
const COPY: &str = "
%n1 = arith.constant 64 : index
%n2 = arith.constant 128 : index
%n3 = arith.constant 192 : index
%last = arith.constant 255 : index
%t1 = arith.addi %t, %n1 : index
%t2 = arith.addi %t, %n2 : index
%t3 = arith.addi %t, %n3 : index
%v0 = memref.load %A[%t] : memref<?xf32, strided<[1]>>
%v1 = memref.load %A[%t1] : memref<?xf32, strided<[1]>>
%v2 = memref.load %A[%t2] : memref<?xf32, strided<[1]>>
%v3 = memref.load %A[%t3] : memref<?xf32, strided<[1]>>
memref.store %v0, %s[%t] : memref<256xf32, #gpu.address_space<workgroup>>
memref.store %v1, %s[%t1] : memref<256xf32, #gpu.address_space<workgroup>>
memref.store %v2, %s[%t2] : memref<256xf32, #gpu.address_space<workgroup>>
memref.store %v3, %s[%t3] : memref<256xf32, #gpu.address_space<workgroup>>
gpu.barrier
scf.for %k = %t to %N step %n1 {
  %r = arith.subi %last, %k : index
  %x = memref.load %s[%r] : memref<256xf32, #gpu.address_space<workgroup>>
  memref.store %x, %B[%k] : memref<?xf32, strided<[1]>>
}";

#[test]
fn a_kernel_by_hand_has_the_same_bits() {
    let shared = "%s: memref<256xf32, #gpu.address_space<workgroup>>";
    let run = |passes, narrow| {
        let kernel = Kernel::new(64, COPY);
        let outcome = Kernel { cells: 256, shared, passes, narrow, ..kernel }.run().unwrap();
        let DataRef::F32(cells) = outcome.outputs["B"].data() else { panic!("B is f32") };
        let bits: Vec<_> = cells.iter().map(|cell| cell.to_bits()).collect();
        (bits, outcome.report.total())
    };
    for narrow in [false, true] {
        let (plain, before) = run("", narrow);
        let (vectors, after) = run("builtin.module(vectorize-copies)", narrow);
        assert_eq!(plain, vectors);
        assert_eq!(before.global_read.requests, 4 * after.global_read.requests);
        assert_eq!(before.global_read.moved, after.global_read.moved);
        assert_eq!(before.shared_write.moved, after.shared_write.moved);
    }
}
