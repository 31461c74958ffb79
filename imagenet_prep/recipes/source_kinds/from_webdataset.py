"""WebDataset tars: members of one key (the path up to the first dot of the name) are one sample.

Source: https://github.com/webdataset/webdataset, "The WebDataset Format".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.model import Engine
from imagenet_prep.recipes.joined_samples import Samples, usual_label
from imagenet_prep.recipes.json_faults import json_reason, parse_json
from imagenet_prep.recipes.recipe_file import shortened
from imagenet_prep.recipes.sample_columns import columns_of
from imagenet_prep.recipes.sample_sources import list_sample_inputs
from imagenet_prep.recipes.source_kinds import BySplit, SourceKind
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.skipped import Skipped
from imagenet_prep.sources.slices import Reader
from imagenet_prep.sources.tars import list_tars
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import listed

_IMAGES = ("jpg", "jpeg", "png", "webp", "gif", "bmp", "tif", "tiff", "avif")
_IMAGE_ENDINGS = tuple(f".{ending}" for ending in _IMAGES)
_VALUES = ("cls", "txt", "json")
_INT = re.compile(r"-?(0|[1-9]\d*)")


def _read_samples(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    """The first image of each key, with the values in its other members."""
    skipped, reader = Skipped(), Reader()
    listing = list_tars(paths, engine, folder_each=True, skipped=skipped)
    rows: list[int] = []
    samples: list[dict[str, Any]] = []
    unread_counts: Counter[str] = Counter()
    for key, members in _members_by_key(listing):
        rows.append(_take_image(listing, key, members))
        value_rows: dict[str, int] = {}
        for ending, row in members.items():
            if ending in _VALUES:
                value_rows[ending] = row
            else:
                unread_counts[ending] += 1
        samples.append(_values_of_key(listing, value_rows, reader))
    columns = columns_of(samples)
    label = usual_label(columns)
    passed, lost = _unread_notes(unread_counts, has_label=label is not None)
    if skipped.entries:
        passed.insert(0, f"skipped in archives: {skipped.text}")
    for name in _drop_nested(columns):
        passed.append(f"{name}: not read, it holds more than texts and numbers")
    names = [listing.names[row] for row in rows]
    images = listing.picked(sorted(rows))
    return {"": Samples(images, names, columns, label=label, passed=passed, lost=lost)}


def _members_by_key(listing: Catalog) -> Iterator[tuple[str, dict[str, int]]]:
    """Each key with the rows of its members, by their endings."""
    by_key: dict[str, dict[str, int]] = {}
    for row, name in enumerate(listing.names):
        folder, slash, file_name = name.rpartition("/")
        stem, _, ending = file_name.partition(".")
        key = f"{folder}{slash}{stem}"
        members = by_key.setdefault(key, {})
        if members.setdefault(ending.lower(), row) != row:
            first_name = _name_in_tar(listing.names[members[ending.lower()]])
            names = f"{first_name} and {_name_in_tar(name)}"
            raise InputError(
                f"{listing.container(row).path} has both {names}",
                f"expected one .{ending.lower()} for each sample; .{ending.upper()} is the same",
                "remove one of them from the tar; or make it a sample of its own, such as "
                f"{stem}-2, with copies of the other files of {stem}",
            )
    yield from by_key.items()


def _name_in_tar(name: str) -> str:
    """A name of the listing, or a key, without the folder that stands for its tar."""
    return name.partition("/")[2]


def _take_image(listing: Catalog, key: str, members: dict[str, int]) -> int:
    """The row of the first image of a key, which is no longer among its members then."""
    for ending in members:
        if ending in _IMAGES:
            return members.pop(ending)
    first_row = next(iter(members.values()))
    file_names = [_name_in_tar(listing.names[row]) for row in members.values()]
    first_image = next((name for name in file_names if name.lower().endswith(_IMAGE_ENDINGS)), "")
    if first_image:
        raise _dotted(listing.container(first_row).path, _name_in_tar(key), first_image, file_names)
    raise InputError(
        f"{listing.container(first_row).path} has no image for {listed(file_names)}",
        f"expected an image whose name is the same up to the first dot: {_name_in_tar(key)}.jpg",
        f"add the image ({', '.join(_IMAGES)}), rename these files, or remove them",
    )


def _dotted(path: AnyPath, key: str, image: str, names: Sequence[str]) -> InputError:
    """The error for an image whose name has another dot before its ending."""
    folder, slash, name = image.rpartition("/")
    stem, _, ending = name.rpartition(".")
    renamed = f"{folder}{slash}{stem.replace('.', '_')}.{ending}"
    return InputError(
        f"{path} has a name of an image with several dots: {image}",
        f"files of one name up to the first dot are one image, here {listed(names)}",
        f"rename it in the tar: {renamed} and its other files alike, or {key}.{ending} if it is "
        "the image of them all",
    )


class _Member(NamedTuple):
    """The row of a .cls, a .txt or a .json, and its values by their names."""

    row: int
    values: dict[str, Any]


def _values_of_key(listing: Catalog, rows: Mapping[str, int], reader: Reader) -> dict[str, Any]:
    """The values in the .cls, .txt and .json of a key.

    Raises:
        InputError: two of them have different values of one name.
    """
    sample: dict[str, Any] = {}
    members: list[_Member] = []
    for ending, row in rows.items():
        value = _member_value(listing, row, ending, reader)
        member = _Member(row, value if isinstance(value, dict) else {ending: value})
        for earlier in members:
            _refuse_contradiction(listing, earlier, member)
        members.append(member)
        sample |= member.values
    return sample


def _refuse_contradiction(listing: Catalog, first: _Member, second: _Member) -> None:
    """Raise InputError if two files of a key have different values of one name."""
    for name, value in first.values.items():
        if str(second.values.get(name, value)) == str(value):
            continue
        sayings: list[str] = []
        for member in (first, second):
            file = _name_in_tar(listing.names[member.row])
            sayings.append(f"{file} says {shortened(repr(member.values[name]))}")
        raise InputError(
            f"{listing.container(second.row).path}: {', '.join(sayings)} for {name}",
            "expected the same value",
            "correct one of these files in the archive",
        )


def _member_value(listing: Catalog, row: int, ending: str, reader: Reader) -> Any:
    """The value of a .cls, a .txt or a .json."""
    data = bytes(listing.read(row, reader))
    try:
        text = data.decode().removeprefix("\ufeff").strip()
        if ending == "json":
            value = parse_json(text)
            return value if isinstance(value, dict) else {"json": value}
        return int(text) if ending == "cls" and _INT.fullmatch(text) else text
    except (ValueError, RecursionError) as error:
        reason = json_reason(error)
        if isinstance(error, UnicodeDecodeError):
            reason = "it is not UTF-8"
        name = f"{_name_in_tar(listing.names[row])} in {listing.container(row).path}"
        raise InputError(f"{name} can't be read", reason, "correct this file in the tar") from error


def _unread_notes(counts: Mapping[str, int], *, has_label: bool) -> tuple[list[str], list[str]]:
    """Notes on members that are not read, and on those that would be missed: images next to the
    image, unless classes are there, too.
    """
    passed: list[str] = []
    lost: list[str] = []
    for ending, count in counts.items():
        members = f".{ending}" if ending else "without an ending"
        note = f"{count:,} {members} in tars: not read"
        if not has_label and ending.endswith((".png", ".jpg", ".gif")):
            lost.append(note)
        else:
            passed.append(note)
    return passed, lost


def _drop_nested(columns: dict[str, list[Any]]) -> list[str]:
    """Remove the columns that hold anything but texts, numbers and lists of them; their names."""

    def is_plain(value: Any) -> bool:
        return value is None or isinstance(value, (str, int, float))

    def is_flat(value: Any) -> bool:
        return all(map(is_plain, value)) if isinstance(value, list) else is_plain(value)

    nested = [name for name, column in columns.items() if not all(map(is_flat, column))]
    for name in nested:
        del columns[name]
    return nested


KIND = SourceKind(
    "webdataset",
    50,
    BySplit,
    list_sample_inputs,
    options=("label",),
    read_samples=_read_samples,
)
