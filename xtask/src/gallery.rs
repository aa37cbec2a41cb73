//! `cargo xtask gallery`: the programs of `docs/gallery.md` on their data, measured and drawn into
//! `docs/images`.

use anyhow::{Context, Result};

use crate::picture::{self, Heights, Palette};
use crate::project::{Project, capture};
use crate::{setup, stages};

const TOOL: &str = "test-suite/tools/gallery.py";
const OUT: &str = "out/gallery";

/// A run and what is drawn of it.
struct Exhibit {
    program: &'static str,
    /// Further arguments of `stencilc run`.
    arguments: &'static str,
    /// An array with the name of its picture and how it is coloured.
    pictures: &'static [(&'static str, &'static str, Palette)],
    /// Arguments of `gallery.py` that check the result; none where there is nothing to compare.
    check: &'static [&'static str],
}

const MRI: &str = "test-suite/data/mri.npy";
const CAMERA: &str = "test-suite/data/camera.npy";

/// The runs of `docs/gallery.md`.
const EXHIBITS: [Exhibit; 15] = [
    Exhibit {
        program: "rician",
        arguments: "--steps 60 --set sigma=0.08 --set lambda=0.2 --in U=out/gallery/mri.npy --in \
            F=out/gallery/mri.npy \
                    --out U=out/gallery/rician.npy",
        pictures: &[
            (MRI, "mri-slice", Palette::Grey),
            ("out/gallery/mri.npy", "mri-noisy", Palette::Grey),
            ("out/gallery/rician.npy", "mri-denoised", Palette::Grey),
        ],
        check: &["psnr", MRI, "out/gallery/mri.npy", "out/gallery/rician.npy"],
    },
    Exhibit {
        program: "tvupdate",
        arguments: "--steps 60 --set V=4 --in U=out/gallery/camera.npy --in \
            F=out/gallery/camera.npy \
                    --out U=out/gallery/tvupdate.npy",
        pictures: &[
            ("out/gallery/camera.npy", "camera-noisy", Palette::Grey),
            ("out/gallery/tvupdate.npy", "camera-denoised", Palette::Grey),
        ],
        check: &["psnr", CAMERA, "out/gallery/camera.npy", "out/gallery/tvupdate.npy"],
    },
    Exhibit {
        program: "srad",
        arguments: "--steps 12 --in J=out/gallery/speckled.npy --out J=out/gallery/srad.npy",
        pictures: &[
            ("out/gallery/speckled.npy", "echo-speckled", Palette::Grey),
            ("out/gallery/srad.npy", "echo-smoothed", Palette::Grey),
        ],
        check: &[
            "psnr",
            "out/gallery/echo.npy",
            "out/gallery/speckled.npy",
            "out/gallery/srad.npy",
        ],
    },
    Exhibit {
        program: "wave2d",
        arguments: "--steps 420 --in P=out/gallery/drop.npy --in U=out/gallery/drop.npy --in \
            C=out/gallery/speed.npy \
                    --out U=out/gallery/wave.npy",
        pictures: &[("out/gallery/wave.npy", "wave", Palette::Diverging(0.05))],
        check: &[],
    },
    Exhibit {
        program: "grayscott",
        arguments: "--steps 5000 --in U=out/gallery/u.npy --in V=out/gallery/v.npy --out \
            V=out/gallery/grayscott.npy",
        pictures: &[("out/gallery/grayscott.npy", "grayscott", Palette::Viridis)],
        check: &[],
    },
    Exhibit {
        program: "acoustic2d",
        arguments: "--steps 1000 --in P=zeros --in U=zeros --in trace=zeros --in \
            C=out/gallery/rock.npy --in source=out/gallery/pulse.npy --in y=out/gallery/rows.npy \
            --in x=out/gallery/columns.npy --colors coolwarm --range -0.4,0.4 \
            --out U=docs/images/acoustic.png --out trace=docs/images/traces.png",
        pictures: &[],
        check: &[],
    },
    Exhibit {
        program: "navier-stokes",
        arguments: "--steps 2000 --in U=out/gallery/lid.npy --in V=zeros --in P=zeros --colors \
            coolwarm --range -0.5,0.5 --out U=docs/images/cavity.png",
        pictures: &[],
        check: &[],
    },
    Exhibit {
        program: "ising2d",
        arguments: "--steps 400 --in S=out/gallery/spins.npy --in R=out/gallery/states.npy \
            --colors gray --out S=docs/images/ising.png",
        pictures: &[],
        check: &[],
    },
    Exhibit {
        program: "semi-lagrange2d",
        arguments: "--steps 40 --in A=test-suite/data/camera.npy --in V=out/gallery/vortex.npy \
            --colors gray --range 0,1 --out A=docs/images/vortex.png",
        pictures: &[],
        check: &[],
    },
    Exhibit {
        program: "conjugate-gradients",
        arguments: "--in X=zeros --in R=out/gallery/charges.npy --colors coolwarm --range -1.5,1.5 \
            --out X=docs/images/charges.png",
        pictures: &[],
        check: &[],
    },
    Exhibit {
        program: "multigrid2d",
        arguments: "--in U=out/gallery/edges.npy --in F=zeros --colors viridis --out \
            U=docs/images/membrane.png",
        pictures: &[],
        check: &[],
    },
    Exhibit {
        program: "schroedinger2d",
        arguments: "--steps 2000 --in P=out/gallery/packet-before.npy \
            --in U=out/gallery/packet.npy --in V=out/gallery/slits.npy --colors viridis \
            --range 0,0.2 --out U=docs/images/slits.png",
        pictures: &[],
        check: &[],
    },
    Exhibit {
        program: "shallow-water",
        arguments: "--set end=60 --in h=out/gallery/dam.npy --in u=zeros --in v=zeros --colors \
            coolwarm --range -0.3,0.3 --out h=docs/images/water.png",
        pictures: &[],
        check: &[],
    },
    Exhibit {
        program: "weno1d",
        arguments: "--set end=400 --snapshot-every 2 --in u=out/gallery/hills.npy --out \
            u=out/gallery/hills-{step}.npy",
        pictures: &[("out/gallery/shocks.npy", "shocks", Palette::Diverging(1.0))],
        check: &["stack", "out/gallery/hills-*.npy", "out/gallery/shocks.npy"],
    },
    Exhibit {
        program: "time-warping",
        arguments: "--in D=out/gallery/rims.npy --in p=out/gallery/series.npy --in \
            q=out/gallery/other.npy \
                    --out D=out/gallery/costs.npy",
        pictures: &[("out/gallery/path.npy", "time-warping", Palette::Viridis)],
        check: &[
            "match",
            "out/gallery/series.npy",
            "out/gallery/other.npy",
            "out/gallery/costs.npy",
            "out/gallery/path.npy",
        ],
    },
];

/// What `stencilc` is called with to draw a wave.
const WAVE: &str = "test-suite/programs/time-warping.stencil -D N=65536 -D M=65536 --emit=plan \
                    -o out/gallery/wave.plan.json --wave docs/images/time-warping-wave.svg";

/// Builds, runs, measures and draws.
///
/// # Errors
/// Whatever goes wrong first; a denoised image that is hardly better is an error too, and so are
/// costs that differ from NumPy's.
pub fn run(project: &Project) -> Result<()> {
    setup::run(project)?;
    stages::build(project)?;
    std::fs::create_dir_all(project.root().join(OUT)).with_context(|| format!("creating {OUT}"))?;
    let python =
        |arguments: &[&str]| capture(project.command(project.python()).arg(TOOL).args(arguments));
    python(&["inputs", OUT])?;
    for exhibit in &EXHIBITS {
        let program = format!("test-suite/programs/{}.stencil", exhibit.program);
        let mut stencilc = project.command(project.binaries().join("stencilc"));
        let said =
            capture(stencilc.args(["run", &program]).args(exhibit.arguments.split_whitespace()))?;
        project.say(format!("gallery: {}: {}", exhibit.program, said.trim()));
        if !exhibit.check.is_empty() {
            let measured = python(exhibit.check).context(exhibit.program)?;
            project.say(format!("gallery: {}: {}", exhibit.program, measured.trim()));
        }
        for (array, name, palette) in exhibit.pictures {
            let path = project.root().join("docs/images").join(format!("{name}.png"));
            picture::draw(&Heights::read(&project.root().join(array))?, *palette, &path)?;
        }
    }
    let mut stencilc = project.command(project.binaries().join("stencilc"));
    capture(stencilc.args(WAVE.split_whitespace())).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_commands_that_are_run() {
        let page = include_str!("../../docs/gallery.md").replace("\\\n", " ");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for Exhibit { program, arguments, .. } in &EXHIBITS {
            let command =
                format!("target/release/stencilc run test-suite/programs/{program}.stencil");
            let command = words(&format!("{command} {arguments}"));
            assert!(words(&page).contains(&command), "{command}");
        }
        let command = words(&format!("target/release/stencilc {WAVE}"));
        assert!(words(&page).contains(&command), "{command}");
    }
}
