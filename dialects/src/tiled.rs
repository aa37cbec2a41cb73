//! Typed views of the `tiled` dialect: tile kernels, the host schedule, and what the lowered
//! kernels say of their launch (`tiled/launch.rs`). Boxes of cells are in `tiled/halo.rs`.

mod halo;
mod launch;

pub use halo::Halo;
pub use launch::{
    Bands, Binding, Launch, binding_attributes, launch_attributes, launches, set_dynamic_shared,
};

use crate::Signature;
use crate::attribute::{self, read};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op, Val};
use crate::stencil::{self, Argument, Boundary, Piece, Program};
use melior::Context;
use melior::ir::operation::OperationLike;
use melior::ir::{AffineMap, Attribute, Module, Type};
use std::collections::BTreeMap;

/// Names of the operations.
pub const LOAD: &str = "tiled.load";
/// See [`LOAD`].
pub const APPLY: &str = "tiled.apply";
/// See [`LOAD`].
pub const STORE: &str = "tiled.store";
/// See [`LOAD`].
pub const REPEAT: &str = "tiled.repeat";

/// Every operation, as the IRDL text declares it.
pub const OPERATIONS: &[Signature] = &[
    Signature {
        name: LOAD,
        operands: &[],
        results: &["tile"],
        attributes: &["field", "lower", "upper"],
    },
    Signature {
        name: APPLY,
        operands: &["inputs"],
        results: &["outputs"],
        attributes: &["reads", "updates", "pieces", "step", "lower", "upper"],
    },
    Signature { name: STORE, operands: &["tile"], results: &[], attributes: &["field"] },
    Signature { name: REPEAT, operands: &[], results: &[], attributes: &["count", "kernels"] },
];

/// Cells of a tile along one dimension, and cells of a thread: far more than fit in any shared
/// memory, and few enough that the volume of a tile can't overflow.
pub const MOST_CELLS: i64 = 1 << 20;
/// Steps a launch: a kernel holds every step's code.
pub const MOST_STEPS: i64 = 1024;

const STRATEGY: &str = "tiled.strategy";
const TILE: &str = "tiled.tile";
const PER_THREAD: &str = "tiled.per_thread";
const STEPS: &str = "tiled.steps";
const REGION: &str = "tiled.region";
const INDEX_WIDTH: &str = "tiled.index_width";
const INTERIOR: &str = "tiled.interior";
const PARTIAL: &str = "tiled.partial";
const KEEPS: &str = "tiled.keeps";

/// `!tiled.tile`.
fn tile_type<'c>(builder: &Builder<'c>) -> Result<Type<'c>, Error> {
    Type::parse(builder.context, "!tiled.tile")
        .ok_or_else(|| Error::internal("the tiled dialect is not loaded"))
}

/// Which cells of which field a tile value holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile<'c> {
    /// The field.
    pub field: &'c str,
    /// The cells.
    pub halo: Halo,
}

/// How a tile kernel is to be lowered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// `naive`, `block`, ...
    pub strategy: String,
    /// Cells of the tile per dimension, slowest first.
    pub tile: Vec<i64>,
    /// Cells a thread per dimension, slowest first.
    pub per_thread: Vec<i64>,
    /// Steps a launch of this kernel (0 for all but the last kernel of a step that takes several).
    pub steps: i64,
    /// What each apply computes.
    pub region: Region,
}

/// Which cells the applies of a kernel compute.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Region {
    /// Those that later applies and the tile need of each.
    #[default]
    Shrinking,
    /// Those that the first one needs to, of all: threads do the same in each step. Cells beyond
    /// what is needed may come from cells that no tile holds, and no cell that is stored comes from
    /// them.
    Fixed,
}

impl Region {
    const ALL: [(&'static str, Self); 2] = [("shrinking", Self::Shrinking), ("fixed", Self::Fixed)];

    /// The region of a name.
    ///
    /// # Errors
    /// Says which names there are.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|(word, _)| *word == name);
        let wrong =
            || Error::user(format!("there is no region '{name}'; there are shrinking and fixed"));
        found.map(|(_, region)| region).ok_or_else(wrong)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, region)| *region == self).map_or("", |(name, _)| name)
    }
}

/// A tile kernel: straight-line SSA over tile values.
#[derive(Clone, Debug)]
pub struct Kernel<'c> {
    /// The function.
    pub op: Op<'c>,
    /// Its name.
    pub name: &'c str,
    /// How to lower it.
    pub schedule: Schedule,
    /// Loads, applies and stores in order.
    pub body: Vec<TileOp<'c>>,
    /// Whether tiles away from every rim run code of their own; each apply then has a main piece.
    pub split: bool,
    tiles: BTreeMap<usize, Tile<'c>>,
}

impl<'c> Kernel<'c> {
    /// Its applies in order.
    pub fn applies(&self) -> impl Iterator<Item = &Apply<'c>> {
        self.body
            .iter()
            .filter_map(|op| if let TileOp::Apply(apply) = op { Some(apply) } else { None })
    }

    /// What its tile values hold, in no order.
    pub fn tiles(&self) -> impl Iterator<Item = &Tile<'c>> {
        self.tiles.values()
    }

    /// What a tile value of this kernel holds.
    pub fn tile(&self, value: Val<'c>) -> Result<&Tile<'c>, Error> {
        let tile = self.tiles.get(&mlir::key(value));
        tile.ok_or_else(|| {
            Error::new(mlir::place(self.op.location()), "a tile of another kernel is used here")
        })
    }
}

/// One operation of a tile kernel.
#[derive(Clone, Debug)]
pub enum TileOp<'c> {
    /// `tiled.load`.
    Load {
        /// The operation.
        op: Op<'c>,
        /// Whose cells.
        field: &'c str,
        /// The loaded tile.
        tile: Val<'c>,
    },
    /// `tiled.apply`.
    Apply(Apply<'c>),
    /// `tiled.store`.
    Store {
        /// The operation.
        op: Op<'c>,
        /// The field's next value.
        field: &'c str,
        /// The stored tile.
        tile: Val<'c>,
    },
}

/// `tiled.apply`.
#[derive(Clone, Debug)]
pub struct Apply<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// Fields and the tiles that hold their old values.
    pub inputs: Vec<(&'c str, Val<'c>)>,
    /// Updated fields and the tiles of their new values.
    pub outputs: Vec<(&'c str, Val<'c>)>,
    /// Sub-grids with their functions.
    pub pieces: Vec<Piece<'c>>,
    /// The cells that are computed, of every output.
    pub halo: Halo,
    /// The step within the launch, from 0.
    pub step: i64,
    /// The piece that covers all of the apply's cells in a tile away from every rim.
    pub main: Option<Piece<'c>>,
    /// What other applies computed of the output, where this one goes on with it.
    pub partial: Option<Val<'c>>,
    /// What the output is where no piece lies.
    pub keeps: Keeps,
}

/// What a cell that no piece covers has after an apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeps {
    /// Its old value.
    #[default]
    Old,
    /// The partial result.
    Partial,
    /// Nothing that anybody reads.
    Nothing,
}

impl<'c> Apply<'c> {
    /// The tile that holds a field's old values.
    pub fn input(&self, field: &str) -> Option<Val<'c>> {
        self.inputs.iter().find(|(name, _)| *name == field).map(|(_, tile)| *tile)
    }

    /// Whether cells beside the tile's own are computed.
    pub fn reaches_beyond(&self) -> bool {
        self.halo != Halo::none(self.halo.lower.len())
    }

    /// The tile whose values an updated field keeps where no piece lies.
    pub fn kept(&self, field: &str) -> Option<Val<'c>> {
        match self.keeps {
            Keeps::Old => self.input(field),
            Keeps::Partial => self.partial,
            Keeps::Nothing => None,
        }
    }
}

/// The tile kernels of a module.
pub fn kernels<'c>(module: &Module<'c>) -> Result<Vec<Kernel<'c>>, Error> {
    let functions = mlir::operations(mlir::body(module))
        .into_iter()
        .filter(|op| mlir::attribute(*op, STRATEGY).is_some());
    functions.map(read_kernel).collect()
}

fn read_kernel<'c>(op: Op<'c>) -> Result<Kernel<'c>, Error> {
    let interior = mlir::attribute(op, INTERIOR)
        .map(|_| read(op, INTERIOR, attribute::as_integers))
        .transpose()?;
    let mut places = interior.iter().flatten();
    let mut body = Vec::new();
    let mut tiles = BTreeMap::new();
    for inner in mlir::operations(stencil::function_body(op)?) {
        let malformed = || {
            Error::new(
                mlir::place(inner.location()),
                format!("{} has the wrong operands or results", mlir::name(inner)),
            )
        };
        match mlir::name(inner) {
            LOAD => {
                let field = read(inner, "field", attribute::as_symbol)?;
                let tile = mlir::results(inner).first().copied().ok_or_else(malformed)?;
                tiles.insert(mlir::key(tile), Tile { field, halo: read_halo(inner)? });
                body.push(TileOp::Load { op: inner, field, tile });
            }
            STORE => body.push(TileOp::Store {
                op: inner,
                field: read(inner, "field", attribute::as_symbol)?,
                tile: mlir::operands(inner).first().copied().ok_or_else(malformed)?,
            }),
            APPLY => {
                let pair = |names: Vec<&'c str>, tiles: Vec<Val<'c>>| {
                    if names.len() == tiles.len() {
                        Ok(names.into_iter().zip(tiles).collect())
                    } else {
                        Err(malformed())
                    }
                };
                let halo = read_halo(inner)?;
                let outputs: Vec<(&str, Val)> =
                    pair(read(inner, "updates", attribute::as_symbols)?, mlir::results(inner))?;
                for (field, tile) in &outputs {
                    tiles.insert(mlir::key(*tile), Tile { field, halo: halo.clone() });
                }
                let pieces: Vec<Piece> = read(inner, "pieces", stencil::as_pieces)?;
                let place = places.next().and_then(|place| usize::try_from(*place).ok());
                let main = place.and_then(|place| pieces.get(place).copied());
                if interior.is_some() && main.is_none() {
                    return Err(Error::new(
                        mlir::place(inner.location()),
                        format!(
                            "{INTERIOR} names a piece of each tiled.apply in order, from 0, and \
                             none of this one"
                        ),
                    ));
                }
                let mut operands = mlir::operands(inner);
                let partial = match mlir::attribute(inner, PARTIAL) {
                    Some(_) => Some(operands.pop().ok_or_else(malformed)?),
                    None => None,
                };
                body.push(TileOp::Apply(Apply {
                    op: inner,
                    inputs: pair(read(inner, "reads", attribute::as_symbols)?, operands)?,
                    outputs,
                    halo,
                    pieces,
                    step: read(inner, "step", attribute::as_integer)?,
                    main,
                    partial,
                    keeps: read_keeps(inner)?,
                }));
            }
            "func.return" => {}
            other => {
                return Err(Error::new(
                    mlir::place(inner.location()),
                    format!(
                        "{other} can't stand in a tile kernel: it holds tiled.load, tiled.apply \
                         and tiled.store only"
                    ),
                ));
            }
        }
    }
    if places.next().is_some() {
        return Err(Error::new(
            mlir::place(op.location()),
            format!("{INTERIOR} has more numbers than there are applies"),
        ));
    }
    let name = read(op, "sym_name", attribute::as_string)?;
    Ok(Kernel { op, name, schedule: read_schedule(op)?, body, split: interior.is_some(), tiles })
}

fn read_halo(op: Op) -> Result<Halo, Error> {
    Ok(Halo {
        lower: read(op, "lower", attribute::as_integers)?,
        upper: read(op, "upper", attribute::as_integers)?,
    })
}

fn read_keeps(op: Op) -> Result<Keeps, Error> {
    if mlir::attribute(op, KEEPS).is_none() {
        return Ok(Keeps::Old);
    }
    match read(op, KEEPS, attribute::as_string)? {
        "partial" => Ok(Keeps::Partial),
        "nothing" => Ok(Keeps::Nothing),
        other => Err(Error::new(
            mlir::place(op.location()),
            format!(
                "{KEEPS} is \"partial\" or \"nothing\" where it is not left out, and here it is \"{other}\""
            ),
        )),
    }
}

fn read_schedule(op: Op) -> Result<Schedule, Error> {
    Ok(Schedule {
        strategy: read(op, STRATEGY, attribute::as_string)?.to_owned(),
        tile: read(op, TILE, attribute::as_integers)?,
        per_thread: read(op, PER_THREAD, attribute::as_integers)?,
        steps: read(op, STEPS, attribute::as_integer)?,
        region: read_region(op)?,
    })
}

fn read_region(op: Op) -> Result<Region, Error> {
    let Some(attribute) = mlir::attribute(op, REGION) else { return Ok(Region::default()) };
    let at = |error: Error| Error::new(mlir::place(op.location()), error.message);
    Region::parse(attribute::as_string(attribute).unwrap_or_default()).map_err(at)
}

/// Whether a kernel's tiles go on beyond the grid as the grid repeated: whether any of its point
/// functions reads a periodic field beside the point.
pub fn wraps<'c>(program: &Program<'c>, kernel: &Kernel<'c>) -> Result<bool, Error> {
    for apply in kernel.applies() {
        if reads_periodic(program, &apply.pieces)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether one of some pieces reads a periodic field beside the point.
pub fn reads_periodic<'c>(program: &Program<'c>, pieces: &[Piece<'c>]) -> Result<bool, Error> {
    for piece in pieces {
        for argument in program.arguments(piece.function)? {
            if let Argument::Read { field, offset } = argument {
                let beside = offset.iter().any(|cells| *cells != 0);
                if beside && program.field(field)?.boundary == Some(Boundary::Periodic) {
                    return Ok(true);
                }
            }
        }
    }
    Ok(false)
}

/// Attributes of a tile kernel's function.
pub fn schedule_attributes<'c>(
    builder: &Builder<'c>,
    schedule: &Schedule,
) -> Vec<(&'static str, Attribute<'c>)> {
    let context = builder.context;
    let mut attributes = vec![
        (STRATEGY, attribute::string(context, &schedule.strategy)),
        (TILE, attribute::integers(context, &schedule.tile)),
        (PER_THREAD, attribute::integers(context, &schedule.per_thread)),
        (STEPS, attribute::integer(context, schedule.steps)),
    ];
    if schedule.region != Region::default() {
        attributes.push((REGION, attribute::string(context, schedule.region.name())));
    }
    attributes
}

/// Says that a tile kernel runs code without checks in tiles away from every rim, and for each
/// apply in order the place of the piece that covers it there.
pub fn set_interior(builder: &Builder, kernel: Op, pieces: &[i64]) {
    mlir::set_attribute(kernel, INTERIOR, attribute::integers(builder.context, pieces));
}

/// What a module says of the schedule of kernels that are still to be made; the rest is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// See [`Schedule::strategy`].
    pub strategy: Option<String>,
    /// See [`Schedule::tile`].
    pub tile: Option<Vec<i64>>,
    /// Steps a launch of the main kernel.
    pub pyramid_height: Option<i64>,
    /// See [`Schedule::per_thread`]; one number alone is for the dimension that the strategy
    /// widens.
    pub per_thread: Option<Vec<i64>>,
    /// The name of a [`Region`].
    pub region: Option<String>,
}

/// Reads a module's choice of schedule.
pub fn choice(module: &Module) -> Choice {
    let attribute = |name| mlir::attribute(mlir::module_op(module), name);
    Choice {
        strategy: attribute(STRATEGY).and_then(attribute::as_string).map(str::to_owned),
        tile: attribute(TILE).and_then(attribute::as_integers),
        per_thread: attribute(PER_THREAD).and_then(attribute::as_integers),
        pyramid_height: attribute(STEPS).and_then(attribute::as_integer),
        region: attribute(REGION).and_then(attribute::as_string).map(str::to_owned),
    }
}

/// Writes a module's choice of schedule.
pub fn set_choice<'c>(context: &'c Context, module: &Module<'c>, choice: &Choice) {
    let entries = [
        (STRATEGY, choice.strategy.as_ref().map(|strategy| attribute::string(context, strategy))),
        (TILE, choice.tile.as_ref().map(|tile| attribute::integers(context, tile))),
        (PER_THREAD, choice.per_thread.as_ref().map(|cells| attribute::integers(context, cells))),
        (STEPS, choice.pyramid_height.map(|steps| attribute::integer(context, steps))),
        (REGION, choice.region.as_ref().map(|region| attribute::string(context, region))),
    ];
    for (name, value) in entries {
        if let Some(value) = value {
            mlir::set_attribute(mlir::module_op(module), name, value);
        }
    }
}

/// Builds `tiled.load`.
pub fn load<'c>(builder: &Builder<'c>, field: &str, halo: &Halo) -> Result<Val<'c>, Error> {
    let [lower, upper] = halo_attributes(builder, halo);
    builder.value(
        LOAD,
        &[],
        tile_type(builder)?,
        &[("field", attribute::symbol(builder.context, field)), lower, upper],
    )
}

fn halo_attributes<'c>(builder: &Builder<'c>, halo: &Halo) -> [(&'static str, Attribute<'c>); 2] {
    let bounds = |bounds: &[i64]| attribute::integers(builder.context, bounds);
    [("lower", bounds(&halo.lower)), ("upper", bounds(&halo.upper))]
}

/// Builds `tiled.apply`; returns the updated tiles.
pub fn apply<'c>(
    builder: &Builder<'c>,
    inputs: &[(&str, Val<'c>)],
    updates: &[&str],
    halo: &Halo,
    pieces: Attribute<'c>,
    step: i64,
) -> Result<Vec<Val<'c>>, Error> {
    Ok(mlir::results(build_apply(
        builder,
        inputs,
        updates,
        halo,
        pieces,
        step,
        (None, Keeps::Old),
    )?))
}

/// Builds a `tiled.apply` that goes on with the partial result of another, or has one that others
/// go on with.
pub fn apply_in_part<'c>(
    builder: &Builder<'c>,
    of: &Apply<'c>,
    pieces: &[Piece<'c>],
    partial: Option<Val<'c>>,
    keeps: Keeps,
) -> Result<Op<'c>, Error> {
    let updates: Vec<_> = of.outputs.iter().map(|(field, _)| *field).collect();
    let pieces = stencil::pieces_attribute(builder, pieces);
    build_apply(builder, &of.inputs, &updates, &of.halo, pieces, of.step, (partial, keeps))
}

fn build_apply<'c>(
    builder: &Builder<'c>,
    inputs: &[(&str, Val<'c>)],
    updates: &[&str],
    halo: &Halo,
    pieces: Attribute<'c>,
    step: i64,
    (partial, keeps): (Option<Val<'c>>, Keeps),
) -> Result<Op<'c>, Error> {
    let context = builder.context;
    let [lower, upper] = halo_attributes(builder, halo);
    let outputs = vec![tile_type(builder)?; updates.len()];
    let (names, mut tiles): (Vec<_>, Vec<_>) = inputs.iter().copied().unzip();
    let mut attributes = vec![
        ("reads", attribute::symbols(context, &names)),
        ("updates", attribute::symbols(context, updates)),
        ("pieces", pieces),
        ("step", attribute::integer(context, step)),
        lower,
        upper,
    ];
    if let Some(partial) = partial {
        tiles.push(partial);
        attributes.push((PARTIAL, Attribute::unit(context)));
    }
    match keeps {
        Keeps::Old => {}
        Keeps::Partial => attributes.push((KEEPS, attribute::string(context, "partial"))),
        Keeps::Nothing => attributes.push((KEEPS, attribute::string(context, "nothing"))),
    }
    builder.op(APPLY, &tiles, &outputs, &attributes)
}

/// Builds `tiled.store`.
pub fn store<'c>(builder: &Builder<'c>, field: &str, tile: Val<'c>) -> Result<Op<'c>, Error> {
    builder.op(STORE, &[tile], &[], &[("field", attribute::symbol(builder.context, field))])
}

/// `tiled.repeat`: a list of launches, repeated.
#[derive(Clone, Debug)]
pub struct Repeat<'c> {
    /// The operation.
    pub op: Op<'c>,
    /// How often; one result, one symbol a run-time size, then the number of steps.
    pub count: AffineMap<'c>,
    /// Kernels in order.
    pub kernels: Vec<&'c str>,
}

/// The host schedule.
pub fn repeats<'c>(module: &Module<'c>) -> Result<Vec<Repeat<'c>>, Error> {
    mlir::operations(mlir::body(module))
        .into_iter()
        .filter(|op| mlir::name(*op) == REPEAT)
        .map(|op| {
            Ok(Repeat {
                op,
                count: read(op, "count", attribute::as_map)?,
                kernels: read(op, "kernels", attribute::as_symbols)?,
            })
        })
        .collect()
}

/// Builds `tiled.repeat`.
pub fn repeat<'c>(
    builder: &Builder<'c>,
    count: AffineMap<'c>,
    kernels: &[String],
) -> Result<Op<'c>, Error> {
    let kernels = attribute::symbols(builder.context, kernels);
    builder.op(REPEAT, &[], &[], &[("count", mlir::map_attribute(count)), ("kernels", kernels)])
}

/// The bits of an index in the kernels; 64 unless something proved that 32 are enough. The verifier
/// refuses any other number.
pub fn index_width(module: &Module) -> u32 {
    if stated_index_width(module) == Some(Some(32)) { 32 } else { 64 }
}

/// What the module says of the bits of an index, if anything; none inside where it is no number.
pub(crate) fn stated_index_width(module: &Module) -> Option<Option<i64>> {
    mlir::attribute(mlir::module_op(module), INDEX_WIDTH).map(attribute::as_integer)
}

/// Sets what [`index_width`] reads.
pub fn set_index_width<'c>(builder: &Builder<'c>, module: &Module<'c>, width: u32) {
    mlir::set_attribute(
        mlir::module_op(module),
        INDEX_WIDTH,
        attribute::integer(builder.context, i64::from(width)),
    );
}
