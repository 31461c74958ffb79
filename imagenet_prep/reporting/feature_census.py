"""What records hold under each name that a recipe promises: how many have it, and between which bounds it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from imagenet_prep.tfrecord.example import KINDS, BytesList, Feature


@dataclass(slots=True)
class Spread:
    """How many numbers there were, their sum, the least and the greatest; None before there are any."""

    count: int = 0
    total: float = 0
    least: float | None = None
    greatest: float | None = None

    def add(self, *values: float) -> None:
        """Take some numbers."""
        self.merge(Spread(len(values), sum(values), min(values), max(values)))

    def merge(self, other: Spread) -> None:
        """Take all that another one has seen."""
        self.count += other.count
        self.total += other.total
        if other.least is not None and other.greatest is not None:
            self.least = other.least if self.least is None else min(self.least, other.least)
            self.greatest = other.greatest if self.greatest is None else max(self.greatest, other.greatest)


@dataclass(slots=True)
class FeatureCensus:
    """One feature in every record that has it in the promised kind.

    ``values`` are how many values the records have; ``bounds`` the numbers themselves, of byte strings their lengths;
    ``not_numbers`` counts records with a NaN.
    """

    values: Spread = field(default_factory=Spread)
    bounds: Spread = field(default_factory=Spread)
    not_numbers: int = 0

    def take(self, feature: Feature) -> None:
        """Count one record's."""
        count = len(feature.values)
        self.values.add(count)
        if isinstance(feature, BytesList):
            numbers: list[float] = [len(value) for value in feature.values]
        else:
            numbers = [value for value in feature.values if value == value]  # a NaN has no place between bounds
            self.not_numbers += len(numbers) < count
        if numbers:
            self.bounds.add(*numbers)

    def merge(self, other: FeatureCensus) -> None:
        """Take all that another one has seen."""
        self.not_numbers += other.not_numbers
        self.values.merge(other.values)
        self.bounds.merge(other.bounds)


@dataclass(slots=True)
class FeaturesCensus:
    """The promised features by name; ``others`` counts records that hold more than these."""

    named: dict[str, FeatureCensus] = field(default_factory=dict)
    others: int = 0

    def take(self, features: Mapping[str, Feature], kinds: Mapping[str, str]) -> None:
        """Count one record; ``kinds`` are those promised, by name."""
        for name, kind in kinds.items():
            feature = features.get(name)
            if feature is not None and KINDS[type(feature)] == kind:
                self.named.setdefault(name, FeatureCensus()).take(feature)
        self.others += not features.keys() <= kinds.keys()

    def merge(self, other: FeaturesCensus) -> None:
        """Take all that another one has seen."""
        self.others += other.others
        for name, found in other.named.items():
            self.named.setdefault(name, FeatureCensus()).merge(found)
