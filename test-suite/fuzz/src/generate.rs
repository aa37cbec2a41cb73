//! Cases from a seed.
//!
//! Sizes are chosen first, so that pieces and offsets can be valid for them; the bounds are then
//! written in terms of params. Most pieces stay where the compiler can prove their reads for all
//! sizes. Some don't, to meet its checks and refusals.

use crate::model::*;
use crate::random::Random;
use stencil_passes::registry;
use stencil_runtime::array::Element;

/// The case of a seed and a number.
pub fn case(seed: u64, index: u64) -> Case {
    let mut random = Random::of_case(seed, index);
    let rank = random.pick(&[1, 1, 1, 2, 2, 2, 2, 3, 3]);
    let ruled = random.percent(45);
    let most = if ruled && random.percent(50) { [7, 7, 5] } else { [70, 70, 24] };
    let (params, grid) = sizes(&mut random, rank, most[rank - 1]);
    let (fields, temps_first) = fields(&mut random);
    let scalars = (0..random.pick(&[0, 0, 1, 2])).map(|_| scalar(&mut random)).collect();
    let mut program = Program { params, scalars, grid, fields, functions: Vec::new(), steps: steps(&mut random) };
    if ruled {
        rules(&mut random, &mut program);
    }
    functions(&mut random, &mut program, temps_first);
    let mut schedules = vec![schedule(&mut random, &program)];
    if random.percent(25) {
        schedules.push(schedule(&mut random, &program));
    }
    Case {
        schedules,
        data: Data { seed: random.below(1000) as u64, rough: random.percent(15) },
        order: random.percent(50).then(|| random.below(1000) as u64),
        steps_given: random.percent(30),
        round_trip: random.percent(40),
        transpose: rank > 1 && random.percent(20),
        shift: random.percent(15).then(|| (0..rank).map(|_| random.range(-9, 9)).collect()),
        ptx: random.percent(3),
        program,
    }
}

fn steps(random: &mut Random) -> i64 {
    random.pick(&[0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9])
}

/// Params and a grid whose extents lie from 0 to `most`, or a few more.
fn sizes(random: &mut Random, rank: usize, most: i64) -> (Vec<Param>, Region) {
    let known = random.pick(&[None, Some(Known::Run), Some(Known::Run), Some(Known::Define), Some(Known::File)]);
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

/// The fields, and whether functions update temp fields before others.
fn fields(random: &mut Random) -> (Vec<Field>, bool) {
    let mixture = match random.below(12) {
        0..4 => Mixture::One(Element::F32),
        4 | 5 => Mixture::One(Element::F64),
        6 => Mixture::One(random.pick(&Element::ALL)),
        7 | 8 => Mixture::Floats,
        _ => Mixture::Any,
    };
    let mut fields = Vec::new();
    for (role, count) in [
        (Role::State, random.pick(&[1, 1, 1, 2, 2, 3])),
        (Role::Const, random.pick(&[0, 0, 0, 1, 1, 2])),
        (Role::Temp, random.pick(&[0, 0, 0, 1, 1, 2])),
    ] {
        for _ in 0..count {
            fields.push(Field { role, element: element(random, mixture), rule: None });
        }
    }
    (fields, random.percent(80))
}

fn scalar(random: &mut Random) -> Scalar {
    let element = match random.percent(60) {
        true => random.pick(&[Element::F32, Element::F64]),
        false => random.pick(&Element::ALL),
    };
    let value = match element.is_float() {
        true => random.pick(&[0.0, 0.1, 0.25, 0.5, 1.0, 1.5]),
        false => random.pick(&[0.0, 1.0, 2.0, 3.0, 100.0, 2147483647.0]),
    };
    Scalar { element, value, given: random.percent(50) }
}

/// Boundary rules for most fields.
fn rules(random: &mut Random, program: &mut Program) {
    for place in 0..program.fields.len() {
        let rule = match random.below(12) {
            0..=2 => Rule::Nearest,
            3..=5 => Rule::Periodic,
            6..=8 => Rule::Reflect,
            9 | 10 => {
                let ty = Type::Number(program.fields[place].element);
                let mut scope =
                    Scope { program, offsets: Vec::new(), locals: Vec::new(), next_local: 0, nearest: Some(ty) };
                Rule::Value(value(random, &mut scope, ty))
            }
            _ => continue,
        };
        program.fields[place].rule = Some(rule);
    }
}

fn functions(random: &mut Random, program: &mut Program, temps_first: bool) {
    let mut updatable: Vec<usize> =
        (0..program.fields.len()).filter(|place| program.fields[*place].role != Role::Const).collect();
    let count = random.pick(&[1, 1, 1, 2, 2, 3]);
    let mut order: Vec<usize> = (0..count).map(|_| random.pick(&updatable)).collect();
    if !order.iter().any(|place| program.fields[*place].role == Role::State) {
        order[count - 1] = 0;
    }
    if temps_first {
        order.sort_by_key(|place| program.fields[*place].role != Role::Temp);
    }
    for first in order {
        let mut updates = vec![first];
        updatable.retain(|place| *place != first);
        while !updatable.is_empty() && updates.len() < 3 && random.percent(25) {
            updates.push(random.pick(&updatable));
            updatable.retain(|place| !updates.contains(place));
        }
        updatable = (0..program.fields.len()).filter(|place| program.fields[*place].role != Role::Const).collect();
        let ruled = program.fields.iter().any(|field| field.rule.is_some());
        let pieces = boxes(random, program.rank(), ruled)
            .into_iter()
            .map(|corners| piece(random, program, &updates, &corners))
            .collect();
        program.functions.push(Function { updates, pieces });
    }
}

/// An end of a box: so far above the grid's lower end, or so far below its upper one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Low(i64),
    High(i64),
}

type Corners = Vec<(End, End)>;

/// Disjoint boxes.
fn boxes(random: &mut Random, rank: usize, ruled: bool) -> Vec<Corners> {
    let usual = i64::from(!ruled || random.percent(20));
    let margin = |random: &mut Random| if random.percent(60) { usual } else { random.range(0, 5 * usual) };
    let whole: Corners = (0..rank).map(|_| (End::Low(margin(random)), End::High(margin(random)))).collect();
    let mut boxes = vec![whole];
    if !random.percent(40) {
        return boxes;
    }
    // Boxes cut off both ends of a dimension may meet at small sizes; that is decided only where
    // sizes are known.
    let both_ends = random.percent(15);
    let sides: Vec<bool> = (0..rank).map(|_| random.percent(50)).collect();
    for _ in 0..random.range(1, 4) {
        let (place, dimension) = (random.below(boxes.len()), random.below(rank));
        let width = random.pick(&[1, 1, 2, 3, 8]);
        let (lower, upper) = boxes[place][dimension];
        let low = if both_ends { random.percent(50) } else { sides[dimension] };
        let cut = match (lower, upper, low) {
            (End::Low(first), End::High(_), true) => (End::Low(first + width - 1), End::Low(first + width)),
            (End::Low(_), End::High(last), false) => (End::High(last + width), End::High(last + width - 1)),
            (End::Low(first), End::Low(last), _) if first < last => (End::Low(first), End::Low(first + 1)),
            (End::High(first), End::High(last), _) if first > last => (End::High(last + 1), End::High(last)),
            _ => continue,
        };
        let mut second = boxes[place].clone();
        boxes[place][dimension].1 = cut.0;
        second[dimension].0 = cut.1;
        boxes.push(second);
    }
    let keep = random.below(boxes.len());
    let mut place = 0;
    boxes.retain(|_| {
        place += 1;
        place == keep + 1 || !random.percent(25)
    });
    // The order of pieces in a file has no meaning.
    let turn = random.below(boxes.len());
    boxes.rotate_left(turn);
    boxes
}

/// What an expression may use.
struct Scope<'p> {
    program: &'p Program,
    /// Smallest and largest offset of each dimension.
    offsets: Vec<(i64, i64)>,
    locals: Vec<(usize, Type)>,
    next_local: usize,
    /// In a boundary rule: the type of the nearest cell, the only one that it reads.
    nearest: Option<Type>,
}

fn piece(random: &mut Random, program: &Program, updates: &[usize], corners: &Corners) -> Piece {
    let mut region = Region { lower: Vec::new(), upper: Vec::new() };
    let mut offsets = Vec::new();
    for (dimension, (lower, upper)) in corners.iter().enumerate() {
        let (first, last) = (program.grid.lower[dimension], program.grid.upper[dimension]);
        let place = |end: &End| match end {
            End::Low(distance) => first.plus(*distance),
            End::High(distance) => last.plus(-distance),
        };
        let (low, high) = (place(lower), place(upper));
        region.lower.push(low);
        region.upper.push(high);
        // Offsets that are right for all sizes; sometimes those that are right for these.
        let fixed = last.term.is_none_or(|(param, _)| program.params[param].known != Known::Run);
        let daring = random.percent(if fixed { 70 } else { 15 });
        let room = |points: i64| if daring { points.clamp(0, 4) } else { 0 };
        let before = match lower {
            End::Low(distance) => (*distance).min(4),
            End::High(_) => room(low.value(&program.params) - first.value(&program.params)),
        };
        let after = match upper {
            End::High(distance) => (*distance).min(4),
            End::Low(_) => room(last.value(&program.params) - high.value(&program.params)),
        };
        offsets.push((-before, after));
    }
    let mut scope = Scope { program, offsets, locals: Vec::new(), next_local: 0, nearest: None };
    let values =
        updates.iter().map(|field| value(random, &mut scope, Type::Number(program.fields[*field].element))).collect();
    Piece { region, values }
}

/// The new value of a field: a mean of neighbours, or anything, mostly kept from growing.
fn value(random: &mut Random, scope: &mut Scope, ty: Type) -> Expr {
    if ty.is_float() && random.percent(40) {
        let count = random.range(2, 6);
        let mut sum = read(random, scope, ty);
        for _ in 1..count {
            let term = read(random, scope, ty);
            sum = binary(random.pick(&["+", "+", "+", "-"]), ty, sum, term);
        }
        let weight = random.pick(&[0.25, 0.2, 0.1, 0.3333]);
        return binary("*", ty, number(ty, weight), sum);
    }
    let depth = random.range(1, 4);
    let any = expression(random, scope, ty, depth);
    if !random.percent(70) {
        return any;
    }
    let (low, high) = if ty.is_float() { (-4.0, 4.0) } else { (0.0, 1000.0) };
    call("min", ty, vec![call("max", ty, vec![any, number(ty, low)]), number(ty, high)])
}

fn number(ty: Type, value: f64) -> Expr {
    Expr { ty, kind: Kind::Number(value, false) }
}

fn binary(operator: &'static str, ty: Type, a: Expr, b: Expr) -> Expr {
    Expr { ty, kind: Kind::Binary(operator, Box::new(a), Box::new(b)) }
}

fn call(function: &'static str, ty: Type, arguments: Vec<Expr>) -> Expr {
    Expr { ty, kind: Kind::Call(function, arguments) }
}

fn cast(ty: Type, of: Expr) -> Expr {
    Expr { ty, kind: Kind::Cast(Box::new(of)) }
}

/// A cell as a number of a type.
fn read(random: &mut Random, scope: &Scope, ty: Type) -> Expr {
    let place = random.below(scope.program.fields.len());
    let near = random.percent(60);
    let field = &scope.program.fields[place];
    let anywhere = field.rule.is_some();
    let offset = scope
        .offsets
        .iter()
        .map(|bounds| {
            let (first, last) = if anywhere { (-4, 4) } else { *bounds };
            if near { random.range(first.max(-1), last.min(1)) } else { random.range(first, last) }
        })
        .collect();
    let (of, kind) = match scope.nearest {
        Some(of) => (of, Kind::Nearest),
        None => (Type::Number(field.element), Kind::Read(place, offset)),
    };
    let read = Expr { ty: of, kind };
    if of == ty { read } else { cast(ty, read) }
}

fn leaf(random: &mut Random, scope: &Scope, ty: Type) -> Expr {
    let locals: Vec<_> = scope.locals.iter().filter(|(_, of)| *of == ty).map(|(number, _)| *number).collect();
    if !locals.is_empty() && random.percent(60) {
        return Expr { ty, kind: Kind::Local(random.pick(&locals)) };
    }
    let Type::Number(element) = ty else {
        let of = some_type(random);
        let (a, b) = (leaf(random, scope, of), leaf(random, scope, of));
        return binary(random.pick(&["<", "<=", ">", ">=", "==", "!="]), ty, a, b);
    };
    let scalars: Vec<_> =
        (0..scope.program.scalars.len()).filter(|place| scope.program.scalars[*place].element == element).collect();
    if !scalars.is_empty() && random.percent(25) {
        return Expr { ty, kind: Kind::Scalar(random.pick(&scalars)) };
    }
    if element.is_float() {
        if random.percent(20) {
            let value = random.pick(&[0.0, 0.5, 1.0, 2.0, 0.1, 3.0, 1.7, 1e-3]);
            return Expr { ty, kind: Kind::Number(value, true) };
        }
        return read(random, scope, ty);
    }
    if random.percent(25) {
        return read(random, scope, ty);
    }
    if ty != Type::INDEX {
        if random.percent(50) {
            return cast(ty, leaf(random, scope, Type::INDEX));
        }
        let least = if element.is_unsigned() { 0 } else { -3 };
        return Expr { ty, kind: Kind::Number(random.range(least, 9) as f64, true) };
    }
    match random.below(5) {
        0 | 1 => Expr { ty, kind: Kind::Coordinate(random.below(scope.program.rank())) },
        2 => Expr { ty, kind: Kind::Step },
        3 if !scope.program.params.is_empty() => {
            Expr { ty, kind: Kind::Param(random.below(scope.program.params.len())) }
        }
        _ => Expr { ty, kind: Kind::Number(random.range(-3, 9) as f64, true) },
    }
}

/// A number type; the common ones more often.
fn some_type(random: &mut Random) -> Type {
    let common = [Element::F32, Element::F64, Element::I64];
    Type::Number(if random.percent(50) { random.pick(&common) } else { random.pick(&Element::ALL) })
}

fn expression(random: &mut Random, scope: &mut Scope, ty: Type, depth: i64) -> Expr {
    if depth <= 0 || random.percent(8) {
        return leaf(random, scope, ty);
    }
    let deeper = depth - 1;
    match random.below(20) {
        0 | 1 => {
            let condition = expression(random, scope, Type::Bool, deeper);
            let (yes, no) = (expression(random, scope, ty, deeper), expression(random, scope, ty, deeper));
            Expr { ty, kind: Kind::If(Box::new([condition, yes, no])) }
        }
        2 | 3 => {
            let of = match random.below(4) {
                0 => ty,
                1 => Type::Bool,
                _ => some_type(random),
            };
            let bound = expression(random, scope, of, deeper);
            let number = scope.next_local;
            scope.next_local += 1;
            scope.locals.push((number, of));
            let body = expression(random, scope, ty, deeper);
            scope.locals.pop();
            Expr { ty, kind: Kind::Let(number, Box::new(bound), Box::new(body)) }
        }
        _ => match ty {
            Type::Bool => condition(random, scope, deeper),
            Type::Number(element) if element.is_float() => float(random, scope, ty, deeper),
            Type::Number(_) => integer(random, scope, ty, deeper),
        },
    }
}

fn condition(random: &mut Random, scope: &mut Scope, deeper: i64) -> Expr {
    let ty = Type::Bool;
    match random.below(4) {
        0 => Expr { ty, kind: Kind::Unary("!", Box::new(expression(random, scope, ty, deeper))) },
        1 => {
            let (a, b) = (expression(random, scope, ty, deeper), expression(random, scope, ty, deeper));
            binary(random.pick(&["&&", "||"]), ty, a, b)
        }
        _ => {
            let of = some_type(random);
            let (a, b) = (expression(random, scope, of, deeper), expression(random, scope, of, deeper));
            binary(random.pick(&["<", "<=", ">", ">=", "==", "!="]), ty, a, b)
        }
    }
}

fn integer(random: &mut Random, scope: &mut Scope, ty: Type, deeper: i64) -> Expr {
    let a = expression(random, scope, ty, deeper);
    match random.below(8) {
        0 | 1 => {
            let b = expression(random, scope, ty, deeper.min(1));
            // A literal 0 is refused.
            let b = if matches!(b.kind, Kind::Number(..)) { number(ty, 3.0) } else { b };
            binary(random.pick(&["/", "%"]), ty, a, b)
        }
        2 => call(random.pick(&["min", "max"]), ty, vec![a, expression(random, scope, ty, deeper)]),
        3 => Expr { ty, kind: Kind::Unary("-", Box::new(a)) },
        4 => {
            let from = some_type(random);
            cast(ty, expression(random, scope, from, deeper))
        }
        5 => call("abs", ty, vec![a]),
        _ => binary(random.pick(&["+", "-", "*"]), ty, a, expression(random, scope, ty, deeper)),
    }
}

fn float(random: &mut Random, scope: &mut Scope, ty: Type, deeper: i64) -> Expr {
    let a = expression(random, scope, ty, deeper);
    match random.below(16) {
        0 | 1 => call(random.pick(&["min", "max"]), ty, vec![a, expression(random, scope, ty, deeper)]),
        2 => call(random.pick(&["sqrt", "abs", "abs", "floor", "ceil", "rsqrt"]), ty, vec![a]),
        3 => call("sqrt", ty, vec![call("abs", ty, vec![a])]),
        4 => {
            let (b, c) = (expression(random, scope, ty, deeper), expression(random, scope, ty, deeper));
            call("fma", ty, vec![a, b, c])
        }
        5 => Expr { ty, kind: Kind::Unary("-", Box::new(a)) },
        6 => {
            let from = some_type(random);
            cast(ty, expression(random, scope, from, deeper))
        }
        7 => binary(random.pick(&["/", "/", "%"]), ty, a, expression(random, scope, ty, deeper)),
        8 => binary(random.pick(&["+", "*", "-", "/"]), ty, a, number(ty, random.pick(&[0.5, 2.0, 0.1, 3.0]))),
        _ => binary(random.pick(&["+", "+", "-", "-", "*"]), ty, a, expression(random, scope, ty, deeper)),
    }
}

/// Parts of expressions, times the steps and the cells of a thread, that a kernel may hold.
const LARGEST: i64 = 800;

/// A schedule of the strategy `stream` or `warp`, whose tiles fit a warp or a block with their halo.
fn lanes_schedule(random: &mut Random, program: &Program, strategy: &'static str) -> Schedule {
    let rank = program.rank();
    let (lane, rows) = (random.pick(&[1, 2, 3, 4, 4]), if rank == 3 { random.pick(&[1, 2, 2, 3]) } else { 1 });
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
    // A loop's body holds several planes.
    let cells = size(program) as i64 * lane * rows * 4;
    while height > 1 && (cells * height > LARGEST || lane * 32 - reach * height < lane) {
        height -= 1;
    }
    let columns = random.range(1, (lane * 32 - reach * height) / lane) * lane;
    let (tile, per_thread) = match program.rank() {
        1 => (vec![columns], vec![lane]),
        2 => (vec![random.range(1, 24), columns], vec![1, lane]),
        _ => (vec![random.range(1, 24), random.range(1, 12), columns], vec![1, rows, lane]),
    };
    Schedule {
        strategy,
        tile: Some(tile),
        height: Some(height),
        per_thread: Some(per_thread),
        no_split: random.percent(10),
    }
}

/// Parts of all expressions.
fn size(program: &Program) -> usize {
    program.functions.iter().flat_map(|function| &function.pieces).flat_map(|piece| &piece.values).map(Expr::size).sum()
}

/// A schedule that mostly fits a block. What does not is refused.
fn schedule(random: &mut Random, program: &Program) -> Schedule {
    let rank = program.rank();
    let of_rank = [Some("warp"), Some("stream"), Some("stream")][rank - 1];
    // These refuse boundary rules; a few cases see to it that they do.
    let ruled = program.fields.iter().any(|field| field.rule.is_some()) && !random.percent(5);
    let of_rank = of_rank.filter(|strategy| !ruled && registry::find(&format!("lower-{strategy}")).is_some());
    let strategy = match of_rank {
        _ if random.percent(25) => "naive",
        Some(strategy) if random.percent(50) => strategy,
        _ => "block",
    };
    if Some(strategy) == of_rank && random.percent(90) {
        return lanes_schedule(random, program, strategy);
    }
    if Some(strategy) == of_rank || random.percent(6) {
        return Schedule { strategy, tile: None, height: None, per_thread: None, no_split: false };
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
    let per_thread: Vec<i64> = (0..rank).map(|_| random.pick(&[1, 1, 1, 2, 3, 4])).collect();
    let mut height = if strategy == "naive" { 1 } else { random.pick(&[1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6]) };
    // Large kernels take long to compile and say little more.
    while height > 1 && size(program) as i64 * height * per_thread.iter().product::<i64>() > LARGEST {
        height -= 1;
    }
    let per_thread = random.percent(70).then_some(per_thread);
    Schedule { strategy, tile: Some(tile), height: Some(height), per_thread, no_split: random.percent(10) }
}
