"""A URL in place of a folder or a file: refused in three lines,
nothing made, no secret of it said.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from made_sets import ENGINE
from running import error_lines, prep

import imagenet_prep
from imagenet_prep.errors import UsageError
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.stages.init import init
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import scheme_of, shown

SECRET = "AKIA:wJalr/XUtnFEMI"

CALLS = [
    ("run", "s3://bucket/x"),
    ("download", "https://host/x"),
    ("untar", "s3://bucket/x"),
    ("annotate", "gs://bucket/x"),
    ("annotate", "data", "--boxes", "s3://bucket/boxes.tar.gz"),
    ("init", "s3://bucket/x"),
    ("init", ".", "--output", "s3://bucket/x.yaml"),
    ("convert", "ftp://bucket/x"),
    ("convert", "data", "--output", "S3A://bucket/x"),
    ("convert", "data", "--raw", "HTTP://bucket/x"),
    ("convert", "data", "--output", "hdfs://bucket/x"),
    ("convert", "data", "--config", "s3://bucket/x.yaml"),
    ("convert", "data", "--classes", "s3://bucket/classes.txt"),
    ("verify", "file:///data/x"),
    ("verify", "data", "--json", "s3://bucket/x.json"),
    ("repair", "ftp://bucket/x"),
    ("status", "ftp://bucket/x"),
    ("report", "ftp://bucket/x"),
    ("show", "ftp://bucket/x/train-00000-of-00001"),
    ("export", "webdataset", "ftp://bucket/x", "tars"),
    ("export", "webdataset", ".", "s3://bucket/x"),
    ("export", "tfds", "s3://bucket/x", "tfds"),
    ("diff", "ftp://bucket/x", "."),
    ("demo", "s3://bucket/x"),
]


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_url_is_refused_in_three_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...]
) -> None:
    """Each command names it, exits with 2, and makes nothing, least of all a folder ``s3:``."""
    monkeypatch.chdir(tmp_path)
    done = prep(*call)
    assert done.returncode == 2, done.stderr
    said = error_lines(done)
    assert len(said) == 3
    assert (
        f"error: {next(each for each in call if '://' in each).replace('HTTP', 'http').replace('S3A', 's3a')} is a URL"
        == said[0]
    )
    assert list(tmp_path.iterdir()) == []


LIBRARY: list[Callable[[str], object]] = [
    lambda url: Layout(Path(url)),
    lambda url: Layout(Path("data"), raw=Path(url)),
    lambda url: Layout(Path("data"), output=Path(url)),
    lambda url: imagenet_prep.open(url, "train"),
    lambda url: imagenet_prep.open("data", "train", source="raw", raw=url),
    lambda url: imagenet_prep.ConvertOptions(classes=url).part,
    lambda url: imagenet_prep.records.write(url, []),
    lambda url: imagenet_prep.records.ShardWriter(url, shards=1),
    lambda url: init(Path(url), None, ENGINE),
    lambda url: annotate(Layout(Path("data")), ENGINE, boxes=Path(url)),
    lambda url: list(imagenet_prep.show(Path(url))),
]


@pytest.mark.parametrize("call", LIBRARY)
def test_the_library_refuses_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[str], object]
) -> None:
    """As a text or as the Path that was made of it; and no secret that stands in it is said."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="is a URL") as caught:
        call(f"ftp://{SECRET}@bucket/x")
    assert "wJalr" not in str(caught.value)
    assert "AKIA" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("place", "scheme"), [("s3://b/x", "s3"), ("s3:/b", "s3"), ("GS://b", "gs"), ("a+b://c", "a+b")]
)
def test_what_is_a_url(place: str, scheme: str) -> None:
    """A scheme, a colon and a slash: one of the two slashes is gone where
    a Path has been made of it.
    """
    assert scheme_of(place) == scheme
    assert scheme_of(Path(place)) == scheme


@pytest.mark.parametrize("place", ["/s3:/x", "./s3://x", "c:/x", "s3:x", "x/s3://y", "", "9p://x"])
def test_what_is_a_path(place: str) -> None:
    """What begins with a slash or a dot, and a drive's letter."""
    assert scheme_of(place) is None


def test_a_secret_is_not_shown() -> None:
    """Of a URL with a user, or a query, only the scheme is said."""
    assert shown(f"s3://{SECRET}@bucket/x") == "s3://..."
    assert shown("https://host/x?X-Amz-Signature=ab") == "https://..."
    assert shown(Path("s3://bucket/x")) == "s3://bucket/x"
