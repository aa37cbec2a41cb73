//! PTX with its symbols numbered, so that code is compared and not the names in it.

use std::collections::HashMap;

/// Replaces the names of kernels, functions and variables by `symbolN`, N by order of appearance
/// of their declarations; parameters, which are named after kernels, change with them. Labels lose
/// the number of their function; comments and empty lines go.
pub fn number_symbols(ptx: &str) -> String {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    let lines = ptx.lines().filter(is_code);
    let ptx = lines.map(|line| format!("{line}\n")).collect::<String>();
    let mut numbers = HashMap::new();
    for name in ptx.lines().filter_map(declared) {
        let next = numbers.len();
        numbers.entry(name).or_insert(next);
    }
    let mut numbered = String::with_capacity(ptx.len());
    let mut rest = ptx.as_str();
    while let Some(start) = rest.find(is_name) {
        let end = rest[start..].find(|c| !is_name(c)).map_or(rest.len(), |length| start + length);
        numbered.push_str(&rest[..start]);
        let name = &rest[start..end];
        let (stem, parameter) = match name.rfind("_param_") {
            Some(at) => name.split_at(at),
            None => (name, ""),
        };
        match numbers.get(stem) {
            Some(number) => numbered.push_str(&format!("symbol{number}{parameter}")),
            None => numbered.push_str(&without_function(name)),
        }
        rest = &rest[end..];
    }
    numbered + rest
}

/// A label, or the name of a function's own memory, without the function's number.
fn without_function(name: &str) -> String {
    let number = |c: char| c.is_ascii_digit();
    for stem in ["$L__BB", "__local_depot"] {
        if let Some(rest) = name.strip_prefix(stem) {
            return format!("{stem}{}", rest.trim_start_matches(number));
        }
    }
    name.to_owned()
}

/// The name that a line declares: `.entry NAME(`, `.func ... NAME(`, `.shared .b8 NAME[...]`.
fn declared(line: &str) -> Option<&str> {
    let has = |directives: &[&str]| line.split_whitespace().any(|word| directives.contains(&word));
    let end = if has(&[".entry", ".func"]) {
        // A function's result stands in parentheses of its own before the name.
        line.rfind('(')
    } else if has(&[".shared", ".const", ".global"]) {
        line.find(['[', '=', ';'])
    } else {
        return None;
    };
    line[..end.unwrap_or(line.len())].split(|c| !is_name(c)).rfind(|name| !name.is_empty())
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_$%.".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(kernel: &str, other: &str, shared: &str) -> String {
        format!(
            "\t// .globl\t{kernel}\n.const .align 8 .b8 {kernel}_factors[16] = {{1, 2}};\n\
             .visible .entry {kernel}(\n\t.param .u64 {kernel}_param_0\n)\n{{\n\
             \t.shared .align 16 .b8 {shared}[64];\n\tld.param.b64 \t%rd1, [{kernel}_param_0];\n\
             \tmov.b64 \t%rd2, {shared};\n\
             \tld.const.b64 \t%rd3, [{kernel}_factors+8];\n\tret;\n}}\n\
             .visible .entry {other}(\n\t.param .u64 {other}_param_0\n)\n{{\n\tret;\n}}\n"
        )
    }

    #[test]
    fn names_do_not_matter() {
        let one = number_symbols(&code("heat_10", "heat_1", "__wg_heat_10_0"));
        assert_eq!(one, number_symbols(&code("first", "second", "tile")));
        assert!(one.contains("[symbol1_param_0]"), "{one}");
        assert!(one.contains("[symbol0+8]") && one.contains(".b8 symbol2[64]"), "{one}");
        assert!(!one.contains("heat"), "{one}");
    }

    #[test]
    fn numbers_of_functions_comments_and_empty_lines_do_not_matter() {
        let one = number_symbols("$L__BB0_12:\n\tmov.b64 \t%SPL, __local_depot0;\n\tret;\n");
        let other = "\n\t// a\n$L__BB3_12:\n\n\tmov.b64 \t%SPL, __local_depot3;\n\tret;\n";
        assert_eq!(one, number_symbols(other));
        assert_ne!(one, number_symbols(&other.replace("_12", "_13")));
    }

    #[test]
    fn everything_else_matters() {
        let code = code("a", "b", "c");
        let one = number_symbols(&code);
        for (old, new) in [("+8]", "+0]"), ("[64]", "[32]"), ("%rd3", "%rd4"), ("{1, 2}", "{1, 3}")]
        {
            assert_ne!(one, number_symbols(&code.replace(old, new)), "{old}");
        }
        // The second kernel's parameter is not the first one's.
        assert_ne!(one, number_symbols(&code.replace("[a_param_0]", "[b_param_0]")));
    }

    #[test]
    fn a_function_with_a_result_is_named_after_it() {
        let line = ".func  (.param .b32 func_retval0) __nv_exp(";
        assert_eq!(declared(line), Some("__nv_exp"));
        assert_eq!(declared("\tst.shared.b32 \t[%rd1], %r2;"), None);
    }
}
