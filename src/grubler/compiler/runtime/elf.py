"""A check of an ELF object file before LLVM loads it.

LLVM's loader trusts an object file: a wrong offset, an unknown relocation or an unresolved symbol
ends the process. `damage` follows every offset, index and name of the file's tables first. The
instructions themselves are protected by the digest of the cache entry.
"""

from __future__ import annotations

import platform
import sys

import llvmlite.binding as llvm
import numpy as np

_HEADER = np.dtype([
    ("ident", "V16"), ("type", "<u2"), ("machine", "<u2"), ("version", "<u4"), ("entry", "<u8"),
    ("phoff", "<u8"), ("shoff", "<u8"), ("flags", "<u4"), ("ehsize", "<u2"), ("phentsize", "<u2"),
    ("phnum", "<u2"), ("shentsize", "<u2"), ("shnum", "<u2"), ("shstrndx", "<u2"),
])  # fmt: skip
_SECTION = np.dtype([
    ("name", "<u4"), ("type", "<u4"), ("flags", "<u8"), ("addr", "<u8"), ("offset", "<u8"),
    ("size", "<u8"), ("link", "<u4"), ("info", "<u4"), ("addralign", "<u8"), ("entsize", "<u8"),
])  # fmt: skip
_SYMBOL = np.dtype([
    ("name", "<u4"), ("info", "u1"), ("other", "u1"), ("shndx", "<u2"), ("value", "<u8"),
    ("size", "<u8"),
])  # fmt: skip
_RELOCATION = np.dtype([("offset", "<u8"), ("type", "<u4"), ("symbol", "<u4"), ("addend", "<i8")])

_RELOCATABLE = 1
_MACHINES = {"x86_64": 62, "aarch64": 183}
_PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOTE, _NOBITS = 1, 2, 3, 4, 7, 8
_UNWIND, _SIGNIFICANT = 0x70000001, 0x6FFF4C03
_SECTION_SYMBOL = 3  # up to here kinds of symbols that have an address
_KINDS = {
    0, _PROGBITS, _SYMTAB, _STRTAB, _RELA, _NOTE, _NOBITS, _UNWIND, _SIGNIFICANT,
}  # fmt: skip
_NEAR, _CALL, _TABLE = (1, 2), (4,), (9, 41, 42)  # relocations of x86: to sections, calls, by table
_FLAGS = 0x1 | 0x2 | 0x4 | 0x10 | 0x20 | 0x40  # write, memory, code, two of merging, link; no TLS
_IN_MEMORY = 0x2
_LARGEST = 1 << 24  # bytes of a section that the file does not hold; our code has none
_ABSOLUTE = 0xFFF1
CHECKABLE = sys.platform not in ("darwin", "win32")  # other formats there


def damage(code: bytes) -> str | None:
    """What is wrong with an object file for this machine, or None."""
    if not CHECKABLE:
        return None
    try:
        _check(code)
    except _Damaged as found:
        return str(found)
    return None


class _Damaged(Exception):
    pass


def _need(right, what: str) -> None:
    if not np.all(right):
        raise _Damaged(what)


def _check(code: bytes) -> None:
    sections, machine = _sections(code)
    held = sections["type"] != _NOBITS
    for s in sections:
        if s["type"] == _STRTAB:
            table = _bytes(code, s)
            _need(len(table) and table[-1] == 0, "a table of names has no end")
    names = _link(sections, _section_names(code), _STRTAB)
    _need(sections["name"] < sections[names]["size"], "the name of a section")
    _need(held | (sections["size"] <= _LARGEST), "the size of a section")
    symbols = np.flatnonzero(sections["type"] == _SYMTAB)
    _need(len(symbols) == 1, "the number of symbol tables")
    loaded = _check_symbols(code, sections, sections[symbols[0]])
    for s in sections[sections["type"] == _RELA]:
        _need(s["link"] == symbols[0], "the symbols of a relocation table")
        _check_relocations(code, sections, s, loaded, machine)


def _sections(code: bytes) -> tuple[np.ndarray, int]:
    """The table of sections, each of them inside the file, and the machine's number."""
    _need(len(code) >= _HEADER.itemsize, "the file's length")
    header = np.frombuffer(code, _HEADER, 1)[0]
    _need(code[:7] == b"\x7fELF\x02\x01\x01", "the file's format")
    expected = _MACHINES.get(platform.machine(), header["machine"])
    _need(header["type"] == _RELOCATABLE, "the file's kind")
    _need(header["machine"] == expected, "the file's processor")
    _need(header["ehsize"] == _HEADER.itemsize, "the header's size")
    _need(header["shentsize"] == _SECTION.itemsize, "the size of a section's entry")
    start, number = int(header["shoff"]), int(header["shnum"])
    _need(0 < number < 0xFF00, "the number of sections")
    _need(start % 8 == 0, "the place of the sections' table")
    _need(start + number * _SECTION.itemsize <= len(code), "the place of the sections' table")
    sections = np.frombuffer(code, _SECTION, number, start)
    held = sections["type"] != _NOBITS
    inside = sections["offset"] <= len(code)
    inside &= sections["size"] <= np.uint64(len(code)) - np.minimum(
        sections["offset"], np.uint64(len(code))
    )
    _need(inside | ~held, "a section's place")
    align = sections["addralign"]
    _need((align & (np.maximum(align, 1) - np.uint64(1))) == 0, "a section's alignment")
    _need(align <= 4096, "a section's alignment")
    _need(np.isin(sections["type"], list(_KINDS)), "the kind of a section")
    _need((sections["flags"] & ~np.uint64(_FLAGS)) == 0, "the flags of a section")
    return sections, int(header["machine"])


def _section_names(code: bytes) -> int:
    return int(np.frombuffer(code, _HEADER, 1)[0]["shstrndx"])


def _link(sections: np.ndarray, index: int, kind: int) -> int:
    """The index of a section of that kind."""
    _need(index < len(sections) and sections[index]["type"] == kind, "a link between sections")
    return index


def _bytes(code: bytes, section) -> bytes:
    start = int(section["offset"])
    return code[start : start + int(section["size"])]


def _table(code: bytes, section, kind: np.dtype) -> np.ndarray:
    size = int(section["size"])
    _need(section["entsize"] == kind.itemsize and size % kind.itemsize == 0, "a table's size")
    return np.frombuffer(code, kind, size // kind.itemsize, int(section["offset"]))


def _check_symbols(code: bytes, sections: np.ndarray, section) -> np.ndarray:
    """Every symbol has a name and a place, or is known in this process. Returns which symbols lie
    in memory, and which outside the file."""
    names = _bytes(code, sections[_link(sections, int(section["link"]), _STRTAB)])
    symbols = _table(code, section, _SYMBOL)
    _need(len(symbols) and not symbols[0]["info"], "the first symbol")
    _need(section["info"] <= len(symbols), "the number of symbols")
    _need(symbols["name"] < len(names), "the name of a symbol")
    where = symbols["shndx"]
    placed = (where > 0) & (where != _ABSOLUTE)
    _need(where[placed] < len(sections), "the section of a symbol")
    _need((symbols["info"] & 15) <= 4, "the kind of a symbol")
    _need((symbols["info"] >> 4) <= 1, "the binding of a symbol")
    room = sections["size"][where[placed]]
    _need(symbols["value"][placed] <= room, "the place of a symbol")
    _need(symbols["size"][placed] <= room - symbols["value"][placed], "the size of a symbol")
    named = (symbols["info"] & 15) < _SECTION_SYMBOL
    called = [names[start : names.index(0, start)] for start in symbols["name"][named].tolist()]
    _need(len(set(called)) == len(called), "the names of symbols")  # LLVM finds them by name
    for name in (name for name, section in zip(called[1:], where[named][1:]) if section == 0):
        text = name.decode(errors="replace")
        _need(llvm.address_of_symbol(text), f"the unknown symbol '{text}'")
    present = (sections["type"] == _PROGBITS) & ((sections["flags"] & np.uint64(_IN_MEMORY)) > 0)
    loaded = np.zeros(len(symbols), bool)
    loaded[placed] = present[where[placed]]
    loaded &= (symbols["info"] & 15) <= _SECTION_SYMBOL
    return np.stack([loaded, where == 0])


def _check_relocations(code, sections: np.ndarray, section, symbols, machine: int) -> None:
    loaded, outside = symbols
    target = int(section["info"])
    _need(0 < target < len(sections), "the target of relocations")
    _need(sections[target]["type"] in (_PROGBITS, _UNWIND), "the target of relocations")
    _need(int(sections[target]["flags"]) & _IN_MEMORY, "the target of relocations")
    relocations = _table(code, section, _RELOCATION)
    kinds, addends = relocations["type"], relocations["addend"]
    _need(relocations["symbol"] > 0, "the symbol of a relocation")
    _need(relocations["symbol"] < len(loaded), "the symbol of a relocation")
    room = int(sections[target]["size"])
    width = np.where(kinds == 1, 8, 4).astype(np.uint64)  # bytes that a relocation writes
    _need(relocations["offset"] <= room, "the place of a relocation")
    _need(relocations["offset"] + width <= room, "the place of a relocation")
    written = np.frombuffer(_bytes(code, sections[target]), np.uint8)
    places = relocations["offset"][:, None] + np.arange(4, dtype=np.uint64)
    _need(written[places] == 0, "the place of a relocation")  # LLVM adds what is there
    _need((addends > -_LARGEST) & (addends < _LARGEST), "the addend of a relocation")
    known = loaded[relocations["symbol"]]
    _need(known | outside[relocations["symbol"]], "the symbol of a relocation")
    if machine == _MACHINES["x86_64"]:
        near = np.isin(kinds, _NEAR)
        _need(near | np.isin(kinds, _CALL + _TABLE), "the kind of a relocation")
        _need(known | ~near, "the symbol of a relocation")
