"""The commands against a stand-in of each source, with secrets in the environment:
shards, and no secret anywhere.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from copies_of_imagenet import write_hugging_face
from existing import existing
from fault_server import CANARY as PASSWORD_CANARY
from fault_server import PASSWORD, fault_server
from fault_server import USERNAME as OFFICIAL_USERNAME
from kaggle_copies import tree, write_zip
from stand_ins import CANARY, TOKEN, StandIn, stand_in

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import UsageError
from imagenet_prep.fetch.credentials import Token
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.providers import HuggingFaceSite
from imagenet_prep.stages.download import DownloadOptions, download_copy
from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent
SMALL = ("--train-shards", "2", "--validation-shards", "1", "--allow-incomplete", "--workers", "1")


@contextmanager
def _stand_in(kind: str, folder: Path, made: MadeSet) -> Iterator[StandIn]:
    files = folder / "files"
    if kind == "kaggle":
        write_zip(files, tree(made))
    else:
        write_hugging_face(files, made)
    with stand_in(
        kind, folder / "served", {path.name: path.read_bytes() for path in existing(files, "*")}
    ) as site:
        yield site


def _command(
    home: Path, secrets: dict[str, str], *words: str | Path
) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, whose user has no secrets but these."""
    command = [sys.executable, "-m", "imagenet_prep", *map(str, words)]
    assert not any(value in " ".join(command) for value in secrets.values())
    environment = {**_nobodys(home), **secrets}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)


def _nobodys(home: Path) -> dict[str, str]:
    """The environment of a user without secrets."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not re.match("KAGGLE|HF_|HUGGING|IMAGENET|XDG", name)
    }
    return {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT)}


def _assert_no_secret(folder: Path, *texts: str) -> None:
    for text in texts:
        assert CANARY not in text
        assert PASSWORD_CANARY not in text
    for path in existing(folder, "**/*"):
        assert CANARY not in path.name
        if path.is_file():
            content = path.read_bytes()
            assert CANARY.encode() not in content, path
            assert PASSWORD_CANARY.encode() not in content, path


@pytest.mark.parametrize("kind", ["imagenet", "kaggle", "huggingface"])
def test_the_commands_of_the_page(tmp_path: Path, made_tiny: MadeSet, kind: str) -> None:
    """From docs/getting-imagenet.md into a shell, with one's own secret for the dots:
    shards, no secret anywhere.
    """
    page = (ROOT / "docs" / "getting-imagenet.md").read_text()
    (script,) = (
        each
        for each in re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)
        if _IN_SCRIPT[kind] in each
    )
    script = re.sub(
        r"^pip install -e '\.\[parquet\]'.*$", "", script, flags=re.M
    )  # done, where tests run
    for secret in (OFFICIAL_USERNAME, PASSWORD) if kind == "imagenet" else (TOKEN,):
        script = script.replace("=...", f"='{secret}'", 1)
    with contextlib.ExitStack() as stack:
        if kind == "imagenet":
            url = stack.enter_context(
                fault_server(made_tiny.archives["train"].parent, is_open=False)
            ).url
        else:
            url = stack.enter_context(_stand_in(kind, tmp_path, made_tiny)).url
        more = ("--no-digest",) if kind == "imagenet" else ()
        command = shlex.join([sys.executable, "-m", "imagenet_prep"])
        rest = shlex.join(["--base-url", url, *SMALL, *more])
        script, count = re.subn(
            r"^imagenet-prep run /data/imagenet(.*)$",
            rf"{command} run {tmp_path}/data\1 {rest}",
            script,
            flags=re.M,
        )
        assert count == 1
        done = subprocess.run(
            ["bash", "-e"],
            env=_nobodys(tmp_path),
            input=script,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert done.returncode == 0, done.stderr
    assert len(existing(tmp_path / "data", "*-of-*")) == 3
    left_out = "annotate is left out: no annotations of train images in "
    assert (left_out in done.stderr) == (kind == "huggingface")
    reported = _command(tmp_path, {}, "report", tmp_path / "data")
    assert reported.returncode == 0, reported.stderr
    _assert_no_secret(tmp_path / "data", done.stdout, done.stderr, reported.stdout, reported.stderr)


_IN_SCRIPT = {
    "imagenet": "IMAGENET_USERNAME",
    "kaggle": "--source kaggle",
    "huggingface": "--source huggingface",
}


@pytest.mark.parametrize("kind", ["kaggle", "huggingface"])
def test_a_refusal_tells_no_secret(tmp_path: Path, made_tiny: MadeSet, kind: str) -> None:
    """A token that the site does not take: status 6, three lines, and not the token."""
    with _stand_in(kind, tmp_path, made_tiny) as site:
        secrets = {"KAGGLE_API_TOKEN": f"{TOKEN}-wrong", "HF_TOKEN": f"{TOKEN}-wrong"}
        done = _command(
            tmp_path,
            secrets,
            "download",
            tmp_path / "data",
            "--source",
            kind,
            "--base-url",
            site.url,
        )
    assert done.returncode == 6
    assert done.stderr.splitlines()[-3].startswith("error: ")
    assert CANARY not in done.stdout + done.stderr


def test_an_official_password_is_told_to_nobody(tmp_path: Path, made_tiny: MadeSet) -> None:
    """The same of image-net.org's."""
    data_dir = tmp_path / "data"
    with fault_server(made_tiny.archives["train"].parent, is_open=False) as server:
        secrets = {"IMAGENET_USERNAME": OFFICIAL_USERNAME, "IMAGENET_ACCESS_KEY": PASSWORD}
        words = ("download", data_dir, "--base-url", server.url, "--no-digest")
        done = _command(tmp_path, secrets, *words)
        assert done.returncode == 0, done.stderr
        refused = _command(
            tmp_path,
            {**secrets, "IMAGENET_USERNAME": "bob"},
            *words,
            "--only",
            "validation-boxes,devkit",
        )
    assert refused.returncode == 6
    _assert_no_secret(data_dir, done.stdout, done.stderr, refused.stdout, refused.stderr)


def test_no_log_tells_a_secret(
    tmp_path: Path, made_tiny: MadeSet, caplog: pytest.LogCaptureFixture
) -> None:
    """At the most talkative level, no logger tells a token or a signed address."""
    for name in ("", "urllib3", "urllib3.connectionpool", "requests"):
        caplog.set_level(logging.DEBUG, logger=name)
    with _stand_in("huggingface", tmp_path, made_tiny) as site:
        who = HuggingFaceSite(site.url, Token(TOKEN, "HF_TOKEN"))
        download_copy(
            Layout(tmp_path / "data"),
            who,
            DownloadOptions(pace=Pace(segment=100_000), connections=3),
        )
    assert "?..." in caplog.text
    assert CANARY not in caplog.text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--source", "kaggle", "--cookies", "README.md"),
            "--cookies can't be used with --source kaggle",
        ),
        (("--source", "kaggle", "--only", "train"), "one zip"),
    ],
)
def test_options_that_a_source_lacks(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    """They are wrong usage, and nothing is asked for."""
    words = tuple(str(ROOT / word) if word == "README.md" else word for word in words)
    done = _command(
        tmp_path, {}, "download", tmp_path / "data", *words, "--base-url", "http://127.0.0.1:9/"
    )
    assert done.returncode == UsageError.exit_code
    assert said in done.stderr
    assert not (tmp_path / "data" / "raw-data").exists()
