"""Fingerprints: rows of a Catalog and the settings that decide bytes -> a digest of all that decides a shard's bytes.

That is the ordered items (name, label, words, boxes, length, columns), and the canonical form of the settings. Where
the items lie, and since when, makes no difference. A fingerprint begins with its version and a colon; those of the
versions before, which went from row to row, have none.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from imagenet_prep.sources.numbers import Places, Rows, chunks, distinct, some

if TYPE_CHECKING:
    from imagenet_prep.sources.catalog import Catalog
    from imagenet_prep.sources.numbers import Values

VERSION = "2:"
"""What a fingerprint of ``fingerprint`` begins with."""

_NARROW = 1 << 16  # labels below it take 16 bits in an earlier digest, as they did when there were no others


class Fingerprints:
    """Gives fingerprints of rows of a table: each a SHA-256 of one column after the other, numbers little-endian."""

    def __init__(self, catalog: Catalog, settings: str) -> None:
        self._catalog, self._settings = catalog, settings
        self._words = _words_by_label(catalog)

    def of(self, rows: Rows) -> str:
        """The fingerprint of these rows, in this order."""
        import numpy as np

        catalog, places = self._catalog, rows if isinstance(rows, range) else Places(rows)
        joined, edges = catalog.names.some(places)
        labels = some(catalog.labels, places) if len(catalog.labels) else np.zeros(len(rows), np.uint32)
        columns = {name: [values[row] for row in rows] for name, values in sorted(catalog.columns.items())}
        starts, boxes = catalog.boxes_of(rows)
        digest = hashlib.sha256()
        for part in (
            json.dumps([len(rows), self._settings, columns]).encode(),
            self._words[distinct(labels, len(self._words))].tobytes(),
            np.diff(edges).astype("<u4").tobytes(),
            joined,
            labels.astype("<u4").tobytes(),
            some(catalog.lengths, places).astype("<u8").tobytes(),
            (np.diff(np.asarray(starts)) if starts else np.zeros(len(rows))).astype("<u4").tobytes(),
            np.asarray(boxes, "<f4").tobytes(),
        ):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return VERSION + digest.hexdigest()


def _words_by_label(catalog: Catalog) -> Values:
    """A digest of what is said of each label, by its number; of none, 0, too."""
    import numpy as np

    words = (json.dumps(each).encode() for each in zip(catalog.wnids, catalog.texts, strict=True))
    digests = [bytes(32), *(hashlib.sha256(each).digest() for each in words)]
    return np.frombuffer(b"".join(digests), np.dtype((np.void, 32)))


def fingerprint(catalog: Catalog, rows: Rows, settings: str) -> str:
    """The fingerprint of these rows alone."""
    return Fingerprints(catalog, settings).of(rows)


def earlier_fingerprint(catalog: Catalog, rows: Rows, settings: str, *, has_times: bool) -> str:
    """The fingerprint that earlier versions gave to these rows; the first ones knew items by file times, too."""
    found = catalog.picked(rows)
    every = range(len(found))
    labels, lengths = (some(column, every).tolist() for column in (found.labels, found.lengths))
    columns = [found.columns[name] for name in sorted(found.columns)]
    starts = found.box_starts.tolist() if found.box_starts else [0] * (len(found) + 1)
    stamps = some(found.stamps, every).tolist() if has_times else ()
    form = "H" if max(labels, default=0) < _NARROW else "I"
    pack: Callable[..., bytes] = struct.Struct(f"<{form}QqI" if has_times else f"<{form}QI").pack
    digest = hashlib.sha256(settings.encode())
    for row, name in enumerate(found.names.encoded_of(every)):
        digest.update(name)
        number = (labels[row], lengths[row], *((stamps[row],) if has_times else ()), starts[row + 1] - starts[row])
        digest.update(pack(*number))
        digest.update(found.boxes[4 * starts[row] : 4 * starts[row + 1]])
        if columns:
            digest.update(json.dumps([values[row] for values in columns]).encode())
    for label in sorted(set(labels) - {0}):
        digest.update(f"{label} {found.wnids[label - 1]} {found.texts[label - 1]}\n".encode())
    return digest.hexdigest()


def names_and_sizes(catalog: Catalog) -> str:
    """A digest (hex) of the names, lengths and labels of all rows, in the order in which they were listed."""
    digest = hashlib.sha256()
    for rows in chunks(len(catalog)):
        digest.update(catalog.names.joined_of(rows)[0])
    form = "<u2" if max(catalog.count_by_label(), default=0) < _NARROW else "<u4"
    columns: tuple[tuple[Any, str], ...] = ((catalog.lengths, "<u8"), (catalog.labels, form))
    for column, kind in columns:
        for rows in chunks(len(column)):
            digest.update(some(column, rows).astype(kind).tobytes())
    return digest.hexdigest()
