"""missing_text: the images of each class, counted -> a sentence about what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, Part
from imagenet_prep.text import listed, number_of

if TYPE_CHECKING:  # verify counts without NumPy, which a catalog loads
    from imagenet_prep.sources.catalog import Catalog

_NAMED = 3  # some names of more classes say little


def expected_images(
    catalog: Catalog | None, split: str, part: Part, by_class: Mapping[str, int] = {}
) -> int:
    """The expected number of images of a split; for some train classes, only a minimum is known.

    ``by_class`` are the devkit's numbers of train images, empty without a devkit.
    """
    if part.is_whole:
        return facts.IMAGES[split]
    if by_class and split == facts.TRAIN:
        return sum(by_class[wnid] for wnid in part.labels)
    counts = catalog.count_by_label() if catalog and split == facts.TRAIN else {}
    fewest = facts.FEWEST[split]
    return sum(max(counts.get(label, 0), fewest) for label in part.rows())


def at_least_text(split: str, part: Part, by_class: Mapping[str, int]) -> str:
    """The words before an expected number of images: "at least " if it is a minimum, else ""; see
    ``expected_images``.
    """
    is_exact = part.is_whole or bool(by_class) or split == facts.VALIDATION
    return "" if is_exact else "at least "


def missing_text(
    catalog: Catalog | None, split: str, part: Part = WHOLE, by_class: Mapping[str, int] = {}
) -> str | None:
    """A description of the images that a split of the part lacks;
    None if it is complete; see ``expected_images``.
    """
    expected = expected_images(catalog, split, part, by_class)
    is_counted = bool(by_class) and split == facts.TRAIN
    counts = catalog.count_by_label() if catalog else {}
    present = sum(counts.values())
    differing = _differing_classes(counts, by_class) if is_counted else []
    if present == expected and len(counts) == len(part.labels) and not differing:
        return None
    at_least = at_least_text(split, part, by_class)
    text = f"{split}: {present:,} of {at_least}{expected:,} images"
    faults: list[str] = []
    if present < expected:
        faults.append(f"{expected - present:,} missing")
    elif present > expected:
        faults.append(f"{present - expected:,} too many")
    faults.append(_classes_text("without an image", _absent_classes(counts, part)))
    if differing:
        faults.append(_classes_text("with other numbers than the devkit's", differing))
    else:
        fewest = facts.FEWEST[split]
        quality = f"below the minimum of {fewest}"
        faults.append(_classes_text(quality, _short_classes(counts, fewest)))
    return f"{text} ({'; '.join(filter(None, faults))})"


def has_too_many(
    catalog: Catalog | None, split: str, part: Part, by_class: Mapping[str, int]
) -> bool:
    """Whether a split has more images than the part, in all or in a class."""
    counts = catalog.count_by_label() if catalog else {}
    if sum(counts.values()) > expected_images(catalog, split, part, by_class):
        return True
    if not by_class or split != facts.TRAIN:
        return False
    return any(count > by_class[wnid] for wnid, count in count_by_wnid(counts).items())


def has_too_few(
    catalog: Catalog | None, split: str, part: Part, by_class: Mapping[str, int]
) -> bool:
    """Whether a split has fewer images than the part, in all or in a class."""
    counts = catalog.count_by_label() if catalog else {}
    if sum(counts.values()) < expected_images(catalog, split, part, by_class):
        return True
    if len(counts) < len(part.labels):
        return True
    if not by_class or split != facts.TRAIN:
        return False
    return any(count < by_class[wnid] for wnid, count in count_by_wnid(counts).items())


def _classes_text(quality: str, classes: Sequence[str]) -> str:
    """Describe classes, as "2 classes without an image: n01440764, n01443537"; "" for none.

    Of many classes, only their number is given.
    """
    if not classes:
        return ""
    text = f"{number_of(len(classes), 'class', 'classes')} {quality}"
    return text if len(classes) > _NAMED else f"{text}: {listed(classes)}"


def _absent_classes(counts: Mapping[int, int], part: Part) -> list[str]:
    """The classes of the part without an image."""
    labels = facts.labels()
    return [wnid for wnid in facts.synsets() if wnid in part.labels and labels[wnid] not in counts]


def _short_classes(counts: Mapping[int, int], fewest: int) -> list[str]:
    """The classes with fewer images than the smallest class has, with their numbers."""
    wnids = facts.synsets()
    return [
        f"{wnids[label - 1]} ({count})" for label, count in sorted(counts.items()) if count < fewest
    ]


def _differing_classes(counts: Mapping[int, int], by_class: Mapping[str, int]) -> list[str]:
    """The classes that are there with another number of images than the devkit's."""
    return [
        f"{wnid} ({count:,} of {by_class[wnid]:,})"
        for wnid, count in count_by_wnid(counts).items()
        if count != by_class[wnid]
    ]


def count_by_wnid(counts: Mapping[int, int]) -> dict[str, int]:
    """The numbers of images by class, of those by label."""
    wnids = facts.synsets()
    return {wnids[label - 1]: count for label, count in counts.items()}
