"""odd_groups: the facts of a set -> its odd images by kind:
those that a person or a network flagged, unusual ones, duplicates, and those that convert changed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from imagenet_prep.images.prepare import TURNED
from imagenet_prep.reporting import census as marks
from imagenet_prep.reporting.census import Census
from imagenet_prep.reporting.near_duplicates import NEAR
from imagenet_prep.reporting.page_facts import SHOWN_NAMES, Facts
from imagenet_prep.reporting.samples import Sample
from imagenet_prep.state.manifest import count_changed_boxes
from imagenet_prep.text import number_of

Picture = tuple[int, Sample, str]
"""A number that is unique on the page, the sample, and the reason to show it:
"" if none is needed.
"""

ODD, MARKED = "odd", "marked"
"""The filters of odd images and of flagged ones, as the address of the page names them."""

ANY_MARK = "any"

_KINDS = {
    marks.GREY: (
        "Grey",
        "one colour component; records of the Inception layout still say RGB and 3 channels",
    ),
    marks.ROTATED: (
        "EXIF-rotated",
        "the EXIF orientation is not upright; width, height and boxes are those before turning",
    ),
    marks.FOUR: ("Four colour components", "CMYK or YCCK, not repaired: many decoders refuse it"),
    marks.PNG: (
        "Not JPEG",
        "not repaired: a PNG, or an image of another format, whatever its name says",
    ),
    marks.BROKEN: ("Not readable", "its header can't be read"),
    marks.TINY: ("Tiny", f"a side of fewer than {marks.SMALL_SIDE} pixels"),
    marks.HUGE: ("Huge", f"a side of more than {marks.LARGE_SIDE:,} pixels"),
    marks.EXTREME: ("Extreme shape", f"one side is more than {marks.MOST_EXTREME} times the other"),
}
_USUAL = (marks.TINY, marks.HUGE)
"""Kinds that are not odd if most images are of that kind."""

_EQUAL = ("Duplicates", "the same as", "the same bytes, by SHA-256")
_ALIKE = (
    "Near-duplicates",
    "looks like",
    (
        f"perceptual hashes (ImageHash's phash) that differ in at most {NEAR} of 64 bits, "
        "directly or through others"
    ),
)
_REACHES = {
    "across splits": "in several splits: tests may include training images",
    "within a split": "in one split",
}
_CHANGES = {
    "Turned upright": (
        "encoded again, and turned as EXIF asks: width and height are those after turning"
    ),
    "Repaired": (
        "an image of another format, or a JPEG of four components, "
        "decoded and encoded as an RGB JPEG"
    ),
}


_WARNED = "their pixels are whole; only their headers or markers are unusual"


class OddImages(NamedTuple):
    """Odd images of one kind: ``shown`` are some of them, out of ``total``, each with its reason;
    ``names`` are others.

    ``rows`` are those of all images that a record holds. ``filter`` and ``token`` are the names of
    the kind in the address of the page.
    """

    title: str
    meaning: str
    total: int
    shown: Sequence[tuple[int, str]]
    names: Sequence[str]
    rows: Sequence[int]
    filter: str = ODD

    @property
    def token(self) -> str:
        """The name of the kind in the address of the page."""
        if self.filter == MARKED:
            return ANY_MARK
        return self.title.lower().replace(" ", "-")


def list_odd_images(facts: Facts) -> Iterator[OddImages]:
    """The odd images by kind."""
    yield from _marked(facts)
    yield from _odd_kinds(facts)
    yield from _duplicates(facts, _EQUAL, facts.copies)
    yield from _duplicates(facts, _ALIKE, facts.near or ())
    yield from _changed(facts)


def with_pictures(
    facts: Facts, odd_images: Sequence[OddImages]
) -> Iterator[tuple[OddImages, list[Picture]]]:
    """Each kind with the pictures to show, which are numbered after all others."""
    number = len(facts.samples) + len(facts.more)
    for odd in odd_images:
        pictures = []
        for row, reason in odd.shown:
            sample = facts.pictures.get(row)
            if sample is not None:
                number += 1
                pictures.append((number, sample, reason))
        yield odd, pictures


def odd_rows(census: Census, *groups: Sequence[Sequence[int]]) -> set[int]:
    """The rows that need a picture; each of ``groups`` has rows of images that are equal,
    or alike.
    """
    rows: set[int] = set()
    for mark in (*_KINDS, marks.CHANGED):
        marked_rows = census.marked(mark)[:SHOWN_NAMES]
        rows.update(marked_rows.tolist())
    for alike in groups:
        for groups_of_reach in _by_reach(census, alike).values():
            rows.update(*_shown(groups_of_reach))
    return rows


def _marked(facts: Facts) -> Iterator[OddImages]:
    """The images that a file of marks names."""
    marked = facts.marked
    if marked is None:
        return
    rows = list(marked.by_row)
    shown = [(row, marked.by_row[row].text) for row in rows[:SHOWN_NAMES]]
    meaning = "; ".join(marked.remarks)
    yield OddImages("Marked", meaning, len(rows), shown, (), rows, filter=MARKED)


def _odd_kinds(facts: Facts) -> Iterator[OddImages]:
    has_image = facts.census.rows["bytes"] > 0
    image_count = has_image.sum()
    for mark, (title, meaning) in _KINDS.items():
        rows = facts.census.marked(mark).tolist()
        is_usual = mark in _USUAL and len(rows) > image_count / 2
        if rows and not is_usual:
            shown = [(row, "") for row in rows[:SHOWN_NAMES]]
            yield OddImages(title, meaning, len(rows), shown, (), rows)


def _changed(facts: Facts) -> Iterator[OddImages]:
    """The images that were turned, repaired, warned of or left out, as the manifest names them:
    NAME (change).
    """
    repairs: list[str] = []
    warned: list[str] = []
    set_aside: list[str] = []
    if facts.manifest is not None:
        for shard in facts.manifest.shards.values():
            repairs += shard.repairs
            warned += shard.warned
            set_aside += shard.set_aside
    turned_images: list[tuple[str, str]] = []
    repaired_images: list[tuple[str, str]] = []
    for repair in sorted(repairs):
        name, _, change = repair.rpartition(" (")
        change = change.removesuffix(")")
        if TURNED in change.split(", "):
            turned_images.append((name, change))
        if change != TURNED:
            repaired_images.append((name, change))
    yield from _changed_images(facts, "Turned upright", turned_images)
    yield from _changed_images(facts, "Repaired", repaired_images)
    yield from _changed_boxes(facts)
    warned.sort()
    if warned:
        filenames = [warning.rpartition(" (")[0] for warning in warned]
        yield _named(facts, "Warned", _WARNED, warned, filenames)
    set_aside.sort()
    if set_aside:
        meaning = "damaged, and left out by on_damaged: skip"
        first_names = set_aside[:SHOWN_NAMES]
        yield OddImages("Set aside", meaning, len(set_aside), (), first_names, ())


def _named(
    facts: Facts, title: str, meaning: str, texts: Sequence[str], filenames: Sequence[str]
) -> OddImages:
    """Images that are named and not shown: a text and a file name of each."""
    rows = _rows_of(facts, filenames)
    return OddImages(title, meaning, len(texts), (), texts[:SHOWN_NAMES], rows)


def _rows_of(facts: Facts, filenames: Sequence[str]) -> list[int]:
    """The rows of the records with these file names, in order."""
    rows = facts.census.find_rows(filenames).values()
    return sorted(itertools.chain.from_iterable(rows))


def _changed_images(
    facts: Facts, title: str, changes: Sequence[tuple[str, str]]
) -> Iterator[OddImages]:
    """The images of these names, each with its change."""
    if not changes:
        return
    row_of = {}
    changed_rows = facts.census.marked(marks.CHANGED)
    for row in changed_rows[:SHOWN_NAMES].tolist():
        if row in facts.pictures:
            filename = facts.pictures[row].filename
            row_of[filename] = row
    shown: list[tuple[int, str]] = []
    unshown_names: list[str] = []
    for name, change in changes:
        if name in row_of:
            shown.append((row_of[name], change))
        else:
            unshown_names.append(f"{name} ({change})")
    room = SHOWN_NAMES - len(shown)
    rows = _rows_of(facts, [name for name, _ in changes])
    yield OddImages(title, _CHANGES[title], len(changes), shown, unshown_names[:room], rows)


def _changed_boxes(facts: Facts) -> Iterator[OddImages]:
    """The images with boxes that a recipe's ``boxes_outside`` clipped or dropped."""
    meaning = "their boxes were impossible: outside the image, swapped or empty"
    sources = facts.manifest.sources.values() if facts.manifest else ()
    for outcome, box_counts in count_changed_boxes(sources).items():
        texts = []
        for name, count in sorted(box_counts.items()):
            texts.append(f"{name} ({number_of(count, 'box', 'boxes')})")
        yield _named(facts, f"Boxes {outcome}", meaning, texts, sorted(box_counts))


def _duplicates(
    facts: Facts, likeness: Sequence[str], groups: Sequence[Sequence[int]]
) -> Iterator[OddImages]:
    """The groups of images that are the same in some way, across several splits and within one."""
    title, like, meaning = likeness
    for reach, groups_of_reach in _by_reach(facts.census, groups).items():
        if not groups_of_reach:
            continue
        shown: list[tuple[int, str]] = []
        for group in _shown(groups_of_reach):
            shown += _reasons(facts, like, group)
        rows = sorted(itertools.chain.from_iterable(groups_of_reach))
        counts = f"{number_of(len(groups_of_reach), 'image')} of {number_of(len(rows), 'record')}"
        explained = f"{meaning}, {_REACHES[reach]}; {counts}"
        yield OddImages(f"{title} {reach}", explained, len(rows), shown, (), rows)


def _reasons(facts: Facts, like: str, group: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The rows of a group; each but the first with the reason to show it."""
    labels = facts.census.rows["label"]
    original, *copies = group
    yield original, ""
    name = ""
    if original in facts.pictures:
        name = facts.pictures[original].filename
    if not name:
        shard, number = facts.census.place(original)
        name = f"record {number} of {shard}"
    for row in copies:
        reason = f"{like} {name}"
        if labels[row] != labels[original]:
            reason += ", under another label"
        yield row, reason


def _by_reach(census: Census, groups: Sequence[Sequence[int]]) -> dict[str, list[Sequence[int]]]:
    """The groups across several splits, and those within one."""
    across: list[Sequence[int]] = []
    within: list[Sequence[int]] = []
    for group in groups:
        splits = set(census.rows["split"][group].tolist())
        if len(splits) > 1:
            across.append(group)
        else:
            within.append(group)
    return {"across splits": across, "within a split": within}


def _shown(groups: Sequence[Sequence[int]]) -> Iterator[Sequence[int]]:
    """The rows of the first groups, SHOWN_NAMES at most."""
    room = SHOWN_NAMES
    for group in groups:
        if room < min(len(group), SHOWN_NAMES):
            return
        yield group[:room]
        room -= len(group)
