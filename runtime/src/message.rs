//! Messages of bounded length: they quote inputs, which may be of any length.

/// Letters of a line of a message that are shown.
const MOST_LETTERS: usize = 400;

/// Lines of a message that are shown.
const MOST_LINES: usize = 1000;

/// A text whose long lines have lost their middle, and that ends after many lines.
pub fn shortened(text: &str) -> String {
    let lines = text.split('\n').count();
    let mut shown: Vec<_> = text.split('\n').take(MOST_LINES).map(short).collect();
    if lines > MOST_LINES {
        shown.push(format!("[{} lines more]", lines - MOST_LINES));
    }
    shown.join("\n")
}

fn short(line: &str) -> String {
    let letters = line.chars().count();
    if letters <= MOST_LETTERS {
        return line.to_owned();
    }
    let half = MOST_LETTERS / 2;
    let head: String = line.chars().take(half).collect();
    let tail: String = line.chars().skip(letters - half).collect();
    format!("{head} [{} letters more] {tail}", letters - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_of_messages_lose_their_middle() {
        let long = "x".repeat(1 << 20);
        let text = shortened(&format!("'{long}' is no pass\nsee --help"));
        assert!(text.len() < 500, "{}", text.len());
        assert!(text.starts_with("'xx") && text.ends_with("is no pass\nsee --help"));
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn long_messages_lose_their_end() {
        let text = "a\n".repeat(1500);
        let shown = shortened(&text);
        assert!(shown.ends_with("a\n[501 lines more]"), "{shown}");
    }
}
