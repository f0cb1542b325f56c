"""A tape as plain C99: one function and a header, depending on math.h alone.

With bundles (limbs.py) it is C99 with the vector types of GCC and Clang.
"""

from __future__ import annotations

import re
from typing import Any

from ...ir.ops import OPS
from ...ir.tape import Array, Branch, Bundle, Loop, Tape, holds, members, read_by

_TYPE = {"float64": "double", "float32": "float"}
_HELPERS = """
/* NaN passes through, unlike C's fmin and fmax. */
static inline TYPE grubler_min(TYPE a, TYPE b) {{ return a != a || a < b ? a : b; }}
static inline TYPE grubler_max(TYPE a, TYPE b) {{ return a != a || a > b ? a : b; }}
static inline TYPE grubler_sign(TYPE a) {{ return a > 0 ? (TYPE)1 : a < 0 ? (TYPE)-1 : a; }}
""".replace("{{", "{").replace("}}", "}")


class _Printer:
    """Writes the body of the function, one line an instruction."""

    def __init__(self, dtype: str):
        self.type = _TYPE[dtype]
        self.suffix = "f" if dtype == "float32" else ""
        self.lines: list[str] = []
        self.lanes: set[int] = set()  # numbers of lanes that vectors have
        self._prefixes = 0

    def number(self, value: float | None) -> str:
        if value != value:
            return "NAN"
        if value in (float("inf"), float("-inf")):
            return "INFINITY" if value > 0 else "(-INFINITY)"
        text = repr(float(value)) + self.suffix
        return f"({text})" if text.startswith("-") else text

    def tape(self, tape: Tape, read, indent: str) -> list[list[str]]:
        """Print the instructions; the names of the outputs' values."""
        self._prefixes += 1
        prefix = "s" if self._prefixes == 1 else f"s{self._prefixes}_"
        names: list[Any] = []
        rows = {
            min(members(bundle)): bundle
            for bundle in tape.bundles
            if OPS[tape.instructions[members(bundle)[0]][0]].c_on_vectors
        }
        vectors = {}  # of a value: its bundle, and the name of that
        for k, instruction in enumerate(tape.instructions):
            op = instruction[0]
            if k < len(names):
                continue  # with its bundle
            if k in rows:
                found = self.bundle(tape.instructions, rows[k], names, vectors)
                self.lines.append(f"{indent}const {found[0]} {prefix}{k} = {found[1]};")
                vectors.update(dict.fromkeys(rows[k], (rows[k], f"{prefix}{k}")))
                names += [f"{prefix}{k}[{rows[k].index(v)}]" for v in sorted(members(rows[k]))]
            elif op == "const":
                names.append(self.number(instruction[1]))
            elif op == "input":
                names.append(read(instruction[1], instruction[2]))
            elif op == "loop":
                start = [names[a] for a in instruction[2:]]
                names.append(self.loop(tape.loops[instruction[1]], start, f"{prefix}{k}", indent))
            elif op == "branch":
                branch, start = tape.branches[instruction[1]], [names[a] for a in instruction[2:]]
                names.append(self.branch(branch, start, read, f"{prefix}{k}", indent))
            elif op == "result":
                names.append(names[instruction[1]][instruction[2]])
            else:
                text = self.expression(op, [names[a] for a in instruction[1:]])
                self.lines.append(f"{indent}const {self.type} {prefix}{k} = {text};")
                names.append(f"{prefix}{k}")
        return [[names[v] for v in values] for values in tape.results]

    def bundle(self, instructions, bundle: Bundle, names, vectors) -> tuple[str, str]:
        """One operation on vectors: its type and itself."""
        kind = f"grubler_{len(bundle)}"
        self.lanes.add(len(bundle))
        found = []
        for group in read_by(instructions, bundle):
            held, name = vectors.get(members(group)[0], ((), ""))
            if not holds(held, group):
                values = ["1" if v is None else names[v] for v in group]
                name = f"({kind}){{{', '.join(values)}}}"
            found.append(name)
        return kind, self.expression(instructions[members(bundle)[0]][0], found)

    def expression(self, op: str, names: list[str]) -> str:
        row = OPS[op]
        if not row.c:
            raise AssertionError(f"operation '{op}' reached the C printer: simplify the tape first")
        call = f"{row.c}{self.suffix}({', '.join(names)})"
        text = row.c.format(*names) if "{" in row.c else call
        return f"({self.type})({text})" if row.condition else text

    def branch(self, branch: Branch, start, read, name: str, indent: str) -> list[str]:
        """An array of the values, overwritten where the condition fails."""
        size, arguments = branch.size, len(branch.step.inputs) - 1
        results, out = start[1 + size :], self.lines.append
        out(f"{indent}{self.type} {name}_x[{max(size, 1)}];")
        for i, value in enumerate(start[1 : 1 + size]):
            out(f"{indent}{name}_x[{i}] = {value};")
        out(f"{indent}if ({start[0]} == 0) {{")
        (found,) = self.tape(
            branch.step, lambda a, e: results[e] if a == arguments else read(a, e), indent + "  "
        )
        for i, value in enumerate(found):
            out(f"{indent}  {name}_x[{i}] = {value};")
        out(f"{indent}}}")
        return [f"{name}_x[{i}]" for i in range(size)]

    def loop(self, loop: Loop, start: list[str], name: str, indent: str) -> list[str]:
        """A loop over arrays x (state), r (residual) and a step counter."""
        n, r = loop.state_size, loop.residual_size
        out = self.lines.append
        out(f"{indent}{self.type} {name}_x[{max(n, 1)}], {name}_r[{max(r, 1)}];")
        out(f"{indent}long {name}_k = 0;")
        for i in range(n):
            out(f"{indent}{name}_x[{i}] = {start[i]};")
        out(f"{indent}(void){name}_r;")
        limit = f"{name}_k < {loop.count}L" if loop.tolerance is None else ""
        out(f"{indent}for (; {limit}; ++{name}_k) {{")
        inner = indent + "  "
        arguments, rest = [[f"{name}_x[{i}]" for i in range(n)]], start[n:]
        for array in loop.step.inputs[1:]:
            arguments.append(rest[: array.size])
            rest = rest[array.size :]
        # The state is read before it is written: results are values of this iteration.
        outputs = self.tape(loop.step, lambda a, e: arguments[a][e], inner)
        if loop.tolerance is not None:
            self._leave_when_converged(loop, outputs[1], name, inner)
        for i, value in enumerate(outputs[0]):
            out(f"{inner}const {self.type} {name}_n{i} = {value};")
        for i in range(n):
            out(f"{inner}{name}_x[{i}] = {name}_n{i};")
        out(f"{indent}}}")
        results = [f"{name}_x[{i}]" for i in range(n)] + [f"{name}_r[{i}]" for i in range(r)]
        return [*results, f"(({self.type}){name}_k)"]

    def _leave_when_converged(self, loop: Loop, residual: list[str], name: str, inner: str) -> None:
        for i, value in enumerate(residual):
            self.lines.append(f"{inner}{name}_r[{i}] = {value};")
        tolerance = self.number(loop.tolerance)
        tests = [f"fabs{self.suffix}({name}_r[{i}]) > {tolerance}" for i in range(len(residual))]
        beyond = " || ".join(tests) or "0"
        self.lines.append(f"{inner}if (!({beyond}) || {name}_k == {loop.count}L) break;")


def _vector_type(lanes: int, dtype: str) -> str:
    """Vectors of as many bytes as a power of two: that of three numbers has four."""
    size = (4 if dtype == "float32" else 8) << (lanes - 1).bit_length()
    return f"typedef {_TYPE[dtype]} grubler_{lanes} __attribute__((vector_size({size})));"


def _prototype(name: str, tape: Tape, outputs: tuple[Array, ...], dtype: str) -> str:
    kind = _TYPE[dtype]
    parameters = [f"const {kind} *restrict {c_name(a.name)}" for a in tape.inputs]
    parameters += [f"{kind} *restrict {c_name(a.name)}" for a in outputs]
    return f"void {name}({', '.join(parameters)})"


def c_name(name: str) -> str:
    """A valid C identifier for an array's name, apart from the s1, s2, ... of the values."""
    cleaned = re.sub(r"[^A-Za-z0-9_]", "_", name)
    taken = re.match(r"$|[0-9]|s[0-9]|grubler_", cleaned) or cleaned in _KEYWORDS
    taken = taken or any(op.c == cleaned for op in OPS.values())
    return f"a_{cleaned}" if taken else cleaned


_KEYWORDS = {
    "auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "float", "for", "goto", "if", "inline", "int", "long", "register", "restrict",
    "return", "short", "signed", "sizeof", "static", "struct", "switch", "typedef", "union",
    "unsigned", "void", "volatile", "while", "NAN", "INFINITY",
}  # fmt: skip


def header(name: str, tape: Tape, outputs: tuple[Array, ...], dtype: str, note: str) -> str:
    """The header of the function, for C and C++."""
    guard = f"GRUBLER_{name.upper()}_H"
    sizes = [
        f" *   {c_name(a.name)}: {a.size} numbers, shape {a.shape}, row by row"
        for a in (*tape.inputs, *outputs)
    ]
    prototype = _prototype(name, tape, outputs, dtype).replace("*restrict ", "*")
    return "\n".join(
        [
            f"/* {note}", *sizes,
            " * The arrays must not overlap. Angles in rad, SI units. */",
            f"#ifndef {guard}", f"#define {guard}",
            "#ifdef __cplusplus", 'extern "C" {', "#endif",
            f"{prototype};",
            "#ifdef __cplusplus", "}", "#endif", "#endif", "",
        ]
    )  # fmt: skip


def source(name: str, tape: Tape, outputs: tuple[Array, ...], dtype: str) -> str:
    """The C99 source of the function; of a tape with bundles, for GCC and Clang."""
    printer = _Printer(dtype)
    pointers = [c_name(a.name) for a in tape.inputs]
    values = printer.tape(tape, lambda a, e: f"{pointers[a]}[{e}]", "  ")
    for array, names in zip(outputs, values):
        target = c_name(array.name)
        printer.lines += [f"  {target}[{i}] = {value};" for i, value in enumerate(names)]
    unused = [f"  (void){c_name(a.name)};" for a in tape.inputs]
    return "\n".join(
        [
            f'#include "{name}.h"', "#include <math.h>", "",
            *[_vector_type(lanes, dtype) for lanes in sorted(printer.lanes)],
            _HELPERS.replace("TYPE", _TYPE[dtype]),
            _prototype(name, tape, outputs, dtype) + " {",
            *unused,
            *printer.lines,
            "}",
            "",
        ]
    )  # fmt: skip
