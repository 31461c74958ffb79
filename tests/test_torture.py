"""make torture: it finds a wrong byte, counts it, and says what it could not run."""

from __future__ import annotations

import importlib
import random
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from power_cut import Commands
from scenarios import record_scenario, scenarios
from syscalls import require_strace

from imagenet_prep.demo.archives import make

pytestmark = pytest.mark.project


@pytest.fixture
def torture(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script."""
    require_strace()
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parent.parent / "scripts"))
    return importlib.import_module("torture")


def test_a_part_of_it_runs(
    torture: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rounds and replays of one command, a table with both, exit status 0;
    without a disk of its own it says so.
    """
    monkeypatch.setattr(torture, "why_no_mount", lambda _: "not allowed")
    options = ["--rounds", "2", "--replays", "3", "--only", "cut,inject,replay,annotate"]
    monkeypatch.setattr(sys, "argv", ["torture.py", *options])
    assert torture.main() == 0
    printed = capsys.readouterr().out
    assert "NOT RUN: cut: no disk can be mounted here (not allowed)" in printed
    assert "inject: 2 rounds, 0 faults" in printed
    assert "replay: 3 rounds, 0 faults" in printed
    assert "annotate        2               3" in printed
    assert printed.endswith("5 rounds, seed 0: 0 faults\n")


def test_other_bytes_are_faults(torture: ModuleType, tmp_path: Path) -> None:
    """A command that ends with other bytes than the unbroken run is a fault of that kind and
    command, and counted.
    """
    with Commands() as commands:
        made = make(tmp_path / "made", classes=1, per_class=2, validation=1, tiny=True)
        found = record_scenario(
            scenarios(shards=1, workers=1)["annotate"], tmp_path, made, commands
        )
        expected = {
            path: data + b"?" * path.endswith(".csv") for path, data in found.expected.items()
        }
        wrong = replace(found, expected=expected)
        bench = torture.Bench(tmp_path, commands, random.Random(1), {"annotate": 0.1})
        tally = torture.Tally()
        for fault in torture.replay_all(bench, wrong, 2):
            assert "other bytes in raw-data/imagenet_2012_bounding_boxes.csv" in fault
            tally.add("replay", "annotate", fault)
        tally.add("replay", "annotate", "")
    assert tally.line("replay") == "replay: 3 rounds, 2 faults"
    assert "annotate        3/2" in tally.table(["replay"], ["annotate"])
