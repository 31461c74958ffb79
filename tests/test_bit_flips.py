"""One bit flipped in any byte of what is kept beside shards:
no command ends well with other records than before.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from existing import existing
from made_sets import data_of
from made_tars import save

from imagenet_prep import (
    ConvertOptions,
    Layout,
    PrepError,
    annotate,
    convert,
    export,
    make_engine,
    verify,
)
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import make
from imagenet_prep.fetch.target import Target
from imagenet_prep.model import Silent
from imagenet_prep.pipeline import verify_and_repair
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.shards import regroup
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.merge import merge

pytestmark = pytest.mark.once

ENGINE = make_engine("threads", 1)
OPTIONS = ConvertOptions(train_shards=2, validation_shards=1, allow_incomplete=True, check="header")
CONSUME = OPTIONS.replace(consume=True, memory=2000)
_LARGE = 8192
SAMPLED = 8
"""Flips of each set and command in the tests of each day."""

Convert = Callable[[Layout, Share | None], object]
Files = dict[Path, tuple[bytes, int]]


@dataclass
class Kept:
    """A set whose state files are flipped: its files with their times,
    and the records that it must have.
    """

    layout: Layout
    convert: Convert
    records: dict[str, list[bytes]] = field(default_factory=dict)
    exported: dict[str, bytes] = field(default_factory=dict)
    files: Files = field(default_factory=dict)

    def keep(self) -> None:
        """Remember all files as they are."""
        self.files = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in self._paths()}

    def restore(self) -> None:
        """Make the folder what it was."""
        for path in self._paths() - self.files.keys():
            path.unlink()
        for path, (content, time) in self.files.items():
            if (
                not path.exists()
                or path.stat().st_mtime_ns != time
                or path.stat().st_size != len(content)
            ):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
                os.utime(path, ns=(time, time))

    def state_files(self) -> list[Path]:
        """The files beside the shards that are not empty."""
        names = {"annotate.json", "checked.json"}
        is_state = {
            path: "imagenet-prep" in path.parts[-5:-1] or path.name in names for path in self.files
        }
        return sorted(
            path for path, (content, _) in self.files.items() if is_state[path] and content
        )

    def shards(self) -> dict[str, list[bytes]]:
        """The records of each shard in the folder."""
        return {path.name: data_of(path) for path in existing(self.layout.output_dir, "*-of-*")}

    def _paths(self) -> set[Path]:
        return {
            path
            for path in existing(self.layout.data_dir, "**/*")
            if path.is_file() and path.name != "lock"
        }


def _export(kept: Kept) -> dict[str, bytes]:
    out = kept.layout.data_dir.with_name("exported")
    try:
        export(kept.layout, "webdataset", out, ENGINE)
        return {str(path.relative_to(out)): path.read_bytes() for path in existing(out, "**/*.tar")}
    finally:
        shutil.rmtree(out, ignore_errors=True)


# the sets -----------------------------------------------------------------------------------------


def _archives(folder: Path) -> Layout:
    """A DATA_DIR with tiny archives whose digests were seen, and the boxes of their images."""
    made = make(folder.with_name("source"), classes=2, per_class=4, validation=3, tiny=True)
    layout = Layout(folder)
    layout.raw_dir.mkdir(parents=True)
    for path in made.archives.values():
        shutil.copy2(path, layout.raw_dir)
        digest = hashlib.md5(path.read_bytes()).hexdigest()
        with contextlib.suppress(PrepError):
            Target(layout, path.name, None, {"md5": digest}).check_present(Silent())
    annotate(layout, ENGINE)
    return layout


def _plain(layout: Layout, share: Share | None) -> object:
    return convert(layout, ENGINE, OPTIONS, share=share)


def _consuming(layout: Layout, share: Share | None) -> object:
    return convert(layout, ENGINE, CONSUME, share=share)


def _recipe(layout: Layout, share: Share | None) -> object:
    return convert(layout, ENGINE, dataset=RecipeSet.read(layout.data_dir / "r.yaml"), share=share)


def _add(folder: Path, numbers: range) -> None:
    for number in numbers:
        save(folder / "data" / "ab"[number % 2] / f"{number}.jpg", photographs.tiny(number))


def _finished(layout: Layout, convert: Convert) -> Kept:
    """A finished set."""
    convert(layout, None)
    kept = Kept(layout, convert)
    kept.records, kept.exported = kept.shards(), _export(kept)
    verify(layout, ENGINE)
    return kept


def plain(folder: Path) -> Kept:
    """A finished set of archives with boxes."""
    return _finished(_archives(folder), _plain)


def unfinished(folder: Path) -> Kept:
    """The same, without a shard and the manifest: its run was killed."""
    kept = plain(folder)
    kept.layout.manifest_path.unlink()
    kept.layout.shard_path("train-00001-of-00002").unlink()
    return kept


def ranked(folder: Path) -> Kept:
    """The same, made by two ranks, and not merged."""
    kept = plain(folder)
    shutil.rmtree(kept.layout.state_dir)
    for path in existing(kept.layout.output_dir, "*-of-*"):
        path.unlink()
    for rank in range(2):
        _plain(kept.layout, Share(rank, 2))
    return kept


def grown(folder: Path) -> Kept:
    """Class folders that have grown twice, by a shard each time."""
    folder.mkdir()
    (folder / "r.yaml").write_text("source: {folders: data}\nshards: 2\ngrow: true\n")
    layout = Layout(folder)
    _add(folder, range(6))
    _recipe(layout, None)
    _add(folder, range(6, 9))
    _recipe(layout, None)
    _add(folder, range(9, 12))
    return _finished(layout, _recipe)


def growing(folder: Path) -> Kept:
    """The same, in mid-growth: its run was killed."""
    kept = grown(folder)
    kept.layout.manifest_path.unlink()
    kept.layout.shard_path(max(name for name in kept.records if "grown" in name)).unlink()
    return kept


def consumed(folder: Path) -> Kept:
    """A finished set whose archives gave their space to the shards."""
    return _finished(_archives(folder), _consuming)


def consuming(folder: Path) -> Kept:
    """The same in midway: some images are in bundles alone."""
    expected = consumed(folder)
    shutil.rmtree(folder)
    kept = Kept(_archives_again(folder), _consuming, expected.records, expected.exported)
    with pytest.MonkeyPatch.context() as patch:
        calls = iter(range(100))
        write = regroup.write_all

        def dies(*arguments: object) -> object:
            if next(calls) == 3:
                raise RuntimeError("killed")
            return write(*arguments)  # type: ignore[arg-type]

        patch.setattr(regroup, "write_all", dies)
        with contextlib.suppress(RuntimeError, PrepError):
            _consuming(kept.layout, None)
    return kept


def _archives_again(folder: Path) -> Layout:
    shutil.rmtree(folder.with_name("source"))
    return _archives(folder)


SETS = {
    each.__name__: each for each in (plain, unfinished, ranked, grown, growing, consumed, consuming)
}


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for many runs that sync a lot: in memory where there is such a place."""
    memory = Path("/dev/shm")
    name = f"imagenet-prep-flips-{os.getpid()}"
    folder = (
        memory / name if os.access(memory, os.W_OK) else tmp_path_factory.mktemp("quick") / name
    )
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module", params=SETS.values(), ids=SETS)
def kept(quick: Path, request: pytest.FixtureRequest) -> Kept:
    """One of the sets, remembered."""
    shutil.rmtree(quick / "set", ignore_errors=True)
    shutil.rmtree(quick / "source", ignore_errors=True)
    made: Kept = request.param(quick / "set")
    made.keep()
    assert len(made.state_files()) > 8
    return made


# the commands -------------------------------------------------------------------------------------


def _run_verify(kept: Kept) -> None:
    if verify(kept.layout, ENGINE).problems:
        raise PrepError("problems")


COMMANDS: dict[str, Callable[[Kept], object]] = {
    "convert": lambda kept: kept.convert(kept.layout, None),
    "rank": lambda kept: [kept.convert(kept.layout, Share(rank, 2)) for rank in range(2)],
    "merge": lambda kept: merge(kept.layout),
    "verify": _run_verify,
    "repair": lambda kept: verify_and_repair(kept.layout, ENGINE),
    "export": lambda kept: (
        kept.exported == _export(kept) or pytest.fail("it exported other records")
    ),
}


def _fault(kept: Kept, command: str, path: Path, position: int) -> str:
    """What is wrong with a command after a flip; "" if nothing is."""
    content, _ = kept.files[path]
    flipped = (
        content[:position]
        + bytes([content[position] ^ 1 << position % 8])
        + content[position + 1 :]
    )
    path.unlink()  # a map of it may still be open
    path.write_bytes(flipped)
    where = f"{command}, {path.relative_to(kept.layout.data_dir)}, byte {position}"
    is_plan = "plan" in path.parts
    try:
        COMMANDS[command](kept)
        return "" if kept.shards() == kept.records else f"{where}: status 0, and other records"
    except PrepError as error:
        if is_plan and command in ("convert", "rank") and kept.convert is not _consuming:
            return f"{where}: a damaged plan stops it: {error.what}"
        return ""
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - any: it would be a traceback
        return f"{where}: {error!r}"
    finally:
        path.unlink(missing_ok=True)  # whatever its time is
        kept.restore()


@pytest.mark.parametrize("command", COMMANDS)
def test_some_flipped_bits(kept: Kept, command: str) -> None:
    """A bit of some bytes of the state of each set:
    a command refuses it, or ends with the same records.
    """
    chance = random.Random(command)
    places = [(path, chance.randrange(len(kept.files[path][0]))) for path in kept.state_files()]
    chosen = chance.sample(places, min(SAMPLED, len(places)))
    assert [
        *filter(None, (_fault(kept, command, path, position) for path, position in chosen))
    ] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", COMMANDS)
def test_every_flipped_byte(kept: Kept, command: str) -> None:
    """A bit of each byte of each state file;
    of 1,000 class words and their like, of each 64th byte.
    """
    faults = []
    for path in kept.state_files():
        size = len(kept.files[path][0])
        positions = range(0, size, 64 if size > _LARGE else 1)
        faults += [*filter(None, (_fault(kept, command, path, position) for position in positions))]
    assert faults == []
