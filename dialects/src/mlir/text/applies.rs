//! How many values the affine operations in IR text are made from.
//!
//! A statement reaches from the name of its result, or of an operation without results, to the next
//! one. Text in which these can't be told apart counts as one statement, which is never too little.
//!
//! MLIR's verifier asks of each operand of an affine operation whether it may stand in a bound. It
//! goes through `affine.apply` and through operations on `index`, once for each use of a result: a
//! chain in which each uses the one before twice takes time that doubles with each line.

use super::{Kind, Token};
use std::collections::HashMap;

/// Values that all affine operations are made from, counted once for each use.
pub const MOST: usize = 1 << 16;

/// The statements so far.
#[derive(Default)]
pub struct Applies<'t> {
    /// Values behind each result that the verifier goes through.
    known: HashMap<&'t str, usize>,
    open: Statement<'t>,
    /// The token before.
    last: &'t str,
    /// A value that is an operand unless `=` follows, and whether it counts a loop.
    value: Option<(&'t str, bool)>,
    name: Name,
    all: usize,
}

/// What lies between the definition of a result and the next one.
#[derive(Default)]
struct Statement<'t> {
    result: Option<&'t str>,
    /// Values behind its operands.
    behind: usize,
    /// The verifier goes through its result.
    open: bool,
    /// It has an affine operation.
    affine: bool,
}

/// The name of an operation without results, such as `memref.store`, as far as it came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Name {
    #[default]
    Nothing,
    Dialect(Kinds),
    /// The dialect's and a point.
    Point(Kinds),
    /// All. It is one if an operand or a bracket of operands follows.
    Whole(Kinds),
}

/// Whether the statement before a name has an affine operation, and whether the name is one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Kinds {
    before: bool,
    affine: bool,
}

impl Name {
    fn next(self, token: &Token<'_>, last: &str, before: bool) -> Self {
        let is_word = token.kind == Kind::Word && token.text.starts_with(char::is_alphabetic);
        match self {
            Self::Dialect(kinds) if token.text == "." => Self::Point(kinds),
            Self::Point(kinds) if is_word => Self::Whole(kinds),
            _ if last == "=" => Self::Nothing,
            _ if is_word => Self::Dialect(Kinds { before, affine: is_affine(token) }),
            _ if token.kind == Kind::Text => {
                Self::Whole(Kinds { before, affine: is_affine(token) })
            }
            _ => Self::Nothing,
        }
    }
}

/// Whether a token begins the name of an affine operation. A name in quotes may hide its letters.
fn is_affine(token: &Token<'_>) -> bool {
    let hidden = || token.text.starts_with("\"affine.") || token.text.contains('\\');
    token.text == "affine" || token.kind == Kind::Text && hidden()
}

impl<'t> Applies<'t> {
    /// Takes a token.
    pub fn next(&mut self, token: &Token<'t>) -> Result<(), String> {
        if let Name::Whole(Kinds { before, affine }) = self.name
            && (token.kind == Kind::Value || token.text == "(")
        {
            self.open.affine = before;
            self.end()?;
            self.open.affine = affine;
        }
        self.name = self.name.next(token, self.last, self.open.affine);
        // A number of results may stand before the sign: `%a:1 = ...`.
        let counts = token.text == ":"
            || self.last == ":" && token.text.starts_with(|c: char| c.is_ascii_digit());
        match self.value {
            Some((value, counter)) if token.text == "=" => {
                self.value = None;
                if counter {
                    self.known.remove(value);
                } else {
                    self.end()?;
                    self.open.result = Some(value);
                }
            }
            Some((value, _)) if !counts => {
                self.value = None;
                let behind = self.known.get(value).copied().unwrap_or(1);
                self.open.behind = self.open.behind.saturating_add(behind);
            }
            _ => {}
        }
        if is_affine(token) {
            self.open.affine = true;
            self.open.open |= self.last == "=";
        }
        self.open.open |= token.text == "index";
        if token.kind == Kind::Value {
            let name = token.text.split_once('#').map_or(token.text, |(name, _)| name);
            self.value = Some((name, self.last == "for"));
        }
        self.last = token.text;
        Ok(())
    }

    /// Ends the statement at hand.
    pub fn end(&mut self) -> Result<(), String> {
        let Statement { result, behind, open, affine } = std::mem::take(&mut self.open);
        if let Some(result) = result {
            match open {
                true => self.known.insert(result, behind.saturating_add(1)),
                false => self.known.remove(result),
            };
        }
        if affine {
            self.all = self.all.saturating_add(behind);
        }
        match self.all > MOST {
            false => Ok(()),
            true => Err(format!(
                "the affine operations before this one are made from more than {MOST} values, \
                 counted once for each use; write one affine.apply with a longer map"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;

    fn chain(line: impl Fn(usize) -> String, count: usize) -> Option<String> {
        let lines: String = (0..count).map(line).collect();
        check(&lines, "t").err().map(|error| error.message)
    }

    #[test]
    fn uses_of_results_add_up() {
        let lines: [&dyn Fn(usize, usize) -> String; 7] = [
            &|of, to| format!("%b{to} = affine.apply #m(%b{of}, %b{of})"),
            &|of, to| format!("%{to} = \"affine.apply\"(%{of}, %{of}) {{map = #m}}"),
            &|of, to| format!("%{to} = \"affine\\2Eapply\"(%{of}, %{of}) {{map = #m}}"),
            &|of, to| format!("%{to}:1 = affine.apply #m(%{of}#0, %{of}#0)"),
            &|of, to| format!("%a.{to} = affine.apply #m(%a.{of}, %a.{of})"),
            &|of, to| {
                let sum = format!("%b{to} = arith.addi %b{of}, %b{of} {{affine.x}} : index");
                format!("{sum} affine.store %v, %m[%b{to}]")
            },
            &|of, to| {
                format!(
                    "%b{to} = arith.addi %b{of}, %b{of} : index affine.for %i = 0 to %b{to} {{}}"
                )
            },
        ];
        for line in lines {
            let line = |n| line(n, n + 1) + "\n";
            assert_eq!(chain(line, 12), None, "{}", line(0));
            let message = chain(line, 26).unwrap_or_default();
            assert!(message.contains("more than 65536 values"), "{}: {message}", line(0));
        }
    }

    #[test]
    fn other_operations_and_single_uses_add_little() {
        let once = |n| format!("%b{} = affine.apply affine_map<(d0) -> (d0)>(%b0)\n", n + 1);
        assert_eq!(chain(once, 10_000), None);
        for kind in ["f32", "index"] {
            let sums = |n| format!("%b{} = arith.addi %b{n}, %b{n} : {kind}\n", n + 1);
            assert_eq!(chain(sums, 10_000), None);
        }
        let stored = |n| {
            format!("%b{} = arith.addf %b{n}, %b{n} : f32 affine.store %b{n}, %m[%i] : m\n", n + 1)
        };
        assert_eq!(chain(stored, 10_000), None);
        // A name that is defined anew is another value.
        let anew = |_| "%a = f()\n%b = affine.apply #m(%a, %a)\n%a = g(%b)\n".to_owned();
        assert_eq!(chain(anew, 1_000), None);
        // Names that begin alike are different values.
        let alike = |n| format!("%a.{} = affine.apply #m(%a.x, %a.x)\n", n + 1);
        assert_eq!(chain(alike, 10_000), None);
    }

    /// A store is a statement of its own: what it is made from is not what the value before is.
    #[test]
    fn operations_without_results_do_not_add_to_the_value_before() {
        let lines: [&dyn Fn(usize, usize) -> String; 3] = [
            &|of, to| {
                format!(
                    "%{to} = affine.apply #m(%{of})\nmemref.store %v, %s[%{of}, %{to}] : index\n"
                )
            },
            &|of, to| {
                format!("%{to} = affine.apply #m(%{of})\naffine.store %v, %s[%{of}, %{to}]\n")
            },
            &|of, to| {
                format!("%{to} = \"affine.apply\"(%{of})\n\"memref.store\"(%v, %{of}, %{to})\n")
            },
        ];
        for line in lines {
            assert_eq!(chain(|n| line(n, n + 1), 100), None, "{}", line(0, 1));
        }
    }
}
