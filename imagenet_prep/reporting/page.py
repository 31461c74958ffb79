"""render: the facts of a set -> the page, an HTML file, filled into the template; and its odd
images and classes.

Text from files may contain anything: the template escapes every value. The page's policy forbids
every other resource and every script except its own, identified by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import itertools
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from imagenet_prep.escaping import NAME, command_line
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
    script, subject, rows = (
        (_HERE / "page.js").read_text(encoding="utf-8"),
        facts.subject,
        class_rows(facts),
    )
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
        values_of=lambda row: " ".join(f"{chart.values[row]:.17g}" for chart in facts.charts),
        bar_label=bar_label,
        crop=(SHORT_SIDE, CROP),
        normalize=_normalize,
        near_command=command_line([NAME, "report", facts.name, "--near-duplicates"]),
        keys=[f"look-{number % LOOKS + 1}" for number in range(len(subject.splits))],
        has_images=facts.census.has_images or not subject.is_own,
        has_imagehash=importlib.util.find_spec("imagehash") is not None,
        splits=facts.splits,
        show_command=command_line([NAME, "show", shard, "--record", "@NUMBER@"]),
        classes=rows[:SHOWN_CLASSES],
        class_count=len(rows),
        most=max((sum(row["images"].values()) for row in rows), default=1),
        samples=[(number, sample, "") for number, sample in enumerate(facts.samples, 1)],
        more=[
            (number, sample, "") for number, sample in enumerate(facts.more, len(facts.samples) + 1)
        ],
        odd=list(odd_groups(facts)),
        box_words=_BOXES,
        origin=list(words.origin(facts)),
    )
    # A file name may not be UTF-8: Python carries such bytes as surrogates, which a page can't
    # hold.
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode()


def _load_template() -> Template:
    import jinja2

    loader = jinja2.FileSystemLoader(_HERE)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined
    )
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters.update(
        number=_number_text, size=size_text, count=number_of, command=_part_command
    )
    environment.filters.update(base64=lambda content: base64.b64encode(content).decode())
    return environment.get_template("page.html")


def _number_text(value: int | str | None) -> str:
    """A number with thousands separators; a dash for none."""
    return "\N{EN DASH}" if value is None else value if isinstance(value, str) else f"{value:,}"


def _normalize(colours: Colours) -> str:
    """The line of code that normalizes images with these colours in torchvision."""
    mean, deviation = (
        ", ".join(f"{value:.3f}" for value in values)
        for values in (colours.mean, colours.deviation)
    )
    return f"transforms.Normalize(mean=[{mean}], std=[{deviation}])"


def _part_command(text: str) -> tuple[str, str]:
    """A remedy as prose and the command at its end, "" if there is none."""
    prose, mark, command = text.partition(": imagenet-prep ")
    return (f"{prose}:", mark[2:] + command) if mark else (text, "")


# odd images and classes ---------------------------------------------------------------------------

Picture = tuple[int, Sample, str]
"""A number that is unique on the page, the sample, and the reason to show it:
"" if none is needed.
"""


# odd images ---------------------------------------------------------------------------------------

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
    copies, near = (
        _duplicates(facts, _EQUAL, facts.copies),
        _duplicates(facts, _ALIKE, facts.near or ()),
    )
    for odd in (*_odd_kinds(facts), *copies, *near, *_changed(facts)):
        shown = [(facts.pictures[row], reason) for row, reason in odd.rows if row in facts.pictures]
        yield odd, [(next(numbers), sample, reason) for sample, reason in shown]


def odd_rows(census: Census, *groups: Sequence[Sequence[int]]) -> set[int]:
    """The rows that need a picture; each of ``groups`` has rows of images that are equal,
    or alike.
    """
    kinds = (census.marked(mark)[:SHOWN_NAMES].tolist() for mark in (*_KINDS, marks.CHANGED))
    copies = (
        itertools.chain(*_shown(own))
        for alike in groups
        for own in _by_reach(census, alike).values()
    )
    return {*itertools.chain(*kinds, *copies)}


def _odd_kinds(facts: Facts) -> Iterator[OddImages]:
    images = (facts.census.rows["bytes"] > 0).sum()
    for mark, (title, meaning) in _KINDS.items():
        odd = facts.census.marked(mark)
        if len(odd) and not (mark in _USUAL and len(odd) > images / 2):
            yield OddImages(
                title, meaning, len(odd), [(row, "") for row in odd[:SHOWN_NAMES].tolist()]
            )


def _changed(facts: Facts) -> Iterator[OddImages]:
    """The images that were turned, repaired, warned of or left out, as the manifest names them:
    NAME (change).
    """
    infos = facts.manifest.shards.values() if facts.manifest else ()
    parted = sorted(name.rpartition(" (") for info in infos for name in info.repairs)
    changes = [(name, change.removesuffix(")")) for name, _, change in parted]
    marked = facts.census.marked(marks.CHANGED)[:SHOWN_NAMES].tolist()
    pictured = {facts.pictures[row].filename: row for row in marked if row in facts.pictures}
    turned = [(name, change) for name, change in changes if TURNED in change.split(", ")]
    repaired = [(name, change) for name, change in changes if change != TURNED]
    for (title, meaning), found in zip(_CHANGES.items(), (turned, repaired), strict=True):
        rows = [(pictured[name], change) for name, change in found if name in pictured]
        rest = [f"{name} ({change})" for name, change in found if name not in pictured]
        if found:
            yield OddImages(title, meaning, len(found), rows, rest[: SHOWN_NAMES - len(rows)])
    yield from _changed_boxes(facts)
    warned = sorted(warning for info in infos for warning in info.warned)
    if warned:
        yield OddImages("Warned", _WARNED, len(warned), (), warned[:SHOWN_NAMES])
    set_aside = sorted(name for info in infos for name in info.set_aside)
    if set_aside:
        yield OddImages(
            "Set aside",
            "damaged, and left out by on_damaged: skip",
            len(set_aside),
            (),
            set_aside[:SHOWN_NAMES],
        )


def _changed_boxes(facts: Facts) -> Iterator[OddImages]:
    """The images with boxes that a recipe's ``boxes_outside`` clipped or dropped."""
    for outcome, images in count_changed_boxes(
        facts.manifest.sources.values() if facts.manifest else ()
    ).items():
        names = [
            f"{name} ({number_of(count, 'box', 'boxes')})" for name, count in sorted(images.items())
        ]
        meaning = "their boxes were impossible: outside the image, swapped or empty"
        yield OddImages(f"Boxes {outcome}", meaning, len(names), (), names[:SHOWN_NAMES])


def _duplicates(
    facts: Facts, kind: Sequence[str], groups: Sequence[Sequence[int]]
) -> Iterator[OddImages]:
    """The groups of images that are the same in some way, across several splits and within one."""
    labels, (what, like, meaning) = facts.census.rows["label"], kind
    for reach, own in _by_reach(facts.census, groups).items():
        rows: list[tuple[int, str]] = []
        for first, *others in _shown(own):
            name = facts.pictures[first].filename if first in facts.pictures else ""
            name = name or "record {1} of {0}".format(*facts.census.place(first))
            rows.append((first, ""))
            rows += [
                (
                    row,
                    f"{like} {name}" + ", under another label" * bool(labels[row] != labels[first]),
                )
                for row in others
            ]
        total = sum(map(len, own))
        if own:
            counts = f"{number_of(len(own), 'image')} of {number_of(total, 'record')}"
            yield OddImages(
                f"{what} {reach}", f"{meaning}, {_REACHES[reach]}; {counts}", total, rows
            )


def _by_reach(census: Census, groups: Sequence[Sequence[int]]) -> dict[str, list[Sequence[int]]]:
    """The groups across several splits, and those within one."""
    found: dict[str, list[Sequence[int]]] = {reach: [] for reach in _REACHES}
    across, within = found.values()
    for group in groups:
        (across if len({*census.rows["split"][group].tolist()}) > 1 else within).append(group)
    return found


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
    found: dict[int, dict[str, Any]] = {}
    for number in facts.splits.values():
        own = census.rows[
            (census.rows["split"] == number) & (census.rows["marks"] & marks.UNLABELED == 0)
        ]
        labels, classes = np.unique(own["label"], return_inverse=True)
        columns = {"images": None, "boxes": own["boxes"], "bytes": own["bytes"]}
        counts = {
            what: np.bincount(classes, column, len(labels)).tolist()
            for what, column in columns.items()
        }
        for k, label in enumerate(labels.tolist()):
            name, wnid = census.words.get(label) or f"label {label}", census.wnids.get(label, "")
            row = found.setdefault(
                label, {"label": label, "name": name, "wnid": wnid} | {what: {} for what in columns}
            )
            for what in columns:
                row[what][number] = int(counts[what][k])
    return [found[label] for label in sorted(found)]
