//! Contradictions of a plan: every name that is used is declared once, and every number that does
//! not depend on a run's sizes is possible. A message names the place in the file.

use super::{
    Argument, BufferDecl, BufferKind, BufferLayout, Choose, Exchange, FORMAT, FieldDecl, Kernel,
    Launch, Limit, Node, Plan, PlanError, Role, Start, Until,
};
use super::{constants, members, records};
use crate::array::Element;
use crate::expr::Expr;
use std::collections::{BTreeMap, BTreeSet};
use std::mem::discriminant;

/// Threads of a block on every CUDA device.
const MOST_THREADS: u32 = 1024;

/// Blocks of a cluster on every CUDA device that has clusters.
const MOST_IN_CLUSTER: u32 = 8;

/// Dimensions of a field or buffer; no program has more than three.
const MOST_DIMENSIONS: usize = 8;

/// The text of the first contradiction, if there is one.
type Found = Result<(), String>;

impl Plan {
    /// Checks that the plan does not contradict itself.
    ///
    /// # Errors
    /// The first contradiction, with its place in the file.
    pub fn validate(&self) -> Result<(), PlanError> {
        self.consistent().map_err(|message| self.invalid(message))
    }

    fn consistent(&self) -> Found {
        if self.format != FORMAT {
            return Err(format!("its format is {}, not {FORMAT}", self.format));
        }
        if !matches!(self.index_width, 32 | 64) {
            return Err(format!("an index has {} bits, not 32 or 64", self.index_width));
        }
        self.names_are_declared_once()?;
        self.known_sizes(&self.steps, "the number of steps", false)?;
        for check in &self.checks {
            for value in check.unless_negative.iter().chain([&check.value]) {
                self.known_sizes(value, "a check", true)?;
            }
        }
        self.buffers.iter().try_for_each(|buffer| {
            self.buffer_is_possible(buffer)
                .map_err(|message| format!("buffer `{}` {message}", buffer.name))
        })?;
        self.fields.iter().try_for_each(|field| {
            self.field_is_possible(field)
                .map_err(|message| format!("field `{}` {message}", field.name))
        })?;
        members::agree(&self.fields)?;
        self.kernels.iter().try_for_each(kernel_is_possible)?;
        let mut choices = BTreeSet::new();
        self.list(&self.schedule, "schedule", &mut choices)?;
        constants::fit(self)?;
        self.launches_agree()
    }

    fn names_are_declared_once(&self) -> Found {
        let sizes = self.params.iter().chain(self.constants.keys());
        let scalars = self.scalars.iter().map(|scalar| &scalar.name);
        let fields = self.fields.iter().map(|field| &field.name);
        let mut names = BTreeSet::from(["steps"]);
        if let Some(name) = sizes.chain(scalars).chain(fields).find(|name| !names.insert(name)) {
            return Err(format!("`{name}` is declared twice"));
        }
        for (what, names) in [
            ("buffer", self.buffers.iter().map(|buffer| &buffer.name).collect::<Vec<_>>()),
            ("kernel", self.kernels.iter().map(|kernel| &kernel.name).collect()),
        ] {
            let mut seen = BTreeSet::new();
            if let Some(name) = names.into_iter().find(|name| !seen.insert(*name)) {
                return Err(format!("{what} `{name}` is declared twice"));
            }
        }
        Ok(())
    }

    /// Refuses an expression with a name that has no value where it is used.
    pub(super) fn known_sizes(&self, expr: &Expr, place: &str, steps: bool) -> Found {
        let mut unknown = None;
        expr.for_each_name(&mut |name| {
            let known = self.params.iter().any(|param| param == name)
                || self.constants.contains_key(name)
                || (steps && name == "steps");
            if !known {
                unknown = unknown.or(Some(name));
            }
        });
        unknown.map_or(Ok(()), |name| {
            Err(format!("{place}, `{expr}`, uses the size `{name}`, which is not declared there"))
        })
    }

    /// Extents and the like of a field or buffer, as many as it has dimensions.
    fn dimensions(&self, sizes: &[Expr], what: &str, rank: usize) -> Found {
        if sizes.len() != rank {
            return Err(format!("has {rank} dimensions and {} numbers of {what}", sizes.len()));
        }
        sizes.iter().try_for_each(|size| {
            self.known_sizes(size, what, false).map_err(|message| format!("is wrong: {message}"))
        })
    }

    fn extents(&self, extents: &[Expr]) -> Found {
        if !(1..=MOST_DIMENSIONS).contains(&extents.len()) {
            return Err(format!(
                "has {} dimensions; 1 to {MOST_DIMENSIONS} are possible",
                extents.len()
            ));
        }
        self.dimensions(extents, "an extent", extents.len())
    }

    fn field_is_possible(&self, field: &FieldDecl) -> Found {
        self.extents(&field.extents)?;
        if field.value.is_empty() && field.role != Role::Temp {
            return Err("has a value that lies in no buffer".to_string());
        }
        let one = |extent: &Expr| extent.as_int() == Some(1);
        if field.role == Role::Reduction && !field.extents.iter().all(one) {
            return Err("is a reduction, and has more cells than one".to_string());
        }
        for part in &field.value {
            let name = &part.buffer;
            let buffer = self
                .buffer(name)
                .ok_or_else(|| format!("lies in the buffer `{name}`, which is not declared"))?;
            self.holds(buffer, field).map_err(|message| format!("lies in `{name}`, {message}"))?;
            records::part(part, buffer)?;
            let Some(cells) = &part.cells else { continue };
            let (first, last): (Vec<_>, Vec<_>) = cells.iter().cloned().map(Into::into).unzip();
            self.dimensions(&first, "the first cells", field.extents.len())?;
            self.dimensions(&last, "the last cells", field.extents.len())?;
        }
        Ok(())
    }

    /// Refuses a buffer that can't hold cells of a field.
    fn holds(&self, buffer: &BufferDecl, field: &FieldDecl) -> Found {
        let (kind, name) = match field.role {
            Role::Reduction => (BufferKind::Reduction, "reduction"),
            _ => (BufferKind::Field, "field"),
        };
        if buffer.kind != kind {
            return Err(format!("which is not of the kind `{name}`"));
        }
        if (buffer.element, buffer.extents.len()) != (field.element, field.extents.len()) {
            return Err(format!(
                "which has {} cells in {} dimensions where {} in {} are needed",
                buffer.element,
                buffer.extents.len(),
                field.element,
                field.extents.len()
            ));
        }
        Ok(())
    }

    fn buffer_is_possible(&self, buffer: &BufferDecl) -> Found {
        let rank = buffer.extents.len();
        self.extents(&buffer.extents)?;
        if !buffer.origin.is_empty() && buffer.kind != BufferKind::Field {
            return Err("has an origin, and is not of the kind `field`".to_string());
        }
        if !buffer.origin.is_empty() {
            self.dimensions(&buffer.origin, "the origin", rank)?;
        }
        match &buffer.layout {
            BufferLayout::Padded { pitch } => {
                self.dimensions(std::slice::from_ref(pitch), "a pitch", 1)?;
            }
            BufferLayout::Hybrid { rows } if rank < 2 || *rows == 0 => {
                return Err(format!(
                    "has {rank} dimensions and bands of {rows} rows; a hybrid layout needs two \
                     dimensions and one row at least"
                ));
            }
            BufferLayout::Blocked { block } if block.len() != rank || block.contains(&0) => {
                return Err(format!(
                    "has {rank} dimensions and blocks of {block:?} cells; a blocked layout needs a \
                     positive number for each dimension"
                ));
            }
            _ => {}
        }
        if matches!(buffer.kind, BufferKind::Flags | BufferKind::Watched)
            && !matches!(buffer.element, Element::I32 | Element::U32)
        {
            return Err(format!("holds flags of type {}; i32 or u32 is needed", buffer.element));
        }
        if let Start::Value(value) = &buffer.start
            && value.number(buffer.element).is_none()
        {
            return Err(format!("starts with {value}, which is no {}", buffer.element));
        }
        records::buffer(self, buffer)?;
        if let Start::Input(name) = &buffer.start {
            let field = self
                .field(name)
                .ok_or_else(|| format!("starts with the field `{name}`, which is not declared"))?;
            self.holds(buffer, field)
                .map_err(|message| format!("starts with the field `{name}`, {message}"))?;
        }
        Ok(())
    }

    /// All launches of a kernel pass arguments of the same kinds.
    fn launches_agree(&self) -> Found {
        let mut kinds = BTreeMap::new();
        for launch in self.launches() {
            let own: Vec<_> = launch.arguments.iter().map(discriminant).collect();
            if *kinds.entry(&launch.kernel).or_insert_with(|| own.clone()) != own {
                return Err(format!(
                    "kernel `{}` is launched with different kinds of arguments",
                    launch.kernel
                ));
            }
        }
        Ok(())
    }

    fn list<'p>(&'p self, body: &'p [Node], path: &str, choices: &mut BTreeSet<&'p str>) -> Found {
        body.iter().enumerate().try_for_each(|(place, node)| {
            let path = format!("{path}[{place}]");
            let at = |name: &str, found: Found| {
                found.map_err(|message| format!("{path}.{name}: {message}"))
            };
            match node {
                Node::Launch(launch) => at("launch", self.launch_is_possible(launch)),
                Node::Repeat(repeat) => {
                    at("repeat", self.known_sizes(&repeat.count, "the count", true))?;
                    self.list(&repeat.body, &format!("{path}.repeat.body"), choices)
                }
                Node::Until(until) => {
                    at("until", self.until_is_possible(until))?;
                    self.list(&until.body, &format!("{path}.until.body"), choices)?;
                    self.list(&until.otherwise, &format!("{path}.until.otherwise"), choices)
                }
                Node::Choose(choose) => {
                    at("choose", self.choose_is_possible(choose))?;
                    if !choices.insert(&choose.name) {
                        return Err(format!(
                            "{path}.choose: there are two choices `{}`",
                            choose.name
                        ));
                    }
                    choose.among.iter().enumerate().try_for_each(|(place, one)| {
                        self.list(&one.body, &format!("{path}.choose.among[{place}].body"), choices)
                    })
                }
                Node::Exchange(exchange) => at("exchange", self.exchange_is_possible(exchange)),
                Node::Snapshot(snapshot) => at(
                    "snapshot",
                    match self.field(&snapshot.field) {
                        Some(field) if !field.value.is_empty() => Ok(()),
                        _ => Err(format!("there is no value of a field `{}`", snapshot.field)),
                    },
                ),
            }
        })
    }

    fn launch_is_possible(&self, launch: &Launch) -> Found {
        if self.kernel(&launch.kernel).is_none() {
            return Err(format!("the kernel `{}` is not declared", launch.kernel));
        }
        let rows = launch.bands.iter().map(|bands| &bands.rows);
        let sizes = launch.grid.iter().chain(rows).chain(&launch.turns);
        sizes.into_iter().try_for_each(|size| self.known_sizes(size, "the grid", true))?;
        if launch.bands.is_some() != launch.arguments.contains(&Argument::Row) {
            return Err("an argument `row` and `bands` need each other".to_string());
        }
        if launch.turns.is_some() != launch.arguments.contains(&Argument::Turn) {
            return Err("an argument `turn` and `turns` need each other".to_string());
        }
        if launch.turns.is_some() && launch.bands.is_some() {
            return Err("a launch in bands has no `turns`".to_string());
        }
        if launch.bands.is_some() && (launch.cooperative || launch.cluster.is_some()) {
            return Err("a launch in bands is neither cooperative nor of clusters".to_string());
        }
        if let Some(cluster) = launch.cluster {
            let blocks = cluster.iter().try_fold(1_u32, |all, blocks| all.checked_mul(*blocks));
            if !blocks.is_some_and(|blocks| (1..=MOST_IN_CLUSTER).contains(&blocks)) {
                return Err(format!(
                    "clusters of {cluster:?} blocks; 1 to {MOST_IN_CLUSTER} are possible"
                ));
            }
        }
        self.cut_is_possible(launch)?;
        self.arguments_are_possible(launch)?;
        self.rotations_are_possible(launch)
    }

    fn arguments_are_possible(&self, launch: &Launch) -> Found {
        // Whether a buffer is written, of those before.
        let mut written: BTreeMap<&str, bool> = BTreeMap::new();
        for argument in &launch.arguments {
            let known = match argument {
                Argument::Param(name) => self.params.contains(name),
                Argument::Scalar(name) => self.scalars.iter().any(|scalar| scalar.name == *name),
                _ => argument.buffer().is_none_or(|name| self.buffer(name).is_some()),
            };
            if !known {
                return Err(format!("the argument {} is not declared", as_json(argument)));
            }
            let Some(buffer) = argument.buffer().and_then(|name| self.buffer(name)) else {
                continue;
            };
            if buffer.device != launch.device {
                return Err(format!(
                    "buffer `{}` lies on device {}, the kernel runs on device {}",
                    buffer.name, buffer.device, launch.device
                ));
            }
            if matches!(argument, Argument::Unless(_)) {
                self.value(&buffer.name)?;
            }
            let writes = argument.written().is_some();
            if written.insert(&buffer.name, writes).is_some_and(|before| before || writes) {
                return Err(format!(
                    "buffer `{}` is passed twice, and written through one of the arguments",
                    buffer.name
                ));
            }
        }
        Ok(())
    }

    fn rotations_are_possible(&self, launch: &Launch) -> Found {
        let mut seen = BTreeSet::new();
        for list in &launch.rotate {
            let buffers: Option<Vec<_>> = list.iter().map(|name| self.buffer(name)).collect();
            let Some([first, rest @ ..]) = buffers.as_deref() else {
                return Err(format!("the rotation {list:?} needs buffers that are declared"));
            };
            if rest.is_empty() || !list.iter().all(|name| seen.insert(name)) {
                return Err(format!("the rotation {list:?} needs two buffers, each named once"));
            }
            let alike = |one: &&BufferDecl| {
                let as_first = BufferDecl {
                    name: first.name.clone(),
                    start: first.start.clone(),
                    ..(*one).clone()
                };
                as_first == **first
            };
            if !rest.iter().all(alike) {
                return Err(format!(
                    "the buffers of the rotation {list:?} differ in more than how they start"
                ));
            }
        }
        Ok(())
    }

    /// The buffer of a reduction's one value.
    fn value(&self, name: &str) -> Result<&BufferDecl, String> {
        let one = |extent: &Expr| extent.as_int() == Some(1);
        let is_value = |buffer: &&BufferDecl| {
            buffer.kind == BufferKind::Reduction && buffer.extents.iter().all(one)
        };
        let wrong = || format!("`{name}` is no buffer of the kind `reduction` with one cell");
        self.buffer(name).filter(is_value).ok_or_else(wrong)
    }

    fn until_is_possible(&self, until: &Until) -> Found {
        self.known_sizes(&until.most, "the most iterations", true)?;
        let name = &until.reduction;
        let buffer = self.value(name)?;
        if until.every == 0 {
            return Err("`every` is 0; the value is compared after one turn at least".to_string());
        }
        let possible = match &until.limit {
            Limit::Value(value) => value.number(buffer.element).is_some(),
            Limit::Scalar(name) => self
                .scalars
                .iter()
                .any(|scalar| scalar.name == *name && scalar.element == buffer.element),
        };
        if !possible {
            let limit = as_json(&until.limit);
            return Err(format!("the limit {limit} is no {} as `{name}` is", buffer.element));
        }
        until.ahead_is_possible(&self.schedule)
    }

    fn choose_is_possible(&self, choose: &Choose) -> Found {
        let Some((last, others)) = choose.among.split_last() else {
            return Err(format!("`{}` has nothing to choose from", choose.name));
        };
        if last.when.is_some() || others.iter().any(|one| one.when.is_none()) {
            return Err(format!("the last alternative of `{}` alone has no `when`", choose.name));
        }
        let mut names = BTreeSet::new();
        for one in &choose.among {
            if !names.insert(&one.name) {
                return Err(format!("`{}` has two alternatives `{}`", choose.name, one.name));
            }
            if let Some(when) = &one.when {
                self.known_sizes(when, "a condition", true)?;
            }
        }
        Ok(())
    }

    fn exchange_is_possible(&self, exchange: &Exchange) -> Found {
        let name = &exchange.field;
        let field =
            self.field(name).ok_or_else(|| format!("the field `{name}` is not declared"))?;
        let mut names = BTreeSet::new();
        if field.value.len() < 2 || !field.value.iter().all(|part| names.insert(&part.buffer)) {
            return Err(format!("the value of `{name}` does not lie in two or more buffers"));
        }
        if exchange.depth == 0 {
            return Err("`depth` is 0; a row is exchanged at least".to_string());
        }
        let mut buffers = field.value.iter().filter_map(|part| self.buffer(&part.buffer));
        let rows = |buffer: &BufferDecl| {
            matches!(buffer.layout, BufferLayout::RowMajor | BufferLayout::Padded { .. })
        };
        match buffers.find(|buffer| !rows(buffer)) {
            Some(buffer) => Err(format!("buffer `{}` is not laid out in rows", buffer.name)),
            None => Ok(()),
        }
    }
}

fn kernel_is_possible(kernel: &Kernel) -> Found {
    let threads = kernel.block.iter().try_fold(1u32, |n, &extent| n.checked_mul(extent));
    if threads.is_some_and(|n| (1..=MOST_THREADS).contains(&n)) {
        return Ok(());
    }
    Err(format!(
        "kernel `{}` has blocks of {:?} threads; 1 to {MOST_THREADS} are possible",
        kernel.name, kernel.block
    ))
}

/// A part of the plan as its file has it.
fn as_json(part: &impl serde::Serialize) -> String {
    serde_json::to_string(part).unwrap_or_default()
}
