"""ConsumedImages, a split whose raw data gave its space to the shards, or is about to: what it held is on record."""

from __future__ import annotations

from dataclasses import dataclass

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.source import ImageSource, finished
from imagenet_prep.model import Engine, Progress
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.consumption import Consumption
from imagenet_prep.storage.layout import Layout


@dataclass(frozen=True, slots=True)
class ConsumedImages(ImageSource):
    """A split on record; ``path`` is where its first file lay."""

    consumption: Consumption

    @classmethod
    def find(cls, layout: Layout, split: str) -> ConsumedImages | None:
        """What is on record of a split."""
        if layout.raw_dir.resolve() != layout.own_raw_dir.resolve():
            return None
        found = Consumption.find(layout, split)
        return cls(layout.data_dir / found.files[0].path, split, found) if found else None

    @property
    def size(self) -> int:
        """Bytes that the files had."""
        return sum(each.size for each in self.consumption.files)

    @property
    def words(self) -> str:
        """Where its images are."""
        whose = f"the {self.split} shards"
        return (
            f"{whose} alone: {self.path.name} was consumed" if self.consumption.is_over else f"{whose} or on their way"
        )

    @property
    def md5(self) -> str:
        """The published one, if its file was seen to have that before it was consumed."""
        published = facts.ARCHIVES[self.split].md5
        return published if self.consumption.files[0].digests.get("md5") == published else ""

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images as they were listed; none can be read."""
        return finished([self.consumption.catalog()], self.split)
