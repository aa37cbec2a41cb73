//! The output of `stencil-bench`: the table and the JSON record.

use crate::measure::Measurement;
use serde::Serialize;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use stencil_runtime::array::shape_text;
use stencil_runtime::compare::Comparison;
use stencil_runtime::cuda::DeviceFacts;
use stencil_runtime::whole_file::write_whole;

/// The record of one call.
#[derive(Debug, Serialize)]
pub struct Measurements<'a> {
    /// Day and time, UTC: `2026-11-20T12:30:00Z`.
    pub date: String,
    /// Version of this program.
    pub version: &'static str,
    /// The device.
    pub device: &'a DeviceFacts,
    /// Driver and clocks right after the last run, as `nvidia-smi` tells them; `None` without it.
    pub state: Option<State>,
    /// Bytes per second of a copy within device memory, reads and writes counted together.
    pub copy_bandwidth: f64,
    /// The measurements.
    pub results: &'a [Measurement],
    /// Plans that could not be measured, with the reasons.
    pub failures: &'a [(String, String)],
}

/// The state of the device, as `nvidia-smi` reports it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// Version of the driver.
    pub driver: String,
    /// Clock of the multiprocessors in MHz.
    pub clock_mhz: String,
    /// Clock of the memory in MHz.
    pub memory_clock_mhz: String,
    /// Temperature in degrees Celsius.
    pub temperature: String,
    /// Power in watts.
    pub power: String,
}

impl State {
    /// Asks `nvidia-smi`; `None` if it is missing or does not know the device.
    pub fn ask(uuid: &str) -> Option<State> {
        let query = "--query-gpu=driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw";
        let output = Command::new("nvidia-smi")
            .args([query, "--format=csv,noheader,nounits", "-i", uuid])
            .output()
            .ok()?;
        State::parse(std::str::from_utf8(&output.stdout).ok()?)
    }

    fn parse(text: &str) -> Option<State> {
        let mut parts = text.lines().next()?.split(',').map(|part| part.trim().to_string());
        Some(State {
            driver: parts.next()?,
            clock_mhz: parts.next()?,
            memory_clock_mhz: parts.next()?,
            temperature: parts.next()?,
            power: parts.next()?,
        })
    }
}

impl Measurements<'_> {
    /// Writes the record; the file appears whole or not at all.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        write_whole(path, |file| writeln!(file, "{text}"))
    }
}

/// The table of all measurements, and the kernels of each.
pub fn table(results: &[Measurement]) -> String {
    let head = [
        "plan", "strategy", "tile", "T", "grid", "steps", "GCells/s", "min", "max", "of copy",
        "of FMA", "check",
    ];
    let mut rows = vec![head.map(str::to_string)];
    for result in results {
        let settings = &result.settings;
        let percent = |ratio: f64| format!("{:.0} %", 100.0 * ratio);
        rows.push([
            stem(&result.plan),
            settings.strategy.clone(),
            settings.tile.iter().map(i64::to_string).collect::<Vec<_>>().join("x"),
            settings.pyramid_height.to_string(),
            format!("{} {}", result.element, shape_text(&result.shape)),
            result.sizes.get("steps").map(i64::to_string).unwrap_or_default(),
            rate(result.gcells.median),
            rate(result.gcells.min),
            rate(result.gcells.max),
            percent(result.of_copy_limit),
            result.of_fma_limit.map_or("-".to_string(), percent),
            check_text(result),
        ]);
    }
    let mut text = aligned(&rows);
    for result in results {
        text.push_str(&format!("\n{}\n", stem(&result.plan)));
        for kernel in &result.kernels {
            text.push_str(&format!(
                "  {}: {} registers, {} bytes spilled or local, {} + {} bytes shared, {} blocks a \
                 multiprocessor\n",
                kernel.name,
                kernel.registers,
                kernel.local,
                kernel.static_shared,
                kernel.dynamic_shared,
                kernel.blocks_per_multiprocessor
            ));
        }
        for (field, found) in result.check.iter().flat_map(|check| &check.fields) {
            text.push_str(&format!("  field {field}: {found}\n"));
        }
        if result.check.as_ref().is_some_and(|check| check.repeats == Some(false)) {
            text.push_str("  the last run gave other bits than the checked one\n");
        }
    }
    text
}

/// Three significant digits or more.
fn rate(value: f64) -> String {
    let decimals = match value {
        100.0.. => 0,
        10.0..100.0 => 1,
        1.0..10.0 => 2,
        _ => 4,
    };
    format!("{value:.decimals$}")
}

fn check_text(result: &Measurement) -> String {
    match &result.check {
        None => "not checked".to_string(),
        Some(check) if !check.passed => "WRONG".to_string(),
        Some(check) if check.fields.values().all(|found| found.exact()) => "exact".to_string(),
        Some(check) => {
            let worst = check.fields.values().map(Comparison::error).fold(0.0, f64::max);
            format!("within {worst:.1e}")
        }
    }
}

fn stem(plan: &Path) -> String {
    let name = plan.file_name().unwrap_or(plan.as_os_str()).to_string_lossy().into_owned();
    name.strip_suffix(".plan.json").map(str::to_string).unwrap_or(name)
}

/// Columns side by side, two blanks apart.
fn aligned<const N: usize>(rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Now, UTC: `2026-11-20T12:30:00Z`.
pub fn now() -> String {
    date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// The date of a Unix time (Hinnant, chrono-Compatible Low-Level Date Algorithms,
/// `civil_from_days`, for days since 1970).
fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Years begin in March here.
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(1_795_179_600), "2026-11-20T13:00:00Z");
    }

    #[test]
    fn the_state_is_read() {
        let state = State::parse("580.159.04, 1980, 3201, 41, 310.22\n").unwrap();
        assert_eq!(
            (state.driver.as_str(), state.clock_mhz.as_str(), state.power.as_str()),
            ("580.159.04", "1980", "310.22")
        );
        assert_eq!(State::parse("No devices were found"), None);
    }

    #[test]
    fn rates() {
        assert_eq!([1571.4, 84.26, 3.456, 0.02].map(rate), ["1571", "84.3", "3.46", "0.0200"]);
    }

    #[test]
    fn columns_are_aligned() {
        let rows = [["a".to_string(), "bcd".to_string()], ["efg".to_string(), "h".to_string()]];
        assert_eq!(aligned(&rows), "a    bcd\nefg  h\n");
    }
}
