//! One of several devices as a target: it runs its part of each launch, and gets the cells that the
//! part reads from the devices that hold them.

mod joint;
mod times;

use super::devices::Devices;
use super::error::RankError;
use super::ledger::{Ledger, Transfer};
use super::link::{Link, LinkError, Parcel, checked};
use super::order::Order;
use super::region::Region;
use super::survey::survey;
use super::timeline::Timeline;
use super::work::{Form, Work, key, of_launch};
use crate::bind::{Bound, BufferId};
use crate::execute::{Target, TargetError};
use crate::hash::Hash;
use crate::launch::{Copy, Launch};
use crate::plan::{self, Plan};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use times::Notes;

/// A target among others that run the same plan at the same time. It has the whole address range of
/// each buffer, and valid values in the cells of its ledger. All of them get the same calls. Behind
/// the last launch the first one alone downloads, and the others answer ([`Shared::serve`]).
pub struct Shared<'r> {
    plan: &'r Plan,
    devices: Devices,
    target: &'r mut (dyn Target + Send),
    link: &'r mut dyn Link,
    forms: Vec<Form>,
    ledger: Ledger,
    /// The buffers that all devices have together, if their memories are connected.
    joint: Vec<bool>,
    order: Order,
    sizes: Option<Bound>,
    /// What all devices do with a launch, by its key and its blocks.
    works: BTreeMap<(usize, [u32; 3]), Arc<Vec<Work>>>,
    /// Exchanges so far.
    exchanges: u64,
    /// Whether all launches are done.
    ended: bool,
    sent: Traffic,
    /// Times of launches, if they are asked for.
    notes: Option<Notes>,
}

/// What a device sent to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Exchanges in which it took part.
    pub exchanges: u64,
    /// Bytes that it sent.
    pub bytes: u64,
}

impl<'r> Shared<'r> {
    /// One of several devices, by its link.
    pub fn new(
        plan: &'r Plan,
        devices: Devices,
        target: &'r mut (dyn Target + Send),
        link: &'r mut dyn Link,
    ) -> Self {
        Self {
            plan,
            devices,
            target,
            link,
            forms: Vec::new(),
            ledger: Ledger::new(&[], Vec::new(), devices.count()),
            joint: Vec::new(),
            order: Order::new(devices.count()),
            sizes: None,
            works: BTreeMap::new(),
            exchanges: 0,
            ended: false,
            sent: Traffic::default(),
            notes: None,
        }
    }

    /// Notes the times of launches from now on, if a timeline is to have them.
    pub fn note_times(&mut self, timeline: Option<&Timeline>) {
        self.notes = timeline.cloned().map(Notes::new);
    }

    /// What it sent to others in its launches.
    pub fn sent(&self) -> Traffic {
        self.sent
    }

    /// Tells the others that this device failed.
    pub fn fail(&mut self, reason: &str) {
        self.link.fail(reason);
    }

    /// Answers the downloads of the first device until it needs no more.
    ///
    /// # Errors
    /// When a copy or another device fails.
    pub fn serve(&mut self) -> Result<(), TargetError> {
        loop {
            let message = self.link.receive(0)?;
            let words: Vec<usize> = message
                .chunks_exact(8)
                .filter_map(|word| word.try_into().ok().map(u64::from_le_bytes))
                .filter_map(|word| usize::try_from(word).ok())
                .collect();
            let [buffer, first, end] = words.as_slice() else { return Ok(()) };
            self.collect(BufferId(*buffer), *first..*end, None)?;
        }
    }

    /// Ends the service of the others.
    ///
    /// # Errors
    /// When another device has ended.
    pub fn close(&mut self) -> Result<(), TargetError> {
        self.tell_others(&[])
    }

    /// Checks that all devices run one plan with the same sizes.
    fn agree(&mut self, bound: &Bound) -> Result<(), TargetError> {
        let own = identity(self.plan, bound);
        if self.link.device() > 0 {
            self.link.send(0, own.to_le_bytes().to_vec())?;
            // The answer comes when all agree.
            return Ok(self.link.receive(0).map(drop)?);
        }
        for device in 1..self.devices.count() {
            if self.link.receive(device)? != own.to_le_bytes() {
                return Err(LinkError::Differs { device }.into());
            }
        }
        self.tell_others(&[])
    }

    fn tell_others(&mut self, message: &[u8]) -> Result<(), TargetError> {
        for other in 1..self.devices.count() {
            self.link.send(other, message.to_vec())?;
        }
        Ok(())
    }

    fn form(&self, buffer: BufferId) -> Result<Form, RankError> {
        let form = self.forms.get(buffer.0).copied();
        form.ok_or_else(|| RankError::Fault(format!("there is no buffer {}", buffer.0)))
    }

    /// The work of all devices with a launch.
    fn works(&mut self, launch: &Launch<'_>) -> Result<Arc<Vec<Work>>, RankError> {
        let key = (key(launch.node), launch.grid);
        if let Some(works) = self.works.get(&key) {
            return Ok(Arc::clone(works));
        }
        let mut forms = vec![None; launch.node.arguments.len()];
        for (place, buffer) in launch.buffers() {
            if let Some(form) = forms.get_mut(place) {
                *form = Some(self.form(buffer)?);
            }
        }
        let bound = self.sizes.as_ref();
        let bound = bound.ok_or_else(|| RankError::Fault("nothing is allocated".to_owned()))?;
        let works = of_launch(launch.node, bound, launch.grid, &forms, self.devices)?;
        let works = Arc::new(works);
        self.works.insert(key, Arc::clone(&works));
        Ok(works)
    }

    /// Gets and sends cells.
    fn exchange_cells(&mut self, transfers: &[Transfer]) -> Result<(), TargetError> {
        if transfers.is_empty() {
            return Ok(());
        }
        let device = self.link.device();
        let mut parcels = Vec::new();
        for transfer in transfers {
            let Transfer { from, to, buffer, cells } = transfer;
            let runs = self.form(*buffer)?.runs(cells.areas());
            if *from == device {
                self.sent.bytes += runs.iter().map(|run| run.len() as u64).sum::<u64>();
            }
            parcels.push(Parcel { from: *from, to: *to, buffer: *buffer, runs });
        }
        let takes_part = parcels.iter().any(|one| one.from == device || one.to == device);
        self.sent.exchanges += u64::from(takes_part);
        self.exchanges += 1;
        self.link.exchange(self.exchanges, &parcels, self.target)
    }

    /// The first device gets bytes of a memory, in `to` there; no other one does.
    fn collect(
        &mut self,
        buffer: BufferId,
        bytes: Range<usize>,
        to: Option<&mut [u8]>,
    ) -> Result<(), TargetError> {
        let (form, device) = (self.form(buffer)?, self.link.device());
        self.exchanges += 1;
        let needed = Region::from(form.rows_of(&bytes));
        let held = self.ledger.valid(buffer, 0).common(&needed);
        let within = |region: &Region| -> Vec<Range<usize>> {
            let runs = form.runs(region.areas()).into_iter();
            let runs = runs.map(|run| run.start.max(bytes.start)..run.end.min(bytes.end));
            runs.filter(|run| !run.is_empty()).collect()
        };
        let number = self.exchanges;
        let part =
            |from: usize| within(&self.ledger.own(buffer, from).common(&needed).without(&held));
        if device > 0 {
            let runs = part(device);
            if runs.is_empty() {
                return Ok(());
            }
            let mut message = number.to_le_bytes().to_vec();
            for run in runs {
                let first = message.len();
                message.resize(first + run.len(), 0);
                let bytes = message.get_mut(first..).unwrap_or_default();
                self.target.download(buffer, run.start, bytes)?;
            }
            return Ok(self.link.send(0, message)?);
        }
        let Some(to) = to else { return Ok(()) };
        let mut filled = 0;
        let missing = || RankError::Fault(format!("memory {} has no such bytes", buffer.0));
        for run in within(&held) {
            let part = to.get_mut(run.start - bytes.start..run.end - bytes.start);
            self.target.download(buffer, run.start, part.ok_or_else(missing)?)?;
            filled += run.len();
        }
        for from in 1..self.devices.count() {
            let runs = part(from);
            if runs.is_empty() {
                continue;
            }
            let expected = 8 + runs.iter().map(ExactSizeIterator::len).sum::<usize>();
            let message = self.link.receive(from)?;
            let mut rest = checked(&message, from, (number, expected))?;
            for run in runs {
                let (own, behind) = rest.split_at(run.len().min(rest.len()));
                let part = to.get_mut(run.start - bytes.start..run.end - bytes.start);
                part.ok_or_else(missing)?.copy_from_slice(own);
                filled += run.len();
                rest = behind;
            }
        }
        if filled == bytes.len() { Ok(()) } else { Err(missing().into()) }
    }
}

/// A number that is another one for any other plan and any other sizes, with all but certainty.
fn identity(plan: &Plan, bound: &Bound) -> u64 {
    let sizes = format!("{:?} {} {:?}", bound.sizes, bound.first_step, bound.scalars);
    // A plan that is no JSON is none that was read or compiled.
    let plan = plan.to_json().unwrap_or_default();
    Hash::of(&[plan.as_bytes(), sizes.as_bytes()].concat())
}

impl Target for Shared<'_> {
    fn devices(&self) -> u32 {
        self.target.devices()
    }

    fn allocate(&mut self, bound: &Bound) -> Result<(), TargetError> {
        for node in self.plan.nodes() {
            let node = match node {
                plan::Node::Exchange(_) => "exchange",
                plan::Node::Snapshot(_) => "snapshot",
                _ => continue,
            };
            return Err(RankError::Node { program: self.plan.program.clone(), node }.into());
        }
        self.agree(bound)?;
        self.forms = bound.buffers.iter().map(Form::of).collect();
        (self.sizes, self.ended) = (Some(bound.clone()), false);
        self.works.clear();
        let survey = survey(self.plan, bound, &self.forms, self.devices)?;
        self.ledger = Ledger::new(&self.forms, survey.held, self.devices.count());
        self.order = Order::new(self.devices.count());
        self.joint = match self.link.is_within_process() && self.target.joins() {
            true => survey.joint,
            false => vec![false; bound.buffers.len()],
        };
        let device = self.link.device();
        let bytes = self.forms.iter().enumerate().map(|(place, form)| {
            let held = self.ledger.valid(BufferId(place), device).cells();
            held.saturating_mul(form.bytes) as u64
        });
        let bytes = bytes.fold(0, u64::saturating_add);
        let joined = self.join(bound, &survey.homes)?;
        self.target.allocate_part(bound, bytes, joined.as_ref())
    }

    fn upload(&mut self, buffer: BufferId, bytes: &[u8]) -> Result<(), TargetError> {
        let form = self.form(buffer)?;
        for run in form.runs(self.filled(buffer).areas()) {
            let part = bytes.get(run.clone());
            let part = part.ok_or_else(|| RankError::Fault("an input is too short".to_owned()))?;
            self.target.put(buffer, run.start, part)?;
        }
        Ok(())
    }

    fn copy(&mut self, from: BufferId, to: BufferId) -> Result<(), TargetError> {
        let form = self.form(to)?;
        for run in form.runs(self.filled(to).areas()) {
            let (from_byte, to_byte, bytes) = (run.start, run.start, run.len());
            self.target.exchange(&Copy { from, from_byte, to, to_byte, bytes })?;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), TargetError> {
        // Cells that others filled may be read.
        self.order_all()?;
        self.target.begin()?;
        self.point().map(drop)
    }

    fn launch(&mut self, launch: &Launch<'_>) -> Result<(), TargetError> {
        let works = self.works(launch)?;
        let mut transfers = Vec::new();
        for (device, work) in works.iter().enumerate() {
            for (place, buffer) in launch.buffers() {
                if let (Some(needed), false) = (work.reads.get(place), self.is_joint(buffer)) {
                    transfers.extend(self.ledger.fetch(device, buffer, needed)?);
                }
            }
        }
        self.exchange_cells(&transfers)?;
        self.order_launch(launch, &works)?;
        let device = self.link.device();
        if let Some(work) = works.get(device).filter(|work| work.is_some()) {
            for (place, buffer) in launch.buffers() {
                let Some(loaded) = work.loads.get(place) else { continue };
                if self.is_joint(buffer) {
                    continue;
                }
                let spare = loaded.without(&self.ledger.valid(buffer, device));
                if !spare.is_empty() {
                    let runs = self.form(buffer)?.runs(spare.areas());
                    self.target.scramble(buffer, &runs)?;
                }
            }
            let begin = self.point()?;
            self.target.launch(&work.blocks.part_of(launch))?;
            self.end_launch(begin)?;
        }
        for (place, buffer) in launch.buffers() {
            if self.is_joint(buffer) {
                continue;
            }
            let written = works.iter().filter_map(|work| work.writes.get(place).cloned());
            let written: Vec<Region> = written.collect();
            if written.iter().any(|one| !one.is_empty()) {
                self.ledger.wrote(buffer, &written);
                let form = self.form(buffer)?;
                let valid = self.ledger.valid(buffer, device);
                let stale = Region::from(form.whole()).without(&valid);
                self.target.forget(buffer, &form.runs(stale.areas()))?;
            }
        }
        Ok(())
    }

    fn exchange(&mut self, _: &Copy) -> Result<(), TargetError> {
        Err(RankError::Node { program: self.plan.program.clone(), node: "exchange" }.into())
    }

    fn wait(&mut self) -> Result<(), TargetError> {
        self.target.wait()
    }

    fn finish(&mut self) -> Result<Option<Duration>, TargetError> {
        self.ended = true;
        // The first device reads what all of them wrote.
        self.order_all()?;
        let own = self.target.finish()?;
        self.end_notes()?;
        self.longest(own)
    }

    fn abandon(&mut self) -> Result<(), TargetError> {
        self.target.abandon()
    }

    fn download(
        &mut self,
        buffer: BufferId,
        first: usize,
        bytes: &mut [u8],
    ) -> Result<(), TargetError> {
        let range = first..first.saturating_add(bytes.len());
        if self.devices.count() == 1 || self.ended && self.is_joint(buffer) {
            return self.target.download(buffer, first, bytes);
        }
        if self.ended {
            let words = [buffer.0 as u64, range.start as u64, range.end as u64];
            let message: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.tell_others(&message)?;
            return self.collect(buffer, range, Some(bytes));
        }
        // A comparison, which all devices make. Each gets the value.
        let needed = Region::from(self.form(buffer)?.rows_of(&range));
        if self.is_joint(buffer) {
            self.order_look(buffer, &range, needed)?;
            return self.target.download(buffer, first, bytes);
        }
        let mut transfers = Vec::new();
        for device in 0..self.devices.count() {
            transfers.extend(self.ledger.fetch(device, buffer, &needed)?);
        }
        self.exchange_cells(&transfers)?;
        self.target.download(buffer, first, bytes)
    }
}
