"""A listing kept on disk: the rows of a Catalog, for when what was listed is not there any more."""

from __future__ import annotations

import hashlib
import sys
import zlib
from array import array
from itertools import accumulate, pairwise
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import Names
from imagenet_prep.storage.files import read_plain, save_bytes

_MAGIC = f"imagenet-prep listing 1 {sys.byteorder}".encode()
_ARRAYS = {"container_ids": "I", "offsets": "Q", "lengths": "Q", "stamps": "q", "labels": "H"}
"""The columns that are kept, and the form of each. Raw data that can be consumed has 1000 labels."""


def save_listing(path: Path, catalog: Catalog) -> None:
    """Keep the rows of a catalog, without boxes, columns and the words of labels, durably."""
    names = array("I", (stop - start for start, stop in pairwise(catalog.names.starts)))
    arrays = [names, *(array(form, getattr(catalog, name)) for name, form in _ARRAYS.items())]
    body = b"".join([len(catalog).to_bytes(8, "little"), *(each.tobytes() for each in arrays), catalog.names.joined[:]])
    digest = hashlib.sha256(body).hexdigest().encode()
    save_bytes(path, b"%b %b\n%b" % (_MAGIC, digest, zlib.compress(body, 1)))


def load_listing(path: Path) -> Catalog:
    """The rows that were kept; the catalog has no containers.

    Raises:
        InputError: it is not there, or is not what was written.
    """
    header, _, packed = read_plain(path).partition(b"\n")
    try:
        body = zlib.decompress(packed)
    except zlib.error:
        body = b""
    if header != b"%b %b" % (_MAGIC, hashlib.sha256(body).hexdigest().encode()):
        raise InputError(
            f"{path} has changed since it was written, or another machine wrote it",
            "expected the listing of raw data that is not there any more",
            "get the raw data again; the shards that stand are not touched by this",
        )
    found = Catalog()
    count, place = int.from_bytes(body[:8], "little"), 8
    columns = {"names": array("I"), **{name: array(form) for name, form in _ARRAYS.items()}}
    for each in columns.values():
        size = count * each.itemsize
        each.frombytes(body[place : place + size])
        place += size
    for name in _ARRAYS:
        getattr(found, name).extend(array(getattr(found, name).typecode, columns[name]))
    found.names = Names(bytearray(body[place:]), array("Q", accumulate(columns["names"], initial=0)))
    return found
