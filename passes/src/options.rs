//! Options of a pass, as they stand in a pipeline string: `{tile=64,112 pyramid-height=4}`.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use stencil_dialects::error::Error;

/// Options with a value, as a pass lists them.
pub fn given(
    options: impl IntoIterator<Item = (&'static str, Option<i64>)>,
) -> impl Iterator<Item = (&'static str, String)> {
    options.into_iter().filter_map(|(name, value)| Some((name, value?.to_string())))
}

/// Options by name; every value is text until a pass asks for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    entries: BTreeMap<String, String>,
}

impl Options {
    /// Parses the text between the braces, `name=value` separated by spaces.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut options = Self::default();
        for entry in text.split_whitespace() {
            let (name, value) = entry
                .split_once('=')
                .ok_or_else(|| Error::user(format!("'{entry}' is no option; write name=value")))?;
            if options.text(name).is_some() {
                return Err(Error::user(format!(
                    "the option '{name}' is given twice; leave one out"
                )));
            }
            options.set(name, value);
        }
        Ok(options)
    }

    /// Sets an option.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.entries.insert(name.to_owned(), value.to_string());
    }

    /// Refuses options that a pass does not have.
    pub fn expect(&self, pass: &str, known: &[(&str, &str)]) -> Result<(), Error> {
        for name in self.entries.keys() {
            if !known.iter().any(|(known, _)| known == name) {
                let list = known.iter().map(|(known, _)| *known).collect::<Vec<_>>().join(", ");
                let remedy = if list.is_empty() {
                    "it has none".to_owned()
                } else {
                    format!("it has {list}")
                };
                return Err(Error::user(format!(
                    "the pass {pass} has no option '{name}'; {remedy}"
                )));
            }
        }
        Ok(())
    }

    /// The text of an option.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.entries.get(name).map(String::as_str)
    }

    /// Whether an option is on or off.
    ///
    /// # Errors
    /// Another word.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, Error> {
        match self.text(name) {
            None => Ok(None),
            Some("on") => Ok(Some(true)),
            Some("off") => Ok(Some(false)),
            Some(text) => Err(Error::user(format!("{name}={text}: expected on or off"))),
        }
    }

    /// An integer in a range.
    pub fn integer(&self, name: &str, range: RangeInclusive<i64>) -> Result<Option<i64>, Error> {
        self.text(name).map(|text| parse_integer(name, text, &range)).transpose()
    }

    /// A power of two in a range.
    ///
    /// # Errors
    /// Another number.
    pub fn power_of_two(
        &self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<i64>, Error> {
        let found = self.integer(name, range)?;
        match found.filter(|found| !u64::try_from(*found).is_ok_and(u64::is_power_of_two)) {
            Some(found) => Err(Error::user(format!("{name} is a power of two, not {found}"))),
            None => Ok(found),
        }
    }

    /// Integers in a range, separated by commas.
    pub fn integers(
        &self,
        name: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Option<Vec<i64>>, Error> {
        self.text(name)
            .map(|text| text.split(',').map(|item| parse_integer(name, item, &range)).collect())
            .transpose()
    }
}

fn parse_integer(name: &str, text: &str, range: &RangeInclusive<i64>) -> Result<i64, Error> {
    match text.trim().parse::<i64>() {
        Ok(value) if range.contains(&value) => Ok(value),
        _ => Err(Error::user(format!(
            "{name}={text}: expected a whole number from {} to {}",
            range.start(),
            range.end()
        ))),
    }
}
