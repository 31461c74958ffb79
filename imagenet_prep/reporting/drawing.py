"""draw: matplotlib's drawings as parts of a page: SVG in the page's own font and colours.

A chart is drawn in placeholder colours, which the page's style sheet defines. So one drawing suits light and dark.
Text stays text.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 360, 240
"""The size of a chart in CSS pixels, about as wide as a phone."""

TEXT, RULE = "#010101", "#020202"
"""The colours to draw in, in addition to those of the styles."""


@dataclass(frozen=True, slots=True)
class Style:
    """The look of a split: ``key`` is its class in the style sheet, where its colour has the same name.

    The first is filled, the others are outlines over it. Lines and marks differ too, for people who see the colours
    alike.
    """

    key: str
    colour: str
    is_filled: bool
    line: str
    mark: str


STYLES = tuple(
    Style(f"look-{number}", f"#0303{number:02x}", number == 1, line, mark)
    for number, (line, mark) in enumerate(
        (("solid", "o"), ("solid", "D"), ("dashed", "s"), ("dotted", "^"), ("dashdot", "v"), ("solid", "p")), 1
    )
)
"""The styles of the first split, the second, and so on; they repeat after the last."""

_VARIABLES = {TEXT: "--soft", RULE: "--rule", **{style.colour: f"--{style.key}" for style in STYLES}}
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "path.simplify": False,
    "figure.dpi": 72,
    "font.size": 11.5,
    "text.parse_math": False,
    "text.color": TEXT,
    "axes.labelcolor": TEXT,
    "axes.labelsize": 11.5,
    "axes.edgecolor": RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": RULE,
    "grid.linewidth": 0.8,
    "xtick.color": RULE,
    "xtick.labelcolor": TEXT,
    "xtick.major.size": 3,
    "xtick.minor.size": 0,
    "ytick.color": RULE,
    "ytick.labelcolor": TEXT,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
}
_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
_PART = re.compile(r"of-\d+")
_TIP = "tip: "
_FONT = re.compile(r"font: [^;]*?([\d.]+px)[^;]*")
_FAMILY = re.compile(r"font-family: [^;]*;? *")


def draw(name: str, title: str, onto: Callable[[Axes], None]) -> str:
    """The SVG element of a chart: ``name`` is unique on the page, ``title`` is for screen readers."""
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    drawing = io.BytesIO()
    # A user's matplotlibrc is ignored; the salt makes ids stable, and different from another chart's.
    with style.context(["default", {**_SETTINGS, "svg.hashsalt": name}]):
        figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72), layout="constrained")
        FigureCanvasSVG(figure)
        onto(figure.add_subplot())
        figure.savefig(drawing, format="svg", transparent=True, metadata={"Date": None})
    return _to_page(drawing.getvalue(), title)


def part_of(split: int) -> str:
    """The id of a drawing's part that belongs to the split of this number: the page can hide it."""
    return f"of-{split}"


def tip_of(text: str) -> str:
    """The id of a drawing's part that has this text as its tooltip."""
    return f"{_TIP}{text}"


def styles_of(splits: Sequence[str]) -> dict[str, Style]:
    """The style of each split, by name."""
    return {split: STYLES[number % len(STYLES)] for number, split in enumerate(splits)}


def _to_page(drawing: bytes, title: str) -> str:
    """A drawing without the parts that a page doesn't need."""
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    root = ElementTree.fromstring(drawing)  # noqa: S314 - matplotlib has just written it
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    used = set(re.findall(r"#([\w-]+)", drawing.decode()))
    for element in list(root.iter()):
        if element.get("id", "").startswith(_TIP):
            words = ElementTree.SubElement(element, f"{{{_SVG}}}title")
            words.text = element.attrib.pop("id").removeprefix(_TIP)
            element.set("class", "tip")
        elif _PART.fullmatch(element.get("id", "")):
            element.set("class", element.attrib.pop("id"))
        elif element.get("id") not in used:
            element.attrib.pop("id", None)
        if element.get("style"):
            element.set("style", _themed(element.attrib["style"]))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("role", "img")
    root.set("aria-label", f"Chart: {title}")
    return ElementTree.tostring(root, encoding="unicode")


def _themed(style: str) -> str:
    """A style in the page's font and colours."""
    for colour, variable in _VARIABLES.items():
        style = style.replace(colour, f"var({variable})")
    return _FAMILY.sub("", _FONT.sub(r"font-size: \1", style))
