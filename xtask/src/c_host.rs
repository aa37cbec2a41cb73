//! The stage `c`: programs in C on the libraries that the stage `build` made, installed as
//! `cargo xtask install` does. The examples are built by `cc` and by CMake and run. The runtime's
//! interface runs on the driver of the runtime's own tests, under Valgrind and AddressSanitizer; so
//! do random calls.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::install;
use crate::project::{Project, capture};

/// Random sequences of calls, by themselves and under AddressSanitizer.
const SEQUENCES: [&str; 2] = ["3000", "1000"];

const STRICT: [&str; 5] = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"];

/// The same for C++.
const STRICT_CPP: [&str; 6] = ["-xc++", "-std=c++11", "-Wall", "-Wextra", "-pedantic", "-Werror"];

/// A program of SL that ends by itself.
const LAPLACE: &str = "NumDimensions 2\nStencilSize (1, 1)\nDataType double\n\
    FunctionName Laplace\n\
    CellValue { return (get(0, -1) + get(-1, 0) + get(1, 0) + get(0, 1)) / 4; }\n\
    EdgeValue { return y < 0 ? 1.0 : 0.0; }\n\
    Converged { return fabs(value - get(0, 0)) < 1e-6; }\nConvergedEvery 50\n";

const ASAN: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

const EXAMPLE: &str = "100 steps, 3 copies of fields\n\
                       the middle has 58.4141, the hottest cell 58.4141\n";

/// Folders of the stage.
struct Places<'a> {
    project: &'a Project,
    c: PathBuf,
    prefix: PathBuf,
    work: PathBuf,
}

/// Runs everything.
///
/// # Errors
/// The first thing that is not as it must be.
pub fn check(project: &Project) -> Result<String> {
    let work = project.target().join("xtask/c");
    let prefix = work.join("prefix");
    install::built(project, &prefix)?;
    let places = Places { project, c: project.root().join("bindings/c"), prefix, work };
    places.library_names()?;
    places.examples()?;
    places.device()?;
    let counts = places.random()?;
    Ok(format!("examples, a device, {counts} random sequences"))
}

impl Places<'_> {
    /// `cc`, which finds the headers, and a library with the path at which it is loaded.
    fn cc(&self, library: &str, output: &str, options: &[&str]) -> Command {
        let mut cc = self.project.command("cc");
        let lib = self.prefix.join("lib");
        cc.args(options).args(["-O1", "-g", "-pthread", "-o"]).arg(self.work.join(output));
        cc.arg(format!("-I{}", self.prefix.join("include").display()));
        cc.arg(format!("-I{}", self.work.display())).arg(format!("-L{}", lib.display()));
        cc.arg(format!("-Wl,--no-as-needed,-rpath,{}", lib.display()));
        cc.arg(format!("-l{library}"));
        cc
    }

    fn program(&self, name: impl AsRef<Path>) -> Command {
        let mut command = self.project.command(self.work.join(name));
        command.env("CUDA_VISIBLE_DEVICES", "");
        command
    }

    /// What `--emit=c` writes is C and C++, also with reductions and the functions of SL.
    fn emitted_languages(&self) -> Result<()> {
        let laplace = self.work.join("Laplace.sl");
        std::fs::write(&laplace, LAPLACE)?;
        let with_sums = "test-suite/programs/conjugate-gradients.stencil";
        for source in [laplace, self.project.root().join(with_sums)] {
            let built = self.project.target().join("release/stencilc");
            let emitted = self.work.join("emitted_language");
            let mut stencilc = self.project.command(built);
            capture(stencilc.arg(&source).args(["--emit=c", "-o"]).arg(&emitted))?;
            for (compiler, options) in [("cc", &STRICT[..]), ("c++", &STRICT_CPP[..])] {
                let mut command = self.project.command(compiler);
                command.args(options).args(["-c", "-o"]).arg(emitted.with_extension("o"));
                command.arg(format!("-I{}", self.prefix.join("include").display()));
                capture(command.arg(emitted.with_extension("c")))?;
            }
        }
        Ok(())
    }

    fn examples(&self) -> Result<()> {
        let examples = self.c.join("examples");
        capture(self.cc("stencilc", "heat2d", &STRICT).arg(examples.join("heat2d.c")))?;
        let built = self.project.target().join("release/stencilc");
        let program = self.project.root().join("test-suite/programs/heat2d.stencil");
        let mut stencilc = self.project.command(built);
        capture(stencilc.arg(&program).args(["--emit=c", "-o"]).arg(self.work.join("plate")))?;
        let sources = [examples.join("emitted.c"), self.work.join("plate.c")];
        capture(self.cc("stencil_runtime", "emitted", &STRICT).args(sources))?;
        self.on_processor(&program)?;
        self.names_on_processor(&program)?;
        self.emitted_languages()?;
        capture(self.cc("stencilc", "devices", &STRICT).arg(self.c.join("tests/devices.c")))?;
        let said = capture(&mut self.program("devices"))?;
        ensure!(said == "devices agree\n", "devices printed {said}");
        let sl = self.project.root().join("test-suite/sl/Hotspot.sl");
        let built = self.project.target().join("release/stencilc");
        let mut stencilc = self.project.command(built);
        let heights = ["--heights=1,2,4", "--emit=c", "-o"];
        capture(stencilc.arg(sl).args(heights).arg(self.work.join("Hotspot")))?;
        let sources = [examples.join("hotspot.c"), self.work.join("Hotspot.c")];
        capture(self.cc("stencil_runtime", "hotspot", &STRICT).args(sources))?;
        let cmake = self.work.join("cmake");
        let configure = format!("-DCMAKE_PREFIX_PATH={}", self.prefix.display());
        let plate = format!("-DPLATE={}", self.work.display());
        capture(
            self.project.command("cmake").arg("-S").arg(&examples).arg("-B").arg(&cmake).args([
                configure,
                plate,
                "-DCMAKE_C_STANDARD=99".to_owned(),
            ]),
        )?;
        capture(self.project.command("cmake").arg("--build").arg(&cmake))?;
        let hotspot = self.program("hotspot").output()?;
        let said = String::from_utf8_lossy(&hotspot.stderr).into_owned();
        let few = "hotspot: error 1: runHotspot reads 3072 elements, and runHotspotSetData was \
                   given 3071\nhotspot: error 7: no CUDA d";
        ensure!(
            hotspot.status.code() == Some(1) && said.starts_with(few),
            "hotspot without a device printed {said}"
        );
        for folder in ["", "cmake"] {
            for target in ["reference", "sim", "cpu"] {
                let heat2d = Path::new(folder).join("heat2d");
                let said = capture(self.program(heat2d).arg(target))?;
                ensure!(said == EXAMPLE, "heat2d on {target} printed {said}");
            }
            let emitted = self.program(Path::new(folder).join("emitted")).output()?;
            let said = String::from_utf8_lossy(&emitted.stderr).into_owned();
            ensure!(
                emitted.status.code() == Some(1) && said.starts_with("emitted: error 7: no CUDA d"),
                "emitted without a device printed {said}"
            );
        }
        Ok(())
    }

    /// A function with the code of a processor, in an object file that is linked.
    fn on_processor(&self, program: &Path) -> Result<()> {
        let folder = self.work.join("processor");
        std::fs::create_dir_all(&folder)?;
        let built = self.project.target().join("release/stencilc");
        let mut stencilc = self.project.command(built);
        stencilc.arg(program).args(["--arch=native", "--fp-contract=off", "--emit=c", "-o"]);
        capture(stencilc.arg(folder.join("plate")))?;
        let found = format!("-I{}", folder.display());
        let options: Vec<&str> = STRICT.into_iter().chain([found.as_str()]).collect();
        let mut cc = self.cc("stencil_runtime", "emitted-processor", &options);
        let made = ["plate.c", "plate.o"].map(|name| folder.join(name));
        capture(cc.arg(self.c.join("examples/emitted.c")).args(made))?;
        let said = capture(&mut self.program("emitted-processor"))?;
        ensure!(said == "the middle has 58.4141\n", "emitted on the processor printed {said}");
        Ok(())
    }

    /// One program under two names and a program of SL, for a processor, in one program in C.
    fn names_on_processor(&self, program: &Path) -> Result<()> {
        let folder = self.work.join("processor");
        let laplace = self.work.join("Laplace.sl");
        std::fs::write(&laplace, LAPLACE)?;
        let include = format!("-I{}", folder.display());
        let options: Vec<&str> = STRICT.into_iter().chain([include.as_str()]).collect();
        let mut cc = self.cc("stencil_runtime", "names-on-processor", &options);
        for (source, name) in [(program, "first"), (program, "second"), (&laplace, "Laplace")] {
            let mut stencilc = self.project.command(self.project.target().join("release/stencilc"));
            stencilc.arg(source).args(["--arch=native", "--emit=c", "-o"]).arg(folder.join(name));
            capture(&mut stencilc)?;
            cc.args(["c", "o"].map(|end| folder.join(name).with_extension(end)));
        }
        capture(cc.arg(self.c.join("tests/processor.c")))?;
        let said = capture(&mut self.program("names-on-processor"))?;
        ensure!(said == "converged, twins agree\n", "names on the processor printed {said}");
        Ok(())
    }

    /// Each library has the name of its file, by which programs find it when they run.
    fn library_names(&self) -> Result<()> {
        for name in ["libstencil_runtime.so", "libstencilc.so"] {
            let mut readelf = self.project.command("readelf");
            let said = capture(readelf.arg("-d").arg(self.prefix.join("lib").join(name)))?;
            let own = format!("Library soname: [{name}]");
            ensure!(said.contains(&own) && said.matches("soname").count() == 1, "{name}: {said}");
        }
        Ok(())
    }

    /// The interface on a device.
    fn device(&self) -> Result<()> {
        let runtime = self.project.root().join("runtime/tests");
        let driver = self.work.join("libcuda.so");
        let options = ["-shared", "-fPIC", "-O1", "-g", "-ffp-contract=off", "-pthread", "-o"];
        let mut cc = self.project.command("cc");
        capture(cc.args(options).arg(&driver).arg(runtime.join("cuda/driver.c")))?;
        let source = self.c.join("tests/device.c");
        let gnu = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off"];
        let log = self.work.join("driver.log");
        let blocks = self.blocks(&runtime)?;
        for (name, sanitizer) in [("device", &[][..]), ("device-asan", &ASAN[..])] {
            let mut cc = self.cc("stencil_runtime", name, &[&gnu[..], sanitizer].concat());
            capture(cc.arg(&source).arg(&driver))?;
            let mut run = if sanitizer.is_empty() {
                let mut valgrind = self.project.command("valgrind");
                let kinds = "definite,indirect,possible";
                valgrind.args(["-q", "--error-exitcode=9", "--leak-check=full"]);
                valgrind.arg(format!("--show-leak-kinds={kinds}"));
                valgrind.arg(format!("--errors-for-leak-kinds={kinds}"));
                valgrind.arg(self.work.join(name));
                valgrind
            } else {
                self.project.command(self.work.join(name))
            };
            let _ = std::fs::remove_file(&log);
            run.env("LD_LIBRARY_PATH", &self.work).env("FAKE_CUDA_LOG", &log);
            run.arg(runtime.join("data/smear.plan.json"));
            run.arg(runtime.join("data/smear_records.plan.json"));
            capture(run.arg(&blocks))?;
            let calls = std::fs::read_to_string(&log).context("the driver was not called")?;
            ensure!(!calls.contains("FAULT"), "the driver found a fault: {}", log.display());
        }
        Ok(())
    }

    /// The plan of the arrays of structs with blocks of two cells, beside its code.
    fn blocks(&self, runtime: &Path) -> Result<PathBuf> {
        let (plan, code) = ["plan.json", "ptx"]
            .map(|end| runtime.join(format!("data/smear_records.{end}")))
            .into();
        let structs = std::fs::read_to_string(plan)?;
        let blocks = structs.replace("\"numbers\": 2", "\"numbers\": 2, \"block\": 2");
        ensure!(blocks != structs, "the plan has no array of structs of two numbers");
        std::fs::copy(code, self.work.join("smear_records.ptx"))?;
        let place = self.work.join("smear_records.plan.json");
        std::fs::write(&place, blocks)?;
        Ok(place)
    }

    /// Random calls; returns how many sequences.
    fn random(&self) -> Result<String> {
        let source = self.c.join("tests/random.c");
        let leaks = self.c.join("tests/leaks.supp");
        let strict = ["-std=gnu99", "-Wall", "-Wextra", "-Werror"];
        for ((name, options), sequences) in
            [("random", &[][..]), ("random-asan", &ASAN[..])].into_iter().zip(SEQUENCES)
        {
            let options = [&strict[..], options].concat();
            capture(self.cc("stencilc", name, &options).arg(&source))?;
            let leaks = format!("suppressions={}:print_suppressions=0", leaks.display());
            let said =
                capture(self.program(name).env("LSAN_OPTIONS", leaks).args([sequences, "1"]))?;
            ensure!(!said.contains("sequences, 0 runs"), "no random sequence ran: {said}");
        }
        Ok(SEQUENCES.join(" + "))
    }
}
