"""join: a column of one's own, from a JSON file, in the order of a set's records; other labels need no second set."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.text import number_of

_VALIDATION = 50_000


def join(records: ShardSet, path: str | os.PathLike[str]) -> list[Any]:
    """The value of each record, by its file name.

    The file holds ``{file name: value}``, or a list of 50,000 values, of ILSVRC2012_val_00000001.JPEG and so on, as
    real.json of "Are we done with ImageNet?" (github.com/google-research/reassessed-imagenet) does.

    Raises:
        InputError: the file can't be read, has another form or length, lacks a record, or names one that is not there.
    """
    values = _load(Path(path))
    whole = records if records.compression != "none" else (records[number] for number in range(len(records)))
    names = [record.filename for record in whole]
    known = values.keys()
    lacking = [name for name in names if name not in known]
    if lacking:
        what = f"{path} has no value for {number_of(len(lacking), 'record')} of {records!r}"
        raise InputError(what, f"the first one: {lacking[0]!r}", "name each record by its file name")
    unknown = [] if isinstance(values, _RealByImage) else sorted(known - set(names))
    if unknown:
        what = f"{path} names {number_of(len(unknown), 'image')} that {records!r} does not have"
        raise InputError(what, f"the first one: {unknown[0]!r}", "give a file for this split")
    return [values[name] for name in names]


class _RealByImage(dict[str, Any]):
    """The values of ImageNet's validation images: a set may hold a part of them."""


def _load(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except OSError as error:
        raise unreadable(path, error) from error
    except ValueError as error:
        raise InputError(f"{path} is not JSON", str(error)) from None
    if isinstance(values, dict):
        return values
    if not isinstance(values, list) or len(values) != _VALIDATION:
        held = number_of(len(values), "value") if isinstance(values, list) else repr(values)[:40]
        raise InputError(f"{path} holds {held}", f"expected {{file name: value}}, or a list of {_VALIDATION:,} values")
    return _RealByImage({f"ILSVRC2012_val_{number:08d}.JPEG": value for number, value in enumerate(values, 1)})
