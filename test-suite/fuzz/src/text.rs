//! Random source text: whatever it is, the front end ends soon, and every diagnostic points into
//! it.
//!
//! A text that the checker accepts prints and parses back to the same tree. A share of these texts
//! is compiled to the gpu level, which may refuse it, but not by an internal fault.

use crate::check::Fault;
use crate::mutate::{Corpus, mutate};
use crate::outcome::{Outcome, attempt, documents, folder, judge};
use crate::random::Random;
use melior::Context;
use stencil_compiler::stages::Compilation;
use stencil_compiler::{Choice, Class, Config, Control, Options};
use stencil_frontend::diagnostics::{Diagnostic, Look, render};
use stencil_frontend::program::Program;
use stencil_frontend::source::Source;
use stencil_frontend::{load, parser, print};

/// The programs of the test suite, the faulty ones too, and those of the language's document.
///
/// # Errors
/// When they can't be read.
pub fn corpus() -> std::io::Result<Corpus> {
    let mut texts = folder("programs", "stencil")?;
    texts.extend(folder("diagnostics", "stencil")?);
    texts.extend(documents("language.md", "stencil")?);
    // Long sums add no words, and slow everything down.
    texts.retain(|text| text.len() < 2_000);
    Ok(Corpus::new(texts))
}

/// The text of a case.
pub fn input(corpus: &Corpus, seed: u64, index: u64) -> String {
    let random = &mut Random::of_case(seed, index);
    let source = |random: &mut Random| corpus.texts[random.below(corpus.texts.len())].as_str();
    match random.below(100) {
        0..70 => mutate(source(random), corpus, random),
        70..80 => {
            // The head of one program and the tail of another.
            let (head, tail) = (source(random), source(random));
            let cut = |text: &str, random: &mut Random| {
                let at = random.below(text.len() + 1);
                (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
            };
            let (end, start) = (cut(head, random), cut(tail, random));
            head[..end].to_owned() + &tail[start..]
        }
        80..92 => {
            let start = if random.percent(50) {
                "param N\ngrid G = [0..N-1]\nfield A : f32 on G\nfn f -> A [1..N-2] = "
            } else {
                ""
            };
            let words = (0..1 + random.below(150)).map(|_| corpus.word(random)).collect::<Vec<_>>();
            let gap = if random.percent(80) { " " } else { "" };
            start.to_owned() + &words.join(gap)
        }
        92..96 => (0..random.below(300))
            .filter_map(|_| char::from_u32(random.below(0x3000) as u32))
            .collect(),
        _ => {
            // Something over and over, as deep or as long as no program is.
            let part = random.pick(&[
                "(",
                "-",
                "!",
                "{ let x = ",
                "if A[0] > 1 then ",
                "A[0] + ",
                "sqrt(",
                "1 < ",
                "[",
                "fn f -> A {",
                "A[",
                "2*N+",
            ]);
            let start =
                random.pick(&["steps ", "fn f -> A [1..N-2] = ", "fn f -> A [", "param M = "]);
            let count = random.pick(&[10, 149, 151, 1_499, 1_501, 20_000]);
            format!(
                "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n{start}{}A[0]\nsteps 1\n",
                part.repeat(count)
            )
        }
    }
}

/// Checks a case.
pub fn check(text: &str, context: &Context, random: &mut Random) -> Outcome {
    attempt(|| {
        let source = Source::new("input.stencil", text);
        let (tree, errors) = parser::parse(&source);
        spans(&errors, &source)?;
        if errors.is_empty() {
            let printed = Source::new("printed.stencil", print::print(&tree));
            let (again, errors) = parser::parse(&printed);
            if !errors.is_empty() || again != tree {
                return Err((Fault::RoundTrip, "the printed tree is another one".to_owned()));
            }
        }
        loaded(&source, context, random).map(|(_, outcome)| outcome)
    })
}

/// Loads a source, and compiles a share of those that are accepted to the gpu level.
///
/// # Errors
/// What is wrong with the front end or the compiler.
pub fn loaded(
    source: &Source,
    context: &Context,
    random: &mut Random,
) -> Result<(Option<Program>, Outcome), (Fault, String)> {
    let (program, errors) = load(source, &[]);
    spans(&errors, source)?;
    if program.is_some() != errors.is_empty() {
        return Err((Fault::Internal, "neither a program nor an error, or both".to_owned()));
    }
    if render(&errors, source, Look::Plain).is_empty() != errors.is_empty() {
        return Err((Fault::Internal, "an error that says nothing".to_owned()));
    }
    let outcome = match program {
        None => Outcome::Refused,
        Some(_) if !random.percent(10) => Outcome::Accepted("by the checker"),
        Some(_) => compiled(source, context, random)?,
    };
    Ok((program, outcome))
}

/// Compiles an accepted source to the gpu level, which may decline it.
fn compiled(
    source: &Source,
    context: &Context,
    random: &mut Random,
) -> Result<Outcome, (Fault, String)> {
    let options = Options {
        config: Config {
            choice: Choice {
                strategy: random.percent(30).then(|| "naive".to_owned()),
                ..Choice::default()
            },
            ..Config::default()
        },
        ..Options::default()
    };
    let compiled = Compilation::new(context, source, &options, Control::default()).and_then(
        |mut compilation| {
            compilation.to_gpu()?;
            compilation.plan().map(drop)
        },
    );
    match compiled {
        Ok(()) => Ok(Outcome::Accepted("to the gpu level")),
        Err(failure) => judge(failure.class == Class::Internal, &failure.to_string())
            .map(|_| Outcome::Accepted("then declined")),
    }
}

/// Every error has a place, and all places lie in the text and at the ends of characters.
fn spans(errors: &[Diagnostic], source: &Source) -> Result<(), (Fault, String)> {
    for error in errors {
        let good = |at: u32| source.text.is_char_boundary(at as usize);
        let inside = |label: &stencil_frontend::diagnostics::Label| {
            label.span.start <= label.span.end && good(label.span.start) && good(label.span.end)
        };
        if error.place().is_none() || !error.labels.iter().all(inside) {
            return Err((Fault::Place, format!("no place, or one outside of the text: {error:?}")));
        }
        if error.message.trim().is_empty() {
            return Err((Fault::Place, "an error without a message".to_owned()));
        }
    }
    Ok(())
}
