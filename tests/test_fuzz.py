"""make fuzz without its fuzzer: every input of the corpus again, within its bounds; and the tools around it."""

from __future__ import annotations

import gzip
import importlib
import io
import json
import random
import subprocess
import sys
import tarfile
import zlib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from existing import existing

from imagenet_prep.checks import verdict
from imagenet_prep.errors import InputError
from imagenet_prep.images import png
from imagenet_prep.sources import tar_members as tar
from imagenet_prep.state import manifest
from imagenet_prep.state.journal import Journal
from imagenet_prep.tfrecord import compression as compressed
from imagenet_prep.tfrecord import framing as tfrecord

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


def test_an_input_that_takes_too_much_memory_is_a_finding(load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The highest that it had counts, not what it leaves."""
    bounds = load("bounds")
    monkeypatch.setattr(bounds, "SECONDS", 60)  # fresh memory takes long on a busy machine
    meter = bounds.Meter(lambda data: len(bytearray(len(data) << 20)))
    meter(b"x")
    with pytest.raises(bounds.CostError, match="MB more than at the start, expected at most 300"):
        meter(b"x" * 320)
    assert 310 < meter.megabytes < 400


def test_what_a_parent_had_in_memory_is_not_counted() -> None:
    """A process that is forked from a large one begins with its highest memory, as getrusage tells it."""
    ballast = bytearray(b"x") * (330 << 20)
    command = [sys.executable, FUZZING / "replay.py", "names"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, preexec_fn=lambda: None)
    assert json.loads(done.stdout)["findings"] == {}
    assert json.loads(done.stdout)["megabytes"] < 100 < len(ballast)


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


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--only", "tar,nothing", "--runs", "1"], 2, "no such target: nothing"),
        (["--list", "--only", "tar"], 0, "each member of it a tar again"),
        ([], 2, "expected --seconds, --runs, or both"),
    ],
)
def test_the_runner_says_what_there_is(arguments: list[str], status: int, said: str) -> None:
    """Names of targets are checked before anything is fuzzed."""
    command = [sys.executable, ROOT / "scripts" / "fuzz.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, said in done.stdout + done.stderr) == (status, True)


# changes that get past checksums -------------------------------------------------------------------------------


def _flip(data: bytes, limit: int) -> bytes:
    """A change as libFuzzer makes them: one bit, here of a record's data."""
    return data[:20] + bytes([data[20] ^ 1]) + data[21:]


def _seeds(target: str) -> list[bytes]:
    return [path.read_bytes() for path in existing(CORPUS / target, "seed-*")]


def test_a_changed_tar_has_right_checksums_again(load: Any) -> None:
    """So its fields are read."""
    data = bytearray(_seeds("tar")[0])
    data[0] ^= 1
    with pytest.raises(tar.TarFault, match="checksum"):
        list(tar.iter_members(data, 0, len(data)))
    mended = load("mutations").mend_tar(bytes(data))
    assert list(tar.iter_members(mended, 0, len(mended)))
    with tarfile.open(fileobj=io.BytesIO(mended)) as archive:
        assert len(archive.getnames()) == 1


def test_a_changed_record_has_right_checksums_again(load: Any) -> None:
    """Both of them."""
    (data, *_) = _seeds("records_read")
    mended = load("mutations").mend_records(data[:8] + b"\0\0\0\0" + bytes([data[12] ^ 1]) + data[13:])
    records = list(tfrecord.iter_records(memoryview(mended)))
    assert len(records) == 3
    assert all(record.intact for record in records)


def test_a_changed_line_of_the_journal_is_sealed_again(load: Any, tmp_path: Path) -> None:
    """So what it says is looked at; some are not, and are passed over."""
    (data, *_) = _seeds("journal_lines")
    mutate = load("mutations").json_line
    sound = _journal(tmp_path, data)
    changed = [mutate(data, 8192, random.Random(chance), _flip) for chance in range(100)]
    journals = [_journal(tmp_path, each) for each in changed if each is not None]
    strange = [name for each in journals for name in each.names() if each.get(name) != sound.get(name)]
    assert len(strange) > 5
    assert any(len(list(each.names())) < len(list(sound.names())) for each in journals)


def test_a_changed_manifest_is_sealed_again(load: Any, tmp_path: Path) -> None:
    """So what it says is looked at; some are not, and are refused."""
    (data, *_) = _seeds("manifest_json")
    whole, reached, refused = manifest.load_manifest(_written(tmp_path / "manifest.json", data)), 0, 0
    assert whole is not None
    for chance in range(200):
        changed = load("mutations").json_value(data, 8192, random.Random(chance), _flip)
        if changed is not None:
            try:
                found = manifest.load_manifest(_written(tmp_path / "manifest.json", changed))
                reached += found is not None and found != whole
            except InputError:
                refused += 1
    assert min(reached, refused) > 20


def _journal(folder: Path, data: bytes) -> Journal:
    return Journal(_written(folder / "journal.jsonl", data))


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_the_verdict_of_the_corpus_is_of_the_set_that_targets_have(load: Any) -> None:
    """So status goes by what it says, and doesn't pass it over as one of other files."""
    targets = load("target")
    try:
        layout = targets.HOME.layout
        for data in _seeds("verdict_json"):
            _written(layout.verdict_path, data)
            kept = verdict.load_verdict(layout)
            assert kept is not None
            assert kept.is_current
    finally:
        targets.HOME.remove()


def test_a_changed_png_has_right_checksums_again(load: Any) -> None:
    """Of every chunk."""
    (data, *_) = _seeds("png_header")
    mended = load("mutations").mend_png(data[:19] + b"\x20" + data[20:])
    assert png.read_header(mended).width == 32
    assert mended[29:33] == zlib.crc32(mended[12:29]).to_bytes(4, "big")


def test_records_within_a_stream_are_changed_and_compressed_again(load: Any) -> None:
    """What comes out is a sound stream of sound records that says something else."""
    mutations, (data, *_) = load("mutations"), _seeds("compressed_framing")
    changed = [mutations.compressed_records(data, 4096, random.Random(seed), _flip) for seed in range(20)]
    made = [each for each in changed if each is not None]
    assert made
    for each in made:
        assert gzip.decompress(each) != gzip.decompress(data)
        assert [record.intact for record in compressed.iter_records(memoryview(each), "gzip")] == [True] * 3


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
