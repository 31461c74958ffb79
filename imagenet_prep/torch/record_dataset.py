"""RecordDataset: a sample of every record, as PyTorch's DataLoader takes them;
each data set makes its own samples.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar, overload

from torch.utils.data import Dataset, Subset

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.arguments import shown
from imagenet_prep.reading.record import Record
from imagenet_prep.reading.shard_set import RecordSequence

T = TypeVar("T", covariant=True)


class RecordDataset(Dataset[T]):
    """A map-style data set whose sample ``i`` is made of record ``i``; ``[i:j]`` is a data set of
    those samples.

    Raises:
        UsageError: records are not what ``open`` gives.
    """

    def __init__(self, records: RecordSequence) -> None:
        if not isinstance(records, RecordSequence):
            name = type(self).__name__
            folder = (
                os.fspath(records) if isinstance(records, str | os.PathLike) else "/data/imagenet"
            )
            hint = f"{name}(imagenet_prep.open({folder!r}, 'train'))"
            raise UsageError(f"{name}({shown(records)})", "expected records that open gives", hint)
        self.records = records

    def __len__(self) -> int:
        return len(self.records)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Subset[T]: ...

    def __getitem__(self, index: int | slice) -> T | Subset[T]:
        if isinstance(index, slice):
            return Subset(self, range(*index.indices(len(self))))
        return self._sample(self.records[index])

    def __getitems__(self, indices: Sequence[int]) -> list[T]:
        """Several samples at once, as PyTorch's DataLoader requests them."""
        return [self._sample(record) for record in self.records.__getitems__(indices)]

    def _sample(self, record: Record) -> T:
        raise NotImplementedError
