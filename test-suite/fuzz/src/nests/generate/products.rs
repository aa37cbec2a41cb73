//! Random nests whose loops are parallel or can be tiled, and shapes of tiles.

use super::{Buffer, Counter, Tiles, Writer};
use crate::random::Random;

impl Writer<'_> {
    /// A perfect nest of loops in space around one or two loops in time, as products and
    /// convolutions have them: sums of products of arrays that nothing stores to.
    pub(super) fn product(&mut self) {
        let places = (0..self.buffers.len()).filter(|place| !self.buffers[*place].exact);
        let out = self.random.pick(&places.collect::<Vec<_>>());
        let rank = self.buffers[out].needed.len();
        let depth = self.counters.len();
        for _ in 0..rank {
            self.open(0);
        }
        let names = |counters: &[Counter]| {
            counters.iter().map(|at| at.name.clone()).collect::<Vec<_>>().join(", ")
        };
        let own = self.counters[depth..].to_vec();
        let cell = names(&own);
        for (needed, counter) in self.buffers[out].needed.iter_mut().zip(&own) {
            *needed = (*needed).max(counter.last + 1);
        }
        if self.random.percent(60) {
            let value = self.value_but(Some(out));
            self.store_to(out, &cell, &value);
        }
        for _ in 0..self.random.range(1, 2) {
            let known = self.values.len();
            let uneven = if self.random.percent(15) { self.counters.len() } else { 0 };
            self.open(uneven);
            let inner = self.random.percent(30);
            if inner {
                self.open(0);
            }
            let value = self.value_but(Some(out));
            if self.random.percent(20) {
                let other = self.random.below(self.buffers.len());
                let indices = self.indices(other);
                self.store_to(other, &indices, &value);
            }
            let before = self.load_at(out, &cell);
            let next = self.binary("addf", &before, &value, "f32");
            self.store_to(out, &cell, &next);
            if inner {
                self.close();
            }
            self.close();
            self.values.truncate(known);
        }
        if self.random.percent(30) {
            let value = self.load_at(out, &cell);
            let value = self.binary("mulf", &value, "%s", "f32");
            self.store_to(out, &cell, &value);
        }
        while self.counters.len() > depth {
            self.close();
        }
    }

    /// Begins a loop from 0 or 1 on, to a bound of constants, of sizes, or of so many counters.
    pub(super) fn open(&mut self, around: usize) {
        let counters = self.counters.split_off(around.min(self.counters.len()));
        let (upper, _, end) = self.bounds(true);
        self.counters.extend(counters);
        let name = self.fresh("i");
        let first = self.random.pick(&[0, 0, 0, 1]);
        self.line(&format!("affine.for {name} = {first} to {upper} {{"));
        self.counters.push(Counter { name, first, last: (end - 1).max(first) });
    }

    /// Ends a loop.
    pub(super) fn close(&mut self) {
        self.counters.pop();
        self.line("}");
    }

    /// A parallel loop, whose iterations have a cell each and read what none of them stores.
    pub(super) fn parallel(&mut self) {
        if self.random.percent(50) {
            return self.repeat();
        }
        let (rows, columns) = (self.sizes[0], self.sizes[1]);
        let suits = |buffer: &Buffer| buffer.needed.len() == 2 && !buffer.exact;
        let Some(place) = self.buffers.iter().position(suits) else {
            return self.repeat();
        };
        let names = [self.fresh("i"), self.fresh("i")];
        let [i, j] = names.clone();
        self.line(&format!("affine.parallel ({i}, {j}) = (0, 0) to (symbol(%n), symbol(%m)) {{"));
        for (name, cells) in names.into_iter().zip([rows, columns]) {
            self.counters.push(Counter { name, first: 0, last: (cells - 1).max(0) });
        }
        let known = self.values.len();
        let value = self.value_but(Some(place));
        let buffer = &mut self.buffers[place];
        buffer.needed = vec![buffer.needed[0].max(rows), buffer.needed[1].max(columns)];
        self.store_to(place, &format!("{i}, {j}"), &value);
        self.values.truncate(known);
        self.counters.truncate(self.counters.len() - 2);
        self.line("}");
    }
}

/// A way to tile, behind transposes of all arrays in half of those with a shape. Shapes are small,
/// so that functions of a few iterations have several blocks and tiles.
pub(super) fn tiles(random: &mut Random) -> Tiles {
    match random.below(10) {
        0..=1 => return Tiles::None,
        2..=4 => return Tiles::Default,
        _ => {}
    }
    let axes = random.pick(&[1, 1, 2, 2, 2, 3]);
    let mut list = |all: &[i64]| {
        let numbers = (0..axes).map(|_| random.pick(all).to_string());
        numbers.collect::<Vec<_>>().join(",")
    };
    let threads = list(&[1, 2, 2, 3, 4]);
    let per_thread = list(&[1, 1, 2, 3, 4]);
    let time = random.range(1, 5);
    let blocked = random.pick(&["on", "off"]);
    let copiers = if axes < 3 { random.pick(&[1, 1, 2, 3, 8]) } else { 1 };
    let transposes = if random.percent(50) { "transpose-arrays{always=on}," } else { "" };
    Tiles::Passes(format!(
        "builtin.module({transposes}tile-affine-nest{{threads={threads} copiers={copiers} \
         blocked={blocked} \
         per-thread={per_thread} time={time}}},lower-affine-nest,\
         gpu.module(canonicalize{{top-down=false}},cse),bank-pad)"
    ))
}
