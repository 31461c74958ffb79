"""Finished shards -> the same records in another container."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.exports import tfds_metadata as tfds
from imagenet_prep.exports.exporting import ExportTask, ShardSettler, export_shards, finished_files
from imagenet_prep.exports.image_values import find_meaning, find_roles, held_by
from imagenet_prep.exports.kinds import PACKERS
from imagenet_prep.exports.packing import Packer
from imagenet_prep.exports.source_shard import SourceShard
from imagenet_prep.model import Engine, Progress, ShardInfo, Silent
from imagenet_prep.reading.shard import Shard
from imagenet_prep.reading.shard_set import ShardSet
from imagenet_prep.registry import labels_of_classes
from imagenet_prep.shards.run import unfinished
from imagenet_prep.state.journal import Journal
from imagenet_prep.state.manifest import ILSVRC2012, Manifest, load_manifest
from imagenet_prep.storage.atomic import save_bytes, save_json
from imagenet_prep.storage.layout import STATE_NAME, Layout, parse_shard_name, shard_name
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.plain import load_json
from imagenet_prep.storage.space import Need, refuse_lack
from imagenet_prep.storage.urls import refuse_url
from imagenet_prep.text import listed, number_of

SCHEMA = 1
_ELSEWHERE = "name a new folder, or an empty one"


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
    """What an export holds, by split."""

    container: str
    splits: tuple[ExportedSplit, ...]


def export(
    layout: Layout, container: str, out: Path, engine: Engine, *, progress: Progress | None = None
) -> ExportSummary:
    """Put the records of a finished set into another container, in a folder of its own; goes on with one begun there.

    Args:
        layout: where the set is, whoever made it.
        container: "webdataset", "folders" or "arrayrecord".
        out: the folder; new, empty, or that of the same export.
        engine: where the shards are exported.

    Raises:
        UsageError: there is no such container, its library is not installed, or the records hold no image.
        InputError: the set is not whole; ``out`` holds something else; or a shard is damaged: all others are exported.
        SpaceError, BusyError, WriteError: as their names say.
    """
    layout.refuse_urls()
    refuse_url(out)
    progress = progress or Silent()
    if container not in PACKERS:
        raise UsageError(f"no container {container!r}", f"expected one of {', '.join(PACKERS)}")
    manifest = load_manifest(layout.manifest_path)
    meaning = find_meaning(manifest)
    prefix = "imagenet-" if manifest is None or manifest.dataset.kind == ILSVRC2012 else ""
    packer = PACKERS[container](meaning, prefix)
    shards = find_shards(layout, manifest)
    target = Layout(out)
    _refuse_other(target, packer, layout)
    with hold(target.lock_paths):
        tasks = [ExportTask(shard, _fingerprint(packer, shard), target) for shard in shards]
        _refuse_other(target, packer, layout)
        with Journal(target.journal_path) as journal:
            _begin(target, packer, journal, tasks)
            done, taken = _finished(target, journal, tasks)
            todo = [task for task in tasks if task.shard.name not in done]
            _refuse_lack(packer, todo, manifest)
            progress.begin("export", sum(map(_size, tasks)), "B", sum(map(_size, tasks)) - sum(map(_size, todo)))
            with unfinished(target) as own:
                own_todo = [dataclasses.replace(task, target=own) for task in todo]
                failures = export_shards(own_todo, packer, engine, ShardSettler(own, journal, taken), progress)
            progress.end()
            infos = {task.shard.name: info for task in tasks if (info := journal.get(task.shard.name))}
        if failures:
            count = number_of(len(tasks) - len(failures), "shard is", "shards are")
            progress.note(f"{count} exported, {len(failures):,} not")
            raise failures[0]
        return ExportSummary(container, tuple(_summaries(tasks, todo, infos)))


def export_tfds(layout: Layout, out: Path | None = None) -> Path:
    """Write what TensorFlow Datasets needs to read a finished set where it lies; return the folder to name to it.

    Args:
        layout: where the set is, whoever made it.
        out: the folder of the few files that are written; by default ``tfds`` beside the shards.

    Raises:
        UsageError: the shards are compressed: TFDS reads no such ones.
        InputError: the set is not whole, or ``out`` holds something else.
        SpaceError, WriteError: as their names say.
    """
    layout.refuse_urls()
    if out is not None:
        refuse_url(out)
    folder = out or layout.output_dir / "tfds"
    manifest = load_manifest(layout.manifest_path)
    shards = find_shards(layout, manifest)
    for shard in shards:
        tfds.refuse_compressed(str(shard.path), Shard.open(shard.path).compression)
    files = _tfds_files(layout, manifest, shards, folder)
    strays = sorted({*(os.listdir(folder) if folder.is_dir() else ())} - files.keys())
    if strays:
        raise InputError(f"{folder} holds something else: {listed(strays)}", "expected nothing in it", _ELSEWHERE)
    for name, content in files.items():
        save_bytes(folder / name, content)
    return folder


def _tfds_files(
    layout: Layout, manifest: Manifest | None, shards: Sequence[SourceShard], folder: Path
) -> dict[str, bytes]:
    """The files by name; the one that TFDS looks for first is last."""
    roles = find_roles(manifest)
    held = manifest.dataset.features if manifest else held_by(next(shards[0].records()))
    labels = labels_of_classes(layout, manifest) if "label" in roles else None
    names = tfds.class_names(labels) if labels else []
    image, label = roles.get("encoded"), roles.get("label")
    numbered = {label: len(names)} if label and names else {}
    above = os.path.relpath(layout.output_dir.resolve(), folder.resolve())
    splits = [_counted(manifest, [each for each in shards if each.split == split]) for split in _splits(shards)]
    keys = (image, label) if image and label else None
    known = manifest.dataset.name if manifest else ILSVRC2012
    return {
        "features.json": tfds.encode(tfds.features(held, [image] if image else [], numbered)),
        **{tfds.names_file(each): "".join(f"{name}\n" for name in names).encode() for each in numbered},
        "dataset_info.json": tfds.encode(tfds.dataset_info(known, splits, above, keys)),
    }


def _splits(shards: Sequence[SourceShard]) -> list[str]:
    return list(dict.fromkeys(shard.split for shard in shards))


def _counted(manifest: Manifest | None, shards: Sequence[SourceShard]) -> tfds.SplitShards:
    """The records of each shard, by the manifest, else by their headers."""
    infos = manifest.shards if manifest else {}
    lengths = (
        infos[each.name].records if each.name in infos else len(Shard.open(each.path).offsets()) - 1 for each in shards
    )
    return tfds.SplitShards(shards[0].split, tuple(lengths), sum(each.size for each in shards))


def find_shards(layout: Layout, manifest: Manifest | None) -> list[SourceShard]:
    """All shards of a set, split by split.

    Raises:
        InputError: there are none, or one is missing.
    """
    splits: Sequence[str] = manifest.dataset.splits if manifest else ()
    names = [*layout.shards.list(), *(manifest.shards if manifest else ())]
    counts = {parsed[0]: parsed[2] for parsed in map(parse_shard_name, names) if parsed}
    found = []
    for split in sorted(counts, key=lambda each: (each not in splits, splits.index(each) if each in splits else each)):
        ShardSet(layout.output_dir, split)  # it refuses a set that is not whole, or two of one name
        for index in range(counts[split]):
            name = shard_name(split, index, counts[split])
            info = manifest.shards.get(name) if manifest else None
            size = layout.shards.size(name) or 0
            path = layout.shard_path(name)
            found.append(SourceShard(path, split, index, counts[split], size, info.digest if info else ""))
    if not found:
        raise InputError(
            f"no shards in {layout.output_dir}",
            "expected files such as train-00000-of-01024",
            "name the folder that holds them",
        )
    return found


def _size(task: ExportTask) -> int:
    return task.shard.size


def _fingerprint(packer: Packer, shard: SourceShard) -> str:
    """Of what decides a shard's files: its records, or where no digest of them is known, its size and time."""
    told: list[Any] = [packer.key, packer.version, repr(packer), shard.name]
    told += [shard.digest] if shard.digest else [shard.size, shard.path.stat().st_mtime_ns]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _refuse_lack(packer: Packer, todo: Sequence[ExportTask], manifest: Manifest | None) -> None:
    """Raise SpaceError where an export does not fit, about; how many images there are only a manifest tells."""
    if todo:
        names = [task.shard.name for task in todo]
        files = sum(manifest.shards[each].records for each in names) if manifest and packer.is_a_file_each else 0
        what = f"{number_of(len(todo), 'shard')} exported to {packer.key}"
        size = sum(map(_size, todo))
        refuse_lack([Need("export", what, todo[0].target.output_dir, size, max(files, len(todo)), is_about=True)])


def _refuse_other(target: Layout, packer: Packer, source: Layout) -> None:
    """Raise InputError unless the folder is new, empty, or one that this container was exported to."""
    out = target.output_dir
    begun = load_json(target.export_path)
    if begun is not None:
        if begun != _kept(packer):
            what = begun.get("container") if isinstance(begun, dict) else None
            expected = f"expected one to {packer.key}, of version {packer.version}, or nothing"
            raise InputError(f"{out} holds another export, to {what}", expected, _ELSEWHERE)
        return
    names = sorted({*target.shards.list()} - {STATE_NAME})
    names += [f"{STATE_NAME}/{path.name}" for path in sorted(target.state_dir.glob("[!.]*")) if path.name != "lock"]
    if names:
        raise InputError(f"{out} holds something else: {listed(names)}", "expected nothing in it", _ELSEWHERE)


def _kept(packer: Packer) -> Mapping[str, Any]:
    return {"schema": SCHEMA, "container": packer.key, "version": packer.version}


def _begin(target: Layout, packer: Packer, journal: Journal, tasks: Sequence[ExportTask]) -> None:
    """Keep what this export is; refuse to go on with that of another set.

    Raises:
        InputError: shards of another set were exported here, or of this one before it changed.
    """
    fingerprints = {task.shard.name: task.fingerprint for task in tasks}
    for name in journal.names():
        info = journal.get(name)
        if info is not None and fingerprints.get(name) != info.fingerprint:
            raise InputError(
                f"{target.output_dir} holds an export of another set, or of this one before it changed",
                f"the first shard that is another: {name}",
                _ELSEWHERE,
            )
    save_json(target.export_path, _kept(packer))


def _finished(target: Layout, journal: Journal, tasks: Sequence[ExportTask]) -> tuple[set[str], set[str]]:
    """The shards that are exported, by name, and the paths of their files."""
    done: set[str] = set()
    taken: set[str] = set()
    for task in tasks:
        info = journal.get(task.shard.name)
        files = finished_files(target, info) if info is not None else None
        if files is not None:
            done.add(task.shard.name)
            taken.update(files)
    return done, taken


def _summaries(
    tasks: Sequence[ExportTask], todo: Sequence[ExportTask], infos: Mapping[str, ShardInfo]
) -> list[ExportedSplit]:
    found = []
    for split in _splits([task.shard for task in tasks]):
        own = [infos[task.shard.name] for task in tasks if task.shard.split == split]
        made = sum(task.shard.split == split for task in todo)
        records, size = sum(info.records for info in own), sum(info.size for info in own)
        found.append(ExportedSplit(split, records, len(own), size, made))
    return found
