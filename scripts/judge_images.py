"""Judge every image file of a folder, and compare with whether Pillow reads all of it.

    python scripts/judge_images.py FOLDER [--all]

A line per file that differs, or that is warned; with ``--all`` a line per file. Each image is taken
as convert does with ``check: decode`` and a recipe that allows its format. Pillow's own test
images, in the ``Tests/images`` folder of its source distribution, are a good folder: hundreds of
odd and of damaged files.
"""

from __future__ import annotations

import argparse
import io
import warnings
from collections import Counter
from pathlib import Path

from PIL import Image

from imagenet_prep.images import format_of
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.prepare import prepare


def read_by_pillow(data: bytes) -> str:
    """ "whole", or Pillow's reason to refuse it."""
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data)) as image:
            image.load()
    except Exception as error:  # noqa: BLE001 - whatever its parsers raise
        return f"{type(error).__name__}: {error}".replace("\n", " ")[:60]
    return "whole"


def judged(data: bytes) -> tuple[str, str]:
    """The grade of an image, and the reason for it."""
    try:
        prepared = prepare(data, "decode")
    except ImageError as error:
        return "set aside", str(error)
    return ("warned", prepared.warning) if prepared.warning else ("taken", prepared.changes)


def main() -> None:
    """Print the table, then the number of files of each format and grade."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--all", action="store_true", help="every file, not only those that differ or are warned"
    )
    options = parser.parse_args()
    counts: Counter[tuple[str, str, str]] = Counter()
    for path in sorted(path for path in options.folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        kind = format_of(data)
        if not kind:
            continue
        pillow, (grade, reason) = read_by_pillow(data), judged(data)
        counts[kind, grade, "whole" if pillow == "whole" else "refused"] += 1
        is_agreed = (grade == "taken") == (pillow == "whole")
        if options.all or not is_agreed:
            print(
                f"{path.relative_to(options.folder)}\t{kind}\tPillow: {pillow}\t{grade}: {reason}"
            )
    print("\nformat\tgrade\tPillow\tfiles")
    for (kind, grade, pillow), count in sorted(counts.items()):
        print(f"{kind}\t{grade}\t{pillow}\t{count}")


if __name__ == "__main__":
    main()
