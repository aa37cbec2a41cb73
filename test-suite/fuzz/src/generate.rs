//! Cases from a seed.
//!
//! Sizes are chosen first, so that pieces and offsets can be valid for them; the bounds are then
//! written in terms of params. The reads of most pieces can be proved for all sizes.
//!
//! `expressions.rs` makes values, `aggregates.rs` those that are vecs and structs, `gathers.rs`
//! absolute reads, `pieces.rs` the boxes of a function, `schedules.rs` the ways to compile.

mod aggregates;
mod expressions;
mod gathers;
mod handed_on;
mod patches;
mod pieces;
mod processor;
mod reductions;
mod relays;
mod rows;
mod schedules;
mod sweeps;
mod windows;

use crate::model::*;
use crate::random::Random;
use expressions::{Scope, value};
pub use patches::in_patches;
use pieces::{boxes, common, piece};
pub use processor::on_processor;
pub use relays::in_relays;
use schedules::schedule;
use stencil_runtime::array::Element;
pub use sweeps::sweep;
pub use windows::out_of_core;

/// The case of a seed and a number.
pub fn case(seed: u64, index: u64) -> Case {
    let mut random = Random::of_case(seed, index);
    let rank = random.pick(&[1, 1, 1, 2, 2, 2, 2, 3, 3]);
    let ruled = random.percent(45);
    let most = if ruled && random.percent(50) { [7, 7, 5] } else { [70, 70, 24] };
    let mut program = program(&mut random, rank, most, ruled, false);
    if random.percent(25) {
        sweeps::prime(&mut random, &mut program);
    }
    repeats(&mut random, &mut program, 15);
    if random.percent(20) {
        reductions::add(&mut random, &mut program);
    }
    let sweeps = sweeps::has_any(&program);
    let reduces = !program.reductions.is_empty();
    let mut schedules = vec![schedule(&mut random, &program)];
    if random.percent(25) {
        schedules.push(schedule(&mut random, &program));
    }
    if reduces {
        plain(&mut random, &mut schedules);
    }
    Case {
        schedules,
        data: Data { seed: random.below(1000) as u64, rough: random.percent(15) },
        order: random.percent(50).then(|| random.below(1000) as u64),
        steps_given: random.percent(30),
        round_trip: random.percent(40),
        // Another order of dimensions is another order of the sweep, and of sums.
        transpose: rank > 1 && random.percent(20) && !sweeps && !reduces,
        shift: (random.percent(15) && !gathers::by_rule(&program, rank) && !reduces)
            .then(|| (0..rank).map(|_| random.range(-9, 9)).collect()),
        outline: random.percent(30),
        ptx: random.percent(3),
        windows: false,
        program,
    }
}

/// A case of a program that is compiled and run once.
fn plain_case(random: &mut Random, program: Program, schedule: Schedule) -> Case {
    Case {
        schedules: vec![schedule],
        data: Data { seed: random.below(1000) as u64, rough: random.percent(15) },
        order: random.percent(80).then(|| random.below(1000) as u64),
        steps_given: random.percent(30),
        round_trip: false,
        transpose: false,
        shift: None,
        outline: false,
        ptx: false,
        windows: false,
        program,
    }
}

/// Whether a run updates a cell of a state field.
fn computes(program: &Program) -> bool {
    let states = |function: &Function| {
        function.updates.iter().any(|field| program.fields[*field].role == Role::State)
    };
    let holds = |piece: &Piece| {
        piece.region.bounds(&program.params).iter().all(|(first, last)| first <= last)
    };
    let mut functions = program.functions.iter().filter(|function| states(function));
    program.steps > 0 && functions.any(|function| function.pieces.iter().any(holds))
}

/// The case of a seed and a number whose program has reductions. It is small.
pub fn reduction(seed: u64, index: u64) -> Case {
    let mut random = Random::of_case(seed, index);
    let rank = random.pick(&[1, 1, 2, 2, 2, 3]);
    // Some boxes have several blocks of points.
    let most = if random.percent(6) { [20_000, 150, 30] } else { [40, 18, 8] };
    let program = loop {
        let ruled = random.percent(30);
        let mut program = program(&mut random, rank, most, ruled, false);
        if random.percent(15) {
            sweeps::prime(&mut random, &mut program);
        }
        program.steps = program.steps.min(6);
        repeats(&mut random, &mut program, 20);
        reductions::add(&mut random, &mut program);
        if !program.reductions.is_empty() {
            break program;
        }
    };
    let mut schedules = vec![schedule(&mut random, &program)];
    plain(&mut random, &mut schedules);
    Case {
        schedules,
        data: Data { seed: random.below(1000) as u64, rough: random.percent(25) },
        order: random.percent(60).then(|| random.below(1000) as u64),
        steps_given: random.percent(30),
        round_trip: random.percent(15),
        transpose: false,
        shift: None,
        outline: random.percent(30),
        ptx: random.percent(1),
        windows: false,
        program,
    }
}

/// Makes schedules those of most programs with reductions: of one step per launch, by no list of
/// passes.
fn plain(random: &mut Random, schedules: &mut [Schedule]) {
    for schedule in schedules {
        schedule.combination = None;
        if random.percent(75) {
            schedule.height = None;
        }
    }
}

/// A program on grids of at most so many points along each dimension; a long one has many more
/// along the first, and more steps.
fn program(random: &mut Random, rank: usize, most: [i64; 3], ruled: bool, long: bool) -> Program {
    let (params, mut grid) = sizes(random, rank, most[rank - 1]);
    let mut steps = steps(random);
    if long {
        grid.upper[0] = grid.upper[0].plus(random.range(30, [400, 200, 80][rank - 1]));
        steps = random.range(1, 16);
    }
    let mut program = Program {
        params,
        scalars: (0..random.pick(&[0, 0, 1, 2])).map(|_| scalar(random)).collect(),
        structs: Vec::new(),
        grids: vec![grid],
        fields: Vec::new(),
        lets: Vec::new(),
        functions: Vec::new(),
        repeats: Vec::new(),
        reductions: Vec::new(),
        steps,
        until: None,
    };
    let (homes, tables) = more_grids(random, &mut program, most);
    fields(random, &mut program, homes, tables);
    if ruled {
        rules(random, &mut program);
    }
    functions(random, &mut program);
    program
}

fn steps(random: &mut Random) -> i64 {
    random.pick(&[0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9])
}

/// Params and a grid whose extents lie from 0 to `most`, or a few more.
fn sizes(random: &mut Random, rank: usize, most: i64) -> (Vec<Param>, Region) {
    let known = random.pick(&[
        None,
        Some(Known::Run),
        Some(Known::Run),
        Some(Known::Define),
        Some(Known::File),
    ]);
    let mut params: Vec<Param> = Vec::new();
    let mut extents: Vec<i64> = Vec::new();
    let mut grid = Region { lower: Vec::new(), upper: Vec::new() };
    for _ in 0..rank {
        let mut extent = random.range(0, most);
        for _ in 1..rank {
            extent = extent.min(random.range(0, most));
        }
        if most > 12 && random.percent(75) {
            extent = extent.max(random.range(3, 12));
        }
        let lower = if random.percent(60) { 0 } else { random.range(-5, 5) };
        let more = random.range(0, 3).min(extent);
        let known = known.unwrap_or_else(|| random.pick(&[Known::Run, Known::Define, Known::File]));
        // The extent as an expression.
        let length = match random.below(10) {
            0 if extent > 9 => Affine::number(extent),
            1 if !params.is_empty() => {
                let place = random.below(params.len());
                extent = params[place].value + more;
                Affine { constant: more, term: Some((place, 1)) }
            }
            2 => {
                params.push(Param { value: extent / 2, known });
                Affine { constant: extent % 2, term: Some((params.len() - 1, 2)) }
            }
            3 => {
                params.push(Param { value: extent - more, known });
                Affine { constant: more, term: Some((params.len() - 1, 1)) }
            }
            _ => {
                params.push(Param { value: extent, known });
                Affine { constant: 0, term: Some((params.len() - 1, 1)) }
            }
        };
        extents.push(extent);
        grid.lower.push(Affine::number(lower));
        grid.upper.push(length.plus(lower - 1));
    }
    (params, grid)
}

/// Grids beside the first: how many of them have points that functions run over, and how many hold
/// tables for absolute reads alone, which come last.
fn more_grids(random: &mut Random, program: &mut Program, most: [i64; 3]) -> (usize, usize) {
    let rank = program.rank();
    if random.percent(35) {
        // Some points more or less on each side, as on a staggered grid.
        for _ in 0..random.pick(&[1, 1, 2]) {
            let mut grid = program.grids[0].clone();
            for dimension in 0..rank {
                let (first, last) = program.grids[0].bounds(&program.params)[dimension];
                let lower = random.pick(&[0, 0, 0, 0, 1, -1, -2, 3]).min(last - first + 1);
                let upper =
                    random.pick(&[0, 0, 0, 0, 1, 1, -1, 2, -3]).max(first + lower - last - 1);
                grid.lower[dimension] = grid.lower[dimension].plus(lower);
                grid.upper[dimension] = grid.upper[dimension].plus(upper);
            }
            program.grids.push(grid);
        }
    }
    if random.percent(6) {
        // Functions on grids of other ranks run in launches of their own.
        let rank = random.range(1, 3) as usize;
        other_grid(random, program, rank, most[rank - 1].min(12));
    }
    let homes = program.grids.len();
    if random.percent(40) {
        for _ in 0..random.pick(&[1, 1, 2]) {
            let rank = random.pick(&[1, 1, 2, 3]);
            other_grid(random, program, rank, if rank == 1 { 30 } else { 6 });
        }
    }
    (homes, program.grids.len() - homes)
}

/// A grid with sizes of its own.
fn other_grid(random: &mut Random, program: &mut Program, rank: usize, most: i64) {
    let mut grid = Region { lower: Vec::new(), upper: Vec::new() };
    // A long line's size would make a square of millions of cells.
    let is_small = |place: &usize| program.params[*place].value <= 70;
    let small: Vec<usize> = (0..program.params.len()).filter(is_small).collect();
    for _ in 0..rank {
        let least = i64::from(!random.percent(3));
        let extent = random.range(least, most.max(1));
        let lower = if random.percent(70) { 0 } else { random.range(-5, 5) };
        let known = random.pick(&[Known::Run, Known::Run, Known::Define, Known::File]);
        let length = match random.below(5) {
            0 => Affine::number(extent.max(1)),
            1 if !small.is_empty() => {
                Affine { constant: random.range(0, 2), term: Some((random.pick(&small), 1)) }
            }
            2 => {
                program.params.push(Param { value: extent / 2, known });
                Affine { constant: extent % 2, term: Some((program.params.len() - 1, 2)) }
            }
            _ => {
                program.params.push(Param { value: extent, known });
                Affine { constant: 0, term: Some((program.params.len() - 1, 1)) }
            }
        };
        grid.lower.push(Affine::number(lower));
        grid.upper.push(length.plus(lower - 1));
    }
    program.grids.push(grid);
}

/// Which types the fields of a program have: one of the floats, both, or any.
#[derive(Clone, Copy)]
enum Mixture {
    One(Element),
    Floats,
    Any,
}

fn element(random: &mut Random, mixture: Mixture) -> Element {
    match mixture {
        Mixture::One(element) => element,
        Mixture::Floats => random.pick(&[Element::F32, Element::F64]),
        Mixture::Any => random.pick(&Element::ALL),
    }
}

/// Structs and fields. The first field is a state on the first grid.
fn fields(random: &mut Random, program: &mut Program, homes: usize, tables: usize) {
    let mixture = match random.below(12) {
        0..4 => Mixture::One(Element::F32),
        4 | 5 => Mixture::One(Element::F64),
        6 => Mixture::One(random.pick(&Element::ALL)),
        7 | 8 => Mixture::Floats,
        _ => Mixture::Any,
    };
    let aggregates =
        if random.percent(30) { aggregates::types(random, program, mixture) } else { Vec::new() };
    for (role, count) in [
        (Role::State, random.pick(&[1, 1, 1, 2, 2, 3])),
        (Role::Const, random.pick(&[0, 0, 0, 1, 1, 2])),
        (Role::Temp, random.pick(&[0, 0, 0, 1, 1, 2])),
    ] {
        for _ in 0..count {
            let grid = if program.fields.is_empty() || random.percent(25) {
                0
            } else {
                random.below(homes)
            };
            let ty = cell_type(random, &aggregates, mixture);
            program.fields.push(Field { role, ty, grid, rule: None });
        }
    }
    for table in 0..tables {
        let ty = cell_type(random, &aggregates, mixture);
        program.fields.push(Field { role: Role::Const, ty, grid: homes + table, rule: None });
    }
}

fn cell_type(random: &mut Random, aggregates: &[Type], mixture: Mixture) -> Type {
    match aggregates {
        [_, ..] if random.percent(50) => random.pick(aggregates),
        _ if random.percent(8) => Type::Bool,
        _ => Type::Number(element(random, mixture)),
    }
}

fn scalar(random: &mut Random) -> Scalar {
    let element = match random.percent(60) {
        true => random.pick(&[Element::F32, Element::F64]),
        false => random.pick(&Element::ALL),
    };
    let value = match element.is_float() {
        true => random.pick(&[0.0, 0.1, 0.25, 0.5, 1.0, 1.5]),
        false if element.size() < 4 => random.pick(&[0.0, 1.0, 2.0, 3.0, 100.0, 127.0]),
        false => random.pick(&[0.0, 1.0, 2.0, 3.0, 100.0, 2147483647.0]),
    };
    Scalar { element, value, given: random.percent(50) }
}

/// Boundary rules for most fields.
fn rules(random: &mut Random, program: &mut Program) {
    for place in 0..program.fields.len() {
        let field = &program.fields[place];
        let rule = match random.below(12) {
            0..=2 => Rule::Nearest,
            3..=5 => Rule::Periodic,
            6..=8 => Rule::Reflect,
            9 | 10 => {
                let mut scope = Scope::of_rule(program, program.grid_of(place).rank(), field.ty);
                Rule::Value(value(random, &mut scope, field.ty))
            }
            _ => continue,
        };
        program.fields[place].rule = Some(rule);
    }
}

/// Repeats some functions of a program, if it is one of so many in a hundred.
fn repeats(random: &mut Random, program: &mut Program, percent: usize) {
    let count = program.functions.len();
    if !random.percent(percent) {
        return;
    }
    let first = random.below(count);
    let length = random.range(1, (count - first) as i64) as usize;
    program.repeats.push((first, length, random.pick(&[1, 2, 3, 4, 5, 7])));
    if random.percent(30) {
        // Some of them are repeated within.
        let from = random.below(length);
        let inner = random.range(1, (length - from) as i64) as usize;
        program.repeats.push((first + from, inner, random.range(1, 4)));
        program.steps = program.steps.min(2);
    }
    let behind = first + length;
    if behind < count && random.percent(50) {
        program.repeats.push((behind, count - behind, random.range(1, 4)));
    }
    program.steps = program.steps.min(5);
}

fn functions(random: &mut Random, program: &mut Program) {
    let updatable: Vec<usize> = (0..program.fields.len())
        .filter(|place| program.fields[*place].role != Role::Const)
        .collect();
    let count = random.pick(&[1, 1, 1, 2, 2, 3]);
    let mut order: Vec<usize> = (0..count).map(|_| random.pick(&updatable)).collect();
    if !order.iter().any(|place| program.fields[*place].role == Role::State) {
        order[count - 1] = 0;
    }
    if random.percent(80) {
        order.sort_by_key(|place| program.fields[*place].role != Role::Temp);
    }
    let ruled = program.fields.iter().any(|field| field.rule.is_some());
    for first in order {
        let mut updates = vec![first];
        // Pieces lie in the grids of all of them, so these must compare.
        let mut others: Vec<usize> = updatable
            .iter()
            .copied()
            .filter(|place| {
                *place != first && program.grid_of(*place).is_like(program.grid_of(first))
            })
            .collect();
        while !others.is_empty() && updates.len() < 3 && random.percent(25) {
            updates.push(random.pick(&others));
            others.retain(|place| !updates.contains(place));
        }
        let common = common(program, &updates);
        let extents: Vec<i64> =
            common.bounds(&program.params).iter().map(|(first, last)| last - first + 1).collect();
        let mut pieces: Vec<_> = boxes(random, &extents, ruled)
            .into_iter()
            .map(|corners| piece(random, program, &updates, &common, &corners))
            .collect();
        handed_on::hand_on(random, program, &updates, &mut pieces);
        program.functions.push(Function { updates, pieces });
    }
}
