"""Parts of ImageNet: lists of classes, those that ship with the package and anybody's file, and the labels they get."""

from __future__ import annotations

import hashlib
from importlib import resources
from pathlib import Path

import pytest

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.settings import WHOLE, find_part, recorded_part

TENCH, DOG, CHURCH = "n01440764", "n02102040", "n03028079"


# the lists that ship -------------------------------------------------------------------------------------------


def test_the_lists_are_those_of_their_sources() -> None:
    """imagenet-100 is byte-identical to its source; of the others a class stands for itself by its words."""
    tables = resources.files("imagenet_prep") / "ilsvrc2012" / "data"
    content = (tables / "imagenet-100.txt").read_bytes()
    assert hashlib.sha256(content).hexdigest() == "79f3f1552ccc478ce24bd934b4573625db584ddc1f4643ae23c994a94cb11397"
    for name in ("imagenette", "imagewoof"):
        assert len(find_part(name).validation_filenames()) == 10 * 50
        for line in (tables / f"{name}.txt").read_text().splitlines()[1:]:
            wnid, _, words = line.partition(" ")
            assert words.lower() in facts.texts()[wnid].lower().split(", ")


# a file of one's own -------------------------------------------------------------------------------------------


def test_a_file_names_classes_a_line_each(tmp_path: Path) -> None:
    """Blank lines, comments and what follows a wnid are passed over; the order of the lines makes no difference."""
    path = tmp_path / "mine.txt"
    path.write_bytes(f"\ufeff# three\r\n\r\n{CHURCH} church, church building\r\n  {TENCH}\t0\n{DOG}# a dog\n".encode())
    part = find_part(str(path))
    assert (part.name, part.said) == ("mine", str(path))
    assert list(part.labels.items()) == [(TENCH, 1), (DOG, 218), (CHURCH, 498)]


def test_a_file_goes_before_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of a list means the list; a file that is called so is given as a path, and is called by its content."""
    monkeypatch.chdir(tmp_path)
    Path("imagenette").write_text("".join(f"{wnid}\n" for wnid in find_part("imagenette").labels))
    assert find_part("imagenette").said == "imagenette"
    part = find_part("./imagenette")
    assert (part.name, part.said) == ("imagenette", str(tmp_path / "imagenette"))
    Path("imagewoof.txt").write_text(f"{TENCH}\n")
    with pytest.raises(UsageError, match="other classes than imagewoof") as caught:
        find_part("imagewoof.txt")
    assert "rename" in caught.value.hint


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
    """A misspelt name is answered with the names there are; a folder and a huge file are refused at once."""
    with pytest.raises(UsageError, match="imagenete") as caught:
        find_part(str(tmp_path / "imagenete"))
    assert "imagenette, imagewoof, imagenet-100" in caught.value.detail
    with pytest.raises(UsageError):
        find_part("")
    with pytest.raises(InputError):
        find_part(str(tmp_path))
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="expected at most"):
        find_part(str(path))


# labels --------------------------------------------------------------------------------------------------------


def test_relabelled_classes_count_in_sorted_order(tmp_path: Path) -> None:
    """With 0 or 1 labels count from there in the order of sorted wnids, whatever the order of the file."""
    path = tmp_path / "mine.txt"
    path.write_text(f"{CHURCH}\n{TENCH}\n{DOG}\n")
    assert find_part(str(path), 0).labels == {TENCH: 0, DOG: 1, CHURCH: 2}
    assert find_part(str(path), 1).labels == {TENCH: 1, DOG: 2, CHURCH: 3}
    assert [find_part(str(path), first).first for first in (None, 0, 1)] == [None, 0, 1]


def test_all_classes_can_count_from_0() -> None:
    """Without a list all classes are relabelled: from 0 as other libraries do, from 1 as they are."""
    part = find_part(None, 0)
    assert (part.name, part.is_whole, part.first) == ("ILSVRC2012", True, 0)
    assert (part.labels["n01440764"], part.labels["n15075141"]) == (0, 999)
    assert part != WHOLE
    assert find_part(None, 1) == WHOLE


@pytest.mark.parametrize(
    "labels", [{"n99999999": 1}, {TENCH: 1, DOG: 3}, {TENCH: 2, DOG: 219}, {TENCH: 1, DOG: 0}, {"tench": 0}]
)
def test_labels_that_no_part_has_are_not_understood(labels: dict[str, int]) -> None:
    """A manifest whose classes or labels can't be is told so, and not half believed."""
    with pytest.raises(InputError, match="classes in the manifest"):
        recorded_part("mine", labels)
