"""The tables that ship with the package, and the grammar of the data set's names."""

from __future__ import annotations

import hashlib
from collections import Counter
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from imagenet_prep.ilsvrc2012 import facts


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("imagenet_lsvrc_2015_synsets.txt", "70002b0ff5de60a3a17a82dbfcff291931f96225ddf941ad2e182fc39e183d15"),
        (
            "imagenet_2012_validation_synset_labels.txt",
            "313fc3f23c864dde9183c9a368809065765dd1b657a6904fded44e3e46d34604",
        ),
        ("imagenet_metadata.txt", "5b8db22d2e2b0ad28b55c9c502eb45e018bc0c907524b8782958cca4805689ea"),
    ],
)
def test_tables_are_the_original_files(name: str, digest: str) -> None:
    """Each table is byte-identical to the file that the scripts of 2016 shipped with."""
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
    **dict.fromkeys([f"{VALIDATION}{rest}" for rest in ("00000000.JPEG", "00050001.JPEG", "0000001.JPEG")]),
    **dict.fromkeys([f"{VALIDATION}{rest}" for rest in ("0000000\u0661.JPEG", "+0000001.JPEG", "00000001.JPEG ")]),
    **dict.fromkeys(["../C2012_valx__00000001.JPEG", "../n01440764_1.JPEG", "n01440764_1/2.JPEG", ""]),
    **dict.fromkeys(["n01440764.JPEG", "n01440764_1.jpg", "n01440764_1.JPEG.JPEG", "n01440764_1.JPEG\n"]),
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
    """Every archive has an MD5 of 32 hex digits; a size, where one is published, is what is planned for."""
    for key, archive in facts.ARCHIVES.items():
        assert archive.key == key
        assert len(archive.md5) == 32
        assert int(archive.md5, 16)
        assert archive.size in (None, archive.about)
    assert facts.ARCHIVES["train"].size == 147_897_477_120
    assert set(facts.DEFAULT_ARCHIVES) <= facts.ARCHIVES.keys()
