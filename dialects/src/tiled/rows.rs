//! A sweep may store less than a matrix: rows of a field, and one value for each row of a
//! reduction's box.

use super::{LAST_ROWS, ROW_VALUES};
use crate::attribute::{self, read_optional};
use crate::builder::Builder;
use crate::error::Error;
use crate::mlir::{self, Op};
use crate::stencil::{Combine, Piece, as_pieces, pieces_attribute};
use melior::ir::Attribute;

/// A field of which a sweep has rows in memory, and no other cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastRows<'c> {
    /// The field that the sweep updates.
    pub field: &'c str,
    /// The field with the rows: `handed` ones, then `kept` ones, which end where the grid ends.
    pub rows: &'c str,
    /// Rows that a tile row hands to the next one.
    pub handed: i64,
    /// Last rows of the grid, which are there when the sweep ends.
    pub kept: i64,
}

/// A reduction of which a sweep leaves the value of each row.
#[derive(Clone, Debug)]
pub struct RowValue<'c> {
    /// The function of the value at a point, and the box.
    pub piece: Piece<'c>,
    /// How values are combined.
    pub combine: Combine,
    /// The field with the value of each row of the box, one column on the rows of the sweep.
    pub value: &'c str,
    /// The field with the number of the first point of a row that has its value, counted in the
    /// box in row-major order; the largest number where a row has no points. None where nobody
    /// asks for the place.
    pub place: Option<&'c str>,
}

/// What a sweep stores in place of matrices.
#[derive(Clone, Debug, Default)]
pub struct Rows<'c> {
    /// Rows of fields: `tiled.last_rows`.
    pub last: Vec<LastRows<'c>>,
    /// Values of rows: `tiled.row_values`.
    pub values: Vec<RowValue<'c>>,
}

impl<'c> Rows<'c> {
    /// The rows of a field, if it has no other cells in memory.
    pub fn of(&self, field: &str) -> Option<&LastRows<'c>> {
        self.last.iter().find(|rows| rows.field == field)
    }

    /// Whether the sweep leaves nothing of the kind.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty() && self.values.is_empty()
    }

    /// All fields that the sweep writes rows of, or values of rows.
    pub fn fields(&self) -> impl Iterator<Item = &'c str> {
        let values = self.values.iter().flat_map(|row| [Some(row.value), row.place]);
        self.last.iter().map(|rows| rows.rows).chain(values.flatten())
    }
}

pub(super) fn read_rows<'c>(op: Op<'c>) -> Result<Rows<'c>, Error> {
    let all = |one: fn(Attribute<'c>) -> Option<_>| {
        move |list| attribute::as_array(list)?.into_iter().map(one).collect::<Option<Vec<_>>>()
    };
    let last = read_optional(op, LAST_ROWS, all(as_last_rows))?.unwrap_or_default();
    let all = |list| attribute::as_array(list)?.into_iter().map(as_row_value).collect();
    let values = read_optional(op, ROW_VALUES, all)?.unwrap_or_default();
    Ok(Rows { last, values })
}

fn as_last_rows<'c>(attribute: Attribute<'c>) -> Option<LastRows<'c>> {
    let entry = |name| attribute::entry(attribute, name);
    Some(LastRows {
        field: attribute::as_symbol(entry("field")?)?,
        rows: attribute::as_symbol(entry("memory")?)?,
        handed: attribute::as_integer(entry("handed")?)?,
        kept: attribute::as_integer(entry("kept")?)?,
    })
}

fn as_row_value<'c>(attribute: Attribute<'c>) -> Option<RowValue<'c>> {
    let entry = |name| attribute::entry(attribute, name);
    let place = match entry("place") {
        None => None,
        Some(place) => Some(attribute::as_symbol(place)?),
    };
    Some(RowValue {
        piece: as_pieces(entry("of")?)?.first().copied()?,
        combine: Combine::named(attribute::as_string(entry("operation")?)?)?,
        value: attribute::as_symbol(entry("value")?)?,
        place,
    })
}

/// Notes on a tile kernel what it leaves, as [`Rows`] has it.
pub fn set_rows<'c>(builder: &Builder<'c>, kernel: Op<'c>, rows: &Rows<'c>) {
    let context = builder.context;
    let symbol = |name| attribute::symbol(context, name);
    let last = rows.last.iter().map(|rows| {
        let entries = [
            ("field", symbol(rows.field)),
            ("memory", symbol(rows.rows)),
            ("handed", attribute::integer(context, rows.handed)),
            ("kept", attribute::integer(context, rows.kept)),
        ];
        attribute::dictionary(context, &entries)
    });
    let values = rows.values.iter().map(|row| {
        let mut entries = vec![
            ("of", pieces_attribute(builder, &[row.piece])),
            ("operation", attribute::string(context, row.combine.name())),
            ("value", symbol(row.value)),
        ];
        entries.extend(row.place.map(|place| ("place", symbol(place))));
        attribute::dictionary(context, &entries)
    });
    let (last, values): (Vec<_>, Vec<_>) = (last.collect(), values.collect());
    for (name, list) in [(LAST_ROWS, last), (ROW_VALUES, values)] {
        if !list.is_empty() {
            mlir::set_attribute(kernel, name, attribute::array(context, &list));
        }
    }
}
