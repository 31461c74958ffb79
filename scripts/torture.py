"""Interrupts every command in every way, on a disk of its own, and runs it again: the bytes must be
the same.

    python scripts/torture.py                               # 200 rounds, then every recorded power cut
    python scripts/torture.py --rounds 50 --only cut,full   # kinds of rounds, or commands, by name
    python scripts/torture.py --seed 7                      # other moments

The disk is a file with ext4 on it, mounted by a loop device, which requires root. If it can't be
mounted, the script says so, and runs only the rounds that need no disk. Each round makes a new disk
and runs a command on a tiny set, which may be new, grow, or be replaced with ``--overwrite``:

    cut        the power fails in mid-run: the file system stops, and unwritten data is lost
    after      the power fails right after exit status 0: everything must be on the disk
    full       a random amount of space is left; then some is freed, and the command runs again
    readonly   the file system finds a fault in mid-run and refuses further writes
    kill       the command is killed with its workers (kill -9)
    inject     the system refuses one call (strace)
    replay     a run is recorded (strace), and each state that a power cut may leave on any file system is made

After each round a set that verify calls right must be the one from before or the one to be made,
never a mixture. Then the command runs again. It must exit with status 0, and every shard, index,
list, manifest, image and
box must be, to the byte, that of an uninterrupted run. Exit status 1 if a round ends otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from power_cut import Commands, build, read  # noqa: E402 -- these modules are in tests/
from scenarios import FOLDER, Recording, differing, record_scenario, run_after, scenarios  # noqa: E402
from syscalls import environment  # noqa: E402

from imagenet_prep.demo.archives import make  # noqa: E402

MOUNTED = ("cut", "after", "full", "readonly")
KINDS = (*MOUNTED, "kill", "inject", "replay")

_SIZE = 48 << 20
_OPTIONS = (
    "defaults",
    "noauto_da_alloc",
    "noauto_da_alloc,data=writeback",
    "noauto_da_alloc,commit=1",
)
"""ext4 syncs a file that replaces another on rename;
most file systems don't, so this option turns it off.
"""
_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_NO_LOG_FLUSH = 2  # unwritten data is lost
_START = 0.5  # seconds from the start of Python to the first step of a command
_CALLS = (
    "fsync",
    "syncfs",
    "rename",
    "write",
    "writev",
    "pwrite64",
    "unlink",
    "mkdir",
    "ftruncate",
    "copy_file_range",
)
_ERRORS = ("EIO", "ENOSPC", "EROFS", "EDQUOT")


class Disk:
    """An ext4 file system in a file, mounted."""

    def __init__(self, folder: Path, options: str) -> None:
        self._image = folder / "disk.img"
        self.path = folder / "disk"
        self._options = options
        self.path.mkdir(exist_ok=True)
        self._image.unlink(missing_ok=True)
        with self._image.open("wb") as file:
            file.truncate(_SIZE)
        _call("mkfs.ext4", "-q", "-F", "-b", "1024", "-m", "0", "-I", "256", str(self._image))
        self.mount()

    def mount(self) -> None:
        """Mount it: the journal is replayed, as after a power cut."""
        _call(
            "mount",
            "-o",
            f"loop,errors=remount-ro,{self._options}",
            str(self._image),
            str(self.path),
        )

    def unmount(self) -> None:
        """Unmount it; a worker may take a moment to end."""
        for _ in range(100):
            if (
                subprocess.run(
                    ["umount", str(self.path)], capture_output=True, check=False
                ).returncode
                == 0
            ):
                return
            time.sleep(0.05)
        _call("umount", str(self.path))

    def cut(self) -> None:
        """Cut the power: from now on nothing reaches the disk."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, _SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(descriptor)

    def fail(self) -> None:
        """Let the file system find a fault: it then refuses all writes."""
        device = Path(_call("findmnt", "-no", "SOURCE", str(self.path)).strip()).name
        Path(f"/sys/fs/ext4/{device}/trigger_fs_error").write_text("torture\n")

    def check(self) -> None:
        """Clear the mark of a fault, as an administrator does before mounting again."""
        subprocess.run(["e2fsck", "-fy", str(self._image)], capture_output=True, check=False)


def _call(*command: str) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise OSError(f"{command[0]}: {ended.stderr.strip()}")
    return ended.stdout


@dataclass(frozen=True)
class Bench:
    """The means of every round: a folder, a command runner, a random generator,
    and each scenario's duration.
    """

    folder: Path
    commands: Commands
    draw: random.Random
    took: dict[str, float]

    @contextlib.contextmanager
    def disk(self, recording: Recording) -> Iterator[tuple[Disk, Path]]:
        """A new disk with the files that precede the command, all of them durable;
        and the folder to run in.
        """
        disk = Disk(self.folder, self.draw.choice(_OPTIONS))
        try:
            shutil.copytree(recording.before, disk.path / FOLDER)
            disk.unmount()
            disk.mount()
            yield disk, disk.path / FOLDER
        finally:
            disk.unmount()

    def run_beside(
        self, recording: Recording, folder: Path, act: Callable[[], None]
    ) -> tuple[int, str]:
        """Run the command, and call ``act`` at some moment of its run."""
        ended: list[tuple[int, str]] = []
        thread = threading.Thread(
            target=lambda: ended.append(self.commands.run(recording.scenario.command, folder)),
            daemon=True,
        )
        thread.start()
        thread.join(self.draw.uniform(0, self.took[recording.scenario.name]))
        act()
        thread.join()
        return ended[0]


def cut(bench: Bench, recording: Recording) -> str:
    """Cut the power in mid-run."""
    with bench.disk(recording) as (disk, folder):
        status, _ = bench.run_beside(recording, folder, disk.cut)
        disk.unmount()
        disk.mount()
        lost = differing(recording, read(folder)) if status == 0 else ""
        return (lost and f"lost after status 0: {lost}") or run_after(
            recording, folder, bench.commands, ""
        )


def after(bench: Bench, recording: Recording) -> str:
    """Cut the power right after exit status 0."""
    with bench.disk(recording) as (disk, folder):
        status, printed = bench.commands.run(recording.scenario.command, folder)
        disk.cut()
        disk.unmount()
        disk.mount()
        lost = (
            f"exit status {status}: {_end(printed)}"
            if status
            else differing(recording, read(folder))
        )
        return (lost and f"lost after status 0: {lost}") or run_after(
            recording, folder, bench.commands, ""
        )


def full(bench: Bench, recording: Recording) -> str:
    """Let the disk fill up at some point."""
    grown = sum(map(len, recording.expected.values()))
    with bench.disk(recording) as (disk, folder):
        ballast = disk.path / "ballast"
        free = shutil.disk_usage(disk.path).free - bench.draw.randrange(2 * grown)
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, free))
        status, printed = bench.commands.run(recording.scenario.command, folder)
        if status not in (0, 7):
            return f"exit status {status}: {_end(printed)}"
        lost = differing(recording, read(folder)) if status == 0 else ""
        ballast.unlink()
        return lost or run_after(recording, folder, bench.commands, "")


def readonly(bench: Bench, recording: Recording) -> str:
    """Refuse all writes from some moment on."""
    with bench.disk(recording) as (disk, folder):
        status, printed = bench.run_beside(recording, folder, disk.fail)
        disk.unmount()
        disk.check()
        disk.mount()
        lost = differing(recording, read(folder)) if status == 0 else _bug(printed)
        return lost or run_after(recording, folder, bench.commands, "")


def kill(bench: Bench, recording: Recording) -> str:
    """Kill the command and its workers at some moment."""
    folder = _copy(bench, recording)
    command = [sys.executable, "-m", "imagenet_prep", *recording.scenario.command]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=folder, env=environment(), start_new_session=True, stdout=quiet, stderr=quiet
    ) as process:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(bench.draw.uniform(0, _START + bench.took[recording.scenario.name]))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return run_after(recording, folder, bench.commands, "")


def _copy(bench: Bench, recording: Recording) -> Path:
    """The files that precede the command, in a folder of their own."""
    folder = bench.folder / "copy" / FOLDER
    shutil.rmtree(folder.parent, ignore_errors=True)
    shutil.copytree(recording.before, folder)
    return folder


def inject(bench: Bench, recording: Recording) -> str:
    """Let the system refuse one call, which the command may retry."""
    folder = _copy(bench, recording)
    call, error = bench.draw.choice(_CALLS), bench.draw.choice(_ERRORS)
    refusal = f"inject={call}:error={error}:when={bench.draw.randrange(1, 30)}"
    command = [sys.executable, "-m", "imagenet_prep", *recording.scenario.command]
    ended = subprocess.run(
        ["strace", "-f", "-o", os.devnull, "-e", f"trace={call}", "-e", refusal, *command],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        check=False,
    )
    printed = ended.stderr.decode(errors="replace")
    lost = differing(recording, read(folder)) if ended.returncode == 0 else _bug(printed)
    lost = lost or run_after(recording, folder, bench.commands, "")
    return lost and f"{refusal}: {lost}"


def _bug(printed: str) -> str:
    return f"no error of its own: {_end(printed)}" if "This is a bug" in printed else ""


def _end(printed: str) -> str:
    return "\n".join(printed.strip().splitlines()[-4:])


def replay_all(bench: Bench, recording: Recording, most: int | None) -> Iterator[str]:
    """Make each state that a power cut may leave after each operation; yields the fault of each."""
    found = list(recording.replay())
    if most is not None and most < len(found):
        found = bench.draw.sample(found, most)
    for done, called, tree in found:
        folder = bench.folder / "replay" / FOLDER
        shutil.rmtree(folder.parent, ignore_errors=True)
        folder.parent.mkdir()
        build(tree, folder)
        fault = run_after(recording, folder, bench.commands, called)
        yield fault and f"after {done} of {len(recording.operations)} operations, {called}: {fault}"


class Tally:
    """The number of rounds of each kind and command, and of faults among them."""

    def __init__(self) -> None:
        self.rounds: Counter[tuple[str, str]] = Counter()
        self.faults: Counter[tuple[str, str]] = Counter()

    def add(self, kind: str, name: str, fault: str) -> None:
        """Count a round."""
        self.rounds[kind, name] += 1
        if fault:
            self.faults[kind, name] += 1
            print(f"FAULT {kind} {name}, round {sum(self.rounds.values())}: {fault}", flush=True)

    def line(self, kind: str) -> str:
        """One kind of rounds in a line."""
        rounds = sum(count for (each, _), count in self.rounds.items() if each == kind)
        faults = sum(count for (each, _), count in self.faults.items() if each == kind)
        return f"{kind}: {rounds:,} rounds, {faults} faults"

    def table(self, kinds: list[str], names: list[str]) -> str:
        """Rounds by command and kind, with faults after a slash if there are any."""
        rows = [["", *kinds]]
        for name in names:
            cells = ((self.rounds[kind, name], self.faults[kind, name]) for kind in kinds)
            rows.append(
                [
                    name,
                    *(f"{rounds}/{faults}" if faults else str(rounds) for rounds, faults in cells),
                ]
            )
        return "\n".join("".join(f"{cell:<16}" for cell in row).rstrip() for row in rows)


def why_no_mount(folder: Path) -> str:
    """The reason that no disk can be mounted here; "" if one can."""
    try:
        disk = Disk(folder, _OPTIONS[0])
        disk.unmount()
    except OSError as error:
        return str(error)
    return ""


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=200, help="of all kinds but replay together")
    parser.add_argument("--replays", type=int, help="the most per command; default: all")
    parser.add_argument(
        "--only", default="", help="kinds of rounds and commands, with commas; default: all"
    )
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _chosen(only: str, names: list[str]) -> tuple[list[str], list[str]]:
    """The requested kinds and commands."""
    words = [word for word in only.split(",") if word]
    unknown = [word for word in words if word not in (*KINDS, *names)]
    if unknown:
        raise SystemExit(
            f"{unknown[0]} is neither a kind ({', '.join(KINDS)}) nor a command "
            f"({', '.join(names)})"
        )
    kinds = [kind for kind in KINDS if kind in words] or list(KINDS)
    return kinds, [name for name in names if name in words] or names


def _available(kinds: list[str], folder: Path) -> list[str]:
    """The kinds that this machine can run; prints the others, and why."""
    reason = why_no_mount(folder) if {*kinds} & {*MOUNTED} else ""
    if reason:
        print(
            f"NOT RUN: {', '.join(kind for kind in kinds if kind in MOUNTED)}: "
            f"no disk can be mounted here ({reason})"
        )
    if not shutil.which("strace"):
        raise SystemExit("strace is not installed: apt-get install strace")
    return [kind for kind in kinds if not (reason and kind in MOUNTED)]


def _timed(recording: Recording, commands: Commands, folder: Path) -> float:
    """The duration of a scenario in seconds."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(recording.before, folder / FOLDER)
    began = time.monotonic()
    commands.run(recording.scenario.command, folder / FOLDER)
    return time.monotonic() - began


def _run_rounds(
    count: int,
    pairs: list[tuple[str, str]],
    recordings: dict[str, Recording],
    bench: Bench,
    tally: Tally,
    draw: random.Random,
) -> None:
    """Run the pairs of kind and command in random order, again and again."""
    for number in range(count):
        if number % len(pairs) == 0:
            draw.shuffle(pairs)
        kind, name = pairs[number % len(pairs)]
        tally.add(kind, name, globals()[kind](bench, recordings[name]))
        if (number + 1) % 20 == 0:
            print(f"{number + 1} of {count} rounds", file=sys.stderr, flush=True)


def main() -> int:
    """Run all rounds; returns the exit status."""
    options = _parse()
    large, small = scenarios(shards=24, workers=2), scenarios(shards=2, workers=1)
    kinds, names = _chosen(options.only, list(large))
    tally, draw = Tally(), random.Random(options.seed)
    with (
        tempfile.TemporaryDirectory(prefix="imagenet-prep-torture-") as temporary,
        Commands() as commands,
    ):
        folder = Path(temporary)
        kinds = _available(kinds, folder)
        made = make(folder / "made", classes=4, per_class=40, validation=20, tiny=True)
        recordings = {
            name: record_scenario(large[name], folder / "large", made, commands) for name in names
        }
        took = {
            name: _timed(recording, commands, folder / "timed")
            for name, recording in recordings.items()
        }
        bench = Bench(folder, commands, draw, took)
        drawn_kinds = [kind for kind in kinds if kind != "replay"]
        if drawn_kinds:
            pairs = [(kind, name) for name in names for kind in drawn_kinds]
            _run_rounds(options.rounds, pairs, recordings, bench, tally, draw)
        for kind in drawn_kinds:
            print(tally.line(kind), flush=True)
        if "replay" in kinds:
            tiny = make(folder / "tiny", classes=2, per_class=4, validation=4, tiny=True)
            for name in names:
                recording = record_scenario(small[name], folder / "small", tiny, commands)
                for fault in replay_all(bench, recording, options.replays):
                    tally.add("replay", name, fault)
                print(f"replay: {name}", file=sys.stderr, flush=True)
            print(tally.line("replay"), flush=True)
    print(f"\n{tally.table(kinds, names)}\n")
    faults = sum(tally.faults.values())
    print(f"{sum(tally.rounds.values()):,} rounds, seed {options.seed}: {faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
