"""The page: what is to be said, filled into the template.

What comes from files may hold anything: the template escapes every value, and the page forbids itself every other
resource, and every script but the one of ours, which it knows by its digest.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

from imagenet_prep.reporting import gallery, wording
from imagenet_prep.reporting.charts import draw_charts
from imagenet_prep.reporting.class_table import class_data, class_rows
from imagenet_prep.reporting.drawing import looks
from imagenet_prep.reporting.odd import box_rows
from imagenet_prep.reporting.origin import origin
from imagenet_prep.reporting.samples import SHOWN_CLASSES
from imagenet_prep.reporting.wording import Facts

if TYPE_CHECKING:
    from markupsafe import Markup

_HERE = Path(__file__).parent
_SURROGATES = re.compile("[\ud800-\udfff]")


def render(facts: Facts) -> bytes:
    """The page about one set, as UTF-8."""
    rows, shown = class_rows(facts), gallery.ShownSet.of(facts)
    return fill(
        "page.html",
        name=facts.title,
        subject=facts.subject,
        summary=wording.summary(facts),
        verdict=wording.banner(facts),
        totals=wording.totals(facts),
        groups=wording.groups(facts),
        features=list(wording.feature_rows(facts)),
        other_features=wording.other_features(facts),
        charts=[(chart, as_it_is(chart.svg)) for chart in draw_charts(facts.census, facts.subject)],
        keys={split: look.key for split, look in looks(facts.subject.splits).items()},
        has_images=facts.census.has_images or not facts.subject.is_own,
        splits=[(facts.subject.splits.index(split), split) for split in facts.splits],
        classes=rows[:SHOWN_CLASSES],
        class_count=len(rows),
        class_data=as_it_is(class_data(rows[:SHOWN_CLASSES], facts)),  # JSON without a <
        samples=[gallery.Tile.of(number, sample, shown) for number, sample in enumerate(facts.samples, 1)],
        odd=gallery.odd_groups(facts, len(facts.samples)),
        box_rows=box_rows(facts),
        origin=list(origin(facts.verdict, facts.manifest, is_own=facts.subject.is_own)),
    )


def fill(template: str, **values: object) -> bytes:
    """A page of this template, as UTF-8, with the one script and style of all pages."""
    import jinja2

    loader = jinja2.FileSystemLoader(_HERE)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters["number"] = wording.number_text
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    text = environment.get_template(template).render(
        script=as_it_is(script),
        script_digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        style=as_it_is((_HERE / "page.css").read_text(encoding="utf-8")),
        **values,
    )
    # A file's name need not be UTF-8: Python carries such bytes as surrogates, which no page can hold.
    return _SURROGATES.sub("\N{REPLACEMENT CHARACTER}", text).encode()


def as_it_is(markup: str) -> Markup:
    """What is markup already: a file of ours, JSON without a <, or a drawing, in which matplotlib has escaped texts."""
    from markupsafe import Markup

    return Markup(markup)  # noqa: S704 - said above
