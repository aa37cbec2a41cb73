//! Runs a pipeline over a module: our passes and upstream's in one string, with verification,
//! timing and dumps in one place.

use crate::options::Options;
use crate::registry;
use crate::stencil::verify;
use melior::Context;
use melior::ir::Module;
use std::time::{Duration, Instant};
use stencil_dialects::error::{Error, Fault};
use stencil_dialects::mlir;

/// Called with the name of a pass and the module after it.
pub type Hook<'h> = &'h mut dyn FnMut(&str, &Module);

/// What the runner does around each pass.
#[derive(Default)]
pub struct Runner<'h> {
    /// Called after each pass with its name and the module.
    pub after: Option<Hook<'h>>,
    /// How long each pass took, in order.
    pub timing: Vec<(String, Duration)>,
}

/// One pass of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Name, or the operation that a nested pipeline is anchored at.
    pub name: String,
    /// The text between the braces.
    pub options: String,
    /// The text between the parentheses of a nested pipeline.
    pub nested: Option<String>,
}

impl Step {
    fn text(&self) -> String {
        let options =
            if self.options.is_empty() { String::new() } else { format!("{{{}}}", self.options) };
        let nested = self.nested.as_ref().map(|nested| format!("({nested})")).unwrap_or_default();
        format!("{}{nested}{options}", self.name)
    }
}

impl Runner<'_> {
    /// Runs a pipeline. The module is verified before the first pass and after each; a failure
    /// names the pass.
    pub fn run<'c>(
        &mut self,
        context: &'c Context,
        module: &mut Module<'c>,
        pipeline: &str,
    ) -> Result<(), Error> {
        let steps = parse(pipeline)?;
        check_names(&steps)?;
        verify_module(context, module)?;
        for step in steps {
            let start = Instant::now();
            match registry::find(&step.name) {
                Some(pass) => {
                    let options = Options::parse(&step.options)?;
                    options.expect(pass.name, pass.options)?;
                    (pass.run)(context, module, &options)
                        .map_err(|error| in_pass(error, pass.name))?;
                }
                None => {
                    mlir::run_upstream(context, module, &format!("builtin.module({})", step.text()))
                        .map_err(|error| in_pass(error, &step.name))?
                }
            }
            self.timing.push((step.text(), start.elapsed()));
            if let Some(after) = &mut self.after {
                after(&step.text(), module);
            }
            // Upstream's passes may be asked for where they break our rules; ours must never do.
            let fault =
                if registry::find(&step.name).is_some() { Fault::Internal } else { Fault::User };
            verify_module(context, module).map_err(|error| Error {
                fault,
                message: format!(
                    "the IR is not valid after the pass {}: {}",
                    step.text(),
                    error.message
                ),
                ..error
            })?;
        }
        Ok(())
    }
}

fn in_pass(error: Error, pass: &str) -> Error {
    if error.fault == Fault::Internal {
        Error { message: format!("in the pass {pass}: {}", error.message), ..error }
    } else {
        error
    }
}

fn verify_module<'c>(context: &'c Context, module: &Module<'c>) -> Result<(), Error> {
    mlir::verify(context, module)?;
    verify::check(module)
}

/// Our passes take no nested pipeline, and stand at the module alone.
fn check_names(steps: &[Step]) -> Result<(), Error> {
    for step in steps {
        if registry::find(&step.name).is_some() && step.nested.is_some() {
            return Err(Error::user(format!("the pass {} takes no nested pipeline", step.name)));
        }
        for inner in step
            .nested
            .iter()
            .map(|nested| split(nested))
            .collect::<Result<Vec<_>, _>>()?
            .iter()
            .flatten()
        {
            let inner = parse_step(inner)?;
            if registry::find(&inner.name).is_some() {
                return Err(Error::user(format!(
                    "the pass {} runs on the module; take it out of {}(...)",
                    inner.name, step.name
                )));
            }
        }
    }
    Ok(())
}

/// Parses `builtin.module(a,b{x=1},gpu.module(c,d))`, or the list alone.
pub fn parse(pipeline: &str) -> Result<Vec<Step>, Error> {
    let text = pipeline.trim();
    let list = match text.strip_prefix("builtin.module(") {
        Some(rest) => rest.strip_suffix(')').ok_or_else(|| {
            Error::user(format!("the pipeline '{text}' lacks its closing parenthesis"))
        })?,
        None => text,
    };
    split(list)?.iter().map(|item| parse_step(item)).collect()
}

fn parse_step(item: &str) -> Result<Step, Error> {
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
    let mut step = Step { name: name.trim().to_owned(), options: String::new(), nested: None };
    if rest.starts_with('(') {
        let close = closing(rest).ok_or_else(malformed)?;
        step.nested = rest.get(1..close).map(str::to_owned);
        rest = rest.get(close + 1..).unwrap_or_default();
    }
    if rest.starts_with('{') {
        let close = closing(rest).ok_or_else(malformed)?;
        step.options = rest.get(1..close).unwrap_or_default().trim().to_owned();
        rest = rest.get(close + 1..).unwrap_or_default();
    }
    if rest.trim().is_empty() { Ok(step) } else { Err(malformed()) }
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
            "builtin.module(tile-overlapped{tile=8,8 \
                pyramid-height=2},gpu.module(canonicalize,cse),cse)",
        )
        .unwrap();
        assert_eq!(
            steps.iter().map(Step::text).collect::<Vec<_>>(),
            ["tile-overlapped{tile=8,8 pyramid-height=2}", "gpu.module(canonicalize,cse)", "cse"]
        );
    }

    #[test]
    fn broken_pipelines_are_refused() {
        for text in ["builtin.module(cse", "cse)", "a{b", "(x)", "cse}{", "a(b)c"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(check_names(&parse("gpu.module(lower-block)").unwrap()).is_err());
    }
}
