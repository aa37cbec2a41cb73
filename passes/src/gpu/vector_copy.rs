//! A group of copies as copies of vectors: the accesses of `vectorize-copies`.

use crate::analysis::lane_values;
use crate::analysis::shared_copies::Site;
use crate::analysis::thread_values::{Form, ThreadValues};
use crate::analysis::vector_copies::{Aligned, Group, SitesOf};
use crate::gpu::vectorize_copies::element;
use crate::kernel::lanes::WIDEST;
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::FunctionType;
use melior::ir::{Attribute, Region, Type};
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::attribute;
use stencil_dialects::builder::{Builder, Compare};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op, Val};

/// A group on its way to vectors.
pub struct VectorCopy<'c, 'g> {
    /// The context.
    pub context: &'c Context,
    /// The kernel.
    pub kernel: Op<'c>,
    /// Threads of a block in x, y and z.
    pub threads: [i64; 3],
    /// What its values are, as they were before any change.
    pub values: &'g ThreadValues<'c>,
    /// The copies.
    pub group: &'g Group<'c>,
    /// Groups of the same blocks whose turn comes later. Accesses go to where theirs will be, so
    /// that one condition serves all.
    pub later: &'g [Group<'c>],
}

/// When the accesses of a group are aligned.
enum Alignment<'c> {
    Always,
    /// Where this condition holds.
    If(Val<'c>),
    /// The condition can't be computed ahead of the copy.
    Unknown,
}

/// Where a thread's vector lies, and the condition under which it is aligned, if there is one.
#[derive(Clone, Copy)]
struct Place<'c> {
    element: Val<'c>,
    aligned: Option<Val<'c>>,
}

/// Values as a thread at another place holds them, by the keys of the old ones.
type Moved<'c> = BTreeMap<usize, Val<'c>>;

impl<'c> VectorCopy<'c, '_> {
    /// Makes the accesses in place of those of elements.
    ///
    /// # Errors
    /// Internal ones.
    pub fn replace(&self) -> Result<(), Error> {
        let lacks = || Error::internal("a copy without an access");
        let aligned = match self.alignment()? {
            Alignment::Always => None,
            Alignment::If(condition) => Some(condition),
            Alignment::Unknown => return Ok(()),
        };
        let entry = mlir::entry(self.kernel).ok_or_else(lacks)?;
        let top = mlir::operations(entry).first().copied().ok_or_else(lacks)?;
        let element = self.before(top, |builder| self.first_element(builder))?;
        let place = Place { element, aligned };
        let loads = self.group.copies.first().map_or(0, |copy| copy.loads.len());
        for number in 0..loads {
            let sites = self.sites(|copy| &copy.loads, number);
            let first = *sites.first().ok_or_else(lacks)?;
            let last = self.last(|copy| &copy.loads, number).ok_or_else(lacks)?;
            let types = vec![element_type(first)?; sites.len()];
            let made = self.before(last, |builder| {
                self.versions(builder, place, &sites, &types, |builder| {
                    self.load(builder, first, place.element)
                })
            })?;
            for (site, made) in sites.iter().zip(made) {
                mlir::results(site.op).into_iter().for_each(|old| mlir::replace_uses(old, made));
                mlir::erase(site.op);
            }
        }
        for (number, whole) in self.group.whole.iter().enumerate() {
            let sites = self.sites(|copy| &copy.stores, number);
            let first = *sites.first().ok_or_else(lacks)?;
            let last = self.last(|copy| &copy.stores, number).ok_or_else(lacks)?;
            let values = sites.iter().map(|site| stored(site.op)).collect::<Option<Vec<_>>>();
            let values = values.ok_or_else(lacks)?;
            if *whole {
                self.align(first.memref)?;
            }
            self.before(last, |builder| {
                self.versions(builder, place, &sites, &[], |builder| {
                    self.store(builder, first, place.element, &values, *whole)
                })
            })?;
            sites.iter().for_each(|site| mlir::erase(site.op));
        }
        Ok(())
    }

    /// Puts operations before another.
    fn before<T>(
        &self,
        place: Op<'c>,
        make: impl FnOnce(&Builder<'c>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let region = Region::new();
        let block = mlir::append_block(&region, &[]);
        let made = make(&Builder::new(self.context, place.location(), block))?;
        mlir::move_all_before(block, place);
        Ok(made)
    }

    fn width(&self) -> i64 {
        i64::try_from(self.group.copies.len()).unwrap_or(1)
    }

    /// The first element of a thread's vector among those that all threads copy.
    fn first_element(&self, builder: &Builder<'c>) -> Result<Val<'c>, Error> {
        let (mut element, mut by) = (None, self.width());
        for (axis, threads) in ["x", "y", "z"].into_iter().zip(self.threads) {
            if threads > 1 {
                let axis = Attribute::parse(self.context, &format!("#gpu<dim {axis}>"))
                    .ok_or_else(|| Error::internal("the gpu dialect is not loaded"))?;
                let index = builder.index_type();
                let id = builder.value("gpu.thread_id", &[], index, &[("dimension", axis)])?;
                let id = builder.multiply_constant(id, by)?;
                element = Some(element.map_or(Ok(id), |before| builder.add(before, id))?);
            }
            by *= threads;
        }
        element.map_or_else(|| builder.index(0), Ok)
    }

    fn alignment(&self) -> Result<Alignment<'c>, Error> {
        let Aligned { values, arrays } = &self.group.aligned;
        if values.is_empty() && arrays.is_empty() {
            return Ok(Alignment::Always);
        }
        let Some(top) = self.outermost() else { return Ok(Alignment::Unknown) };
        if !values.iter().all(|value| self.is_known_before(*value, top)) {
            return Ok(Alignment::Unknown);
        }
        let condition = self.before(top, |builder| {
            let mut seen = BTreeSet::new();
            let mut rests = Vec::new();
            for value in values.iter().filter(|value| seen.insert(mlir::key(**value))) {
                let width = builder.index(self.width())?;
                rests.push(builder.binary("arith.remui", *value, width)?);
            }
            for array in arrays.iter().filter(|array| seen.insert(mlir::key(**array))) {
                let name = "memref.extract_aligned_pointer_as_index";
                let address = builder.value(name, &[*array], builder.index_type(), &[])?;
                rests.push(builder.binary("arith.remui", address, builder.index(WIDEST)?)?);
            }
            let zero = builder.index(0)?;
            let fits = rests.iter().map(|rest| builder.compare(Compare::Eq, *rest, zero));
            builder.all(&fits.collect::<Result<Vec<_>, _>>()?)
        })?;
        Ok(condition.map_or(Alignment::Always, Alignment::If))
    }

    /// The first operation of the kernel's own block that holds an access of the group.
    fn outermost(&self) -> Option<Op<'c>> {
        let sites = self.group.copies.iter().flat_map(|copy| copy.loads.iter().chain(&copy.stores));
        let mut op = sites.min_by_key(|site| site.order)?.op;
        loop {
            let parent = mlir::op(op.parent_operation()?);
            if parent == self.kernel {
                return Some(op);
            }
            op = parent;
        }
    }

    /// Whether a value is there before an operation of the kernel's own block.
    fn is_known_before(&self, value: Val<'c>, op: Op<'c>) -> bool {
        let Some(entry) = mlir::entry(self.kernel) else { return false };
        match self.values.maker(value) {
            None => mlir::arguments(entry).contains(&value),
            Some(maker) => {
                let before = mlir::operations(entry).into_iter().take_while(|other| *other != op);
                before.into_iter().any(|made| made == maker)
            }
        }
    }

    /// The accesses of all copies under a number.
    fn sites(&self, of: SitesOf<'c>, number: usize) -> Vec<&Site<'c>> {
        self.group.copies.iter().filter_map(|copy| of(copy).get(number)).collect()
    }

    /// The last access under a number, of this group and those whose turn comes later.
    fn last(&self, of: SitesOf<'c>, number: usize) -> Option<Op<'c>> {
        let groups = std::iter::once(self.group).chain(self.later);
        let sites = groups.flat_map(|group| &group.copies).filter_map(|copy| of(copy).get(number));
        sites.max_by_key(|site| site.order).map(|site| site.op)
    }

    /// The accesses of a vector, and where that is open the old ones for what is not aligned.
    fn versions(
        &self,
        builder: &Builder<'c>,
        place: Place<'c>,
        sites: &[&Site<'c>],
        types: &[Type<'c>],
        vector: impl FnOnce(&Builder<'c>) -> Result<Vec<Val<'c>>, Error>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let Some(aligned) = place.aligned else { return vector(builder) };
        builder.choose(aligned, types, vector, |builder| {
            let mut copied = BTreeMap::new();
            sites.iter().for_each(|site| mlir::copy_to(site.op, builder.block, &mut copied));
            let old = sites.iter().flat_map(|site| mlir::results(site.op));
            Ok(old.filter_map(|old| copied.get(&mlir::key(old)).copied()).collect())
        })
    }

    /// Loads a vector, and gives its elements.
    fn load(
        &self,
        builder: &Builder<'c>,
        site: &Site<'c>,
        place: Val<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let mut moved = Moved::new();
        let element = element_type(site)?;
        let ty = Type::vector(&[self.width().unsigned_abs()], element);
        let alignment = ("alignment", attribute::integer(self.context, WIDEST));
        let indices = self.all_at(builder, &site.indices, place, &mut moved)?;
        let operands = [&[site.memref], &indices[..]].concat();
        let load = |builder: &Builder<'c>| {
            Ok(vec![builder.value("vector.load", &operands, ty, &[alignment])?])
        };
        let loaded = match site.condition.zip(site.otherwise) {
            None => load(builder)?,
            Some((condition, otherwise)) => {
                let condition = self.at(builder, condition, place, &mut moved)?;
                builder.choose(condition, &[ty], load, |builder| {
                    Ok(vec![builder.value("vector.broadcast", &[otherwise], ty, &[])?])
                })?
            }
        };
        let loaded = *loaded.first().ok_or_else(|| Error::internal("a load without a value"))?;
        let extract = |number| {
            let number = [("static_position", attribute::integers(self.context, &[number]))];
            builder.value("vector.extract", &[loaded], element, &number)
        };
        (0..self.width()).map(extract).collect()
    }

    /// Stores elements as a vector, or each to its own place.
    fn store(
        &self,
        builder: &Builder<'c>,
        site: &Site<'c>,
        place: Val<'c>,
        values: &[Val<'c>],
        whole: bool,
    ) -> Result<Vec<Val<'c>>, Error> {
        let ty = Type::vector(&[self.width().unsigned_abs()], element_type(site)?);
        let alignment = ("alignment", attribute::integer(self.context, WIDEST));
        let parts: Vec<_> = if whole { vec![values] } else { values.chunks(1).collect() };
        for (number, part) in (0..).zip(parts) {
            let place = builder.add_constant(place, number)?;
            let mut moved = Moved::new();
            let indices = self.all_at(builder, &site.indices, place, &mut moved)?;
            let store = |builder: &Builder<'c>| match part {
                [value] => builder.store(*value, site.memref, &indices),
                _ => {
                    let vector = builder.value("vector.from_elements", part, ty, &[])?;
                    let operands = [&[vector, site.memref], &indices[..]].concat();
                    builder.op("vector.store", &operands, &[], &[alignment]).map(drop)
                }
            };
            match site.condition {
                None => store(builder)?,
                Some(condition) => {
                    let condition = self.at(builder, condition, place, &mut moved)?;
                    builder.when(condition, store)?;
                }
            }
        }
        Ok(Vec::new())
    }

    fn all_at(
        &self,
        builder: &Builder<'c>,
        values: &[Val<'c>],
        place: Val<'c>,
        moved: &mut Moved<'c>,
    ) -> Result<Vec<Val<'c>>, Error> {
        values.iter().map(|value| self.at(builder, *value, place, moved)).collect()
    }

    /// A value as a thread at some place would hold it.
    fn at(
        &self,
        builder: &Builder<'c>,
        value: Val<'c>,
        place: Val<'c>,
        moved: &mut Moved<'c>,
    ) -> Result<Val<'c>, Error> {
        if let Some(known) = moved.get(&mlir::key(value)) {
            return Ok(*known);
        }
        let lacks = || Error::internal("an address that is not known");
        let form = self.values.form(value).ok_or_else(lacks)?;
        let maker = match &*form {
            form if form.is_uniform() => return Ok(value),
            Form::Number(number) if number.is_place() => return Ok(place),
            _ => self.values.maker(value).ok_or_else(lacks)?,
        };
        if let Some(axis) = lane_values::axis(maker) {
            return self.thread(builder, axis, place);
        }
        for operand in mlir::operands(maker) {
            let new = self.at(builder, operand, place, moved)?;
            moved.insert(mlir::key(operand), new);
        }
        mlir::copy_to(maker, builder.block, moved);
        moved.get(&mlir::key(value)).copied().ok_or_else(lacks)
    }

    /// The number along an axis of the thread at some place. The last axis has no end.
    fn thread(&self, builder: &Builder<'c>, axis: usize, place: Val<'c>) -> Result<Val<'c>, Error> {
        let before = self.threads.iter().take(axis).product();
        let behind = self.threads.iter().skip(axis + 1).any(|threads| *threads > 1);
        let number = match before {
            1 => place,
            _ => builder.binary("arith.divui", place, builder.index(before)?)?,
        };
        match self.threads.get(axis).filter(|_| behind) {
            Some(threads) => builder.binary("arith.remui", number, builder.index(*threads)?),
            None => Ok(number),
        }
    }

    /// Aligns a shared buffer that the kernel declares, or that a view is one of.
    fn align(&self, view: Val<'c>) -> Result<(), Error> {
        let mut buffer = view;
        while let Some(source) = self.values.maker(buffer).and_then(|op| {
            let is_view = mlir::name(op) == "memref.reinterpret_cast";
            mlir::operands(op).first().copied().filter(|_| is_view)
        }) {
            buffer = source;
        }
        let name = "workgroup_attrib_attrs";
        let ty = attribute::read(self.kernel, "function_type", attribute::as_type)?;
        let inputs = FunctionType::try_from(ty).map_or(0, |ty| ty.input_count());
        let arguments = mlir::entry(self.kernel).map(mlir::arguments).unwrap_or_default();
        let buffers = arguments.get(inputs..).unwrap_or_default();
        let own = buffers.iter().position(|other| *other == buffer);
        let own = own.ok_or_else(|| Error::internal("a shared buffer that nobody declares"))?;
        let mut all =
            attribute::read_optional(self.kernel, name, attribute::as_array)?.unwrap_or_default();
        all.resize(all.len().max(own + 1), attribute::dictionary(self.context, &[]));
        if let Some(slot) = all.get_mut(own) {
            let stated = attribute::entry(*slot, "llvm.align").and_then(attribute::as_integer);
            if stated.is_some_and(|stated| stated % WIDEST == 0) {
                return Ok(());
            }
            let mut entries = mlir::entries(*slot).unwrap_or_default();
            entries.retain(|(name, _)| *name != "llvm.align");
            entries.push(("llvm.align", attribute::integer(self.context, WIDEST)));
            *slot = attribute::dictionary(self.context, &entries);
        }
        mlir::set_attribute(self.kernel, name, attribute::array(self.context, &all));
        Ok(())
    }
}

fn element_type<'c>(site: &Site<'c>) -> Result<Type<'c>, Error> {
    element(site).ok_or_else(|| Error::internal("an access to no memref"))
}

/// What a store stores, which may stand in a branch.
fn stored<'c>(op: Op<'c>) -> Option<Val<'c>> {
    let store = match mlir::name(op) {
        "scf.if" => mlir::entry(op).and_then(|block| mlir::operations(block).first().copied())?,
        _ => op,
    };
    mlir::operands(store).first().copied()
}
