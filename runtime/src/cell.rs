//! The type of a cell of a file: a number, or numbers in vecs and structs.

use crate::element::Element;
use std::collections::BTreeSet;

/// Structs and vecs within each other.
pub const MOST_DEPTH: usize = 200;

/// The type of a cell as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// A number.
    Number(Element),
    /// A `bool`: a byte, 0 if it is false.
    Bool,
    /// A vec: its length and the type of its lanes.
    Vec(usize, Box<Layout>),
    /// Named members in order.
    Struct(Vec<(String, Layout)>),
}

impl Layout {
    /// The type of the parts of a complex number: a struct of two floats named `re` and `im`.
    pub fn complex(&self) -> Option<Element> {
        let Self::Struct(members) = self else { return None };
        let [(re, Self::Number(first)), (im, Self::Number(second))] = members.as_slice() else {
            return None;
        };
        let known = first == second && matches!(first, Element::F32 | Element::F64);
        (known && re == "re" && im == "im").then_some(*first)
    }

    /// The lengths of the vecs within each other that a cell is, the outermost first, and the type
    /// of the innermost lanes.
    pub fn lanes(&self) -> (Vec<usize>, &Layout) {
        let (mut lengths, mut inner) = (Vec::new(), self);
        while let Self::Vec(length, of) = inner {
            lengths.push(*length);
            inner = of;
        }
        (lengths, inner)
    }

    /// How many structs are inside each other. A complex number is none.
    pub fn structs(&self) -> usize {
        match self {
            Self::Number(_) | Self::Bool => 0,
            Self::Vec(_, of) => of.structs(),
            Self::Struct(_) if self.complex().is_some() => 0,
            Self::Struct(members) => {
                1 + members.iter().map(|(_, member)| member.structs()).max().unwrap_or(0)
            }
        }
    }

    /// The type of the cells that some leaves make up. A leaf is its path from the field's name on,
    /// such as `.v.0`, and its type. None where the leaves contradict each other, or lie deeper
    /// than [`MOST_DEPTH`].
    pub fn of(leaves: &[(&str, Layout)]) -> Option<Layout> {
        Self::within(leaves, MOST_DEPTH)
    }

    fn within(leaves: &[(&str, Layout)], depth: usize) -> Option<Layout> {
        if let [("", leaf)] = leaves {
            return Some(leaf.clone());
        }
        let depth = depth.checked_sub(1)?;
        let mut parts: Vec<(&str, Vec<(&str, Layout)>)> = Vec::new();
        for (path, leaf) in leaves {
            let path = path.strip_prefix('.').filter(|path| !path.starts_with('.'))?;
            let (name, rest) = path.split_at(path.find('.').unwrap_or(path.len()));
            match parts.last_mut() {
                Some((last, inner)) if *last == name => inner.push((rest, leaf.clone())),
                _ => parts.push((name, vec![(rest, leaf.clone())])),
            }
        }
        let mut names = BTreeSet::new();
        let parts: Vec<(&str, Layout)> = parts
            .into_iter()
            .map(|(name, inner)| {
                let new = !name.is_empty() && names.insert(name);
                Some((name, new.then(|| Layout::within(&inner, depth))??))
            })
            .collect::<Option<_>>()?;
        let is_lane = |name: &str| name.starts_with(|letter: char| letter.is_ascii_digit());
        if let Some((first, lane)) = parts.first()
            && is_lane(first)
        {
            let mut numbered = parts.iter().enumerate();
            let alike =
                numbered.all(|(at, (name, other))| *name == at.to_string() && other == lane);
            return alike.then(|| Layout::Vec(parts.len(), Box::new(lane.clone())));
        }
        if parts.iter().any(|(name, _)| is_lane(name)) {
            return None;
        }
        Some(Layout::Struct(
            parts.into_iter().map(|(name, layout)| (name.to_owned(), layout)).collect(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_that_contradict_each_other_have_no_layout() {
        let of = |paths: &[&str]| {
            let leaves: Vec<_> =
                paths.iter().map(|path| (*path, Layout::Number(Element::F32))).collect();
            Layout::of(&leaves)
        };
        let deep = |depth: usize| ".a".repeat(depth);
        assert!(of(&[".a", ".b.0", ".b.1"]).is_some());
        assert!(of(&[&deep(MOST_DEPTH)]).is_some());
        for paths in [
            &["", ""][..],
            &[".", "."],
            &[".a", ".a"],
            &[".a", ".b", ".a"],
            &["a", "b"],
            &[".a", ".0"],
            &[".0", ".a"],
            &[".0", ".2"],
            &[".a.", ".a."],
            &["..a"],
            &[&deep(MOST_DEPTH + 1)],
            &[&deep(100_000), &deep(100_000)],
            &[&".".repeat(1 << 20)],
        ] {
            assert_eq!(of(paths), None);
        }
    }
}
