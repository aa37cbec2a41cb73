//! Memory of the caller that is bound to a field: where each cell lies.

use super::error::HostError;
use crate::array::{Element, shape_text};
use crate::plan::{Plan, Role};

/// Dimensions of a field at most.
pub const MOST_DIMENSIONS: usize = 8;

/// Where the cells of a field lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    pub(super) element: Element,
    /// Cells per dimension of the field, slowest first.
    pub(super) shape: Vec<usize>,
    /// Cells per dimension of the memory: those of the field, or with its last dimension in blocks.
    pub(super) steps: Vec<usize>,
    pub(super) memory: Memory,
}

/// Memory of the caller.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Memory {
    /// Memory of the host.
    Host {
        /// That of the first cell.
        address: usize,
        /// Bytes from a cell to the next one of each dimension.
        strides: Vec<isize>,
        /// Whether it may be written.
        writable: bool,
    },
    /// Memory of a device.
    Device {
        /// That of the first cell.
        address: u64,
        /// Bytes from a cell to the next one of each dimension.
        strides: Vec<isize>,
    },
}

/// Memory as the caller describes it. It is made in `raw.rs`, by functions with a promise.
#[derive(Clone, Debug)]
pub struct Given(pub(super) Place);

#[derive(Clone, Debug)]
pub(super) enum Place {
    Host { address: usize, strides: Option<Vec<i64>>, writable: bool },
    Device { address: u64, strides: Option<Vec<i64>> },
}

impl Binding {
    /// Memory for a field of a plan. With one dimension more than the field has, the last two of
    /// the shape are blocks of the field's last dimension, and the cells of a block.
    ///
    /// # Errors
    /// When it does not fit the field, can't be all at addresses, or is to be written and may not.
    pub fn new(
        plan: &Plan,
        name: &str,
        element: Element,
        shape: &[i64],
        given: Given,
    ) -> Result<Self, HostError> {
        let field = plan.field(name).filter(|field| field.role.is_input()).ok_or_else(|| {
            let known = plan.fields.iter().filter(|field| field.role.is_input());
            let known: Vec<_> = known.map(|field| field.name.as_str()).collect();
            HostError::Argument(format!(
                "{} has no field `{name}` to bind; it has {}",
                plan.program,
                known.join(", ")
            ))
        })?;
        let wrong = |what: String| HostError::Argument(format!("field `{name}`: {what}"));
        if field.element != element {
            let own = field.element;
            return Err(wrong(format!("its cells are {own}, the memory's are {element}")));
        }
        let (own, found) = (field.extents.len(), shape.len());
        let in_blocks = found == own + 1 && own > 0;
        if (found != own && !in_blocks) || found > MOST_DIMENSIONS {
            return Err(wrong(format!("it has {own} dimensions, the shape has {found}")));
        }
        let extents: Option<Vec<_>> = shape.iter().map(|n| usize::try_from(*n).ok()).collect();
        let shape = extents.ok_or_else(|| wrong("an extent is negative".to_owned()))?;
        let most = shape.iter().try_fold(element.size(), |all, n| all.checked_mul((*n).max(1)));
        if most.is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            let shape = shape_text(&shape);
            return Err(wrong(format!("{shape} cells do not fit in memory addresses")));
        }
        let (steps, shape) = (shape.clone(), field_extents(shape, own));
        let strides = |strides: Option<Vec<i64>>| match strides {
            None => Ok(row_major(element, &steps)),
            Some(strides) if strides.len() != steps.len() => {
                let (own, found) = (steps.len(), strides.len());
                Err(wrong(format!("the shape has {own} dimensions, the strides {found}")))
            }
            Some(strides) => Ok(strides.iter().map(|n| *n as isize).collect()),
        };
        let memory = match given.0 {
            Place::Device { address, strides: own } => {
                Memory::Device { address, strides: strides(own)? }
            }
            Place::Host { address, strides: own, writable } => {
                Memory::Host { address, strides: strides(own)?, writable }
            }
        };
        let binding = Self { element, shape, steps, memory };
        binding.check(field.role).map_err(wrong)?;
        Ok(binding)
    }

    fn check(&self, role: Role) -> Result<(), String> {
        let (address, strides, writable) = match &self.memory {
            Memory::Device { address: 0, .. } if self.bytes() > 0 => {
                return Err("the address is 0".to_owned());
            }
            Memory::Device { address, strides } => {
                let address = usize::try_from(*address).map_err(|error| error.to_string())?;
                (address, strides, true)
            }
            Memory::Host { address, strides, writable } => (*address, strides, *writable),
        };
        if role == Role::State && !writable {
            return Err("a run writes it, and the memory is read-only".to_owned());
        }
        if self.bytes() == 0 {
            return Ok(());
        }
        if address == 0 {
            return Err("the memory is null".to_owned());
        }
        let beyond = || "the strides lead beyond all memory addresses".to_owned();
        let (mut first, mut last) = (address, address);
        for (extent, stride) in self.steps.iter().zip(strides) {
            let span = stride.unsigned_abs().checked_mul(extent - 1).ok_or_else(beyond)?;
            if *stride < 0 {
                first = first.checked_sub(span).filter(|first| *first > 0).ok_or_else(beyond)?;
            } else {
                last = last.checked_add(span).ok_or_else(beyond)?;
            }
        }
        let end = last.checked_add(self.element.size()).ok_or_else(beyond)?;
        isize::try_from(end).and(isize::try_from(end - first)).map_err(|_| beyond())?;
        if role == Role::State && self.overlaps(strides) {
            return Err("a run writes it, and the strides put several cells in one place; a \
                        stride is at least the bytes of all cells that lie closer"
                .to_owned());
        }
        Ok(())
    }

    /// Whether cells may share bytes: a stride is shorter than what lies within.
    fn overlaps(&self, strides: &[isize]) -> bool {
        let of = self.steps.iter().zip(strides).filter(|(extent, _)| **extent > 1);
        let mut steps: Vec<_> = of.map(|(n, stride)| (stride.unsigned_abs(), *n)).collect();
        steps.sort_unstable();
        let mut within = self.element.size();
        steps.iter().any(|(stride, extent)| {
            let short = *stride < within;
            within += stride * (extent - 1);
            short
        })
    }

    /// Whether two fields share memory, as far as that can be told: both are dense, have equal
    /// strides, or begin at one address. Members of an array of structs lie between each other.
    pub(super) fn meets(&self, other: &Self) -> bool {
        if self.bytes() == 0 || other.bytes() == 0 {
            return false;
        }
        let (Some((first, steps)), Some((other_first, other_steps))) =
            (self.extent_in_memory(), other.extent_in_memory())
        else {
            return false;
        };
        if other_first < first {
            return other.meets(self);
        }
        let distance = other_first - first;
        if self.is_dense() && other.is_dense() {
            return distance < self.bytes() as u64;
        }
        let strides = |steps: &[(usize, usize)]| steps.iter().map(|(n, _)| *n).collect::<Vec<_>>();
        if strides(&steps) != strides(&other_steps) {
            return distance == 0;
        }
        let extents = steps.iter().zip(&other_steps).map(|((n, a), (_, b))| (*n, *a, *b));
        let sizes = (self.element.size(), other.element.size());
        meet_at(distance.into(), &extents.collect::<Vec<_>>(), sizes)
    }

    /// The lowest address, and the strides with their extents, the widest first.
    fn extent_in_memory(&self) -> Option<(u64, Vec<(usize, usize)>)> {
        let (address, strides) = match &self.memory {
            Memory::Host { address, strides, .. } => (*address as u64, strides.clone()),
            Memory::Device { address, strides } => (*address, strides.clone()),
        };
        let (mut first, mut steps) = (address, Vec::new());
        for (extent, stride) in self.steps.iter().zip(&strides).filter(|(extent, _)| **extent > 1) {
            if *stride < 0 {
                first = first.checked_sub((stride.unsigned_abs() * (extent - 1)) as u64)?;
            }
            steps.push((stride.unsigned_abs(), *extent));
        }
        steps.sort_unstable_by(|a, b| b.cmp(a));
        Some((first, steps))
    }

    /// Bytes of all cells.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element.size()
    }

    /// Whether the cells lie as in an array: row-major, with nothing between them.
    pub fn is_dense(&self) -> bool {
        let (Memory::Host { strides, .. } | Memory::Device { strides, .. }) = &self.memory;
        let dense = row_major(self.element, &self.steps);
        let of = self.steps.iter().zip(strides.iter().zip(&dense));
        let fits =
            of.filter(|(extent, _)| **extent > 1).all(|(_, (stride, dense))| stride == dense);
        fits || self.bytes() == 0
    }

    /// Calls `visit` for cells that lie one after the other: bytes from the first cell in this
    /// memory and in an array, and how many bytes.
    pub fn for_each_run(&self, mut visit: impl FnMut(isize, usize, usize)) {
        let Memory::Host { strides, .. } = &self.memory else { return };
        if self.bytes() == 0 {
            return;
        }
        let size = self.element.size();
        let mut run = size;
        let mut outer = self.steps.len();
        if let (Some(extent), Some(stride)) = (self.steps.last(), strides.last())
            && *stride == size as isize
        {
            (run, outer) = (size * extent, outer - 1);
        }
        let mut index = vec![0_usize; outer];
        let mut place = 0;
        loop {
            let steps = index.iter().zip(strides);
            let offset = steps.map(|(at, stride)| *at as isize * stride).sum();
            visit(offset, place, run);
            place += run;
            // The last dimension that has another cell goes on, those after it start again.
            let next = index.iter().zip(&self.steps).rposition(|(at, extent)| at + 1 < *extent);
            let Some(next) = next else { return };
            for (dimension, at) in index.iter_mut().enumerate().skip(next) {
                *at = if dimension == next { *at + 1 } else { 0 };
            }
        }
    }
}

/// Whether a cell of one field and a cell of another share bytes, where the second field begins
/// `distance` bytes behind the first. Each stride has the extents of both.
fn meet_at(distance: i128, strides: &[(usize, usize, usize)], sizes: (usize, usize)) -> bool {
    let Some(((stride, first, second), rest)) = strides.split_first() else {
        return distance < sizes.0 as i128 && -distance < sizes.1 as i128;
    };
    let steps = if *stride == 0 { 0 } else { distance.div_euclid(*stride as i128) };
    // Where cells of a field do not overlap, the shorter strides reach less than one step of this.
    [steps, steps + 1].into_iter().any(|steps| {
        let fits = -(*second as i128) < steps && steps < *first as i128;
        fits && meet_at(distance - steps * *stride as i128, rest, sizes)
    })
}

/// The extents of a field of so many dimensions in memory of a shape: with one dimension more, the
/// last two are blocks of the field's last one, and the cells of a block.
pub fn field_extents(mut shape: Vec<usize>, dimensions: usize) -> Vec<usize> {
    if shape.len() > dimensions
        && let Some(cells) = shape.pop()
        && let Some(blocks) = shape.last_mut()
    {
        *blocks = blocks.saturating_mul(cells);
    }
    shape
}

/// The strides of an array.
fn row_major(element: Element, shape: &[usize]) -> Vec<isize> {
    let mut strides = Vec::new();
    let mut stride = element.size() as isize;
    for extent in shape.iter().rev() {
        strides.insert(0, stride);
        stride *= (*extent).max(1) as isize;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(shape: &[usize], strides: &[isize]) -> Binding {
        let memory = Memory::Host { address: 1 << 20, strides: strides.to_vec(), writable: true };
        Binding { element: Element::F32, shape: shape.to_vec(), steps: shape.to_vec(), memory }
    }

    fn runs(binding: &Binding) -> Vec<(isize, usize, usize)> {
        let mut runs = Vec::new();
        binding.for_each_run(|offset, place, bytes| runs.push((offset, place, bytes)));
        runs
    }

    #[test]
    fn rows_are_copied_whole_and_cells_alone() {
        let rows = binding(&[2, 3], &[100, 4]);
        assert_eq!(runs(&rows), [(0, 0, 12), (100, 12, 12)]);
        assert!(!rows.is_dense() && binding(&[2, 3], &[12, 4]).is_dense());
        assert!(binding(&[1, 3], &[100, 4]).is_dense() && binding(&[0, 3], &[8, 8]).is_dense());
        let columns = binding(&[2, 2], &[4, -8]);
        assert_eq!(runs(&columns), [(0, 0, 4), (-8, 4, 4), (4, 8, 4), (-4, 12, 4)]);
        assert_eq!(runs(&binding(&[2, 0], &[4, 4])), []);
    }

    #[test]
    fn fields_that_share_memory_are_found() {
        let at = |address: usize, shape: &[usize], strides: &[isize]| {
            let memory = Memory::Host { address, strides: strides.to_vec(), writable: true };
            Binding { element: Element::F32, shape: shape.to_vec(), steps: shape.to_vec(), memory }
        };
        let meet = |one: &Binding, other: &Binding| {
            assert_eq!(one.meets(other), other.meets(one));
            one.meets(other)
        };
        let row = at(1000, &[8], &[4]);
        assert!(meet(&row, &row) && meet(&row, &at(1012, &[8], &[4])));
        assert!(meet(&row, &at(1030, &[8], &[4])) && !meet(&row, &at(1032, &[8], &[4])));
        assert!(meet(&row, &at(1028, &[8], &[-4])) && !meet(&row, &at(1012, &[0], &[4])));
        assert!(!meet(&at(1000, &[2], &[4]), &at(1012, &[8], &[4])));
        assert!(!meet(&at(1000, &[2, 2], &[100, 8]), &at(1016, &[2, 8], &[100, 8])));
        // A row of a field, in a field of fewer dimensions.
        assert!(meet(&at(1000, &[4, 5], &[20, 4]), &at(1020, &[5], &[4])));
        assert!(!meet(&at(1000, &[4, 5], &[20, 4]), &at(1080, &[5], &[4])));
        // Members of structs of 12 bytes, and columns of rows of 100 bytes.
        let member = at(1000, &[8], &[12]);
        assert!(!meet(&member, &at(1004, &[8], &[12])) && meet(&member, &at(1024, &[8], &[12])));
        let columns = at(1000, &[4, 5], &[100, 4]);
        assert!(!meet(&columns, &at(1020, &[4, 5], &[100, 4])));
        assert!(meet(&columns, &at(1016, &[4, 5], &[100, 4])));
        assert!(meet(&at(1020, &[4, 5], &[100, 4]), &at(1116, &[4, 5], &[100, 4])));
        assert!(meet(&row, &member));
    }

    #[test]
    fn state_fields_have_cells_of_their_own() {
        let wrong = |shape: &[usize], strides: &[isize], role| {
            binding(shape, strides).check(role).err().unwrap_or_default()
        };
        assert_eq!(wrong(&[3, 4], &[16, 4], Role::State), "");
        assert_eq!(wrong(&[3, 4], &[4, 12], Role::State), "");
        assert!(wrong(&[3, 4], &[12, 4], Role::State).contains("several cells in one place"));
        assert!(wrong(&[3, 4], &[0, 4], Role::State).contains("several cells in one place"));
        assert_eq!(wrong(&[3, 4], &[0, 4], Role::Const), "");
        assert_eq!(wrong(&[1, 4], &[0, 4], Role::State), "");
        for stride in [isize::MAX, isize::MIN, isize::MAX / 2] {
            let found = wrong(&[4, 1], &[stride, 4], Role::Const);
            assert_eq!(found, "the strides lead beyond all memory addresses");
        }
    }
}
