//! A failing case as files that a person can run: the program with a head that tells what went
//! wrong and the command line, and the inputs where no seed makes them.

use crate::check::Fault;
use crate::model::{Case, Flag, Known, Schedule};
use crate::print::field_name;
use crate::run;
use std::io;
use std::path::{Path, PathBuf};
use stencil_runtime::record::records;

/// The command line that runs a case with one of its schedules.
pub fn command_line(case: &Case, schedule: &Schedule, file: &str) -> String {
    let target = if schedule.is_for_processor() { "cpu" } else { "sim" };
    let mut line = format!("stencilc run {file} --target {target} --check --fp-contract off");
    let passes = schedule.passes();
    line += &match &passes {
        Some(passes) => format!(" --passes '{passes}'"),
        None if schedule.is_for_processor() => String::new(),
        None => format!(" --strategy {}", schedule.strategy),
    };
    let list = |numbers: &[i64]| numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    if let Some(tile) = schedule.tile.as_ref().filter(|_| passes.is_none()) {
        line += &format!(" --tile {}", list(tile));
    }
    if let Some(height) = schedule.height {
        line += &format!(" --pyramid-height {height}");
    }
    if let Some(cells) = &schedule.per_thread {
        line += &format!(" --per-thread {}", list(cells));
    }
    for (_, option, _) in Flag::ALL.iter().filter(|(flag, ..)| schedule.flags.contains(flag)) {
        line += &format!(" {option}");
    }
    for (place, param) in case.program.params.iter().enumerate() {
        match param.known {
            Known::File => {}
            Known::Define => line += &format!(" -D P{place}={}", param.value),
            Known::Run => line += &format!(" --size P{place}={}", param.value),
        }
    }
    for (place, scalar) in
        case.program.scalars.iter().enumerate().filter(|(_, scalar)| scalar.given)
    {
        line += &format!(" --set s{place}={}", scalar.text());
    }
    if case.steps_given {
        line += &format!(" --steps {}", case.program.steps);
    }
    if let Some(order) = case.order {
        line += &format!(" --seed {order}");
    }
    for (place, field) in case.program.fields.iter().enumerate() {
        if field.role != crate::model::Role::Temp {
            let name = field_name(place);
            let seed = case.data.seed + place as u64;
            let source = if case.data.rough {
                format!("{}.{name}.npy", file.trim_end_matches(".stencil"))
            } else {
                format!("random:{seed}")
            };
            line += &format!(" --in {name}={source}");
        }
    }
    line
}

/// The text of the file: what failed, how to run it, and the program.
pub fn text(case: &Case, fault: Fault, message: &str, file: &str) -> String {
    let mut text = String::new();
    for line in format!("{fault:?}: {message}").lines() {
        text += &format!("# {line}\n");
    }
    for schedule in &case.schedules {
        text += &format!("# {}\n", command_line(case, schedule, file));
    }
    if case.round_trip {
        text += "# the levels were printed and read again too\n";
    }
    if case.transpose {
        text += "# the transposed program was run too\n";
    }
    if let Some(by) = &case.shift {
        text += &format!("# the program shifted by {by:?} was run too\n");
    }
    if case.outline {
        text += "# the program with functions by `let` was run by the oracle too\n";
    }
    if case.windows {
        text += "# the program was run out of core too: --device-memory\n";
    }
    if case.ptx {
        text += "# the program was compiled to PTX too\n";
    }
    text + &case.program.text()
}

/// Writes the files into a folder, which is made where it is not there; gives the program's path.
///
/// # Errors
/// When a file can't be written.
pub fn write(
    case: &Case,
    fault: Fault,
    message: &str,
    folder: &Path,
    stem: &str,
) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let file = format!("{stem}.stencil");
    let path = folder.join(&file);
    std::fs::write(&path, text(case, fault, message, &file))?;
    if case.data.rough {
        let arrays = run::inputs(case).unwrap_or_default();
        for record in records(&run::leaves(&case.program)) {
            let leaves: Vec<_> =
                record.leaves.iter().filter_map(|(_, leaf)| arrays.get(&leaf.name)).collect();
            if !leaves.is_empty() {
                let path = folder.join(format!("{stem}.{}.npy", record.name));
                record.write(&path, &leaves).map_err(io::Error::other)?;
            }
        }
    }
    Ok(path)
}
