//! A remembered schedule makes the kernels that were measured.

use std::path::Path;
use stencil_frontend::source::Source;
use stencil_passes::pipeline::Config;
use stencil_passes::target::Arithmetic;
use stencil_runtime::plan::Plan;
use stencil_runtime::tune::{Entry, Schedules};
use stencilc::compile::{self, Level, Options};

#[test]
fn a_remembered_candidate_is_compiled_as_it_was_measured() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../test-suite/programs/hotspot2d.stencil");
    let source = Source {
        name: "hotspot2d.stencil".to_owned(),
        text: std::fs::read_to_string(path).unwrap(),
    };
    let options = Options {
        defines: ["N", "M"].map(|name| (name.to_owned(), 1 << 14)).to_vec(),
        config: Config::default(),
        arithmetic: Arithmetic { contract: true, fast_math: true },
        arch: "sm_90".to_owned(),
        libdevice: None,
        passes: None,
        print_ir_after_all: false,
    };
    let compiled =
        |options: &Options| compile::emit(&source, options, &[Level::Gpu, Level::Plan]).unwrap().0;
    let fingerprint = compile::fingerprint(&source, &options).unwrap();
    let mut fitted = 0;
    for candidate in compile::candidates(&source, &options).unwrap() {
        fitted += usize::from(candidate.choice.tile.is_none());
        let config = Config { choice: candidate.choice, ..options.config.clone() };
        let measured = compiled(&Options { config, ..options.clone() });
        let plan = Plan::from_json(&measured[1].1, "plan").unwrap();
        let entry = Entry {
            fingerprint: fingerprint.clone(),
            device: "NVIDIA H200".to_owned(),
            size_class: 28,
            program: plan.program,
            settings: plan.settings,
            gcells: 1.0,
        };
        let schedules = Schedules { entries: vec![entry] };
        let remembered = compile::with_schedules(&source, options.clone(), &schedules).unwrap();
        assert_ne!(remembered.config, Config::default());
        assert_eq!(compiled(&remembered), measured);
    }
    // A tile that is fitted to each kernel is what could be lost.
    assert!(fitted > 0);
}
