"""Store and Sink: a file appears whole under its name, or not at all, and nothing unfinished is seen."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from imagenet_prep.errors import InputError
from imagenet_prep.storage.local import LocalStore
from imagenet_prep.storage.store import GoneError


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    """A store of no files."""
    made = LocalStore(tmp_path / "finished", tmp_path / "unfinished")
    made.folder.mkdir()
    made.unfinished.mkdir()
    return made


def test_a_resting_sink_holds_nothing_open(store: LocalStore) -> None:
    """It goes on where it was."""
    before = len(os.listdir("/proc/self/fd"))
    sinks = [store.create(str(number)) for number in range(20)]
    for _ in range(2):
        for sink in sinks:
            sink.write([b"part "])
            sink.rest()
            assert len(os.listdir("/proc/self/fd")) <= before
    for sink in sinks:
        sink.seal()
        sink.commit()
    assert {bytes(store.view(name)) for name in store.list()} == {b"part part "}
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.parametrize(("rests", "comes_back"), [(False, True), (True, False)])
def test_what_was_removed_gets_no_name(store: LocalStore, rests: bool, comes_back: bool) -> None:
    """A writer that outlives its run finishes nothing, neither its whole file nor what it writes afterwards."""
    with store.create("a") as old, store.create("b") as never_begun:
        old.write([b"of the run before"])
        if rests:
            old.rest()
        shutil.rmtree(store.unfinished)
        if comes_back:
            store.unfinished.mkdir()
        with pytest.raises(GoneError, match="removed while it was being written"):  # noqa: PT012 - whichever sees it first
            old.write([b"and more"])
            old.commit()
        if not comes_back:
            with pytest.raises(GoneError):
                never_begun.commit()
    assert store.list() == []


def test_a_pipe_is_not_waited_for(store: LocalStore) -> None:
    """What is not a plain file can't be read."""
    os.mkfifo(store.folder / "pipe")
    with pytest.raises(InputError, match="not a plain file"):
        store.view("pipe")
