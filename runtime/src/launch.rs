//! The launches of a run in order, each with its grid, its arguments and its step.
//!
//! Which of a field's two buffers is the current one follows from the launches before: each one
//! that writes a field swaps them. An iterator carries that state, so a target only launches.

use crate::bind::{Bound, BufferId};
use crate::expr::ExprError;
use crate::number::Number;
use crate::plan::{Argument, Kernel, Plan};
use std::ops::Range;
use thiserror::Error;

/// Why a launch is impossible.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum LaunchError {
    /// More blocks than a launch can have.
    #[error(
        "kernel `{kernel}` would be launched with {grid:?} blocks, more than a device takes; use \
         smaller sizes or larger tiles"
    )]
    Grid {
        /// The kernel.
        kernel: String,
        /// Blocks in x, y, z.
        grid: [i64; 3],
    },
    /// A size does not fit the kernel's argument.
    #[error(
        "size overflow: `{name}` = {value} does not fit in the 32-bit argument of kernel \
         `{kernel}`; use smaller sizes"
    )]
    Argument {
        /// The kernel.
        kernel: String,
        /// The size.
        name: String,
        /// Its value.
        value: i64,
    },
    /// The plan's schedule is not valid.
    #[error("the plan of {program} is not valid: {message}; compile the program again")]
    Schedule {
        /// The program.
        program: String,
        /// What is wrong.
        message: String,
    },
    /// An expression of the plan has no value.
    #[error(transparent)]
    Expr(#[from] ExprError),
}

/// One launch of a kernel, with all its arguments known.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch<'p> {
    /// The kernel.
    pub kernel: &'p Kernel,
    /// Its place in [`Plan::kernels`].
    pub index: usize,
    /// Blocks in x, y, z; none is zero.
    pub grid: [u32; 3],
    /// The number of the first step that it takes, from 0.
    pub step: i64,
    /// The arguments, in the kernel's order.
    pub arguments: Vec<Value>,
    /// Its rows of blocks, where it may be cut between them.
    pub rows: Option<Rows>,
}

/// The rows of blocks of a launch: see [`crate::plan::Bands`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    /// How many there are, at least one.
    pub count: u32,
    /// How far away a row may be whose cells another reads or writes.
    pub reach: u32,
}

impl Launch<'_> {
    /// The launch of some rows alone; the whole where it has none.
    pub fn band(&self, band: &Range<u32>) -> Self {
        let mut launch = self.clone();
        let Some(rows) = self.rows else { return launch };
        let [blocks, ..] = &mut launch.grid;
        *blocks = *blocks / rows.count * (band.end - band.start);
        for (argument, value) in self.kernel.arguments.iter().zip(&mut launch.arguments) {
            if let (Argument::Row, Value::Number(number)) = (argument, value) {
                *number = match number {
                    Number::I64(_) => Number::I64(band.start.into()),
                    // Rows are no more than blocks, of which there are at most 2^31 - 1.
                    _ => Number::I32(band.start.cast_signed()),
                };
            }
        }
        launch
    }
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// The address of a buffer.
    Buffer(BufferId),
    /// A number.
    Number(Number),
}

/// The launches of a run in order. A kernel without blocks (an empty grid) is left out, and so is
/// its swap: what has no points changes nothing.
#[derive(Clone, Debug)]
pub struct Launches<'p> {
    rounds: Vec<Round<'p>>,
    round: usize,
    /// Turns of the current round already finished.
    turn: i64,
    /// Kernels of the current turn already launched.
    place: usize,
    step: i64,
    /// For each field whether its second buffer is the current one.
    swapped: Vec<bool>,
    first_buffer: Vec<BufferId>,
}

#[derive(Clone, Debug)]
struct Round<'p> {
    turns: i64,
    kernels: Vec<Prepared<'p>>,
}

/// A kernel with what does not change from launch to launch.
#[derive(Clone, Debug)]
struct Prepared<'p> {
    kernel: &'p Kernel,
    index: usize,
    /// `None` for an empty grid.
    grid: Option<[u32; 3]>,
    rows: Option<Rows>,
    arguments: Vec<Slot>,
}

/// An argument, resolved as far as possible before the launch. Fields go by place.
#[derive(Clone, Copy, Debug)]
enum Slot {
    Current(usize),
    Other(usize),
    Number(Number),
    Step,
}

impl<'p> Launches<'p> {
    /// Prepares the launches of a plan.
    ///
    /// # Errors
    /// When a grid or a size is too large, or when the schedule does not take the wanted steps.
    pub fn new(plan: &'p Plan, bound: &Bound) -> Result<Launches<'p>, LaunchError> {
        let mut rounds = Vec::new();
        for repeat in &plan.schedule {
            let turns = repeat.count.evaluate(&bound.sizes)?.max(0);
            let mut kernels = Vec::new();
            if turns > 0 {
                for name in &repeat.kernels {
                    kernels.push(prepare(plan, bound, name)?);
                }
                // A launch overlaps with others of its kernel alone.
                if kernels.len() > 1 || turns == 1 {
                    kernels.iter_mut().for_each(|kernel| kernel.rows = None);
                }
            }
            // A turn without kernels would go round for nothing.
            let turns = if kernels.is_empty() { 0 } else { turns };
            rounds.push(Round { turns, kernels });
        }
        let taken = steps_of(&rounds);
        if taken != i128::from(bound.steps) {
            return Err(invalid(
                plan,
                format!("its schedule takes {taken} of {} steps", bound.steps),
            ));
        }
        Ok(Launches {
            rounds,
            round: 0,
            turn: 0,
            place: 0,
            step: 0,
            swapped: vec![false; plan.fields.len()],
            first_buffer: bound.first_buffer.clone(),
        })
    }

    /// Steps taken by the launches given out so far.
    pub fn step(&self) -> i64 {
        self.step
    }

    /// The current buffer of each field after the launches given out so far.
    pub fn current(&self) -> Vec<BufferId> {
        (0..self.first_buffer.len()).map(|field| self.buffer(field, false)).collect()
    }

    fn buffer(&self, field: usize, other: bool) -> BufferId {
        let first = self.first_buffer.get(field).map_or(0, |first| first.0);
        let swapped = self.swapped.get(field).copied().unwrap_or(false);
        BufferId(first + usize::from(swapped != other))
    }

    /// Moves to the next kernel and gives it; `None` at the end.
    fn advance(&mut self) -> Option<Prepared<'p>> {
        loop {
            let round = self.rounds.get(self.round)?;
            if self.turn >= round.turns {
                (self.round, self.turn, self.place) = (self.round + 1, 0, 0);
                continue;
            }
            match round.kernels.get(self.place) {
                Some(prepared) => {
                    self.place += 1;
                    return Some(prepared.clone());
                }
                None => (self.turn, self.place) = (self.turn + 1, 0),
            }
        }
    }
}

impl<'p> Iterator for Launches<'p> {
    type Item = Launch<'p>;

    fn next(&mut self) -> Option<Launch<'p>> {
        loop {
            let Prepared { kernel, index, grid, rows, arguments } = self.advance()?;
            let step = self.step;
            self.step += i64::from(kernel.steps);
            let Some(grid) = grid else { continue };
            let values = arguments.iter().map(|slot| match slot {
                Slot::Current(field) => Value::Buffer(self.buffer(*field, false)),
                Slot::Other(field) => Value::Buffer(self.buffer(*field, true)),
                Slot::Number(number) => Value::Number(*number),
                Slot::Step => Value::Number(Number::I64(step)),
            });
            let values = values.collect();
            for slot in &arguments {
                if let Slot::Other(field) = slot
                    && let Some(swapped) = self.swapped.get_mut(*field)
                {
                    *swapped = !*swapped;
                }
            }
            return Some(Launch { kernel, index, grid, step, arguments: values, rows });
        }
    }
}

fn prepare<'p>(plan: &'p Plan, bound: &Bound, name: &str) -> Result<Prepared<'p>, LaunchError> {
    let missing =
        |what: &str| invalid(plan, format!("kernel `{name}` uses {what}, which is not declared"));
    let (index, kernel) = plan
        .kernels
        .iter()
        .enumerate()
        .find(|(_, kernel)| kernel.name == name)
        .ok_or_else(|| missing("itself"))?;
    let field = |name: &String| {
        plan.fields.iter().position(|field| field.name == *name).ok_or_else(|| missing(name))
    };
    let mut arguments = Vec::new();
    for argument in &kernel.arguments {
        arguments.push(match argument {
            Argument::Read(name) | Argument::ReadWrite(name) => Slot::Current(field(name)?),
            Argument::Write(name) => Slot::Other(field(name)?),
            Argument::Step => Slot::Step,
            Argument::Row if plan.index_width == 32 => Slot::Number(Number::I32(0)),
            Argument::Row => Slot::Number(Number::I64(0)),
            Argument::Scalar(name) => {
                Slot::Number(*bound.scalars.get(name).ok_or_else(|| missing(name))?)
            }
            Argument::Param(name) => {
                let value = *bound.sizes.get(name).ok_or_else(|| missing(name))?;
                Slot::Number(if plan.index_width == 32 {
                    Number::I32(i32::try_from(value).map_err(|_| LaunchError::Argument {
                        kernel: kernel.name.clone(),
                        name: name.clone(),
                        value,
                    })?)
                } else {
                    Number::I64(value)
                })
            }
        });
    }
    let grid = grid(kernel, bound)?;
    Ok(Prepared { kernel, index, grid, rows: rows(kernel, bound, grid)?, arguments })
}

/// The rows of a launch; none where its blocks are not as many in each.
fn rows(
    kernel: &Kernel,
    bound: &Bound,
    grid: Option<[u32; 3]>,
) -> Result<Option<Rows>, LaunchError> {
    let (Some(bands), Some([blocks, ..])) = (&kernel.bands, grid) else { return Ok(None) };
    let count = u32::try_from(bands.rows.evaluate(&bound.sizes)?).unwrap_or(0);
    Ok((count > 0 && blocks % count == 0).then_some(Rows { count, reach: bands.reach }))
}

/// Blocks of a launch: at most 2^31 - 1 in x and 65535 in y and z (CUDA C++ Programming Guide,
/// table of technical specifications per compute capability).
fn grid(kernel: &Kernel, bound: &Bound) -> Result<Option<[u32; 3]>, LaunchError> {
    let [x, y, z] = &kernel.grid;
    let blocks = [x.evaluate(&bound.sizes)?, y.evaluate(&bound.sizes)?, z.evaluate(&bound.sizes)?];
    if blocks.iter().any(|&n| n <= 0) {
        return Ok(None);
    }
    let too_many = || LaunchError::Grid { kernel: kernel.name.clone(), grid: blocks };
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

fn steps_of(rounds: &[Round<'_>]) -> i128 {
    let turn =
        |round: &Round<'_>| round.kernels.iter().map(|p| i128::from(p.kernel.steps)).sum::<i128>();
    rounds.iter().map(|round| i128::from(round.turns) * turn(round)).sum()
}

fn invalid(plan: &Plan, message: String) -> LaunchError {
    LaunchError::Schedule { program: plan.program.clone(), message }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bind::{Request, bind};
    use crate::plan::tests::heat;

    pub(crate) fn bound(n: i64, steps: i64) -> Bound {
        let sizes = [("N".to_string(), n), ("M".to_string(), 1)].into();
        bind(&heat(), &Request { sizes, steps: Some(steps), ..Request::default() }).unwrap()
    }

    #[test]
    fn launches_carry_grids_steps_and_arguments() {
        let (plan, bound) = (heat(), bound(20, 5));
        let launches: Vec<_> = Launches::new(&plan, &bound).unwrap().collect();
        let summary: Vec<_> =
            launches.iter().map(|l| (l.kernel.name.as_str(), l.index, l.step, l.grid)).collect();
        assert_eq!(
            summary,
            [("two", 0, 0, [2, 1, 1]), ("two", 0, 2, [2, 1, 1]), ("one", 1, 4, [20, 1, 1])]
        );
        let buffer = |id| Value::Buffer(BufferId(id));
        assert_eq!(
            launches[1].arguments,
            [
                buffer(1),
                buffer(2),
                buffer(0),
                Value::Number(Number::I32(20)),
                Value::Number(Number::F32(0.1)),
                Value::Number(Number::I64(2))
            ]
        );
        assert_eq!(launches[2].arguments, [buffer(0), buffer(1), buffer(3)]);
        let mut wide = plan.clone();
        wide.index_width = 64;
        let first = Launches::new(&wide, &bound).unwrap().next().unwrap();
        assert_eq!(first.arguments[3], Value::Number(Number::I64(20)));
    }

    #[test]
    fn an_empty_grid_neither_launches_nor_swaps() {
        let mut plan = heat();
        plan.kernels[0].grid[1] = "N - 20".parse().unwrap();
        let bound = bound(20, 5);
        let mut launches = Launches::new(&plan, &bound).unwrap();
        let only = launches.next().unwrap();
        assert_eq!((only.kernel.name.as_str(), only.step), ("one", 4));
        assert_eq!(only.arguments[0], Value::Buffer(BufferId(0)));
        assert!(launches.next().is_none());
        assert_eq!((launches.step(), launches.current()[0]), (5, BufferId(1)));
    }

    #[test]
    fn a_kernel_that_follows_itself_may_be_cut() {
        let rows = |change: &dyn Fn(&mut Plan), n: i64, steps: i64| {
            let mut plan = crate::plan::tests::banded();
            change(&mut plan);
            Launches::new(&plan, &bound(n, steps)).unwrap().next().unwrap().rows
        };
        assert_eq!(rows(&|_| (), 40, 5), Some(Rows { count: 3, reach: 1 }));
        // A single launch, one among others, and blocks that make up no whole rows.
        assert_eq!(rows(&|_| (), 40, 3), None);
        let twice = |plan: &mut Plan| {
            plan.schedule[0] = crate::plan::Repeat {
                count: "steps floordiv 4".parse().unwrap(),
                kernels: vec!["two".to_string(), "two".to_string()],
            };
        };
        assert_eq!(rows(&twice, 40, 8), None);
        let uneven =
            |plan: &mut Plan| plan.kernels[0].grid[0] = "N ceildiv 16 + 1".parse().unwrap();
        assert_eq!(rows(&uneven, 40, 5), None);
        let mut wide = crate::plan::tests::banded();
        wide.index_width = 64;
        let bound = bound(40, 5);
        let launch = Launches::new(&wide, &bound).unwrap().next().unwrap();
        assert_eq!(launch.band(&(1..3)).arguments.last(), Some(&Value::Number(Number::I64(1))));
        assert_eq!(launch.band(&(1..3)).grid, [2, 1, 1]);
    }

    #[test]
    fn impossible_launches_are_refused() {
        let error = |change: &dyn Fn(&mut Plan)| {
            let mut plan = heat();
            change(&mut plan);
            Launches::new(&plan, &bound(20, 5)).unwrap_err().to_string()
        };
        let text = error(&|plan| plan.kernels[0].grid[2] = "65536".parse().unwrap());
        assert!(
            text.starts_with("kernel `two` would be launched with [2, 1, 65536] blocks"),
            "{text}"
        );
        let text = error(&|plan| plan.schedule[1].count = "1 + steps mod 2".parse().unwrap());
        assert_eq!(
            text,
            "the plan of heat is not valid: its schedule takes 6 of 5 steps; compile the program \
             again"
        );
        let mut bound = bound(20, 5);
        bound.sizes.insert("N".to_string(), 1 << 31);
        let text = Launches::new(&heat(), &bound).unwrap_err().to_string();
        assert!(
            text.starts_with("size overflow: `N` = 2147483648 does not fit in the 32-bit argument"),
            "{text}"
        );
    }
}
