//! Errors of a block, with the place of the operation and the thread.

use super::{Block, Fault};
use crate::error::{Address, Operation, Other, Problem, SimulationError, Thread};
use crate::memory::Conflict;
use crate::program::Site;
use cranelift_entity::EntityRef;

impl Block<'_> {
    pub(super) fn site(&self) -> Site {
        let pc = self.pc.saturating_sub(1);
        self.environment.kernel.origins.get(pc).map_or(Site::new(0), |origin| origin.site)
    }

    pub(super) fn operation(&self, site: Site) -> Operation {
        let sites = &self.environment.kernel.sites;
        sites.get(site).map_or_else(
            || Operation { place: String::new(), text: String::new() },
            |info| Operation::new(&info.place, &info.text),
        )
    }

    #[cold]
    pub(super) fn fault(&self, problem: Problem, lane: usize, detail: String) -> Fault {
        Box::new(SimulationError {
            problem,
            kernel: self.environment.kernel.name.clone(),
            operation: self.operation(self.site()),
            thread: self.thread(lane),
            address: None,
            other: None,
            cycle: Vec::new(),
            detail,
        })
    }

    #[cold]
    pub(super) fn conflict(&self, conflict: Conflict, lane: usize, address: Address) -> Fault {
        let mut fault = self.fault(Problem::Unwritten, lane, String::new());
        fault.address = Some(address);
        if let Conflict::Race { other, site, write } = conflict {
            fault.problem = Problem::Race;
            let [x, y, _] = self.environment.kernel.block;
            let (lane, block) = (other.thread(), self.environment.place(other.block()));
            fault.other = Some(Other {
                thread: Thread { block, thread: [lane % x, lane / x % y, lane / x / y] },
                operation: self.operation(Site::new(usize::from(site))),
                write,
            });
            fault.detail = if other.block() == self.time.block {
                "no barrier lies between the two".to_owned()
            } else if self.environment.kernel.peer {
                "no signal and wait order the two blocks".to_owned()
            } else {
                "blocks of one launch have no order".to_owned()
            };
        }
        fault
    }
}
