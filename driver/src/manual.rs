//! Shell completions and manual pages, made from the command lines themselves.

use crate::message::{exit, unprinted};
use clap::Command;
use clap_complete::{Shell, generate};
use std::process::ExitCode;
use stencil_compiler::Failure;
use stencil_runtime::standard_output;

/// Answers `--completions SHELL` and `--man` as the only arguments; none for any other call.
pub fn asked_for(mut command: Command) -> Option<ExitCode> {
    // Arguments that are not UTF-8 belong to another call.
    let arguments = std::env::args_os().skip(1).map(|argument| argument.into_string().ok());
    let arguments = arguments.collect::<Option<Vec<_>>>()?;
    let mut text = Vec::new();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--man"] => match clap_mangen::Man::new(command).render(&mut text) {
            Ok(()) => Some(print(&text)),
            Err(error) => Some(exit(Err(vec![Failure::user(error)]))),
        },
        ["--completions", shell] => match shell.parse::<Shell>() {
            Ok(shell) => {
                let name = command.get_name().to_owned();
                generate(shell, &mut command, name, &mut text);
                Some(print(&text))
            }
            Err(_) => Some(exit(Err(vec![Failure::user(format!(
                "there are no completions for '{shell}'; there are bash, elvish, fish, powershell \
                 and zsh"
            ))]))),
        },
        _ => None,
    }
}

fn print(text: &[u8]) -> ExitCode {
    exit(standard_output::print(text).map_err(|error| vec![unprinted(&error)]))
}
