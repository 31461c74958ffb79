"""The error for an archive says what it is: damaged, no archive, or intact and not read in place."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from made_tars import in_memory, member, pack
from made_zips import DEFLATED, Made, make_zip
from memory_store import MemoryStore

from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import CommandLine
from imagenet_prep.hints import parts_of
from imagenet_prep.sources import zip_entries
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.tars import list_tars
from imagenet_prep.sources.zips import list_zip
from imagenet_prep.storage.location import Location

GOOD = pack({"a/1.png": b"1"})
INTACT = "get an intact copy of it"


def listing(path: Path | Location, *more: Path) -> Catalog:
    """The files of archives."""
    return list_tars([path, *more], ThreadEngine(1), folder_each=False)


def refused(path: Path | Location, *more: Path) -> InputError:
    """The error for an archive."""
    with pytest.raises(InputError) as caught:
        listing(path, *more)
    return caught.value


def saved(folder: Path, name: str, content: bytes) -> Path:
    """A file of this content."""
    path = folder / name
    path.write_bytes(content)
    return path


def run_hint(hint: str, folder: Path) -> None:
    """Run the command of a hint as a shell does."""
    (command,) = (part for part in parts_of(hint) if isinstance(part, CommandLine))
    subprocess.run(["bash", "-c", command], cwd=folder, check=True)


def with_bad_byte(tar: bytes, place: int) -> bytes:
    """A tar with one other byte."""
    changed = bytearray(tar)
    changed[place] ^= 1
    return bytes(changed)


def of_python(method: int) -> bytes:
    """A zip with a method of Python's."""

    def write(buffer: object) -> None:
        with zipfile.ZipFile(buffer, "w", method) as archive:  # type: ignore[call-overload]
            archive.writestr("a.png", b"a" * 100)

    return in_memory(write)


PAGE = b"<!doctype html><p>Please sign in"
TWO = [Made(b"a"), Made(b"b")]
WORDS = {
    # name of the file, its content; the first two lines
    "an empty tar": ("x.tar", b"", "is empty", "expected a tar"),
    "a page as a tar": ("x.tar", PAGE, "is a web page or XML, not an archive", "got HTML or XML"),
    "XML as a tar": ("x.tar", b"<?xml?>", "is a web page or XML, not an archive", "got HTML"),
    "a zip as a tar": ("x.tar", make_zip(TWO), "is a zip, not a tar", "expected a tar"),
    "a text as a tar": ("x.tar", b"1,2\n" * 900, "is not a tar, or is damaged at byte 0", "header"),
    "a short text": ("x.tar", b"1,2\n", "is not a tar, or is damaged at byte 4", "ends here"),
    "an empty zip": ("x.zip", b"", "is empty", "expected a zip"),
    "a page as a zip": ("x.zip", PAGE, "is a web page or XML, not an archive", "got HTML or XML"),
    "a tar as a zip": (
        "x.zip",
        GOOD,
        "is not a zip, or is damaged at its start",
        "got 61 2f 31 2e",
    ),
    "a damaged end": (
        "x.zip",
        with_bad_byte(make_zip(TWO), -2),
        "is cut, damaged at its end, or followed by other bytes",
        "ends with its list of files",
    ),
    "an entry less than its end record counts": (
        "x.zip",
        make_zip([Made(b"a" * 99), Made(b"b" * 99)], here=3, count=3),
        "is damaged at byte ",
        "its list of files (the central directory) is wrong",
    ),
    "a text after a tar": (
        "x.tar",
        GOOD + b"end of file",
        "is damaged, or can't be read in place, at byte 1,024",
        "the tar ends here, but the file goes on: another tar or other bytes",
    ),
    "a program before a zip": (
        "x.zip",
        make_zip(TWO, before=b"#!/x"),
        "is damaged, or can't be read in place, at byte ",
        "other bytes precede the zip",
    ),
    "one end block": (
        "x.tar",
        GOOD[:1536],
        "is damaged at byte 1,536",
        "the file ends here, before the end of the tar",
    ),
}


@pytest.mark.parametrize("case", WORDS)
def test_the_error_says_what_a_file_is(case: str, tmp_path: Path) -> None:
    """A file that is no archive is not called a damaged one; the reason fits."""
    name, content, what, detail = WORDS[case]
    error = refused(saved(tmp_path, name, content))
    assert f"{name} {what}" in error.what
    assert detail in error.detail


HUGE = Made(b"a", method=DEFLATED, central={"size": 5000, "packed": 4000})
NOT_READ = {
    "a symbolic link": ("x.tar", pack([(member("a", tarfile.SYMTYPE, "b"), b"")])),
    "a hard link": ("x.tar", pack([(member("a", tarfile.LNKTYPE, "b"), b"")])),
    "a device": ("x.tar", pack([(member("a", tarfile.CHRTYPE), b"")])),
    "a pipe": ("x.tar", pack([(member("a", tarfile.FIFOTYPE), b"")])),
    "a sparse file": ("x.tar", pack([(member("a", b"S"), b"")])),
    "of tar's type 'V'": ("x.tar", pack([(member("a", b"V"), b"")])),
    "marked as encrypted": ("x.zip", make_zip([Made(b"a", central={"flags": 1})])),
    "has compression method 14": ("x.zip", of_python(zipfile.ZIP_LZMA)),
    "has compression method 12": ("x.zip", of_python(zipfile.ZIP_BZIP2)),
    "expected at most 1 GiB": ("x.zip", make_zip([HUGE])),
    "split over several files": ("x.zip", make_zip(TWO, disk=1)),
}


@pytest.mark.parametrize("case", NOT_READ)
def test_an_intact_archive_is_not_called_damaged(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has what can't be read in place; another copy would have it, too."""
    monkeypatch.setattr(zip_entries, "LARGEST_INFLATED", 4500)
    name, content = NOT_READ[case]
    error = refused(saved(tmp_path, name, content))
    assert f"{name} can't be read in place, at byte " in error.what
    assert case in error.detail
    assert error.hint
    assert INTACT not in error.hint
    for noun in ("pipe", "device"):
        assert f"{noun}s" in error.hint or noun not in case


def test_a_tar_with_links_is_packed_again_as_advised(tmp_path: Path) -> None:
    """The command packs a file in place of each link."""
    folder = tmp_path / "FOLDER"
    folder.mkdir()
    saved(folder, "a.png", b"a")
    (folder / "b.png").symlink_to("a.png")
    os.link(folder / "a.png", folder / "c.png")
    subprocess.run(["tar", "-cf", "x.tar", "-C", "FOLDER", "."], cwd=tmp_path, check=True)
    run_hint(refused(tmp_path / "x.tar").hint, tmp_path)
    assert list(listing(tmp_path / "NEW.tar").names) == ["a.png", "b.png", "c.png"]


# compressed tars ----------------------------------------------------------------------------------

COMPRESSORS = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


@pytest.mark.parametrize("first_name", ["BZhang.png", "BZh91.png"])
def test_a_damaged_tar_is_not_called_compressed_by_a_name(first_name: str, tmp_path: Path) -> None:
    """A tar starts with the name of its first member; that of a bzip2 file starts with BZh, too."""
    tar = with_bad_byte(pack({first_name: b"x" * 600, "b.png": b"y"}), 1600)
    error = refused(saved(tmp_path, "x.tar", tar))
    assert error.what.endswith("x.tar is damaged at byte 1,536")
    damaged_at_once = with_bad_byte(pack({"BZhang.png": b"x"}), 50)
    assert "compressed" not in str(refused(saved(tmp_path, "y.tar", damaged_at_once)))


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_the_advised_command_makes_a_plain_tar(suffix: str, tmp_path: Path) -> None:
    """Whatever the name of the compressed tar is."""
    for name in (f"x.tar.{suffix}", "x.tar"):
        folder = tmp_path / name.replace(".", "-")
        folder.mkdir()
        path = saved(folder, name, COMPRESSORS[suffix](GOOD))
        run_hint(refused(path).hint, folder)
        assert list(listing(folder / "x.tar").names) == ["a/1.png"]


def test_the_advised_command_replaces_no_file(tmp_path: Path) -> None:
    """A tar of the name that the command would write stays; so does a compressed one."""
    other = pack({"other.png": b"1"})
    compressed = saved(tmp_path, "x.tar.gz", gzip.compress(GOOD))
    plain = saved(tmp_path, "x.tar", other)
    error = refused(compressed)
    run_hint(error.hint, tmp_path)
    assert plain.read_bytes() == other
    assert "then use " in error.hint
    assert list(listing(tmp_path / "x-2.tar").names) == ["a/1.png"]
    packed_in_place = saved(tmp_path, "x.tar", gzip.compress(other))
    run_hint(refused(packed_in_place).hint, tmp_path)
    assert gzip.decompress(compressed.read_bytes()) == GOOD
    assert list(listing(packed_in_place).names) == ["other.png"]


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_a_compressed_tar_within_a_tar_is_decompressed_as_advised(
    suffix: str, tmp_path: Path
) -> None:
    """The tar in it has no ending of its compression, which gzip -d and xz -d require."""
    path = saved(tmp_path, "whole.tar", pack({"in.tar": COMPRESSORS[suffix](GOOD)}))
    error = refused(path)
    run_hint(error.hint, tmp_path)
    assert list(listing(tmp_path / "whole" / "in.tar").names) == ["a/1.png"]
    assert f"move {path} away, and use the tars in {tmp_path}/whole in its place" in error.hint


def test_no_command_is_advised_for_a_compressed_tar_in_a_store() -> None:
    """gzip reads and writes no objects."""
    store = MemoryStore(objects={"x.tar.gz": gzip.compress(GOOD)})
    error = refused(Location(store, "x.tar.gz"))
    assert "is compressed with gzip" in error.what
    assert "copy it to a local disk" in error.hint
    assert not any(isinstance(part, CommandLine) for part in parts_of(error.hint))


# names of members ---------------------------------------------------------------------------------


def zipped(name: str) -> bytes:
    """A zip with a member of this name."""
    return make_zip([Made(b"first"), Made(name.encode())])


def tarred(name: str) -> bytes:
    """A tar with a member of this name."""
    return pack({"first": b"", name: b"1"})


@pytest.mark.parametrize("pack_name", [tarred, zipped])
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("../x.png", "leads out of the folder"),
        ("a/../../x.png", "leads out of the folder"),
        ("/x.png", "leads out of the folder"),
        ("a//x.png", "is written in an unusual way"),
        ("a/./x.png", "is written in an unusual way"),
        ("a/../x.png", "is written in an unusual way"),
    ],
)
def test_a_member_with_an_odd_name_is_named(
    name: str, fault: str, pack_name: Callable[[str], bytes], tmp_path: Path
) -> None:
    """Only a name that leads out is said to; the byte is that of the member's header."""
    archive = pack_name(name)
    ending = ".zip" if pack_name is zipped else ".tar"
    error = refused(saved(tmp_path, f"x{ending}", archive))
    place = 512 if pack_name is tarred else archive.rindex(b"PK\1\2")
    assert error.what.endswith(f"a file whose path {fault}, at byte {place:,}")
    assert f"got '{name}'" in error.detail


def test_a_name_that_is_too_long_is_not_called_one_with_control_characters(tmp_path: Path) -> None:
    """The error has its length, and not the whole name."""
    error = refused(saved(tmp_path, "x.tar", pack({"n" * 9000: b"1"})))
    assert "x.tar holds a file whose path is too long: 'nnn" in error.what
    assert error.detail == "expected at most 8,191 characters, got 9,000"
    assert len(error.what) < 400


def test_what_helps_against_a_name_that_occurs_twice_depends_on_where(tmp_path: Path) -> None:
    """In one archive, in two of them, and in two whose folders have one name."""
    one = saved(tmp_path, "x.tar", pack([("a.png", b"1"), ("a.png", b"2")]))
    assert refused(one).what.endswith(f"occurs twice in {one}")
    assert "unpack it, keep only one" in refused(one).hint
    parts = [saved(tmp_path, name, pack({"a.png": b"1"})) for name in ("y.tar", "z.tar")]
    assert "tar_folders: true" in refused(*parts).hint
    names = list_tars(parts, ThreadEngine(1), folder_each=True).names
    assert list(names) == ["y/a.png", "z/a.png"]
    zipped_too = saved(tmp_path, "y.zip", make_zip([Made(b"a.png")]))
    with pytest.raises(InputError) as caught:
        list_tars([parts[0], zipped_too], ThreadEngine(1), folder_each=True)
    assert caught.value.hint == "rename one of the two archives"


def test_a_zip_that_was_replaced_is_not_called_damaged(tmp_path: Path) -> None:
    """Its rows are those of an earlier listing."""
    path = saved(tmp_path, "x.zip", make_zip(TWO))
    files = list_zip(path)
    row = files.row(1)
    for content in (make_zip(TWO[:1]), make_zip(TWO[::-1]), make_zip([Made(b"long" * 99), *TWO])):
        path.write_bytes(content)
        with pytest.raises(InputError, match="was replaced, written to or damaged since") as caught:
            files.container(1).open()(row)
        assert "run the same command again" in caught.value.hint
