"""Object code for AArch64, run in an emulator: every access outside mapped memory is an error."""

from __future__ import annotations

import io
import struct

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from unicorn import UC_ARCH_ARM64, UC_MODE_ARM, Uc
from unicorn.arm64_const import (
    UC_ARM64_REG_CPACR_EL1,
    UC_ARM64_REG_LR,
    UC_ARM64_REG_SP,
    UC_ARM64_REG_X0,
)

PAGE = 0x1000
CODE, HEAP, STACK, END = 0x10_0000, 0x100_0000, 0x800_0000, 0x900_0000


class Machine:
    """One object file in memory, with its arrays each on pages of their own."""

    def __init__(self, code: bytes):
        self.uc = Uc(UC_ARCH_ARM64, UC_MODE_ARM)
        self.uc.reg_write(UC_ARM64_REG_CPACR_EL1, 3 << 20)  # vector instructions allowed
        self.uc.mem_map(STACK, 0x10_0000)
        self.uc.mem_map(END, PAGE)
        self.next = HEAP
        self._load(ELFFile(io.BytesIO(code)))

    def _load(self, elf: ELFFile) -> None:
        addresses, at = {}, CODE
        for i, section in enumerate(elf.iter_sections()):
            if section["sh_flags"] & 2 and section["sh_size"]:
                addresses[i] = at
                size = -(-section["sh_size"] // PAGE) * PAGE
                self.uc.mem_map(at, size)
                self.uc.mem_write(at, section.data())
                at += size + PAGE
        table = elf.get_section_by_name(".symtab")
        place = [addresses.get(s["st_shndx"], 0) + s["st_value"] for s in table.iter_symbols()]
        self.symbols = {s.name: place[i] for i, s in enumerate(table.iter_symbols())}
        for section in elf.iter_sections():
            if isinstance(section, RelocationSection) and section["sh_info"] in addresses:
                for entry in section.iter_relocations():
                    target = place[entry["r_info_sym"]] + entry["r_addend"]
                    self._relocate(
                        addresses[section["sh_info"]] + entry["r_offset"],
                        entry["r_info_type"],
                        target,
                    )

    def _relocate(self, at: int, kind: int, target: int) -> None:
        """The handful of relocations that straight-line code has (ELF for AArch64)."""
        (word,) = struct.unpack("<I", self.uc.mem_read(at, 4))
        if kind == 261:  # PREL32, in tables that no code reads
            return
        if kind == 275:  # ADR_PREL_PG_HI21
            pages = (target // PAGE - at // PAGE) & 0x1FFFFF
            word |= (pages & 3) << 29 | (pages >> 2) << 5
        elif kind in (277, 278, 284, 285, 286, 299):  # ADD and LDST of 8 to 128 bits, ABS_LO12
            shift = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}[kind]
            word |= ((target % PAGE) >> shift) << 10
        elif kind in (282, 283):  # JUMP26, CALL26
            word |= ((target - at) // 4) & 0x3FFFFFF
        else:
            raise NotImplementedError(f"relocation {kind}")
        self.uc.mem_write(at, struct.pack("<I", word))

    def put(self, x: np.ndarray) -> int:
        """Copy an array into memory that ends with it: the next byte is not mapped."""
        data = np.ascontiguousarray(x).tobytes()
        size = -(-max(len(data), 1) // PAGE) * PAGE
        self.uc.mem_map(self.next, size)
        at = self.next + size - len(data)
        self.uc.mem_write(at, data)
        self.next += size + PAGE
        return at

    def get(self, at: int, like: np.ndarray) -> np.ndarray:
        raw = bytes(self.uc.mem_read(at, like.nbytes))
        return np.frombuffer(raw, like.dtype).reshape(like.shape)

    def call(self, name: str, *arguments: int) -> None:
        for i, value in enumerate(arguments):
            self.uc.reg_write(UC_ARM64_REG_X0 + i, value)
        self.uc.reg_write(UC_ARM64_REG_SP, STACK + 0xF_0000)
        self.uc.reg_write(UC_ARM64_REG_LR, END)
        self.uc.emu_start(self.symbols[name], END)
