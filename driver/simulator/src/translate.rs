//! From a `gpu.func` to a [`Kernel`]: one pass over the operations, one file a dialect.
//!
//! Vectors are taken apart into registers, so that most `vector` operations cost nothing; memrefs
//! become a base register with operands. An operation that is not known is refused by its place.

mod affine;
mod arith;
mod control;
mod gpu;
mod math;
mod memref;
mod types;
mod vector;

pub(crate) use arith::{binary_op, cast_op, element, outcomes};
pub(crate) use math::{binary_op as math_binary_op, unary_op};
pub(crate) use types::number_kind;

use crate::marks;
use crate::program::{
    Flop, GroupInfo, Input, Instr, Kernel, Operand, Origin, Parameter, Reg, Site, SiteInfo, Usage,
};
use crate::value::Kind;
use cranelift_entity::{EntityRef, PrimaryMap};
use melior::ir::operation::OperationLike;
use melior::ir::{Module, Type, ValueLike};
use std::collections::HashMap;
use stencil_dialects::attribute;
use stencil_dialects::error::Error;
use stencil_dialects::mlir::{self, Blk, Op, Printer, Val};
use stencil_dialects::stencil;
use stencil_dialects::tiled::{self, Binding, Launch};
use stencil_runtime::device;

/// How to translate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether a product and a sum that both allow it become one operation, as by ptxas. If not,
    /// they round twice and are only counted as one.
    pub contract: bool,
}

/// Bytes of shared memory beyond those of any device.
const MOST_SHARED: u64 = 1 << 20;

/// The kernels of a gpu-level module, in order.
pub fn kernels(module: &Module, settings: Settings) -> Result<Vec<Kernel>, Error> {
    let target = stencil::Target::get(module)?;
    let device = target.map_or(&device::H200, |target| device::for_arch(&target.arch));
    let machine = (tiled::index_width(module) == 32, device.warp as usize);
    tiled::launches(module)?.iter().map(|launch| kernel(launch, machine, settings)).collect()
}

/// The translation of a value of the IR.
#[derive(Clone, Debug)]
enum Value {
    /// A number, or the elements of a vector.
    Numbers(Kind, Vec<Reg>),
    /// A piece of memory.
    Memref(Memref),
    /// A token.
    Nothing,
}

/// A memref: where its first element is, and how its indices count.
#[derive(Clone, Debug)]
struct Memref {
    base: Reg,
    offset: Operand,
    sizes: Vec<Operand>,
    strides: Vec<Operand>,
    element: Kind,
}

/// A product whose only use may take it into one operation with a sum.
#[derive(Clone, Debug)]
struct Product {
    /// Its instructions, one an element.
    code: std::ops::Range<usize>,
    /// The registers of its factors.
    factors: Vec<(Reg, Reg)>,
}

struct Translator<'c> {
    /// The `gpu.func`.
    function: Op<'c>,
    printer: Printer,
    /// Products that may become part of a contracted pair, by their result.
    products: HashMap<usize, Product>,
    settings: Settings,
    index: Kind,
    kernel: Kernel,
    values: HashMap<usize, Value>,
    inputs: HashMap<Input, Reg>,
    constants: HashMap<Reg, i64>,
    uses: HashMap<usize, usize>,
    groups: HashMap<String, crate::program::Group>,
    site: Site,
    flop: Flop,
}

fn unsupported(op: Op, what: impl std::fmt::Display) -> Error {
    Error::new(
        mlir::place(op.location()),
        format!("the simulator does not know {what}: {}", Printer::new(op).line(op)),
    )
}

fn malformed(op: Op) -> Error {
    unsupported(op, "this form of the operation")
}

fn kernel<'c>(
    launch: &Launch<'c>,
    (narrow, warp): (bool, usize),
    settings: Settings,
) -> Result<Kernel, Error> {
    let extent = |index: usize| launch.block.get(index).copied().unwrap_or(1);
    let threads = extent(0).saturating_mul(extent(1)).saturating_mul(extent(2));
    if !(1..=1024).contains(&threads) || (0..3).any(|index| extent(index) < 1) {
        return Err(Error::new(
            mlir::place(launch.op.location()),
            format!(
                "a block of {threads} threads can't be launched; known_block_size must give 1 to \
                 1024"
            ),
        ));
    }
    let (mut groups, mut sites) = (PrimaryMap::new(), PrimaryMap::new());
    let rest = groups.push(GroupInfo { name: String::new() });
    let site = sites.push(SiteInfo {
        place: mlir::place(launch.op.location()),
        text: format!("gpu.func @{}", launch.name),
        group: rest,
        root: false,
    });
    let kernel = Kernel {
        name: launch.name.to_owned(),
        code: Vec::new(),
        origins: Vec::new(),
        registers: 0,
        inputs: Vec::new(),
        parameters: Vec::new(),
        constants: Vec::new(),
        shared: Vec::new(),
        dynamic_shared: u64::try_from(launch.dynamic_shared).unwrap_or(0),
        block: [0, 1, 2].map(|index| extent(index) as u32),
        warp,
        sites,
        groups,
        peer: false,
        steps: launch.schedule.steps,
    };
    let mut translator = Translator {
        function: launch.op,
        printer: Printer::new(launch.op),
        products: HashMap::new(),
        settings,
        index: if narrow { Kind::Index32 } else { Kind::Index64 },
        kernel,
        values: HashMap::new(),
        inputs: HashMap::new(),
        constants: HashMap::new(),
        uses: HashMap::new(),
        groups: HashMap::new(),
        site,
        flop: Flop::None,
    };
    translator.body_of(launch)?;
    Ok(translator.kernel)
}

impl<'c> Translator<'c> {
    fn body_of(&mut self, launch: &Launch<'c>) -> Result<(), Error> {
        let blocks = mlir::blocks(self.function, 0);
        let [entry] = blocks.as_slice() else {
            return Err(unsupported(
                launch.op,
                "unstructured control flow between blocks (cf.br, cf.cond_br); run it before \
                 convert-scf-to-cf",
            ));
        };
        for op in mlir::walk(self.function) {
            for operand in mlir::operands(op) {
                *self.uses.entry(mlir::key(operand)).or_default() += 1;
            }
        }
        let arguments = mlir::arguments(*entry);
        for (index, (binding, argument)) in launch.bindings.iter().zip(&arguments).enumerate() {
            self.parameter(launch, index, binding, *argument)?;
        }
        for argument in arguments.iter().skip(launch.bindings.len()) {
            self.shared_buffer(launch.op, *argument)?;
        }
        let each = self.kernel.shared.iter().map(|(_, bytes)| *bytes);
        let shared = each.fold(self.kernel.dynamic_shared, u64::saturating_add);
        if shared > MOST_SHARED {
            return Err(unsupported(
                self.function,
                format_args!(
                    "a block with {shared} bytes of shared memory, more than any device has"
                ),
            ));
        }
        self.block(*entry)?;
        self.emit(Instr::Return);
        self.kernel.inputs = self.inputs.iter().map(|(input, reg)| (*input, *reg)).collect();
        self.kernel.inputs.sort_by_key(|(_, reg)| *reg);
        if u16::try_from(self.kernel.sites.len()).is_err() {
            return Err(unsupported(launch.op, "kernels of more than 65535 operations"));
        }
        Ok(())
    }

    fn parameter(
        &mut self,
        launch: &Launch<'c>,
        index: usize,
        binding: &Binding,
        argument: Val<'c>,
    ) -> Result<(), Error> {
        let register = self.input(Input::Argument(index));
        let (op, several) = (launch.op, launch.turns.is_some() || launch.sweeps.is_some());
        let number = |name: &str, translator: &mut Self| {
            let kind = translator.kind(op, argument.r#type())?;
            translator.values.insert(mlir::key(argument), Value::Numbers(kind, vec![register]));
            Ok(Parameter::Number { name: name.to_owned(), kind })
        };
        let parameter = match binding {
            Binding::Read(_)
            | Binding::Write(_)
            | Binding::ReadWrite(_)
            | Binding::Partials(_)
            | Binding::Unless(_)
            | Binding::Flags => {
                let (name, usage) = match binding {
                    Binding::Read(name) | Binding::Unless(name) => (*name, Usage::Read),
                    // Each of several launches writes a part of the cells, and sweeps read others'.
                    Binding::Write(name) if !several => (*name, Usage::Write),
                    Binding::Write(name) | Binding::ReadWrite(name) => (*name, Usage::ReadWrite),
                    Binding::Partials(_) => ("results of blocks", Usage::ReadWrite),
                    _ => ("flags", Usage::ReadWrite),
                };
                let memref = self.whole(op, argument.r#type(), register)?;
                let element = memref.element;
                self.values.insert(mlir::key(argument), Value::Memref(memref));
                Parameter::Buffer { name: name.to_owned(), usage, element }
            }
            Binding::Param(name) | Binding::Scalar(name) => number(name, self)?,
            Binding::Step => number("step", self)?,
            Binding::Row => number("row", self)?,
            Binding::FirstBlock => number("first block", self)?,
            Binding::Epoch => number("epoch", self)?,
            Binding::Turn => number("turn", self)?,
        };
        self.kernel.parameters.push(parameter);
        Ok(())
    }

    fn block(&mut self, block: Blk<'c>) -> Result<(), Error> {
        for op in mlir::operations(block) {
            self.operation(op)?;
        }
        Ok(())
    }

    fn operation(&mut self, op: Op<'c>) -> Result<(), Error> {
        let name = mlir::name(op);
        self.enter(op);
        let (dialect, short) = name.split_once('.').unwrap_or((name, ""));
        match dialect {
            "arith" => self.arith(op, short),
            "math" => self.math(op, short),
            "vector" => self.vector(op, short),
            "memref" => self.memref(op, short),
            "affine" => self.affine(op, short),
            "scf" => self.control(op, short),
            "gpu" => self.gpu(op, short),
            "nvgpu" => self.nvgpu(op, short),
            "peer" => self.peer(op, short),
            "cf" if short == "assert" => {
                let condition = self.number(op, 0)?;
                self.emit(Instr::Assert { condition });
                Ok(())
            }
            "ub" if short == "poison" => {
                let (kind, count) =
                    self.shape(op, op.result(0).map_err(|_| malformed(op))?.r#type())?;
                let zero = self.input(Input::Constant(0));
                self.define(op, 0, Value::Numbers(kind, vec![zero; count]))
            }
            _ => Err(unsupported(op, format_args!("{name}"))),
        }
    }

    /// Makes an operation the current site.
    fn enter(&mut self, op: Op<'c>) {
        let location = op.location();
        let place = mlir::place(location);
        let (group, root) = match marks::mark_of(location) {
            Some((function, root)) => (self.group(&function), root),
            None => (self.group(""), false),
        };
        self.site = self.kernel.sites.push(SiteInfo { place, text: String::new(), group, root });
        self.flop = Flop::None;
        let named = [
            "memref.load",
            "memref.store",
            "vector.load",
            "vector.store",
            "scf.for",
            "gpu.barrier",
            "gpu.shuffle",
        ];
        let name = mlir::name(op);
        let text = if named.contains(&name)
            || ["peer.", "nvgpu."].iter().any(|prefix| name.starts_with(prefix))
        {
            self.printer.line(op)
        } else {
            name.to_owned()
        };
        if let Some(info) = self.kernel.sites.get_mut(self.site) {
            info.text = text;
        }
    }

    fn group(&mut self, name: &str) -> crate::program::Group {
        if name.is_empty() {
            return crate::program::Group::new(0);
        }
        if let Some(group) = self.groups.get(name) {
            return *group;
        }
        let group = self.kernel.groups.push(GroupInfo { name: name.to_owned() });
        self.groups.insert(name.to_owned(), group);
        group
    }

    fn emit(&mut self, instr: Instr) -> usize {
        self.kernel.code.push(instr);
        self.kernel.origins.push(Origin { site: self.site, flop: self.flop });
        self.kernel.code.len() - 1
    }

    fn here(&self) -> usize {
        self.kernel.code.len()
    }

    fn fresh(&mut self) -> Reg {
        self.kernel.registers += 1;
        Reg::new(self.kernel.registers - 1)
    }

    fn input(&mut self, input: Input) -> Reg {
        if let Some(reg) = self.inputs.get(&input) {
            return *reg;
        }
        let reg = self.fresh();
        self.inputs.insert(input, reg);
        reg
    }

    fn constant(&mut self, value: i64) -> Reg {
        let reg = self.input(Input::Constant(value as u64));
        self.constants.insert(reg, value);
        reg
    }

    /// The constant that a register holds, or the register.
    fn operand(&self, reg: Reg) -> Operand {
        self.constants.get(&reg).map_or(Operand::Register(reg), |value| Operand::Constant(*value))
    }

    fn register(&mut self, operand: Operand) -> Reg {
        match operand {
            Operand::Constant(value) => self.constant(value),
            Operand::Register(reg) => reg,
        }
    }

    fn define(&mut self, op: Op<'c>, index: usize, value: Value) -> Result<(), Error> {
        let result = op.result(index).map_err(|_| malformed(op))?;
        self.values.insert(mlir::key(mlir::value(result)), value);
        Ok(())
    }

    fn value(&self, op: Op<'c>, value: Val<'c>) -> Result<Value, Error> {
        self.values
            .get(&mlir::key(value))
            .cloned()
            .ok_or_else(|| unsupported(op, "where an operand comes from"))
    }

    fn operand_of(&self, op: Op<'c>, index: usize) -> Result<Val<'c>, Error> {
        op.operand(index).map(mlir::value).map_err(|_| malformed(op))
    }

    /// The elements of an operand that is a number or a vector.
    fn numbers(&self, op: Op<'c>, index: usize) -> Result<(Kind, Vec<Reg>), Error> {
        match self.value(op, self.operand_of(op, index)?)? {
            Value::Numbers(kind, regs) => Ok((kind, regs)),
            _ => Err(malformed(op)),
        }
    }

    /// The register of an operand that is a number.
    fn number(&self, op: Op<'c>, index: usize) -> Result<Reg, Error> {
        match self.numbers(op, index)?.1.as_slice() {
            [reg] => Ok(*reg),
            _ => Err(malformed(op)),
        }
    }

    fn memref_of(&self, op: Op<'c>, index: usize) -> Result<Memref, Error> {
        match self.value(op, self.operand_of(op, index)?)? {
            Value::Memref(memref) => Ok(memref),
            _ => Err(malformed(op)),
        }
    }

    /// Emits one instruction an element and defines the result.
    fn elementwise(
        &mut self,
        op: Op<'c>,
        kind: Kind,
        count: usize,
        mut instr: impl FnMut(Reg, usize) -> Instr,
    ) -> Result<(), Error> {
        let regs: Vec<_> = (0..count)
            .map(|index| {
                let to = self.fresh();
                self.emit(instr(to, index));
                to
            })
            .collect();
        self.define(op, 0, Value::Numbers(kind, regs))
    }

    fn result_type(&self, op: Op<'c>) -> Result<Type<'c>, Error> {
        Ok(op.result(0).map_err(|_| malformed(op))?.r#type())
    }

    fn integer_attribute(&self, op: Op<'c>, name: &str) -> Option<i64> {
        mlir::attribute(op, name).and_then(attribute::as_integer)
    }
}
