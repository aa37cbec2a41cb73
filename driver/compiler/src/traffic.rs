//! Bytes between global memory and the threads of a run's kernels, by the model of
//! `stencil_passes::analysis::global_traffic`.

use crate::failure::Failure;
use melior::Context;
use melior::ir::Module;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Op};
use stencil_dialects::tiled;
use stencil_frontend::source::Source;
use stencil_passes::affine;
use stencil_passes::analysis::global_traffic::{self, Counted, Extents};
use stencil_passes::analysis::iteration_space::{self, Space};
use stencil_passes::schedule::large::LARGE;
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::launch::{Action, Launch, Launches, Value};
use stencil_runtime::number::{Number, Numeral};
use stencil_runtime::plan::Plan;

/// What the launches of a kernel move in a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KernelTraffic {
    /// The kernel.
    pub name: String,
    /// Its launches.
    pub launches: u64,
    /// Bytes that their threads load.
    pub loaded: u64,
    /// Bytes that their threads store.
    pub stored: u64,
    /// Whether some blocks stood for others.
    pub is_estimate: bool,
}

/// What a run moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Traffic {
    /// Its sizes: `M = 403, N = 344`.
    pub sizes: String,
    /// Its steps; a program with `until` may take fewer.
    pub steps: i64,
    /// The kernels that are launched, in the plan's order.
    pub kernels: Vec<KernelTraffic>,
}

impl Traffic {
    /// Bytes of a step on average: loads and stores.
    pub fn step(&self) -> [f64; 2] {
        self.total().map(|bytes| bytes as f64 / self.steps.max(1) as f64)
    }

    /// Bytes that the threads of all kernels load, and bytes that they store.
    pub fn total(&self) -> [u64; 2] {
        self.kernels.iter().fold([0, 0], |[loaded, stored], kernel| {
            [loaded.saturating_add(kernel.loaded), stored.saturating_add(kernel.stored)]
        })
    }
}

/// How exactly to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Every block of every launch.
    Whole,
    /// A second or so: of launches with many blocks, some stand for all.
    Limited,
    /// An eighth of it.
    Sampled,
}

/// Integers of threads that a limited effort computes, unless there are very many launches.
const MOST_WORK: u64 = 1 << 28;

impl Effort {
    /// Integers that a launch may take, after some that others took.
    fn most_work(self, taken: u64) -> u64 {
        match self {
            Self::Whole => u64::MAX,
            Self::Limited => MOST_WORK.saturating_sub(taken) / 16,
            Self::Sampled => (MOST_WORK / 8).saturating_sub(taken) / 16,
        }
    }
}

/// What launches that move the same have in common: kernel, blocks, and the arguments that count.
type Alike = (usize, [u32; 3], Vec<Option<i64>>);

/// Launches of a run that move and execute the same.
pub(crate) struct Launched<'p> {
    /// The first of them.
    pub(crate) launch: Launch<'p>,
    /// How many they are.
    pub(crate) launches: u64,
    /// What each of them moves and executes.
    pub(crate) counted: Counted,
}

/// The launches of a run of a plan whose kernels are `lowered`, in the order in which the first of
/// each comes. `read` reads a kernel's iteration space.
///
/// # Errors
/// A run that is impossible.
pub(crate) fn launched<'p>(
    lowered: &[tiled::Launch],
    plan: &'p Plan,
    bound: &'p Bound,
    effort: Effort,
    read: impl Fn(Op) -> Space,
) -> Result<Vec<Launched<'p>>, Error> {
    let spaces: BTreeMap<&str, Space> =
        lowered.iter().map(|kernel| (kernel.name, read(kernel.op))).collect();
    let mut found: Vec<Launched> = Vec::new();
    // Launches of the same extents move the same.
    let mut known: BTreeMap<Alike, usize> = BTreeMap::new();
    let mut work = 0_u64;
    let launches =
        Launches::new(plan, bound).map_err(|error| Error::internal(error.to_string()))?;
    for action in launches {
        let Action::Launch(launch) = action else { continue };
        let Some(space) = spaces.get(launch.kernel.name.as_str()) else { continue };
        let arguments = integers(&launch, space);
        let (grid, block) = (launch.grid, launch.kernel.block);
        let place = *known.entry((launch.index, grid, arguments.clone())).or_insert_with(|| {
            let extents = Extents { grid, block, arguments: &arguments };
            let counted = global_traffic::of(space, &extents, effort.most_work(work));
            work = work.saturating_add(counted.work);
            found.push(Launched { launch, launches: 0, counted });
            found.len() - 1
        });
        if let Some(one) = found.get_mut(place) {
            one.launches += 1;
        }
    }
    Ok(found)
}

/// What a run of a plan moves, whose kernels are those of a module at the gpu level.
///
/// # Errors
/// Kernels that were not lowered, and a run that is impossible.
pub fn of(module: &Module, plan: &Plan, bound: &Bound, effort: Effort) -> Result<Traffic, Error> {
    let lowered = tiled::launches(module)?;
    let mut kernels: Vec<_> = plan
        .kernels
        .iter()
        .map(|kernel| KernelTraffic { name: kernel.name.clone(), ..KernelTraffic::default() })
        .collect();
    for one in launched(&lowered, plan, bound, effort, iteration_space::of)? {
        let Some(kernel) = kernels.get_mut(one.launch.index) else { continue };
        let Launched { launches, counted, .. } = &one;
        let bytes = |of_launch: u64| of_launch.saturating_mul(*launches);
        kernel.launches += launches;
        kernel.loaded = kernel.loaded.saturating_add(bytes(counted.moved.loaded));
        kernel.stored = kernel.stored.saturating_add(bytes(counted.moved.stored));
        kernel.is_estimate |= counted.is_estimate;
    }
    kernels.retain(|kernel| kernel.launches > 0);
    let sizes = bound.sizes.iter().filter(|(name, _)| *name != "steps");
    let sizes: Vec<_> = sizes.map(|(name, size)| format!("{name} = {size}")).collect();
    Ok(Traffic { sizes: sizes.join(", "), steps: bound.steps, kernels })
}

/// Cells per dimension of a function of affine loops, whose loops may take as many launches.
const NEST: i64 = 1 << 10;
/// Steps of a run at most, where the model alone counts.
const MOST_STEPS: i64 = 1 << 10;

/// Reads kernels at the gpu level that were printed before.
///
/// # Errors
/// Text beyond the limits of what is read, and faults of the compiler.
pub(crate) fn kernels<'c>(
    context: &'c Context,
    text: &str,
    of: &Source,
) -> Result<Module<'c>, Failure> {
    mlir::check_text(text, &of.name).map_err(|error| {
        let limit = error.message.split(';').next().unwrap_or_default();
        Failure::user(format!(
            "the kernels at the gpu level can't be read: {limit}; leave out a pass"
        ))
    })?;
    let module = mlir::parse_module(context, text, &of.name);
    module.map_err(|error| Failure::internal(format!("the gpu level, read again: {error}")))
}

/// A run whose open sizes are large; none where the program does not take such sizes. Extents of
/// arrays that are sizes of their own grow until they have room for what the loops access.
pub(crate) fn large(plan: &Plan) -> Option<Bound> {
    let rank = plan.fields.iter().map(|field| field.extents.len()).max().unwrap_or(1);
    let large = match plan.settings.strategy == affine::STRATEGY {
        true => NEST,
        false => LARGE.get(rank.saturating_sub(1)).copied().unwrap_or(NEST),
    };
    let open = plan.scalars.iter().filter(|scalar| scalar.default.is_none());
    let scalars = open.map(|scalar| (scalar.name.clone(), Numeral::from(1.0))).collect();
    let sizes = plan.params.iter().map(|name| (name.clone(), large)).collect();
    let mut request = Request { scalars, sizes, ..Request::default() };
    let whole = grown(plan, &mut request, large)?;
    if whole.steps <= MOST_STEPS {
        return Some(whole);
    }
    // Steps that count iterations of sizes can't be cut.
    let cut = possible(plan, &Request { steps: Some(MOST_STEPS), ..request });
    cut.or(Some(whole).filter(|_| large == NEST))
}

fn possible(plan: &Plan, request: &Request) -> Option<Bound> {
    bind(plan, request).ok().filter(|bound| Launches::new(plan, bound).is_ok())
}

/// Gives the arrays of affine loops room for what the loops access, and none more than it needs.
fn grown(plan: &Plan, request: &mut Request, large: i64) -> Option<Bound> {
    const GROWTHS: [i64; 4] = [1, 2, 4, 8];
    let (extents, others): (Vec<_>, Vec<_>) =
        plan.params.iter().partition(|name| is_extent(plan, name));
    let set = |request: &mut Request, names: &[&String], growth: i64| {
        let sizes = names.iter().map(|name| ((*name).clone(), large.saturating_mul(growth)));
        request.sizes.extend(sizes);
        possible(plan, request)
    };
    let mut found = GROWTHS.iter().find_map(|growth| set(request, &extents, *growth));
    if found.is_some() {
        for name in extents {
            found = GROWTHS.iter().find_map(|growth| set(request, &[name], *growth)).or(found);
        }
        return found;
    }
    set(request, &extents, 1);
    // A size with another name may be that of an array alone too.
    let one = |name| {
        let found = set(request, &[name], 2);
        if found.is_none() {
            set(request, &[name], 1);
        }
        found
    };
    others.into_iter().filter(|_| large == NEST).find_map(one)
}

/// Whether a size is that of an array's dimension alone: `A_0`, as affine loops name them.
fn is_extent(plan: &Plan, name: &str) -> bool {
    let place = name.rsplit_once('_');
    place.is_some_and(|(array, dimension)| {
        plan.settings.strategy == affine::STRATEGY
            && plan.field(array).is_some()
            && dimension.parse::<usize>().is_ok()
    })
}

/// The arguments of a launch that its iteration space needs.
fn integers(launch: &Launch, space: &Space) -> Vec<Option<i64>> {
    let mut all = vec![None; launch.arguments.len()];
    for (place, _) in &space.arguments {
        let value = match launch.arguments.get(*place) {
            Some(Value::Number(Number::I64(value))) => Some(*value),
            Some(Value::Number(Number::I32(value))) => Some(i64::from(*value)),
            _ => None,
        };
        if let Some(slot) = all.get_mut(*place) {
            *slot = value;
        }
    }
    all
}

/// What a run moves by the model, beside what the simulator counts.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// The model.
    pub model: &'a Traffic,
    /// The simulator.
    pub counted: &'a stencil_simulator::Report,
}

impl Display for Compared<'_> {
    fn fmt(&self, out: &mut Formatter) -> fmt::Result {
        let heads = ["loads, model", "counted", "stores, model", "counted"];
        write!(out, "{:<24}", "global memory, bytes")?;
        heads.iter().try_for_each(|head| write!(out, " {head:>16}"))?;
        writeln!(out)?;
        let mut all = [0_u64; 4];
        for kernel in &self.counted.kernels {
            let model = self.model.kernels.iter().find(|model| model.name == kernel.name);
            let [loaded, stored] = model.map_or([0, 0], |model| [model.loaded, model.stored]);
            let [read, written] = [kernel.total.global_read, kernel.total.global_write];
            let row = [loaded, read.bytes, stored, written.bytes];
            bytes(out, &kernel.name, row)?;
            for (all, one) in all.iter_mut().zip(row) {
                *all = all.saturating_add(one);
            }
        }
        bytes(out, "all", all)
    }
}

fn bytes(out: &mut Formatter, name: &str, row: [u64; 4]) -> fmt::Result {
    write!(out, "{name:<24}")?;
    row.iter().try_for_each(|bytes| write!(out, " {bytes:>16}"))?;
    writeln!(out)
}

impl Display for Traffic {
    fn fmt(&self, out: &mut Formatter) -> fmt::Result {
        let Self { sizes, steps, .. } = self;
        let estimate =
            if self.kernels.iter().any(|kernel| kernel.is_estimate) { "about " } else { "" };
        let at = if sizes.is_empty() { String::new() } else { format!("{sizes}, ") };
        writeln!(
            out,
            "global memory by the model, {estimate}in bytes of a run; {at}steps = {steps}:"
        )?;
        writeln!(out, "{:<24} {:>10} {:>20} {:>20}", "kernel", "launches", "loads", "stores")?;
        for kernel in &self.kernels {
            let KernelTraffic { name, launches, loaded, stored, .. } = kernel;
            writeln!(out, "{name:<24} {launches:>10} {loaded:>20} {stored:>20}")?;
        }
        let [loaded, stored] = self.total();
        writeln!(out, "{:<24} {:>10} {loaded:>20} {stored:>20}", "all", "")?;
        let [loaded, stored] = self.step();
        writeln!(out, "{:<24} {:>10} {loaded:>20.0} {stored:>20.0}", "a step", "")
    }
}
