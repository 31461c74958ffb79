"""RawSet: the records that convert would write,
made from the raw data in place, each on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from imagenet_prep.datasets.planned_set import PlannedSplit
from imagenet_prep.errors import DamagedRecordError, UsageError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.model import Box
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.reading.values import Conventions
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.recorders.recorder import Recorded, Recorder
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.slices import Buffer, Gone, Row, gone
from imagenet_prep.state.numbering import Numbering


class RawSet(RecordSequence):
    """The records of one split, byte for byte those of the shards that convert would make, in the
    same order.

    It is a sequence like ShardSet. ``starts`` are those of the shards that would be made: a Loader
    gives the same batches for either. Order and repairs are convert's. An image is checked by its
    header, as by convert with ``check`` "header", and decoded only if it has to be encoded again.
    Consecutive records are scattered over the archives, so reading in order is random access.

    Archives are mapped on first use, and no file stays open. Several threads can share a set, also
    after a fork. A pickled set has about 70 bytes per image, and lists nothing again after
    unpickling: it holds the listing.

    Raises:
        IndexError: no record has this number.
        InputError: an archive or a file is gone or has changed in size, or the image of a record is
            damaged: the error names file and place.
        UsageError: the split is in a file that can only be read in its order.
    """

    def __init__(
        self, planned: PlannedSplit, numbering: Numbering, lists: frozenset[str], unlabelled: int
    ) -> None:
        catalog = planned.catalog
        super().__init__(catalog.split)
        for container in catalog.containers:
            if isinstance(container, Gone):
                raise gone(container.path)
            if container.read_order == "in order":
                raise UsageError(
                    f"the images in {container.path} can only be read one after another",
                    "expected tars that are not compressed, zips or folders",
                    Hint("make shards with ", mention("convert"), ", and open the shards"),
                )
        self._numbering = numbering
        self.unlabelled = unlabelled
        self._place = str(planned.source)
        self._catalog, self._recorder = catalog, planned.recorder.of_headers()
        self._lists = lists
        self._starts = [0, *(plan.stop for plan in planned.plans)]
        self._opened: dict[int, Callable[[Row], Buffer]] = {}

    def __repr__(self) -> str:
        return self._described(self._place)

    def _count_shards(self) -> int:
        return len(self._find_starts()) - 1

    def _find_starts(self) -> list[int]:
        assert self._starts is not None, "known from the beginning"
        return self._starts

    def _record(self, shard_number: int, number: int) -> Record:
        row = self._find_starts()[shard_number] + number
        conventions = Conventions(self._lists, self.first_label)
        return RawRecord(self._catalog, row, self._recorder, self._opened, conventions)

    def _records(self, shard_number: int) -> Iterator[Record]:
        start, stop = self._find_starts()[shard_number : shard_number + 2]
        return (self._record(shard_number, number) for number in range(stop - start))


class RawRecord(Record):
    """A record that is made on first use; values from the listing need no access to the image.

    ``shard`` is the archive or folder that holds the image, ``offset`` its start there, ``number``
    that of the record in the split. ``encoded`` is a view of the archive if the image is unchanged;
    ``data`` is a copy.
    """

    __slots__ = ("_catalog", "_is_known", "_item", "_opened", "_recorded", "_recorder", "_row")

    def __init__(
        self,
        catalog: Catalog,
        row: int,
        recorder: Recorder,
        opened: dict[int, Callable[[Row], Buffer]],
        conventions: Conventions,
    ) -> None:
        # Not Record's own: ``data`` stays unset until it is needed.
        path = catalog.container(row).path
        self._source = Shard(path, memoryview(b""), "none", conventions=conventions)
        self.number = row
        self.offset = int(catalog.offsets[row])
        self._catalog = catalog
        self._row = row
        self._recorder = recorder
        self._opened = opened
        self._item = catalog.item(row)
        self._recorded: Recorded | None = None
        self._image = self._head = None
        self._is_known = False
        if isinstance(recorder, InceptionRecorder):
            self._is_known = not recorder.upright and self._item.label > 0
            if self._is_known:
                label = recorder.numbered(self._item).label
                words = (label, self._item.wnid, self._item.text)
                self._head = (words, 0, None)

    def __getattr__(self, name: str) -> Any:
        """The data, built on first use."""
        if name != "data":
            raise AttributeError(f"a record has no {name!r}", name=name, obj=self)
        self.data = memoryview(b"".join(self._make().parts))
        return self.data

    def __repr__(self) -> str:
        return f"<record {self.number}, {self.place}>"

    @property
    def filename(self) -> str:
        """The name of the image's file."""
        return self._item.filename if self._is_known else super().filename

    @property
    def boxes(self) -> tuple[Box, ...]:
        """Its boxes, relative to the image."""
        return self._item.boxes if self._is_known else super().boxes

    @property
    def encoded(self) -> memoryview:
        """The image's file, a JPEG."""
        return memoryview(self._make().parts[1]) if self._is_known else super().encoded

    @property
    def place(self) -> str:
        """The image's name, and its file and byte."""
        return f"{self._item.filename} ({self._catalog.place(self._row)})"

    def _make(self) -> Recorded:
        if self._recorded is None:
            image = self._read_image()
            try:
                self._recorded = self._recorder.record(self._item, image)
            except ImageError as error:
                raise self._damaged(f"{self.place} can't be converted", error) from error
        return self._recorded

    def damaged_image(self, error: ImageError, what: str) -> DamagedRecordError:
        """The error for the image, whose file is to be replaced: verify looks at shards alone."""
        return self._damaged(what, error)

    def _damaged(self, what: str, error: ImageError) -> DamagedRecordError:
        container = self._catalog.container(self._row)
        file = "the image's file" if container.read_order == "alone" else self.shard
        name = self._item.filename
        hint = error.remedy or f"get a sound copy of {file}"
        return DamagedRecordError.of("image", self.number, name, what, str(error), hint)

    def _read_image(self) -> Buffer:
        container_id = int(self._catalog.container_ids[self._row])
        read = self._opened.get(container_id)
        if read is None:  # two threads may be here at once: either map will do
            read = self._opened[container_id] = self._catalog.containers[container_id].open()
        return read(self._catalog.row(self._row))
