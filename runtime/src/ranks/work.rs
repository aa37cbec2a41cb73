//! The part of a launch that a device computes: its blocks, and the cells that they read and write.
//! All of it follows from the launch's cut in the plan ([`crate::plan::Cut`]) and the sizes.

#[cfg(test)]
mod tests;

use super::devices::Devices;
use super::error::RankError;
use super::numbering::blocks_of;
use super::region::{Area, Region};
use crate::bind::{Bound, Buffer};
use crate::expr::Sizes;
use crate::layout::Placement;
use crate::plan::{self, Argument, Cut, Near, Parts, Points, Tiles, Use};
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
    let sizes = &bound.sizes;
    let tiles = match &cut.parts {
        Parts::Points(_) => vec![grid[0]],
        Parts::Tiles(tiles) => {
            let counts = tiles.iter().map(|one| one.count.evaluate(sizes));
            let counts = counts.map(|count| Ok(u32::try_from(count?.max(0)).unwrap_or(u32::MAX)));
            counts.collect::<Result<Vec<u32>, RankError>>()?
        }
    };
    let near = Use::Near(Near::default());
    let sharing = Sharing { launch, cut, near: &near, sizes, tiles: &tiles, blocks: grid[0] };
    let works = (0..devices.count()).map(|device| sharing.work(forms, devices, device));
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
        return Err(refused(launch, "it computes a sweep, whose blocks wait for each other"));
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

/// A launch that is shared out.
struct Sharing<'l> {
    launch: &'l plan::Launch,
    cut: &'l Cut,
    /// How a buffer is used that the cut does not list.
    near: &'l Use,
    sizes: &'l Sizes,
    tiles: &'l [u32],
    blocks: u32,
}

impl Sharing<'_> {
    /// How an argument is used, of a buffer.
    fn used(&self, place: usize) -> Option<&Use> {
        let name = self.launch.arguments.get(place).and_then(Argument::buffer)?;
        Some(self.cut.uses.get(name).unwrap_or(self.near))
    }

    fn work(
        &self,
        forms: &[Option<Form>],
        devices: Devices,
        device: usize,
    ) -> Result<Work, RankError> {
        let share = devices.share(self.tiles, device);
        let (blocks, numbers) = self.blocks(&share)?;
        let (mut reads, mut loads, mut writes) = (Vec::new(), Vec::new(), Vec::new());
        for (place, (argument, form)) in self.launch.arguments.iter().zip(forms).enumerate() {
            let (mut read, mut loaded, mut written) = Default::default();
            if let (Some(used), Some(form), false) = (self.used(place), form, numbers.is_empty()) {
                let cells = |which| self.cells(used, *form, (&share, &numbers), which);
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
        let beside = share.iter().zip(self.tiles).skip(1);
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
        let numbers = blocks_of(self.cut.order, self.tiles, share, self.blocks);
        let numbers =
            numbers.ok_or_else(|| refused(self.launch, "its blocks are not those of its tiles"))?;
        Ok((Blocks::Numbers(numbers.clone()), numbers))
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

/// The cells of some tiles along a dimension, in the coordinates of the program.
fn of_tiles(
    tiles: &Tiles,
    (own, count): (&Range<u32>, u32),
    sizes: &Sizes,
    (reach, which): (Reach, Which),
) -> Result<Range<i64>, RankError> {
    let (first, last) = (tiles.first.evaluate(sizes)?, tiles.last.evaluate(sizes)?);
    let begin = |tile: u32| {
        let cells = i64::from(tile) * i64::from(tiles.cells);
        first.saturating_add(cells).saturating_add(tiles.before)
    };
    let mut start = if own.start == 0 { first } else { begin(own.start) };
    let mut end = if own.end == count { last.saturating_add(1) } else { begin(own.end) };
    if which == Which::Loaded || which == Which::Read && reach.wraps {
        // The last tile goes on at the other end. Tiles at both ends are loaded whole.
        end = end.max(begin(own.end));
    }
    if which == Which::Loaded {
        start = start.min(begin(own.start));
    }
    Ok(start..end)
}

/// The rows of the points of some blocks, in the coordinates of the program.
fn of_points(points: &Points, blocks: &Range<u32>, sizes: &Sizes) -> Result<Range<i64>, RankError> {
    let (first, row) = (points.first.evaluate(sizes)?, points.row.evaluate(sizes)?.max(1));
    let point = |block: u32| i64::from(block) * i64::from(points.points);
    let row_behind = |point: i64| point / row + i64::from(point % row > 0);
    let start = first.saturating_add(point(blocks.start) / row);
    Ok(start..first.saturating_add(row_behind(point(blocks.end))))
}

/// The cells of a buffer at a part and around it, along a dimension.
#[derive(Clone, Copy, Debug)]
struct Reach {
    origin: i64,
    below: i64,
    above: i64,
    spare_below: i64,
    spare_above: i64,
    wraps: bool,
    mirrors: bool,
}

impl Reach {
    fn of(near: &Near, place: usize, sizes: &Sizes) -> Result<Self, RankError> {
        let at = |cells: &[i64]| cells.get(place).copied().unwrap_or(0);
        Ok(Self {
            origin: near.origin.get(place).map_or(Ok(0), |origin| origin.evaluate(sizes))?,
            below: at(&near.below),
            above: at(&near.above),
            spare_below: at(&near.spare_below),
            spare_above: at(&near.spare_above),
            wraps: near.wraps,
            mirrors: near.mirrors,
        })
    }

    /// The cells of the buffer, of so many, for those of a part: up to three ranges.
    fn around(self, part: Range<i64>, (extent, which): (usize, Which)) -> Vec<Range<usize>> {
        let (below, above) = match which {
            Which::Own => (0, 0),
            Which::Read => (self.below, self.above),
            Which::Loaded => (
                self.below.saturating_add(self.spare_below),
                self.above.saturating_add(self.spare_above),
            ),
        };
        let start = part.start.saturating_sub(self.origin).saturating_sub(below);
        let end = part.end.saturating_sub(self.origin).saturating_add(above);
        let size = i64::try_from(extent).unwrap_or(i64::MAX);
        let inside = |start: i64, end: i64| {
            let cell = |at: i64| usize::try_from(at.clamp(0, size)).unwrap_or(0);
            cell(start)..cell(end)
        };
        if which == Which::Own {
            return vec![inside(start, end)];
        }
        // A part may lie beyond a buffer of another grid.
        let mut found = vec![match self.mirrors {
            true => {
                let image = size.saturating_mul(2).saturating_sub(end).saturating_sub(1);
                inside(start.min(image), end.max(1_i64.saturating_sub(start)))
            }
            false => inside(start.min(size.saturating_sub(1)), end.max(1)),
        }];
        let length = end.saturating_sub(start);
        if self.wraps && length >= size {
            return vec![0..extent];
        }
        if self.wraps {
            let first = start.rem_euclid(size.max(1));
            found.extend([inside(first, first + length), inside(0, first + length - size)]);
        }
        found
    }
}

impl From<crate::expr::ExprError> for RankError {
    fn from(error: crate::expr::ExprError) -> Self {
        Self::Launch(error.into())
    }
}
