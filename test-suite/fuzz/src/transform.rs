//! Programs that must give the same result in another place: transposed and shifted.

use crate::model::*;
use stencil_runtime::array::{Array, ArrayError, Cell, DataRef, each_cell};

/// The case with its dimensions in the reverse order.
pub fn transposed(case: &Case) -> Case {
    let mut case = case.clone();
    let turn = |region: &mut Region| {
        region.lower.reverse();
        region.upper.reverse();
    };
    case.program.grids.iter_mut().for_each(turn);
    for piece in case.program.functions.iter_mut().flat_map(|function| &mut function.pieces) {
        turn(&mut piece.region);
    }
    for (rank, value) in case.program.values_mut() {
        value.change(&mut |part| match &mut part.kind {
            Kind::Read(_, offset) => offset.reverse(),
            Kind::Gather(_, at) => at.reverse(),
            Kind::Coordinate(dimension) => *dimension = rank - 1 - *dimension,
            _ => {}
        });
    }
    // Streams, planes, patches and relays run along rows, whichever these are.
    let turns = |schedule: &&mut Schedule| {
        !matches!(schedule.strategy, "stream" | "plane" | "patch" | "resident" | "relay")
    };
    for schedule in case.schedules.iter_mut().filter(turns) {
        for list in [&mut schedule.tile, &mut schedule.per_thread].into_iter().flatten() {
            list.reverse();
        }
    }
    case
}

/// The case with all grids of as many dimensions as `by` shifted, and all pieces on them;
/// coordinates are written so that their values stay, and absolute reads so that they read the same
/// cell.
pub fn shifted(case: &Case, by: &[i64]) -> Case {
    let mut case = case.clone();
    let shift = |region: &mut Region| {
        if region.rank() == by.len() {
            for (dimension, distance) in by.iter().enumerate() {
                region.lower[dimension] = region.lower[dimension].plus(*distance);
                region.upper[dimension] = region.upper[dimension].plus(*distance);
            }
        }
    };
    case.program.grids.iter_mut().for_each(shift);
    for piece in case.program.functions.iter_mut().flat_map(|function| &mut function.pieces) {
        shift(&mut piece.region);
    }
    let ranks: Vec<usize> =
        (0..case.program.fields.len()).map(|field| case.program.grid_of(field).rank()).collect();
    let moved = |operator, of: &mut Expr, distance: i64| {
        if distance == 0 {
            return;
        }
        let distance = Expr { ty: Type::INDEX, kind: Kind::Number(distance as f64, false) };
        let kind = Kind::Binary(operator, Box::new(of.clone()), Box::new(distance));
        *of = Expr { ty: Type::INDEX, kind };
    };
    for (rank, value) in case.program.values_mut() {
        value.change(&mut |part| match &mut part.kind {
            Kind::Coordinate(dimension) if rank == by.len() => {
                let distance = by[*dimension];
                moved("-", part, distance);
            }
            Kind::Gather(field, at) if ranks[*field] == by.len() => {
                at.iter_mut().zip(by).for_each(|(at, distance)| moved("+", at, *distance));
            }
            _ => {}
        });
    }
    case
}

/// An array with its dimensions in the reverse order.
///
/// # Errors
/// As [`Array::new`].
pub fn transpose(array: &Array) -> Result<Array, ArrayError> {
    let shape = array.shape();
    let places: Vec<usize> = reversed(shape);
    let turned = shape.iter().rev().copied().collect();
    let data = each_cell!(DataRef, array.data(), _wrap(cells) => {
        Cell::data(places.iter().map(|place| cells[*place]).collect())
    });
    Array::new(turned, data)
}

/// For each cell of the transposed array, in its order, the place of the cell in the original.
fn reversed(shape: &[usize]) -> Vec<usize> {
    let mut places = vec![0];
    let mut stride = shape.iter().product::<usize>();
    let mut strides = Vec::new();
    for extent in shape {
        stride = stride.checked_div(*extent).unwrap_or(0);
        strides.push(stride);
    }
    for (extent, stride) in shape.iter().zip(strides).rev() {
        places = places
            .iter()
            .flat_map(|place| (0..*extent).map(move |index| place + index * stride))
            .collect();
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_transposed() {
        let cells = |count: i64| stencil_runtime::array::Data::I64((0..count).collect());
        let array = Array::new(vec![2, 3], cells(6)).unwrap();
        let turned = transpose(&array).unwrap();
        assert_eq!(turned.shape(), [3, 2]);
        assert_eq!(turned.data(), DataRef::I64(&[0, 3, 1, 4, 2, 5]));
        let cube = Array::new(vec![2, 3, 4], cells(24)).unwrap();
        let turned = transpose(&cube).unwrap();
        // [k][j][i] of the transposed is [i][j][k]: 1*12 + 2*4 + 3.
        assert_eq!(turned.get(3 * 6 + 2 * 2 + 1), Some(23.0));
        assert_eq!(turned.get(6), Some(1.0));
        assert_eq!(transpose(&turned).unwrap(), cube);
        assert!(transpose(&Array::new(vec![0, 3], cells(0)).unwrap()).unwrap().is_empty());
    }
}
