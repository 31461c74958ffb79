"""Which data set the page is about, and what it calls things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from imagenet_prep import ilsvrc2012
from imagenet_prep.manifest import Manifest
from imagenet_prep.reporting.census import Census


@dataclass(frozen=True, slots=True)
class Subject:
    """The data set.

    Args:
        name: of the data set.
        splits: what the names of shards begin with, in order.
        is_recipe: it was made by a recipe, and is not ILSVRC2012.
        thing: what a record is called.
        has_classes: the labels in the records are those of its classes.
        has_boxes: there is something to say of boxes.
        features: what a recipe promises of every record, by name.
    """

    name: str = "ILSVRC2012"
    splits: tuple[str, ...] = ilsvrc2012.SPLITS
    is_recipe: bool = False
    thing: Literal["image", "record"] = "image"
    has_classes: bool = True
    has_boxes: bool = True
    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Manifest | None, census: Census) -> Subject:
        """That of a recipe's manifest and what was counted; ILSVRC2012 without one."""
        if manifest is None or manifest.recipe is None:
            return ILSVRC2012
        return cls(
            manifest.dataset,
            manifest.splits,
            is_recipe=True,
            thing="image" if census.has_images else "record",
            has_classes=_writes_labels(manifest.settings.get("record")),
            has_boxes=any(found.boxes.keys() - {0} for found in census.splits.values()),
            features=features_of(manifest),
        )


def features_of(manifest: Manifest) -> Mapping[str, Mapping[str, Any]]:
    """What a recipe promises of every record, by name: its kind, and whether it may be missing."""
    features: Mapping[str, Mapping[str, Any]] = (manifest.recipe or {}).get("features", {})
    return features


def _writes_labels(record: object) -> bool:
    """Whether a recipe's records hold the labels of its classes: Inception's do, others if it says so."""
    if not isinstance(record, dict):
        return True
    return any(isinstance(mapped, dict) and mapped.get("from") == "label" for mapped in record.values())


ILSVRC2012 = Subject()
