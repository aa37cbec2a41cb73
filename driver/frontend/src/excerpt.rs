//! A source as messages show it: of long lines only what lies around the places in question.

use crate::source::{Source, Span};
use codespan_reporting::files::{Error, Files};
use std::ops::Range;

/// Characters of a line that are shown.
const LONGEST: usize = 200;

/// Characters before the place in question.
const BEFORE: usize = 80;

/// Stands for what is left out.
const GAP: &str = "...";

/// A source whose long lines are cut.
pub struct Excerpt<'s> {
    source: &'s Source,
    text: String,
    lines: Vec<Line>,
}

/// A line of the source and what is kept of it.
struct Line {
    /// Where it starts in the source.
    start: usize,
    /// Where it starts in the excerpt.
    at: usize,
    /// Bytes of [`GAP`] before what is kept.
    gap: usize,
    /// The bytes of the source that are kept.
    kept: Range<usize>,
}

impl<'s> Excerpt<'s> {
    /// The source around some places, the most important one first.
    pub fn new(source: &'s Source, places: &[Span]) -> Self {
        let mut excerpt = Self { source, text: String::new(), lines: Vec::new() };
        let mut start = 0;
        for line in source.text.split_inclusive('\n') {
            excerpt.add(start, line, places);
            start += line.len();
        }
        if source.text.is_empty() || source.text.ends_with('\n') {
            excerpt.add(start, "", places);
        }
        excerpt
    }

    fn add(&mut self, start: usize, line: &str, places: &[Span]) {
        let (at, end) = (self.text.len(), start + line.len());
        let content = line.trim_end_matches(['\n', '\r']);
        let longer = |text: &str| text.len() > LONGEST && text.chars().count() > LONGEST;
        if !longer(content) {
            self.text.push_str(line);
            self.lines.push(Line { start, at, gap: 0, kept: start..end });
            return;
        }
        let place = places.iter().map(|span| span.start as usize);
        let place = place.filter(|place| (start..end).contains(place)).map(|place| place - start);
        let place = place.min().map_or(0, |place| floor(content, place));
        let before = content.get(..place).unwrap_or_default();
        let first = before.char_indices().rev().nth(BEFORE - 1).map_or(0, |(index, _)| index);
        let rest = content.get(first..).unwrap_or_default();
        let length = rest.char_indices().nth(LONGEST).map_or(rest.len(), |(index, _)| index);
        let (front, back) = (first > 0, length < rest.len());
        self.text.push_str(if front { GAP } else { "" });
        self.text.push_str(rest.get(..length).unwrap_or_default());
        self.text.push_str(if back { GAP } else { "" });
        self.text.push_str(line.get(content.len()..).unwrap_or_default());
        let kept = start + first..start + first + length;
        self.lines.push(Line { start, at, gap: if front { GAP.len() } else { 0 }, kept });
    }

    /// Where an offset of the source lies in the excerpt; what is left out lies at its edge.
    pub fn position(&self, offset: usize) -> usize {
        let next = self.lines.partition_point(|line| line.start <= offset);
        let Some(line) = next.checked_sub(1).and_then(|index| self.lines.get(index)) else {
            return 0;
        };
        let kept = floor(&self.source.text, offset).clamp(line.kept.start, line.kept.end);
        line.at + line.gap + kept - line.kept.start
    }

    fn line(&self, index: usize) -> Result<&Line, Error> {
        let max = self.lines.len().saturating_sub(1);
        self.lines.get(index).ok_or(Error::LineTooLarge { given: index, max })
    }
}

/// The offset, moved back into the text and onto the start of a character.
fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

impl<'a> Files<'a> for Excerpt<'_> {
    type FileId = ();
    type Name = &'a str;
    type Source = &'a str;

    fn name(&'a self, (): ()) -> Result<&'a str, Error> {
        Ok(&self.source.name)
    }

    fn source(&'a self, (): ()) -> Result<&'a str, Error> {
        Ok(&self.text)
    }

    fn line_index(&'a self, (): (), byte: usize) -> Result<usize, Error> {
        Ok(self.lines.partition_point(|line| line.at <= byte).saturating_sub(1))
    }

    fn line_range(&'a self, (): (), index: usize) -> Result<Range<usize>, Error> {
        let end = self.lines.get(index + 1).map_or(self.text.len(), |next| next.at);
        Ok(self.line(index)?.at..end)
    }

    fn column_number(&'a self, (): (), index: usize, byte: usize) -> Result<usize, Error> {
        let line = self.line(index)?;
        let offset = line.kept.start + byte.saturating_sub(line.at + line.gap);
        let before = self.source.text.get(line.start..floor(&self.source.text, offset));
        Ok(before.unwrap_or_default().chars().count() + 1)
    }
}
