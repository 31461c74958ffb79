"""read_written: the index of a finished shard, if it agrees with the shard's entry.
Which shards of a set are done.
"""

from __future__ import annotations

import contextlib
import itertools
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.images.prepare import TURNED, count_changes
from imagenet_prep.model import ShardInfo
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.files import find_plain
from imagenet_prep.storage.layout import Layout, split_of
from imagenet_prep.storage.location import local_or_none
from imagenet_prep.tfrecord.framing import FOOTER, Index, decode, decode_index, decode_listing

_LINE = 42  # two numbers of up to 20 digits, a space, a newline
_NAME_LINE = 4106  # a CRC of 8 digits, a space, a path of up to 4,096 bytes, a newline


def read_index(layout: Layout, name: str, records: int) -> Index | None:
    """The index of a shard; None if a file of it is missing, or differs from the written form in
    any byte.

    Files that are too long for ``records`` records are not read.

    Raises:
        InputError: the disk or the permissions prevent reading.
    """
    contents = []
    for path, line in zip(layout.index_paths(name), (_LINE, _NAME_LINE), strict=True):
        try:
            content = find_plain(path, (2 * records + 1000) * line)
        except InputError as error:
            if isinstance(error.__cause__, OSError):
                raise
            return None
        if content is None:
            return None
        contents.append(content)
    return decode(*contents)


def read_written(layout: Layout, info: ShardInfo) -> Index | None:
    """The index that was written with a shard, which gives the digest of this entry;
    None otherwise.
    """
    with contextlib.suppress(InputError):
        index = read_index(layout, info.name, info.records)
        if index and (index.digest, len(index.lengths)) == (info.digest, info.records):
            return index
    return None


def index_damage(layout: Layout, info: ShardInfo) -> str:
    """Which file of the index that was written with a shard is damaged or missing, as a clause."""
    files = layout.index_paths(info.name)
    damaged_files: list[str] = []
    for path, count in zip(files, (_count_offsets, _count_names), strict=True):
        records = None
        with contextlib.suppress(InputError):
            records = count(find_plain(path, (2 * info.records + 1000) * _NAME_LINE) or b"")
        if records != info.records:
            damaged_files.append(str(path))
    if not damaged_files:
        return f"{files[0]} or {files[1]} is damaged"
    verb = "is" if len(damaged_files) == 1 else "are"
    return f"{' and '.join(damaged_files)} {verb} damaged or missing"


def _count_offsets(content: bytes) -> int | None:
    """The number of records in an ``.idx``; None if it can't be understood."""
    edges = decode_index(content)
    return None if edges is None else len(edges) - 1


def _count_names(content: bytes) -> int | None:
    """The number of records in a ``.list``; None if it can't be understood."""
    records = decode_listing(content)
    return None if records is None else len(records[1])


def agrees(layout: Layout, info: ShardInfo) -> bool:
    """Whether the index of a shard exists and gives the digest of this entry."""
    return read_written(layout, info) is not None


def is_indexed(layout: Layout, info: ShardInfo, names: Sequence[str]) -> bool:
    """Whether the index of a shard is the one written for these images: it gives the recorded
    digest, and on a disk the shard ends with its last record.
    """
    written = read_written(layout, info)
    if written is None:
        return False
    offsets = [0, *itertools.accumulate(written.lengths[:-1])]
    if (written.offsets, written.names) != (offsets[: len(names)], names):
        return False
    is_local = local_or_none(layout.output_dir) is not None  # a store would be asked once a shard
    return not is_local or ends_like(layout, info, written)


# the shards of a set that several runs make together ----------------------------------------------


def settle(layout: Layout, journal: Journal, planned_fingerprints: Collection[str] = ()) -> None:
    """For a shard with different entries in a journal's parts, choose the entry that agrees with
    its index.

    If several agree, an entry whose fingerprint is in ``planned_fingerprints`` is chosen.
    """
    for infos in journal.rivals().values():
        proven_infos = [info for info in infos if agrees(layout, info)]
        if proven_infos:
            journal.choose(
                max(proven_infos, key=lambda info: info.fingerprint in planned_fingerprints)
            )


def not_done(
    layout: Layout, planned: Manifest, journal: Journal | Mapping[str, ShardInfo]
) -> list[str]:
    """The shards of a planned set that are not done, by their entries in the journal,
    and as they are there.
    """
    unfinished: list[str] = []
    for name, planned_info in planned.shards.items():
        info = journal.get(name)
        is_planned = info is not None and info.fingerprint == planned_info.fingerprint
        if info is None or not is_planned or not _stands(layout, info):
            unfinished.append(name)
    return unfinished


def _stands(layout: Layout, info: ShardInfo) -> bool:
    """Whether a shard is there as its entry says: its size, its index, and its last record."""
    if layout.shards.size(info.name) != info.size:
        return False
    written = read_written(layout, info)
    return written is not None and ends_like(layout, info, written)


def ends_like(layout: Layout, info: ShardInfo, written: Index) -> bool:
    """Whether the last record of a shard is that of its index: sets with other labels may have
    equal sizes.

    A compressed shard ends with other bytes, which are not compared.
    """
    if info.file_digest or not written.crcs:
        return True
    place = info.size - FOOTER.size, info.size
    try:
        (footer,) = layout.shards.read_ranges(info.name, [place])
    except (InputError, OSError):  # it is gone since its size was asked
        return False
    return bytes(footer) == FOOTER.pack(written.crcs[-1])


def filled(planned: Manifest, journal: Journal) -> Manifest:
    """The manifest of a planned set, once all its shards are made."""
    infos = {name: info for name in planned.shards if (info := journal.get(name))}
    images: defaultdict[str, int] = defaultdict(int)
    warned: defaultdict[str, int] = defaultdict(int)
    repairs: defaultdict[str, list[str]] = defaultdict(list)
    for name, info in infos.items():
        split = split_of(name)
        images[split] += info.records
        warned[split] += len(info.warned)
        repairs[split] += info.repairs
    turned: dict[str, int] = {}
    for split, repair_texts in repairs.items():
        count = count_changes(repair_texts)[TURNED]
        if count:
            turned[split] = count
    totals = {
        split: replace(total, images=images[split], warned=warned[split])
        for split, total in planned.totals.items()
    }
    dataset = replace(planned.dataset, turned=turned)
    return replace(planned, dataset=dataset, totals=totals, shards=infos)
