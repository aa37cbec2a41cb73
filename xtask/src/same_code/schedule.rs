//! A schedule as a launch plan's `settings` have it, and the options that ask for it.

use anyhow::{Context, Result};
use serde_json::Value;

/// The settings that fix a schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    strategy: String,
    tile: String,
    per_thread: String,
    pyramid_height: String,
    region: Option<String>,
}

impl Schedule {
    /// Reads the schedule of a launch plan.
    ///
    /// # Errors
    /// When the text is no plan, or its `settings` lack a member.
    pub fn read(plan: &str) -> Result<Self> {
        let plan: Value = serde_json::from_str(plan).context("a launch plan is no JSON")?;
        let settings = &plan["settings"];
        let member = |name: &str| {
            text(&settings[name]).with_context(|| format!("a plan's settings lack `{name}`"))
        };
        Ok(Self {
            strategy: member("strategy")?,
            tile: member("tile")?,
            per_thread: member("per_thread")?,
            pyramid_height: member("pyramid_height")?,
            region: text(&settings["region"]),
        })
    }

    /// The options that ask for this schedule.
    pub fn options(&self) -> Vec<String> {
        let mut options = vec![
            format!("--strategy={}", self.strategy),
            format!("--tile={}", self.tile),
            format!("--per-thread={}", self.per_thread),
            format!("--pyramid-height={}", self.pyramid_height),
        ];
        options.extend(self.region.as_ref().map(|region| format!("--region={region}")));
        options
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.options().join(" "))
    }
}

/// A string, a number, or numbers with commas between them.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Array(items) => Some(items.iter().map(text).collect::<Option<Vec<_>>>()?.join(",")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"{"format": 1, "settings": {"strategy": "s", "tile": [32, 64],
        "pyramid_height": 4, "per_thread": [4, 1], "contract": true}}"#;

    #[test]
    fn settings_become_options() {
        let schedule = Schedule::read(PLAN).unwrap();
        let options = "--strategy=s --tile=32,64 --per-thread=4,1 --pyramid-height=4";
        assert_eq!(schedule.to_string(), options);
        let fixed = PLAN.replace("\"contract\": true", "\"region\": \"fixed\"");
        let schedule = Schedule::read(&fixed).unwrap();
        assert_eq!(schedule.to_string(), format!("{options} --region=fixed"));
    }

    #[test]
    fn a_missing_member_is_named() {
        let error = Schedule::read(&PLAN.replace("tile", "tiles")).unwrap_err();
        assert_eq!(format!("{error:#}"), "a plan's settings lack `tile`");
    }
}
