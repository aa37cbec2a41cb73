//! The ends of grids that only a run knows to lie near enough to 0: coordinates beyond a grid must
//! stay within 64 bits.

use stencil_dialects::affine::Linear;
use stencil_dialects::cover::{Bounds, checked_values};
use stencil_dialects::inequalities::imply;
use stencil_dialects::limits::{GRID_END, MOST_CELLS};
use stencil_dialects::stencil::Program;

/// An end of a grid that no check of the program bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FarEnd<'c> {
    /// The grid.
    pub grid: &'c str,
    /// What must not be negative.
    pub margin: Linear,
}

/// The ends that a run has to check.
pub fn far_ends<'c>(program: &Program<'c>) -> Vec<FarEnd<'c>> {
    let number = |constant| Linear { constant, coefficients: vec![0; program.params.len()] };
    let checked: Vec<_> = checked_values(program, &[]).collect();
    let mut found = Vec::new();
    for grid in &program.grids {
        let Some(bounds) = Bounds::of_grid(grid) else { continue };
        for (lower, upper) in bounds.lower.iter().zip(&bounds.upper) {
            // The cells that fit memory bound most ends already.
            let room = upper.minus(lower).and_then(|cells| number(MOST_CELLS).minus(&cells));
            let known: Vec<_> = checked.iter().cloned().chain(room).collect();
            let margins = [lower.plus(&number(GRID_END)), number(GRID_END).minus(upper)];
            let open = margins.into_iter().flatten().filter(|margin| {
                !margin.is_never_negative()
                    && !margin.follows_from(&known)
                    && !imply(&known, margin)
            });
            found.extend(open.map(|margin| FarEnd { grid: grid.name, margin }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use melior::ir::Module;

    fn ends(lower: &str, upper: &str, check: &str) -> Vec<(i64, Vec<i64>)> {
        let text = format!(
            r#"module attributes {{stencil.params = ["N"], stencil.steps = affine_map<()[n] -> (4)>}} {{
            "stencil.grid"() {{sym_name = "G", lower = affine_map<()[n] -> ({lower})>, upper = affine_map<()[n] -> ({upper})>}} : () -> ()
            "stencil.check"() {{value = affine_map<()[n] -> ({check})>, unless_empty = [], message = "m"}} : () -> ()
            }}"#
        );
        let context = stencil_dialects::context().unwrap();
        let module = Module::parse(&context, &text).unwrap();
        let program = Program::read(&module).unwrap();
        let found = far_ends(&program).into_iter();
        found.map(|end| (end.margin.constant, end.margin.coefficients)).collect()
    }

    #[test]
    fn only_grids_that_may_lie_far_off_are_found() {
        assert_eq!(ends("0", "n - 1", "n"), []);
        assert_eq!(ends("n", "n + 9", "n"), [(GRID_END - 9, vec![-1])]);
        assert_eq!(ends("n", "n + 9", "1000 - n"), []);
        assert_eq!(ends("0 - n", "9", "n"), []);
        assert_eq!(ends("0 - n", "9 - n", "n"), [(GRID_END, vec![-1])]);
    }
}
