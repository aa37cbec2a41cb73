//! Pictures of fields: a colour for each cell, as PNG or as a frame of an animation (GIF).

use clap::ValueEnum;
use std::collections::TryReserveError;
use std::io::{self, Write};
use stencil_compiler::Array;

/// Colours from the least to the greatest value; between two of them, values are interpolated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Colors {
    /// From black to white
    Gray,
    /// From dark blue over green to yellow
    #[default]
    Viridis,
    /// From black over red to light yellow
    Inferno,
    /// From blue over white to red, for values around a middle
    Coolwarm,
}

/// A colour: red, green, blue.
type Rgb = [u8; 3];

/// The colour of a NaN or an infinity, which no map has.
const LOST: Rgb = [255, 0, 255];
/// The place of that colour in a palette; the places before it are the colour map.
const LOST_PLACE: u8 = 255;
/// Hundredths of a second that a frame of an animation is shown.
const FRAME_TIME: u16 = 8;

impl Colors {
    /// The map of a name.
    ///
    /// # Errors
    /// The names that there are.
    pub fn named(name: &str) -> Result<Self, String> {
        let known = Self::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let known: Vec<_> = known.map(|value| value.get_name().to_owned()).collect();
        Self::from_str(name, false)
            .map_err(|_| format!("there are no colors `{name}`; there are {}", known.join(", ")))
    }

    /// Every 32nd colour of matplotlib's map of that name, or of the straight line.
    fn anchors(self) -> &'static [Rgb] {
        match self {
            Self::Gray => &[[0, 0, 0], [255, 255, 255]],
            Self::Viridis => &[
                [68, 1, 84],
                [71, 44, 122],
                [59, 81, 139],
                [44, 113, 142],
                [33, 144, 141],
                [39, 173, 129],
                [92, 200, 99],
                [170, 220, 50],
                [253, 231, 37],
            ],
            Self::Inferno => &[
                [0, 0, 4],
                [31, 12, 72],
                [85, 15, 109],
                [136, 34, 106],
                [187, 55, 84],
                [227, 89, 51],
                [249, 140, 10],
                [249, 201, 50],
                [252, 255, 164],
            ],
            Self::Coolwarm => {
                &[[59, 76, 192], [141, 176, 254], [221, 221, 221], [244, 152, 122], [180, 4, 38]]
            }
        }
    }

    /// The palette as bytes: 255 colours of the map and [`LOST`].
    fn palette(self) -> Vec<u8> {
        let anchors = self.anchors();
        let parts = anchors.len() as f64 - 1.0;
        let color = |place: u8| {
            let at = f64::from(place) / f64::from(LOST_PLACE - 1) * parts;
            let first = at.floor().min(parts - 1.0);
            let pair = anchors.get(first as usize).zip(anchors.get(first as usize + 1));
            let (a, b) = pair.unwrap_or((&LOST, &LOST));
            [0, 1, 2].map(|channel: usize| {
                let [a, b] = [a, b].map(|rgb| f64::from(rgb.get(channel).copied().unwrap_or(0)));
                (a + (b - a) * (at - first)).round() as u8
            })
        };
        (0..LOST_PLACE).map(color).chain([LOST]).flatten().collect()
    }
}

/// The values of a picture.
pub struct Frame {
    width: usize,
    height: usize,
    values: Vec<f64>,
}

impl Frame {
    /// Some rows; none where there are not as many values as cells.
    pub fn new(height: usize, width: usize, values: Vec<f64>) -> Option<Self> {
        let cells = height.checked_mul(width)?;
        (values.len() == cells).then_some(Self { width, height, values })
    }

    /// The cells of a field of one or two dimensions; one dimension makes one row.
    ///
    /// # Errors
    /// When memory does not hold them.
    pub fn of(array: &Array) -> Result<Self, TryReserveError> {
        let (height, width) = match array.shape() {
            [height, width] => (*height, *width),
            shape => (1, shape.iter().product()),
        };
        let mut values = Vec::new();
        values.try_reserve_exact(array.len())?;
        let cells = 0..array.len();
        values.extend(cells.map(|cell| array.get(cell).unwrap_or(f64::NAN)));
        Ok(Self { width, height, values })
    }

    /// The cells of a field of numbers, or the absolute values of one of complex numbers, which has
    /// an array for each part.
    ///
    /// # Errors
    /// When memory does not hold them.
    pub fn of_parts(parts: &[&Array]) -> Result<Option<Self>, TryReserveError> {
        let Some((first, others)) = parts.split_first() else { return Ok(None) };
        let mut frame = Self::of(first)?;
        for part in others {
            let more = Self::of(part)?.values;
            frame.values.iter_mut().zip(more).for_each(|(value, more)| *value = value.hypot(more));
        }
        Ok(Some(frame))
    }

    /// The places of the cells' colours.
    fn places(&self, (low, high): (f64, f64)) -> Vec<u8> {
        // Halves keep the largest range finite.
        let scale = if (high - low).is_finite() { 1.0 } else { 0.5 };
        let [low, high] = [low, high].map(|end| end * scale);
        let place = |value: &f64| {
            if !value.is_finite() {
                return LOST_PLACE;
            }
            let part = if high > low { (value * scale - low) / (high - low) } else { 0.0 };
            (part.clamp(0.0, 1.0) * f64::from(LOST_PLACE - 1)).round() as u8
        };
        self.values.iter().map(place).collect()
    }
}

/// The least and the greatest finite value of some pictures.
fn extent(frames: &[Frame]) -> (f64, f64) {
    let values = frames.iter().flat_map(|frame| &frame.values).filter(|value| value.is_finite());
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)))
}

/// Writes a picture. Without a range, the colours go from its least to its greatest value.
///
/// # Errors
/// A picture without cells, and the system's error.
pub fn write_png(
    out: &mut dyn Write,
    frame: &Frame,
    colors: Colors,
    range: Option<(f64, f64)>,
) -> io::Result<()> {
    let range = range.unwrap_or_else(|| extent(std::slice::from_ref(frame)));
    let size = |cells: usize| u32::try_from(cells).ok().filter(|cells| *cells > 0);
    let (Some(width), Some(height)) = (size(frame.width), size(frame.height)) else {
        return Err(no_size(frame, u32::MAX));
    };
    let mut png = png::Encoder::new(out, width, height);
    png.set_color(png::ColorType::Indexed);
    png.set_depth(png::BitDepth::Eight);
    png.set_palette(colors.palette());
    let mut png = png.write_header().map_err(of_png)?;
    png.write_image_data(&frame.places(range)).map_err(of_png)?;
    png.finish().map_err(of_png)
}

/// The system's error, if it is one: it tells a full disk.
fn of_png(error: png::EncodingError) -> io::Error {
    match error {
        png::EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

/// The same of an animation.
fn of_gif(error: gif::EncodingError) -> io::Error {
    match error {
        gif::EncodingError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// Writes an animation, which repeats. Without a range, the colours go from the least to the
/// greatest value of all frames.
///
/// # Errors
/// As for [`write_png`].
pub fn write_gif(
    out: &mut dyn Write,
    frames: &[Frame],
    colors: Colors,
    range: Option<(f64, f64)>,
) -> io::Result<()> {
    let Some(first) = frames.first() else { return Ok(()) };
    let range = range.unwrap_or_else(|| extent(frames));
    let size = |cells: usize| u16::try_from(cells).ok().filter(|cells| *cells > 0);
    let (Some(width), Some(height)) = (size(first.width), size(first.height)) else {
        return Err(no_size(first, u32::from(u16::MAX)));
    };
    let mut gif = gif::Encoder::new(out, width, height, &colors.palette()).map_err(of_gif)?;
    gif.set_repeat(gif::Repeat::Infinite).map_err(of_gif)?;
    for frame in frames {
        let places = frame.places(range);
        let mut frame = gif::Frame::from_indexed_pixels(width, height, places, None);
        frame.delay = FRAME_TIME;
        gif.write_frame(&frame).map_err(of_gif)?;
    }
    Ok(())
}

fn no_size(frame: &Frame, most: u32) -> io::Error {
    let (height, width) = (frame.height, frame.width);
    io::Error::other(format!(
        "a picture of {height}x{width} cells can't be written: 1 to {most} a side; write .npy"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_compiler::Data;

    fn frame(values: Vec<f64>) -> Frame {
        Frame::of(&Array::new(vec![2, 2], Data::F64(values)).unwrap()).unwrap()
    }

    #[test]
    fn the_palette_has_the_anchors_of_the_map() {
        let palette = Colors::Viridis.palette();
        let color = |place: usize| &palette[3 * place..3 * place + 3];
        assert_eq!(palette.len(), 768);
        assert_eq!(
            [color(0), color(127), color(254)],
            [[68, 1, 84], [33, 144, 141], [253, 231, 37]]
        );
        assert_eq!(color(255), LOST);
        assert_eq!(Colors::Gray.palette()[3 * 100..3 * 100 + 3], [100, 100, 100]);
    }

    #[test]
    fn values_have_the_colours_of_their_range() {
        let frame = frame(vec![0.0, 1.0, 0.5, f64::NAN]);
        assert_eq!(frame.places((0.0, 1.0)), [0, 254, 127, 255]);
        assert_eq!(frame.places((-1.0, 0.5)), [169, 254, 254, 255]);
        assert_eq!(extent(&[frame]), (0.0, 1.0));
    }

    #[test]
    fn small_differences_and_far_values_have_their_colours() {
        for values in [
            [1e9, 1e9 + 1.0, 1e9 + 2.0, f64::INFINITY],
            [0.0, 1e-50, 2e-50, f64::NAN],
            [0.0, 1e39, 2e39, f64::NEG_INFINITY],
            [-1.7e308, 0.0, 1.7e308, f64::NAN],
        ] {
            let frame = frame(values.to_vec());
            let range = extent(std::slice::from_ref(&frame));
            assert_eq!(frame.places(range), [0, 127, 254, 255], "{values:?}");
        }
    }

    #[test]
    fn pictures_are_read_back() {
        let one = frame(vec![0.0, 1.0, 0.5, f64::NAN]);
        let mut bytes = Vec::new();
        write_png(&mut bytes, &one, Colors::Gray, None).unwrap();
        let mut png = png::Decoder::new(io::Cursor::new(&bytes)).read_info().unwrap();
        let mut cells = [9; 4];
        png.next_frame(&mut cells).unwrap();
        assert_eq!(cells, [0, 254, 127, 255]);
        let mut bytes = Vec::new();
        let two = frame(vec![2.0, 2.0, 2.0, 0.0]);
        write_gif(&mut bytes, &[one, two], Colors::Gray, None).unwrap();
        let mut gif = gif::DecodeOptions::new();
        gif.set_color_output(gif::ColorOutput::Indexed);
        let mut gif = gif.read_info(bytes.as_slice()).unwrap();
        let frame = gif.read_next_frame().unwrap().unwrap();
        assert_eq!((frame.width, frame.height, &frame.buffer[..]), (2, 2, &[0, 127, 64, 255][..]));
        assert_eq!(gif.read_next_frame().unwrap().unwrap().buffer[..], [254, 254, 254, 0]);
        assert!(gif.read_next_frame().unwrap().is_none());
    }
}
