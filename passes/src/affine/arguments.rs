//! The arguments of a function of affine loops as a run knows them: `index` is a size, a number is
//! a scalar, a memref is an array.
//!
//! An argument's name is its `stencil.name`, else `arg0`, `arg1`, ... A dynamic extent is a size:
//! that of its name in `stencil.extents`, else one of its own, such as `A_0`. Sizes of one name are
//! one size, so that the shapes of files are compared with each other and with `index` arguments.
//!
//! Declines, with a place: arrays of no dimensions or more than three, of a layout or a memory of
//! their own, and of other elements than the language has; a result of the function.

use super::access_checks::FARTHEST;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{DimSize, MemRefType, TypeLike};
use melior::ir::{ShapedTypeLike, Type, ValueLike};
use stencil_dialects::affine::Linear;
use stencil_dialects::attribute;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, NestArgument};

/// The declarations that a function's arguments make.
#[derive(Clone, Debug)]
pub struct Declared<'c> {
    /// The function's name.
    pub name: &'c str,
    /// Names of the sizes: first those of `index` arguments, then those of extents.
    pub params: Vec<String>,
    /// The arguments in order.
    pub arguments: Vec<Argument<'c>>,
}

/// An argument.
#[derive(Clone, Debug)]
pub struct Argument<'c> {
    /// Its name.
    pub name: String,
    /// Its value in the function.
    pub value: Val<'c>,
    /// Its kind.
    pub kind: Kind<'c>,
}

/// What an argument is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind<'c> {
    /// A size, by its place among the params.
    Size(usize),
    /// A number of a type.
    Scalar(Type<'c>),
    /// An array.
    Array {
        /// The type of a cell.
        element: Type<'c>,
        /// Cells along each dimension, slowest first.
        extents: Vec<Extent>,
    },
}

/// Cells along a dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many.
    Static(i64),
    /// A size, by its place among the params.
    Param(usize),
}

/// Types of numbers in arrays and scalars.
const ELEMENTS: [&str; 8] = ["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64"];

/// Dimensions of an array at most.
const MOST_RANK: usize = 3;

impl<'c> Declared<'c> {
    /// Reads the arguments of a `func.func` with a body.
    ///
    /// # Errors
    /// What the head of this file lists, extents beyond [`FARTHEST`], and names that stand twice or
    /// can't name a size.
    pub fn read(function: Op<'c>) -> Result<Self, Error> {
        let entry = stencil::function_body(function)?;
        let mut declared = Self {
            name: stencil::function_name(function)?,
            params: Vec::new(),
            arguments: Vec::new(),
        };
        let values = mlir::arguments(entry);
        let names = (0..values.len()).map(|place| stencil::nest_argument(function, place));
        let names: Vec<NestArgument> = names.collect::<Result<_, _>>()?;
        let own = |place: usize, named: &NestArgument| {
            named.name.map_or_else(|| format!("arg{place}"), str::to_owned)
        };
        let all: Vec<String> =
            names.iter().enumerate().map(|(place, named)| own(place, named)).collect();
        for (value, name) in values.iter().zip(&all) {
            if value.r#type().is_index() {
                declared.params.push(name.clone());
            }
        }
        for (place, ((value, named), name)) in values.iter().zip(&names).zip(&all).enumerate() {
            let twice = all.get(..place).is_some_and(|before| before.contains(name));
            if twice || name.is_empty() {
                return Err(refuse(
                    function,
                    &format!(
                        "the name `{name}` of argument {place} is \
                    empty, or another argument's too; give each a stencil.name of its own"
                    ),
                ));
            }
            let kind = declared.kind(function, (name, *value), named)?;
            declared.arguments.push(Argument { name: name.clone(), value: *value, kind });
        }
        declared.check_names(function)?;
        match mlir::attribute(function, "function_type").map(|ty| ty.to_string()) {
            Some(ty) if !ty.ends_with("-> ()") => {
                Err(decline(function, "the function has results; let it store them to an array"))
            }
            _ => Ok(declared),
        }
    }

    fn kind(
        &mut self,
        function: Op,
        (name, value): (&str, Val<'c>),
        named: &NestArgument,
    ) -> Result<Kind<'c>, Error> {
        let ty = value.r#type();
        let is_element = |ty: Type| ELEMENTS.contains(&ty.to_string().as_str());
        if ty.is_index() {
            let place = self.params.iter().position(|param| param == name);
            let missing = || Error::internal(format!("the size {name} has no place"));
            return place.map(Kind::Size).ok_or_else(missing);
        }
        let array = MemRefType::try_from(ty);
        let Ok(array) = array else {
            return match is_element(ty) {
                true => Ok(Kind::Scalar(ty)),
                false => Err(unknown(function, name, ty)),
            };
        };
        let element = array.element();
        let dims: Option<Vec<DimSize>> =
            (0..array.rank()).map(|at| array.dim_size(at).ok()).collect();
        let dims = dims.unwrap_or_default();
        let number = |dim: &DimSize| match dim {
            DimSize::Static(cells) => i64::try_from(*cells).unwrap_or(i64::MAX),
            DimSize::Dynamic => i64::MIN,
        };
        let plain =
            MemRefType::new(element, &dims.iter().map(number).collect::<Vec<_>>(), None, None);
        if Type::from(plain) != ty || !is_element(element) {
            return Err(unknown(function, name, ty));
        }
        if dims.is_empty() || dims.len() > MOST_RANK {
            let message = format!(
                "the array `{name}` has {} dimensions, and an array has 1 to {MOST_RANK}; join \
                 some of them",
                dims.len()
            );
            return Err(decline(function, &message));
        }
        if let Some(cells) = dims.iter().map(number).find(|cells| *cells > FARTHEST) {
            let what = format!("the array `{name}` has an extent of {cells}");
            return Err(refuse(function, &format!("{what}, and an extent is at most 2^48")));
        }
        let dynamic = dims.iter().filter(|dim| **dim == DimSize::Dynamic).count();
        if named.extents.as_ref().is_some_and(|names| names.len() != dynamic) {
            return Err(refuse(
                function,
                &format!(
                    "the array `{name}` has {dynamic} dynamic extents; \
                give stencil.extents a name for each"
                ),
            ));
        }
        let mut names = named.extents.iter().flatten();
        let extent = |(at, dim): (usize, &DimSize)| match dim {
            DimSize::Static(_) => Extent::Static(number(dim)),
            DimSize::Dynamic => {
                let name =
                    names.next().map_or_else(|| format!("{name}_{at}"), |at| (*at).to_owned());
                let known = self.params.iter().position(|param| *param == name);
                Extent::Param(known.unwrap_or_else(|| {
                    self.params.push(name);
                    self.params.len() - 1
                }))
            }
        };
        let extents = dims.iter().enumerate().map(extent).collect();
        Ok(Kind::Array { element, extents })
    }

    /// Sizes have names that expressions can hold, and that no array or scalar has.
    fn check_names(&self, function: Op) -> Result<(), Error> {
        let letters = |name: &str| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
                && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        };
        if let Some(bad) = self.arguments.iter().find(|argument| !letters(&argument.name)) {
            let name = bad.name.escape_default();
            let message = format!("`{name}` can't name an argument; choose letters, digits and _");
            return Err(refuse(function, &message));
        }
        if let Some(bad) = self.params.iter().find(|param| !letters(param)) {
            let name = bad.escape_default();
            let message = format!("`{name}` can't name a size; choose letters, digits and _");
            return Err(refuse(function, &message));
        }
        for param in &self.params {
            let taken = self
                .arguments
                .iter()
                .any(|argument| argument.name == *param && !matches!(argument.kind, Kind::Size(_)));
            if taken || param == "steps" {
                return Err(refuse(
                    function,
                    &format!(
                        "`{param}` can't name a size; choose another name than steps, and none of \
                         an array or a scalar"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// The array that a memref is.
    pub fn array(&self, memref: Val) -> Option<(&str, &[Extent])> {
        let argument = self.arguments.iter().find(|argument| argument.value == memref)?;
        match &argument.kind {
            Kind::Array { extents, .. } => Some((&argument.name, extents)),
            _ => None,
        }
    }

    /// A size as a linear form of the params.
    pub fn param(&self, place: usize) -> Linear {
        let coefficients = (0..self.params.len()).map(|at| i64::from(at == place)).collect();
        Linear { constant: 0, coefficients }
    }

    /// A number as a linear form of the params.
    pub fn number(&self, constant: i64) -> Linear {
        Linear { constant, coefficients: vec![0; self.params.len()] }
    }

    /// Cells along a dimension as a linear form of the params.
    pub fn cells(&self, extent: Extent) -> Linear {
        match extent {
            Extent::Static(cells) => self.number(cells),
            Extent::Param(place) => self.param(place),
        }
    }

    /// A size of a nest as a linear form of the params: an `index` argument, or an extent that
    /// `memref.dim` asks for. None for an index that is computed otherwise.
    pub fn size(&self, function: Op<'c>, size: Val<'c>) -> Option<Linear> {
        for argument in &self.arguments {
            if let (true, Kind::Size(place)) = (argument.value == size, &argument.kind) {
                return Some(self.param(*place));
            }
        }
        let maker = mlir::operations(mlir::entry(function)?)
            .into_iter()
            .find(|op| mlir::name(*op) == "memref.dim" && mlir::results(*op).contains(&size))?;
        let [memref, dimension] = mlir::operands(maker)[..] else { return None };
        let (_, extents) = self.array(memref)?;
        let constants = mlir::operations(mlir::entry(function)?).into_iter();
        let mut constants = constants.filter(|op| mlir::results(*op).contains(&dimension));
        let dimension =
            mlir::attribute(constants.next()?, "value").and_then(attribute::as_integer)?;
        Some(self.cells(*extents.get(usize::try_from(dimension).ok()?)?))
    }
}

fn refuse(function: Op, message: &str) -> Error {
    Error::new(mlir::place(function.location()), message)
}

fn decline(function: Op, message: &str) -> Error {
    Error::declined(Decline::Nest, message).at(mlir::place(function.location()))
}

fn unknown(function: Op, name: &str, ty: Type) -> Error {
    let elements = ELEMENTS.join(", ");
    decline(
        function,
        &format!(
            "the argument `{name}` is a {ty}; an argument is an index, one of {elements}, or a \
             memref of these without a layout and a memory space"
        ),
    )
}
