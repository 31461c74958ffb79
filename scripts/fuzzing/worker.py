"""Fuzzes one target in this process with atheris: ``worker.py TARGET SUMMARY RUNS SECONDS
LIBFUZZER-ARGUMENTS``.

The process ends after that many inputs or seconds, or at the first finding, which libFuzzer keeps.
What the inputs cost is written to SUMMARY as JSON.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

import atheris

STANDARD = {
    "sign_in_page": ["html.parser"],
    "cookies_file": ["http.cookiejar"],
    "netrc_file": ["netrc"],
}
"""Parsers of the standard library that targets lead to:
followed there, they would make the others slow.
"""

with atheris.instrument_imports(include=["imagenet_prep", *STANDARD.get(sys.argv[1], [])]):
    from bounds import Meter
    from target import HOME, Target
    from targets import TARGETS

EXIT_FOUND = 77


class Worker:
    """One input after the other, until enough were seen."""

    def __init__(self, target: Target, summary: Path, runs: int, seconds: float) -> None:
        self._target = target
        self._summary = summary
        self._runs = runs
        self._end = time.monotonic() + seconds
        self._begin = time.monotonic()
        self._meter = Meter(target.run)

    def __call__(self, data: bytes) -> None:
        """Run an input; a finding ends the process, by atheris."""
        try:
            self._meter(data)
        except BaseException:
            self._write()
            HOME.remove()
            raise
        if self._meter.inputs >= self._runs or time.monotonic() > self._end:
            self._write()
            HOME.remove()
            os._exit(0)

    def change(self, data: bytes, limit: int, seed: int) -> bytes:
        """The next input made of an earlier one: by the target's own way if it has one."""
        mutate = self._target.mutate
        changed = mutate(data, limit, random.Random(seed), atheris.Mutate) if mutate else None
        return atheris.Mutate(data, limit) if changed is None else changed[:limit]

    def _write(self) -> None:
        meter, seconds = self._meter, time.monotonic() - self._begin
        value = {
            "inputs": meter.inputs,
            "seconds": seconds,
            "slowest": meter.slowest,
            "megabytes": meter.megabytes,
        }
        self._summary.write_text(json.dumps(value))


def main() -> None:
    """Fuzz; does not return."""
    name, summary, runs, seconds, *arguments = sys.argv[1:]
    target = TARGETS[name]
    target.warm_up()
    worker = Worker(target, Path(summary), int(runs), float(seconds))
    words = Path(summary).with_suffix(".words")
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words))
    arguments += [f"-max_len={target.limit}", *([f"-dict={words}"] if target.words else [])]
    atheris.Setup([sys.argv[0], *arguments], worker, custom_mutator=worker.change)
    atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word.encode())


if __name__ == "__main__":
    main()
