"""Break the code in the ways listed in scripts/mutants/*.yaml, one at a time, and say which of them no test notices.

    python scripts/mutants.py                            # all of them, two at a time
    python scripts/mutants.py --only formats             # one list
    python scripts/mutants.py --only varint-limit,untar  # single mutants by name, and lists

A list is a YAML file of entries:

    - name: varint-limit                  # of its own among all lists
      file: imagenet_prep/tfrecord/example.py
      old: "value < 0x80"                 # a text that is in the file exactly once
      new: "value <= 0x80"
      tests: ["tests/test_example.py::test_varints"]
      equivalent: why no test can tell    # only where it is so

The tests named must fail with the edit in place. The edits are made in copies of the project in a temporary folder,
never in the working tree. Before that, all tests named must pass there without an edit. A test that hangs counts as
one that failed. Exit status 1: a mutant survives without a reason, one that is said to be equivalent is noticed,
more than 5% of all survive, an entry does not apply, or its tests fail anyway.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent

MAY_SURVIVE = 0.05
"""The share of all mutants that may survive, each with its reason."""

KILLED, TIMED_OUT, SURVIVED, EQUIVALENT = "killed", "timed out", "survived", "equivalent"
NOTICED, UNTRIED = "noticed", "untried"
"""What became of a mutant. Equivalent: it survived as was said. Noticed: it was said to be equivalent, and is not.
Untried: its tests do not pass without it."""

_GRACE, _SLOWER = 120.0, 10.0  # a run may take so many seconds for imports and fixtures, and so many times its tests


class NotApplicableError(Exception):
    """Mutants that can't be tried as they are listed."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit, and the tests that must fail with it."""

    area: str
    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str | None = None


@dataclass(slots=True)
class Copy:
    """A copy of the project, and where its tests keep their files."""

    tree: Path
    scratch: Path

    def pytest(self, tests: Sequence[str], *options: str, limit: float | None = None) -> int | None:
        """The exit status of pytest on ``tests``, or None when it took longer than ``limit`` seconds."""
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", *options]
        environment = {**os.environ, "PYTHONPATH": str(self.tree), "PYTHONDONTWRITEBYTECODE": "1"}
        process = subprocess.Popen(
            [*command, f"--basetemp={self.scratch}", *tests],
            cwd=self.tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with_children(process, signal.SIGKILL)
            shutil.rmtree(self.scratch, ignore_errors=True)
            shutil.rmtree(self.tree / ".hypothesis", ignore_errors=True)  # what failed with another edit is no news

    @contextmanager
    def edited(self, mutant: Mutant) -> Iterator[None]:
        """The tree with the edit in place."""
        path = self.tree / mutant.file
        text, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
        try:
            path.write_bytes(text.replace(mutant.old.encode(), mutant.new.encode()))
            os.utime(path, (1, 1))  # else compiled code of the same size and second could be taken for it
            yield
        finally:
            path.write_bytes(text)
            os.utime(path, ns=times)


def with_children(process: subprocess.Popen[Any], number: int) -> None:
    """Send a signal to a process that leads a session, and to all that it left running."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
    process.wait()


# the lists ------------------------------------------------------------------------------------------------------


def load_mutants(root: Path) -> list[Mutant]:
    """All entries of all lists. Raises NotApplicableError if one is no entry, or two have the same name."""
    mutants: list[Mutant] = []
    wrong: list[str] = []
    for path in sorted((root / "scripts" / "mutants").glob("*.yaml")):
        for number, entry in enumerate(yaml.safe_load(path.read_text()) or [], 1):
            try:
                mutants.append(Mutant(path.stem, **{**entry, "tests": tuple(entry["tests"])}))
            except (TypeError, KeyError) as error:
                wrong.append(f"{path.name}, entry {number}: {error}")
    names = Counter(each.name for each in mutants)
    wrong += [f"{name}: {times} mutants have this name" for name, times in names.items() if times > 1]
    if wrong:
        raise NotApplicableError("\n".join(wrong))
    return mutants


def check_mutants(root: Path, mutants: Sequence[Mutant]) -> None:
    """Raise NotApplicableError with every entry that can't be tried as it stands."""
    wrong = [f"{each.area}: {each.name}: {fault}" for each in mutants if (fault := fault_of(root, each))]
    if wrong:
        raise NotApplicableError("\n".join(wrong))


def fault_of(root: Path, mutant: Mutant) -> str | None:
    """Why a mutant can't be tried, if so."""
    path = root / mutant.file
    if not path.is_file():
        return f"{mutant.file} is not there"
    text = path.read_text()
    if (times := text.count(mutant.old)) != 1:
        return f"its old text is {times} times in {mutant.file}"
    if mutant.old == mutant.new:
        return "its new text is its old text"
    if path.suffix == ".py":
        try:
            compile(text.replace(mutant.old, mutant.new), mutant.file, "exec")
        except SyntaxError as error:
            return f"{mutant.file} would be no Python: {error}"
    if not mutant.tests:
        return "it names no tests"
    return None


def chosen(mutants: Sequence[Mutant], only: str | None) -> list[Mutant]:
    """Those of the lists and the names in ``only``, all of them without it."""
    if only is None:
        return list(mutants)
    wanted = set(only.split(","))
    unknown = wanted - {each.name for each in mutants} - {each.area for each in mutants}
    if unknown:
        raise NotApplicableError(f"neither a list nor a mutant: {', '.join(sorted(unknown))}")
    return [each for each in mutants if {each.name, each.area} & wanted]


# the runs -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Trial:
    """What became of all mutants so far."""

    results: list[tuple[Mutant, str]] = field(default_factory=list)

    def add(self, mutant: Mutant, result: str) -> None:
        """Keep a result, and print it."""
        self.results.append((mutant, result))
        print(f"{result:<10}  {mutant.area}: {mutant.name}", flush=True)

    def print_table(self) -> None:
        """Print a line an area, and each mutant that something is to be done about."""
        columns = (KILLED, TIMED_OUT, SURVIVED, EQUIVALENT, NOTICED, UNTRIED)
        print(f"\n{'list':<14}{'mutants':>9}" + "".join(f"{column:>12}" for column in columns))
        areas = sorted({mutant.area for mutant, _ in self.results})
        for area in [*areas, "all"]:
            of_area = Counter(result for mutant, result in self.results if area in (mutant.area, "all"))
            print(f"{area:<14}{of_area.total():>9}" + "".join(f"{of_area[column]:>12}" for column in columns))
        says = {
            SURVIVED: "no test notices it",
            NOTICED: "said to be equivalent, and a test notices it",
            UNTRIED: "its tests do not pass without it",
        }
        for mutant, result in self.results:
            if result in says:
                print(f"\n{mutant.area}: {mutant.name}: {says[result]}")
                print(f"    {mutant.file}: {mutant.old!r} -> {mutant.new!r}")

    def good(self, *, whole: bool) -> bool:
        """Whether this is as it must be; the share that survives is asked of the whole only."""
        results = Counter(result for _, result in self.results)
        few = results[EQUIVALENT] <= MAY_SURVIVE * len(self.results)
        return not any(results[each] for each in (SURVIVED, NOTICED, UNTRIED)) and (few or not whole)


def copy_project(root: Path, tree: Path) -> None:
    """Copy what git knows of, and new files that it does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        source, target = root / name, tree / name
        if name.split("/")[0] == ".venv" or not source.exists():  # a link to an environment; a file just removed
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target, follow_symlinks=False)


def seconds_without_edits(copy: Copy, tests: Sequence[str]) -> tuple[dict[str, float], set[str]]:
    """How long each of the tests takes with nothing edited, and which of them do not pass.

    Raises:
        NotApplicableError: they can't be run: one of them is not there, for instance.
    """
    report = copy.tree / "unedited.xml"
    status = copy.pytest(sorted(set(tests)), f"--junitxml={report}")
    seconds: dict[str, float] = {}
    failed: set[str] = set()
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        module, name = case.attrib["classname"].replace(".", "/") + ".py", case.attrib["name"]
        for key in {module, f"{module}::{name}", f"{module}::{name.partition('[')[0]}"}:
            seconds[key] = seconds.get(key, 0.0) + float(case.attrib["time"])
            if len(case):  # a failure, an error, or skipped
                failed.add(key)
        if len(case):
            print(f"without any edit: {module}::{name}: {case[0].tag}: {case[0].attrib.get('message', '')[:200]}")
    if status not in (0, 1) or (status and not failed):
        raise NotApplicableError(f"pytest ends with status {status} without any edit")
    return seconds, failed


def try_mutant(copy: Copy, mutant: Mutant, seconds: dict[str, float]) -> str:
    """Run the tests of one mutant with its edit in place, and say what became of it."""
    limit = _GRACE + _SLOWER * sum(seconds.get(test, 0.0) for test in mutant.tests)
    with copy.edited(mutant):
        status = copy.pytest(mutant.tests, "-x", limit=limit)
    if status == 0:
        return EQUIVALENT if mutant.equivalent else SURVIVED
    if mutant.equivalent:
        return NOTICED
    return TIMED_OUT if status is None else KILLED


def try_all(root: Path, mutants: Sequence[Mutant], jobs: int) -> Trial:
    """Try all mutants in ``jobs`` copies of the project."""
    trial = Trial()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(jobs) as pool:
        first = Copy(Path(folder, "0"), Path(folder, "scratch-0"))
        copy_project(root, first.tree)
        subprocess.run([sys.executable, "-m", "compileall", "-q", "."], cwd=first.tree, check=True)
        print(f"{len(mutants)} mutants; first their tests without any edit", flush=True)
        seconds, failed = seconds_without_edits(first, [test for mutant in mutants for test in mutant.tests])
        free: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        free.put(first)
        for number in range(1, jobs):
            tree = shutil.copytree(first.tree, Path(folder, str(number)), symlinks=True)
            free.put(Copy(tree, Path(folder, f"scratch-{number}")))

        def in_a_copy(mutant: Mutant) -> str:
            if failed.intersection(mutant.tests):
                return UNTRIED
            copy = free.get()
            try:
                return try_mutant(copy, mutant, seconds)
            finally:
                free.put(copy)

        running = {pool.submit(in_a_copy, mutant): mutant for mutant in mutants}
        for done in as_completed(running):
            trial.add(running[done], done.result())
    return trial


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Try the mutants asked for; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAMES", help="lists and single mutants, separated by commas")
    parser.add_argument("--jobs", type=int, default=2, help="how many to try at a time (2)")
    options = parser.parse_args(arguments)
    try:
        mutants = chosen(load_mutants(root), options.only)
        check_mutants(root, mutants)
        trial = try_all(root, mutants, options.jobs)
    except NotApplicableError as error:
        print(error, file=sys.stderr)
        return 1
    trial.print_table()
    return 0 if trial.good(whole=options.only is None) else 1


if __name__ == "__main__":
    sys.exit(main())
