//! Runs that several devices share: results, files and messages are those of one.

use stencil_test_suite::{Scratch, files};

/// Sizes, data and a schedule for a program of the suite, by the rank of its grids.
pub fn arguments(text: &str, target: &str) -> String {
    let names = |word: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix(word));
        lines.map(|line| line.split([' ', ':']).next().unwrap_or_default().to_owned()).collect()
    };
    let grids = text.lines().filter(|line| line.starts_with("grid"));
    let ranks: Vec<usize> = grids.map(|line| line.matches("..").count()).collect();
    let rank = ranks.iter().copied().max().unwrap_or(1);
    let (sizes, tile): (&[i64], &str) = match rank {
        1 => (&[403], "--tile 64"),
        2 => (&[67, 71], "--tile 8,32"),
        _ => (&[19, 23, 29], "--tile 4,5,16"),
    };
    let sizes = sizes.iter().chain([&17].into_iter().cycle());
    let sizes = names("param ").into_iter().zip(sizes);
    let mut words: String = sizes.map(|(name, size)| format!("--size {name}={size} ")).collect();
    for (number, name) in names("field ").iter().chain(&names("const field ")).enumerate() {
        words += &format!("--in {name}=random:{} ", number + 1);
    }
    // Tiles of sweeps have another shape, and functions of several ranks have no common one.
    let alike = ranks.iter().all(|one| *one == rank);
    let tile = if target == "cpu" && alike && !text.contains("'[") { tile } else { "" };
    format!("{words}--steps 3 {tile}")
}

/// Runs all programs without sweeps on some devices, and compares each with the reference.
fn agree(target: &str, devices: &[&str]) {
    let mut shared = 0;
    for (number, path) in files("programs", "stencil").iter().enumerate() {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let scratch = Scratch::new();
        scratch.copy(&format!("programs/{name}.stencil"));
        let devices = devices[number % devices.len()];
        let text = scratch.read(&format!("{name}.stencil"));
        let words = format!(
            "run {name}.stencil --target {target} --devices {devices} --check --fp-contract=off {}",
            arguments(&text, target)
        );
        let words: Vec<&str> = words.split_whitespace().collect();
        let outcome = scratch.run("stencilc", &words);
        let said = outcome.stdout + &outcome.stderr;
        if scratch.sweeps(name) {
            assert_eq!(outcome.code, Some(1), "{words:?}\n{said}");
            assert!(said.contains("can't be shared out between devices"), "{words:?}\n{said}");
            continue;
        }
        assert_eq!(outcome.code, Some(0), "{words:?}\n{said}");
        assert!(
            said.contains("agree bit for bit") && !said.contains("differ"),
            "{words:?}\n{said}"
        );
        shared += 1;
    }
    assert!(shared > 70, "{shared} programs");
}

#[test]
fn programs_agree_on_simulated_devices() {
    agree("sim", &["3", "2x2"]);
}

#[test]
fn programs_agree_on_the_processor() {
    agree("cpu", &["2", "4", "2x2", "3"]);
}

/// A run with some arguments in a folder of its own, which gives its files.
fn written(arguments: &str) -> Vec<(String, Vec<u8>)> {
    let scratch = Scratch::new();
    scratch.copy("programs/heat2d.stencil");
    let words = format!(
        "run heat2d.stencil --target cpu --threads 2 --size N=90 --size M=40 --tile 16,64 \
         --in A=random:1 --in K=random:2 --steps 21 {arguments}"
    );
    let words: Vec<&str> = words.split_whitespace().collect();
    let outcome = scratch.run("stencilc", &words);
    assert_eq!(outcome.code, Some(0), "{words:?}\n{}", outcome.stderr);
    let contents = scratch.contents().into_iter();
    contents.filter(|(name, _)| name != "heat2d.stencil").collect()
}

#[test]
fn files_are_those_of_one_device() {
    for files in [
        "--out A=a.npy",
        "--out A=a{step}.npy --snapshot-every 5",
        "--out A=a.npy --checkpoint c.checkpoint --checkpoint-every 8",
    ] {
        let one = written(files);
        assert!(!one.is_empty());
        for devices in ["3", "2x2", "1"] {
            assert!(written(&format!("{files} --devices {devices}")) == one, "{files}, {devices}");
        }
    }
}

#[test]
fn timelines_have_a_line_for_each_device() {
    for target in ["cpu", "sim"] {
        let scratch = Scratch::new();
        scratch.copy("programs/heat2d.stencil");
        let words = format!(
            "run heat2d.stencil --target {target} --devices 3 --size N=90 --size M=40 --steps 9 \
             --in A=random:1 --in K=random:2 --timeline t.svg --out A=a.npy"
        );
        let outcome = scratch.run("stencilc", &words.split_whitespace().collect::<Vec<_>>());
        assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("devices compute "), "{}", outcome.stderr);
        let picture = scratch.read("t.svg");
        assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
        assert!(picture.contains("heat2d: ") && picture.contains(" ms<"), "{picture}");
        for device in ["device 0", "device 1", "device 2"] {
            assert!(picture.contains(device), "{picture}");
        }
        assert_eq!(outcome.new_files.len(), 2);
    }
}

/// The summary of a run has the grid of its devices, and the result is that of one device.
#[test]
fn the_grid_of_devices_follows_from_sizes() {
    for (sizes, asked, grid) in [
        ("--size N=64 --size M=30000", "4", "2x2 devices"),
        ("--size N=64 --size M=30000", "4x1", "4x1 devices"),
        ("--size N=30000 --size M=64", "4", "4 devices"),
    ] {
        let scratch = Scratch::new();
        scratch.copy("programs/heat2d.stencil");
        let words = format!(
            "run heat2d.stencil --target cpu --devices {asked} {sizes} --steps 40 --check \
             --fp-contract=off --in A=random:1 --in K=random:2 --link 10000:1000"
        );
        let outcome = scratch.run("stencilc", &words.split_whitespace().collect::<Vec<_>>());
        let said = outcome.stdout + &outcome.stderr;
        assert_eq!(outcome.code, Some(0), "{words}\n{said}");
        assert!(said.contains(grid) && said.contains("agree bit for bit"), "{words}\n{said}");
    }
}

/// Runs a program of the suite, which must be refused with a message.
fn refused(program: &str, arguments: &str, message: &str) {
    let scratch = Scratch::new();
    scratch.copy(&format!("programs/{program}.stencil"));
    let words = format!(
        "run {program}.stencil --size N=40 --size M=50 --steps 2 --out A=a.npy {arguments}"
    );
    let words: Vec<&str> = words.split_whitespace().collect();
    let outcome = scratch.run("stencilc", &words);
    assert_eq!(outcome.code, Some(1), "{words:?}\n{}", outcome.stderr);
    let errors = outcome.stderr.lines().filter(|line| line.starts_with("error")).count();
    assert_eq!(errors, 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains(message), "{words:?}\n{}", outcome.stderr);
    assert!(outcome.new_files.is_empty());
}

#[test]
fn what_has_one_device_is_refused() {
    let data = "--in A=random:1 --in K=random:2";
    for (arguments, message) in [
        ("--target reference", "several devices are those of CUDA, of the simulator or of the"),
        ("--target sim --report", "count one device; leave them or --devices out"),
        (
            "--target cpu --timeline t.svg --checkpoint c --checkpoint-every 2",
            "--timeline shows a run without pauses; leave it out",
        ),
        ("--target cpu --timeline a.npy", "a.npy (--timeline) and a.npy (--out A) are one file"),
        ("--target cpu --link 5", "expected nanoseconds of a message and MB a second"),
    ] {
        refused("heat2d", &format!("{data} {arguments} --devices 2"), message);
    }
    // The kernel's name has the sweeps of its launch.
    for (target, kernel) in [("cpu", "sor2d_0"), ("sim", "sor2d_8")] {
        let message = format!(
            "kernel `{kernel}` can't be shared out between devices: its blocks wait for each \
             other; run the program on one device"
        );
        refused("sor2d", &format!("--in A=random:1 --target {target} --devices 2"), &message);
    }
}

#[test]
fn counts_that_are_none_are_refused() {
    for count in ["0", "x", "2x", "x2", "2x0", "2x2x2", "-1", "1.5", "4097", "99999999999999999999"]
    {
        let message = "expected a number such as 4 or two such as 2x2, 4096 devices at most";
        refused("heat2d", &format!("--target cpu --devices={count}"), message);
    }
    for (gpus, message) in [
        ("0,0", "a GPU is named twice; name each once"),
        ("0,x", "expected the numbers of GPUs, separated by commas: 0,2"),
        ("1,0", "--devices names GPUs, and the target is another one; give how many devices"),
    ] {
        let data = "--in A=random:1 --in K=random:2 --target cpu";
        refused("heat2d", &format!("{data} --devices={gpus}"), message);
    }
    let many = "--in A=random:1 --in K=random:2 --target cpu --devices 65";
    refused("heat2d", many, "--devices 65: a process has 64 devices at most; take fewer, or start");
}

#[test]
fn arrays_of_structs_are_refused() {
    let scratch = Scratch::new();
    scratch.copy("programs/d2q9.stencil");
    for how in ["aos", "aos --strategy naive", "blocks", "blocks --strategy naive"] {
        let words = format!(
            "run d2q9.stencil --size N=40 --size M=50 --steps 2 --in F=random:1 --target sim \
             --devices 2 --layout {how}"
        );
        let words: Vec<&str> = words.split_whitespace().collect();
        let outcome = scratch.run("stencilc", &words);
        assert_eq!((outcome.code, outcome.new_files.len()), (Some(1), 0), "{}", outcome.stderr);
        let message = "can't be shared out between devices";
        assert!(outcome.stderr.contains(message), "{how}\n{}", outcome.stderr);
    }
}
