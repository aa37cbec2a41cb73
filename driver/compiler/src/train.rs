//! Training runs: how long a diagonal and a handover of a program's wavefronts take, measured on a
//! part of the grid.
//!
//! Source: PeerWave (`passes/src/schedule/tile_wavefront.rs`), section 5: `trainingRatio` is the
//! part of the data. Here every size becomes smaller, so that the smaller grid has that part of the
//! points. It is swept with tiles of several widths, which gives both numbers (`Pace::of_runs`).

use crate::control::Control;
use crate::executable::Target;
use crate::failure::Failure;
use crate::session::Session;
use std::collections::BTreeMap;
use stencil_frontend::source::Source;
use stencil_passes::schedule::waves::Sweep;
use stencil_runtime::bind::Request;
use stencil_runtime::input::{self, Source as Input};
use stencil_runtime::model::Pace;

/// What training runs measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The pace of the wavefronts.
    pub pace: Pace,
    /// The runs.
    pub runs: Vec<Trained>,
}

/// A training run.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained {
    /// Points per dimension, slowest first.
    pub points: Vec<i64>,
    /// The tile.
    pub tile: Vec<i64>,
    /// Seconds of a sweep.
    pub seconds: f64,
}

/// The least size of a training grid.
const LEAST: i64 = 64;
/// Sweeps of a run, and runs of which the fastest counts.
const SWEEPS: i64 = 4;
const RUNS: usize = 3;

impl Session {
    /// Measures the pace of the wavefronts of a source on a CUDA device, on a grid with so large a
    /// part of the points.
    ///
    /// # Errors
    /// As for [`Self::train_by`], and where the device fails.
    pub fn train(&self, source: &Source, ratio: f64, device: i32) -> Result<Training, Failure> {
        self.train_by(source, ratio, &mut |session| session.timed(source, device))
    }

    /// The same by another clock, which gives the seconds of a sweep of the source under a
    /// session's options.
    ///
    /// # Errors
    /// A part that is not from 0 to 1, a program without wavefronts or with open sizes, a tile of
    /// which no other width is possible, times that fit no pace, and faults of the source.
    pub fn train_by(
        &self,
        source: &Source,
        ratio: f64,
        clock: &mut dyn FnMut(&Self) -> Result<f64, Failure>,
    ) -> Result<Training, Failure> {
        let refuse = |text: &str| Err(Failure::user(format!("{}: {text}", source.name)));
        if !(ratio > 0.0 && ratio <= 1.0) {
            return refuse("a training run takes a part of the points, above 0 and up to 1");
        }
        let mut part = self.clone();
        part.options.config.choice.pyramid_height = Some(1);
        part.options.pace = None;
        let Some(whole) = part.wave_of(source)? else {
            return refuse(
                "no function reads values of its own sweep, so there is nothing to train",
            );
        };
        if self.options.defines.is_empty() {
            return refuse("a training run makes the sizes smaller; give them, as in -D N=4096");
        }
        let by = ratio.powf(1.0 / whole.points.len() as f64);
        for (_, size) in &mut part.options.defines {
            let smaller = (*size as f64 * by).ceil() as i64;
            *size = smaller.max(LEAST).min(*size);
        }
        let Some((width, heights)) = whole.tile.split_last() else {
            return refuse("a wavefront without a tile");
        };
        let (mut waves, mut runs) = (Vec::new(), Vec::new());
        for width in [width / 2, *width, width * 2] {
            let mut one = part.clone();
            one.options.config.choice.tile = Some([heights, &[width]].concat());
            let sweep = match one.wave_of(source) {
                Ok(sweep) => sweep,
                // A width that the strategy does not take.
                Err(failure) if failure.decline.is_some() || width < 1 => continue,
                Err(failure) => return Err(failure),
            };
            let Some(Sweep { wave, points, tile, .. }) = sweep else { continue };
            let seconds = clock(&one)?;
            waves.push((wave, seconds));
            runs.push(Trained { points, tile, seconds });
        }
        match Pace::of_runs(&waves) {
            Some(pace) => Ok(Training { pace, runs }),
            None if runs.len() < 2 => {
                refuse("a training run needs tiles of two widths, and the strategy takes one")
            }
            None => refuse("the times of the training runs fit no pace; train on a larger part"),
        }
    }

    /// The first wavefront of a source.
    fn wave_of(&self, source: &Source) -> Result<Option<Sweep>, Failure> {
        Ok(self.waves(source)?.into_iter().next())
    }

    /// The same session with a pace from training runs, by which tiles get their width.
    pub fn with_pace(&self, pace: Pace) -> Self {
        let picoseconds = |seconds: f64| (seconds * 1e12).round() as i64;
        let mut session = self.clone();
        let pace = [picoseconds(pace.diagonal).max(1), picoseconds(pace.handover)];
        session.options.pace = Some(pace);
        session
    }

    /// Seconds of a sweep on a CUDA device, of random data.
    fn timed(&self, source: &Source, device: i32) -> Result<f64, Failure> {
        let executable = self.executable(source, Target::Cuda(device), Control::default())?;
        let request = Request { steps: Some(SWEEPS), ..Request::default() };
        let noise = |place: usize| Some(Input::Random(place as u64 + 1));
        let (_, inputs) =
            input::prepare(executable.plan(), request.clone(), &BTreeMap::new(), noise)
                .map_err(|error| Failure::user(error.to_string()))?;
        let mut least = f64::INFINITY;
        for _ in 0..RUNS {
            let outcome = executable.run(&inputs, request.clone(), Control::default())?;
            let elapsed = outcome.elapsed.unwrap_or_default().as_secs_f64();
            least = least.min(elapsed / SWEEPS as f64);
        }
        Ok(least)
    }
}
