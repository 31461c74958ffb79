"""Numbers, a column of them: an array while it is short, a file without a name where it is long; read by parts.

So a table of a hundred million rows takes no more memory than one of a few million. The files lie in the folder that
TMPDIR names, else in /var/tmp; the system frees them when the process ends, however it ends.
"""

from __future__ import annotations

import errno
import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, overload

from imagenet_prep.errors import PrepError, SpaceError, WriteError
from imagenet_prep.storage.refusals import USED_UP
from imagenet_prep.text import size_text

if TYPE_CHECKING:
    import numpy as np

    Values: TypeAlias = np.ndarray[Any, np.dtype[Any]]

IN_MEMORY = 32 << 20
"""Bytes of a column that stay in memory; of a longer one none do."""

CHUNK = 1 << 16
"""Rows that are looked at together."""

_FLUSH = 1 << 20
_BLOCK = 1 << 20  # rows that are looked up together: of a long column what lies near them is read once for each
_WINDOW = 1 << 18  # rows of a long column that are in memory meanwhile; 65,536 windows are enough for any table


class OnDisk(Sequence[int]):
    """A long column: numbers of one form (that of ``array``) in a file. For all readers, in threads and forked ones."""

    __slots__ = ("_count", "_file", "typecode")

    def __init__(self, typecode: str, file: BinaryIO, count: int) -> None:
        self.typecode, self._file, self._count = typecode, file, count

    @classmethod
    def empty(cls, typecode: str, count: int) -> OnDisk:
        """A column of so many rows that are still to be written, in any order."""
        return cls(typecode, _scratch_file(), count)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, row: int) -> int: ...
    @overload
    def __getitem__(self, row: slice) -> array[int]: ...
    def __getitem__(self, row: int | slice) -> int | array[int]:
        if isinstance(row, slice):
            start, stop, step = row.indices(self._count)
            found = array(self.typecode)
            found.frombytes(self.read(start, max(start, stop)))
            return found[::step]
        row = row + self._count if row < 0 else row
        if not 0 <= row < self._count:
            raise IndexError(row)
        found = array(self.typecode)
        found.frombytes(self.read(row, row + 1))
        return found[0]

    def __iter__(self) -> Iterator[int]:
        for start in range(0, self._count, CHUNK):
            yield from self[start : start + CHUNK]

    def __reduce__(self) -> tuple[Any, ...]:
        """In another process it is what it holds."""
        return _restored, (self.typecode, self.read(0, self._count))

    def read(self, start: int, stop: int) -> bytes:
        """The bytes of rows ``start`` to ``stop``."""
        size = array(self.typecode).itemsize
        length, place = (stop - start) * size, start * size
        parts = []
        while length:
            parts.append(os.pread(self._file.fileno(), length, place))
            if not parts[-1]:
                raise OSError("a column of the plan is shorter than what was written")
            length -= len(parts[-1])
            place += len(parts[-1])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write(self, start: int, values: memoryview) -> None:
        """Put numbers of this form in the place of the rows from ``start`` on."""
        _write_at(self._file, values.cast("B"), start * array(self.typecode).itemsize)


Numbers: TypeAlias = "array[int] | OnDisk"
"""A column."""


def _restored(typecode: str, content: bytes) -> Numbers:
    builder = Builder(typecode)
    builder.add_bytes(content)
    return builder.done()


def _no_room(folder: Path, error: OSError) -> PrepError:
    """The error for a folder that takes no column."""
    room = "room for some 300 bytes an image while the command runs"
    try:
        found = os.statvfs(folder)
        detail = f"expected {room}, got {size_text(found.f_bavail * found.f_frsize)} free"
    except OSError:
        detail = f"expected a folder with {room}"
    other, again = "name another folder in TMPDIR", "and run the same command again"
    return (SpaceError if error.errno in USED_UP else WriteError)(
        f"the plan can't be kept in {folder}: {error.strerror or error}",
        detail,
        f"raise ulimit -f, or {other}, {again}" if error.errno == errno.EFBIG else f"{other} {again}",
    )


def _scratch_file() -> BinaryIO:
    """A file without a name for a column, which keeps it."""
    folder = scratch_folder()
    try:
        return tempfile.TemporaryFile(dir=folder, buffering=0)
    except OSError as error:
        raise _no_room(folder, error) from error


def _write_at(file: BinaryIO, content: memoryview, place: int) -> None:
    """Write all of it from a place of the file on."""
    try:
        while content:
            written = os.pwrite(file.fileno(), content, place)
            content, place = content[written:], place + written
    except OSError as error:
        raise _no_room(scratch_folder(), error) from error


class Builder:
    """Puts a column together from its first row to its last."""

    def __init__(self, typecode: str) -> None:
        self._typecode = typecode
        self._kept: array[int] = array(typecode)
        self._file: BinaryIO | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count + len(self._kept)

    def add(self, values: Numbers | Values) -> None:
        """Append numbers: of this form, or of another that holds none that this one can't."""
        import numpy as np

        form = np.dtype(self._typecode)
        if isinstance(values, array) and values.typecode == self._typecode:
            self._kept += values
            self._grown()
        elif isinstance(values, OnDisk):
            for start in range(0, len(values), CHUNK):
                self.add(some(values, range(start, min(start + CHUNK, len(values)))))
        else:
            self.add_bytes(np.ascontiguousarray(np.asarray(values), form).data.cast("B") if len(values) else b"")

    def add_bytes(self, content: bytes | bytearray | memoryview) -> None:
        """Append numbers as they lie in memory."""
        self._kept.frombytes(content)
        self._grown()

    def _grown(self) -> None:
        """Once it is long, what is in memory goes to the disk."""
        held = len(self._kept) * self._kept.itemsize
        if held > (IN_MEMORY if self._file is None else _FLUSH):
            self._flush()

    def _flush(self) -> None:
        self._file = self._file or _scratch_file()
        _write_at(self._file, memoryview(self._kept).cast("B"), self._count * self._kept.itemsize)
        self._count += len(self._kept)
        self._kept = array(self._typecode)

    def done(self) -> Numbers:
        """The column; the builder is of no use any more."""
        if self._file is None:
            return self._kept
        self._flush()
        return OnDisk(self._typecode, self._file, self._count)


def scratch_folder() -> Path:
    """Where long columns lie: in what TMPDIR names, else where large files may lie that nobody needs for long."""
    large = "/var/tmp"  # noqa: S108 - the file has no name there
    named = os.environ.get("TMPDIR") or (large if os.access(large, os.W_OK) else tempfile.gettempdir())
    return Path(named)


class Places:
    """Any rows, and which of them lie near each other: what is on disk is read window by window, once for all."""

    def __init__(self, rows: Sequence[int] | Values) -> None:
        import numpy as np

        self.rows: Values = np.asarray(rows, np.int64)
        self._ordered: Values | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def windows(self) -> Iterator[tuple[range, Values]]:
        """Each range of rows that holds some of these, and where they stand among them."""
        import numpy as np

        numbers = (self.rows // _WINDOW).astype(np.uint16)  # of 16 bits they are sorted at a touch
        if self._ordered is None:
            self._ordered = np.argsort(numbers, kind="stable")
        edges = np.cumsum(np.bincount(numbers))
        start = 0
        for number, stop in enumerate(edges.tolist()):
            if stop > start:
                places = self._ordered[start:stop]
                found = self.rows[places]
                yield range(max(number * _WINDOW, int(found.min())), int(found.max()) + 1), places
            start = stop


def some(column: Numbers, rows: range | Places) -> Values:
    """Some rows as an array of NumPy's: of a range a view where it can be, of others a copy in memory."""
    import numpy as np

    if isinstance(rows, range):
        assert rows.step == 1
        if isinstance(column, OnDisk):
            return np.frombuffer(column.read(rows.start, max(rows.start, rows.stop)), column.typecode)
        return np.asarray(column)[rows.start : rows.stop]
    if not isinstance(column, OnDisk):
        return np.asarray(column)[rows.rows]
    found = np.empty(len(rows), column.typecode)
    for window, places in rows.windows():
        found[places] = some(column, window)[rows.rows[places] - window.start]
    return found


Rows: TypeAlias = "Sequence[int] | Values"
"""Numbers of rows: a range, or any others."""


def blocks(rows: Rows) -> Iterator[range | Places]:
    """Rows, some at a time; ranges as ranges."""
    is_range = isinstance(rows, range) and rows.step == 1
    step = CHUNK if is_range else _BLOCK
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        yield part if isinstance(part, range) and is_range else Places(part)


def chunks(count: int) -> Iterator[range]:
    """All rows, CHUNK at a time."""
    return (range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK))


def distinct(values: Values, most: int) -> Values:
    """The numbers that are among these, which are all less than ``most``; in their order."""
    import numpy as np

    found = np.zeros(most, np.bool_)
    found[values] = True
    return np.flatnonzero(found)


Packed: TypeAlias = "tuple[str, int, int, str, bytes]"
"""A column as narrow as it can be: its form, rows, the least number, and the others' distances from it: form, bytes."""


def packed(column: Numbers) -> Packed:
    """A column on its way to another process."""
    values = some(column, range(len(column)))
    if not len(values):
        return column.typecode, 0, 0, "", b""
    low, high = int(values.min()), int(values.max())
    if high == low:
        return column.typecode, len(values), low, "", b""
    form = next((form for form, bits in (("B", 8), ("H", 16), ("I", 32)) if high - low < 1 << bits), "")
    if not form:
        return column.typecode, len(values), 0, column.typecode, values.tobytes()
    return column.typecode, len(values), low, form, (values - low).astype(form).tobytes()


def unpacked(packed: Packed) -> Numbers:
    """The column that was sent."""
    import numpy as np

    typecode, count, low, form, content = packed
    distances = np.frombuffer(content, form) if form else np.zeros(count, np.uint8)
    return column_of(typecode, [distances.astype(typecode) + np.array(low, typecode)])


def column_of(typecode: str, parts: Iterable[Values]) -> Numbers:
    """A column of what arrays hold, one after the other."""
    builder = Builder(typecode)
    for part in parts:
        builder.add(part)
    return builder.done()
