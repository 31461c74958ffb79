"""Structures, the ways in which people keep a set. Each recognises a folder, or does not.

A structure is a function: an Inspection -> the Interpretation of the folder, which has the recipe
and what is left out. A new structure is a new module here, which has it in ``STRUCTURES`` by the
name that ``--as`` calls it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.proposal import Interpretation

Recogniser = Callable[[Inspection], Interpretation | None]
"""A structure: the folder as it reads it; None if it can't be this one."""


def known_structures() -> dict[str, Recogniser]:
    """The structures, by their names."""
    recognisers: dict[str, Recogniser] = {}
    for module_info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        structures: dict[str, Recogniser] = module.STRUCTURES
        doubles = recognisers.keys() & structures.keys()
        assert not doubles, f"two structures have the name of one in {module_info.name}"
        recognisers |= structures
    return dict(sorted(recognisers.items()))
