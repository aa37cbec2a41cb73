//! Several simulated devices share a run: the bits are the oracle's, and errors in what they send
//! are found.

use crate::common::{Case, bind, compile, difference, expected};
use std::collections::BTreeMap;
use std::time::Duration;
use stencil_runtime::execute::{Control, Target, TargetError};
use stencil_runtime::plan::{Node, Plan, Use};
use stencil_runtime::ranks::{
    Channels, Devices, Link, LinkError, Parcel, by_messages, channels, on_threads,
};
use stencil_simulator::{Options, Simulator};

/// An error in the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// None.
    Nothing,
    /// The plan has reaches that are a cell too short at one end.
    Short,
    /// An exchange is left out by all devices.
    Skipped,
    /// Cells come from another device than the one that wrote them.
    WrongNeighbour,
    /// A message with the cells of an earlier exchange.
    Stale,
    /// A message is sent again in place of the next one.
    Repeated,
}

/// A link with an error.
struct Faulty {
    link: Channels,
    devices: usize,
    fault: Fault,
    /// The messages so far, by receiver.
    sent: BTreeMap<usize, Vec<Vec<u8>>>,
}

/// The exchange that is wrong, and the message to a device, from 0.
const WRONG: usize = 2;

impl Link for Faulty {
    fn device(&self) -> usize {
        self.link.device()
    }

    fn send(&mut self, to: usize, mut message: Vec<u8>) -> Result<(), LinkError> {
        let before = self.sent.entry(to).or_default();
        if before.len() == WRONG && !message.is_empty() {
            let first = before.iter().rev().find(|one| one.len() == message.len());
            match (self.fault, first) {
                (Fault::Stale, Some(first)) => message[8..].copy_from_slice(&first[8..]),
                (Fault::Repeated, Some(first)) => message.clone_from(first),
                _ => {}
            }
        }
        before.push(message.clone());
        self.link.send(to, message)
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>, LinkError> {
        self.link.receive(from)
    }

    fn fail(&mut self, reason: &str) {
        self.link.fail(reason);
    }

    fn exchange(
        &mut self,
        number: u64,
        parcels: &[Parcel],
        target: &mut dyn Target,
    ) -> Result<(), TargetError> {
        if self.fault == Fault::Skipped && number == WRONG as u64 {
            return Ok(());
        }
        let mut parcels = parcels.to_vec();
        if self.fault == Fault::WrongNeighbour && number == WRONG as u64 {
            for parcel in &mut parcels {
                let others = (0..self.devices).map(|by| (parcel.from + 1 + by) % self.devices);
                parcel.from = others.into_iter().find(|one| *one != parcel.to).unwrap_or(0);
            }
        }
        by_messages(self, number, &parcels, target)
    }
}

/// Makes the reaches of a list of nodes a cell shorter behind the tiles.
pub fn shorten(nodes: &mut [Node]) {
    for node in nodes {
        match node {
            Node::Launch(launch) => {
                let uses = launch.cut.iter_mut().flat_map(|cut| cut.uses.values_mut());
                for used in uses {
                    let Use::Near(near) = used else { continue };
                    let Some(above) = near.above.first_mut().filter(|cells| **cells > 0) else {
                        continue;
                    };
                    *above -= 1;
                    near.spare_above.resize(near.above.len(), 0);
                    near.spare_above[0] += 1;
                }
            }
            Node::Repeat(repeat) => shorten(&mut repeat.body),
            Node::Until(until) => {
                shorten(&mut until.body);
                shorten(&mut until.otherwise);
            }
            Node::Choose(choose) => choose.among.iter_mut().for_each(|one| shorten(&mut one.body)),
            Node::Exchange(_) | Node::Snapshot(_) => {}
        }
    }
}

/// What goes wrong in a run on some devices with an error in it; none where nothing does.
fn found(case: &Case, (size, steps): (i64, i64), devices: &str, fault: Fault) -> Option<String> {
    let context = stencil_dialects::context().unwrap();
    let (module, mut plan): (_, Plan) = compile(&context, case);
    if fault == Fault::Short {
        shorten(&mut plan.schedule);
    }
    let (bound, inputs) = bind(&plan, size, steps);
    let devices: Devices = devices.parse().unwrap();
    let simulator = |_| Simulator::new(&module, Options::default()).unwrap();
    let mut simulators: Vec<Simulator> = (0..devices.count()).map(simulator).collect();
    let mut targets: Vec<_> =
        simulators.iter_mut().map(|one| one as &mut (dyn Target + Send)).collect();
    let links = channels(devices.count(), Duration::from_secs(60)).into_iter();
    let devices_count = devices.count();
    let mut links: Vec<_> = links
        .map(|link| Faulty { link, devices: devices_count, fault, sent: BTreeMap::new() })
        .collect();
    let run = (&plan, &bound, &inputs);
    let ran = on_threads(run, devices, &mut targets, &mut links, (None, &mut Control::default()));
    match ran {
        Ok(outcome) => difference(&outcome.outputs, &expected(case, &bound, &inputs)),
        Err(error) => Some(error.to_string()),
    }
}

fn agrees(case: &Case, run: (i64, i64), devices: &[&str]) {
    for devices in devices {
        let found = found(case, run, devices, Fault::Nothing);
        assert_eq!(found, None, "{case:?} on {devices} devices");
    }
}

#[test]
fn results_are_those_of_one_device() {
    let all = &["2", "3", "4", "2x2"];
    agrees(&Case::block("heat2d", &[8, 16], 3), (61, 11), all);
    agrees(&Case::naive("wave2d"), (41, 5), all);
    agrees(&Case::stream("heat2d", &[16, 112], 4), (61, 11), all);
    agrees(&Case::stream("fdtd2d", &[12, 112], 2), (61, 5), all);
    agrees(&Case::stream("hotspot2d", &[8, 112], 4), (61, 9), all);
    agrees(&Case::plane("star3d2r", &[4, 8, 32], 1), (21, 3), all);
    agrees(&Case::warp("jacobi1d5", 2, 3), (700, 7), all);
}

#[test]
fn grids_that_repeat_and_reductions() {
    let all = &["2", "3", "2x2"];
    agrees(&Case::block("torus3d", &[4, 4, 16], 2), (17, 5), all);
    agrees(&Case::stream("advect2d", &[8, 112], 2), (61, 5), all);
    agrees(&Case::block("srad", &[8, 16], 1), (61, 3), all);
    agrees(&Case::block("conjugate-gradients", &[8, 16], 1), (61, 3), all);
}

#[test]
fn sweeps_are_refused() {
    let case = Case::wavefront("sor2d", &[8, 8]);
    let found = found(&case, (33, 2), "2", Fault::Nothing).unwrap();
    assert!(found.contains("kernel `sor2d_0` can't be shared out between devices"), "{found}");
}

/// Each planted error is found: by the simulator, by the devices, or in the result.
#[test]
fn errors_in_exchanges_are_found() {
    let cases = [
        (Case::block("heat2d", &[8, 16], 2), (45, 12)),
        (Case::stream("heat2d", &[8, 112], 2), (45, 12)),
        (Case::block("torus3d", &[4, 4, 16], 1), (17, 6)),
    ];
    for (case, run) in &cases {
        for fault in
            [Fault::Short, Fault::Skipped, Fault::WrongNeighbour, Fault::Stale, Fault::Repeated]
        {
            assert!(found(case, *run, "3", fault).is_some(), "{case:?}: {fault:?} is not found");
        }
    }
}
