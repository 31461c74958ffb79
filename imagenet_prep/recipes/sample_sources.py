"""Samples: images and labels in the same files:
WebDataset tars, TFRecords, Parquet, arrays of a whole set.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.images import ending_of
from imagenet_prep.model import Engine
from imagenet_prep.recipes.array_sets import list_arrays
from imagenet_prep.recipes.joined_samples import (
    Samples,
    join_samples,
    usual_label,
    words_beside_split,
)
from imagenet_prep.recipes.labels import NO_LABEL
from imagenet_prep.recipes.labels_file import flat_labels
from imagenet_prep.recipes.row_marks import RowMarks
from imagenet_prep.recipes.row_source import RowImage, read_objects
from imagenet_prep.sources.arrow_files import ArrowImages, iter_arrow_samples, read_arrow_schema
from imagenet_prep.sources.catalog import CatalogBuilder
from imagenet_prep.sources.lmdb_pages import iter_lmdb
from imagenet_prep.sources.mds_shards import SlicedSample, iter_mds, unread_columns
from imagenet_prep.sources.names import shown_name
from imagenet_prep.sources.parquets import (
    ParquetImages,
    ParquetRow,
    Schema,
    iter_samples,
    read_schema,
)
from imagenet_prep.sources.skipped import Skipped
from imagenet_prep.sources.slices import Container, Reader
from imagenet_prep.sources.tars import Archive, list_tars
from imagenet_prep.storage.files import view_of
from imagenet_prep.text import listed
from imagenet_prep.tfrecord.example import BytesList, ExampleError, Feature, parse_example
from imagenet_prep.tfrecord.framing import FramingError, iter_records

_INT = re.compile(r"-?(0|[1-9]\d*)")


def list_samples(
    kind: str, groups: Mapping[str, Sequence[Path]], engine: Engine, *, as_arrays: bool = False
) -> tuple[Samples, tuple[str, ...]]:
    """The samples in the files of each split ("": of no split), and the splits: the first folder of
    each name.

    With ``as_arrays``, no array is a picture.

    Raises:
        InputError: a file is damaged or compressed, there is no sample, or images and labels don't
            fit together.
    """
    parts = [
        (split or own, found)
        for split, paths in groups.items()
        for own, found in KINDS[kind](paths, engine).items()
    ]
    if not any(part.names for _, part in parts):
        raise InputError(
            f"{listed(str(each) for several in groups.values() for each in several)}: no sample"
        )
    _mark_unlabelled(parts)
    for _, part in parts if as_arrays and kind == "arrays" else ():
        part.rename(
            lambda name: re.sub(r"\.png$", ".npy", name)
        )  # by their endings names tell what files are
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1], ()
    for split, part in parts:
        part.rename(f"{split}/{{}}".format)
    return join_samples([part for _, part in parts]), tuple(
        dict.fromkeys(split for split, _ in parts)
    )


def _mark_unlabelled(parts: Sequence[tuple[str, Samples]]) -> None:
    """Give the images of a test split without labels the number that stands for none,
    if all others have numbers.
    """
    tests = [part for split, part in parts if split == "test" and part.label is None and part.names]
    others = [part for split, part in parts if part not in tests and part.names]
    labels = {part.label for part in others}
    if not tests or len(labels) != 1 or None in labels:
        return
    label = str(labels.pop())
    if not all(isinstance(value, int) for part in others for value in part.columns[label]):
        return
    for part in tests:
        if label not in part.columns:
            part.columns[label] = [NO_LABEL] * len(part.names)
            part.label = label
            part.passed = [
                *part.passed,
                f"test: no {label}: {len(part.names):,} records without a label",
            ]


# WebDataset ---------------------------------------------------------------------------------------


def _webdataset(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    """Members of one key (the path up to the first dot of the name) are one sample.

    Source: https://github.com/webdataset/webdataset, "The WebDataset Format".
    """
    skipped, reader = Skipped(), Reader()
    listing = list_tars(paths, engine, folder_each=True, skipped=skipped)
    rows: list[int] = []
    names: list[str] = []
    samples: list[dict[str, Any]] = []
    others: Counter[str] = Counter()
    for key, members in _by_key(listing.names):
        images = [
            end
            for end in members
            if end in ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "avif")
        ]
        if not images:
            where = f"{listing.container(next(iter(members.values()))).path}"
            hint = (
                f"a key ends at the first dot of a name: rename {key}.{next(iter(members))}, "
                "and so on"
            )
            raise InputError(
                f"{where} has no image for {key}",
                f"expected one next to {', '.join(members)}",
                hint,
            )
        rows.append(members.pop(images[0]))
        names.append(listing.names[rows[-1]])
        samples.append({})
        for end, row in members.items():
            if end not in ("cls", "txt", "json"):
                others[end] += 1
                continue
            value = _member(bytes(listing.read(row, reader)), end, listing.names[row])
            values, known = value if isinstance(value, dict) else {end: value}, samples[-1]
            if twice := next(
                (name for name in known if str(values.get(name, known[name])) != str(known[name])),
                None,
            ):
                what = f"{key} has two values of {twice}: {known[twice]} and {values[twice]}"
                raise InputError(
                    f"{listing.container(row).path}: {what}",
                    "expected one",
                    "correct it in its tar",
                )
            samples[-1] |= values
    columns = _columns(samples)
    passed = [f"skipped in tars: {skipped.text}"] if skipped.entries else []
    unread = {end: f"{count:,} .{end} in tars: not read" for end, count in others.items()}
    label = usual_label(columns)
    has_no_class = label is None  # next to classes, masks are only a note
    lost = [
        line
        for end, line in unread.items()
        if has_no_class and end.endswith((".png", ".jpg", ".gif"))
    ]
    passed += [line for line in unread.values() if line not in lost]
    passed += [
        f"{name}: not read, it holds more than texts and numbers" for name in _drop_nested(columns)
    ]
    found = listing.picked(sorted(rows))
    return {"": Samples(found, names, columns, label=label, passed=passed, lost=lost)}


def _by_key(names: Iterable[str]) -> Iterator[tuple[str, dict[str, int]]]:
    found: dict[str, dict[str, int]] = {}
    for row, name in enumerate(names):
        folder, slash, last = name.rpartition("/")
        key, _, end = last.partition(".")
        members = found.setdefault(f"{folder}{slash}{key}", {})
        if members.setdefault(end.lower(), row) != row:
            what = f"{folder}{slash}{key} has two members .{end.lower()}"
            raise InputError(what, "expected one", "rename one of them")
    yield from found.items()


def _member(data: bytes, end: str, name: str) -> Any:
    """The value of a .cls, a .txt or a .json."""
    try:
        text = data.decode("utf-8-sig").strip()
        if end == "json":
            value = json.loads(text)
            if "\\u" in text:  # half a character may be written so
                json.dumps(value, ensure_ascii=False).encode()
            return value if isinstance(value, dict) else {"json": value}
        return int(text) if end == "cls" and _INT.fullmatch(text) else text
    except (ValueError, RecursionError) as error:
        raise InputError(f"{name} can't be read", str(error), "correct it in its tar") from error


def _columns(samples: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The values by column; None where a sample has none.
    A column of texts and whole numbers becomes texts.
    """
    names = dict.fromkeys(name for sample in samples for name in sample)
    columns = {name: [sample.get(name) for sample in samples] for name in names}
    for name, values in columns.items():
        if {type(each) for each in values} >= {int, str}:
            columns[name] = [None if each is None else str(each) for each in values]
    return columns


def _drop_nested(columns: dict[str, list[Any]]) -> list[str]:
    """Remove the columns that hold anything but texts, numbers and lists of them; their names."""

    def is_plain(value: Any) -> bool:
        return value is None or isinstance(value, (str, int, float))

    def is_flat(value: Any) -> bool:
        return all(map(is_plain, value)) if isinstance(value, list) else is_plain(value)

    nested = [name for name, values in columns.items() if not all(map(is_flat, values))]
    for name in nested:
        del columns[name]
    return nested


# TFRecords ----------------------------------------------------------------------------------------

_KNOWN = {
    f"image/{name}"
    for name in ("encoded", "format", "height", "width", "channels", "colorspace", "filename")
}
"""Features that records get from the image itself, and the name of its file."""


def _of_tfrecord(path: Path) -> Samples:
    builder, stamp = CatalogBuilder(Archive(path)), path.stat().st_mtime_ns
    names, samples, passed = [], [], dict[str, None]()
    try:
        for framed in iter_records(view_of(path)):
            if not framed.intact:
                raise ExampleError("its data does not match its checksum")
            features = parse_example(framed.data)
            image = _image_feature(features)
            data = bytes(features[image].values[0])  # type: ignore[arg-type]
            offset = framed.offset + 12 + bytes(framed.data).find(data)
            last = _text(features.get("image/filename")) or f"image{ending_of(data)}"
            names.append(f"{shown_name(path)}/{framed.number:06}/{str(last).rpartition('/')[2]}")
            builder.append(names[-1], offset, len(data), stamp)
            values = {
                name: _text(each) for name, each in features.items() if name not in _KNOWN | {image}
            }
            samples.append(
                {name: value for name, value in values.items() if not isinstance(value, bytes)}
            )
            odd = (name for name in values if name not in samples[-1])
            passed |= dict.fromkeys(f"the feature {name}: not read, it is no text" for name in odd)
    except (FramingError, ExampleError) as error:
        what = f"{path}, record {len(names):,}, can't be read"
        raise InputError(
            what, str(error), "expected uncompressed TFRecords of Examples with an image each"
        ) from error
    columns = _columns(samples)
    label = usual_label(columns)
    words = _words_of(columns, label)
    return Samples(
        builder.sorted(),
        names,
        columns,
        {label: words} if label and words else {},
        label,
        list(passed),
    )


def _image_feature(features: Mapping[str, Feature]) -> str:
    """The feature that holds the image: one of bytes that start as an image does."""
    single = {
        name: e.values[0]
        for name, e in features.items()
        if isinstance(e, BytesList) and len(e.values) == 1
    }
    found = [name for name, value in single.items() if ending_of(value)]
    if not found:
        raise ExampleError(f"no feature of it is an image: {listed(sorted(features), 6)}")
    return (
        "image/encoded"
        if "image/encoded" in found
        else min(found, key=lambda name: ("image" not in name, name))
    )


def _text(feature: Feature | None) -> Any:
    """The values of a feature as texts and numbers;
    bytes if they are no text, None if there is none.
    """
    values: list[Any] = list(feature.values) if feature else []
    if isinstance(feature, BytesList):
        try:
            values = [bytes(each).decode() for each in values]
        except UnicodeDecodeError:
            return b""
    return values if len(values) > 1 else values[0] if values else None


def _words_of(columns: dict[str, list[Any]], label: str | None) -> dict[int, str]:
    """The words of labels, from image/class/text, which is then no column,
    if each label has its own.
    """
    texts = columns.get("image/class/text")
    if label is None or texts is None:
        return {}
    rows = [
        (flat_labels([number]), flat_labels([text]))
        for number, text in zip(columns[label], texts, strict=True)
    ]
    pairs = {pair for numbers, words in rows for pair in zip(numbers, words, strict=False)}
    words = {
        number: text for number, text in pairs if isinstance(number, int) and isinstance(text, str)
    }
    if len(words) != len(pairs) or any(len(numbers) != len(several) for numbers, several in rows):
        return {}
    del columns["image/class/text"]
    return words


# MosaicML's shards, and LMDB ----------------------------------------------------------------------


_OF_OBJECTS = ("objects", "object", "annotations", "bbox", "bboxes", "boxes", "litter", "faces")
"""Usual names of columns of boxes, which no reader of MosaicML's shards takes."""


def _of_mds(path: Path) -> Samples:
    samples = _of_slices(path, iter_mds(path))
    for name, encoding in unread_columns(path).items():
        line = f"the column {name}: not read, it holds {encoding}"
        is_missed = encoding in ("jpeg", "png") or name.lower() in _OF_OBJECTS
        (samples.lost if is_missed else samples.passed).append(line)
    return samples


def _lmdb(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    """The images of databases; where several have other names than splits have,
    those are the classes, as LSUN's.
    """
    classes = {path: _class_of_database(path) for path in paths}
    parts = []
    for path in paths:
        part = _of_slices(path, iter_lmdb(path))
        if part.label is None and len(set(classes.values())) > 1 and all(classes.values()):
            part.columns["class"] = [classes[path]] * len(part.names)
            part.label = "class"
        parts.append(part)
    return {"": join_samples(parts)}


def _class_of_database(path: Path) -> str:
    """The name of a database's folder without the words of splits:
    bedroom_train_lmdb is bedroom.
    """
    words = words_beside_split(path.parent.name)
    return "_".join(word for word in words if word != "lmdb")


def _of_slices(path: Path, found: Iterable[SlicedSample]) -> Samples:
    """Images that are slices of a file, each with its values."""
    builder, stamp = CatalogBuilder(Archive(path)), path.stat().st_mtime_ns
    folder = shown_name(path.parent if path.name == "data.mdb" else path)
    names, samples = [], []
    for sample in found:
        names.append(f"{folder}/{sample.name}")
        builder.append(names[-1], sample.offset, sample.length, stamp)
        samples.append(sample.values)
    columns = _columns(samples)
    return Samples(builder.sorted(), names, columns, {}, usual_label(columns), [])


# Parquet and Arrow --------------------------------------------------------------------------------


def _of_parquet(path: Path) -> Samples:
    schema = read_schema(path)
    return _of_rows(path, ParquetImages(path), schema, iter_samples(path, schema))


def _of_arrow(path: Path) -> Samples:
    schema = read_arrow_schema(path)
    return _of_rows(path, ArrowImages(path), schema, iter_arrow_samples(path, schema))


def _of_rows(
    path: Path, container: Container, schema: Schema, rows: Iterable[ParquetRow]
) -> Samples:
    builder, stamp = CatalogBuilder(container), path.stat().st_mtime_ns
    names, samples = [], []
    images: dict[str, RowImage] = {}
    for number, where, length, head, values in rows:
        last = (where or "").rpartition("/")[2] or f"image{ending_of(head) or '.jpg'}"
        names.append(f"{shown_name(path.with_suffix(''))}/{number:06}/{last}")
        builder.append(names[-1], number, length, stamp)
        if schema.objects is not None:
            images[names[-1]] = _image_of(
                names[-1], values.pop(schema.objects), f"{path}, row {number}"
            )
        samples.append(values)
    columns = _columns(samples)
    label = usual_label(columns)
    if len(schema.classes) == 1 and (only := next(iter(schema.classes))) in columns:
        label = only
    words = {
        name: dict(enumerate(texts)) for name, texts in schema.classes.items() if name in columns
    }
    unread = {
        name: f"the column {name}: not read, it holds no texts or numbers" for name in schema.passed
    }
    lost = [line for name, line in unread.items() if name in schema.unread_boxes]
    passed = [line for line in unread.values() if line not in lost]
    marks = RowMarks(images, class_names=schema.object_classes)
    return Samples(builder.sorted(), names, columns, words, label, passed, lost=lost, marks=marks)


def _image_of(name: str, objects: Any, where: str) -> RowImage:
    """An image with its boxes; raises InputError if they can't be."""
    shapes = [(shape, where) for shape in read_objects(objects, where)]
    return RowImage(name, where, "", "", None, None, None, shapes, {})


def _each(
    of_file: Callable[[Path], Samples], paths: Sequence[Path], engine: Engine
) -> dict[str, Samples]:
    return {"": join_samples(list(map(of_file, paths)))}


KINDS: Mapping[str, Callable[[Sequence[Path], Engine], dict[str, Samples]]] = {
    **{"webdataset": _webdataset, "arrays": list_arrays},
    **{
        "tfrecord": functools.partial(_each, _of_tfrecord),
        "parquet": functools.partial(_each, _of_parquet),
    },
    **{"arrow": functools.partial(_each, _of_arrow), "mds": functools.partial(_each, _of_mds)},
    "lmdb": _lmdb,
}
"""The function that lists each kind, by its key in `source`;
it returns samples by the splits that names tell.
"""
