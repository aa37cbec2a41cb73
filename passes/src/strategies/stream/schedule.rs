//! Tiles and pyramid heights of the strategy `stream`, where none are asked for.
//!
//! More steps per launch save memory traffic, but take registers and recompute more halo. The
//! choice here is arithmetic on the pipeline analysis; measured choices may overrule it.

use super::pipeline::{self, Graph, shape};
use super::registers;
use super::selects;
use super::sum_cuts::{self, sum_cuts};
use crate::analysis::footprint;
use crate::analysis::partial_sums;
use crate::kernel::lanes::{self, WARP, WIDEST};
use crate::subject::Subject;
use std::collections::{BTreeMap, BTreeSet};
use stencil_dialects::error::Error;
use stencil_dialects::stencil::{Apply, Program, Role};
use stencil_dialects::tiled::Halo;
use stencil_runtime::device::Device;

/// Cells per lane in two dimensions, of any type.
const WIDTH: i64 = 4;

/// Fewer of them, where long operations need registers.
const NARROW: i64 = 2;

/// Rows per lane in three dimensions, for cells of one register.
const ROWS: i64 = 2;

/// Cells of a row that a block in three dimensions holds, halo included.
const COLUMNS: i64 = 64;

/// Threads of a block that are tried in three dimensions, the most first; the registers per lane
/// decide.
pub const THREADS: [i64; 5] = [1024, 768, 512, 384, 256];

/// The most steps per launch.
const HIGHEST: i64 = 12;

/// Registers that a lane may take by the estimate: with more of them kernels spill so much that
/// they lose.
const BUDGET: i64 = 240;

/// Registers of the estimate beyond which no pyramid height is looked at.
const FAR: i64 = 1024;

/// Registers in place of these where a function has long operations: their latency needs warps.
const LONG_BUDGET: [i64; 2] = [124, 168];

/// Registers in place of these where a launch reads a field that it leaves as it is: each step has
/// a row of it in flight, for which ptxas takes up to 60 more than estimated. All schedules of
/// `hotspot2d` above these were slower than the best below.
const KEPT_BUDGET: [i64; 2] = [168, 180];

/// Loaded fields beyond which a stream in two dimensions waits for memory alone. Three kinds of
/// schedules depend on it, all measured by `d2q9` (decision 040).
pub const MANY: usize = 3;

/// Registers in place of these where a launch loads many fields: the estimate counts addresses of
/// each, of which ptxas keeps few.
const MANY_BUDGET: [i64; 2] = [280, 292];

/// At least this part of a plane's cells must belong to the tile, as a fraction, in two dimensions
/// and in three.
const USEFUL: [(i64, i64); 2] = [(5, 8), (11, 20)];

/// Whether a stream in three dimensions has one version of its code, with checks, for all tiles.
/// `loaded` has the registers per cell of each loaded field. A stream of several fields, 64-bit
/// cells among them, waits for memory: checks cost little, and two versions need more registers.
/// With 2 steps `wave3d` in `f64` ran at 172 GCells/s on an H200, and at 162 in two versions, which
/// spilled. With 3 steps it ran at 211, and only one version keeps to the registers (decision 012).
pub fn has_one_version(loaded: impl Iterator<Item = i64>) -> bool {
    let words: Vec<_> = loaded.collect();
    words.len() > 1 && words.iter().any(|words| *words > 1)
}

/// 32-bit registers of the widest cell.
fn words(program: &Program) -> i64 {
    program.fields.iter().map(|field| lanes::words(field.element)).max().unwrap_or(1)
}

/// Cells per thread and dimension that are worth a try.
pub fn shapes(program: &Program, rank: usize) -> Vec<Vec<i64>> {
    let usual = per_thread(program, rank);
    match *usual.as_slice() {
        // Fewer rows leave room for more threads, which hide latency.
        [one, rows, width] => (rows / 2..=rows).rev().map(|rows| vec![one, rows, width]).collect(),
        // One cell of each leaves registers for more steps.
        _ if program.fields.iter().filter(|field| field.role != Role::Temp).count() > MANY => {
            vec![usual, vec![1, NARROW], vec![1, 1]]
        }
        _ => vec![usual, vec![1, NARROW]],
    }
}

/// Cells per thread and dimension: in three dimensions a lane's row is one access.
pub fn per_thread(program: &Program, rank: usize) -> Vec<i64> {
    let words = words(program);
    if rank == 2 { vec![1, WIDTH] } else { vec![1, ROWS * words, WIDEST / (4 * words)] }
}

/// Threads of a block for this many registers per lane; none where no block has so many.
pub fn threads(per_thread: &[i64], registers: i64, device: &Device) -> Option<i64> {
    if per_thread.len() == 2 {
        return Some(WARP);
    }
    let most = i64::from(device.registers_per_thread);
    THREADS.into_iter().find(|threads| registers <= registers::limit(most, *threads, device))
}

/// Rows and columns that a block of some threads holds of a plane.
pub fn plane(per_thread: &[i64], threads: i64) -> (i64, i64) {
    let (rows_per_lane, width) = shape(per_thread);
    if per_thread.len() == 2 {
        return (1, WARP * width);
    }
    let lanes = (COLUMNS / width).clamp(1, WARP);
    (threads / lanes * rows_per_lane, lanes * width)
}

/// The most steps per launch within the budget of registers and halo; at least 1.
pub fn pyramid_height(
    subject: &Subject,
    applies: &[&Apply],
    per_thread: &[i64],
) -> Result<i64, Error> {
    let program = subject.program;
    let wide = usize::from(program.fields.iter().any(|field| lanes::words(field.element) > 1));
    let solid = usize::from(per_thread.len() == 3);
    let updated = applies.iter().flat_map(|apply| &apply.updates).copied();
    let stays = |field: &&str| program.field(field).is_ok_and(|field| field.role != Role::Temp);
    let updated: BTreeSet<&str> = updated.filter(stays).collect();
    let mut best = 1;
    for steps in 2..=HIGHEST {
        let graph = match graph(subject, applies, per_thread, steps) {
            // More steps select among more cells.
            Err(error) if error.is_decline() => break,
            graph => graph?,
        };
        let mut halo = Halo::none(per_thread.len());
        for read in &graph.reads {
            halo = halo.hull(&Halo { lower: read.offset.clone(), upper: read.offset.clone() });
        }
        let scaled = |bounds: &[i64]| bounds.iter().map(|bound| bound * steps).collect();
        let halo = Halo { lower: scaled(&halo.lower), upper: scaled(&halo.upper) };
        let registers = pipeline::of(&graph, subject.device).registers;
        // More steps take more registers.
        if registers > FAR {
            break;
        }
        let Some(threads) = threads(per_thread, registers, subject.device) else { continue };
        let (rows, columns) = plane(per_thread, threads);
        let (tile_rows, tile_columns) = within(per_thread, threads, &[&halo]);
        let (part, whole) = USEFUL[solid];
        let useful = tile_rows > 0
            && tile_columns > 0
            && tile_rows * tile_columns * whole >= rows * columns * part;
        let budget = if graph.loaded().count() > MANY {
            MANY_BUDGET[wide]
        } else if graph.scratch > 0 {
            LONG_BUDGET[wide]
        } else if graph.loaded().count() > updated.len() {
            KEPT_BUDGET[wide]
        } else {
            BUDGET
        };
        if useful && (solid == 1 || registers <= budget) {
            best = steps;
        }
    }
    Ok(best)
}

/// The rows and columns of a plane that are left for a tile beside a halo; less than 1 for none.
pub fn within(per_thread: &[i64], threads: i64, halos: &[&Halo]) -> (i64, i64) {
    let ((_, width), (rows, columns)) = (shape(per_thread), plane(per_thread, threads));
    let halo = halos.iter().fold(Halo::none(per_thread.len()), |all, halo| all.hull(halo));
    let lost = |(lower, upper): (&i64, &i64), unit| {
        lanes::whole(-lower, unit) + lanes::whole(*upper, unit)
    };
    let mut ends = halo.lower.iter().zip(&halo.upper).skip(1).rev();
    let columns = columns - ends.next().map_or(0, |ends| lost(ends, width));
    (rows - ends.next().map_or(0, |ends| lost(ends, 1)), columns)
}

/// The tile graph of several steps, whose sums are cut where that saves registers.
///
/// # Errors
/// Declines a graph in which reads select among too many cells.
pub fn graph(
    subject: &Subject,
    applies: &[&Apply],
    per_thread: &[i64],
    steps: i64,
) -> Result<Graph, Error> {
    let lane = shape(per_thread);
    graph_of(subject, applies, (per_thread, steps), |apply| {
        sum_cuts(subject, &apply.updates, &apply.pieces, lane)
    })
}

/// The tile graph of several steps, whose sums are cut after the planes that `cuts` gives.
///
/// # Errors
/// As for [`graph`].
pub fn graph_of(
    subject: &Subject,
    applies: &[&Apply],
    (per_thread, steps): (&[i64], i64),
    cuts: impl Fn(&Apply) -> Result<Vec<i64>, Error>,
) -> Result<Graph, Error> {
    let program = subject.program;
    let lane = shape(per_thread);
    // A launch that is not the last of its step counts as none, but reads as much as one.
    let all = (0..steps.max(1)).flat_map(|_| applies);
    selects::of(program, all.map(|apply| (apply.op, apply.pieces.as_slice())), lane)?;
    let mut graph = Graph::empty(lane);
    let mut current = BTreeMap::new();
    let (mut loaded, mut made) = (BTreeSet::new(), BTreeSet::new());
    for apply in applies {
        let reads = footprint::of_pieces(program, &apply.pieces)?;
        loaded
            .extend(reads.into_iter().map(|read| read.field).filter(|field| !made.contains(field)));
        for field in &apply.updates {
            // A temp field has no value before the first apply that makes it.
            if program.field(field)?.role != Role::Temp {
                loaded.insert(*field);
            }
            made.insert(*field);
        }
    }
    for field in program.fields.iter().filter(|field| loaded.contains(field.name)) {
        current.insert(field.name, graph.load(lanes::words(field.element)));
    }
    let mut parts = Vec::new();
    for apply in applies {
        graph.hold(footprint::long_operations(program, &apply.pieces)?);
        let parts_of = partial_sums::parts(program, &apply.pieces, &cuts(apply)?)?;
        parts.push((&apply.updates, parts_of));
    }
    for (updates, parts) in (0..steps).flat_map(|_| &parts) {
        let new = sum_cuts::extend(&mut graph, program, parts, updates, &current)?;
        current.extend(updates.iter().copied().zip(new));
    }
    graph.split = per_thread.len() < 3 || !has_one_version(graph.loaded().map(|value| value.words));
    Ok(graph)
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::ir::Module;
    use stencil_runtime::device::H200;
    use stencil_runtime::ranks::Devices;

    #[test]
    fn several_loaded_fields_of_wide_cells_have_one_version() {
        let one = |words: &[i64]| has_one_version(words.iter().copied());
        assert!(one(&[2, 2, 2]) && one(&[1, 2]));
        assert!(!one(&[2]) && !one(&[1, 1, 1]) && !one(&[]));
    }

    /// A temp field `T` is made of `A` and read beside it; both of two registers a cell.
    const TEMP: &str = r#"module attributes {stencil.params = [], stencil.steps = affine_map<() -> (4)>} {
        "stencil.grid"() {sym_name = "G", lower = affine_map<() -> (0, 0, 0)>, upper = affine_map<() -> (63, 63, 63)>} : () -> ()
        "stencil.field"() {sym_name = "A", grid = @G, type = f64, role = "state"} : () -> ()
        "stencil.field"() {sym_name = "T", grid = @G, type = f64, role = "temp"} : () -> ()
        func.func private @f(%a: f64 {stencil.read = @A, stencil.offset = array<i64: 1, 0, 0>}) -> f64 { return %a : f64 }
        func.func private @g(%t: f64 {stencil.read = @T, stencil.offset = array<i64: -1, 0, 0>}) -> f64 { return %t : f64 }
        "stencil.apply"() {updates = [@T], pieces = [{function = @f, lower = affine_map<() -> (0, 0, 0)>, upper = affine_map<() -> (62, 63, 63)>}]} : () -> ()
        "stencil.apply"() {updates = [@A], pieces = [{function = @g, lower = affine_map<() -> (1, 0, 0)>, upper = affine_map<() -> (63, 63, 63)>}]} : () -> ()
    }"#;

    #[test]
    fn a_temp_field_is_loaded_only_where_another_kernel_made_it() {
        let context = stencil_dialects::context().unwrap();
        let module = Module::parse(&context, TEMP).unwrap();
        let program = Program::read(&module).unwrap();
        let loaded = |applies: &[&Apply]| {
            let graph = graph(
                &Subject {
                    module: &module,
                    program: &program,
                    device: &H200,
                    processor: None,
                    devices: Devices::along(1),
                },
                applies,
                &[1, 4, 2],
                2,
            )
            .unwrap();
            (graph.loaded().count(), graph.split)
        };
        let [made, read] = program.applies.as_slice() else { panic!("two applies") };
        assert_eq!(loaded(&[made, read]), (1, true));
        assert_eq!(loaded(&[read]), (2, false));
    }

    #[test]
    fn a_graph_of_too_many_cells_is_declined_before_it_is_made() {
        let context = stencil_dialects::context().unwrap();
        let field = r#"role = "state"}"#;
        let rule = r#"role = "state", stencil.boundary = "nearest"}"#;
        let far = TEMP
            .replace(field, rule)
            .replace("array<i64: 1, 0, 0>", "array<i64: 30000, -30000, 9>");
        let module = Module::parse(&context, &far).unwrap();
        let program = Program::read(&module).unwrap();
        let subject = Subject {
            module: &module,
            program: &program,
            device: &H200,
            processor: None,
            devices: Devices::along(1),
        };
        let applies: Vec<&Apply> = program.applies.iter().collect();
        let error = graph(&subject, &applies, &[1, 4, 2], 1).map(drop).unwrap_err();
        assert!(error.is_decline(), "{}", error.message);
        assert_eq!(pyramid_height(&subject, &applies, &[1, 4, 2]).unwrap(), 1);
    }

    #[test]
    fn blocks_of_wide_cells_are_tried_with_fewer_rows() {
        let context = stencil_dialects::context().unwrap();
        let module = Module::parse(&context, TEMP).unwrap();
        let program = Program::read(&module).unwrap();
        assert_eq!(shapes(&program, 3), [vec![1, 4, 2], vec![1, 3, 2], vec![1, 2, 2]]);
    }
}
