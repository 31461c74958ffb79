"""render: the facts of a set -> the page, an HTML file, filled into the template; and its classes.

Text from files may contain anything: the template escapes every value. The page's policy forbids
every other resource and every script except its own, identified by its digest.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from imagenet_prep.escaping import NAME, command_line
from imagenet_prep.hints import install_extra, lines_of
from imagenet_prep.reporting import page_facts as words
from imagenet_prep.reporting.census import Census
from imagenet_prep.reporting.charts import bar_label
from imagenet_prep.reporting.listed_images import list_images
from imagenet_prep.reporting.odd_images import Picture, list_odd_images, with_pictures
from imagenet_prep.reporting.page_facts import Facts
from imagenet_prep.reporting.samples import CROP, SHORT_SIDE, SHOWN_CLASSES, Colours, Sample
from imagenet_prep.text import number_of, size_text

if TYPE_CHECKING:
    from jinja2 import Template

_HERE = Path(__file__).parent
SCRIPTS = (
    "elements",
    "columns",
    "address",
    "filters",
    "gallery",
    "large_view",
    "class_table",
    "explore",
)
"""The files of the page's script, in order: it is one script, and uses no library."""

LOOKS = 6
"""Colours of splits; they repeat after the last."""

_SURROGATES = re.compile("[\ud800-\udfff]")

_BOXES = {
    "boxes": "boxes taken",
    "other_class": "boxes left out: their file names another class",
    "no_area": "boxes left out: no part of them is within the image",
    "ended_early": "files read only up to an xmin of -1, as in 2016",
    "other_files": "files left out: their folder is not one of the 1,000 classes",
}
"""The numbers that annotate counts, each with its description."""


def render(facts: Facts) -> bytes:
    """The page about one set, as UTF-8."""
    script = "".join(_read(f"script/{name}.js") for name in SCRIPTS)
    subject = facts.subject
    classes = class_rows(facts)
    odd_images = list(list_odd_images(facts))
    labels = [row["label"] for row in classes]
    listing = list_images(facts, odd_images, labels)
    shard = "@SHARD@" if facts.is_file else f"{facts.name}/@SHARD@"
    show_command = command_line([NAME, "show", shard, "--record", "@NUMBER@"])
    near_command = command_line([NAME, "report", facts.name, "--near-duplicates"])
    depth = ["--depth", "decode"] if facts.verdict.depth == "decode" else []
    list_command = command_line([NAME, "verify", facts.name, *depth, "--json", "-"])
    install_command, _, _ = install_extra("report").partition("    ")
    image_counts = [sum(row["images"].values()) for row in classes]
    keys = [f"look-{number % LOOKS + 1}" for number in range(len(subject.splits))]
    samples = _number_pictures(facts, facts.samples, 1)
    more_samples = _number_pictures(facts, facts.more, len(samples) + 1)
    odd_pictures = list(with_pictures(facts, odd_images))
    text = _load_template().render(
        script=script,
        script_digest=hashlib.sha256(script.encode()).digest(),
        style=_read("page.css"),
        facts=facts,
        subject=subject,
        census=facts.census,
        summary=words.summary(facts),
        verdict=words.banner(facts),
        totals=words.totals(facts),
        groups=words.problem_groups(facts),
        features=words.feature_rows(facts),
        charts=facts.charts,
        listing=listing,
        images_title=f"{subject.thing.title()}s",
        bar_label=bar_label,
        crop=(SHORT_SIDE, CROP),
        normalize=_normalize,
        near_command=near_command,
        list_command=list_command,
        keys=keys,
        has_images=facts.census.has_images or not subject.is_own,
        install_command=install_command,
        has_imagehash=importlib.util.find_spec("imagehash") is not None,
        splits=facts.splits,
        show_command=show_command,
        classes=classes[:SHOWN_CLASSES],
        class_count=len(classes),
        most=max(image_counts, default=1),
        samples=samples,
        more=more_samples,
        odd=odd_pictures,
        box_words=_BOXES,
        origin=list(words.origin(facts)),
    )
    # A file name may not be UTF-8: Python carries such bytes as surrogates, which a page can't
    # hold.
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode()


def _read(name: str) -> str:
    return (_HERE / name).read_text(encoding="utf-8")


@functools.cache  # to compile it takes a third of a second
def _load_template() -> Template:
    import jinja2

    loader = jinja2.FileSystemLoader(_HERE)
    environment = jinja2.Environment(
        loader=loader,
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = _number_text
    environment.filters["size"] = size_text
    environment.filters["count"] = number_of
    environment.filters["parts"] = lines_of
    environment.filters["base64"] = _base64_text
    return environment.get_template("page.html")


def _number_text(number: int | str | None) -> str:
    """A number with thousands separators; a dash for none."""
    if number is None:
        return "\N{EN DASH}"
    if isinstance(number, str):
        return number
    return f"{number:,}"


def _base64_text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _number_pictures(facts: Facts, samples: Sequence[Sample], start: int) -> list[Picture]:
    """The samples, numbered; those that are flagged with the reason."""
    marks = facts.marked.by_row if facts.marked else {}
    pictures = []
    for number, sample in enumerate(samples, start):
        reason = ""
        if sample.row in marks:
            reason = marks[sample.row].text
        pictures.append((number, sample, reason))
    return pictures


def _normalize(colours: Colours) -> str:
    """The line of code that normalizes images with these colours in torchvision."""
    mean = ", ".join(f"{channel:.3f}" for channel in colours.mean)
    deviation = ", ".join(f"{channel:.3f}" for channel in colours.deviation)
    return f"transforms.Normalize(mean=[{mean}], std=[{deviation}])"


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
        class_count = len(labels)
        images = np.bincount(class_of_row, None, class_count)
        boxes = np.bincount(class_of_row, labelled["boxes"], class_count)
        file_sizes = np.bincount(class_of_row, labelled["bytes"], class_count)
        for position, label in enumerate(labels.tolist()):
            row = row_by_label.setdefault(label, _empty_class_row(census, label))
            row["images"][split] = int(images[position])
            row["boxes"][split] = int(boxes[position])
            row["bytes"][split] = int(file_sizes[position])
    return [row_by_label[label] for label in sorted(row_by_label)]


def _empty_class_row(census: Census, label: int) -> dict[str, Any]:
    words_of_class = census.words.get(label)
    return {
        "label": label,
        "name": words_of_class or f"label {label}",
        "wnid": census.wnids.get(label, ""),
        "images": {},
        "boxes": {},
        "bytes": {},
    }
