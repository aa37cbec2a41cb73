//! Values of random functions of affine loops: loads, arithmetic of each type, stores.

use super::Writer;

impl Writer<'_> {
    /// A load as a value of type f32.
    pub(super) fn load(&mut self) -> String {
        let place = self.random.below(self.buffers.len());
        self.load_of(place)
    }

    pub(super) fn load_of(&mut self, place: usize) -> String {
        let indices = self.indices(place);
        self.load_at(place, &indices)
    }

    pub(super) fn load_at(&mut self, place: usize, indices: &str) -> String {
        let loaded = self.raw_load(place, indices);
        let cast = match self.buffers[place].element {
            "f32" => return loaded,
            "f64" => "truncf",
            _ => "sitofp",
        };
        self.cast(cast, &loaded, self.buffers[place].element, "f32")
    }

    /// A load of an element as it is.
    pub(super) fn raw_load(&mut self, place: usize, indices: &str) -> String {
        let (loaded, ty) = (self.fresh("v"), self.memref(place));
        let name = self.buffers[place].name.to_lowercase();
        self.line(&format!("{loaded} = affine.load %{name}[{indices}] : {ty}"));
        loaded
    }

    pub(super) fn cast(&mut self, name: &str, value: &str, from: &str, to: &str) -> String {
        let result = self.fresh("v");
        self.line(&format!("{result} = arith.{name} {value} : {from} to {to}"));
        result
    }

    pub(super) fn binary(&mut self, name: &str, left: &str, right: &str, element: &str) -> String {
        let result = self.fresh("v");
        self.line(&format!("{result} = arith.{name} {left}, {right} : {element}"));
        result
    }

    /// A value of a type of integers, by arithmetic of that type: an element or a counter, joined
    /// with others and divided by elements of `i32`, which are never 0.
    pub(super) fn integer(&mut self, element: &'static str, without: Option<usize>) -> String {
        let mut value = self.integer_term(element, without);
        for _ in 0..self.random.below(3) {
            let divisors = (0..self.buffers.len())
                .filter(|at| self.buffers[*at].element == "i32" && Some(*at) != without);
            let divisors: Vec<usize> = divisors.collect();
            value = if !divisors.is_empty() && self.random.percent(60) {
                let place = self.random.pick(&divisors);
                let indices = self.indices(place);
                let mut divisor = self.raw_load(place, &indices);
                if element == "i64" {
                    divisor = self.cast("extsi", &divisor, "i32", "i64");
                }
                let name = self.random.pick(&["divsi", "remsi"]);
                self.binary(name, &value, &divisor, element)
            } else {
                let other = self.integer_term(element, without);
                let name = self.random.pick(&["addi", "subi", "muli", "xori", "maxsi"]);
                self.binary(name, &value, &other, element)
            };
        }
        value
    }

    pub(super) fn integer_term(&mut self, element: &'static str, without: Option<usize>) -> String {
        let same = (0..self.buffers.len())
            .filter(|at| self.buffers[*at].element == element && Some(*at) != without);
        let same: Vec<usize> = same.collect();
        if !same.is_empty() && self.random.percent(60) {
            let place = self.random.pick(&same);
            let indices = self.indices(place);
            return self.raw_load(place, &indices);
        }
        let index = match self.counters.is_empty() {
            false if self.random.percent(70) => self.random.pick(&self.counters.clone()).name,
            _ => {
                let index = self.fresh("d");
                let axis = self.random.below(2);
                let ty = self.memref(self.buffers.len() - 1);
                self.line(&format!("{index} = memref.dim %l, %c{axis} : {ty}"));
                index
            }
        };
        self.cast("index_cast", &index, "index", element)
    }

    /// Stands for the type until all accesses are known.
    pub(super) fn memref(&self, place: usize) -> String {
        format!("<{place}>")
    }

    pub(super) fn value_but(&mut self, without: Option<usize>) -> String {
        let mut value = match self.random.below(4) {
            0 => self.random.pick(&self.values.clone()),
            1 if !self.counters.is_empty() => {
                let counter = self.counters[self.random.below(self.counters.len())].name.clone();
                let (whole, value) = (self.fresh("v"), self.fresh("v"));
                self.line(&format!("{whole} = arith.index_cast {counter} : index to i32"));
                self.line(&format!("{value} = arith.sitofp {whole} : i32 to f32"));
                value
            }
            _ => {
                let places = (0..self.buffers.len()).filter(|place| Some(*place) != without);
                let place = self.random.pick(&places.collect::<Vec<_>>());
                self.load_of(place)
            }
        };
        for _ in 0..self.random.below(3) {
            let other = match self.random.below(2) {
                0 => self.random.pick(&self.values.clone()),
                _ => {
                    let places = (0..self.buffers.len()).filter(|place| Some(*place) != without);
                    let place = self.random.pick(&places.collect::<Vec<_>>());
                    self.load_of(place)
                }
            };
            let op = self.random.pick(&["addf", "subf", "mulf", "maximumf"]);
            let next = self.fresh("v");
            self.line(&format!("{next} = arith.{op} {value}, {other} : f32"));
            value = next;
        }
        let next = self.fresh("v");
        self.line(&format!("{next} = arith.mulf {value}, %half : f32"));
        next
    }

    pub(super) fn store(&mut self) {
        let place = self.random.below(self.buffers.len());
        let element = self.buffers[place].element;
        if element.starts_with('i') && self.random.percent(70) {
            let mut value = self.integer(element, None);
            let indices = self.indices(place);
            if self.random.percent(45) {
                let before = self.raw_load(place, &indices);
                value = self.binary("addi", &before, &value, element);
            }
            return self.store_raw(place, &indices, &value);
        }
        let mut value = self.value_but(None);
        let indices = self.indices(place);
        match self.random.percent(45) {
            true if element == "f64" => {
                let before = self.raw_load(place, &indices);
                let wide = self.cast("extf", &value, "f32", "f64");
                let next = self.binary("addf", &before, &wide, "f64");
                return self.store_raw(place, &indices, &next);
            }
            true => {
                let before = self.load_at(place, &indices);
                value = self.binary("addf", &before, &value, "f32");
            }
            false => {}
        }
        self.store_to(place, &indices, &value);
    }

    /// A store of a value of type f32.
    pub(super) fn store_to(&mut self, place: usize, indices: &str, value: &str) {
        let element = self.buffers[place].element;
        let value = match element {
            "f32" => value.to_owned(),
            "f64" => self.cast("extf", value, "f32", "f64"),
            _ => {
                // A cast of what no integer holds has no value.
                let most = self.fresh("v");
                self.line(&format!("{most} = math.sin {value} : f32"));
                let scaled = self.binary("mulf", &most, "%many", "f32");
                self.cast("fptosi", &scaled, "f32", element)
            }
        };
        self.store_raw(place, indices, &value);
    }

    /// A store of a value of the buffer's type. Elements of `i32` become 1 to 7.
    pub(super) fn store_raw(&mut self, place: usize, indices: &str, value: &str) {
        self.statements += 1;
        let mut value = value.to_owned();
        if self.buffers[place].element == "i32" {
            value = self.binary("andi", &value, "%seven", "i32");
            value = self.binary("maxsi", &value, "%one", "i32");
        }
        let (name, ty) = (self.buffers[place].name.to_lowercase(), self.memref(place));
        self.line(&format!("affine.store {value}, %{name}[{indices}] : {ty}"));
    }
}
