"""Lines of a recipe: its keys as YAML, and paths as a recipe has them."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.escaping import escaped


def block(key: str, value: Any, note: str = "") -> str:
    """A key of the recipe with its value; the keys of a mapping have a line each,
    and so have the parts of a list.
    """
    comment = f"   # {escaped(note)}" if note else ""
    if not isinstance(value, Mapping) or key == "labels":
        return f"{key}: {flow(value)}{comment}"
    lines = [f"{key}:{comment}"]
    for name, each in value.items():
        parts = each if isinstance(each, list) and len(each) > 1 else []
        lines += [f"  {flow(name)}:", *(f"    - {flow(part)}" for part in parts)] if parts else []
        lines += [] if parts else [f"  {flow(name)}: {flow(each)}"]
    return "\n".join(lines)


def flow(value: Any) -> str:
    """A value in one line: JSON strings, with JSON's escapes, are YAML.
    A list of one is written as its part.
    """
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{flow(name)}: {flow(each)}' for name, each in value.items())}}}"
    if isinstance(value, list) and len(value) == 1:
        return flow(value[0])
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(flow, value))}]"
    if not isinstance(value, str):
        return json.dumps(value)
    return value if is_plain(value) else escaped(json.dumps(value, ensure_ascii=False))


def is_plain(text: str) -> bool:
    """Whether YAML reads a text back as it is, without quotes."""
    return bool(_PLAIN.fullmatch(text)) and text.lower() not in YAML_WORDS


_PLAIN = re.compile(r"[A-Za-z_/][\w./-]*|\.", re.ASCII)
YAML_WORDS = ("true", "false", "null")
"""Words that YAML reads as other values than texts."""


# paths --------------------------------------------------------------------------------------------


def place_in_recipe(folder: Path, recipe: Path) -> str:
    """A folder or a file as written in the recipe:
    relative if it is below the recipe, otherwise absolute.
    """
    full, base = folder.resolve(), recipe.parent.resolve()
    is_below = full.is_relative_to(base) and "DATAPATH" not in os.environ
    return full.relative_to(base).as_posix() if is_below else full.as_posix()


def path_below(where: str, name: str) -> str:
    """A path of the data as the recipe has it:
    ``name`` starts at the folder that is ``where`` there.
    """
    return (
        posixpath.normpath(name if where == "." else f"{where.rstrip('/')}/{name}")
        if name
        else where
    )
