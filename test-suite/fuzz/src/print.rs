//! The text of a program.

use crate::model::*;
use std::fmt::Write;

/// Names of coordinates in pieces, and in boundary rules.
const COORDINATES: [&str; 3] = ["i", "j", "k"];
const OUTSIDE: [&str; 3] = ["x0", "x1", "x2"];

/// The name of a field: a letter, though not the first of a grid's.
pub fn field_name(place: usize) -> String {
    "ABCDEFHJKLM".get(place..=place).map_or_else(|| format!("A{place}"), str::to_owned)
}

/// The name of a lane or a member.
pub fn part_name(of: Type, place: usize) -> String {
    if matches!(of, Type::Struct(_)) { format!("m{place}") } else { place.to_string() }
}

/// The name of a type.
pub fn type_name(ty: Type) -> String {
    match ty {
        Type::Number(element) => element.name().to_owned(),
        Type::Bool => "bool".to_owned(),
        Type::Vec(lanes, element) => format!("vec<{lanes}, {}>", element.name()),
        Type::Struct(place) => format!("S{place}"),
        Type::Structs(lanes, place) => format!("vec<{lanes}, S{place}>"),
    }
}

fn affine(bound: &Affine) -> String {
    let Some((param, coefficient)) = bound.term else { return bound.constant.to_string() };
    let product =
        if coefficient == 1 { format!("P{param}") } else { format!("{coefficient}*P{param}") };
    match bound.constant {
        0 => product,
        constant => format!("{product}{constant:+}"),
    }
}

/// A box, with names of coordinates where they are used.
fn region(region: &Region, named: bool) -> String {
    let bounds = region.lower.iter().zip(&region.upper).zip(COORDINATES);
    let ranges: Vec<_> = bounds
        .map(|((lower, upper), name)| {
            let name = if named { format!("{name} in ") } else { String::new() };
            let (first, last) = (affine(lower), affine(upper));
            if lower == upper { name + &first } else { format!("{name}{first}..{last}") }
        })
        .collect();
    format!("[{}]", ranges.join(", "))
}

fn expression(expr: &Expr, coordinates: &[&str; 3]) -> String {
    let text = |part: &Expr| expression(part, coordinates);
    let list = |parts: &[Expr]| parts.iter().map(text).collect::<Vec<_>>().join(", ");
    match &expr.kind {
        Kind::Number(value, typed) => {
            let bare = match expr.ty {
                Type::Number(element) => number_text(element, *value),
                _ => value.to_string(),
            };
            if *typed { format!("{}({bare})", type_name(expr.ty)) } else { bare }
        }
        Kind::Read(field, offset) | Kind::Current(field, offset) => {
            let prime = if matches!(expr.kind, Kind::Current(..)) { "'" } else { "" };
            let offset: Vec<_> = offset.iter().map(i64::to_string).collect();
            format!("{}{prime}[{}]", field_name(*field), offset.join(", "))
        }
        Kind::Gather(field, at) => format!("{}({})", field_name(*field), list(at)),
        Kind::Scalar(place) => format!("s{place}"),
        Kind::Reduction(place) => format!("r{place}"),
        Kind::Param(place) => format!("P{place}"),
        Kind::Coordinate(dimension) => coordinates[*dimension].to_owned(),
        Kind::Step => "t".to_owned(),
        Kind::Nearest => "nearest".to_owned(),
        Kind::Whole(parts) if matches!(expr.ty, Type::Struct(_)) => {
            let members = parts.iter().enumerate();
            let members: Vec<_> =
                members.map(|(place, part)| format!("m{place}: {}", text(part))).collect();
            format!("{} {{ {} }}", type_name(expr.ty), members.join(", "))
        }
        Kind::Whole(parts) => format!("vec({})", list(parts)),
        Kind::Part(whole, place) => format!("{}.{}", text(whole), part_name(whole.ty, *place)),
        Kind::Local(number) => format!("v{number}"),
        Kind::Unary(operator, a) => format!("({operator}{})", text(a)),
        Kind::Binary(operator, a, b) => format!("({} {operator} {})", text(a), text(b)),
        Kind::If(parts) => {
            format!("(if {} then {} else {})", text(&parts[0]), text(&parts[1]), text(&parts[2]))
        }
        Kind::Let(number, value, body) => {
            format!("{{ let v{number} = {}; {} }}", text(value), text(body))
        }
        Kind::Called(place, arguments) => format!("g{place}({})", list(arguments)),
        Kind::Call(function, arguments) => format!("{function}({})", list(arguments)),
        Kind::Cast(a) => format!("{}({})", type_name(expr.ty), text(a)),
    }
}

fn piece(piece: &Piece) -> String {
    let mut named = false;
    for value in piece.exprs() {
        value.visit(&mut |part| named |= matches!(part.kind, Kind::Coordinate(_)));
    }
    let values: Vec<_> = piece.values.iter().map(|value| expression(value, &COORDINATES)).collect();
    let values =
        if values.len() == 1 { values.concat() } else { format!("({})", values.join(",\n      ")) };
    let mut lets = String::new();
    for (number, value) in &piece.lets {
        let _ = write!(lets, "let v{number} = {}; ", expression(value, &COORDINATES));
    }
    let region = region(&piece.region, named);
    if lets.is_empty() {
        return format!("{region} = {values}");
    }
    format!("{region} = {{ {lets}{values} }}")
}

/// A function, named by its place.
fn write_function(place: usize, function: &Function, text: &mut String) {
    let updates: Vec<_> = function.updates.iter().map(|field| field_name(*field)).collect();
    let updates =
        if updates.len() == 1 { updates.concat() } else { format!("({})", updates.join(", ")) };
    match function.pieces.as_slice() {
        [only] => drop(writeln!(text, "fn f{place} -> {updates} {}", piece(only))),
        pieces => {
            let _ = writeln!(text, "fn f{place} -> {updates} {{");
            for part in pieces {
                let _ = writeln!(text, "  {}", piece(part));
            }
            *text += "}\n";
        }
    }
}

impl Program {
    /// The program's text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for (place, param) in self.params.iter().enumerate() {
            let value = if param.known == Known::File {
                format!(" = {}", param.value)
            } else {
                String::new()
            };
            let _ = writeln!(text, "param P{place}{value}");
        }
        for (place, scalar) in self.scalars.iter().enumerate() {
            let value = if scalar.given { String::new() } else { format!(" = {}", scalar.text()) };
            let _ = writeln!(text, "scalar s{place} : {}{value}", scalar.element.name());
        }
        for (place, members) in self.structs.iter().enumerate() {
            let members = members.iter().enumerate();
            let members: Vec<_> =
                members.map(|(place, ty)| format!("m{place} : {}", type_name(*ty))).collect();
            let _ = writeln!(text, "struct S{place} {{ {} }}", members.join(", "));
        }
        for (place, grid) in self.grids.iter().enumerate() {
            let _ = writeln!(text, "grid G{place} = {}", region(grid, false));
        }
        for (place, field) in self.fields.iter().enumerate() {
            let role = match field.role {
                Role::State => "",
                Role::Const => "const ",
                Role::Temp => "temp ",
            };
            let (name, ty) = (field_name(place), type_name(field.ty));
            let _ = writeln!(text, "{role}field {name} : {ty} on G{}", field.grid);
            let rule = match &field.rule {
                None => continue,
                Some(Rule::Nearest) => "nearest".to_owned(),
                Some(Rule::Periodic) => "periodic".to_owned(),
                Some(Rule::Reflect) => "reflect".to_owned(),
                Some(Rule::Value(value)) => expression(value, &OUTSIDE),
            };
            let _ = writeln!(text, "boundary {name} = {rule}");
        }
        for (place, (count, body)) in self.lets.iter().enumerate() {
            let parameters: Vec<_> = crate::outline::parameters(*count).collect();
            let body = expression(body, &COORDINATES);
            let _ = writeln!(text, "let g{place}({}) = {body}", parameters.join(", "));
        }
        for (place, function) in self.functions.iter().enumerate() {
            self.reductions_at(place, false, &mut text);
            for (.., times) in self.repeats.iter().filter(|(first, ..)| *first == place) {
                let _ = writeln!(text, "repeat {times} {{");
            }
            write_function(place, function, &mut text);
            self.reductions_at(place + 1, true, &mut text);
            text += &"}\n".repeat(self.repeats_before(place + 1));
        }
        self.reductions_at(self.functions.len(), false, &mut text);
        let _ = write!(text, "steps {}", self.steps);
        if let Some((condition, every)) = &self.until {
            let condition = expression(condition, &COORDINATES);
            let _ = write!(text, " until {condition} every {every}");
        }
        text + "\n"
    }

    /// How many repetitions end behind so many functions.
    fn repeats_before(&self, functions: usize) -> usize {
        let all = self.functions.len();
        let ends = |(first, count, _): &&(usize, usize, i64)| {
            *first < functions && functions == all.min(first + count)
        };
        self.repeats.iter().filter(ends).count()
    }

    /// The reductions behind so many functions, in the repetitions that end there or behind them;
    /// the last ones are behind all.
    fn reductions_at(&self, functions: usize, within: bool, text: &mut String) {
        let all = self.functions.len();
        let own = self.reductions.iter().enumerate();
        let ends = self.repeats_before(functions) > 0;
        let here =
            |one: &Reduction| one.place.min(all) == functions && (one.within && ends) == within;
        for (number, one) in own.filter(|(_, one)| here(one)) {
            let ty = type_name(one.ty);
            let mut named = false;
            one.piece.values[0]
                .visit(&mut |part| named |= matches!(part.kind, Kind::Coordinate(_)));
            let value = expression(&one.piece.values[0], &COORDINATES);
            let points = region(&one.piece.region, named);
            let operation = one.operation;
            let _ = write!(text, "reduce r{number} : {ty} = {operation}({value}) on {points}");
            let initial = one.initial.map(|value| match one.ty {
                Type::Number(element) => number_text(element, value),
                _ => format!("{value}"),
            });
            let _ =
                writeln!(text, "{}", initial.map_or(String::new(), |v| format!(" initially {v}")));
        }
    }
}
