"""Plain C loops of a program: what its user would write by hand, made from its stencil level.

Each function of a step is a nest of loops over its piece, with its point function as the body. A
field that is read beside its point has two arrays. Rows away from the rim have no tests of a
boundary rule. Threads share the slowest dimension; a sweep runs in row-major order on one.
"""

import re

from module import C_TYPES, Module, Unsupported, name, number

BINARY = {
    "addf": "+", "addi": "+", "subf": "-", "subi": "-", "mulf": "*", "muli": "*", "divf": "/",
    "divsi": "/", "remsi": "%", "andi": "&", "ori": "|", "xori": "^", "shli": "<<",
    "shrsi": ">>",
}
LESS = {"maxsi": ">", "minsi": "<", "maxnumf": ">", "minnumf": "<"}
CASTS = {"extf", "truncf", "sitofp", "fptosi", "extsi", "trunci", "index_cast"}
COMPARES = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
UNSIGNED = {"divui": "/", "remui": "%", "shrui": ">>"}
COORDINATES = "pqr"


class Printer:
    """The text of the C program."""

    def __init__(self, module):
        self.module, self.lines = module, []

    def at(self, field, place):
        """The number of a cell at coordinates, as C."""
        text = ""
        for (low, high), one in zip(self.module.grids[self.module.fields[field]["grid"]], place,
                                    strict=True):
            text = f"({text}) * ({high} - {low} + 1) + " if text else ""
            text += f"({one} - {low})"
        return text

    def value(self, field, place):
        return f"{name(field)}[{self.at(field, place)}]"

    def outside(self, field, offset, place):
        """The value of a read that may leave the grid, as lines and an expression."""
        grid = self.module.grids[self.module.fields[field]["grid"]]
        rule = self.module.fields[field]["rule"]
        moved = [f"({at} + {cells})" for at, cells in zip(place, offset, strict=True)]
        mapping = {"nearest": "NEAREST", "periodic": "PERIODIC", "reflect": "REFLECT"}
        which = mapping.get(rule, "NEAREST")
        inner = [f"{which}({one}, {low}, {high})"
                 for one, (low, high) in zip(moved, grid, strict=True)]
        value = self.value(field, inner)
        if not rule.startswith("@"):
            return value
        arguments, body = self.module.functions[rule[1:].strip('"')]
        result = self.fresh("o")
        kind = C_TYPES[self.module.fields[field]["type"]]
        within = " && ".join(f"{one} >= {low} && {one} <= {high}"
                             for one, (low, high) in zip(moved, grid, strict=True))
        self.lines.append(f"{kind} {result}; if ({within}) {result} = {self.value(field, moved)};")
        self.lines.append("else {")
        (found,) = self.body(arguments, body, moved, False, value)
        self.lines.append(f"{result} = {found}; }}")
        return result

    def fresh(self, letter):
        self.count = getattr(self, "count", 0) + 1
        return f"{letter}{self.count}"

    def argument(self, attributes, place, checked, nearest):
        """What an argument of a function stands for."""
        read = re.search(r'stencil.(read|current) = @"?([^",]+)', attributes)
        if read:
            offset = [int(n) for n in re.search(r"array<i64: (.*?)>", attributes)[1].split(",")]
            field = read[2]
            if checked and read[1] == "read" and self.module.fields[field]["rule"]:
                return self.outside(field, offset, place)
            moved = [f"{at} + {cells}" if cells else at
                     for at, cells in zip(place, offset, strict=True)]
            next_value = "_next" if read[1] == "current" else ""
            return f"{name(field)}{next_value}[{self.at(field, moved)}]"
        if "stencil.nearest" in attributes:
            return nearest
        kind, _, text = attributes.partition(" = ")
        if kind == "stencil.scalar":
            return "s_" + re.sub(r"\W", "_", text.strip('@"'))
        if kind == "stencil.param":
            return text.strip('"')
        if kind == "stencil.coord":
            return place[int(text.split(" ")[0])]
        if kind == "stencil.step":
            return "step"
        raise Unsupported(f"the argument {attributes}")

    def body(self, arguments, body, place, checked, nearest=None):
        """Appends the lines of a function; its results."""
        names = {}
        for argument, kind, attributes in arguments:
            value = self.argument(attributes, place, checked, nearest)
            names[argument] = self.fresh("a")
            self.lines.append(f"const {C_TYPES[kind]} {names[argument]} = {value};")
        choices = []
        for line in body:
            found = re.match(r"(?:(%\S+?)(?::\d+)? = )?\"?([\w.]+)\"?(.*)$", line)
            if line.startswith("return"):
                return [names[one] for one in re.findall(r"%[\w#-]+", line)]
            if line.startswith("} else {"):
                self.lines.append("} else {")
            elif line == "}":
                self.lines.append("}")
                choices.pop()
            elif found[2] == "scf.yield":
                for to, one in zip(choices[-1], re.findall(r"%[\w#-]+", line), strict=False):
                    self.lines.append(f"{to} = {names[one]};")
            elif found[2] == "scf.if":
                condition, kinds = re.match(r" (%\S+) -> \((.*)\) \{", found[3]).groups()
                kinds, results = kinds.split(", "), []
                for index, kind in enumerate(kinds):
                    results.append(self.fresh("c"))
                    names[found[1] + (f"#{index}" if len(kinds) > 1 else "")] = results[-1]
                    self.lines.append(f"{C_TYPES[kind]} {results[-1]};")
                choices.append(results)
                self.lines.append(f"if ({names[condition]}) {{")
            else:
                kind, value = self.operation(found[2], found[3], names)
                names[found[1]] = self.fresh("v")
                self.lines.append(f"const {C_TYPES[kind]} {names[found[1]]} = {value};")
        raise Unsupported("a function without an end")

    def operation(self, op, rest, names):
        """Type and expression of an operation."""
        kind = rest.rsplit(" ", 1)[-1]
        values = [names[one] for one in re.findall(r"%[\w#-]+", rest)]
        dialect, _, op = op.partition(".")
        if (dialect, op) == ("arith", "constant"):
            return ("i1", number(rest.strip(), "i1")) if ":" not in rest else (
                kind, number(rest.split(":")[0].strip(), kind))
        if dialect == "stencil":
            return kind, self.value(re.search(r'field = @"?(.*?)"?\}', rest)[1], values)
        if dialect == "math":
            short = "f" if kind == "f32" else ""
            called = {"absf": "fabs", "powf": "pow", "ctpop": None}.get(op, op)
            return kind, f"{called}{short}({', '.join(values)})"
        if op in BINARY:
            return kind, f"{values[0]} {BINARY[op]} {values[1]}"
        if op in UNSIGNED:
            cast = C_TYPES["u" + kind]
            return kind, f"({cast}){values[0]} {UNSIGNED[op]} ({cast}){values[1]}"
        if op in LESS:
            return kind, f"{values[0]} {LESS[op]} {values[1]} ? {values[0]} : {values[1]}"
        if op in CASTS:
            return kind, f"({C_TYPES[kind]}){values[0]}"
        if op == "extui":
            source = re.search(r": (\w+) to", rest)[1]
            cast = "" if source == "i1" else f"({C_TYPES['u' + source]})"
            return kind, f"{cast}{values[0]}"
        if op == "negf":
            return kind, f"-{values[0]}"
        if op == "select":
            return kind, f"{values[0]} ? {values[1]} : {values[2]}"
        if op in ("cmpi", "cmpf"):
            which = rest.split(",")[0].strip()
            if which in ("uno", "ord"):
                return "i1", f"{'!' if which == 'ord' else ''}isunordered({', '.join(values)})"
            sign = COMPARES[which[-2:]]
            if op == "cmpi" and which[0] == "u":
                cast = f"({C_TYPES['u' + kind]})"
                return "i1", f"{cast}{values[0]} {sign} {cast}{values[1]}"
            return "i1", f"{values[0]} {sign} {values[1]}"
        raise Unsupported(f"the operation {dialect}.{op}")

    def loops(self, box, body, parallel, checks=None):
        """A nest of loops over a box; `body(place, checked)` appends the code of a point."""
        place = list(COORDINATES[: len(box)])
        if parallel:
            self.lines.append(f"#pragma omp parallel for {parallel}".rstrip())
        for at, (low, high) in list(zip(place, box, strict=True))[:-1]:
            self.lines.append(f"for (int64_t {at} = {low}; {at} <= {high}; {at}++) {{")
        at, (low, high) = place[-1], box[-1]
        if checks and len(box) > 1:
            outer = " && ".join(f"{one} >= {a} && {one} <= {b}"
                                for one, (a, b) in zip(place, checks[:-1], strict=False))
            self.lines += [
                f"const int inner = {outer};",
                f"const int64_t xa = inner ? MAX({low}, {checks[-1][0]}) : {high} + 1;",
                f"const int64_t xb = inner ? MIN({high}, {checks[-1][1]}) : {high};",
            ]
            parts = [(low, f"MIN(xa - 1, {high})", True), ("xa", "xb", False),
                     (f"MAX(xb + 1, xa)", high, True)]
        else:
            parts = [(low, high, bool(checks))]
        for first, last, checked in parts:
            if parallel is not None and not checked and len(box) > 1:
                simd = "omp simd " + parallel if parallel else "GCC ivdep"
                self.lines.append(f"#pragma {simd}")
            self.lines.append(f"for (int64_t {at} = {first}; {at} <= {last}; {at}++) {{")
            body(place, checked)
            self.lines.append("}")
        self.lines += ["}"] * (len(box) - 1)

    def reads(self, function):
        """The reads of a function: field, offset and whether of the same sweep."""
        for _, _, attributes in self.module.functions[function][0]:
            read = re.search(r'stencil.(read|current) = @"?([^",]+)', attributes)
            if read:
                offset = re.search(r"array<i64: (.*?)>", attributes)[1].split(",")
                yield read[2], [int(n) for n in offset], read[1] == "current"

    def moved(self, item):
        """The fields whose new values need an array of their own, and whether it is a sweep."""
        all_reads = [read for function, _ in item["pieces"] for read in self.reads(function)]
        sweep = any(current for *_, current in all_reads)
        beside = {field for field, offset, current in all_reads if any(offset) or current}
        return [field for field in item["updates"] if field in beside], sweep

    def apply(self, item):
        """The code of a function of a step."""
        moved, sweep = self.moved(item)
        others = [one for one in self.module.items if "pieces" in one and one is not item]
        for field in moved:
            if any(field in one["updates"] and one_boxes(one) != one_boxes(item)
                   for one in others):
                self.lines.append(f"copy({name(field)}_next, {name(field)}, n_{name(field)});")
        for function, box in item["pieces"]:
            checks = self.checks(function, box)

            def point(place, checked, function=function):
                results = self.body(*self.module.functions[function], place, checked)
                for field, result in zip(item["updates"], results, strict=True):
                    target = name(field) + ("_next" if field in moved else "")
                    self.lines.append(f"{target}[{self.at(field, place)}] = {result};")

            self.loops(box, point, None if sweep else "", checks)
        return moved

    def checks(self, function, box):
        """The box whose points read no cell outside a grid; none where all do so."""
        ruled = [(field, offset) for field, offset, current in self.reads(function)
                 if self.module.fields[field]["rule"] and any(offset) and not current]
        if not ruled:
            return None
        checks = []
        for dimension in range(len(box)):
            lows, highs = [], []
            for field, offset in ruled:
                low, high = self.module.grids[self.module.fields[field]["grid"]][dimension]
                lows.append(f"{low} + {max(0, -offset[dimension])}")
                highs.append(f"{high} - {max(0, offset[dimension])}")
            checks.append((nested("MAX", lows), nested("MIN", highs)))
        return checks

    def reduce(self, item):
        """The code of a reduction."""
        facts = self.module.fields[item["field"]]
        kind = C_TYPES[facts["type"]]
        operation, arguments = item["reduce"], self.module.functions[item["function"]]
        box = self.module.grids[item["grid"]]
        starts = {"sum": "0", "any": "0", "all": "1"}
        start = starts.get(operation) or limit(facts["type"], operation == "min")
        self.lines.append(f"{kind} acc = {start};")
        sign = {"sum": "+", "any": "||", "all": "&&"}.get(operation, operation)

        def point(place, checked):
            (value,) = self.body(*arguments, place, checked)
            whole = f"{operation.upper()}(acc, {value})"
            text = whole if sign == operation else f"acc {sign} {value}"
            self.lines.append(f"acc = {text};")

        self.loops(box, point, f"reduction({sign}:acc)", self.checks(item["function"], box))
        self.lines.append(f"{name(item['field'])}[0] = acc;")
        return []

    def steps(self):
        """The functions of the items, and the code of a step."""
        calls = []
        for index, item in enumerate(self.module.items):
            self.lines.append(f"static void item_{index}(int64_t step) {{")
            for field, facts in self.module.fields.items():
                kind = C_TYPES[facts["type"]]
                for end in ("", "_next"):
                    own = name(field) + end
                    self.lines.append(f"{kind} *restrict {own} = g_{own};")
            moved = self.apply(item) if "pieces" in item else self.reduce(item)
            self.lines += [f"SWAP(g_{name(field)}, g_{name(field)}_next);" for field in moved]
            self.lines.append("}")
            calls.append((item["repeat"], f"item_{index}(step);"))
        return nest(calls)


def one_boxes(item):
    return [box for _, box in item["pieces"]]


def limit(kind, top):
    """The greatest or the least number of a type."""
    if kind[0] in "fb":
        return "INFINITY" if top else "-INFINITY"
    bits = int(kind.strip("ui"))
    least = 0 if kind[0] == "u" else -(1 << (bits - 1))
    return f"{least + (1 << bits) - 1 if top else least}"


def nested(operation, texts):
    texts = sorted(set(texts))
    result = texts[0]
    for text in texts[1:]:
        result = f"{operation}({result}, {text})"
    return result


def nest(calls, depth=0):
    """Calls with their repetitions: neighbours of one number are repeated together."""
    lines, rest = [], list(calls)
    while rest:
        repeat, call = rest[0]
        if len(repeat) <= 2 * depth:
            lines.append(call)
            rest.pop(0)
            continue
        number, count = repeat[2 * depth : 2 * depth + 2]
        group = []
        while rest and rest[0][0][2 * depth : 2 * depth + 1] == [number]:
            group.append(rest.pop(0))
        at = f"i{depth}"
        lines.append(f"for (int {at} = 0; {at} < {count}; {at}++) {{")
        lines += [*nest(group, depth + 1), "}"]
    return lines


HEAD = """
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <omp.h>
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define NEAREST(at, low, high) MIN(MAX(at, low), high)
#define PERIODIC(at, low, high) \\
    (low + (((at) - low) % (high - low + 1) + (high - low + 1)) % (high - low + 1))
#define REFLECT(at, low, high) \\
    ((at) < low ? 2 * low - (at) : (at) > high ? 2 * high - (at) : (at))
#define SWAP(a, b) { void *swapped = a; a = b; b = swapped; }
#define copy(to, from, cells) _Pragma("omp parallel for") \\
    for (int64_t cell = 0; cell < cells; cell++) to[cell] = from[cell]
static void *space(int64_t bytes) {
    char *start = aligned_alloc(64, (bytes + (2 << 20)) / 64 * 64);
    memset(start, 0, (bytes + (2 << 20)) / 64 * 64);
    return start + (1 << 20);
}
static void input(const char *file, void *to, int64_t bytes) {
    FILE *from = fopen(file, "rb");
    if (!from || (int64_t)fread(to, 1, bytes, from) != bytes) exit(1);
    fclose(from);
}
static void output(const char *file, const void *from, int64_t bytes) {
    FILE *to = fopen(file, "wb");
    if (!to || (int64_t)fwrite(from, 1, bytes, to) != bytes || fclose(to)) exit(1);
}
"""


def program(text, sizes):
    """The C program of a module: `program STEPS REPEATS` reads NAME.in of each field, writes
    NAME.out of each state field and prints the seconds of each repeat."""
    printer = Printer(Module(text))
    module, lines = printer.module, printer.lines
    lines += [f"#define {param} ((int64_t){size})" for param, size in sizes.items()]
    for scalar, (kind, value) in module.scalars.items():
        short = re.sub(r"\W", "_", scalar)
        lines.append(f"static const {C_TYPES[kind]} s_{short} = {value};")
    starts, copies, inputs, outputs = [], [], [], []
    for field, facts in module.fields.items():
        kind, short = C_TYPES[facts["type"]], name(field)
        cells = " * ".join(f"({high} - {low} + 1)" for low, high in module.grids[facts["grid"]])
        lines += [f"static {kind} *g_{short}, *g_{short}_next;", f"#define n_{short} ({cells})"]
        bytes_ = f"n_{short} * (int64_t)sizeof(*g_{short})"
        starts += [f"g_{short} = space({bytes_}); g_{short}_next = space({bytes_});",
                   f"{kind} *first_{short} = space({bytes_});"]
        if facts["role"] in ("state", "const"):
            inputs.append(f'input("{field}.in", first_{short}, {bytes_});')
        if facts["role"] == "reduction":
            inputs.append(f"first_{short}[0] = {number(facts['initial'], facts['type'])};")
        copies += [f"memcpy(g_{short}{end}, first_{short}, {bytes_});" for end in ("", "_next")]
        if facts["role"] == "state":
            outputs.append(f'output("{field}.out", g_{short}, {bytes_});')
    step = printer.steps()
    if module.until:
        field, every = module.until
        step.append(f"if ((step + 1) % {every} == 0 && g_{name(field)}[0]) break;")
    lines += ["int main(int count, char **words) {", *starts, *inputs,
              "for (int repeat = 0; repeat < atoi(words[2]); repeat++) {", *copies,
              "double begin = omp_get_wtime();",
              "for (int64_t step = 0; step < atoi(words[1]); step++) {", *step, "}",
              'printf("%.9f\\n", omp_get_wtime() - begin); fflush(stdout); }', *outputs, "}"]
    return HEAD + "\n".join(lines) + "\n"
