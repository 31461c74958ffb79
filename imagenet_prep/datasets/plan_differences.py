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
        recorded_source, source = recorded_set.sources.get(split), plan.sources[split]
        counts = _image_count(recorded_source), _image_count(source)
        changes += _changed_totals(split, recorded_set.totals.get(split), totals, counts)
        if _content(recorded_source) != _content(source):
            changes.append(changed_images(split, *counts))
    for split, totals in recorded_set.totals.items():
        if split not in plan.totals:
            changes.append(f"number of {split} shards ({totals.shards}, now none)")
    if not changes and or_else:
        return [or_else]
    return changes


def changed_images(split: str, recorded: object = None, planned: object = None) -> str:
    """The words for other images of a split, with their numbers if these are known and differ."""
    if recorded is None or recorded == planned:
        return f"{split} images"
    return f"{split} images ({recorded}, now {planned})"


def _changed_totals(
    split: str,
    recorded: SplitTotals | None,
    planned: SplitTotals,
    image_counts: tuple[object, object],
) -> list[str]:
    """The totals of a split that differ. Where all images that are there were expected, those
    tell the difference: ``image_counts`` has their numbers, recorded and planned.
    """
    if recorded is None:
        return [f"number of {split} shards (none, now {planned.shards})"]
    changes: list[str] = []
    if recorded.shards != planned.shards:
        changes.append(f"number of {split} shards ({recorded.shards}, now {planned.shards})")
    if recorded.boxes != planned.boxes:
        changes.append(f"{split} boxes")
    if recorded.classes != planned.classes:
        changes.append(f"number of {split} classes")
    expected = (recorded.expected, planned.expected)
    if recorded.expected != planned.expected and expected != image_counts:
        numbers = f"({recorded.expected}, now {planned.expected})"
        changes.append(f"expected number of {split} images {numbers}")
    return changes


def _changed_settings(recorded: Mapping[str, Any], planned: Mapping[str, Any]) -> list[str]:
    """The settings that differ, as the user writes them: "--resize (64, now 32)"."""
    from imagenet_prep.datasets.declarations import CommonSettings, settings_of
    from imagenet_prep.images.pixels import QUALITY

    settings = settings_of(CommonSettings)
    options = {setting.name for setting in settings if "convert" in setting.options}
    recorded_values, planned_values = flattened(recorded), flattened(planned)
    if "codec" not in recorded_values or "codec" not in planned_values:  # kept images have none
        recorded_values["codec"] = planned_values["codec"] = None
    is_quality_implied = (
        not recorded.get("reencode")
        and planned_values.get("quality") == QUALITY
        and bool(planned_values.get("resize") or planned_values.get("max_side"))
    )
    changes: list[str] = []
    for name in sorted({*recorded_values, *planned_values}):
        recorded_value, planned_value = recorded_values.get(name), planned_values.get(name)
        if recorded_value == planned_value:
            continue
        if is_quality_implied and name == "quality":  # the option that is listed brings it
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
    return "not set" if setting_value is None else json.dumps(setting_value).strip('"')


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


def _image_count(source: object) -> object:
    """The number of images in a source record; None if it does not tell."""
    return source.get("images") if isinstance(source, dict) else None
