"""TFRecord files -> dictionaries."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.formats import compressed
from imagenet_prep.formats.example import Buffer, ExampleError, parse_features
from imagenet_prep.formats.sequence_example import has_feature_lists, parse_sequence_example
from imagenet_prep.formats.tfrecord import FramingError, Record
from imagenet_prep.records.features import SequenceExample, ValueRuleError, value_of, value_of_steps
from imagenet_prep.sources.reader import map_file

T = TypeVar("T")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]
Names = bool | str | Collection[str]
"""Names of features: a single one or several, True for all and False for none."""


def read(paths: Paths, *, text: Names = False, lists: Names = False) -> Iterator[dict[str, Any]]:
    """The records of TFRecord files as dictionaries, one at a time; compression is recognised, every CRC checked.

    A feature with one value comes as that value, with none or several as a list.

    Args:
        paths: a file, a pattern such as "movies-*", or several of either; a pattern's files come in order of names.
        text: features whose bytes are UTF-8 and come as str; others stay bytes.
        lists: features that come as a list, however many values they have.

    Raises:
        UsageError: there is no such file, or a record is a SequenceExample.
        InputError: a record is damaged or is no Example; the error names file, record and byte.
    """
    return _iter_parsed(_files(paths), _Decoder(text, lists).example)


def read_sequences(paths: Paths, *, text: Names = False, lists: Names = False) -> Iterator[SequenceExample]:
    """The same for files of SequenceExamples. A step is a value if every step of its list has just one, else a list.

    Args:
        paths: as for ``read``.
        text: features and feature lists whose bytes are UTF-8 and come as str; others stay bytes.
        lists: features that come as a list, and feature lists whose steps do, however many values they have.

    Raises:
        UsageError: there is no such file.
        InputError: a record is damaged or is no SequenceExample; the error names file, record and byte.
    """
    return _iter_parsed(_files(paths), _Decoder(text, lists).sequence_example)


# files ---------------------------------------------------------------------------------------------------------


def _files(paths: Paths) -> list[Path]:
    """Every file that is meant, in order; each is there."""
    several = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    if not several:
        raise UsageError("no files to read", "expected a path, a pattern, or a list of them")
    return [path for each in several for path in _matching(os.fspath(each))]


def _matching(pattern: str) -> list[Path]:
    if Path(pattern).is_file():
        return [Path(pattern)]
    found = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else []  # noqa: PTH207 - it may be absolute
    if not found:
        raise UsageError(f"{pattern} is no file", "expected a TFRecord file, or a pattern that matches some")
    for name in found:
        if not Path(name).is_file():
            raise UsageError(f"{name} is no file", f"expected {pattern} to match TFRecord files only")
    return [Path(name) for name in found]


def _iter_parsed(files: Iterable[Path], parse: Callable[[Buffer], T]) -> Iterator[T]:
    for path in files:
        view = map_file(path)
        compression = compressed.detect(view)
        where = "" if compression == "none" else f" of its {compression} content"
        try:
            for record in compressed.iter_records(view, compression):
                yield _parsed(path, record, where, parse)
        except FramingError as error:
            if error.offset == 0:
                raise InputError(f"{path} is damaged at its first byte, or no TFRecord file", error.reason) from error
            raise _damaged(path, error.record, f"{error.offset}{where}", error.reason) from error


def _parsed(path: Path, record: Record, where: str, parse: Callable[[Buffer], T]) -> T:
    place = f"{record.offset}{where}"
    if not record.intact:
        raise _damaged(path, record.number, place, "the data do not match their CRC")
    try:
        return parse(record.data)
    except ExampleError as error:
        raise _damaged(path, record.number, place, f"it is no tf.train.Example: {error}") from error
    except ValueRuleError as error:
        raise UsageError(f"{path}: record {record.number} at byte {place}", str(error), error.hint) from error


def _damaged(path: Path, number: int, place: str, reason: str) -> InputError:
    return InputError(
        f"{path}: record {number} at byte {place} is damaged", reason, "get a sound copy of it, or write it again"
    )


# records -------------------------------------------------------------------------------------------------------


class _Chosen:
    """The names that an argument means."""

    def __init__(self, names: Names) -> None:
        self._all = names is True
        self._names = {names} if isinstance(names, str) else set() if isinstance(names, bool) else set(names)

    def __contains__(self, name: str) -> bool:
        return self._all or name in self._names


class _Decoder:
    """Records as values, by what the caller chose."""

    def __init__(self, text: Names, lists: Names) -> None:
        self._text = _Chosen(text)
        self._lists = _Chosen(lists)

    def example(self, data: Buffer) -> dict[str, Any]:
        """The dictionary of an Example."""
        if has_feature_lists(data):
            raise ValueRuleError("it is a tf.train.SequenceExample", "use records.read_sequences")
        return self._each(value_of, parse_features(data))

    def sequence_example(self, data: Buffer) -> SequenceExample:
        """Both dictionaries of a SequenceExample."""
        context, feature_lists = parse_sequence_example(data)
        return SequenceExample(self._each(value_of, context), self._each(value_of_steps, feature_lists))

    def _each(self, convert: Callable[[T, bool, bool], Any], features: Mapping[str, T]) -> dict[str, Any]:
        values = {}
        for name, feature in features.items():
            try:
                values[name] = convert(feature, name in self._text, name in self._lists)
            except ValueRuleError as error:
                raise ValueRuleError(f"feature {name!r}: {error}", error.hint) from None
        return values
