"""Numbers, a column of them: an array while it is short, a file without a name where it is long; read by parts.

So a table of a hundred million rows takes no more memory than one of a few million. The files lie in the folder that
TMPDIR names, else in /var/tmp; the system frees them when the process ends, however it ends.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, overload

from imagenet_prep.errors import PrepError, SpaceError, WriteError
from imagenet_prep.storage.space import USED_UP

if TYPE_CHECKING:
    import numpy as np

    Values: TypeAlias = np.ndarray[Any, np.dtype[Any]]

IN_MEMORY = 32 << 20
"""Bytes of a column that stay in memory; of a longer one none do."""

CHUNK = 1 << 16
"""Rows that are looked at together."""

_FLUSH = 1 << 20
_BLOCK = 1 << 22  # rows that are brought to another order together: a long column is read once for each
_WINDOW = 1 << 18  # rows of a long column that are in memory meanwhile; 65,536 windows are enough for any table


class OnDisk(Sequence[int]):
    """A long column: numbers of one form (that of ``array``) in a file. For all readers, in threads and forked ones."""

    __slots__ = ("_count", "_file", "typecode")

    def __init__(self, typecode: str, file: BinaryIO, count: int) -> None:
        self.typecode, self._file, self._count = typecode, file, count

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


Numbers: TypeAlias = "array[int] | OnDisk"
"""A column."""


def _restored(typecode: str, content: bytes) -> Numbers:
    builder = Builder(typecode)
    builder.add_bytes(content)
    return builder.done()


def _no_room(folder: Path, error: OSError) -> PrepError:
    """The error for a folder that takes no column."""
    kind = SpaceError if error.errno in USED_UP else WriteError
    return kind(
        f"the plan can't be kept in {folder}: {error.strerror or error}",
        "expected room for some 300 bytes an image there while the command runs",
        "name another folder in TMPDIR and run the same command again",
    )


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
        if isinstance(values, OnDisk):
            for start in range(0, len(values), CHUNK):
                self.add(some(values, range(start, min(start + CHUNK, len(values)))))
        else:
            self.add_bytes(np.ascontiguousarray(np.asarray(values), form).data.cast("B") if len(values) else b"")

    def add_bytes(self, content: bytes | bytearray | memoryview) -> None:
        """Append numbers as they lie in memory."""
        self._kept.frombytes(content)
        held = len(self._kept) * self._kept.itemsize
        if held > (IN_MEMORY if self._file is None else _FLUSH):
            self._flush()

    def _flush(self) -> None:
        folder = scratch_folder()
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=folder, buffering=0)  # noqa: SIM115 - a column keeps it
            view = memoryview(self._kept).cast("B")
            while view:
                view = view[self._file.write(view) :]
        except OSError as error:
            raise _no_room(folder, error) from error
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
    """Rows, some millions at a time; ranges as ranges."""
    for start in range(0, len(rows), _BLOCK):
        part = rows[start : start + _BLOCK]
        yield part if isinstance(part, range) and part.step == 1 else Places(part)


def chunks(count: int) -> Iterator[range]:
    """All rows, CHUNK at a time."""
    return (range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK))


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
