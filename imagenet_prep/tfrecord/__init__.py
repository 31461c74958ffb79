"""CRC32C from the extension module of the crc32c package: the processor's own instruction, over any
buffer.

The extension is loaded without its package where possible. The package imports importlib.metadata
for its version and argparse for its command. Both together are a fifth of the start-up time of our
commands.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib.machinery import PathFinder


def _load() -> Callable[..., int]:
    package = importlib.util.find_spec("crc32c")
    spec = None
    if package is not None:
        spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if spec is None or spec.loader is None:
        from crc32c import crc32c  # a build of another shape: use the public import

        return crc32c
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function: Callable[..., int] = module.crc32c
    return function


crc32c: Callable[..., int] = _load()
"""``crc32c(data, crc=0)``: the CRC32C (Castagnoli) of a buffer, continued from ``crc``."""
