//! Pipelines as text, as `stencil-opt` and `--passes` take them: ours and upstream's passes mixed.

use crate::options::Options;
use crate::pass::Step;
use crate::registry;
use crate::upstream;
use stencil_dialects::error::Error;

/// One item of a pipeline's text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Item {
    /// Name, or the operation that a nested pipeline is anchored at.
    name: String,
    /// The text between the braces.
    options: String,
    /// The text between the parentheses of a nested pipeline.
    nested: Option<String>,
}

impl Item {
    fn text(&self) -> String {
        let options =
            if self.options.is_empty() { String::new() } else { format!("{{{}}}", self.options) };
        let nested = self.nested.as_ref().map(|nested| format!("({nested})")).unwrap_or_default();
        format!("{}{nested}{options}", self.name)
    }
}

/// Parses `builtin.module(a,b{x=1},gpu.module(c,d))`, or the list alone.
///
/// # Errors
/// A malformed text, an unknown option or value of a pass of ours, and a pass of ours in a nested
/// pipeline.
pub fn parse(pipeline: &str) -> Result<Vec<Step>, Error> {
    items(pipeline)?.iter().map(step).collect()
}

/// The step of an item. Names that are not ours are left to upstream.
fn step(item: &Item) -> Result<Step, Error> {
    let Some(info) = registry::find(&item.name) else {
        admit(item, 0)?;
        return Ok(Step::Upstream(item.text()));
    };
    if item.nested.is_some() {
        return Err(Error::user(format!("the pass {} takes no nested pipeline", item.name)));
    }
    let options = Options::parse(&item.options)?;
    options.expect(info.name, info.options)?;
    Ok(Step::Ours((info.read)(&options)?))
}

/// The deepest nesting of upstream's pipelines.
const MOST_NESTED: usize = 64;

/// Admits known passes of upstream, and pipelines of them on operations of a name.
fn admit(item: &Item, depth: usize) -> Result<(), Error> {
    if depth > MOST_NESTED {
        return Err(Error::user(format!("pipelines are nested at most {MOST_NESTED} deep")));
    }
    let Some(nested) = &item.nested else {
        upstream::pass(&item.name)?;
        return match item.options.contains("pipeline") {
            true => Err(Error::user(format!(
                "the pass {} takes no pipeline as an option here; leave it out",
                item.name
            ))),
            false => Ok(()),
        };
    };
    for inner in &split(nested)? {
        let inner = parse_item(inner)?;
        if registry::find(&inner.name).is_some() {
            return Err(Error::user(format!(
                "the pass {} runs on the module; take it out of {}(...)",
                inner.name, item.name
            )));
        }
        admit(&inner, depth + 1)?;
    }
    Ok(())
}

fn items(pipeline: &str) -> Result<Vec<Item>, Error> {
    let text = pipeline.trim();
    let list = match text.strip_prefix("builtin.module(") {
        Some(rest) => rest.strip_suffix(')').ok_or_else(|| {
            Error::user(format!("the pipeline '{text}' lacks its closing parenthesis"))
        })?,
        None => text,
    };
    split(list)?.iter().map(|item| parse_item(item)).collect()
}

fn parse_item(item: &str) -> Result<Item, Error> {
    let end = item.find(['{', '(']).unwrap_or(item.len());
    let (name, mut rest) = item.split_at(end);
    let malformed = || {
        Error::user(format!(
            "'{item}' is no pass; write name, name{{option=value}} or operation(pass,...)"
        ))
    };
    if name.trim().is_empty() {
        return Err(malformed());
    }
    let mut found = Item { name: name.trim().to_owned(), options: String::new(), nested: None };
    if rest.starts_with('(') {
        let close = closing(rest).ok_or_else(malformed)?;
        found.nested = rest.get(1..close).map(str::to_owned);
        rest = rest.get(close + 1..).unwrap_or_default();
    }
    if rest.starts_with('{') {
        let close = closing(rest).ok_or_else(malformed)?;
        found.options = rest.get(1..close).unwrap_or_default().trim().to_owned();
        rest = rest.get(close + 1..).unwrap_or_default();
    }
    if rest.trim().is_empty() { Ok(found) } else { Err(malformed()) }
}

/// The position of the bracket that closes the first.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (position, letter) in text.char_indices() {
        match letter {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(position);
                }
            }
            _ => {}
        }
    }
    None
}

/// Splits at commas outside of brackets.
fn split(list: &str) -> Result<Vec<String>, Error> {
    let mut items = Vec::new();
    let (mut depth, mut start) = (0_usize, 0);
    for (position, letter) in list.char_indices() {
        match letter {
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => {
                depth = depth.checked_sub(1).ok_or_else(|| {
                    Error::user(format!("unbalanced brackets in the pipeline '{list}'"))
                })?;
            }
            ',' if depth == 0 => {
                items.push(list.get(start..position).unwrap_or_default().to_owned());
                start = position + 1;
            }
            _ => {}
        }
    }
    if depth != 0 {
        return Err(Error::user(format!("unbalanced brackets in the pipeline '{list}'")));
    }
    items.push(list.get(start..).unwrap_or_default().to_owned());
    items.retain(|item| !item.trim().is_empty());
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipeline_mixes_ours_and_upstream() {
        let steps = parse(
            "builtin.module(tile-overlapped{tile=8,8 pyramid-height=2},\
             gpu.module(canonicalize,cse),cse)",
        )
        .unwrap();
        assert_eq!(
            steps.iter().map(Step::text).collect::<Vec<_>>(),
            ["tile-overlapped{tile=8,8 pyramid-height=2}", "gpu.module(canonicalize,cse)", "cse"]
        );
    }

    #[test]
    fn options_survive_a_round_trip() {
        for info in registry::passes() {
            let pass = (info.read)(&Options::default()).unwrap();
            let text = Step::Ours(pass).text();
            assert_eq!(text, info.name, "options that stand at their defaults are left out");
        }
        let text = "lower-stream{ahead=2 registers=128}";
        assert_eq!(parse(text).unwrap()[0].text(), text);
    }

    #[test]
    fn broken_pipelines_are_refused() {
        for text in ["builtin.module(cse", "cse)", "a{b", "(x)", "cse}{", "a(b)c"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse("gpu.module(lower-block)").is_err());
        assert!(parse("lower-block(cse)").is_err());
    }

    #[test]
    fn deep_pipelines_are_refused() {
        let nested = |depth| format!("{}cse{}", "a(".repeat(depth), ")".repeat(depth));
        assert!(parse(&nested(MOST_NESTED)).is_ok());
        assert!(parse(&nested(20_000)).is_err());
    }

    #[test]
    fn other_passes_of_upstream_are_refused_wherever_they_stand() {
        for name in ["control-flow-sink", "transform-interpreter", "gpu-lower-to-nvvm-pipeline"] {
            for text in [name.to_owned(), format!("gpu.module(cse,gpu.func({name}{{x=1}}))")] {
                let message = parse(&text).err().map_or_else(String::new, |error| error.message);
                assert!(message.contains(name) && message.contains("mlir-opt"), "{message}");
            }
        }
        for text in [
            "inline{default-pipeline=control-flow-sink}",
            "inline{op-pipelines=func.func(control-flow-sink)}",
        ] {
            let message = parse(text).err().map_or_else(String::new, |error| error.message);
            assert!(message.contains("no pipeline as an option"), "{message}");
        }
        for name in upstream::PASSES {
            assert!(parse(name).is_ok(), "{name}");
        }
    }

    /// The compiler's own pipelines can be written as text.
    #[test]
    fn the_own_pipelines_are_admitted() {
        use crate::pipeline::{
            Config, gpu, host, host_llvm, nest_gpu, nvvm, rocdl, stencil, tiled,
        };
        let config = Config::default();
        for steps in [
            stencil(&config),
            tiled(&config),
            gpu(&config),
            host(),
            host_llvm(),
            nest_gpu(&config),
            nvvm(64),
            rocdl("gfx942", 64),
        ] {
            for step in steps {
                let text = step.text();
                assert!(parse(&text).is_ok(), "{text}");
            }
        }
    }
}
