//! A chunk of a run: the launches that become one graph, as plain data.

use super::call::Call;
use super::error::CudaError;
use super::look::{LOOKS, Look};
use crate::bands::{Band, Chain};
use crate::bind::BufferId;
use crate::launch::Launch;

/// Work of the device, and the nodes before that it waits for.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub work: Work,
    pub waits: Vec<usize>,
}

/// What a node does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Work {
    /// A call of a kernel.
    Call(Call),
    /// A look at a condition.
    Look(Look),
}

impl Node {
    /// Whether the two differ in no more than the arguments of a call.
    pub fn is_like(&self, other: &Node) -> bool {
        let alike = match (&self.work, &other.work) {
            (Work::Call(call), Work::Call(other)) => call.is_like(other),
            (work, other) => work == other,
        };
        alike && self.waits == other.waits
    }
}

/// Launches that are sent together.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub nodes: Vec<Node>,
    chain: Chain,
    launches: usize,
    /// Looks at a condition.
    pub looks: usize,
    /// Whether nothing comes behind the last look.
    pub ends_with_looks: bool,
    /// The last launch's step.
    step: Option<i64>,
    /// Whether its launches are apart from the steps.
    pub apart: bool,
}

impl Chunk {
    /// Whether a chunk of so many launches ends before this one. The launches of a step stay
    /// together, and those that are apart from the steps come by themselves: so chunks begin alike.
    pub fn ends_before(&self, launch: &Launch<'_>, launches: usize) -> bool {
        let launches = if self.looks > 0 { launches.saturating_mul(LOOKS) } else { launches };
        let is_full = self.launches >= launches && self.step != Some(launch.step);
        let is_other = self.launches > 0 && self.apart != launch.apart;
        is_full || is_other || self.ends_with_looks
    }

    /// Adds a launch in its bands, of which `call` makes calls; gives their number.
    pub fn add(
        &mut self,
        launch: &Launch<'_>,
        resident: u64,
        call: impl Fn(&Launch<'_>) -> Result<Call, CudaError>,
    ) -> Result<usize, CudaError> {
        let bands = self.chain.add(launch, resident);
        let count = bands.len();
        for Band { launch, waits } in bands {
            self.nodes.push(Node { work: Work::Call(call(&launch)?), waits });
        }
        self.launches += 1;
        self.step = Some(launch.step);
        self.apart = launch.apart;
        Ok(count)
    }

    /// Adds a look at the condition in a buffer; `values` are the memories that hold values of the
    /// run then. The chunk ends with it where it has half the launches of a chunk without looks:
    /// the launches of two chunks may be sent in vain.
    pub fn add_look(
        &mut self,
        look: Look,
        (condition, values): (BufferId, Vec<BufferId>),
        launches: usize,
    ) {
        let waits = self.chain.look(condition, values);
        self.nodes.push(Node { work: Work::Look(look), waits });
        self.looks += 1;
        self.ends_with_looks = self.looks >= LOOKS || self.launches >= launches / 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::call::Word;
    use crate::cuda::graph::GraphSettings;
    use crate::cuda::handle::Handle;
    use crate::launch::tests::bound;
    use crate::launch::{Action, Launches, Value};
    use crate::plan::tests::banded;
    use crate::plan::{self, Node, Plan};

    /// A launch as the driver takes it, without the driver.
    fn call(part: &Launch<'_>) -> Call {
        let word = |value: &Value| match value {
            Value::Buffer(id) => Word::of(&id.0.to_ne_bytes()),
            Value::Number(number) => Word::of(&number.bytes()),
        };
        Call {
            kernel: part.kernel.name.as_str().into(),
            function: Handle::NONE,
            grid: part.grid,
            block: part.kernel.block,
            shared: 0,
            cooperative: part.node.cooperative,
            cluster: part.node.cluster,
            words: part.arguments.iter().map(word).collect(),
            addresses: Vec::new(),
        }
    }

    /// The chunks of a run of the plan, for a device that runs `resident` blocks at a time.
    fn chunks(plan: &Plan, steps: i64, resident: u64) -> Vec<Chunk> {
        let (mut chunks, mut chunk) = (Vec::new(), Chunk::default());
        for action in Launches::new(plan, &bound(400, steps)).unwrap() {
            let Action::Launch(launch) = action else { panic!("{action:?}") };
            if chunk.ends_before(&launch, GraphSettings::default().chunk) {
                chunks.push(std::mem::take(&mut chunk));
            }
            chunk.add(&launch, resident, |part| Ok(call(part))).unwrap();
        }
        chunks.push(chunk);
        chunks
    }

    fn like(one: &Chunk, other: &Chunk) -> bool {
        one.nodes.len() == other.nodes.len()
            && one.nodes.iter().zip(&other.nodes).all(|(a, b)| a.is_like(b))
    }

    #[test]
    fn a_run_is_one_chunk_many_times_over_and_a_remainder() {
        // 500 launches of two steps and one of one; each of the two steps has 25 rows, and so 6
        // bands.
        let found = chunks(&banded(), 1001, 0);
        let sizes: Vec<_> = found.iter().map(|chunk| (chunk.launches, chunk.nodes.len())).collect();
        assert_eq!(sizes[..7], [(64, 64 * 6); 7]);
        assert_eq!(sizes[7..], [(53, 52 * 6 + 1)]);
        assert!(found[..7].windows(2).all(|pair| like(&pair[0], &pair[1])));
        assert!(!like(&found[6], &found[7]));
        // The number of the step is an argument of these kernels, and nothing else differs.
        let arguments = |chunk: &Chunk, node: usize| match &chunk.nodes[node].work {
            Work::Call(call) => call.words.clone(),
            Work::Look(look) => panic!("{look:?}"),
        };
        let (first, second) = (arguments(&found[0], 21), arguments(&found[1], 21));
        let differing: Vec<_> =
            (0..first.len()).filter(|place| first[*place] != second[*place]).collect();
        assert_eq!(differing, [5]);
        assert_eq!(chunks(&banded(), 0, 0)[0].nodes, []);
    }

    #[test]
    fn nodes_wait_for_bands_of_their_chunk() {
        for chunk in chunks(&banded(), 1001, 0) {
            for (place, node) in chunk.nodes.iter().enumerate() {
                // A chunk begins when all launches before it have ended.
                assert_eq!(node.waits.is_empty(), place < 6);
                assert!(node.waits.iter().all(|wait| *wait < place));
            }
            assert_eq!(chunk.nodes[45].waits, [38, 39, 40]);
        }
        let whole = chunks(&banded(), 1001, 25);
        assert_eq!((whole[0].nodes.len(), &whole[0].nodes[9].waits), (64, &vec![8]));
    }

    #[test]
    fn the_launches_of_a_step_stay_together() {
        let mut plan = banded();
        let mut half = plan.kernels[1].clone();
        half.name = "half".to_owned();
        plan.kernels.push(half);
        let Node::Repeat(rest) = plan.schedule.remove(1) else { panic!("no repeat") };
        let Node::Launch(one) = &rest.body[0] else { panic!("no launch") };
        let half =
            Node::Launch(plan::Launch { kernel: "half".to_owned(), steps: 0, ..one.clone() });
        plan.schedule = vec![Node::Repeat(plan::Repeat {
            count: "steps".parse().unwrap(),
            body: vec![half.clone(), half, rest.body[0].clone()],
        })];
        let found = chunks(&plan, 100, 0);
        let sizes: Vec<_> = found.iter().map(|chunk| chunk.launches).collect();
        assert_eq!(sizes, [66, 66, 66, 66, 36]);
        assert!(like(&found[0], &found[3]));
    }

    #[test]
    fn launches_that_are_apart_from_the_steps_come_by_themselves() {
        let mut plan = banded();
        let mut pack = plan.kernels[1].clone();
        pack.name = "pack".to_owned();
        plan.kernels.push(pack);
        let Node::Repeat(rest) = &plan.schedule[1] else { panic!("no repeat") };
        let Node::Launch(one) = &rest.body[0] else { panic!("no launch") };
        let one = plan::Launch { kernel: "pack".to_owned(), steps: 0, ..one.clone() };
        let once = Node::Repeat(plan::Repeat {
            count: "1".parse().unwrap(),
            body: vec![Node::Launch(one.clone()), Node::Launch(one)],
        });
        plan.schedule.insert(0, once.clone());
        plan.schedule.push(once);
        let found = chunks(&plan, 400, 0);
        let sizes: Vec<_> = found.iter().map(|chunk| (chunk.launches, chunk.apart)).collect();
        let steps = [(64, false), (64, false), (64, false), (8, false)];
        assert_eq!(sizes, [&[(2, true)], &steps[..], &[(2, true)]].concat());
        assert!(like(&found[1], &found[3]));
    }

    /// The looks and launches of the chunks of a run that takes a look after some launches.
    fn with_looks(launches_of_a_look: usize, looks: usize) -> Vec<(usize, usize)> {
        let (plan, mut chunk, mut found) = (banded(), Chunk::default(), Vec::new());
        let steps = 2 * i64::try_from(launches_of_a_look * looks).unwrap();
        let (mut all, bound) = (0, bound(400, steps));
        for action in Launches::new(&plan, &bound).unwrap() {
            let Action::Launch(launch) = action else { panic!("{action:?}") };
            if chunk.ends_before(&launch, 64) {
                found.push((chunk.looks, chunk.launches));
                chunk = Chunk::default();
            }
            chunk.add(&launch, 1 << 20, |part| Ok(call(part))).unwrap();
            all += 1;
            if all % launches_of_a_look == 0 {
                chunk.add_look(Look::nowhere(), (BufferId(9), Vec::new()), 64);
            }
        }
        found.push((chunk.looks, chunk.launches));
        found
    }

    #[test]
    fn chunks_with_looks_end_with_one() {
        assert_eq!(with_looks(1, 40), [(16, 16), (16, 16), (8, 8)]);
        assert_eq!(with_looks(5, 20), [(7, 35), (7, 35), (6, 30)]);
        assert_eq!(with_looks(40, 3), [(1, 40), (1, 40), (1, 40)]);
        // Before the first look a chunk ends as one without looks does.
        assert_eq!(with_looks(100, 2), [(0, 64), (1, 36), (0, 64), (1, 36)]);
    }
}
