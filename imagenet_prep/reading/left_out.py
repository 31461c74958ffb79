"""LeftOut: the damaged records that a loader skips.
MappedRecords: such a loader, for Grain and loops.
"""

from __future__ import annotations

import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, SupportsIndex, TypeAlias, TypeVar

from imagenet_prep.errors import DamagedRecordError, RecordFault, UsageError
from imagenet_prep.hints import Hint

if TYPE_CHECKING:
    from imagenet_prep.reading.record import Record
    from imagenet_prep.reading.shard_set import RecordSequence

T = TypeVar("T")

OnDamagedRecord: TypeAlias = Literal["raise", "skip"]
"""The policy of a loader for a damaged record:
it raises the error, or leaves the record out and goes on.
"""


def check_policy(call: str, on_damaged: object) -> None:
    """Raise UsageError for another policy than the two."""
    if on_damaged not in ("raise", "skip"):
        raise UsageError(f"{call}(on_damaged={on_damaged!r})", "expected 'raise' or 'skip'")


def with_choice(error: DamagedRecordError, call: str) -> DamagedRecordError:
    """The error of a loader, which says how to go on past the record;
    ``call`` is the one that takes the policy.
    """
    choice = f"{call}(..., on_damaged='skip') leaves out damaged records"
    return error.with_hint(Hint(f"{choice}; ", error.hint) if error.hint else choice)


class LeftOut:
    """The damaged records that a loader left out,
    each counted once and named in one warning of Python's.
    """

    def __init__(self) -> None:
        self._faults: dict[int, RecordFault] = {}

    def add(self, number: int, fault: RecordFault, words: str) -> None:
        """Count the record ``number`` of the data set;
        ``words`` name it and say why, for the warning.
        """
        if number not in self._faults:
            self._faults[number] = fault
            warnings.warn(f"left out: {words}", stacklevel=3)

    def __contains__(self, number: int) -> bool:
        return number in self._faults

    @property
    def counts(self) -> Counter[str]:
        """The number of records by fault: "checksum", "record" or "image";
        see DamagedRecordError.
        """
        return Counter(self._faults.values())


class MappedRecords(Sequence[Any], Generic[T]):
    """``function(record)`` of every record, computed when it is asked for: a random access source
    for Grain.

    With ``on_damaged="skip"``, ``[i]`` is None for a damaged record, and iteration leaves it out.
    Grain passes None by: ``to_iter_dataset`` drops it. ``skipped`` counts such records by fault, in
    the process that read them.
    """

    def __init__(
        self, records: RecordSequence, function: Callable[[Record], T], on_damaged: OnDamagedRecord
    ) -> None:
        check_policy("map", on_damaged)
        self._records, self._function = records, function
        self._skips = on_damaged == "skip"
        self._left_out = LeftOut()

    def __repr__(self) -> str:
        return f"{self._records!r}.map({getattr(self._function, '__name__', self._function)})"

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, index: SupportsIndex | slice) -> Any:
        if isinstance(index, slice):
            return self.__getitems__(range(*index.indices(len(self))))
        number = operator.index(index)
        try:
            return self._function(self._records[number])
        except DamagedRecordError as error:
            if not self._skips:
                raise with_choice(error, ".map") from error
            self._left_out.add(number % len(self), error.fault, error.in_short)
            return None

    def __getitems__(self, indices: Iterable[SupportsIndex]) -> list[Any]:
        """Several at once."""
        return [self[index] for index in indices]

    def __iter__(self) -> Iterator[T]:
        for number in range(len(self)):
            if (value := self[number]) is not None or number not in self._left_out:
                yield value

    @property
    def skipped(self) -> Counter[str]:
        """The number of records that were left out here: "checksum", "record" or "image"."""
        return self._left_out.counts
