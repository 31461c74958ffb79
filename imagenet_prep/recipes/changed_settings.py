"""changed_settings: the settings of a manifest and of a plan -> what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from imagenet_prep.datasets.plan_differences import flattened
from imagenet_prep.recipes.recipe_file import shortened

_FOLLOWING = ("codec", "quality")
"""Settings that follow where another one makes images encoded again; the other one comes first."""


def changed_settings(
    recorded: Mapping[str, Any], planned: Mapping[str, Any]
) -> tuple[list[str], str]:
    """The names of the settings that differ, none and "" if none does; and both values of the
    first part that does.
    """
    recorded_values, new_values = flattened(recorded), flattened(planned)
    changed: list[str] = []
    names = sorted({*recorded_values, *new_values}, key=lambda name: (name in _FOLLOWING, name))
    for name in names:
        if recorded_values.get(name) != new_values.get(name):
            changed.append(name)
    if not changed:
        return [], ""
    return changed, _first_difference(changed[0], recorded_values, new_values)


def _first_difference(
    name: str, recorded: Mapping[str, Any], planned: Mapping[str, Any], lead: str = ""
) -> str:
    """The recorded and the new value of a setting, or of the first part of it that differs."""
    recorded_value, new_value = recorded.get(name), planned.get(name)
    if isinstance(recorded_value, Mapping) and isinstance(new_value, Mapping):
        for part in sorted({*recorded_value, *new_value}):
            if recorded_value.get(part) != new_value.get(part):
                return _first_difference(part, recorded_value, new_value, f"{lead}{name}.")
    return f"expected {lead}{name}: {_setting(recorded_value)}, got {_setting(new_value)}"


def _setting(value: object) -> str:
    """The value of a setting, for messages."""
    return "not set" if value is None else shortened(json.dumps(value, ensure_ascii=False))
