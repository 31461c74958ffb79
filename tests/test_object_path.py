"""A place in an object store as a path: joined, named and sent as pathlib does, refused wherever it would be a file."""

from __future__ import annotations

import os
import pickle
import shutil
from pathlib import Path

import pytest

from imagenet_prep.errors import UsageError
from imagenet_prep.storage import objects
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import Location, locate, status_of
from imagenet_prep.storage.store import RangedView


@pytest.mark.parametrize("written", ["s3://bucket/a/b", "S3://bucket/a/b/", "s3:/bucket//a/b", Path("s3://bucket/a/b")])
def test_a_url_however_it_is_written(written: str | Path) -> None:
    """Also one that a Path has been made of: scheme, bucket, key, and the URL as its text."""
    path = locate(written)
    assert isinstance(path, Location)
    assert (path.scheme, path.bucket, path.key, str(path)) == ("s3", "bucket", "a/b", "s3://bucket/a/b")


def test_it_is_joined_and_named_as_a_path() -> None:
    """Below, above, beside; in order; equal and of one hash; the same once it was sent to another process."""
    path = locate("gs://bucket/a") / "b.txt"
    assert isinstance(path, Location)
    assert (path.name, path.stem, path.suffix) == ("b.txt", "b", ".txt")
    assert str(path.parent) == "gs://bucket/a"
    assert str(path.with_name("c")) == "gs://bucket/a/c"
    assert isinstance(path.parent, Location)
    assert path == locate("gs://bucket/a/b.txt")
    assert len({path, locate("gs://bucket/a/b.txt"), locate("s3://bucket/a/b.txt")}) == 2
    assert sorted([path, path.with_name("a")]) == [path.with_name("a"), path]
    assert path.relative_to(path.parent).parts == ("b.txt",)
    assert str(path.relative_to(path.parent)) == "b.txt"
    assert path.match("b.*")
    assert path.absolute() is path
    assert path.resolve() is path
    assert path.is_absolute()
    assert not path.is_symlink()
    found = pickle.loads(pickle.dumps(path))
    assert isinstance(found, Location)
    assert str(found) == str(path)
    assert str(locate("az://container")) == "az://container"
    assert locate("az://container").joinpath("x", "y") == locate("az://container/x/y")


def test_the_system_never_gets_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever takes it for a file of this machine is refused in three lines, and no folder ``s3:`` is made."""
    monkeypatch.chdir(tmp_path)
    path = locate("s3://bucket/a")
    calls = [
        lambda: path.open("rb"),
        lambda: os.listdir(path),
        lambda: path.rename("x"),
        lambda: path.rmdir(),
        lambda: path.touch(),
        lambda: path.write_bytes(b""),
        lambda: path.chmod(0o600),
        lambda: shutil.copy(path, "x"),
        lambda: os.fspath(path),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="lies in an object store") as caught:
            call()
        assert len(str(caught.value).splitlines()) == 3
    path.mkdir(parents=True)
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_place() -> None:
    """Another scheme, no bucket, credentials or a query; a path of this machine stays one."""
    for url in ("https://host/x", "s3a://bucket/x", "s3://", "s3://key:secret@bucket/x", "s3://bucket/x?a=b"):
        with pytest.raises(UsageError) as caught:
            locate(url)
        assert "secret" not in str(caught.value)
    assert locate("/x/s3:/y") == Path("/x/s3:/y")
    assert not isinstance(locate("/data"), Location)


def test_a_layout_of_both() -> None:
    """Folders here and there in one layout; there is no lock there."""
    layout = Layout(Path("/data"), raw=Path("s3://bucket/raw"), output=Path("s3://bucket/out"))
    assert str(layout.manifest_path) == "s3://bucket/out/imagenet-prep/manifest.json"
    assert str(layout.raw_dir) == "s3://bucket/raw"
    assert [str(path) for path in layout.lock_paths] == ["/data/imagenet-prep/lock"]
    with pytest.raises(UsageError, match="is a URL"):
        layout.refuse_urls()
    Layout(Path("/data")).refuse_urls()


def test_the_status_of_an_object() -> None:
    """Size and time as os.stat tells them of a file."""
    status = status_of(5, 1_700_000_000_123_456_000)
    assert (status.st_size, status.st_mtime_ns, int(status.st_mtime)) == (5, 1_700_000_000_123_456_000, 1_700_000_000)


def test_what_is_read_in_order_comes_in_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the second request on a MiB, then twice as much, up to 8 MiB; from elsewhere only what was asked for."""
    mib, asked = 1 << 20, list[tuple[int, int]]()
    there = objects.Found("b", 40 * mib, 0)

    def get_range(path: Location, start: int, stop: int) -> memoryview:
        asked.append((start, stop - start))
        return memoryview(bytes(stop - start))

    monkeypatch.setattr(objects, "find", lambda path: there)
    monkeypatch.setattr(objects, "get_range", get_range)
    path = locate("s3://a/b")
    assert isinstance(path, Location)
    view = RangedView(path)
    for offset in range(0, 32 * mib, 100_000):
        assert len(view[offset : offset + 100_000]) == 100_000
    assert [length // mib for _, length in asked] == [0, 1, 2, 4, 8, 8, 8, 8]
    view[5:105]
    assert asked[-1] == (5, 100)
