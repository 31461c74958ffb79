"""differences: a plan compared with another set, in the words of the user."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from imagenet_prep.state.manifest import Manifest
from imagenet_prep.state.plan_file import Plan


def differences(
    plan: Plan, other: Plan | Manifest, or_else: str = "boxes or columns of some images"
) -> list[str]:
    """A list of the differences to another set; ``or_else`` if settings and totals are the same."""
    found = _changed_settings(other.settings, plan.settings)
    found += ["classes"] if plan.dataset.classes != other.dataset.classes else []
    for split, totals in plan.totals.items():
        then = other.totals.get(split)
        if then is None or then.shards != totals.shards:
            found.append(
                f"number of {split} shards ({then.shards if then else 'none'}, now {totals.shards})"
            )
        for name in ("boxes", "classes", "expected") if then is not None else ():
            if getattr(then, name) != getattr(totals, name):
                found.append(f"{split} boxes" if name == "boxes" else f"{name} of {split}")
        if _content(other.sources.get(split)) != _content(plan.sources[split]):
            found.append(f"{split} images")
    return found or [or_else] * bool(or_else)


def _changed_settings(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The settings that differ, as the user writes them: "--resize (64, now 32)"."""
    from imagenet_prep.datasets.declarations import CommonSettings, settings_of

    options = {each.name for each in settings_of(CommonSettings) if "convert" in each.options}
    before, after = map(_flat, (then, now))
    if "codec" not in before.keys() & after.keys():  # images that are kept have none
        before, after = ({**each, "codec": None} for each in (before, after))
    found = []
    for name in sorted({*before, *after}):
        values = before.get(name), after.get(name)
        if values[0] != values[1]:
            is_plain = all(value is None or isinstance(value, str | int) for value in values)
            told = [
                "none" if value is None else json.dumps(value).strip('"')
                for value in values
                if is_plain
            ]
            words = f"--{name.replace('_', '-')}" if name in options else name
            found.append(f"{words} ({told[0]}, now {told[1]})" if is_plain else words)
    return found


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    how = settings.get("reencode")
    return {**settings, **how, "reencode": None} if isinstance(how, dict) else dict(settings)


def _content(source: object) -> object:
    """The values of a source record that decide its images:
    the same ones may be in an archive or in folders.
    """
    return (
        (source.get("images"), source.get("names_and_sizes"))
        if isinstance(source, dict)
        else source
    )
