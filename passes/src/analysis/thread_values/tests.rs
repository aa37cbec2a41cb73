//! Values of a block of 8 x 4 threads, worked by hand.

use super::*;

/// The values named `%v0`, `%v1`, ... of a kernel of 8 x 4 threads, for 64 places.
fn check(body: &str, test: impl for<'c> FnOnce(&ThreadValues<'c>, &[Val<'c>])) {
    let context = stencil_dialects::context().unwrap();
    let text = format!(
        "gpu.module @m {{ gpu.func @f(%n: index) kernel attributes {{known_block_size = \
         array<i32: 8, 4, 1>}} {{\n%c8 = arith.constant 8 : index\n%c32 = arith.constant 32 : \
         index\n%x = gpu.thread_id x\n%y = gpu.thread_id y\n%b = gpu.block_id x\n{body}\n\
         gpu.return\n}} }}"
    );
    let module = mlir::parse_module(&context, &text, "kernel.mlir").unwrap();
    let kernel = mlir::walk(mlir::module_op(&module))
        .into_iter()
        .find(|op| mlir::name(*op) == "gpu.func")
        .unwrap();
    let values = ThreadValues::of(kernel, [8, 4, 1], 64);
    let made = mlir::operations(mlir::entry(kernel).unwrap()).into_iter();
    let made: Vec<_> = made.flat_map(mlir::results).skip(5).collect();
    test(&values, &made);
}

#[test]
fn a_thread_s_number_is_its_place_and_goes_on_behind_the_block() {
    let body = "%v0 = arith.muli %y, %c8 : index\n%v1 = arith.addi %v0, %x : index";
    check(body, |values, made| {
        assert!(values.number(made[1]).unwrap().is_place());
        assert_eq!(values.number(made[0]).unwrap().at[63], 56);
    });
}

#[test]
fn what_is_uniform_stays_a_term_with_its_factor() {
    let body = "%v0 = arith.muli %b, %c32 : index\n%v1 = arith.addi %v0, %x : index\n\
                %v2 = arith.remui %v1, %c8 : index\n%v3 = arith.divui %n, %c8 : index";
    check(body, |values, made| {
        let number = values.number(made[1]).unwrap();
        assert_eq!(number.terms.values().collect::<Vec<_>>(), [&32]);
        assert_eq!(number.at[..10], [0, 1, 2, 3, 4, 5, 6, 7, 0, 1]);
        // The block number is a multiple of 32 times itself, the thread's number is not.
        assert_eq!(values.multiples(&values.number(made[0]).unwrap(), 4), Some(Vec::new()));
        assert_eq!(values.number(made[2]), None);
        assert!(values.form(made[3]).unwrap().is_uniform());
    });
}

#[test]
fn a_number_without_its_remainder_is_a_multiple() {
    let body = "%v0 = arith.remui %n, %c32 : index\n%v1 = arith.subi %n, %v0 : index\n\
                %v2 = arith.addi %n, %c8 : index";
    check(body, |values, made| {
        let multiples = |at: usize| values.multiples(&values.number(made[at]).unwrap(), 4);
        assert_eq!(multiples(1), Some(Vec::new()));
        assert_eq!(multiples(2).map(|values| values.len()), Some(1));
    });
}
