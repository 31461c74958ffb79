"""Writes the records of finished shards in another format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import DamagedRecordError, InputError, UsageError
from imagenet_prep.escaping import command_line, path_word, program
from imagenet_prep.exports import load_format
from imagenet_prep.exports.packing import ExportRun, Packer, sizes_on_record
from imagenet_prep.exports.source_set import SourceSet, SourceShard
from imagenet_prep.hints import Hint
from imagenet_prep.model import Engine, OnDamaged, Progress, Silent
from imagenet_prep.shards.unfinished import unfinished
from imagenet_prep.state.damaged_images import (
    DamagedImage,
    load_damaged_images,
    remove_damaged_images,
)
from imagenet_prep.storage.files import load_json, save_bytes, save_json
from imagenet_prep.storage.layout import STATE_NAME, Layout
from imagenet_prep.storage.location import AnyPath, local_path, refuse_url
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.space import Need, refuse_lack
from imagenet_prep.text import is_utf8, listed, number_of

SCHEMA = 1


PACKING = 2
"""Raised when a format gets other names or contents: an export resumes only as it started."""


class ExportedSplit(Struct, frozen=True):
    """One split of an export: records, shards, bytes of files;
    ``made``: shards exported by this run.
    """

    split: str
    records: int
    shards: int
    size: int
    made: int


class ExportSummary(Struct, frozen=True):
    """An export: its folder, its splits, and ``usage``, a line of code that reads it, if it needs
    one.

    ``left_out`` is the number of damaged records that it lacks, and ``named_in`` the file that
    names them. ``files`` are the names of the files of a format that copies no records.
    """

    container: str
    out: Path
    splits: tuple[ExportedSplit, ...]
    usage: str = ""
    left_out: int = 0
    named_in: AnyPath | None = None
    files: tuple[str, ...] = ()


def export(
    layout: Layout,
    container: str,
    out: Path | None,
    engine: Engine,
    *,
    on_damaged: OnDamaged = "refuse",
    progress: Progress | None = None,
) -> ExportSummary:
    """Write the records of a finished set in another format, to a folder of its own; an interrupted
    export resumes.

    Args:
        layout: the folder of the set, made by any tool; a URL, if the format copies records.
        container: the format: one of ``imagenet_prep.exports.FORMATS``.
        out: the folder; new, empty, or holding the same export. A format that copies no records
            does not require it: its files go to a folder of its name next to the shards.
        engine: where the shards are exported.
        on_damaged: whether a damaged record refuses its shard, or is left out. Images are copied,
            not decoded: damage is a wrong checksum, or data that is no Example. A shard with such a
            record is exported again by each run.

    Raises:
        UsageError: the format does not exist, lacks its library, can't hold these records, or can't
            leave any out.
        InputError: the set is incomplete; ``out`` holds something else; or a shard is damaged: all
            others are exported.
        SpaceError, BusyError, WriteError: no space is left, another run works here, or the storage
            fails.
    """
    if out is not None:
        refuse_url(out)
    progress = progress or Silent()
    packer_class = load_format(container)
    _refuse_options(container, packer_class, layout, out, on_damaged)
    source = SourceSet.load(layout, on_damaged)
    skippable = packer_class.unit != "set" and on_damaged == "refuse"
    packer = _open_packer(packer_class, source, skippable)
    folder = out or local_path(layout.output_dir) / container
    target = Layout(folder)
    identity = _identity(container, packer, source)
    _refuse_other(target, identity)
    with hold(target.lock_paths):
        _refuse_other(target, identity)
        run = _export_shards(target, packer, source, identity, progress, engine)
        _refuse_failures(run, source, skippable, progress)
        if not any(run.left_out.values()):
            remove_damaged_images(target)
        source = _without(source, run)
        final_files = packer.finish(source, folder)
        for name, content in final_files.items():
            save_bytes(folder / name, content)
    splits = tuple(_summary(split, shards, run) for split, shards in source.splits.items())
    files = tuple(final_files) if packer.unit == "set" else ()
    left_out = sum(shard.left_out for shard in source.shards)
    named_in = target.damaged_images_path if left_out else None
    return ExportSummary(container, folder, splits, packer.usage(folder), left_out, named_in, files)


def _refuse_options(
    container: str,
    packer_class: type[Packer],
    layout: Layout,
    out: Path | None,
    on_damaged: OnDamaged,
) -> None:
    """Raise UsageError if the format can't use these options."""
    copies_records = packer_class.unit != "set"
    if out is None or not copies_records:  # files are next to the shards, or name their folder
        layout.refuse_urls()
    if out is None and copies_records:
        raise UsageError(
            f"export {container} needs a folder for its files",
            "expected this folder after that of the shards",
            Hint(
                "name it in place of OUT: ",
                command_line(
                    [program(), "export", container, path_word(str(layout.data_dir)), "OUT"]
                ),
            ),
        )
    if out is not None and packer_class.requires_utf8_paths and not is_utf8(str(out)):
        raise UsageError(
            f"export {container} to {out}: this path is not UTF-8",
            "expected a path in UTF-8: the library of the format opens no other",
            "choose another folder",
        )
    if on_damaged == "skip" and not copies_records:
        raise UsageError(
            f"export {container} with --on-damaged skip: it copies no records, "
            "so it can't leave any out",
            "expected --on-damaged refuse, or a format that copies records",
            "leave out --on-damaged, or choose another format",
        )


def _open_packer(packer_class: type[Packer], source: SourceSet, skippable: bool) -> Packer:
    """The packer of a set, some of whose records it may read."""
    try:
        return packer_class(source)
    except DamagedRecordError as error:
        raise _with_hint(error, skippable) from error


def _without(source: SourceSet, run: ExportRun) -> SourceSet:
    """The set without the damaged records that an export left out."""
    shards = [
        replace(shard, left_out=len(run.left_out.get(shard.name, ()))) for shard in source.shards
    ]
    return replace(source, shards=tuple(shards))


def _refuse_failures(
    run: ExportRun, source: SourceSet, skippable: bool, progress: Progress
) -> None:
    """Raise the error of the first shard that could not be exported, if any."""
    if run.failures:
        done = number_of(len(source.shards) - len(run.failures), "shard is", "shards are")
        progress.note(f"{done} done, {len(run.failures):,} not")
        raise _with_hint(run.failures[0], skippable)


def _with_hint(error: Exception, skippable: bool) -> Exception:
    """An error; that of a damaged record says how to continue without the record, if records can
    be left out and were not to be.
    """
    if isinstance(error, DamagedRecordError) and skippable:
        skipping = "--on-damaged skip leaves out damaged records"
        hint = Hint(f"{skipping}; ", error.hint) if error.hint else skipping
        return error.with_hint(hint)
    return error


def _export_shards(
    target: Layout,
    packer: Packer,
    source: SourceSet,
    identity: dict[str, Any],
    progress: Progress,
    engine: Engine,
) -> ExportRun:
    """Export all shards whose files are missing, or differ in size from those that were written."""
    left_out: dict[str, tuple[DamagedImage, ...]] = {}
    candidates: list[SourceShard] = []
    damaged_images = load_damaged_images(target.damaged_images_path)
    for shard in source.shards:
        if shard.name in damaged_images:  # exported again: the set may have been repaired since
            left_out[shard.name] = damaged_images[shard.name]
        else:
            candidates.append(shard)
    sizes = _sizes_of_finished(target, packer, candidates) if packer.unit == "shard" else {}
    todo = [shard for shard in source.shards if shard.name not in sizes]
    _refuse_lack(target, packer, todo, identity["container"])
    save_json(target.export_path, identity)
    total = sum(shard.size for shard in source.shards)
    unfinished_size = sum(shard.size for shard in todo)
    with unfinished(target) as run_layout:
        run = ExportRun(target.exported_path, target.damaged_images_path, sizes, left_out)
        progress.begin("export", total, "B", total - unfinished_size)
        run.export_shards(packer, run_layout, engine, todo, progress)
        progress.end()
    return run


def _sizes_of_finished(
    target: Layout, packer: Packer, shards: Sequence[SourceShard]
) -> dict[str, int]:
    """The bytes of the file of each shard, by its name, if the export has it as it was written."""
    recorded = sizes_on_record(target.exported_path)
    finished = {}
    for shard in shards:
        name = packer.file_name(shard)
        size = recorded.get(name)
        if size is not None and target.shards.size(name) == size:
            finished[shard.name] = size
    return finished


def _identity(container: str, packer: Packer, source: SourceSet) -> dict[str, Any]:
    """The identity of an export, kept next to it, so that it resumes only with the same set."""
    identity = {"schema": SCHEMA, "container": container}
    if packer.unit == "set":  # all its files are written every time
        return identity
    settings = repr(sorted(vars(packer).items()))
    shards = [shard.identity for shard in source.shards]
    content = json.dumps([PACKING, settings, shards]).encode()
    return {**identity, "fingerprint": hashlib.sha256(content).hexdigest()}


def _refuse_lack(
    target: Layout, packer: Packer, todo: Sequence[SourceShard], container: str
) -> None:
    """Raise SpaceError if an export does not fit, by estimate;
    only a manifest knows the number of images.
    """
    is_known = packer.unit == "shard" or (
        packer.unit == "image" and not target.export_path.exists()
    )
    if todo and is_known:
        images = sum(shard.recorded.records for shard in todo if shard.recorded)
        files = images if packer.unit == "image" else len(todo)
        subject = f"{number_of(len(todo), 'shard')} exported to {container}"
        size = sum(shard.size for shard in todo)
        refuse_lack([Need("export", subject, target.output_dir, size, files, is_about=True)])


def _refuse_other(target: Layout, identity: dict[str, Any]) -> None:
    """Raise InputError unless the folder is new, empty, holds the same export, complete or not,
    or one that wrote no file.
    """
    recorded = load_json(target.export_path)
    if recorded == identity or _holds_no_export(target):
        return
    container = recorded.get("container") if isinstance(recorded, dict) else recorded
    if recorded is None:
        content = f"something else: {listed(_file_names(target))}"
        expected = "an empty folder"
    elif isinstance(recorded, dict) and container == identity["container"]:
        content = (
            "an export of another set, or of this set before it changed, or by another version"
        )
        expected = "an export of the same shards, or an empty folder"
    else:
        content = f"another export, {_shown_container(container)}"
        expected = f"one to {identity['container']}, or an empty folder"
    raise InputError(
        f"{target.output_dir} holds {content}", f"expected {expected}", "choose an empty folder"
    )


def _holds_no_export(target: Layout) -> bool:
    """Whether a folder has no file of an export: it is new or empty, or an export failed before it
    wrote one.
    """
    index_dir = local_path(target.index_dir)
    without_content = {f"{STATE_NAME}/{target.export_path.name}"}
    if index_dir.is_dir() and not any(index_dir.iterdir()):
        without_content.add(f"{STATE_NAME}/{index_dir.name}")
    return without_content.issuperset(_file_names(target))


def _shown_container(container: object) -> str:
    """The format that an export's file names, for a message."""
    return f"to {container}" if isinstance(container, str) else "to an unknown format"


def _file_names(target: Layout) -> list[str]:
    """The files and folders of an export's folder, except its lock."""
    state_paths = local_path(target.state_dir).glob("[!.]*")
    names = {*target.shards.list(), *(f"{STATE_NAME}/{path.name}" for path in state_paths)}
    return sorted(names - {STATE_NAME, f"{STATE_NAME}/lock"})


def _summary(split: str, shards: Sequence[SourceShard], run: ExportRun) -> ExportedSplit:
    records = sum(shard.count() for shard in shards)
    size = sum(run.sizes.get(shard.name, 0) for shard in shards)
    made_count = sum(shard.name in run.made for shard in shards)
    return ExportedSplit(split, records, len(shards), size, made_count)
