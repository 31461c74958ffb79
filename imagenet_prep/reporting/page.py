"""The page: what is to be said, filled into the template.

What comes from files may hold anything: the template escapes every value, and the page forbids itself scripts and
every other resource.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from imagenet_prep import ilsvrc2012
from imagenet_prep.errors import UsageError
from imagenet_prep.reporting import contents
from imagenet_prep.reporting.charts import draw_charts
from imagenet_prep.reporting.contents import Facts
from imagenet_prep.reporting.origin import origin

_HERE = Path(__file__).parent
_LIBRARIES = ("jinja2", "matplotlib")


def check_libraries() -> None:
    """Raise UsageError if what the page is made with is not installed."""
    missing = [name for name in _LIBRARIES if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"a report needs {' and '.join(missing)}, not installed here",
            "expected the libraries of the extra that is called report",
            "pip install 'imagenet-prep[report]'",
        )


def render(facts: Facts) -> bytes:
    """The page, as UTF-8."""
    import jinja2
    from markupsafe import Markup

    loader = jinja2.FileSystemLoader(_HERE)
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["number"] = contents.number_text
    text = environment.get_template("page.html").render(
        name=facts.name,
        summary=contents.summary(facts.verdict),
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        verdict=contents.banner(facts),
        totals=[contents.Totals.of(total, facts) for total in facts.verdict.totals],
        groups=contents.groups(facts),
        charts=[(chart, Markup(chart.svg)) for chart in draw_charts(facts.census)],  # noqa: S704 - matplotlib escapes
        splits=[split for split in ilsvrc2012.SPLITS if split in facts.census.splits],
        classes=contents.classes(facts.census),
        samples=[contents.Tile.of(sample, facts.census.words) for sample in facts.samples],
        odd=list(contents.odd_images(facts)),
        origin=list(origin(facts.verdict, facts.manifest)),
    )
    return text.encode()
