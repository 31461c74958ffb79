"""Words of commands that depend on the call: files to write, stops, options that don't fit."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from running import command_here, error_lines, prep_here
from test_cli import restricted
from tiny_sets import make_set

from imagenet_prep import cli
from imagenet_prep.checks.set_difference import Difference, DifferingRecord, SplitDifference
from imagenet_prep.cli.commands import load_command, set_views
from imagenet_prep.cli.log_file import why_not_log
from imagenet_prep.cli.option_types import _fault
from imagenet_prep.cli.place_checks import refuse_unwritable
from imagenet_prep.cli.printing.difference_text import print_diff
from imagenet_prep.cli.printing.raw_data_text import print_download
from imagenet_prep.cli.stage_arguments import note_share
from imagenet_prep.errors import WriteError
from imagenet_prep.exports import FORMATS, load_format
from imagenet_prep.model import Silent
from imagenet_prep.shards.share import Share
from imagenet_prep.stages.download import DownloadSummary
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import locate

# files to write -----------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """A file, an empty file, a broken link, a pipe, a folder and a set."""
    (tmp_path / "file").write_text("not JSON")
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    make_set(Layout(tmp_path / "set"))
    (tmp_path / "verified/imagenet-prep").mkdir(parents=True)
    for name in ("verdict.json", "problems.jsonl"):
        (tmp_path / "verified/imagenet-prep" / name).write_text("{}")
    (tmp_path / "imagenet-prep").mkdir()
    (tmp_path / "imagenet-prep/verdict.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("none/x.json", "the folder {}/none does not exist"),
        ("file/x.json", "{}/file is a file, not a folder"),
        ("link/x.json", "{}/link is a broken link, not a folder"),
        ("pipe/x.json", "{}/pipe is a pipe, a socket or a device, not a folder"),
        ("file", "it exists and holds something else; expected a new file"),
        ("empty", "it exists and is empty; expected a new file"),
        ("link", "it is a broken link; expected a new file"),
        ("pipe", "it is a pipe, a socket or a device; expected a new file"),
        (
            "set/imagenet-prep/manifest.json",
            "it belongs to a set of shards; expected a new file",
        ),
        (
            "set/imagenet-prep/plan/plan.json",
            "it belongs to a set of shards; expected a new file",
        ),
        (
            "verified/imagenet-prep/verdict.json",
            "it belongs to a set of shards; expected a new file",
        ),
        ("imagenet-prep/verdict.json", ""),
    ],
)
def test_a_file_that_is_not_replaced_is_described(places: Path, name: str, fault: str) -> None:
    """--json says what is in its place."""
    assert _fault(places / name, b"{") == fault.format(places)


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("none/x.log", "the folder {}/none does not exist"),
        ("file/x.log", "{}/file is a file, not a folder"),
        ("link", "it is a broken link"),
        ("pipe", "it is a pipe, a socket or a disk; expected a file"),
    ],
)
def test_a_log_that_is_not_written_is_described(places: Path, name: str, fault: str) -> None:
    """--log-file says what is in its place."""
    assert why_not_log(places / name) == fault.format(places)


@pytest.mark.parametrize(
    ("option", "fault"),
    [("--log-file", "can't be written: File name too long"), ("--json", "File name too long")],
)
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, option: str, fault: str) -> None:
    """Names have at most 255 bytes."""
    ran = command_here("status", "set", option, "n" * 300, cwd=tmp_path, status=2)
    assert fault in " ".join(error_lines(ran))


@pytest.mark.parametrize("rank", ["9" * 4301 + "/16", "0/" + "9" * 4301])
def test_a_rank_of_too_many_digits_is_refused(tmp_path: Path, rank: str) -> None:
    """The message shows the first of them."""
    ran = command_here("convert", "set", "--rank", rank, cwd=tmp_path, status=2)
    shown = " ".join(error_lines(ran))
    assert f"'{rank[:40]}...' is not a rank: expected R/W, such as 0/16" in shown


def test_a_disk_that_is_read_only_lacks_no_permission(small_disk: Path) -> None:
    """--json and the page of report name the file system."""
    words = ("mount", "-o", "remount,ro", small_disk)
    if subprocess.run(words, capture_output=True).returncode:
        pytest.skip("this machine can't mount it again")
    fault = f"the file system of {small_disk} is read-only"
    assert _fault(small_disk / "x.json", b"{") == fault
    with pytest.raises(WriteError) as caught:
        refuse_unwritable(small_disk / "imagenet-prep" / "report.html")
    assert caught.value.detail == fault
    assert caught.value.hint == "name a file in another folder with --output"


# stops --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(cli.STARTS_OVER))
def test_a_stop_claims_only_what_is_so(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """annotate may have written a CSV, and report a verdict: not nothing was changed."""
    monkeypatch.setattr("sys.argv", ["imagenet-prep", name, "data"])
    outcome = cli._stopped(cli.INTERRUPTED)
    shown = capsys.readouterr().err
    assert "nothing was changed" not in shown
    assert "no image and no shard was changed. To start again:" in shown
    assert outcome.error is not None
    assert outcome.error["hint"].endswith(f"To start again: imagenet-prep {name} data")


def test_a_demo_in_a_temporary_folder_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its folder is removed, so there is nothing to resume."""

    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("imagenet_prep.demo.run_demo", stop)
    monkeypatch.setattr("sys.argv", ["imagenet-prep", "demo", "--workers", "1"])
    assert cli._status() == cli.INTERRUPTED
    shown = capsys.readouterr().err
    assert "its temporary folder was removed. To start again:" in shown
    assert "is kept" not in shown


# options that don't fit ---------------------------------------------------------------------------


def test_a_rank_checks_no_single_file(tmp_path: Path) -> None:
    """verify FILE checks all of it, so a rank is refused and not noted."""
    layout = Layout(tmp_path / "set")
    make_set(layout)
    shard = layout.shard_path("train-00000-of-00003")
    refused = command_here("verify", shard, "--rank", "1/2", status=2)
    assert error_lines(refused) == [
        f"error: --rank can't be used with the file {shard}",
        "a rank checks its share of the shards in a folder",
        "leave --rank out",
    ]


def test_a_rank_is_not_promised_shards() -> None:
    """There may be fewer shards than ranks."""
    progress = Silent()
    note_share(Share(5, 6), progress)
    words = (
        "rank 5 of 6: shards 5, 11, 17 and so on, as far as they exist; the numbers count the "
        "shards of all splits together, from 0"
    )
    assert progress.notes == [words]


@pytest.mark.parametrize("name", ["merge", "repair", "status"])
def test_commands_that_move_no_shards_do_not_offer_to(name: str) -> None:
    """--output names the folder in which the shards are."""
    options = {parameter.name: parameter for parameter in load_command(name).params}
    assert options["output"].help.startswith("The folder of the shards.")


def test_the_help_of_export_names_each_format_that_copies_nothing() -> None:
    """Their files are not the records, and may be in DATA_DIR."""
    shown = command_here("export", "--help").stdout
    sentence = " ".join(shown.split()).partition("copy no records")[0].rpartition("resumable. ")[2]
    without_copies = [name for name in FORMATS if load_format(name).unit == "set"]
    assert sentence.split() == " and ".join(without_copies).split()


# what is printed ----------------------------------------------------------------------------------


def test_a_browser_opens_no_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page in an object store is no matter of the browser."""
    said: list[str] = []
    monkeypatch.setattr(set_views, "say", lambda text, **_: said.append(text))
    monkeypatch.setattr("webbrowser.open", lambda _: pytest.fail("opened"))
    set_views._open(locate("s3://bucket/set/report.html"))
    assert said == [
        "a browser can't open s3://bucket/set/report.html: copy the page to this machine first"
    ]


def test_what_was_there_before_a_download_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Some are no archives: parquet files, or classes of an archive."""
    summary = DownloadSummary((), ("3 classes of ILSVRC2012_img_train.tar",), 0)
    print_download(summary, quiet=False)
    assert capsys.readouterr().out == (
        "download: fetched nothing (0 B); already there: 3 classes of ILSVRC2012_img_train.tar\n"
    )


def _diff(features: dict[str, tuple[str, str]] | None, counts: dict[str, int]) -> Difference:
    record = DifferingRecord("a.jpg", ("train-0", "train-0"), features)
    split = SplitDifference(
        "train", (1, 1), (1, 1), differing=(record,), compared=1, differing_features=counts
    )
    return Difference((Path("a"), Path("b")), (split,))


def test_a_diff_without_records_counts_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    """With --limit 0 none is shown, so there are no more; one record is not many."""
    print_diff(_diff(None, {"label": 1}), 0)
    shown = capsys.readouterr().out
    assert "train: 1 record in 1 shard, 1 in 1 (A / B)\n" in shown
    assert "  1 record with other content:\n    label differs in 1 record\n" in shown
    assert "more" not in shown
    print_diff(_diff(None, {}), 0)
    assert capsys.readouterr().out.endswith("  1 record with other content\n")


def test_a_broken_link_is_named_as_one(places: Path) -> None:
    """It is not absent: commands that expect a folder, a table or a file say so."""
    link = places / "link"
    for words in (("init", link), ("show", link), ("verify", link)):
        refused = command_here(*words, status=2)
        assert error_lines(refused)[0] == f"error: {link} is a broken link"
    refused = command_here("init", places / "pipe", status=2)
    assert error_lines(refused)[0] == f"error: {places}/pipe is neither a file nor a folder"
    refused = command_here("init", places / "file", status=2)
    assert error_lines(refused)[0] == f"error: {places}/file is a file"


_FILE_OPTIONS = [
    ("convert", "new", "--config"),
    ("verify", "--config"),
    ("download", "new", "--cookies"),
    ("init", "set", "--names"),
    ("report", "set", "--mark"),
]
_FOLDER_OPTIONS = [("convert", "new", "--raw"), ("verify", "set", "--raw")]


@pytest.mark.parametrize("words", [*_FILE_OPTIONS, *_FOLDER_OPTIONS])
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("none", "{} does not exist"),
        ("file/x", "{} does not exist"),
        ("link", "{} is a broken link"),
        ("loop", "{} can't be read: Too many levels of symbolic links"),
    ],
)
def test_an_option_says_what_is_at_its_path(
    places: Path, words: tuple[str, ...], name: str, fault: str
) -> None:
    """Only a path with nothing at it does not exist."""
    (places / "loop").symlink_to("loop")
    refused = prep_here(*words, name, cwd=places)
    assert refused.returncode == 2
    assert error_lines(refused)[-1].endswith(f": {fault.format(name)}")


@pytest.mark.parametrize(
    ("words", "name", "fault"),
    [
        *((words, "set", "set is a folder; expected a file") for words in _FILE_OPTIONS),
        *((words, "file", "file is a file; expected a folder") for words in _FOLDER_OPTIONS),
        (("convert",), "file", "file is a file; expected a folder"),
        (("convert",), "pipe", "pipe is neither a file nor a folder; expected a folder"),
    ],
)
def test_an_option_names_the_kind_of_path_that_it_expects(
    places: Path, words: tuple[str, ...], name: str, fault: str
) -> None:
    """A folder is no file, and a pipe is neither."""
    refused = prep_here(*words, name, cwd=places)
    assert refused.returncode == 2
    assert error_lines(refused)[-1].endswith(f": {fault}")


def test_a_file_in_a_closed_folder_may_exist(tmp_path: Path) -> None:
    """The path of an option can't be read; nobody knows whether it exists."""
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "x.yaml").touch()
    (tmp_path / "secret.yaml").touch()
    (tmp_path / "secret.yaml").chmod(0)
    closed.chmod(0)
    try:
        refusals = [
            restricted("convert", "new", "--config", name, cwd=tmp_path)
            for name in ("closed/x.yaml", "secret.yaml")
        ]
    finally:
        closed.chmod(0o755)
    inside, secret = (error_lines(refused)[-1] for refused in refusals)
    assert inside.endswith(": closed/x.yaml can't be read: Permission denied")
    assert secret.endswith(": secret.yaml can't be read: Permission denied")
