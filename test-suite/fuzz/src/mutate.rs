//! Damage to texts: words, lines and bracketed groups are left out, repeated, swapped, and taken
//! from elsewhere. It knows nothing of a language but what a word looks like, so that what comes
//! out is often nearly right.

use crate::random::Random;

/// Texts to begin with, and the words that occur in them.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    /// The texts.
    pub texts: Vec<String>,
    words: [Vec<String>; 3],
}

/// Numbers at which something may end.
const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "16",
    "31",
    "32",
    "33",
    "64",
    "127",
    "1000",
    "1023",
    "1024",
    "1025",
    "65536",
    "1048576",
    "1048577",
    "2147483648",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
];

/// Words that no vocabulary holds.
const ODD: [&str; 20] = [
    "",
    "\u{0}",
    "\t",
    "\u{fc}",
    "\u{1F600}",
    "\"",
    "'",
    "\\",
    "1e999",
    "-0.0",
    "0x7FC00000",
    "nan",
    "{",
    "}",
    "((",
    "]]",
    "..",
    "->",
    "%%",
    "@@",
];

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Name = 0,
    Number = 1,
    Other = 2,
}

fn class(token: &str) -> Option<Class> {
    let first = token.chars().next()?;
    match first {
        _ if first.is_whitespace() => None,
        '0'..='9' => Some(Class::Number),
        _ if token.chars().any(char::is_alphanumeric) => Some(Class::Name),
        _ => Some(Class::Other),
    }
}

/// The words of a text, with a sigil before them where there is one; spaces and line ends are words
/// too, and together the words are the text.
pub fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let sigil = if "%@!#^".contains(first) { first.len_utf8() } else { 0 };
        let after = rest.get(sigil..).unwrap_or_default();
        let length = after.find(|c| !word(c)).unwrap_or(after.len());
        let end = match first {
            _ if length > 0 => sigil + length,
            ' ' => rest.find(|c| c != ' ').unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (token, behind) = rest.split_at(end);
        found.push(token);
        rest = behind;
    }
    found
}

impl Corpus {
    /// A corpus of texts.
    pub fn new(texts: Vec<String>) -> Self {
        let mut words = [const { Vec::new() }; 3];
        for token in texts.iter().flat_map(|text| tokens(text)) {
            if let Some(class) = class(token) {
                words[class as usize].push(token.to_owned());
            }
        }
        for list in &mut words {
            list.sort();
            list.dedup();
        }
        Self { texts, words }
    }

    /// Any word.
    pub fn word<'a>(&'a self, random: &mut Random) -> &'a str {
        match random.below(8) {
            0 => random.pick(&ODD),
            1 => random.pick(&NUMBERS),
            2 => pick(&self.words[Class::Number as usize], random),
            3 | 4 => pick(&self.words[Class::Other as usize], random),
            _ => pick(&self.words[Class::Name as usize], random),
        }
    }

    /// A word of the same kind; of what begins alike, where there is such a word.
    fn like<'a>(&'a self, token: &str, random: &mut Random) -> &'a str {
        let Some(class) = class(token) else { return self.word(random) };
        if class == Class::Number && random.percent(60) {
            return random.pick(&NUMBERS);
        }
        let words = &self.words[class as usize];
        let mut found = pick(words, random);
        for _ in 0..20 {
            if found.chars().next() == token.chars().next() {
                break;
            }
            found = pick(words, random);
        }
        found
    }
}

fn pick<'a>(words: &'a [String], random: &mut Random) -> &'a str {
    words.get(random.below(words.len())).map_or("", String::as_str)
}

/// Damages a text in a few places.
pub fn mutate(text: &str, corpus: &Corpus, random: &mut Random) -> String {
    let mut parts = tokens(text);
    for _ in 0..1 + random.below(2) * random.below(4) {
        step(&mut parts, corpus, random);
    }
    parts.concat()
}

fn step<'a>(parts: &mut Vec<&'a str>, corpus: &'a Corpus, random: &mut Random) {
    if parts.is_empty() {
        return;
    }
    // Places that hold more than a space, where one is found soon.
    let place = |parts: &[&str], random: &mut Random| {
        let mut at = random.below(parts.len());
        for _ in 0..4 {
            if class(parts[at]).is_some() {
                break;
            }
            at = random.below(parts.len());
        }
        at
    };
    let (at, other) = (place(parts, random), place(parts, random));
    match random.below(24) {
        0 => drop(parts.remove(at)),
        1 => parts.insert(at, parts[at]),
        2 => parts.swap(at, other),
        3 => parts[at] = parts[other],
        4..=6 => parts[at] = corpus.like(parts[at], random),
        7 => parts[at] = corpus.word(random),
        8 => parts.insert(at, corpus.word(random)),
        9 => drop(parts.splice(line(parts, at), [])),
        10 => {
            let copy = parts[line(parts, at)].to_vec();
            let to = line(parts, other).start;
            drop(parts.splice(to..to, copy));
        }
        11 => {
            let copy = parts[line(parts, at)].to_vec();
            drop(parts.splice(line(parts, other), copy));
        }
        12 => drop(parts.splice(group(parts, at), [])),
        13 => {
            let copy = parts[group(parts, at)].to_vec();
            let to = group(parts, other);
            drop(parts.splice(to, copy));
        }
        // Changes that keep the form: another number, or two words of a kind exchanged.
        14..=18 => {
            let near = next(parts, at, Class::Number);
            parts[near] = corpus.like(parts[near], random);
        }
        19..=22 => {
            let near = next(parts, other, class(parts[at]).unwrap_or(Class::Name));
            parts.swap(at, near);
        }
        _ if random.percent(10) => parts.truncate(at),
        _ => {
            let from = &corpus.texts[random.below(corpus.texts.len())];
            let lines: Vec<_> = from.lines().collect();
            let to = line(parts, at).start;
            let taken = lines.get(random.below(lines.len())).copied().unwrap_or_default();
            drop(parts.splice(to..to, [taken, "\n"]));
        }
    }
}

/// The first word of a class from a place on, around the end; the word there where there is none.
fn next(parts: &[&str], at: usize, wanted: Class) -> usize {
    let from = (at..parts.len()).chain(0..at);
    from.into_iter().find(|place| class(parts[*place]) == Some(wanted)).unwrap_or(at)
}

/// The line around a word, with its end.
fn line(parts: &[&str], at: usize) -> std::ops::Range<usize> {
    let start = parts[..at].iter().rposition(|part| *part == "\n").map_or(0, |end| end + 1);
    let end =
        parts[at..].iter().position(|part| *part == "\n").map_or(parts.len(), |end| at + end + 1);
    start..end
}

/// The next bracket behind a word with all that is in it; the word alone where there is none.
fn group(parts: &[&str], at: usize) -> std::ops::Range<usize> {
    let Some(open) = parts[at..].iter().position(|part| ["(", "[", "{", "<"].contains(part)) else {
        return at..at + 1;
    };
    let mut depth = 0;
    for (end, part) in parts.iter().enumerate().skip(at + open) {
        match *part {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + open..end + 1;
        }
    }
    at..at + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_text_are_the_text() {
        let text = "  %0 = \"tiled.load\"() {field = @A, lower = array<i64: -2>} : () -> \
            !tiled.tile\n\t\u{fc}";
        assert_eq!(tokens(text).concat(), text);
        assert!(tokens(text).contains(&"!tiled.tile") && tokens(text).contains(&"@A"));
    }

    #[test]
    fn groups_and_lines() {
        let parts = tokens("a (b [c]) d\ne");
        assert_eq!(parts[group(&parts, 0)].concat(), "(b [c])");
        assert_eq!(parts[line(&parts, 2)].concat(), "a (b [c]) d\n");
        assert_eq!(group(&parts, parts.len() - 1), parts.len() - 1..parts.len());
    }

    #[test]
    fn damage_is_the_same_for_one_number() {
        let corpus = Corpus::new(vec!["param N\ngrid G = [0..N-1]\n".to_owned()]);
        let damaged = |index| mutate(&corpus.texts[0], &corpus, &mut Random::of_case(1, index));
        assert_eq!(damaged(7), damaged(7));
        assert!((0..100).filter(|index| damaged(*index) != corpus.texts[0]).count() > 80);
    }
}
