//! Predicted wavefronts as the text of a report and as a picture, which shows when each block
//! computes which tile row.

use crate::failure::Failure;
use crate::session::Session;
use std::fmt::{self, Formatter, Write};
use stencil_frontend::source::Source;
use stencil_passes::schedule::waves::Sweep;
use stencil_runtime::model::wavefront::Idle;

/// Writes what a report says of some sweeps.
pub(crate) fn write(out: &mut Formatter, sweeps: &[Sweep]) -> fmt::Result {
    for sweep in sweeps {
        let (wave, pace) = (&sweep.wave, &sweep.pace);
        let tile = joined(&sweep.tile);
        writeln!(out, "wavefront {} on {} points:", sweep.kernel, joined(&sweep.points))?;
        let blocks = wave.blocks();
        writeln!(
            out,
            "  {} tile rows of {} tiles ({tile}), {blocks} blocks",
            wave.rows(),
            wave.tiles
        )?;
        let Some((flags, seconds)) = wave.idle_with_flags().zip(sweep.seconds()) else {
            writeln!(out, "  predicted: nothing; there are too many tile rows")?;
            continue;
        };
        match wave.diagonals() {
            Some((diagonals, _)) => write!(out, "  {diagonals} tile diagonals, ")?,
            None => write!(out, "  {} sweeps in flight, ", wave.sweeps)?,
        }
        writeln!(out, "{} waits", wave.waited())?;
        let idle =
            |Idle { corner, intermediate }| format!("{corner} corner, {intermediate} intermediate");
        writeln!(out, "  idle slots with flags: {}", idle(flags))?;
        if let Some((_, barriers)) = wave.diagonals() {
            let idle = idle(barriers);
            writeln!(out, "  idle slots with a barrier after each tile diagonal: {idle}")?;
        }
        writeln!(
            out,
            "  predicted: {:.4} ms a sweep, {:.1} GCells/s; {} tiles on the critical path, each {} \
             diagonals of {:.1} ns and a handover of {:.1} ns{}",
            seconds * 1e3,
            sweep.gcells().unwrap_or(0.0),
            wave.critical_path().unwrap_or(0),
            wave.width,
            pace.diagonal * 1e9,
            pace.handover * 1e9,
            if sweep.is_measured { ", both measured" } else { "" }
        )?;
    }
    Ok(())
}

fn joined(extents: &[i64]) -> String {
    extents.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ")
}

/// Tile rows of a picture: more are no longer told apart.
const MOST_BARS: usize = 4096;
/// Pixels of the plot.
const PLOT: (f64, f64) = (720.0, 330.0);
/// Pixels to its left and above it.
const MARGIN: (f64, f64) = (60.0, 30.0);
/// A block's first, second, ... tile row.
const COLOURS: [&str; 4] = ["#2f6690", "#e0a030", "#5b8c5a", "#b0563d"];

impl Session {
    /// A picture of the first wavefront of a source, by the model: a line for each block, a bar for
    /// each of its tile rows, time to the right. It is an SVG document.
    ///
    /// # Errors
    /// What is wrong with the source or the schedule; a program without wavefronts, and one with
    /// too many tile rows to draw.
    pub fn wave_picture(&self, source: &Source) -> Result<String, Failure> {
        let sweeps = self.waves(source)?;
        let Some(sweep) = sweeps.first() else {
            return Err(Failure::user(format!(
                "{}: no function reads values of its own sweep, so there is no wave to draw",
                source.name
            )));
        };
        picture(sweep).ok_or_else(|| {
            let rows = sweep.wave.rows();
            Failure::user(format!(
                "{}: a picture has at most {MOST_BARS} tile rows and at least one point, and this \
                 wave has {rows} tile rows; choose other sizes",
                source.name
            ))
        })
    }
}

/// The picture of a sweep; none of too many tile rows or of none.
fn picture(sweep: &Sweep) -> Option<String> {
    let wave = &sweep.wave;
    let starts = wave.starts().filter(|starts| starts.len() <= MOST_BARS)?;
    let end = wave.critical_path().filter(|end| *end > 0)? as f64;
    let (blocks, seconds) = (usize::try_from(wave.blocks()).ok()?, sweep.seconds()?);
    let (width, height) = PLOT;
    let (left, top) = MARGIN;
    let line = height / blocks as f64;
    let mut text = String::new();
    // Writing to a string can't fail.
    let mut add = |words: fmt::Arguments| {
        let _ = writeln!(text, "{words}");
    };
    let (all_width, all_height) = (left + width + 20.0, top + height + 40.0);
    add(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all_width} {all_height}\" \
         font-family=\"sans-serif\" font-size=\"12\">"
    ));
    add(format_args!("<rect width=\"{all_width}\" height=\"{all_height}\" fill=\"white\"/>"));
    add(format_args!(
        "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"#eeeeee\"/>"
    ));
    for (row, start) in starts.iter().enumerate() {
        let busy = (wave.tiles + wave.drain) as f64;
        add(format_args!(
            "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\"/>",
            left + *start as f64 / end * width,
            top + (row % blocks) as f64 * line,
            busy / end * width,
            0.9 * line,
            COLOURS.get(row / blocks % COLOURS.len()).copied().unwrap_or_default()
        ));
    }
    add(format_args!(
        "<text x=\"{left}\" y=\"18\">{}: {} tile rows of {} tiles on {blocks} blocks</text>",
        sweep.kernel,
        wave.rows(),
        wave.tiles
    ));
    let below = top + height + 18.0;
    add(format_args!("<text x=\"{left}\" y=\"{below}\">0</text>"));
    let right = left + width;
    add(format_args!(
        "<text x=\"{right}\" y=\"{below}\" text-anchor=\"end\">{:.3} ms</text>",
        seconds * 1e3
    ));
    for (number, at) in [(0, top + 10.0), (blocks - 1, top + height)] {
        let beside = left - 6.0;
        add(format_args!(
            "<text x=\"{beside}\" y=\"{at}\" text-anchor=\"end\">block {number}</text>"
        ));
        if blocks == 1 {
            break;
        }
    }
    add(format_args!("</svg>"));
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_runtime::model::Pace;
    use stencil_runtime::model::wavefront::{Wait, Wave};

    fn sweep(rows: u64) -> Sweep {
        Sweep {
            kernel: "k_0".to_owned(),
            points: vec![8, 8],
            tile: vec![1, 1],
            wave: Wave {
                counts: vec![rows],
                tiles: 8,
                width: 1,
                drain: 0,
                waits: vec![Wait { before: vec![true], lag: 1 }],
                resident: 4,
                ..Wave::default()
            },
            pace: Pace { diagonal: 1e-6, handover: 0.0 },
            is_measured: false,
        }
    }

    /// Figure 2 with flags: 19 tile times, block 1 begins with the second and has its next tile row
    /// from the tenth on.
    #[test]
    fn a_bar_for_each_tile_row() {
        let picture = picture(&sweep(8)).unwrap();
        let bars: Vec<&str> = picture.lines().filter(|line| line.contains("fill=\"#2")).collect();
        assert_eq!(bars.len(), 4, "{picture}");
        let (tile, line) = (720.0 / 19.0, 330.0 / 4.0);
        let second = format!("x=\"{:.2}\" y=\"{:.2}\"", 60.0 + tile, 30.0 + line);
        assert!(bars[1].contains(&second), "{picture}");
        let next = format!("x=\"{:.2}\" y=\"{:.2}\"", 60.0 + 9.0 * tile, 30.0 + line);
        assert!(picture.contains(&next) && picture.contains(">0.019 ms<"), "{picture}");
    }

    #[test]
    fn waves_that_are_not_drawn() {
        assert_eq!(picture(&sweep(0)), None);
        assert_eq!(picture(&sweep(MOST_BARS as u64 + 1)), None);
    }
}
