"""Checking one shard: the work of one worker."""

from __future__ import annotations

import mmap
from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from imagenet_prep.checks.content import Finding, check_content
from imagenet_prep.checks.findings import Findings, place
from imagenet_prep.checks.index import departure, first_difference, read_index
from imagenet_prep.formats import compressed
from imagenet_prep.formats.compressed import Compression, CompressionError
from imagenet_prep.formats.example import ExampleError
from imagenet_prep.formats.inception_reader import BoxesError, ImageRecord, RecordError, read_record
from imagenet_prep.formats.tfrecord import OVERHEAD, FramingDigest, FramingError, LengthError, Record
from imagenet_prep.layout import Layout, parse_shard_name
from imagenet_prep.model import Problem, ProblemKind, ShardInfo

REMEDY_OWN = "remove this shard and run the same imagenet-prep convert again: it makes this one anew"
REMEDY_FOREIGN = "get a sound copy of this shard"


@dataclass(frozen=True, slots=True)
class ShardReport:
    """What one shard holds and what is wrong with it.

    ``offsets`` are those of the records' headers in bytes; ``names`` are their file names joined by NUL, empty where
    unknown; ``labels`` counts the records of each label.
    """

    name: str
    problems: tuple[Problem, ...]
    offsets: array[int]
    names: bytes
    labels: dict[int, int]
    boxes: int
    digest: str

    @property
    def records(self) -> int:
        """How many records were found."""
        return len(self.offsets)


@dataclass(frozen=True)
class ShardCheck:
    """Checks shards by name; picklable.

    Args:
        layout: where the shards are.
        infos: what was recorded of each shard when it was made; empty for shards that another tool made.
        compression: of the shards; None: to be told by their first bytes.
        decode: decode every image.
    """

    layout: Layout
    infos: Mapping[str, ShardInfo] = field(default_factory=dict)
    compression: Compression | None = None
    decode: bool = False

    def __call__(self, name: str) -> ShardReport:
        """Read every byte of a shard. Whatever is in the file is answered by Problems."""
        findings = Findings(name, REMEDY_OWN if name in self.infos else REMEDY_FOREIGN)
        reading = _Reading(name, findings, self.decode)
        try:
            view = _map(self.layout.shard_path(name))
            reading.read(view, self.compression or compressed.detect(view))
            self._check_origin(reading, len(view))
        except OSError as error:
            findings.add(ProblemKind.UNREADABLE, f"it can't be read: {error.strerror or error}")
        return ShardReport(
            name,
            findings.problems(),
            reading.offsets,
            b"\0".join(reading.names),
            dict(reading.labels),
            reading.boxes,
            reading.digest.hexdigest(),
        )

    def _check_origin(self, reading: _Reading, size: int) -> None:
        """Hold a shard that can be read to its end against what was recorded when it was made, and its index."""
        if not reading.is_whole:
            return
        info = self.infos.get(reading.name)
        digest = reading.digest.hexdigest()
        if info is None or digest == info.digest:
            if info is not None and size != info.size:
                reading.findings.add(ProblemKind.WRONG_SIZE, f"expected {info.size} bytes, got {size}")
            self._check_index(reading, is_required=info is not None)
        else:
            self._explain(reading, info, digest, size)

    def _check_index(self, reading: _Reading, *, is_required: bool) -> None:
        path = self.layout.index_path(reading.name)
        if not path.exists():
            if is_required:
                reading.findings.add(ProblemKind.BAD_INDEX, f"it has no index: expected {path}")
            return
        index = read_index(path, len(reading.offsets))
        if index is None:
            reading.findings.add(ProblemKind.BAD_INDEX, f"{path} is no index")
            return
        found = list(zip(reading.offsets, reading.lengths, strict=True))
        number = first_difference(found, index)
        if number is not None:
            expected = "{} {}".format(*found[number]) if number < len(found) else "its end"
            got = "{} {}".format(*index[number]) if number < len(index) else "its end"
            detail = f"{reading.place(number)}: expected {expected} in its index, got {got} ({path})"
            reading.findings.add(ProblemKind.BAD_INDEX, detail)

    def _explain(self, reading: _Reading, info: ShardInfo, digest: str, size: int) -> None:
        """Say in which way the records are not those that were written."""
        counts = f"expected {info.records} records in {info.size} bytes, got {len(reading.offsets)} in {size}"
        owner = next((other.name for other in self.infos.values() if other.digest == digest and other.records), None)
        if owner is not None:
            detail = f"this is {owner} under a wrong name"
            reading.findings.add(ProblemKind.WRONG_CONTENT, detail)
            return
        if ProblemKind.BAD_CRC in reading.findings and (len(reading.offsets), size) == (info.records, info.size):
            return  # the damage that was found explains it
        kind = ProblemKind.WRONG_CONTENT if len(reading.offsets) == info.records else ProblemKind.WRONG_COUNT
        reading.findings.add(kind, f"{self._departure(reading, info)}; {counts}")

    def _departure(self, reading: _Reading, info: ShardInfo) -> str:
        """Where the records leave those that were written, as far as their lengths in the index tell."""
        path = self.layout.index_path(reading.name)
        index = read_index(path, info.records) if path.exists() else None
        if index is None or len(index) != info.records:
            return "the records are not those that were written (there is no index to tell which)"
        found = departure([length for _, length in index], reading.lengths)
        if found is None:
            return "the records are not those that were written, though each has the length of the one written"
        return f"{reading.place(found.record)}: {found.way}"


class _Reading:
    """One pass over a shard."""

    def __init__(self, name: str, findings: Findings, decode: bool) -> None:
        parsed = parse_shard_name(name)
        assert parsed is not None, name
        self.name, self.findings = name, findings
        self._split, self._decode = parsed[0], decode
        self.offsets = array("Q")
        self.lengths: list[int] = []
        self.names: list[bytes] = []
        self.labels: Counter[int] = Counter()
        self.boxes = 0
        self.digest = FramingDigest()
        self.is_whole = False

    def read(self, view: memoryview, compression: Compression) -> None:
        """Take every record; a fault of the framing ends the pass, since no record can be found behind it."""
        try:
            for record in compressed.iter_records(view, compression):
                self.digest.update(len(record.data), record.crc)
                self.offsets.append(record.offset)
                self.lengths.append(len(record.data) + OVERHEAD)
                self.names.append(b"")
                self._take(record)
            self.is_whole = True
        except FramingError as error:
            rest = "" if compression != "none" else f"; {len(view) - error.offset} bytes from here on can't be checked"
            self.findings.add(_kind(error), f"{place(error.record, error.offset)}: {error.reason}{rest}")

    def _take(self, record: Record) -> None:
        image = _parse(record.data)
        faults: list[Finding] = []
        if isinstance(image, ImageRecord):
            self._count(image)
            if record.intact:
                faults += check_content(image, self._split, decode=self._decode)
        elif record.intact:
            faults.append((_kind(image), str(image)))
        if not record.intact:
            faults.append((ProblemKind.BAD_CRC, "the data do not match their CRC"))
        for kind, detail in faults:
            self.findings.add(kind, f"{self.place(record.number)}: {detail}")

    def _count(self, image: ImageRecord) -> None:
        name = image.filename.encode()
        self.names[-1] = b"" if b"\0" in name else name
        self.labels[image.label] += 1
        self.boxes += len(image.boxes)

    def place(self, number: int) -> str:
        """The place of a record that was found, or of the end behind the last one."""
        if number < len(self.offsets):
            return place(number, self.offsets[number], self.names[number].decode())
        end = self.offsets[-1] + self.lengths[-1] if self.offsets else 0
        return place(number, end)


def _parse(data: memoryview) -> ImageRecord | ExampleError | RecordError:
    try:
        return read_record(data)
    except (ExampleError, RecordError) as error:
        return error


def _kind(error: Exception) -> ProblemKind:
    match error:
        case CompressionError():
            return ProblemKind.BAD_COMPRESSION
        case LengthError():
            return ProblemKind.BAD_LENGTH
        case FramingError():
            return ProblemKind.TRUNCATED
        case BoxesError():
            return ProblemKind.BAD_BOX
        case RecordError():
            return ProblemKind.BAD_FIELD
        case _:
            return ProblemKind.BAD_EXAMPLE


def _map(path: Path) -> memoryview:
    """The whole file, read ahead by the system and never copied."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return memoryview(b"")
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    mapped.madvise(mmap.MADV_SEQUENTIAL)
    return memoryview(mapped)
