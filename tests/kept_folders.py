"""Folders as people keep them: builders that paint images, and what a person reads from each
folder.

A builder gets a Painter and returns a Truth. Every image has a colour of its own, so that a record
tells which file it was made of, whatever the record names it. The lists are in ``kept_by_folder``,
``kept_in_tables``, ``kept_annotated`` and ``kept_in_archives``; ``test_kept_folders`` runs them.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image

ClassName = str
Box = tuple[ClassName, float, float, float, float]
"""A class, then xmin, ymin, xmax, ymax in pixels."""

ANY = "*"
"""The class of a box in a folder that names none."""

MOST_IMAGES = 256
"""So many colours are told from each other after a JPEG."""


class Painter:
    """Paints the images of one folder, each in a colour of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.painted: list[str] = []
        """The path of each image from the folder, by the number of its colour."""

    def paint(self, path: str, size: tuple[int, int] = (16, 12)) -> str:
        """Write an image of this path, in the format that its ending says
        (JPEG for an unknown one); its path.
        """
        self.write(path, self.encode(path, size))
        return path

    def paint_all(
        self, pattern: str, count: int, first: int = 0, size: tuple[int, int] = (16, 12)
    ) -> list[str]:
        """Images of the numbers from ``first`` on: ``paint_all("cat/{:03}.jpg", 3)``."""
        return [self.paint(pattern.format(number), size) for number in range(first, first + count)]

    def encode(self, path: str, size: tuple[int, int] = (16, 12)) -> bytes:
        """The bytes of an image that is known as ``path``, for an archive or a column;
        nothing is written.
        """
        image = Image.new("RGB", size, colour_of(self._number_of(path)))
        formats = Image.registered_extensions()
        kind = formats.get(Path(path).suffix.lower(), "JPEG")
        options = (
            {"lossless": True} if kind == "WEBP" else {"quality": 95} if kind == "JPEG" else {}
        )
        stream = io.BytesIO()
        image.save(stream, kind, **options)
        return stream.getvalue()

    def pixels(self, path: str, shape: tuple[int, ...]) -> np.ndarray:
        """An array of 8 bits that is known as ``path``:
        its colour if the last of three dimensions is 3, or a gray.
        """
        number = self._number_of(path)
        values = colour_of(number) if len(shape) == 3 and shape[-1] == 3 else number
        return np.full(shape, values, np.uint8)

    def write(self, path: str, content: bytes | str) -> None:
        """Write another file: a table, a list, a mask, a text."""
        full = self.folder / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(content.encode() if isinstance(content, str) else content)

    def _number_of(self, path: str) -> int:
        number = len(self.painted)
        assert number < MOST_IMAGES, "a folder has more images than colours"
        self.painted.append(path)
        return number


def stem(path: str) -> str:
    """The name of a file without its folders and its ending."""
    return PurePosixPath(path).stem


def name_of(path: str) -> str:
    """The name of a file without its folders."""
    return PurePosixPath(path).name


def colour_of(number: int) -> tuple[int, int, int]:
    """The colour of an image; it is never a gray."""
    red = 16 * (number % 16) + 8
    green = 16 * (number // 16) + 8
    return red, green, 256 - red


def number_of_pixels(pixels: np.ndarray) -> int:
    """The number of the image that a record's pixels show: of a colour, or of an exact gray."""
    if pixels.ndim == 3 and pixels.shape[-1] == 3:
        red, green, blue = (float(pixels[..., channel].mean()) for channel in range(3))
        if abs(red - blue) > 8:
            return int(red // 16) + 16 * int(green // 16)
    return round(float(pixels.mean()))


class Truth:
    """What a person reads from a folder.

    Args:
        classes: the class of each image by its path; several classes as a tuple; None for an image
            without a class. An image that is not here is no example: a mask, or one that every
            reader leaves out.
        splits: the split of each image by its path, "train", "validation" or "test"; {}: the folder
            has none.
        boxes: the boxes of each image by its path; {}: the folder has none.
        masks: the mask of each image by its path, as whole numbers (height x width); {}: the folder
            has none.
        object_masks: the masks of the objects of each image, in the order of its boxes; {}: the
            folder has none.
        numbers: the number of each class, counted from 0, where the folder itself says so; {}: in
            the order of names.
        left_out: images that a reader may leave out, or keep without a class, as he likes.
        choices: other truths that a person may mean: a question between them and this one is right.
        must_ask: init must not take this folder without a question: both readings are as good.
    """

    def __init__(
        self,
        classes: Mapping[str, ClassName | tuple[ClassName, ...] | None],
        *,
        splits: Mapping[str, str] | None = None,
        boxes: Mapping[str, Sequence[Box]] | None = None,
        masks: Mapping[str, np.ndarray] | None = None,
        object_masks: Mapping[str, Sequence[np.ndarray]] | None = None,
        numbers: Mapping[ClassName, int] | None = None,
        left_out: Sequence[str] = (),
        choices: Sequence[Truth] = (),
        must_ask: bool = False,
    ) -> None:
        self.classes = dict(classes)
        self.splits = dict(splits or {})
        self.boxes = {path: list(several) for path, several in (boxes or {}).items()}
        self.masks = dict(masks or {})
        self.object_masks = dict(object_masks or {})
        self.numbers = dict(numbers or {})
        self.left_out = frozenset(left_out)
        self.choices = list(choices)
        self.must_ask = must_ask


Builder = Callable[[Painter], Truth]

KNOWN: dict[str, Builder] = {}
"""Every builder by its name."""


def kept(builder: Builder) -> Builder:
    """Enter a builder into the list; its docstring is one line of intent,
    and says where people keep such a folder.
    """
    assert builder.__doc__ is not None
    assert builder.__name__ not in KNOWN
    KNOWN[builder.__name__] = builder
    return builder
