//! Declarations of a program as plain data: grids, fields, scalars, applies and checks.

use super::record::{block_of, kernel_block_of};
use super::{BOOLEAN, BOUNDARY, INITIAL, Layout, MEMBER, REPEATED};
use crate::affine::Linear;
use crate::attribute::{self, read, read_optional};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Attribute, Type};

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

impl<'c> Grid<'c> {
    /// Reads the operation; names and bounds are the verifier's work.
    pub(super) fn read(op: Op<'c>) -> Result<Self, Error> {
        Ok(Self {
            op,
            name: read(op, "sym_name", attribute::as_string)?,
            lower: read(op, "lower", attribute::as_map)?,
            upper: read(op, "upper", attribute::as_map)?,
        })
    }
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
    /// Output: the value of a reduction, in one cell.
    Reduction,
    /// Neither: whether a run has to end, in one cell.
    Condition,
}

impl Role {
    /// The word in the IR.
    pub fn name(self) -> &'static str {
        match self {
            Self::State => "state",
            Self::Const => "const",
            Self::Temp => "temp",
            Self::Reduction => "reduction",
            Self::Condition => "condition",
        }
    }

    /// Whether a `stencil.reduce` computes the field.
    pub fn is_reduced(self) -> bool {
        matches!(self, Self::Reduction | Self::Condition)
    }

    fn parse(name: &str) -> Option<Self> {
        let all = [Self::State, Self::Const, Self::Temp, Self::Reduction, Self::Condition];
        all.into_iter().find(|role| role.name() == name)
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
    /// Whether files hold NumPy's `bool`; the type is then an unsigned integer of 8 bits.
    pub boolean: bool,
    /// Which part it is of a field of structs or vecs; none for one that is declared so.
    pub member: Option<Member<'c>>,
    /// How the declared field lies in memory, where it is an array of structs outside.
    pub layout: Option<Layout>,
    /// Cells of a block of its array of structs; 1 where cells lie one after the other.
    pub block: i64,
    /// Cells of a block that kernels use in place of structs; none where they use none.
    pub kernel_block: Option<i64>,
    /// What it is to the outside.
    pub role: Role,
    /// What a read outside its grid gives; none where no read may lie outside.
    pub boundary: Option<Boundary<'c>>,
    /// The value of a reduction before the first step, of the declared type.
    pub initial: Option<Attribute<'c>>,
}

impl<'c> Field<'c> {
    /// Reads the operation; names and bounds are the verifier's work.
    pub(super) fn read(op: Op<'c>) -> Result<Self, Error> {
        let (element, unsigned) = element(op)?;
        Ok(Self {
            op,
            name: read(op, "sym_name", attribute::as_string)?,
            grid: read(op, "grid", attribute::as_symbol)?,
            element,
            unsigned,
            boolean: boolean(op)?,
            member: member(op)?,
            layout: Layout::of(op)?,
            block: block_of(op)?,
            kernel_block: kernel_block_of(op)?,
            role: role(op)?,
            boundary: boundary(op)?,
            initial: mlir::attribute(op, INITIAL),
        })
    }
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

    pub(super) fn attribute(self, builder: &Builder<'c>) -> Attribute<'c> {
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

impl<'c> Scalar<'c> {
    /// Reads the operation; names and bounds are the verifier's work.
    pub(super) fn read(op: Op<'c>) -> Result<Self, Error> {
        let (element, unsigned) = element(op)?;
        Ok(Self {
            op,
            name: read(op, "sym_name", attribute::as_string)?,
            element,
            unsigned,
            default: read(op, "default", attribute::as_array)?.first().copied(),
        })
    }
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
    /// How often a step repeats it, from the outside: the attribute `stencil.repeat`.
    pub repeats: Vec<Repetition>,
}

/// `stencil.repeat = array<i64: NUMBER, COUNT, ...>` of an apply or a reduction: consecutive ones
/// of one number are repeated together. Two more numbers stand for a repetition within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// Tells it from its neighbours.
    pub number: i64,
    /// How often.
    pub count: i64,
}

impl<'c> Apply<'c> {
    /// Reads the operation; names and bounds are the verifier's work.
    pub(super) fn read(op: Op<'c>) -> Result<Self, Error> {
        Ok(Self {
            op,
            updates: read(op, "updates", attribute::as_symbols)?,
            pieces: read(op, "pieces", as_pieces)?,
            repeats: repetitions(op)?,
        })
    }
}

/// One sub-grid of an apply.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// The value that must not be negative: a map with one result. Its symbols are the sizes. One
    /// symbol more, the last, is the number of steps of a run; a run of 0 steps needs no check.
    pub value: AffineMap<'c>,
    /// The value as a linear form, where it has one.
    pub linear: Option<Linear>,
    /// Lower and upper bound of the piece whose emptiness makes the condition void.
    pub unless_empty: Option<(AffineMap<'c>, AffineMap<'c>)>,
    /// The text of the error.
    pub message: &'c str,
}

impl<'c> Check<'c> {
    /// Reads the operation; names and bounds are the verifier's work.
    pub(super) fn read(op: Op<'c>) -> Result<Self, Error> {
        let bounds = |bounds| match attribute::as_array(bounds)?.as_slice() {
            [] => Some(None),
            [lower, upper] => Some(Some((attribute::as_map(*lower)?, attribute::as_map(*upper)?))),
            _ => None,
        };
        let value = read(op, "value", attribute::as_map)?;
        Ok(Self {
            op,
            value,
            linear: Linear::of_map(value).and_then(|values| values.into_iter().next()),
            unless_empty: read(op, "unless_empty", bounds)?,
            message: read(op, "message", attribute::as_string)?,
        })
    }
}

/// Reads how often a step repeats an apply or a reduction.
pub(super) fn repetitions(op: Op) -> Result<Vec<Repetition>, Error> {
    let pairs = |attribute| {
        let numbers = attribute::as_integers(attribute)?;
        let pairs = numbers.chunks(2).map(|pair| match pair {
            [number, count] => Some(Repetition { number: *number, count: *count }),
            _ => None,
        });
        pairs.collect()
    };
    Ok(read_optional(op, REPEATED, pairs)?.unwrap_or_default())
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
            format!(
                "there is no role \"{name}\"; there are state, const, temp, reduction and condition"
            ),
        )
    };
    Role::parse(name).ok_or_else(wrong)
}

fn boolean(op: Op) -> Result<bool, Error> {
    let marked = mlir::attribute(op, BOOLEAN).is_some();
    let declared = read(op, "type", attribute::as_type)?;
    if marked && mlir::unsigned_width(declared) != Some(8) {
        let message = format!("{BOOLEAN} marks fields of ui8, not of {declared}");
        return Err(Error::new(mlir::place(op.location()), message));
    }
    Ok(marked)
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
                "there is no boundary rule {attribute}; there are \"nearest\", \"periodic\", \
                 \"reflect\" and the symbol of a function"
            ),
        )
    };
    Boundary::parse(attribute).map(Some).ok_or_else(wrong)
}
