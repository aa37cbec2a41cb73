//! Fields that only take another one's value, which `rotate-buffers` does not copy.

use crate::model::{Expr, Kind, Piece, Program};
use crate::random::Random;

/// In some functions of several fields, lets one take the value of the next one at the point.
pub fn hand_on(random: &mut Random, program: &Program, updates: &[usize], pieces: &mut [Piece]) {
    if updates.len() < 2 || !random.percent(35) {
        return;
    }
    let several = if random.percent(30) { updates.len() - 1 } else { 1 };
    for place in 0..several {
        let (to, from) = (updates[place], updates[place + 1]);
        let kind = |field: usize| (program.fields[field].ty, program.fields[field].grid);
        if kind(to) == kind(from) {
            for piece in &mut *pieces {
                let kind = Kind::Read(from, vec![0; piece.region.rank()]);
                piece.values[place] = Expr { ty: program.fields[from].ty, kind };
            }
        }
    }
}
