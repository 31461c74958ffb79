"""Lists of file names, and folders: the error says what a line, or a path, is."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine
from imagenet_prep.hints import parts_of
from imagenet_prep.sources import file_lists
from imagenet_prep.sources.file_lists import look_up, read_file_list
from imagenet_prep.sources.folders import list_folder, list_matching

ENGINE = ThreadEngine(1)


def listed(folder: Path, content: bytes) -> InputError:
    """The error for a list of this content."""
    path = folder / "list.txt"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        look_up(read_file_list(path, folder), folder, ENGINE)
    return caught.value


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_byte_that_is_no_utf8_is_counted_from_the_start_of_the_file(
    mark: bytes, tmp_path: Path
) -> None:
    """With a byte order mark, too."""
    content = mark + b"a.png\nb\xff.png\n"
    error = listed(tmp_path, content)
    assert error.what.endswith(f"list.txt is not UTF-8, at byte {content.index(0xFF):,}")
    assert error.hint.startswith("save it as UTF-8")


LINES = {
    "a//b.png": "a//b.png is no plain path of a file",
    "a/./b.png": "a/./b.png is no plain path of a file",
    "a/../b.png": "a/../b.png is no plain path of a file",
    "folder/": "folder/ is no plain path of a file",
    "../b.png": "../b.png is not written as a path below {base}",
    "a/../../b.png": "a/../../b.png is not written as a path below {base}",
    "/etc/passwd": "/etc/passwd is not written as a path below {base}",
    "gone.png": "gone.png is not there",
    "broken.png": "broken.png is a broken link",
    "folder": "folder is a folder",
    "pipe": "pipe is a pipe",
    "device": "device is a device",
    "a.png/b.png": "a.png/b.png can't be read: Not a directory",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_is_called_what_it_is(line: str, tmp_path: Path) -> None:
    """Only a path that leads out is refused as one; only a file that is gone "is not there"."""
    (tmp_path / "a.png").write_bytes(b"a")
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken.png").symlink_to("nowhere")
    (tmp_path / "device").symlink_to("/dev/null")
    os.mkfifo(tmp_path / "pipe")
    error = listed(tmp_path, f"a.png\n\n{line}\n".encode())
    assert "list.txt, line 3: " in error.what
    assert error.what.endswith(LINES[line].format(base=tmp_path))
    assert error.hint


def test_the_advised_path_of_a_line_is_taken(tmp_path: Path) -> None:
    """The hint has the usual form of the path."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/b.png").write_bytes(b"a")
    for line in ("a//b.png", "a/./b.png", "a/../a/b.png"):
        assert listed(tmp_path, f"{line}\n".encode()).hint == "write a/b.png"


def test_a_list_with_labels_is_called_one(tmp_path: Path) -> None:
    """A path and a label, as Caffe's lists have them: the path is there."""
    (tmp_path / "a.png").write_bytes(b"a")
    assert listed(tmp_path, b"a.png 0\n").hint.startswith("remove '0': such a list has only paths")
    assert "remove" not in listed(tmp_path, b"b.png 0\n").hint
    assert "remove" not in listed(tmp_path, b"a.png/x 0\n").hint


def test_further_faults_of_a_list_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in the lines after the first one."""
    error = listed(tmp_path, b"gone.png\nlost.png\nlist.txt\nleft.png\n")
    assert error.what.endswith("gone.png is not there; 2 more lines name no file that can be read")
    error = listed(tmp_path, b"gone.png\nlost.png\n")
    assert error.what.endswith("gone.png is not there; 1 more line names no file that can be read")
    monkeypatch.setattr(file_lists, "_CHUNK", 1)  # the lines of every task
    error = listed(tmp_path, b"gone.png\nlost.png\nleft.png\n")
    assert error.what.endswith("; 2 more lines name no file that can be read")


def test_no_list_without_a_pattern_is_advised_to_be_removed(tmp_path: Path) -> None:
    """Nothing makes it again then."""
    assert "remove" not in listed(tmp_path, b"gone.png\n").hint
    assert "remove" not in listed(tmp_path, b"\n").hint


def test_a_path_that_is_no_folder_is_called_what_it_is(tmp_path: Path) -> None:
    """A broken link is not said to be gone."""
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "file").write_bytes(b"")
    faults = {"broken": "is a broken link", "gone": "is not there", "file": "is not a folder"}
    for name, fault in faults.items():
        with pytest.raises(InputError, match=f"{name} {fault}"):
            list_folder(tmp_path / name, ENGINE)
        with pytest.raises(InputError, match=f"{name} {fault}"):
            list_matching(tmp_path, f"{name}/*.png", ENGINE)


def test_what_is_no_file_is_an_obstacle_with_its_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe, a socket, or a link to a device."""
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    os.mkfifo("a.png")
    (tmp_path / "b.png").symlink_to("/dev/null")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("c.png")
        _, remarks = list_folder(tmp_path, ENGINE)
    whats = [obstacle.what.rpartition("/")[2] for obstacle in remarks.obstacles]
    assert whats == ["a.png is a pipe", "b.png is a device", "c.png is a socket"]


def test_a_link_to_a_folder_is_replaced_as_advised(tmp_path: Path) -> None:
    """The command makes links to files, which are read; one that leads in a circle is removed."""
    target = tmp_path / "elsewhere/rose"
    (target / "inner").mkdir(parents=True)
    (target / "inner/1.png").write_bytes(b"1")
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "rose").symlink_to("../elsewhere/rose")
    _, remarks = list_folder(folder, ENGINE)
    (obstacle,) = remarks.obstacles
    assert obstacle.what == f"{folder}/rose is a link to another folder"
    (command,) = (part for part in parts_of(obstacle.hint) if isinstance(part, CommandLine))
    subprocess.run(["bash", "-c", command], check=True)
    files, remarks = list_folder(folder, ENGINE)
    assert list(files.names) == ["rose/inner/1.png"]
    assert not remarks.obstacles
    (folder / "rose/circle").symlink_to("..")
    _, remarks = list_folder(folder, ENGINE)
    (obstacle,) = remarks.obstacles
    assert obstacle.what.endswith("circle is a link to a folder that holds it")
    assert obstacle.hint == "remove the link"
