//! The part of a launch that a device computes: its blocks, and the cells that they read and write.
//! All of it follows from the launch's cut in the plan ([`crate::plan::Cut`]) and the sizes.

mod reach;
#[cfg(test)]
mod tests;

use super::devices::Devices;
use super::error::RankError;
use super::numbering::blocks_of;
use super::region::{Area, Region};
use crate::bind::{Bound, Buffer};
use crate::expr::Sizes;
use crate::launch::{Launch, Rows};
use crate::layout::Placement;
use crate::plan::{self, Argument, Cut, Near, Parts, Use};
use reach::{Reach, of_points, of_tiles};
use std::ops::Range;

/// How the memory of a buffer is cut: rows, columns of a row, and bytes of one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Along the slowest dimension.
    pub rows: usize,
    /// Along the next one; 1 where there is none.
    pub columns: usize,
    /// Bytes of what lies in one row and column.
    pub bytes: usize,
    /// Whether rows and columns are those of cells.
    pub of_cells: bool,
}

impl Form {
    /// The form of a buffer. One whose cells do not lie row after row is a single piece.
    pub fn of(buffer: &Buffer) -> Self {
        let extent = |dimension: usize| buffer.shape.get(dimension).copied().unwrap_or(1);
        let (rows, columns) = (extent(0), extent(1));
        let cells: usize = buffer.shape.iter().product();
        let numbers = buffer.cells.checked_div(cells).unwrap_or(1);
        let by_rows =
            matches!(buffer.placement, Placement::Rows { .. } | Placement::Records { .. });
        // Rows with pads have more cells than their extents.
        if !by_rows || numbers * cells != buffer.cells {
            return Self { rows: 1, columns: 1, bytes: buffer.bytes(), of_cells: false };
        }
        let bytes = buffer.bytes().checked_div(rows * columns).unwrap_or(0);
        Self { rows, columns, bytes, of_cells: true }
    }

    /// All cells.
    pub fn whole(self) -> Area {
        Area { rows: 0..self.rows, columns: 0..self.columns }
    }

    /// Bytes of the cells of some boxes, in order.
    pub fn runs(self, areas: &[Area]) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for area in areas {
            for row in area.rows.clone() {
                let at = |column: usize| (row * self.columns + column) * self.bytes;
                let run = at(area.columns.start)..at(area.columns.end);
                match runs.last_mut() {
                    Some(last) if last.end == run.start => last.end = run.end,
                    _ => runs.push(run),
                }
            }
        }
        runs
    }

    /// The rows that have some bytes.
    pub fn rows_of(self, bytes: &Range<usize>) -> Area {
        let row = (self.columns * self.bytes).max(1);
        let rows = bytes.start / row..bytes.end.div_ceil(row).min(self.rows);
        Area { rows, columns: 0..self.columns }
    }
}

/// The blocks of a launch that a device runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// All of them.
    All,
    /// The tile rows of a launch in bands, of so many.
    Band {
        /// Tile rows of the launch.
        rows: u32,
        /// Those of the device.
        own: Range<u32>,
    },
    /// Those of some numbers.
    Numbers(Vec<Range<u32>>),
}

impl Blocks {
    /// The part of a launch with these blocks. A band has other rows than the whole, so it is not
    /// cut again.
    pub fn part_of<'p>(&self, launch: &Launch<'p>) -> Launch<'p> {
        match self {
            Self::All => launch.clone(),
            Self::Band { rows, own } => {
                let rows = Some(Rows { all: *rows, first: 0, count: *rows, reach: 0 });
                Launch { rows: None, ..Launch { rows, ..launch.clone() }.band(own) }
            }
            Self::Numbers(numbers) => {
                let numbered = match numbers.as_slice() {
                    [one] => launch.numbered(one),
                    _ => None,
                };
                let part = || Launch { part: Some(numbers.as_slice().into()), ..launch.clone() };
                numbered.unwrap_or_else(part)
            }
        }
    }
}

/// What a device has to do with a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// The blocks that it runs.
    pub blocks: Blocks,
    /// For each argument the cells that they read; none of arguments that are no buffers.
    pub reads: Vec<Region>,
    /// For each argument the cells that they load, those whose values do not matter included.
    pub loads: Vec<Region>,
    /// For each argument the cells that they write.
    pub writes: Vec<Region>,
}

/// Which cells of those that a launch uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// Those of tiles alone.
    Own,
    /// With those around them whose values matter.
    Read,
    /// With all that are loaded.
    Loaded,
}

impl Work {
    /// Whether the device runs a block.
    pub fn is_some(&self) -> bool {
        match &self.blocks {
            Blocks::All => true,
            Blocks::Band { own, .. } => !own.is_empty(),
            Blocks::Numbers(numbers) => !numbers.is_empty(),
        }
    }
}

/// Tells a launch of the plan from all others. The plan stays where it is for a whole run.
pub fn key(launch: &plan::Launch) -> usize {
    std::ptr::from_ref(launch).addr()
}

/// The work of all devices with a launch of so many blocks; `forms` are those of its arguments'
/// buffers.
///
/// # Errors
/// A launch that can't be shared out.
pub fn of_launch(
    launch: &plan::Launch,
    bound: &Bound,
    grid: [u32; 3],
    forms: &[Option<Form>],
    devices: Devices,
) -> Result<Vec<Work>, RankError> {
    let Some(cut) = &launch.cut else {
        return replicated(launch, grid, forms, devices);
    };
    let sharing = Sharing::new(launch, cut, bound, grid)?;
    let works = (0..devices.count()).map(|device| {
        let share = devices.share(&sharing.tiles, device);
        sharing.work(forms, &share)
    });
    let works = works.collect::<Result<Vec<_>, RankError>>()?;
    // A value that several devices compute in part is none of them's.
    for (place, argument) in launch.arguments.iter().enumerate() {
        let whole = sharing.used(place) == Some(&Use::Whole) && argument.written().is_some();
        if whole && works.iter().filter(|work| work.is_some()).count() > 1 {
            return Err(refused(launch, "its blocks write the same cells"));
        }
    }
    Ok(works)
}

fn refused(launch: &plan::Launch, why: &str) -> RankError {
    RankError::Shared { kernel: launch.kernel.clone(), why: why.to_owned() }
}

/// A launch of one block without a cut: every device does the whole of it.
fn replicated(
    launch: &plan::Launch,
    grid: [u32; 3],
    forms: &[Option<Form>],
    devices: Devices,
) -> Result<Vec<Work>, RankError> {
    if launch.cooperative || launch.turns.is_some() {
        return Err(refused(launch, "its blocks wait for each other"));
    }
    if grid != [1, 1, 1] {
        return Err(refused(launch, "its blocks are not those of tiles"));
    }
    let all = |wanted: fn(&Argument) -> bool| -> Vec<Region> {
        let arguments = launch.arguments.iter().zip(forms);
        let region = |(argument, form): (&Argument, &Option<Form>)| match form {
            Some(form) if wanted(argument) => form.whole().into(),
            _ => Region::default(),
        };
        arguments.map(region).collect()
    };
    let reads = all(|argument| !matches!(argument, Argument::Write(_)));
    let (loads, writes) = (reads.clone(), all(|one| one.written().is_some()));
    let work = Work { blocks: Blocks::All, reads, loads, writes };
    Ok(vec![work; devices.count()])
}

/// A launch of which parts can be run by themselves.
pub struct Sharing<'l> {
    launch: &'l plan::Launch,
    cut: &'l Cut,
    /// How a buffer is used that the cut does not list.
    near: Use,
    sizes: &'l Sizes,
    /// Tiles per dimension, slowest first.
    pub tiles: Vec<u32>,
    blocks: u32,
}

impl<'l> Sharing<'l> {
    /// A launch of so many blocks, by its cut.
    ///
    /// # Errors
    /// A size without a value.
    pub fn new(
        launch: &'l plan::Launch,
        cut: &'l Cut,
        bound: &'l Bound,
        grid: [u32; 3],
    ) -> Result<Self, RankError> {
        let sizes = &bound.sizes;
        let tiles = match &cut.parts {
            Parts::Points(_) => vec![grid[0]],
            Parts::Tiles(tiles) => {
                let counts = tiles.iter().map(|one| one.count.evaluate(sizes));
                let count = |count: i64| u32::try_from(count.max(0)).unwrap_or(u32::MAX);
                counts.map(|one| Ok(count(one?))).collect::<Result<Vec<u32>, RankError>>()?
            }
        };
        let near = Use::Near(Near::default());
        Ok(Self { launch, cut, near, sizes, tiles, blocks: grid[0] })
    }

    /// How an argument is used, of a buffer.
    pub fn used(&self, place: usize) -> Option<&Use> {
        let name = self.launch.arguments.get(place).and_then(Argument::buffer)?;
        Some(self.cut.uses.get(name).unwrap_or(&self.near))
    }

    /// The work with some tiles, by their places per dimension.
    ///
    /// # Errors
    /// Blocks that are not those of tiles.
    pub fn work(&self, forms: &[Option<Form>], share: &[Range<u32>]) -> Result<Work, RankError> {
        let (blocks, numbers) = self.blocks(share)?;
        let (mut reads, mut loads, mut writes) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (argument, form)) in self.launch.arguments.iter().zip(forms).enumerate() {
            let (mut read, mut loaded, mut written) = Default::default();
            if let (Some(used), Some(form), false) = (self.used(place), form, numbers.is_empty()) {
                let cells = |which| self.cells(used, *form, (share, &numbers), which);
                let own = cells(Which::Own)?;
                if !matches!(argument, Argument::Write(_)) {
                    read = cells(Which::Read)?;
                    read.add(&own);
                    loaded = cells(Which::Loaded)?;
                }
                if argument.written().is_some() {
                    written = own;
                }
            }
            reads.push(read);
            loads.push(loaded);
            writes.push(written);
        }
        Ok(Work { blocks, reads, loads, writes })
    }

    /// The blocks of some tiles, and their numbers in the whole launch.
    fn blocks(&self, share: &[Range<u32>]) -> Result<(Blocks, Vec<Range<u32>>), RankError> {
        let rows = share.first().cloned().unwrap_or_default();
        let count = self.tiles.first().copied().unwrap_or(0);
        let beside = share.iter().zip(&self.tiles).skip(1);
        let whole_rows = beside.clone().all(|(share, tiles)| *share == (0..*tiles));
        let empty = rows.is_empty() || beside.clone().any(|(share, _)| share.is_empty());
        if let (Some(bands), true) = (&self.launch.bands, whole_rows) {
            let counted = bands.rows.evaluate(self.sizes)?;
            if counted == i64::from(count) && count > 0 && self.blocks.is_multiple_of(count) {
                let each = self.blocks / count;
                let numbers = rows.start * each..rows.end * each;
                let numbers = if empty { Vec::new() } else { vec![numbers] };
                return Ok((Blocks::Band { rows: count, own: rows }, numbers));
            }
        }
        let numbers = blocks_of(self.cut.order, &self.tiles, share, self.blocks);
        let numbers =
            numbers.ok_or_else(|| refused(self.launch, "its blocks are not those of its tiles"))?;
        Ok((Blocks::Numbers(numbers.clone()), numbers))
    }

    /// The rows of an argument's buffer that belong to a tile, by its place along the slowest
    /// dimension.
    ///
    /// # Errors
    /// A size without a value, and rows with gaps.
    pub fn own_rows(&self, place: usize, form: Form, tile: u32) -> Result<Range<usize>, RankError> {
        let share = self.rows(tile..tile + 1);
        let numbers = [tile..tile + 1];
        let Some(used) = self.used(place) else { return Ok(0..0) };
        Ok(self.cells(used, form, (&share, &numbers), Which::Own)?.rows())
    }

    /// Rows of an argument's buffer, in the coordinates of the program.
    ///
    /// # Errors
    /// A size without a value.
    pub fn part(&self, place: usize, rows: &Range<usize>) -> Result<Range<i64>, RankError> {
        let origin = self.reach(place)?.map_or(0, |reach| reach.origin);
        let at = |row: usize| i64::try_from(row).unwrap_or(i64::MAX).saturating_add(origin);
        Ok(at(rows.start)..at(rows.end))
    }

    /// What remains of some work where the cells of some rows alone matter, in the coordinates of
    /// the program.
    ///
    /// # Errors
    /// A size without a value.
    pub fn narrowed(
        &self,
        mut work: Work,
        forms: &[Option<Form>],
        part: &Range<i64>,
    ) -> Result<Work, RankError> {
        let regions = work.reads.iter_mut().zip(&mut work.writes);
        for (place, ((reads, writes), form)) in regions.zip(forms).enumerate() {
            let (Some(reach), Some(form)) = (self.reach(place)?, form) else { continue };
            let rows = |which| {
                let mut all = Region::default();
                for rows in reach.around(part.clone(), (form.rows, which)) {
                    all.add(&Area { rows, ..form.whole() }.into());
                }
                all
            };
            let own = rows(Which::Own);
            let mut read = rows(Which::Read);
            read.add(&own);
            (*reads, *writes) = (reads.common(&read), writes.common(&own));
        }
        Ok(work)
    }

    /// How far an argument is read along the slowest dimension; none where any cell may be.
    fn reach(&self, place: usize) -> Result<Option<Reach>, RankError> {
        match self.used(place) {
            Some(Use::Near(near)) => Reach::of(near, 0, self.sizes).map(Some),
            _ => Ok(None),
        }
    }

    /// All tiles of some rows of them.
    pub fn rows(&self, rows: Range<u32>) -> Vec<Range<u32>> {
        let beside = self.tiles.iter().skip(1).map(|count| 0..*count);
        std::iter::once(rows).chain(beside).collect()
    }

    /// The cells that a device uses.
    fn cells(
        &self,
        used: &Use,
        form: Form,
        (share, numbers): (&[Range<u32>], &[Range<u32>]),
        which: Which,
    ) -> Result<Region, RankError> {
        let whole = form.whole();
        Ok(match used {
            Use::Whole => whole.into(),
            Use::Blocks(each) => {
                let mut all = Region::default();
                for range in numbers {
                    let at = |block: u32| block as usize * *each as usize;
                    let rows = at(range.start)..at(range.end).min(form.rows);
                    all.add(&Area { rows, columns: whole.columns.clone() }.into());
                }
                all
            }
            Use::Near(_) if !form.of_cells => {
                return Err(refused(self.launch, "the rows of its buffers have gaps"));
            }
            Use::Near(near) => {
                let extents = [form.rows, form.columns];
                let mut along = extents.map(|extent| vec![0..extent]);
                let places = extents.into_iter().zip(&mut along).enumerate();
                for (place, (extent, cells)) in places {
                    let reach = Reach::of(near, place, self.sizes)?;
                    match &self.cut.parts {
                        Parts::Tiles(tiles) => {
                            let (Some(tiles), Some(own), Some(count)) =
                                (tiles.get(place), share.get(place), self.tiles.get(place))
                            else {
                                continue;
                            };
                            let part = of_tiles(tiles, (own, *count), self.sizes, (reach, which))?;
                            *cells = reach.around(part, (extent, which));
                        }
                        Parts::Points(points) if place == 0 => {
                            cells.clear();
                            for range in numbers {
                                let part = of_points(points, range, self.sizes)?;
                                cells.extend(reach.around(part, (extent, which)));
                            }
                        }
                        Parts::Points(_) => {}
                    }
                }
                let mut all = Region::default();
                let [rows, columns] = &along;
                for rows in rows {
                    for columns in columns {
                        let area = Area { rows: rows.clone(), columns: columns.clone() };
                        all.add(&area.into());
                    }
                }
                all
            }
        })
    }
}

impl From<crate::expr::ExprError> for RankError {
    fn from(error: crate::expr::ExprError) -> Self {
        Self::Launch(error.into())
    }
}
