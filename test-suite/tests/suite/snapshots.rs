//! Snapshots of a run: files and pictures with the number of the step in their names, and
//! animations.

use crate::snapshot;
use stencil_test_suite::Scratch;

const HEAT: &str = "param N\ngrid G = [0..N-1, 0..N-1]\nfield A : f32 on G\n\
    temp field D : f32 on G\n\
    fn slope -> D [1..N-2, 1..N-2] = A[0,1] - A[0,-1]\n\
    fn move -> A [1..N-2, 1..N-2] = A[0,0] + 0.1 * D[0,0]\n\
    reduce most : f32 = max(A[0,0]) on [0..N-1, 0..N-1]\nsteps 7\n";
const LINES: &str = "param N\ngrid G = [0..N-1]\nfield V : vec<2, f32> on G\n\
    fn f -> V [0..N-1] = V[0] + V[0]\nsteps 7\n";

const RUN: &str = "stencilc run heat.stencil --size N=12 --in A=random:1 --fp-contract off";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("heat.stencil", HEAT);
    scratch.write("lines.stencil", LINES);
    std::fs::create_dir(scratch.path().join("s")).unwrap_or_else(|error| panic!("{error}"));
    scratch
}

fn done(scratch: &Scratch, line: &str) -> Vec<String> {
    let outcome = scratch.shell(line);
    assert_eq!(outcome.code, Some(0), "{line}\n{}", outcome.stderr);
    outcome.new_files
}

#[test]
fn a_picture_of_complex_numbers_shows_their_absolute_values() {
    let scratch = scratch();
    scratch.write(
        "turn.stencil",
        "param N\ngrid G = [0..N-1, 0..N-1]\nfield U : complex64 on G\nfield A : f32 on G\n\
         fn f -> (U, A) [0..N-1, 0..N-1] = (U[0,0], cabs(U[0,0]))\nsteps 1\n",
    );
    let run = "stencilc run turn.stencil --target reference --size N=12 --in U=random:1";
    done(&scratch, &format!("{run} --in A=zeros --out U=u.png --out A=a.png --range 0,2"));
    let [of_complex, of_real] =
        ["u.png", "a.png"].map(|name| std::fs::read(scratch.path().join(name)).unwrap());
    assert!(of_complex == of_real && of_real.len() > 100);
}

/// Each snapshot is what a run of so many steps gives.
#[test]
fn snapshots_are_the_results_of_shorter_runs() {
    for target in ["reference", "sim", "sim --strategy block --pyramid-height 3"] {
        let scratch = scratch();
        let run = format!("{RUN} --target {target}");
        let outputs = "--out A=s/a{step}.npy --out D=s/d{step}.npy --out most=s/most.npy";
        let made = done(&scratch, &format!("{run} --snapshot-every 3 {outputs}"));
        let steps = [0, 3, 6, 7];
        let names = ["a", "d"].map(|name| steps.map(|step| format!("s/{name}{step}.npy")));
        assert_eq!(made, [names.concat(), vec!["s/most.npy".to_owned()]].concat(), "{target}");
        for step in steps {
            let short = format!("{run} --steps {step} --out A=a.npy --out D=d.npy");
            done(&scratch, &short);
            let files = scratch.contents();
            for name in ["a", "d"] {
                let snapshot = &files[&format!("s/{name}{step}.npy")];
                assert!(*snapshot == files[&format!("{name}.npy")], "{target}: {name}{step}");
            }
        }
        let files = scratch.contents();
        assert!(files["s/d0.npy"] != files["s/d7.npy"], "{target}: a temp field has its values");
    }
}

/// A resumed run goes on with its snapshots.
#[test]
fn snapshots_go_with_checkpoints() {
    let scratch = scratch();
    let run = format!("{RUN} --target reference --snapshot-every 2 --out A=s/a{{step}}.npy");
    done(&scratch, &format!("{run} --checkpoint c --checkpoint-every 5"));
    let whole = scratch.contents();
    for step in [6, 7] {
        let name = scratch.path().join(format!("s/a{step}.npy"));
        std::fs::remove_file(name).unwrap_or_else(|error| panic!("{error}"));
    }
    assert_eq!(done(&scratch, &format!("{run} --resume c")), ["s/a6.npy", "s/a7.npy"]);
    assert!(scratch.contents() == whole);
}

#[test]
fn pictures_and_an_animation_are_written() {
    let scratch = scratch();
    let run = format!("{RUN} --target reference");
    let made = done(&scratch, &format!("{run} --snapshot-every 3 --out A=s/a{{step}}.png"));
    assert_eq!(made, ["s/a0.png", "s/a3.png", "s/a6.png", "s/a7.png"]);
    done(&scratch, &format!("{run} --out A=a.png --out D=d.png"));
    let files = scratch.contents();
    assert!(files["a.png"].starts_with(b"\x89PNG") && files["a.png"] == files["s/a7.png"]);
    done(&scratch, &format!("{run} --snapshot-every 1 --out A=a.gif --colors gray --range -0,1"));
    let gif = &scratch.contents()["a.gif"];
    // Each frame has a descriptor of the whole picture, behind its control block.
    let frame = [0x2c, 0, 0, 0, 0, 12, 0, 12, 0];
    let frames = gif.windows(frame.len()).filter(|bytes| *bytes == frame).count();
    assert!(gif.starts_with(b"GIF89a") && frames == 8, "{frames} frames");
}

/// A snapshot of a later step would be an input through a link: nothing is written.
#[test]
fn links_to_inputs_are_refused_before_the_run() {
    for (link, out) in [
        ("ln -s ../in.npy s/a3.npy", "s/a{step}.npy"),
        ("ln in.npy s/a3.npy", "s/a{step}.npy"),
        ("ln -s in.npy a3.npy", "a{step}.npy"),
        ("mkdir t2 && ln -s ../in.npy t2/a2.npy", "t{step}/a{step}.npy"),
    ] {
        let scratch = scratch();
        done(&scratch, &format!("{RUN} --target reference --steps 0 --out A=in.npy"));
        assert_eq!(scratch.shell(link).code, Some(0), "{link}");
        let before = scratch.contents();
        let outcome = scratch.shell(&format!(
            "stencilc run heat.stencil --target reference --in A=in.npy --snapshot-every 1 --out \
             'A={out}' --steps 3"
        ));
        assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{link}");
        assert!(scratch.contents() == before, "{link}: {:?}", outcome.new_files);
        assert!(outcome.stderr.contains("would replace the input in.npy"), "{}", outcome.stderr);
    }
}

fn refused(case: &str, command: &str) {
    let scratch = scratch();
    done(&scratch, &format!("{RUN} --target reference --steps 0 --out A=s/a3.npy"));
    let before = scratch.contents();
    let outcome = scratch.shell(command);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{}", outcome.stderr);
    assert!(scratch.contents() == before, "{command}: {:?}", outcome.new_files);
    snapshot(&format!("snapshots__{case}"), &format!("$ {command}\n{}", outcome.stderr));
}

macro_rules! refused {
    ($($case:ident: $command:expr;)*) => {
        $(#[test]
        fn $case() {
            refused(stringify!($case), &$command.replace("RUN", RUN));
        })*
    };
}

refused! {
    snapshots_without_a_file: "RUN --target reference --snapshot-every 3 --out A=a.npy";
    snapshots_every_zero: "RUN --target reference --snapshot-every 0 --out A=a{step}.npy";
    animation_of_one_frame: "RUN --target reference --out A=a.gif";
    picture_of_vecs: "stencilc run lines.stencil --target reference --size N=9 --in V=zeros \
        --out V=v.png";
    colors_without_a_picture: "RUN --target reference --out A=a.npy --colors gray";
    range_upside_down: "RUN --target reference --out A=a.png --range 1,0";
    snapshot_over_an_input: "stencilc run heat.stencil --target reference --in A=s/a3.npy \
        --snapshot-every 9 --out A=s/a{step}.npy --steps 3";
    report_with_pauses: "RUN --target sim --report --snapshot-every 3 --out A=a{step}.npy";
}
