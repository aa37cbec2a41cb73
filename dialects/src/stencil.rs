//! Typed views of the `stencil` dialect: a module's declarations as plain data, and their builders.

mod build;
mod declarations;
mod nest_argument;
mod point_function;
mod record;
mod reduce;
mod target;

pub use build::{
    apply, check, field, grid, pieces_attribute, scalar, set_boolean, set_member, set_program,
    set_repeats,
};
pub use declarations::{
    Apply, Boundary, Check, Field, Grid, Member, Piece, Repetition, Role, Scalar, as_pieces,
};
pub use nest_argument::{NestArgument, nest_argument};
pub use point_function::{
    Argument, Arguments, Gather, arguments, arguments_with_values, function, function_body,
    function_name, gather, gathers, point_function,
};
pub use record::{
    Layout, Record, layout_note, set_block, set_kernel_block, set_layout, set_layout_note,
};
pub use reduce::{Combine, Reduce, Until, combined, reduce, set_combined, set_initial, until};
pub use target::{Target, is_gpu};

use crate::Signature;
use crate::attribute::{self, read};
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Module};
use std::collections::{BTreeMap, BTreeSet};

/// Names of the operations.
pub const GRID: &str = "stencil.grid";
/// See [`GRID`].
pub const FIELD: &str = "stencil.field";
/// See [`GRID`].
pub const SCALAR: &str = "stencil.scalar";
/// See [`GRID`].
pub const APPLY: &str = "stencil.apply";
/// See [`GRID`].
pub const REDUCE: &str = "stencil.reduce";
/// See [`GRID`].
pub const UNTIL: &str = "stencil.until";
/// See [`GRID`].
pub const GATHER: &str = "stencil.gather";
/// See [`GRID`].
pub const CHECK: &str = "stencil.check";

/// Every operation, as the IRDL text declares it.
pub const OPERATIONS: &[Signature] = &[
    Signature {
        name: GRID,
        operands: &[],
        results: &[],
        attributes: &["sym_name", "lower", "upper"],
        optional: &[],
    },
    Signature {
        name: FIELD,
        operands: &[],
        results: &[],
        attributes: &["sym_name", "grid", "type", "role"],
        optional: &[
            "stencil.initial",
            "stencil.boundary",
            "stencil.bool",
            "stencil.member",
            "stencil.combined",
            "stencil.block",
            "stencil.kernel_block",
            "stencil.layout",
            "stencil.layout_note",
            "tiled.computed",
        ],
    },
    Signature {
        name: SCALAR,
        operands: &[],
        results: &[],
        attributes: &["sym_name", "type", "default"],
        optional: &[],
    },
    Signature {
        name: APPLY,
        operands: &[],
        results: &[],
        attributes: &["updates", "pieces"],
        optional: &["stencil.repeat", "tiled.kernel"],
    },
    Signature {
        name: REDUCE,
        operands: &[],
        results: &[],
        attributes: &["field", "grid", "function", "operation"],
        optional: &["stencil.repeat"],
    },
    Signature {
        name: UNTIL,
        operands: &[],
        results: &[],
        attributes: &["condition", "every", "text"],
        optional: &[],
    },
    Signature {
        name: GATHER,
        operands: &["coordinates"],
        results: &["value"],
        attributes: &["field"],
        optional: &[],
    },
    Signature {
        name: CHECK,
        operands: &[],
        results: &[],
        attributes: &["value", "unless_empty", "message"],
        optional: &[],
    },
];

const FUNCTION: &str = "func.func";
const PARAMS: &str = "stencil.params";
const CONSTANTS: &str = "stencil.constants";
const STEPS: &str = "stencil.steps";
const BOUNDARY: &str = "stencil.boundary";
const MEMBER: &str = "stencil.member";
const BOOLEAN: &str = "stencil.bool";
const REPEATED: &str = "stencil.repeat";
const INITIAL: &str = "stencil.initial";
const COMBINED: &str = "stencil.combined";

/// All declarations of a module.
#[derive(Debug)]
pub struct Program<'c> {
    /// The module's name.
    pub name: String,
    /// Names of the run-time sizes: the symbols of every affine map, in this order.
    pub params: Vec<&'c str>,
    /// Sizes fixed at compile time, for the record.
    pub constants: Vec<(&'c str, i64)>,
    /// Steps of a run unless told otherwise; one result.
    pub steps: AffineMap<'c>,
    /// Grids in order.
    pub grids: Vec<Grid<'c>>,
    /// Fields in order.
    pub fields: Vec<Field<'c>>,
    /// Scalars in order.
    pub scalars: Vec<Scalar<'c>>,
    /// Applies of a step, in order; empty once the program is tiled.
    pub applies: Vec<Apply<'c>>,
    /// Reductions of a step, in order.
    pub reduces: Vec<Reduce<'c>>,
    /// When a run ends early.
    pub until: Option<Until<'c>>,
    /// Conditions on the sizes.
    pub checks: Vec<Check<'c>>,
    /// Point functions and tile kernels by name.
    functions: BTreeMap<&'c str, Function<'c>>,
}

/// A function, with the meaning of its arguments; none where one has none.
#[derive(Debug)]
struct Function<'c> {
    op: Op<'c>,
    arguments: Option<Vec<Argument<'c>>>,
}

impl<'c> Program<'c> {
    /// Reads every declaration of a module; an error at the place of the first that is malformed.
    /// Names and bounds are not looked at: that is the verifier's work.
    pub fn read(module: &Module<'c>) -> Result<Self, Error> {
        let op = mlir::module_op(module);
        let mut program = Self {
            name: mlir::attribute(op, "sym_name")
                .and_then(attribute::as_string)
                .unwrap_or("program")
                .to_owned(),
            params: params(op)?,
            constants: constants(op),
            steps: read(op, STEPS, attribute::as_map)?,
            grids: Vec::new(),
            fields: Vec::new(),
            scalars: Vec::new(),
            applies: Vec::new(),
            reduces: Vec::new(),
            until: None,
            checks: Vec::new(),
            functions: BTreeMap::new(),
        };
        for op in mlir::operations(mlir::body(module)) {
            match mlir::name(op) {
                GRID => program.grids.push(Grid::read(op)?),
                FIELD => program.fields.push(Field::read(op)?),
                SCALAR => program.scalars.push(Scalar::read(op)?),
                APPLY => program.applies.push(Apply::read(op)?),
                REDUCE => program.reduces.push(Reduce::read(op, program.applies.len())?),
                UNTIL => program.end_by(Until::read(op)?)?,
                CHECK => program.checks.push(Check::read(op)?),
                FUNCTION => {
                    let function = Function { op, arguments: arguments(op).ok() };
                    program.functions.insert(function_name(op)?, function);
                }
                _ => {}
            }
        }
        Ok(program)
    }

    /// Takes the one condition that ends a run.
    fn end_by(&mut self, until: Until<'c>) -> Result<(), Error> {
        let place = mlir::place(until.op.location());
        match self.until.replace(until) {
            None => Ok(()),
            Some(_) => Err(Error::new(place, "a program has one stencil.until at most")),
        }
    }

    /// Whether a field, a scalar or a param has a name.
    pub fn declares(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
            || self.scalars.iter().any(|scalar| scalar.name == name)
            || self.params.contains(&name)
    }

    /// The field of a name.
    pub fn field(&self, name: &str) -> Result<&Field<'c>, Error> {
        self.fields
            .iter()
            .find(|field| field.name == name)
            .ok_or_else(|| Error::user(format!("there is no stencil.field @{name}")))
    }

    /// The `func.func` of a name, of those that there were when the program was read.
    pub fn function(&self, name: &str) -> Result<Op<'c>, Error> {
        let function = self.functions.get(name);
        function.map(|function| function.op).ok_or_else(|| point_function::unknown(name))
    }

    /// The meaning of a function's arguments, as [`arguments`] reads it.
    pub fn arguments(&self, name: &str) -> Result<&[Argument<'c>], Error> {
        let function = self.functions.get(name).ok_or_else(|| point_function::unknown(name))?;
        match &function.arguments {
            Some(known) => Ok(known),
            None => arguments(function.op).map(|_| [].as_slice()),
        }
    }

    /// The box of a reduction, with its function.
    pub fn reduced(&self, reduce: &Reduce<'c>) -> Result<Piece<'c>, Error> {
        let grid = self.grids.iter().find(|grid| grid.name == reduce.grid).ok_or_else(|| {
            let place = mlir::place(reduce.op.location());
            Error::new(place, format!("there is no stencil.grid @{}", reduce.grid))
        })?;
        Ok(Piece { function: reduce.function, lower: grid.lower, upper: grid.upper })
    }

    /// The fields of which reductions read cells.
    pub fn fields_reduced(&self) -> Result<BTreeSet<&'c str>, Error> {
        let mut found = BTreeSet::new();
        for reduce in &self.reduces {
            found.extend(self.gathered(reduce.function)?);
            for argument in self.arguments(reduce.function)? {
                if let Argument::Read { field, .. } = argument {
                    found.insert(*field);
                }
            }
        }
        Ok(found)
    }

    /// The fields that a point function reads at computed places, by itself or by the boundary
    /// rules of its reads.
    pub fn gathered(&self, function: &str) -> Result<BTreeSet<&'c str>, Error> {
        self.gathered_in(self.function(function)?)
    }

    /// The same of a point function that may be newer than the program.
    pub fn gathered_in(&self, function: Op<'c>) -> Result<BTreeSet<&'c str>, Error> {
        let mut all = gathers(function)?;
        for argument in arguments(function)? {
            if let Argument::Read { field, .. } = argument
                && let Some(Boundary::Value(rule)) = self.field(field)?.boundary
            {
                all.extend(gathers(self.function(rule)?)?);
            }
        }
        Ok(all.into_iter().map(|gather| gather.field).collect())
    }

    /// The fields that any of the pieces reads at computed places.
    pub fn gathered_by(&self, pieces: &[Piece<'c>]) -> Result<BTreeSet<&'c str>, Error> {
        let all = pieces.iter().map(|piece| self.gathered(piece.function));
        Ok(all.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The offsets at which an apply reads values of its own sweep, each once: its dependence
    /// vectors.
    pub fn dependences(&self, pieces: &[Piece<'c>]) -> Result<BTreeSet<Vec<i64>>, Error> {
        let mut found = BTreeSet::new();
        for piece in pieces {
            for argument in self.arguments(piece.function)? {
                if let Argument::Current { offset, .. } = argument {
                    found.insert(offset.clone());
                }
            }
        }
        Ok(found)
    }

    /// Whether some apply reads values of its own sweep.
    pub fn sweeps(&self) -> Result<bool, Error> {
        for apply in &self.applies {
            if !self.dependences(&apply.pieces)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The grid of a field, or of an array of structs.
    pub fn grid_of(&self, field: &str) -> Result<&Grid<'c>, Error> {
        let name = self.field(field).map(|field| field.grid).or_else(|error| {
            let record = self.record(field);
            let first = record.iter().flat_map(|record| &record.numbers).next();
            first.map(|number| number.grid).ok_or(error)
        })?;
        self.grids
            .iter()
            .find(|grid| grid.name == name)
            .ok_or_else(|| Error::user(format!("there is no stencil.grid @{name}")))
    }
}

fn constants<'c>(op: Op<'c>) -> Vec<(&'c str, i64)> {
    let entries = mlir::attribute(op, CONSTANTS).and_then(attribute::as_array).unwrap_or_default();
    let pair = |entry| {
        let name = attribute::as_string(attribute::entry(entry, "name")?)?;
        Some((name, attribute::as_integer(attribute::entry(entry, "value")?)?))
    };
    entries.into_iter().filter_map(pair).collect()
}

fn params<'c>(op: Op<'c>) -> Result<Vec<&'c str>, Error> {
    if mlir::attribute(op, PARAMS).is_none() {
        return Err(no_program(op));
    }
    read(op, PARAMS, attribute::as_strings)
}

/// The error of a module that is no stencil program.
pub(crate) fn no_program(module: Op) -> Error {
    let place = mlir::place(module.location());
    let message = "the module is no stencil program: it lacks stencil.params, the names of its \
                   run-time sizes; nor has it a func.func with affine loops";
    Error::new(place, message)
}

/// Whether an operation declares a part of a program, at the top of its module.
pub(crate) fn is_declaration(op: Op) -> bool {
    [GRID, FIELD, SCALAR, APPLY, REDUCE, UNTIL, CHECK].contains(&mlir::name(op))
}

/// Whether a module holds a stencil program at all.
pub fn is_program(module: &Module) -> bool {
    mlir::attribute(mlir::module_op(module), PARAMS).is_some()
}

/// A symbol that is free at the top of a module: `name`, or the same with a number. Whatever a pass
/// adds beside the program's declarations is named by this, so that no declaration is in its way.
pub fn unused_name(module: &Module, name: &str) -> String {
    let top = mlir::operations(mlir::body(module));
    // Lowered kernels have names of the same kind.
    let is_container = |op: &&Op<'_>| matches!(mlir::name(**op), "gpu.module" | "builtin.module");
    let containers = top.iter().filter(is_container);
    let lowered = containers.filter_map(|op| mlir::entry(*op)).flat_map(mlir::operations);
    let taken: BTreeSet<&str> = lowered
        .chain(top.iter().copied())
        .filter_map(|op| mlir::attribute(op, "sym_name").and_then(attribute::as_string))
        .collect();
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|free| !taken.contains(free.as_str()))
        .unwrap_or_default()
}
