"""first_difference: the settings of a manifest and of a plan -> the first part that differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from imagenet_prep.recipes.recipe_file import shortened


def first_difference(
    name: str, recorded: Mapping[str, Any], planned: Mapping[str, Any], lead: str = ""
) -> str:
    """The recorded and the new value of a setting, or of the first part of it that differs."""
    recorded_value, new_value = recorded.get(name), planned.get(name)
    if isinstance(recorded_value, Mapping) and isinstance(new_value, Mapping):
        for part in sorted({*recorded_value, *new_value}):
            if recorded_value.get(part) != new_value.get(part):
                return first_difference(part, recorded_value, new_value, f"{lead}{name}.")
    return f"expected {lead}{name}: {_setting(recorded_value)}, got {_setting(new_value)}"


def _setting(value: object) -> str:
    """The value of a setting, for messages."""
    return "nothing" if value is None else shortened(json.dumps(value, ensure_ascii=False))
