//! What modules, operations and blocks consist of, and how it is moved and copied.

use super::identifier;
use super::{Blk, Op, Val, block, copy_to, key, move_before, op, value};
use melior::ir::attribute::DictionaryAttribute;
use melior::ir::block::BlockLike;
use melior::ir::operation::OperationLike;
use melior::ir::{Attribute, Block, Location, Module, Region, RegionLike, Type};
use std::collections::BTreeMap;

/// The module's own block.
pub fn body<'c>(module: &Module<'c>) -> Blk<'c> {
    block(module.body())
}

/// The module as an operation.
pub fn module_op<'c>(module: &Module<'c>) -> Op<'c> {
    op(module.as_operation())
}

/// The operations of a block in order.
pub fn operations<'c>(block: Blk<'c>) -> Vec<Op<'c>> {
    let mut found = Vec::new();
    let mut next = block.first_operation();
    while let Some(operation) = next {
        found.push(op(operation));
        next = operation.next_in_block();
    }
    found
}

/// The blocks of an operation's region.
pub fn blocks<'c>(operation: Op<'c>, region: usize) -> Vec<Blk<'c>> {
    let next = |before: &Blk<'c>| before.next_in_region().map(block);
    std::iter::successors(first_block(operation, region), next).collect()
}

/// The values that a region of an operation hands over at its end.
pub fn yields<'c>(operation: Op<'c>, region: usize) -> Vec<Val<'c>> {
    let last =
        blocks(operation, region).last().and_then(|block| operations(*block).last().copied());
    last.map(super::operands).unwrap_or_default()
}

/// The first block of an operation's first region.
pub fn entry<'c>(operation: Op<'c>) -> Option<Blk<'c>> {
    first_block(operation, 0)
}

fn first_block<'c>(operation: Op<'c>, region: usize) -> Option<Blk<'c>> {
    // An error of `region` would hold the whole operation as text, which takes long.
    let has_region = region < operation.region_count();
    let region = has_region.then(|| operation.region(region).ok()).flatten()?;
    region.first_block().map(block)
}

/// The attribute of a name, or none.
pub fn attribute<'c>(operation: Op<'c>, name: &str) -> Option<Attribute<'c>> {
    operation.attribute(name).ok()
}

/// The entries of a dictionary; none for another attribute.
pub fn entries<'c>(attribute: Attribute<'c>) -> Option<Vec<(&'c str, Attribute<'c>)>> {
    let all = DictionaryAttribute::try_from(attribute).ok()?;
    let entries = (0..all.len()).filter_map(|index| all.element(index).ok());
    Some(entries.map(|(name, value)| (identifier(name).unwrap_or_default(), value)).collect())
}

/// The arguments of a block.
pub fn arguments<'c>(block: Blk<'c>) -> Vec<Val<'c>> {
    (0..block.argument_count()).filter_map(|index| block.argument(index).ok()).map(value).collect()
}

/// An operation's operands.
pub fn operands<'c>(operation: Op<'c>) -> Vec<Val<'c>> {
    operation.operands().map(value).collect()
}

/// An operation's results.
pub fn results<'c>(operation: Op<'c>) -> Vec<Val<'c>> {
    operation.results().map(value).collect()
}

/// Appends a new block to a region.
pub fn append_block<'c>(region: &Region<'c>, arguments: &[(Type<'c>, Location<'c>)]) -> Blk<'c> {
    block(region.append_block(Block::new(arguments)))
}

/// Copies the operations of `source`, less its terminator, to the end of `target` with the
/// source's arguments replaced; returns what the terminator returns.
pub fn inline_block<'c>(source: Blk<'c>, arguments: &[Val<'c>], target: Blk<'c>) -> Vec<Val<'c>> {
    let mut map: BTreeMap<usize, Val<'c>> =
        self::arguments(source).into_iter().map(key).zip(arguments.iter().copied()).collect();
    let all = operations(source);
    let Some((terminator, rest)) = all.split_last() else { return Vec::new() };
    for original in rest {
        copy_to(*original, target, &mut map);
    }
    operands(*terminator)
        .into_iter()
        .map(|result| map.get(&key(result)).copied().unwrap_or(result))
        .collect()
}

/// Moves the operations of a block before an operation of another one.
pub fn move_all_before<'c>(source: Blk<'c>, place: Op<'c>) {
    for operation in operations(source) {
        move_before(operation, place);
    }
}
