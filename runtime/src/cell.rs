//! The type of a cell of a file: a number, or numbers in vecs and structs.

use crate::element::Element;

/// The type of a cell as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A number.
    Number(Element),
    /// A vec: its length and the type of its lanes.
    Vec(usize, Box<Layout>),
    /// Named members in order.
    Struct(Vec<(String, Layout)>),
}

impl Layout {
    /// The type of the cells that some leaves make up. A leaf is its path from the field's name on,
    /// such as `.v.0`, and its type. None where the leaves contradict each other.
    pub fn of(leaves: &[(&str, Element)]) -> Option<Layout> {
        if let [("", element)] = leaves {
            return Some(Layout::Number(*element));
        }
        let mut parts: Vec<(&str, Vec<(&str, Element)>)> = Vec::new();
        for (path, element) in leaves {
            let path = path.strip_prefix('.').unwrap_or(path);
            let (name, rest) = path.split_at(path.find('.').unwrap_or(path.len()));
            match parts.last_mut() {
                Some((last, inner)) if *last == name => inner.push((rest, *element)),
                _ => parts.push((name, vec![(rest, *element)])),
            }
        }
        let parts: Vec<(&str, Layout)> = parts
            .into_iter()
            .map(|(name, inner)| Some((name, Layout::of(&inner)?)))
            .collect::<Option<_>>()?;
        let (first, lane) = parts.first()?;
        if first.starts_with(|letter: char| letter.is_ascii_digit()) {
            let alike = parts.iter().all(|(_, other)| other == lane);
            return alike.then(|| Layout::Vec(parts.len(), Box::new(lane.clone())));
        }
        Some(Layout::Struct(
            parts.into_iter().map(|(name, layout)| (name.to_owned(), layout)).collect(),
        ))
    }
}
