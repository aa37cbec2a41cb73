//! The counters of the 2-D Jacobi over pyramid heights have the shape of figure 8 of
//! "High-Performance Code Generation for Stencil Computations on GPU Architectures".

use crate::common::{Case, check_case};
use stencil_simulator::series::{Sample, sample, svg, table};

#[test]
fn taller_pyramids_trade_global_loads_for_shared_traffic_and_redundant_work() {
    // Counts are per cell and step, so each height takes the steps of two launches.
    let samples: Vec<Sample> = (1..=8)
        .map(|height| {
            sample(
                height.to_string(),
                &check_case(
                    &Case::block("jacobi2d", &[32, 32], height).per_thread(&[4, 1]),
                    160,
                    2 * height,
                ),
            )
        })
        .collect();
    let text = table(&samples);
    println!("{text}");
    let falls: Vec<_> =
        samples.windows(2).map(|pair| pair[0].global_loads - pair[1].global_loads).collect();
    assert!(falls.iter().all(|fall| *fall > 0.0), "global loads fall\n{text}");
    assert!(falls.last() < falls.first().map(|fall| fall / 10.0).as_ref(), "and saturate\n{text}");
    for pair in samples.windows(2) {
        assert!(pair[1].shared_accesses > pair[0].shared_accesses, "shared traffic grows\n{text}");
        assert!(pair[1].redundant > pair[0].redundant, "redundant work grows\n{text}");
    }
    assert_eq!(svg("Jacobi 2-D", "pyramid height", &samples).matches("<circle").count(), 5 * 8);
}
