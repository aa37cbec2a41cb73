//! The schedule of a plan with all its sizes evaluated, once per run. Everything that can be
//! checked before the first launch is checked here.

use super::{LaunchError, Rows};
use crate::bind::{Bound, Held};
use crate::layout::Placement;
use crate::number::Number;
use crate::plan::{self, Argument, Choose, Exchange, Kernel, Limit, Node, Plan, Relation, Until};
use std::sync::Arc;

/// The most actions per step of a run. It is far above that of any program, and low enough that the
/// schedule of a damaged file ends.
const MOST_ACTIONS_A_STEP: i128 = 1 << 20;

/// A list of prepared nodes.
pub type Body<'p> = Arc<[Prepared<'p>]>;

/// A node whose values stay the same in every iteration. Buffers go by place in [`Plan::buffers`].
#[derive(Clone, Debug)]
pub enum Prepared<'p> {
    /// A launch with blocks.
    Launch(Arc<PreparedLaunch<'p>>),
    /// Launches without blocks: they have no points and change only the step.
    Skip {
        steps: i64,
    },
    Loop {
        iterations: i64,
        until: Option<PreparedUntil>,
        body: Body<'p>,
        /// What follows where the condition was never met.
        otherwise: Body<'p>,
    },
    Exchange(Arc<[PreparedCopy]>),
    Snapshot {
        field: usize,
    },
}

#[derive(Clone, Debug)]
pub struct PreparedLaunch<'p> {
    pub kernel: &'p Kernel,
    pub index: usize,
    pub node: &'p plan::Launch,
    pub grid: [u32; 3],
    pub rows: Option<Rows>,
    pub turns: i64,
    pub arguments: Vec<Slot>,
    pub rotations: Vec<Vec<usize>>,
}

/// An argument, resolved as far as possible before the launch.
#[derive(Clone, Copy, Debug)]
pub enum Slot {
    Buffer(usize),
    Number(Number),
    Step,
    Epoch,
    /// In so many bits.
    Turn(u32),
}

/// The condition of a loop.
#[derive(Clone, Copy, Debug)]
pub struct PreparedUntil {
    /// Which `until` of the plan, in the order of the file.
    pub number: usize,
    pub buffer: usize,
    pub is: Relation,
    pub limit: Number,
    pub every: i64,
    pub ahead: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct PreparedCopy {
    pub from: usize,
    pub from_byte: usize,
    pub to: usize,
    pub to_byte: usize,
    pub bytes: usize,
}

/// Prepares a plan's schedule.
pub fn schedule<'p>(plan: &'p Plan, bound: &Bound) -> Result<Body<'p>, LaunchError> {
    let body = Preparation { plan, bound }.list(&plan.schedule, false)?;
    let taken = total(&body, &|node| match node {
        Prepared::Launch(launch) => launch.node.steps.into(),
        Prepared::Skip { steps } => (*steps).into(),
        _ => 0,
    });
    if taken != i128::from(bound.steps) {
        return Err(invalid(plan, format!("its schedule takes {taken} of {} steps", bound.steps)));
    }
    let actions = total(&body, &|node| match node {
        Prepared::Skip { .. } => 0,
        Prepared::Launch(launch) => launch.turns.into(),
        _ => 1,
    });
    if actions > (taken + 1).saturating_mul(MOST_ACTIONS_A_STEP) {
        return Err(invalid(plan, format!("its schedule has {actions} actions in {taken} steps")));
    }
    let epochs = total(&body, &|node| match node {
        Prepared::Launch(launch) => launch.node.epochs.into(),
        _ => 0,
    });
    if epochs > i128::from(i32::MAX) {
        return Err(LaunchError::Epochs { epochs });
    }
    Ok(body)
}

/// The sum over all nodes that are done, those of a loop as often as it may be done.
fn total(body: &[Prepared<'_>], of: &impl Fn(&Prepared<'_>) -> i128) -> i128 {
    body.iter().fold(0_i128, |sum, node| {
        sum.saturating_add(match node {
            Prepared::Loop { iterations, body, until, otherwise } => {
                let compares = i128::from(until.is_some()) * of(node);
                let each = total(body, of).saturating_add(compares);
                i128::from(*iterations).saturating_mul(each).saturating_add(total(otherwise, of))
            }
            other => of(other),
        })
    })
}

/// Whether the launches in bands of a list overlap with each other where the list repeats: they are
/// launches of one node, and nothing else writes a buffer that they use. The next one may use
/// another buffer in place of one that rotates.
fn overlaps(nodes: &[Node]) -> bool {
    let ends =
        |node: &&Node| matches!(node, Node::Until(_) | Node::Exchange(_) | Node::Snapshot(_));
    let plain = !plan::nodes(nodes).iter().any(ends);
    let (cut, others): (Vec<_>, Vec<_>) =
        plan::launches(nodes).partition(|launch| launch.bands.is_some());
    let [cut] = cut.as_slice() else { return false };
    let uses = |argument: &Argument, name: &str| {
        argument.buffer() == Some(name) && !matches!(argument, Argument::Unless(_))
    };
    let disturbs = |other: &&plan::Launch| {
        let mut written = other.arguments.iter().filter_map(Argument::written);
        written.any(|name| {
            let rotates = other.rotate.iter().flatten().any(|one| one == name);
            let mut used = cut.arguments.iter();
            !rotates && used.any(|argument| uses(argument, name))
        })
    };
    plain && !others.iter().any(disturbs)
}

struct Preparation<'p, 'b> {
    plan: &'p Plan,
    bound: &'b Bound,
}

impl<'p> Preparation<'p, '_> {
    /// A list; `repeats` where it runs several times in a row with nothing else in between that
    /// keeps its launches from overlapping.
    fn list(&self, nodes: &'p [Node], repeats: bool) -> Result<Body<'p>, LaunchError> {
        let mut all = Vec::new();
        let alone = repeats && overlaps(nodes);
        for node in nodes {
            match node {
                Node::Launch(launch) => all.push(self.launch(launch, alone)?),
                Node::Repeat(repeat) => {
                    let iterations = repeat.count.evaluate(&self.bound.sizes)?;
                    let bodies = (repeat.body.as_slice(), &[] as &[Node]);
                    self.iterations(&mut all, iterations, None, bodies, alone)?;
                }
                Node::Until(until) => {
                    let iterations = until.most.evaluate(&self.bound.sizes)?;
                    let bodies = (until.body.as_slice(), until.otherwise.as_slice());
                    let until = Some(self.until(until)?);
                    self.iterations(&mut all, iterations, until, bodies, false)?;
                }
                Node::Choose(choose) => {
                    let body = self.list(self.chosen(choose)?, alone)?;
                    all.extend(body.iter().cloned());
                }
                Node::Exchange(exchange) => all.push(self.exchange(exchange)?),
                Node::Snapshot(snapshot) => all.push(Prepared::Snapshot {
                    field: position(&self.plan.fields, |field| field.name == snapshot.field)
                        .ok_or_else(|| self.missing(&snapshot.field))?,
                }),
            }
        }
        Ok(all.into())
    }

    fn iterations(
        &self,
        all: &mut Vec<Prepared<'p>>,
        iterations: i64,
        until: Option<PreparedUntil>,
        (body, otherwise): (&'p [Node], &'p [Node]),
        alone: bool,
    ) -> Result<(), LaunchError> {
        let otherwise = self.list(otherwise, false)?;
        if iterations <= 0 {
            all.extend(otherwise.iter().cloned());
            return Ok(());
        }
        let body = self.list(body, iterations > 1 || alone)?;
        // An iteration without actions would go round for nothing; an `until` compares after some.
        let start = until.is_none().then_some(0_i64);
        let steps = body.iter().fold(start, |sum, node| match node {
            Prepared::Skip { steps } => Some(sum?.saturating_add(*steps)),
            _ => None,
        });
        all.push(match steps {
            Some(steps) => Prepared::Skip { steps: steps.saturating_mul(iterations) },
            None => Prepared::Loop { iterations, until, body, otherwise },
        });
        Ok(())
    }

    fn chosen(&self, choose: &'p Choose) -> Result<&'p [Node], LaunchError> {
        let wanted = self.bound.choices.get(&choose.name);
        for one in &choose.among {
            let taken = match (wanted, &one.when) {
                (Some(wanted), _) => one.name == *wanted,
                (None, Some(when)) => when.evaluate(&self.bound.sizes)? >= 0,
                (None, None) => true,
            };
            if taken {
                return Ok(&one.body);
            }
        }
        Err(self.missing(&choose.name))
    }

    fn missing(&self, name: &str) -> LaunchError {
        invalid(self.plan, format!("its schedule uses `{name}`, which is not declared"))
    }

    fn buffer(&self, name: &str) -> Result<usize, LaunchError> {
        position(&self.plan.buffers, |buffer| buffer.name == name).ok_or_else(|| self.missing(name))
    }

    fn launch(&self, node: &'p plan::Launch, alone: bool) -> Result<Prepared<'p>, LaunchError> {
        let index = position(&self.plan.kernels, |kernel| kernel.name == node.kernel);
        let index = index.ok_or_else(|| self.missing(&node.kernel))?;
        let kernel = self.plan.kernels.get(index).ok_or_else(|| self.missing(&node.kernel))?;
        let turns = node.turns.as_ref().map(|turns| turns.evaluate(&self.bound.sizes));
        let turns = turns.transpose()?.unwrap_or(1);
        if i128::from(turns) > MOST_ACTIONS_A_STEP {
            return Err(LaunchError::Turns { kernel: node.kernel.clone(), turns });
        }
        let Some(grid) = grid_of(node, self.bound)?.filter(|_| turns > 0) else {
            return Ok(Prepared::Skip { steps: node.steps.into() });
        };
        if let Some(cluster) = node.cluster
            && grid.iter().zip(cluster).any(|(blocks, each)| blocks % each.max(1) != 0)
        {
            let message = format!(
                "kernel `{}` has {grid:?} blocks, which are no whole clusters of {cluster:?}",
                node.kernel
            );
            return Err(invalid(self.plan, message));
        }
        let arguments = node.arguments.iter().map(|argument| self.argument(node, argument));
        let rotation = |names: &Vec<String>| names.iter().map(|name| self.buffer(name)).collect();
        Ok(Prepared::Launch(Arc::new(PreparedLaunch {
            kernel,
            index,
            node,
            grid,
            rows: if alone { rows(node, self.bound, grid)? } else { None },
            turns,
            arguments: arguments.collect::<Result<_, _>>()?,
            rotations: node.rotate.iter().map(rotation).collect::<Result<_, _>>()?,
        })))
    }

    fn argument(&self, node: &plan::Launch, argument: &Argument) -> Result<Slot, LaunchError> {
        let narrow = self.plan.index_width == 32;
        Ok(match argument {
            Argument::Read(name)
            | Argument::Write(name)
            | Argument::ReadWrite(name)
            | Argument::Unless(name) => Slot::Buffer(self.buffer(name)?),
            Argument::Step => Slot::Step,
            Argument::Epoch => Slot::Epoch,
            Argument::Turn => Slot::Turn(self.plan.index_width),
            Argument::Row | Argument::FirstBlock if narrow => Slot::Number(Number::I32(0)),
            Argument::Row | Argument::FirstBlock => Slot::Number(Number::I64(0)),
            Argument::Scalar(name) => {
                Slot::Number(*self.bound.scalars.get(name).ok_or_else(|| self.missing(name))?)
            }
            Argument::Param(name) => {
                let value = *self.bound.sizes.get(name).ok_or_else(|| self.missing(name))?;
                if !narrow {
                    return Ok(Slot::Number(Number::I64(value)));
                }
                Slot::Number(Number::I32(i32::try_from(value).map_err(|_| {
                    LaunchError::Argument { kernel: node.kernel.clone(), name: name.clone(), value }
                })?))
            }
        })
    }

    fn until(&self, until: &'p Until) -> Result<PreparedUntil, LaunchError> {
        let nodes = self.plan.nodes();
        let mut all = nodes.iter().filter(|node| matches!(node, Node::Until(_)));
        let same = |node: &&Node| matches!(node, Node::Until(one) if std::ptr::eq(one, until));
        let buffer = self.buffer(&until.reduction)?;
        let element = self.bound.buffers.get(buffer).map(|buffer| buffer.element);
        let limit = match &until.limit {
            Limit::Value(value) => element.and_then(|element| value.number(element)),
            Limit::Scalar(name) => self.bound.scalars.get(name).copied(),
        };
        Ok(PreparedUntil {
            number: all.position(same).unwrap_or(0),
            buffer,
            is: until.is,
            limit: limit.ok_or_else(|| self.missing(&until.reduction))?,
            every: i64::from(until.every.max(1)),
            ahead: until.ahead,
        })
    }

    /// The copies between each part of a field and the next, both ways.
    fn exchange(&self, exchange: &Exchange) -> Result<Prepared<'p>, LaunchError> {
        let wrong = |message: String| LaunchError::Exchange {
            field: exchange.field.clone(),
            depth: exchange.depth,
            message,
        };
        let field = position(&self.plan.fields, |field| field.name == exchange.field);
        let value = field.and_then(|field| self.bound.values.get(field));
        let parts = value.ok_or_else(|| self.missing(&exchange.field))?;
        let depth = exchange.depth as usize;
        let mut copies = Vec::new();
        for pair in parts.windows(2) {
            let [before, after] = pair else { continue };
            let (Some(upper), Some(lower)) = (before.cells.first(), after.cells.first()) else {
                continue;
            };
            if upper.end != lower.start {
                return Err(wrong(format!(
                    "a part ends before row {}, and the next one begins at {}",
                    upper.end, lower.start
                )));
            }
            if upper.len().min(lower.len()) < depth {
                return Err(wrong(format!("a part has {} of them", upper.len().min(lower.len()))));
            }
            let line = lower.start;
            copies.push(self.rows_between(after, before, line..line + depth).map_err(wrong)?);
            copies.push(self.rows_between(before, after, line - depth..line).map_err(wrong)?);
        }
        Ok(Prepared::Exchange(copies.into()))
    }

    /// The copy of whole rows, in the field's numbers, from one part's buffer to another's.
    fn rows_between(
        &self,
        from: &Held,
        to: &Held,
        rows: std::ops::Range<usize>,
    ) -> Result<PreparedCopy, String> {
        let place = |held: &Held| {
            let buffer = self.bound.buffers.get(held.buffer)?;
            let (first, count) = (*buffer.origin.first()?, *buffer.shape.first()?);
            let inside = first <= rows.start && rows.end <= first + count;
            let [_, rest @ ..] = buffer.shape.as_slice() else { return None };
            let one = buffer.placement.cells(&[&[1], rest].concat());
            // A field of one dimension has rows of one cell.
            let one = if rest.is_empty() { 1 } else { usize::try_from(one).ok()? };
            let by_rows = matches!(buffer.placement, Placement::Rows { .. });
            let bytes = one * buffer.element.size();
            (inside && by_rows).then(|| ((rows.start - first) * bytes, bytes, rest, buffer))
        };
        let (Some((from_byte, bytes, shape, one)), Some((to_byte, others, other, two))) =
            (place(from), place(to))
        else {
            return Err(format!("rows {} to {} lie outside a buffer", rows.start, rows.end));
        };
        let aside = |origin: &[usize]| origin.iter().skip(1).copied().collect::<Vec<_>>();
        if bytes != others || shape != other || aside(&one.origin) != aside(&two.origin) {
            return Err("the rows of two parts differ".to_string());
        }
        let (from, to) = (from.buffer, to.buffer);
        Ok(PreparedCopy { from, from_byte, to, to_byte, bytes: bytes * rows.len() })
    }
}

fn position<T>(all: &[T], is: impl Fn(&T) -> bool) -> Option<usize> {
    all.iter().position(is)
}

/// The rows of a launch; none where its blocks are not as many in each.
fn rows(
    node: &plan::Launch,
    bound: &Bound,
    [blocks, ..]: [u32; 3],
) -> Result<Option<Rows>, LaunchError> {
    let Some(bands) = &node.bands else { return Ok(None) };
    let count = u32::try_from(bands.rows.evaluate(&bound.sizes)?).unwrap_or(0);
    let rows = Rows { all: count, first: 0, count, reach: bands.reach };
    Ok((count > 0 && blocks % count == 0).then_some(rows))
}

/// Blocks of a launch: at most 2^31 - 1 in x and 65535 in y and z (CUDA C++ Programming Guide,
/// table of technical specifications per compute capability); none where there are no points.
pub fn grid_of(node: &plan::Launch, bound: &Bound) -> Result<Option<[u32; 3]>, LaunchError> {
    let [x, y, z] = &node.grid;
    let blocks = [x.evaluate(&bound.sizes)?, y.evaluate(&bound.sizes)?, z.evaluate(&bound.sizes)?];
    if blocks.iter().any(|&n| n <= 0) {
        return Ok(None);
    }
    let too_many = || LaunchError::Grid { kernel: node.kernel.clone(), grid: blocks };
    let limits = [i64::from(i32::MAX), 65535, 65535];
    if blocks.iter().zip(limits).any(|(&n, most)| n > most) {
        return Err(too_many());
    }
    let [x, y, z] = blocks.map(u32::try_from);
    match (x, y, z) {
        (Ok(x), Ok(y), Ok(z)) => Ok(Some([x, y, z])),
        _ => Err(too_many()),
    }
}

fn invalid(plan: &Plan, message: String) -> LaunchError {
    LaunchError::Schedule { program: plan.program.clone(), message }
}
