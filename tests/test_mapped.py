"""storage.local: a file as bytes in memory, for as long as anyone looks at them, and no descriptor kept."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from imagenet_prep.errors import InputError
from imagenet_prep.storage.local import map_file

PROC = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="there is no /proc to look into")


@pytest.mark.parametrize("in_order", [True, False])
def test_a_map_is_the_content_and_cannot_be_written(in_order: bool, tmp_path: Path) -> None:
    """Bytes of any offset, as a view that refuses to be changed."""
    content = bytes(range(256)) * 40
    (tmp_path / "file").write_bytes(content)
    view = map_file(tmp_path / "file", in_order=in_order)
    assert (len(view), view.format, view.readonly, view == content) == (len(content), "B", True, True)
    assert view[4999:5003] == content[4999:5003]
    with pytest.raises(TypeError):
        view[0] = 1
    with pytest.raises(TypeError):
        (tmp_path / "file").open("rb").readinto(view)


def test_an_empty_file_maps_to_nothing(tmp_path: Path) -> None:
    """An empty archive is an empty view, and not an error of the system."""
    (tmp_path / "empty").touch()
    assert len(map_file(tmp_path / "empty")) == 0


@PROC
def test_no_descriptor_is_kept(tmp_path: Path) -> None:
    """However many files are mapped, none of them is open."""
    (tmp_path / "file").write_bytes(b"content")
    before = len(os.listdir("/proc/self/fd"))
    kept = [map_file(tmp_path / "file") for _ in range(100)]
    assert len(os.listdir("/proc/self/fd")) == before
    assert all(view == b"content" for view in kept)


@PROC
def test_a_map_lives_as_long_as_its_last_slice(tmp_path: Path) -> None:
    """A slice keeps it, of a file that is gone too; with the last one it goes."""
    path = tmp_path / "file-of-this-test"
    path.write_bytes(bytes(100_000) + b"end")
    part = map_file(path)[99_990:][10:]
    path.unlink()
    gc.collect()
    assert part == b"end"
    assert path.name in Path("/proc/self/maps").read_text()
    del part
    gc.collect()
    assert path.name not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("kind", ["nothing", "folder", "pipe"])
def test_what_cannot_be_mapped_is_named(kind: str, tmp_path: Path) -> None:
    """What is not a file is an InputError with its path, at once."""
    path = tmp_path / "x"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    with pytest.raises(InputError, match="x can't be read"):
        map_file(path)
