//! What the compiler tells its user: a message, the places it speaks of, and what to do.

use crate::excerpt::Excerpt;
use crate::source::{Source, Span};
use codespan_reporting::diagnostic as report;
use codespan_reporting::term::{self, Config, Styles, StylesWriter, termcolor::Ansi};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Nothing is produced.
    Error,
    /// Worth a look; the compile goes on.
    Warning,
}

/// A remark on one place of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is to be seen there; may be empty.
    pub message: String,
    /// Whether this is the place of the fault, not one that explains it.
    pub primary: bool,
}

/// One finding, with its places and remedies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one line.
    pub message: String,
    /// The places; none where the fault lies outside the source, as on the command line.
    pub labels: Vec<Label>,
    /// Facts and remedies, one line each.
    pub notes: Vec<String>,
}

/// How a rendering looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Text alone.
    Plain,
    /// With ANSI colours.
    Coloured,
}

impl Diagnostic {
    /// An error at a place, with a short remark for it (may be empty).
    pub fn error(message: impl Into<String>, span: Span, remark: impl Into<String>) -> Self {
        Self::error_without_place(message).label(span, remark, true)
    }

    /// An error that no place of the source is to blame for.
    pub fn error_without_place(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: bounded(message.into()),
            labels: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The same with a second place that explains the first.
    pub fn see(self, span: Span, remark: impl Into<String>) -> Self {
        self.label(span, remark, false)
    }

    /// The same with one more fact.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.notes.push(bounded(text.into()));
        self
    }

    /// The same with a remedy.
    pub fn help(self, text: impl AsRef<str>) -> Self {
        self.note(format!("help: {}", text.as_ref()))
    }

    /// The place of the fault.
    pub fn place(&self) -> Option<Span> {
        self.labels.iter().find(|label| label.primary).map(|label| label.span)
    }

    fn label(mut self, span: Span, remark: impl Into<String>, primary: bool) -> Self {
        self.labels.push(Label { span, message: bounded(remark.into()), primary });
        self
    }
}

/// Sorts by place and drops repetitions; findings without a place come first.
pub fn sort(diagnostics: &mut Vec<Diagnostic>) {
    diagnostics.sort_by_key(Diagnostic::place);
    diagnostics.dedup();
}

/// Findings and bytes that are shown; a file with more is no program yet.
pub(crate) const MOST_SHOWN: usize = 100;
const MOST_BYTES: usize = 1 << 18;

/// All findings as text, each with its source lines and carets, an empty line between two. Of very
/// many the first are shown, and how many there are.
pub fn render(diagnostics: &[Diagnostic], source: &Source, look: Look) -> String {
    if diagnostics.is_empty() {
        return String::new();
    }
    let config = Config::default();
    let mut out = Vec::new();
    let mut shown = 0;
    for diagnostic in diagnostics.iter().take(MOST_SHOWN) {
        if out.len() > MOST_BYTES {
            break;
        }
        shown += 1;
        let mut places: Vec<_> = diagnostic.labels.iter().collect();
        places.sort_by_key(|label| !label.primary);
        let places: Vec<Span> = places.iter().map(|label| label.span).collect();
        let file = Excerpt::new(source, &places);
        let finding = convert(diagnostic, &file);
        let emitted = match look {
            Look::Plain => term::emit_to_io_write(&mut out, &config, &file, &finding),
            Look::Coloured => {
                let styles = Styles::default();
                let mut writer = StylesWriter::new(Ansi::new(&mut out), &styles);
                term::emit_to_write_style(&mut writer, &config, &file, &finding)
            }
        };
        if emitted.is_err() {
            // The message matters more than its frame.
            out.extend_from_slice(format!("error: {}\n", diagnostic.message).as_bytes());
        }
    }
    let rest = diagnostics.len() - shown;
    if rest > 0 {
        out.extend_from_slice(
            format!("error: {rest} more findings are not shown; mend these first\n").as_bytes(),
        );
    }
    let mut text = String::from_utf8_lossy(&out).into_owned();
    text.truncate(text.trim_end_matches('\n').len());
    text + "\n"
}

fn convert(diagnostic: &Diagnostic, file: &Excerpt) -> report::Diagnostic<()> {
    let severity = match diagnostic.severity {
        Severity::Error => report::Severity::Error,
        Severity::Warning => report::Severity::Warning,
    };
    let labels = diagnostic.labels.iter().map(|label| {
        let style = match label.primary {
            true => report::LabelStyle::Primary,
            false => report::LabelStyle::Secondary,
        };
        let start = file.position(label.span.start as usize);
        let end = file.position(label.span.end as usize).max(start);
        report::Label::new(style, (), start..end).with_message(&label.message)
    });
    report::Diagnostic::new(severity)
        .with_message(&diagnostic.message)
        .with_labels(labels.collect())
        .with_notes(diagnostic.notes.clone())
}

/// Characters of a message, a remark or a note. The end is kept, because it often says most.
const MOST_CHARACTERS: usize = 400;
const KEPT_AT_THE_END: usize = 100;

/// Cuts a text that quotes too much.
fn bounded(text: String) -> String {
    let count = text.chars().count();
    if count <= MOST_CHARACTERS {
        return text;
    }
    let start: String = text.chars().take(MOST_CHARACTERS - KEPT_AT_THE_END).collect();
    let end: String = text.chars().skip(count - KEPT_AT_THE_END).collect();
    format!("{start} ... {end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_place_line_and_caret() {
        let source = Source::new("a.stencil", "param N\ngrid G = [0..K]\n");
        let finding = Diagnostic::error("unknown name `K`", Span::new(20, 21), "not declared")
            .see(Span::new(6, 7), "a param")
            .help("declare it");
        let plain = render(std::slice::from_ref(&finding), &source, Look::Plain);
        assert!(plain.contains("a.stencil:2:13"), "{plain}");
        assert!(plain.contains("grid G = [0..K]"), "{plain}");
        assert!(plain.contains("^ not declared"), "{plain}");
        assert!(plain.contains("help: declare it"), "{plain}");
        let coloured = render(&[finding], &source, Look::Coloured);
        assert!(coloured.contains("\u{1b}["), "{coloured}");
    }

    #[test]
    fn a_text_ends_with_one_newline() {
        let source = Source::new("a", "x");
        let placed = Diagnostic::error("x", Span::new(0, 1), "");
        let nowhere = Diagnostic::error_without_place("y");
        for findings in [vec![placed.clone()], vec![nowhere.clone()], vec![placed, nowhere]] {
            let text = render(&findings, &source, Look::Plain);
            assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text}");
        }
    }

    #[test]
    fn of_very_many_the_first_are_shown() {
        let source = Source::new("a", "x");
        let many: Vec<_> = (0..1000)
            .map(|n| Diagnostic::error(format!("fault {n}"), Span::new(0, 1), ""))
            .collect();
        let text = render(&many, &source, Look::Plain);
        assert!(text.contains("fault 99") && !text.contains("fault 100"), "{text}");
        assert!(
            text.ends_with("error: 900 more findings are not shown; mend these first\n"),
            "{text}"
        );
    }

    #[test]
    fn survives_places_outside_the_text() {
        let source = Source::new("a", "ü");
        let finding = Diagnostic::error("x", Span::new(1, 90), "");
        assert!(render(&[finding], &source, Look::Plain).contains("a:1:1"));
    }

    #[test]
    fn long_lines_and_texts_are_cut_around_the_place() {
        let line = format!("{}ö wrong {}\nnext\n", "left ".repeat(3000), "right ".repeat(3000));
        let source = Source::new("a", line);
        let finding = |start: u32| {
            let long = format!("begin {} end", "x".repeat(1 << 20));
            Diagnostic::error(long.as_str(), Span::new(start, start + 5), long.as_str()).help(long)
        };
        let text = render(&[finding(15_003)], &source, Look::Plain);
        assert!(text.len() < 3000, "{}", text.len());
        assert!(text.contains("a:1:15003"), "{text}");
        assert!(text.contains("left ö wrong right"), "{text}");
        assert!(text.contains("begin xxx") && text.contains("xxx end"), "{text}");
        let caret = text.lines().find(|line| line.contains('^')).unwrap();
        let shown = text.lines().find(|line| line.contains("wrong")).unwrap();
        let place = |line: &str, what: &str| line.split(what).next().unwrap().chars().count();
        assert_eq!(place(caret, "^^^^^"), place(shown, "wrong"), "{text}");
        // Near the ends of the line, and beside it.
        for start in [0, 2, 33_000, 33_010] {
            let text = render(&[finding(start)], &source, Look::Plain);
            assert!(text.contains('^') && text.len() < 3000, "{start}: {text}");
        }
    }
}
