"""What the page says of odd images: a kind each, with pictures; and of what was left out, or done to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from imagenet_prep.images.prepare import TURNED, count_changes
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
from imagenet_prep.reporting.duplicates import Copy
from imagenet_prep.reporting.wording import Facts
from imagenet_prep.storage.layout import parse_shard_name
from imagenet_prep.text import number_of

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

_WITHIN = "the same bytes, by SHA-256, in one split"
_ACROSS = "the same bytes, by SHA-256, in several splits: what is tested with may have been trained with"

Place = tuple[str, int]
"""Shard and number of a record."""


@dataclass(frozen=True, slots=True)
class OddRow:
    """Odd images of one kind: ``places`` are those to be shown of ``count``, each with its reason; ``names`` others."""

    title: str
    meaning: str
    count: int
    places: Sequence[tuple[Place, str]] = ()
    names: Sequence[str] = ()


def odd_images(facts: Facts) -> Iterator[OddRow]:
    """A row for each kind of odd image that there is, what was done to images, and those that were left out."""
    images = sum(found.bytes.count for found in facts.census.splits.values())
    for kind, (title, meaning) in (_KINDS_BY_RECIPE if facts.subject.is_own else _KINDS).items():
        odd = facts.census.odd.get(kind)
        if odd is not None and not (kind in _USUAL and odd.count > images / 2):
            yield _row(title, meaning, odd.count, odd.first, facts)
    yield from _duplicates(facts)
    infos = facts.manifest.shards.values() if facts.manifest else ()
    changed = sorted(name for info in infos for name in info.repairs)
    seen = facts.census.odd[CHANGED].first if CHANGED in facts.census.odd else []
    turned = [name for name in changed if TURNED in count_changes([name])]
    repaired = [name for name in changed if not name.endswith(f" ({TURNED})")]
    for title, names, meaning in (
        ("Turned upright", turned, "encoded again, and turned as EXIF asks: width and height are those after turning"),
        ("Repaired", repaired, "a PNG or a JPEG of four components, decoded and encoded as an RGB JPEG"),
    ):
        if names:
            ends = {name.rpartition(" (")[0]: name.rpartition(" (")[2].removesuffix(")") for name in names}
            places = [(shard, number, name) for shard, number, name in seen if name in ends]
            shown = {name for *_, name in places}
            rest = [name for name in names if name.rpartition(" (")[0] not in shown][: SHOWN_NAMES - len(places)]
            reasons = [((shard, number), ends[name]) for shard, number, name in places]
            yield OddRow(title, meaning, len(names), reasons, rest)
    set_aside = sorted(name for info in infos for name in info.set_aside)
    if set_aside:
        yield OddRow("Set aside", "damaged, and left out by skip_bad", len(set_aside), (), set_aside[:SHOWN_NAMES])


def _row(title: str, meaning: str, count: int, first: Sequence[tuple[str, int, str]], facts: Facts) -> OddRow:
    pictured = [((shard, number), "") for shard, number, _ in first if (shard, number) in facts.odd_samples]
    names = [_name(name, place) for *place, name in first if tuple(place) not in facts.odd_samples]
    return OddRow(title, meaning, count, pictured, names)


def _name(name: str, place: Sequence[object]) -> str:
    return name or f"record {place[1]} of {place[0]}"


def _duplicates(facts: Facts) -> Iterator[OddRow]:
    across, within = _by_reach(facts.duplicates)
    for title, groups, meaning in (
        ("Duplicates across splits", across, _ACROSS),
        ("Duplicates within a split", within, _WITHIN),
    ):
        if groups:
            count = sum(map(len, groups))
            text = f"{meaning}; {number_of(len(groups), 'image')} of {number_of(count, 'record')}"
            yield OddRow(title, text, count, shown_copies(groups))


def _by_reach(groups: Sequence[Sequence[Copy]]) -> tuple[list[Sequence[Copy]], list[Sequence[Copy]]]:
    """Those across several splits, and those within one."""
    across: list[Sequence[Copy]] = []
    within: list[Sequence[Copy]] = []
    for group in groups:
        (across if len({_split(copy) for copy in group}) > 1 else within).append(group)
    return across, within


def _split(copy: Copy) -> str:
    parsed = parse_shard_name(copy.shard)
    return parsed[0] if parsed else ""


def shown_copies(groups: Sequence[Sequence[Copy]]) -> list[tuple[Place, str]]:
    """The records of the first groups, each with the one that it repeats."""
    shown: list[tuple[Place, str]] = []
    for group in groups:
        first, *others = group[:SHOWN_NAMES]
        if len(shown) + 1 + len(others) > SHOWN_NAMES and shown:
            break
        shown.append(((first.shard, first.number), ""))
        for copy in others:
            label = "" if copy.label == first.label else ", under another label"
            reason = f"the same as {_name(first.filename, (first.shard, first.number))}{label}"
            shown.append(((copy.shard, copy.number), reason))
    return shown


def odd_places(census: Census, groups: Sequence[Sequence[Copy]]) -> set[Place]:
    """The records that need a picture."""
    noted = {(shard, number) for odd in census.odd.values() for shard, number, _ in odd.first}
    return noted | {place for part in _by_reach(groups) for place, _ in shown_copies(part)}


# boxes -----------------------------------------------------------------------------------------------------------

_COUNTS = (
    ("boxes", "boxes taken"),
    ("other_class", "boxes left out: their file names another class"),
    ("no_area", "boxes left out: nothing of them is within the image"),
    ("ended_early", "files cut short at an xmin of -1, as in 2016"),
    ("other_files", "files left out: their folder is not one of the 1,000 classes"),
)


def box_rows(facts: Facts) -> list[tuple[str, list[tuple[str, int]]]]:
    """Of each split what annotate made of its files, where it is known."""
    return [
        (split, [(words, found[name]) for name, words in _COUNTS if found.get(name)])
        for split, found in facts.annotations.items()
    ]
