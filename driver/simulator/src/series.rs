//! Counts of several schedules side by side: a table, and a plot like figure 8 of Holewinski,
//! Pouchet, Sadayappan, "High-Performance Code Generation for Stencil Computations on GPU
//! Architectures" (2012): every counter relative to its largest value.

use crate::report::Report;
use serde::Serialize;
use std::fmt::Write;

/// The cost of one schedule per cell and step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// The schedule, such as its pyramid height.
    pub label: String,
    /// Cells times steps that the run was for.
    pub cell_steps: u64,
    /// Bytes of global sectors loaded, per cell and step.
    pub global_loads: f64,
    /// Bytes of global sectors stored, per cell and step.
    pub global_stores: f64,
    /// Wavefronts of shared memory, loads and stores, per 32 cells and step: 1 where each cell
    /// costs one access without conflict.
    pub shared_accesses: f64,
    /// Operations executed per cell and step.
    pub operations: f64,
    /// Cells computed beyond one for each cell and step, as a share of these.
    pub redundant: f64,
}

type Counter = fn(&Sample) -> f64;

/// The counters of a [`Sample`], in the order of the table and the plot.
const COUNTERS: [(&str, Counter); 5] = [
    ("global loads [byte]", |sample| sample.global_loads),
    ("global stores [byte]", |sample| sample.global_stores),
    ("shared wavefronts [per 32]", |sample| sample.shared_accesses),
    ("operations", |sample| sample.operations),
    ("redundant cells", |sample| sample.redundant),
];

/// Sums a report up, per cell and step.
pub fn sample(label: impl Into<String>, report: &Report) -> Sample {
    let total = report.total();
    let cell_steps: u64 = report.kernels.iter().map(|kernel| kernel.cell_steps).sum();
    let redundant: u64 = report.kernels.iter().filter_map(|kernel| kernel.redundant).sum();
    let per = |count: u64| count as f64 / cell_steps.max(1) as f64;
    Sample {
        label: label.into(),
        cell_steps,
        global_loads: 32.0 * per(total.global_read.moved),
        global_stores: 32.0 * per(total.global_write.moved),
        shared_accesses: 32.0 * per(total.shared_read.moved + total.shared_write.moved),
        operations: per(total.operations),
        redundant: per(redundant),
    }
}

/// One line per sample, one column per counter.
pub fn table(samples: &[Sample]) -> String {
    let width = samples.iter().map(|sample| sample.label.len()).max().unwrap_or(0);
    let mut text = format!("{:<width$}", "");
    for (name, _) in COUNTERS {
        let _ = write!(text, "  {name}");
    }
    text.push('\n');
    for sample in samples {
        let _ = write!(text, "{:<width$}", sample.label);
        for (name, counter) in COUNTERS {
            let _ = write!(text, "  {:>1$.3}", counter(sample), name.len());
        }
        text.push('\n');
    }
    text
}

/// Colours that people with any colour vision tell apart (Okabe and Ito).
const COLOURS: [&str; 5] = ["#0072b2", "#56b4e9", "#d55e00", "#000000", "#009e73"];
const WIDTH: f64 = 790.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 240.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
/// The lowest and the rightmost place of the plot's area.
const AREA_BOTTOM: f64 = HEIGHT - BOTTOM;
const AREA_RIGHT: f64 = WIDTH - RIGHT;

/// The samples as an SVG plot: each counter relative to its largest value.
pub fn svg(title: &str, axis: &str, samples: &[Sample]) -> String {
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
        escape(title)
    );
    let plot = Plot { samples };
    plot.axes(&mut text, axis);
    for (line, ((name, counter), colour)) in COUNTERS.into_iter().zip(COLOURS).enumerate() {
        plot.line(&mut text, counter, colour);
        let place = TOP + 22.0 * line as f64;
        legend(&mut text, place, name, colour);
    }
    text + "</svg>\n"
}

/// The area of a plot, with the samples from left to right.
struct Plot<'s> {
    samples: &'s [Sample],
}

impl Plot<'_> {
    fn x(&self, place: usize) -> f64 {
        LEFT + (AREA_RIGHT - LEFT) * place as f64 / (self.samples.len().max(2) - 1) as f64
    }

    fn y(&self, value: f64) -> f64 {
        AREA_BOTTOM - (AREA_BOTTOM - TOP) * value
    }

    /// Grid lines, labels of the samples, and the names of both axes.
    fn axes(&self, text: &mut String, axis: &str) {
        for tick in 0..=4 {
            let value = f64::from(tick) / 4.0;
            let _ = writeln!(
                text,
                "<line x1=\"{LEFT}\" y1=\"{0:.1}\" x2=\"{AREA_RIGHT}\" y2=\"{0:.1}\" \
                 stroke=\"#dddddd\"/>",
                self.y(value)
            );
            let _ = writeln!(
                text,
                "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>",
                LEFT - 8.0,
                self.y(value) + 4.0
            );
        }
        for (place, sample) in self.samples.iter().enumerate() {
            let _ = writeln!(
                text,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                self.x(place),
                AREA_BOTTOM + 18.0,
                escape(&sample.label)
            );
        }
        let _ = writeln!(
            text,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            (LEFT + AREA_RIGHT) / 2.0,
            AREA_BOTTOM + 38.0,
            escape(axis)
        );
        let middle = (TOP + AREA_BOTTOM) / 2.0;
        let _ = writeln!(
            text,
            "<text x=\"16\" y=\"{middle:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 16 \
             {middle:.1})\">share of the largest</text>"
        );
    }

    /// A counter of all samples, relative to its largest value.
    fn line(&self, text: &mut String, counter: Counter, colour: &str) {
        let largest = self.samples.iter().map(counter).fold(0.0, f64::max);
        let share = |sample| if largest > 0.0 { counter(sample) / largest } else { 0.0 };
        let points: Vec<_> = self
            .samples
            .iter()
            .enumerate()
            .map(|(place, sample)| format!("{:.1},{:.1}", self.x(place), self.y(share(sample))))
            .collect();
        let _ = writeln!(
            text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            points.join(" ")
        );
        for point in &points {
            if let Some((cx, cy)) = point.split_once(',') {
                let _ =
                    writeln!(text, "<circle cx=\"{cx}\" cy=\"{cy}\" r=\"3\" fill=\"{colour}\"/>");
            }
        }
    }
}

/// The name of a counter beside the plot.
fn legend(text: &mut String, place: f64, name: &str, colour: &str) {
    let _ = writeln!(
        text,
        "<line x1=\"{}\" y1=\"{place}\" x2=\"{}\" y2=\"{place}\" stroke=\"{colour}\" \
         stroke-width=\"2\"/>",
        AREA_RIGHT + 16.0,
        AREA_RIGHT + 40.0
    );
    let _ = writeln!(
        text,
        "<text x=\"{}\" y=\"{}\">{}</text>",
        AREA_RIGHT + 46.0,
        place + 4.0,
        escape(name)
    );
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(label: &str, loads: f64) -> Sample {
        Sample {
            label: label.to_owned(),
            cell_steps: 1,
            global_loads: loads,
            global_stores: 0.0,
            shared_accesses: 1.0,
            operations: 2.0,
            redundant: 0.0,
        }
    }

    #[test]
    fn the_largest_value_is_at_the_top() {
        let plot = svg("a < b", "height", &[at("1", 8.0), at("2", 4.0)]);
        assert!(
            plot.contains(
                "<polyline points=\"60.0,40.0 550.0,205.0\" fill=\"none\" stroke=\"#0072b2\""
            ),
            "{plot}"
        );
        assert!(plot.contains("a &lt; b"));
        // A counter that is always 0 lies on the axis.
        assert!(plot.contains("60.0,370.0 550.0,370.0"));
    }

    #[test]
    fn a_line_for_each_sample() {
        let text = table(&[at("1", 8.0), at("10", 4.0)]);
        assert_eq!(text.lines().count(), 3);
        assert!(
            text.lines()
                .nth(1)
                .is_some_and(|line| line.starts_with("1 ") && line.contains("8.000")),
            "{text}"
        );
    }
}
