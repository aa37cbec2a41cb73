//! Small kernels by hand: every kind of error with its place, every counter with its number.

use crate::common::hand::Kernel;
use stencil_dialects::mlir;
use stencil_runtime::array::DataRef;
use stencil_simulator::error::Problem;
use stencil_simulator::{Options, Settings, Simulator};

const SHARED: &str = "%s: memref<64xf32, #gpu.address_space<workgroup>>";
const STORE_T: &str =
    "%v = arith.constant 1.0 : f32\nmemref.store %v, %B[%i] : memref<?xf32, strided<[1]>>\n";

fn with_store(body: &str) -> String {
    format!("{body}\n{STORE_T}")
}

#[test]
fn a_race_names_both_threads_and_operations() {
    let body = with_store(
        "memref.store %x, %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>\n%n = arith.addi \
         %t, %c1 : index\n\
         %y = memref.load %s[%n] : memref<64xf32, #gpu.address_space<workgroup>>",
    );
    let body = format!("%x = arith.constant 2.0 : f32\n{body}");
    let error = Kernel { shared: SHARED, ..Kernel::new(32, &body) }.error();
    assert_eq!(error.problem, Problem::Race);
    let other = error.other.as_ref().unwrap();
    assert_eq!(
        (error.thread.thread, other.thread.thread, other.write),
        ([0, 0, 0], [1, 0, 0], true)
    );
    assert!(
        error.operation.text.contains("memref.load")
            && other.operation.text.contains("memref.store"),
        "{error}"
    );
    assert!(error.operation.place.starts_with("hand.mlir:"), "{error}");
    let address = error.address.unwrap();
    assert_eq!(
        (address.buffer.as_str(), address.indices.as_slice(), address.byte, address.of),
        ("shared buffer 0", [1].as_slice(), 4, 256)
    );
}

#[test]
fn two_threads_that_store_to_one_cell_race_even_with_one_value() {
    let error = Kernel::new(
        32,
        "%v = arith.constant 1.0 : f32\nmemref.store %v, %B[%c0] : memref<?xf32, strided<[1]>>",
    )
    .error();
    assert_eq!((error.problem, error.thread.thread), (Problem::Race, [1, 0, 0]));
}

#[test]
fn blocks_of_one_launch_have_no_order() {
    let body = with_store(
        "%n = arith.addi %i, %size : index\n%in = arith.cmpi slt, %n, %N : index\nscf.if %in {\n\
        %z = arith.constant 3.0 : f32\n%q = arith.constant 0 : i32\nmemref.store %q, %F[%n] : \
        memref<?xi32, strided<[1]>>\n}\n\
        memref.store %one, %F[%i] : memref<?xi32, strided<[1]>>",
    );
    let kernel = Kernel { blocks: 4, cells: 128, ..Kernel::new(32, &body) };
    let error = kernel.error();
    assert_eq!(
        (error.problem, error.detail.as_str()),
        (Problem::Race, "blocks of one launch have no order")
    );
    // Whatever the host's threads did: always the first pair in order.
    for _ in 0..20 {
        assert_eq!(kernel.error(), error);
    }
    assert_eq!(
        (error.other.as_ref().unwrap().thread.block, error.thread.block),
        ([0, 0, 0], [1, 0, 0])
    );
}

#[test]
fn reads_of_unwritten_cells() {
    let body =
        with_store("%y = memref.load %s[%t] : memref<64xf32, #gpu.address_space<workgroup>>");
    assert_eq!(
        Kernel { shared: SHARED, ..Kernel::new(32, &body) }.error().problem,
        Problem::Unwritten
    );
    assert_eq!(
        Kernel::new(32, "%y = memref.load %B[%t] : memref<?xf32, strided<[1]>>").error().problem,
        Problem::Unwritten
    );
    // An output with a hole: found when it is read back.
    let hole = "%v = arith.constant 1.0 : f32\n%in = arith.cmpi ne, %t, %c1 : index\nscf.if %in \
        {\nmemref.store %v, %B[%i] : memref<?xf32, strided<[1]>>\n}";
    let error = Kernel::new(32, hole).error();
    assert_eq!(
        (error.problem, error.kernel.as_str(), error.address.unwrap().indices),
        (Problem::Unwritten, "k", vec![1])
    );
}

#[test]
fn bounds_are_those_of_the_memref_and_of_the_memory() {
    let body = with_store(
        "%n = arith.addi %t, %c1 : index\n%y = memref.load %A[%n] : memref<?xf32, strided<[1]>>",
    );
    let error = Kernel::new(32, &body).error();
    assert_eq!((error.problem, error.thread.thread), (Problem::OutOfBounds, [31, 0, 0]));
    assert_eq!(error.address.as_ref().unwrap().indices, [32]);
    // Inside the memory, but in another row than the memref says.
    let body = with_store(
        "%m = memref.reinterpret_cast %a to offset: [0], sizes: [4, 8], strides: [8, 1] : \
         memref<f32> to memref<4x8xf32>\n\
         %c8 = arith.constant 8 : index\n%y = memref.load %m[%c0, %c8] : memref<4x8xf32>",
    );
    assert_eq!(Kernel::new(32, &body).error().problem, Problem::OutOfBounds);
    // Inside the memref, but beyond the memory.
    let body = with_store(
        "%m = memref.reinterpret_cast %a to offset: [0], sizes: [64], strides: [1] : memref<f32> \
         to memref<64xf32>\n\
         %c40 = arith.constant 40 : index\n%y = memref.load %m[%c40] : memref<64xf32>",
    );
    assert_eq!(Kernel::new(32, &body).error().problem, Problem::OutOfBounds);
}

#[test]
fn prefetches_keep_to_the_bounds_and_count_nothing() {
    let prefetch = |index: &str| {
        with_store(&format!(
            "%n = arith.addi %t, %c1 : index\n\
             memref.prefetch %A[{index}], read, locality<2>, data : memref<?xf32, strided<[1]>>"
        ))
    };
    let error = Kernel::new(32, &prefetch("%n")).error();
    assert_eq!((error.problem, error.thread.thread), (Problem::OutOfBounds, [31, 0, 0]));
    let reads = |body: &str| Kernel::new(32, body).counts().global_read;
    assert_eq!(reads(&prefetch("%t")), reads(&with_store("")));
}

#[test]
fn vector_accesses_must_be_aligned() {
    let load = |index: &str| {
        with_store(&format!(
            "%y = vector.load %A[{index}] {{alignment = 16 : i64}} : memref<?xf32, strided<[1]>>, \
             vector<4xf32>"
        ))
    };
    assert_eq!(Kernel::new(32, &load("%c1")).error().problem, Problem::Misaligned);
    assert!(Kernel::new(32, &load("%c0")).run().is_ok());
    // Without a promised alignment it is four accesses of a word.
    let unaligned =
        with_store("%y = vector.load %A[%c1] : memref<?xf32, strided<[1]>>, vector<4xf32>");
    assert_eq!(Kernel::new(32, &unaligned).counts().global_read.requests, 4);
}

#[test]
fn barriers_and_shuffles_need_all_threads() {
    let body = with_store("scf.if %first {\ngpu.barrier\n}");
    let error = Kernel::new(64, &body).error();
    assert_eq!((error.problem, error.thread.thread), (Problem::DivergentBarrier, [0, 0, 0]));
    assert!(error.detail.contains("thread (1, 0, 0) does not"), "{error}");
    let body = with_store(
        "%x = arith.constant 2.0 : f32\nscf.if %first {\n%y, %ok = gpu.shuffle down %x, %one, %w : \
         f32\n}",
    );
    assert_eq!(Kernel::new(32, &body).error().problem, Problem::DivergentShuffle);
}

#[test]
fn writes_to_inputs_and_divisions_by_zero() {
    let body =
        "%v = arith.constant 1.0 : f32\nmemref.store %v, %A[%i] : memref<?xf32, strided<[1]>>";
    assert_eq!(Kernel::new(32, body).error().problem, Problem::ReadOnly);
    let body = with_store("%q = arith.divui %N, %t : index");
    let error = Kernel::new(32, &body).error();
    assert_eq!((error.problem, error.thread.thread), (Problem::DivisionByZero, [0, 0, 0]));
    // Threads that are not active don't divide.
    let body = with_store(
        "%in = arith.cmpi sgt, %t, %c0 : index\nscf.if %in {\n%q = arith.divui %N, %t : index\n}",
    );
    assert!(Kernel::new(32, &body).run().is_ok());
}

#[test]
fn narrow_indices_must_not_overflow() {
    let body = with_store("%k = arith.constant 100000 : index\n%q = arith.muli %k, %k : index");
    assert!(Kernel::new(32, &body).run().is_ok());
    let error = Kernel { narrow: true, ..Kernel::new(32, &body) }.error();
    assert_eq!(
        (error.problem, error.detail.as_str()),
        (Problem::IndexOverflow, "the value is 10000000000")
    );
    // Constants that the translator folds.
    let body = with_store(
        "%k = arith.constant 100000 : index\n\
         %q = affine.apply affine_map<(d) -> (d * 100000)>(%k)",
    );
    assert_eq!(Kernel { narrow: true, ..Kernel::new(32, &body) }.error().detail, error.detail);
}

#[test]
fn asynchronous_copies_are_there_after_the_wait_only() {
    const SHARED: &str = "%s: memref<32xf32, #gpu.address_space<workgroup>>";
    let kernel = |middle: &str| {
        format!(
            "%cp = nvgpu.device_async_copy %A[%t], %s[%t], 1 : memref<?xf32, strided<[1]>> to \
             memref<32xf32, #gpu.address_space<workgroup>>\n\
             %g = nvgpu.device_async_create_group %cp\n{middle}\n%y = memref.load %s[%t] : \
             memref<32xf32, #gpu.address_space<workgroup>>\n\
             memref.store %y, %B[%i] : memref<?xf32, strided<[1]>>"
        )
    };
    let early = kernel("");
    assert_eq!(
        Kernel { shared: SHARED, ..Kernel::new(32, &early) }.error().problem,
        Problem::Unwritten
    );
    let right = kernel("nvgpu.device_async_wait %g");
    let kernel_right = Kernel { shared: SHARED, ..Kernel::new(32, &right) };
    let counts = kernel_right.counts();
    assert_eq!(
        (counts.global_read.moved, counts.shared_write.moved, counts.shared_read.moved),
        (4, 1, 1)
    );
    assert!(kernel_right.result().iter().any(|cell| *cell != 0.0));
}

#[test]
fn a_deadlock_names_the_cycle() {
    // Each of two blocks waits for the other's flag before it signals its own.
    let body = with_store(
        "%other = arith.subi %c1, %bl : index\nscf.if %first {\n\"peer.wait\"(%F, %other, %one) : \
         (memref<?xi32, strided<[1]>>, index, i32) -> ()\n\
         \"peer.signal\"(%F, %bl, %one) : (memref<?xi32, strided<[1]>>, index, i32) -> ()\n}",
    );
    let error = Kernel { blocks: 2, cells: 64, ..Kernel::new(32, &body) }.error();
    assert_eq!(error.problem, Problem::Deadlock);
    let cycle: Vec<_> = error
        .cycle
        .iter()
        .map(|stuck| (stuck.block[0], stuck.flag.as_str(), stuck.waits_for.map(|block| block[0])))
        .collect();
    assert_eq!(cycle, [(0, "F[1]", Some(1)), (1, "F[0]", Some(0))], "{error}");
    // A flag's place may come from memory, in more than one word: -1.
    let shared = "%s: memref<1xi64, #gpu.address_space<workgroup>>";
    let body = body
        .replace(
            "scf.if %first {",
            "scf.if %first {\n%minus = arith.constant -1 : i64\nmemref.store %minus, %s[%c0] : \
             memref<1xi64, #gpu.address_space<workgroup>>",
        )
        .replace(
            "\"peer.signal\"(%F, %bl,",
            "%m = memref.load %s[%c0] : memref<1xi64, #gpu.address_space<workgroup>>\n\
             %mi = arith.index_cast %m : i64 to index\n%after = arith.addi %bl, %c1 : index\n\
             %own = arith.addi %after, %mi : index\n\"peer.signal\"(%F, %own,",
        );
    let wide = Kernel { shared, blocks: 2, cells: 64, ..Kernel::new(32, &body) }.error();
    assert_eq!(wide.cycle, error.cycle, "{wide}");
    // Fewer blocks on the device than a launch needs: the second block has no room.
    let body = with_store(
        "%other = arith.subi %c1, %bl : index\n%zero = arith.cmpi eq, %bl, %c0 : index\n%waits = \
         arith.andi %first, %zero : i1\nscf.if %waits {\n\
         \"peer.wait\"(%F, %c1, %one) : (memref<?xi32, strided<[1]>>, index, i32) -> ()\n}\n\
         scf.if %first {\n\"peer.signal\"(%F, %bl, %one) : (memref<?xi32, strided<[1]>>, index, \
         i32) -> ()\n}",
    );
    let kernel = Kernel { blocks: 2, cells: 64, ..Kernel::new(32, &body) };
    assert!(kernel.run().is_ok());
    let error =
        kernel.run_with(Settings { resident: Some(1), ..Settings::default() }).err().unwrap();
    assert_eq!(
        (error.problem, error.detail.as_str()),
        (Problem::Deadlock, "1 blocks wait, 1 more have no room on the device")
    );
}

#[test]
fn loops_end_for_each_thread_on_its_own() {
    // Thread t adds t times 2; swapped values come out crosswise.
    let body = "%z = arith.constant 0.0 : f32\n%two = arith.constant 2.0 : f32\n\
        %sum, %p, %q = scf.for %k = %c0 to %t step %c1 iter_args(%s = %z, %x = %z, %y = %two) -> \
        (f32, f32, f32) {\n\
        %n = arith.addf %s, %two : f32\nscf.yield %n, %y, %x : f32, f32, f32\n}\n\
        %r = arith.addf %sum, %p : f32\nmemref.store %r, %B[%i] : memref<?xf32, strided<[1]>>";
    let expected: Vec<_> =
        (0..32).map(|t| 2.0 * t as f32 + if t % 2 == 1 { 2.0 } else { 0.0 }).collect();
    assert_eq!(Kernel::new(32, body).result(), expected);
    let body = "%end = scf.while (%k = %c0) : (index) -> index {\n%go = arith.cmpi slt, %k, %t : \
        index\nscf.condition(%go) %k : index\n} do {\n\
        ^bb0(%k: index):\n%three = arith.constant 3 : index\n%n = arith.addi %k, %three : \
        index\nscf.yield %n : index\n}\n\
        %v = arith.index_cast %end : index to i32\n%r = arith.sitofp %v : i32 to f32\nmemref.store \
        %r, %B[%i] : memref<?xf32, strided<[1]>>";
    let expected: Vec<_> = (0..32_u32).map(|t| t.div_ceil(3) as f32 * 3.0).collect();
    assert_eq!(Kernel::new(32, body).result(), expected);
    let body = with_store("scf.for %k = %c0 to %N step %c0 {\n}");
    assert_eq!(Kernel::new(32, &body).error().problem, Problem::LoopStep);
}

#[test]
fn shuffles_move_values_within_a_warp() {
    let body = |mode: &str| {
        format!(
            "%v = arith.index_cast %t : index to i32\n%x = arith.sitofp %v : i32 to f32\n%y, %ok = \
             gpu.shuffle {mode} %x, %one, %w : f32\n\
             memref.store %y, %B[%i] : memref<?xf32, strided<[1]>>"
        )
    };
    let check = |mode: &str, source: fn(u32) -> u32| {
        let body = body(mode);
        let kernel = Kernel::new(64, &body);
        assert_eq!(
            kernel.result(),
            (0..64).map(|t| (t / 32 * 32 + source(t % 32)) as f32).collect::<Vec<_>>(),
            "{mode}"
        );
        assert_eq!(kernel.counts().shuffles, 2);
    };
    check("up", |lane| lane.saturating_sub(1));
    check("down", |lane| (lane + 1).min(31));
    check("xor", |lane| lane ^ 1);
    check("idx", |_| 1);
}

#[test]
fn vectors_are_their_elements() {
    let body = "%c4 = arith.constant 4 : index\n%p = arith.muli %t, %c4 : index\n\
        %v = vector.load %A[%p] {alignment = 16 : i64} : memref<?xf32, strided<[1]>>, \
        vector<4xf32>\n\
        %two = arith.constant dense<2.0> : vector<4xf32>\n%m = arith.mulf %v, %two : \
        vector<4xf32>\n\
        %r = vector.shuffle %m, %m [3, 2, 1, 0] : vector<4xf32>, vector<4xf32>\n\
        %e:4 = vector.to_elements %r : vector<4xf32>\n%x = vector.from_elements %e#0, %e#1, %e#2, \
        %e#3 : vector<4xf32>\n\
        %y = vector.extract %x[0] : f32 from vector<4xf32>\n%z = vector.insert %y, %x [0] : f32 \
        into vector<4xf32>\n\
        vector.store %z, %B[%p] {alignment = 16 : i64} : memref<?xf32, strided<[1]>>, \
        vector<4xf32>";
    let kernel = Kernel { cells: 128, ..Kernel::new(32, body) };
    let outcome = kernel.run().unwrap_or_else(|error| panic!("{error}"));
    let DataRef::F32(cells) = outcome.outputs["B"].data() else { panic!("B is f32") };
    // The field's own noise is that of seed 7 (see `bind`).
    let noise =
        stencil_runtime::array::Array::noise(stencil_runtime::array::Element::F32, &[128], 7)
            .unwrap();
    let DataRef::F32(noise) = noise.data() else { panic!("noise is f32") };
    for (place, cell) in cells.iter().enumerate() {
        assert_eq!(*cell, noise[place / 4 * 4 + 3 - place % 4] * 2.0);
    }
    let counts = outcome.report.total();
    // 32 threads x 16 bytes: 512 bytes, 16 sectors; 4 products a thread.
    assert_eq!(
        (
            counts.global_read.requests,
            counts.global_read.moved,
            counts.global_write.moved,
            counts.flops.mul
        ),
        (1, 16, 16, 128)
    );
}

#[test]
fn contraction_rounds_once_where_it_is_asked_for_and_allowed() {
    // (1 + e)(1 - e) - 1 is 0 when the product rounds, and -e^2 when it does not.
    let body = |flags: &str| {
        format!(
            "%x = arith.constant 0x3F800001 : f32\n%y = arith.constant 0x3F7FFFFE : f32\n%o = \
             arith.constant 1.0 : f32\n\
             %m = arith.mulf %x, %y {flags} : f32\n%s = arith.subf %m, %o {flags} : \
             f32\nmemref.store %s, %B[%i] : memref<?xf32, strided<[1]>>"
        )
    };
    let run = |flags: &str, contract: bool| {
        let body = body(flags);
        let outcome = Kernel::new(32, &body)
            .run_as(Options { contract, ..Options::default() })
            .unwrap_or_else(|error| panic!("{error}"));
        outcome.outputs["B"].get(0).unwrap()
    };
    assert_eq!(run("fastmath<contract>", false), 0.0);
    assert_eq!(run("", true), 0.0);
    assert_eq!(run("fastmath<contract>", true), -(f64::from(f32::EPSILON).powi(2)));
}

#[test]
fn flops_by_kind() {
    let body = "%x = memref.load %A[%t] : memref<?xf32, strided<[1]>>\n%m = arith.mulf %x, %x \
        fastmath<contract> : f32\n\
        %s = arith.addf %m, %x fastmath<contract> : f32\n%d = arith.divf %s, %x : f32\n%q = \
        math.sqrt %d : f32\n%e = math.exp %q : f32\n\
        %g = math.fma %e, %x, %s : f32\n%n = arith.mulf %g, %x : f32\n%o = arith.subf %n, %x : \
        f32\nmemref.store %o, %B[%i] : memref<?xf32, strided<[1]>>";
    let flops = Kernel::new(32, body).counts().flops;
    // The first product and sum may be one operation; the last two may not.
    assert_eq!(
        (flops.add, flops.mul, flops.fma, flops.div, flops.sqrt, flops.special),
        (32, 32, 64, 32, 32, 32)
    );
    assert_eq!(flops.total(), 32 * (1 + 1 + 4 + 1 + 1 + 1));
}

#[test]
fn shared_traffic_of_a_padded_and_of_a_plain_column() {
    let column = |pitch: u32| {
        let ty = format!("memref<32x32xf32, strided<[{pitch}, 1]>, #gpu.address_space<workgroup>>");
        let body = with_store(&format!(
            "%x = arith.constant 2.0 : f32\nmemref.store %x, %s[%t, %c0] : {ty}"
        ));
        let shared = format!("%s: {ty}");
        Kernel { shared: &shared, ..Kernel::new(32, &body) }.counts().shared_write
    };
    let (plain, padded) = (column(32), column(33));
    assert_eq!((plain.moved, plain.ideal, plain.worst), (32, 1, 32));
    assert_eq!((padded.moved, padded.ideal, padded.worst), (1, 1, 1));
}

#[test]
fn every_block_order_gives_the_same() {
    let body = with_store("");
    let kernel = Kernel { blocks: 9, cells: 288, ..Kernel::new(32, &body) };
    let by_number = kernel.run().unwrap_or_else(|error| panic!("{error}"));
    for seed in 0..3 {
        let other = kernel
            .run_with(Settings { seed: Some(seed), workers: 1, ..Settings::default() })
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (other.report, other.outputs),
            (by_number.report.clone(), by_number.outputs.clone())
        );
    }
}

#[test]
fn unknown_operations_are_refused_by_name() {
    let context = stencil_dialects::context().unwrap();
    let body = with_store("%x = memref.alloca() : memref<4xf32>");
    let text = Kernel::new(32, &body).text();
    let module = mlir::parse_module(&context, &text, "hand.mlir").unwrap();
    let error = Simulator::new(&module, Options::default()).err().unwrap().to_string();
    assert!(error.contains("hand.mlir:21:") && error.contains("memref.alloca"), "{error}");
}
