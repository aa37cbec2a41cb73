//! The functions of the paper on SL: `runX` and `runXSetData`, on top of the function of the plan.
//!
//! They have no result, as in the paper. What happened is told by `runXStatus` and `runXMessage`.

use super::{Files, Kind, Parts, c_type};
use std::fmt::Write;
use stencil_compiler::sl::{COUNT, DATA, LAYERS, READ, SIZES};
use stencil_compiler::{Failure, Plan};

/// What the functions are made from.
struct Host<'p> {
    /// `runX`
    name: &'p str,
    /// The type of a cell.
    cell: &'static str,
    /// The sizes, x first, with their letters.
    sizes: Vec<(&'static str, char)>,
    /// Whether there is read-only data, and whether it has layers or a count.
    read: Option<Extent>,
    /// Scalars: their types and names in C.
    scalars: Vec<(&'static str, &'p str)>,
    /// Whether there are functions for device memory.
    on_device: bool,
    /// Whether a run may end early.
    until: bool,
}

/// What the number of elements of the read-only data is compared with.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    /// Cells of the matrix.
    Cells,
    /// Layers of the matrix.
    Layers,
    /// Nothing: it is a size of its own.
    Count,
}

/// Adds the functions to the files of a plan. Without code for a device there are none for one.
pub fn add(
    files: &mut Files,
    name: &str,
    parts: &Parts,
    (plan, on_device): (&Plan, bool),
) -> Result<(), Failure> {
    has_open_sizes(plan)?;
    let taken = ["_run", "_run_device", "_message", "_unload"];
    let own = taken.iter().any(|end| name == format!("{}{end}", parts.prefix));
    if own {
        return Err(Failure::user(format!(
            "a function in C can't be called {name} here; choose another FunctionName"
        )));
    }
    let letters = SIZES.into_iter().zip(['x', 'y', 'z']);
    let rank = plan.field(DATA).map_or(0, |field| field.extents.len());
    let read = plan.field(READ).map(|field| match field.extents.len() {
        more if more > rank => Extent::Layers,
        _ if plan.params.iter().any(|size| size == COUNT) => Extent::Count,
        _ => Extent::Cells,
    });
    let scalars = parts.parameters.iter().filter_map(|parameter| match parameter.kind {
        Kind::Scalar(element) => Some((c_type(element), parameter.c_name.as_str())),
        _ => None,
    });
    let host = Host {
        name,
        cell: plan.field(DATA).map_or("float", |field| c_type(field.element)),
        sizes: letters.take(rank).collect(),
        read,
        scalars: scalars.collect(),
        on_device,
        until: parts.until,
    };
    if let Some(place) = files.header.rfind("#ifdef __cplusplus\n}") {
        files.header.insert_str(place, &host.header());
    }
    files.source = files.source.replacen(
        "#include <stencil.h>\n",
        "#include <stencil.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n",
        1,
    );
    files.source += &host.source(parts);
    Ok(())
}

impl Host<'_> {
    /// The arguments behind the matrix.
    fn numbers(&self) -> String {
        let mut text = String::new();
        for (_, letter) in &self.sizes {
            let _ = write!(text, "int {letter}, ");
        }
        text += "int iterations";
        for (ty, name) in &self.scalars {
            let _ = write!(text, ", {ty} {name}");
        }
        text
    }

    fn run(&self) -> String {
        format!("void {}({} *data, {})", self.name, self.cell, self.numbers())
    }

    fn run_on_device(&self) -> String {
        let place = "int32_t device, void *stream, uint64_t data";
        format!("int {}Device(\n    {place},\n    {})", self.name, self.numbers())
    }

    fn header(&self) -> String {
        let (name, cell) = (self.name, self.cell);
        let run = self.run();
        let iterations = match self.until {
            true => format!(
                "/* The iterations of the last run that did not fail. */\n\
                 int64_t {name}Iterations(void);\n\n"
            ),
            false => String::new(),
        };
        let on_device = match self.on_device {
            true => format!(
                "/* The same with device memory, on any device, in a stream of it (null for one of \
                 its own). They\n * return the status. The read-only data stays the caller's, and \
                 must live until the last run. The\n * matrix is undefined after a failure. */\n\
                 {};\nint {name}DeviceSetData(uint64_t data, \
                 int count);\n\n",
                self.run_on_device()
            ),
            false => String::new(),
        };
        format!(
            r#"/* The functions of SL. The matrix is dense, with x fastest. It has the result afterwards; after
 * a failure it is as before. They are for one thread at a time. */
{run};

/* Keeps a copy of the read-only data for all runs to come; none where there are no elements. */
void {name}SetData(const {cell} *data, int count);

/* The status of the last call: 0, or a status of stencil.h. */
int {name}Status(void);

/* Copies the message of the last failure, ended by a zero, as far as there is room; and returns the
 * bytes of the whole message. */
size_t {name}Message(char *buffer, size_t capacity);

{iterations}{on_device}"#
        )
    }

    fn source(&self, parts: &Parts) -> String {
        let (name, cell) = (self.name, self.cell);
        let letters: Vec<_> = self.sizes.iter().map(|(_, letter)| letter.to_string()).collect();
        let negative: Vec<_> = letters.iter().map(|letter| format!("{letter} < 0")).collect();
        let cells: Vec<_> = letters.iter().map(|letter| format!("(int64_t){letter}")).collect();
        let (negative, cells) = (negative.join(" || "), cells.join(" * "));
        let check = self.check();
        let host = self.call(parts, false);
        let run = self.run();
        let (statics, functions) = self.additions(parts, &negative, &cells);
        format!(
            r#"
static {cell} *read_data;
static int64_t read_count;
{statics}static int last_status;
static char own_message[1024];

/* Keeps a status and its message. Without a message it keeps the library's. */
static int keep(int status, const char *message) {{
    last_status = status;
    snprintf(own_message, sizeof own_message, "%s", message);
    if (status != 0 && *message == 0) stencil_error_message(own_message, sizeof own_message);
    return status;
}}

/* Whether the sizes can be those of a run with the read-only data that a function was given. */
static int is_possible(int64_t cells, int64_t count, const char *function) {{
{check}}}

{run} {{
    if ({negative}) {{
        keep(STENCIL_STATUS_ARGUMENT, "{name}: a size is negative");
        return;
    }}
    if (!is_possible({cells}, read_count, "{name}SetData")) return;
    keep({host}, "");
}}

void {name}SetData(const {cell} *data, int count) {{
    {cell} *copy = NULL;
    if (count < 0 || (count > 0 && data == NULL)) {{
        keep(STENCIL_STATUS_ARGUMENT, "{name}SetData: no data, or a negative count");
        return;
    }}
    if (count > 0) {{
        copy = ({cell} *)malloc((size_t)count * sizeof *copy);
        if (copy == NULL) {{
            keep(STENCIL_STATUS_MEMORY, "{name}SetData: out of memory");
            return;
        }}
        memcpy(copy, data, (size_t)count * sizeof *copy);
    }}
    free(read_data);
    read_data = copy;
    read_count = count;
    keep(0, "");
}}

int {name}Status(void) {{
    return last_status;
}}

size_t {name}Message(char *buffer, size_t capacity) {{
    size_t length = strlen(own_message);
    if (buffer != NULL && capacity > 0) {{
        size_t part = length < capacity - 1 ? length : capacity - 1;
        memcpy(buffer, own_message, part);
        buffer[part] = 0;
    }}
    return length;
}}

{functions}"#
        )
    }

    /// Variables and functions that not every program has.
    fn additions(&self, parts: &Parts, negative: &str, cells: &str) -> (String, String) {
        let name = self.name;
        let (mut statics, mut functions) = (String::new(), String::new());
        if self.on_device {
            statics += "static uint64_t read_address;\nstatic int64_t read_address_count;\n";
        }
        if self.until {
            statics += "static int64_t last_iterations;\n";
            let body = "    return last_iterations;";
            functions += &format!("int64_t {name}Iterations(void) {{\n{body}\n}}\n\n");
        }
        if self.on_device {
            functions += &self.device_source(&self.call(parts, true), negative, cells);
        }
        (statics, functions)
    }

    /// The functions for device memory, of which one makes a call of the plan's function.
    fn device_source(&self, call: &str, negative: &str, cells: &str) -> String {
        let (name, run) = (self.name, self.run_on_device());
        format!(
            r#"{run} {{
    if ({negative}) return keep(STENCIL_STATUS_ARGUMENT, "{name}Device: a size is negative");
    if (!is_possible({cells}, read_address_count, "{name}DeviceSetData")) return last_status;
    return keep({call}, "");
}}

int {name}DeviceSetData(uint64_t data, int count) {{
    if (count < 0 || (count > 0 && data == 0))
        return keep(STENCIL_STATUS_ARGUMENT, "{name}DeviceSetData: no data, or a negative count");
    read_address = data;
    read_address_count = count;
    return keep(0, "");
}}
"#
        )
    }

    /// The body of `is_possible`.
    fn check(&self) -> String {
        let name = self.name;
        match self.read {
            Some(Extent::Cells) => format!(
                r#"    char text[512];
    if (count >= cells) return 1;
    snprintf(text, sizeof text, "{name} reads %lld elements, and %s was given %lld",
             (long long)cells, function, (long long)count);
    keep(STENCIL_STATUS_ARGUMENT, text);
    return 0;
"#
            ),
            Some(_) => r#"    char text[512];
    (void)cells;
    if (count > 0) return 1;
    snprintf(text, sizeof text, "no read-only data: call %s first", function);
    keep(STENCIL_STATUS_ARGUMENT, text);
    return 0;
"#
            .to_owned(),
            None => r#"    (void)cells;
    (void)count;
    (void)function;
    return 1;
"#
            .to_owned(),
        }
    }

    /// The call of the plan's function.
    fn call(&self, parts: &Parts, on_device: bool) -> String {
        let count = if on_device { "read_address_count" } else { "read_count" };
        let cells: Vec<_> =
            self.sizes.iter().map(|(_, letter)| format!("(int64_t){letter}")).collect();
        let cells = cells.join(" * ");
        let mut arguments = Vec::new();
        if on_device {
            arguments.push("device, stream".to_owned());
        }
        arguments.push("iterations".to_owned());
        for parameter in &parts.parameters {
            let letter = self.sizes.iter().find(|(size, _)| *size == parameter.name);
            let is_read = parameter.name == READ;
            arguments.push(match (parameter.kind, letter) {
                (Kind::Size, Some((_, letter))) => letter.to_string(),
                (Kind::Size, None) if parameter.name == LAYERS => {
                    format!("{cells} > 0 ? {count} / ({cells}) : 0")
                }
                (Kind::Size, None) => count.to_owned(),
                (Kind::Scalar(_), _) => parameter.c_name.clone(),
                (Kind::Value(_), _) => "NULL".to_owned(),
                _ if is_read && on_device => "read_address".to_owned(),
                _ if is_read => "read_data".to_owned(),
                _ => "data".to_owned(),
            });
        }
        if self.until {
            arguments.push("&last_iterations".to_owned());
        }
        let suffix = if on_device { "_device" } else { "" };
        format!("{}_run{suffix}({})", parts.prefix, arguments.join(", "))
    }
}

/// Refuses sizes that the compile fixed: the functions take all of them.
fn has_open_sizes(plan: &Plan) -> Result<(), Failure> {
    let Some(fixed) = SIZES.iter().find(|size| plan.constants.contains_key(**size)) else {
        return Ok(());
    };
    Err(Failure::user(format!(
        "the functions of SL take all sizes, and {fixed} is fixed; leave out -D {fixed}=..."
    )))
}

#[cfg(test)]
mod tests {
    use super::super::files;
    use std::path::Path;
    use stencil_compiler::{Control, Level, Session, Source};

    #[test]
    fn values_stand_before_fields_and_a_message_needs_no_buffer() {
        let text = "NumDimensions 1\nStencilSize (1)\nDataType float\nFunctionName Mean\n\
                    CellValue { return (get(-1) + get(1)) / 2; }\nEdgeValue { return 0; }\n\
                    Converged { return value == get(0); }\n";
        let source = Source::new("Mean.sl", text);
        let levels = [Level::Plan, Level::Ptx];
        let compiled = Session::default().compile(&source, &levels, Control::default()).unwrap();
        let plan = compiled.plan().unwrap();
        let files = files(Path::new("Mean"), plan, compiled.ptx(), Some("Mean")).unwrap();
        let place = |text| files.header.find(text).unwrap();
        assert!(place("uint32_t *value_converged,") < place("float *field_data"));
        assert!(files.source.contains("if (buffer != NULL && capacity > 0)"));
    }
}
