"""The records of finished shards in other formats: each is a module of ``exports.formats``, of that name."""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from imagenet_prep.errors import UsageError
from imagenet_prep.exports import formats

if TYPE_CHECKING:
    from imagenet_prep.exports.packing import Packer

FORMATS = tuple(sorted(module.name for module in pkgutil.iter_modules(formats.__path__)))
"""The names of all formats; none of their modules is imported for this."""


def describe_formats() -> dict[str, str]:
    """What each format is: the first line of its module, without the name."""
    found = {name: importlib.import_module(f"{formats.__name__}.{name}").__doc__ or "" for name in FORMATS}
    return {name: text.partition("\n")[0].removeprefix(f"{name}: ") for name, text in found.items()}


def load_format(name: str) -> type[Packer]:
    """The packer class of a format.

    Raises:
        UsageError: there is no such format.
    """
    if name not in FORMATS:
        raise UsageError(f"no container {name!r}", f"expected one of {', '.join(FORMATS)}")
    found: type[Packer] = importlib.import_module(f"{formats.__name__}.{name}").FormatPacker
    return found
