"""The images of the page: samples and odd ones as tiles of a grid that can be enlarged, and those of each class."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from imagenet_prep.escaping import NAME, command_line
from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import Box
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
)
from imagenet_prep.reporting.charts import TIMES
from imagenet_prep.reporting.page_facts import Facts
from imagenet_prep.reporting.samples import Copy, Place, Sample
from imagenet_prep.storage.layout import split_of
from imagenet_prep.text import number_of, size_text

MOST_OBLONG = 2.5
"""Images more oblong than this, either way, leave some of their place in the grid empty."""


def tile(number: int, sample: Sample, facts: Facts, reason: str = "") -> dict[str, Any]:
    """A sample in the grid, with the words of its class; in a set without classes there is no title.

    ``number`` tells it from the others of the page. ``ratio`` is the image's width / height, ``shape`` that of its
    place; ``url`` is its thumbnail, "" if there is none; ``boxes`` are CSS. ``facts`` are for the large view: name,
    value, and whether the value is one to copy; ``reason`` tells why it is shown.
    """
    ratio = sample.size[0] / sample.size[1]
    title = "" if facts.subject.is_own else "no label"
    if sample.label is not None:
        title = facts.census.words.get(sample.label) or f"label {sample.label}"
    filename = sample.filename or f"record {sample.number} of {sample.shard}"
    details = f"{sample.size[0]} {TIMES} {sample.size[1]}"
    if facts.subject.has_boxes:
        details += f", {number_of(len(sample.boxes), 'box', 'boxes') if sample.boxes else 'no box'}"
    return {
        "number": number,
        "split": facts.splits[split_of(sample.shard)],
        "title": title,
        "filename": filename,
        "details": details,
        "alt": f"{title}: {filename}, {details}" if title else f"{filename}, {details}",
        "ratio": ratio,
        "shape": min(MOST_OBLONG, max(1 / MOST_OBLONG, ratio)),
        "url": f"data:image/jpeg;base64,{base64.b64encode(sample.thumbnail).decode()}" if sample.thumbnail else "",
        "boxes": [";".join(f"{name}:{edge:.4f}%" for name, edge in _edges(box).items()) for box in sample.boxes],
        "facts": list(_describe(sample, facts)),
        "reason": reason,
    }


def _describe(sample: Sample, facts: Facts) -> Iterator[tuple[str, str, bool]]:
    """All that there is to say of an image."""
    if sample.label is not None:
        yield "label", f"{sample.label:,}", False
    if sample.wnid:
        yield "WordNet id", sample.wnid, True
    if sample.filename:
        yield "file", sample.filename, True
    width, height = sample.size
    yield "image", f"{width:,} {TIMES} {height:,} pixels, {size_text(sample.file_size)}", False
    if facts.subject.has_boxes:
        corners = (
            f"({round(box.xmin * width):,}, {round(box.ymin * height):,})"
            f" to ({round(box.xmax * width):,}, {round(box.ymax * height):,})"
            for box in sample.boxes
        )
        yield number_of(len(sample.boxes), "box", "boxes"), "; ".join(corners), False
    yield "record", f"number {sample.number:,} of {sample.shard}, from byte {sample.offset:,} on", False
    yield "to see it", _command(facts, sample.shard, str(sample.number)), True


def _command(facts: Facts, shard: str, number: str) -> str:
    return command_line([NAME, "show", f"{facts.name}/{shard}", "--record", number])


def _edges(box: Box) -> dict[str, float]:
    """Where a box lies in its image, in percent."""
    edges = {"left": box.xmin, "top": box.ymin, "width": box.xmax - box.xmin, "height": box.ymax - box.ymin}
    return {name: 100 * edge for name, edge in edges.items()}


# odd images ------------------------------------------------------------------------------------------------------

_KINDS = {
    GREY: ("Grey", "one colour component; the record says RGB and 3 channels all the same, as in 2016"),
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
    GREY: ("Grey", "one colour component; records of the Inception layout say RGB and 3 channels all the same"),
    ROTATED: ("EXIF-rotated", "the EXIF orientation is not upright; width and height are those before turning"),
}
_USUAL = (TINY, HUGE)
"""Kinds that are not odd where most images are of them."""

_ACROSS = "the same bytes, by SHA-256, in several splits: what is tested with may have been trained with"
_CHANGES = {
    "Turned upright": "encoded again, and turned as EXIF asks: width and height are those after turning",
    "Repaired": "a PNG or a JPEG of four components, decoded and encoded as an RGB JPEG",
}


class OddImages(NamedTuple):
    """Odd images of one kind: ``places`` are those to be shown of ``total``, each with its reason; ``names`` others."""

    title: str
    meaning: str
    total: int
    places: Sequence[tuple[Place, str]]
    names: Sequence[str]


def odd_groups(facts: Facts) -> list[dict[str, Any]]:
    """The odd images by kind, with tiles that are numbered behind those of the samples."""
    numbers, groups = itertools.count(len(facts.samples) + 1), []
    for odd in (*_odd_kinds(facts), *_duplicates(facts), *_changed(facts)):
        pictured = [(facts.odd_samples[place], reason) for place, reason in odd.places if place in facts.odd_samples]
        tiles = [tile(next(numbers), sample, facts, reason) for sample, reason in pictured]
        groups.append({**odd._asdict(), "tiles": tiles, "more": odd.total - len(tiles) - len(odd.names)})
    return groups


def odd_places(census: Census, groups: Sequence[Sequence[Copy]]) -> set[Place]:
    """The records that need a picture."""
    noted = {(shard, number) for odd in census.odd.values() for shard, number, _ in odd.first}
    return noted | {place for own in _by_reach(groups).values() for place, _ in _shown_copies(own)}


def _odd_kinds(facts: Facts) -> Iterator[OddImages]:
    images = sum(found.bytes.count for found in facts.census.splits.values())
    for kind, (title, meaning) in (_KINDS_BY_RECIPE if facts.subject.is_own else _KINDS).items():
        odd = facts.census.odd.get(kind)
        if odd is not None and not (kind in _USUAL and odd.count > images / 2):
            places = [((shard, number), "") for shard, number, _ in odd.first]
            names = [
                name or f"record {number} of {shard}"
                for shard, number, name in odd.first
                if (shard, number) not in facts.odd_samples
            ]
            yield OddImages(title, meaning, odd.count, places, names)


def _changed(facts: Facts) -> Iterator[OddImages]:
    """The images that were turned, repaired or left out, as the manifest names them: NAME (what was done)."""
    infos = facts.manifest.shards.values() if facts.manifest else ()
    changed = sorted(name for info in infos for name in info.repairs)
    seen = facts.census.odd[CHANGED].first if CHANGED in facts.census.odd else []
    turned = [name for name in changed if TURNED in count_changes([name])]
    repaired = [name for name in changed if not name.endswith(f" ({TURNED})")]
    for (title, meaning), names in zip(_CHANGES.items(), (turned, repaired), strict=True):
        ends = {name.rpartition(" (")[0]: name.rpartition(" (")[2].removesuffix(")") for name in names}
        places = [((shard, number), ends[name]) for shard, number, name in seen if name in ends]
        shown = {name for *_, name in seen}
        rest = [name for name in names if name.rpartition(" (")[0] not in shown][: SHOWN_NAMES - len(places)]
        if names:
            yield OddImages(title, meaning, len(names), places, rest)
    set_aside = sorted(name for info in infos for name in info.set_aside)
    if set_aside:
        yield OddImages("Set aside", "damaged, and left out by skip_bad", len(set_aside), (), set_aside[:SHOWN_NAMES])


def _duplicates(facts: Facts) -> Iterator[OddImages]:
    reaches = _by_reach(facts.duplicates)
    for title, groups in reaches.items():
        if groups:
            count = sum(map(len, groups))
            meaning = _ACROSS if "across" in title else "the same bytes, by SHA-256, in one split"
            text = f"{meaning}; {number_of(len(groups), 'image')} of {number_of(count, 'record')}"
            yield OddImages(title, text, count, _shown_copies(groups), ())


def _by_reach(groups: Sequence[Sequence[Copy]]) -> dict[str, list[Sequence[Copy]]]:
    """Those across several splits, and those within one."""
    found: dict[str, list[Sequence[Copy]]] = {"Duplicates across splits": [], "Duplicates within a split": []}
    for group in groups:
        is_across = len({split_of(copy.shard) for copy in group}) > 1
        found["Duplicates across splits" if is_across else "Duplicates within a split"].append(group)
    return found


def _shown_copies(groups: Sequence[Sequence[Copy]]) -> list[tuple[Place, str]]:
    """The records of the first groups, each with the one that it repeats."""
    shown: list[tuple[Place, str]] = []
    for group in groups:
        first, *others = group[:SHOWN_NAMES]
        if len(shown) + 1 + len(others) > SHOWN_NAMES and shown:
            break
        name = first.filename or f"record {first.number} of {first.shard}"
        shown.append(((first.shard, first.number), ""))
        for copy in others:
            label = "" if copy.label == first.label else ", under another label"
            shown.append(((copy.shard, copy.number), f"the same as {name}{label}"))
    return shown


# classes -------------------------------------------------------------------------------------------------------


def class_rows(facts: Facts) -> list[dict[str, Any]]:
    """A row a class, in order of labels: its images, boxes and bytes by the number of their split."""
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
    """The same for the script, with the images of each class, as JSON that no text can break out of."""
    classes = [
        {
            **row,
            "pictures": [_picture(each, facts) for each in facts.of_classes.get(row["label"], ()) if each.thumbnail],
        }
        for row in rows
    ]
    value = {"command": _command(facts, "@SHARD@", "@NUMBER@"), "classes": classes}
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _picture(sample: Sample, facts: Facts) -> dict[str, Any]:
    return {
        "split": facts.splits[split_of(sample.shard)],
        "file": sample.filename,
        "shard": sample.shard,
        "number": sample.number,
        "offset": sample.offset,
        "size": sample.size,
        "bytes": size_text(sample.file_size),
        "boxes": [[round(edge, 2) for edge in _edges(box).values()] for box in sample.boxes],
        "webp": base64.b64encode(sample.thumbnail).decode(),
    }
