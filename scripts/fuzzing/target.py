"""What a fuzz target is, and the folder in memory in which targets have
their files and a small set of shards.
"""

from __future__ import annotations

import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mutations

from imagenet_prep.demo.archives import make
from imagenet_prep.engines import make_engine
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import Done, ShardInfo
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.stages.convert import convert
from imagenet_prep.stages.verify import verify
from imagenet_prep.state.manifest import load_manifest
from imagenet_prep.storage.layout import Layout

CORPUS = Path(__file__).resolve().parents[2] / "tests" / "corpus"
"""A folder a target: its seeds, and inputs that once were findings."""

_STAMP = 1_339_545_600_000_000_000  # of every file: what is kept of them is the same each time
SHARD = "train-00000-of-00002"


@dataclass(frozen=True, slots=True)
class Target:
    """A parser to fuzz.

    Args:
        name: also that of its folder in tests/corpus.
        run: parses an input; raises for a finding.
        limit: bytes of the longest input.
        mutate: changes an input knowing its format.
        words: what libFuzzer may put in.
    """

    name: str
    run: Callable[[bytes], object]
    limit: int
    mutate: mutations.Mutate | None
    words: tuple[str, ...]

    def warm_up(self) -> None:
        """Run the seeds: what is imported or made only once counts for no input."""
        for seed in sorted((CORPUS / self.name).glob("seed-*")):
            self.run(seed.read_bytes())


TARGETS: dict[str, Target] = {}


def target(
    *, limit: int = 4096, mutate: mutations.Mutate | None = None, words: str = ""
) -> Callable[[Callable[[bytes], object]], Callable[[bytes], object]]:
    """Make a target of a function, under its own name; ``words`` are divided by blanks."""

    def register(run: Callable[[bytes], object]) -> Callable[[bytes], object]:
        TARGETS[run.__name__] = Target(run.__name__, run, limit, mutate, tuple(words.split()))
        return run

    return register


# where files and sets lie -------------------------------------------------------------------------


class Here:
    """An engine that runs each task where it stands: what a task raises reaches the fuzzer."""

    workers = 1

    def map(self, function: Callable[[Any], Any], tasks: Any) -> Any:
        """Run ``function`` on every task."""
        for task in tasks:
            yield Done(task, function(task))


class _Folder:
    """A folder in memory, made when it is first asked for and removed with the process;
    in it a small set.
    """

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._layout: Layout | None = None

    @property
    def path(self) -> Path:
        if self._folder is None:
            memory = "/dev/shm"
            self._folder = tempfile.TemporaryDirectory(
                dir=memory if Path(memory).is_dir() else None
            )
        return Path(self._folder.name)

    @property
    def layout(self) -> Layout:
        """A set of four shards, verified, with all that imagenet-prep keeps of it."""
        if self._layout is None:
            self._layout = Layout(self.path / "set")
            made = make(self._layout.raw_dir, classes=2, per_class=3, validation=2, tiny=True)
            _stamp(made.archives.values())
            engine = make_engine("threads", 1)
            annotate(self._layout, engine)
            options = ConvertOptions(
                train_shards=2, validation_shards=2, check="header", allow_incomplete=True
            )
            convert(self._layout, engine, options)
            _stamp(
                self._layout.data_dir.rglob("*")
            )  # by sizes and times a verdict is of these files, or of others
            verify(self._layout, engine)
        return self._layout

    @functools.cached_property
    def infos(self) -> Mapping[str, ShardInfo]:
        """What the manifest of the set records of its shards."""
        manifest = load_manifest(self.layout.manifest_path)
        assert manifest is not None
        return manifest.shards

    def copy(self, name: str) -> Layout:
        """A copy of the set for one target, whose inputs may stay in it."""
        folder = self.path / name
        if not folder.exists():
            shutil.copytree(self.layout.data_dir, folder)
        return Layout(folder)

    def remove(self) -> None:
        """Take it all away; for a process that ends without saying so."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


def _stamp(paths: Iterable[Path]) -> None:
    for path in paths:
        os.utime(path, ns=(_STAMP, _STAMP))


HOME = _Folder()


def file_of(data: bytes, name: str = "input") -> Path:
    """A file in memory with this content; the next one of the same name takes its place."""
    path = HOME.path / name
    path.write_bytes(data)
    return path
