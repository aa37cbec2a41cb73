//! How many devices a run has, and in which grid.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// The most devices of a run.
const MOST: usize = 4096;

/// Devices in rows along the slowest dimension of the grids, and in columns along the next one.
/// They are numbered row after row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Devices {
    rows: usize,
    columns: usize,
    /// Whether another grid of as many would do.
    open: bool,
}

impl Devices {
    /// The most devices of a process, which have threads of their own.
    pub const MOST_OF_PROCESS: usize = 64;
    /// Parts of a GPU's share, each with a stream of its own. A part goes on when its neighbours
    /// are done, while others of the GPU still run.
    pub const PARTS: usize = 4;

    /// So many devices along the slowest dimension, or in another grid.
    pub fn along(rows: usize) -> Self {
        Self { rows: rows.max(1), columns: 1, open: true }
    }

    /// The grids that the devices may have, for fields of so many dimensions. No grid has more
    /// columns than rows: cells beside a column lie apart in memory.
    pub fn grids(self, dimensions: usize) -> Vec<Self> {
        if !self.open || dimensions < 2 {
            return vec![self];
        }
        let columns = (1..=self.count()).filter(|columns| self.count().is_multiple_of(*columns));
        let wide = |columns: &usize| columns * columns <= self.count();
        let grid = |columns| Self { rows: self.count() / columns, columns, open: columns == 1 };
        columns.take_while(wide).map(grid).collect()
    }

    /// The same in the grid that was chosen for a compiled program, where any would do.
    pub fn or_chosen(self, chosen: Option<Self>) -> Self {
        let same = |chosen: &Self| self.open && chosen.count() == self.count();
        chosen.filter(same).unwrap_or(self)
    }

    /// Rows and columns.
    pub fn shape(self) -> [usize; 2] {
        [self.rows, self.columns]
    }

    /// How many there are.
    pub fn count(self) -> usize {
        self.rows * self.columns
    }

    /// Each device as several in a row along the slowest dimension.
    pub fn split(self, each: usize) -> Self {
        Self { rows: self.rows * each.max(1), ..self }
    }

    /// The device of which one was a part before [`Devices::split`].
    pub fn whole_of(self, part: usize, each: usize) -> usize {
        part / self.columns / each.max(1) * self.columns + part % self.columns
    }

    /// The part of a grid of some extents that each device has, at most.
    pub fn part(self, extents: &[i64]) -> Vec<i64> {
        let extents = extents.iter().enumerate();
        extents.map(|(dimension, extent)| self.part_along(dimension, *extent)).collect()
    }

    /// The same along a dimension, from the slowest.
    pub fn part_along(self, dimension: usize, extent: i64) -> i64 {
        let devices = [self.rows, self.columns].get(dimension).copied().unwrap_or(1);
        let devices = i64::try_from(devices).unwrap_or(i64::MAX).max(1);
        extent / devices + i64::from(extent % devices > 0)
    }

    /// The tiles of a device per dimension, of so many tiles in all. Tiles of one dimension are
    /// shared out between all devices.
    pub fn share(self, tiles: &[u32], device: usize) -> Vec<Range<u32>> {
        let part = |count: u32, parts: usize, part: usize| {
            let at = |part: usize| (u64::from(count) * part as u64 / parts as u64) as u32;
            at(part)..at(part + 1)
        };
        let mut shares: Vec<_> = tiles.iter().map(|count| 0..*count).collect();
        match (tiles, shares.as_mut_slice()) {
            ([count], [rows]) => *rows = part(*count, self.count(), device),
            ([rows, columns, ..], [of_rows, of_columns, ..]) => {
                *of_rows = part(*rows, self.rows, device / self.columns);
                *of_columns = part(*columns, self.columns, device % self.columns);
            }
            _ => {}
        }
        shares
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.open {
            true => write!(f, "{}", self.rows),
            false => write!(f, "{}x{}", self.rows, self.columns),
        }
    }
}

impl FromStr for Devices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number > 0);
        let open = !text.contains('x');
        let (rows, columns) = text.split_once('x').unwrap_or((text, "1"));
        let devices = number(rows).zip(number(columns));
        let devices = devices.filter(|(rows, columns)| {
            rows.checked_mul(*columns).is_some_and(|count| count <= MOST)
        });
        let (rows, columns) = devices.ok_or_else(|| {
            format!("expected a number such as 4 or two such as 2x2, {MOST} devices at most")
        })?;
        Ok(Self { rows, columns, open })
    }
}

/// Devices as a user names them: how many in which grid, or the numbers of GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceList {
    /// How many there are, and their grid.
    pub devices: Devices,
    /// The GPU of each device; empty where any do.
    pub gpus: Vec<i32>,
}

impl From<Devices> for DeviceList {
    fn from(devices: Devices) -> Self {
        Self { devices, gpus: Vec::new() }
    }
}

impl fmt::Display for DeviceList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gpus.as_slice() {
            [] => self.devices.fmt(f),
            [one] => write!(f, "{one},"),
            gpus => f.write_str(&gpus.iter().map(i32::to_string).collect::<Vec<_>>().join(",")),
        }
    }
}

impl FromStr for DeviceList {
    type Err = String;

    /// Reads `4`, `2x2`, or numbers of GPUs: `0,2`, and `2,` for a single one.
    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains(',') {
            return Ok(text.parse::<Devices>()?.into());
        }
        let numbers = text.strip_suffix(',').unwrap_or(text).split(',');
        let numbers = numbers.map(|number| number.trim().parse::<i32>().ok());
        let gpus: Vec<i32> = numbers
            .collect::<Option<_>>()
            .filter(|gpus: &Vec<i32>| gpus.len() <= MOST && gpus.iter().all(|gpu| *gpu >= 0))
            .ok_or("expected the numbers of GPUs, separated by commas: 0,2")?;
        let twice = |(place, gpu): (usize, &i32)| gpus.iter().skip(place + 1).any(|one| one == gpu);
        match gpus.iter().enumerate().any(twice) {
            true => Err("a GPU is named twice; name each once".to_owned()),
            false => Ok(Self { devices: Devices::along(gpus.len()), gpus }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_and_written() {
        for text in ["1", "4", "4x1", "2x3", "1x2"] {
            assert_eq!(text.parse::<Devices>().unwrap().to_string(), text);
        }
        for text in ["", "0", "x", "2x", "2x0", "-1", "4x4x4", "100x100", "99999999999999999999"] {
            assert!(text.parse::<Devices>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_number_leaves_the_grid_open() {
        let grids = |text: &str, dimensions| -> Vec<String> {
            let grids = text.parse::<Devices>().unwrap().grids(dimensions);
            grids.iter().map(Devices::to_string).collect()
        };
        assert_eq!(grids("12", 2), ["12", "6x2", "4x3"]);
        assert_eq!(grids("4", 3), ["4", "2x2"]);
        assert_eq!((grids("4", 1), grids("4x1", 2)), (vec!["4".into()], vec!["4x1".into()]));
        let (open, wide): (Devices, Devices) = ("4".parse().unwrap(), "2x2".parse().unwrap());
        assert_eq!(open.or_chosen(Some(wide)), wide);
        assert_eq!(open.or_chosen("3".parse().ok()), open);
        assert_eq!("4x1".parse::<Devices>().unwrap().or_chosen(Some(wide)).to_string(), "4x1");
    }

    #[test]
    fn gpus_are_named_by_numbers() {
        for (text, devices, gpus) in [
            ("4", "4", vec![]),
            ("2x2", "2x2", vec![]),
            ("2,0", "2", vec![2, 0]),
            ("3,", "1", vec![3]),
        ] {
            let found: DeviceList = text.parse().unwrap();
            assert_eq!((found.devices.to_string(), &found.gpus), (devices.to_owned(), &gpus));
            assert_eq!(found.to_string(), text);
        }
        for text in ["", "0", ",", "0,,1", "0,-1", "0,x", "0,1,0"] {
            assert!(text.parse::<DeviceList>().is_err(), "{text}");
        }
    }

    #[test]
    fn devices_have_parts() {
        let all: Devices = "2x3".parse().unwrap();
        assert_eq!(all.split(4).to_string(), "8x3");
        let wholes: Vec<usize> = (0..12).map(|part| all.whole_of(part, 2)).collect();
        assert_eq!(wholes, [0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5]);
        assert_eq!(all.part(&[7, 7, 7]), [4, 3, 7]);
        assert_eq!(Devices::along(4).part(&[512, 9]), [128, 9]);
    }

    #[test]
    fn each_tile_is_that_of_one_device() {
        let all: Devices = "2x3".parse().unwrap();
        assert_eq!(all.share(&[4, 7], 0), [0..2, 0..2]);
        assert_eq!(all.share(&[4, 7, 5], 5), [2..4, 4..7, 0..5]);
        assert_eq!(all.share(&[13], 5), [10..13]);
        assert_eq!(Devices::along(4).share(&[3, 5], 0), [0..0, 0..5]);
        for count in 0..20 {
            let shares = (0..6).flat_map(|device| all.share(&[count], device).remove(0));
            assert!(shares.eq(0..count));
        }
    }
}
