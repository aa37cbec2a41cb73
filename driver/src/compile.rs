//! `stencilc FILE`: compiles a source and writes the levels that are asked for.

use crate::cli::{CommonArgs, CompileArgs};
use crate::emit::Emit;
use crate::emit_c;
use crate::files::{self, Outputs, Place, is_standard};
use crate::message::say;
use crate::run::new_bar;
use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use stencil_compiler::{
    Compiled, Control, Failure, Level, Plan, Progress, Session, Source, TileSearch, sl,
};

/// Does what the command line asks for.
pub(crate) fn execute(
    common: &CommonArgs,
    args: &CompileArgs,
    cancel: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    let emitted = args.emitted(common);
    let c_stem = c_stem(args, &emitted)?;
    if let (Some(count), Some(stem)) = (args.candidates, &args.output) {
        return candidates(common, &levels(&emitted)?, (count, stem), cancel);
    }
    let places = places(args, &emitted)?;
    let c_places = c_stem.map(|stem| ["h", "c"].map(|extension| with_extension(stem, extension)));
    let code = places.iter().map(|(_, place)| place).chain(c_places.iter().flatten());
    files::check_outputs(&outputs(args, code), &common.files())?;
    let source = files::read(&common.file)?;
    let session = common.session(&source)?;
    let session = match c_stem {
        Some(stem) => session.with_symbol_end(emit_c::symbol_end(stem)),
        None => session,
    };
    let reported = args.report || args.report_json.is_some() || args.roofline.is_some();
    let processor = session.options().processor().is_some();
    let target = session.options().target()?;
    if reported && (processor || !target.device.has_ptx()) {
        return Err(Failure::user(
            "--report, --report-json and --roofline describe code for NVIDIA's GPUs; leave them \
             out for other targets",
        ));
    }
    let needs_more = emitted.iter().any(|emit| matches!(emit, Emit::C | Emit::Object));
    if needs_more && !target.device.has_ptx() {
        let arch = target.arch;
        return Err(Failure::user(format!(
            "there are no object files and C functions for {arch}, a GPU of AMD's; take asm or llvm"
        )));
    }
    let mut kept: Vec<Level> = places.iter().map(|(emit, _)| emit.level(processor)).collect();
    if reported || c_stem.is_some() {
        kept.extend([Level::Plan, if processor { Level::Llvm } else { Level::Ptx }]);
    }
    if reported {
        kept.push(Level::Gpu);
    }
    let compiled = compile(common, &session, &source, &kept, cancel)?;
    let report = reported.then(|| session.report(&source, &compiled)).transpose()?;
    let mut outputs = Outputs::default();
    if let Some(report) = &report {
        if args.report {
            say(report);
        }
        if let Some(place) = &args.report_json {
            outputs.add_text(place, &report.to_json());
        }
        if let Some(place) = &args.roofline {
            outputs.add_text(place, &report.roofline_picture()?);
        }
    }
    for (emit, place) in &places {
        match (emit, compiled.object()) {
            (Emit::Object, Some(object)) => {
                outputs.add(place, Box::new(|file| file.write_all(object.bytes())));
            }
            _ => outputs.add_text(place, compiled.text(emit.level(processor)).unwrap_or_default()),
        }
    }
    if let (Some(stem), Some([header, c])) = (c_stem, &c_places)
        && let Some(plan) = compiled.plan()
    {
        let function = sl::function_name(&source);
        let files = emit_c::files(stem, plan, compiled.ptx(), function.as_deref())?;
        outputs.add_text(header, &files.header);
        outputs.add_text(c, &files.source);
    }
    if let Some(place) = &args.wave {
        outputs.add_text(place, &session.wave_picture(&source)?);
    }
    outputs.write()
}

/// The files of a compile: code, and what other options name.
fn outputs<'p>(args: &CompileArgs, code: impl Iterator<Item = &'p PathBuf>) -> Vec<Place> {
    let pictures = [
        ("--report-json", &args.report_json),
        ("--roofline", &args.roofline),
        ("--wave", &args.wave),
    ];
    let pictures =
        pictures.into_iter().filter_map(|(option, place)| Some((option, place.as_ref()?)));
    let all = code.map(|place| ("-o", place)).chain(pictures);
    all.map(|(option, place)| (option.to_owned(), place.clone())).collect()
}

/// A compile, with what is to be printed of it on the way.
fn compile(
    common: &CommonArgs,
    session: &Session,
    source: &Source,
    levels: &[Level],
    cancel: &Arc<AtomicBool>,
) -> Result<Compiled, Failure> {
    let mut print = |progress: Progress<'_>| print_ir(progress);
    let progress = common.print_ir_after_all.then_some(&mut print as _);
    let control = Control { progress, cancel: Arc::clone(cancel), ..Control::default() };
    let compiled = session.compile(source, levels, control)?;
    if common.timing {
        print_timing(compiled.timing());
    }
    Ok(compiled)
}

/// Where everything but C goes; `-` is standard output.
fn places(args: &CompileArgs, emitted: &[Emit]) -> Result<Vec<(Emit, PathBuf)>, Failure> {
    match (emitted, &args.output) {
        ([Emit::Object], None) => Err(Failure::user(
            "an object file needs -o NAME, as it is no text; --emit=asm prints the assembly",
        )),
        ([one], Some(output)) if *one != Emit::C => Ok(vec![(*one, output.clone())]),
        ([one], None) if *one != Emit::C => Ok(vec![(*one, PathBuf::from("-"))]),
        (all, Some(stem)) => {
            check_stem(stem)?;
            let others = all.iter().copied().filter(|emit| *emit != Emit::C);
            Ok(others.map(|emit| (emit, with_extension(stem, emit.extension()))).collect())
        }
        (_, None) => Err(Failure::user(
            "several levels need -o NAME; each level is written to NAME with an extension of its \
             own",
        )),
    }
}

/// The levels among what is asked for; candidates are made of nothing else.
fn levels(emitted: &[Emit]) -> Result<Vec<Level>, Failure> {
    let level = |emit: &Emit| match emit {
        Emit::Level(level) => Ok(*level),
        Emit::C | Emit::Object => Err(Failure::user(
            "--candidates makes no C and no object file; leave c and obj out of --emit",
        )),
    };
    emitted.iter().map(level).collect()
}

/// The name of the C files, where they are asked for.
fn c_stem<'a>(args: &'a CompileArgs, emitted: &[Emit]) -> Result<Option<&'a Path>, Failure> {
    if !emitted.contains(&Emit::C) {
        return Ok(None);
    }
    let Some(stem) = &args.output else {
        return Err(Failure::user("--emit=c needs -o NAME; it writes NAME.h and NAME.c"));
    };
    check_stem(stem)?;
    Ok(Some(stem))
}

/// Compiles the schedules that are predicted to be fastest, or the tiles of affine loops that are
/// worth measuring, each to files with its number.
fn candidates(
    common: &CommonArgs,
    levels: &[Level],
    (count, stem): (usize, &Path),
    cancel: &Arc<AtomicBool>,
) -> Result<(), Failure> {
    check_stem(stem)?;
    let source = files::read(&common.file)?;
    let session = common.session(&source)?;
    let fingerprint = session.fingerprint(&source)?;
    let place = |number: usize, level: Level| {
        with_extension(stem, &format!("{number}.{}", level.extension()))
    };
    let check = |count: usize| {
        let named = |number, level: &Level| ("-o".to_owned(), place(number, *level));
        let places =
            (0..count).flat_map(|number| levels.iter().map(move |level| named(number, level)));
        files::check_outputs(&places.collect::<Vec<_>>(), &common.files())
    };
    let mut outputs = Outputs::default();
    let mut add = |number: usize, compiled: &Compiled, plan: Option<Plan>| {
        for (level, text) in compiled.texts().filter(|(level, _)| levels.contains(level)) {
            let place = place(number, level);
            match plan.clone().filter(|_| level == Level::Plan) {
                Some(mut plan) => {
                    plan.settings.fingerprint.clone_from(&fingerprint);
                    outputs.add_text(&place, &(plan.to_json().map_err(Failure::user)? + "\n"));
                }
                None => outputs.add_text(&place, text),
            }
        }
        Ok::<(), Failure>(())
    };
    if session.is_nest(&source)? {
        // What can't be written is told before the search.
        check(1)?;
        let mut search = searched(common, &session, &source, levels, cancel)?;
        search.tiles.truncate(count);
        check(search.tiles.len())?;
        for (number, found) in search.tiles.iter().enumerate() {
            if common.timing {
                print_timing(found.compiled.timing());
            }
            add(number, &found.compiled, found.plan())?;
        }
        say(table(&search));
        return outputs.write();
    }
    let mut candidates = session.candidates(&source)?;
    if candidates.is_empty() {
        return Err(Failure::user(format!(
            "{}: no schedule of this program is predicted, so there are no candidates; leave \
             --candidates out",
            source.name
        )));
    }
    candidates.truncate(count);
    check(candidates.len())?;
    for (number, candidate) in candidates.into_iter().enumerate() {
        let session = session.with_choice(candidate.choice);
        let compiled = compile(common, &session, &source, levels, cancel)?;
        add(number, &compiled, compiled.plan().cloned())?;
    }
    outputs.write()
}

/// The tiles of a function of affine loops that are worth measuring.
fn searched(
    common: &CommonArgs,
    session: &Session,
    source: &Source,
    levels: &[Level],
    cancel: &Arc<AtomicBool>,
) -> Result<TileSearch, Failure> {
    let mut bar = None;
    let mut follow = |progress: Progress<'_>| {
        if let Progress::Candidates { done, of } = progress {
            if bar.is_none() && !stderr().is_terminal() {
                say(format!("{of} tiles to compile\n"));
            }
            bar.get_or_insert_with(|| new_bar("compile", "tiles", of)).set_position(done);
        } else if common.print_ir_after_all {
            print_ir(progress);
        }
    };
    let control =
        Control { progress: Some(&mut follow), cancel: Arc::clone(cancel), ..Control::default() };
    session.search_tiles(source, levels, control)
}

/// What each limit of a search leaves, and the tiles.
fn table(search: &TileSearch) -> String {
    let mut text = String::from("tiles left by each limit:\n");
    for (limit, left) in &search.limits {
        text += &format!("{left:>8}  {limit}\n");
    }
    text += &format!("{:>8}  written\n", search.tiles.len());
    text += &format!(
        "{:>8}  {:>12} {:>8} {:>12} {:>6} {:>16} {:>10} {:>10} {:>10}\n",
        "number",
        "threads",
        "copiers",
        "per thread",
        "time",
        "moved/iteration",
        "registers",
        "spilled",
        "occupancy"
    );
    let number_of = |known: Option<u32>| known.map_or("?".to_owned(), |count| count.to_string());
    let list = |all: &[i64]| all.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    for (number, found) in search.tiles.iter().enumerate() {
        let tile = &found.tile;
        text += &format!(
            "{number:>8}  {:>12} {:>8} {:>12} {:>6} {:>16.5} {:>10} {:>10} {:>10}\n",
            list(&tile.threads),
            tile.copiers,
            list(&tile.per_thread),
            tile.time,
            found.moved,
            number_of(found.registers),
            number_of(found.spilled),
            found.occupancy.map_or("?".to_owned(), |part| format!("{:.0} %", part * 100.0)),
        );
    }
    text
}

/// Refuses a name for several files to which no extension can be added: standard output, `.`, a
/// folder with its slash, a device.
fn check_stem(stem: &Path) -> Result<(), Failure> {
    if is_standard(stem) {
        return Err(Failure::user(
            "several files can't go to standard output; give -o a name, from which theirs are made",
        ));
    }
    let is_device = |there: std::fs::Metadata| !there.is_file() && !there.is_dir();
    let ends_in_slash = stem.as_os_str().as_encoded_bytes().ends_with(b"/");
    if stem.file_name().is_none() || ends_in_slash || stem.metadata().is_ok_and(is_device) {
        return Err(Failure::user(format!(
            "{}: no name of a file; each of several files gets the name after -o with an \
             extension, so give a name such as out/heat",
            stem.display()
        )));
    }
    Ok(())
}

/// `stem` with the extension of a level.
fn with_extension(stem: &Path, extension: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// Prints the IR after a pass to standard error.
pub(crate) fn print_ir(progress: Progress<'_>) {
    if let Progress::Pass { name, ir } = progress {
        say(format_args!("// ----- after {name} -----\n{}\n", ir()));
    }
}

/// Prints to standard error how long each pass took.
pub(crate) fn print_timing(timing: &[(String, Duration)]) {
    let milliseconds = |time: &Duration| time.as_secs_f64() * 1e3;
    for (pass, time) in timing {
        say(format_args!("{:>10.3} ms  {pass}\n", milliseconds(time)));
    }
    let total: f64 = timing.iter().map(|(_, time)| milliseconds(time)).sum();
    say(format_args!("{total:>10.3} ms  in all\n"));
}
