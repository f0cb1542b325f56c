"""YAML as the mapping in it, of bounded size and depth."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ..errors import ModelError
from ._files import Files

MAX_YAML = 4 * 2**20  # bytes; the largest known description of this kind has 100 kB
MAX_YAML_DEPTH = 32
SURROGATE = re.compile(r"\\[uU]0*[dD][89a-fA-F]")  # half a character, which no name can hold


def read_yaml(path: Path, files: Files) -> dict[Any, Any]:
    """The mapping in a YAML file."""
    try:
        import yaml
    except ImportError:
        raise ModelError("reading YAML needs PyYAML: pip install pyyaml") from None
    data = files.read(path)
    if len(data) > MAX_YAML:
        raise ModelError(f"{path.name}: YAML is read up to {MAX_YAML // 2**20} MiB")
    text = data.decode("utf-8", errors="replace")
    if SURROGATE.search(text):
        raise ModelError(
            f"{path.name}: \\ud800 to \\udfff are halves of characters: write them out"
        )
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_tokens(yaml, text, loader, path.name)
        found = yaml.load(text, Loader=loader)
    except ModelError:
        raise
    except Exception as error:  # constructors of tags such as !!int raise whatever they meet
        raise ModelError(f"{path.name} is not well-formed YAML: {str(error)[:300]}") from None
    if not isinstance(found, dict):
        raise ModelError(f"{path.name}: expected a mapping such as 'submechanisms:'")
    return found


def _check_tokens(yaml, text: str, loader, name: str) -> None:
    """Refuse aliases, which multiply, and deep nesting, before anything is built."""
    depth = 0
    for token in yaml.scan(text, Loader=loader):
        if isinstance(token, yaml.AliasToken):
            raise ModelError(f"{name}: YAML aliases (*name) are not accepted: write them out")
        kind = type(token).__name__
        if kind.endswith("StartToken") and kind.startswith(("Block", "Flow")):
            depth += 1
        elif kind in ("BlockEndToken", "FlowSequenceEndToken", "FlowMappingEndToken"):
            depth -= 1
        if depth > MAX_YAML_DEPTH:
            line = token.start_mark.line + 1
            raise ModelError(
                f"{name}, line {line}: nested deeper than {MAX_YAML_DEPTH}: flatten it"
            )
