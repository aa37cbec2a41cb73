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
    let reach = reach(program, rank - 1);
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
        combination: None,
    }
}

/// How far a step reaches along a dimension at most, on both sides together.
fn reach(program: &Program, dimension: usize) -> i64 {
    let mut reach = 0;
    for function in &program.functions {
        let (mut before, mut after) = (0, 0);
        for value in function.pieces.iter().flat_map(Piece::exprs) {
            value.visit(&mut |part| {
                if let Kind::Read(field, offset) = &part.kind {
                    let cells = offset.get(dimension).copied().unwrap_or(0);
                    let either = program.fields[*field].rule == Some(Rule::Reflect);
                    before = before.max(if either { cells.abs() } else { -cells });
                    after = after.max(if either { cells.abs() } else { cells });
                }
            });
        }
        reach += before + after;
    }
    reach
}

/// A schedule of the strategy `patch`, whose tiles mostly fit a block.
pub fn patch_schedule(random: &mut Random, program: &Program, rank: usize) -> Schedule {
    let mut each = vec![random.pick(&[1, 2, 2, 3, 4]), random.pick(&[1, 2, 3, 4, 4, 8])];
    if rank == 3 {
        each.insert(0, random.pick(&[1, 1, 2, 3]));
    }
    let cells = |each: &[i64]| size(program) as i64 * each.iter().product::<i64>() * 3;
    while cells(&each) > 2 * LARGEST && each.iter().any(|cells| *cells > 1) {
        let dimension = random.below(rank);
        each[dimension] = (each[dimension] - 1).max(1);
    }
    let width = each[rank - 1];
    let mut height = random.pick(&[1, 1, 2, 2, 3, 4, 5, 6]);
    // Lanes of a row, and parts of rows and planes.
    let threads: &[i64] = if rank == 2 { &[32, 32] } else { &[8, 8, 16] };
    let room = |height: i64, dimension: usize| {
        each[dimension] * threads[dimension] - reach(program, dimension) * height
    };
    let fits = |height| (0..rank).all(|dimension| room(height, dimension) >= 2 * each[dimension]);
    while height > 1 && (cells(&each) * height > 2 * LARGEST || !fits(height)) {
        height -= 1;
    }
    let mut tile: Vec<i64> = (0..rank - 1)
        .map(|dimension| random.range(1, room(height, dimension).clamp(1, 24)))
        .collect();
    let columns = (room(height, rank - 1) / width - 1).max(1);
    tile.push(width * if random.percent(30) { columns } else { random.range(1, columns) });
    let flags = flags(random, program, "patch");
    let (tile, per_thread) = match random.below(12) {
        0 => (None, None),
        _ => (Some(tile), Some(each)),
    };
    let height = Some(height);
    Schedule { strategy: "patch", tile, height, per_thread, flags, combination: None }
}

/// A schedule of the strategy `relay`, whose tiles mostly fit a warp with their halo.
pub fn relay_schedule(random: &mut Random, program: &Program) -> Schedule {
    let mut width = random.pick(&[1, 3, 3, 5, 7]);
    while size(program) as i64 * width * 4 > 2 * LARGEST && width > 1 {
        width -= 2;
    }
    let room = |height: i64| width * 32 - (reach(program, 1) + 8) * height;
    let mut height = random.pick(&[1, 2, 3, 4, 4, 6, 8]);
    let cells = size(program) as i64 * width * 4;
    while height > 1 && (cells * height > 2 * LARGEST || room(height) < 1) {
        height -= 1;
    }
    let columns = room(height).max(1);
    let columns = if random.percent(30) { columns } else { random.range(1, columns) };
    let tile = Some(vec![random.range(1, 24), columns]);
    let (tile, per_thread) = match random.below(12) {
        0 => (None, None),
        _ => (tile, Some(vec![1, width])),
    };
    let (flags, height) = (flags(random, program, "relay"), Some(height));
    Schedule { strategy: "relay", tile, height, per_thread, flags, combination: None }
}

/// A schedule of the strategy `plane`: small blocks, so that a tile has rims on all sides.
fn plane_schedule(random: &mut Random, program: &Program, rank: usize) -> Schedule {
    let mut width = random.pick(&[1, 2, 3, 4, 4, 8]);
    while width > 1 && size(program) as i64 * width > LARGEST {
        width /= 2;
    }
    let mut tile = vec![random.range(1, 12)];
    if rank == 3 {
        tile.push(random.range(1, 6));
    }
    tile.push(random.pick(&[1, 2, 3, 5, 8, 32]) * width);
    let mut per_thread = vec![1; rank - 1];
    per_thread.push(width);
    let flags = flags(random, program, "plane");
    let (tile, per_thread) = match random.below(10) {
        0 => (None, None),
        _ => (Some(tile), Some(per_thread)),
    };
    Schedule { strategy: "plane", tile, height: None, per_thread, flags, combination: None }
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
    let (tile, per_thread) = (Some(tile), Some(each));
    Schedule { strategy: "strip", tile, height: None, per_thread, flags, combination: None }
}

/// A schedule for sweeps: of the strategy `strip`, or of `wavefront`, mostly with rows that hold
/// the longest dependence.
fn wave_schedule(random: &mut Random, program: &Program, rank: usize) -> Schedule {
    if rank == 2 && random.percent(60) {
        return strip_schedule(random, program);
    }
    tile_rows(random, program, rank)
}

/// A schedule of the strategy `wavefront`.
fn tile_rows(random: &mut Random, program: &Program, rank: usize) -> Schedule {
    let mut tile: Vec<i64> = (1..rank).map(|_| random.pick(&[1, 2, 3, 4, 5, 8, 16, 32])).collect();
    tile.push(random.pick(&[1, 2, 3, 7, 16, 64]));
    let tile = (!random.percent(20)).then_some(tile);
    let flags = flags(random, program, "wavefront");
    let (strategy, height, per_thread) = ("wavefront", None, None);
    Schedule { strategy, tile, height, per_thread, flags, combination: None }
}

/// A schedule of `wavefront` by a list of passes: the six combinations.
fn combined(random: &mut Random, program: &Program, rank: usize) -> Schedule {
    let (rows, later) = sweeps::reach(program, rank);
    let height = |rows| random.pick(&[1, 2, 3, 4, 4, 5, 8]).max(rows);
    let mut tile: Vec<i64> = rows.into_iter().map(height).collect();
    tile.push(random.pick(&[1, 2, 3, 4, 5, 7, 16]));
    let combination = Some(Combination {
        skewed: later || random.percent(40),
        sync: random.pick(&[None, Some("grid-sync"), Some("peer-sync")]),
        blocks: random.range(1, 7),
        simplified: random.percent(25),
    });
    let flags = if random.percent(30) { vec![Flag::NoFuse] } else { Vec::new() };
    Schedule {
        strategy: "wavefront",
        tile: Some(tile),
        height: None,
        per_thread: None,
        flags,
        combination,
    }
}

/// A schedule of a program that has sweeps; of the strategy `strip` where asked for.
pub fn sweep(random: &mut Random, program: &Program, strips: bool) -> Schedule {
    let rank = program.grid_of(program.functions[0].updates[0]).rank();
    match random.below(4) {
        _ if strips => strip_schedule(random, program),
        0 => tile_rows(random, program, rank),
        _ => combined(random, program, rank),
    }
}

/// A schedule that mostly fits a block. The compiler declines the others.
pub fn schedule(random: &mut Random, program: &Program) -> Schedule {
    // Numbers are for the functions of as many dimensions.
    let rank = program.grid_of(program.functions[0].updates[0]).rank();
    if sweeps::has_any(program) && random.percent(80) {
        return wave_schedule(random, program, rank);
    }
    if rank > 1 && random.percent(20) && registry::find("lower-plane").is_some() {
        return plane_schedule(random, program, rank);
    }
    if rank > 1 && random.percent(15) && registry::find("lower-patch").is_some() {
        let schedule = patch_schedule(random, program, rank);
        // The same tiles for several rounds, where the grid's size is known.
        let stays = random.percent(40) && registry::find("lower-resident").is_some();
        return if stays { Schedule { strategy: "resident", ..schedule } } else { schedule };
    }
    if rank == 2 && random.percent(8) && registry::find("lower-relay").is_some() {
        return relay_schedule(random, program);
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
            combination: None,
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
        combination: None,
    }
}
