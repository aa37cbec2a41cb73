//! `choose-schedule`: the strategy, tile, pyramid height and cells per thread that are predicted to
//! be fastest.
//!
//! Each strategy's descriptor lists the schedules that are worth a look, and `predict.rs` gives the
//! time of each. No time is predicted for a program with functions that read values of their own
//! sweep. Its functions get the defaults of the first strategy that accepts them.
//!
//! Needs: a verified stencil program. Guarantees: the module has the schedule for
//! `tile-overlapped`, in the attributes that a tile kernel has. Options come first, then the
//! schedule that the module has already; only the rest is chosen. The tile stays open where
//! `tile-overlapped` fits it per kernel.
//!
//! ```text
//! module @heat attributes {tiled.strategy = "stream", tiled.steps = 7 : i64, ...}
//! ```
//! Several devices may be cut along one dimension or along two. Each grid of them is a candidate of
//! its own; what they send to each other counts ([`exchange`](crate::schedule::exchange)).
//!
//! Run-time sizes count as large ones: [`LARGE`](crate::schedule::large::LARGE).

use crate::options::Options;
use crate::pass::{Info, Pass};
use crate::schedule::choice::{self, BLOCK, PER_THREAD, PYRAMID_HEIGHT, REGION, STRATEGY, TILE};
use crate::schedule::lowering::Settings;
use crate::schedule::predict;
use crate::subject::{Subject, set_shared_by};
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::stencil::Program;
use stencil_dialects::tiled::{self, Choice};
use stencil_runtime::ranks::{Devices, LinkRate};

/// The option for [`Settings::no_split_interior`].
pub const SPLIT_INTERIOR: (&str, &str) =
    ("split-interior", "whether candidates run the pass split-interior: on (default) or off");

/// The option for [`Settings::devices`].
pub const DEVICES: (&str, &str) =
    ("devices", "devices that share the tiles of a launch, such as 4 or 2x2");

/// The option for [`Settings::link`].
pub const LINK: (&str, &str) =
    ("link", "nanoseconds of a message between devices and MB a second, such as 10000:50000");

/// The pass in the registry.
pub const INFO: Info = Info {
    name: "choose-schedule",
    summary: "choose strategy, tile and steps per launch by a model of the device",
    options: OPTIONS,
    read: |options: &Options| Ok(Box::new(ChooseSchedule(Request::read(options)?))),
};

/// The options of the passes that predict schedules.
pub const OPTIONS: &[(&str, &str)] =
    &[STRATEGY, TILE, PYRAMID_HEIGHT, PER_THREAD, REGION, BLOCK, SPLIT_INTERIOR, DEVICES, LINK];

/// What is not to be chosen of a schedule.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// What is given of the schedule.
    pub choice: Choice,
    /// How the compile goes on behind the schedule.
    pub settings: Settings,
}

impl Request {
    /// The expected time of the best candidate; none where all are declined, which
    /// `tile-overlapped` reports.
    ///
    /// # Errors
    /// What is no decline.
    pub fn best_seconds<'c>(
        &self,
        context: &'c Context,
        module: &Module<'c>,
    ) -> Result<Option<f64>, Error> {
        match predict::candidates(context, module, &self.choice, self.settings) {
            Ok(candidates) => Ok(candidates.first().map(|best| best.expected)),
            Err(error) if error.is_decline() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The request that [`OPTIONS`] hold.
    ///
    /// # Errors
    /// A malformed value.
    pub fn read(options: &Options) -> Result<Self, Error> {
        let split = options.flag(SPLIT_INTERIOR.0)?.unwrap_or(true);
        let devices = options.text(DEVICES.0).map(str::parse::<Devices>).transpose();
        let devices = devices.map_err(|fault| Error::user(format!("{}: {fault}", DEVICES.0)))?;
        let link = options.text(LINK.0).map(str::parse::<LinkRate>).transpose();
        let link = link.map_err(|fault| Error::user(format!("{}: {fault}", LINK.0)))?;
        let settings = Settings { no_split_interior: !split, devices, link, ..Settings::default() };
        Ok(Self { choice: choice::read(options)?, settings })
    }

    /// Notes in a module how many devices share the tiles of a launch, if that is asked for.
    pub fn note_devices<'c>(&self, context: &'c Context, module: &Module<'c>) {
        if let Some(devices) = self.settings.devices {
            set_shared_by(context, module, devices);
        }
    }

    /// The request as options.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = choice::options(&self.choice);
        if self.settings.no_split_interior {
            options.push((SPLIT_INTERIOR.0, "off".to_owned()));
        }
        if let Some(devices) = self.settings.devices {
            options.push((DEVICES.0, devices.to_string()));
        }
        if let Some(link) = self.settings.link {
            options.push((LINK.0, link.to_string()));
        }
        options
    }
}

/// The pass.
pub struct ChooseSchedule(pub Request);

impl Pass for ChooseSchedule {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn options(&self) -> Vec<(&'static str, String)> {
        self.0.options()
    }

    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        let Request { choice, settings } = &self.0;
        tiled::remove_heights(module);
        self.0.note_devices(context, module);
        let (chosen, devices) = {
            let program = Program::read(module)?;
            let subject = Subject::of(module, &program)?;
            predict::best(context, &subject, choice, *settings)?
        };
        if settings.devices.is_some() {
            set_shared_by(context, module, devices);
        }
        tiled::set_choice(context, module, &chosen);
        Ok(())
    }
}
