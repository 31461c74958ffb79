"""An LMDB's data.mdb -> SlicedSamples: images that are values, or in Caffe's Datums, read in place.

Format: mdb.c of LMDB 0.9 (https://github.com/LMDB/lmdb), "MDB_page", "MDB_node", "MDB_meta": a B+
tree whose leaves have keys and values, or for a large value the number of its first page. Datum:
caffe.proto.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from imagenet_prep.images import ending_of
from imagenet_prep.sources.archive_faults import quoted
from imagenet_prep.sources.mds_shards import SlicedSample
from imagenet_prep.sources.stored_arrays import CUT_OR_DAMAGED, OtherFormError, damage_named
from imagenet_prep.storage.files import view_of
from imagenet_prep.tfrecord.example import ExampleError, parse_fields, read_varints

MAGIC = b"\xde\xc0\xef\xbe"
"""Bytes 16 to 19 of a database."""

# number, padding, flags, end of the places of nodes, start of the nodes
_PAGE = struct.Struct("<QHHHH")
# low and high part of the size, or of the page's number; flags; size of the key
_NODE = struct.Struct("<HHHH")
_META = struct.Struct("<IIQQ")
# padding, flags, depth, branches, leaves, overflow pages, entries, root
_TREE = struct.Struct("<IHHQQQQQ")
_BRANCH, _LEAF, _BIG = 1, 2, 1
_SUBTREE, _SEVERAL_VALUES = 2, 4  # flags of a node
_EMPTY = (1 << 64) - 1
_DATUM_IMAGE, _DATUM_LABEL = (4, 2), (5, 0)  # field and wire type of `data` and of `label`


class _Value(NamedTuple):
    key: bytes
    offset: int
    length: int


def iter_lmdb(path: Path) -> Iterator[SlicedSample]:
    """List all images of a database in the order of their keys.

    Raises:
        InputError: it is damaged, or a value is no image and no Datum with an encoded one.
    """
    view = view_of(path)[0 : path.stat().st_size]
    with damage_named(path, "an LMDB of images"):
        for value in _iter_values(view):
            yield _sample(view, value)


def _iter_values(view: memoryview) -> Iterator[_Value]:
    """Walk the tree of the newer one of the two meta pages."""
    trees = []
    page_size = _TREE.unpack_from(view, _PAGE.size + _META.size)[0]
    for start in (0, page_size):
        meta_start = start + _PAGE.size
        if bytes(view[meta_start : meta_start + 4]) == MAGIC:
            trees_start = meta_start + _META.size
            root = _TREE.unpack_from(view, trees_start + _TREE.size)[-1]
            _, transaction = struct.unpack_from("<QQ", view, trees_start + 2 * _TREE.size)
            trees.append((transaction, root))
    if not trees or not page_size:
        raise ValueError("it is not an LMDB, or is damaged at its start")
    root = max(trees)[1]
    if root != _EMPTY:
        yield from _iter_page(view, page_size, root, set())


def _iter_page(
    view: memoryview, page_size: int, number: int, visited: set[int]
) -> Iterator[_Value]:
    start = number * page_size
    _, _, flags, lower, _ = _PAGE.unpack_from(view, start)
    if number in visited or not flags & (_BRANCH | _LEAF) or lower > page_size:
        raise ValueError(CUT_OR_DAMAGED)
    visited.add(number)
    for place in struct.unpack_from(f"<{(lower - _PAGE.size) // 2}H", view, start + _PAGE.size):
        low, high, node_flags, key_size = _NODE.unpack_from(view, start + place)
        key_at = start + place + _NODE.size
        if flags & _BRANCH:
            yield from _iter_page(view, page_size, low | high << 16 | node_flags << 32, visited)
            continue
        if node_flags & (_SUBTREE | _SEVERAL_VALUES):
            raise OtherFormError(
                "it has a database within it, or several values for one key: expected one image "
                "for each key",
                "write the images into an LMDB of one unnamed database, one image for each key",
            )
        offset = key_at + key_size
        if node_flags & _BIG:
            offset = struct.unpack_from("<Q", view, offset)[0] * page_size + _PAGE.size
        length = low | high << 16
        if offset + length > len(view):
            raise ValueError(CUT_OR_DAMAGED)
        yield _Value(bytes(view[key_at : key_at + key_size]), offset, length)


def _sample(view: memoryview, value: _Value) -> SlicedSample:
    head = bytes(view[value.offset : value.offset + 32])
    name = _name_of_key(value.key)
    if ending := ending_of(head):
        return SlicedSample(_with_ending(name, ending), value.offset, value.length, {})
    offset, length, label = _parse_datum(view, value)
    ending = ending_of(bytes(view[offset : offset + min(length, 32)]))
    if not ending:
        raise OtherFormError(
            f"the value of the key {quoted(value.key)} holds no encoded image, such as a JPEG",
            "write the database again with an encoded image, such as a JPEG, in each value",
        )
    return SlicedSample(_with_ending(name, ending), offset, length, {"label": label})


def _name_of_key(key: bytes) -> str:
    """A key as the name of a file; one that is no plain text,
    such as a number of 8 bytes, as its bytes in hex.
    """
    text = key.decode("utf-8", "replace")
    if not text.isprintable() or "\ufffd" in text:
        return key.hex()
    return re.sub(r"[^\w.-]", "_", text)


def _with_ending(name: str, ending: str) -> str:
    is_image_name = name.lower().endswith((".jpg", ".jpeg", ".png"))
    return name if is_image_name else f"{name}{ending}"


def _parse_datum(view: memoryview, value: _Value) -> tuple[int, int, int]:
    """The place of the image in a Datum, and its label; an empty place if the value is none."""
    try:
        fields = parse_fields(view, value.offset, value.offset + value.length)
    except ExampleError:
        return 0, 0, 0
    image_start = image_stop = label = 0
    for field, wire, start, stop in fields:
        if (field, wire) == _DATUM_IMAGE:
            image_start, image_stop = start, stop
        elif (field, wire) == _DATUM_LABEL:
            (label,) = read_varints(view, start, stop)
    return image_start, image_stop - image_start, label
