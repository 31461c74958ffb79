"""Checks that the keys of a recipe fit together:
every conflict is one error, before any input is read.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from imagenet_prep.errors import UsageError
from imagenet_prep.model import ProblemKind
from imagenet_prep.recipes.formats import FORMATS, NUMBERING, Format, all_formats, load_format
from imagenet_prep.recipes.recipe_file import Key, RecipeFile, value_in_words
from imagenet_prep.recipes.source_rules import (
    NO_SPLIT_NAME,
    SPLIT_NAME,
    SPLIT_SIGNS,
    check_source,
    check_split_names,
    has_rows,
    may_have_boxes,
    only_key,
    refuse_empty_places,
)
from imagenet_prep.storage.layout import RAW_NAME, STATE_NAME, grown_from
from imagenet_prep.text import either, listed

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import Boxes


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
    _check_keys(file)
    _check_splits(file)
    _check_expected(file)
    prefix_of(file)
    shard_counts(file)


def _check_keys(file: RecipeFile) -> None:
    """Each pair of keys that contradict each other; the first conflict is the error."""
    _check_shard_keys(file)
    boxes = file.recipe.boxes
    if boxes and not _numbers_rows(file):
        _check_boxes(file, boxes)
    _check_range(file)
    _check_record(file)
    _check_content(file)
    _check_keys_of_boxes(file)
    _check_labels(file)
    _check_growth(file)
    _refuse_image_keys(file)
    refuse_empty_places(file)


def _check_shard_keys(file: RecipeFile) -> None:
    keys = ("num_shards", "shard_size", "shards")
    given_keys = [key for key in keys if getattr(file.recipe, key) is not None]
    if len(given_keys) > 1:
        problem = f"{given_keys[0]} decides the number of shards already"
        raise file.fault((given_keys[1],), problem, f"expected only one of {either(keys)}")


def _check_range(file: RecipeFile) -> None:
    lower, upper = file.recipe.min_val, file.recipe.max_val
    if lower is None and upper is None:
        return
    if upper is None:
        raise file.fault(("min_val",), "it requires max_val, too", "expected both, or neither")
    if lower is None:
        raise file.fault(("max_val",), "it requires min_val, too", "expected both, or neither")
    if not (math.isfinite(lower) and lower < upper < math.inf):
        problem = f"it is {upper:g}, and min_val is {lower:g}"
        expected = "expected two finite numbers, max_val above min_val"
        raise file.fault(("max_val",), problem, expected)
    if file.recipe.content == "image":
        raise _conflict(file, "min_val", "content: image", "expected content: pixels or array")


def _conflict(
    file: RecipeFile, key: str, other: str, reason: str = "expected only one of the two"
) -> UsageError:
    """The error for a key of the recipe that excludes another, which may have its value with it."""
    return file.fault((key,), f"it can't be combined with {other}", reason)


_ONLY_JPEG = "record: inception stores each image as a JPEG; leave out one of the two"


def _check_record(file: RecipeFile) -> None:
    """A record is a mapping, or Inception's: an image as JPEG, without boxes and masks."""
    recipe = file.recipe
    if not isinstance(recipe.record, str):
        return
    if recipe.record != "inception":
        problem = f"no kind of record is called {recipe.record!r}"
        expected = "expected inception, or a mapping of features to columns"
        raise file.fault(("record",), problem, expected)
    if recipe.content in ("pixels", "array"):
        raise _conflict(file, "record", f"content: {recipe.content}", _ONLY_JPEG)
    if recipe.min_val is not None:
        raise _conflict(file, "record", "min_val and max_val", _ONLY_JPEG)
    if recipe.keep:
        raise _conflict(file, "keep", "record: inception", _ONLY_JPEG)
    for key in ("boxes", "mask"):
        if getattr(recipe, key):
            raise _conflict(file, key, "record: inception")


def _check_content(file: RecipeFile) -> None:
    recipe = file.recipe
    if recipe.array and recipe.content in ("image", "pixels"):
        raise _conflict(file, "array", f"content: {recipe.content}", "expected content: array")
    changing_keys = [
        key for key in ("resize", "max_side", "quality") if getattr(recipe, key) is not None
    ]
    if recipe.keep and changing_keys:
        others = " and ".join(changing_keys)
        reason = f"keep: true stores each file as it is; leave out keep, or {others}"
        raise _conflict(file, "keep", others, reason)


def _check_keys_of_boxes(file: RecipeFile) -> None:
    """Settings about boxes need some."""
    if can_have_boxes(file):
        return
    box_key = first_key_only_with(file, "boxes")
    if box_key:
        problem = "it requires boxes, and this recipe has no key boxes"
        raise file.fault((box_key,), problem, f"add boxes, or leave out {box_key}")


def _check_labels(file: RecipeFile) -> None:
    from imagenet_prep.recipes.schema import Labels

    labels = file.recipe.labels
    if isinstance(labels, Labels) and labels.one_hot is not None and isinstance(labels.label, str):
        raise file.fault(("labels",), "it has both label and one_hot", "expected one of them")


def _check_growth(file: RecipeFile) -> None:
    """Splits by fractions, and files that come later."""
    recipe = file.recipe
    if not recipe.stratified:
        return
    if not fractions_of(file):
        problem = "it requires splits by fractions"
        expected = "expected, for example, splits: {train: 0.9, test: 0.1}"
        raise file.fault(("stratified",), problem, expected)
    if recipe.manifest_file:
        raise _conflict(file, "stratified", "manifest_file")
    if recipe.grow:
        reason = "new files would move earlier files to other splits; leave out one of the two"
        raise _conflict(file, "grow", "stratified", reason)


def _refuse_image_keys(file: RecipeFile) -> None:
    """Raise UsageError if a key says how images are treated, and there are only numbers."""
    content = file.recipe.content
    if content not in ("pixels", "array"):
        return
    image_key = first_key_only_with(file, "images", "boxes")
    if image_key:
        reason = f"{image_key} is for image files; leave out one of the two"
        raise _conflict(file, image_key, f"content: {content}", reason)


def _check_boxes(file: RecipeFile, boxes: Boxes) -> None:
    """One format of annotations is named, with keys that it has a use for."""
    box_format = load_format(only_key(file, ("boxes",), boxes, FORMATS))
    _refuse_keys_of_other_formats(file, box_format)
    check_split_names(file, ("boxes", box_format.key), boxes.splits.values())
    if boxes.splits and file.recipe.splits is not None:
        reason = "both name the splits; leave out splits, or the names of splits in boxes"
        raise _conflict(file, "splits", "a mapping of splits in boxes", reason)
    for key, expected in box_format.needs.items():
        if getattr(boxes, key) is None:
            raise file.fault(("boxes",), f"it has no key `{key}`", expected)


def _refuse_keys_of_other_formats(file: RecipeFile, box_format: Format) -> None:
    """Raise UsageError for a key of `boxes` that only other formats have a use for."""
    from imagenet_prep.recipes.schema import FormatKeys

    for name in FormatKeys.__struct_fields__:
        if name in file.value["boxes"] and name not in box_format.keys:
            users = [key for key, other in all_formats().items() if name in other.keys]
            problem = f"it can't be combined with {box_format.key}"
            raise file.fault(("boxes", name), problem, f"expected it only with {either(users)}")


def _numbers_rows(file: RecipeFile) -> bool:
    """Whether `boxes` only numbers the classes of the boxes that the source's rows have."""
    return has_rows(file) and file.value["boxes"].keys() <= {*NUMBERING}


def is_imagenet(file: RecipeFile) -> bool:
    """Whether the recipe is one of ILSVRC2012 itself."""
    return file.recipe.source is not None and file.recipe.source.imagenet is True


def can_have_boxes(file: RecipeFile) -> bool:
    """Whether records may have boxes: those of the key `boxes`, or those of the source."""
    return bool(file.recipe.boxes) or has_rows(file) or may_have_boxes(file)


def first_key_only_with(file: RecipeFile, *needs: str) -> str | None:
    """The first key whose setting needs one of these: "images", "boxes"; None if there is none."""
    from imagenet_prep.datasets.declarations import settings_of

    keys = {
        setting.name for setting in settings_of(type(file.recipe)) if setting.only_with in needs
    }
    return next((key for key in file.value if key in keys), None)


def _check_expected(file: RecipeFile) -> None:
    from imagenet_prep.recipes.schema import ExpectedTotals

    totals_of_set: dict[str, Any] = {}
    for name, value in (file.recipe.expected or {}).items():
        if isinstance(value, dict):
            file.convert(value, ExpectedTotals, ("expected", name))
        else:
            totals_of_set[name] = value
    file.convert(totals_of_set, ExpectedTotals, ("expected",))


def totals_in(
    expected: Mapping[str, Any], images: Mapping[str, int], classes: Mapping[str, Collection[Any]]
) -> Iterator[tuple[str, str, int, int]]:
    """Each total of ``expected``: its split ("": the whole set), "images" or "classes", and how
    many must be and are.

    ``images`` and ``classes`` are those of each split; a total of another split finds none.
    """
    for key, value in expected.items():
        split, totals = (key, value) if isinstance(value, Mapping) else ("", {key: value})
        splits = [name for name in images if split in ("", name)]
        for name, expected_count in totals.items():
            if name == "images":
                count = sum(images[name_of_split] for name_of_split in splits)
            else:
                count = len(set().union(*(classes[name_of_split] for name_of_split in splits)))
            yield split, name, expected_count, count


_LACKING = {"images": ProblemKind.MISSING_IMAGE, "classes": ProblemKind.MISSING_CLASS}


def kind_of_total(name: str, expected: int, actual: int) -> ProblemKind:
    """The kind of problem of a total of ``expected`` that is wrong;
    ``name`` is "images" or "classes".
    """
    return _LACKING[name] if actual < expected else ProblemKind.WRONG_COUNT


def remedy_of_total(name: str, expected: int, actual: int, after: str = "") -> str:
    """The remedy for that problem; ``after`` says what to do once the images are right."""
    change = f"get the missing {name}" if actual < expected else f"remove the extra {name}"
    return f"{change}{after}, or correct `expected` in the recipe"


# splits and shards --------------------------------------------------------------------------------


def _check_splits(file: RecipeFile) -> None:
    splits = file.recipe.splits
    if splits is None:
        return
    for name in splits:
        if not SPLIT_NAME.fullmatch(name) or grown_from(name)[1] > 1:
            raise file.fault(("splits", name), *NO_SPLIT_NAME)
    if not splits:
        raise file.fault(("splits",), "it is empty", "expected a key for each split")
    _check_fractions(file, split_count=len(splits))
    places_of(file)


def _check_fractions(file: RecipeFile, *, split_count: int) -> None:
    """Each split has a fraction, or none has; they sum to 1."""
    fractions = fractions_of(file)
    if not fractions:
        return
    if len(fractions) != split_count:
        others = [name for name in file.recipe.splits or {} if name not in fractions]
        problem = f"fractions for {listed(fractions)}, and none for {listed(others)}"
        expected = "expected fractions for all splits, or files (such as a manifest) for all"
        raise file.fault(("splits",), problem, expected)
    for name, fraction in fractions.items():
        if not 0 < fraction <= 1:
            problem = f"{fraction:.9g} is no fraction"
            raise file.fault(("splits", name), problem, "expected a number above 0, at most 1")
    total = sum(fractions.values())
    if not math.isclose(total, 1, abs_tol=1e-6):
        raise file.fault(("splits",), f"the fractions sum to {total:.9g}", "expected 1")


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def fractions_of(file: RecipeFile) -> dict[str, float]:
    """The fractions of the splits; none if they are given otherwise."""
    splits = file.recipe.splits or {}
    return {name: float(value) for name, value in splits.items() if _is_number(value)}


def places_of(file: RecipeFile) -> dict[str, tuple[str, list[str]]]:
    """Where each split's files are: ("folder" | "files" | "manifest" | "value", texts);
    none if fractions decide.
    """
    from imagenet_prep.recipes.schema import Labels, PlaceKeys

    labels = file.recipe.labels
    has_split_column = isinstance(labels, Labels) and labels.split is not None
    places = {}
    for name, value in (file.recipe.splits or {}).items():
        if _is_number(value):
            continue
        key: Key = ("splits", name)
        if not isinstance(value, dict):
            keys = either(PlaceKeys.__struct_fields__)
            expected = f"expected a fraction, or a mapping with {keys}, such as {{folder: {name}}}"
            raise file.fault(key, f"it is {value_in_words(value)}", expected)
        place = file.convert(value, PlaceKeys, key)
        place_key = only_key(file, key, place, PlaceKeys.__struct_fields__)
        if place_key == "value" and not has_split_column and not has_rows(file):
            problem = "it requires a column of splits, and labels names none"
            expected = "expected labels with the keys file and split (the name of the column)"
            raise file.fault((*key, place_key), problem, expected)
        texts = getattr(place, place_key)
        places[name] = place_key, list(texts) if isinstance(texts, list) else [str(texts)]
    return places


def prefix_of(file: RecipeFile) -> tuple[str, str]:
    """Folder and first part of the names of shards, of ``output_file_prefix``; both empty if it is
    not given.

    An absolute one is compared by ``output_places.shards_dir``, which knows DATA_DIR.

    Raises:
        UsageError: it leads out of its folder, or to one that has another purpose; or it can't be a
            part of a name that patterns find.
    """
    prefix = file.recipe.output_file_prefix
    if prefix is None:
        return "", ""
    folder, _, name = prefix.rpartition("/")
    problem = f"{prefix!r} is not valid"
    if ".." in prefix.split("/"):
        expected = "expected a name, or a path without .."
        raise file.fault(("output_file_prefix",), problem, expected)
    if not SPLIT_NAME.fullmatch(name) or grown_from(name)[0] != name:
        expected = f"expected a name of {SPLIT_SIGNS}, that does not end like -grown2"
        raise file.fault(("output_file_prefix",), problem, expected)
    is_absolute = prefix.startswith("/")
    if not is_absolute:
        check_own_folder(file, folder.split("/"))
    return "/" if is_absolute and not folder else folder, name


def check_own_folder(file: RecipeFile, folders: Iterable[str]) -> None:
    """Raise UsageError if shards would go to a folder that has another purpose."""
    if not {RAW_NAME, STATE_NAME}.isdisjoint(folders):
        problem = f"{file.recipe.output_file_prefix!r} is not valid"
        expected = f"expected no folder {RAW_NAME} or {STATE_NAME} in it"
        raise file.fault(("output_file_prefix",), problem, expected)


def shard_size(file: RecipeFile) -> int | None:
    """Bytes of a shard as the recipe has them; None where it names a number of shards."""
    recipe = file.recipe
    if recipe.shard_size is None and recipe.num_shards is None and recipe.shards is None:
        return SHARD_SIZE
    return recipe.shard_size


def shard_counts(file: RecipeFile) -> int | Mapping[str, int] | None:
    """The number of shards, of every split or by split; None where a size decides.

    Raises:
        UsageError: one of them is no number of shards.
    """
    from imagenet_prep.datasets.declarations import Shards

    recipe = file.recipe
    if isinstance(recipe.shards, dict):
        return {
            split: file.convert(value, Shards, ("shards", split))
            for split, value in recipe.shards.items()
        }
    return recipe.num_shards if recipe.shards is None else recipe.shards
