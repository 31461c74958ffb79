"""differences: a plan compared with another set, in the words of the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from imagenet_prep.state.manifest import Manifest, SplitTotals
from imagenet_prep.state.plan_file import Plan


def differences(
    plan: Plan, other: Plan | Manifest, or_else: str = "boxes or columns of some images"
) -> list[str]:
    """A list of the differences to another set; ``or_else`` if settings and totals are the same."""
    changes = _changed_settings(other.settings, plan.settings)
    if plan.dataset.classes != other.dataset.classes:
        changes.append("classes")
    for split, totals in plan.totals.items():
        changes += _changed_totals(split, other.totals.get(split), totals)
        if _content(other.sources.get(split)) != _content(plan.sources[split]):
            changes.append(f"{split} images")
    if not changes and or_else:
        return [or_else]
    return changes


def _changed_totals(split: str, before: SplitTotals | None, now: SplitTotals) -> list[str]:
    """The totals of a split that differ."""
    if before is None:
        return [f"number of {split} shards (none, now {now.shards})"]
    changes: list[str] = []
    if before.shards != now.shards:
        changes.append(f"number of {split} shards ({before.shards}, now {now.shards})")
    if before.boxes != now.boxes:
        changes.append(f"{split} boxes")
    if before.classes != now.classes:
        changes.append(f"classes of {split}")
    if before.expected != now.expected:
        changes.append(f"expected of {split}")
    return changes


def _changed_settings(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings that differ, as the user writes them: "--resize (64, now 32)"."""
    from imagenet_prep.datasets.declarations import CommonSettings, settings_of

    settings = settings_of(CommonSettings)
    options = {setting.name for setting in settings if "convert" in setting.options}
    values_before, values_now = _flatten(before), _flatten(now)
    if "codec" not in values_before or "codec" not in values_now:  # kept images have none
        values_before["codec"] = values_now["codec"] = None
    changes: list[str] = []
    for name in sorted({*values_before, *values_now}):
        value_before, value_now = values_before.get(name), values_now.get(name)
        if value_before == value_now:
            continue
        words = f"--{name.replace('_', '-')}" if name in options else name
        if _is_plain(value_before) and _is_plain(value_now):
            words += f" ({_show(value_before)}, now {_show(value_now)})"
        changes.append(words)
    return changes


def _is_plain(value: object) -> bool:
    """Whether a message can show a value of a setting."""
    return value is None or isinstance(value, str | int)


def _show(value: object) -> str:
    return "none" if value is None else json.dumps(value).strip('"')


def _flatten(settings: Mapping[str, Any]) -> dict[str, Any]:
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
