"""CasADi Functions: of expressions, or of our machine code with our Jacobian.

The second kind is a shared library with CasADi's plain C interface: machine code of the function
and of its Jacobian, and a wrapper that a C compiler translates and links. CasADi calls it without
Python, and so do IPOPT, fatrop and acados.

CasADi stores matrices column by column, hands over null pointers for zeros and for what nobody
asks, and wants the Jacobian as one matrix for each output and input, named jac_<output>_<input>.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .. import compiler
from ..algebra.symbolic import external
from ..arguments import public, shown
from ..compiled import problem as compiled_problem
from ..compiled.problem import Problem
from ..compiled.products import jacobian
from ..compiler.ir.tape import Array
from ..compiler.log import stage
from ..errors import InputError
from ..model import Model


@public
def casadi_function(
    fn: Callable[..., Any], model: Model, *, compiled: bool = False, **options: Any
) -> Any:
    """The CasADi Function of `fn(model, ...)`, with inputs and outputs by name; options as in
    `compile`.

    It consists of CasADi's own expressions, or, with `compiled`, of machine code: then loops to a
    tolerance are allowed, and its Jacobian is ours, by q, too, entry by entry. A C compiler is
    needed once, to make the library that CasADi loads; such a Function lives in this process alone.
    """
    problem = Problem.from_options(fn, model, options)
    if not isinstance(compiled, bool):
        raise InputError(f"compiled is {shown(compiled)}: give True or False")
    if not compiled:
        return compiler.casadi_function(problem, problem.shapes, name=problem.name)
    return _library(fn, model, problem, dict(options))


def _library(fn: Callable[..., Any], model: Model, problem: Problem, options: dict[Any, Any]):
    parameters = tuple(options.pop("parameters", ()))
    kept = {k: options.pop(k) for k in ("shapes",) if k in options}
    options.pop("inputs", None)
    product = jacobian(
        fn, model, wrt=list(problem.names), configurations=(), inputs=problem.state_names,
        **kept, **problem.options,
    )  # fmt: skip
    own = compiled_problem.compile(
        fn, model, inputs=problem.state_names, parameters=parameters, **kept, **problem.options
    )
    derived = compiled_problem.compile(product, model, parameters=parameters)
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder), problem.name, own, derived)
        return external(problem.name, library)  # loaded: the file may go


def build(folder: Path, name: str, own: Any, derived: Any) -> Path:
    """The shared library of a compiled function and its Jacobian."""
    linked = []
    for part, function in (("own_code", own), ("jacobian_code", derived)):
        linked += [str(p) for p in compiler.export(function, folder, language="object", name=part)
                   if p.suffix == ".o"]  # fmt: skip
    source, library = folder / "wrapper.c", folder / f"{name}.so"
    source.write_text(wrapper(name, own.inputs, own.outputs))
    command = [_c_compiler(), "-O1", "-shared", "-fPIC", str(source), *linked, "-lm", "-o"]
    with stage(f"link {name} for CasADi"):
        done = subprocess.run([*command, str(library)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise InputError(f"the C compiler '{command[0]}' failed: {done.stderr.strip()[:500]}")
    return library


def _c_compiler() -> str:
    for name in (os.environ.get("CC"), "cc", "gcc", "clang"):
        if name and (found := shutil.which(name)):
            return found
    raise InputError(
        "compiled=True needs a C compiler once, to link a library for CasADi: install cc, gcc or "
        "clang, or name one in the environment variable CC"
    )


# the wrapper in C


def wrapper(name: str, inputs: Sequence[Array], outputs: Sequence[Array]) -> str:
    """The C source of CasADi's interface to `own_code` and `jacobian_code`."""
    named = [Array(a.name if a.name != "out" else "out0", a.shape) for a in outputs]
    taken = {a.name for a in inputs}
    named = [Array(f"out_{a.name}" if a.name in taken else a.name, a.shape) for a in named]
    blocks = [
        Array(f"jac_{out.name}_{given.name}", (out.size, given.size))
        for out in named
        for given in inputs
    ]
    rows = [(out.shape, given.shape) for out in named for given in inputs]
    seen = [Array(f"out_{out.name}", out.shape) for out in named]  # CasADi hands them over
    own = _entry(name, "own_code", inputs, (), named, [(a.shape, ()) for a in named])
    derived = _entry(f"jac_{name}", "jacobian_code", inputs, seen, blocks, rows)
    n = len(inputs)
    declared = [
        f"void {code}({', '.join(['const double*'] * n + ['double*'] * len(given))});"
        for code, given in (("own_code", outputs), ("jacobian_code", blocks))
    ]
    return "\n".join([*_HEAD, *declared, own, derived])


_HEAD = (
    "#ifndef casadi_real", "#define casadi_real double", "#endif",
    "#ifndef casadi_int", "#define casadi_int long long int", "#endif",
)  # fmt: skip


def _entry(name: str, code: str, inputs, ignored, outputs, orders) -> str:
    """One function in CasADi's interface, its inputs' and outputs' matrices turned row by row."""
    lines, at, pointers = [], 0, []
    for i, given in enumerate(inputs):
        place = _turned(given.shape)
        for k, source in enumerate(place):
            lines.append(f"  w[{at + k}] = arg[{i}] ? arg[{i}][{source}] : 0;")
        pointers.append(f"w + {at}")
        at += given.size
    starts = []
    for out in outputs:
        starts.append(at)
        pointers.append(f"w + {at}")
        at += out.size
    lines.append(f"  {code}({', '.join(pointers)});")
    for i, (out, (rows, columns), start) in enumerate(zip(outputs, orders, starts)):
        order = [(r, c) for c in _order(columns) for r in _order(rows)]
        width = _size(columns)
        if out.size:
            lines.append(f"  if (res[{i}]) {{")
            lines += [f"    res[{i}][{k}] = w[{start + r * width + c}];"
                      for k, (r, c) in enumerate(order)]  # fmt: skip
            lines.append("  }")
    body = "\n".join(lines)
    all_in = [*inputs, *ignored]
    shapes = [_matrix(a.shape) for a in all_in], [_matrix(a.shape) for a in outputs]
    return "\n".join([
        f"int {name}(const casadi_real** arg, casadi_real** res, casadi_int* iw, casadi_real* w,",
        f"    int mem) {{\n{body}\n  return 0;\n}}",
        f"casadi_int {name}_n_in(void) {{ return {len(all_in)}; }}",
        f"casadi_int {name}_n_out(void) {{ return {len(outputs)}; }}",
        _names(f"{name}_name_in", [a.name for a in all_in]),
        _names(f"{name}_name_out", [a.name for a in outputs]),
        _sparsities(f"{name}_sparsity_in", shapes[0]),
        _sparsities(f"{name}_sparsity_out", shapes[1]),
        f"int {name}_work(casadi_int* sz_arg, casadi_int* sz_res, casadi_int* sz_iw,",
        "    casadi_int* sz_w) {",
        f"  *sz_arg = {len(all_in)}; *sz_res = {len(outputs)}; *sz_iw = 0; *sz_w = {at};",
        "  return 0;\n}",
    ])  # fmt: skip


def _size(shape: tuple[int, ...]) -> int:
    rows, columns = _matrix(shape)
    return rows * columns


def _matrix(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape of an array as a matrix of CasADi's."""
    return (*shape, 1, 1)[:2]


def _order(shape: tuple[int, ...]) -> list[int]:
    """For each element of a matrix, column by column, its place row by row."""
    rows, columns = _matrix(shape)
    return [r * columns + c for c in range(columns) for r in range(rows)]


def _turned(shape: tuple[int, ...]) -> list[int]:
    """For each element of a matrix, row by row, its place column by column."""
    rows, columns = _matrix(shape)
    return [r + c * rows for r in range(rows) for c in range(columns)]


def _names(function: str, names: list[str]) -> str:
    cases = "".join(f' case {i}: return "{name}";' for i, name in enumerate(names))
    return f"const char* {function}(casadi_int i) {{ switch (i) {{{cases} default: return 0; }} }}"


def _sparsities(function: str, shapes: list[tuple[int, int]]) -> str:
    """Dense matrices, in CasADi's short form: rows, columns, 1."""
    cases, stored = "", ""
    for i, (rows, columns) in enumerate(shapes):
        stored += f"static const casadi_int {function}_{i}[3] = {{{rows}, {columns}, 1}};\n"
        cases += f" case {i}: return {function}_{i};"
    return (
        f"{stored}const casadi_int* {function}(casadi_int i) "
        f"{{ switch (i) {{{cases} default: return 0; }} }}"
    )
