"""What a recipe can say: every key with its type. Loads msgspec, and is loaded only when a recipe is read."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from imagenet_prep.storage.layout import MAX_SHARDS

Shards = Annotated[int, Meta(ge=1, le=MAX_SHARDS)]
Text = Annotated[str, Meta(min_length=1)]
Paths = Text | list[Text]


class Source(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the items are: one of the first five."""

    folders: Text | None = None
    files: Paths | None = None
    manifest: Text | None = None
    tar: Paths | None = None
    imagenet: Literal[True] | None = None
    tar_folders: bool = False


class Labels(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of labels, and which of its columns is what."""

    file: Text
    path: Text | None = None
    label: Text | bool | None = None
    format: Literal["lines", "csv", "tsv", "jsonl"] | None = None
    missing: Literal["error", "ignore"] = "error"
    unlabelled: Literal["error", "skip"] = "error"


class PlaceKeys(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the files of one split are: one of the three."""

    folder: Text | None = None
    files: Text | None = None
    manifest: Text | None = None


class Images(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How images are treated, as by the options of convert."""

    reencode: bool = False
    resize: Annotated[int, Meta(ge=1)] | None = None
    max_side: Annotated[int, Meta(ge=1)] | None = None
    quality: Annotated[int, Meta(ge=1, le=100)] | None = None
    check: Literal["auto", "header", "decode"] = "auto"
    upright: bool | None = None


class Feature(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one feature of a record holds."""

    from_: Text | None = None
    type: Literal["bytes", "int64", "float"] | None = None
    optional: bool = False


class Recipe(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A recipe as it is written: what is None was not said. Mappings of free keys are checked one by one."""

    manifest_file: Text | None = None
    input_file_pattern: Text | None = None
    output_file_prefix: Text | None = None
    num_shards: Shards | None = None
    shard_size: Text | Annotated[int, Meta(ge=1)] | None = None
    min_val: float | None = None
    max_val: float | None = None
    source: Source | None = None
    classes: Text | list[Text | int] | dict[str, Any] | None = None
    first_label: Annotated[int, Meta(ge=0, le=1 << 62)] | None = None
    labels: Text | Labels | None = None
    splits: dict[str, Any] | None = None
    content: Literal["image", "pixels", "array"] | None = None
    array: Text | None = None
    images: Images | None = None
    record: Text | dict[str, Any] | None = None
    shards: Shards | dict[str, Any] | None = None
    compression: Literal["none", "gzip", "zlib"] = "none"
    seed: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] | None = None
    shuffle: bool | None = None
    skip_bad: bool = False
    validation_boxes: bool = False
    allow_incomplete: bool = False
    relabel: Literal["none", 0, 1] | None = None
