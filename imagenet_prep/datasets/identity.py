"""Which finished shards are those of a plan: same items, same settings, and nothing that they lie in was written to.

A shard is known by its fingerprint, which holds no file times. So images may move: from archives to folders, to a copy.
Beside it the journal has a digest of the times, and sources.json, for each shard and its times, the containers that its
split lay in, with a stamp each. The same container with another stamp may hold other images: its shards are not those
of the plan. Of images that lie elsewhere some are looked at, see moved. Versions that had file times in the fingerprint
said nothing beside it: all of it must agree.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from imagenet_prep.datasets.plan import PlannedSplit, plan_name
from imagenet_prep.errors import InputError
from imagenet_prep.model import Engine, ShardPlan
from imagenet_prep.sources.fingerprint import VERSION
from imagenet_prep.state.journal import Journal
from imagenet_prep.storage.files import load_json, save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath

if TYPE_CHECKING:
    from imagenet_prep.datasets.moved import Moved

Stamps = Mapping[str, str]
"""The stamp of each container, by its path."""


@dataclass(frozen=True, slots=True)
class _Known:
    """What sources.json keeps.

    ``containers`` by their digest; ``shards`` by name and by the times of the files that they were made from: the
    digest of the containers of their split, and with which other times the files were found to be the same ones since.
    """

    containers: dict[str, Stamps] = field(default_factory=dict)
    shards: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = field(default_factory=dict)

    def add(self, stamps: Stamps) -> str:
        """Take containers in; returns their digest."""
        digest = _digest(stamps)
        self.containers[digest] = stamps
        return digest

    def joined(self, former: str, now: str) -> str:
        """The digest of former containers together with those of now: the former stamps count."""
        missing = self.containers[now].keys() - self.containers[former].keys()
        return self.add({**self.containers[now], **self.containers[former]}) if missing else former


def recognise(
    splits: Sequence[PlannedSplit], layout: Layout, journal: Journal, engine: Engine
) -> tuple[tuple[PlannedSplit, ...], dict[str, str]]:
    """Tell the finished shards that are those of the plans from those that are not.

    Returns:
        The splits, each plan with the fingerprint under which its finished shard is on record; and the names of the
        shards on record that the plans would not make, each with what tells that its images are others, where names,
        lengths and settings are the same, else with "".

    Raises:
        InputError: an image that lies elsewhere than it did can't be read.
    """
    known = _load(layout)
    changed: dict[str, str] = {}
    moved: list[Moved] = []
    for split in splits:
        for plan in split.plans:
            info = journal.get(plan_name(plan))
            if info is None:
                continue
            if not is_begun(plan, split, journal):
                changed[info.name] = ""
            elif container := _written_to(plan, split, journal, known):
                changed[info.name] = f"only file times differ, of {container}: a copy that did not keep them?"
            elif _is_moved(plan, journal, known):
                moved.append((plan, split, info))
    if moved:
        from imagenet_prep.datasets.moved import find_others

        for name, place in find_others(moved, layout, engine).items():
            changed[name] = f"{place} has the name and the length that it had elsewhere, and other bytes"
    found = []
    for split in splits:
        infos = [(plan, journal.get(plan_name(plan))) for plan in split.plans]
        plans = tuple(
            dataclasses.replace(plan, fingerprint=info.fingerprint) if info and info.name not in changed else plan
            for plan, info in infos
        )
        found.append(dataclasses.replace(split, plans=plans))
    return tuple(found), changed


def is_begun(plan: ShardPlan, split: PlannedSplit, journal: Journal) -> bool:
    """Whether there is a shard on record that has the name, the items and the settings of a plan."""
    info, made_from = journal.get(plan_name(plan)), journal.made_from(plan_name(plan))
    if info is None:
        return False
    if made_from is None:
        return info.fingerprint == split.earlier_fingerprint(plan, has_times=True)
    if not made_from.items.startswith(VERSION):
        return made_from.items == split.earlier_fingerprint(plan, has_times=False)
    return plan.made_from is not None and made_from.items == plan.made_from.items


def _written_to(plan: ShardPlan, split: PlannedSplit, journal: Journal, known: _Known) -> str:
    """The container of a plan's items that has another stamp than it had for the shard on record, or ""."""
    made_from, now = journal.made_from(plan_name(plan)), plan.made_from
    if made_from is None or now is None or made_from.times == now.times:
        return ""
    containers = split.catalog.containers_of(split.rows(plan))
    kept = known.shards.get(plan_name(plan), {}).get(made_from.times)
    if kept is None:  # nothing tells where they lay then
        return containers[0]
    digest, also = kept
    then = {} if now.times in also else known.containers[digest]
    return next((each for each in containers if then.get(each, split.stamps[each]) != split.stamps[each]), "")


def _is_moved(plan: ShardPlan, journal: Journal, known: _Known) -> bool:
    """Whether the images of a plan lie elsewhere than for the shard on record, and nothing has proven them yet."""
    made_from, now = journal.made_from(plan_name(plan)), plan.made_from
    if made_from is None or now is None:
        return False
    _, also = known.shards.get(plan_name(plan), {}).get(made_from.times, ("", ()))
    return now.times not in (made_from.times, *also)


def remember(
    splits: Sequence[PlannedSplit], todo: Sequence[ShardPlan], layout: Layout, journal: Journal, part: str = ""
) -> None:
    """Keep where images lie, for the shards of ``todo`` that are to be made and for those that are done.

    A shard that is done is known from now on by the containers that hold its items now, too, beside the former ones.
    A rank keeps it in a ``part`` of its own.
    """
    known = _load(layout)
    kept = _Known(dict(known.containers))
    waiting = set(map(plan_name, todo))
    for split in splits:
        here = kept.add(split.stamps)
        for plan in split.plans:
            name, now, made_from = plan_name(plan), plan.made_from, journal.made_from(plan_name(plan))
            assert now is not None
            then = known.shards.get(name, {}).get(made_from.times) if made_from else None
            if name in waiting:
                kept.shards[name] = {now.times: (here, ())}
                if made_from is not None and then is not None:  # until it is made, the one that stands counts
                    kept.shards[name][made_from.times] = then
                continue
            if made_from is None:
                info, made_from = journal.get(name), now
                assert info is not None
                journal.append(info, now)
            digest, also = then or (here, ())
            also = tuple(sorted({*also, now.times} - {made_from.times}))
            kept.shards[name] = {made_from.times: (kept.joined(digest, here), also)}
    used = {digest for times in kept.shards.values() for digest, _ in times.values()}
    containers = {digest: dict(kept.containers[digest]) for digest in used}
    save_json(layout.sources_part(part), {"containers": containers, "shards": kept.shards})


def take_in_sources(layout: Layout) -> None:
    """Make one of what is kept in parts."""
    parts = layout.sources_parts()
    if parts:
        known = _load(layout)
        save_json(layout.sources_path, {"containers": known.containers, "shards": known.shards})
        for path in parts:
            path.unlink(missing_ok=True)


def _digest(stamps: Stamps) -> str:
    return hashlib.sha256(json.dumps(dict(stamps), sort_keys=True).encode()).hexdigest()


def _load(layout: Layout) -> _Known:
    """What is kept, in all parts, if it is as it was written."""
    known = _load_part(layout.sources_path)
    for path in layout.sources_parts():
        part = _load_part(path)
        known.containers.update(part.containers)
        for name, times in part.shards.items():
            known.shards[name] = {**times, **known.shards.get(name, {})}
    return known


def _load_part(path: AnyPath) -> _Known:
    try:
        kept = load_json(path)
        known = _Known({each: stamps for each, stamps in kept["containers"].items() if _digest(stamps) == each})
        for name, times in kept["shards"].items():
            known.shards[name] = {each: (digest, tuple(also)) for each, (digest, also) in times.items()}
        used = {digest for times in known.shards.values() for digest, _ in times.values()}
    except (InputError, KeyError, TypeError, ValueError, AttributeError):
        return _Known()
    return known if used <= known.containers.keys() else _Known()
