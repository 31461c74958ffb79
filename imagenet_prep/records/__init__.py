"""TFRecord files of dictionaries, written and read without TensorFlow (docs/records.md)."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.shard import Shard, recorded_lists
from imagenet_prep.reading.values import Decoder, FeatureNames, SequenceExample
from imagenet_prep.records.writer import FileWriter, ShardWriter, open_writer, write
from imagenet_prep.storage.files import kind_in_words
from imagenet_prep.storage.layout import by_number, split_of
from imagenet_prep.storage.location import refuse_url

__all__ = [
    "FileWriter",
    "SequenceExample",
    "ShardWriter",
    "open_writer",
    "read",
    "read_sequences",
    "write",
]


T = TypeVar("T")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def read(
    paths: Paths, *, text: FeatureNames = False, lists: FeatureNames = False
) -> Iterator[dict[str, Any]]:
    """The records of TFRecord files as dictionaries, one at a time; compression is detected, every
    CRC checked.

    A feature with one value is that value; a feature with none or several is a list. Features of
    objects (``image/object/...``) are always lists, and so are features of any number of values in
    a set with a manifest.

    Args:
        paths: a file, a pattern such as "movies-*", or several of either; a pattern's files are
            read in order of names.
        text: features whose bytes are UTF-8 and are returned as str; others stay bytes.
        lists: features that are always lists, whatever their number of values.

    Raises:
        UsageError: a file does not exist, or a record is a SequenceExample.
        InputError: a record is damaged or is not an Example; the error names file, record and byte.
    """
    return _iter_examples(_files(paths), text, lists)


def _iter_examples(
    files: Iterable[Path], text: FeatureNames, lists: FeatureNames
) -> Iterator[dict[str, Any]]:
    decoders = dict[frozenset[str], Decoder]()
    lists_of_splits = dict[tuple[Path, str], frozenset[str]]()
    for path in files:
        split = path.parent, split_of(path.name)
        if split not in lists_of_splits:
            lists_of_splits[split] = recorded_lists(path)
        recorded = lists_of_splits[split]
        if recorded not in decoders:
            decoders[recorded] = Decoder(text, _join(lists, recorded))
        yield from _iter_parsed([path], decoders[recorded].example)


def _join(lists: FeatureNames, recorded: frozenset[str]) -> FeatureNames:
    """The features that the caller names, and those of the set."""
    if isinstance(lists, bool):
        return lists or recorded
    return recorded | ({lists} if isinstance(lists, str) else set(lists))


def read_sequences(
    paths: Paths, *, text: FeatureNames = False, lists: FeatureNames = False
) -> Iterator[SequenceExample]:
    """The records of files of SequenceExamples. Steps are values if each of a feature list has one,
    otherwise lists.

    Args:
        paths: as for ``read``.
        text: features and feature lists whose bytes are UTF-8 and are returned as str; others stay
            bytes.
        lists: features that are always lists, and feature lists whose steps are, whatever their
            number of values.

    Raises:
        UsageError: a file does not exist.
        InputError: a record is damaged or is not a SequenceExample; the error names file, record
            and byte.
    """
    return _iter_parsed(_files(paths), Decoder(text, lists).sequence_example)


def _files(paths: Paths) -> list[Path]:
    """Every file in ``paths``, in order; raises UsageError if one does not exist."""
    patterns = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not patterns:
        raise UsageError("no files to read", "expected a path, a pattern, or several of either")
    return [path for pattern in patterns for path in _matching(os.fspath(pattern))]


def _matching(pattern: str) -> list[Path]:
    refuse_url(pattern)
    if not pattern:
        raise UsageError("an empty path", "expected a TFRecord file, or a pattern")
    path = Path(pattern)
    if path.is_file():
        return [path]
    names: list[str] = []
    if glob.has_magic(pattern):
        names = sorted(glob.glob(pattern), key=by_number)  # noqa: PTH207 - it may be absolute
        if not names:
            raise UsageError(
                f"{pattern} is not a file, and matches nothing as a pattern",
                "expected a TFRecord file, or a pattern that matches some",
            )
    if not names:
        what = f"{path} is {kind_in_words(path)}"
        raise UsageError(what, "expected a TFRecord file, or a pattern", _advised(path))
    paths = list(map(Path, names))
    for path in paths:
        if not path.is_file():
            expected = f"expected {pattern} to match TFRecord files only"
            hint = _advised(path.parent)
            raise UsageError(f"{path} is {kind_in_words(path)}", expected, hint)
    return paths


def _advised(folder: Path) -> str:
    """The advice to read the shards in a folder by a pattern; "" if it has none."""
    if not folder.is_dir():
        return ""
    splits = sorted(filter(None, map(split_of, os.listdir(folder))))
    if not splits:
        return ""
    pattern = f"{glob.escape(str(folder))}/{splits[-1]}-*-of-*"
    return f"for the shards of a split in {folder}: {pattern!r}"


def _iter_parsed(files: Iterable[Path], parse: Callable[[memoryview], T]) -> Iterator[T]:
    for path in files:
        for record in Shard.open(path):
            yield record.parse(parse)
