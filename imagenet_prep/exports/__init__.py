"""Exports of finished shards to other formats: a module ``to_<format>`` for each,
with its packer class as PACKER.
"""

from __future__ import annotations

import importlib
import os
from types import ModuleType
from typing import TYPE_CHECKING

from imagenet_prep.errors import UsageError

if TYPE_CHECKING:
    from imagenet_prep.exports.packing import Packer

_PREFIX = "to_"

FORMATS = tuple(
    sorted(
        name[len(_PREFIX) : -len(".py")]
        for name in os.listdir(__path__[0])
        if name.startswith(_PREFIX)
    )
)
"""The names of all formats; listing them imports none of their modules."""


def describe_formats() -> dict[str, str]:
    """The description of each format: the first paragraph of its module, without the name."""
    descriptions = {}
    for name in FORMATS:
        text = _load_module(name).__doc__ or ""
        paragraph = " ".join(text.partition("\n\n")[0].split())
        descriptions[name] = paragraph.removeprefix(f"{name}: ")
    return descriptions


def load_format(name: str) -> type[Packer]:
    """The packer class of a format.

    Raises:
        UsageError: the format does not exist.
    """
    if name not in FORMATS:
        raise UsageError(f"no export format {name!r}", f"expected one of {', '.join(FORMATS)}")
    packer_class: type[Packer] = _load_module(name).PACKER
    return packer_class


def _load_module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{_PREFIX}{name}")
