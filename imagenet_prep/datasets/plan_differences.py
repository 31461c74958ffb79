"""differences: a plan compared with another set, in the words of the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from imagenet_prep.state.manifest import Manifest, SplitTotals
from imagenet_prep.state.plan_file import Plan


def differences(
    plan: Plan, recorded_set: Plan | Manifest, or_else: str = "boxes or columns of some images"
) -> list[str]:
    """A list of the differences to another set; ``or_else`` if settings and totals are the same."""
    changes = _changed_settings(recorded_set.settings, plan.settings)
    if plan.dataset.classes != recorded_set.dataset.classes:
        changes.append("classes")
    for split, totals in plan.totals.items():
        changes += _changed_totals(split, recorded_set.totals.get(split), totals)
        if _content(recorded_set.sources.get(split)) != _content(plan.sources[split]):
            changes.append(f"{split} images")
    for split, totals in recorded_set.totals.items():
        if split not in plan.totals:
            changes.append(f"number of {split} shards ({totals.shards}, now none)")
    if not changes and or_else:
        return [or_else]
    return changes


def _changed_totals(split: str, recorded: SplitTotals | None, planned: SplitTotals) -> list[str]:
    """The totals of a split that differ."""
    if recorded is None:
        return [f"number of {split} shards (none, now {planned.shards})"]
    changes: list[str] = []
    if recorded.shards != planned.shards:
        changes.append(f"number of {split} shards ({recorded.shards}, now {planned.shards})")
    if recorded.boxes != planned.boxes:
        changes.append(f"{split} boxes")
    if recorded.classes != planned.classes:
        changes.append(f"number of {split} classes")
    if recorded.expected != planned.expected:
        changes.append(f"expected number of {split} images")
    return changes


def _changed_settings(recorded: Mapping[str, Any], planned: Mapping[str, Any]) -> list[str]:
    """The settings that differ, as the user writes them: "--resize (64, now 32)"."""
    from imagenet_prep.datasets.declarations import CommonSettings, settings_of

    settings = settings_of(CommonSettings)
    options = {setting.name for setting in settings if "convert" in setting.options}
    recorded_values, planned_values = flattened(recorded), flattened(planned)
    if "codec" not in recorded_values or "codec" not in planned_values:  # kept images have none
        recorded_values["codec"] = planned_values["codec"] = None
    changes: list[str] = []
    for name in sorted({*recorded_values, *planned_values}):
        recorded_value, planned_value = recorded_values.get(name), planned_values.get(name)
        if recorded_value == planned_value:
            continue
        words = f"--{name.replace('_', '-')}" if name in options else name
        if _is_plain(recorded_value) and _is_plain(planned_value):
            words += f" ({_show(recorded_value)}, now {_show(planned_value)})"
        changes.append(words)
    return changes


def _is_plain(setting_value: object) -> bool:
    """Whether a message can show a value of a setting."""
    return setting_value is None or isinstance(setting_value, str | int)


def _show(setting_value: object) -> str:
    return "none" if setting_value is None else json.dumps(setting_value).strip('"')


def flattened(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, with those of encoding again among them."""
    reencode = settings.get("reencode")
    if isinstance(reencode, dict):
        return {**settings, **reencode, "reencode": None}
    return dict(settings)


def _content(source: object) -> object:
    """The values of a source record that decide its images:
    the same ones may be in an archive or in folders.
    """
    if isinstance(source, dict):
        return source.get("images"), source.get("names_and_sizes")
    return source
