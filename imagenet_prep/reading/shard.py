"""Shard: an open TFRecord file, and its records."""

from __future__ import annotations

import contextlib
import itertools
from array import array
from collections.abc import Generator, Iterator, Sequence

from msgspec import Struct

from imagenet_prep.errors import DamagedRecordError, InputError
from imagenet_prep.reading.damage_words import (
    is_recorded,
    listed_name,
    looks_like,
    place_in_words,
    remedy,
)
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.values import USUAL, Conventions, any_number
from imagenet_prep.state.manifest import find_set, load_manifest
from imagenet_prep.storage.files import view_of
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.location import AnyPath, local_or_none, local_path
from imagenet_prep.storage.memory_maps import FileState, buffered, find_state, refuse_replaced
from imagenet_prep.tfrecord import compression as compressed
from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord.compression import Compression
from imagenet_prep.tfrecord.framing import (
    FOOTER,
    HEADER,
    OVERHEAD,
    Framed,
    FramingError,
    View,
)


class Shard(Struct, frozen=True):
    """A TFRecord file, mapped, or an object; its records as they are framed,
    intact or not, or as checked Records.
    """

    path: AnyPath
    view: View
    compression: Compression
    opened: FileState | None = None  # of a local file
    conventions: Conventions = USUAL

    @classmethod
    def open(
        cls,
        path: AnyPath,
        compression: Compression | None = None,
        *,
        in_order: bool = False,
        conventions: Conventions = USUAL,
    ) -> Shard:
        """Open a shard; its compression is detected from its first bytes unless it is given.

        Raises:
            InputError: the file can't be opened.
        """
        opened = None
        if (local := local_or_none(path)) is not None:
            with contextlib.suppress(OSError):  # ``view_of`` reports it
                opened = find_state(local)
        view = view_of(path, in_order=in_order)
        return cls(path, view, compression or compressed.detect(view), opened, conventions)

    def refuse_replaced(self) -> None:
        """Raise InputError if another file has its name now:
        records by number and in order would differ.
        """
        if self.opened is not None:
            refuse_replaced(local_path(self.path), local_path(self.path), self.opened)

    def framed(self) -> Iterator[Framed]:
        """Every record, intact or not.

        Raises:
            FramingError: the next record can't be found.
        """
        return compressed.iter_records(self.view, self.compression)

    def intact_at(
        self, start: int, stop: int, check: bool = True, expected: int | None = None
    ) -> memoryview | None:
        """The data of the record whose framing starts and stops at these bytes of a plain shard, or
        None.

        ``expected`` is the CRC that the record must have.
        """
        if isinstance(self.view, memoryview):
            return tfrecord.intact_at(self.view, start, stop, check, expected)
        return tfrecord.intact_at(self.view[start:stop], 0, stop - start, check, expected)

    def unchecked(self) -> Iterator[tuple[int, memoryview]]:
        """Byte offset and data of every record; the data is not compared with its CRC.

        In a plain shard only the headers are touched: unused data is never read from the disk.

        Raises:
            FramingError: as for ``framed``.
        """
        if self.compression == "none":
            return tfrecord.iter_unchecked(self.view)
        return ((framed.offset, framed.data) for framed in self.framed())

    def followed(self) -> Iterator[Framed]:
        """Every record, intact or not.

        Raises:
            InputError: the next record can't be found; the error names file, record and byte.
        """
        with self.naming():
            yield from self.framed()

    def stored(self) -> Iterator[tuple[int, memoryview, int]]:
        """Byte offset, data and stored CRC of every record, which are not compared.

        Raises:
            InputError: as for ``followed``.
        """
        if self.compression != "none":
            for framed in self.followed():
                yield framed.offset, framed.data, framed.crc
            return
        with self.naming():
            for offset, data in self.unchecked():
                end = offset + HEADER.size + len(data)
                (crc,) = FOOTER.unpack(self.view[end : end + FOOTER.size])
                yield offset, data, crc

    def framing(self) -> tuple[array[int], array[int]]:
        """The length of the data of each record, in bytes, and its stored CRC.

        Raises:
            InputError: as for ``followed``.
        """
        lengths, crcs = array("Q"), array("I")
        for _, data, crc in self.stored():
            lengths.append(len(data))
            crcs.append(crc)
        return lengths, crcs

    def sound(self, framed: Framed) -> Record:
        """A record of this shard.

        Raises:
            InputError: its data is damaged; the error names file, record and byte.
        """
        if not framed.intact:
            raise self.damaged(framed.number, framed.offset)
        return Record(self, framed.number, framed.offset, framed.data)

    def damaged(
        self, number: int, offset: int, reason: str = "the data does not match its CRC"
    ) -> DamagedRecordError:
        """The error for a record whose bytes are not those that were written."""
        what = f"{place_in_words(self.path, number, offset, self.compression)} is damaged"
        name = listed_name(self.path, number)
        detail = f"{name}: {reason}" if name else reason
        return DamagedRecordError.of("checksum", number, name, what, detail, remedy(self.path))

    def _unreadable(self, error: FramingError) -> DamagedRecordError:
        """The error for a place where a record should be: other bytes may follow the last one."""
        number = error.record
        place = place_in_words(self.path, number, error.offset, self.compression)
        name = listed_name(self.path, number)
        detail = f"{name}: {error.reason}" if name else error.reason
        what = f"{place} can't be read"
        return DamagedRecordError.of("checksum", number, name, what, detail, remedy(self.path))

    def exchanged(self, number: int, offset: int) -> InputError:
        """The error for a sound record that is not the recorded one."""
        place = place_in_words(self.path, number, offset, self.compression)
        what = f"{place} is not the record that was written there"
        detail = "it is intact, but its checksum is that of another record"
        return InputError(what, detail, remedy(self.path))

    def __iter__(self) -> Iterator[Record]:
        """Every record; raises InputError at the first one that is damaged."""
        return self.records()

    def records(
        self, *, check: bool = True, crcs: Sequence[int] = ()
    ) -> Generator[Record, None, int]:
        """Every record, then their number.

        Args:
            check: compare the data of a plain shard with its CRCs.
            crcs: the CRCs that the records must have; none: any.

        Raises:
            InputError: a record is damaged or another one; the error names file, record and byte.
        """
        self.refuse_replaced()
        number = end = 0
        expected_crcs = iter(crcs) if crcs else itertools.repeat(None)
        if self.compression == "none" and isinstance(self.view, memoryview):
            begin = -1
            by_map = not check  # unused data should not be read
            with buffered(local_path(self.path), self.view, self.opened) as read:
                while begin < end or not by_map:
                    # No progress: the next record is too large for a buffer, or not intact.
                    by_map = by_map or begin == end
                    begin = end
                    window = self.view[begin:] if by_map else read(begin)
                    intact = tfrecord.iter_intact(window, check=check)
                    pairs = zip(intact, expected_crcs)  # noqa: B905 - the CRCs go on in the next window
                    for (offset, data, crc), expected_crc in pairs:
                        if crc != expected_crc and expected_crc is not None:
                            raise self.exchanged(number, begin + offset)
                        yield Record(self, number, begin + offset, data)
                        number += 1
                        end = begin + offset + len(data) + OVERHEAD
        if end < len(self.view):
            for framed in itertools.islice(self.followed(), number, None):
                record = self.sound(framed)
                if crcs and [framed.crc] != [*crcs[number : number + 1]]:
                    raise self.exchanged(number, framed.offset)
                yield record
                number += 1
        return number

    def carry(self, record: Record) -> tuple[object, tuple[object, ...]]:
        """How pickle makes a copy of one of its records for another process, with its own data."""
        return _of_another_process, (
            self.path,
            self.compression,
            self.conventions,
            record.number,
            record.offset,
            bytes(record.data),
        )

    def refuse_other_kind(self) -> None:
        """Raise InputError for a file of another kind; call it if its first record is not intact.

        A file that a manifest records is a damaged shard.
        """
        kind = looks_like(bytes(self.view[:512]))
        if kind and not is_recorded(Layout(self.path.parent), self.path.name):
            raise InputError(f"{self.path} is not a TFRecord file", f"it starts as {kind} does")

    @contextlib.contextmanager
    def naming(self) -> Iterator[None]:
        """Turn a FramingError into the error that names file, record and byte."""
        try:
            yield
        except FramingError as error:
            if error.offset == 0:
                self.refuse_other_kind()
                where = " in its first record" if self.compression == "none" else ""
                what = f"{self.path} is damaged{where}, or is not a TFRecord file"
                raise DamagedRecordError.of(
                    "checksum", 0, "", what, error.reason, remedy(self.path)
                ) from error
            raise self._unreadable(error) from error


def _of_another_process(
    path: AnyPath,
    compression: Compression,
    conventions: Conventions,
    number: int,
    offset: int,
    data: bytes,
) -> Record:
    shard = Shard(path, memoryview(b""), compression, conventions=conventions)
    return Record(shard, number, offset, memoryview(data))


def recorded_lists(path: AnyPath) -> frozenset[str]:
    """The features that hold any number of values, by the manifest of a shard's set;
    none without a sound one.
    """
    layout = Layout(path.parent)
    if not split_of(path.name):
        return frozenset()
    with contextlib.suppress(InputError):
        manifest = load_manifest(find_set(layout, split_of(path.name)).manifest_path)
        return any_number(manifest.dataset.features if manifest else {})
    return frozenset()
