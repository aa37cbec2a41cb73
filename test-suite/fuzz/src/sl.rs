//! Random text of SL: whatever it is, the front end ends soon, and every diagnostic points into it.
//!
//! A program that is accepted runs on the reference, which must read nothing outside of its arrays.
//! A share of them is compiled to the gpu level, as in [`crate::text`].

use crate::check::Fault;
use crate::mutate::{Corpus, mutate};
use crate::outcome::{Outcome, attempt, documents, folder};
use crate::random::Random;
use crate::text::loaded;
use melior::Context;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use stencil_frontend::oracle::{self, OracleError};
use stencil_frontend::program::{Program, Role};
use stencil_frontend::sizes::{Sizes, extents};
use stencil_frontend::source::Source;
use stencil_runtime::array::Array;
use stencil_runtime::number::Numeral;

/// The programs of the test suite, the faulty ones too, and those of the document.
///
/// # Errors
/// When they can't be read.
pub fn corpus() -> std::io::Result<Corpus> {
    let mut texts = folder("sl", "sl")?;
    texts.extend(folder("sl-diagnostics", "sl")?);
    texts.extend(documents("sl.md", "sl\n")?);
    Ok(Corpus::new(texts))
}

/// The text of a case.
pub fn input(corpus: &Corpus, seed: u64, index: u64) -> String {
    let random = &mut Random::of_case(seed, index);
    let source = |random: &mut Random| corpus.texts[random.below(corpus.texts.len())].as_str();
    let program = |block: &str| {
        format!(
            "NumDimensions 1 StencilSize 1 DataType int FunctionName f\nCellValue {{\n{block}\n}}\n\
             EdgeValue {{ return value; }}\n"
        )
    };
    match random.below(100) {
        0..80 => mutate(source(random), corpus, random),
        80..92 => {
            let words = (0..1 + random.below(120)).map(|_| corpus.word(random)).collect::<Vec<_>>();
            let text = words.join(if random.percent(80) { " " } else { "" });
            if random.percent(70) { program(&text) } else { text }
        }
        92..95 => (0..random.below(300))
            .filter_map(|_| char::from_u32(random.below(0x3000) as u32))
            .collect(),
        _ => {
            // Something over and over, as deep or as long as no program is.
            let part = random.pick(&[
                "(",
                "-",
                "!",
                "{",
                "if (x > 1) return 1; ",
                "if (x > 1) ",
                "get(0) + ",
                "sqrt(",
                "x ? 1 : ",
                "(int) ",
                "for (int k = 0; k < 9; k++) ",
                "s += get(1) * s; ",
                "{ int s = 2; ",
                "if (x > 1) { s += 1; } else ",
                "a[",
            ]);
            let count = random.pick(&[10, 149, 151, 601, 20_000]);
            let start = random.pick(&["int s = 1; ", "int s = 1; return ", ""]);
            program(&format!("{start}{}1; return s;", part.repeat(count)))
        }
    }
}

/// Checks a case.
pub fn check(text: &str, context: &Context, random: &mut Random) -> Outcome {
    attempt(|| {
        let source = Source::new("input.sl", text);
        let (program, outcome) = loaded(&source, context, random)?;
        program.map_or(Ok(()), |program| run(&program))?;
        Ok(outcome)
    })
}

/// Runs a program on small arrays.
fn run(program: &Program) -> Result<(), (Fault, String)> {
    let open = program.params.iter().filter(|(_, param)| param.value.is_none());
    let sizes: Sizes =
        open.map(|(id, param)| (id, if param.name == "count" { 40 } else { 5 })).collect();
    let Ok(shapes) = extents(program, &sizes) else { return Ok(()) };
    let mut fields = BTreeMap::new();
    for (id, field) in program.fields.iter().filter(|(_, field)| field.role != Role::Temp) {
        let shape = shapes.get(id).cloned().unwrap_or_default();
        if let Ok(noise) = Array::noise(field.element, &shape, 7) {
            fields.insert(field.name.clone(), noise);
        }
    }
    let one: Numeral = "1".parse().map_err(|_| (Fault::Internal, "1 is no number".to_owned()))?;
    let scalars = program.scalars.values().map(|scalar| (scalar.name.clone(), one.clone()));
    let on = &mut |_, _| ControlFlow::Continue(());
    match oracle::run(program, &sizes, &scalars.collect(), 2, &mut fields, on) {
        Err(error @ OracleError::Outside { .. }) => Err((Fault::Internal, error.to_string())),
        // Conditions on the sizes may fail.
        _ => Ok(()),
    }
}
