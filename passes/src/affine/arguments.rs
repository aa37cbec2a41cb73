//! The arguments of a function of affine loops as a run knows them: `index` is a size, a number is
//! a scalar, a memref is an array. A `memref.alloc` or `memref.alloca` outside of all loops is an
//! array of the function's own.
//!
//! An argument's name is its `stencil.name`, else `arg0`, `arg1`, ... A dynamic extent is a size:
//! that of its name in `stencil.extents`, else one of its own, such as `A_0`. Sizes of one name are
//! one size, so that the shapes of files are compared with each other and with `index` arguments.
//! An array of the function's own has the name `temp0`, `temp1`, ..., or one after the array that
//! it is the transpose of. Its extents are affine in the sizes.
//!
//! Declines, with a place: arrays of no dimensions or more than three, of a layout or a memory of
//! their own, and of other elements than the language has; extents that are not affine in the
//! sizes; a result of the function.

use super::access_checks::FARTHEST;
use super::nest::linear_expression;
use melior::ir::operation::OperationLike;
use melior::ir::r#type::{DimSize, MemRefType, TypeLike};
use melior::ir::{ShapedTypeLike, Type, ValueLike};
use stencil_dialects::affine::Linear;
use stencil_dialects::attribute;
use stencil_dialects::error::{Decline, Error};
use stencil_dialects::mlir::{self, Op, Val};
use stencil_dialects::stencil::{self, NestArgument};
use stencil_dialects::tiled::{argument_note, layout_note, transposed_of};

/// The declarations that a function's arguments make.
#[derive(Clone, Debug)]
pub struct Declared<'c> {
    /// The function's name.
    pub name: &'c str,
    /// Names of the sizes: first those of `index` arguments, then those of extents.
    pub params: Vec<String>,
    /// The arguments in order, then the arrays of the function's own.
    pub arguments: Vec<Argument<'c>>,
}

/// An argument, or an array of the function's own.
#[derive(Clone, Debug)]
pub struct Argument<'c> {
    /// Its name.
    pub name: String,
    /// Its value in the function.
    pub value: Val<'c>,
    /// Its kind.
    pub kind: Kind<'c>,
    /// Whether the function allocates it.
    pub own: bool,
    /// Why its dimensions have their order, if a pass noted it.
    pub note: Option<&'c str>,
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Extent {
    /// So many.
    Static(i64),
    /// A size, by its place among the params.
    Param(usize),
    /// A form of the params.
    Form(Linear),
}

/// Types of numbers in arrays and scalars.
const ELEMENTS: [&str; 8] = ["f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64"];

/// The end of the name of a transposed array.
const TRANSPOSED: &str = "_transposed";

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
                let fault = if twice { "another argument's too" } else { "empty" };
                return Err(refuse(
                    function,
                    &format!(
                        "the name `{name}` of argument {place} is {fault}; give each argument a \
                         stencil.name of its own"
                    ),
                ));
            }
            let kind = declared.kind(function, (name, *value), named)?;
            let name = name.clone();
            let note = argument_note(function, place)?;
            declared.arguments.push(Argument { name, value: *value, kind, own: false, note });
        }
        for op in mlir::operations(entry).into_iter().filter(|op| allocates(*op)) {
            declared.arguments.push(declared.allocated(function, op)?);
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
        let (element, dims) = plain_array(function, name, array)?;
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
            DimSize::Static(_) => Extent::Static(cells(dim)),
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

    /// The array that an operation of the function allocates.
    fn allocated(&self, function: Op<'c>, op: Op<'c>) -> Result<Argument<'c>, Error> {
        let value = mlir::results(op).first().copied();
        let value = value.ok_or_else(|| Error::internal("an allocation without a result"))?;
        let taken = |name: &String| {
            self.arguments.iter().any(|argument| argument.name == *name)
                || self.params.contains(name)
        };
        // A pass that transposes an argument changes no other name.
        let of_argument = |own: &&Argument| {
            let of = own.name.strip_suffix(TRANSPOSED);
            self.arguments.iter().any(|given| !given.own && Some(given.name.as_str()) == of)
        };
        let own = self.arguments.iter().filter(|argument| argument.own);
        let number = own.filter(|own| !of_argument(own)).count();
        let first = match transposed_of(op)? {
            Some(name) => format!("{name}{TRANSPOSED}"),
            None => format!("temp{number}"),
        };
        let names = std::iter::successors(Some(first), |name| Some(format!("{name}_")));
        let name = names.into_iter().find(|name| !taken(name)).unwrap_or_default();
        let array = MemRefType::try_from(value.r#type());
        let array = array.map_err(|_| Error::internal("an allocation of no array"))?;
        let place = mlir::place(op.location());
        let (element, dims) =
            plain_array(function, &name, array).map_err(|error| error.at(place.clone()))?;
        let mut sizes = mlir::operands(op).into_iter();
        let extent = |dim: &DimSize| {
            if let DimSize::Static(_) = dim {
                return Ok(Extent::Static(cells(dim)));
            }
            let form = sizes.next().and_then(|size| self.form(function, size)).ok_or_else(|| {
                let message = "an extent of this array is not affine in the sizes; write it as an \
                               affine map of index arguments and extents";
                Error::declined(Decline::Nest, message).at(place.clone())
            })?;
            let param = (0..self.params.len()).find(|param| self.param(*param) == form);
            Ok(param.map_or(Extent::Form(form), Extent::Param))
        };
        let extents = dims.iter().map(extent).collect::<Result<_, Error>>()?;
        let (kind, note) = (Kind::Array { element, extents }, layout_note(op)?);
        Ok(Argument { name, value, kind, own: true, note })
    }

    /// An index value outside of all loops as a linear form of the params.
    fn form(&self, function: Op<'c>, value: Val<'c>) -> Option<Linear> {
        if let Some(size) = self.size(function, value) {
            return Some(size);
        }
        let mut all = mlir::operations(mlir::entry(function)?).into_iter();
        let maker = all.find(|op| mlir::results(*op).contains(&value))?;
        match mlir::name(maker) {
            "arith.constant" => {
                let value = mlir::attribute(maker, "value").and_then(attribute::as_integer)?;
                Some(self.number(value))
            }
            "affine.apply" => {
                let map = mlir::attribute(maker, "map").and_then(attribute::as_map)?;
                let inputs = mlir::operands(maker).into_iter();
                let inputs: Option<Vec<_>> = inputs.map(|at| self.form(function, at)).collect();
                let expression = map.result(0).ok()?;
                linear_expression(expression, &inputs?, map.dim_count(), &self.number(0))
            }
            _ => None,
        }
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
    pub fn cells(&self, extent: &Extent) -> Linear {
        match extent {
            Extent::Static(cells) => self.number(*cells),
            Extent::Param(place) => self.param(*place),
            Extent::Form(form) => form.clone(),
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
        Some(self.cells(extents.get(usize::try_from(dimension).ok()?)?))
    }
}

/// Whether an operation allocates an array.
pub fn allocates(op: Op) -> bool {
    matches!(mlir::name(op), "memref.alloc" | "memref.alloca")
}

/// Cells along a dimension of a type; a dynamic one has the number that stands for it in MLIR.
fn cells(dim: &DimSize) -> i64 {
    match dim {
        DimSize::Static(cells) => i64::try_from(*cells).unwrap_or(i64::MAX),
        DimSize::Dynamic => i64::MIN,
    }
}

/// The element and the dimensions of an array that a plan can hold.
fn plain_array<'c>(
    function: Op,
    name: &str,
    array: MemRefType<'c>,
) -> Result<(Type<'c>, Vec<DimSize>), Error> {
    let element = array.element();
    let dims: Option<Vec<DimSize>> = (0..array.rank()).map(|at| array.dim_size(at).ok()).collect();
    let dims = dims.unwrap_or_default();
    let plain = MemRefType::new(element, &dims.iter().map(cells).collect::<Vec<_>>(), None, None);
    if Type::from(plain) != Type::from(array) || !is_element(element) {
        return Err(unknown(function, name, array.into()));
    }
    if dims.is_empty() || dims.len() > MOST_RANK {
        let remedy = if dims.is_empty() { "make it memref<1x...>" } else { "join some of them" };
        let message = format!(
            "the array `{name}` has {} dimensions, and an array has 1 to {MOST_RANK}; {remedy}",
            dims.len()
        );
        return Err(decline(function, &message));
    }
    if let Some(cells) = dims.iter().map(cells).find(|cells| *cells > FARTHEST) {
        let what = format!("the array `{name}` has an extent of {cells}");
        return Err(refuse(function, &format!("{what}, and an extent is at most 2^48")));
    }
    Ok((element, dims))
}

fn is_element(ty: Type) -> bool {
    ELEMENTS.contains(&ty.to_string().as_str())
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
