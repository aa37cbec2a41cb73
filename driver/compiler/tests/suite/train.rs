//! Training runs without a GPU: by a clock that follows the model, and by recorded measurements.

use std::path::Path;
use stencil_compiler::{Choice, Config, Options, Session, Source};
use stencil_runtime::model::Pace;

fn source(program: &str) -> Source {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite/programs");
    let name = format!("{program}.stencil");
    let text = std::fs::read_to_string(folder.join(&name)).unwrap();
    Source::new(name, text)
}

/// A session with tiles of `wavefront`, whose width is open, and sizes of all params.
fn session(sizes: &[(&str, i64)]) -> Session {
    let defines = sizes.iter().map(|(name, size)| ((*name).to_owned(), *size)).collect();
    let choice = Choice { strategy: Some("wavefront".to_owned()), ..Choice::default() };
    let config = Config { choice, ..Config::default() };
    Session::new(Options { defines, config, ..Options::default() })
}

/// The predicted seconds of a sweep at another pace.
fn at(session: &Session, source: &Source, pace: &Pace) -> f64 {
    session.waves(source).unwrap()[0].wave.seconds(pace).unwrap()
}

/// The part of the points is right, the pace is found again, and tiles get the width that it asks
/// for: dear handovers make them wide, cheap ones narrow.
#[test]
fn a_clock_that_follows_the_model_gives_its_pace_back() {
    let source = source("smith-waterman");
    let session = session(&[("N", 32768), ("M", 16384)]);
    let mut widths = Vec::new();
    for handover in [1e-7, 1e-4] {
        let pace = Pace { diagonal: 4e-7, handover };
        let mut clock = |one: &Session| Ok(at(one, &source, &pace));
        let training = session.train_by(&source, 0.006, &mut clock).unwrap();
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 1e-3;
        assert!(near(training.pace.diagonal, 4e-7), "{training:?}");
        assert!(near(training.pace.handover, handover), "{training:?}");
        // 32768 and 16384 times the root of 0.006, rounded up.
        assert!(training.runs.iter().all(|run| run.points == [2539, 1270]), "{training:?}");
        let tiles: Vec<i64> = training.runs.iter().map(|run| run.tile[1]).collect();
        assert_eq!(tiles, [32, 64, 128]);
        let trained = session.with_pace(training.pace);
        let sweep = trained.waves(&source).unwrap().remove(0);
        assert!(sweep.is_measured && near(sweep.pace.diagonal, 4e-7), "{sweep:?}");
        widths.push(sweep.tile[1]);
    }
    assert!(widths[0] < widths[1], "{widths:?}");
}

/// Rates of tiles of 256 rows on an H200, at the whole size. By the pace that they give, the chosen
/// width takes at most 3 % longer than the best that was measured.
#[test]
fn recorded_measurements_choose_a_good_width() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite/bench/results");
    let record = folder.join("2026-11-25-h200-wavefronts.tsv");
    let record = std::fs::read_to_string(record).unwrap();
    for program in ["smith-waterman", "time-warping", "heat2d-sweep", "sor2d", "summed-area"] {
        let rate = |tile: &[i64]| -> Option<f64> {
            let tile = format!("{}x{}", tile[0], tile[1]);
            let lines = record.lines().map(|line| line.split('\t').collect::<Vec<_>>());
            // Square tiles among the flexible ones were measured once.
            let mut found = lines.filter(|line| {
                line.len() > 6
                    && line[0] == program
                    && line[1].starts_with("flags, ")
                    && line[1] != "flags, square"
                    && line[2] == tile
            });
            found.next().and_then(|line| line[6].parse().ok())
        };
        let source = source(program);
        let session = session(&[("N", 32768), ("M", 32768)]);
        let mut clock = |one: &Session| {
            let sweep = one.waves(&source).unwrap().remove(0);
            Ok(32768.0_f64.powi(2) / rate(&sweep.tile).unwrap() * 1e-9)
        };
        let training = session.train_by(&source, 1.0, &mut clock).unwrap();
        let sweep = session.with_pace(training.pace).waves(&source).unwrap().remove(0);
        let widths = [8, 16, 32, 64, 128, 256];
        let best = widths.iter().filter_map(|width| rate(&[256, *width])).fold(0.0, f64::max);
        // The model may take a width between two that were measured.
        let below = widths.iter().rev().find(|width| **width <= sweep.tile[1]).unwrap();
        let found = rate(&[sweep.tile[0], *below]).unwrap();
        assert!(found > 0.97 * best, "{program}: {sweep:?} {found} {best}");
    }
}

#[test]
fn what_can_not_be_trained_is_an_error() {
    let refused = |program: &str, session: &Session, part: f64, text: &str| {
        let mut clock = |_: &Session| Ok(1.0);
        let failure = session.train_by(&source(program), part, &mut clock).unwrap_err();
        assert!(failure.to_string().contains(text), "{failure}");
    };
    let sized = session(&[("N", 1024), ("M", 1024)]);
    refused("sor2d", &sized, 0.0, "above 0 and up to 1");
    refused("sor2d", &sized, f64::NAN, "above 0 and up to 1");
    refused("sor2d", &session(&[]), 0.5, "give them, as in -D N=4096");
    let plain = Session::new(Options {
        defines: vec![("N".to_owned(), 64), ("M".to_owned(), 64)],
        ..Options::default()
    });
    refused("heat2d", &plain, 0.5, "nothing to train");
}
