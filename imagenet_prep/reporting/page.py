"""render: the facts of a set -> the page, an HTML file, filled into the template.

Text from files may contain anything: the template escapes every value. The page's policy forbids every other resource
and every script except its own, identified by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.reporting import gallery
from imagenet_prep.reporting import page_facts as words
from imagenet_prep.reporting.charts import draw_charts
from imagenet_prep.reporting.drawing import styles_of
from imagenet_prep.reporting.page_facts import Facts
from imagenet_prep.reporting.samples import SHOWN_CLASSES
from imagenet_prep.storage.layout import split_of
from imagenet_prep.text import number_of, size_text

if TYPE_CHECKING:
    from markupsafe import Markup

_HERE = Path(__file__).parent
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
    script, subject, rows = (_HERE / "page.js").read_text(encoding="utf-8"), facts.subject, gallery.class_rows(facts)
    text = environment.get_template("page.html").render(
        script=_markup(script),
        script_digest=hashlib.sha256(script.encode()).digest(),
        style=_markup((_HERE / "page.css").read_text(encoding="utf-8")),
        facts=facts,
        subject=subject,
        summary=words.summary(facts),
        verdict=words.banner(facts),
        totals=words.totals(facts),
        groups=words.problem_groups(facts),
        features=words.feature_rows(facts),
        charts=[(chart, _markup(chart.svg)) for chart in draw_charts(facts.census, subject)],
        keys=[style.key for style in styles_of(subject.splits).values()],
        has_images=facts.census.has_images or not subject.is_own,
        splits=facts.splits,
        split_of=split_of,
        show_command=gallery.show_command,
        classes=rows[:SHOWN_CLASSES],
        class_count=len(rows),
        most=max((sum(row["images"].values()) for row in rows), default=1),
        class_data=_markup(gallery.class_data(rows[:SHOWN_CLASSES], facts)),
        samples=[(number, sample, "") for number, sample in enumerate(facts.samples, 1)],
        odd=list(gallery.odd_groups(facts)),
        box_words=_BOXES,
        origin=list(words.origin(facts)),
    )
    # A file name may not be UTF-8: Python carries such bytes as surrogates, which a page can't hold.
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode()


def _number_text(value: int | str | None) -> str:
    """A number with thousands separators; a dash for none."""
    return "\N{EN DASH}" if value is None else value if isinstance(value, str) else f"{value:,}"


def _markup(text: str) -> Markup:
    """Text that is already markup: our own file, JSON without a <, or a drawing, whose texts matplotlib has escaped."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704 - see the docstring
