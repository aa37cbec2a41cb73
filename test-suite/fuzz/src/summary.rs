//! Counts of what became of the cases.

use crate::check::{Fault, Verdict};
use crate::model::Case;
use crate::windows::Fate;
use std::collections::BTreeMap;
use std::fmt;

/// Counts over many cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Cases by verdict.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// Cases by what they are made of; one case counts several times.
    pub kinds: BTreeMap<String, u64>,
    /// Declined cases by the reason.
    pub declines: BTreeMap<String, u64>,
    /// Refused sizes by the reason.
    pub refusals: BTreeMap<String, u64>,
    /// Failures by the kind of fault.
    pub faults: BTreeMap<Fault, u64>,
}

impl Summary {
    /// Counts a case.
    pub fn add(&mut self, case: &Case, verdict: &Verdict) {
        let name = match verdict {
            Verdict::Agreed { telling: true, .. } => "agreed",
            Verdict::Agreed { telling: false, .. } => {
                "agreed, but no cell changed to a finite value"
            }
            Verdict::Refused(message) => {
                *self.refusals.entry(reason(message)).or_default() += 1;
                "sizes refused by oracle and plan alike"
            }
            Verdict::Declined(message) => {
                *self.declines.entry(reason(message)).or_default() += 1;
                "declined"
            }
            Verdict::Failed(fault, _) => {
                *self.faults.entry(*fault).or_default() += 1;
                "failed"
            }
        };
        *self.verdicts.entry(name).or_default() += 1;
        if let Verdict::Agreed { windows, .. } = verdict {
            for kind in kinds(case).into_iter().chain(windows.as_ref().map(Fate::to_string)) {
                *self.kinds.entry(kind).or_default() += 1;
            }
        }
    }

    /// Adds the counts of another summary.
    pub fn join(&mut self, other: &Self) {
        fn join<K: Ord + Clone>(own: &mut BTreeMap<K, u64>, other: &BTreeMap<K, u64>) {
            for (name, count) in other {
                *own.entry(name.clone()).or_default() += count;
            }
        }
        join(&mut self.verdicts, &other.verdicts);
        join(&mut self.kinds, &other.kinds);
        join(&mut self.declines, &other.declines);
        join(&mut self.refusals, &other.refusals);
        join(&mut self.faults, &other.faults);
    }

    /// All cases.
    pub fn cases(&self) -> u64 {
        self.verdicts.values().sum()
    }

    /// Failures.
    pub fn failures(&self) -> u64 {
        self.faults.values().sum()
    }
}

/// The parts of a case.
fn kinds(case: &Case) -> Vec<String> {
    use crate::model::{Flag, Kind, Known, Rule, Type};
    let program = &case.program;
    let mut kinds = vec![
        format!("dimensions: {}", program.rank()),
        format!("functions: {}", program.functions.len()),
    ];
    kinds.extend(case.schedules.iter().map(|schedule| match schedule.combination {
        None => format!("strategy: {}", schedule.strategy),
        Some(by) => {
            let tiles = if by.skewed { "skewed" } else { "square" };
            format!("passes: {tiles} tiles, {}", by.sync.unwrap_or("a launch a diagonal"))
        }
    }));
    for field in &program.fields {
        kinds.extend(field.rule.as_ref().map(|rule| {
            let name = match rule {
                Rule::Nearest => "nearest",
                Rule::Periodic => "periodic",
                Rule::Reflect => "reflect",
                Rule::Value(_) => "an expression",
            };
            format!("boundary: {name}")
        }));
        kinds.extend(match field.ty {
            Type::Bool => Some("cells: bool".to_owned()),
            Type::Vec(..) => Some("cells: vecs".to_owned()),
            Type::Struct(_) => Some("cells: structs".to_owned()),
            Type::Structs(..) => Some("cells: vecs of structs".to_owned()),
            _ => None,
        });
    }
    let updated: Vec<usize> =
        program.functions.iter().flat_map(|function| function.updates.clone()).collect();
    for value in program.values() {
        value.visit(&mut |part| {
            if let Kind::Gather(field, _) = part.kind {
                kinds.push("absolute reads".to_owned());
                if updated.contains(&field) {
                    kinds.push("absolute reads of updated fields".to_owned());
                }
            }
        });
    }
    let mut homes: Vec<_> = updated.iter().map(|field| program.grid_of(*field)).collect();
    homes.dedup();
    kinds.sort();
    kinds.dedup();
    let mut flag = |name: &str, is: bool| {
        if is {
            kinds.push(name.to_owned());
        }
    };
    flag("repeated functions", !program.repeats.is_empty());
    flag("several pieces", program.functions.iter().any(|function| function.pieces.len() > 1));
    flag(
        "several fields updated at once",
        program.functions.iter().any(|function| function.updates.len() > 1),
    );
    flag(
        "sizes known at run time only",
        program.params.iter().any(|param| param.known == Known::Run),
    );
    flag("several updated grids", homes.len() > 1);
    flag(
        "an empty grid",
        program.grids[0].bounds(&program.params).iter().any(|(first, last)| last < first),
    );
    flag("no steps", program.steps == 0);
    for (switch, option, _) in Flag::ALL {
        flag(option, case.schedules.iter().any(|schedule| schedule.flags.contains(&switch)));
    }
    flag("rough data", case.data.rough);
    flag("levels read again", case.round_trip);
    flag("transposed too", case.transpose);
    flag("shifted too", case.shift.is_some());
    flag("two schedules", case.schedules.len() > 1);
    flag("compiled to PTX too", case.ptx);
    kinds
}

/// A message without its numbers and names, so that equal reasons count together.
pub fn reason(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default().trim_start_matches("error: ");
    let line = line.split(" unless ").next().unwrap_or_default();
    let mut text = String::new();
    let mut digits = false;
    let mut quoted = false;
    for letter in line.chars() {
        if letter == '`' {
            quoted = !quoted;
            text.push_str(if quoted { "`..." } else { "`" });
        } else if quoted {
        } else if letter.is_ascii_digit() {
            if !digits {
                text.push('#');
            }
        } else {
            text.push(letter);
        }
        digits = letter.is_ascii_digit();
    }
    for (from, to) in [
        ("-#", "#"),
        ("#*P#", "#"),
        ("P#", "#"),
        ("##", "#"),
        ("#+#", "#"),
        ("[#]", "[..]"),
        ("[#, #]", "[..]"),
        ("[#, #, #]", "[..]"),
    ] {
        text = text.replace(from, to);
    }
    for name in 'A'..='M' {
        for part in ["", ".#", ".m#"] {
            text = text.replace(&format!("@{name}{part} "), "@field ");
        }
    }
    text
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{} cases", self.cases())?;
        let mut block = |title: &str, counts: Vec<(String, u64)>| -> fmt::Result {
            if !counts.is_empty() {
                writeln!(formatter, "{title}")?;
            }
            counts
                .into_iter()
                .try_for_each(|(name, count)| writeln!(formatter, "{count:>9}  {name}"))
        };
        let named = |counts: &BTreeMap<String, u64>| {
            counts.iter().map(|(name, count)| (name.clone(), *count)).collect::<Vec<_>>()
        };
        block(
            "by verdict",
            self.verdicts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect(),
        )?;
        block("cases that agreed, by what they hold", named(&self.kinds))?;
        block("declined", named(&self.declines))?;
        block("sizes refused", named(&self.refusals))?;
        block(
            "failures",
            self.faults.iter().map(|(fault, count)| (format!("{fault:?}"), *count)).collect(),
        )
    }
}
