"""RecipeDataset: a recipe whose inputs have been listed, the recorders of its records, what decides their bytes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imagenet_prep.datasets.plan import InceptionRecorder, PlannedSet, Recorded, Recorder, cut
from imagenet_prep.images import arrays, jpeg, pixels, png
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import codec
from imagenet_prep.images.prepare import Check, prepare
from imagenet_prep.model import Item
from imagenet_prep.recipes.annotated import ImageForm, follow
from imagenet_prep.recipes.annotating import SIZE
from imagenet_prep.recipes.columns import Content, Mapped
from imagenet_prep.recipes.inputs import ManifestFile
from imagenet_prep.recipes.labels import Classes, Labelled, class_notes
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.state.manifest import RECIPE, DatasetEntry
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.tfrecord import example
from imagenet_prep.tfrecord.example import BytesList, FloatList, Int64List, Kind, SplitEntry, encode_entry, varint

if TYPE_CHECKING:
    import numpy as np

    from imagenet_prep.recipes.columns import Content, Mapped


Buffer = bytes | memoryview

_LONG = 4096  # bytes that are not worth a copy
_FLOATS = b"\x12"  # the tag of a float list, where SplitEntry's default is that of a byte string
_FEW = frozenset(("label", "class", "text", "split", "height", "width", "depth", "channels"))
_FEW |= frozenset(("colorspace", "format", "dtype", "shape"))  # columns of which many records have the same value


@dataclass(frozen=True, slots=True)
class MappedRecorder(Recorder):
    """Records of features that a recipe lists.

    Args:
        features: in byte order of their names.
        content: what the files are.
        split: the name of the split.
        numbers: the labels to write, for 1, 2, ...
        bounds: numbers are clipped to these two and brought to [0, 1]; None: they stay.
        key: which array of an .npz.
        masks: the folder that paths of masks start at; None if there are none.
        keep: put in every image as it is, whatever its format.
    """

    features: tuple[Mapped, ...]
    content: Content
    split: str = ""
    numbers: Sequence[int] = ()
    bounds: tuple[float, float] | None = None
    key: str | None = None
    masks: Path | None = None
    keep: bool = False

    @property
    def keeps_size(self) -> bool:
        """Only where a record holds its image as it was, or encoded again in its old size."""
        is_smaller = self.how is not None and self.how.may_shrink
        return not is_smaller and self.content == "image" and any(each.column == "encoded" for each in self.features)

    def record(self, item: Item, data: Buffer) -> Recorded:
        """The Example of all features, in canonical encoding."""
        given = _Image(data, self) if self.content == "image" else self._numbers(data)
        if isinstance(given, _Image) and (self.masks is not None or SIZE in item.columns):
            item = follow(item, data, given.made, self.masks)
        parts: list[Buffer] = []
        for mapped in self.features:
            value = self._value(item, mapped.column, given)
            if value is not None:
                _append(parts, mapped, value)
            elif not mapped.optional:
                raise ImageError(f"it has no {mapped.column}")
        total = sum(map(len, parts))
        return Recorded(_joined([b"\x0a" + varint(total), *parts]), given.repair)

    def _numbers(self, data: Buffer) -> _Numbers:
        array = arrays.parse_array(data, self.key) if self.content == "array" else arrays.decode_raster(data)
        return _Numbers(array if self.bounds is None else arrays.rescale(array, *self.bounds))

    def _value(self, item: Item, column: str, given: _Image | _Numbers) -> Any:
        match column:
            case "path":
                return item.filename
            case "filename":
                return item.filename.rpartition("/")[2]
            case "split":
                return self.split
            case "label":
                return self.numbers[item.label - 1] if item.label else None
            case "class":
                return item.wnid if item.label else None
            case "text":
                return item.text if item.label else None
        if column in item.columns:
            return item.columns[column]
        return given.get(column)


# columns of the content ----------------------------------------------------------------------------------------


class _Image:
    """The columns of an image file. JPEGs as in ImageNet's records; PNGs are kept unless everything is encoded again.

    With ``keep``, files of all formats are kept.
    """

    def __init__(self, data: Buffer, by: MappedRecorder) -> None:
        self.repair = ""
        if arrays.is_npy(data):
            data = arrays.png_of(data)
        if by.keep or (by.how is None and png.is_png(data)):
            self._keep(data, by.check)
            return
        image = prepare(data, by.check, by.how, upright=by.upright)
        if by.how is not None and image.repair == "png" and not image.lost:  # a JPEG is what was asked for
            image = dataclasses.replace(image, repair="")
        self.repair = image.changes
        self._encoded, self._size, self._format = image.encoded, (image.width, image.height), "JPEG"
        self._channels = jpeg.read_header(image.encoded).components
        self.made = ImageForm(image.width, image.height, image.orientation)

    def _keep(self, data: Buffer, check: Check) -> None:
        self._format, *size, self._channels = pixels.read_facts(data)
        if self._format == "PNG":
            png.check_ends(data)
        if self._format == "JPEG":
            prepare(data, check)
        elif check == "decode" or self._format != "PNG":
            pixels.decode_rgb(data)
        self._encoded, self._size = data, (size[0], size[1])
        self.made = ImageForm(size[0], size[1])

    def get(self, column: str) -> Buffer | int | str:
        """The value of a column."""
        match column:
            case "encoded":
                return self._encoded
            case "width" | "height":
                return self._size[column == "height"]
            case "channels":
                return self._channels
            case "colorspace":
                return "Grayscale" if self._channels < 3 else "RGB"
            case "format":
                return self._format
        raise KeyError(column)


class _Numbers:
    """The columns of an array, or of an image's samples."""

    repair = ""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def get(self, column: str) -> Any:
        """The value of a column."""
        match column:
            case "values":
                return self._array
            case "raw":
                return arrays.raw_bytes(self._array)
            case "shape":
                return self._array.shape
            case "dtype":
                return self._array.dtype.name
            case "height" | "width" | "depth":
                return arrays.plane(self._array.shape)[("height", "width", "depth").index(column)]
        raise KeyError(column)


def _joined(parts: list[Buffer]) -> tuple[Buffer, ...]:
    """The same bytes in fewer pieces: short neighbours are put together."""
    joined: list[Buffer] = []
    short: list[Buffer] = []
    for part in parts:
        if len(part) <= _LONG:
            short.append(part)
            continue
        joined += (b"".join(short), part)
        short = []
    if short:
        joined.append(b"".join(short))
    return tuple(joined)


# values -> entries of an Example -------------------------------------------------------------------------------


def _append(parts: list[Buffer], mapped: Mapped, value: Any) -> None:
    """The entry of one feature; long values are pieces of their own, and not copied."""
    if mapped.column == "values":
        _append_values(parts, mapped, value)
    elif isinstance(value, (bytes, memoryview)):
        parts += (_split_entry(mapped.feature, b"\x0a").head(len(value)), value)
    elif mapped.column in _FEW:
        parts.append(_common_entry(mapped.feature, mapped.kind, value))
    else:
        parts.append(_entry(mapped.feature, mapped.kind, value))


def _append_values(parts: list[Buffer], mapped: Mapped, array: np.ndarray[Any, Any]) -> None:
    if mapped.kind == "float":
        packed = arrays.float_bytes(array)
        if packed:
            parts += (_split_entry(mapped.feature, _FLOATS).head(len(packed)), packed)
        else:
            parts.append(encode_entry(mapped.feature, FloatList(())))
        return
    if array.dtype.kind == "f":
        raise arrays.ArrayError(f"it holds {array.dtype}: its values are not int64")
    if array.dtype.name == "uint64" and array.size and int(array.max()) >> 63:
        raise arrays.ArrayError(f"it holds {int(array.max())}: expected at most 2**63 - 1")
    parts.append(encode_entry(mapped.feature, Int64List(tuple(map(int, array.reshape(-1).tolist())))))


_split_entry = functools.lru_cache(maxsize=256)(SplitEntry)


def _entry(feature: str, kind: Kind, value: Any) -> bytes:
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return encode_entry(feature, _feature(kind, values))


def _feature(kind: Kind, values: tuple[Any, ...]) -> example.Feature:
    match kind:
        case "int64":
            return Int64List(tuple(map(int, values)))
        case "float":
            return FloatList(tuple(map(float, values)))
    return BytesList(tuple(value.encode() if isinstance(value, str) else value for value in values))


_common_entry = functools.lru_cache(maxsize=4096)(_entry)
"""An entry that other records have too: encoded once. Its value is hashable."""


RECIPE_VERSION = 1
"""Goes into every fingerprint: raised when the same recipe makes other bytes."""


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """One split of a recipe.

    Args:
        name: "train", ...
        prefix: the prefix of its shards' names: ``prefix-00000-of-00008``.
        catalog: its items, in the order before the shuffle.
        origin: the folder, archive or manifest that the recipe names.
        shards: how many there are.
        shuffle: whether the rows are shuffled, with ``seed``.
        seed: of the shuffle.
        recorder: makes a record of an item.
    """

    name: str
    prefix: str
    catalog: Catalog
    origin: AnyPath
    shards: int
    shuffle: bool
    seed: int
    recorder: Recorder


@dataclass(frozen=True, slots=True)
class RecipeDataset:
    """A whole recipe, compared with its inputs.

    Args:
        path: the recipe.
        splits: in the order in which the recipe has them.
        skip_bad: whether bad items are left out.
        settings: everything that decides bytes except the items, for fingerprints and the manifest; plain JSON.
        features: what every record holds: by name its kind, whether it may be missing, and how many values (None: any).
        classes: names, words and numbers of the classes; empty if there are none.
        notes: what to tell the user.
        warnings: the classes that a split lacks, as text.
        grows: whether new files get new shards, and earlier shards stay as they are.
        manifest: a manifest_file that is still to be made.
        expected: how many "images" and "classes" the recipe says that there are, in all or by prefix.
    """

    path: AnyPath
    splits: tuple[SplitPlan, ...]
    skip_bad: bool
    settings: Mapping[str, Any]
    features: Mapping[str, Mapping[str, Any]]
    classes: Classes
    notes: tuple[str, ...]
    manifest: ManifestFile | None = None
    expected: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    grows: bool = False

    def cut(self) -> PlannedSet:
        """Every split, cut into plans."""
        splits = []
        for each in self.splits:
            seed = each.seed if each.shuffle else None
            splits.append(cut(each.catalog, each.origin, each.recorder, each.shards, seed, self.settings))
        prefixes = tuple(each.prefix for each in self.splits)
        ordering = {each.prefix: {"seed": each.seed, "shuffle": each.shuffle} for each in self.splits}
        features = {name: dict(promised) for name, promised in self.features.items()}
        return PlannedSet(
            entry=DatasetEntry(RECIPE, self.path.stem, prefixes, features),
            splits=tuple(splits),
            settings={
                **self.settings,
                "order": ordering,
                **({"expected": dict(self.expected)} if self.expected else {}),
            },
            expected={each.prefix: len(each.catalog) for each in self.splits},
            notes=(*self.notes, *class_notes(self.classes.names, self.classes.numbers), *self.warnings),
            lists=self._lists(),
        )

    def _lists(self) -> dict[AnyPath, bytes]:
        """The content of the manifest_file that the recipe names and that is not there, by split if each has one."""
        made = self.manifest
        if made is None:
            return {}
        lists: dict[AnyPath, Sequence[str]] = {} if made.paths else {made.path: made.names}
        for split in self.splits if made.paths else ():
            lists[made.paths[split.name]] = [made.lead + name for name in split.catalog.names]
        return {path: "".join(f"{name}\n" for name in names).encode() for path, names in lists.items()}


# records --------------------------------------------------------------------------------------------------------


def make_recorder(
    file: RecipeFile,
    is_inception: bool,
    features: tuple[Mapped, ...] | None,
    content: Content,
    labelled: Labelled,
    split: str,
) -> Recorder:
    """The recorder of one split; ``features`` are those of a mapped record."""
    recipe = file.recipe
    check: Check = "header" if recipe.check == "header" else "decode"
    upright = content == "image" and recipe.upright
    common: Any = {"check": check, "how": recipe.reencode, "upright": upright, "loosely": "check: header in the recipe"}
    numbers = _in_short(labelled.classes.numbers)
    if is_inception or features is None:
        return InceptionRecorder(numbers=None if numbers == range(1, len(numbers) + 1) else numbers, **common)
    bounds = None if recipe.min_val is None or recipe.max_val is None else (recipe.min_val, recipe.max_val)
    return MappedRecorder(features, content, split, numbers, bounds, recipe.array, keep=recipe.keep, **common)


def _in_short(numbers: tuple[int, ...]) -> Sequence[int]:
    """The same numbers; where each is one more than the last, as a range: every task of a shard carries them."""
    counted = range(numbers[0], numbers[0] + len(numbers)) if numbers else range(0)
    return counted if numbers == tuple(counted) else numbers


def settings_of(
    file: RecipeFile, features: tuple[Mapped, ...] | None, content: Content, listing: Catalog, classes: Classes
) -> dict[str, Any]:
    """Everything except the items that decides the bytes of records; settings without a value stay out."""
    recipe = file.recipe
    settings: dict[str, Any] = {"recipe": RECIPE_VERSION, "content": content, **recipe.deciding("records")}
    if features is None:
        settings["record"] = "inception"
    else:
        settings["record"] = {
            each.feature: {"from": each.column, "type": each.kind, "optional": each.optional} for each in features
        }
    if classes.numbers:  # any that don't count on from the first are the names of their classes, too
        settings["first_label"] = classes.numbers[0]
    if recipe.keep:
        settings["keep"] = True
    if content == "image" and file.recipe.upright:
        settings["upright"] = True  # versions that turned none did not have this key
    jpegs = (each for each in listing.names.endings() if each.lower().endswith((".jpg", ".jpeg")))
    if recipe.reencode is None and content == "pixels" and any(jpegs):
        settings["codec"] = codec()  # how a JPEG becomes numbers is the decoder's choice
    if recipe.min_val is not None:
        settings["rescale"] = [float(recipe.min_val), float(recipe.max_val or 0)]
    if recipe.array is not None:
        settings["array"] = recipe.array
    return settings
