//! Builds upstream operations at the end of a block, so that a lowering reads like the code it
//! makes.

use crate::attribute;
use crate::error::Error;
use crate::mlir::{self, Blk, Op, Val};
use melior::Context;
use melior::ir::attribute::{FloatAttribute, IntegerAttribute};
use melior::ir::block::BlockLike;
use melior::ir::operation::{OperationBuilder, OperationLike};
use melior::ir::r#type::{FunctionType, IntegerType, MemRefType, TypeLike};
use melior::ir::{AffineExpr, AffineMap, Attribute, Identifier, Location, Region, Type, ValueLike};

/// Which comparison of integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compare {
    /// `a == b`
    Eq = 0,
    /// `a != b`
    Ne = 1,
    /// `a < b`, signed
    Lt = 2,
    /// `a <= b`, signed
    Le = 3,
    /// `a > b`, signed
    Gt = 4,
    /// `a >= b`, signed
    Ge = 5,
    /// `a < b`, unsigned
    Below = 6,
}

/// Appends operations to one block at one source location. Every method that builds fails with an
/// internal fault where MLIR refuses the operation, since only a fault of the caller leads there.
#[derive(Clone, Copy)]
pub struct Builder<'c> {
    /// The context of everything built.
    pub context: &'c Context,
    /// The location that the operations carry.
    pub location: Location<'c>,
    /// The block that they are appended to.
    pub block: Blk<'c>,
}

/// An attribute with its name.
pub type Named<'c, 'n> = (&'n str, Attribute<'c>);

impl<'c> Builder<'c> {
    /// A builder at the end of a block.
    pub fn new(context: &'c Context, location: Location<'c>, block: Blk<'c>) -> Self {
        Self { context, location, block }
    }

    /// The same builder in another block.
    pub fn at(&self, block: Blk<'c>) -> Self {
        Self { block, ..*self }
    }

    /// Any operation without regions.
    pub fn op(
        &self,
        name: &str,
        operands: &[Val<'c>],
        results: &[Type<'c>],
        attributes: &[Named<'c, '_>],
    ) -> Result<Op<'c>, Error> {
        self.op_with_regions(name, operands, results, attributes, Vec::new())
    }

    /// Any operation.
    pub fn op_with_regions(
        &self,
        name: &str,
        operands: &[Val<'c>],
        results: &[Type<'c>],
        attributes: &[Named<'c, '_>],
        regions: Vec<Region<'c>>,
    ) -> Result<Op<'c>, Error> {
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(name, attribute)| (Identifier::new(self.context, name), *attribute))
            .collect();
        let operation = OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec(regions)
            .build()
            .map_err(|error| Error::internal(format!("{name}: {error}")))?;
        Ok(mlir::op(self.block.append_operation(operation)))
    }

    /// An operation with one result.
    pub fn value(
        &self,
        name: &str,
        operands: &[Val<'c>],
        result: Type<'c>,
        attributes: &[Named<'c, '_>],
    ) -> Result<Val<'c>, Error> {
        let op = self.op(name, operands, &[result], attributes)?;
        mlir::results(op)
            .first()
            .copied()
            .ok_or_else(|| Error::internal(format!("{name}: has no result")))
    }

    /// `index`.
    pub fn index_type(&self) -> Type<'c> {
        Type::index(self.context)
    }

    /// `iN`.
    pub fn integer_type(&self, bits: u32) -> Type<'c> {
        IntegerType::new(self.context, bits).into()
    }

    /// An integer constant of any integer type or `index`.
    pub fn constant(&self, ty: Type<'c>, value: i64) -> Result<Val<'c>, Error> {
        self.value("arith.constant", &[], ty, &[("value", IntegerAttribute::new(ty, value).into())])
    }

    /// An `index` constant.
    pub fn index(&self, value: i64) -> Result<Val<'c>, Error> {
        self.constant(self.index_type(), value)
    }

    /// A floating-point constant, rounded to its type.
    pub fn float(&self, ty: Type<'c>, value: f64) -> Result<Val<'c>, Error> {
        self.value(
            "arith.constant",
            &[],
            ty,
            &[("value", FloatAttribute::new(self.context, ty, value).into())],
        )
    }

    /// Zero of a number type.
    pub fn zero(&self, ty: Type<'c>) -> Result<Val<'c>, Error> {
        if ty.is_float() { self.float(ty, 0.0) } else { self.constant(ty, 0) }
    }

    /// A two-operand operation whose result has the type of its operands.
    pub fn binary(&self, name: &str, left: Val<'c>, right: Val<'c>) -> Result<Val<'c>, Error> {
        self.value(name, &[left, right], left.r#type(), &[])
    }

    /// `left + right` of integers.
    pub fn add(&self, left: Val<'c>, right: Val<'c>) -> Result<Val<'c>, Error> {
        self.binary("arith.addi", left, right)
    }

    /// `left + constant` of integers; the value itself where the constant is 0.
    pub fn add_constant(&self, left: Val<'c>, right: i64) -> Result<Val<'c>, Error> {
        if right == 0 { Ok(left) } else { self.add(left, self.constant(left.r#type(), right)?) }
    }

    /// `left * constant` of integers; the value itself where the constant is 1.
    pub fn multiply_constant(&self, left: Val<'c>, right: i64) -> Result<Val<'c>, Error> {
        if right == 1 {
            return Ok(left);
        }
        self.binary("arith.muli", left, self.constant(left.r#type(), right)?)
    }

    /// A comparison of integers.
    pub fn compare(
        &self,
        predicate: Compare,
        left: Val<'c>,
        right: Val<'c>,
    ) -> Result<Val<'c>, Error> {
        let predicate = attribute::integer(self.context, predicate as i64);
        self.value("arith.cmpi", &[left, right], self.integer_type(1), &[("predicate", predicate)])
    }

    /// The conjunction of conditions; none for no conditions.
    pub fn all(&self, conditions: &[Val<'c>]) -> Result<Option<Val<'c>>, Error> {
        let Some((first, rest)) = conditions.split_first() else { return Ok(None) };
        let mut all = *first;
        for condition in rest {
            all = self.binary("arith.andi", all, *condition)?;
        }
        Ok(Some(all))
    }

    /// Both conditions.
    pub fn both(&self, first: Val<'c>, second: Val<'c>) -> Result<Val<'c>, Error> {
        self.binary("arith.andi", first, second)
    }

    /// `from <= value && value < to` of integers.
    pub fn within(&self, value: Val<'c>, (from, to): (Val<'c>, Val<'c>)) -> Result<Val<'c>, Error> {
        self.both(self.compare(Compare::Ge, value, from)?, self.compare(Compare::Lt, value, to)?)
    }

    /// `condition ? yes : no`.
    pub fn select(&self, condition: Val<'c>, yes: Val<'c>, no: Val<'c>) -> Result<Val<'c>, Error> {
        self.value("arith.select", &[condition, yes, no], yes.r#type(), &[])
    }

    /// The value of an affine expression whose dimensions and symbols are `index` values.
    pub fn affine(
        &self,
        expression: AffineExpr<'c>,
        dims: &[Val<'c>],
        symbols: &[Val<'c>],
    ) -> Result<Val<'c>, Error> {
        if expression.is_constant() {
            return self.index(expression.constant_value());
        }
        let map = AffineMap::new(self.context, dims.len(), symbols.len(), &[expression]);
        let operands = [dims, symbols].concat();
        self.value(
            "affine.apply",
            &operands,
            self.index_type(),
            &[("map", mlir::map_attribute(map))],
        )
    }

    /// `memref.load`; one `index` a dimension of the memref.
    pub fn load(&self, memref: Val<'c>, indices: &[Val<'c>]) -> Result<Val<'c>, Error> {
        let ty = MemRefType::try_from(memref.r#type())
            .map_err(|error| Error::internal(error.to_string()))?;
        let operands = [&[memref], indices].concat();
        self.value("memref.load", &operands, melior::ir::ShapedTypeLike::element(&ty), &[])
    }

    /// `memref.store`; one `index` a dimension of the memref.
    pub fn store(&self, value: Val<'c>, memref: Val<'c>, indices: &[Val<'c>]) -> Result<(), Error> {
        let operands = [&[value, memref], indices].concat();
        self.op("memref.store", &operands, &[], &[]).map(|_| ())
    }

    /// `if condition { then }`.
    pub fn when(
        &self,
        condition: Val<'c>,
        then: impl FnOnce(&Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.choose(
            condition,
            &[],
            |builder| then(builder).map(|()| Vec::new()),
            |_| Ok(Vec::new()),
        )
        .map(|_| ())
    }

    /// `if condition { then } else { otherwise }` with results.
    pub fn choose(
        &self,
        condition: Val<'c>,
        results: &[Type<'c>],
        then: impl FnOnce(&Self) -> Result<Vec<Val<'c>>, Error>,
        otherwise: impl FnOnce(&Self) -> Result<Vec<Val<'c>>, Error>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let (first, second) = (Region::new(), Region::new());
        let inner = self.at(mlir::append_block(&first, &[]));
        let values = then(&inner)?;
        inner.op("scf.yield", &values, &[], &[])?;
        let inner = self.at(mlir::append_block(&second, &[]));
        let values = otherwise(&inner)?;
        inner.op("scf.yield", &values, &[], &[])?;
        Ok(mlir::results(self.op_with_regions(
            "scf.if",
            &[condition],
            results,
            &[],
            vec![first, second],
        )?))
    }

    /// `for i = from to to step step { body(i) }`; `to` is exclusive, all three are `index`.
    pub fn repeat(
        &self,
        (from, to, step): (Val<'c>, Val<'c>, Val<'c>),
        body: impl FnOnce(&Self, Val<'c>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.carry((from, to, step), &[], |builder, index, _| {
            body(builder, index).map(|()| Vec::new())
        })
        .map(|_| ())
    }

    /// `for i = from to to step step iter_args(initial) { body(i, carried) }`; the last carried
    /// values.
    pub fn carry(
        &self,
        bounds: (Val<'c>, Val<'c>, Val<'c>),
        initial: &[Val<'c>],
        body: impl FnOnce(&Self, Val<'c>, &[Val<'c>]) -> Result<Vec<Val<'c>>, Error>,
    ) -> Result<Vec<Val<'c>>, Error> {
        self.carry_with(bounds, initial, &[], body)
    }

    /// [`carry`](Self::carry) by a loop with attributes.
    pub fn carry_with(
        &self,
        (from, to, step): (Val<'c>, Val<'c>, Val<'c>),
        initial: &[Val<'c>],
        attributes: &[Named<'c, '_>],
        body: impl FnOnce(&Self, Val<'c>, &[Val<'c>]) -> Result<Vec<Val<'c>>, Error>,
    ) -> Result<Vec<Val<'c>>, Error> {
        let region = Region::new();
        let carried: Vec<Type> = initial.iter().map(|value| value.r#type()).collect();
        let arguments: Vec<_> = std::iter::once(self.index_type())
            .chain(carried.iter().copied())
            .map(|ty| (ty, self.location))
            .collect();
        let inner = self.at(mlir::append_block(&region, &arguments));
        let arguments = mlir::arguments(inner.block);
        let Some((index, values)) = arguments.split_first() else {
            return Err(Error::internal("scf.for without an index"));
        };
        let next = body(&inner, *index, values)?;
        inner.op("scf.yield", &next, &[], &[])?;
        let operands = [&[from, to, step], initial].concat();
        Ok(mlir::results(self.op_with_regions(
            "scf.for",
            &operands,
            &carried,
            attributes,
            vec![region],
        )?))
    }

    /// A `func.func` with a body and argument attributes; returns the operation and its entry
    /// block.
    pub fn function(
        &self,
        name: &str,
        arguments: &[(Type<'c>, Vec<Named<'c, '_>>)],
        results: &[Type<'c>],
        attributes: &[Named<'c, '_>],
    ) -> Result<(Op<'c>, Blk<'c>), Error> {
        let types: Vec<_> = arguments.iter().map(|(ty, _)| *ty).collect();
        let region = Region::new();
        let entry = mlir::append_block(
            &region,
            &types.iter().map(|ty| (*ty, self.location)).collect::<Vec<_>>(),
        );
        let argument_attributes: Vec<_> =
            arguments.iter().map(|(_, named)| attribute::dictionary(self.context, named)).collect();
        let mut all = vec![
            ("sym_name", attribute::string(self.context, name)),
            (
                "function_type",
                attribute::ty(FunctionType::new(self.context, &types, results).into()),
            ),
        ];
        if !argument_attributes.is_empty() {
            all.push(("arg_attrs", attribute::array(self.context, &argument_attributes)));
        }
        all.extend_from_slice(attributes);
        let op = self.op_with_regions("func.func", &[], &[], &all, vec![region])?;
        Ok((op, entry))
    }
}

/// Builds something before an operation, at its place.
///
/// # Errors
/// Those of what is built.
pub fn before<'c, R>(
    context: &'c Context,
    op: Op<'c>,
    build: impl FnOnce(&Builder<'c>) -> Result<R, Error>,
) -> Result<R, Error> {
    let region = Region::new();
    let builder = Builder::new(context, op.location(), mlir::append_block(&region, &[]));
    let built = build(&builder)?;
    mlir::move_all_before(builder.block, op);
    Ok(built)
}
