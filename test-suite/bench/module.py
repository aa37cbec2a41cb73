"""A program at the stencil level, read from the text of its module."""

import re

C_TYPES = {
    "f16": "_Float16", "f32": "float", "f64": "double", "i1": "int", "i8": "int8_t",
    "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "ui8": "uint8_t", "ui16": "uint16_t",
    "ui32": "uint32_t", "ui64": "uint64_t", "index": "int64_t",
}


class Unsupported(Exception):
    """A program that has something beyond plain loops."""


def name(text):
    """A name of the program as one of C."""
    return "f_" + re.sub(r"\W", "_", text)


class Module:
    """The declarations and functions of a module, read from its text."""

    def __init__(self, text):
        map_ = r"^(#map\d*) = affine_map<\(\)\[.*?\] -> \((.*)\)>$"
        self.maps = dict(re.findall(map_, text, re.M))
        self.params = re.findall(r'"(\w+)"', re.search(r"stencil.params = \[(.*?)\]", text)[1])
        self.grids, self.fields, self.scalars, self.functions, self.items = {}, {}, {}, {}, []
        function = None
        for line in text.splitlines():
            line = line.strip()
            if line.startswith("func.func"):
                function = self.function(line)
            elif function is not None:
                function.append(line)
                if line.startswith("return"):
                    function = None
            elif line.startswith('"stencil.'):
                self.declaration(line)
        until = re.search(r'"stencil.until".*condition = @"?(.*?)"?, every = (\d+)', text)
        self.until = until and (until[1], int(until[2]))

    def function(self, line):
        head = re.match(r"func.func private @(\S+?)\((.*)\)(?: -> .*)? \{$", line)
        arguments = re.findall(r"(%arg\d+): (\w+) \{(.*?)\}(?:, |\)|$)", head[2])
        body = []
        self.functions[head[1].strip('"')] = (arguments, body)
        return body

    def declaration(self, line):
        kind = re.match(r'"stencil.(\w+)"', line)[1]
        symbol = re.search(r'sym_name = "(.*?)"', line)
        if kind == "grid":
            ends = [re.search(rf"{end} = (#map\d*)", line)[1] for end in ("lower", "upper")]
            ends = [self.ends(end) for end in ends]
            self.grids[symbol[1]] = list(zip(*ends, strict=True))
        elif kind == "field":
            rule = re.search(r'stencil.boundary = (?:"(\w+)"|@(\S+?)[,}])', line)
            leaf = r'member = \{field = "(.*?)", offset = (\d+) : i64, size = (\d+)'
            member = re.search(leaf, line)
            start = re.search(r"stencil.initial = (\S+) :", line)
            self.fields[symbol[1]] = {
                "grid": re.search(r'grid = @"?(.*?)"?,', line)[1],
                "role": re.search(r'role = "(\w+)"', line)[1],
                "type": re.search(r" type = (\w+)", line)[1],
                "rule": rule and (rule[1] or "@" + rule[2]),
                "member": member and (member[1], int(member[2]), int(member[3])),
                "initial": start[1] if start else "0",
                "bool": "stencil.bool" in line,
            }
        elif kind == "scalar":
            default = re.search(r"default = \[(.*?)(?: : .*?)?\]", line)[1]
            kind = re.search(r" type = (\w+)", line)[1]
            self.scalars[symbol[1]] = (kind, number(default, kind) if default else "0.5")
        elif kind == "apply":
            pieces = re.findall(
                r'\{function = @"?(.*?)"?, lower = (#map\d*), upper = (#map\d*)\}', line)
            repeat = re.search(r"stencil.repeat = array<i64: (.*?)>", line)
            self.items.append({
                "updates": re.findall(r'@"?([^,"\]]+)', re.search(r"updates = \[(.*?)\]", line)[1]),
                "pieces": [
                    (one, list(zip(self.ends(low), self.ends(high), strict=True)))
                    for one, low, high in pieces
                ],
                "repeat": [int(n) for n in repeat[1].split(",")] if repeat else [],
            })
        elif kind == "reduce":
            symbols = {
                what: re.search(rf'{what} = @"?(.*?)"?[,}}]', line)[1]
                for what in ("field", "function", "grid")
            }
            repeat = re.search(r"stencil.repeat = array<i64: (.*?)>", line)
            self.items.append({
                "reduce": re.search(r'operation = "(\w+)"', line)[1], **symbols,
                "repeat": [int(n) for n in repeat[1].split(",")] if repeat else [],
            })

    def ends(self, symbol):
        """The results of a map as expressions of C."""
        def one(text):
            if re.search(r"floordiv|ceildiv|mod", text):
                raise Unsupported(f"the bound {text}")
            return re.sub(r"s(\d+)", lambda found: self.params[int(found[1])], text)

        return [f"({one(text.strip())})" for text in self.maps[symbol].split(",")]


def number(text, kind):
    """A constant of MLIR's as one of C."""
    if text in ("true", "false"):
        return "1" if text == "true" else "0"
    if re.match(r"0x", text) and kind in ("f32", "f64"):
        raise Unsupported(f"the constant {text}")
    if kind == "f32":
        return text + ("f" if re.search(r"[.eE]", text) else ".0f")
    return text
