"""RawSet: the records that convert would write, made of the raw data where it lies, each when it is asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from imagenet_prep.datasets.plan import InceptionRecorder, PlannedSplit, Recorded, Recorder
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.model import Box
from imagenet_prep.reading.shard import Record, Shard
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.consumption import Gone, gone
from imagenet_prep.sources.slices import Buffer, Row


class RawSet(RecordSequence):
    """The records of one split, byte for byte those of the shards that convert would make, in the same order.

    It is a sequence as ShardSet is one. ``starts`` are those of the shards that would be made: a Loader gives the same
    batches of either. Order and repairs are convert's; an image is looked at by its header, as by convert with
    ``check`` "header", and decoded only where it has to be encoded again. Neighbours in order lie anywhere in the
    archives, so that reading them all in order is reading at random.

    Archives are mapped when they are first read, and no file stays open. A set can be used by several threads and after
    a fork. Pickled, it takes about 70 bytes an image, and lists nothing again where it is unpickled: it holds what was
    listed.

    Raises:
        IndexError: there is no record of this number.
        InputError: an archive or a file is gone or not as long as it was; or, of a record, its image is damaged: the
            error names file and place.
        UsageError: the split lies in a file that can only be read in its order.
    """

    def __init__(self, planned: PlannedSplit, first_label: int) -> None:
        catalog = planned.catalog
        super().__init__(catalog.split)
        for container in catalog.containers:
            if isinstance(container, Gone):
                raise gone(container.path)
            if container.reading == "in order":
                what = f"{container.path} can't be read at random: each image costs all that is before it in the file"
                hint = "imagenet-prep convert it, and open its shards"
                raise UsageError(what, "expected tars that are not compressed, zips or folders", hint)
        self.first_label = first_label
        self._place = str(planned.source)
        self._catalog, self._recorder = catalog, _by_headers(planned.recorder)
        self._starts = [0, *(plan.stop for plan in planned.plans)]
        self._opened: dict[int, Callable[[Row], Buffer]] = {}

    def __repr__(self) -> str:
        return self._described(self._place)

    def _count_shards(self) -> int:
        return len(self._find_starts()) - 1

    def _find_starts(self) -> list[int]:
        assert self._starts is not None, "known from the beginning"
        return self._starts

    def _record(self, which: int, number: int) -> Record:
        at = self._find_starts()[which] + number
        return RawRecord(self._catalog, at, at, self._recorder, self._opened)

    def _records(self, which: int) -> Iterator[Record]:
        starts = self._find_starts()
        return (self._record(which, number) for number in range(starts[which + 1] - starts[which]))


class RawRecord(Record):
    """A record that is made when it is asked for: what the listing tells costs no look at the image.

    ``shard`` is the archive or folder that holds the image, ``offset`` where it begins there, ``number`` that of the
    record in the split. ``encoded`` is a view of an archive where the image is taken as it is; ``data`` are a copy.
    """

    __slots__ = ("_catalog", "_is_known", "_item", "_opened", "_recorded", "_recorder", "_row")

    def __init__(
        self, catalog: Catalog, row: int, number: int, recorder: Recorder, opened: dict[int, Callable[[Row], Buffer]]
    ) -> None:
        # Not Record's own: ``data`` stay unset until they are asked for.
        self._source = Shard(catalog.container(row).path, memoryview(b""), "none")
        self.number, self.offset = number, int(catalog.offsets[row])
        self._catalog, self._row, self._recorder, self._opened = catalog, row, recorder, opened
        self._item = catalog.item(row)
        self._recorded: Recorded | None = None
        self._image = self._head = None
        self._is_known = isinstance(recorder, InceptionRecorder) and not recorder.upright and self._item.label > 0
        if isinstance(recorder, InceptionRecorder) and self._is_known:
            self._head = (recorder.numbered(self._item).label, self._item.wnid, self._item.text), 0, None

    def __getattr__(self, name: str) -> Any:
        """The data, put together when they are first asked for."""
        if name != "data":
            raise AttributeError(f"a record has no {name!r}", name=name, obj=self)
        self.data = memoryview(b"".join(self._make().parts))
        return self.data

    def __repr__(self) -> str:
        return f"<record {self.number}, {self._where}>"

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
    def _where(self) -> str:
        return f"{self._item.filename} ({self._catalog.place(self._row)})"

    def _make(self) -> Recorded:
        if self._recorded is None:
            image = self._read_image()
            try:
                self._recorded = self._recorder.record(self._item, image)
            except ImageError as error:
                hint = f"get a sound copy of {self.shard}"
                raise InputError(f"{self._where} is damaged", str(error), hint) from error
        return self._recorded

    def _read_image(self) -> Buffer:
        which = int(self._catalog.container_ids[self._row])
        read = self._opened.get(which)
        if read is None:  # two threads may come here at once: either's map will do
            read = self._opened[which] = self._catalog.containers[which].open()
        return read(self._catalog.row(self._row))


def _by_headers(recorder: Recorder) -> Recorder:
    """What makes the same records without decoding images to prove them: whoever trains decodes them all the same."""
    return dataclasses.replace(recorder, check="header") if isinstance(recorder, InceptionRecorder) else recorder
