//! The schedule of a plan: launches, loops over them, and what happens between launches.

use super::buffer::is_zero;
use super::cut::Cut;
use crate::expr::{Expr, Sizes};
use crate::number::{Number, Numeral};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// One entry of the schedule. The entries of a list run in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Node {
    /// Launches a kernel.
    Launch(Launch),
    /// Runs a list several times.
    Repeat(Repeat),
    /// Runs a list until a value on the device meets a condition.
    Until(Until),
    /// Runs one of several lists that do the same work.
    Choose(Choose),
    /// Makes the rims of neighbouring parts of a field equal to the cells that they stand for.
    Exchange(Exchange),
    /// Hands a field's current value to the caller.
    Snapshot(Snapshot),
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// The kernel.
    pub kernel: String,
    /// Blocks in x, y, z.
    pub grid: [Expr; 3],
    /// Steps that the launch takes. Where several launches make up one step, the last has 1 and the
    /// others 0.
    pub steps: u32,
    /// The kernel's arguments in order.
    pub arguments: Vec<Argument>,
    /// After the launch, the first buffer of each list gets the memory of the second, and so on;
    /// the last gets that of the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rotate: Vec<Vec<String>>,
    /// How the launch may be cut, if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bands: Option<Bands>,
    /// How its blocks may be shared out between devices, if they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Box<Cut>>,
    /// Whether all blocks must be on the device at once, as those that wait for each other must.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cooperative: bool,
    /// Blocks of a cluster in x, y, z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<[u32; 3]>,
    /// By how much the launch raises the flags of its blocks; see [`Argument::Epoch`].
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epochs: u32,
    /// How often the kernel is launched in place of once; the steps, the epochs and the rotations
    /// follow the last time. Without a positive number it is not launched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Expr>,
    /// The device that runs it, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub device: u32,
}

/// How a launch may be cut into bands that are launched one by one ([`crate::bands`]). Its blocks
/// form rows of equal length, numbered from 0. A band of `n` rows has `n / rows` of all blocks, in
/// x, and its first row as an argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Bands {
    /// Rows of a whole launch.
    pub rows: Expr,
    /// A row reads and writes nothing that rows farther away than this read or write.
    pub reach: u32,
}

/// An argument of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Argument {
    /// A buffer that the launch leaves as it is.
    Read(String),
    /// A buffer of which the launch writes every cell and reads none.
    Write(String),
    /// A buffer that is read and written.
    ReadWrite(String),
    /// A buffer of the kind `reduction`, of one cell. The launch leaves it as it is, and does
    /// nothing where it is not 0: see [`Until::ahead`].
    Unless(String),
    /// A run-time size, an integer of `index_width` bits.
    Param(String),
    /// A run-time scalar of its own type.
    Scalar(String),
    /// The number of the first step of the launch, an i64.
    Step,
    /// The number of the first row of blocks of the launch, an integer of `index_width` bits.
    Row,
    /// The number of the first block of the launch in x, an integer of `index_width` bits.
    FirstBlock,
    /// The sum of the `epochs` of all launches before, an i32: the count of the flags.
    Epoch,
    /// The number of the launch among its `turns`, from 0, an integer of `index_width` bits.
    Turn,
}

impl Argument {
    /// The buffer, of one.
    pub fn buffer(&self) -> Option<&str> {
        match self {
            Self::Read(name) | Self::Write(name) | Self::ReadWrite(name) | Self::Unless(name) => {
                Some(name)
            }
            _ => None,
        }
    }

    /// The buffer that the launch writes, of one.
    pub fn written(&self) -> Option<&str> {
        match self {
            Self::Write(name) | Self::ReadWrite(name) => Some(name),
            _ => None,
        }
    }
}

/// A list, repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Repeat {
    /// How often; may use `steps`. A negative count is 0.
    pub count: Expr,
    /// The nodes of each iteration.
    pub body: Vec<Node>,
}

/// A list, repeated until a value meets a condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// The buffer of kind `reduction`, of one cell, whose value is compared.
    pub reduction: String,
    /// How it is compared.
    pub is: Relation,
    /// The number that it is compared with.
    pub limit: Limit,
    /// The value is compared each time after this many iterations.
    pub every: u32,
    /// The condition as a user reads it, for messages.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Iterations at most; may use `steps`. A negative number is 0.
    pub most: Expr,
    /// Whether launches may be sent before the comparison before them is known: all launches of
    /// both lists store nothing where the value is not 0, which is the comparison. The last launch
    /// of the body computes the value; nothing follows the node.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ahead: bool,
    /// The nodes of each iteration.
    pub body: Vec<Node>,
    /// The nodes behind the last iteration, where the condition was never met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub otherwise: Vec<Node>,
}

impl Until {
    /// The steps between two comparisons; none where sizes decide it, or where they are none.
    pub(super) fn steps_between_looks(&self) -> Option<i64> {
        steps(&self.body)?.checked_mul(self.every.into()).filter(|steps| *steps > 0)
    }

    /// Checks that launches may be sent ahead in a schedule, where the plan says so.
    pub(super) fn ahead_is_possible(&self, schedule: &[Node]) -> Result<(), String> {
        let compares = self.is == Relation::NotEqual && self.every == 1;
        let zero = matches!(&self.limit, Limit::Value(value) if value.to_string() == "0");
        let ends = matches!(schedule.last(), Some(Node::Until(last)) if std::ptr::eq(last, self));
        let has = |launch: &Launch, argument: fn(String) -> Argument| {
            launch.arguments.contains(&argument(self.reduction.clone()))
        };
        let body: Vec<_> = launches(&self.body).collect();
        let (computes, others) = match body.split_last() {
            Some((last, others)) => (has(last, Argument::ReadWrite), others),
            None => (false, [].as_slice()),
        };
        let mut others = others.iter().copied().chain(launches(&self.otherwise));
        let guarded = others.all(|launch| has(launch, Argument::Unless));
        if !self.ahead || (compares && zero && ends && computes && guarded) {
            return Ok(());
        }
        Err(format!(
            "`ahead` needs an `until` at the end of the schedule with `every` 1 and the comparison \
             `not_equal` with 0, whose last launch has `{name}` as `read_write`, and all others \
             as `unless`",
            name = self.reduction
        ))
    }
}

/// The steps of a list that is done once; none where sizes decide it.
fn steps(list: &[Node]) -> Option<i64> {
    list.iter().try_fold(0_i64, |sum, node| {
        let own = match node {
            Node::Launch(launch) => launch.steps.into(),
            Node::Repeat(Repeat { count, body }) => {
                count.evaluate(&Sizes::new()).ok()?.max(0).checked_mul(steps(body)?)?
            }
            // All do the same work.
            Node::Choose(choose) => steps(&choose.among.first()?.body)?,
            Node::Until(_) => return None,
            Node::Exchange(_) | Node::Snapshot(_) => 0,
        };
        sum.checked_add(own)
    })
}

/// All nodes of a list, those inside others too, in the order of the file.
pub fn nodes(list: &[Node]) -> Vec<&Node> {
    let mut found = Vec::new();
    list.iter().for_each(|node| node.for_each(&mut |inner| found.push(inner)));
    found
}

/// All launches of a list, in the order of the file.
pub fn launches(list: &[Node]) -> impl Iterator<Item = &Launch> {
    nodes(list).into_iter().filter_map(|node| match node {
        Node::Launch(launch) => Some(launch),
        _ => None,
    })
}

/// A relation of two numbers. With a NaN all but `not_equal` are false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Relation {
    /// Whether it holds between two numbers of one type.
    pub fn holds(self, left: Number, right: Number) -> bool {
        let order = left.compare(right);
        match self {
            Self::Less => order == Some(Ordering::Less),
            Self::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
        }
    }
}

/// The number that a value is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// A constant of the buffer's type.
    Value(Numeral),
    /// A run-time scalar of the buffer's type.
    Scalar(String),
}

/// Lists that do the same work. A run takes the one that the caller names, else the first whose
/// condition holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Choose {
    /// The name by which a caller chooses.
    pub name: String,
    /// The lists; the last one has no condition.
    pub among: Vec<Alternative>,
}

/// One of several lists that do the same work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// The name by which a caller chooses it.
    pub name: String,
    /// It is taken where this is not negative; may use `steps`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Expr>,
    /// Steps per launch of its main kernel, for the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pyramid_height: Option<i64>,
    /// Cells of a tile's result per dimension, for the record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tile: Vec<i64>,
    /// How far a step reads per dimension, for the model of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reach: Vec<i64>,
    /// Its nodes.
    pub body: Vec<Node>,
}

/// Makes the rims of neighbouring parts of a field equal to the cells that they stand for. The
/// parts are those of the field's `value`, cut along the slowest dimension and in its order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The field.
    pub field: String,
    /// Rows on each side of the line between two parts that the other part gets.
    pub depth: u32,
}

/// Hands a field's current value to the caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    /// The field.
    pub field: String,
}

impl Node {
    /// The lists inside, in order.
    fn bodies(&self) -> Vec<&[Node]> {
        match self {
            Self::Repeat(repeat) => vec![&repeat.body],
            Self::Until(until) => vec![&until.body, &until.otherwise],
            Self::Choose(choose) => choose.among.iter().map(|one| one.body.as_slice()).collect(),
            Self::Launch(_) | Self::Exchange(_) | Self::Snapshot(_) => Vec::new(),
        }
    }

    /// Calls `visit` with the node and every node inside, in order.
    pub fn for_each<'n>(&'n self, visit: &mut impl FnMut(&'n Node)) {
        visit(self);
        for node in self.bodies().into_iter().flatten() {
            node.for_each(&mut *visit);
        }
    }
}
