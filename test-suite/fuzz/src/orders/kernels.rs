//! Random kernels of the gpu level, as a person writes them: copies to shared memory, loops,
//! conditions, barriers, and cells that threads read of each other.
//!
//! No kernel has a race. Between two barriers a shared buffer is either read by all threads, or
//! each thread reads and writes its own elements. Elements are read only once they are written.

use crate::random::Random;
use std::fmt::Write;

/// A module with what a run needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernels {
    /// The module's text.
    pub text: String,
    /// The run-time size, if the module has one.
    pub size: i64,
}

/// The module of a case.
pub fn kernels(random: &mut Random) -> Kernels {
    let element = random.pick(&["f32", "f32", "f32", "f64", "f64", "i32", "i64", "f16", "i8"]);
    let threads = random.pick(&[32, 32, 64, 64, 128, 256]);
    let (blocks, each) = (random.range(1, 3), random.range(1, 4));
    let rows = if random.percent(25) { threads / 32 } else { 1 };
    let shape = Shape { element, threads, rows, blocks, each };
    let open = random.percent(50);
    let mut bodies = String::new();
    let mut schedule = String::new();
    let count = random.pick(&[1, 1, 2]);
    for number in 0..count {
        bodies += &kernel(random, &shape, number, open);
        let _ = writeln!(
            schedule,
            "  \"tiled.repeat\"() {{count = #once, kernels = [@k{number}]}} : () -> ()"
        );
    }
    let mut text = head(random, &shape, count, open);
    let _ = write!(text, "  gpu.module @kernels {{\n{bodies}  }}\n{schedule}}}\n");
    Kernels { text, size: shape.inputs() }
}

/// What the kernels of a module have in common.
struct Shape {
    element: &'static str,
    threads: i64,
    /// Threads of a block along y.
    rows: i64,
    blocks: i64,
    /// Elements of a thread in a shared buffer.
    each: i64,
}

/// Elements of the table `C`.
const TABLE: i64 = 16;

impl Shape {
    /// Cells of `B` and `D`: one for each thread.
    fn cells(&self) -> i64 {
        self.threads * self.blocks
    }

    /// Cells of `A`.
    fn inputs(&self) -> i64 {
        self.cells() * self.each
    }
}

fn head(random: &mut Random, shape: &Shape, count: usize, open: bool) -> String {
    let (params, symbols) = if open { ("\"N\"", "s0") } else { ("", "") };
    let last = if open { "s0 - 1".to_owned() } else { (shape.inputs() - 1).to_string() };
    let width = random.pick(&[32, 64]);
    let more = if open { "s0, s1" } else { "s0" };
    let mut text = format!(
        "#zero = affine_map<()[{symbols}] -> (0)>\n\
         #inputs = affine_map<()[{symbols}] -> ({last})>\n\
         #cells = affine_map<()[{symbols}] -> ({})>\n\
         #table = affine_map<()[{symbols}] -> ({})>\n\
         #steps = affine_map<()[{symbols}] -> ({count})>\n\
         #blocks = affine_map<()[{symbols}] -> ({})>\n\
         #once = affine_map<()[{more}] -> (1)>\n\
         module @by_hand attributes {{gpu.container_module, stencil.params = [{params}],\n    \
         stencil.steps = #steps, tiled.index_width = {width} : i64, stencil.target = {{\n    \
         arch = \"sm_90\", contract = false, device = \"NVIDIA H200\", fast_math = false}}}} {{\n",
        shape.cells() - 1,
        TABLE - 1,
        shape.blocks,
    );
    let mut field = |name: &str, role: &str, last: &str| {
        let element = shape.element;
        let _ = writeln!(
            text,
            "  \"stencil.grid\"() {{lower = #zero, sym_name = \"of {name}\", upper = {last}}} : \
             () -> ()\n  \"stencil.field\"() {{grid = @\"of {name}\", role = \"{role}\", \
             sym_name = \"{name}\", type = {element}}} : () -> ()"
        );
    };
    field("A", "const", "#inputs");
    field("C", "const", "#table");
    field("B", "state", "#cells");
    field("D", "state", "#cells");
    text
}

fn kernel(random: &mut Random, shape: &Shape, number: usize, open: bool) -> String {
    let (element, threads, each) = (shape.element, shape.threads, shape.each);
    let layouts = (0..random.range(1, 3)).map(|_| random.pick(&Layout::ALL));
    let buffers: Vec<Buffer> =
        layouts.map(|layout| Buffer { layout, filled: false, use_of: None }).collect();
    let mut body = Body { random, shape, text: String::new(), names: 0, buffers, open };
    body.begin();
    let mut sum = body.load("%A", "%gid");
    for _ in 0..body.random.range(1, 5) {
        for _ in 0..body.random.range(1, 3) {
            body.act(&mut sum);
        }
        // Between barriers no buffer changes from a use to another.
        for _ in 0..body.random.pick(&[0, 1, 1, 1, 1, 2]) {
            body.line("gpu.barrier");
            body.buffers.iter_mut().for_each(|buffer| buffer.use_of = None);
        }
    }
    let last = body.load("%B", "%gid");
    let sum = body.combine(&sum, &last);
    body.line(&format!("memref.store {sum}, %B[%gid] : {}", body.view("%B")));
    let shared: Vec<String> = body
        .buffers
        .iter()
        .enumerate()
        .map(|(place, buffer)| format!("%s{place} : {}", buffer.layout.ty(element, threads, each)))
        .collect();
    let text = std::mem::take(&mut body.text);
    let bound = |place: usize, binding: &str, name: &str| {
        let only = if binding == "read" { ", llvm.readonly" } else { "" };
        format!(
            "%arg{place}: memref<{element}> {{llvm.noalias{only}, tiled.binding = \"{binding}\", \
             tiled.name = \"{name}\"}}, "
        )
    };
    let size =
        if open { "%N: index {tiled.binding = \"param\", tiled.name = \"N\"}, " } else { "" };
    format!(
        "    gpu.func @k{number}({}{}{}{}{size}%step: i64 {{tiled.binding = \"step\"}})\n        \
         workgroup({}) kernel\n        \
         attributes {{known_block_size = array<i32: {}, {}, 1>, tiled.grid = [#blocks],\n        \
         tiled.per_thread = array<i64: 1>, tiled.steps = 1 : i64, \
         tiled.strategy = \"affine\",\n        tiled.tile = array<i64: {threads}>}} {{\n\
         {text}      gpu.return\n    }}\n",
        bound(0, "read", "A"),
        bound(1, "read", "C"),
        bound(2, "read_write", "B"),
        bound(3, "read_write", "D"),
        shared.join(", "),
        threads / shape.rows,
        shape.rows,
    )
}

/// How the elements of all threads lie in a shared buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// A row for each element of a thread.
    Rows,
    /// A row for each thread.
    Columns,
    /// One row.
    Flat,
}

impl Layout {
    const ALL: [Self; 3] = [Self::Rows, Self::Columns, Self::Flat];

    fn ty(self, element: &str, threads: i64, each: i64) -> String {
        let extents = match self {
            Self::Rows => format!("{each}x{threads}"),
            Self::Columns => format!("{threads}x{each}"),
            Self::Flat => (threads * each).to_string(),
        };
        format!("memref<{extents}x{element}, #gpu.address_space<workgroup>>")
    }
}

/// The use of a buffer since the last barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Own,
    All,
}

struct Buffer {
    layout: Layout,
    /// Whether each thread has written its elements.
    filled: bool,
    use_of: Option<Use>,
}

struct Body<'a> {
    random: &'a mut Random,
    shape: &'a Shape,
    text: String,
    names: usize,
    buffers: Vec<Buffer>,
    open: bool,
}

impl Body<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "      {text}");
    }

    /// A line that defines a new value.
    fn value(&mut self, text: &str) -> String {
        self.names += 1;
        let name = format!("%v{}", self.names);
        self.line(&format!("{name} = {text}"));
        name
    }

    fn begin(&mut self) {
        for (place, name) in ["%A", "%C", "%B", "%D"].into_iter().enumerate() {
            let extent = match name {
                "%A" if self.open => "%N".to_owned(),
                "%A" => self.shape.inputs().to_string(),
                "%C" => TABLE.to_string(),
                _ => self.shape.cells().to_string(),
            };
            let (view, element) = (self.view(name), self.shape.element);
            self.line(&format!(
                "{name} = memref.reinterpret_cast %arg{place} to offset: [0], sizes: [{extent}], \
                 strides: [1] : memref<{element}> to {view}"
            ));
        }
        for number in [0, 1, 2, 3, 4, 5, 7, TABLE, self.shape.threads, self.shape.each] {
            if !self.text.contains(&format!("%c{number} =")) {
                self.line(&format!("%c{number} = arith.constant {number} : index"));
            }
        }
        if self.shape.rows == 1 {
            self.line("%x = gpu.thread_id x");
        } else {
            let row = self.shape.threads / self.shape.rows;
            self.line(&format!("%row = arith.constant {row} : index"));
            self.line("%tx = gpu.thread_id x");
            self.line("%ty = gpu.thread_id y");
            self.line("%above = arith.muli %ty, %row : index");
            self.line("%x = arith.addi %above, %tx : index");
        }
        self.line("%bx = gpu.block_id x");
        let threads = self.shape.threads;
        self.line(&format!("%first = arith.muli %bx, %c{threads} : index"));
        self.line("%gid = arith.addi %first, %x : index");
        self.line(&format!("%base = arith.muli %first, %c{} : index", self.shape.each));
    }

    /// The type of the view of an argument.
    fn view(&self, name: &str) -> String {
        let extent = match name {
            "%A" if self.open => "?".to_owned(),
            "%A" => self.shape.inputs().to_string(),
            "%C" => TABLE.to_string(),
            _ => self.shape.cells().to_string(),
        };
        format!("memref<{extent}x{}, strided<[1]>>", self.shape.element)
    }

    fn load(&mut self, name: &str, index: &str) -> String {
        let view = self.view(name);
        self.value(&format!("memref.load {name}[{index}] : {view}"))
    }

    /// Two numbers by an operation that neither divides nor overflows the meaning of.
    fn combine(&mut self, one: &str, other: &str) -> String {
        let float = self.shape.element.starts_with('f');
        let operation = match float {
            true => self.random.pick(&["addf", "subf", "mulf", "maximumf"]),
            false => self.random.pick(&["addi", "subi", "muli", "xori", "maxsi"]),
        };
        self.value(&format!("arith.{operation} {one}, {other} : {}", self.shape.element))
    }

    /// An element of a shared buffer: number `k` of thread `x`.
    fn place(&mut self, buffer: usize, x: &str, k: &str) -> String {
        match self.buffers[buffer].layout {
            Layout::Rows => format!("%s{buffer}[{k}, {x}]"),
            Layout::Columns => format!("%s{buffer}[{x}, {k}]"),
            Layout::Flat => {
                let threads = self.shape.threads;
                let row = self.value(&format!("arith.muli {k}, %c{threads} : index"));
                let place = self.value(&format!("arith.addi {row}, {x} : index"));
                format!("%s{buffer}[{place}]")
            }
        }
    }

    fn shared(&self, buffer: usize) -> String {
        let Shape { element, threads, each, .. } = *self.shape;
        self.buffers[buffer].layout.ty(element, threads, each)
    }

    /// A buffer that may be used so; it is, from now on.
    fn buffer(&mut self, wanted: Use, filled: bool) -> Option<usize> {
        let fits = |buffer: &Buffer| {
            buffer.use_of.is_none_or(|found| found == wanted) && (buffer.filled || !filled)
        };
        let places = (0..self.buffers.len()).filter(|place| fits(&self.buffers[*place]));
        let places: Vec<usize> = places.collect();
        if places.is_empty() {
            return None;
        }
        let place = self.random.pick(&places);
        self.buffers[place].use_of = Some(wanted);
        Some(place)
    }

    fn act(&mut self, sum: &mut String) {
        match self.random.below(6) {
            0 | 1 => self.fill(sum),
            2 | 3 => self.read(sum),
            4 => self.update(sum),
            _ => self.guarded(sum),
        }
    }

    /// Each thread writes its elements, as numbers of `A` or made of them.
    fn fill(&mut self, sum: &str) {
        let Some(buffer) = self.buffer(Use::Own, false) else { return };
        let (threads, each) = (self.shape.threads, self.shape.each);
        let (pure, side_by_side) = (self.random.percent(70), self.random.percent(25));
        let in_loop = self.random.percent(30);
        let rounds = if in_loop { 1 } else { each };
        for round in 0..rounds {
            let k = if in_loop { "%k".to_owned() } else { format!("%c{round}") };
            if in_loop {
                self.line(&format!("scf.for %k = %c0 to %c{each} step %c1 {{"));
            }
            let (by, far, near) = match side_by_side {
                true => (each, "%x", k.as_str()),
                false => (threads, k.as_str(), "%x"),
            };
            let row = self.value(&format!("arith.muli {far}, %c{by} : index"));
            let start = self.value(&format!("arith.addi %base, {row} : index"));
            let index = self.value(&format!("arith.addi {start}, {near} : index"));
            let loaded = self.load("%A", &index);
            let kept = if pure { loaded } else { self.combine(&loaded, sum) };
            let (place, ty) = (self.place(buffer, "%x", &k), self.shared(buffer));
            self.line(&format!("memref.store {kept}, {place} : {ty}"));
            if in_loop {
                self.line("}");
            }
        }
        self.buffers[buffer].filled = true;
    }

    /// Another thread's number, or the thread's own.
    fn thread(&mut self) -> String {
        let threads = self.shape.threads;
        match self.random.below(4) {
            0 => "%x".to_owned(),
            1 => {
                let by = self.random.pick(&[1, 2, 5, 7]);
                let next = self.value(&format!("arith.addi %x, %c{by} : index"));
                self.value(&format!("arith.remui {next}, %c{threads} : index"))
            }
            2 => {
                let back = self.value(&format!("arith.subi %c{threads}, %x : index"));
                self.value(&format!("arith.subi {back}, %c1 : index"))
            }
            _ => self.value("arith.xori %x, %c3 : index"),
        }
    }

    /// A sum over a loop of numbers of a shared buffer that all threads have filled, or of a table.
    fn read(&mut self, sum: &mut String) {
        let element = self.shape.element;
        let buffer = self.buffer(Use::All, true).filter(|_| self.random.percent(80));
        let thread = self.thread();
        let (count, step) = match buffer {
            Some(_) => (self.shape.each, 1),
            None => (TABLE, self.random.pick(&[1, 1, 2, 3])),
        };
        self.names += 1;
        let result = format!("%v{}", self.names);
        self.line(&format!(
            "{result} = scf.for %k = %c0 to %c{count} step %c{step} iter_args(%all = {sum}) -> \
             ({element}) {{"
        ));
        let read = match buffer {
            Some(buffer) => {
                let (place, ty) = (self.place(buffer, &thread, "%k"), self.shared(buffer));
                self.value(&format!("memref.load {place} : {ty}"))
            }
            None => self.load("%C", "%k"),
        };
        let table = self.value("arith.remui %k, %c16 : index");
        let factor = self.load("%C", &table);
        let part = self.combine(&read, &factor);
        let next = self.combine("%all", &part);
        self.line(&format!("scf.yield {next} : {element}"));
        self.line("}");
        *sum = result;
    }

    /// Each thread changes its own elements.
    fn update(&mut self, sum: &mut String) {
        let Some(buffer) = self.buffer(Use::Own, true) else { return };
        let k = format!("%c{}", self.random.range(0, self.shape.each - 1));
        let (place, ty) = (self.place(buffer, "%x", &k), self.shared(buffer));
        let old = self.value(&format!("memref.load {place} : {ty}"));
        let new = self.combine(&old, sum);
        self.line(&format!("memref.store {new}, {place} : {ty}"));
        if self.random.percent(50) {
            *sum = new;
        }
    }

    /// A loop whose iterations change the thread's cell of `D` under a condition.
    fn guarded(&mut self, sum: &str) {
        let bound = self.random.pick(&["%c0", "%c1", "%c7", "%c16"]);
        let outside = self.random.percent(60);
        let condition = format!("arith.cmpi slt, %x, {bound} : index");
        let known = if outside { Some(self.value(&condition)) } else { None };
        let count = self.random.pick(&[0, 1, 3, 4]);
        self.line(&format!("scf.for %k = %c0 to %c{count} step %c1 {{"));
        let condition = match known {
            Some(known) => known,
            None if self.random.percent(50) => self.value(&condition),
            None => self.value("arith.cmpi eq, %k, %c1 : index"),
        };
        self.line(&format!("scf.if {condition} {{"));
        let old = self.load("%D", "%gid");
        let table = self.load("%C", "%k");
        let part = self.combine(&old, &table);
        let new = self.combine(&part, sum);
        let view = self.view("%D");
        self.line(&format!("memref.store {new}, %D[%gid] : {view}"));
        self.line("}");
        self.line("}");
    }
}
