//! Counts as a table and as JSON.

use crate::counters::Counters;
use crate::program::{Flop, Instr, Kernel};
use crate::traffic::Traffic;
use cranelift_entity::EntityRef;
use serde::Serialize;
use std::fmt::{self, Display, Formatter};

/// Floating-point operations, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Flops {
    /// Additions and subtractions.
    pub add: u64,
    /// Multiplications.
    pub mul: u64,
    /// `a * b + c` in one operation, also where the operations allow it and ptxas will do so.
    pub fma: u64,
    /// Divisions.
    pub div: u64,
    /// Square roots and their reciprocals.
    pub sqrt: u64,
    /// Exponentials, logarithms, trigonometric functions and the like.
    pub special: u64,
}

impl Flops {
    /// All together; an fma counts as two.
    pub fn total(&self) -> u64 {
        self.add + self.mul + 2 * self.fma + self.div + self.sqrt + self.special
    }

    fn note(&mut self, flop: Flop, times: u64) {
        match flop {
            Flop::None => {}
            Flop::Add => self.add += times,
            Flop::Mul => self.mul += times,
            Flop::Fma => self.fma += times,
            Flop::Div => self.div += times,
            Flop::Sqrt => self.sqrt += times,
            Flop::Special => self.special += times,
        }
    }
}

/// Counts of a part of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// The apply or point function; empty for the rest of the kernel.
    pub name: String,
    /// Operations of all kinds executed, one for a thread; control flow and register moves are not
    /// counted.
    pub operations: u64,
    /// Floating-point operations.
    pub flops: Flops,
    /// Loads from global memory, in sectors of 32 bytes.
    pub global_read: Traffic,
    /// Stores to global memory.
    pub global_write: Traffic,
    /// Loads from shared memory, in wavefronts.
    pub shared_read: Traffic,
    /// Stores to shared memory.
    pub shared_write: Traffic,
    /// Barriers, one for a block.
    pub barriers: u64,
    /// Shuffles, one for a warp.
    pub shuffles: u64,
    /// Flags waited for, one for a thread.
    pub waits: u64,
    /// Flags signalled, one for a thread.
    pub signals: u64,
    /// Evaluations of the point function.
    pub cells: u64,
}

impl Counts {
    fn add(&mut self, other: &Self) {
        self.operations += other.operations;
        let (mine, flops) = (&mut self.flops, &other.flops);
        mine.add += flops.add;
        mine.mul += flops.mul;
        mine.fma += flops.fma;
        mine.div += flops.div;
        mine.sqrt += flops.sqrt;
        mine.special += flops.special;
        self.global_read.add(&other.global_read);
        self.global_write.add(&other.global_write);
        self.shared_read.add(&other.shared_read);
        self.shared_write.add(&other.shared_write);
        self.barriers += other.barriers;
        self.shuffles += other.shuffles;
        self.waits += other.waits;
        self.signals += other.signals;
        self.cells += other.cells;
    }
}

/// Counts of a kernel over all its launches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KernelReport {
    /// Its name.
    pub name: String,
    /// Launches.
    pub launches: u64,
    /// Blocks of all launches.
    pub blocks: u64,
    /// Steps that a launch takes.
    pub steps: i64,
    /// All of it.
    pub total: Counts,
    /// The same by apply.
    pub parts: Vec<Counts>,
    /// Cells of fields that were written, each counted once a launch.
    pub cells_written: u64,
    /// Cells written, times the steps of a launch: the useful work of the launches.
    pub cell_steps: u64,
    /// Evaluations of point functions beyond one for each cell and step; none where nobody marked
    /// the point functions. Cells that no function computes (a frozen rim) hide as many.
    pub redundant: Option<u64>,
    /// Bytes of global sectors moved for each cell and step.
    pub bytes_per_cell_step: f64,
}

/// Counts of all kernels that ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The kernels, in the module's order.
    pub kernels: Vec<KernelReport>,
}

impl Report {
    pub(crate) fn new<'k>(kernels: impl Iterator<Item = (&'k Kernel, &'k Counters)>) -> Self {
        Self {
            kernels: kernels
                .filter(|(_, counters)| counters.launches > 0)
                .map(|(kernel, counters)| of_kernel(kernel, counters))
                .collect(),
        }
    }

    /// The counts of all kernels together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for kernel in &self.kernels {
            total.add(&kernel.total);
        }
        total
    }
}

fn of_kernel(kernel: &Kernel, counters: &Counters) -> KernelReport {
    let mut parts: Vec<Counts> = kernel
        .groups
        .values()
        .map(|group| Counts { name: group.name.clone(), ..Counts::default() })
        .collect();
    let mut roots = vec![0_u64; parts.len()];
    let counted = counters.threads.iter().zip(&counters.warps).zip(&counters.traffic);
    for ((instr, origin), ((threads, warps), [global, shared])) in
        kernel.code.iter().zip(&kernel.origins).zip(counted)
    {
        let site = &kernel.sites[origin.site];
        let (Some(part), Some(roots)) =
            (parts.get_mut(site.group.index()), roots.get_mut(site.group.index()))
        else {
            continue;
        };
        part.flops.note(origin.flop, *threads);
        match instr {
            Instr::Load { .. } => {
                part.global_read.add(global);
                part.shared_read.add(shared);
            }
            Instr::Store { .. } => {
                part.global_write.add(global);
                part.shared_write.add(shared);
            }
            Instr::CopyAsync { .. } => {
                part.global_read.add(global);
                part.shared_write.add(shared);
            }
            Instr::Barrier => part.barriers += warps,
            Instr::Shuffle { .. } => part.shuffles += warps,
            Instr::Wait { .. } => part.waits += warps,
            Instr::Signal { .. } => part.signals += warps,
            _ => {}
        }
        let control = matches!(
            instr,
            Instr::Move { .. }
                | Instr::Push
                | Instr::Pop
                | Instr::Jump { .. }
                | Instr::Else { .. }
                | Instr::Return
        );
        part.operations += if control { 0 } else { *threads };
        *roots += if site.root && !control { *threads } else { 0 };
    }
    let mut total = Counts::default();
    for (part, roots) in parts.iter_mut().zip(roots) {
        part.cells = roots;
        total.add(part);
    }
    parts.retain(|part| *part != Counts { name: part.name.clone(), ..Counts::default() });
    let steps = u64::try_from(kernel.steps.max(1)).unwrap_or(1);
    let cell_steps = counters.cells_written * steps;
    let moved = 32 * (total.global_read.moved + total.global_write.moved);
    KernelReport {
        name: kernel.name.clone(),
        launches: counters.launches,
        blocks: counters.blocks,
        steps: kernel.steps,
        redundant: (total.cells > 0).then(|| total.cells.saturating_sub(cell_steps)),
        total,
        parts,
        cells_written: counters.cells_written,
        cell_steps,
        bytes_per_cell_step: if cell_steps == 0 { 0.0 } else { moved as f64 / cell_steps as f64 },
    }
}

/// Moved and ideal, with the ideal's share: `1200 (83 %)`.
fn share(traffic: &Traffic) -> String {
    if traffic.moved == 0 {
        "0".to_owned()
    } else {
        format!("{} ({:.0} %)", traffic.moved, 100.0 * traffic.ideal as f64 / traffic.moved as f64)
    }
}

/// Wavefronts and the mean degree of conflict: `1200 (x1.5)`.
fn degree(traffic: &Traffic) -> String {
    if traffic.moved == 0 {
        "0".to_owned()
    } else {
        format!(
            "{} (x{:.2}, worst {})",
            traffic.moved,
            traffic.moved as f64 / traffic.ideal.max(1) as f64,
            traffic.worst
        )
    }
}

impl Display for Report {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        for kernel in &self.kernels {
            writeln!(
                formatter,
                "{}: {} launches, {} blocks, {} steps a launch",
                kernel.name, kernel.launches, kernel.blocks, kernel.steps
            )?;
            let mut rows: Vec<Vec<String>> = vec![
                [
                    "",
                    "operations",
                    "add",
                    "mul",
                    "fma",
                    "div",
                    "sqrt",
                    "special",
                    "sectors read (ideal)",
                    "sectors written (ideal)",
                    "wavefronts read",
                    "wavefronts written",
                    "barriers",
                    "shuffles",
                    "waits",
                    "cells",
                ]
                .map(str::to_owned)
                .to_vec(),
            ];
            let named =
                kernel.parts.iter().filter(|_| kernel.parts.len() > 1).map(|part| {
                    (if part.name.is_empty() { "rest" } else { part.name.as_str() }, part)
                });
            for (name, counts) in named.chain([("all", &kernel.total)]) {
                let flops = &counts.flops;
                let mut row = vec![name.to_owned(), counts.operations.to_string()];
                row.extend(
                    [flops.add, flops.mul, flops.fma, flops.div, flops.sqrt, flops.special]
                        .map(|count| count.to_string()),
                );
                row.extend([
                    share(&counts.global_read),
                    share(&counts.global_write),
                    degree(&counts.shared_read),
                    degree(&counts.shared_write),
                ]);
                row.extend(
                    [counts.barriers, counts.shuffles, counts.waits, counts.cells]
                        .map(|count| count.to_string()),
                );
                rows.push(row);
            }
            write_table(formatter, &rows)?;
            let redundant = match kernel.redundant {
                Some(redundant) => format!(
                    "{redundant} cells computed more than once ({:.1} %)",
                    100.0 * redundant as f64 / kernel.cell_steps.max(1) as f64
                ),
                None => "redundant cells unknown".to_owned(),
            };
            writeln!(
                formatter,
                "  {} cell-steps, {:.2} bytes each, {redundant}",
                kernel.cell_steps, kernel.bytes_per_cell_step
            )?;
        }
        Ok(())
    }
}

/// One line per counter, one column per part: there are few parts and many counters.
fn write_table(formatter: &mut Formatter, rows: &[Vec<String>]) -> fmt::Result {
    let widths: Vec<_> =
        rows.iter().map(|row| row.iter().map(String::len).max().unwrap_or(0)).collect();
    for line in 0..rows.first().map_or(0, Vec::len) {
        write!(formatter, " ")?;
        for (column, (row, width)) in rows.iter().zip(&widths).enumerate() {
            let cell = row.get(line).map_or("", String::as_str);
            if column == 0 {
                write!(formatter, " {cell:<width$}")?
            } else {
                write!(formatter, "  {cell:>width$}")?
            }
        }
        writeln!(formatter)?;
    }
    Ok(())
}
