"""Tar archives: what Python's tarfile writes is indexed to the byte,
and nothing that is broken passes.
"""

from __future__ import annotations

import gzip
import io
import mmap
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from made_tars import member, pack
from memory_store import MemoryStore

from imagenet_prep.engines.threads import ThreadEngine
from imagenet_prep.errors import InputError
from imagenet_prep.sources.archive_faults import TarFault
from imagenet_prep.sources.slices import Reader
from imagenet_prep.sources.tar_members import BLOCK, iter_members, stream_members
from imagenet_prep.sources.tars import list_tars
from imagenet_prep.storage.location import Location

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}
LIMIT = 1 << 30

letters = st.text(alphabet="abcXYZ019_-. é漢", min_size=1, max_size=60).map(
    lambda text: "f" + text.strip() + "e"
)
paths = st.lists(letters, min_size=1, max_size=6).map("/".join)
files = st.dictionaries(paths, st.binary(max_size=1500), max_size=6)


def header(
    name: bytes = b"a", size: bytes = b"00000000000\0", kind: bytes = b"0", pad: bytes = b"%06o\0 "
) -> bytes:
    """A header of our own making with a right checksum."""
    raw = bytearray(BLOCK)
    raw[: len(name)], raw[124:136], raw[148:156], raw[156:157] = name, size, b" " * 8, kind
    raw[148:156] = pad % sum(raw)
    return bytes(raw)


END = bytes(2 * BLOCK)


def extension(kind: bytes, content: bytes) -> bytes:
    """An extension header with its content."""
    return header(b"x", b"%011o\0" % len(content), kind) + content + bytes(-len(content) % BLOCK)


def read_all(tar: bytes) -> dict[bytes, bytes]:
    """Name and content of each member by its byte range."""
    return {
        name: tar[offset : offset + length]
        for name, offset, length in iter_members(tar, 0, len(tar))
    }


def fault(tar: bytes) -> TarFault:
    """The fault that both readers find, the same one."""
    with pytest.raises(TarFault) as indexed:
        list(iter_members(tar, 0, len(tar)))
    with pytest.raises(TarFault) as streamed:
        list(stream_members(io.BytesIO(tar), limit=LIMIT))
    assert indexed.value.offset == streamed.value.offset or "extend beyond" in indexed.value.reason
    return indexed.value


def fault_offset(tar: bytes) -> int:
    """Where both readers find the first fault, 0 if they find none;
    anything else that they raise fails the test.
    """
    try:
        list(iter_members(tar, 0, len(tar)))
        list(stream_members(io.BytesIO(tar), limit=LIMIT))
    except TarFault as error:
        return error.offset
    return 0


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@settings(deadline=None, max_examples=60)
@given(files)
def test_index_agrees_with_tarfile(form: int, members: dict[str, bytes]) -> None:
    """Every file that tarfile writes, in any format, is found with its name,
    offset and length, and streamed whole.
    """
    if form == tarfile.USTAR_FORMAT:  # its names are short
        members = {
            str(number) + name[-60:].lstrip("/"): content
            for number, (name, content) in enumerate(members.items())
        }
    tar = pack(members, form)
    with tarfile.open(fileobj=io.BytesIO(tar)) as reference:
        expected = [(info.name.encode(), info.offset_data, info.size) for info in reference]
    assert list(iter_members(memoryview(tar), 0, len(tar))) == expected
    assert read_all(tar) == {name.encode(): content for name, content in members.items()}
    assert dict(stream_members(io.BytesIO(tar), limit=LIMIT)) == read_all(tar)


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_every_cut_is_found(form: int) -> None:
    """A tar cut anywhere before the end of its end blocks, member boundaries included,
    is a fault, never shorter.
    """
    tar = pack({"a" * 90: b"x" * 700, "b" * 40 + "/" + "c" * 90: b"y" * 512, "d": b""}, form)
    *_, (_, offset, length) = iter_members(tar, 0, len(tar))
    whole = offset + length + 2 * BLOCK
    assert len(list(iter_members(tar, 0, whole))) == 3
    for cut in range(whole):
        with pytest.raises(TarFault) as cutting:
            list(iter_members(tar, 0, cut))
        assert cutting.value.offset <= cut
        if cut % 37 == 0:
            with pytest.raises(TarFault):
                list(stream_members(io.BytesIO(tar[:cut]), limit=LIMIT))


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(sorted(FORMATS)),
    st.integers(0, BLOCK - 1),
    st.integers(1, 255),
    st.integers(0, 2),
)
@example("gnu", 148, 0x10, 0)  # a digit 0 of the checksum becomes a blank
@example("gnu", 155, 0x20, 1)  # its last blank becomes NUL
def test_every_changed_header_byte_is_found(
    form: str, position: int, change: int, member: int
) -> None:
    """One changed byte anywhere in any header is a fault that names the header's offset."""
    tar = bytearray(
        pack(
            {f"n01440764_{number}.JPEG": b"z" * 100 * number for number in range(3)}, FORMATS[form]
        )
    )
    start = list(iter_members(bytes(tar), 0, len(tar)))[member][1] - BLOCK
    tar[start + position] ^= change
    assert fault(bytes(tar)).offset == start


@settings(deadline=None, max_examples=150)
@given(
    st.binary(max_size=3 * BLOCK)
    | st.binary(min_size=BLOCK, max_size=BLOCK).map(lambda rest: header() + rest + END)
)
def test_random_bytes_raise_nothing_but_tar_fault(content: bytes) -> None:
    """Whatever the bytes, the answer is members or a TarFault."""
    assert 0 <= fault_offset(content) <= len(content)


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from([b"x", b"g", b"L"]),
    st.binary(max_size=200) | st.from_regex(rb"[0-9]{1,3} [a-z]*=[0-9a-z]*\n"),
)
def test_random_extension_headers_raise_nothing_but_tar_fault(kind: bytes, content: bytes) -> None:
    """Whatever a long name or a pax header says, the answer is members or a TarFault."""
    tar = extension(kind, content) + header() + END
    assert 0 <= fault_offset(tar) <= len(tar)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_links_and_devices_are_faults(kind: bytes) -> None:
    """A link or a device has no place in a data set of files."""
    assert "not a plain file" in fault(pack([(member("evil", kind, "/etc/passwd"), b"")])).reason


def test_sparse_files_are_faults() -> None:
    """A sparse file's bytes aren't one range: refused, in GNU's form and in pax's."""
    assert "sparse" in fault(header(kind=b"S") + END).reason
    info = tarfile.TarInfo("hole")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    assert "sparse" in fault(pack([(info, b"")], tarfile.PAX_FORMAT)).reason


@pytest.mark.parametrize(
    "size",
    [
        *(b"-0000000001\0", b"00000000x00\0", b"0000_000001\0", b"00000000009\0"),
        *(b"\xff" * 12, b"\x80" + b"\xff" * 11, b"77777777777\0", b"00000004000\0"),
    ],
)
def test_impossible_sizes_are_faults(size: bytes) -> None:
    """A size that is negative, no number, or larger than what is left is a fault at that header."""
    assert fault(header(b"first") + header(size=size) + END).offset == BLOCK


def test_end_blocks_must_be_two() -> None:
    """No end block, one, or one followed by something else is a fault."""
    one = header() + bytes(BLOCK)
    assert fault(header()).offset == BLOCK
    assert fault(one).offset == 2 * BLOCK
    assert fault(one + header()).offset == BLOCK
    assert fault(b"").offset == 0
    assert "the header of a file" in fault(header(kind=b"L") + END).reason


MIB = 1 << 20
STEP = 60 * BLOCK  # a member
IMAGES = pack({f"{number}.JPEG": bytes([number]) * 30_000 for number in range(1, 9)})
OTHERS = pack({"9.JPEG": b"9"})
TAILS = {
    "two tars joined": (IMAGES + OTHERS, 8 * STEP),
    "a large second tar": (OTHERS + pack({"large": b"x" * 2 * MIB}), 1024),
    "a byte long after the end": (IMAGES + bytes(9000) + b"x", 8 * STEP),
    "a text after the end": (header() + END + b"rest", BLOCK),
    "a hole in the middle": (IMAGES[: 4 * STEP] + bytes(2 * STEP) + IMAGES[6 * STEP :], 4 * STEP),
    "a hole to the end": (IMAGES[: 3 * STEP] + bytes(len(IMAGES) - 3 * STEP), 3 * STEP),
    "zeros for ever": (IMAGES + bytes(2 * MIB), 8 * STEP),
    "nothing but zeros": (bytes(2 * MIB), 0),
}
"""Tars with more than padding after their end blocks, and the offset of these blocks."""


@pytest.mark.parametrize("case", TAILS)
def test_only_padding_may_follow_the_end_blocks(case: str) -> None:
    """Members behind a hole, and those of a tar that was joined, are never lost without a word."""
    tar, offset = TAILS[case]
    found = fault(tar)
    assert "the file goes on" in found.reason
    assert found.offset == offset


@pytest.mark.parametrize("blocks", [1, 2, 20, 32, 128, 2048])
def test_a_tar_may_be_padded_to_its_record(blocks: int, tmp_path: Path) -> None:
    """GNU tar fills up the last record: 20 blocks by default, 2048 are 1 MiB;
    other programs add nothing.
    """
    (tmp_path / "file").write_bytes(b"x" * 700)
    subprocess.run(["tar", "-b", str(blocks), "-cf", "x.tar", "file"], cwd=tmp_path, check=True)
    tar = (tmp_path / "x.tar").read_bytes()
    assert len(tar) % (blocks * BLOCK) == 0
    assert read_all(tar) == {b"file": b"x" * 700}
    assert dict(stream_members(io.BytesIO(tar), limit=LIMIT)) == read_all(tar)


def test_what_follows_the_end_is_judged_by_its_length_first() -> None:
    """Gigabytes of zeros in a store aren't read to learn that they are too many;
    nor is a tar that was joined.
    """
    for tail in (bytes(64 * MIB), pack({"large": bytes(64 * MIB)})):
        store = MemoryStore(objects={"x.tar": OTHERS + tail})
        with pytest.raises(InputError, match="the file goes on"):
            list_tars([Location(store, "x.tar")], ThreadEngine(1), folder_each=False)
        assert sum(int(str(length)) for _, _, length in store.asked) < 2 * MIB


def test_directories_are_passed_over() -> None:
    """A directory is no member, whether by its type or, in v7, by its name."""
    tar = header(b"d/", kind=b"5") + header(b"e/", kind=b"\0") + header(b"e/f") + END
    assert list(iter_members(tar, 0, len(tar))) == [(b"e/f", 3 * BLOCK, 0)]


def test_pax_and_long_names_hold_for_one_member() -> None:
    """A size or a name from an extension header counts for the next member only,
    a global one for all that follow.
    """
    one = header(b"one") + b"abc".ljust(BLOCK, b"\0")
    tar = extension(b"x", b"10 size=3\n") + one + header(b"two") + END
    assert read_all(tar) == {b"one": b"abc", b"two": b""}
    tar = extension(b"g", b"10 size=3\n") + one + header(b"two") + b"def".ljust(BLOCK, b"\0") + END
    assert read_all(tar) == {b"one": b"abc", b"two": b"def"}
    long_number = extension(b"x", b"30 size=" + b"3".zfill(21) + b"\n")
    assert "the header of a file" in fault(long_number + one + END).reason


def test_what_is_said_of_one_member_comes_before_what_is_said_of_all() -> None:
    """A pax header of a member, or its long name, counts more than a global one;
    the next has the global one again.
    """
    shared = extension(b"g", b"9 path=g\n10 size=3\n")
    local = extension(b"x", b"9 path=x\n10 size=0\n")
    content = b"abc".ljust(BLOCK, b"\0")
    tar = shared + local + header(b"one") + header(b"two") + content + END
    assert list(iter_members(tar, 0, len(tar))) == [(b"x", 5 * BLOCK, 0), (b"g", 6 * BLOCK, 3)]
    tar = shared + extension(b"L", b"long\0") + header(b"one") + content + END
    assert read_all(tar) == {b"long": b"abc"}
    tar = shared + extension(b"g", b"9 path=h\n") + header(b"one") + content + END
    assert read_all(tar) == {b"h": b"abc"}  # a later global header adds to an earlier one


@pytest.mark.parametrize("kind", [b"x", b"K"])
def test_an_extension_of_more_than_a_mebibyte_is_a_fault(kind: bytes) -> None:
    """One of just that size is read; one of a byte more is refused at its header,
    before it is read.
    """
    most = 1 << 20
    record = b"%d comment=" % most if kind in b"xg" else b"long\0"
    content = record.ljust(most - 1, b"a") + b"\n" if kind in b"xg" else record.ljust(most, b"\0")
    tar = header(b"zero") + extension(kind, content) + header(b"one") + END
    assert len(read_all(tar)) == 2
    tar = header(b"zero") + extension(kind, content + b"a") + header(b"one") + END
    found = fault(tar)
    assert found.offset == BLOCK
    assert "the header of a file" in found.reason


@pytest.mark.parametrize("form", ["v7", "ustar", "oldgnu", "gnu", "pax"])
def test_tar_of_the_system_is_read(form: str, tmp_path: Path) -> None:
    """What the tar command writes, in every format it has,
    is indexed to the same bytes, from an mmap too.
    """
    name = "d" * 60 + "/" + "n" * (30 if form == "v7" else 80)
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_bytes(b"content" * 300)
    subprocess.run(["tar", f"--format={form}", "-cf", "x.tar", "d" * 60], cwd=tmp_path, check=True)
    with (
        (tmp_path / "x.tar").open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view,
    ):
        [(found, offset, length)] = iter_members(view, 0, len(view))
        assert (found, view[offset : offset + length]) == (name.encode(), b"content" * 300)


class Endless:
    """A stream of one member without end, as a decompression bomb gives it."""

    def __init__(self) -> None:
        self.given = 0

    def read(self, size: int, /) -> bytes:
        """Zeros behind a header that promises 8 GiB."""
        content = b"" if self.given else header(b"bomb", b"77777777777\0")
        self.given += size
        return content + bytes(size - len(content))


def test_stream_is_capped() -> None:
    """A stream longer than the limit is a fault as soon as that shows,
    whether in a member or after the end.
    """
    endless = Endless()
    with pytest.raises(TarFault, match="beyond the limit"):
        list(stream_members(endless, limit=1 << 20))
    assert endless.given <= 1 << 20
    with pytest.raises(TarFault, match="it unpacks to more than"):
        list(stream_members(io.BytesIO(header() + bytes(3 << 20)), limit=1 << 20))


def test_stream_keeps_only_the_beginning_of_a_long_member() -> None:
    """With ``keep``, a longer content is cut and the members behind it are read all the same."""
    tar = pack({"long": b"x" * 3_000_000, "short": b"y" * 10})
    assert list(stream_members(io.BytesIO(tar), limit=LIMIT, keep=100)) == [
        (b"long", b"x" * 100),
        (b"short", b"y" * 10),
    ]


def nested(tmp_path: Path, members: dict[str, bytes]) -> Path:
    """An archive of this content."""
    path = tmp_path / "whole.tar"
    path.write_bytes(pack(members))
    return path


@pytest.mark.parametrize("folder_each", [False, True])
def test_a_tar_of_class_tars_is_listed_in_place(tmp_path: Path, folder_each: bool) -> None:
    """A tar within an archive is a folder of its name, beside plain files;
    one more level down, a tar is a file.
    """
    deep = pack({"deep.JPEG": b"0"})
    classes = {
        f"n{number}.tar": pack({f"./n{number}_{each}.JPEG": b"%d" % each for each in range(3)})
        for number in range(40)
    }
    path = nested(
        tmp_path,
        {
            **classes,
            "b/c.tar": pack({"x/y.JPEG": b"y", "z.tar": deep, ".hidden": b""}),
            "top.JPEG": b"top",
        },
    )
    lead = "whole/" if folder_each else ""
    expected = {
        f"{lead}n{number}/n{number}_{each}.JPEG": b"%d" % each
        for number in range(40)
        for each in range(3)
    }
    expected |= {f"{lead}b/c/x/y.JPEG": b"y", f"{lead}b/c/z.tar": deep, f"{lead}top.JPEG": b"top"}
    found = list_tars([path], ThreadEngine(2), folder_each=folder_each)
    reader = Reader()
    assert {
        found.names[row]: bytes(found.read(row, reader)) for row in range(len(found))
    } == expected
    assert list(found.names) == sorted(expected)


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        (lambda tar: tar[: 3 * BLOCK], r"whole\.tar \(b\.tar\) is damaged at byte 12,800"),
        (gzip.compress, r"whole\.tar \(b\.tar\) is compressed with gzip"),
        (
            lambda tar: tar + tar,
            r"whole\.tar \(b\.tar\) is damaged, or can't be read in place, at byte 12,288\nthe tar ends here, but the file goes on",
        ),
        (
            lambda tar: tar[:1024] + bytes(512 << 10) + tar,
            r"whole\.tar \(b\.tar\) is damaged, or can't be read in place, at byte 12,288\nthe tar ends here, but the file goes on",
        ),
        (
            lambda _: pack({"../x": b""}),
            r"whole\.tar \(b\.tar\) holds a file whose path leads out",
        ),
    ],
    ids=["cut", "compressed", "joined", "with a hole", "leads out"],
)
def test_a_bad_tar_within_an_archive_is_named(
    tmp_path: Path, inner: Callable[[bytes], bytes], said: str
) -> None:
    """The error names the archive, the tar in it and the byte of the archive."""
    good = pack({"a": b"1"})
    path = nested(tmp_path, {"a.tar": good, "b.tar": inner(good)})
    with pytest.raises(InputError, match=said):
        list_tars([path], ThreadEngine(2), folder_each=False)


@pytest.mark.parametrize("folder", ["", "in ner/"])
def test_compressed_tars_in_a_tar_are_decompressed_as_advised(tmp_path: Path, folder: str) -> None:
    """The command reaches every one of them, and leaves a plain tar as it is."""
    tars = {name: pack({f"{name}.JPEG": name.encode()}) for name in "abc"}
    content = {f"{folder}a.tar": gzip.compress(tars["a"]), f"{folder}b.tar": tars["b"]}
    content[f"{folder}c.tar"] = gzip.compress(tars["c"])
    path = nested(tmp_path, content)
    with pytest.raises(InputError, match="compressed with gzip") as caught:
        list_tars([path], ThreadEngine(1), folder_each=False)
    commands, _, _ = caught.value.hint.partition("    (then move ")
    subprocess.run(["sh", "-c", commands], check=True)
    unpacked = sorted((path.with_suffix("") / folder).iterdir())
    assert [tar.name for tar in unpacked] == ["a.tar", "b.tar", "c.tar"]
    found = list_tars(unpacked, ThreadEngine(1), folder_each=False)
    assert list(found.names) == ["a.JPEG", "b.JPEG", "c.JPEG"]


def test_a_name_in_a_tar_and_in_a_folder_beside_it_is_refused(tmp_path: Path) -> None:
    """Every name is there once, whichever way it was found."""
    path = nested(tmp_path, {"a.tar": pack({"1.JPEG": b"1"}), "a/1.JPEG": b"2"})
    with pytest.raises(InputError, match=r"a/1\.JPEG occurs twice in"):
        list_tars([path], ThreadEngine(2), folder_each=False)
