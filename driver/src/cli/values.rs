//! Values of options: how each is read, and what is said of one that is none.

use std::collections::BTreeMap;
use std::num::{IntErrorKind, NonZeroU64, NonZeroUsize, ParseIntError};
use std::str::FromStr;
use stencil_compiler::{
    AMD_ARCHITECTURES, Failure, LinkRate, RecordLayout, architectures, processors,
};
use stencil_passes::strategies::names;
use stencil_runtime::input::assignment;
use stencil_runtime::number::Numeral;

/// The name of a strategy.
pub fn strategy(text: &str) -> Result<String, String> {
    word(text).map_err(|_| format!("there are {}", names("and", |_| true)))
}

/// The name of a strategy or region, which stands in a pipeline, where other letters have a
/// meaning.
pub fn word(text: &str) -> Result<String, String> {
    let is_word = !text.is_empty()
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
    if is_word {
        Ok(text.to_owned())
    } else {
        Err("expected a name of letters, digits and -".to_owned())
    }
}

/// A whole number of at least 1.
pub fn positive(text: &str) -> Result<usize, String> {
    match whole(text)? {
        0 => Err("expected a number of at least 1".to_owned()),
        number => Ok(number),
    }
}

/// A number of steps of at least 1.
pub fn several(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(whole(text)?).ok_or_else(|| "expected a number of at least 1".to_owned())
}

/// A number of threads.
pub fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = NonZeroUsize::new(positive(text)?);
    let few = number.filter(|threads| threads.get() <= MOST_THREADS);
    few.ok_or_else(|| format!("expected at most {MOST_THREADS} threads"))
}

/// Far more than any machine runs at once.
const MOST_THREADS: usize = 1024;

/// A whole number in the range of its type.
pub fn whole<T: FromStr<Err = ParseIntError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
            "the number is too large".to_owned()
        }
        // One below zero fails where none may be.
        _ if text
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit())) =>
        {
            "expected a number of at least 0".to_owned()
        }
        _ => "expected a whole number".to_owned(),
    })
}

/// A number of a list.
pub fn one_of_several(text: &str) -> Result<i64, String> {
    whole(text).map_err(|said| format!("{said}; separate several numbers by commas: 32,64"))
}

/// Splits `PARAM=SIZE`. A fraction stands where a scalar was meant.
pub fn size(text: &str) -> Result<(String, i64), String> {
    let (name, value) = assignment::<String>(text)?;
    match whole(&value) {
        Ok(size) => Ok((name, size)),
        Err(said) if value.contains('.') && value.parse::<Numeral>().is_ok() => {
            Err(format!("`{value}`: {said} (a scalar is set by stencilc run --set {name}={value})"))
        }
        Err(said) => Err(format!("`{value}`: {said}")),
    }
}

/// Two numbers, the first one below the second.
pub fn range(text: &str) -> Result<(f64, f64), String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
    let pair = text.split_once(',').and_then(|(low, high)| Some((number(low)?, number(high)?)));
    match pair {
        Some((low, high)) if low < high => Ok((low, high)),
        _ => Err("expected two numbers, the lower one first: 0,1".to_owned()),
    }
}

/// A relative error.
pub fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => Err("expected a finite number of at least 0".to_owned()),
    }
}

/// How fast devices send cells: as it is given, or as the environment has it.
pub fn link(given: Option<LinkRate>) -> Result<Option<LinkRate>, Failure> {
    const NAME: &str = "STENCILC_LINK";
    let stored = || std::env::var(NAME).ok().filter(|text| !text.is_empty());
    let stored = given.is_none().then(stored).flatten();
    let read = stored.map(|text| {
        text.parse().map_err(|said| Failure::user(format!("{NAME} is `{text}`: {said}")))
    });
    Ok(given.or(read.transpose()?))
}

/// The names of the layouts of structs and vecs.
pub fn layouts() -> Vec<&'static str> {
    RecordLayout::ALL.iter().map(|(name, _)| *name).collect()
}

/// The architectures of GPUs, and the processors.
pub fn all_architectures() -> Vec<&'static str> {
    architectures().into_iter().chain(AMD_ARCHITECTURES).chain(processors()).collect()
}

/// The values by name; no name may be given twice.
pub fn unique<T: Clone>(
    option: &str,
    given: &[(String, T)],
) -> Result<BTreeMap<String, T>, Failure> {
    let mut map = BTreeMap::new();
    for (name, value) in given {
        if map.insert(name.clone(), value.clone()).is_some() {
            return Err(Failure::user(format!("{option} {name}=... is given twice")));
        }
    }
    Ok(map)
}
