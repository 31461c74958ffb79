"""make fuzz: feeds strange input to every parser of the package, for a given time or number of
inputs.

Each target (fuzzing/targets.py) runs in its own process under atheris, which searches for inputs
that reach new code. The learned inputs are kept in .fuzz/corpus, the findings in .fuzz/found.
tests/corpus has the seeds and former findings. Exit status 0: no findings; 3: some.
scripts/README.md explains more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "fuzzing"))
from targets import TARGETS

ROOT = Path(__file__).resolve().parent.parent
FUZZING = ROOT / "scripts" / "fuzzing"
SEEDS = ROOT / "tests" / "corpus"
KEPT = ROOT / ".fuzz"

HANG = 20
"""Wall seconds after which an input is stopped;
the bound itself is one of processor time (bounds.py).
"""

MEMORY = 1024
"""MB at which libFuzzer stops a process between two inputs, so that the machine stays usable."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one target: ``found`` are the inputs that are findings.

    ``failed``: the fuzzer ended with a finding, or abnormally; ``tail`` is the end of its output.
    """

    target: str
    inputs: int = 0
    seconds: float = 0
    slowest: float = 0
    megabytes: float = 0
    found: tuple[Path, ...] = ()
    failed: bool = False
    tail: str = ""

    @property
    def row(self) -> str:
        """A line of the table."""
        rate = self.inputs / self.seconds if self.seconds else 0
        cost = f"{self.inputs:>9,} {rate:>9,.0f} {self.slowest * 1000:>9.1f} {self.megabytes:>8.0f}"
        return f"{self.target:<20} {cost} {len(self.found):>8}"


HEADER = (
    f"{'target':<20} {'inputs':>9} {'inputs/s':>9} {'slowest ms':>10} {'more MB':>7} "
    f"{'findings':>8}"
)


def fuzz(name: str, runs: int, seconds: float, seed: int) -> Outcome:
    """Fuzz one target in its own process; a process that ends at a finding is one outcome."""
    learned, found = KEPT / "corpus" / name, KEPT / "found" / name
    summary = KEPT / f"{name}.json"
    for folder in (learned, found):
        folder.mkdir(parents=True, exist_ok=True)
    summary.unlink(missing_ok=True)
    before = set(found.iterdir())
    flags = [
        f"-timeout={HANG}",
        f"-rss_limit_mb={MEMORY}",
        f"-seed={seed}",
        f"-artifact_prefix={found}/",
        "-verbosity=0",
    ]
    command = [
        sys.executable,
        FUZZING / "worker.py",
        name,
        summary,
        runs,
        seconds,
        *flags,
        learned,
        SEEDS / name,
    ]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, errors="replace")
    cost = json.loads(summary.read_text()) if summary.is_file() else {}
    new = tuple(sorted(set(found.iterdir()) - before))
    said = (done.stderr + done.stdout).partition("Uncaught Python exception")
    tail = "\n".join((said[2] or said[0]).splitlines()[-25:]) if done.returncode else ""
    return Outcome(name, **cost, found=new, failed=done.returncode != 0, tail=tail)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz one target after the other, and print the cost and the findings of each."""
    options = _options(arguments)
    names = options.only or list(TARGETS)
    strange = sorted(set(names) - TARGETS.keys())
    if strange:
        print(
            f"no such target: {', '.join(strange)}; expected some of {', '.join(TARGETS)}",
            file=sys.stderr,
        )
        return 2
    if options.list:
        print(*(f"{name:<20} {TARGETS[name].run.__doc__}" for name in names), sep="\n")
        return 0
    runs, seconds = options.runs or 1 << 62, options.seconds / len(names)
    print(HEADER)
    outcomes = []
    for name in names:
        outcomes.append(fuzz(name, runs, seconds, options.seed))
        print(outcomes[-1].row, flush=True)
        if outcomes[-1].failed:
            print(outcomes[-1].tail, *outcomes[-1].found, sep="\n", flush=True)
    failed = sum(each.failed for each in outcomes)
    print(f"{sum(each.inputs for each in outcomes):,} inputs, {failed} targets with findings")
    return 3 if failed else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="in total, divided equally among the targets"
    )
    parser.add_argument("--runs", type=int, help="inputs for each target")
    parser.add_argument(
        "--only", type=lambda text: text.split(","), help="names of targets, with commas"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the random numbers; 0 for a new one every time"
    )
    parser.add_argument("--list", action="store_true", help="list the targets")
    options = parser.parse_args(arguments)
    if options.runs is None and options.seconds == 1e9 and not options.list:
        parser.error("expected --seconds, --runs, or both")
    return options


if __name__ == "__main__":
    sys.exit(main())
