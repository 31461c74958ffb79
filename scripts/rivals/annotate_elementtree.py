"""Bounding boxes by ElementTree from an unpacked annotation archive, by the rules of 2016's
process_bounding_boxes.py.

python annotate_elementtree.py FOLDER BOXES.csv
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from imagenet_prep.ilsvrc2012.facts import labels


def read_boxes(path: Path) -> Iterator[str]:
    """The lines of the CSV that one annotation makes."""
    try:
        root = ElementTree.parse(path).getroot()
        width, height = (int(root.findtext(f"size/{side}", "0")) for side in ("width", "height"))
    except (ElementTree.ParseError, ValueError):
        return
    name = root.findtext("object/name", "")
    if not (width and height) or (name != path.parent.name and name in labels()):
        return
    for box in root.iterfind("object/bndbox"):
        left, top, right, bottom = (
            int(box.findtext(side, "")) for side in ("xmin", "ymin", "xmax", "ymax")
        )
        if left == -1:
            return
        xmin, xmax = sorted(min(1.0, max(0.0, x / width)) for x in (left, right))
        ymin, ymax = sorted(min(1.0, max(0.0, y / height)) for y in (top, bottom))
        if xmin < xmax and ymin < ymax:
            yield f"{path.stem}.JPEG,{xmin:.4f},{ymin:.4f},{xmax:.4f},{ymax:.4f}\n"


def main() -> None:
    """Write the CSV of a folder of <wnid>/<name>.xml, sorted."""
    folder, csv = map(Path, sys.argv[1:])
    csv.write_text(
        "".join(sorted(line for path in folder.glob("*/*.xml") for line in read_boxes(path)))
    )


if __name__ == "__main__":
    main()
