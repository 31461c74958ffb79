"""The tables that ship with the package, the grammar of names, and parts:
lists of classes and their labels.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import WHOLE, find_part, recorded_part


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        (
            "imagenet_lsvrc_2015_synsets.txt",
            "70002b0ff5de60a3a17a82dbfcff291931f96225ddf941ad2e182fc39e183d15",
        ),
        (
            "imagenet_2012_validation_synset_labels.txt",
            "313fc3f23c864dde9183c9a368809065765dd1b657a6904fded44e3e46d34604",
        ),
        (
            "imagenet_metadata.txt",
            "5b8db22d2e2b0ad28b55c9c502eb45e018bc0c907524b8782958cca4805689ea",
        ),
        ("imagenet-100.txt", "79f3f1552ccc478ce24bd934b4573625db584ddc1f4643ae23c994a94cb11397"),
    ],
)
def test_tables_are_the_original_files(name: str, digest: str) -> None:
    """Each table is byte-identical to its source:
    of three, the file that the scripts of 2016 shipped with.
    """
    content = (resources.files("imagenet_prep") / "ilsvrc2012" / "data" / name).read_bytes()
    assert hashlib.sha256(content).hexdigest() == digest


def test_synsets_are_1000_and_sorted() -> None:
    """There are 1000 different wnids in sorted order, and the label is the line number."""
    synsets = facts.synsets()
    assert len(set(synsets)) == len(synsets) == 1000
    assert list(synsets) == sorted(synsets)
    assert all(map(facts.is_wnid, synsets))
    assert facts.labels()["n01440764"] == 1
    assert facts.labels()["n15075141"] == 1000


def test_every_validation_class_has_50_images() -> None:
    """The 50,000 validation images are 50 of each of the 1000 classes."""
    counts = Counter(facts.validation_wnids())
    assert counts.keys() == set(facts.synsets())
    assert set(counts.values()) == {50}
    assert facts.validation_wnids()[293 - 1] == "n01440764"


def test_every_class_has_words() -> None:
    """There are 21,842 texts, and none of the 1000 classes is without one."""
    texts = facts.texts()
    assert len(texts) == 21_842
    assert all(texts[wnid] for wnid in facts.synsets())
    assert texts["n01440764"] == "tench, Tinca tinca"


VALIDATION = "ILSVRC2012_val_"
NAMES = {
    **{f"{VALIDATION}{number:08d}.JPEG": number for number in (1, 293, 42_559, 50_000)},
    "n01440764_10026.JPEG": "n01440764",
    **dict.fromkeys(
        [f"{VALIDATION}{rest}" for rest in ("00000000.JPEG", "00050001.JPEG", "0000001.JPEG")]
    ),
    **dict.fromkeys(
        [
            f"{VALIDATION}{rest}"
            for rest in ("0000000\u0661.JPEG", "+0000001.JPEG", "00000001.JPEG ")
        ]
    ),
    **dict.fromkeys(
        ["../C2012_valx__00000001.JPEG", "../n01440764_1.JPEG", "n01440764_1/2.JPEG", ""]
    ),
    **dict.fromkeys(
        ["n01440764.JPEG", "n01440764_1.jpg", "n01440764_1.JPEG.JPEG", "n01440764_1.JPEG\n"]
    ),
    **dict.fromkeys(["n0144076_1.JPEG", "n01440764_\u00b26.JPEG"]),
}
"""What a name tells: the number of a validation image, the wnid of a train image, or nothing."""


@pytest.mark.parametrize(("name", "told"), NAMES.items())
def test_a_name_tells_number_or_wnid(name: str, told: int | str | None) -> None:
    """Out of range, misspelt, a path, another suffix or an odd digit: nothing."""
    assert (facts.validation_number(name) or facts.train_wnid(name)) == told
    assert facts.validation_filename(293) == f"{VALIDATION}00000293.JPEG"


@given(st.text(max_size=40))
def test_any_text_gets_an_answer(name: str) -> None:
    """No text makes the grammar fail, and what it takes can't leave a folder."""
    if facts.train_wnid(name) or facts.validation_number(name):
        assert name.isascii()
        assert "/" not in name
    assert facts.is_wnid(name) in (True, False)


def test_archives_are_known_by_size_and_md5() -> None:
    """Every archive has an MD5 of 32 hex digits;
    a size, where one is published, is what is planned for.
    """
    for key, archive in facts.ARCHIVES.items():
        assert archive.key == key
        assert len(archive.md5) == 32
        assert int(archive.md5, 16)
        assert archive.size in (None, archive.about)
    assert facts.ARCHIVES["train"].size == 147_897_477_120
    assert set(facts.DEFAULT_ARCHIVES) <= facts.ARCHIVES.keys()


# parts --------------------------------------------------------------------------------------------


TENCH, DOG, CHURCH = "n01440764", "n02102040", "n03028079"


# the lists that ship ------------------------------------------------------------------------------


def test_the_lists_are_those_of_their_sources() -> None:
    """A class stands for itself by its words."""
    tables = resources.files("imagenet_prep") / "ilsvrc2012" / "data"
    for name in ("imagenette", "imagewoof"):
        assert len(find_part(name).validation_filenames()) == 10 * 50
        for line in (tables / f"{name}.txt").read_text().splitlines()[1:]:
            wnid, _, words = line.partition(" ")
            assert words.lower() in facts.texts()[wnid].lower().split(", ")


# a file of one's own ------------------------------------------------------------------------------


def test_a_file_names_classes_a_line_each(tmp_path: Path) -> None:
    """Blank lines, comments and what follows a wnid are passed over;
    the order of the lines makes no difference.
    """
    path = tmp_path / "mine.txt"
    path.write_bytes(
        f"\ufeff# three\r\n\r\n{CHURCH} church, church building\r\n  {TENCH}\t0\n{DOG}# a dog\n".encode()
    )
    part = find_part(str(path))
    assert (part.name, part.argument) == ("mine", str(path))
    assert list(part.labels.items()) == [(TENCH, 1), (DOG, 218), (CHURCH, 498)]


def test_a_file_goes_before_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a list means the list; a file that is called so is given as a path,
    and is called by its content.
    """
    monkeypatch.chdir(tmp_path)
    Path("imagenette").write_text("".join(f"{wnid}\n" for wnid in find_part("imagenette").labels))
    assert find_part("imagenette").argument == "imagenette"
    part = find_part("./imagenette")
    assert (part.name, part.argument) == ("imagenette", str(tmp_path / "imagenette"))
    Path("imagewoof.txt").write_text(f"{TENCH}\n")
    with pytest.raises(UsageError, match=r"imagewoof") as caught:
        find_part("imagewoof.txt")
    assert "another name" in caught.value.hint
    detail = "expected the 10 classes of imagewoof, got 1; missing: n02086240, n02087394, n02088364, ...; not among them: n01440764"
    assert caught.value.detail == detail


def test_all_classes_are_no_part(tmp_path: Path) -> None:
    """A file of all 1000 classes, with official labels, is ILSVRC2012 itself."""
    path = tmp_path / "all.txt"
    path.write_text("\n".join(facts.synsets()))
    assert find_part(str(path)) == find_part() == WHOLE
    assert (WHOLE.name, WHOLE.is_whole, WHOLE.first) == ("ILSVRC2012", True, None)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "names no class"),
        (b"n01440764\ntench\n", "line 2: 'tench' is not a wnid"),
        (b"\nn99999999\n", "line 2: n99999999 is not one of the 1000 classes"),
        (b"n01440764\n#\nn01440764\n", "line 3: n01440764 is already in line 1"),
        (b"n01440764\n\xff\n", "line 2: not UTF-8"),
        (b"n01440764\rtench\r", "line 2: 'tench' is not a wnid"),
        (b"x" * 500, "...' is not a wnid"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, content: bytes, said: str) -> None:
    """What can't be a class is refused, not passed over, and the line is named."""
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        find_part(str(path))
    assert said in caught.value.what
    assert str(path) in caught.value.what
    assert len(str(caught.value)) < 600


def test_neither_list_nor_file_is_refused(tmp_path: Path) -> None:
    """A misspelt name is answered with the names there are;
    a folder and a huge file are refused at once.
    """
    with pytest.raises(UsageError, match="imagenete") as caught:
        find_part(str(tmp_path / "imagenete"))
    assert "imagenette, imagewoof, imagenet-100" in caught.value.detail
    with pytest.raises(UsageError):
        find_part("")
    with pytest.raises(InputError, match=f"{tmp_path} is a folder") as refused:
        find_part(str(tmp_path))
    assert "move" not in refused.value.hint
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is a pipe, a socket or a device"):
        find_part(str(tmp_path / "pipe"))
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(UsageError, match="link is a broken link"):
        find_part(str(tmp_path / "link"))
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="expected at most"):
        find_part(str(path))


# labels -------------------------------------------------------------------------------------------


def test_relabelled_classes_count_in_sorted_order(tmp_path: Path) -> None:
    """With 0 or 1 labels count from there in the order of sorted wnids,
    whatever the order of the file.
    """
    path = tmp_path / "mine.txt"
    path.write_text(f"{CHURCH}\n{TENCH}\n{DOG}\n")
    assert find_part(str(path), 0).labels == {TENCH: 0, DOG: 1, CHURCH: 2}
    assert find_part(str(path), 1).labels == {TENCH: 1, DOG: 2, CHURCH: 3}
    assert [find_part(str(path), first).first for first in (None, 0, 1)] == [None, 0, 1]


def test_all_classes_can_count_from_0() -> None:
    """Without a list all classes are relabelled:
    from 0 as other libraries do, from 1 as they are.
    """
    part = find_part(None, 0)
    assert (part.name, part.is_whole, part.first) == ("ILSVRC2012", True, 0)
    assert (part.labels["n01440764"], part.labels["n15075141"]) == (0, 999)
    assert part != WHOLE
    assert find_part(None, 1) == WHOLE


@pytest.mark.parametrize(
    "labels",
    [{"n99999999": 1}, {TENCH: 1, DOG: 3}, {TENCH: 2, DOG: 219}, {TENCH: 1, DOG: 0}, {"tench": 0}],
)
def test_labels_that_no_part_has_are_not_understood(labels: dict[str, int]) -> None:
    """A manifest whose classes or labels can't be is told so, and not half believed."""
    with pytest.raises(InputError, match=r"manifest\.json in the set"):
        recorded_part("mine", labels)
