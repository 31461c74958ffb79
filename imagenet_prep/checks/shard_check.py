"""ShardCheck: checks one shard, the task of one worker, and returns a ShardReport."""

from __future__ import annotations

import contextlib
import hashlib
from array import array
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from imagenet_prep.checks.departure import Departure, departure
from imagenet_prep.checks.examiner import Examiner, Finding, Findings, Place
from imagenet_prep.errors import InputError
from imagenet_prep.hints import Hint
from imagenet_prep.model import Portable, Problem, ProblemKind, ShardInfo
from imagenet_prep.reading.damage_words import OTHER_CONTENT
from imagenet_prep.reading.shard import Shard
from imagenet_prep.state.indexes import read_index, read_written
from imagenet_prep.storage.files import kind_in_words, kind_of
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.refusals import is_of_system, unreadable
from imagenet_prep.text import number_of
from imagenet_prep.tfrecord.compression import Compression, CompressionError
from imagenet_prep.tfrecord.framing import OVERHEAD, Framed, FramingError, Index, LengthError, View

REMEDY_FOREIGN = "get a sound copy of the shard"

REMEDY_EMPTY = (
    "get a sound copy of the shard, unless the set has fewer images than shards: "
    "then some shards hold no record"
)
"""For a shard without a record whose number of records is not recorded."""

REMEDY_TAKEN = (
    "convert took it, so repair keeps it: remove the shard, "
    "and run the same convert with --check decode"
    " (in a recipe check: decode)"
)
"""For images that were not decoded when their shard was made."""

OTHER_RECORDS = (
    "the records are not those that manifest.json lists; "
    "without a sound index file it is not known which of them differ"
)
"""The start of the finding in a shard whose index does not fit the manifest either."""

_HASHED = 1 << 20


_KINDS = {CompressionError: ProblemKind.BAD_COMPRESSION, LengthError: ProblemKind.BAD_LENGTH}


def remedy_at(path: AnyPath, remedy: str) -> str:
    """The remedy for a file of a set; a folder in its place is moved away first: nothing replaces
    it.
    """
    if not path.is_dir():
        return remedy
    return Hint(f"move the folder {path} away, then ", remedy)


def _remedy_of(path: AnyPath, fault: InputError, remedy: str) -> str:
    """The remedy for a shard that can't be read: it may be sound if the system refuses to read
    it.
    """
    cause = fault.__cause__
    if isinstance(cause, OSError) and is_of_system(cause):
        return fault.hint
    return remedy_at(path, remedy)


def index_fault(path: AnyPath) -> str:
    """Why there is no index file at a path: "" if there is a plain file."""
    if kind_of(path) == "file":
        return ""
    return f"its index file {path} is {kind_in_words(path)}"


class Listing(Struct, frozen=True):
    """The records of a shard, one by one.

    ``offsets`` are the byte offsets of the records' headers and of the end, ``crcs`` the stored
    CRCs of their data. ``names`` are their file names joined by NUL, empty if unknown.
    """

    offsets: array[int]
    crcs: array[int]
    names: bytes


class ShardReport(Struct, frozen=True):
    """The content of one shard and its problems.

    ``labels`` are those that occur, ``counts`` the findings of each kind. ``is_whole``: it could be
    read to its end. ``listing`` is None if its records are not compared with those of other shards.
    """

    name: str
    problems: tuple[Problem, ...]
    records: int
    labels: tuple[int, ...]
    counts: Mapping[ProblemKind, int]
    boxes: int
    digest: str
    is_whole: bool
    listing: Listing | None

    @property
    def listed(self) -> Listing:
        """The records; raises if they were not requested."""
        assert self.listing is not None, self.name
        return self.listing

    @property
    def names(self) -> bytes:
        """The file names of the records joined by NUL, empty if unknown."""
        return self.listed.names

    @property
    def filenames(self) -> list[bytes]:
        """The file name of each record."""
        if not self.records:
            return []
        return self.names.split(b"\0")

    def identity(self, number: int) -> tuple[int, int]:
        """Length and CRC of a record, which identify it."""
        listed = self.listed
        length = listed.offsets[number + 1] - listed.offsets[number]
        return length, listed.crcs[number]

    def place(self, number: int, image: str = "") -> Place:
        """The place of a record that was found, or of the end;
        ``image`` if another one should be there.
        """
        name = self.filenames[number].decode() if number < self.records else ""
        offset = self.listed.offsets[min(number, self.records)]
        return Place(number, offset, image or name)


class ShardCheck(Struct, Portable[str], frozen=True, dict=True):
    """Checks shards by name; picklable.

    Args:
        layout: where the shards are.
        examiner: examines each record.
        infos: the entries recorded when the shards were made; empty for shards that another tool
            made.
        remedy: how to make a damaged one of these entries again.
        compression: of the shards; None: detected from their first bytes.
        lists_records: reports list the records one by one.
    """

    layout: Layout
    examiner: Examiner
    infos: Mapping[str, ShardInfo] = {}
    remedy: str = ""
    compression: Compression | None = None
    lists_records: bool = True

    @cached_property
    def _owners(self) -> Mapping[str, str]:
        """The first shard of each digest."""
        last_first = reversed(list(self.infos.values()))
        return {info.digest: info.name for info in last_first if info.records}

    def meeting_point(self, task: str, token: str) -> Path | None:
        """A file next to the shards."""
        return self.layout.meeting_point(token)

    def __call__(self, name: str) -> ShardReport:
        """Read every byte of a shard. All faults of the file are reported as Problems."""
        path = self.layout.shard_path(name)
        try:
            shard = Shard.open(path, self.compression, in_order=True)
            return self.check(shard)
        except InputError as error:
            fault = error
        except OSError as error:
            fault = unreadable(error.filename or path, error)
            fault.__cause__ = error
        reading = _ShardReading(name, self._findings(name), self)
        reading.findings.remedy = _remedy_of(path, fault, reading.findings.remedy)
        reading.findings.add(Finding(ProblemKind.UNREADABLE, _fault_in_words(path, fault)))
        return reading.report()

    def check(self, shard: Shard) -> ShardReport:
        """Check a shard that is open; raises InputError if its index can't be read."""
        name = shard.path.name
        reading = _ShardReading(name, self._findings(name), self)
        reading.read(shard)
        info = self.infos.get(name)
        if reading.is_whole and info is not None:
            self._check_origin(reading, info, shard.view)
        elif reading.is_whole and not reading.index.offsets:
            reading.findings.remedy = REMEDY_EMPTY
            reading.findings.add(Finding(ProblemKind.WRONG_COUNT, "it holds no record"))
        if info is None and {*reading.findings.counts} == {ProblemKind.BAD_EXAMPLE}:
            reading.findings.remedy = OTHER_CONTENT  # the checksums are right
        return reading.report()

    def _findings(self, name: str) -> Findings:
        remedy = self.remedy if name in self.infos else REMEDY_FOREIGN
        return Findings(name, remedy)

    def _check_origin(self, reading: _ShardReading, info: ShardInfo, view: View) -> None:
        """Compare a shard that can be read to its end with its recorded entry,
        and with its index.
        """
        digest, size = reading.index.digest, len(view)
        if digest != info.digest:
            self._explain(reading, info, digest, size)
            return
        if size != info.size:
            detail = f"expected {info.size} bytes, got {size}"
            finding = Finding(ProblemKind.WRONG_SIZE, detail, str(info.size), str(size))
            reading.findings.add(finding)
        elif info.file_digest and ProblemKind.BAD_CRC not in reading.findings:
            self._check_bytes(reading, info.file_digest, view)
        for finding in self._check_index(reading, info):
            reading.findings.add(finding)
        if {*reading.findings.counts} == {ProblemKind.BAD_IMAGE}:
            reading.findings.remedy = REMEDY_TAKEN

    def _check_bytes(self, reading: _ShardReading, expected: str, view: View) -> None:
        """Compare the bytes of a compressed file: some belong to no record,
        such as a header's time, or padding.
        """
        digest = hashlib.sha256()
        for start in range(0, len(view), _HASHED):
            digest.update(view[start : start + _HASHED])
        got = digest.hexdigest()
        if got != expected:
            detail = (
                "the records are intact, the bytes around them are not: "
                f"expected SHA-256 {expected}, got {got}"
            )
            reading.findings.add(Finding(ProblemKind.BAD_COMPRESSION, detail, expected, got))

    def _check_index(self, reading: _ShardReading, info: ShardInfo) -> Iterator[Finding]:
        """Compare the index of a shard whose records are intact."""
        paths = self.layout.index_paths(reading.name)
        for path in paths:
            fault = index_fault(path)
            if fault:
                reading.findings.remedy = remedy_at(path, reading.findings.remedy)
                yield Finding(ProblemKind.BAD_INDEX, fault)
                return
        is_named = all(reading.index.names) and not reading.findings  # damage is reported once
        if is_named and reading.has_index(*paths):
            return
        index = read_index(self.layout, reading.name, info.records)
        if index is None or not self._is_index_of(reading, index, has_names=is_named):
            detail = (
                f"its index file {paths[0]}, or the .list file next to it, "
                "does not match its records"
            )
            yield Finding(ProblemKind.BAD_INDEX, detail)

    def _is_index_of(self, reading: _ShardReading, index: Index, *, has_names: bool) -> bool:
        """Whether an index has the places of the records that were read, and their names if they
        have any.
        """
        if list(index.places) != list(reading.index.places):
            return False
        if not has_names:
            return True
        return list(map(self.examiner.recorded, index.names)) == reading.index.names

    def _has_own_index(self, reading: _ShardReading) -> bool:
        """Whether the index files of a shard are those of the records in it."""
        with contextlib.suppress(InputError):
            index = read_index(self.layout, reading.name, len(reading.index.offsets))
            return index is not None and self._is_index_of(
                reading, index, has_names=all(reading.index.names)
            )
        return False

    def _explain(self, reading: _ShardReading, info: ShardInfo, digest: str, size: int) -> None:
        """Report how the records differ from the written ones."""
        owner = self._owners.get(digest)
        if owner is not None:
            detail = f"it holds the records of {owner}"
            finding = Finding(ProblemKind.EXCHANGED_SHARD, detail, reading.name, owner)
            reading.findings.add(finding)
            return
        record_count = len(reading.index.offsets)
        has_recorded_size = (record_count, size) == (info.records, info.size)
        if ProblemKind.BAD_CRC in reading.findings and has_recorded_size:
            return  # the reported damage explains it
        records = number_of(info.records, "record")
        counts = f"; expected {records} in {info.size} bytes, got {record_count:,} in {size}"
        if has_recorded_size:
            counts = ""
        if self._has_own_index(reading):
            detail = (
                "it fits its own index file, and manifest.json lists other records: "
                f"one of them is of another set{counts}"
            )
            reading.findings.add(Finding(ProblemKind.OTHER_CONVERSION, detail))
            return
        written = read_written(self.layout, info)
        first_departure: Departure | None = None
        if written is not None:
            first_departure = departure(written.identities, reading.index.identities)
        if written is None or first_departure is None:
            problem_kind = ProblemKind.WRONG_COUNT
            if record_count == info.records:
                problem_kind = ProblemKind.WRONG_CONTENT
            reading.findings.add(Finding(problem_kind, f"{OTHER_RECORDS}{counts}"))
            return
        record, image = first_departure.record, ""
        if first_departure.kind is ProblemKind.MISSING_RECORD:
            image = written.names[record]
        finding = Finding(first_departure.kind, f"{first_departure.words}{counts}", image)
        reading.findings.add(finding, reading.place(record, image))


def _fault_in_words(path: AnyPath, error: InputError) -> str:
    """The error of a shard, or of its index, which it names."""
    what = "it can't be read"
    if error.what != f"{path} can't be read":
        what = error.what
    return f"{what}: {error.detail}" if error.detail else what


class _ShardReading:
    """Reads one shard and collects its findings."""

    def __init__(self, name: str, findings: Findings, check: ShardCheck) -> None:
        self.name, self.findings = name, findings
        self._split, self._examine = split_of(name), check.examiner.examine
        self._lists_records = check.lists_records
        self._is_recorded = name in check.infos
        self.index = Index()
        self.labels: set[int] = set()
        self.boxes = 0
        self.is_whole = False

    def read(self, shard: Shard) -> None:
        """Read every record; a framing fault ends the pass,
        since no record can be found after it.
        """
        try:
            for record in shard.framed():
                self.index.add(len(record.data) + OVERHEAD, record.crc, "")
                self._take(record)
            self.is_whole = True
        except FramingError as error:
            detail = error.reason
            if error.offset == 0 and not self._is_recorded:
                detail += ", or this is not a TFRecord file"
            if shard.compression == "none":
                unread = number_of(len(shard.view) - error.offset, "byte")
                detail += f"; {unread} from here on can't be checked"
            problem_kind = _KINDS.get(type(error), ProblemKind.TRUNCATED)
            place = Place(error.record, error.offset)
            self.findings.add(Finding(problem_kind, detail), place)

    def _take(self, record: Framed) -> None:
        seen = self._examine(record.data, self._split, intact=record.intact)
        self.index.names[-1] = "" if "\0" in seen.name else seen.name
        self.boxes += seen.boxes
        if seen.label is not None:
            self.labels.add(seen.label)
        for finding in seen.findings:
            self.findings.add(finding, self.place(record.number))
        if not record.intact:
            finding = Finding(ProblemKind.BAD_CRC, "the data does not match its CRC")
            self.findings.add(finding, self.place(record.number))

    def has_index(self, index: AnyPath, listing: AnyPath) -> bool:
        """Whether both files are, byte for byte, those that convert writes for these records."""
        for path, content in zip((index, listing), self.index.encode(), strict=True):
            if path.stat().st_size != len(content) or path.read_bytes() != content:
                return False
        return True

    def place(self, number: int, image: str = "") -> Place:
        """The place of a found record, or of the end after the last one;
        ``image`` if another one should be there.
        """
        if number < len(self.index.offsets):
            name = self.index.names[number]
            return Place(number, self.index.offsets[number], image or name)
        return Place(number, self.index.end, image)

    def report(self) -> ShardReport:
        """The report of the shard."""
        index, listing = self.index, None
        if self._lists_records:
            offsets = array("Q", [*index.offsets, index.end])
            crcs = array("I", index.crcs)
            names = "\0".join(index.names)
            listing = Listing(offsets, crcs, names.encode())
        return ShardReport(
            self.name,
            self.findings.problems(),
            len(index.offsets),
            tuple(self.labels),
            dict(self.findings.counts),
            self.boxes,
            index.digest,
            self.is_whole,
            listing,
        )
