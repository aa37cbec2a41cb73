//! Shell completions and manual pages, made from the command lines themselves.

use crate::message::say;
use clap::Command;
use clap_complete::{Shell, generate};
use std::io::{Error, Write};
use std::process::ExitCode;

/// Answers `--completions SHELL` and `--man` as the only arguments; none for any other call.
pub fn asked_for(mut command: Command) -> Option<ExitCode> {
    // Arguments that are not UTF-8 belong to another call.
    let arguments = std::env::args_os().skip(1).map(|argument| argument.into_string().ok());
    let arguments = arguments.collect::<Option<Vec<_>>>()?;
    let mut text = Vec::new();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["--man"] => match clap_mangen::Man::new(command).render(&mut text) {
            Ok(()) => Some(print(&text)),
            Err(error) => Some(failed(&error)),
        },
        ["--completions", shell] => match shell.parse::<Shell>() {
            Ok(shell) => {
                let name = command.get_name().to_owned();
                generate(shell, &mut command, name, &mut text);
                Some(print(&text))
            }
            Err(_) => {
                say(format_args!(
                    "error: there are no completions for '{shell}'; there are bash, elvish, fish, \
                     powershell and zsh\n"
                ));
                Some(ExitCode::from(1))
            }
        },
        _ => None,
    }
}

fn print(text: &[u8]) -> ExitCode {
    match std::io::stdout().write_all(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &Error) -> ExitCode {
    say(format_args!("error: {error}\n"));
    ExitCode::from(1)
}
