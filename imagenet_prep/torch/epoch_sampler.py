"""EpochSampler: the items of an epoch in order, from a place on;
all state of a Loader that is saved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from torch.utils.data import DistributedSampler

from imagenet_prep.errors import UsageError
from imagenet_prep.reading.arguments import shown, whole
from imagenet_prep.reading.shard_set import RecordSequence
from imagenet_prep.text import number_of
from imagenet_prep.torch.batches import ItemNumber, Seeded
from imagenet_prep.torch.epoch_orders import epoch_order, sampled_order
from imagenet_prep.torch.epoch_places import EpochPlace, count_batches, remainder, share
from imagenet_prep.torch.ranks import find_rank, is_divided_by_accelerate


@dataclass(frozen=True)
class EpochSettings:
    """The settings of a Loader's order and batches."""

    batch_size: int
    shuffle: bool
    window: int
    drop_last: bool
    in_order: bool


class EpochSampler(DistributedSampler[int]):
    """The items of an epoch: those of this rank for its Loader, those of all ranks for another
    DataLoader.

    accelerate divides the batches of a DataLoader itself. Lightning does too, except where the
    sampler is a DistributedSampler, whose ``set_epoch`` it calls. It holds no Loader, so that
    workers end with their Loader.
    """

    def __init__(
        self, seeded: Seeded, order: Iterable[int] | None, settings: EpochSettings
    ) -> None:
        # not DistributedSampler's, which asks for the rank at once: a process group may be made
        # later
        self.dataset = seeded.dataset
        self.order = order
        self.settings = settings
        self.shuffle = settings.shuffle
        self.seed = seeded.settings.seed
        self.drop_last = settings.drop_last
        self.place = EpochPlace()
        self._given_ranks = seeded.settings.ranks
        counted = self.dataset if order is None else order
        self._count = len(counted)  # type: ignore[arg-type]
        self._is_loaded = False
        self._epoch_set: int | None = None  # the latest of set_epoch
        self._divided_from: EpochPlace | None = None
        seeded.sampler = self
        world = 1  # the process may have more ranks later
        if self._given_ranks:
            _, world = self._given_ranks
        self.check_count(world)

    # ranks ----------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:  # type: ignore[override]
        """This rank."""
        rank, _ = self._ranks
        return rank

    @property
    def num_replicas(self) -> int:  # type: ignore[override]
        """The number of ranks."""
        _, world = self._ranks
        return world

    @property
    def _ranks(self) -> tuple[int, int]:
        return self._given_ranks or find_rank()

    @property
    def epoch(self) -> int:  # type: ignore[override]
        """The current epoch."""
        return self.place.epoch

    # places ---------------------------------------------------------------------------------------

    def begin(self) -> EpochPlace:
        """The place where the next iteration starts:
        that of a state just loaded, or the start of an epoch.
        """
        self.check_count()
        if self._is_loaded:
            return self._for_this_rank(self.place)
        batches_given = self.place.given
        # all batches were given, even if nobody asked for one more and met the end
        is_over = batches_given > 0 and batches_given >= self._count_batches(self.place)
        epoch = self.place.epoch
        if is_over:
            epoch += 1
        start = EpochPlace(epoch)
        return self._for_this_rank(start)

    def move(self, place: EpochPlace) -> None:
        """Go to a place, which an iteration has reached."""
        self.place = place
        self._is_loaded = False

    def set_epoch(self, epoch: int) -> None:
        """Start this epoch next; the current one keeps its place.
        UsageError: it is no whole number, or a loaded state is ahead of it.
        """
        epoch = whole("set_epoch(", epoch, 0)
        if self._is_loaded and epoch == self._epoch_set and not self.place.is_start:
            return  # the loaded place is ahead where Lightning repeats a loader within its epoch
        if self._is_loaded and epoch < self.place.epoch:
            raise UsageError(
                f"set_epoch({epoch}) after a state of epoch {self.place.epoch} was loaded",
                "expected that epoch or a later one",
                f"start the loop at the loaded epoch: for epoch in range({self.place.epoch}, ...); "
                "with Fabric or accelerate, which count from 0, loop over the Loader itself, or "
                "call accelerate's set_epoch",
            )
        self._epoch_set = epoch
        has_all_batches = self.place.given >= self._count_batches(self.place)
        is_over = has_all_batches and not self._is_loaded
        if epoch != self.place.epoch or is_over:
            start = EpochPlace(epoch)
            self.move(start)

    # The next two are not called state_dict and load_state_dict: torchdata would save and skip
    # batches with both.

    def save_place(self) -> dict[str, Any]:
        """The place and the settings, as values for JSON."""
        place = self.place
        if place.is_start:
            place = self._for_this_rank(place)
        state: dict[str, Any] = {
            "epoch": place.epoch,
            "epoch_set": self._epoch_set,
            "given": place.given,
            "before": [list(part) for part in place.before],
        }
        if place.rank is not None:
            state["rank"] = place.rank
            state["ahead"] = sorted(place.ahead)
        state |= self._described
        state["batch_size"] = place.batch_size
        state["world"] = place.world
        return state

    def load_place(self, state: Any) -> None:
        """Start the next iteration at the place of ``save_place``. Raises UsageError."""
        if not isinstance(state, Mapping):
            raise _not_saved(f"it is {shown(state)}")
        self._refuse_other_settings(state)
        epoch = _number_in(state, "epoch", 0)
        batches_given = _number_in(state, "given", 0)
        world = _number_in(state, "world", 1)
        batch_size = _number_in(state, "batch_size", 1)
        earlier_parts = [_earlier_part(part) for part in _list_in(state, "before")]
        batches_ahead = [_whole_in("ahead", batch, 0) for batch in _list_in(state, "ahead")]
        is_of_rank = batches_ahead or state.get("rank") is not None
        rank = _number_in(state, "rank", 0) if is_of_rank else None
        place = EpochPlace(
            epoch=epoch,
            given=batches_given,
            world=world,
            batch_size=batch_size,
            before=tuple(earlier_parts),
            ahead=frozenset(batches_ahead),
            rank=rank,
        )
        self._refuse_beyond_epoch(place)
        self.place = place
        self._is_loaded = True
        self._epoch_set = state.get("epoch_set")

    def _refuse_other_settings(self, state: Mapping[str, Any]) -> None:
        """Raise UsageError for the state of another data set, or of other settings."""
        for name, setting in self._described.items():
            if state.get(name) == setting:
                continue
            saved = f"{name}={shown(_value_in(state, name))}"
            hint = f"make the Loader with {saved}"
            if name in ("records", "sampler"):
                hint = "make the Loader with the data set and the sampler of the state"
            raise UsageError(
                f"the state is of a Loader with {saved}, this one has {name}={shown(setting)}",
                "expected the same data set and settings",
                hint,
            )

    def _refuse_beyond_epoch(self, place: EpochPlace) -> None:
        """Raise UsageError for a place with batches that its epoch does not have."""
        count = self._count_batches(place)
        if place.given > count:
            raise _wrong("given", place.given)
        last_ahead = max(place.ahead, default=-1)
        if last_ahead >= count:
            raise _wrong("ahead", last_ahead)

    @property
    def _described(self) -> dict[str, Any]:
        settings = self.settings
        sampler: str | None = None
        if self.order is not None:
            sampler = type(self.order).__name__
        return {
            "records": self._count,
            "shuffle": settings.shuffle,
            "window": settings.window,
            "seed": self.seed,
            "drop_last": settings.drop_last,
            "sampler": sampler,
        }

    def _current_place(self) -> EpochPlace:
        """The place of this rank; the start of the epoch, if the number of ranks changed since."""
        place = self.place
        is_current = self._is_loaded or place.world == self.num_replicas
        if not is_current:
            place = EpochPlace(place.epoch)
        return self._for_this_rank(place)

    def _for_this_rank(self, place: EpochPlace) -> EpochPlace:
        rank, world = self._ranks
        place = place.for_ranks(rank, world, self.settings.batch_size)
        keeps_order = self.settings.in_order and not place.ahead
        return replace(place, rank=None if keeps_order else rank)

    # counts ---------------------------------------------------------------------------------------

    def check_count(self, world: int | None = None) -> None:
        """Raise UsageError if there are too few records for one batch of each rank."""
        size = self.settings.batch_size
        drop_last = self.drop_last
        if world is None:
            world = self.num_replicas
        count = share(self._count, world, drop_last=drop_last)
        batches = count_batches(count, size, drop_last=drop_last)
        if self._count and not batches:
            records = number_of(self._count, "record")
            ranks = number_of(world, "rank")
            hint = "give Loader drop_last=False"
            if count:
                hint += ", or a smaller batch_size"
            raise UsageError(
                f"{records} for {ranks}: no batch of {size:,}",
                "expected one batch at least for each rank",
                hint,
            )

    def _count_batches(self, place: EpochPlace) -> int:
        numbers = remainder(range(self._count), place.before, drop_last=self.drop_last)
        count = share(len(numbers), place.world, drop_last=self.drop_last)
        return count_batches(count, place.batch_size, drop_last=self.drop_last)

    # iteration ------------------------------------------------------------------------------------

    @contextmanager
    def divided(self, place: EpochPlace | None = None) -> Iterator[None]:
        """Within, iteration gives the items of this rank from a place on,
        and the length is that of its epoch.
        """
        previous = self._divided_from
        if place is None:
            place = self._current_place()
        self._divided_from = place
        try:
            yield
        finally:
            self._divided_from = previous

    def __len__(self) -> int:
        all_numbers = range(self._count)
        place = self._divided_from
        if place is None:
            earlier_parts = self._undivided_before()
            numbers = remainder(all_numbers, earlier_parts, drop_last=self.drop_last)
            return len(numbers)
        numbers = remainder(all_numbers, place.before, drop_last=self.drop_last)
        return share(len(numbers), place.world, drop_last=self.drop_last)

    def __iter__(self) -> Iterator[int]:
        if self._divided_from is not None:
            return self._items_of_rank(self._divided_from)
        if self.num_replicas > 1 and not is_divided_by_accelerate():
            raise UsageError(
                "the sampler of a Loader is used without the Loader: "
                f"each of {self.num_replicas} ranks would get all records",
                "expected the Loader or accelerate, which divide the records",
                "iterate over the Loader itself, or over accelerator.prepare(loader)",
            )
        epoch = self.place.epoch
        whole_order = self._order(epoch)
        order = remainder(whole_order, self._undivided_before(), drop_last=self.drop_last)
        return (ItemNumber(int(number), epoch) for number in order)

    def _items_of_rank(self, place: EpochPlace) -> Iterator[int]:
        whole_order = self._order(place.epoch)
        order = remainder(whole_order, place.before, drop_last=self.drop_last)
        count = share(len(order), place.world, drop_last=self.drop_last)
        start = self.rank * count
        size = place.batch_size
        for position in range(place.given * size, count):
            batch = position // size
            if batch not in place.ahead:
                number = order[(start + position) % len(order)]
                yield ItemNumber(int(number), place.epoch, batch)

    def _undivided_before(self) -> Sequence[tuple[int, int]]:
        """The parts of the epoch that a loaded state leaves out."""
        if not self._is_loaded:
            return ()
        place = self.place.for_ranks(0, 1, self.settings.batch_size)
        records_given = place.given * place.batch_size
        return (*place.before, (1, records_given))

    def _order(self, epoch: int) -> Any:
        settings = self.settings
        if self.order is not None:
            order = sampled_order(self.order, seed=self.seed, epoch=epoch)
            count = len(order)
            if count != self._count:
                numbers = number_of(count, "number")
                raise UsageError(
                    f"the sampler gave {numbers}, its length is {self._count}",
                    "expected as many numbers as its length says",
                )
            return order
        if not settings.shuffle:
            return range(self._count)
        records = getattr(self.dataset, "records", self.dataset)
        starts: Sequence[int] = [0, self._count]
        if isinstance(records, RecordSequence):
            starts = records.starts
        return epoch_order(starts, seed=self.seed, epoch=epoch, window=settings.window)


# saved states -------------------------------------------------------------------------------------


def _not_saved(what: str) -> UsageError:
    """The error for a state that no Loader gave as it is; ``what`` says what is wrong with it."""
    expected = "expected the dictionary that state_dict gave, unchanged"
    return UsageError(f"the state can't be loaded: {what}", expected)


def _wrong(key: str, value: object) -> UsageError:
    """The error for a key of a saved state that holds a wrong value."""
    return _not_saved(f"its key {key!r} holds {shown(value)}")


def _value_in(state: Mapping[str, Any], key: str) -> Any:
    """A value of a saved state; raises UsageError if there is none."""
    if key not in state:
        raise _not_saved(f"it has no key {key!r}")
    return state[key]


def _number_in(state: Mapping[str, Any], key: str, least: int) -> int:
    """A whole number of a saved state; raises UsageError for anything else."""
    return _whole_in(key, _value_in(state, key), least)


def _whole_in(key: str, value: object, least: int) -> int:
    """A whole number in a key of a saved state; raises UsageError for anything else."""
    try:
        return whole("", value, least)
    except UsageError:
        raise _wrong(key, value) from None


def _list_in(state: Mapping[str, Any], key: str) -> list[Any]:
    """A list of a saved state; raises UsageError for anything else."""
    values = state.get(key, [])
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise _wrong(key, values)
    return [*values]


def _earlier_part(part: object) -> tuple[int, int]:
    """A number of ranks, and the records that each was given; raises UsageError for no pair."""
    if isinstance(part, str) or not isinstance(part, Sequence) or len(part) != 2:
        raise _wrong("before", part)
    ranks, records = part
    return _whole_in("before", ranks, 1), _whole_in("before", records, 0)
