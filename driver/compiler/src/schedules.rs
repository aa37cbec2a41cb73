//! Schedules that were measured to be fastest: what they are remembered by, and how one becomes
//! the schedule of a session.

use crate::control::Control;
use crate::failure::Failure;
use crate::session::{Options, Session};
use crate::stages::{self, text};
use stencil_dialects::tiled::{Choice, NestTile};
use stencil_frontend::source::Source;
use stencil_passes::pipeline::{Config, RecordLayout};
use stencil_passes::schedule::predict::Candidate;
use stencil_runtime::plan::Settings;
use stencil_runtime::tune::{self, Schedules};

impl Session {
    /// The same session with a schedule, or with a part of one.
    pub fn with_choice(&self, choice: Choice) -> Self {
        let config = Config { choice, ..self.options.config.clone() };
        Self::new(Options { config, ..self.options.clone() })
    }

    /// The same session with a tile for functions of affine loops.
    pub fn with_nest_tile(&self, tile: NestTile) -> Self {
        let config = Config { nest_tile: Some(tile), ..self.options.config.clone() };
        Self::new(Options { config, ..self.options.clone() })
    }

    /// What measured schedules of a source are remembered by: see [`tune::fingerprint`].
    ///
    /// # Errors
    /// What is wrong with the source.
    pub fn fingerprint(&self, source: &Source) -> Result<String, Failure> {
        let context = stages::context(source)?;
        let module = text(&self.begin(&context, source, Control::default())?.module);
        // Two compilers of a version may differ while it is worked on.
        let compiler = concat!(env!("CARGO_PKG_VERSION"), " ", env!("STENCILC_TEXT"));
        let arch = self.options.target()?.arch;
        let mut made = format!("{compiler} {arch}");
        if self.options.config.layout != RecordLayout::Soa {
            made += &format!(" {:?}", self.options.config.layout);
        }
        Ok(tune::fingerprint(&made, &module))
    }

    /// The same session with the schedule that was measured to be fastest for a source, where one
    /// is known and none is asked for. Failures of that schedule name `origin`, the file.
    ///
    /// # Errors
    /// What is wrong with the source.
    pub fn with_schedules(
        &self,
        source: &Source,
        schedules: &Schedules,
        origin: &str,
    ) -> Result<Self, Failure> {
        if !self.options.leaves_schedule_open() {
            return Ok(self.clone());
        }
        let device = self.options.target()?.device;
        let Some(entry) = schedules.find(&self.fingerprint(source)?, device.name) else {
            return Ok(self.clone());
        };
        let session = match nest_tile(&entry.settings) {
            Some(tile) => self.with_nest_tile(tile),
            None => self.with_choice(self.choice_of(&entry.settings, source)?),
        };
        Ok(Self { schedule_from: Some(origin.to_owned()), ..session })
    }

    /// The choice that settings were compiled from. Where the candidate's tile or cells per thread
    /// are those of each kernel, the settings have those of the main one; with them as the choice,
    /// other kernels would not be those measured.
    fn choice_of(&self, settings: &Settings, source: &Source) -> Result<Choice, Failure> {
        let named = Choice {
            strategy: Some(settings.strategy.clone()),
            tile: Some(settings.tile.clone()),
            pyramid_height: Some(settings.pyramid_height),
            per_thread: Some(settings.per_thread.clone()),
            region: settings.region.clone(),
            block: None,
        };
        let candidates = self.candidates(source)?;
        if candidates.iter().any(|candidate| candidate.choice == named) {
            return Ok(named);
        }
        let whole = |candidate: &Candidate| Choice {
            tile: Some(candidate.tile.clone()),
            per_thread: Some(candidate.per_thread.clone()),
            block: None,
            ..candidate.choice.clone()
        };
        let fitted = candidates.into_iter().find(|candidate| whole(candidate) == named);
        Ok(fitted.map_or(named, |candidate| candidate.choice))
    }
}

/// The tile of a function of affine loops that settings were compiled from.
fn nest_tile(settings: &Settings) -> Option<NestTile> {
    let copies = settings.copies?;
    let threads = settings.tile.iter().zip(&settings.per_thread);
    Some(NestTile {
        threads: threads.map(|(tile, cells)| tile.checked_div(*cells)).collect::<Option<_>>()?,
        copiers: copies.copiers,
        per_thread: settings.per_thread.clone(),
        blocked: false,
        time: copies.time,
    })
}
