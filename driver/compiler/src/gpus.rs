//! GPUs as a target: code that is loaded on one or several of them, and kept for the next run.

use crate::failure::Failure;
use std::sync::{Arc, Mutex, PoisonError};
use stencil_runtime::cuda::{Code, Cuda, CudaError, GraphSettings, Peers, Program};
use stencil_runtime::plan::Plan;
use stencil_runtime::ranks::Devices;

/// PTX of a program, for some GPUs.
#[derive(Clone, Debug)]
pub struct Gpus {
    ptx: Arc<str>,
    /// The first one, where no others are named.
    device: i32,
    /// The GPUs of the last run. To open one takes a tenth of a second and more.
    kept: Arc<Mutex<Option<Opened>>>,
}

/// GPUs with the code of a program.
#[derive(Clone, Debug)]
pub struct Opened {
    numbers: Vec<i32>,
    devices: Vec<Cuda>,
    codes: Vec<Code>,
    /// Where they reach each other's memory.
    peers: Option<Peers>,
}

impl Gpus {
    /// PTX for a GPU, or for several from it on.
    pub fn new(ptx: String, device: i32) -> Self {
        Self { ptx: ptx.into(), device, kept: Arc::default() }
    }

    /// Opens the GPUs of a run, by their numbers where these are named, and loads the code. Gives
    /// the parts into which they cut a run. The plan is the one that was compiled together with the
    /// code, in all calls.
    ///
    /// # Errors
    /// A GPU that is not there, and code that it does not take.
    pub fn open(
        &self,
        plan: &Plan,
        devices: Devices,
        numbers: &[i32],
    ) -> Result<(Opened, Devices), Failure> {
        let numbers: Vec<i32> = match numbers {
            [] => (self.device..).take(devices.count()).collect(),
            named => named.to_vec(),
        };
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match kept.take().filter(|kept| kept.numbers == numbers) {
            Some(opened) => opened,
            None => self.load(plan, numbers)?,
        };
        *kept = Some(opened.clone());
        let each = if opened.peers.is_some() { Devices::PARTS } else { 1 };
        Ok((opened, devices.split(each)))
    }

    fn load(&self, plan: &Plan, numbers: Vec<i32>) -> Result<Opened, Failure> {
        let devices = numbers.iter().map(|number| Cuda::open(*number));
        let opened = devices.collect::<Result<Vec<_>, _>>();
        let devices = opened.map_err(|error| match &error {
            CudaError::NoDevice { count: 1.., .. } if numbers.len() > 1 => {
                Failure::device(format!("{error}; take fewer devices, or name others"))
            }
            _ => Failure::device(error),
        })?;
        let peers = match devices.len() {
            1 => None,
            _ => Cuda::connect(&devices).map_err(Failure::device)?,
        };
        let codes = devices.iter().map(|cuda| cuda.code(plan, self.ptx.as_bytes()));
        let codes = codes.collect::<Result<Vec<_>, _>>().map_err(Failure::device)?;
        Ok(Opened { numbers, devices, codes, peers })
    }

    /// Closes GPUs that no run uses.
    pub fn release(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Opened {
    /// A program for each part of a run, in a stream of its GPU.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn programs(&self, devices: Devices, parts: Devices) -> Result<Vec<Program>, Failure> {
        let each = parts.count() / devices.count().max(1);
        let wholes: Vec<usize> =
            (0..parts.count()).map(|part| devices.whole_of(part, each)).collect();
        let peers = self.peers.as_ref().map(|peers| peers.in_parts(&wholes));
        let codes = wholes.iter().filter_map(|whole| self.codes.get(*whole));
        codes
            .map(|code| {
                let mut program = code.program()?;
                match &peers {
                    Some(peers) => program.join_peers(peers.clone()),
                    None => program.use_graphs(GraphSettings::default())?,
                }
                Ok(program)
            })
            .collect::<Result<_, _>>()
            .map_err(|error: CudaError| Failure::device(error))
    }

    /// The name of a part of a run.
    pub fn part(&self, part: usize, devices: Devices, parts: Devices) -> String {
        let each = parts.count() / devices.count().max(1);
        let whole = devices.whole_of(part, each);
        let gpu = self.numbers.get(whole).copied().unwrap_or(0);
        let before = (0..part).filter(|other| devices.whole_of(*other, each) == whole);
        if each > 1 { format!("GPU {gpu}.{}", before.count()) } else { format!("GPU {gpu}") }
    }

    /// The name of the first one, and how many there are.
    pub fn name(&self) -> Option<String> {
        let name = &self.devices.first()?.facts().name;
        Some(match self.devices.len() {
            1 => name.clone(),
            count => format!("{count} devices, the first {name}"),
        })
    }
}
