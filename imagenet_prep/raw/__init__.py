"""open: a split as one sequence of records,
of its finished shards or straight from the raw data.
"""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from imagenet_prep.errors import IncompleteError, InputError, UsageError
from imagenet_prep.ilsvrc2012.facts import validation_filename
from imagenet_prep.reading.absent_sets import no_split_named
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.reading.values import any_number
from imagenet_prep.state.manifest import ILSVRC2012
from imagenet_prep.state.numbering import Numbering
from imagenet_prep.storage.files import absence_of
from imagenet_prep.storage.layout import Layout, grown_from
from imagenet_prep.storage.location import locate, refuse_url
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.text import either, number_of

if TYPE_CHECKING:
    from imagenet_prep.datasets.dataset import Dataset
    from imagenet_prep.datasets.declarations import MakingOptions
    from imagenet_prep.datasets.planned_set import PlannedSet, PlannedSplit
    from imagenet_prep.model import Engine
    from imagenet_prep.raw.raw_set import RawSet
    from imagenet_prep.state.set_records import SetRecords

_Path = str | os.PathLike[str]


@overload
def open(
    data_dir: _Path,
    split: str = "",
    *,
    check: bool = True,
    source: Literal["shards"] = "shards",
    join: _Path | None = None,
) -> ShardSet: ...


@overload
def open(
    data_dir: _Path,
    split: str,
    *,
    source: Literal["raw"],
    raw: _Path | None = None,
    options: MakingOptions | None = None,
    config: _Path | None = None,
) -> RawSet: ...


def open(  # noqa: PLR0913 - options of the public interface, by keyword
    data_dir: _Path,
    split: str = "",
    *,
    check: bool = True,
    source: Literal["shards", "raw"] = "shards",
    raw: _Path | None = None,
    options: MakingOptions | None = None,
    config: _Path | None = None,
    join: _Path | None = None,
) -> ShardSet | RawSet:
    """The records of one split of a finished set, made by any tool: ``open("/data/imagenet",
    "train")``.

    With ``source="raw"`` the same records come straight from the archives or folders that convert
    would read. All of the data set is listed first, as convert lists it; its messages on this split
    become warnings. Nothing is written.

    Args:
        data_dir: the folder that holds the shards; with ``source="raw"`` the DATA_DIR of convert.
        split: the prefix of its shards' names: "train" for train-00000-of-01024.
        check: compare the data of every record with its CRC.
        source: "shards", or "raw" for the data that they are made from.
        raw, config: for raw data: its folder, if that is not ``data_dir``/raw-data; the recipe of
            the data set.
        options: for raw data: how it would be converted, ``ConvertOptions``; ``allow_incomplete``
            accepts a part of it.
        join: for shards: a JSON file {file name: value}, or the 50,000 labels real.json; ``joined``
            has the values.

    Raises:
        InputError: the shards of this split can't be read or lack one; raw data is missing or
            damaged.
        IncompleteError: images of the split are missing, and the options don't allow it.
        UsageError: no split is named, raw data can only be read in its order, or an option or
            recipe is wrong.
    """
    if source == "raw":
        layout = Layout(locate(data_dir), raw=locate(raw) if raw else None)
        return _open_raw(layout, split, options, config, join)
    if source != "shards":
        raise UsageError(f"open(source={source!r})", "expected 'shards' or 'raw'")
    _refuse_options_of_raw(raw=raw, options=options, config=config)
    records = ShardSet(data_dir, split, check=check)
    if records.is_imagenet:
        records.name_classes(_name_imagenet)
    if join is not None:
        values = _joined(ShardSet(data_dir, split, check=False), join, data_dir)
        records.join(values)
    return records


def _refuse_options_of_raw(**options: object) -> None:
    """Raise UsageError for an option of raw data that comes with shards."""
    for name, value in options.items():
        if value is not None:
            raise UsageError(
                f"open({name}=...) without source='raw'",
                "expected source='raw': raw, options and config are for raw data only",
                f"leave out {name}, or add source='raw'",
            )


def _open_raw(
    layout: Layout,
    split: str,
    options: MakingOptions | None,
    config: _Path | None,
    join: _Path | None,
) -> RawSet:
    if join is not None:
        raise UsageError(
            "open(join=...) with source='raw'",
            "expected source='shards': values are joined by the file names in records",
            "leave out join; or convert the raw data, and open its shards",
        )
    from imagenet_prep import registry
    from imagenet_prep.datasets.kept_notes import note_of_reading
    from imagenet_prep.datasets.planned_set import ShardNote
    from imagenet_prep.engines import make_engine
    from imagenet_prep.raw.raw_set import RawSet
    from imagenet_prep.state.set_records import SetRecords

    # a training process may hold resources that don't survive a fork
    engine = make_engine("threads")
    dataset = registry.read_dataset(Path(config)) if config else registry.ILSVRC2012
    options = options or dataset.options
    _refuse_skipping(options)
    set_records = SetRecords(layout)
    try:
        registry.refuse_other_set(set_records, dataset)
    except UsageError as error:
        raise _without_recipe(error, set_records) from None
    planned = _plan(dataset, set_records, engine, options, split)
    for note in planned.notes:
        if isinstance(note, ShardNote) or _is_of_other(note, split):
            continue
        text = note_of_reading(note, layout)
        if text:
            warnings.warn(text.removeprefix("warning: "), stacklevel=3)
    planned_split = _require_split(planned, split, layout)
    lists = any_number(planned.entry.features)
    numbering = Numbering.read(planned.entry, planned.settings)
    records = RawSet(planned_split, numbering, lists, planned.count_unlabelled(planned_split))
    if planned.entry.kind == ILSVRC2012:
        records.name_classes(_name_imagenet)
    return records


def _plan(
    dataset: Dataset, records: SetRecords, engine: Engine, options: MakingOptions, split: str
) -> PlannedSet:
    """The plan of the set, of which only ``split`` must be complete; the error for a part of
    ImageNet has the argument of ``open``.
    """
    from imagenet_prep.ilsvrc2012.planning import ALLOW_INCOMPLETE
    from imagenet_prep.ilsvrc2012.settings import ConvertOptions
    from imagenet_prep.model import Silent

    try:
        return dataset.plan(records, engine, options, Silent())
    except IncompleteError as error:
        is_of_others = bool(error.lacks) and split not in error.lacks
        if is_of_others and isinstance(options, ConvertOptions):
            part_options = options.replace(allow_incomplete=True)
            return dataset.plan(records, engine, part_options, Silent())
        accepting = "accept a part: options=imagenet_prep.ConvertOptions(allow_incomplete=True)"
        error.hint = error.hint.replace(ALLOW_INCOMPLETE, accepting)
        error.detail = error.lacks.get(split, error.detail)
        error.choices = [choice for choice in error.choices if not _is_of_other(choice, split)]
        raise


def _is_of_other(note: str, split: str) -> bool:
    """Whether a note is on another split."""
    from imagenet_prep.datasets.planned_set import SplitNote

    return isinstance(note, SplitNote) and note.prefix != split


def _without_recipe(error: UsageError, records: SetRecords) -> UsageError:
    """The error for the folder of a recipe's set, without the recipe, as Python names it."""
    from imagenet_prep import registry

    first_records = records.first_set()
    dataset = registry.known_set(first_records, first_records.usable_manifest)
    path = getattr(dataset, "path", None)
    hint = "add config=..., with the path of its recipe"
    if path is not None and path.is_file():
        hint = f"add config={str(path)!r}"
    return UsageError(error.what, "expected config, the recipe: without it, ImageNet is read", hint)


def _refuse_skipping(options: MakingOptions) -> None:
    """Raise UsageError if damaged images would have to be known in advance."""
    if options.on_damaged == "skip":
        hint = (
            "leave out on_damaged, and use imagenet_prep.torch.Loader(..., on_damaged='skip'); or "
            "convert, and open the shards"
        )
        expected = "expected on_damaged: refuse, since damaged images are found when they are read"
        raise UsageError("raw data can't be opened with on_damaged: skip", expected, hint)


def _require_split(planned: PlannedSet, split: str, layout: Layout) -> PlannedSplit:
    """A split of the planned set.

    Raises:
        InputError: there is none of this name.
        UsageError: no name is given, or the split has grown.
    """
    splits = {planned_split.catalog.split: planned_split for planned_split in planned.splits}
    grown_splits = {grown_from(name)[0] for name in splits if grown_from(name)[0] != name}
    readable = sorted(splits.keys() - grown_splits)
    if not split or not isinstance(split, str):
        raise no_split_named("the raw data", readable)
    if split not in splits:
        raise InputError(
            f"the raw data has no split {split!r}",
            f"found: {', '.join(readable)}",
            "name another split",
        )
    if split in grown_splits:
        raise UsageError(
            f"source='raw' can't read split {split}, to which `grow` added images",
            f"expected split {either(readable)}",
            f"imagenet_prep.open({str(layout.data_dir)!r}, {split!r}) reads all shards of {split}",
        )
    return splits[split]


def _name_imagenet(numbering: Numbering) -> Numbering:
    from imagenet_prep.registry import name_imagenet

    return name_imagenet(numbering)


# a column of one's own, from a JSON file ----------------------------------------------------------

_VALIDATION = 50_000


def _joined(records: ShardSet, path: _Path, data_dir: _Path) -> list[Any]:
    """The value of each record, by its file name; ``data_dir`` holds the records, for messages.

    The file holds ``{file name: value}``, or a list of 50,000 values, of
    ILSVRC2012_val_00000001.JPEG and so on, as real.json of "Are we done with ImageNet?"
    (github.com/google-research/reassessed-imagenet) does.

    Raises:
        InputError: the file can't be read, has another form or length, lacks a record, or names one
            that is not there.
    """
    refuse_url(path)
    value_by_name = _load_values(Path(path))
    names = _filenames(records)
    shards = f"the {records.split} shards of {data_dir}"
    if "" in names:
        raise InputError(
            f"{number_of(names.count(''), 'record')} without a file name in {shards}",
            "expected image/filename in each record: the values are joined by this name",
            "write image/filename: path in `record` of the recipe (for names such as cat/1.jpg), "
            "and convert again with --overwrite; other tools must write this feature too",
        )
    lacking = [name for name in names if name not in value_by_name]
    if lacking:
        hint = "add a value for each record, by its file name"
        if isinstance(value_by_name, _RealByImage):
            hint = (
                f"a list of {_VALIDATION:,} values is for the names {validation_filename(1)} to "
                f"{validation_filename(_VALIDATION)}; for other names, give {{file name: value}}"
            )
        raise InputError(
            f"{path} has no value for {number_of(len(lacking), 'record')} of {shards}",
            f"the first one: {lacking[0]!r}",
            hint,
        )
    unknown: list[str] = []
    if not isinstance(value_by_name, _RealByImage):
        unknown = sorted(value_by_name.keys() - set(names))
    if unknown:
        raise InputError(
            f"{path} names {number_of(len(unknown), 'image')} that {shards} do not have",
            f"the first one: {unknown[0]!r}",
            "give a file with only the names in this split",
        )
    return [value_by_name[name] for name in names]


def _filenames(records: ShardSet) -> list[str]:
    """The file name of each record; compressed shards are read in order, others at random."""
    if records.compression != "none":
        return [record.filename for record in records]
    return [records[number].filename for number in range(len(records))]


class _RealByImage(dict[str, Any]):
    """The values of ImageNet's validation images: a set may hold a part of them."""


def _load_values(path: Path) -> dict[str, Any]:
    try:
        _refuse_no_file(path)
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        raise InputError(f"{path} can't be read as JSON", str(error)) from None
    except RecursionError:
        raise _other_content(path, "values that are nested too deep") from None
    if isinstance(content, dict):
        return content
    if not isinstance(content, list):
        raise _other_content(path, f"the JSON value {json.dumps(content)[:40]}")
    if len(content) != _VALIDATION:
        raise _other_content(path, f"a list of {number_of(len(content), 'value')}")
    by_image = {validation_filename(number): value for number, value in enumerate(content, 1)}
    return _RealByImage(by_image)


def _refuse_no_file(path: Path) -> None:
    """Raise InputError for a path that is no file, which would be a mistyped one."""
    if path.is_file():
        return
    problem = f"{path} is not a file" if path.exists() else absence_of(path)
    raise InputError(problem, "expected the path of a JSON file in join=...")


def _other_content(path: Path, content: str) -> InputError:
    expected = (
        f'expected {{"file name": value}}, or a list of {_VALIDATION:,} values, one for each '
        "validation image of ImageNet"
    )
    return InputError(f"{path} holds {content}", expected)
