"""Finished shards -> the same records in another format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.exports import load_format
from imagenet_prep.exports.packing import ExportRun, Packer
from imagenet_prep.exports.source_set import SourceSet, SourceShard
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.shards.run import unfinished
from imagenet_prep.storage.files import Need, load_json, refuse_lack, save_bytes, save_json
from imagenet_prep.storage.layout import STATE_NAME, Layout
from imagenet_prep.storage.location import local_path, refuse_url
from imagenet_prep.storage.lock import hold
from imagenet_prep.text import listed, number_of

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ExportedSplit:
    """What there is of a split: records, shards, bytes of files; ``made``: shards exported by this run."""

    split: str
    records: int
    shards: int
    size: int
    made: int


@dataclass(frozen=True, slots=True)
class ExportSummary:
    """An export: its folder, what it holds by split, and ``usage``, a line of code that reads it, if it needs one."""

    container: str
    out: Path
    splits: tuple[ExportedSplit, ...]
    usage: str = ""


def export(
    layout: Layout, container: str, out: Path | None, engine: Engine, *, progress: Progress | None = None
) -> ExportSummary:
    """Put the records of a finished set into another format, in a folder of its own; an interrupted export resumes.

    Args:
        layout: where the set is, whoever made it.
        container: the format: one of ``imagenet_prep.exports.FORMATS``.
        out: the folder; new, empty, or that of the same export. A format that copies no records needs none: its
            files go to a folder of its name beside the shards.
        engine: where the shards are exported.

    Raises:
        UsageError: there is no such format, its library is not installed, or it can't hold these records.
        InputError: the set is not whole; ``out`` holds something else; or a shard is damaged: all others are exported.
        SpaceError, BusyError, WriteError: as their names say.
    """
    layout.refuse_urls()
    if out is not None:
        refuse_url(out)
    progress = progress or Silent()
    kind = load_format(container)
    if out is None and kind.unit != "set":
        raise UsageError(f"no folder OUT for {container}", "expected where its files go, behind DATA_DIR")
    source = SourceSet.load(layout)
    packer = kind(source)
    folder = out or local_path(layout.output_dir) / container
    target = Layout(folder)
    identity = _identity(container, packer, source)
    _refuse_other(target, identity)
    with hold(target.lock_paths):
        _refuse_other(target, identity)
        run = _export_shards(target, packer, source, identity, progress, engine)
        _refuse_failures(run, source, progress)
        notes = {split: [own[number] for number in sorted(own)] for split, own in run.notes.items()}
        for name, content in packer.finish(source, notes, folder).items():
            save_bytes(folder / name, content)
    splits = [_summary(split, shards, run) for split, shards in source.splits.items() if packer.unit != "set"]
    return ExportSummary(container, folder, tuple(splits), packer.usage(folder))


def _refuse_failures(run: ExportRun, source: SourceSet, progress: Progress) -> None:
    """Raise the error of the first shard that could not be exported, if there is one."""
    if run.failures:
        done = number_of(len(source.shards) - len(run.failures), "shard is", "shards are")
        progress.note(f"{done} exported, {len(run.failures):,} not")
        raise run.failures[0]


def _export_shards(
    target: Layout, packer: Packer, source: SourceSet, identity: dict[str, Any], progress: Progress, engine: Engine
) -> ExportRun:
    """Export all shards except those whose file is there."""
    todo = list(source.shards)
    sizes: dict[str, int] = {}
    if packer.unit == "shard" and not packer.needs_notes:
        paths = {shard.name: target.output_dir / packer.file_name(shard) for shard in todo}
        sizes = {name: path.stat().st_size for name, path in paths.items() if path.exists()}
        todo = [shard for shard in todo if shard.name not in sizes]
    if packer.unit == "shard" or (packer.unit == "image" and not target.export_path.exists()):  # else nobody knows
        _refuse_lack(target, packer, todo, identity["container"])
    save_json(target.export_path, identity)
    total = sum(shard.size for shard in source.shards)
    with unfinished(target) as own:
        run = ExportRun(own, progress, sizes)
        progress.begin("export", total, "B", total - sum(shard.size for shard in todo))
        run.export_shards(packer, engine, todo)
        progress.end()
    return run


def _identity(container: str, packer: Packer, source: SourceSet) -> dict[str, Any]:
    """What an export is of: kept beside it, so that it resumes with the same set alone."""
    kept = {"schema": SCHEMA, "container": container}
    if packer.unit == "set":  # all of its files are written again every time
        return kept
    decides = [repr(sorted(vars(packer).items())), [shard.identity for shard in source.shards]]
    return {**kept, "fingerprint": hashlib.sha256(json.dumps(decides).encode()).hexdigest()}


def _refuse_lack(target: Layout, packer: Packer, todo: Sequence[SourceShard], container: str) -> None:
    """Raise SpaceError where an export does not fit, about; how many images there are only a manifest tells."""
    if todo:
        files = sum(shard.recorded or 0 for shard in todo) if packer.unit == "image" else len(todo)
        what = f"{number_of(len(todo), 'shard')} exported to {container}"
        size = sum(shard.size for shard in todo)
        refuse_lack([Need("export", what, target.output_dir, size, files, is_about=True)])


def _refuse_other(target: Layout, identity: dict[str, Any]) -> None:
    """Raise InputError unless the folder is new, empty, or holds the same export, whole or in part."""
    begun = load_json(target.export_path)
    if begun == identity:
        return
    if begun is None:
        state = [f"{STATE_NAME}/{path.name}" for path in local_path(target.state_dir).glob("[!.]*")]
        names = sorted({*target.shards.list(), *state} - {STATE_NAME, f"{STATE_NAME}/lock"})
        if not names:
            return
        what, expected = f"something else: {listed(names)}", "nothing in it"
    elif isinstance(begun, dict) and begun.get("container") == identity["container"]:
        what = "an export of another set, or of this one before it changed"
        expected = "one of the same shards, or nothing"
    else:
        kept = begun.get("container") if isinstance(begun, dict) else begun
        what, expected = f"another export, to {kept}", f"one to {identity['container']}, or nothing"
    raise InputError(f"{target.output_dir} holds {what}", f"expected {expected}", "name a new folder, or an empty one")


def _summary(split: str, shards: Sequence[SourceShard], run: ExportRun) -> ExportedSplit:
    records, size = sum(shard.count() for shard in shards), sum(run.sizes[shard.name] for shard in shards)
    return ExportedSplit(split, records, len(shards), size, sum(shard.name in run.made for shard in shards))
