"""verify and report of one file: a shard of a set, a file of another maker, any records;
damage is named.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from existing import existing
from made_sets import annotated, data_of, write
from running import command
from test_report import Page, picture

from imagenet_prep import records
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.engines import make_engine
from imagenet_prep.errors import UsageError
from imagenet_prep.pipeline import report
from imagenet_prep.stages.verify import verify_file

pytestmark = pytest.mark.once

ENGINE = make_engine("threads", 2)


@pytest.fixture
def movies(tmp_path: Path) -> Path:
    """A file of three records."""
    records.write(
        tmp_path / "movies.tfrecord", [{"n": number, "image": b"\xff\xd8"} for number in range(3)]
    )
    return tmp_path / "movies.tfrecord"


def test_a_file_of_any_records_is_checked(movies: Path) -> None:
    """A sound file is intact; a changed byte, a cut and a record that is no Example are named,
    with exit status 3.
    """
    assert verify_file(movies).problems == ()
    said = (
        "foreign: the records of movies.tfrecord are intact. "
        "Nothing tells how many there should be."
    )
    assert " ".join(command("verify", str(movies)).stdout.split()).endswith(said)
    assert (
        json.loads(command("verify", str(movies), "--json", "-").stdout)["totals"][
            "movies.tfrecord"
        ]["records"]
        == 3
    )
    sound = movies.read_bytes()
    for content, said in ((sound[:20] + b"x" + sound[21:], "bad-crc"), (sound[:-3], "truncated")):
        movies.write_bytes(content)
        assert (
            f"{said}: movies.tfrecord: record " in command("verify", str(movies), status=3).stdout
        )
    write(movies, [b"no Example"])
    assert [problem.kind.value for problem in verify_file(movies).problems] == ["bad-example"]
    records.write(movies, [records.SequenceExample({"title": "x"}, {"frames": [1, 2]})], "gzip")
    assert verify_file(movies).problems == ()
    assert [path.name for path in existing(movies.parent, "*")] == [movies.name]
    with pytest.raises(UsageError, match=r"--depth quick checks a whole set, and .* is one file"):
        verify_file(movies, depth="quick")


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"# A page\n" * 9, "a text file"), (bytes(257) + b"ustar" + bytes(250), "a tar archive")],
)
def test_a_file_of_another_kind_is_no_damaged_shard(
    content: bytes, kind: str, tmp_path: Path
) -> None:
    """verify says of it what show and report say."""
    path = tmp_path / "README.md"
    path.write_bytes(content)
    said = {command(name, str(path), status=4).stderr for name in ("verify", "show", "report")}
    assert said == {f"error: {path} is not a TFRecord file\nit starts as {kind} does\n"}


def test_a_shard_is_compared_with_its_manifest(made_tiny: MadeSet, tmp_path: Path) -> None:
    """A shard with sound records that were not written is refused,
    and nothing is kept of the check.
    """
    layout = annotated(tmp_path / "set", made_tiny)
    shard = tmp_path / "set/train-00001-of-00008"
    assert (
        verify_file(shard).conclusion
        == "part: train-00001-of-00008 is intact, one shard of ILSVRC2012."
    )
    write(shard, data_of(shard)[1:])
    assert [problem.kind.value for problem in verify_file(shard).problems] == ["missing-record"]
    assert not layout.verdict_path.exists()
    page = report(shard, ENGINE).path.read_text()
    assert all(
        text in page for text in ("train-00001-of-00008", "missing-record", "all of ILSVRC2012")
    )
    assert ">unknown<" not in page  # a file has no order of its own


def test_a_page_is_about_one_file(tmp_path: Path) -> None:
    """A file of another maker gets a page next to it: images, classes, features;
    damage is on it, with status 3.
    """
    things = [
        {"image": picture(40 + k), "label": k % 2, "class": "ab"[k % 2], "n": k / 2}
        for k in range(9)
    ]
    with records.open_writer(tmp_path / "things.tfrecord") as file:
        for each in (*things, {"label": 0}):
            file.write(each)
    shown = command("report", "things.tfrecord", cwd=tmp_path).stdout.strip()
    assert shown == "imagenet-prep/report-things.tfrecord.html"
    page = Page((tmp_path / shown).read_text())
    assert len(page.images()) == 9
    words = " ".join(page.text.split())
    for text in (
        "10 images in 1 shard",
        "The records of things.tfrecord are intact. Nothing tells how many there should be.",
        "every record and every image's header were checked",
        "n float, optional 9 1 0 to 4",
        "unknown: there is no sound manifest",
        "imagenet-prep report things.tfrecord --near-duplicates",
    ):
        assert text in words
    assert str(tmp_path) not in (tmp_path / shown).read_text()
    sound = (tmp_path / "things.tfrecord").read_bytes()
    (tmp_path / "things.tfrecord").write_bytes(sound[:-3])
    command("report", "things.tfrecord", status=3, cwd=tmp_path)
    assert "1 problem found" in (tmp_path / shown).read_text()


@pytest.mark.parametrize("content", [None, b"", b"\xff\xd8\xff\xe0", b"hello\n" * 99, bytes(7)])
def test_no_page_is_made_of_no_records(content: bytes | None, tmp_path: Path) -> None:
    """A missing or an empty file, and a file of another kind,
    are refused in two lines, and nothing is written.
    """
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    ran = command("report", "file", status=2 if content is None else 4, cwd=tmp_path)
    assert ran.stderr.startswith("error: file ")
    assert ran.stdout == ""
    assert [path.name for path in list(tmp_path.iterdir())] == ["file"] * (content is not None)
