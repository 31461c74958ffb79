"""Run lengths of Kaggle: a CSV with a row for each object, its image,
perhaps its class, and EncodedPixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from imagenet_prep.images import mask_pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.box_files import Marked, columns_in, columns_named
from imagenet_prep.recipes.box_policy import NAMELESS, Size, fault
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed
from imagenet_prep.recipes.mask_names import is_mask_folder
from imagenet_prep.recipes.object_masks import Runs

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_RUNS = "encodedpixels"
_NO_OBJECT = "-1"
_CLASSES = ("classid", "class", "label")


class _RunsOfObject(NamedTuple):
    """A row: the image, the class, the runs ("" for an image without objects),
    and its place for messages.
    """

    image: str
    label: str
    runs: str
    where: str


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.file.columns = columns_named("area")
    images.file.polygons = "masks"
    for path in images.paths(keys.places):
        by_image: dict[str, list[_RunsOfObject]] = {}
        for line in _rows(path):
            by_image.setdefault(line.image, []).append(line)
        named = [Marked(name, rows[0].where) for name, rows in by_image.items()]
        for row, image in images.by_name(named, path):
            image.size = images.size(row)
            for line in by_image[image.name]:
                if line.runs:
                    _add(images, image, image.size, line)
            images.mark(row, image)


def _rows(path: Path) -> Iterator[_RunsOfObject]:
    """The rows of a table: its first column names the images."""
    lines, cells = columns_in(path)
    folded = {name.lower(): values for name, values in cells.items()}
    if _RUNS not in folded:
        raise fault(str(path), "no column EncodedPixels", f"expected it among {', '.join(cells)}")
    names, runs = next(iter(cells.values())), folded[_RUNS]
    labels = next((folded[name] for name in _CLASSES if name in folded), [NAMELESS] * len(lines))
    for number, line in enumerate(lines):
        text = runs[number] or ""
        text = "" if text == _NO_OBJECT else text
        yield _RunsOfObject(names[number] or "", labels[number] or "", text, f"{path}, line {line}")


def _add(images: AnnotatedImages, image: Marked, size: Size, line: _RunsOfObject) -> None:
    """Add an object: its box is the one around its pixels."""
    try:
        counts = _counts(line.runs.split(), size)
        pixels = mask_pixels.fill_runs(counts, size)
    except (ImageError, ValueError) as error:
        raise fault(
            line.where, f"runs that can't be: {error}", "expected starts from 1 and lengths in turn"
        ) from error
    outline = Runs(size=(size[1], size[0]), counts=counts)
    images.file.add_pixels(image, line.label, pixels, outline, line.where)


def _counts(words: Sequence[str], size: Size) -> list[int]:
    """Kaggle's runs as COCO's: starts from 1 and lengths of what is inside
    become lengths of 0 and 1 in turn.
    """
    if len(words) % 2:
        raise ImageError(f"{len(words)} numbers")
    counts: list[int] = []
    position = 0
    for start, length in zip(map(int, words[::2]), map(int, words[1::2]), strict=True):
        counts += [start - 1 - position, length]
        position = start - 1 + length
    return [*counts, size[0] * size[1] - position]


def is_table(name: str, ends: bytes) -> bool:
    """Whether a file is a table of runs, by its first bytes."""
    return (
        name.lower().endswith(".csv")
        and _RUNS in ends.partition(b"\n")[0].decode("utf-8", "replace").lower()
    )


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """The tables; None next to folders of masks, which hold the same."""
    has_masks = any(is_mask_folder(part) for name in folder.names for part in name.split("/")[:-1])
    return (
        None
        if has_masks or not folder.files
        else Proposed({"runs": sorted(folder.files)}, folder.files)
    )


FORMAT = Format(
    "runs",
    "run lengths",
    "run-lengths",
    (".csv",),
    is_table,
    _mark,
    usage={
        "Kaggle's run lengths": (
            "`boxes: {runs: FILES}`, a CSV with `EncodedPixels`: boxes and "
            "[masks](#masks-of-objects)"
        )
    },
    propose=_propose,
)
