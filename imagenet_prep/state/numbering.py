"""Numbering: the numbers of a set's classes, from its manifest;
class_index: a label counted from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.state.manifest import ILSVRC2012, DatasetEntry, Manifest
from imagenet_prep.storage.location import AnyPath

INCEPTIONS_FIRST = 1
"""The label of the first class in Inception's format, where 0 is the background."""


class Numbering(Struct, frozen=True):
    """The numbers of the classes of a set.

    Args:
        first_label: the label that counts as class 0.
        labels: the label of each class by its name; empty if the set has none, or all of
            ILSVRC2012.
        texts: the words of the classes whose words are not their names.
        objects: the name of each class of objects by its label; empty if objects have the label of
            their image.
    """

    first_label: int = INCEPTIONS_FIRST
    labels: Mapping[str, int] = {}
    texts: Mapping[str, str] = {}
    objects: Mapping[int, str] = {}

    @classmethod
    def find(cls, manifest: Manifest | None) -> Numbering:
        """The numbering of a set; without a manifest, labels count as in Inception's records."""
        if manifest is None:
            return cls()
        return cls.read(manifest.dataset, manifest.settings)

    @classmethod
    def read(cls, entry: DatasetEntry, settings: Mapping[str, Any]) -> Numbering:
        """The numbering in the entry and the settings of a manifest, or of a plan."""
        if entry.kind == ILSVRC2012:
            # official labels never have a 0, and --relabel 0 always has one
            first_label = 0 if 0 in entry.classes.values() else INCEPTIONS_FIRST
        else:
            usual = INCEPTIONS_FIRST if settings.get("record") == "inception" else 0
            first_label = int(settings.get("first_label", usual))
        return cls(first_label, entry.classes, entry.texts, box_classes(settings))

    @property
    def names(self) -> dict[int, str]:
        """The name of each class by its label."""
        return {label: name for name, label in self.labels.items()}

    @property
    def indices(self) -> dict[str, int]:
        """The label of each class counted from 0, by its name."""
        return {name: label - self.first_label for name, label in self.labels.items()}


def box_classes(settings: Mapping[str, Any]) -> dict[int, str]:
    """The names of boxes by label, from the settings in a recipe's manifest."""
    names_by_label = settings.get("boxes", {})
    return {int(label): str(name) for label, name in names_by_label.items()}


class Placed(Protocol):
    """A record that names its place."""

    @property
    def place(self) -> str:
        """Its file, number and byte, for messages."""
        ...


def class_index(
    label: int | None, first_label: int, record: Placed, folder: AnyPath | None = None
) -> int | None:
    """A label counted from 0, as networks have it; None for none. Nothing else counts labels of
    records from 0.

    Args:
        label: as it is in the record.
        first_label: the label of the first class.
        record: the record, for the error.
        folder: of the shards, for an error where nobody can set the first label.

    Raises:
        InputError: the label is below ``first_label``.
    """
    if label is None:
        return None
    if label < first_label:
        problem, expected = f"{record.place} has label {label}", f"expected {first_label} or more"
        hint = f"write the records again, with labels from {first_label} up"
        if label >= 0:
            hint = f"if labels count from {label}, in Python: records.first_label = {label}"
            if folder is not None:
                start = f"if labels count from {label}, start with a recipe for these shards: "
                hint = Hint(start, command("init", folder))
        raise InputError(problem, expected, hint)
    return label - first_label
