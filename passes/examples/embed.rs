//! Another compiler that uses the passes: it has a context of its own, builds a stencil program by
//! the typed builders, runs our passes between upstream's, and prints PTX.
//!
//! ```text
//! cargo run --release -p stencil-passes --example embed
//! ```

use melior::Context;
use melior::dialect::DialectRegistry;
use melior::ir::{AffineExpr, AffineMap, Location, Module, Type};
use melior::utility::{register_all_dialects, register_all_llvm_translations, register_all_passes};
use stencil_dialects::attribute;
use stencil_dialects::builder::Builder;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;
use stencil_dialects::stencil::{self, Argument, Piece, Role};
use stencil_dialects::tiled::{self, Choice};
use stencil_passes::llvm::emit_ptx;
use stencil_passes::pass::Step;
use stencil_passes::pipeline;
use stencil_passes::runner::Runner;
use stencil_passes::schedule::tile_overlapped::TileOverlapped;
use stencil_passes::stencil::verify::StencilVerify;
use stencil_passes::strategies::block::lower_block::LowerBlock;
use stencil_passes::tiled::split_interior::SplitInterior;

fn main() -> Result<(), Error> {
    let context = context();
    stencil_dialects::load(&context)?;
    let mut module = smoothing(&context)?;

    let choice = Choice { tile: Some(vec![16, 64]), pyramid_height: Some(2), ..Choice::default() };
    let mut runner = Runner::default();
    runner.run(
        &context,
        &mut module,
        &[
            Step::upstream("func.func(sroa,canonicalize)"),
            Step::ours(StencilVerify),
            Step::ours(TileOverlapped { choice }),
            Step::ours(SplitInterior),
            Step::ours(LowerBlock::default()),
            Step::upstream("gpu.module(canonicalize,cse,loop-invariant-code-motion)"),
        ],
    )?;
    let index_width = tiled::index_width(&module);
    runner.run(&context, &mut module, &pipeline::nvvm(index_width))?;
    print!("{}", emit_ptx::emit(&context, &module, None)?.ptx()?);
    Ok(())
}

/// A context as any program that uses melior makes it.
fn context() -> Context {
    let registry = DialectRegistry::new();
    register_all_dialects(&registry);
    register_all_passes();
    // The runner collects diagnostics on the thread that runs the passes.
    let context = Context::new_with_threading(false);
    context.append_dialect_registry(&registry);
    context.load_all_available_dialects();
    register_all_llvm_translations(&context);
    context
}

/// Four neighbours times a weight, on the inner points of a grid of 512 x 1024:
/// `A[i, j] = w * (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1])`, 100 times.
fn smoothing(context: &Context) -> Result<Module<'_>, Error> {
    let location = Location::new(context, "smoothing", 1, 1);
    let module = Module::new(location);
    let builder = Builder::new(context, location, mlir::body(&module));
    // Maps have a symbol a run-time size, and there is none.
    let point = |values: [i64; 2]| {
        AffineMap::new(context, 0, 0, &values.map(|value| AffineExpr::constant(context, value)))
    };
    let steps = AffineMap::new(context, 0, 0, &[AffineExpr::constant(context, 100)]);
    let f32 = Type::float32(context);

    stencil::set_program(&builder, &module, &[], &[], steps);
    mlir::set_attribute(
        mlir::module_op(&module),
        "sym_name",
        attribute::string(context, "smoothing"),
    );
    stencil::grid(&builder, "G", point([0, 0]), point([511, 1023]))?;
    stencil::field(&builder, "A", "G", f32, Role::State, None)?;
    stencil::scalar(&builder, "w", f32, None)?;

    let mut arguments = vec![(Argument::Scalar("w"), f32)];
    for offset in [[-1, 0], [1, 0], [0, -1], [0, 1]] {
        arguments.push((Argument::Read { field: "A", offset: offset.to_vec() }, f32));
    }
    let (_, entry) = stencil::point_function(&builder, "smooth", &arguments, &[f32])?;
    let body = builder.at(entry);
    if let [weight, first, others @ ..] = mlir::arguments(entry).as_slice() {
        let sum =
            others.iter().try_fold(*first, |sum, cell| body.binary("arith.addf", sum, *cell))?;
        let result = body.binary("arith.mulf", *weight, sum)?;
        body.op("func.return", &[result], &[], &[])?;
    }

    let inner = Piece { function: "smooth", lower: point([1, 1]), upper: point([510, 1022]) };
    stencil::apply(&builder, &["A"], &[inner])?;
    Ok(module)
}

// What `tests/embed.rs` looks for in the PTX, by FileCheck:
// CHECK: .target sm_90
// CHECK: .visible .entry smoothing_2(
// CHECK: .maxntid 64, 4, 1
// Two rings around 16 x 64 cells.
// CHECK: .shared .align 16 .b8 {{.*}}[5440];
// CHECK: ld.global.nc
// CHECK: st.shared
// CHECK: bar.sync 0
// No operation was marked for contraction.
// CHECK-NOT: fma.rn
// CHECK: add.rn.f32
// CHECK: mul.rn.f32
// CHECK: st.global
// CHECK: .visible .entry smoothing_1(
// CHECK-NOT: .extern .func
