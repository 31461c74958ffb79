"""The images of the page: the odd ones with their reasons, and those of each class as JSON for the script."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from imagenet_prep.escaping import NAME, command_line
from imagenet_prep.images.prepare import TURNED
from imagenet_prep.reporting.census import (
    BROKEN,
    CHANGED,
    EXTREME,
    FOUR,
    GREY,
    HUGE,
    LARGE_SIDE,
    MOST_EXTREME,
    PNG,
    ROTATED,
    SHOWN_NAMES,
    SMALL_SIDE,
    TINY,
    Census,
    Odd,
)
from imagenet_prep.reporting.page_facts import Facts
from imagenet_prep.reporting.samples import Copy, Place, Sample
from imagenet_prep.storage.layout import split_of
from imagenet_prep.text import number_of, size_text

Picture = tuple[int, Sample, str]
"""A number that is unique on the page, the sample, and the reason to show it: "" if none is needed."""


def show_command(facts: Facts, shard: str, number: int | str) -> str:
    """The command that shows a record."""
    return command_line([NAME, "show", f"{facts.name}/{shard}", "--record", str(number)])


# odd images ------------------------------------------------------------------------------------------------------

_KINDS = {
    GREY: ("Grey", "one colour component; the record still says RGB and 3 channels, as in 2016"),
    ROTATED: ("EXIF-rotated", "the EXIF orientation is not upright; width, height and boxes are those before turning"),
    FOUR: ("Four colour components", "CMYK or YCCK, not repaired: many decoders refuse it"),
    PNG: ("PNG", "not repaired: it is not a JPEG, whatever its name says"),
    BROKEN: ("Not readable", "its header can't be read"),
    TINY: ("Tiny", f"a side of fewer than {SMALL_SIDE} pixels"),
    HUGE: ("Huge", f"a side of more than {LARGE_SIDE:,} pixels"),
    EXTREME: ("Extreme shape", f"one side is more than {MOST_EXTREME} times the other"),
}
_KINDS_BY_RECIPE = {
    **_KINDS,
    GREY: ("Grey", "one colour component; records of the Inception layout still say RGB and 3 channels"),
    ROTATED: ("EXIF-rotated", "the EXIF orientation is not upright; width and height are those before turning"),
}
_USUAL = (TINY, HUGE)
"""Kinds that are not odd if most images are of that kind."""

_REACHES = {
    "Duplicates across splits": "the same bytes, by SHA-256, in several splits: tests may include training images",
    "Duplicates within a split": "the same bytes, by SHA-256, in one split",
}
_CHANGES = {
    "Turned upright": "encoded again, and turned as EXIF asks: width and height are those after turning",
    "Repaired": "a PNG or a JPEG of four components, decoded and encoded as an RGB JPEG",
}


class OddImages(NamedTuple):
    """Odd images of one kind: ``places`` are shown, out of ``total``, each with its reason; ``names`` are others."""

    title: str
    meaning: str
    total: int
    places: Sequence[tuple[Place, str]]
    names: Sequence[str]


def odd_groups(facts: Facts) -> Iterator[tuple[OddImages, list[Picture]]]:
    """The odd images by kind, with pictures that are numbered after those of the samples."""
    numbers = itertools.count(len(facts.samples) + 1)
    for odd in (*_odd_kinds(facts), *_duplicates(facts), *_changed(facts)):
        shown = [(facts.odd_samples[place], reason) for place, reason in odd.places if place in facts.odd_samples]
        yield odd, [(next(numbers), sample, reason) for sample, reason in shown]


def odd_places(census: Census, groups: Sequence[Sequence[Copy]]) -> set[Place]:
    """The records that need a picture."""
    noted = {(shard, number) for odd in census.odd.values() for shard, number, _ in odd.first}
    return noted | {place for own in _by_reach(groups).values() for place, _ in _shown_copies(own)}


def _odd_kinds(facts: Facts) -> Iterator[OddImages]:
    images = sum(found.bytes.count for found in facts.census.splits.values())
    for kind, (title, meaning) in (_KINDS_BY_RECIPE if facts.subject.is_own else _KINDS).items():
        odd = facts.census.odd.get(kind, Odd())
        if odd.count and not (kind in _USUAL and odd.count > images / 2):
            places: list[tuple[Place, str]] = [((shard, number), "") for shard, number, _ in odd.first]
            names = [
                name or f"record {number} of {shard}"
                for shard, number, name in odd.first
                if (shard, number) not in facts.odd_samples
            ]
            yield OddImages(title, meaning, odd.count, places, names)


def _changed(facts: Facts) -> Iterator[OddImages]:
    """The images that were turned, repaired or left out, as the manifest names them: NAME (change)."""
    infos = facts.manifest.shards.values() if facts.manifest else ()
    parted = sorted(name.rpartition(" (") for info in infos for name in info.repairs)
    changes = [(name, change.removesuffix(")")) for name, _, change in parted]
    seen = facts.census.odd.get(CHANGED, Odd()).first
    pictured = {name for *_, name in seen}
    turned = [(name, change) for name, change in changes if TURNED in change.split(", ")]
    repaired = [(name, change) for name, change in changes if change != TURNED]
    for (title, meaning), found in zip(_CHANGES.items(), (turned, repaired), strict=True):
        reasons = dict(found)
        places: list[tuple[Place, str]] = [((shard, at), reasons[name]) for shard, at, name in seen if name in reasons]
        rest = [f"{name} ({change})" for name, change in found if name not in pictured]
        if found:
            yield OddImages(title, meaning, len(found), places, rest[: SHOWN_NAMES - len(places)])
    set_aside = sorted(name for info in infos for name in info.set_aside)
    if set_aside:
        yield OddImages("Set aside", "damaged, and left out by skip_bad", len(set_aside), (), set_aside[:SHOWN_NAMES])


def _duplicates(facts: Facts) -> Iterator[OddImages]:
    for title, groups in _by_reach(facts.duplicates).items():
        if groups:
            meaning = (
                f"{_REACHES[title]}; {number_of(len(groups), 'image')} of {number_of(sum(map(len, groups)), 'record')}"
            )
            yield OddImages(title, meaning, sum(map(len, groups)), _shown_copies(groups), ())


def _by_reach(groups: Sequence[Sequence[Copy]]) -> dict[str, list[Sequence[Copy]]]:
    """The duplicates across several splits, and those within one, by title."""
    found: dict[str, list[Sequence[Copy]]] = {title: [] for title in _REACHES}
    across, within = found.values()
    for group in groups:
        (across if len({split_of(copy.shard) for copy in group}) > 1 else within).append(group)
    return found


def _shown_copies(groups: Sequence[Sequence[Copy]]) -> list[tuple[Place, str]]:
    """The records of the first groups, each with the record that it repeats."""
    shown: list[tuple[Place, str]] = []
    for first, *others in groups:
        if shown and len(shown) + 1 + len(others) > SHOWN_NAMES:
            break
        name = first.filename or f"record {first.number} of {first.shard}"
        shown.append(((first.shard, first.number), ""))
        for copy in others[: SHOWN_NAMES - 1]:
            label = "" if copy.label == first.label else ", under another label"
            shown.append(((copy.shard, copy.number), f"the same as {name}{label}"))
    return shown


# classes -------------------------------------------------------------------------------------------------------


def class_rows(facts: Facts) -> list[dict[str, Any]]:
    """A row per class, in order of labels: its images, boxes and bytes by the number of their split."""
    census = facts.census
    found = {number: census.splits[split] for split, number in facts.splits.items()}
    labels = sorted(set().union(*(split.labels for split in found.values())))
    return [
        {
            "label": label,
            "name": census.words.get(label) or f"label {label}",
            "wnid": census.wnids.get(label, ""),
            "images": {number: split.labels[label] for number, split in found.items()},
            "boxes": {number: split.class_boxes[label] for number, split in found.items()},
            "bytes": {number: split.class_bytes[label] for number, split in found.items()},
        }
        for label in labels
    ]


def class_data(rows: Sequence[dict[str, Any]], facts: Facts) -> str:
    """The rows for the script, with the images of each class, as JSON that is safe within HTML."""
    shown = facts.of_classes
    classes = [
        {**row, "pictures": [_picture(each, facts) for each in shown.get(row["label"], ()) if each.thumbnail]}
        for row in rows
    ]
    value = {"command": show_command(facts, "@SHARD@", "@NUMBER@"), "classes": classes}
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _picture(sample: Sample, facts: Facts) -> dict[str, Any]:
    boxes = [(box.xmin, box.ymin, box.xmax - box.xmin, box.ymax - box.ymin) for box in sample.boxes]
    return {
        "split": facts.splits[split_of(sample.shard)],
        "file": sample.filename,
        "shard": sample.shard,
        "number": sample.number,
        "offset": sample.offset,
        "size": sample.size,
        "bytes": size_text(sample.file_size),
        "boxes": [[round(100 * edge, 2) for edge in box] for box in boxes],
        "webp": base64.b64encode(sample.thumbnail).decode(),
    }
