//! A remembered schedule makes the kernels that were measured.

use std::path::Path;
use stencil_compiler::{Arithmetic, Config, Control, Level, Options, Plan, Session, Source};
use stencil_runtime::tune::{Entry, Schedules};

#[test]
fn a_remembered_candidate_is_compiled_as_it_was_measured() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite/programs/hotspot2d.stencil");
    let source = Source {
        name: "hotspot2d.stencil".to_owned(),
        text: std::fs::read_to_string(path).unwrap(),
    };
    let session = Session::new(Options {
        defines: ["N", "M"].map(|name| (name.to_owned(), 1 << 14)).to_vec(),
        arithmetic: Arithmetic { contract: true, fast_math: true },
        ..Options::default()
    });
    let compiled = |session: &Session| {
        let levels = [Level::Gpu, Level::Plan];
        let compiled = session.compile(&source, &levels, Control::default()).unwrap();
        levels.map(|level| compiled.text(level).unwrap().to_owned())
    };
    let fingerprint = session.fingerprint(&source).unwrap();
    let mut fitted = 0;
    for candidate in session.candidates(&source).unwrap() {
        fitted += usize::from(candidate.choice.tile.is_none());
        let measured = compiled(&session.with_choice(candidate.choice));
        let plan = Plan::from_json(&measured[1], "plan").unwrap();
        let entry = Entry {
            fingerprint: fingerprint.clone(),
            device: "NVIDIA H200".to_owned(),
            size_class: 28,
            program: plan.program,
            settings: plan.settings,
            gcells: 1.0,
        };
        let schedules = Schedules { entries: vec![entry] };
        let remembered = session.with_schedules(&source, &schedules, "a file").unwrap();
        assert_ne!(remembered.options().config, Config::default());
        assert_eq!(compiled(&remembered), measured);
    }
    // A tile that is fitted to each kernel is what could be lost.
    assert!(fitted > 0);
}
