//! A schedule under the roofline of its device, as the text of a report and as a picture.

use crate::failure::Failure;
use crate::report::Report;
use std::fmt::{self, Formatter, Write};
use stencil_runtime::model::Roofline;

/// Writes what a report says of the roofline.
pub(crate) fn write(out: &mut Formatter, roofline: &Roofline) -> fmt::Result {
    let giga = |rate: f64| rate * 1e-9;
    writeln!(
        out,
        "roofline: {:.2} floating-point instructions a byte of device memory, and the ridge is at \
         {:.2}; at most {:.0} G/s by memory and {:.0} by arithmetic; {:.0} predicted",
        roofline.intensity,
        roofline.ridge(),
        giga(roofline.intensity * roofline.bandwidth),
        giga(roofline.peak),
        giga(roofline.reached)
    )?;
    writeln!(
        out,
        "instructions: {:.0} % are floating-point, which lets {:.0} G/s be issued and needs {:.2} \
         TB/s of memory; {:.2} TB/s are there",
        roofline.share * 100.0,
        giga(roofline.potential),
        roofline.demand() * 1e-12,
        roofline.bandwidth * 1e-12
    )
}

/// Pixels of the plot.
const PLOT: (f64, f64) = (640.0, 360.0);
/// Pixels to its left and above it.
const MARGIN: (f64, f64) = (70.0, 40.0);
/// Powers of two of the intensities, and of ten of the rates in G/s.
const RANGE: ((f64, f64), (f64, f64)) = ((-6.0, 8.0), (1.0, 5.0));

impl Report {
    /// The schedule under the roofline, as an SVG document: intensity to the right, rate upwards,
    /// both on logarithmic axes. The roof is black, the rate that the mix of instructions allows
    /// dashed, the predicted rate a dot.
    ///
    /// # Errors
    /// A report without a roofline.
    pub fn roofline_picture(&self) -> Result<String, Failure> {
        match &self.roofline {
            Some(roofline) => Ok(picture(&self.program, roofline)),
            None => Err(Failure::user(format!(
                "{}: there is no roofline to draw: nothing is predicted, or there is no \
                 floating-point arithmetic",
                self.program
            ))),
        }
    }
}

fn picture(program: &str, roofline: &Roofline) -> String {
    let ((left, top), (width, height)) = (MARGIN, PLOT);
    let ((first, last), (low, high)) = RANGE;
    let part = |value: f64, from: f64, to: f64| ((value - from) / (to - from)).clamp(0.0, 1.0);
    let x = |intensity: f64| left + width * part(intensity.log2(), first, last);
    let y = |rate: f64| top + height * (1.0 - part((rate * 1e-9).log10(), low, high));
    let mut text = String::new();
    // Writing to a string can't fail.
    let mut add = |words: fmt::Arguments| {
        let _ = writeln!(text, "{words}");
    };
    add(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" \
         font-family=\"sans-serif\" font-size=\"12\">",
        left + width + 30.0,
        top + height + 50.0
    ));
    add(format_args!("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>"));
    add(format_args!("<text x=\"{left}\" y=\"20\">{}</text>", escaped(program)));
    let (right, below) = (left + width, top + height);
    for power in (first as i32..=last as i32).step_by(2) {
        let (at, value) = (x(2.0_f64.powi(power)), 2.0_f64.powi(power));
        add(format_args!(
            "<line x1=\"{at:.1}\" y1=\"{top}\" x2=\"{at:.1}\" y2=\"{below}\" stroke=\"#dddddd\"/>\
             <text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>",
            below + 16.0
        ));
    }
    for power in low as i32..=high as i32 {
        let at = y(10.0_f64.powi(power + 9));
        add(format_args!(
            "<line x1=\"{left}\" y1=\"{at:.1}\" x2=\"{right}\" y2=\"{at:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 6.0,
            at + 4.0,
            10.0_f64.powi(power)
        ));
    }
    let start = 2.0_f64.powf(first);
    let roof = |peak: f64| {
        let ridge = peak / roofline.bandwidth;
        let points =
            [(start, start * roofline.bandwidth), (ridge, peak), (2.0_f64.powf(last), peak)];
        points.map(|(at, rate)| format!("{:.1},{:.1}", x(at), y(rate))).join(" ")
    };
    add(format_args!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#b0563d\" stroke-dasharray=\"5 4\"/>",
        roof(roofline.potential)
    ));
    add(format_args!(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"black\" stroke-width=\"2\"/>",
        roof(roofline.peak)
    ));
    add(format_args!(
        "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\" fill=\"#2f6690\"/>",
        x(roofline.intensity),
        y(roofline.reached)
    ));
    add(format_args!(
        "<text x=\"{left}\" y=\"{}\">floating-point instructions a byte of device memory; upwards: \
         10^9 of them a second</text>",
        below + 38.0
    ));
    add(format_args!("</svg>"));
    text
}

/// Text in an XML document.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
