"""Zips read in place: what zipfile reads, and every lie of a header refused by its place."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import pytest
from bounded import processor_time
from hypothesis import given
from hypothesis import strategies as st
from made_zips import DEFLATED, STORED, Made, deflate, make_zip, zip_64

from imagenet_prep.errors import InputError
from imagenet_prep.sources import zip_entries
from imagenet_prep.sources.slices import FileSlices, Reader, Row
from imagenet_prep.sources.zip_entries import (
    LARGEST_INFLATED,
    ZipFault,
    entry_at,
    iter_entries,
    read_entry,
)
from imagenet_prep.sources.zips import Zip, walk_zip

JPEG = bytes(range(256)) * 40
NONE = 0xFFFFFFFF  # "see the zip64 field"
TWO = (Made(b"a/1.JPEG", JPEG), Made(b"a/2.JPEG", b"another " * 400, DEFLATED))


def contents(data: bytes | memoryview) -> list[tuple[bytes, bytes]]:
    """Name and content of every file, as it is read here; each is found again by its address."""
    found = []
    for name, address, length in iter_entries(data):
        entry = entry_at(data, address)
        assert (entry.name, entry.address, entry.size) == (name, address, length)
        found.append((name, bytes(read_entry(data, entry))))
    return found


def reason(data: bytes) -> str:
    """Why a zip is refused."""
    with processor_time(), pytest.raises(ZipFault) as caught:
        contents(memoryview(data))
    assert 0 <= caught.value.offset <= len(data)
    assert len(str(caught.value)) < 400
    return caught.value.reason


class Pipe(io.BytesIO):
    """A file that can't be sought, so that zipfile writes sizes behind the data."""

    def tell(self) -> int:
        """Not even this."""
        raise OSError


# what zipfile writes ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "way"),
    [
        *((zipfile.ZIP_DEFLATED, way) for way in ("plain", "wide and streamed", "comment")),
        (zipfile.ZIP_STORED, "wide"),
    ],
)
def test_what_zipfile_writes_is_read(method: int, way: str) -> None:
    """Stored and deflated, sizes before or behind the data, in 32 bits or 64, with a comment:
    names and bytes.
    """
    file = (Pipe if "streamed" in way else io.BytesIO)()
    wanted = [
        (f"a/{number}.JPEG".encode(), os.urandom(number * 100) + bytes(number))
        for number in range(20)
    ]
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.comment = b"PK\5\6 of no end" * (way == "comment")
        archive.writestr("a/", b"")
        for name, content in wanted:
            with archive.open(name.decode(), "w", force_zip64="wide" in way) as entry:
                entry.write(content)
    data = file.getvalue()
    assert contents(data) == wanted
    if way != "comment":
        assert contents(zip_64(data)) == wanted


@given(
    st.lists(
        st.tuples(
            st.binary(min_size=1, max_size=20),
            st.binary(max_size=300),
            st.sampled_from([STORED, DEFLATED]),
        ),
        max_size=8,
    ),
    st.binary(max_size=40),
)
def test_any_zip_is_read_as_zipfile_reads_it(
    files: list[tuple[bytes, bytes, int]], comment: bytes
) -> None:
    """Whatever the names and contents are."""
    files = [(name.replace(b"/", b"_"), content, method) for name, content, method in files]
    data = make_zip([Made(*file) for file in files], comment=comment.replace(b"P", b"p"))
    assert contents(data) == [(name, content) for name, content, _ in files]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert len(archive.infolist()) == len(files)


def test_a_directory_longer_than_the_window_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries that cross the end of what is read at a time are whole,
    whatever their names' lengths.
    """
    monkeypatch.setattr(zip_entries, "_LONGEST", 400)
    monkeypatch.setattr(zip_entries, "_WINDOW", 401)
    entries = [Made(b"n" * (1 + number * 7 % 300), bytes([number])) for number in range(200)]
    assert contents(make_zip(entries)) == [(made.name, made.content) for made in entries]


def test_sizes_behind_the_data_are_those_of_the_directory() -> None:
    """A header that was written before them says 0, or the sizes themselves."""
    for said in ({"crc": 0, "packed": 0, "size": 0}, {"crc": 0}, {}):
        for method in (STORED, DEFLATED):
            made = Made(b"a", JPEG, method, 0x8, local=said, after=b"PK\7\10" + bytes(12))
            assert contents(make_zip([made, made])) == [(b"a", JPEG)] * 2
    assert "'a' differs from what" in reason(make_zip([Made(b"a", JPEG, local={"crc": 0})]))


# lies ---------------------------------------------------------------------------------------------


HEADERS = ({"name": b"b"}, {"method": 8}, {"crc": 1}, {"packed": 6}, {"size": 8}, {"flags": 1})
"""Fields of the header before the data, which must say what the directory says."""
LIST = "its list of files (the central directory) is wrong"
FILE = "'a' differs from what the zip's list of files says of it"


@pytest.mark.parametrize(
    ("lying", "expected"),
    [
        # each field of the central directory, one at a time
        (Made(b"a", central={"flags": 0x1}), "encrypted"),
        (Made(b"a", central={"method": 12}), "method 12"),
        (Made(b"a", central={"size": 8}), LIST),
        (Made(b"a", central={"method": 8, "size": 8_000}), LIST),
        (Made(b"a", central={"offset": 1}), LIST),
        (Made(b"a", central={"size": 1000, "packed": 1000}), LIST),
        (Made(b"a", central={"disk": 1}), "split zip"),
        (Made(b"a", central={"kind": 0o120777 << 16, "made_by": 0x314}), "a link"),
        (Made(b"a", central={"name": b""}), LIST),
        (Made(b"a", central={"name": b"a/"}), LIST),
        (
            Made(b"a", central={"name": b"b"}),
            "'b' differs from what",
        ),
        (Made(b"a", central={"crc": 1}), FILE),
        (Made(b"a", central={"mark": b"PK\1\3"}), LIST),
        (
            Made(b"a", central={"size": NONE, "packed": NONE}),
            LIST,
        ),
        (
            Made(
                b"a", central={"size": NONE, "packed": NONE, "extra": struct.pack("<HHQ", 1, 8, 7)}
            ),
            LIST,
        ),
        (
            Made(b"a", central={"offset": NONE, "extra": struct.pack("<HHQ", 1, 8, 1 << 63)}),
            LIST,
        ),
        (
            Made(b"a", central={"offset": NONE, "extra": struct.pack("<HH", 9, 60000)}),
            LIST,
        ),
        (Made(b"a", central={"disk": 0xFFFF, "extra": struct.pack("<HHI", 1, 4, 1)}), "split zip"),
        *((Made(b"a", local=said), FILE) for said in HEADERS),
        # no deflated stream, one of another length, none at all
        (Made(b"a", method=DEFLATED, data=zlib.compress(b"content")), FILE),
        (Made(b"a", method=DEFLATED, data=b"\x03\x00"), FILE),
        (Made(b"a", method=DEFLATED, data=b""), LIST),
    ],
)
def test_an_entry_that_lies_is_refused(lying: Made, expected: str) -> None:
    """In the directory, in the header before the data, or in the data."""
    assert expected in reason(make_zip([lying]))


def test_what_inflates_to_more_than_was_said_is_refused_at_that_length() -> None:
    """A bomb: a megabyte announced, a gigabyte packed;
    no more than what was announced is held in memory.
    """
    said = {"size": 1 << 20}
    bomb = make_zip(
        [Made(b"a", b"", DEFLATED, data=deflate(bytes(1 << 28)), central=said, local=said)]
    )
    tracemalloc.start()
    try:
        assert FILE in reason(bomb)
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    huge = Made(b"a", b"", DEFLATED, data=bytes(2 << 20), central={"size": LARGEST_INFLATED + 1})
    assert "expected at most 1 GiB" in reason(make_zip([huge]))


@pytest.mark.parametrize(("method", "packed"), [(STORED, JPEG), (DEFLATED, deflate(JPEG))])
def test_a_changed_byte_of_content_is_noticed(method: int, packed: bytes) -> None:
    """The CRC-32 of stored entries is compared too."""
    data = bytearray(make_zip([Made(b"a", JPEG, method)]))
    data[31 + len(packed) // 2] ^= 1
    assert reason(bytes(data)).startswith(FILE)


def test_entries_over_one_another_are_refused() -> None:
    """The same bytes twice, a part of them, and in whatever order the directory names them."""
    data = make_zip(TWO)
    _, (_, second, _) = iter_entries(data)
    for offset in (0, 1, entry_at(data, second).local - 1):
        lying = Made(b"a/2.JPEG", TWO[1].content, DEFLATED, central={"offset": offset})
        with pytest.raises(ZipFault, match="its list of files"):
            list(iter_entries(make_zip([TWO[0], lying])))
        with pytest.raises(ZipFault, match="its list of files"):
            list(iter_entries(turned(make_zip([TWO[0], lying]))))


def turned(data: bytes) -> bytes:
    """A zip of two entries, named by its directory the other way round."""
    end = len(data) - 22
    start = struct.unpack_from("<I", data, end + 16)[0]
    edge = data.index(b"PK\1\2", start + 1)
    return data[:start] + data[edge:end] + data[start:edge] + data[end:]


def test_a_directory_in_another_order_is_read() -> None:
    """The order of the directory need not be that of the data."""
    data = make_zip(TWO)
    assert contents(turned(data)) == contents(data)[::-1]


# the ends -----------------------------------------------------------------------------------------


def test_a_zip_that_was_cut_is_refused_wherever() -> None:
    """A download that broke off: there is no end, and nothing is taken."""
    data = make_zip(TWO)
    for length in range(len(data)):
        with pytest.raises(ZipFault):
            list(iter_entries(data[:length]))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        # each field of the last record
        (make_zip(TWO, disk=1), "split"),
        (make_zip(TWO, count=3, here=3), LIST),
        (make_zip(TWO, count=1, here=1), LIST),
        (make_zip(TWO, count=60_000, here=60_000), LIST),
        (make_zip(TWO, length=10), "other bytes precede the zip"),
        (make_zip(TWO, start=1 << 30), LIST),
        # a zip behind a program or a web page is not what anyone published; after the end stands
        # nothing
        (make_zip(TWO, before=b"#!/x"), "other bytes precede the zip"),
        (b"#!/x" + zip_64(make_zip(TWO)), "other bytes precede the zip"),
        (make_zip(TWO) + b"more", "is cut, its end is damaged, or other bytes follow"),
        (make_zip(TWO)[:2000], "is cut, its end is damaged, or other bytes follow"),
        (b"", "not a zip"),
        (b"<html>" * 100, "not a zip"),
    ],
    ids=range(12),
)
def test_ends_that_lie_are_refused(content: bytes, expected: str) -> None:
    """In a field, or by bytes around the zip."""
    assert expected in reason(content)


def test_a_wide_zip_behind_other_bytes_may_be_intact() -> None:
    """The advice says what to do then, as for a zip without wide sizes."""
    with pytest.raises(ZipFault) as caught:
        contents(memoryview(b"#!/x" + zip_64(make_zip(TWO))))
    assert caught.value.if_intact.startswith("if other bytes precede it, unpack it")


def test_a_wide_end_that_lies_is_refused_or_makes_no_difference() -> None:
    """Each byte of the last records of a zip64, changed."""
    whole = zip_64(make_zip(TWO))
    for at in range(len(whole) - 98, len(whole)):
        data = bytearray(whole)
        data[at] ^= 0x41
        with contextlib.suppress(ZipFault):
            assert [content for _, content in contents(bytes(data))] == [
                made.content for made in TWO
            ]


@given(st.data())
def test_changed_bytes_never_give_other_content(data: st.DataObject) -> None:
    """Whatever is changed anywhere: a fault, or files whose CRC-32 is right;
    never a crash, never for long.
    """
    original = bytearray(zip_64(make_zip(TWO)) if data.draw(st.booleans()) else make_zip(TWO))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(original) - 1))
        original[at] = data.draw(st.integers(0, 255))
    with processor_time():
        try:
            found = contents(bytes(original))
        except ZipFault:
            return
    for _, content in found:
        assert content in {made.content for made in TWO}


# the container ------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A zip of two files."""
    path = tmp_path / "images.zip"
    path.write_bytes(make_zip(TWO))
    return path


def rows(path: Path) -> list[Row]:
    """The rows of all entries, under their own names."""
    with FileSlices(path) as view:
        return [
            Row(name.decode().rpartition("/")[2], address, size, 0)
            for name, address, size in walk_zip(view)
        ]


def test_rows_are_read_without_a_copy_where_they_are_stored(path: Path) -> None:
    """A slice of the map; what is deflated is inflated; in another process too."""
    for reader in (Reader(), pickle.loads(pickle.dumps(Reader()))):
        container = pickle.loads(pickle.dumps(Zip(path)))
        found = [reader.read(container, row) for row in rows(path)]
        assert [bytes(each) for each in found] == [made.content for made in TWO]
        assert isinstance(found[0], memoryview)
    assert Zip(path).place(rows(path)[0]) == "images.zip, entry 1.JPEG"
    assert Zip(path) == Zip(path)


def test_a_zip_that_changed_since_it_was_listed_is_named(path: Path) -> None:
    """Another zip under its name, with other entries, or cut:
    the error names the file, and no byte is taken.
    """
    listed = rows(path)
    for other in (make_zip(TWO[::-1]), make_zip([TWO[0]]), b"", b"PK"):
        path.write_bytes(other)
        with pytest.raises(InputError, match=r"images\.zip"):
            [bytes(Zip(path).open()(row)) for row in listed]


def test_a_damaged_zip_is_one_error(path: Path) -> None:
    """Which file, at which byte, why, and what to do."""
    path.write_bytes(path.read_bytes()[:-30])
    with (
        FileSlices(path) as view,
        pytest.raises(
            InputError, match="is cut, damaged at its end, or followed by other bytes"
        ) as caught,
    ):
        list(walk_zip(view))
    assert str(path) in caught.value.what
    assert caught.value.hint
