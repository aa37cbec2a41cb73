//! How long a launch of several steps takes, from two that were measured: the analytic model by
//! which a run chooses its pyramid height.
//!
//! Sources: Meng, Skadron, "Performance Modeling and Automatic Ghost Zone Optimization for
//! Iterative Stencil Loops on GPUs", ICS 2009, for the terms; *A Language and Optimizing Compiler
//! for Iterative Stencil Loops*, section 6.3, for what is measured in place of being entered by
//! hand: the launch of a null kernel, and launches of heights 1 and 2.
//!
//! A block computes a tile of extents `t`, and a step reads `r` cells beyond a point, both per
//! dimension. With height `h`, in cells of a block and seconds of a launch:
//!
//! ```text
//! loaded(h)   = product of (t + 2 r h)
//! computed(h) = sum over k = 1 .. h of the product of (t + 2 r (h - k))
//! waves(h)    = max(1, blocks(h) / resident(h))
//! latency(h)  = null + waves(h) * (setup * loaded(h) + cell * computed(h))
//! ```
//!
//! `resident` is the number of blocks that the device runs at once, as the driver tells. `setup`
//! and `cell` are seconds per cell, the solution of the equations for the heights 1 and 2. A
//! negative solution is 0, and the other one then follows from height 2.

/// A launch of a pyramid height.
#[derive(Clone, Debug, PartialEq)]
pub struct Pyramid {
    /// Steps of the launch.
    pub height: i64,
    /// Cells of the tile per dimension.
    pub tile: Vec<i64>,
    /// How far a step reads per dimension.
    pub reach: Vec<i64>,
    /// Blocks of the launch.
    pub blocks: f64,
    /// Blocks that the device runs at once.
    pub resident: f64,
}

/// What the model is filled with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// Seconds of the launch of a null kernel.
    pub null: f64,
    /// Seconds per loaded cell.
    pub setup: f64,
    /// Seconds per computed cell.
    pub cell: f64,
}

impl Pyramid {
    /// Cells of a block that extends so many steps beyond its tile.
    fn volume(&self, steps: i64) -> f64 {
        let extents = self.tile.iter().zip(&self.reach);
        extents.map(|(tile, reach)| (tile + 2 * reach * steps) as f64).product()
    }

    /// Cells that a block loads.
    fn loaded(&self) -> f64 {
        self.volume(self.height)
    }

    /// Cells that a block computes in all its steps.
    fn computed(&self) -> f64 {
        (1..=self.height).map(|step| self.volume(self.height - step)).sum()
    }

    fn waves(&self) -> f64 {
        (self.blocks / self.resident.max(1.0)).max(1.0)
    }

    /// Seconds of a launch.
    pub fn latency(&self, costs: &Costs) -> f64 {
        let block = costs.setup * self.loaded() + costs.cell * self.computed();
        costs.null + self.waves() * block
    }

    /// Seconds of a step.
    pub fn step(&self, costs: &Costs) -> f64 {
        self.latency(costs) / self.height.max(1) as f64
    }
}

/// The costs by which launches of two heights take as long as they were measured to.
pub fn fit(null: f64, one: (&Pyramid, f64), two: (&Pyramid, f64)) -> Costs {
    let row = |(pyramid, seconds): (&Pyramid, f64)| {
        let waves = pyramid.waves();
        (waves * pyramid.loaded(), waves * pyramid.computed(), (seconds - null).max(0.0))
    };
    let ((a, b, c), (d, e, f)) = (row(one), row(two));
    let determinant = a * e - b * d;
    let (mut setup, mut cell) = if determinant.abs() > 1e-12 * (a * e).abs() {
        ((c * e - b * f) / determinant, (a * f - c * d) / determinant)
    } else {
        (0.0, f / e)
    };
    if setup < 0.0 {
        (setup, cell) = (0.0, f / e);
    } else if cell < 0.0 {
        (setup, cell) = (f / d, 0.0);
    }
    Costs { null, setup, cell }
}

/// The height whose predicted step is shortest: from the first on until a step takes longer than
/// the one before. `pyramids` are in the order of their heights.
pub fn descend(pyramids: &[Pyramid], costs: &Costs) -> usize {
    let mut best = 0;
    for (place, pair) in pyramids.windows(2).enumerate() {
        let [before, after] = pair else { break };
        if after.step(costs) > before.step(costs) {
            break;
        }
        best = place + 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plate(height: i64, blocks: f64) -> Pyramid {
        Pyramid { height, tile: vec![10, 20], reach: vec![1, 1], blocks, resident: 100.0 }
    }

    #[test]
    fn counts_are_those_by_hand() {
        // 14 x 24 cells are loaded; 12 x 22 are computed first, then 10 x 20.
        let two = plate(2, 250.0);
        assert_eq!((two.loaded(), two.computed()), (336.0, 464.0));
        // 2 + 2.5 waves of 3 * 336 + 5 * 464 = 3328.
        let costs = Costs { null: 2.0, setup: 3.0, cell: 5.0 };
        assert_eq!(two.latency(&costs), 8322.0);
        assert_eq!(two.step(&costs), 4161.0);
        // Fewer blocks than the device runs at once are one wave.
        assert_eq!(plate(2, 7.0).latency(&costs), 3330.0);
    }

    #[test]
    fn two_measurements_give_the_costs() {
        let costs = Costs { null: 2.0, setup: 3.0, cell: 5.0 };
        let (one, two) = (plate(1, 250.0), plate(2, 250.0));
        let found = fit(2.0, (&one, one.latency(&costs)), (&two, two.latency(&costs)));
        assert!((found.setup - 3.0).abs() < 1e-9 && (found.cell - 5.0).abs() < 1e-9, "{found:?}");
        // Height 2 takes no longer than height 1: loads alone take time, and none is negative.
        let found = fit(2.0, (&one, 1000.0), (&two, 1000.0));
        assert_eq!(found.cell, 0.0);
        assert!((two.latency(&found) - 1000.0).abs() < 1e-9, "{found:?}");
        // Height 2 takes far longer.
        let found = fit(2.0, (&one, 100.0), (&two, 1000.0));
        assert_eq!(found.setup, 0.0);
        assert!((two.latency(&found) - 1000.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_descent_ends_where_the_latency_rises() {
        let list: Vec<_> = [1, 2, 3, 4, 6, 8].map(|height| plate(height, 250.0)).into();
        // Launches are dear, or cells are: by hand, the step of height h takes
        // (null + 2.5 * cell * computed(h)) / h.
        let place = |null: f64| descend(&list, &Costs { null, setup: 0.0, cell: 1.0 });
        assert_eq!(place(0.0), 0);
        // 500 + 500; (500 + 1160) / 2 = 830; (500 + 2000) / 3 = 833.
        assert_eq!(place(500.0), 1);
        assert_eq!(place(1e9), 5);
    }
}
