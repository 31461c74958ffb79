"""make fuzz without its fuzzer: every input of the corpus again, within its bounds; and the tools around it."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from existing import existing

ROOT = Path(__file__).resolve().parent.parent
FUZZING = ROOT / "scripts" / "fuzzing"
CORPUS = ROOT / "tests" / "corpus"
TARGETS = [path.name for path in existing(CORPUS, "*")]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports one of the modules in scripts/fuzzing by name."""
    monkeypatch.syspath_prepend(str(FUZZING))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


@pytest.fixture(scope="module")
def replayed() -> dict[str, dict[str, Any]]:
    """What each target says to its corpus, in a process of its own, so that memory is that of the inputs alone."""
    command = [sys.executable, FUZZING / "replay.py"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 3), done.stderr
    return {result["target"]: result for result in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("target", TARGETS)
def test_every_input_of_the_corpus_meets_only_documented_exceptions_within_its_bounds(
    replayed: dict[str, dict[str, Any]], target: str
) -> None:
    """A second and 300 MB an input; what once was a finding is none."""
    result = replayed[target]
    assert result["inputs"] == len(existing(CORPUS / target, "*"))
    assert result["findings"] == {}


def test_every_target_has_a_corpus_and_the_corpus_is_small(replayed: dict[str, dict[str, Any]]) -> None:
    """Seeds for each; at most 30 files and 100 kB a target, 2 MB in all."""
    sizes = {target: [path.stat().st_size for path in existing(CORPUS / target, "*")] for target in TARGETS}
    assert sorted(replayed) == TARGETS
    assert all(existing(CORPUS / target, "seed-*") for target in TARGETS)
    assert max(map(len, sizes.values())) <= 30
    assert max(map(sum, sizes.values())) <= 100_000
    assert sum(map(sum, sizes.values())) <= 2_000_000


# what watches over an input ------------------------------------------------------------------------------------


def test_an_input_that_takes_too_long_is_a_finding(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processor time counts."""
    bounds = load("bounds")
    monkeypatch.setattr(bounds, "SECONDS", 0.01)
    meter = bounds.Meter(lambda data: sum(range(len(data))))
    meter(b"x")
    with pytest.raises(bounds.CostError, match=r"for one input, expected at most 0\.01"):
        meter(b"x" * 3_000_000)
    assert meter.inputs == 2


def test_a_replay_goes_on_behind_a_finding_and_shows_where_it_came_from(load: Any, tmp_path: Path) -> None:
    """Any exception that a target lets through is one, also KeyboardInterrupt's family."""
    replay, targets = load("replay"), load("target")

    def run(data: bytes) -> None:
        if data == b"bad":
            raise SystemExit("here")

    for number, content in enumerate((b"bad", b"good")):
        (tmp_path / f"{number}").write_bytes(content)
    result = replay.replay(targets.Target("none", run, 10, None, ()), sorted(tmp_path.iterdir()))
    assert result["inputs"] == 2
    assert list(result["findings"]) == [str(tmp_path / "0")]
    assert "SystemExit: here" in result["findings"][str(tmp_path / "0")]


# changes that get past checksums -------------------------------------------------------------------------------


def _seeds(target: str) -> list[bytes]:
    return [path.read_bytes() for path in existing(CORPUS / target, "seed-*")]


@pytest.mark.parametrize(
    ("target", "way"),
    [
        *[("tar", "tar"), ("records_read", "records"), ("image_samples", "png"), ("array", "npz")],
        *[("compressed_framing", "compressed_records"), ("manifest_json", "json_value")],
        *[("journal_lines", "json_line"), ("recipe", "yaml_value")],
    ],
)
def test_every_way_to_change_an_input_takes_any_input_and_changes_some(load: Any, target: str, way: str) -> None:
    """Within the limit, and the same for the same chance; None where it can do nothing."""
    mutate, limit = getattr(load("mutations"), way), 8192
    inputs = [*_seeds(target), b"", b"\0", b"PK\x03\x04", b"{", b"[[[["]

    def made(chance: int) -> list[bytes | None]:
        return [mutate(data, limit, random.Random(chance), lambda data, _: data + b"x") for data in inputs]

    found = [each for chance in range(100) for each in made(chance)]
    assert found == [each for chance in range(100) for each in made(chance)]
    changed = {each for each in found if each is not None}
    assert len(changed - set(inputs)) >= 2
    assert max(map(len, changed)) <= limit + 700
