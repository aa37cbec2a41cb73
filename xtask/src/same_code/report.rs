//! Findings of a comparison, case by case, and their table.

use std::collections::BTreeMap;

use super::cases::Case;
use super::compiler::Output;

/// How a case came out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Both revisions generate the same code, or choose the same schedule.
    Equal,
    /// Their code differs, or only one of them takes the case.
    Different,
    /// Both decline the case, with exit code 1. Other codes are faults of a compiler.
    Declined,
    /// Both choose a schedule, and not the same.
    Rescheduled,
}

/// One case's verdict and, unless all is as it was, the text of each revision.
#[derive(Debug, PartialEq)]
pub struct Finding {
    /// How the case came out.
    pub verdict: Verdict,
    old: String,
    new: String,
}

impl Finding {
    /// The same schedule.
    pub fn equal() -> Self {
        Self { verdict: Verdict::Equal, old: String::new(), new: String::new() }
    }

    /// Two schedules for one case.
    pub fn rescheduled(old: String, new: String) -> Self {
        Self { verdict: Verdict::Rescheduled, old, new }
    }

    /// Compares the answers of the two compilers to a case.
    pub fn of(old: &Output, new: &Output) -> Self {
        let different = |old, new| Self { verdict: Verdict::Different, old, new };
        match (old, new) {
            (Output::Text(old), Output::Text(new)) => match first_difference(old, new) {
                None => Self::equal(),
                Some((line, old, new)) => {
                    different(format!("line {line}: {old}"), format!("line {line}: {new}"))
                }
            },
            (Output::Declined { exit_code: 1, .. }, Output::Declined { exit_code: 1, .. }) => {
                Self { verdict: Verdict::Declined, ..Self::equal() }
            }
            _ => different(in_short(old), in_short(new)),
        }
    }
}

fn in_short(output: &Output) -> String {
    match output {
        Output::Text(_) => "compiles".into(),
        Output::Declined { exit_code, message } => format!("exit code {exit_code}: {message}"),
    }
}

/// The first line, counted from 1, in which two texts differ, and both texts' content there.
fn first_difference<'a>(old: &'a str, new: &'a str) -> Option<(usize, &'a str, &'a str)> {
    if old == new {
        return None;
    }
    let (mut old, mut new) = (old.lines(), new.lines());
    for number in 1.. {
        match (old.next(), new.next()) {
            (None, None) => break,
            (a, b) if a == b => (),
            (a, b) => {
                return Some((number, a.unwrap_or("(end)").trim(), b.unwrap_or("(end)").trim()));
            }
        }
    }
    Some((0, "other ends of lines", "other ends of lines"))
}

/// All that is not equal, case by case, then the counts of each strategy.
pub fn table(cases: &[Case], findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut counts: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    for (case, finding) in cases.iter().zip(findings) {
        let (column, heading) = match finding.verdict {
            Verdict::Equal => (1, ""),
            Verdict::Different => (2, "different"),
            Verdict::Declined => (3, ""),
            Verdict::Rescheduled => (4, "schedule"),
        };
        let row = counts.entry(case.strategy.unwrap_or("(chosen)")).or_default();
        row[0] += 1;
        row[column] += 1;
        if !heading.is_empty() {
            text += &format!("\n{heading}: {case}\n  - {}\n  + {}\n", finding.old, finding.new);
        }
    }
    text += &format!(
        "\n  {:10} {:>7} {:>7} {:>9} {:>16} {:>18}\n",
        "strategy", "cases", "equal", "different", "declined by both", "other schedule"
    );
    let mut total = [0; 5];
    let mut row = |name: &str, counts: &[usize; 5]| {
        let [cases, equal, different, declined, rescheduled] = counts;
        text += &format!(
            "  {name:10} {cases:7} {equal:7} {different:9} {declined:16} {rescheduled:18}\n"
        );
    };
    for (name, counts) in &counts {
        row(name, counts);
        total.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
    }
    row("all", &total);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Output {
        Output::Text(text.into())
    }

    fn declined(exit_code: i32, message: &str) -> Output {
        Output::Declined { exit_code, message: message.into() }
    }

    #[test]
    fn texts_differ_in_a_line() {
        assert_eq!(Finding::of(&text("a\nb\n"), &text("a\nb\n")).verdict, Verdict::Equal);
        let finding = Finding::of(&text("a\n b\nc\n"), &text("a\nx\nc\n"));
        assert_eq!((finding.old.as_str(), finding.new.as_str()), ("line 2: b", "line 2: x"));
        let finding = Finding::of(&text("a\n"), &text("a\nb\n"));
        assert_eq!((finding.old.as_str(), finding.new.as_str()), ("line 2: (end)", "line 2: b"));
        assert_eq!(Finding::of(&text("a"), &text("a\n")).verdict, Verdict::Different);
    }

    #[test]
    fn exit_codes_count_and_words_do_not() {
        let verdict = |old: Output, new: Output| Finding::of(&old, &new).verdict;
        assert_eq!(verdict(declined(1, "a"), declined(1, "b")), Verdict::Declined);
        assert_eq!(verdict(declined(1, "a"), declined(2, "a")), Verdict::Different);
        // An internal fault or a signal is no decline, even of both.
        assert_eq!(verdict(declined(2, "a"), declined(2, "a")), Verdict::Different);
        assert_eq!(verdict(declined(-1, "a"), declined(-1, "a")), Verdict::Different);
        assert_eq!(verdict(declined(1, "a"), text("b")), Verdict::Different);
        assert_eq!(verdict(text("b"), declined(1, "a")), Verdict::Different);
    }
}
