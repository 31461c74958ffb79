"""Where no digest is known: what arrives must look like what it should be,
at both ends, and not be encoded.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from existing import existing
from fault_server import FaultServer, fault_server
from made_tars import in_memory, pack

from imagenet_prep import DownloadOptions, Layout, download
from imagenet_prep.errors import InputError
from imagenet_prep.fetch.patience import Pace
from imagenet_prep.fetch.reply import RemoteFile, inspect
from imagenet_prep.fetch.session import Session
from imagenet_prep.ilsvrc2012.arrivals import fault_of, look_at
from imagenet_prep.ilsvrc2012.facts import ARCHIVES

PACE = Pace(tries=3, first_wait=0.001, longest_wait=0.01, stall=2)
NOISE = random.Random(1).randbytes(100_000)
MEMBERS = {f"n0144076{number}.tar": pack({"a.JPEG": NOISE[:40_000]}) for number in range(3)}


def _zip(comment: bytes, compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("ILSVRC/a.JPEG", NOISE)
        archive.comment = comment
    return file.getvalue()


def _changed(content: bytes, *spans: tuple[int, int]) -> bytes:
    """The content with the bytes of these spans shifted by one."""
    changed = bytearray(content)
    for start, stop in spans:
        changed[start:stop] = content[start + 1 : stop + 1]
    return bytes(changed)


TABLE = pyarrow.table({"label": [1, 2], "image": [NOISE, b""]})
GOOD = {
    "ustar.tar": pack(MEMBERS, tarfile.USTAR_FORMAT),
    "gnu.tar": pack(MEMBERS, tarfile.GNU_FORMAT),
    "pax.TAR": pack(MEMBERS, tarfile.PAX_FORMAT),
    "a.tar.gz": gzip.compress(NOISE, mtime=0),
    "a.tgz": gzip.compress(b"", mtime=0),
    "stored.zip": _zip(b""),
    "deflated.zip": _zip(b"", zipfile.ZIP_DEFLATED),
    "commented.zip": _zip(b"PK\5\6" + b"c" * 60_000),
    "a.parquet": in_memory(lambda file: pyarrow.parquet.write_table(TABLE, file)),
    "a.bin": NOISE,
}
ENDINGS = [".tar", ".tar.gz", ".zip", ".parquet", ".bin"]
ZIP, TAR, PARQUET = GOOD["stored.zip"], GOOD["gnu.tar"], GOOD["a.parquet"]
BAD = [
    *((f"a{ending}", b"", "an empty file") for ending in ENDINGS),
    *((f"a{ending}", b'\n {"error": "no access"}' + b" " * 600, "JSON") for ending in ENDINGS),
    ("a.tar", b"Too many requests.\r\n" * 60, "text"),
    *((f"a{ending}", NOISE[:1024], "") for ending in ENDINGS[:-1]),
    ("a.tar", GOOD["a.tar.gz"], "1f 8b 08"),
    (
        "a.tar",
        TAR[:-1],
        "whose size is a multiple of 512 bytes and at least 1,024, got 163,839 bytes",
    ),
    ("a.tar", TAR[1024:], "a tar archive"),
    ("a.gz", TAR, "gzip data"),
    ("a.gz", b"\x1f\x8b\x07\x00" + NOISE, "gzip data"),
    ("a.gz", GOOD["a.tar.gz"][:17], "gzip data"),
    ("a.zip", PARQUET, "a zip archive"),
    ("a.zip", ZIP[:-1], "expected a whole zip archive: "),
    ("a.zip", ZIP + b"\0", "expected a whole zip archive: "),
    (
        "a.zip",
        GOOD["commented.zip"][:-1],
        "the zip is cut, its end is damaged, or other bytes follow",
    ),
    (
        "a.zip",
        _changed(ZIP, (len(ZIP) - 12, len(ZIP) - 10)),
        "archive: this is one part of a zip",
    ),
    ("a.zip", _zip(b"")[-22:], "a zip archive"),
    ("a.parquet", ZIP, "a parquet file"),
    ("a.parquet", PARQUET[:-1], "cut, damaged or followed by other bytes"),
    ("a.parquet", PARQUET + b"\0", "cut, damaged or followed by other bytes"),
    ("a.parquet", b"PAR1" + bytes(4) + b"\0\0\0\0PAR1", "cut, damaged or followed by other bytes"),
]
every_good = pytest.mark.parametrize("name", GOOD)
every_bad = pytest.mark.parametrize(
    ("name", "content", "said"), BAD, ids=lambda value: str(value)[:12]
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FaultServer]:
    """A server of an empty folder."""
    (tmp_path / "served").mkdir()
    with fault_server(tmp_path / "served") as server:
        yield server


def _look(server: FaultServer, name: str, content: bytes) -> None:
    (server.folder / name).write_bytes(content)
    server.faults.ignore_range |= (
        not content
    )  # else 416, which is tried again for minutes, and then status 5
    session, url = Session(server.url, 2), server.url + name
    look_at(RemoteFile(session, url, inspect(session, url, PACE), PACE), name)


@every_good
def test_what_it_should_be_passes(server: FaultServer, tmp_path: Path, name: str) -> None:
    """Archives as they are made everywhere look right, on the server and once they have arrived."""
    _look(server, name, GOOD[name])
    asked = [seen for seen in server.seen if "Range" in seen.headers]
    assert (
        sum(int(seen.headers["Range"].partition("-")[2]) - seen.start + 1 for seen in asked)
        < 80_000
    )
    assert fault_of(server.folder / name, name) == ""


@every_bad
def test_something_else_is_refused(
    server: FaultServer, name: str, content: bytes, said: str
) -> None:
    """An empty file, JSON, text, another kind of file, one that is cut:
    before it is fetched, and if it was.
    """
    with pytest.raises(InputError, match="has a wrong file under the name") as caught:
        _look(server, name, content)
    assert said in caught.value.detail
    assert caught.value.hint.endswith("; this file was not fetched")  # others may have been
    assert "got a truncated" not in caught.value.detail
    assert caught.value.hint.endswith("; this file was not fetched")
    assert said in (fault_of(server.folder / name, name) or "no fault")


def _link() -> bytes:
    link = tarfile.TarInfo("b.tar")
    link.type, link.linkname = tarfile.SYMTYPE, "a.tar"
    return link.tobuf() + bytes(1024)


SECOND = 512 + len(MEMBERS["n01440760.tar"])  # where the second tar's header stands


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.tar", _changed(TAR, (SECOND, SECOND + 512)), "the header of a file"),
        ("a.tar", _changed(TAR, (SECOND + 512, SECOND + 2000)), "the header of a file"),
        (
            "a.tar",
            TAR[: SECOND - 1] + b"x" + TAR[SECOND:],
            "zero bytes at the end of n01440760.tar",
        ),
        ("a.tar", TAR[:-10_240] + NOISE[:10_240], "zero bytes at the end of n01440762.tar"),
        ("a.tgz", _changed(GOOD["a.tar.gz"], (50_000, 50_100)), "damaged data"),
        (
            "a.zip",
            ZIP.replace(b"PK\1\2", b"PK\1\3"),
            "its list of files (the central directory) is wrong",
        ),
        ("a.tar", _link(), "it can't be read in place, at byte 0: 'b.tar' is a symbolic link"),
    ],
    ids=["outer header", "inner header", "inner end", "end", "gzip", "zip", "link"],
)
def test_damage_in_the_middle_is_found(
    tmp_path: Path, name: str, content: bytes, said: str
) -> None:
    """Both ends are sound: headers, checksums and the directory tell."""
    (tmp_path / name).write_bytes(content)
    assert said in fault_of(tmp_path / name, name)


# the stage ----------------------------------------------------------------------------------------


def test_what_changes_on_the_way_gets_no_name(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server whose file is replaced by another of its size and date, after the look at it:
    it is looked at again.
    """
    served, layout = server.folder / ARCHIVES["train"].filename, Layout(tmp_path / "data")
    served.write_bytes(TAR)
    stat = served.stat()

    def look_and_replace(*arguments: Any) -> None:
        look_at(*arguments)
        served.write_bytes(NOISE[:1000] + bytes(stat.st_size - 1000))
        os.utime(served, ns=(stat.st_mtime_ns, stat.st_mtime_ns))

    monkeypatch.setattr("imagenet_prep.stages.download.look_at", look_and_replace)
    with pytest.raises(
        InputError, match=r"is not the expected file; .*kept .*corrupt-content"
    ) as caught:
        download(
            layout,
            DownloadOptions(base_url=server.url, pace=PACE, check_digest=False),
            only=["train"],
        )
    assert "expected a tar archive, got 163,840 bytes" in caught.value.detail
    assert [path.name for path in existing(layout.own_raw_dir, "*") if path.is_file()] == []
