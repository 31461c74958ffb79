"""Replacement: the files of an older set that give way to a new plan,
listed before the first of them is removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import ShardInfo
from imagenet_prep.state.journal import Journal, is_as_written, journal_parts, sealed_line
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.storage.files import claim, find_plain
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.refusals import writing

Identity = tuple[int, int, int]
"""Size in bytes, modification time in ns and inode of a file:
a file of the same name made later has another one.
"""


class Replacement(Struct, frozen=True):
    """The shards that a generation replaces, and the journals of the older generations.

    ``shards`` holds the identity of each old shard by name, ``journals`` the names of the journals'
    files. The list is durable before the new plan, and it stays until every file on it is gone. So
    a killed replacement resumes, and a shard that the new generation has already made is never
    removed. In a copy of the folder each file has another identity: there the size tells a shard
    that the new plan does not have.
    """

    shards: Mapping[str, Identity]
    journals: tuple[str, ...]

    @classmethod
    def plan_or_continue(
        cls, layout: Layout, names: Collection[str], pending: Replacement | None
    ) -> Replacement | None:
        """The replacement of these shards: the pending one, if it lists them all; None for none."""
        if pending is not None and pending.shards.keys() >= set(names):
            return pending
        return cls.plan(layout, names) if names else None

    @classmethod
    def plan(cls, layout: Layout, names: Iterable[str]) -> Replacement:
        """The replacement of these shards as they are now; nothing is written."""
        journals = tuple(path.name for path in journal_parts(layout.journal_path))
        shards: dict[str, Identity] = {}
        for name in sorted(names):
            with contextlib.suppress(FileNotFoundError):
                shards[name] = identity_of(layout.shard_path(name))
        return cls(shards, journals)

    @classmethod
    def pending(cls, layout: Layout, plan_on_disk: Plan | None, plan: Plan) -> Replacement | None:
        """The replacement that a killed run or another rank left, if the plan continues it.

        Raises:
            InputError: as for ``find``.
        """
        if plan_on_disk is None or plan_on_disk.fingerprints != plan.fingerprints:
            return None
        return cls.find(layout, plan_on_disk)

    @classmethod
    def find(cls, layout: Layout, plan: Plan) -> Replacement | None:
        """The unfinished replacement by this plan; None if there is none.

        Raises:
            InputError: its file is damaged.
        """
        path = layout.replaced_path(plan.generation)
        content = find_plain(path) if plan.generation else None
        if content is None:
            return None
        if not is_as_written(content):
            raise InputError(
                f"{path} has changed since it was written",
                "expected the list of the shards that --overwrite replaces",
                Hint("remove it and run the same ", mention("convert"), " again with --overwrite"),
            )
        fields = json.loads(content)
        return cls(convert(fields["shards"], dict[str, Identity]), tuple(fields["journals"]))

    def claim(self, layout: Layout, generation: str) -> None:
        """Make the list durable; the list of another process that was first counts instead."""
        claim(layout.replaced_path(generation), sealed_line(to_builtins(self)))

    def remaining(self, layout: Layout, plan: Plan) -> list[str]:
        """The listed shards that are still there;
        of those that the plan does not have also copies.
        """
        planned = plan.fingerprints_by_name()
        remaining = []
        for name in sorted(layout.find_shards().keys() & self.shards.keys()):
            identity = self.shards[name] if name in planned else self.shards[name][:1]
            if is_same(layout.shard_path(name), identity):
                remaining.append(name)
        return remaining

    def finish(self, layout: Layout, plan: Plan, *, is_locked: bool) -> None:
        """Remove the listed files that are still the listed ones, then the list itself.

        Indexes go first: a shard without an index does not count as done. Entries of shards that
        the plan keeps stay in the journal. Only who holds the locks removes copies: another plan
        may have been claimed and finished since.

        Raises:
            WriteError: the storage failed.
        """
        self._remove_indexes(layout, plan, is_locked=is_locked)
        self._rewrite_journal(layout, plan)
        for name, identity in self.shards.items():
            remove_if_same(layout.shard_path(name), identity)
        for name in self.remaining(layout, plan):
            if not is_locked:
                return
            _remove(layout.shard_path(name))
        layout.shards.sync_names()
        _remove(layout.replaced_path(plan.generation))

    def _remove_indexes(self, layout: Layout, plan: Plan, *, is_locked: bool) -> None:
        """Remove the indexes of the listed shards,
        and with the locks those of shards that are not planned.
        """
        planned = plan.fingerprints_by_name()
        for index_name in layout.indexes.list() if is_locked else ():
            shard = index_name.rpartition(".")[0]
            if shard not in planned:
                _remove(layout.index_dir / index_name)
        for name, identity in self.shards.items():
            if is_same(layout.shard_path(name), identity):
                for path in layout.index_paths(name):
                    _remove(path)
        if layout.index_dir.exists():
            layout.indexes.sync_names()

    def _rewrite_journal(self, layout: Layout, plan: Plan) -> None:
        """Keep the entries of shards that stay in the main journal,
        and remove the older generations' other ones.
        """
        old_parts = [layout.journal_path.with_name(name) for name in self.journals]
        kept = self._kept_entries(layout, old_parts, plan)
        Journal.rewrite(layout.journal_path, kept)
        for path in old_parts:
            if path != layout.journal_path:
                _remove(path)

    def _kept_entries(
        self, layout: Layout, parts: Collection[AnyPath], plan: Plan
    ) -> list[ShardInfo]:
        """The entries of planned shards, except of those whose listed file is still there."""
        planned = plan.fingerprints_by_name()
        entries = Journal.entries(parts)
        stays = (info for info in entries if planned.get(info.name) == info.fingerprint)
        return [info for info in stays if not self._is_listed(layout, info.name)]

    def _is_listed(self, layout: Layout, name: str) -> bool:
        identity = self.shards.get(name)
        return identity is not None and is_same(layout.shard_path(name), identity)


def remove_other_lists(layout: Layout, plan: Plan) -> None:
    """Remove the lists of other generations: their shards are on the list of this one, or gone."""
    own_list = layout.replaced_path(plan.generation)
    for path in own_list.parent.glob("replaced-*.json"):
        if path.name != own_list.name:
            _remove(path)


def next_generation(plan_on_disk: Plan | None, plan: Plan) -> str:
    """The generation of a plan that replaces another: the same for every process that was given
    --overwrite.

    It does not depend on the shards that are still there: another rank may be removing them.
    """
    keys = (plan_on_disk.key if plan_on_disk else "", replace(plan, generation="").key)
    return hashlib.sha256("\n".join(keys).encode()).hexdigest()[:16]


def identity_of(path: AnyPath) -> Identity:
    """The identity of a file; raises OSError."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns, status.st_ino


def is_same(path: AnyPath, identity: Sequence[int]) -> bool:
    """Whether a file is still the one with this identity, or with its first values."""
    try:
        return identity_of(path)[: len(identity)] == tuple(identity)
    except (FileNotFoundError, NotADirectoryError):
        return False


def remove_if_same(path: AnyPath, identity: Identity) -> None:
    """Remove a file, unless another one has its name now."""
    if is_same(path, identity):
        _remove(path)


def _remove(path: AnyPath) -> None:
    with writing(path), contextlib.suppress(FileNotFoundError):
        path.unlink()
