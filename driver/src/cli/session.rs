//! The session that the options of a compile describe.

use super::values::{link, unique};
use super::{CommonArgs, Contraction};
use crate::files;
use std::path::PathBuf;
use stencil_compiler::{
    Arithmetic, Choice, Config, Failure, Lowering, Options, RecordLayout, Session, Source,
    toolchain,
};
use stencil_runtime::tune::Schedules;

impl CommonArgs {
    /// The session that the options describe.
    pub(crate) fn session(&self, source: &Source) -> Result<Session, Failure> {
        let session = self.measured(self.unmeasured()?, source)?;
        let Some(part) = self.train else { return Ok(session) };
        let trained = session.train(source, part, 0)?;
        Ok(session.with_pace(trained.pace))
    }

    /// The same without measured schedules.
    pub(crate) fn unmeasured(&self) -> Result<Session, Failure> {
        unique("-D", &self.defines)?;
        Ok(Session::new(Options {
            defines: self.defines.clone(),
            config: Config {
                choice: self.choice(),
                heights: self.heights.clone().unwrap_or_default(),
                no_fuse: self.no_fuse,
                no_nest_tiles: self.no_nest_tiles,
                no_vector_copies: self.no_vector_copies,
                unroll_by_registers: self.unroll_by_registers,
                no_place_constants: self.no_place_constants,
                transpose_arrays: self.transpose_arrays,
                nest_tile: None,
                layout: self.layout.as_deref().and_then(RecordLayout::named).unwrap_or_default(),
                lowering: Lowering {
                    no_split_interior: self.no_split_interior,
                    devices: self.devices.as_ref().map(|list| list.devices),
                    link: link(self.link)?,
                    windows: false,
                },
            },
            arithmetic: Arithmetic {
                contract: self.fp_contract == Contraction::On,
                fast_math: self.fast_math,
            },
            arch: self.arch.clone(),
            device: self.device.clone(),
            libdevice: self.libdevice.clone(),
            passes: self.passes.clone(),
            element: self.element.as_deref().map(files::read_module).transpose()?,
            ..Options::default()
        }))
    }

    /// A session with the schedule that was measured to be fastest for a source.
    pub(crate) fn measured(&self, session: Session, source: &Source) -> Result<Session, Failure> {
        let Some(file) = self.schedules_file() else { return Ok(session) };
        let schedules = match &self.schedules {
            Some(_) => Schedules::read(&file),
            // The file that the environment names need not exist yet.
            None if session.options().leaves_schedule_open() => Schedules::load(&file),
            None => return Ok(session),
        };
        session.with_schedules(
            source,
            &schedules.map_err(Failure::user)?,
            &file.display().to_string(),
        )
    }

    fn schedules_file(&self) -> Option<PathBuf> {
        let named = || std::env::var_os("STENCILC_SCHEDULES").map(PathBuf::from);
        self.schedules.clone().or_else(named)
    }

    /// The files that a compile reads or runs.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let program = [self.file.clone()].into_iter();
        let given = program.chain(self.schedules_file()).chain(self.libdevice.clone());
        given.chain(toolchain::libdevice()).chain(toolchain::ptxas()).collect()
    }

    /// The part of the schedule that is asked for.
    fn choice(&self) -> Choice {
        Choice {
            strategy: self.strategy.clone(),
            tile: self.tile.clone(),
            pyramid_height: self.pyramid_height,
            per_thread: self.per_thread.clone(),
            region: self.region.clone(),
            block: self.block.clone(),
        }
    }
}
