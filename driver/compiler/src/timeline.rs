//! When the devices of a run compute and wait: as shares of the time, and as a picture.

use std::fmt::{self, Write};
use std::time::Duration;
use stencil_runtime::ranks::Track;

/// Pixels of the plot's width, and of a device's line.
const PLOT: (f64, f64) = (720.0, 22.0);
/// Pixels to its left, above it and to its right.
const MARGIN: (f64, f64, f64) = (70.0, 48.0, 70.0);
/// Labels of lines that are copies out of core.
pub const COPIES: [&str; 2] = ["to device", "to host"];
/// What bars are, and their colours.
const COMPUTES: (&str, &str) = ("computes", "#2f6690");
const WAITS: (&str, &str) = ("waits or receives", "#e0a030");
const COPIED: (&str, &str) = ("copies", "#6a994e");

/// The times of the devices of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    program: String,
    devices: Vec<(String, Track)>,
}

impl Timeline {
    pub(crate) fn new(program: &str, tracks: Vec<Track>) -> Self {
        let label = |track: Track| (format!("device {}", track.device), track);
        let devices = tracks.into_iter().map(label).collect();
        Self { program: program.to_owned(), devices }
    }

    /// The same with other names of devices, by their numbers.
    pub(crate) fn labelled(mut self, name: impl Fn(usize) -> String) -> Self {
        for (label, track) in &mut self.devices {
            *label = name(track.device);
        }
        self
    }

    /// When the first device begins, and when the last one ends.
    fn extent(&self) -> (Duration, Duration) {
        let spans = || self.devices.iter().flat_map(|(_, track)| &track.spans);
        let begin = spans().map(|span| span.free).min().unwrap_or_default();
        (begin, spans().map(|span| span.end).max().unwrap_or_default())
    }

    /// Whether lines are those of a run out of core: its copies, and its windows.
    fn is_out_of_core(&self) -> bool {
        self.devices.iter().any(|(label, _)| COPIES.contains(&label.as_str()))
    }

    /// What the picture has: launches, or windows and copies.
    fn title(&self) -> String {
        let count = |what: &str, tracks: &[&Track]| {
            let spans: u64 = tracks.iter().map(|track| track.spans.len() as u64).sum();
            match tracks.iter().map(|track| track.left_out).sum::<u64>() {
                0 => format!("{spans} {what}"),
                more => format!("{spans} of {} {what}", spans + more),
            }
        };
        let tracks = |copies: bool| -> Vec<&Track> {
            let of = |label: &str| COPIES.contains(&label) == copies;
            let all = self.devices.iter();
            all.filter(|(label, _)| of(label)).map(|(_, track)| track).collect()
        };
        if self.is_out_of_core() {
            let (windows, copies) = (tracks(false), tracks(true));
            return format!("{}, {}", count("windows", &windows), count("copies", &copies));
        }
        let all = |track: &&Track| track.spans.len() as u64 + track.left_out;
        let most = tracks(false).into_iter().max_by_key(all);
        count("launches", &most.into_iter().collect::<Vec<_>>())
    }

    /// The part of the time in which each device computes, from 0 to 1.
    pub fn shares(&self) -> Vec<(&str, f64)> {
        let (begin, end) = self.extent();
        let all = end.saturating_sub(begin).as_secs_f64().max(1e-12);
        let share = |track: &Track| {
            let spans = track.spans.iter().map(|span| span.end.saturating_sub(span.begin));
            spans.sum::<Duration>().as_secs_f64() / all
        };
        self.devices.iter().map(|(label, track)| (label.as_str(), share(track))).collect()
    }

    /// The mean of the shares of computing in a line.
    pub fn summary(&self) -> String {
        let mut shares = self.shares();
        shares.retain(|(label, _)| !COPIES.contains(label));
        let (count, sum) =
            (shares.len().max(1), shares.iter().map(|(_, share)| share).sum::<f64>());
        format!("devices compute {:.1} % of the time\n", 100.0 * sum / count as f64)
    }

    /// A picture: a line for each device, with bars where it computes and where it waits, time to
    /// the right. It is an SVG document.
    pub fn picture(&self) -> String {
        let mut text = String::new();
        // Writing to a string can't fail.
        let _ = self.draw(&mut text);
        text
    }

    fn draw(&self, out: &mut String) -> fmt::Result {
        let ((width, line), (left, top, right)) = (PLOT, MARGIN);
        let (begin, end) = self.extent();
        let all = end.saturating_sub(begin).as_secs_f64();
        let at = |time: Duration| {
            left + time.saturating_sub(begin).as_secs_f64() / all.max(1e-12) * width
        };
        let height = line * self.devices.len() as f64;
        let (all_width, all_height) = (left + width + right, top + height + 30.0);
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {all_width} {all_height}\" \
             font-family=\"sans-serif\" font-size=\"12\">"
        )?;
        writeln!(out, "<rect width=\"{all_width}\" height=\"{all_height}\" fill=\"white\"/>")?;
        writeln!(
            out,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
             fill=\"#eeeeee\"/>"
        )?;
        let (name, title) = (&self.program, self.title());
        writeln!(out, "<text x=\"{left}\" y=\"18\">{name}: {title}</text>")?;
        let legend = [COMPUTES, if self.is_out_of_core() { COPIED } else { WAITS }];
        for (place, (what, colour)) in legend.iter().enumerate() {
            let x = left + 120.0 * place as f64;
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"28\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"37\">{what}</text>",
                x + 15.0
            )?;
        }
        for (place, ((label, track), (_, share))) in
            self.devices.iter().zip(self.shares()).enumerate()
        {
            let y = top + line * place as f64;
            draw_line(out, (label, track), (y, share), at)?;
        }
        let (below, end) = (top + height + 18.0, left + width);
        writeln!(out, "<text x=\"{left}\" y=\"{below}\">0</text>")?;
        writeln!(
            out,
            "<text x=\"{end}\" y=\"{below}\" text-anchor=\"end\">{:.3} ms</text>\n</svg>",
            all * 1e3
        )
    }
}

/// A line of the picture at some height, with its name and its share of the time; `at` is the place
/// of a time.
fn draw_line(
    out: &mut String,
    (label, track): (&str, &Track),
    (y, share): (f64, f64),
    at: impl Fn(Duration) -> f64,
) -> fmt::Result {
    let ((width, line), (left, ..)) = (PLOT, MARGIN);
    let (_, works) = if COPIES.contains(&label) { COPIED } else { COMPUTES };
    for span in &track.spans {
        let parts = [(span.free, span.begin, WAITS.1), (span.begin, span.end, works)];
        for (from, to, colour) in parts.into_iter().filter(|(from, to, _)| from < to) {
            writeln!(
                out,
                "<rect x=\"{:.3}\" y=\"{:.1}\" width=\"{:.3}\" height=\"{:.1}\" \
                 fill=\"{colour}\"/>",
                at(from),
                y + 0.1 * line,
                at(to) - at(from),
                0.8 * line
            )?;
        }
    }
    let (text, beside) = (y + 0.7 * line, left - 6.0);
    writeln!(
        out,
        "<text x=\"{beside}\" y=\"{text}\" text-anchor=\"end\">{label}</text>\
         <text x=\"{}\" y=\"{text}\">{:.1} %</text>",
        left + width + 6.0,
        100.0 * share
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_runtime::ranks::Span;

    fn track(device: usize, spans: &[(u64, u64, u64)]) -> Track {
        let time = Duration::from_millis;
        let span = |&(free, begin, end): &(u64, u64, u64)| Span {
            free: time(free),
            begin: time(begin),
            end: time(end),
        };
        Track { device, spans: spans.iter().map(span).collect(), left_out: 7 }
    }

    /// Of 10 ms the first device computes 3 + 4 and waits 1, the second one computes 8.
    #[test]
    fn bars_are_where_devices_compute_and_wait() {
        let tracks =
            vec![track(0, &[(5, 5, 8), (8, 9, 13)]), track(1, &[(6, 6, 10), (11, 11, 15)])];
        let timeline = Timeline::new("heat2d", tracks).labelled(|device| format!("GPU {device}"));
        assert_eq!(timeline.shares(), [("GPU 0", 0.7), ("GPU 1", 0.8)]);
        assert_eq!(timeline.summary(), "devices compute 75.0 % of the time\n");
        let picture = timeline.picture();
        let bars = |colour: &str| -> Vec<String> {
            let lines = picture.lines().filter(|line| line.ends_with(&format!("{colour}\"/>")));
            lines.map(str::to_owned).collect()
        };
        assert_eq!(bars("#2f6690").len(), 4, "{picture}");
        let waits = bars("#e0a030");
        assert!(waits.len() == 1 && waits[0].contains("x=\"286.000\""), "{picture}");
        assert!(waits[0].contains("width=\"72.000\""), "{picture}");
        assert!(
            picture.contains("2 of 9 launches") && picture.contains(">10.000 ms<"),
            "{picture}"
        );
    }

    /// Three lines of two spans, each with 7 that were left out.
    #[test]
    fn copies_are_no_launches() {
        let spans = [(1, 1, 2), (3, 3, 4)];
        let tracks = (0..3).map(|line| track(line, &spans)).collect();
        let names = [COPIES[0], "compute", COPIES[1]];
        let timeline = Timeline::new("heat2d", tracks).labelled(|line| names[line].to_owned());
        let picture = timeline.picture();
        assert!(picture.contains(">heat2d: 2 of 9 windows, 4 of 18 copies<"), "{picture}");
        assert!(picture.contains(">copies<") && !picture.contains(WAITS.0), "{picture}");
        let bars = |colour: &str| picture.matches(&format!("fill=\"{colour}\"")).count();
        // With that of the legend.
        assert_eq!((bars(COMPUTES.1), bars(COPIED.1)), (3, 5));
    }

    #[test]
    fn a_run_without_launches_is_drawn() {
        let picture = Timeline::new("heat2d", vec![Track::default()]).picture();
        assert!(picture.contains("0 launches") && !picture.contains("NaN"), "{picture}");
    }
}
