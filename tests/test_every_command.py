"""What every command has: --quiet, --json, --log-file, and a help that fits a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from existing import existing
from file_server import serve
from made_sets import make_flowers
from running import PROGRAM, command, command_here, prep
from test_wording import on_terminal

from imagenet_prep.cli.commands import load_commands
from imagenet_prep.cli.log_file import Log
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.version import describe_version

pytestmark = pytest.mark.once

PART = "--allow-incomplete --train-shards 4 --validation-shards 2"
ACCOUNT = {"IMAGENET_USERNAME": "user", "IMAGENET_ACCESS_KEY": "key"}

CALLS = {
    "run": f"new --raw raw --base-url URL --no-digest {PART}",
    "download": "new --only boxes --base-url URL --no-digest",
    "untar": "new --raw raw",
    "annotate": "new --raw raw",
    "init": "flowers --output recipe.yaml",
    "convert": f"new --raw raw {PART}",
    "merge": "ranked",
    "repair": "made",
    "diff": "made made",
    "export": "webdataset made out",
    "demo": "new --classes 2 --per-class 2",
}
"""Commands that print nothing with --quiet."""

RESULTS = {
    "verify": "made",
    "report": "made --samples 2",
    "status": "made",
    "show": "made/train-00000-of-00004 --limit 1",
    "completion": "bash",
}
"""Commands whose result is what they print."""

FAILING_CALLS = {
    "run": ("new --classes no-such-list", "UsageError"),
    "download": ("new --only nothing", "UsageError"),
    "untar": ("nowhere", "UsageError"),
    "annotate": ("raw", "InputError"),
    "init": ("nowhere", "UsageError"),
    "convert": ("new --raw flowers", "InputError"),
    "merge": ("flowers", "InputError"),
    "verify": ("flowers", "InputError"),
    "repair": ("flowers", "InputError"),
    "diff": ("nowhere made", "UsageError"),
    "status": ("nowhere", "UsageError"),
    "report": ("flowers", "InputError"),
    "show": ("made/imagenet-prep/manifest.json", "InputError"),
    "export": ("webdataset flowers out", "InputError"),
    "demo": ("raw", "UsageError"),
    "completion": ("csh", "UsageError"),
}
"""A call of each command that ends with an error, and the type of that error."""

OUTLINE = {"command", "version", "exit_status", "error", "seconds"}
ERROR = {"type", "what", "detail", "hint", "choices"}
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d ")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Path:
    """A finished set, one that ranks made, raw data and class folders.
    Read only: work in a copy.
    """
    folder = tmp_path_factory.mktemp("quiet")
    shutil.copytree(made_tiny.archives["train"].parent, folder / "raw")
    make_flowers(folder / "flowers", 2)
    for words in ("made", "ranked --rank 0/1"):
        command("convert", *words.split(), "--raw", "raw", *PART.split(), cwd=folder)
    return folder


@pytest.fixture
def copy(tmp_path: Path, place: Path) -> Path:
    """The test's own copy."""
    return Path(shutil.copytree(place, tmp_path / "copy"))


@pytest.fixture
def url(place: Path) -> Iterator[str]:
    """A server of the raw data."""
    with serve(place / "raw", "user", "key") as address:
        yield address


def test_no_command_is_forgotten() -> None:
    """Every command knows --quiet, and is in one of the tables."""
    quiet = {
        name
        for name, each in load_commands().items()
        if any(param.name == "quiet" for param in each.params)
    }
    assert quiet == {*CALLS, *RESULTS} == {*load_commands()}


@pytest.mark.parametrize("name", CALLS)
def test_a_quiet_command_prints_nothing(name: str, copy: Path, url: str) -> None:
    """Neither to standard output nor to standard error, if its status is 0."""
    words = CALLS[name].replace("URL", url).split()
    ended = command(name, *words, "-q", cwd=copy, **ACCOUNT)
    assert (ended.stdout, ended.stderr) == ("", "")


@pytest.mark.parametrize("name", RESULTS)
def test_a_quiet_result_is_only_that(name: str, copy: Path) -> None:
    """What the command is for goes to standard output, and nothing to standard error."""
    ended = command(name, *RESULTS[name].split(), "-q", cwd=copy)
    assert ended.stdout
    assert ended.stderr == ""


@pytest.mark.parametrize("words", ["verify ranked", "verify --raw raw", "verify --config set.yaml"])
def test_quiet_keeps_the_verdict_and_hides_the_notes(words: str, copy: Path) -> None:
    """The table and the verdict of verify stay as they are."""
    (copy / "set.yaml").write_text("source: {folders: flowers}\n")
    (copy / "flowers" / "notes.txt").write_text("no image")
    said = prep(*words.split(), cwd=copy)
    quiet = command(*words.split(), "-q", cwd=copy, status=said.returncode)
    lines = said.stdout.splitlines()
    kept = [line for line in lines if not line.startswith("note: ")]
    assert kept != lines
    assert quiet.stdout.splitlines() == kept


def test_what_repair_can_not_mend_is_told(copy: Path) -> None:
    """With --quiet, a status other than 0 comes with the findings."""
    (copy / "made" / "train-00007-of-00009").write_bytes(b"")
    ended = command("repair", "made", "-q", cwd=copy, status=3)
    assert "train-00007-of-00009" in ended.stdout
    assert ended.stderr == ""


def test_a_quiet_diff_tells_by_its_status(copy: Path) -> None:
    """Sets that differ are status 3, and --json is printed all the same."""
    command("convert", "other", "--raw", "raw", *PART.replace("4", "3").split(), "-q", cwd=copy)
    ended = command("diff", "made", "other", "-q", cwd=copy, status=3)
    assert (ended.stdout, ended.stderr) == ("", "")
    assert command(
        "diff", "made", "other", "-q", "--json", "-", cwd=copy, status=3
    ).stdout.startswith("{")


# --json and --log-file ----------------------------------------------------------------------------


def documented_keys(name: str) -> set[str]:
    """The keys of a command's JSON, as its item in docs/cli.md lists them."""
    page = (Path(__file__).parents[1] / "docs" / "cli.md").read_text()
    items = re.findall(r"^- ([\w, ]+): (.+)$", page.partition("### Keys of each")[2], re.M)
    (text,) = (text for names, text in items if name in names.split(", "))
    found = set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)|; with.*", "", text)))
    if "the keys of convert" in text:
        found |= documented_keys("convert")
    return found


def logged(path: Path) -> list[str]:
    """The lines of a log, without their times."""
    lines = path.read_text().splitlines()
    assert [line for line in lines if not STAMP.match(line)] == []
    return [STAMP.sub("", line) for line in lines]


@pytest.mark.parametrize("name", sorted({*CALLS, *RESULTS} - {"show"}))
def test_the_outcome_of_a_command_is_json(name: str, copy: Path, url: str) -> None:
    """The outline and the documented keys, with status and figures; the log has what was printed."""
    words = {**CALLS, **RESULTS}[name].replace("URL", url).split()
    outputs = ("--json", "out.json", "--log-file", "log.txt")
    ended = command(name, *words, *outputs, cwd=copy, **ACCOUNT)
    outcome = json.loads((copy / "out.json").read_text())
    assert (outcome["command"], outcome["version"]) == (name, describe_version())
    assert (outcome["exit_status"], outcome["error"]) == (0, None)
    assert 0 < outcome["seconds"] < 600
    if name not in ("verify", "status", "diff"):  # their keys are in docs/files.md
        assert outcome.keys() == OUTLINE | documented_keys(name)
    start, *lines, end = logged(copy / "log.txt")
    assert re.fullmatch(r"imagenet-prep \S.*, process \d+ on \S+: .*imagenet-prep .*", start)
    assert re.fullmatch(r"exit status 0 after [\d.]+ s", end)
    assert [line for line in ended.stdout.splitlines() if line not in lines] == []


@pytest.mark.parametrize("name", FAILING_CALLS)
def test_an_error_is_json_too(name: str, place: Path, tmp_path: Path) -> None:
    """After an error, JSON alone is on standard output, with the printed lines and status."""
    words, kind = FAILING_CALLS[name]
    outputs = ("--json", "-", "--log-file", tmp_path / "log.txt")
    code = 4 if kind == "InputError" else 2
    ended = command_here(name, *words.split(), *outputs, status=code, cwd=place)
    outcome = json.loads(ended.stdout)
    assert outcome.keys() == OUTLINE
    assert (outcome["command"], outcome["exit_status"]) == (name, code)
    assert outcome["error"].keys() == ERROR
    assert outcome["error"]["type"] == kind
    assert f"error: {outcome['error']['what']}\n" in ended.stderr
    lines = logged(tmp_path / "log.txt")
    assert f"error: {outcome['error']['what']}" in lines
    assert lines[-1].startswith(f"exit status {code} after ")


def test_no_command_is_left_out() -> None:
    """The tables of calls have every command."""
    assert {*CALLS, *RESULTS} == {*FAILING_CALLS} == {*load_commands()}


def test_json_replaces_only_the_result(place: Path) -> None:
    """With --json -, progress stays on standard error, and standard output is JSON alone."""
    ended = command("verify", "made", "--json", "-", cwd=place)
    assert json.loads(ended.stdout)["verdict"] == "incomplete"
    assert "verify: " in ended.stderr
    assert "incomplete: " not in ended.stderr


def test_records_are_lines_of_json(place: Path, tmp_path: Path) -> None:
    """show writes a line for each record; after an error, one more line has the outline."""
    shard = tmp_path / "shard"
    shard.write_bytes((place / "made" / "train-00000-of-00004").read_bytes()[:-1])
    target = tmp_path / "out.json"
    for _ in range(2):  # the second call replaces the file of the first
        command_here("show", shard, "--json", target, status=4)
    *records, outcome = map(json.loads, target.read_text().splitlines())
    assert [record["record"] for record in records] == list(range(len(records)))
    assert outcome.keys() == OUTLINE
    assert outcome["error"]["type"] == "DamagedRecordError"


@pytest.mark.parametrize(
    "words", ["made --depth deep", "made --no-such-option", "made more", "--depth"]
)
def test_a_call_that_is_wrong_is_json_too(words: str, place: Path) -> None:
    """Wherever --json is among the words, and whatever is wrong with the others."""
    calls = [f"--json - {words}"]
    if words != "--depth":  # the next word would be its value
        calls.append(f"{words} --json=-")
    for call in calls:
        ended = command("verify", *call.split(), status=2, cwd=place)
        outcome = json.loads(ended.stdout)
        assert (outcome["exit_status"], outcome["error"]["type"]) == (2, "UsageError")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_command_writes_its_outcome(number: int, code: int, tmp_path: Path) -> None:
    """Ctrl-C and SIGTERM: the status is in the JSON and the log, with the command that resumes."""
    call = [*PROGRAM, "demo", "new", "--json", "out.json", "--log-file", "log.txt"]
    with subprocess.Popen(call, cwd=tmp_path, stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "new").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
    assert process.returncode == code
    outcome = json.loads((tmp_path / "out.json").read_text())
    assert outcome["exit_status"] == code
    assert "imagenet-prep demo new" in outcome["error"]["hint"]
    lines = logged(tmp_path / "log.txt")
    assert "  imagenet-prep demo new --json out.json --log-file log.txt" in lines
    assert lines[-1].startswith(f"exit status {code} after ")


def test_help_writes_no_outcome(tmp_path: Path) -> None:
    """A call for help did nothing."""
    command_here("convert", "--json", tmp_path / "out.json", "--help")
    assert os.listdir(tmp_path) == []


# logs ---------------------------------------------------------------------------------------------


def test_a_terminal_has_bars_and_the_log_lines(place: Path, tmp_path: Path) -> None:
    """The log has no bar, no color and no line that was cut to the width of the terminal."""
    log = tmp_path / "log.txt"
    shown = on_terminal("verify", place / "made", "--log-file", log, columns=60)
    assert "%|" in "".join(shown)
    lines = logged(log)
    assert [line for line in lines if line.startswith("verify: ")]
    assert [line for line in lines if "|" in line or "\x1b" in line or "\r" in line] == []
    (verdict,) = (line for line in lines if line.startswith("incomplete: "))
    assert len(verdict) > 60


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        ("none/log.txt", "does not exist"),
        ("made", "it is a folder"),
        ("made/train-00000-of-00004", "holds something else"),
        ("pipe", "it is a pipe, a socket or a disk"),
        ("", "the value is empty"),
    ],
)
def test_a_log_that_can_not_be_opened_is_refused(log: str, reason: str, copy: Path) -> None:
    """Before any work, and no other file is touched."""
    os.mkfifo(copy / "pipe")
    before = {path: path.stat().st_mtime_ns for path in existing(copy, "**/*")}
    ended = command_here("convert", "new", "--raw", "raw", "--log-file", log, status=2, cwd=copy)
    assert reason in ended.stderr
    assert {path: path.stat().st_mtime_ns for path in existing(copy, "**/*")} == before


def test_a_full_disk_ends_no_conversion(copy: Path) -> None:
    """The log is given up with one line, and the work is done."""
    words = f"new --raw raw {PART} --log-file /dev/full"
    ended = command("convert", *words.split(), cwd=copy)
    assert ended.stderr.count("warning: the log /dev/full can't be written: No space left") == 1
    assert (copy / "new" / "imagenet-prep" / "manifest.json").exists()


def test_a_log_resumes_when_there_is_space(small_disk: Path) -> None:
    """A line that was torn by a full disk is followed by whole lines, and said once."""
    complaints: list[str] = []
    filler = small_disk / "filler"
    log = Log(small_disk / "log.txt", complaints.append)
    log.write("before\n")
    with contextlib.suppress(OSError):
        filler.write_bytes(bytes(1 << 21))
    for _ in range(100):
        log.write("x" * 100 + "\n")
    filler.unlink()
    log.write("after\n")
    log.close()
    first, *_, last = (small_disk / "log.txt").read_text().splitlines()
    assert (STAMP.sub("", first), STAMP.sub("", last)) == ("before", "after")
    assert len(complaints) == 1


def test_processes_share_a_log(tmp_path: Path) -> None:
    """Lines of two logs of one file are whole, and an older log is continued."""
    first, second = (Log(tmp_path / "log.txt", pytest.fail) for _ in range(2))
    for number in range(50):
        first.write(f"first {number} ")
        second.write(f"second {number}\n")
        first.write("ends\n")
    first.close()
    second.close()
    lines = logged(tmp_path / "log.txt")
    assert len(lines) == 100
    assert {line for line in lines if not re.fullmatch(r"first \d+ ends|second \d+", line)} == set()


# help and typos -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", *sorted(load_commands())])
def test_help_fits_a_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """80 columns and at most 40 lines."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = command_here(*name.split(), "--help").stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 40


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("verfy made", "verify"),
        ("Convert made", "convert"),
        ("convert made --check hedaer", "header"),
        ("convert made --set sed=7", "seed"),
        ("convert made --classes imagenete", "imagenette"),
        ("download made --only trian", "train"),
        ("download made --source huggingfase", "huggingface"),
        ("export webdatset made out", "webdataset"),
        ("init flowers --as clas-folders", "class-folders"),
        ("verify made --depht full", "--depth"),
        ("convert made --seed 7", "--set seed=VALUE"),
    ],
)
def test_a_typo_gets_a_suggestion(words: str, meant: str, place: Path) -> None:
    """Of a command, a value or an option; the status is 2."""
    ended = command_here(*words.split(), status=2, cwd=place)
    assert f"Did you mean '{meant}'?" in ended.stderr


@pytest.mark.parametrize("words", ["xyzzy", "convert made --check xyzzy"])
def test_no_suggestion_is_far_fetched(words: str, place: Path) -> None:
    """A word that is like none gets none."""
    assert "Did you mean" not in command_here(*words.split(), status=2, cwd=place).stderr


def test_diff_names_its_columns(copy: Path) -> None:
    """Two lines say which set is A and which B."""
    command("convert", "other", "--raw", "raw", *PART.replace("4", "3").split(), "-q", cwd=copy)
    lines = command("diff", "made", "other", cwd=copy, status=3).stdout.splitlines()
    assert lines[:2] == ["A: made", "B: other"]
    assert lines[2].endswith(" (A / B)")
