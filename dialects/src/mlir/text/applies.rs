//! How many values the operations `affine.apply` in IR text are made from.
//!
//! MLIR's verifier asks of each `affine.apply` whether its operands may stand in a bound, and goes
//! through those that are results of others once for each use: a chain in which each uses the one
//! before twice takes time that doubles with each line.

use super::{Kind, Token};
use std::collections::HashMap;

/// Values that all operations are made from, counted once for each use.
pub const MOST: usize = 1 << 16;

/// The operations so far.
#[derive(Default)]
pub struct Applies<'t> {
    /// Values behind each result.
    known: HashMap<&'t str, usize>,
    /// The result that the statement defines.
    result: Option<&'t str>,
    /// The operation at hand: its result, and the values behind its operands.
    open: Option<(&'t str, usize)>,
    /// The two tokens before.
    before: [&'t str; 2],
    /// A name after `%` that is an operand, unless `=` follows.
    name: Option<&'t str>,
    all: usize,
}

impl<'t> Applies<'t> {
    /// Takes a token.
    pub fn next(&mut self, token: &Token<'t>) -> Result<(), String> {
        match self.name.take() {
            Some(name) if token.text == "=" => {
                self.close()?;
                self.known.remove(name);
                self.result = Some(name);
            }
            Some(name) => {
                let behind = self.known.get(name).copied().unwrap_or(1);
                if let Some((_, sum)) = &mut self.open {
                    *sum = sum.saturating_add(behind);
                }
            }
            None => {}
        }
        let [second, first] = self.before;
        if token.kind == Kind::Word && first == "%" {
            self.name = Some(token.text);
        }
        let plain = token.text == "apply" && (second, first) == ("affine", ".");
        if plain || token.text == "\"affine.apply\"" {
            self.open = self.result.take().map(|result| (result, 1));
        }
        self.before = [first, token.text];
        Ok(())
    }

    /// Ends the operation at hand.
    fn close(&mut self) -> Result<(), String> {
        if let Some((result, sum)) = self.open.take() {
            self.known.insert(result, sum);
            self.all = self.all.saturating_add(sum);
        }
        match self.all > MOST {
            false => Ok(()),
            true => Err(format!(
                "the operations affine.apply before this one are made from more than {MOST} \
                 values, counted once for each use; write one affine.apply with a longer map"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check;

    fn chain(line: impl Fn(usize) -> String, count: usize) -> Option<String> {
        let lines: String = (0..count).map(line).collect();
        check(&format!("{lines}%end = f()\n"), "t").err().map(|error| error.message)
    }

    #[test]
    fn uses_of_results_add_up() {
        let map = "affine_map<(d0, d1) -> (d0 + d1)>";
        let twice = |n| format!("%b{} = affine.apply {map}(%b{n}, %b{n})\n", n + 1);
        assert_eq!(chain(twice, 14), None);
        let message = chain(twice, 26).unwrap_or_default();
        assert!(message.contains("more than 65536 values"), "{message}");
        let generic = |n| format!("%{} = \"affine.apply\"(%{n}, %{n}) {{map = #m}}\n", n + 1);
        assert_eq!(chain(generic, 14), None);
        assert!(chain(generic, 26).is_some());
    }

    #[test]
    fn other_operations_and_single_uses_add_little() {
        let once = |n| format!("%b{} = affine.apply affine_map<(d0) -> (d0)>(%b0)\n", n + 1);
        assert_eq!(chain(once, 10_000), None);
        let sums = |n| format!("%b{} = arith.addi %b{n}, %b{n} : index\n", n + 1);
        assert_eq!(chain(sums, 10_000), None);
        // A name that is defined anew is another value.
        let anew = |_| "%a = f()\n%b = affine.apply #m(%a, %a)\n%a = g(%b)\n".to_owned();
        assert_eq!(chain(anew, 1_000), None);
    }
}
