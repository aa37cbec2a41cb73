//! Random functions of affine loops: imperfect nests, several statements, shifts, triangles,
//! reductions, values that cross loops, and several outermost loops.
//!
//! Sizes are known here, so that each index is moved into its array. A few arrays are a cell too
//! short: interpreter and plan must both refuse them. Some sizes are negative, and the array `L`
//! has extents of its own, which `memref.dim` asks for. Arrays of integers are divided by those of
//! `i32`, whose cells are never 0. Some arrays of `f32` are allocated by the function.

mod products;
mod values;

use crate::random::Random;
use std::fmt::Write;

/// A function with what it runs on.
#[derive(Clone, Debug, PartialEq)]
pub struct Nest {
    /// The module's text.
    pub text: String,
    /// Sizes by name.
    pub sizes: Vec<(String, i64)>,
    /// Shapes of arrays by name.
    pub arrays: Vec<(String, Vec<usize>)>,
    /// The seed of the data.
    pub data: u64,
    /// Whether it is compiled to PTX too.
    pub ptx: bool,
    /// How its loops in time are tiled.
    pub tiles: Tiles,
}

/// How loops in time are tiled.
#[derive(Clone, Debug, PartialEq)]
pub enum Tiles {
    /// Not at all.
    None,
    /// As the compiler chooses.
    Default,
    /// By a list of passes with a shape of its own.
    Passes(String),
}

/// A counter with its least and largest value.
#[derive(Clone, Debug)]
struct Counter {
    name: String,
    first: i64,
    last: i64,
}

struct Buffer {
    name: String,
    element: &'static str,
    /// Cells that the accesses need along each dimension.
    needed: Vec<i64>,
    /// Whether the shape is known before the accesses, which then stay within it.
    exact: bool,
}

struct Writer<'r> {
    random: &'r mut Random,
    body: String,
    sizes: [i64; 4],
    buffers: Vec<Buffer>,
    counters: Vec<Counter>,
    /// Values of type f32 in scope.
    values: Vec<String>,
    names: usize,
    statements: usize,
}

/// Sizes that are arguments, and then the extents of `L`, in the order of `Writer::sizes`.
const SIZE_NAMES: [&str; 4] = ["N", "M", "D0", "D1"];

/// The number of those that are arguments.
const ARGUMENTS: usize = 2;

/// Loops around a statement at most, and statements of a function.
const DEEPEST: usize = 4;
const MOST_STATEMENTS: usize = 7;

/// The function of a number.
pub fn nest(seed: u64, index: u64) -> Nest {
    let random = &mut Random::of_case(seed, index);
    let rows = if random.percent(6) { random.range(-3, -1) } else { random.range(0, 7) };
    let extents = [random.range(1, 5), random.range(1, 5)];
    let sizes = [rows, random.range(1, 6), extents[0], extents[1]];
    let data = random.bits();
    let count = random.range(2, 4);
    let buffers = (0..count).map(|place| Buffer {
        name: format!("A{place}"),
        element: random.pick(&["f32", "f32", "f32", "f32", "f32", "f64", "i32", "i64"]),
        needed: vec![1; random.pick(&[1, 1, 2, 2, 2, 3])],
        exact: false,
    });
    let mut buffers: Vec<Buffer> = buffers.collect();
    let (name, needed) = ("L".to_owned(), extents.to_vec());
    buffers.push(Buffer { name, element: "f32", needed, exact: true });
    let mut writer = Writer {
        random,
        body: String::new(),
        sizes,
        buffers,
        counters: Vec::new(),
        values: vec!["%half".to_owned(), "%s".to_owned()],
        names: 0,
        statements: 0,
    };
    match writer.random.percent(40) {
        true => writer.product(),
        false => writer.repeat(),
    }
    for _ in 0..writer.random.range(0, 2) {
        writer.item();
    }
    if writer.statements == 0 {
        writer.store();
    }
    writer.finished(data)
}

impl Writer<'_> {
    fn fresh(&mut self, word: &str) -> String {
        self.names += 1;
        format!("%{word}{}", self.names)
    }

    fn line(&mut self, text: &str) {
        let indent = "  ".repeat(self.counters.len() + 1);
        let _ = writeln!(self.body, "{indent}{text}");
    }

    /// A loop or a statement.
    fn item(&mut self) {
        let depth = self.counters.len();
        if self.statements >= MOST_STATEMENTS {
            return;
        }
        let chance = [92, 75, 45, 25].get(depth).copied().unwrap_or(0);
        match self.random.below(100) {
            at if at < chance && depth < DEEPEST => self.repeat(),
            at if at > 96 && depth == 0 => self.parallel(),
            at if at > 90 => {
                let value = self.load();
                self.values.push(value);
            }
            _ => self.store(),
        }
    }

    fn block(&mut self) {
        let known = self.values.len();
        let items = self.random.pick(&[1, 1, 2, 2, 3]);
        for _ in 0..items {
            self.item();
        }
        if self.random.percent(40) || self.statements == 0 {
            self.store();
        }
        self.values.truncate(known);
    }

    /// A bound as text with its least and largest value: a constant, a size, or a counter around it
    /// with a shift. `upper` bounds are beyond the last value.
    fn bound(&mut self, upper: bool) -> (String, i64, i64) {
        let shift = self.random.range(-1, 2);
        let shifted = |name: &str| match shift {
            0 => name.to_owned(),
            1.. => format!("{name} + {shift}"),
            _ => format!("{name} - {}", -shift),
        };
        let around = self.counters.len();
        match self.random.below(10) {
            0..=2 if around > 0 => {
                let counter = self.counters[self.random.below(around)].clone();
                let more = i64::from(upper);
                (shifted(&counter.name), counter.first + shift, counter.last + shift + more - more)
            }
            3..=7 if upper => {
                let among = if self.random.percent(70) { ARGUMENTS } else { self.sizes.len() };
                let size = self.random.below(among);
                let value = self.sizes[size] + shift.min(1);
                let name = format!("%{}", SIZE_NAMES[size].to_lowercase());
                let text = match shift.min(1) {
                    0 => name,
                    1 => format!("{name} + 1"),
                    _ => format!("{name} - 1"),
                };
                (text, value, value)
            }
            _ => {
                let value = if upper { self.random.range(1, 5) } else { self.random.range(0, 2) };
                (value.to_string(), value, value)
            }
        }
    }

    /// One or two bounds as the text of a map with its operands, and the hull of their value.
    fn bounds(&mut self, upper: bool) -> (String, i64, i64) {
        let count = if self.random.percent(15) { 2 } else { 1 };
        let mut all: Vec<_> = (0..count).map(|_| self.bound(upper)).collect();
        // Of two constants, upstream's canonicalize may leave no bound at all.
        if all.iter().all(|(text, ..)| text.parse::<i64>().is_ok()) {
            all.truncate(1);
        }
        all.dedup();
        let (mut names, mut texts) = (Vec::new(), Vec::new());
        for (text, ..) in &all {
            let name = text.split(' ').next().unwrap_or_default().to_owned();
            if name.starts_with('%') && !names.contains(&name) {
                names.push(name.clone());
            }
            texts.push(text.replace('%', ""));
        }
        let plain: Vec<String> = names.iter().map(|name| name.replace('%', "")).collect();
        let map = format!(
            "affine_map<({}) -> ({})>({})",
            plain.join(", "),
            texts.join(", "),
            names.join(", ")
        );
        let word = match (all.len(), upper) {
            (1, _) => "",
            (_, true) => "min ",
            _ => "max ",
        };
        let first = all.iter().map(|(_, first, _)| *first);
        let last = all.iter().map(|(.., last)| *last);
        let hull = match upper {
            true => (first.min(), last.min()),
            false => (first.max(), last.max()),
        };
        (format!("{word}{map}"), hull.0.unwrap_or(0), hull.1.unwrap_or(0))
    }

    fn repeat(&mut self) {
        let (lower, first, _) = self.bounds(false);
        let (upper, _, end) = self.bounds(true);
        let name = self.fresh("i");
        let step = if self.random.percent(4) { " step 2" } else { "" };
        self.line(&format!("affine.for {name} = {lower} to {upper}{step} {{"));
        // An empty loop has some hull all the same.
        self.counters.push(Counter { name, first, last: (end - 1).max(first) });
        self.block();
        self.counters.pop();
        self.line("}");
    }

    /// Indices into a buffer, each moved so that it begins at 0 or later.
    fn indices(&mut self, place: usize) -> String {
        if self.buffers[place].exact {
            return self.exact_indices(place);
        }
        let rank = self.buffers[place].needed.len();
        let plain = self.random.percent(65);
        let mut all = Vec::new();
        for dimension in 0..rank {
            let around = self.counters.len();
            let counter = match around {
                0 => None,
                // The innermost counters in order, as most programs have them.
                _ if plain && around + dimension >= rank => {
                    Some(self.counters[around + dimension - rank].clone())
                }
                _ if self.random.percent(80) => {
                    Some(self.counters[self.random.below(around)].clone())
                }
                _ => None,
            };
            let (text, first, last) = match counter {
                None => ("0".to_owned(), 0, 0),
                Some(counter) if plain || self.random.percent(60) => {
                    (counter.name, counter.first, counter.last)
                }
                Some(counter) => {
                    let other = self.counters[self.random.below(around)].clone();
                    match self.random.below(3) {
                        0 => (format!("-{}", counter.name), -counter.last, -counter.first),
                        1 => (format!("2 * {}", counter.name), 2 * counter.first, 2 * counter.last),
                        _ => (
                            format!("{} + {}", counter.name, other.name),
                            counter.first + other.first,
                            counter.last + other.last,
                        ),
                    }
                }
            };
            let shift = self.random.pick(&[0, 0, 0, 1, 2, -1]).max(-first);
            let needed = &mut self.buffers[place].needed[dimension];
            *needed = (*needed).max(last + shift + 1);
            all.push(match shift {
                0 => text,
                1.. => format!("{text} + {shift}"),
                _ => format!("{text} - {}", -shift),
            });
        }
        all.join(", ")
    }

    /// Indices within a shape that is known: a counter that stays within the extent, or 0.
    fn exact_indices(&mut self, place: usize) -> String {
        let extents = self.buffers[place].needed.clone();
        let mut index = |extent: i64| {
            let fits = |at: &&Counter| at.first >= 0 && at.last < extent;
            let names: Vec<_> = self.counters.iter().filter(fits).map(|at| &at.name).collect();
            match names.is_empty() {
                true => "0".to_owned(),
                false => self.random.pick(&names).clone(),
            }
        };
        extents.into_iter().map(&mut index).collect::<Vec<_>>().join(", ")
    }

    fn finished(self, data: u64) -> Nest {
        let Self { random, mut body, sizes, buffers, .. } = self;
        let arguments_of_sizes = SIZE_NAMES.iter().take(ARGUMENTS);
        let mut all_sizes: Vec<(String, i64)> =
            arguments_of_sizes.map(|name| (*name).to_owned()).zip(sizes).collect();
        let (mut arguments, mut arrays) = (String::new(), Vec::new());
        for (place, buffer) in buffers.iter().enumerate() {
            // Plans refuse more: there a loop with a step reaches its last value.
            let short = !buffer.exact && !body.contains(" step ") && random.percent(2);
            let shape: Vec<i64> = buffer
                .needed
                .iter()
                .map(|needed| match buffer.exact {
                    true => *needed,
                    false => (needed + random.range(0, 1) - i64::from(short)).max(0),
                })
                .collect();
            let fixed = !buffer.exact && random.percent(30);
            let extents: Vec<String> = shape
                .iter()
                .map(|cells| if fixed { cells.to_string() } else { "?".to_owned() })
                .collect();
            let ty = format!("memref<{}x{}>", extents.join("x"), buffer.element);
            body = body.replace(&format!("<{place}>"), &ty);
            let name = &buffer.name;
            if place > 0 && buffer.element == "f32" && !buffer.exact && random.percent(15) {
                body = own(&name.to_lowercase(), &ty, &shape, fixed) + &body;
                continue;
            }
            let _ = writeln!(
                arguments,
                "    %{}: {ty} {{stencil.name = \"{name}\"}},",
                name.to_lowercase()
            );
            if !fixed {
                let named = |(at, cells): (usize, &i64)| (format!("{name}_{at}"), *cells);
                all_sizes.extend(shape.iter().enumerate().map(named));
            }
            let shape = shape.iter().map(|cells| *cells as usize).collect();
            arrays.push((name.clone(), shape));
        }
        let text = format!(
            "func.func @nest(\n{arguments}    %s: f32 {{stencil.name = \"s\"}},\n    \
             %n: index {{stencil.name = \"N\"}}, %m: index {{stencil.name = \"M\"}}) {{\n  \
             %half = arith.constant 0.5 : f32\n  %many = arith.constant 100.0 : f32\n  \
             %one = arith.constant 1 : i32\n  %seven = arith.constant 7 : i32\n  \
             %c0 = arith.constant 0 : index\n  %c1 = arith.constant 1 : index\n  \
             %d0 = memref.dim %l, %c0 : memref<?x?xf32>\n  \
             %d1 = memref.dim %l, %c1 : memref<?x?xf32>\n{body}  return\n}}\n"
        );
        let ptx = random.percent(3);
        let tiles = products::tiles(random);
        Nest { text, sizes: all_sizes, arrays, data, ptx, tiles }
    }
}

/// Allocates an array of a shape.
fn own(name: &str, ty: &str, shape: &[i64], fixed: bool) -> String {
    let mut text = String::new();
    let mut sizes = Vec::new();
    for (at, cells) in shape.iter().enumerate().filter(|_| !fixed) {
        let _ = writeln!(text, "  %{name}_{at} = arith.constant {cells} : index");
        sizes.push(format!("%{name}_{at}"));
    }
    let _ = writeln!(text, "  %{name} = memref.alloc({}) : {ty}", sizes.join(", "));
    text
}
