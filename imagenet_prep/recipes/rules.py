"""Checks that the keys of a recipe fit together:
every conflict is one error, before any input is read.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from imagenet_prep.model import ProblemKind
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.storage.layout import RAW_NAME, STATE_NAME, grown_from

if TYPE_CHECKING:
    from msgspec import Struct

    from imagenet_prep.recipes.schema import Boxes


SPLIT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}")
_NO_SPLIT_NAME = ("no name of a split", "expected letters, digits, _, -, . and +, no -grownN")
SAMPLES = ("webdataset", "tfrecord", "parquet", "arrow", "mds", "lmdb", "arrays")
"""The sources that have labels of their own."""

ROWS = ("table", "python")
"""The sources whose rows have labels, boxes and masks."""

SHARD_SIZE = 100 * 10**6
"""Bytes of a shard where the recipe does not say."""


def check_rules(file: RecipeFile) -> None:
    """Compare every key of a recipe with the others.

    Raises:
        UsageError: two keys contradict each other, one lacks another, or a value is out of range.
    """
    _check_source(file)
    if is_imagenet(file):
        return  # its settings are checked where they are declared
    _check_keys(file)
    _check_splits(file)
    _check_expected(file)
    prefix_of(file)
    shard_counts(file)


def _check_keys(file: RecipeFile) -> None:
    """Each pair of keys that contradict each other."""
    from imagenet_prep.recipes.schema import Labels

    r, is_inception, boxes = file.recipe, file.recipe.record == "inception", file.recipe.boxes
    lower, upper = r.min_val, r.max_val
    given = [key for key in ("num_shards", "shard_size", "shards") if getattr(r, key) is not None]
    if len(given) > 1:
        raise file.fault(
            (given[1],),
            f"{given[0]} says how many shards there are already",
            "expected one of the two",
        )
    if boxes and not _numbers_rows(file):
        _check_boxes(file, boxes)
    has_range = lower is not None and upper is not None
    is_odd = (
        lower is not None
        and upper is not None
        and not (math.isfinite(lower) and lower < upper < math.inf)
    )
    is_other = isinstance(r.record, str) and not is_inception
    of_numbers = r.content in ("pixels", "array") or has_range
    of_labels = r.labels if isinstance(r.labels, Labels) else None
    is_hot = of_labels is not None and of_labels.one_hot is not None
    is_twice = of_labels is not None and isinstance(of_labels.label, str)
    has_boxes = boxes or has_rows(file)
    no_labels = r.source and (r.source.files or r.source.manifest) and r.labels is None
    features, shares = (
        "expected a mapping of features",
        "expected splits: {train: 0.9, ...}, no manifest_file",
    )
    for key, is_wrong, problem, expected in (
        (
            "min_val",
            lower is not None and not has_range,
            "max_val is missing",
            "expected both, or neither",
        ),
        (
            "max_val",
            upper is not None and not has_range,
            "min_val is missing",
            "expected both, or neither",
        ),
        (
            "max_val",
            is_odd,
            f"{upper}, and min_val is {lower}",
            "expected max_val to be above min_val",
        ),
        (
            "min_val",
            has_range and r.content == "image",
            "content is image",
            "expected content: pixels or array",
        ),
        ("record", is_other, f"{r.record!r} can't be", "expected inception, or a mapping"),
        ("record", is_inception and of_numbers, "inception is for images", features),
        (
            "array",
            r.array and r.content in ("image", "pixels"),
            f"content is {r.content}",
            "expected content: array",
        ),
        (
            "keep",
            r.keep and r.reencode,
            "images are encoded again",
            "expected no resize, max_side and quality",
        ),
        ("keep", r.keep and is_inception, "Inception's records hold JPEGs", features),
        (
            "boxes",
            boxes and is_inception,
            "Inception's records have no place for it",
            "expected no `record`",
        ),
        (
            "mask",
            r.mask and is_inception,
            "Inception's records have no place for it",
            "expected no `record`",
        ),
        (
            "boxes_outside",
            "boxes_outside" in file.value and not has_boxes,
            "there are no boxes",
            "expected `boxes`",
        ),
        (
            "classes",
            r.classes is not None and no_labels,
            "there are no labels",
            "expected `labels`, or class folders",
        ),
        ("labels", is_hot and is_twice, "label and one_hot at once", "expected one of them"),
        (
            "stratified",
            r.stratified and (r.manifest_file or not fractions_of(file)),
            "there are no fractions",
            shares,
        ),
        (
            "grow",
            r.grow and r.stratified,
            "new files move others with stratified",
            "expected one of the two",
        ),
    ):
        if is_wrong:
            raise file.fault((key,), problem, expected)
    if r.content in ("pixels", "array") and (said := said_of_images(file)):
        raise file.fault((said,), f"content is {r.content}", "expected it with content: image only")


def _check_boxes(file: RecipeFile, boxes: Boxes) -> None:
    """One format of annotations is named, with keys that it has a use for."""
    from imagenet_prep.recipes.formats import FORMATS, all_formats, load_format
    from imagenet_prep.recipes.schema import FormatKeys

    box_format = load_format(_only(file, ("boxes",), boxes, FORMATS))
    for name in FormatKeys.__struct_fields__:
        if name in file.value["boxes"] and name not in box_format.keys:
            fitting = [key for key, other in all_formats().items() if name in other.keys]
            expected = f"expected it with {' or '.join(fitting)}"
            raise file.fault(("boxes", name), f"{box_format.key} has no use for it", expected)
    for split in boxes.splits.values():
        if not SPLIT_NAME.fullmatch(split):
            raise file.fault(("boxes", box_format.key, split), *_NO_SPLIT_NAME)
    if boxes.splits and file.recipe.splits is not None:
        raise file.fault(("splits",), "`boxes` names the splits already", "expected one of the two")
    for name, expected in box_format.needs.items():
        if getattr(boxes, name) is None:
            raise file.fault(("boxes",), f"no `{name}`", expected)


def has_rows(file: RecipeFile) -> bool:
    """Whether the source is a table or a function, whose rows may have boxes and masks."""
    source = file.recipe.source
    return source is not None and (source.table is not None or source.python is not None)


def _numbers_rows(file: RecipeFile) -> bool:
    """Whether `boxes` only numbers the classes of the boxes that the source's rows have."""
    from imagenet_prep.recipes.formats import NUMBERING

    return has_rows(file) and file.value["boxes"].keys() <= {*NUMBERING}


def is_imagenet(file: RecipeFile) -> bool:
    """Whether the recipe is one of ILSVRC2012 itself."""
    return file.recipe.source is not None and file.recipe.source.imagenet is True


def _check_source(file: RecipeFile) -> None:
    """Exactly one source is named."""
    source = file.recipe.source
    classic = [
        key
        for key in ("manifest_file", "input_file_pattern")
        if getattr(file.recipe, key) is not None
    ]
    if source is None:
        if not classic:
            raise file.fault(
                (),
                "no source",
                "expected source: {folders | files | tar | ...}, or input_file_pattern",
            )
        return
    if classic:
        raise file.fault(
            ("source",), f"two sources, {classic[0]} is the other", "expected one of them"
        )
    kind = _only(file, ("source",), source, source_keys())
    for name, fitting in _OF_SOURCES.items():
        if name in file.value["source"] and kind not in fitting:
            expected = f"expected it with {' or '.join(fitting)}"
            raise file.fault(("source", name), f"{kind} has no use for it", expected)
    said = getattr(source, kind)
    for split in said if isinstance(said, dict) else ():
        if not SPLIT_NAME.fullmatch(split):
            raise file.fault(("source", kind, split), *_NO_SPLIT_NAME)


_OF_SOURCES: Mapping[str, Sequence[str]] = {
    "tar_folders": ("tar",),
    "class_folder": ("folders", "tar"),
    "label": (*SAMPLES, *ROWS),
    "image": ("table",),
}
"""The keys of a source that only make sense with some kinds of sources."""


def _only(file: RecipeFile, key: Key, struct: Struct, names: Sequence[str]) -> str:
    """The one of these keys that a mapping has; raises UsageError if it has none or several."""
    given = [name for name in names if getattr(struct, name) is not None]
    if len(given) != 1:
        what = f"{' and '.join(given)} at once" if given else "nothing in it"
        raise file.fault(key, what, f"expected one of {', '.join(names)}")
    return given[0]


def source_keys() -> list[str]:
    """The kinds of sources, by their keys."""
    from imagenet_prep.recipes.schema import Source

    return [name for name in Source.__struct_fields__ if name not in _OF_SOURCES]


def said_of_images(file: RecipeFile) -> str | None:
    """The first key that says how image files are treated; None if there is none."""
    from imagenet_prep.datasets.declarations import settings_of

    only_images = {each.name for each in settings_of(type(file.recipe)) if each.only_images}
    return next((key for key in file.value if key in only_images), None)


def _check_expected(file: RecipeFile) -> None:
    from imagenet_prep.recipes.schema import ExpectedTotals

    said = file.recipe.expected or {}
    of_splits = {name: value for name, value in said.items() if isinstance(value, dict)}
    for split, value in of_splits.items():
        file.convert(value, ExpectedTotals, ("expected", split))
    file.convert(
        {name: said[name] for name in said.keys() - of_splits}, ExpectedTotals, ("expected",)
    )


def totals_in(
    expected: Mapping[str, Any], images: Mapping[str, int], classes: Mapping[str, Collection[Any]]
) -> Iterator[tuple[str, str, int, int]]:
    """Each total of ``expected``: its split ("": the whole set), "images" or "classes", and how
    many must be and are.

    ``images`` and ``classes`` are those of each split; a total of another split finds none.
    """
    for key, value in expected.items():
        split, totals = (key, value) if isinstance(value, Mapping) else ("", {key: value})
        own = [name for name in images if split in ("", name)]
        for name, count in totals.items():
            several: set[Any] = set().union(*(classes[each] for each in own))
            yield (
                split,
                name,
                count,
                sum(images[each] for each in own) if name == "images" else len(several),
            )


_LACKING = {"images": ProblemKind.MISSING_IMAGE, "classes": ProblemKind.MISSING_CLASS}


def kind_of_total(name: str, expected: int, actual: int) -> ProblemKind:
    """The kind of problem of a total of ``expected`` that is wrong;
    ``name`` is "images" or "classes".
    """
    return _LACKING[name] if actual < expected else ProblemKind.WRONG_COUNT


# splits and shards --------------------------------------------------------------------------------


def _check_splits(file: RecipeFile) -> None:
    splits = file.recipe.splits
    if splits is None:
        return
    for name in splits:
        if not SPLIT_NAME.fullmatch(name) or grown_from(name)[1] > 1:
            raise file.fault(("splits", name), *_NO_SPLIT_NAME)
    fractions = fractions_of(file)
    if not splits or (fractions and len(fractions) != len(splits)):
        what = "fractions and places at once" if splits else "nothing in it"
        raise file.fault(("splits",), what, "expected one sort")
    for name, value in fractions.items():
        if not 0 < value <= 1:
            raise file.fault(
                ("splits", name), f"{value:g} can't be", "expected a fraction above 0, at most 1"
            )
    if fractions and not math.isclose(sum(fractions.values()), 1, abs_tol=1e-6):
        raise file.fault(
            ("splits",), f"the fractions sum to {sum(fractions.values()):g}", "expected 1"
        )
    places_of(file)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def fractions_of(file: RecipeFile) -> dict[str, float]:
    """The fractions of the splits; none if they are given otherwise."""
    return {
        name: float(value)
        for name, value in (file.recipe.splits or {}).items()
        if _is_number(value)
    }


def places_of(file: RecipeFile) -> dict[str, tuple[str, list[str]]]:
    """Where each split's files are: ("folder" | "files" | "manifest" | "value", texts);
    none if fractions decide.
    """
    from imagenet_prep.recipes.schema import Labels, PlaceKeys

    places = {}
    for name, value in (file.recipe.splits or {}).items():
        if _is_number(value):
            continue
        key: Key = ("splits", name)
        if not isinstance(value, dict):
            raise file.fault(
                key,
                f"{value!r} can't be",
                "expected a fraction, or {folder | files | manifest: ...}",
            )
        place = file.convert(value, PlaceKeys, key)
        sort = _only(file, key, place, PlaceKeys.__struct_fields__)
        of_table = isinstance(file.recipe.labels, Labels) and file.recipe.labels.split is not None
        if sort == "value" and not of_table and not has_rows(file):
            raise file.fault(
                (*key, sort), "no column of splits", "expected labels: {file: ..., split: COLUMN}"
            )
        place_texts = getattr(place, sort)
        places[name] = (
            sort,
            list(place_texts) if isinstance(place_texts, list) else [str(place_texts)],
        )
    return places


def prefix_of(file: RecipeFile) -> tuple[str, str]:
    """Folder and first part of the names of shards, of ``output_file_prefix``; both empty if it is
    not given.

    An absolute one is compared by ``inputs.shards_dir``, which knows DATA_DIR.

    Raises:
        UsageError: it leads out of its folder, or to one that has another purpose; or it can't be a
            part of a name that patterns find.
    """
    prefix = file.recipe.output_file_prefix
    if prefix is None:
        return "", ""
    folder, _, name = prefix.rpartition("/")
    if ".." in prefix.split("/") or not SPLIT_NAME.fullmatch(name) or grown_from(name)[0] != name:
        expected = (
            "expected a name of letters, digits, _, -, . and +, that does not end like -grown2"
        )
        raise file.fault(("output_file_prefix",), f"{prefix!r} can't be", expected)
    if not prefix.startswith("/"):
        check_own_folder(file, folder.split("/"))
    return ("/" if prefix.startswith("/") and not folder else folder), name


def check_own_folder(file: RecipeFile, folders: Iterable[str]) -> None:
    """Raise UsageError if shards would go to a folder that has another purpose."""
    if not {RAW_NAME, STATE_NAME}.isdisjoint(folders):
        what = f"{file.recipe.output_file_prefix!r} can't be"
        raise file.fault(
            ("output_file_prefix",), what, f"expected no folder {RAW_NAME} or {STATE_NAME} in it"
        )


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
