//! Operations of our dialects that are not in the generic form, at which MLIR's parser ends without
//! a message.

use super::{Kind, Token, Tokens};
use crate::error::{Error, Place};

const DIALECTS: [&str; 3] = ["stencil", "tiled", "peer"];

/// The error of MLIR's parser, with a remedy where it has none and one is known; or why a text was
/// not read, where the parser says nothing.
pub fn refused(error: Option<Error>, text: &str, name: &str) -> Error {
    let Some(error) = error else { return unread(text, name) };
    match error.message.starts_with("source must contain a single top-level operation") {
        true => Error {
            message: "the file has several operations at its top; put all of them into one \
                      `module { ... }`"
                .to_owned(),
            ..error
        },
        false => error,
    }
}

/// The error of a text that MLIR's parser refuses without a message.
fn unread(text: &str, name: &str) -> Error {
    let tokens: Vec<_> = Tokens::new(text).collect();
    let Some((token, operation)) = first_bare(&tokens) else {
        let message = "the file has no operation; expected a builtin.module";
        return Error::new(Place::file(name), message);
    };
    let place = Place { file: name.to_owned(), line: token.line, column: token.column };
    let message = format!(
        "the operation can't be parsed: those of the dialects {} have the generic form alone; \
         write \"{operation}\"() {{...}} : () -> (), as in docs/ir.md",
        DIALECTS.join(", ")
    );
    Error::new(place, message)
}

/// The first operation of ours whose name has no quotes. The name of an attribute has an `=` behind
/// it, or stands alone between brackets and commas.
fn first_bare<'a, 't>(tokens: &'a [Token<'t>]) -> Option<(&'a Token<'t>, String)> {
    tokens.windows(4).enumerate().find_map(|(place, window)| {
        let [dialect, dot, operation, next] = window else { return None };
        let is_name = DIALECTS.contains(&dialect.text) && dot.text == ".";
        let before = place.checked_sub(1).and_then(|place| tokens.get(place));
        let begins = before.is_none_or(|before| ![",", "."].contains(&before.text));
        let ends = ["=", ",", "."].contains(&next.text) || next.kind == Kind::Close;
        let found = is_name && operation.kind == Kind::Word && begins && !ends;
        found.then(|| (dialect, format!("{}.{}", dialect.text, operation.text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> (usize, usize) {
        let error = unread(text, "a.mlir");
        assert_eq!(error.message.contains("generic form"), error.place.line > 0, "{text}");
        (error.place.line, error.place.column)
    }

    #[test]
    fn an_operation_without_quotes_is_found() {
        for (text, line, column) in [
            ("module {\n  stencil.grid @G\n}", 2, 3),
            ("module { peer.wait %a : i32 }", 1, 10),
            ("%0 = tiled.load %a : f32", 1, 6),
            ("module attributes {stencil.params = [\"N\"]} {\n stencil.grid() : () -> () }", 2, 2),
            ("func.func @f(%x: i64 {stencil.step}) {\n stencil.x {a = 1} : () -> ()}", 2, 2),
        ] {
            assert_eq!(place(text), (line, column), "{text}");
        }
        for text in [
            "",
            "\"stencil.grid\"() : () -> ()",
            "// stencil.grid @G",
            "f(%x {stencil.step}, %y {stencil.a, stencil.b = 1, stencil.c}) { stencil.a = 1 }",
        ] {
            assert_eq!(place(text), (0, 0), "{text}");
        }
    }
}
