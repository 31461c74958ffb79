"""The records of finished shards in other formats: a module ``to_<format>`` for each, whose PACKER is its class."""

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
    sorted(name[len(_PREFIX) : -len(".py")] for name in os.listdir(__path__[0]) if name.startswith(_PREFIX))
)
"""The names of all formats; none of their modules is imported for this."""


def describe_formats() -> dict[str, str]:
    """What each format is: the first line of its module, without the name."""
    texts = {name: _load_module(name).__doc__ or "" for name in FORMATS}
    return {name: text.partition("\n")[0].removeprefix(f"{name}: ") for name, text in texts.items()}


def load_format(name: str) -> type[Packer]:
    """The packer class of a format.

    Raises:
        UsageError: there is no such format.
    """
    if name not in FORMATS:
        raise UsageError(f"no container {name!r}", f"expected one of {', '.join(FORMATS)}")
    found: type[Packer] = _load_module(name).PACKER
    return found


def _load_module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{_PREFIX}{name}")
