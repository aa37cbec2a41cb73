//! Source text and places in it.

use std::fmt;

/// One source file: what it is called and what it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path as the user gave it; diagnostics print it.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A range of bytes of one [`Source`], end exclusive.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

/// A line and a column, both from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Source {
    /// A source called `name` with the given text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }

    /// The file's name without folders and extension: the name of the program in it.
    pub fn stem(&self) -> &str {
        let file = self.name.rsplit(['/', '\\']).next().unwrap_or(&self.name);
        match file.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => file,
        }
    }

    /// The text of a span; empty where the span does not lie in this source.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// The line and column of a byte offset. An offset past the end is the end, one inside a
    /// character is that character.
    pub fn place(&self, offset: u32) -> Place {
        let mut end = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let before = self.text.get(..end).unwrap_or("");
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before.chars().rev().take_while(|&c| c != '\n').count() + 1;
        Place { line, column }
    }
}

impl Span {
    /// The bytes from `start` up to `end`.
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest span that holds both.
    pub fn to(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let source = Source::new("dir/heat.2d.stencil", "a\nüb\n");
        assert_eq!(source.place(0), Place { line: 1, column: 1 });
        assert_eq!(source.place(2), Place { line: 2, column: 1 });
        assert_eq!(source.place(3), Place { line: 2, column: 1 });
        assert_eq!(source.place(4), Place { line: 2, column: 2 });
        assert_eq!(source.place(99), Place { line: 3, column: 1 });
        assert_eq!(source.stem(), "heat.2d");
        assert_eq!(source.slice(Span::new(4, 5)), "b");
        assert_eq!(source.slice(Span::new(3, 900)), "");
    }
}
