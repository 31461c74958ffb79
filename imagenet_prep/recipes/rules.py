"""Checks that the keys of a recipe fit together: every conflict is one error, before any input is read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.storage.layout import RAW_NAME, STATE_NAME, grown_from
from imagenet_prep.text import byte_count

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import Labels, Source

SPLIT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_NO_SPLIT_NAME = ("no name of a split", "expected letters, digits, _, -, . and +, no -grownN")
SAMPLES = ("webdataset", "tfrecord", "parquet", "arrays")
"""The sources that have labels of their own."""

SHARD_SIZE = 100 * 10**6
"""Bytes of a shard where the recipe does not say."""


def check_rules(file: RecipeFile) -> None:
    """Compare every key of a recipe with the others.

    Raises:
        UsageError: two keys contradict each other, one lacks another, or a value is out of range.
    """
    check_source(file)
    if is_imagenet(file):
        return  # its settings are checked where they are declared
    _one_of(file, ("num_shards", "shard_size", "shards"), "how many shards there are")
    shard_size(file)
    _check_range(file)
    _check_record(file)
    _check_images(file)
    _check_boxes(file)
    _check_splits(file)
    _check_expected(file)
    prefix_of(file)
    shard_counts(file)


def is_imagenet(file: RecipeFile) -> bool:
    """Whether the recipe is one of ILSVRC2012 itself."""
    return file.recipe.source is not None and file.recipe.source.imagenet is True


def check_source(file: RecipeFile) -> None:
    """Exactly one source is named."""
    recipe = file.recipe
    classic = [key for key in ("manifest_file", "input_file_pattern") if getattr(recipe, key) is not None]
    if recipe.source is None:
        if not classic:
            raise file.fault((), "no source", "expected source: {folders | files | tar | ...}, or input_file_pattern")
        return
    if classic:
        raise file.fault(("source",), f"two sources, {classic[0]} is the other", "expected one of them")
    names = source_keys()
    given = [name for name in names if getattr(recipe.source, name) is not None]
    if len(given) != 1:
        what = f"{' and '.join(given)} at once" if given else "nothing in it"
        raise file.fault(("source",), what, f"expected one of {', '.join(names)}")
    _check_source_options(file, recipe.source, given[0])
    if given[0] in ("files", "manifest") and recipe.classes is not None and recipe.labels is None:
        raise file.fault(("classes",), "there are no labels", "expected a file that `labels` names, or class folders")


def _check_source_options(file: RecipeFile, source: Source, kind: str) -> None:
    if source.tar_folders and kind != "tar":
        raise file.fault(("source", "tar_folders"), "there is no tar", "expected it next to source.tar only")
    if source.class_folder != "first" and kind not in ("folders", "tar"):
        raise file.fault(("source", "class_folder"), f"{kind} has no class folders", "expected folders or tar")
    if source.label is not None and kind not in SAMPLES:
        raise file.fault(("source", "label"), f"{kind} has no labels of its own", f"expected {', '.join(SAMPLES)}")
    said = getattr(source, kind)
    for split in said if isinstance(said, dict) else ():
        if not SPLIT_NAME.fullmatch(split):
            raise file.fault(("source", kind, split), *_NO_SPLIT_NAME)


def source_keys() -> list[str]:
    """The kinds of sources, by their keys."""
    from imagenet_prep.recipes.schema import Source

    return [name for name in Source.__struct_fields__ if name not in ("tar_folders", "class_folder", "label")]


def _one_of(file: RecipeFile, keys: tuple[str, ...], what: str) -> None:
    given = [key for key in keys if getattr(file.recipe, key) is not None]
    if len(given) > 1:
        raise file.fault((given[1],), f"{given[0]} says {what} already", "expected one of the two")


def _check_range(file: RecipeFile) -> None:
    lower, upper = file.recipe.min_val, file.recipe.max_val
    if (lower is None) != (upper is None):
        given, other = ("min_val", "max_val") if upper is None else ("max_val", "min_val")
        raise file.fault((given,), f"{other} is missing", "expected both, or neither")
    if lower is None or upper is None:
        return
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise file.fault(("max_val",), f"{upper:g}, and min_val is {lower:g}", "expected max_val to be above min_val")
    if file.recipe.content == "image":
        raise file.fault(("min_val",), "content is image", "expected content: pixels or array for numbers")


def _check_record(file: RecipeFile) -> None:
    recipe = file.recipe
    if isinstance(recipe.record, str):
        if recipe.record != "inception":
            raise file.fault(("record",), f"{recipe.record!r} can't be", "expected inception, or a mapping of features")
        if recipe.content not in (None, "image") or recipe.min_val is not None:
            raise file.fault(("record",), "inception is for images", "expected a mapping of features for numbers")
    if recipe.array is not None and recipe.content in ("image", "pixels"):
        raise file.fault(("array",), f"content is {recipe.content}", "expected it with arrays only")


def _check_images(file: RecipeFile) -> None:
    if file.recipe.keep and file.recipe.reencode is not None:
        raise file.fault(("keep",), "images are encoded again", "expected it without resize, max_side and quality")
    if file.recipe.keep and file.recipe.record == "inception":
        raise file.fault(("keep",), "Inception's records hold JPEGs", "expected a mapping of features")
    if file.recipe.content in ("pixels", "array") and (key := said_of_images(file)):
        raise file.fault((key,), f"content is {file.recipe.content}", "expected it with content: image only")


def _check_boxes(file: RecipeFile) -> None:
    """Boxes are of one kind, and no key is of another."""
    boxes = file.recipe.boxes
    if file.recipe.record == "inception" and (key := "boxes" if boxes else "mask" if file.recipe.mask else ""):
        hint = "leave `record` out: its features are those of TensorFlow's Object Detection API"
        raise file.fault((key,), "Inception's records have no place for it", "expected another record", hint)
    if boxes is None:
        return
    ways = ("coco", "voc", "yolo", "csv")
    given = [name for name in ways if getattr(boxes, name) is not None]
    if len(given) != 1:
        what = f"{' and '.join(given)} at once" if given else "nothing in it"
        raise file.fault(("boxes",), what, f"expected one of {', '.join(ways)}")
    others = {"captions": ("coco",), "columns": ("csv",), "names": ways[1:], "first_label": ways[1:]}
    for name, fitting in others.items():
        if getattr(boxes, name) is not None and given[0] not in fitting:
            raise file.fault(
                ("boxes", name), f"the boxes are of {given[0]}", f"expected it with {' or '.join(fitting)}"
            )
    if given == ["yolo"] and boxes.names is None:
        raise file.fault(("boxes", "yolo"), "no `names`", "expected a data.yaml, or the list of classes")


def said_of_images(file: RecipeFile) -> str | None:
    """The first key that says how image files are treated; None if there is none."""
    from imagenet_prep.datasets.declarations import settings_of

    only_images = {each.name for each in settings_of(type(file.recipe)) if each.only_images}
    return next((key for key in file.value if key in only_images), None)


def labels_of(file: RecipeFile) -> Labels | None:
    """The file of labels that the recipe names, by its name alone or with more; None if it names none."""
    from imagenet_prep.recipes.schema import Labels

    said = file.recipe.labels
    return Labels(file=said) if isinstance(said, str) else said


def _check_expected(file: RecipeFile) -> None:
    from imagenet_prep.recipes.schema import ExpectedTotals

    said = file.recipe.expected or {}
    of_splits = {name: value for name, value in said.items() if isinstance(value, dict)}
    for split, value in of_splits.items():
        file.convert(value, ExpectedTotals, ("expected", split))
    file.convert({name: said[name] for name in said.keys() - of_splits}, ExpectedTotals, ("expected",))


def totals_in(expected: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    """Each total of ``expected`` in a recipe or a manifest: its split ("": the whole set), "images" or "classes"."""
    for key, value in expected.items():
        if isinstance(value, Mapping):
            yield from ((key, name, count) for name, count in value.items())
        else:
            yield "", key, value


# splits and shards ---------------------------------------------------------------------------------------------


def _check_splits(file: RecipeFile) -> None:
    splits = file.recipe.splits
    if file.recipe.stratified and (not fractions_of(file) or file.recipe.manifest_file is not None):
        raise file.fault(
            ("stratified",), "there are no fractions", "expected splits: {train: 0.9, ...}, no manifest_file"
        )
    if file.recipe.stratified and file.recipe.grow:
        raise file.fault(("grow",), "new files move others with stratified", "expected one of the two")
    if splits is None:
        return
    for name in splits:
        if not SPLIT_NAME.fullmatch(name) or grown_from(name)[1] > 1:
            raise file.fault(("splits", name), *_NO_SPLIT_NAME)
    fractions = fractions_of(file)
    if not splits or (fractions and len(fractions) != len(splits)):
        raise file.fault(
            ("splits",), "fractions and places at once" if splits else "nothing in it", "expected one sort"
        )
    if fractions and not math.isclose(sum(fractions.values()), 1, abs_tol=1e-6):
        raise file.fault(("splits",), f"the fractions sum to {sum(fractions.values()):g}", "expected 1")
    places_of(file)


def fractions_of(file: RecipeFile) -> dict[str, float]:
    """The fractions of the splits; none if they are given otherwise."""
    fractions = {}
    for name, value in (file.recipe.splits or {}).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if not 0 < value <= 1:
                raise file.fault(("splits", name), f"{value:g} can't be", "expected a fraction above 0, at most 1")
            fractions[name] = float(value)
    return fractions


def places_of(file: RecipeFile) -> dict[str, tuple[str, str]]:
    """Where each split's files are: ("folder" | "files" | "manifest", text); none if fractions decide."""
    from imagenet_prep.recipes.schema import PlaceKeys

    places = {}
    for name, value in (file.recipe.splits or {}).items():
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            continue
        key: Key = ("splits", name)
        if not isinstance(value, dict):
            raise file.fault(key, f"{value!r} can't be", "expected a fraction, or {folder | files | manifest: ...}")
        place: PlaceKeys = file.convert(value, PlaceKeys, key)
        given = [(sort, text) for sort in ("folder", "files", "manifest") if (text := getattr(place, sort)) is not None]
        if len(given) != 1:
            raise file.fault(key, f"{len(given)} places", "expected one of folder, files and manifest")
        places[name] = given[0]
    return places


def prefix_of(file: RecipeFile) -> tuple[str, str]:
    """Folder and first part of the names of shards, of ``output_file_prefix``; both empty if it is not given.

    An absolute one is compared by ``inputs.shards_dir``, which knows DATA_DIR.

    Raises:
        UsageError: it leads out of its folder, or to one that has another purpose; or it can't be a part of a name
            that patterns find.
    """
    prefix = file.recipe.output_file_prefix
    if prefix is None:
        return "", ""
    folder, _, name = prefix.rpartition("/")
    if ".." in prefix.split("/") or not SPLIT_NAME.fullmatch(name):
        raise file.fault(
            ("output_file_prefix",), f"{prefix!r} can't be", "expected a name of letters, digits, _, -, . and +"
        )
    if not prefix.startswith("/") and {RAW_NAME, STATE_NAME} & set(folder.split("/")):
        raise file.fault(
            ("output_file_prefix",), f"{prefix!r} can't be", f"expected no folder {RAW_NAME} or {STATE_NAME} in it"
        )
    return ("/" if prefix.startswith("/") and not folder else folder), name


def shard_size(file: RecipeFile) -> int | None:
    """Bytes of a shard as the recipe has them; None where it names a number of shards.

    Raises:
        UsageError: it is no number of bytes.
    """
    recipe = file.recipe
    if recipe.shard_size is None:
        return SHARD_SIZE if recipe.num_shards is None and recipe.shards is None else None
    count = byte_count(str(recipe.shard_size))
    if count is None:
        raise file.fault(("shard_size",), f"{recipe.shard_size!r} can't be", "expected bytes, such as 100MB or 1.5GiB")
    return count


def shard_counts(file: RecipeFile) -> int | Mapping[str, int] | None:
    """The number of shards, of every split or by split; None where a size decides.

    Raises:
        UsageError: one of them is no number of shards.
    """
    from imagenet_prep.datasets.declarations import Shards

    recipe = file.recipe
    if isinstance(recipe.shards, dict):
        return {split: file.convert(value, Shards, ("shards", split)) for split, value in recipe.shards.items()}
    return recipe.num_shards if recipe.shards is None else recipe.shards
