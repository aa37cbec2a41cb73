//! Schedules that mostly fit the device.

use super::sweeps;
use crate::model::*;
use crate::random::Random;
use stencil_passes::registry;

/// Parts of expressions, times the steps and the cells of a thread, that a kernel may hold.
const LARGEST: i64 = 800;

/// A schedule of the strategy `stream` or `warp`, whose tiles fit a warp or a block with their
/// halo.
fn lanes_schedule(
    random: &mut Random,
    program: &Program,
    strategy: &'static str,
    rank: usize,
) -> Schedule {
    let (mut lane, mut rows) =
        (random.pick(&[1, 2, 3, 4, 4]), if rank == 3 { random.pick(&[1, 2, 2, 3]) } else { 1 });
    // A loop's body holds several planes.
    while size(program) as i64 * lane * rows * 4 > 2 * LARGEST && lane * rows > 1 {
        (lane, rows) = if rows > 1 { (lane, rows - 1) } else { (lane - 1, rows) };
    }
    // How far a step reaches along a row at most, on both sides together.
    let mut reach = 0;
    for function in &program.functions {
        let (mut before, mut after) = (0, 0);
        for value in function.pieces.iter().flat_map(|piece| &piece.values) {
            value.visit(&mut |part| {
                if let Kind::Read(field, offset) = &part.kind {
                    let last = offset[offset.len() - 1];
                    let either = program.fields[*field].rule == Some(Rule::Reflect);
                    before = before.max(if either { last.abs() } else { -last });
                    after = after.max(if either { last.abs() } else { last });
                }
            });
        }
        reach += before + after;
    }
    let mut height = random.pick(&[1, 1, 2, 2, 3, 4, 5, 6]);
    let cells = size(program) as i64 * lane * rows * 4;
    while height > 1 && (cells * height > LARGEST || lane * 32 - reach * height < lane) {
        height -= 1;
    }
    let columns = random.range(1, (lane * 32 - reach * height) / lane) * lane;
    let (tile, per_thread) = match rank {
        1 => (vec![columns], vec![lane]),
        2 => (vec![random.range(1, 24), columns], vec![1, lane]),
        _ => (vec![random.range(1, 24), random.range(1, 12), columns], vec![1, rows, lane]),
    };
    let flags = flags(random, program, strategy);
    Schedule {
        strategy,
        tile: Some(tile),
        height: Some(height),
        per_thread: Some(per_thread),
        flags,
    }
}

/// Parts of all expressions; one that is a vec or a struct counts as its numbers.
fn size(program: &Program) -> usize {
    let mut count = 0;
    for value in program.values() {
        value.visit(&mut |part| count += program.leaves(part.ty).len().max(1));
    }
    count
}

/// Switches; a fixed region mostly where it can be had.
fn flags(random: &mut Random, program: &Program, strategy: &str) -> Vec<Flag> {
    let mut partial = !matches!(strategy, "naive" | "block");
    for value in program.values() {
        value.visit(&mut |part| {
            let divides = matches!(part.kind, Kind::Binary("/" | "%", ..)) && !part.ty.is_float();
            partial |= divides || matches!(part.kind, Kind::Gather(..));
        });
    }
    let fits = |random: &mut Random, flag: Flag| {
        flag != Flag::FixedRegion || !partial || random.percent(5)
    };
    let all = Flag::ALL
        .into_iter()
        .filter(|(flag, _, chance)| random.percent(*chance) && fits(random, *flag));
    all.map(|(flag, ..)| flag).collect()
}

/// A schedule of the strategy `strip`, mostly of rows that a block can have.
fn strip_schedule(random: &mut Random, program: &Program) -> Schedule {
    let (rows, strips) = (random.range(1, 4), random.range(1, 4));
    let width = random.pick(&[2, 4, 8, 16, 32, 32]);
    let lanes = if random.percent(95) { 32 } else { random.range(1, 40) };
    let (tile, each) = (vec![lanes * rows * strips, width], vec![rows, 1]);
    let flags = flags(random, program, "strip");
    Schedule { strategy: "strip", tile: Some(tile), height: None, per_thread: Some(each), flags }
}

/// A schedule of the strategy `wavefront`, mostly with rows that hold the longest dependence.
fn wave_schedule(random: &mut Random, program: &Program, rank: usize) -> Schedule {
    if rank == 2 && random.percent(60) {
        return strip_schedule(random, program);
    }
    let mut tile: Vec<i64> = (1..rank).map(|_| random.pick(&[1, 2, 3, 4, 5, 8, 16, 32])).collect();
    tile.push(random.pick(&[1, 2, 3, 7, 16, 64]));
    let tile = (!random.percent(20)).then_some(tile);
    let flags = flags(random, program, "wavefront");
    Schedule { strategy: "wavefront", tile, height: None, per_thread: None, flags }
}

/// A schedule that mostly fits a block. The compiler declines the others.
pub fn schedule(random: &mut Random, program: &Program) -> Schedule {
    // Numbers are for the functions of as many dimensions.
    let rank = program.grid_of(program.functions[0].updates[0]).rank();
    if sweeps::has_any(program) && random.percent(80) {
        return wave_schedule(random, program, rank);
    }
    let of_rank = [Some("warp"), Some("stream"), Some("stream")][rank - 1];
    let of_rank = of_rank.filter(|strategy| registry::find(&format!("lower-{strategy}")).is_some());
    let strategy = match of_rank {
        _ if random.percent(25) => "naive",
        Some(strategy) if random.percent(50) => strategy,
        _ => "block",
    };
    if Some(strategy) == of_rank && random.percent(90) {
        return lanes_schedule(random, program, strategy, rank);
    }
    if Some(strategy) == of_rank || random.percent(6) {
        return Schedule {
            strategy,
            tile: None,
            height: None,
            per_thread: None,
            flags: flags(random, program, strategy),
        };
    }
    let largest: &[i64] = match rank {
        1 => &[200],
        2 => &[24, 40],
        _ => &[6, 8, 24],
    };
    let mut tile: Vec<i64> = largest.iter().map(|most| random.range(1, *most)).collect();
    if random.percent(30) {
        // As long as a warp along the fastest dimension.
        tile[rank - 1] = 32;
    }
    // Large kernels take long to compile and say little more.
    let mut per_thread: Vec<i64> = (0..rank).map(|_| random.pick(&[1, 1, 1, 2, 3, 4])).collect();
    while size(program) as i64 * per_thread.iter().product::<i64>() > LARGEST
        && per_thread.iter().any(|cells| *cells > 1)
    {
        let dimension = random.below(rank);
        per_thread[dimension] = 1;
    }
    let mut height =
        if strategy == "naive" { 1 } else { random.pick(&[1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6]) };
    while height > 1 && size(program) as i64 * height * per_thread.iter().product::<i64>() > LARGEST
    {
        height -= 1;
    }
    let per_thread = random.percent(70).then_some(per_thread);
    // Rules and different grids together may leave one step a launch.
    let apart = program.fields.iter().any(|field| field.rule.is_some() && program.grids.len() > 1);
    let height = (!apart || random.percent(40)).then_some(height);
    Schedule {
        strategy,
        tile: Some(tile),
        height,
        per_thread,
        flags: flags(random, program, strategy),
    }
}
