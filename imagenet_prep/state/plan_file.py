"""Plan: the decisions about a set and the place of its images, on the disk.
Claim: who may decide there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, convert, to_builtins

from imagenet_prep.hints import as_text
from imagenet_prep.state.journal import is_as_written, sealed_line
from imagenet_prep.state.manifest import DatasetEntry, SplitTotals
from imagenet_prep.storage.files import find_plain
from imagenet_prep.storage.layout import MAX_SHARDS, Layout, shard_name
from imagenet_prep.storage.location import AnyPath, locate

MOST_BYTES = 1 << 33
"""The largest plan file that is read; a million shards need 70 MB."""

Stamps = Mapping[str, Mapping[str, str]]
"""By split, the stamp of each container that holds its images, by path."""

Samples = tuple[tuple[int, ...], ...]
"""Per shard, the CRC-32C of some of its images; see datasets.copies."""


class Plan(Struct, frozen=True):
    """The decisions about a set, and the place of its images.

    Args:
        dataset: the manifest's entry for the data set.
        settings: those that decide bytes.
        sources: the manifest's entry for each split's images.
        totals: the planned totals of each split.
        fingerprints: of the shards of each split, in order.
        expected: images of the whole data set, by split.
        options: the settings that make the same set again.
        raw: the folder of raw data, if one was given, or if the shards are not in DATA_DIR.
        recipe: the recipe's path, and the base of its relative paths.
        stamps: of all containers that were found to hold the images.
        times: per shard of each split, a digest of the modification times of its image files or
            archives.
        rows: the name of the folder next to plan.json that holds the images of each split in record
            order.
        origins: the places of each split's images.
        samples: of each split; none if one machine makes the set, and none once it is finished.
        notes: messages for the user.
        asked: ``options`` and ``raw`` of the Asked that it was planned from.
        generation: "" until shards of another plan were replaced here; then a digest of both plans.
        schema: that of its file.
    """

    dataset: DatasetEntry
    settings: Mapping[str, Any]
    sources: Mapping[str, Mapping[str, Any]]
    totals: Mapping[str, SplitTotals]
    fingerprints: Mapping[str, tuple[str, ...]]
    expected: Mapping[str, int]
    options: tuple[tuple[str, Any], ...] = ()
    raw: str | None = None
    recipe: Mapping[str, str] = {}
    stamps: Stamps = {}
    times: Mapping[str, tuple[str, ...]] = {}
    rows: Mapping[str, str] = {}
    origins: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()
    asked: Mapping[str, Any] = {}
    samples: Mapping[str, Samples] = {}
    generation: str = ""
    schema: Literal[2] = 2

    @property
    def key(self) -> str:
        """A digest of the shards to make and of the generation:
        two plans of one set have the same.
        """
        digest = hashlib.sha256(self.generation.encode())
        for split, fingerprints in sorted(self.fingerprints.items()):
            lines = (split, str(len(fingerprints)), *fingerprints, "")
            digest.update("\n".join(lines).encode())
        return digest.hexdigest()[:16]

    def extends(self, earlier_plan: Plan | None) -> bool:
        """Whether it has all shards of another plan, unchanged: the set has grown."""
        if earlier_plan is None:
            return False
        return earlier_plan.fingerprints.items() <= self.fingerprints.items()

    @property
    def raw_dir(self) -> AnyPath | None:
        """The recorded folder of raw data."""
        return locate(self.raw) if self.raw else None

    def names(self, split: str) -> list[str]:
        """The names of the shards of a split, in order."""
        count = len(self.fingerprints.get(split, ()))
        return [shard_name(split, number, count) for number in range(count)]

    def fingerprints_by_name(self) -> dict[str, str]:
        """The fingerprint of each shard to make, by its name."""
        by_name: dict[str, str] = {}
        for split, fingerprints in self.fingerprints.items():
            by_name.update(zip(self.names(split), fingerprints, strict=True))
        return by_name

    def encode(self) -> bytes:
        """The content of its file: one line of JSON with a seal."""
        return sealed_line(to_builtins(self, str_keys=True, enc_hook=as_text))


def load_plan(layout: Layout) -> Plan | None:
    """The plan of the set, or None if it does not exist or can't be understood.

    Raises:
        InputError: it can't be read.
    """
    return decode_plan(find_plain(layout.plan_path, MOST_BYTES) or b"")


def decode_plan(content: bytes) -> Plan | None:
    """The plan with this content; None if it is damaged."""
    if not is_as_written(content):
        return None
    try:
        plan = convert({"schema": None, **json.loads(content)}, Plan)  # without a schema it is none
    except ValueError:
        return None
    counts = {split: totals.shards for split, totals in plan.totals.items()}
    planned = {split: len(fingerprints) for split, fingerprints in plan.fingerprints.items()}
    if counts != planned:
        return None
    if not all(0 < count <= MAX_SHARDS for count in counts.values()):
        return None
    return plan
