//! Tile kernels as plain data.

use super::rows::{Rows, read_rows};
use super::schedule::read_schedule;
use super::wave::{Wave, read_wave};
use super::{APPLY, Halo, INTERIOR, KEEPS, LOAD, PARTIAL, STORE, STRATEGY, Schedule};
use crate::attribute::{self, read};
use crate::error::Error;
use crate::mlir::{self, Op, Val};
use crate::stencil::{self, Piece};
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use std::collections::BTreeMap;

/// Which cells of which field a tile value holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile<'c> {
    /// The field.
    pub field: &'c str,
    /// The cells.
    pub halo: Halo,
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
    /// How it is skewed and waits, if it is a wavefront.
    pub wave: Wave,
    /// What it stores in place of matrices, if it is a sweep.
    pub rows: Rows<'c>,
    tiles: BTreeMap<usize, Tile<'c>>,
}

impl<'c> Kernel<'c> {
    /// Its applies in order.
    pub fn applies(&self) -> impl Iterator<Item = &Apply<'c>> {
        self.body
            .iter()
            .filter_map(|op| if let TileOp::Apply(apply) = op { Some(apply) } else { None })
    }

    /// Whether it stores a field.
    pub fn stores(&self, name: &str) -> bool {
        self.body.iter().any(|op| matches!(op, TileOp::Store { field, .. } if *field == name))
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
        let malformed = || malformed(inner);
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
                let place = places.next().and_then(|place| usize::try_from(*place).ok());
                let apply = read_apply(inner, interior.is_some().then_some(place))?;
                for (field, tile) in &apply.outputs {
                    tiles.insert(mlir::key(*tile), Tile { field, halo: apply.halo.clone() });
                }
                body.push(TileOp::Apply(apply));
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
    let (schedule, wave, rows) = (read_schedule(op)?, read_wave(op)?, read_rows(op)?);
    Ok(Kernel { op, name, schedule, body, split: interior.is_some(), wave, rows, tiles })
}

fn malformed(op: Op) -> Error {
    Error::new(
        mlir::place(op.location()),
        format!("{} has the wrong operands or results", mlir::name(op)),
    )
}

/// Reads a `tiled.apply`. Where the kernel has an interior, `main` is the place of the apply's main
/// piece.
fn read_apply<'c>(op: Op<'c>, main: Option<Option<usize>>) -> Result<Apply<'c>, Error> {
    let pair = |names: Vec<&'c str>, tiles: Vec<Val<'c>>| {
        if names.len() == tiles.len() {
            Ok(names.into_iter().zip(tiles).collect())
        } else {
            Err(malformed(op))
        }
    };
    let outputs = pair(read(op, "updates", attribute::as_symbols)?, mlir::results(op))?;
    let pieces: Vec<Piece> = read(op, "pieces", stencil::as_pieces)?;
    let piece = |place: Option<usize>| {
        place.and_then(|place| pieces.get(place).copied()).ok_or_else(|| {
            Error::new(
                mlir::place(op.location()),
                format!(
                    "{INTERIOR} needs the number of a piece, from 0, for each tiled.apply in \
                     order, and has none for this one"
                ),
            )
        })
    };
    let main = main.map(piece).transpose()?;
    let mut operands = mlir::operands(op);
    let partial = match mlir::attribute(op, PARTIAL) {
        Some(_) => Some(operands.pop().ok_or_else(|| malformed(op))?),
        None => None,
    };
    Ok(Apply {
        op,
        inputs: pair(read(op, "reads", attribute::as_symbols)?, operands)?,
        outputs,
        halo: read_halo(op)?,
        pieces,
        step: read(op, "step", attribute::as_integer)?,
        main,
        partial,
        keeps: read_keeps(op)?,
    })
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
            format!("{KEEPS} must be \"partial\" or \"nothing\", or left out, but is \"{other}\""),
        )),
    }
}
