"""Features of a record -> its values, read tolerantly: every valid one is used, every missing one
is left out.

It is for records of any maker, in checks, pages and lists. ``inception_reader`` is the fast and
strict reader of one layout.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from imagenet_prep.model import Box
from imagenet_prep.tfrecord.example import BytesList, Feature, FloatList
from imagenet_prep.tfrecord.inception import EDGES


def first_value(features: Mapping[str, Feature], names: Iterable[str], kind: type[Feature]) -> Any:
    """The first value of the first of these features that has one of this kind; None without it."""
    for name in names:
        feature = features.get(name)
        if isinstance(feature, kind) and feature.values:
            return feature.values[0]
    return None


def only_value(features: Mapping[str, Feature], names: Iterable[str], kind: type[Feature]) -> Any:
    """The value of the first of these features that has one of this kind alone; None without it."""
    for name in names:
        feature = features.get(name)
        if isinstance(feature, kind) and len(feature.values) == 1:
            return feature.values[0]
    return None


def boxes_in(features: Mapping[str, Feature | None]) -> Iterator[tuple[Box, str | None]]:
    """The boxes, each with its name if the record has one for each."""
    edges = [features.get(f"image/object/bbox/{edge}") for edge in EDGES]
    lists = [edge.values if isinstance(edge, FloatList) else () for edge in edges]
    corners = list(zip(*lists, strict=False))
    texts = features.get("image/object/class/text")
    names: list[str | None] = [None] * len(corners)
    if isinstance(texts, BytesList) and len(texts.values) == len(corners):
        names = [str(name, "utf-8", "replace") for name in texts.values]
    for corner, name in zip(corners, names, strict=True):
        if all(map(math.isfinite, corner)):
            yield Box(*corner), name
