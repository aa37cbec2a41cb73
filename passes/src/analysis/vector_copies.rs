//! Which copies of single elements can be copies of vectors.
//!
//! Threads copy neighbouring elements: element `n * threads + thread` of a part of an array is the
//! `n`-th of a thread. The elements `4 n` to `4 n + 3` of all threads are one group of vectors of
//! four, and a thread takes four neighbours of it. A group qualifies if
//!
//! - the addresses of its `k`-th copy are those of the first, `k` times all threads further on;
//! - four neighbours lie side by side in the array, and in the shared buffer too or in a column;
//! - a condition around an access has the same value for all four;
//! - all threads of the block get there, and nothing but the copy meets it in memory between the
//!   barriers before and behind it, so that it does not matter which thread copies an element.

use super::lane_addresses;
use super::memory_effects::{Effects, Kernel};
use super::shared_copies::{ElementCopy, Site};
use super::thread_values::{Comparison, Number, ThreadValues};
use melior::ir::operation::OperationLike;
use melior::ir::r#type::MemRefType;
use melior::ir::{ShapedTypeLike, ValueLike};
use std::collections::BTreeSet;
use stencil_dialects::attribute;
use stencil_dialects::builder::Compare;
use stencil_dialects::mlir::{self, Op, Val};

/// What has to hold so that accesses are aligned.
#[derive(Clone, Debug, Default)]
pub struct Aligned<'c> {
    /// Values that must be multiples of the vector's elements.
    pub values: Vec<Val<'c>>,
    /// Arrays whose address must be a multiple of the vector's bytes.
    pub arrays: Vec<Val<'c>>,
}

/// Copies that a vector replaces.
#[derive(Clone, Debug)]
pub struct Group<'c> {
    /// As many as the vector has elements.
    pub copies: Vec<ElementCopy<'c>>,
    /// What has to hold.
    pub aligned: Aligned<'c>,
    /// For each store: true for one vector store, false for a store per element.
    pub whole: Vec<bool>,
}

/// Where an array begins, and how far apart its elements are.
struct Layout<'c> {
    root: Val<'c>,
    /// The stride of each dimension but the last, as a number or a value.
    strides: Vec<Result<i64, Val<'c>>>,
}

/// The groups among copies with the same blocks and memrefs, for vectors of so many elements.
pub fn groups<'c>(
    kernel: Op<'c>,
    values: &ThreadValues<'c>,
    all: &[ElementCopy<'c>],
    width: usize,
    threads: usize,
) -> Vec<Group<'c>> {
    let finder = Finder { kernel, values, effects: Kernel::of(kernel), width, threads };
    if !finder.is_ordered(all) {
        return Vec::new();
    }
    let (mut found, mut left) = (Vec::new(), Vec::new());
    let mut rest = all;
    while let Some((group, behind)) = rest.split_at_checked(width) {
        match finder.group(group) {
            Some(group) => {
                found.push(group);
                rest = behind;
            }
            None => {
                left.extend(group.first());
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    left.extend(rest);
    if finder.are_distinct(&found, &left) { found } else { Vec::new() }
}

/// The loads or the stores of a copy.
pub type SitesOf<'c> = for<'a> fn(&'a ElementCopy<'c>) -> &'a Vec<Site<'c>>;

struct Finder<'c, 'v> {
    kernel: Op<'c>,
    values: &'v ThreadValues<'c>,
    effects: Kernel<'c>,
    width: usize,
    threads: usize,
}

impl<'c> Finder<'c, '_> {
    fn elements(&self) -> i64 {
        i64::try_from(self.width).unwrap_or(i64::MAX)
    }

    /// Copies as a group, if they are one.
    fn group(&self, copies: &[ElementCopy<'c>]) -> Option<Group<'c>> {
        let (first, others) = copies.split_first()?;
        for (number, other) in (1..).zip(others) {
            let pairs = first.loads.iter().zip(&other.loads);
            let mut pairs = pairs.chain(first.stores.iter().zip(&other.stores));
            if !pairs.all(|(one, other)| self.follows(one, other, number * self.threads)) {
                return None;
            }
        }
        let mut aligned = Aligned::default();
        for load in &first.loads {
            let numbers = self.numbers(load)?;
            self.side_by_side(&numbers).then_some(())?;
            self.condition(load, &mut aligned)?;
            let layout = layout(self.kernel, self.values, load.memref)?;
            for (index, stride) in numbers.iter().zip(&layout.strides) {
                match stride {
                    Ok(stride) if stride % self.elements() == 0 => {}
                    Ok(_) => aligned.values.extend(self.multiples(index)?),
                    Err(stride) => aligned.values.push(*stride),
                }
            }
            aligned.values.extend(self.multiples(numbers.last()?)?);
            if !is_aligned(self.kernel, layout.root, bytes_of(load.memref)? * self.elements()) {
                aligned.arrays.push(layout.root);
            }
        }
        let mut whole = Vec::new();
        for store in &first.stores {
            self.condition(store, &mut aligned)?;
            whole.push(self.is_vector(store)?);
        }
        Some(Group { copies: copies.to_vec(), aligned, whole })
    }

    /// Whether a store of a group is one of a vector. Nothing where neighbours lie side by side in
    /// rows that no vector may begin in.
    fn is_vector(&self, store: &Site<'c>) -> Option<bool> {
        let numbers = self.numbers(store)?;
        if !self.side_by_side(&numbers) {
            return Some(false);
        }
        let layout = layout(self.kernel, self.values, store.memref)?;
        let even = |stride: &Result<i64, Val>| {
            stride.as_ref().is_ok_and(|stride| stride % self.elements() == 0)
        };
        let last = self.multiples(numbers.last()?)?;
        (layout.strides.iter().all(even) && last.is_empty()).then_some(true)
    }

    fn numbers(&self, site: &Site<'c>) -> Option<Vec<Number>> {
        site.indices.iter().map(|index| self.values.number(*index)).collect()
    }

    fn multiples(&self, number: &Number) -> Option<Vec<Val<'c>>> {
        self.values.multiples(number, self.elements())
    }

    /// Whether an access is another one of so many places further on.
    fn follows(&self, one: &Site<'c>, other: &Site<'c>, places: usize) -> bool {
        let indices = one.indices.iter().zip(&other.indices).all(|(one, other)| {
            let pair = self.values.number(*one).zip(self.values.number(*other));
            pair.is_some_and(|(one, other)| one.leads_to(&other, places))
        });
        let key = |value: Option<Val>| value.map(mlir::key);
        let conditions = match (one.condition, other.condition) {
            (None, None) => true,
            (Some(one), Some(other)) => {
                let pair = self.values.comparisons(one).zip(self.values.comparisons(other));
                pair.is_some_and(|(one, other)| {
                    let alike = |(one, other): (&Comparison, &Comparison)| {
                        one.predicate == other.predicate
                            && one.left.leads_to(&other.left, places)
                            && one.right.leads_to(&other.right, places)
                    };
                    one.len() == other.len() && one.iter().zip(&other).all(alike)
                })
            }
            _ => false,
        };
        indices && conditions && key(one.otherwise) == key(other.otherwise)
    }

    /// Whether a vector's elements are neighbours in the last dimension.
    fn side_by_side(&self, numbers: &[Number]) -> bool {
        let Some((last, rest)) = numbers.split_last() else { return false };
        self.grows(last, 1) && rest.iter().all(|number| self.grows(number, 0))
    }

    /// Whether a number grows by so much from element to element of each vector.
    fn grows(&self, number: &Number, by: i64) -> bool {
        number.at.chunks(self.width).all(|vector| {
            let first = vector.first().copied().unwrap_or(0);
            (0..).zip(vector).all(|(element, value)| *value == first + by * element)
        })
    }

    /// Adds what has to hold so that a condition is the same for all elements of a vector.
    fn condition(&self, site: &Site<'c>, aligned: &mut Aligned<'c>) -> Option<()> {
        let Some(condition) = site.condition else { return Some(()) };
        for Comparison { predicate, left, right } in self.values.comparisons(condition)? {
            if self.grows(&left, 0) && self.grows(&right, 0) {
                continue;
            }
            // A vector that begins below a multiple of its length ends below it.
            let less = [Compare::Lt, Compare::Below].map(|less| less as i64).contains(&predicate);
            if !less || !self.grows(&left, 1) || !self.grows(&right, 0) {
                return None;
            }
            aligned.values.extend(self.multiples(&left)?);
            aligned.values.extend(self.multiples(&right)?);
        }
        Some(())
    }

    /// Whether all threads reach the accesses of copies, and other threads may as well make them.
    fn is_ordered(&self, all: &[ElementCopy<'c>]) -> bool {
        let Some(first) = all.first() else { return false };
        let alone = |number: usize, site: &Site<'c>, of: SitesOf<'c>| {
            let sites: Vec<_> = all.iter().filter_map(|copy| of(copy).get(number)).collect();
            self.values.runs_alike(site.op) && (self.is_constant(site) || self.is_alone(&sites))
        };
        let (mut loads, mut stores) = (first.loads.iter(), first.stores.iter());
        (0..).zip(&mut loads).all(|(number, site)| alone(number, site, |copy| &copy.loads))
            && (0..).zip(&mut stores).all(|(number, site)| alone(number, site, |copy| &copy.stores))
    }

    /// Whether nothing writes to an array during a launch.
    fn is_constant(&self, site: &Site<'c>) -> bool {
        let root = layout(self.kernel, self.values, site.memref).map(|layout| layout.root);
        let has = |name| root.is_some_and(|root| argument(self.kernel, root, name).is_some());
        has("llvm.noalias") && has("llvm.readonly")
    }

    /// Whether nothing else between two barriers meets accesses of one block of operations.
    fn is_alone(&self, sites: &[&Site<'c>]) -> bool {
        let Some(block) = sites.first().and_then(|site| site.op.block()).map(mlir::block) else {
            return false;
        };
        let all = mlir::operations(block);
        let own = |op: &Op| sites.iter().any(|site| site.op == *op);
        let (Some(first), Some(last)) = (all.iter().position(own), all.iter().rposition(own))
        else {
            return false;
        };
        let mut effects = Effects::default();
        sites.iter().for_each(|site| effects.extend(self.effects.effects(site.op)));
        let is_quiet = |op: &Op<'c>| own(op) || !self.effects.effects(*op).may_meet(&effects);
        let is_barrier =
            |op: &Op<'c>| mlir::name(*op) == "gpu.barrier" && mlir::own_attributes(*op).is_empty();
        // The ends of a kernel order as barriers do.
        let ends = mlir::entry(self.kernel) == Some(block);
        let to_barrier = |ops: &mut dyn Iterator<Item = &Op<'c>>| {
            for op in ops {
                if is_barrier(op) {
                    return true;
                }
                if !is_quiet(op) {
                    return false;
                }
            }
            ends
        };
        let (Some(between), Some(before), Some(behind)) =
            (all.get(first..=last), all.get(..first), all.get(last..))
        else {
            return false;
        };
        between.iter().all(|op| is_quiet(op) && !mlir::walk(*op).iter().any(is_barrier))
            && to_barrier(&mut before.iter().rev())
            && to_barrier(&mut behind.iter().skip(1))
    }

    /// Whether the stores of all groups, and of the copies that are left, go to different elements,
    /// so that their order is open.
    fn are_distinct(&self, groups: &[Group<'c>], left: &[&ElementCopy<'c>]) -> bool {
        let whole = groups.iter().filter_map(|group| group.copies.first());
        let whole = whole.map(|copy| (copy, self.width * self.threads));
        let all: Vec<_> = whole.chain(left.iter().map(|copy| (*copy, self.threads))).collect();
        let stores = groups.first().map_or(0, |group| group.whole.len());
        (0..stores).all(|number| {
            let (mut places, mut terms) = (BTreeSet::new(), None);
            all.iter().all(|(copy, count)| {
                let numbers = copy.stores.get(number).and_then(|store| self.numbers(store));
                let Some(numbers) = numbers else { return false };
                let own: Vec<_> = numbers.iter().map(|number| number.terms.clone()).collect();
                let alike = *terms.get_or_insert_with(|| own.clone()) == own;
                let mut cells = (0..*count).map(|place| {
                    numbers.iter().map(|number| number.at.get(place).copied()).collect::<Vec<_>>()
                });
                alike && cells.all(|cell| places.insert(cell))
            })
        })
    }
}

/// Bytes of an element of a memref.
fn bytes_of(memref: Val) -> Option<i64> {
    let ty = MemRefType::try_from(memref.r#type()).ok()?;
    Some(i64::from(mlir::bit_width(ty.element())? / 8))
}

/// An attribute of a kernel's argument.
fn argument<'c>(kernel: Op<'c>, value: Val<'c>, name: &str) -> Option<melior::ir::Attribute<'c>> {
    let arguments = mlir::arguments(mlir::entry(kernel)?);
    let place = arguments.iter().position(|argument| *argument == value)?;
    let all = mlir::attribute(kernel, "arg_attrs").and_then(attribute::as_array)?;
    attribute::entry(*all.get(place)?, name)
}

fn is_aligned<'c>(kernel: Op<'c>, root: Val<'c>, bytes: i64) -> bool {
    let stated = argument(kernel, root, "llvm.align").and_then(attribute::as_integer);
    stated.is_some_and(|stated| stated % bytes == 0)
}

/// The layout of an argument, or of a view of one that begins where it does.
fn layout<'c>(kernel: Op<'c>, values: &ThreadValues<'c>, memref: Val<'c>) -> Option<Layout<'c>> {
    let is_argument = |value: Val<'c>| {
        mlir::entry(kernel).map(mlir::arguments).is_some_and(|all| all.contains(&value))
    };
    if is_argument(memref) {
        let extents = lane_addresses::extents(memref);
        let known = extents.iter().all(|extent| *extent >= 0) && lane_addresses::is_plain(memref);
        known.then_some(())?;
        let stride = |from: usize| {
            extents.get(from..)?.iter().try_fold(1_i64, |all, extent| all.checked_mul(*extent))
        };
        let strides = (1..extents.len()).map(|from| stride(from).map(Ok)).collect::<Option<_>>()?;
        return Some(Layout { root: memref, strides });
    }
    let view = values.maker(memref).filter(|op| mlir::name(*op) == "memref.reinterpret_cast")?;
    let operands = mlir::operands(view);
    let (root, dynamic) = operands.split_first()?;
    let list = |name| mlir::attribute(view, name).and_then(attribute::as_integers);
    let (offsets, strides) = (list("static_offsets")?, list("static_strides")?);
    let is_dynamic = |entry: &&i64| **entry == i64::MIN;
    let mut values = dynamic.iter().skip(list("static_sizes")?.iter().filter(is_dynamic).count());
    let strides = strides.iter().map(|stride| match *stride {
        i64::MIN => values.next().map(|value| Err(*value)),
        stride => Some(Ok(stride)),
    });
    let mut strides: Vec<_> = strides.collect::<Option<_>>()?;
    let begins = offsets.iter().all(|offset| *offset == 0);
    (begins && is_argument(*root) && matches!(strides.pop()?, Ok(1)))
        .then_some(Layout { root: *root, strides })
}
