//! Values of a run that the first device has, for all others: where a run of several processes
//! pauses, each goes on with the values of all cells.

use super::error::RankError;
use super::link::{Link, LinkError};
use crate::array::{Array, Element};
use crate::execute::{ExecuteError, Launched, Outcome};
use crate::launch::Iterations;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Bytes of a message at most: MPI counts them in 31 bits, and each is copied once for each device.
const PART: usize = 1 << 26;

/// What comes before the cells of the arrays.
#[derive(Deserialize, Serialize)]
struct Head {
    steps: i64,
    iterations: Vec<(i64, bool)>,
    /// Name, type and cells per dimension of each array.
    arrays: Vec<(String, Element, Vec<usize>)>,
}

/// Gives all devices the outcome of a run, which the first one has. Times and counts of launches
/// are those of the first one alone. All devices call it.
///
/// # Errors
/// When a device fails, or has too little memory.
pub fn spread(
    link: &mut dyn Link,
    devices: usize,
    outcome: Option<Outcome>,
) -> Result<Outcome, ExecuteError> {
    match outcome {
        Some(outcome) => {
            send(link, devices, &outcome)?;
            Ok(outcome)
        }
        None => receive(link),
    }
}

fn send(link: &mut dyn Link, devices: usize, outcome: &Outcome) -> Result<(), ExecuteError> {
    let Outcome { outputs, launched } = outcome;
    let arrays = outputs.iter();
    let arrays = arrays.map(|(name, of)| (name.clone(), of.element(), of.shape().to_vec()));
    let iterations = launched.iterations.iter().map(|of| (of.count, of.met));
    let (arrays, iterations) = (arrays.collect(), iterations.collect());
    let head = Head { steps: launched.steps, iterations, arrays };
    let head = serde_json::to_vec(&head).map_err(|error| fault(&error))?;
    let cells = outputs.values().flat_map(|array| array.bytes().chunks(PART));
    for part in std::iter::once(head.as_slice()).chain(cells) {
        for to in 1..devices {
            link.send(to, part.to_vec()).map_err(failed)?;
        }
        // No message is sent before all have the one before.
        for from in 1..devices {
            link.receive(from).map_err(failed)?;
        }
    }
    Ok(())
}

fn receive(link: &mut dyn Link) -> Result<Outcome, ExecuteError> {
    let mut next = |expected: Option<usize>| -> Result<Vec<u8>, ExecuteError> {
        let message = link.receive(0).map_err(failed)?;
        if let Some(expected) = expected.filter(|expected| *expected != message.len()) {
            let (found, bytes) = (0, message.len());
            let error = LinkError::Order { device: 0, found, bytes, wanted: 0, expected };
            return Err(failed(error));
        }
        link.send(0, vec![0]).map_err(failed)?;
        Ok(message)
    };
    let head: Head = serde_json::from_slice(&next(None)?).map_err(|error| fault(&error))?;
    let mut outputs = BTreeMap::new();
    for (name, element, shape) in head.arrays {
        let mut array = Array::zeros(element, &shape)?;
        for part in array.bytes_mut().chunks_mut(PART) {
            let message = next(Some(part.len()))?;
            part.copy_from_slice(&message);
        }
        outputs.insert(name, array);
    }
    let iterations = head.iterations.into_iter();
    let iterations = iterations.map(|(count, met)| Iterations { count, met }).collect();
    let launched = Launched {
        count: 0,
        elapsed: None,
        steps: head.steps,
        iterations,
        current: Vec::new(),
        height: None,
    };
    Ok(Outcome { outputs, launched })
}

fn failed(error: LinkError) -> ExecuteError {
    ExecuteError::Target(error.into())
}

fn fault(error: &serde_json::Error) -> ExecuteError {
    let fault = RankError::Fault(format!("values of the first device: {error}"));
    ExecuteError::Target(fault.into())
}
