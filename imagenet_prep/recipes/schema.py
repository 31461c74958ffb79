"""Every key of a recipe with its type. Loads msgspec, so import it only where a recipe is read."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, defstruct, field

from imagenet_prep.datasets.declarations import CommonSettings, Shards, about
from imagenet_prep.recipes.box_policy import BoxesOutside
from imagenet_prep.recipes.formats import FORMATS
from imagenet_prep.recipes.source_kinds import BySplit, Paths, Text, source_kinds


class SourceKeys(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of a source, whatever its kind; ``Source`` has a key for each kind, too.

    ``imagenet`` stands in place of a kind; the other keys say more of some kinds.
    """

    imagenet: Literal[True] | None = None
    tar_folders: bool = False
    class_folder: Literal["first", "inner", "path"] = "first"
    label: Text | Literal[False] | None = None
    image: Text | None = None

    @property
    def kind(self) -> str:
        """The key of the kind that the recipe names; "" for ImageNet."""
        return next((key for key in source_kinds() if getattr(self, key, None) is not None), "")

    @property
    def value(self) -> Any:
        """The value of that key."""
        return getattr(self, self.kind)


if TYPE_CHECKING:

    class Source(SourceKeys, frozen=True):
        """Where the items are: ``imagenet``, or the key of one kind."""

        def __init__(self, **keys: Any) -> None: ...

else:
    Source = defstruct(
        "Source",
        [(kind.key, kind.value | None, None) for kind in source_kinds().values()],
        bases=(SourceKeys,),
        module=__name__,
        frozen=True,
        forbid_unknown_fields=True,
        kw_only=True,
    )


class Labels(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file of labels, or those of each split, and which of its columns is what."""

    file: Text | dict[str, Paths]
    path: Text | None = None
    label: Text | bool | None = None
    one_hot: Literal[True] | list[Text] | None = None
    split: Text | None = None
    format: Literal["lines", "words", "csv", "tsv", "spaces", "jsonl", "json"] | None = None
    header: bool = True
    several: Text | None = None
    missing: Literal["error", "ignore"] = "error"
    unlabelled: Literal["error", "skip", "keep"] | None = None


class FormatKeys(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of annotations that only some formats have a use for: those whose
    ``Format.keys`` name them.
    """

    captions: Paths | None = None
    header: bool = True
    columns: dict[str, Text] | None = None
    names: Text | list[Text | int] | None = None
    first_label: Annotated[int, Meta(ge=0, le=1 << 62)] | None = None
    polygons: Literal["boxes", "masks"] | None = None


class BoxKeys(FormatKeys, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The keys of annotations of objects; ``Boxes`` has a key for each format, too.

    A source whose rows have boxes needs no format.
    """

    missing: Literal["error", "ignore"] = "error"
    unannotated: Literal["error", "empty", "skip"] | None = None

    @property
    def format(self) -> str:
        """The key of the format that the recipe names;
        "" where the rows of the source have the boxes.
        """
        for name in FORMATS:
            if getattr(self, name, None) is not None:
                return name
        return ""

    @property
    def places(self) -> list[str]:
        """The files or folders of annotations."""
        places = getattr(self, self.format) if self.format else None
        if isinstance(places, dict):
            return [*chain.from_iterable(map(listed_texts, places.values()))]
        return listed_texts(places)

    @property
    def splits(self) -> dict[str, str]:
        """The split of each of these places, if the recipe names one."""
        splits: dict[str, str] = {}
        places = getattr(self, self.format)
        if isinstance(places, dict):
            for split, paths in places.items():
                for path in listed_texts(paths):
                    splits[path] = split
        return splits

    @property
    def caption_files(self) -> list[str]:
        """The files of captions."""
        return listed_texts(self.captions)


if TYPE_CHECKING:

    class Boxes(BoxKeys, frozen=True):
        """The annotations of objects: one of the keys of formats,
        and what to do with what has no counterpart.
        """
else:
    Boxes = defstruct(
        "Boxes",
        [(name, BySplit | None, None) for name in FORMATS],
        bases=(BoxKeys,),
        module=__name__,
        frozen=True,
        forbid_unknown_fields=True,
        kw_only=True,
    )


def listed_texts(value: str | list[str] | None) -> list[str]:
    """The texts of a key that can have one or several."""
    if isinstance(value, str):
        return [value]
    return value or []


class Mask(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Folders of masks, each of the image of the same name, except for the end of its name."""

    folder: Paths
    match: Literal["stem"] = "stem"
    suffix: Text | None = None
    image_suffix: Text | None = None
    threshold: Annotated[int, Meta(ge=1, le=255)] | None = None
    missing: Literal["error", "ignore"] = "error"
    unmasked: Literal["error", "skip"] = "error"


class PlaceKeys(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the files of one split are: one of the four; of patterns with a ``!`` none matches.

    ``value`` is one of the column that ``labels.split`` names.
    """

    folder: Paths | None = None
    files: Paths | None = None
    manifest: Text | None = None
    value: Text | int | None = None


class ExpectedTotals(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How much the whole set, or one split, must hold."""

    images: Annotated[int, Meta(ge=1)] | None = None
    classes: Annotated[int, Meta(ge=1)] | None = None


class Feature(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The content of one feature of a record."""

    from_: Text | None = field(default=None, name="from")
    type: Literal["bytes", "int64", "float"] | None = None
    optional: bool = False


class Recipe(CommonSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A recipe: its settings, and its other keys, None if not said.
    Mappings of free keys are checked one by one.
    """

    manifest_file: Text | None = None
    input_file_pattern: Text | None = None
    output_file_prefix: Text | None = None
    num_shards: Shards | None = None
    shard_size: Annotated[
        Annotated[int, Meta(ge=1)] | None, about("Bytes of each shard.", is_size=True)
    ] = None
    min_val: float | None = None
    max_val: float | None = None
    source: Source | None = None
    classes: Text | list[Text | int] | dict[str, Any] | None = None
    first_label: Annotated[int, Meta(ge=0, le=1 << 62)] | None = None
    labels: Text | Labels | None = None
    strip: Text | None = None
    class_names: Text | dict[str, Text] | None = None
    boxes: Boxes | None = None
    boxes_outside: Annotated[
        BoxesOutside,
        about(
            (
                "Refuse boxes that lead out of their image, are swapped or empty; "
                "or clip or drop them."
            ),
            only_with="boxes",
        ),
    ] = "refuse"
    mask: Mask | None = None
    splits: dict[str, Any] | None = None
    stratified: bool = False
    grow: bool = False
    content: Literal["image", "pixels", "array"] | None = None
    array: Text | None = None
    expected: dict[str, Any] | None = None
    record: Text | dict[str, Any] | None = None
    shards: Shards | dict[str, Any] | None = None
    keep: Annotated[
        bool, about("Keep the bytes of images of every format.", only_with="images")
    ] = False
    upright: Annotated[
        bool, about("Turn images that are encoded again as their EXIF asks.", only_with="images")
    ] = True
