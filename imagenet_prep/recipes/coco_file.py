"""read_coco: a COCO file -> Coco, its parts that matter, checked by type."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from imagenet_prep.recipes.annotation_files import decode_json, json_content
from imagenet_prep.recipes.box_policy import Corners
from imagenet_prep.recipes.object_masks import NO_OUTLINE

_Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
"""All that a record can hold."""


class _CocoImage(Struct, gc=False):
    id: int | str
    file_name: str
    width: int
    height: int


class _Segment(Struct, gc=False):
    """An object of a panoptic PNG: its pixels have the number ``id``."""

    id: int
    category_id: _Int64 | None = None
    bbox: Corners | None = None
    iscrowd: _Int64 = 0
    area: float | None = None


class CocoAnnotation(Struct):
    """An annotation of an image: an object, a caption, or the segments of a panoptic PNG."""

    image_id: int | str
    id: int | str | None = None
    category_id: _Int64 | None = None
    bbox: Corners | None = None
    iscrowd: _Int64 = 0
    area: float | None = None
    keypoints: list[float] | None = None
    num_keypoints: _Int64 | None = None
    caption: str | None = None
    segments_info: list[_Segment] | None = None
    file_name: str = ""

    def place(self, number: int) -> str:
        """Its place in the file, for messages; ``number`` counts from 0."""
        place = f"annotations[{number}]"
        return place if self.id is None else f"{place} (id {self.id})"


class OutlinedAnnotation(CocoAnnotation):
    """An annotation with its outline, polygons or runs, as its file has it:
    numbers would take ten times the memory.
    """

    segmentation: msgspec.Raw = NO_OUTLINE


class _Category(Struct):
    id: _Int64
    name: str
    keypoints: list[str] = []


class Coco(Struct):
    """The parts of a COCO file that matter; https://cocodataset.org/#format-data has them."""

    images: list[_CocoImage]
    annotations: list[CocoAnnotation] = []
    categories: list[_Category] = []
    has_outlines: bool = False

    @property
    def content(self) -> str:
        """ "boxes", "outlines", "segments" or "captions", as its annotations are; "" for others."""
        if any(annotation.bbox is not None for annotation in self.annotations):
            return "boxes"
        if any(annotation.caption is not None for annotation in self.annotations):
            return "captions"
        if any(annotation.segments_info for annotation in self.annotations):
            return "segments"
        if self.has_outlines and self.annotations:
            return "outlines"
        return ""

    @property
    def keypoint_count(self) -> int:
        """The most key points that an object can have, by the names that categories have."""
        counts = [len(category.keypoints) for category in self.categories]
        return max(counts, default=0)


class _CocoWithOutlines(Coco):
    annotations: list[OutlinedAnnotation] = []  # type: ignore[assignment]


_OUTLINES = re.compile(rb'"segmentation"\s*:\s*[\[{]\s*[^\s\]}]')


def read_coco(path: Path, *, with_outlines: bool = False) -> Coco:
    """Read a COCO file.

    Raises:
        InputError: it is no JSON, or a key is missing or has another type; the error names it.
    """
    content_type = _CocoWithOutlines if with_outlines else Coco
    data = json_content(path)
    coco: Coco = decode_json(path, data, content_type, "COCO")
    coco.has_outlines = _OUTLINES.search(data) is not None
    return coco
