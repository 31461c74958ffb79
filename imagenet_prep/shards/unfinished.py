"""unfinished: the folder of a run for files that are not finished; leftovers of other runs go."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.state.journal import Journal
from imagenet_prep.storage.durable import make_folders
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.local import remove_abandoned
from imagenet_prep.storage.location import local_or_none, local_path
from imagenet_prep.storage.refusals import writing


@contextlib.contextmanager
def unfinished(layout: Layout, spared: str = "") -> Iterator[Layout]:
    """The layout with a folder of this run's own for unfinished files and the parts of shards,
    removed at the end.

    Leftovers of other runs are removed first: this process holds the layout's locks, so their
    drivers are dead. A worker that outlives its driver, here or on another machine, can't name
    files any more. Ranks hold no locks: those with the key ``spared`` make the same shards, and may
    be running. In an object store nothing is left.
    """
    remove_unfinished(layout, spared)
    with unfinished_of(layout, run_name()) as run_layout:
        yield run_layout


@contextlib.contextmanager
def unfinished_of(layout: Layout, run: str) -> Iterator[Layout]:
    """The layout for a run of this name, without touching the files of others."""
    run_layout = replace(layout, run=run)
    partial = local_or_none(run_layout.partial_dir)
    if partial is None:
        yield layout
        return
    for folder in (layout.output_dir, partial, layout.index_dir):
        with writing(folder):
            make_folders(local_path(folder))
    try:
        yield run_layout
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        with contextlib.suppress(OSError):
            partial.parent.rmdir()


def take_in_parts(layout: Layout, journal: Journal) -> None:
    """Merge the records of a finished set's ranks into one, and remove their other files;
    running ranks then stop.
    """
    if not layout.rank_parts():
        return
    remove_unfinished(layout)
    journal.take_in()
    # The mark of a rank that was killed may be unfinished: its name starts otherwise.
    for path in layout.plan_path.parent.glob("*rank-*"):
        path.unlink(missing_ok=True)


def remove_unfinished_state(layout: Layout) -> None:
    """Remove the state files that killed processes of this machine left unfinished."""
    for place in (layout.state_dir, layout.plan_path.parent, layout.rows_dir):
        folder = local_or_none(place)
        if folder is not None:
            remove_abandoned(folder)


def run_name() -> str:
    """A unique name for a run, which shows the process and the machine."""
    host = re.sub(r"[^A-Za-z0-9.-]", "_", os.uname().nodename)
    return f"{host}-{os.getpid()}-{os.urandom(4).hex()}"


def find_unfinished(layout: Layout, spared: str = "", run: str = "") -> list[Path]:
    """The folders of unfinished files of other runs than ``run``.

    Ranks with the key ``spared`` are left out.
    """
    partials = local_or_none(layout.partials_dir)
    folders = list(partials.glob("*")) if partials else []
    folders_of_others = [folder for folder in folders if folder.name != run]
    if not spared:
        return folders_of_others
    return [folder for folder in folders_of_others if not folder.name.startswith(f"rank-{spared}-")]


def remove_unfinished(layout: Layout, spared: str = "", run: str = "") -> None:
    """Rename each run's unfinished files out of reach in one step, then remove them.

    The arguments are those of ``find_unfinished``. Unfinished state files are removed too.
    """
    remove_unfinished_state(layout)
    for path in find_unfinished(layout, spared, run):
        gone = path.with_name(f"gone-{os.urandom(8).hex()}")
        with writing(path), contextlib.suppress(FileNotFoundError):
            path.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
    partials = local_or_none(layout.partials_dir)
    if partials is not None:
        with contextlib.suppress(OSError):
            partials.rmdir()
