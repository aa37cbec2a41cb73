//! Pictures of arrays: `.npy` in, PNG out.
//!
//! Colour shows the height of terrain (viridis, which is even to the eye). Hill shading with light
//! from the north-west shows its slope, so that the effect of smoothing is seen at once.

use std::io::BufWriter;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// A grid of heights, row by row.
#[derive(Debug, PartialEq)]
pub struct Heights {
    rows: usize,
    columns: usize,
    values: Vec<f32>,
}

/// Screen pixels along each side of a cell.
const ZOOM: usize = 2;

/// Viridis at nine equally spaced places, sRGB.
const VIRIDIS: [[f32; 3]; 9] = [
    [68.0, 1.0, 84.0],
    [71.0, 44.0, 122.0],
    [59.0, 81.0, 139.0],
    [44.0, 113.0, 142.0],
    [33.0, 144.0, 141.0],
    [39.0, 173.0, 129.0],
    [92.0, 200.0, 99.0],
    [170.0, 220.0, 50.0],
    [253.0, 231.0, 37.0],
];

/// Blue, white, red: below, at and above zero.
const DIVERGING: [[f32; 3]; 3] = [[33.0, 102.0, 172.0], [247.0, 247.0, 247.0], [178.0, 24.0, 43.0]];

/// Draws both grids with one scale of heights and one of slopes, and in a third picture what
/// changed.
///
/// # Errors
/// When the grids differ in shape, or a file can't be written.
pub fn compare(before: &Heights, after: &Heights, folder: &Path) -> Result<()> {
    ensure!(
        (before.rows, before.columns) == (after.rows, after.columns),
        "the grids before and after differ in shape"
    );
    let (low, high) = before.range();
    let steepness = before.steepness();
    for (heights, name) in [(before, "before.png"), (after, "after.png")] {
        heights.draw(&folder.join(name), |row, column| {
            let place = (heights.at(row, column) - low) / (high - low);
            let light = heights.light(row, column, steepness);
            colour(&VIRIDIS, place).map(|channel| channel * light)
        })?;
    }
    let change = |row, column| after.at(row, column) - before.at(row, column);
    let cells = (0..before.rows).flat_map(|row| (0..before.columns).map(move |c| (row, c)));
    let largest = cells.fold(0.0, |m: f32, (row, column)| m.max(change(row, column).abs()));
    before.draw(&folder.join("difference.png"), |row, column| {
        let place = 0.5 + 0.5 * change(row, column) / largest.max(f32::MIN_POSITIVE);
        colour(&DIVERGING, place)
    })
}

/// How values become colours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Palette {
    /// Black for 0, white for 1: photographs.
    Grey,
    /// Viridis from the least value to the largest.
    Viridis,
    /// Blue, white and red around 0; the number is that of the full colours.
    Diverging(f32),
}

/// Draws one array.
///
/// # Errors
/// When the file can't be written.
pub fn draw(values: &Heights, palette: Palette, path: &Path) -> Result<()> {
    let (low, high) = values.range();
    values.draw(path, |row, column| {
        let value = values.at(row, column);
        match palette {
            Palette::Grey => colour(&[[0.0; 3], [255.0; 3]], value),
            Palette::Viridis => colour(&VIRIDIS, (value - low) / (high - low)),
            Palette::Diverging(full) => colour(&DIVERGING, 0.5 + 0.5 * value / full),
        }
    })
}

impl Heights {
    /// Reads a two-dimensional little-endian f32 array in C order.
    ///
    /// # Errors
    /// When the file can't be read or holds something else.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&bytes).with_context(|| format!("reading {}", path.display()))
    }

    /// The format is that of NumPy's `numpy.lib.format`: magic, version, length, header, data.
    fn parse(bytes: &[u8]) -> Result<Self> {
        let rest = bytes.strip_prefix(b"\x93NUMPY").context("not an .npy file")?;
        let (length, rest) = match rest {
            [1, _, a, b, rest @ ..] => (usize::from(u16::from_le_bytes([*a, *b])), rest),
            [2 | 3, _, a, b, c, d, rest @ ..] => {
                (u32::from_le_bytes([*a, *b, *c, *d]) as usize, rest)
            }
            _ => bail!("unknown version of .npy"),
        };
        let (header, data) = rest.split_at_checked(length).context("cut off in its header")?;
        let header = String::from_utf8_lossy(header).replace(' ', "");
        ensure!(
            header.contains("'descr':'<f4'") && header.contains("'fortran_order':False"),
            "not an f32 array in C order: {}",
            header.trim()
        );
        let shape = header
            .split_once("'shape':(")
            .and_then(|(_, rest)| rest.split_once(')'))
            .context("no shape in the header")?
            .0;
        // Writers differ in whether a comma follows the last number.
        let numbers = shape.split(',').map(str::trim).filter(|number| !number.is_empty());
        let extents: Result<Vec<usize>, _> = numbers.map(str::parse).collect();
        let Ok([rows, columns]) = extents.as_deref() else {
            bail!("not two-dimensional: its shape is ({shape})");
        };
        let (rows, columns) = (*rows, *columns);
        let cells = rows.checked_mul(columns).context("too large")?;
        let (quads, _) = data.as_chunks::<4>();
        ensure!(quads.len() == cells, "{} values for {cells} cells", quads.len());
        ensure!(rows > 1 && columns > 1, "too small for a picture");
        let values = quads.iter().map(|quad| f32::from_le_bytes(*quad)).collect();
        Ok(Self { rows, columns, values })
    }

    fn at(&self, row: usize, column: usize) -> f32 {
        self.values[row * self.columns + column]
    }

    fn range(&self) -> (f32, f32) {
        let low = self.values.iter().copied().fold(f32::INFINITY, f32::min);
        let high = self.values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        (low, high.max(low + f32::MIN_POSITIVE))
    }

    /// Central differences, one-sided at the rim: height per cell, down the rows and the columns.
    fn slope(&self, row: usize, column: usize) -> (f32, f32) {
        let (up, down) = (row.saturating_sub(1), (row + 1).min(self.rows - 1));
        let (left, right) = (column.saturating_sub(1), (column + 1).min(self.columns - 1));
        (
            (self.at(down, column) - self.at(up, column)) / (down - up) as f32,
            (self.at(row, right) - self.at(row, left)) / (right - left) as f32,
        )
    }

    /// Root of the mean squared slope: the slope of an ordinary hillside.
    fn steepness(&self) -> f32 {
        let mut sum = 0.0;
        for row in 0..self.rows {
            for column in 0..self.columns {
                let (y, x) = self.slope(row, column);
                sum += f64::from(y * y + x * x);
            }
        }
        let mean = sum / self.values.len() as f64;
        (mean.sqrt() as f32).max(f32::MIN_POSITIVE)
    }

    /// Lambert's cosine law: an ordinary hillside leans by 45 degrees, flat ground is 0.85 bright.
    fn light(&self, row: usize, column: usize, steepness: f32) -> f32 {
        let (y, x) = self.slope(row, column);
        let (y, x) = (y / steepness, x / steepness);
        // The ground's normal is (-y, -x, 1); the light comes from (-1, -1, 1.5), both normalised.
        let cosine = (y + x + 1.5) / ((y * y + x * x + 1.0) * 4.25).sqrt();
        0.3 + 0.75 * cosine.max(0.0)
    }

    fn draw(&self, path: &Path, cell: impl Fn(usize, usize) -> [f32; 3]) -> Result<()> {
        let (width, height) = (self.columns * ZOOM, self.rows * ZOOM);
        let mut pixels = Vec::with_capacity(3 * width * height);
        for row in 0..self.rows {
            let colours =
                (0..self.columns).map(|column| cell(row, column).map(|c| c.round() as u8));
            let line: Vec<u8> = colours.flat_map(|rgb| [rgb; ZOOM]).flatten().collect();
            for _ in 0..ZOOM {
                pixels.extend_from_slice(&line);
            }
        }
        let write = || -> Result<()> {
            let file = BufWriter::new(std::fs::File::create(path)?);
            let mut encoder =
                png::Encoder::new(file, u32::try_from(width)?, u32::try_from(height)?);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&pixels)?;
            Ok(writer.finish()?)
        };
        write().with_context(|| format!("writing {}", path.display()))
    }
}

/// The colour at `place`, from 0 for the map's first to 1 for its last; NaN is the first.
fn colour(map: &[[f32; 3]], place: f32) -> [f32; 3] {
    let place = place.clamp(0.0, 1.0) * (map.len() - 1) as f32;
    let lower = (place as usize).min(map.len() - 2);
    let part = place - lower as f32;
    std::array::from_fn(|i| map[lower][i] + part * (map[lower + 1][i] - map[lower][i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, values: &[f32]) -> Vec<u8> {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        bytes
    }

    const HEADER: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";

    #[test]
    fn arrays_are_read_row_by_row() {
        let heights = Heights::parse(&npy(HEADER, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0])).unwrap();
        assert_eq!((heights.rows, heights.columns), (2, 3));
        assert_eq!((heights.at(0, 2), heights.at(1, 0)), (2.0, 3.0));
        assert_eq!(heights.range(), (0.0, 5.0));
        assert_eq!(heights.slope(0, 1), (3.0, 1.0));
    }

    #[test]
    fn what_is_not_such_an_array_is_refused() {
        let message = |bytes: &[u8]| format!("{:#}", Heights::parse(bytes).unwrap_err());
        assert_eq!(message(b"PNG"), "not an .npy file");
        assert_eq!(message(&npy(HEADER, &[0.0; 5])), "5 values for 6 cells");
        let flat = HEADER.replace("(2, 3)", "(6,)");
        assert_eq!(message(&npy(&flat, &[0.0; 6])), "not two-dimensional: its shape is (6,)");
        let wide = HEADER.replace("<f4", "<f8");
        assert!(message(&npy(&wide, &[0.0; 12])).starts_with("not an f32 array"));
    }

    #[test]
    fn colours_run_from_the_first_to_the_last() {
        assert_eq!(colour(&VIRIDIS, 0.0), VIRIDIS[0]);
        assert_eq!(colour(&VIRIDIS, 2.0), VIRIDIS[8]);
        assert_eq!(colour(&VIRIDIS, 0.5), VIRIDIS[4]);
        assert_eq!(colour(&DIVERGING, 0.25), [140.0, 174.5, 209.5]);
    }

    #[test]
    fn slopes_that_face_the_light_are_brighter() {
        let ridge = Heights::parse(&npy(HEADER, &[0.0, 1.0, 0.0, 0.0, 1.0, 0.0])).unwrap();
        assert!(ridge.light(0, 0, 1.0) > ridge.light(0, 2, 1.0));
        let valley = Heights::parse(&npy(HEADER, &[5.0; 6])).unwrap();
        assert!((valley.light(0, 0, 1.0) - 0.8457).abs() < 1e-3);
    }
}
