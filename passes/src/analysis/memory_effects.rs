//! What the operations of a kernel read and write, and whether the order of two accesses by
//! different threads of a block matters.
//!
//! Memory is told apart by what a memref stands on: a shared buffer that the kernel declares, a
//! part of dynamic shared memory, a thread's own buffer, an argument in global memory. Arguments
//! may be the same memory. An operation that is not known here may read and write everything.

use super::cast_layout::{self, Extent};
use super::{lane_addresses, lane_values};
use melior::ir::r#type::MemRefType;
use melior::ir::{Attribute, Module, ShapedTypeLike, ValueLike};
use std::collections::BTreeMap;
use std::ops::Range;
use stencil_dialects::attribute;
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::tiled::CONSTANT_SPACE;

/// What some operations do to memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    accesses: Vec<Access>,
    /// Whether an operation may do anything.
    unknown: bool,
}

/// A read or write of elements.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Access {
    place: Place,
    /// The memref.
    memref: usize,
    writes: bool,
    /// Of each index, the axis along which it is the thread's number. Nothing for vectors, which
    /// reach into the elements of others, and where different indices may mean one element.
    threads: Vec<Option<usize>>,
}

/// Where an access lies.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Memory of the thread alone.
    Own,
    /// A shared buffer, by its value.
    Shared(usize),
    /// Bytes of dynamic shared memory.
    Dynamic(Range<i64>),
    /// Global memory, by the value at its root.
    Global(usize),
}

impl Effects {
    /// Adds those of others.
    pub fn extend(&mut self, others: Self) {
        self.unknown |= others.unknown;
        self.accesses.extend(others.accesses.into_iter().filter(|one| one.place != Place::Own));
    }

    /// Whether nothing is read or written.
    fn is_empty(&self) -> bool {
        !self.unknown && self.accesses.is_empty()
    }

    /// Whether results may depend on the order of these and other effects, where they are those of
    /// different threads of a block that has threads along these axes.
    pub fn conflict(&self, others: &Self, axes: &[usize]) -> bool {
        self.meet(others, |one, other| !one.is_of_same_thread(other, axes))
    }

    /// The same, where it is open which thread makes these.
    pub fn may_meet(&self, others: &Self) -> bool {
        self.meet(others, |_, _| true)
    }

    fn meet(&self, others: &Self, counts: impl Fn(&Access, &Access) -> bool) -> bool {
        (self.unknown && !others.is_empty())
            || (others.unknown && !self.is_empty())
            || self.accesses.iter().any(|one| {
                others.accesses.iter().any(|other| {
                    (one.writes || other.writes)
                        && one.place.may_meet(&other.place)
                        && counts(one, other)
                })
            })
    }
}

impl Place {
    fn may_meet(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Shared(one), Self::Shared(other)) => one == other,
            (Self::Dynamic(one), Self::Dynamic(other)) => {
                one.start < other.end && other.start < one.end
            }
            (Self::Global(_), Self::Global(_)) => true,
            _ => false,
        }
    }
}

impl Access {
    /// Whether elements that both accesses reach belong to one thread: they are of one memref, and
    /// an index of both is the thread's number, for each axis.
    fn is_of_same_thread(&self, other: &Self, axes: &[usize]) -> bool {
        let same_shape = self.threads.len() == other.threads.len();
        let along = |axis: &usize| {
            let mut both = self.threads.iter().zip(&other.threads);
            both.any(|(one, other)| *one == Some(*axis) && other == one)
        };
        same_shape && self.memref == other.memref && axes.iter().all(along)
    }
}

/// The kernels of a module that have one basic block, so that control flow is all in operations.
pub fn structured_kernels<'c>(module: &Module<'c>) -> Vec<Op<'c>> {
    let all = mlir::walk(mlir::module_op(module)).into_iter();
    all.filter(|op| mlir::name(*op) == "gpu.func" && mlir::blocks(*op, 0).len() == 1).collect()
}

/// A kernel, with what its values come from.
pub struct Kernel<'c> {
    makers: BTreeMap<usize, Op<'c>>,
    /// The arguments of the kernel itself. Those of loops may be any of several buffers.
    arguments: Vec<Val<'c>>,
    /// The arguments that are the only way to their memory in a thread.
    alone: Vec<usize>,
}

impl<'c> Kernel<'c> {
    /// Reads a kernel.
    pub fn of(kernel: Op<'c>) -> Self {
        let makers = mlir::walk(kernel).into_iter().flat_map(|op| {
            mlir::results(op).into_iter().map(move |result| (mlir::key(result), op))
        });
        let arguments = mlir::entry(kernel).map(mlir::arguments).unwrap_or_default();
        let stated = mlir::attribute(kernel, "arg_attrs").and_then(attribute::as_array);
        let is_alone = |stated: &Attribute<'c>| attribute::entry(*stated, "llvm.noalias").is_some();
        let pairs = arguments.iter().zip(stated.unwrap_or_default());
        let alone = pairs.filter(|(_, stated)| is_alone(stated));
        let alone = alone.map(|(argument, _)| mlir::key(*argument)).collect();
        Self { makers: makers.collect(), arguments, alone }
    }

    /// Whether two memrefs have no element in common, as far as a thread's own accesses go. `false`
    /// means that nothing is known.
    pub fn are_disjoint(&self, one: Val<'c>, other: Val<'c>) -> bool {
        match (self.place(one), self.place(other)) {
            (Some(Place::Own), Some(Place::Own)) | (None, _) | (_, None) => false,
            (Some(Place::Global(one)), Some(Place::Global(other))) => {
                let is_argument = |key| self.arguments.iter().any(|value| mlir::key(*value) == key);
                one != other
                    && is_argument(one)
                    && is_argument(other)
                    && [one, other].iter().any(|key| self.alone.contains(key))
            }
            (Some(one), Some(other)) => !one.may_meet(&other),
        }
    }

    /// The effects of an operation and of all in it.
    pub fn effects(&self, op: Op<'c>) -> Effects {
        let mut all = Effects::default();
        for inner in mlir::walk(op) {
            match self.access(inner) {
                Known::Nothing => {}
                Known::Access(access) => {
                    all.extend(Effects { accesses: vec![access], unknown: false });
                }
                Known::Unknown => all.unknown = true,
            }
        }
        all
    }

    fn access(&self, op: Op<'c>) -> Known {
        let name = mlir::name(op);
        if is_free(name) {
            return Known::Nothing;
        }
        let operands = mlir::operands(op);
        let (place, writes) = match name {
            "memref.load" | "vector.load" => (0, false),
            "memref.store" | "vector.store" => (1, true),
            _ => return Known::Unknown,
        };
        let Some((memref, indices)) = operands.get(place..).and_then(<[Val<'c>]>::split_first)
        else {
            return Known::Unknown;
        };
        let Some(place) = self.place(*memref) else { return Known::Unknown };
        let thread = |index: &Val<'c>| self.thread_axis(*index);
        let apart = !name.starts_with("vector.") && self.are_apart(*memref);
        let threads = if apart { indices.iter().map(thread).collect() } else { Vec::new() };
        Known::Access(Access { place, memref: mlir::key(*memref), writes, threads })
    }

    /// Whether different indices of a memref are different elements: its rows lie one behind the
    /// other.
    pub fn are_apart(&self, memref: Val<'c>) -> bool {
        if lane_addresses::is_plain(memref) {
            return true;
        }
        let extents = lane_addresses::extents(memref);
        let view = self.makers.get(&mlir::key(memref));
        let view = view.filter(|op| mlir::name(**op) == "memref.reinterpret_cast");
        let strides = view.and_then(|op| mlir::attribute(*op, "static_strides"));
        let Some(strides) = strides.and_then(attribute::as_integers) else { return false };
        if view.is_some_and(|op| self.is_row_major(*op)) {
            return true;
        }
        // Each stride holds all that the faster dimensions reach. One that is not known, and the
        // stride above an extent that is not known, count as too small.
        let mut reach = 1_i64;
        strides.len() == extents.len()
            && strides.iter().zip(&extents).rev().all(|(stride, extent)| {
                let apart = *stride >= reach;
                reach = if *extent < 0 { i64::MAX } else { stride.saturating_mul(*extent) };
                apart
            })
    }

    /// Whether each stride of a view is the extent of the next dimension times that one's stride,
    /// as the text has them.
    fn is_row_major(&self, view: Op<'c>) -> bool {
        let Some((extents, strides)) = cast_layout::of(view) else { return false };
        let is_product = |stride: &Extent<'c>, factors: [&Extent<'c>; 2]| {
            let maker = stride.ok().and_then(|value| self.makers.get(&mlir::key(value)));
            let maker = maker.filter(|op| mlir::name(**op) == "arith.muli");
            maker.is_some_and(|op| match mlir::operands(*op)[..] {
                [left, right] => {
                    factors == [&Ok(left), &Ok(right)] || factors == [&Ok(right), &Ok(left)]
                }
                _ => false,
            })
        };
        let dense = |(strides, extent): (&[Extent<'c>], &Extent<'c>)| match strides {
            [stride, Err(1)] => stride == extent,
            [stride, inner] => is_product(stride, [extent, inner]),
            _ => false,
        };
        strides.last() == Some(&Err(1)) && strides.windows(2).zip(extents.iter().skip(1)).all(dense)
    }

    /// Where a memref lies; nothing where it is not known.
    fn place(&self, memref: Val<'c>) -> Option<Place> {
        let ty = MemRefType::try_from(memref.r#type()).ok()?;
        let space = ty.memory_space().map(|space| space.to_string()).unwrap_or_default();
        let Some(maker) = self.makers.get(&mlir::key(memref)) else {
            return match space.as_str() {
                "#gpu.address_space<private>" => Some(Place::Own),
                _ if !self.arguments.contains(&memref) => None,
                "#gpu.address_space<workgroup>" => Some(Place::Shared(mlir::key(memref))),
                "" | "#gpu.address_space<global>" => Some(Place::Global(mlir::key(memref))),
                _ => None,
            };
        };
        match mlir::name(*maker) {
            "memref.alloca" => Some(Place::Own),
            // Nothing stores to constant memory.
            "memref.get_global" => {
                let space = ty.memory_space().and_then(attribute::as_integer);
                (space == Some(CONSTANT_SPACE)).then_some(Place::Own)
            }
            "gpu.dynamic_shared_memory" => Some(Place::Dynamic(0..i64::MAX)),
            "memref.view" => {
                let operands = mlir::operands(*maker);
                let source = self.place(*operands.first()?)?;
                let (Place::Dynamic(all), [_, shift]) = (&source, operands.as_slice()) else {
                    return Some(source);
                };
                let own = self.bytes(ty, *shift, all.start);
                Some(own.map_or(source, Place::Dynamic))
            }
            "memref.subview"
            | "memref.cast"
            | "memref.reinterpret_cast"
            | "memref.memory_space_cast" => self.place(*mlir::operands(*maker).first()?),
            // A choice between two buffers in global memory, any of which may be any other.
            "arith.select" => {
                let places = mlir::operands(*maker).into_iter().skip(1).map(|one| self.place(one));
                let global = |place: &Option<Place>| matches!(place, Some(Place::Global(_)));
                let all = places.collect::<Vec<_>>();
                all.iter().all(global).then_some(Place::Global(mlir::key(memref)))
            }
            _ => None,
        }
    }

    /// The bytes of a view of dynamic shared memory, or of a part that begins there.
    fn bytes(&self, ty: MemRefType<'c>, shift: Val<'c>, begin: i64) -> Option<Range<i64>> {
        let shift = self.makers.get(&mlir::key(shift))?;
        let start = mlir::attribute(*shift, "value").and_then(attribute::as_integer)?;
        let start = start.checked_add(begin)?;
        let element = i64::from(mlir::bit_width(ty.element())?.div_ceil(8));
        let bytes = mlir::static_cells(ty.into())?.checked_mul(element)?;
        Some(start..start.checked_add(bytes)?)
    }

    /// The axis along which a value is the thread's number.
    fn thread_axis(&self, value: Val<'c>) -> Option<usize> {
        let maker = self.makers.get(&mlir::key(value))?;
        if mlir::name(*maker) == "gpu.thread_id" { lane_values::axis(*maker) } else { None }
    }
}

/// What is known of an operation.
enum Known {
    Nothing,
    Access(Access),
    Unknown,
}

/// Whether an operation itself reads and writes no memory.
pub fn is_free(name: &str) -> bool {
    let free = [
        "gpu.barrier",
        "gpu.block_dim",
        "gpu.block_id",
        "gpu.dynamic_shared_memory",
        "gpu.global_id",
        "gpu.grid_dim",
        "gpu.lane_id",
        "gpu.return",
        "gpu.shuffle",
        "gpu.subgroup_id",
        "gpu.subgroup_size",
        "gpu.thread_id",
        "affine.apply",
        "affine.max",
        "affine.min",
        "affine.yield",
        "memref.alloca",
        "memref.cast",
        "memref.dim",
        "memref.get_global",
        "memref.memory_space_cast",
        "memref.prefetch",
        "memref.reinterpret_cast",
        "memref.subview",
        "memref.view",
        "scf.condition",
        "scf.for",
        "scf.if",
        "scf.while",
        "scf.yield",
        "affine.for",
        "affine.if",
        "ub.poison",
        "vector.broadcast",
        "vector.extract",
        "vector.fma",
        "vector.from_elements",
        "vector.insert",
        "vector.shuffle",
    ];
    name.starts_with("arith.") || name.starts_with("math.") || free.contains(&name)
}
