//! `--emit=c`: a C header and a C file with a function that runs the program. Plan and PTX are
//! bytes of the file, which needs nothing but `libstencil_runtime`. The code of a processor is an
//! object file beside it, to be linked.
//!
//! No name of a program can break the C: a parameter is `size_`, `scalar_`, `field_` or `value_`
//! and the name, in which every character but letters and digits of ASCII is `_`; where two would
//! be the same, the later one gets `_2`, `_3` and so on.

mod sl;

use std::fmt::Write;
use std::path::Path;
use stencil_compiler::{Element, Failure, Plan};
use stencil_passes::affine;
use stencil_runtime::plan::{FieldDecl, Node, Role};

/// The parameter for the steps that a run took, behind all others.
const STEPS_TAKEN: &str = "steps_taken";

/// A header and the C file that includes it.
pub struct Files {
    pub header: String,
    pub source: String,
}

/// The files of a plan and its PTX; without PTX they are for a processor. `stem` is their name
/// without an extension, `sl` the name of the function of a program of SL.
pub fn files(
    stem: &Path,
    plan: &Plan,
    ptx: Option<&str>,
    sl: Option<&str>,
) -> Result<Files, Failure> {
    let name = stem.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let unreadable = |letter: char| letter.is_control() || "\"\\\u{fffd}".contains(letter);
    // Two question marks may begin a trigraph.
    if name.chars().any(unreadable) || name.contains("??") {
        return Err(Failure::user(format!(
            "{}: no name that a C file can include; give -o a name without quotes, backslashes, \
             line breaks and `??`",
            stem.display()
        )));
    }
    if ["stencil", "stencilc"].contains(&name.as_str()) {
        return Err(Failure::user(format!(
            "{}: {name}.h is a header of the library, which each emitted file includes; give -o \
             another name",
            stem.display()
        )));
    }
    let parts = Parts::of(&name, plan);
    let json = plan.to_json().map_err(Failure::user)?;
    let code = match ptx {
        Some(ptx) => Code::Ptx(ptx),
        None => Code::Linked(plan.code_symbol().map_err(Failure::user)? + &symbol_end(stem)),
    };
    let header = parts.header(&name, &code);
    let mut files = Files { header, source: parts.source(&name, &json, &code) };
    if let Some(function) = sl {
        sl::add(&mut files, function, &parts, (plan, ptx.is_some()))?;
    }
    Ok(files)
}

/// The end of the symbol of the code in an object file. It makes object files of one program under
/// two names link together.
pub fn symbol_end(stem: &Path) -> String {
    format!("_{}", prefix(&stem.file_name().unwrap_or_default().to_string_lossy()))
}

/// Where the code of the program is.
enum Code<'a> {
    /// In the C file.
    Ptx(&'a str),
    /// In an object file, under this symbol.
    Linked(String),
}

/// What a parameter is for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Size,
    Scalar(Element),
    Field { element: Element, rank: usize, constant: bool },
    Value(Element),
}

/// A parameter of the function.
struct Parameter {
    /// In the program.
    name: String,
    /// In C.
    c_name: String,
    kind: Kind,
    /// A note beside its type: the cells of a field, the default of a scalar. It may be empty.
    about: String,
}

struct Parts {
    /// What the names of functions begin with.
    prefix: String,
    parameters: Vec<Parameter>,
    /// The sizes that the compile has fixed, as text.
    sizes: String,
    /// Whether the caller gives the steps. A function of affine loops has its own.
    steps: bool,
    /// Whether a run may end early, and tells its steps.
    until: bool,
}

impl Parts {
    fn of(name: &str, plan: &Plan) -> Self {
        let sizes = plan.params.iter().map(|name| (name.as_str(), Kind::Size, String::new()));
        let mut wanted: Vec<_> = sizes.collect();
        wanted.extend(plan.scalars.iter().map(|scalar| {
            let default = scalar.default.as_ref();
            let about = default.map(|default| format!("default {default}"));
            (scalar.name.as_str(), Kind::Scalar(scalar.element), about.unwrap_or_default())
        }));
        let reduction = |field: &&FieldDecl| field.role == Role::Reduction;
        let (values, fields): (Vec<_>, Vec<_>) = plan.fields.iter().partition(reduction);
        wanted.extend(values.into_iter().chain(fields).filter_map(|field| {
            let extents: Vec<_> =
                field.extents.iter().map(|extent| format!("({extent})")).collect();
            let cells = format!("{} cells", extents.join(" x "));
            let about = if extents.is_empty() { String::new() } else { cells };
            Some((&*field.name, of_field(field)?, about))
        }));
        let mut parameters: Vec<Parameter> = Vec::new();
        for (name, kind, about) in wanted {
            let prefix = match kind {
                Kind::Size => "size_",
                Kind::Scalar(_) => "scalar_",
                Kind::Field { .. } => "field_",
                Kind::Value(_) => "value_",
            };
            let plain = format!("{prefix}{}", in_c(name));
            let numbered = (2..).map(|number| format!("{plain}_{number}"));
            let is_free = |name: &String| parameters.iter().all(|other| other.c_name != *name);
            let c_name = [plain.clone()].into_iter().chain(numbered).find(is_free);
            let c_name = c_name.unwrap_or_default();
            parameters.push(Parameter { name: name.to_owned(), c_name, kind, about });
        }
        let until = plan.nodes().into_iter().any(|node| matches!(node, Node::Until(_)));
        let steps = plan.settings.strategy != affine::STRATEGY;
        Self { prefix: prefix(name), parameters, sizes: sizes_of(plan), steps, until }
    }

    fn declaration(&self, on_device: bool) -> String {
        let mut parameters = Vec::new();
        if on_device {
            parameters.extend(["int32_t device".to_owned(), "void *stream".to_owned()]);
        }
        parameters.extend(self.steps.then(|| "int64_t steps".to_owned()));
        parameters.extend(self.parameters.iter().map(|parameter| {
            let name = &parameter.c_name;
            match parameter.kind {
                Kind::Size => format!("int64_t {name}"),
                Kind::Scalar(element) => format!("{} {name}", c_type(element)),
                Kind::Field { .. } if on_device => format!("uint64_t {name}"),
                Kind::Field { element, constant: true, .. } => {
                    format!("const {} *{name}", c_type(element))
                }
                Kind::Field { element, .. } | Kind::Value(element) => {
                    format!("{} *{name}", c_type(element))
                }
            }
        }));
        if self.until {
            parameters.push(format!("int64_t *{STEPS_TAKEN}"));
        }
        let suffix = if on_device { "_device" } else { "" };
        format!("int {}_run{suffix}(\n    {})", self.prefix, parameters.join(",\n    "))
    }

    fn header(&self, name: &str, code: &Code<'_>) -> String {
        let prefix = &self.prefix;
        let guard = format!("STENCIL_PROGRAM_{}_H", prefix.to_ascii_uppercase());
        let host = self.declaration(false);
        let about = self.about();
        let name = name.replace("*/", "* /");
        let what = if self.steps { "so many steps" } else { "all loops" };
        let (place, link, device) = match code {
            Code::Ptx(_) => {
                let what = "The same on any device, in a stream of it (null for one of its own). \
                            Fields are\n * device memory; one that is not const is undefined after \
                            a failure.";
                let device = self.declaration(true);
                ("first CUDA device", String::new(), format!("/* {what} */\n{device};\n\n"))
            }
            Code::Linked(_) => ("processor", format!("{name}.o and "), String::new()),
        };
        format!(
            r#"/* Runs the stencil program {name}. Made by stencilc; link {link}libstencil_runtime. */
#ifndef {guard}
#define {guard}

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Runs {what} on the {place}. Fields are row-major without padding, and belong to
 * the caller. One that is not const has the result afterwards, and shares no memory with another;
 * after a failure it is as before. A value may be null. 16-bit floats are passed by their bits.
 *
{about} * Returns 0, or a status of stencil.h, whose text {prefix}_message has. Any thread may call this.
 * The first call loads the program. */
{host};

{device}/* Copies the message of this thread's last failure, ended by a zero, as far as there is room; and
 * returns the bytes of the whole message. */
size_t {prefix}_message(char *buffer, size_t capacity);

/* Frees the program, until the next call loads it again. A call that another thread begins at the
 * same time may fail with STENCIL_STATUS_HANDLE. */
void {prefix}_unload(void);

#ifdef __cplusplus
}}
#endif

#endif
"#
        )
    }

    /// Lines of the comment: cells of the fields, defaults of scalars, sizes that are fixed.
    fn about(&self) -> String {
        let mut lines = String::new();
        for Parameter { c_name, about, .. } in &self.parameters {
            if !about.is_empty() {
                lines += &format!(" * - {c_name}: {about}\n");
            }
        }
        if !self.sizes.is_empty() {
            lines += &format!(" * - sizes of the program: {}\n", self.sizes);
        }
        if self.until {
            let about = "the steps of the run, fewer than steps where it ended early; may be NULL";
            lines += &format!(" * - {STEPS_TAKEN}: {about}\n");
        }
        if lines.is_empty() { lines } else { lines + " *\n" }
    }

    fn source(&self, name: &str, plan: &str, code: &Code<'_>) -> String {
        let prefix = &self.prefix;
        let plan = bytes(plan);
        let host = self.function(false, code);
        let (code, device) = match code {
            Code::Ptx(ptx) => {
                let text = bytes(ptx);
                let device = self.function(true, code);
                (format!("static const unsigned char ptx_text[] = {{\n{text}}};\n"), device)
            }
            Code::Linked(symbol) => {
                (format!("extern const void *const {symbol}[];\n"), String::new())
            }
        };
        let comment = name.replace("*/", "* /");
        format!(
            r#"/* Runs the stencil program {comment}. Made by stencilc; link libstencil_runtime. */
#include "{name}.h"

#include <stencil.h>

static const unsigned char plan_json[] = {{
{plan}}};

{code}
static stencil_program program;

{host}
{device}
size_t {prefix}_message(char *buffer, size_t capacity) {{
    return stencil_error_message(buffer, capacity);
}}

void {prefix}_unload(void) {{
    stencil_program_free(program);
}}
"#
        )
    }

    fn function(&self, on_device: bool, program: &Code<'_>) -> String {
        let steps = self.steps.then(|| "stencil_run_steps(run, steps)".to_owned());
        let mut calls = Vec::from_iter(steps);
        if on_device {
            calls.insert(0, "stencil_run_device(run, device)".to_owned());
            calls.insert(1, "stencil_run_stream(run, stream)".to_owned());
        }
        let mut last = vec!["stencil_run_execute(run)".to_owned()];
        for Parameter { name, c_name, kind, .. } in &self.parameters {
            let name = quoted(name);
            match kind {
                Kind::Size => calls.push(format!("stencil_run_size(run, {name}, {c_name})")),
                Kind::Scalar(element) => calls.push(format!(
                    "stencil_run_scalar(run, {name}, {}, &{c_name})",
                    code(*element)
                )),
                Kind::Field { element, rank, constant } => {
                    let element = code(*element);
                    calls.push(format!("stencil_run_shape(run, {name}, {rank}, shape)"));
                    calls.push(match (on_device, constant) {
                        (true, _) => format!(
                            "stencil_run_bind_device(run, {name}, {element}, {rank}, shape, \
                             {c_name})"
                        ),
                        (false, true) => format!(
                            "stencil_run_bind_const(run, {name}, {element}, {rank}, shape, NULL, \
                             {c_name})"
                        ),
                        (false, false) => format!(
                            "stencil_run_bind(run, {name}, {element}, {rank}, shape, NULL, \
                             {c_name})"
                        ),
                    });
                }
                Kind::Value(element) => last.push(format!(
                    "!{c_name} ? STENCIL_STATUS_OK\n                : stencil_run_reduction(run, \
                     {name}, {}, {c_name})",
                    code(*element)
                )),
            }
        }
        let mut text = format!("{} {{\n", self.declaration(on_device));
        if self.parameters.iter().any(|parameter| matches!(parameter.kind, Kind::Field { .. })) {
            text += "    int64_t shape[8];\n";
        }
        if self.until {
            text += "    stencil_report report;\n";
            last.push("stencil_run_report(run, &report)".to_owned());
        }
        let load = match program {
            Code::Ptx(_) => {
                "once(\n        plan_json, sizeof plan_json, ptx_text, sizeof ptx_text, ".to_owned()
            }
            Code::Linked(symbol) => {
                format!("linked(\n        plan_json, sizeof plan_json, \"{symbol}\", {symbol}, ")
            }
        };
        text += "    stencil_run run = 0;\n    stencil_status status = stencil_load_";
        text += &format!("{load}&program);\n");
        calls.insert(0, "stencil_run_new(program, &run)".to_owned());
        for call in calls.iter().chain(&last) {
            let _ = writeln!(text, "    if (status == 0)\n        status = {call};");
        }
        if self.until {
            let _ = writeln!(
                text,
                "    if (status == 0 && {STEPS_TAKEN}) *{STEPS_TAKEN} = report.steps;"
            );
        }
        text + "    if (run != 0) stencil_run_free(run);\n    return (int)status;\n}\n"
    }
}

fn of_field(field: &FieldDecl) -> Option<Kind> {
    let (element, rank) = (field.element, field.extents.len());
    match field.role {
        Role::State => Some(Kind::Field { element, rank, constant: false }),
        Role::Const => Some(Kind::Field { element, rank, constant: true }),
        Role::Reduction => Some(Kind::Value(element)),
        Role::Temp => None,
    }
}

/// The sizes that a compile has fixed: `N = 100`.
fn sizes_of(plan: &Plan) -> String {
    let sizes = plan.constants.iter().map(|(name, size)| format!("{name} = {size}"));
    sizes.collect::<Vec<_>>().join(", ")
}

/// A name with the letters that C allows everywhere.
fn in_c(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

/// What the names of functions begin with: no digit, no `_`, and no name of `stencil.h`.
fn prefix(name: &str) -> String {
    let name = in_c(name);
    let is_plain = name.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let of_library = name == "stencil" || name.starts_with("stencil_");
    if is_plain && !of_library { name } else { format!("program_{name}") }
}

fn c_type(element: Element) -> &'static str {
    match element {
        Element::F16 | Element::Bf16 | Element::U16 => "uint16_t",
        Element::F32 => "float",
        Element::F64 => "double",
        Element::I8 => "int8_t",
        Element::I16 => "int16_t",
        Element::I32 => "int32_t",
        Element::I64 => "int64_t",
        Element::U8 => "uint8_t",
        Element::U32 => "uint32_t",
        Element::U64 => "uint64_t",
    }
}

fn code(element: Element) -> String {
    format!("STENCIL_ELEMENT_{}", element.name().to_ascii_uppercase())
}

/// A string of C.
fn quoted(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b' ' => {
            char::from(byte).to_string()
        }
        _ => format!("\\{byte:03o}"),
    };
    format!("\"{}\"", text.bytes().map(one).collect::<String>())
}

/// The bytes of a text as elements of an array.
fn bytes(text: &str) -> String {
    let mut lines = String::with_capacity(4 * text.len());
    for line in text.as_bytes().chunks(24) {
        for byte in line {
            let _ = write!(lines, "{byte},");
        }
        lines.push('\n');
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_free_in_c() {
        assert_eq!(prefix("heat2d"), "heat2d");
        assert_eq!(prefix("affine-gap"), "affine_gap");
        assert_eq!(prefix("3d"), "program_3d");
        assert_eq!(prefix("stencil"), "program_stencil");
        assert_eq!(prefix("stencil_x"), "program_stencil_x");
        assert_eq!(prefix("Wärme"), "W_rme");
        assert_eq!(quoted("a\"?\\\u{e4}1"), "\"a\\042\\077\\134\\303\\2441\"");
    }
}
