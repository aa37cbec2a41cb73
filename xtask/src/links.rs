//! Links between the documents: each file and each heading that a Markdown file points to is there.

use std::path::Path;

use anyhow::{Result, bail};

use crate::project;

/// Checks the links of every Markdown file; returns how many there are.
///
/// # Errors
/// Lists every link that leads nowhere.
pub fn check(root: &Path) -> Result<usize> {
    let mut broken = Vec::new();
    let mut count = 0;
    for path in project::files(root)? {
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        for (line, link) in links(&text) {
            count += 1;
            if !leads_somewhere(&path, &text, link) {
                let name = path.strip_prefix(root).unwrap_or(&path).display();
                broken.push(format!("{name}:{line}: {link}"));
            }
        }
    }
    if broken.is_empty() {
        return Ok(count);
    }
    bail!("{} links lead nowhere:\n  {}", broken.len(), broken.join("\n  "));
}

/// Lines outside fenced code, numbered from 1.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Targets of `[text](target)` and `[name]: target`, with the lines they stand in.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let is_definition = line.starts_with('[');
        if let Some((_, target)) = line.split_once("]: ").filter(|_| is_definition) {
            found.push((number, target.trim()));
        }
        // Text between two backquotes is code.
        for part in line.split('`').step_by(2) {
            let targets = part.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(targets.map(|(target, _)| (number, target)));
        }
    }
    found
}

fn leads_somewhere(from: &Path, text: &str, link: &str) -> bool {
    if link.starts_with("http://") || link.starts_with("https://") || link.starts_with("mailto:") {
        return true;
    }
    let (file, heading) = match link.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (link, None),
    };
    if file.is_empty() {
        return heading.is_some_and(|heading| has_heading(text, heading));
    }
    let path = from.with_file_name("").join(file);
    match heading {
        None => path.exists(),
        Some(heading) => {
            std::fs::read_to_string(path).is_ok_and(|text| has_heading(&text, heading))
        }
    }
}

/// Whether a document has the heading whose anchor this is, as code forges make anchors: lower
/// case, spaces as hyphens, other punctuation dropped.
fn has_heading(text: &str, anchor: &str) -> bool {
    prose(text).filter(|(_, line)| line.starts_with('#')).any(|(_, line)| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).eq(anchor.chars())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# The title, once more
See [a](a.md) and [b](b.md#x), not `c[0](d)`.
```
[code](gone.md)
```
[ref]: e.md
";

    #[test]
    fn links_are_read_outside_code() {
        assert_eq!(links(TEXT), [(2, "a.md"), (2, "b.md#x"), (6, "e.md")]);
    }

    #[test]
    fn headings_are_found_by_their_anchors() {
        assert!(has_heading(TEXT, "the-title-once-more"));
        assert!(!has_heading(TEXT, "the-title"));
    }

    #[test]
    fn links_lead_to_files_and_headings_that_exist() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
        let leads = |link| leads_somewhere(&here, TEXT, link);
        assert!(leads("Cargo.toml") && leads("src") && leads("#the-title-once-more"));
        assert!(leads("https://example.org/x"));
        assert!(!leads("gone.md") && !leads("#gone") && !leads("Cargo.toml#gone"));
    }
}
