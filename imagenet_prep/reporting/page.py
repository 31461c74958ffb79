"""render: the facts of a set -> the page, an HTML file, filled into the template; and its odd
images and classes.

Text from files may contain anything: the template escapes every value. The page's policy forbids
every other resource and every script except its own, identified by its digest.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from imagenet_prep.escaping import NAME, command_line
from imagenet_prep.hints import lines_of
from imagenet_prep.images.prepare import TURNED
from imagenet_prep.reporting import census as marks
from imagenet_prep.reporting import page_facts as words
from imagenet_prep.reporting.census import Census
from imagenet_prep.reporting.charts import bar_label
from imagenet_prep.reporting.page_facts import SHOWN_NAMES, Facts
from imagenet_prep.reporting.samples import CROP, NEAR, SHORT_SIDE, SHOWN_CLASSES, Colours, Sample
from imagenet_prep.state.manifest import count_changed_boxes
from imagenet_prep.text import number_of, size_text

if TYPE_CHECKING:
    from jinja2 import Template

_HERE = Path(__file__).parent
LOOKS = 6
"""Colours of splits; they repeat after the last."""

_SURROGATES = re.compile("[\ud800-\udfff]")

_BOXES = {
    "boxes": "boxes taken",
    "other_class": "boxes left out: their file names another class",
    "no_area": "boxes left out: no part of them is within the image",
    "ended_early": "files cut short at an xmin of -1, as in 2016",
    "other_files": "files left out: their folder is not one of the 1,000 classes",
}
"""The numbers that annotate counts, each with its description."""


def render(facts: Facts) -> bytes:
    """The page about one set, as UTF-8."""
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    subject = facts.subject
    classes = class_rows(facts)
    shard = "@SHARD@" if facts.is_file else f"{facts.name}/@SHARD@"
    text = _load_template().render(
        script=script,
        script_digest=hashlib.sha256(script.encode()).digest(),
        style=(_HERE / "page.css").read_text(encoding="utf-8"),
        facts=facts,
        subject=subject,
        census=facts.census,
        summary=words.summary(facts),
        verdict=words.banner(facts),
        totals=words.totals(facts),
        groups=words.problem_groups(facts),
        features=words.feature_rows(facts),
        charts=facts.charts,
        values_of=functools.partial(_chart_values, facts),
        bar_label=bar_label,
        crop=(SHORT_SIDE, CROP),
        normalize=_normalize,
        near_command=command_line([NAME, "report", facts.name, "--near-duplicates"]),
        keys=[f"look-{number % LOOKS + 1}" for number in range(len(subject.splits))],
        has_images=facts.census.has_images or not subject.is_own,
        has_imagehash=importlib.util.find_spec("imagehash") is not None,
        splits=facts.splits,
        show_command=command_line([NAME, "show", shard, "--record", "@NUMBER@"]),
        classes=classes[:SHOWN_CLASSES],
        class_count=len(classes),
        most=max((sum(row["images"].values()) for row in classes), default=1),
        samples=_number_pictures(facts.samples, 1),
        more=_number_pictures(facts.more, len(facts.samples) + 1),
        odd=list(odd_groups(facts)),
        box_words=_BOXES,
        origin=list(words.origin(facts)),
    )
    # A file name may not be UTF-8: Python carries such bytes as surrogates, which a page can't
    # hold.
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode()


def _load_template() -> Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        number=_number_text,
        size=size_text,
        count=number_of,
        parts=lines_of,
        base64=_base64_text,
    )
    return environment.get_template("page.html")


def _number_text(number: int | str | None) -> str:
    """A number with thousands separators; a dash for none."""
    if number is None:
        return "\N{EN DASH}"
    return number if isinstance(number, str) else f"{number:,}"


def _base64_text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _chart_values(facts: Facts, row: int) -> str:
    """The value of an image in each chart, exactly."""
    return " ".join(f"{chart.values[row]:.17g}" for chart in facts.charts)


def _number_pictures(samples: Sequence[Sample], start: int) -> list[Picture]:
    return [(number, sample, "") for number, sample in enumerate(samples, start)]


def _normalize(colours: Colours) -> str:
    """The line of code that normalizes images with these colours in torchvision."""
    mean = ", ".join(f"{channel:.3f}" for channel in colours.mean)
    deviation = ", ".join(f"{channel:.3f}" for channel in colours.deviation)
    return f"transforms.Normalize(mean=[{mean}], std=[{deviation}])"


# odd images ---------------------------------------------------------------------------------------

Picture = tuple[int, Sample, str]
"""A number that is unique on the page, the sample, and the reason to show it:
"" if none is needed.
"""


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
    marks.PNG: ("PNG", "not repaired: it is not a JPEG, whatever its name says"),
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
    "Repaired": "a PNG or a JPEG of four components, decoded and encoded as an RGB JPEG",
}


_WARNED = "their pixels are whole; only their headers or markers are unusual"


class OddImages(NamedTuple):
    """Odd images of one kind: ``rows`` are shown, out of ``total``, each with its reason;
    ``names`` are others.
    """

    title: str
    meaning: str
    total: int
    rows: Sequence[tuple[int, str]]
    names: Sequence[str] = ()


def odd_groups(facts: Facts) -> Iterator[tuple[OddImages, list[Picture]]]:
    """The odd images by kind, with pictures that are numbered after all others."""
    numbers = itertools.count(len(facts.samples) + len(facts.more) + 1)
    groups = itertools.chain(
        _odd_kinds(facts),
        _duplicates(facts, _EQUAL, facts.copies),
        _duplicates(facts, _ALIKE, facts.near or ()),
        _changed(facts),
    )
    for odd in groups:
        pictures = []
        for row, reason in odd.rows:
            if row in facts.pictures:
                pictures.append((next(numbers), facts.pictures[row], reason))
        yield odd, pictures


def odd_rows(census: Census, *groups: Sequence[Sequence[int]]) -> set[int]:
    """The rows that need a picture; each of ``groups`` has rows of images that are equal,
    or alike.
    """
    rows: set[int] = set()
    for mark in (*_KINDS, marks.CHANGED):
        rows.update(census.marked(mark)[:SHOWN_NAMES].tolist())
    for alike in groups:
        for groups_of_reach in _by_reach(census, alike).values():
            rows.update(itertools.chain.from_iterable(_shown(groups_of_reach)))
    return rows


def _odd_kinds(facts: Facts) -> Iterator[OddImages]:
    image_count = (facts.census.rows["bytes"] > 0).sum()
    for mark, (title, meaning) in _KINDS.items():
        marked = facts.census.marked(mark)
        is_usual = mark in _USUAL and len(marked) > image_count / 2
        if len(marked) and not is_usual:
            rows = [(row, "") for row in marked[:SHOWN_NAMES].tolist()]
            yield OddImages(title, meaning, len(marked), rows)


def _changed(facts: Facts) -> Iterator[OddImages]:
    """The images that were turned, repaired, warned of or left out, as the manifest names them:
    NAME (change).
    """
    shards = facts.manifest.shards.values() if facts.manifest else ()
    changes = []
    for repair in sorted(itertools.chain.from_iterable(shard.repairs for shard in shards)):
        name, _, change = repair.rpartition(" (")
        changes.append((name, change.removesuffix(")")))
    turned = [(name, change) for name, change in changes if TURNED in change.split(", ")]
    repaired = [(name, change) for name, change in changes if change != TURNED]
    yield from _changed_images(facts, "Turned upright", turned)
    yield from _changed_images(facts, "Repaired", repaired)
    yield from _changed_boxes(facts)
    warned = sorted(itertools.chain.from_iterable(shard.warned for shard in shards))
    if warned:
        yield OddImages("Warned", _WARNED, len(warned), (), warned[:SHOWN_NAMES])
    set_aside = sorted(itertools.chain.from_iterable(shard.set_aside for shard in shards))
    if set_aside:
        meaning = "damaged, and left out by on_damaged: skip"
        yield OddImages("Set aside", meaning, len(set_aside), (), set_aside[:SHOWN_NAMES])


def _changed_images(
    facts: Facts, title: str, changes: Sequence[tuple[str, str]]
) -> Iterator[OddImages]:
    """The images of these names, each with its change."""
    if not changes:
        return
    row_of = {}
    for row in facts.census.marked(marks.CHANGED)[:SHOWN_NAMES].tolist():
        if row in facts.pictures:
            row_of[facts.pictures[row].filename] = row
    rows = [(row_of[name], change) for name, change in changes if name in row_of]
    names = [f"{name} ({change})" for name, change in changes if name not in row_of]
    room = SHOWN_NAMES - len(rows)
    yield OddImages(title, _CHANGES[title], len(changes), rows, names[:room])


def _changed_boxes(facts: Facts) -> Iterator[OddImages]:
    """The images with boxes that a recipe's ``boxes_outside`` clipped or dropped."""
    meaning = "their boxes were impossible: outside the image, swapped or empty"
    sources = facts.manifest.sources.values() if facts.manifest else ()
    for outcome, box_counts in count_changed_boxes(sources).items():
        names = []
        for name, count in sorted(box_counts.items()):
            names.append(f"{name} ({number_of(count, 'box', 'boxes')})")
        yield OddImages(f"Boxes {outcome}", meaning, len(names), (), names[:SHOWN_NAMES])


def _duplicates(
    facts: Facts, likeness: Sequence[str], groups: Sequence[Sequence[int]]
) -> Iterator[OddImages]:
    """The groups of images that are the same in some way, across several splits and within one."""
    title, like, meaning = likeness
    for reach, groups_of_reach in _by_reach(facts.census, groups).items():
        if not groups_of_reach:
            continue
        rows: list[tuple[int, str]] = []
        for group in _shown(groups_of_reach):
            rows += _reasons(facts, like, group)
        total = sum(map(len, groups_of_reach))
        counts = f"{number_of(len(groups_of_reach), 'image')} of {number_of(total, 'record')}"
        explained = f"{meaning}, {_REACHES[reach]}; {counts}"
        yield OddImages(f"{title} {reach}", explained, total, rows)


def _reasons(facts: Facts, like: str, group: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The rows of a group; each but the first with the reason to show it."""
    labels = facts.census.rows["label"]
    original, *copies = group
    yield original, ""
    name = facts.pictures[original].filename if original in facts.pictures else ""
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


# classes ------------------------------------------------------------------------------------------


def class_rows(facts: Facts) -> list[dict[str, Any]]:
    """A row per class, in order of labels: its images,
    boxes and bytes by the number of their split.
    """
    census = facts.census
    row_by_label: dict[int, dict[str, Any]] = {}
    for split in facts.splits.values():
        labelled = census.labelled(split)
        labels, class_of_row = np.unique(labelled["label"], return_inverse=True)
        images = np.bincount(class_of_row, None, len(labels)).tolist()
        boxes = np.bincount(class_of_row, labelled["boxes"], len(labels)).tolist()
        file_sizes = np.bincount(class_of_row, labelled["bytes"], len(labels)).tolist()
        for position, label in enumerate(labels.tolist()):
            row = row_by_label.setdefault(label, _empty_class_row(census, label))
            row["images"][split] = int(images[position])
            row["boxes"][split] = int(boxes[position])
            row["bytes"][split] = int(file_sizes[position])
    return [row_by_label[label] for label in sorted(row_by_label)]


def _empty_class_row(census: Census, label: int) -> dict[str, Any]:
    return {
        "label": label,
        "name": census.words.get(label) or f"label {label}",
        "wnid": census.wnids.get(label, ""),
        "images": {},
        "boxes": {},
        "bytes": {},
    }
