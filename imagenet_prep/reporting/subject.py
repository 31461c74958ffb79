"""Which data set the page is about, and what it calls things."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from imagenet_prep.checks.examiner import KnownSet, Published
from imagenet_prep.reporting.census import Census
from imagenet_prep.state.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Subject:
    """The data set.

    Args:
        name: of the data set.
        splits: what the names of shards begin with, in order.
        published: what is known of each split of the whole set; None for a set of one's own.
        thing: what a record is called.
        has_classes: the labels in the records are those of its classes.
        has_boxes: there is something to say of boxes.
        features: what is promised of every record, by name.
    """

    name: str
    splits: tuple[str, ...]
    published: Mapping[str, Published] | None = None
    thing: Literal["image", "record"] = "image"
    has_classes: bool = True
    has_boxes: bool = True
    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def is_own(self) -> bool:
        """Whether it is a set of one's own: nobody has published facts of it."""
        return self.published is None

    @classmethod
    def of(cls, dataset: KnownSet, manifest: Manifest | None, census: Census) -> Subject:
        """That of a known data set, by its manifest and by what was counted."""
        if dataset.published is not None or manifest is None:
            return cls(dataset.name, dataset.splits, dataset.published)
        return cls(
            dataset.name,
            dataset.splits,
            thing="image" if census.has_images else "record",
            has_classes=_writes_labels(manifest.settings.get("record")),
            has_boxes=any(found.boxes.keys() - {0} for found in census.splits.values()),
            features=manifest.dataset.features,
        )


def _writes_labels(record: object) -> bool:
    """Whether a recipe's records hold the labels of its classes: Inception's do, others if it says so."""
    if not isinstance(record, dict):
        return True
    return any(isinstance(mapped, dict) and mapped.get("from") == "label" for mapped in record.values())
