"""Runs targets over inputs without atheris: ``replay.py`` over the corpus, ``replay.py TARGET
FILE...`` over some.

A line of JSON a target: the number of inputs, the worst of what they cost, the traceback of each
input that is a finding. Exit status 3 if there was one.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from bounds import Meter
from target import CORPUS, Target
from targets import TARGETS


def replay(target: Target, paths: Iterable[Path]) -> dict[str, object]:
    """Run a target over some inputs, each by itself: one that is a finding stops no other."""
    contents = {str(path): path.read_bytes() for path in paths}
    findings: dict[str, str] = {}
    target.warm_up()
    meter = Meter(target.run)
    for name, content in contents.items():
        try:
            meter(content)
        except BaseException:  # noqa: BLE001 - whatever it is, it is reported
            findings[name] = traceback.format_exc()
    cost = {"inputs": meter.inputs, "slowest": meter.slowest, "megabytes": meter.megabytes}
    return {"target": target.name, **cost, "findings": findings}


def main() -> int:
    """Replay what the command line names."""
    name, *paths = [*sys.argv[1:]] or [""]
    found = False
    for target in [TARGETS[name]] if name else TARGETS.values():
        inputs = map(Path, paths) if paths else sorted((CORPUS / target.name).iterdir())
        result = replay(target, inputs)
        found = found or bool(result["findings"])
        print(json.dumps(result), flush=True)
    return 3 if found else 0


if __name__ == "__main__":
    sys.exit(main())
