//! `vectorize-copies`: copies of single elements from global to shared memory become copies of
//! vectors of 16 bytes.
//!
//! Needs: `gpu.func`s of any compiler with `known_block_size`; `canonicalize` and `cse` before.
//! Guarantees: the same values in shared memory between the same barriers, so results are the same
//! bit for bit. Each vector access is aligned. Where alignment depends on run-time sizes or on the
//! address of an array, the kernel checks it at run time by a branch that is the same for all
//! threads of a block. The other side of the branch has the copies of single elements. A second run
//! changes nothing.
//!
//! ```text
//! %t = gpu.thread_id x                          // of 64 threads
//! %a = memref.load %A[%row, %t]                 // and at %t + 64, %t + 128, %t + 192
//! memref.store %a, %s[%t]
//! gpu.barrier
//! ```
//! becomes
//! ```text
//! %v = arith.muli %t, %c4
//! %a:4 = scf.if %aligned { %w = vector.load %A[%row, %v]; yield its elements } else { as before }
//! scf.if %aligned { vector.store %w, %s[%v] } else { as before }
//! gpu.barrier
//! ```
//!
//! `%aligned` holds if the lengths of rows are multiples of 4 elements and the address of `%A` is a
//! multiple of 16 bytes. An array with `llvm.align` needs no check of its address. A shared buffer
//! with vector accesses gets `llvm.align`.
//!
//! Copies that `vector_copies.rs` cannot prove safe stay unchanged. So do copies to rows of a
//! shared buffer that are no multiple of 16 bytes (`bank-pad` may add one word), copies in a loop
//! over a thread's elements, and elements that fill no whole vector. Where neighbouring elements go
//! to a column of the shared buffer, only the loads become vectors. `bank-pad` comes first, since
//! it decides the rows. `eliminate-barriers` comes later, since the proof needs its barriers.

use crate::analysis::memory_effects::structured_kernels;
use crate::analysis::shared_copies::{self, ElementCopy, Site};
use crate::analysis::thread_values::{self, ThreadValues};
use crate::analysis::vector_copies;
use crate::gpu::vector_copy::VectorCopy;
use crate::kernel::lanes::WIDEST;
use crate::options::Options;
use crate::pass::{Info, Pass};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{Module, ShapedTypeLike, Type, ValueLike};
use std::collections::BTreeMap;
use std::rc::Rc;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "vectorize-copies",
    summary: "copy 16 bytes at a time from global to shared memory",
    options: &[],
    read: |_: &Options| Ok(Box::new(VectorizeCopies)),
};

/// The pass.
pub struct VectorizeCopies;

impl Pass for VectorizeCopies {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let mut kernels = structured_kernels(module).into_iter();
        kernels.try_for_each(|kernel| vectorize(context, kernel))
    }
}

fn vectorize<'c>(context: &'c Context, kernel: Op<'c>) -> Result<(), Error> {
    let Some(threads) = thread_values::threads(kernel) else { return Ok(()) };
    let count = usize::try_from(threads.iter().product::<i64>()).unwrap_or(0);
    let mut alike: BTreeMap<_, Vec<ElementCopy>> = BTreeMap::new();
    for copy in shared_copies::of(kernel) {
        let Some(width) = width(&copy) else { continue };
        alike.entry((width, places(&copy))).or_default().push(copy);
    }
    let mut of_width = BTreeMap::new();
    let mut found = Vec::new();
    for ((width, _), copies) in alike {
        let make = || Rc::new(ThreadValues::of(kernel, threads, count * width));
        let values = Rc::clone(of_width.entry(width).or_insert_with(make));
        found.push((vector_copies::groups(kernel, &values, &copies, width, count), values));
    }
    for (groups, values) in &found {
        let mut left = groups.as_slice();
        while let Some((group, later)) = left.split_first() {
            VectorCopy { context, kernel, threads, values, group, later }.replace()?;
            left = later;
        }
    }
    Ok(())
}

/// Elements of a vector for a copy; nothing where an element is as wide.
fn width(copy: &ElementCopy) -> Option<usize> {
    let load = copy.loads.first()?;
    let bits = i64::from(mlir::bit_width(element(load)?)?);
    let width = usize::try_from((bits % 8 == 0).then(|| WIDEST * 8 / bits)?).ok()?;
    (width > 1 && width.is_power_of_two() && bits.unsigned_abs().is_power_of_two()).then_some(width)
}

/// The type of an access's element.
pub fn element<'c>(site: &Site<'c>) -> Option<Type<'c>> {
    Some(MemRefType::try_from(site.memref.r#type()).ok()?.element())
}

/// The blocks and memrefs of a copy's accesses.
fn places(copy: &ElementCopy) -> Vec<(usize, usize)> {
    let sites = copy.loads.iter().chain(&copy.stores);
    let place = |site: &Site| {
        let block = site.op.block().map_or(0, |block| block.to_raw().ptr as usize);
        (block, mlir::key(site.memref))
    };
    sites.map(place).collect()
}
