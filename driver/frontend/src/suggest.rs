//! "Did you mean": the name nearest to a misspelt one.

/// The candidate with the fewest edits, if it is near enough to be meant.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = wrong.chars().count();
    let limit = length.div_ceil(3);
    candidates
        .into_iter()
        .filter(|name| name.chars().count().abs_diff(length) <= limit && length <= 64)
        .map(|name| (distance(wrong, name), name))
        .filter(|(edits, name)| *edits <= limit && *edits < name.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, name)| name)
}

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`; case
/// counts as half a reason, so a change of case alone is no edit at all.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().flat_map(char::to_lowercase).collect();
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let at =
                |row: &[usize], index: usize| row.get(index).copied().unwrap_or(usize::MAX / 2);
            let mut best = at(&last, j) + usize::from(x != y);
            best = best.min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(y) && b.get(j - 1) == Some(x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        assert_eq!(nearest("feild", ["field", "fn"]), Some("field"));
        assert_eq!(nearest("ALPHA", ["alpha"]), Some("alpha"));
        assert_eq!(nearest("K", ["A", "N"]), None);
        assert_eq!(nearest("alfa", ["alpha", "beta"]), Some("alpha"));
        assert_eq!(nearest("quantity", ["alpha", "beta"]), None);
    }
}
