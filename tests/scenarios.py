"""Commands on tiny sets, with what lies there before each:
for tests and scripts that cut them short.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from made_sets import flip
from made_tars import contents, save
from power_cut import Commands, Run, flat, read
from syscalls import record

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.fetch.target import Target
from imagenet_prep.model import Silent
from imagenet_prep.storage.layout import Layout

_KILLED = """
import os, runpy, signal, sys
import numpy
from imagenet_prep.cli import main

def kill(event, values):
    if event == "os.rename" and os.path.basename(values[1]).startswith(name):
        os.killpg(0, signal.SIGKILL)

names = sys.argv.pop(1).split()
for name in names:
    child = os.fork()
    if child == 0:
        os.setsid()
        sys.addaudithook(kill)
        main()
        os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended == -signal.SIGKILL, ended
runpy.run_module("imagenet_prep", run_name="__main__", alter_sys=True)
"""
"""Runs of a command, each killed with its workers before it gives a file some name,
and a last run.
"""

_OWN = (
    "checked.json",
    "annotate.json",
    "catalog.json",
    "plan.json",
    "verdict.json",
    "problems.jsonl",
    "lock",
)
"""Files that hold times or paths, or what a verify found."""

FOLDER = "data"
"""The name of every folder that a scenario runs in: a set without a name of its own takes that."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A command, and what makes the folder that it runs in."""

    name: str
    command: tuple[str, ...]
    prepare: Callable[[Path, MadeSet, Commands], None]
    killed_at: str = ""
    """Files: before each is named, a run of the command is killed;
    the command then runs once more.
    """


def results(files: dict[str, bytes]) -> dict[str, bytes]:
    """What a run must end with, of all files by path: without times, paths, and what was left aside
    unfinished.

    The journal is the last entry of each shard, in the order of their names; ranks' own parts are
    read as one with it.
    """
    found = {}
    for path, data in files.items():
        *folders, name = path.split("/")
        is_own = name in _OWN or name.startswith(("journal", "rank-")) or name.endswith(".partial")
        if not is_own and not {"partial", ".partial", "plan"} & {*folders}:
            found[path] = _without_paths(name, data)
    if lines := journal_lines(files):
        found["imagenet-prep/journal.jsonl"] = b"\n".join(lines[each] for each in sorted(lines))
    return found


def _without_paths(name: str, data: bytes) -> bytes:
    """The record of consumed data without the digest of paths;
    the whole lines of an export's record, each once.
    """
    if name == "record.json":
        value = json.loads(data)
        return json.dumps(
            {key: value[key] for key in sorted(value.keys() - {"listing", "crc"})}
        ).encode()
    if name == "exported.jsonl":
        whole = {line for line in data.splitlines() if line.endswith(b"}")}
        return b"\n".join(sorted(whole))
    return data


def journal_lines(files: dict[str, bytes]) -> dict[str, bytes]:
    """The last entry of each shard by its name, the journal's and those of ranks."""
    lines = {}
    for path in sorted(files):
        if path.startswith("imagenet-prep/journal"):
            for line in files[path].splitlines():
                with contextlib.suppress(ValueError):  # a line that was cut short
                    lines[json.loads(line)["name"]] = line
    return lines


def _archives(folder: Path, made: MadeSet, _: Commands) -> None:
    (folder / "raw-data").mkdir(parents=True)
    for path in made.archives.values():
        shutil.copy2(path, folder / "raw-data")


def _archives_seen(folder: Path, made: MadeSet, commands: Commands) -> None:
    """The archives, and the record that their digests were compared."""
    _archives(folder, made, commands)
    for path in made.archives.values():
        digest = hashlib.md5(path.read_bytes()).hexdigest()
        Target(Layout(folder), path.name, None, {"md5": digest}).check_present(Silent())


def _damaged(convert: tuple[str, ...]) -> Callable[[Path, MadeSet, Commands], None]:
    """A set with a byte of one shard flipped, another shard cut, and an index of a third gone."""

    def prepare(folder: Path, made: MadeSet, commands: Commands) -> None:
        _finished(convert)(folder, made, commands)
        first, second, *_, last = sorted(folder.glob("*-of-*"))
        flip(first, first.stat().st_size // 2)
        second.write_bytes(second.read_bytes()[:-5])
        (folder / f"imagenet-prep/index/{last.name}.idx").unlink()

    return prepare


def _finished(convert: tuple[str, ...]) -> Callable[[Path, MadeSet, Commands], None]:
    """A finished set."""

    def prepare(folder: Path, made: MadeSet, commands: Commands) -> None:
        _archives(folder, made, commands)
        _must(commands, convert, folder)

    return prepare


def _made_by_ranks(convert: tuple[str, ...]) -> Callable[[Path, MadeSet, Commands], None]:
    """All shards made by two ranks."""

    def prepare(folder: Path, made: MadeSet, commands: Commands) -> None:
        _archives(folder, made, commands)
        for rank in ("0/2", "1/2"):
            _must(commands, (*convert, "--rank", rank), folder)

    return prepare


def _untarred_in_part(folder: Path, made: MadeSet, commands: Commands) -> None:
    """Image folders that lack one image, hold another one cut short, and lack a class."""
    _archives(folder, made, commands)
    _must(commands, ("untar", ".", "--workers", "1"), folder)
    classes = sorted(path for path in (folder / "raw-data/train").iterdir())
    shutil.rmtree(classes[0])
    images = sorted(classes[1].iterdir())
    images[0].unlink()
    images[1].write_bytes(images[1].read_bytes()[:-3])


def _recipe(shards: int) -> Callable[[Path, MadeSet, Commands], None]:
    def prepare(folder: Path, made: MadeSet, _: Commands) -> None:
        _photos(folder, made)
        recipe = ["source: {files: photos/*.JPEG}", "labels: labels.csv", f"shards: {shards}"]
        (folder / "recipe.yaml").write_text("\n".join(recipe) + "\n")

    return prepare


def _photos(folder: Path, made: MadeSet) -> None:
    """Train images in one folder, and their labels."""
    images = contents(made, "train")
    for name, content in images.items():
        save(folder / "photos" / name, content)
    lines = [f"photos/{name},{number % 7}" for number, name in enumerate(sorted(images))]
    (folder / "labels.csv").write_text("\n".join(["path,label", *lines]) + "\n")


def _relabelled(shards: int, convert: tuple[str, ...]) -> Callable[[Path, MadeSet, Commands], None]:
    """A finished set, and then other labels: each new shard has the name
    and the length of an old one.
    """

    def prepare(folder: Path, made: MadeSet, commands: Commands) -> None:
        _recipe(shards)(folder, made, commands)
        _must(commands, convert, folder)
        labels = folder / "labels.csv"
        lines = [
            line[:-1] + str((int(line[-1]) + 1) % 7) for line in labels.read_text().splitlines()[1:]
        ]
        labels.write_text("\n".join(["path,label", *lines]) + "\n")

    return prepare


def _growing(
    shards: int, convert: tuple[str, ...], *, is_grown: bool = False
) -> Callable[[Path, MadeSet, Commands], None]:
    """A finished set that may grow, and then more files;
    or the set that grew, and a recipe with other shards.
    """

    def prepare(folder: Path, made: MadeSet, commands: Commands) -> None:
        _recipe(shards)(folder, made, commands)
        recipe, labels = folder / "recipe.yaml", folder / "labels.csv"
        recipe.write_text(recipe.read_text() + "grow: true\n")
        head, *lines = labels.read_text().splitlines()
        later = folder / "later"
        later.mkdir()
        for line in lines[len(lines) // 2 :]:
            name = line.partition(",")[0].removeprefix("photos/")
            (folder / "photos" / name).rename(later / name)
        labels.write_text("\n".join([head, *lines[: len(lines) // 2]]) + "\n")
        _must(commands, convert, folder)
        for path in sorted(later.iterdir()):
            path.rename(folder / "photos" / path.name)
        later.rmdir()
        labels.write_text("\n".join([head, *lines]) + "\n")
        if is_grown:
            _must(commands, convert, folder)
            recipe.write_text(
                recipe.read_text().replace(f"shards: {shards}", f"shards: {shards + 1}")
            )

    return prepare


def _all_shards_and_no_manifest(
    convert: tuple[str, ...],
) -> Callable[[Path, MadeSet, Commands], None]:
    """A set whose manifest alone is to be written."""

    def prepare(folder: Path, made: MadeSet, commands: Commands) -> None:
        _finished(convert)(folder, made, commands)
        (folder / "imagenet-prep/manifest.json").unlink()

    return prepare


def _must(commands: Commands, command: tuple[str, ...], folder: Path) -> None:
    status, printed = commands.run(command, folder)
    assert status == 0, printed


def scenarios(shards: int, workers: int) -> dict[str, Scenario]:
    """Every scenario by name; ``shards`` of train images, or of a recipe's."""
    by = ("--workers", str(workers))
    counts = ("--train-shards", str(shards), "--validation-shards", "1")
    convert = ("convert", ".", "--allow-incomplete", *counts, *by)
    recipe = ("convert", ".", "--config", "recipe.yaml", *by)
    consume = (*convert, "--consume", "--set", "memory=1500")
    exports = {
        "webdataset": ("out", *by),
        "folders": ("out", *by),
        "arrayrecord": ("out", *by),
        "tfds": by,
    }
    found = (
        Scenario("convert", convert, _archives),
        Scenario("sequential", (*convert, "--set", "read_order=sequential"), _archives),
        Scenario("consume", consume, _archives_seen),
        Scenario("consume-again", consume, _archives_seen, killed_at="train-00000 train-00001"),
        Scenario("rank", (*convert, "--rank", "0/2"), _archives),
        Scenario("merge", ("merge", "."), _made_by_ranks(convert)),
        Scenario("gzip", (*convert, "--set", "compression=gzip"), _archives),
        Scenario("recipe", recipe, _recipe(shards)),
        Scenario("overwrite", (*recipe, "--overwrite"), _relabelled(shards, recipe)),
        Scenario(
            "overwrite-again",
            (*recipe, "--overwrite"),
            _relabelled(shards, recipe),
            killed_at="train-00000",
        ),
        Scenario(
            "overwrite-grown", (*recipe, "--overwrite"), _growing(shards, recipe, is_grown=True)
        ),
        Scenario(
            "overwrite-rank", (*recipe, "--overwrite", "--rank", "0/2"), _relabelled(shards, recipe)
        ),
        Scenario("grow", recipe, _growing(shards, recipe)),
        Scenario(
            "grow-again",
            recipe,
            _growing(shards, recipe),
            killed_at="train-grown2-00000 manifest.json",
        ),
        Scenario("finish", convert, _all_shards_and_no_manifest(convert)),
        Scenario("repair", ("repair", ".", *by), _damaged(convert)),
        Scenario("untar", ("untar", ".", *by), _archives),
        Scenario("untar-again", ("untar", ".", *by), _untarred_in_part),
        Scenario("annotate", ("annotate", ".", *by), _archives),
        *(
            Scenario(each, ("export", each, ".", *more), _finished(convert))
            for each, more in exports.items()
        ),
    )
    return {scenario.name: scenario for scenario in found}


@dataclass(frozen=True, slots=True)
class Recording(Run):
    """An unbroken run of a scenario, and what it ended with."""

    scenario: Scenario
    expected: dict[str, bytes]

    def expected_line(self, shard: str) -> bytes:
        """The line of a shard in the journal in the end."""
        return journal_lines(self.expected).get(shard, b"")


def record_scenario(
    scenario: Scenario, folder: Path, made: MadeSet, commands: Commands
) -> Recording:
    """Run a scenario under strace; what it did must account for every byte that it left."""
    before, work = (folder / scenario.name / state / FOLDER for state in ("before", "work"))
    scenario.prepare(before, made, commands)
    shutil.copytree(before, work)
    first = ["-c", _KILLED, scenario.killed_at] if scenario.killed_at else ["-m", "imagenet_prep"]
    run = Run(before, record([*first, *scenario.command], work))
    found = read(work)
    assert flat(run.end().tree()) == found
    shutil.rmtree(work)
    return Recording(run.before, run.operations, scenario, results(found))


def run_after(recording: Recording, folder: Path, commands: Commands, called: str) -> str:
    """Run a scenario's command once more on what a power cut left; what is wrong then, "" if
    nothing is.

    File systems keep the order in which names were given; where ``called`` says that they did not,
    shards without an index may be taken for a stranger's. Nothing is lost then, and --overwrite
    goes on.
    """
    if fault := called_right(recording, folder, commands):
        return fault
    status, printed = commands.run(recording.scenario.command, folder)
    if status == 2 and called.startswith("names") and "imagenet-prep lists" in printed:
        commands.run((*recording.scenario.command, "--overwrite"), folder)
        status, printed = commands.run(recording.scenario.command, folder)
    if status:
        return f"exit status {status}: {printed[-1000:]}"
    return differing(recording, read(folder))


def called_right(recording: Recording, folder: Path, commands: Commands) -> str:
    """What is wrong with a set that verify calls right, "" if nothing is:
    it is the one before, or the one to be.
    """
    command, *_ = recording.scenario.command
    if (
        command not in ("convert", "merge")
        or commands.run(("verify", ".", "--workers", "1"), folder)[0]
    ):
        return ""
    found, before, expected = (
        _shards(files) for files in (read(folder), read(recording.before), recording.expected)
    )
    return (
        ""
        if found in (before, expected)
        else f"verify ends with 0, of {', '.join(found) or 'no shards'}"
    )


def _shards(files: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if "/" not in path and "-of-" in path}


def differing(recording: Recording, files: dict[str, bytes]) -> str:
    """In which files a folder differs from what the unbroken run ended with, in words;
    "" if in none.
    """
    found = results(files)
    wrong = sorted(
        path
        for path in {*found, *recording.expected}
        if found.get(path) != recording.expected.get(path)
    )
    return f"other bytes in {', '.join(wrong)}" if wrong else ""
