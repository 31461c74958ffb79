"""SetState: what a folder of shards holds, read once from plan, journals, manifest and the sizes of
the shards.

Every command asks it. Nothing else decides from the mere presence of a manifest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command, mention
from imagenet_prep.hints import Hint
from imagenet_prep.model import Problem, ProblemKind, ShardInfo
from imagenet_prep.state.indexes import settle
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import REWRITE, Manifest
from imagenet_prep.state.plan_file import Plan
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.files import IN_WORDS, kind_in_words, names_in
from imagenet_prep.storage.layout import (
    MAX_SHARDS,
    Layout,
    by_number,
    grown_from,
    shard_name,
    split_of,
)
from imagenet_prep.text import number_of

StateKind = Literal[
    "nothing", "foreign", "part", "replacing", "unfinished", "finished", "contradictory"
]

RESUME = Hint(
    "run the same ",
    mention("convert"),
    " again: it makes what is missing; if an image could not be converted, mend the image first, "
    "or add --on-damaged skip",
)

_MOVE_STRAYS = Hint(
    "move away the shards that plan.json does not list, then run the same ",
    mention("convert"),
    " again",
)


class SetState(Struct, frozen=True, dict=True):
    """The state of a folder of shards.

    Args:
        records: the plan and the manifest of the set, each read once.
        kind: "nothing": no shard, and no conversion was started. "foreign": shards of another
            program. "part": ranks make the set, and it is not merged. "replacing": a new plan is
            there, and shards of the older set are not removed yet. "unfinished": shards or the
            manifest are missing. "finished": a manifest, and all its shards with their sizes.
            "contradictory": ``reason`` says what contradicts what.
        sizes: bytes of each shard of this set that the folder has, by name.
        orphans: the shards in the folder that belong to none of its sets: the state of their set
            may be lost.
        infos: the entry of each recorded shard, from the manifest; before there is one from all
            journals.
        missing: the shards of the set that are not there or not done, in order.
        strays: the shards in the folder that this set does not have, in order.
        manifest: the manifest, if it is sound.
        reason: for people, "" if ``kind`` says all.
        damage: why the manifest can't be used; None if it can or if there is none.
    """

    records: SetRecords
    kind: StateKind
    sizes: Mapping[str, int]
    orphans: tuple[str, ...] = ()
    infos: Mapping[str, ShardInfo] = {}
    missing: tuple[str, ...] = ()
    strays: tuple[str, ...] = ()
    manifest: Manifest | None = None
    reason: str = ""
    damage: Problem | None = None

    @classmethod
    def read(cls, layout: Layout) -> SetState:
        """Read what a folder holds: one listing, and the manifest; plan and journals only if
        something disagrees.

        Raises:
            InputError: a file can't be read because of the disk or the permissions.
        """
        return cls.judge(SetRecords(layout))

    @classmethod
    def judge(cls, records: SetRecords) -> SetState:
        """Decide what a folder holds, from records that may have been read before; as ``read``."""
        return _Evidence.gather(records).judge()

    @property
    def layout(self) -> Layout:
        """The folder, and which of its sets."""
        return self.records.layout

    @property
    def plan(self) -> Plan | None:
        """The plan, if it can be understood: it is read when it is first asked for."""
        return self.records.plan

    @cached_property
    def journalled(self) -> Mapping[str, ShardInfo]:
        """The entry of each shard in all journals."""
        return _journalled(self.layout)

    @property
    def covers_plan(self) -> bool:
        """Whether its manifest, and not its plan, says which shards there should be."""
        return self.manifest is not None and self.kind in ("finished", "contradictory")

    @property
    def is_without_records(self) -> bool:
        """Whether it was made here, and neither its plan nor its manifest can be used."""
        return self.kind == "contradictory" and self.manifest is None and not self.strays

    @property
    def has_prefixes(self) -> bool:
        """Whether the folder has sets with prefixes."""
        return bool(self.layout.set_name) or len(self.layout.sets()) > 1

    @property
    def is_usable(self) -> bool:
        """Whether its shards can be read as one whole set:
        it is finished, or another program made it.
        """
        return self.kind in ("finished", "foreign")

    @property
    def sentence(self) -> str:
        """The state as a sentence, without a full stop."""
        folder = self.layout.output_dir
        if self.kind == "part":
            todo = (
                f"{number_of(len(self.missing), 'shard')} not done"
                if self.missing
                else "all shards are done"
            )
            return f"{folder} holds shards of ranks that are not merged: {todo}"
        if self.kind == "replacing":
            return f"{folder} holds shards of an older set, which --overwrite has not removed yet"
        if self.kind == "unfinished" and not self.missing:
            return f"{folder} holds every shard of a set, but {self.fault_of_manifest}"
        if self.kind == "unfinished":
            return f"{folder} holds an unfinished set: {self._missing_words()}"
        if self.is_without_records:
            return f"{folder} holds a set that can't be read: {self.reason}"
        return f"{folder} holds files that contradict each other: {self.reason}"

    @property
    def following(self) -> str:
        """The command that finishes the set, or what to do."""
        layout = self.layout
        if self.kind == "part":
            merge = merge_command(layout)
            if self.missing:
                return Hint(
                    "run the missing ranks, which the next command lists; then finish the set: ",
                    merge,
                )
            return Hint("finish it: ", merge)
        if self.damage is not None and not self.missing and not self.strays:
            return self.damage.remedy
        if self.kind == "unfinished" and not self.missing:
            return REWRITE
        if self.kind != "contradictory":
            return RESUME
        return self._remedy()

    def _remedy(self) -> str:
        """The command for files that contradict each other, or what to do."""
        if self.manifest is None:
            return _MOVE_STRAYS if self.strays else REWRITE
        if self.missing and not self.strays:
            return self._make_again()
        return Hint("to see each file: ", command("verify", self.layout.output_dir))

    def _make_again(self) -> Hint:
        """The command for missing shards; a folder in the place of one is moved away first: nothing
        replaces it.
        """
        layout = self.layout
        it, folders = "it", "the folder"
        if len(self.missing) > 1:
            it, folders = "them", "the folders in their place"
        paths = map(layout.shard_path, self.sizes.keys() & self.missing)
        move = f"move {folders} away, then " if any(path.is_dir() for path in paths) else ""
        repair = command("repair", layout.data_dir, layout.elsewhere())
        return Hint(f"{move}make {it} again: ", repair)

    def refuse_unusable(self, splits: Collection[str] | None = None) -> None:
        """Raise InputError unless all shards of the set, or of these splits, can be read as one
        whole set.

        Growths belong to their split.
        """
        if self.is_usable or self.kind == "nothing":
            return
        if splits is not None and self.manifest is not None and self.kind == "contradictory":
            wrong_shards = (*self.missing, *self.strays)
            damaged_splits = {grown_from(split_of(name))[0] for name in wrong_shards}
            if damaged_splits.isdisjoint(grown_from(split)[0] for split in splits):
                return
        raise InputError(self.sentence, "expected a finished set", self.following)

    @property
    def fault_of_manifest(self) -> str:
        """The reason that a set with every shard is not finished, as what follows "but"."""
        if self.damage is not None:
            return self.damage.detail
        if self.records.usable_manifest is not None:
            return f"{self.layout.manifest_path.name} is older than {self.layout.plan_path.name}"
        return f"{self.layout.manifest_path.name} is missing"

    def _missing_words(self) -> str:
        count = number_of(len(self.missing), "shard is", "shards are")
        return f"{count} not done, {self.missing[0]} first"


def merge_command(layout: Layout) -> str:
    """The command that merges the work of ranks."""
    elsewhere = Layout(layout.data_dir, output=layout.output).elsewhere()
    return command("merge", layout.data_dir, elsewhere)


class _Evidence(Struct, frozen=True):
    """The files that tell what a folder holds;
    ``beside_plan`` are the names in the folder of the plan.
    """

    records: SetRecords
    sizes: Mapping[str, int]
    beside_plan: frozenset[str]
    manifest: Manifest | None
    damage: Problem | None

    @classmethod
    def gather(cls, records: SetRecords) -> _Evidence:
        layout = records.layout
        manifest, damage = _sound_manifest(records)
        foreign_splits = records.foreign_splits
        sizes: dict[str, int] = {}
        for name, size in layout.find_shards().items():
            if split_of(name) not in foreign_splits:
                sizes[name] = size
        beside_plan = frozenset[str]()
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            beside_plan = frozenset(names_in(layout.plan_path.parent))
        return cls(records, sizes, beside_plan, manifest, damage)

    @property
    def layout(self) -> Layout:
        """The folder, and which of its sets."""
        return self.records.layout

    def judge(self) -> SetState:
        """Decide what is there."""
        if self.manifest is not None:
            return self._with_manifest(self.manifest)
        plan = self.records.plan
        return self._without_records() if plan is None else self._with_plan(plan)

    @property
    def _has_ranks(self) -> bool:
        return any(name.startswith("rank-") for name in self.beside_plan)

    def _is_replacing(self, plan: Plan) -> bool:
        """Whether shards of an earlier set are being replaced by those of this plan."""
        if not plan.generation:
            return False
        return self.layout.replaced_path(plan.generation).name in self.beside_plan

    # with a manifest ------------------------------------------------------------------------------

    def _with_manifest(self, manifest: Manifest) -> SetState:
        sizes = self._of_splits(manifest.dataset.splits)
        missing = _in_order(
            name for name, info in manifest.shards.items() if sizes.get(name) != info.size
        )
        strays = _in_order(sizes.keys() - manifest.shards.keys())
        facts: dict[str, Any] = {
            "records": self.records,
            "sizes": sizes,
            "orphans": self._orphans(sizes),
            "infos": manifest.shards,
            "manifest": manifest,
        }
        is_whole = not missing and not strays
        if is_whole and not self._may_have_other_plan(manifest):
            return SetState(kind="finished", **facts)
        plan = self.records.plan
        if plan is not None:
            is_ahead = self._is_replacing(plan) or _grows(plan, manifest, strays)
            if is_ahead:
                return self._with_plan(plan)
        if is_whole:
            return SetState(kind="finished", **facts)
        facts |= {"missing": missing, "strays": strays}
        reason = _contradiction(missing, strays, sizes, self.layout, manifest)
        return SetState(kind="contradictory", reason=reason, **facts)

    def _may_have_other_plan(self, manifest: Manifest) -> bool:
        """Whether the folder of the plan has a list of replaced shards, or rows of more splits."""
        may_be_replaced = any(name.startswith("replaced-") for name in self.beside_plan)
        row_folders = [name for name in self.beside_plan if "." not in name]
        return may_be_replaced or len(row_folders) > len(manifest.totals)

    # without one ----------------------------------------------------------------------------------

    def _without_records(self) -> SetState:
        """The state of a folder without a sound plan and manifest."""
        layout = self.layout
        infos = _journalled(layout)
        sizes: dict[str, int] = {}
        for name, size in self.sizes.items():
            if layout.may_have(split_of(name)):
                sizes[name] = size
        reason = self._reason_without_records(sizes, infos)
        kind: StateKind = "foreign" if sizes else "nothing"
        return SetState(
            records=self.records,
            kind="contradictory" if reason else kind,
            sizes=sizes,
            infos=infos,
            reason=reason,
            damage=self.damage,
        )

    def _reason_without_records(
        self, sizes: Mapping[str, int], infos: Mapping[str, ShardInfo]
    ) -> str:
        """The trace of a set whose records are lost; "" if there is none."""
        layout = self.layout
        if self.damage:
            return self.damage.detail
        if layout.plan_path.name in self.beside_plan:
            return f"{layout.plan_path} can't be understood"
        if any(name in infos for name in sizes):
            return (
                f"{layout.journal_path.name} lists shards, but {layout.plan_path.name} and "
                f"{layout.manifest_path.name} are gone"
            )
        return ""

    def _with_plan(self, plan: Plan) -> SetState:
        """The state of a set without a usable manifest,
        or of one whose plan says more than its manifest.
        """
        sizes = self._of_splits((*plan.dataset.splits, *plan.totals))
        planned = plan.fingerprints_by_name()
        infos = self._infos_of(planned)
        missing: list[str] = []
        for name in planned:
            if name not in infos or sizes.get(name) != infos[name].size:
                missing.append(name)
        strays = _in_order(sizes.keys() - planned.keys())
        facts: dict[str, Any] = {
            "records": self.records,
            "sizes": sizes,
            "orphans": self._orphans(sizes),
            "infos": infos,
            "missing": tuple(missing),
            "strays": strays,
            "damage": self.damage,
        }
        if self._is_replacing(plan):
            return SetState(kind="replacing", **facts)
        if strays:
            count = number_of(len(strays), "shard")
            reason = f"{count} that {self.layout.plan_path} does not list, {strays[0]} first"
            return SetState(kind="contradictory", reason=reason, **facts)
        return SetState(kind="part" if self._has_ranks else "unfinished", **facts)

    def _infos_of(self, planned: Mapping[str, str]) -> dict[str, ShardInfo]:
        """The recorded entries of the shards that are made as planned."""
        recorded = dict(self.manifest.shards) if self.manifest else {}
        recorded |= _journalled(self.layout)
        infos: dict[str, ShardInfo] = {}
        for name, info in recorded.items():
            if planned.get(name) == info.fingerprint:
                infos[name] = info
        return infos

    def _orphans(self, sizes_of_set: Mapping[str, int]) -> tuple[str, ...]:
        """The shards that belong to no set of the folder,
        by their records or by the prefix of a set.
        """
        layouts = replace(self.layout, set_name="").sets()
        prefixed_sets = [layout for layout in layouts if layout.set_name]
        orphans: list[str] = []
        for name in self.sizes.keys() - sizes_of_set.keys():
            split = split_of(name)
            if not any(layout.may_have(split) for layout in prefixed_sets):
                orphans.append(name)
        return _in_order(orphans)

    def _of_splits(self, splits: Collection[str]) -> dict[str, int]:
        """The sizes of the shards in the folder that belong to these splits, growths included."""
        return {
            name: size
            for name, size in self.sizes.items()
            if grown_from(split_of(name))[0] in splits
        }


def _sound_manifest(records: SetRecords) -> tuple[Manifest | None, Problem | None]:
    """The manifest, or why it can't be used; a disk that can't be read is an error."""
    name = records.layout.manifest_path.name
    try:
        manifest = records.require_manifest()
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise  # it may be sound: nothing should be removed
        return None, Problem(ProblemKind.BAD_MANIFEST, name, error.what, error.hint)
    if manifest is None or _names_of(manifest) == manifest.shards.keys():
        return manifest, None
    fault = f"{records.layout.manifest_path} does not list the shards that its totals count"
    return None, Problem(ProblemKind.BAD_MANIFEST, name, fault, REWRITE)


def _names_of(manifest: Manifest) -> set[str]:
    """The shards that a manifest counts in its totals."""
    names = set[str]()
    for split, totals in manifest.totals.items():
        count = min(totals.shards, MAX_SHARDS)
        names.update(shard_name(split, number, count) for number in range(count))
    return names


def _in_order(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=by_number))


def _grows(plan: Plan, manifest: Manifest, strays: Collection[str]) -> bool:
    """Whether the set is growing: the plan has the manifest's shards unchanged, and more shards,
    among them all ``strays``, which the folder has and the manifest lacks.
    """
    planned = plan.fingerprints_by_name()
    for name, info in manifest.shards.items():
        if planned.get(name) != info.fingerprint:
            return False
    has_more_shards = len(planned) > len(manifest.shards)
    return has_more_shards and planned.keys() >= set(strays)


def _contradiction(
    missing: Collection[str],
    strays: Collection[str],
    sizes: Mapping[str, int],
    layout: Layout,
    manifest: Manifest,
) -> str:
    if missing:
        name = next(iter(missing))
        path = layout.shard_path(name)
        kind = kind_in_words(path)
        state = f"is {kind}"
        if name in sizes and kind == IN_WORDS["file"]:
            state = f"has {number_of(sizes[name], 'byte')}"
        expected = f"manifest.json lists {manifest.shards[name].size:,} bytes"
        count = f" ({number_of(len(missing), 'shard')} in all)" if len(missing) > 1 else ""
        return f"{name} {state}, and {expected}{count}"
    name = next(iter(strays))
    count = f" ({number_of(len(strays), 'file')} in all)" if len(strays) > 1 else ""
    return f"{name} is not in manifest.json{count}"


def _journalled(layout: Layout) -> dict[str, ShardInfo]:
    """The entry of each shard in all journals, those of ranks included;
    of several, the one of its index.
    """
    journal = Journal(layout.journal_path)
    settle(layout, journal)
    entries: dict[str, ShardInfo] = {}
    for name in journal.names():
        info = journal.get(name)
        if info:
            entries[name] = info
    return entries
