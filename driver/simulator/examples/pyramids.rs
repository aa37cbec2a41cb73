//! Plots what pyramid heights cost: `cargo run --release -p stencil-simulator --example pyramids --
//! OUT.svg` runs the 2-D Jacobi by strategy block with heights 1 to 8, prints the counters and
//! writes the plot.

#[path = "../tests/suite/common/mod.rs"]
mod common;

use common::{Case, check_case};
use std::process::ExitCode;
use stencil_simulator::series::{sample, svg, table};

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: pyramids OUT.svg");
        return ExitCode::from(1);
    };
    let samples: Vec<_> = (1..=8)
        .map(|height| {
            let case = Case::block("jacobi2d", &[32, 32], height).per_thread(&[4, 1]);
            sample(height.to_string(), &check_case(&case, 512, 2 * height))
        })
        .collect();
    print!("{}", table(&samples));
    let plot = svg(
        "Jacobi 2-D, 512 x 515 cells, tiles of 32 x 32: counters per cell and step",
        "steps a launch (pyramid height)",
        &samples,
    );
    match stencil_runtime::whole_file::write_whole(path.as_ref(), |file| {
        file.write_all(plot.as_bytes())
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {path}: {error}");
            ExitCode::from(1)
        }
    }
}
