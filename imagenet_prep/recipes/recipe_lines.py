"""Lines of a recipe: its keys as YAML, and paths as a recipe has them."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from imagenet_prep.escaping import escaped
from imagenet_prep.storage.location import real_path

_PLAIN = re.compile(r"[A-Za-z_/][\w./-]*|\.", re.ASCII)
YAML_WORDS = ("true", "false", "null")
"""Words that YAML reads as other values than texts."""


def block(key: str, value: Any, note: str = "") -> str:
    """A key of the recipe with its value; the keys of a mapping have a line each,
    and so have the parts of a list.
    """
    comment = f"   # {escaped(note)}" if note else ""
    if not isinstance(value, Mapping) or key == "labels":
        return f"{key}: {flow(value)}{comment}"
    lines = [f"{key}:{comment}"]
    for name, part in value.items():
        if isinstance(part, list) and len(part) > 1:
            lines.append(f"  {flow(name)}:")
            lines += [f"    - {flow(item)}" for item in part]
        else:
            lines.append(f"  {flow(name)}: {flow(part)}")
    return "\n".join(lines)


def flow(value: Any) -> str:
    """A value in one line: JSON strings, with JSON's escapes, are YAML.
    A list of one is written as its part.
    """
    if isinstance(value, Mapping):
        entries = [f"{flow(name)}: {flow(part)}" for name, part in value.items()]
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, list) and len(value) == 1:
        return flow(value[0])
    if isinstance(value, (list, tuple)):
        return flow_list(value)
    if not isinstance(value, str):
        return json.dumps(value)
    return value if is_plain(value) else escaped(json.dumps(value, ensure_ascii=False))


def flow_list(values: Iterable[Any]) -> str:
    """A list in one line, with brackets also around one part."""
    return f"[{', '.join(map(flow, values))}]"


def optional_feature(feature: str, column: str, kind: str | None) -> str:
    """An entry of `record` for a feature that records may lack; ``kind`` is its type, if named."""
    keys: dict[str, Any] = {"from": column}
    if kind is not None:
        keys["type"] = kind
    keys["optional"] = True
    return f"{flow(feature)}: {flow(keys)}"


def is_plain(text: str) -> bool:
    """Whether YAML reads a text back as it is, without quotes."""
    return bool(_PLAIN.fullmatch(text)) and text.lower() not in YAML_WORDS


# paths --------------------------------------------------------------------------------------------


def place_in_recipe(path: Path, recipe: Path) -> str:
    """A folder or a file as written in the recipe:
    relative if it is below the recipe, otherwise absolute.
    """
    full_path, base = real_path(path), real_path(recipe.parent)
    is_below = full_path.is_relative_to(base) and "DATAPATH" not in os.environ
    return full_path.relative_to(base).as_posix() if is_below else full_path.as_posix()


def path_below(folder: str, name: str) -> str:
    """A path of the data as the recipe has it: ``name`` starts at ``folder``, which is as the
    recipe has it, too.
    """
    if not name:
        return folder
    path = name if folder == "." else f"{folder.rstrip('/')}/{name}"
    return posixpath.normpath(path)
