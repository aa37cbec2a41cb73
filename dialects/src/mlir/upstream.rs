//! MLIR's own passes and its own verifier.

use super::{capture, first_error};
use crate::error::Error;
use melior::Context;
use melior::ir::Module;
use melior::ir::operation::OperationLike;
use melior::pass::PassManager;
use melior::utility::parse_pass_pipeline;

/// Runs upstream passes given in MLIR's pipeline syntax, anchored at the module.
pub fn run_upstream(context: &Context, module: &mut Module, pipeline: &str) -> Result<(), Error> {
    let manager = PassManager::new(context);
    manager.enable_verifier(false);
    let (result, diagnostics) =
        capture(context, || parse_pass_pipeline(manager.as_operation_pass_manager(), pipeline));
    result.map_err(|error| {
        let reason = first_error(diagnostics).map(|error| error.message);
        let reason = reason.unwrap_or_else(|| tidy(&error.to_string()));
        if reason.is_empty() || reason.contains("restricted to") {
            let why = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            return Error::user(format!(
                "the pipeline '{pipeline}' has a pass of another operation than the module{why}; \
                 nest it, as in gpu.module(convert-gpu-to-nvvm)"
            ));
        }
        Error::user(format!("unknown pass or option in '{pipeline}': {reason}"))
    })?;
    let (result, diagnostics) = capture(context, || manager.run(module));
    result.map_err(|_| {
        first_error(diagnostics).unwrap_or_else(|| {
            Error::user(format!(
                "the passes '{pipeline}' of upstream failed without a message; check their options"
            ))
        })
    })
}

/// The sentence of a message of the pipeline parser, without its echo of the text.
fn tidy(message: &str) -> String {
    let reason = message.trim_start_matches("failed to parse pass pipeline:").trim_start();
    let sentence = reason.split_once("error: ").map_or(reason, |(_, rest)| rest);
    sentence.lines().next().unwrap_or_default().trim().to_owned()
}

/// Runs MLIR's own verifier.
pub fn verify(context: &Context, module: &Module) -> Result<(), Error> {
    let (valid, diagnostics) = capture(context, || module.as_operation().verify());
    if valid {
        return Ok(());
    }
    Err(first_error(diagnostics)
        .unwrap_or_else(|| Error::internal("the verifier failed without a message")))
}
