"""render: the facts of a set -> the page, an HTML file, filled into the template.

Text from files may contain anything: the template escapes every value. The page's policy forbids every other resource
and every script except its own, identified by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.escaping import NAME, command_line
from imagenet_prep.reporting import gallery
from imagenet_prep.reporting import page_facts as words
from imagenet_prep.reporting.charts import bar_label
from imagenet_prep.reporting.page_facts import Facts
from imagenet_prep.reporting.samples import CROP, SHORT_SIDE, SHOWN_CLASSES, Colours
from imagenet_prep.text import number_of, size_text

if TYPE_CHECKING:
    from markupsafe import Markup

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
    import jinja2

    loader = jinja2.FileSystemLoader(_HERE)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters.update(number=_number_text, size=size_text, count=number_of)
    environment.filters.update(base64=lambda content: base64.b64encode(content).decode())
    environment.filters.update(command=_part_command)
    script, subject, rows = (_HERE / "page.js").read_text(encoding="utf-8"), facts.subject, gallery.class_rows(facts)
    text = environment.get_template("page.html").render(
        script=_markup(script),
        script_digest=hashlib.sha256(script.encode()).digest(),
        style=_markup((_HERE / "page.css").read_text(encoding="utf-8")),
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
        show_command=command_line([NAME, "show", f"{facts.name}/@SHARD@", "--record", "@NUMBER@"]),
        classes=rows[:SHOWN_CLASSES],
        class_count=len(rows),
        most=max((sum(row["images"].values()) for row in rows), default=1),
        samples=[(number, sample, "") for number, sample in enumerate(facts.samples, 1)],
        more=[(number, sample, "") for number, sample in enumerate(facts.more, len(facts.samples) + 1)],
        odd=list(gallery.odd_groups(facts)),
        box_words=_BOXES,
        origin=list(words.origin(facts)),
    )
    # A file name may not be UTF-8: Python carries such bytes as surrogates, which a page can't hold.
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode()


def _number_text(value: int | str | None) -> str:
    """A number with thousands separators; a dash for none."""
    return "\N{EN DASH}" if value is None else value if isinstance(value, str) else f"{value:,}"


def _normalize(colours: Colours) -> str:
    """The line of code that normalizes images with these colours in torchvision."""
    mean, deviation = (", ".join(f"{value:.3f}" for value in values) for values in (colours.mean, colours.deviation))
    return f"transforms.Normalize(mean=[{mean}], std=[{deviation}])"


def _part_command(text: str) -> tuple[str, str]:
    """A remedy as prose and the command at its end, "" if there is none."""
    prose, mark, command = text.partition(": imagenet-prep ")
    return (f"{prose}:", mark[2:] + command) if mark else (text, "")


def _markup(text: str) -> Markup:
    """Text that is already markup: our own file."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - see the docstring
