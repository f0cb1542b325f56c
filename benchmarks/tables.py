"""Rows of figures as markdown."""

from __future__ import annotations


def number(x, digits: int = 3) -> str:
    if x is None:
        return ""
    if isinstance(x, int):
        return str(x)
    return x if isinstance(x, str) else f"{x:.{digits}g}"


def table(rows: list[dict], columns: dict[str, str]) -> str:
    """Columns by key, with their titles; a key that a row lacks stays empty."""
    lines = ["| " + " | ".join(columns.values()) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(number(row.get(k)) for k in columns) + " |" for row in rows]
    return "\n".join(lines)
