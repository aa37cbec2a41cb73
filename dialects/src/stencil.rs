//! Typed views of the `stencil` dialect: a module's declarations as plain data, and their builders.

mod target;

pub use target::Target;

use crate::Signature;
use crate::attribute::{self, read};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Blk, Op, Val};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Attribute, Module, Type};
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
    },
    Signature {
        name: FIELD,
        operands: &[],
        results: &[],
        attributes: &["sym_name", "grid", "type", "role"],
    },
    Signature {
        name: SCALAR,
        operands: &[],
        results: &[],
        attributes: &["sym_name", "type", "default"],
    },
    Signature { name: APPLY, operands: &[], results: &[], attributes: &["updates", "pieces"] },
    Signature {
        name: GATHER,
        operands: &["coordinates"],
        results: &["value"],
        attributes: &["field"],
    },
    Signature {
        name: CHECK,
        operands: &[],
        results: &[],
        attributes: &["value", "unless_empty", "message"],
    },
];

const FUNCTION: &str = "func.func";
const PARAMS: &str = "stencil.params";
const CONSTANTS: &str = "stencil.constants";
const STEPS: &str = "stencil.steps";
const BOUNDARY: &str = "stencil.boundary";
const MEMBER: &str = "stencil.member";

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
    /// What a step applies, in order; empty once the program is tiled.
    pub applies: Vec<Apply<'c>>,
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

/// `stencil.grid`: all points from `lower` to `upper`, both inclusive, slowest dimension first.
#[derive(Clone, Debug)]
pub struct Grid<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// Its name.
    pub name: &'c str,
    /// First point; one result a dimension, one symbol a run-time size.
    pub lower: AffineMap<'c>,
    /// Last point, inclusive.
    pub upper: AffineMap<'c>,
}

impl Grid<'_> {
    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.lower.result_count()
    }
}

/// What a field is to the outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Input and output.
    State,
    /// Input only.
    Const,
    /// Neither.
    Temp,
}

impl Role {
    /// The word in the IR.
    pub fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Const => "const",
            Self::Temp => "temp",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::State, Self::Const, Self::Temp].into_iter().find(|role| role.name() == name)
    }
}

/// `stencil.field`.
#[derive(Clone, Debug)]
pub struct Field<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// Its name.
    pub name: &'c str,
    /// The grid it lies on.
    pub grid: &'c str,
    /// Type of a cell in kernels and buffers: signless.
    pub element: Type<'c>,
    /// Whether it is declared as an unsigned integer.
    pub unsigned: bool,
    /// Which part it is of a field of structs or vecs; none for one that is declared so.
    pub member: Option<Member<'c>>,
    /// What it is to the outside.
    pub role: Role,
    /// What a read outside its grid gives; none where no read may lie outside.
    pub boundary: Option<Boundary<'c>>,
}

/// Which part of the cells of a declared field a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member<'c> {
    /// The declared field; the name of the part begins with it.
    pub field: &'c str,
    /// Where it begins in a cell, in bytes.
    pub offset: i64,
    /// Bytes of a cell.
    pub size: i64,
}

/// What a read outside a field's grid gives. A coordinate below stands for each dimension by
/// itself, counted from the grid's first point of `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boundary<'c> {
    /// The nearest cell inside: `-1` gives cell `0`, `n` gives `n - 1`.
    Nearest,
    /// The grid repeats: `-1` gives cell `n - 1`, `n` gives `0`.
    Periodic,
    /// Mirrored about the first and the last cell, which are not repeated: `-1` gives cell `1`, `n`
    /// gives `n - 2`, with as many bounces as it takes; all give cell `0` where `n` is 1.
    Reflect,
    /// The result of a function of the nearest cell's value, the outside point's coordinates, the
    /// step, sizes and scalars.
    Value(&'c str),
}

impl<'c> Boundary<'c> {
    const RULES: [(&'static str, Self); 3] =
        [("nearest", Self::Nearest), ("periodic", Self::Periodic), ("reflect", Self::Reflect)];

    fn parse(attribute: Attribute<'c>) -> Option<Self> {
        match attribute::as_string(attribute) {
            Some(word) => {
                Self::RULES.into_iter().find(|(name, _)| *name == word).map(|(_, rule)| rule)
            }
            None => attribute::as_symbol(attribute).map(Self::Value),
        }
    }

    fn attribute(self, builder: &Builder<'c>) -> Attribute<'c> {
        match (self, Self::RULES.into_iter().find(|(_, rule)| *rule == self)) {
            (Self::Value(function), _) => attribute::symbol(builder.context, function),
            (_, found) => attribute::string(builder.context, found.map_or("", |(name, _)| name)),
        }
    }
}

/// `stencil.scalar`.
#[derive(Clone, Debug)]
pub struct Scalar<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// Its name.
    pub name: &'c str,
    /// Its type in kernels: signless.
    pub element: Type<'c>,
    /// Whether it is declared as an unsigned integer.
    pub unsigned: bool,
    /// The value unless one is set, of the declared type.
    pub default: Option<Attribute<'c>>,
}

/// `stencil.apply`: pieces of one function, which all see the fields as they were before.
#[derive(Clone, Debug)]
pub struct Apply<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// The updated fields; a piece's function returns one value each.
    pub updates: Vec<&'c str>,
    /// Disjoint sub-grids with their functions.
    pub pieces: Vec<Piece<'c>>,
}

/// One sub-grid of an apply.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'c> {
    /// The point function.
    pub function: &'c str,
    /// First point it covers; one result a dimension, one symbol a run-time size.
    pub lower: AffineMap<'c>,
    /// Last point it covers, inclusive.
    pub upper: AffineMap<'c>,
}

/// `stencil.check`.
#[derive(Clone, Debug)]
pub struct Check<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// Must not be negative; one result.
    pub value: AffineMap<'c>,
    /// Lower and upper bound of the piece whose emptiness makes the condition void.
    pub unless_empty: Option<(AffineMap<'c>, AffineMap<'c>)>,
    /// What to say when it fails.
    pub message: &'c str,
}

/// What a point function's argument stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument<'c> {
    /// A cell's old value at an offset.
    Read {
        /// The field.
        field: &'c str,
        /// Cells from the point, one number a dimension, slowest first.
        offset: Vec<i64>,
    },
    /// A run-time scalar.
    Scalar(&'c str),
    /// A run-time size, as i64.
    Param(&'c str),
    /// The point's coordinate along a dimension (0 is the slowest), as i64.
    Coordinate(usize),
    /// The number of the step, from 0, as i64.
    Step,
    /// In the function of a boundary rule: the old value of the nearest cell inside.
    Nearest,
    /// In a function of a `tiled.apply`: what another one computed of the new value.
    Partial,
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
            constants: Vec::new(),
            steps: read(op, STEPS, attribute::as_map)?,
            grids: Vec::new(),
            fields: Vec::new(),
            scalars: Vec::new(),
            applies: Vec::new(),
            checks: Vec::new(),
            functions: BTreeMap::new(),
        };
        if let Some(constants) = mlir::attribute(op, CONSTANTS).and_then(attribute::as_array) {
            program.constants = constants
                .into_iter()
                .filter_map(|entry| {
                    let name = attribute::as_string(attribute::entry(entry, "name")?)?;
                    Some((name, attribute::as_integer(attribute::entry(entry, "value")?)?))
                })
                .collect();
        }
        for op in mlir::operations(mlir::body(module)) {
            match mlir::name(op) {
                GRID => program.grids.push(Grid {
                    op,
                    name: read(op, "sym_name", attribute::as_string)?,
                    lower: read(op, "lower", attribute::as_map)?,
                    upper: read(op, "upper", attribute::as_map)?,
                }),
                FIELD => {
                    let (element, unsigned) = element(op)?;
                    program.fields.push(Field {
                        op,
                        name: read(op, "sym_name", attribute::as_string)?,
                        grid: read(op, "grid", attribute::as_symbol)?,
                        element,
                        unsigned,
                        member: member(op)?,
                        role: role(op)?,
                        boundary: boundary(op)?,
                    });
                }
                SCALAR => {
                    let (element, unsigned) = element(op)?;
                    program.scalars.push(Scalar {
                        op,
                        name: read(op, "sym_name", attribute::as_string)?,
                        element,
                        unsigned,
                        default: read(op, "default", attribute::as_array)?.first().copied(),
                    });
                }
                APPLY => program.applies.push(Apply {
                    op,
                    updates: read(op, "updates", attribute::as_symbols)?,
                    pieces: read(op, "pieces", as_pieces)?,
                }),
                CHECK => program.checks.push(Check {
                    op,
                    value: read(op, "value", attribute::as_map)?,
                    unless_empty: read(op, "unless_empty", |bounds| {
                        match attribute::as_array(bounds)?.as_slice() {
                            [] => Some(None),
                            [lower, upper] => {
                                Some(Some((attribute::as_map(*lower)?, attribute::as_map(*upper)?)))
                            }
                            _ => None,
                        }
                    })?,
                    message: read(op, "message", attribute::as_string)?,
                }),
                FUNCTION => {
                    let function = Function { op, arguments: arguments(op).ok() };
                    program.functions.insert(function_name(op)?, function);
                }
                _ => {}
            }
        }
        Ok(program)
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
        self.functions.get(name).map(|function| function.op).ok_or_else(|| no_function(name))
    }

    /// The meaning of a function's arguments, as [`arguments`] reads it.
    pub fn arguments(&self, name: &str) -> Result<&[Argument<'c>], Error> {
        let function = self.functions.get(name).ok_or_else(|| no_function(name))?;
        match &function.arguments {
            Some(known) => Ok(known),
            None => arguments(function.op).map(|_| [].as_slice()),
        }
    }

    /// The grid of a field.
    pub fn grid_of(&self, field: &str) -> Result<&Grid<'c>, Error> {
        let name = self.field(field)?.grid;
        self.grids
            .iter()
            .find(|grid| grid.name == name)
            .ok_or_else(|| Error::user(format!("there is no stencil.grid @{name}")))
    }
}

fn params<'c>(op: Op<'c>) -> Result<Vec<&'c str>, Error> {
    if mlir::attribute(op, PARAMS).is_none() {
        let place = mlir::place(op.location());
        return Err(Error::new(
            place,
            format!(
                "the module is no stencil program: it lacks {PARAMS}, the names of its run-time \
                 sizes"
            ),
        ));
    }
    read(op, PARAMS, attribute::as_strings)
}

/// The declared type as it is in kernels, and whether it was unsigned: `ui32` is a signless `i32`.
fn element<'c>(op: Op<'c>) -> Result<(Type<'c>, bool), Error> {
    let declared = read(op, "type", attribute::as_type)?;
    match mlir::unsigned_width(declared).map(|bits| mlir::parse_type(declared, &format!("i{bits}")))
    {
        Some(Some(signless)) => Ok((signless, true)),
        _ => Ok((declared, false)),
    }
}

fn role(op: Op) -> Result<Role, Error> {
    let name = read(op, "role", attribute::as_string)?;
    let wrong = || {
        Error::new(
            mlir::place(op.location()),
            format!("there is no role \"{name}\"; there are state, const and temp"),
        )
    };
    Role::parse(name).ok_or_else(wrong)
}

fn member<'c>(op: Op<'c>) -> Result<Option<Member<'c>>, Error> {
    let Some(attribute) = mlir::attribute(op, MEMBER) else { return Ok(None) };
    let parse = || {
        let number = |name| attribute::entry(attribute, name).and_then(attribute::as_integer);
        let field = attribute::entry(attribute, "field").and_then(attribute::as_string)?;
        Some(Member { field, offset: number("offset")?, size: number("size")? })
    };
    let wrong = || {
        Error::new(
            mlir::place(op.location()),
            format!("{MEMBER} needs field, offset and size: {attribute}"),
        )
    };
    parse().map(Some).ok_or_else(wrong)
}

fn boundary<'c>(op: Op<'c>) -> Result<Option<Boundary<'c>>, Error> {
    let Some(attribute) = mlir::attribute(op, BOUNDARY) else { return Ok(None) };
    let wrong = || {
        Error::new(
            mlir::place(op.location()),
            format!(
                "there is no boundary rule {attribute}; there are \"nearest\", \"periodic\", \"reflect\" and the symbol of a function"
            ),
        )
    };
    Boundary::parse(attribute).map(Some).ok_or_else(wrong)
}

/// Whether a module holds a stencil program at all.
pub fn is_program(module: &Module) -> bool {
    mlir::attribute(mlir::module_op(module), PARAMS).is_some()
}

/// Reads the pieces of `stencil.apply` or `tiled.apply`.
pub fn as_pieces<'c>(pieces: Attribute<'c>) -> Option<Vec<Piece<'c>>> {
    attribute::as_array(pieces)?
        .into_iter()
        .map(|piece| {
            Some(Piece {
                function: attribute::as_symbol(attribute::entry(piece, "function")?)?,
                lower: attribute::as_map(attribute::entry(piece, "lower")?)?,
                upper: attribute::as_map(attribute::entry(piece, "upper")?)?,
            })
        })
        .collect()
}

/// The top-level `func.func` of a name.
pub fn function<'c>(module: &Module<'c>, name: &str) -> Result<Op<'c>, Error> {
    mlir::operations(mlir::body(module))
        .into_iter()
        .find(|op| {
            mlir::name(*op) == FUNCTION
                && mlir::attribute(*op, "sym_name").and_then(attribute::as_string) == Some(name)
        })
        .ok_or_else(|| no_function(name))
}

fn no_function(name: &str) -> Error {
    Error::user(format!("there is no func.func @{name}"))
}

/// A name that nothing at the top of a module has: the wanted one, or the same with a number.
pub fn unused_name(module: &Module, wanted: &str) -> String {
    let taken: BTreeSet<&str> = mlir::operations(mlir::body(module))
        .into_iter()
        .filter_map(|op| mlir::attribute(op, "sym_name").and_then(attribute::as_string))
        .collect();
    let numbered = (2..).map(|number| format!("{wanted}_{number}"));
    std::iter::once(wanted.to_owned())
        .chain(numbered)
        .find(|name| !taken.contains(name.as_str()))
        .unwrap_or_default()
}

/// The name of a function.
pub fn function_name<'c>(function: Op<'c>) -> Result<&'c str, Error> {
    read(function, "sym_name", attribute::as_string)
}

/// The entry block of a function that has a body.
pub fn function_body<'c>(function: Op<'c>) -> Result<Blk<'c>, Error> {
    mlir::entry(function).ok_or_else(|| {
        Error::new(
            mlir::place(function.location()),
            "the function has no body; a point function needs one",
        )
    })
}

/// What the arguments of a point function, or of the function of a boundary rule, stand for, in
/// order; an error at the function's place when one says nothing of it.
pub fn arguments<'c>(function: Op<'c>) -> Result<Vec<Argument<'c>>, Error> {
    let entry = function_body(function)?;
    let count = mlir::arguments(entry).len();
    let dictionaries =
        mlir::attribute(function, "arg_attrs").and_then(attribute::as_array).unwrap_or_default();
    (0..count)
        .map(|index| {
            dictionaries.get(index).copied().and_then(as_argument).ok_or_else(|| {
                Error::new(
                    mlir::place(function.location()),
                    format!(
                        "argument {index} of a point function says nothing of its meaning: it \
                         needs stencil.read with \
                         stencil.offset, stencil.scalar, stencil.param, stencil.coord or \
                         stencil.step; that of a \
                         boundary rule may have stencil.nearest"
                    ),
                )
            })
        })
        .collect()
}

/// The arguments of a point function, each with its value in the function's body; errors as those
/// of [`arguments`].
pub fn arguments_with_values<'c>(function: Op<'c>) -> Result<Vec<(Argument<'c>, Val<'c>)>, Error> {
    Ok(arguments(function)?.into_iter().zip(mlir::arguments(function_body(function)?)).collect())
}

fn as_argument<'c>(attributes: Attribute<'c>) -> Option<Argument<'c>> {
    let entry = |name| attribute::entry(attributes, name);
    if let Some(field) = entry("stencil.read") {
        Some(Argument::Read {
            field: attribute::as_symbol(field)?,
            offset: attribute::as_integers(entry("stencil.offset")?)?,
        })
    } else if let Some(name) = entry("stencil.scalar") {
        Some(Argument::Scalar(attribute::as_symbol(name)?))
    } else if let Some(name) = entry("stencil.param") {
        Some(Argument::Param(attribute::as_string(name)?))
    } else if let Some(dimension) = entry("stencil.coord") {
        Some(Argument::Coordinate(usize::try_from(attribute::as_integer(dimension)?).ok()?))
    } else if entry("stencil.nearest").is_some() {
        Some(Argument::Nearest)
    } else if entry("stencil.partial").is_some() {
        Some(Argument::Partial)
    } else {
        entry("stencil.step").map(|_| Argument::Step)
    }
}

/// Builds the attributes of a point function's argument.
fn argument_attributes<'c>(
    builder: &Builder<'c>,
    argument: &Argument,
) -> Vec<(&'static str, Attribute<'c>)> {
    let context = builder.context;
    match argument {
        Argument::Read { field, offset } => {
            vec![
                ("stencil.read", attribute::symbol(context, field)),
                ("stencil.offset", attribute::integers(context, offset)),
            ]
        }
        Argument::Scalar(name) => vec![("stencil.scalar", attribute::symbol(context, name))],
        Argument::Param(name) => vec![("stencil.param", attribute::string(context, name))],
        Argument::Coordinate(dimension) => {
            vec![("stencil.coord", attribute::integer(context, *dimension as i64))]
        }
        Argument::Step => vec![("stencil.step", Attribute::unit(context))],
        Argument::Nearest => vec![("stencil.nearest", Attribute::unit(context))],
        Argument::Partial => vec![("stencil.partial", Attribute::unit(context))],
    }
}

/// Builds a point function, a private `func.func` whose body is still empty; returns the operation
/// and its entry block. Arguments have the type of what they stand for.
pub fn point_function<'c>(
    builder: &Builder<'c>,
    name: &str,
    arguments: &[(Argument, Type<'c>)],
    results: &[Type<'c>],
) -> Result<(Op<'c>, Blk<'c>), Error> {
    let attributes =
        |(argument, ty): &(Argument, Type<'c>)| (*ty, argument_attributes(builder, argument));
    let arguments: Vec<_> = arguments.iter().map(attributes).collect();
    let private = [("sym_visibility", attribute::string(builder.context, "private"))];
    builder.function(name, &arguments, results, &private)
}

/// An absolute read in a point function.
#[derive(Clone, Debug)]
pub struct Gather<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// The const field.
    pub field: &'c str,
    /// One coordinate a dimension, slowest first, as i64.
    pub at: Vec<Val<'c>>,
}

/// The absolute reads of an operation's regions, such as a point function's.
pub fn gathers<'c>(of: Op<'c>) -> Result<Vec<Gather<'c>>, Error> {
    let all = mlir::walk(of).into_iter().filter(|op| mlir::name(*op) == GATHER);
    all.map(|op| {
        Ok(Gather { op, field: read(op, "field", attribute::as_symbol)?, at: mlir::operands(op) })
    })
    .collect()
}

/// Builds `stencil.gather`.
pub fn gather<'c>(
    builder: &Builder<'c>,
    field: &str,
    at: &[Val<'c>],
    element: Type<'c>,
) -> Result<Val<'c>, Error> {
    builder.value(GATHER, at, element, &[("field", attribute::symbol(builder.context, field))])
}

/// Makes a module a stencil program.
pub fn set_program<'c>(
    builder: &Builder<'c>,
    module: &Module<'c>,
    params: &[&str],
    constants: &[(&str, i64)],
    steps: AffineMap<'c>,
) {
    let (op, context) = (mlir::module_op(module), builder.context);
    mlir::set_attribute(op, PARAMS, attribute::strings(context, params));
    mlir::set_attribute(op, STEPS, mlir::map_attribute(steps));
    if !constants.is_empty() {
        let entries: Vec<_> = constants
            .iter()
            .map(|(name, value)| {
                attribute::dictionary(
                    context,
                    &[
                        ("name", attribute::string(context, name)),
                        ("value", attribute::integer(context, *value)),
                    ],
                )
            })
            .collect();
        mlir::set_attribute(op, CONSTANTS, attribute::array(context, &entries));
    }
}

/// Builds `stencil.grid`.
pub fn grid<'c>(
    builder: &Builder<'c>,
    name: &str,
    lower: AffineMap<'c>,
    upper: AffineMap<'c>,
) -> Result<Op<'c>, Error> {
    let name = attribute::string(builder.context, name);
    builder.op(
        GRID,
        &[],
        &[],
        &[
            ("sym_name", name),
            ("lower", mlir::map_attribute(lower)),
            ("upper", mlir::map_attribute(upper)),
        ],
    )
}

/// Builds `stencil.field`.
pub fn field<'c>(
    builder: &Builder<'c>,
    name: &str,
    grid: &str,
    element: Type<'c>,
    role: Role,
    boundary: Option<Boundary<'c>>,
) -> Result<Op<'c>, Error> {
    let context = builder.context;
    let mut attributes = vec![
        ("sym_name", attribute::string(context, name)),
        ("grid", attribute::symbol(context, grid)),
        ("type", attribute::ty(element)),
        ("role", attribute::string(context, role.name())),
    ];
    attributes.extend(boundary.map(|rule| (BOUNDARY, rule.attribute(builder))));
    builder.op(FIELD, &[], &[], &attributes)
}

/// Says of a field which part it is of another.
pub fn set_member<'c>(builder: &Builder<'c>, field: Op<'c>, member: Member) {
    let context = builder.context;
    let entries = [
        ("field", attribute::string(context, member.field)),
        ("offset", attribute::integer(context, member.offset)),
        ("size", attribute::integer(context, member.size)),
    ];
    mlir::set_attribute(field, MEMBER, attribute::dictionary(context, &entries));
}

/// Builds `stencil.scalar`.
pub fn scalar<'c>(
    builder: &Builder<'c>,
    name: &str,
    element: Type<'c>,
    default: Option<Attribute<'c>>,
) -> Result<Op<'c>, Error> {
    let context = builder.context;
    let default: Vec<_> = default.into_iter().collect();
    builder.op(
        SCALAR,
        &[],
        &[],
        &[
            ("sym_name", attribute::string(context, name)),
            ("type", attribute::ty(element)),
            ("default", attribute::array(context, &default)),
        ],
    )
}

/// The attribute that [`as_pieces`] reads.
pub fn pieces_attribute<'c>(builder: &Builder<'c>, pieces: &[Piece<'c>]) -> Attribute<'c> {
    let context = builder.context;
    let pieces: Vec<_> = pieces
        .iter()
        .map(|piece| {
            attribute::dictionary(
                context,
                &[
                    ("function", attribute::symbol(context, piece.function)),
                    ("lower", mlir::map_attribute(piece.lower)),
                    ("upper", mlir::map_attribute(piece.upper)),
                ],
            )
        })
        .collect();
    attribute::array(context, &pieces)
}

/// Builds `stencil.apply`.
pub fn apply<'c>(
    builder: &Builder<'c>,
    updates: &[&str],
    pieces: &[Piece<'c>],
) -> Result<Op<'c>, Error> {
    let updates = attribute::symbols(builder.context, updates);
    builder.op(
        APPLY,
        &[],
        &[],
        &[("updates", updates), ("pieces", pieces_attribute(builder, pieces))],
    )
}

/// Builds `stencil.check`.
pub fn check<'c>(
    builder: &Builder<'c>,
    value: AffineMap<'c>,
    unless_empty: Option<(AffineMap<'c>, AffineMap<'c>)>,
    message: &str,
) -> Result<Op<'c>, Error> {
    let bounds: Vec<_> = unless_empty
        .into_iter()
        .flat_map(|(lower, upper)| [mlir::map_attribute(lower), mlir::map_attribute(upper)])
        .collect();
    builder.op(
        CHECK,
        &[],
        &[],
        &[
            ("value", mlir::map_attribute(value)),
            ("unless_empty", attribute::array(builder.context, &bounds)),
            ("message", attribute::string(builder.context, message)),
        ],
    )
}
