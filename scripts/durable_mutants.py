"""Breaks the order of durable writing, one place at a time, in a copy of the project: a test must
fail each time.

    python scripts/durable_mutants.py [--only WORD]

mutmut changes what a module computes. Only tests of recorded system calls notice a sync in the
wrong order.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
POWER = "tests/test_power_cut.py::"
AT_EXIT = f"{POWER}test_what_is_done_at_exit_is_on_the_disk"
NAMED = f"{POWER}test_a_shard_gets_its_name_once_its_bytes_are_safe"
JOURNALLED = f"{POWER}test_a_journal_line_on_the_disk_speaks_of_files_on_the_disk"
WHOLE = f"{POWER}test_an_atomic_file_is_whole_or_as_it_was"
LINES = f"{POWER}test_a_journal_line_stays_once_it_is_synced"
SAVED = f"{POWER}test_what_was_saved_stays"
FINISHED = f"{POWER}test_a_file_being_finished_is_never_lost"
LAST_COPY = f"{POWER}test_no_power_cut_takes_the_last_copy_of_an_image"
ONE_NAME = f"{POWER}test_an_archive_to_consume_has_one_name_on_the_disk"
RANKS = f"{POWER}test_a_record_of_a_rank_goes_once_the_set_has_its_own"
PARTIAL = f"{POWER}test_a_partial_file_never_says_too_much"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A module of the package, a text that occurs once in it,
    its replacement, and the test that must fail.
    """

    module: str
    old: str
    new: str
    test: str


MUTANTS = (
    Mutant(
        "storage/local.py",
        "os.fsync(file.fileno())\n            partial.replace(path)",
        "partial.replace(path)",
        WHOLE,
    ),
    Mutant(
        "storage/local.py",
        "partial.replace(path)\n            fsync_dir(path.parent)",
        "partial.replace(path)",
        WHOLE,
    ),
    Mutant("storage/local.py", "os.fsync(self._open())", "self._open()", NAMED),
    Mutant("storage/local.py", "os.fsync(self._file.fileno())", "self._file.fileno()", LINES),
    Mutant(
        "storage/local.py",
        "            fsync_dir(path.parent)\n        else:",
        "            pass\n        else:",
        LINES,
    ),
    Mutant(
        "storage/durable.py", "            fsync_dir(new_folder.parent)", "            pass", SAVED
    ),
    Mutant(
        "shards/maker.py", "sink.seal()\n        self._write_index()", "self._write_index()", NAMED
    ),
    Mutant(
        "shards/maker.py",
        "if is_taken or self._task.syncs:",
        "if self._task.syncs:",
        f"{NAMED}[overwrite]",
    ),
    Mutant("shards/run.py", "                store.sync()", "                pass", JOURNALLED),
    Mutant(
        "stages/untar.py",
        "                sync_file_system(raw_dir)",
        "                pass",
        AT_EXIT,
    ),
    Mutant(
        "stages/untar.py",
        "                    fsync_dir(raw_dir / split)",
        "                    pass",
        AT_EXIT,
    ),
    Mutant("fetch/partial.py", "os.fsync(self._open_file())", "self._open_file()", PARTIAL),
    Mutant(
        "fetch/partial.py", "            fsync_dir(self.path.parent)", "            pass", SAVED
    ),
    Mutant(
        "fetch/partial.py",
        "    path.replace(final)",
        "    forget(path)\n    path.replace(final)",
        FINISHED,
    ),
    Mutant("fetch/partial.py", "        fsync_dir(folder)", "        pass", SAVED),
    Mutant(
        "shards/consuming.py",
        "    layout.shards.sync()  # finished shards must be durable: "
        "the space of their images is freed, too\n"
        "    layout.indexes.sync()\n",
        "",
        LAST_COPY,
    ),
    Mutant(
        "shards/consumption.py",
        "                fsync_dir(path.parent)",
        "                pass",
        ONE_NAME,
    ),
    Mutant(
        "state/journal.py", "self.sync()\n        for path in theirs:", "for path in theirs:", RANKS
    ),
    Mutant(
        "shards/finishing.py",
        "    manifest.save(layout.manifest_path)\n",
        "    take_in_parts(layout, journal)\n    manifest.save(layout.manifest_path)\n",
        RANKS,
    ),
)


def tried(project: Path, mutant: Mutant) -> bool:
    """Whether the mutant's test fails with its edit in place."""
    path = project / "imagenet_prep" / mutant.module
    before = path.read_text()
    path.write_text(before.replace(mutant.old, mutant.new))
    try:
        call = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", mutant.test]
        environment = {**os.environ, "PYTHONPATH": str(project)}
        done = subprocess.run(call, cwd=project, capture_output=True, text=True, env=environment)
    finally:
        path.write_text(before)
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    return done.returncode == 1


def main() -> int:
    """Try the mutants; the exit status is 1 if one survived."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", default="", metavar="WORD", help="mutants with this in their module or test"
    )
    only = parser.parse_args().only
    survived = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copy = Path(folder, "project")
        shutil.copytree(
            PROJECT,
            copy,
            symlinks=True,
            ignore=shutil.ignore_patterns(".*", "mutants", "__pycache__"),
        )
        for mutant in (each for each in MUTANTS if only in f"{each.module} {each.test}"):
            is_killed = tried(copy, mutant)
            survived += not is_killed
            print(
                f"{'killed' if is_killed else 'SURVIVED':<9}{mutant.module}: {mutant.old!r}",
                flush=True,
            )
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
