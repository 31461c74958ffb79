"""report --mark: a CSV of flagged images is a set on the page, and its faults are named."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from made_folders import write
from made_sets import ENGINE, copied
from running import command
from test_sets_of_prefixes import SETS, files_of, made, recipe

from imagenet_prep import Layout, report
from imagenet_prep.errors import InputError
from imagenet_prep.reporting.census import Census
from imagenet_prep.reporting.marks_file import find_marked, read_marks

pytestmark = pytest.mark.once

NAMES = ("n01440764_1.JPEG", "n01440764_2.JPEG", "a/1.jpg", "1.jpg", "b/1.jpg")


@pytest.fixture
def census() -> Census:
    """The names of five records."""
    lines = "".join(f"{name}\n" for name in NAMES)
    return Census(np.zeros(len(NAMES)), ["train-00000-of-00001"], [lines])


@pytest.fixture(scope="module")
def flagged(tmp_path_factory: pytest.TempPathFactory, sound: Layout) -> Layout:
    """A copy of a set of tiny images."""
    return copied(sound, tmp_path_factory.mktemp("flagged") / "my-data")


GOOD = {
    "plain": b"filename\nn01440764_1.JPEG\n",
    "byte order mark, semicolons": b"\xef\xbb\xbffilename;reason\nn01440764_1.JPEG;dark\n",
    "UTF-16": "file,reason\nn01440764_1.JPEG,dark\n".encode("utf-16"),
    "other columns": b"number,image,reason\n1,n01440764_1.JPEG,dark\n",
    "folders of the raw data": b"path,reason\n/data/train/n01440764/n01440764_1.JPEG,dark\n",
}


@pytest.mark.parametrize("content", GOOD.values(), ids=GOOD.keys())
def test_names_are_read(tmp_path: Path, census: Census, content: bytes) -> None:
    """Encodings, separators and names of the column that tables have."""
    path = tmp_path / "flags.csv"
    path.write_bytes(content)
    marked = find_marked(read_marks(path), census, "my-data", path)
    assert list(marked.by_row) == [0]
    assert marked.by_row[0].reason == ("dark" if b"reason" in content.replace(b"\0", b"") else "")
    assert marked.remarks == ["1 image named in flags.csv"]


def test_a_path_stands_for_the_longest_name(tmp_path: Path, census: Census) -> None:
    """A name with folders is the record whose name it ends with; reasons and scores are kept,
    unknown and repeated names are counted.
    """
    path = tmp_path / "flags.csv"
    lines = [
        "filename,label,score",
        "/x/a/1.jpg,cat,0.5",
        "c/1.jpg,dog,",
        "/x/a/1.jpg,cow,1",
        *(f"none-{number}.jpg,," for number in range(4)),
        "n01440764_2.JPEG,,0.25",
    ]
    path.write_text("\n".join(lines))
    marked = find_marked(read_marks(path), census, "my-data", path)
    texts = {NAMES[row]: mark.text for row, mark in marked.by_row.items()}
    assert texts == {
        "a/1.jpg": "cat, score 0.5",
        "1.jpg": "dog",
        "n01440764_2.JPEG": "score 0.25",
    }
    assert marked.remarks == [
        "3 images named in flags.csv",
        "flags.csv has 4 names that no image has: none-0.jpg, none-1.jpg, none-2.jpg, ...",
        "1 name is in flags.csv several times, and the first one counts: /x/a/1.jpg",
    ]


FAULTS = {
    "no column": (b"name,why\nx.JPEG,y\n", " has no column of file names", "found name, why"),
    "encoding": (b"filename,reason\nx.JPEG,caf\xe9\n", ", line 2: it is not UTF-8", "UTF-8"),
    "empty": (b"", " has no rows", "expected rows that each name an image"),
    "no rows": (b"filename,reason\n", " has no rows", "expected rows that each name an image"),
    "blank": (b"filename,reason\nx.JPEG,a\n,b\n", ", line 3: no file name", "in each line"),
    "unequal": (b"filename,reason\nx.JPEG,a,b\n", ", line 2:", "CSV"),
}


@pytest.mark.parametrize(("content", "what", "detail"), FAULTS.values(), ids=FAULTS.keys())
def test_a_faulty_file_is_refused(tmp_path: Path, content: bytes, what: str, detail: str) -> None:
    """The error names the file and the line, what was expected and what to do."""
    path = tmp_path / "flags.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_marks(path)
    assert caught.value.what.startswith(f"{path}{what}")
    assert detail in caught.value.detail
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "form"),
    [("flags.tsv", "a TSV file"), ("flags.jsonl", "JSON lines"), ("flags.json", "a JSON list")],
)
def test_a_faulty_file_is_called_by_its_form(tmp_path: Path, name: str, form: str) -> None:
    """By its ending, it is no CSV file."""
    path = tmp_path / name
    path.write_bytes(b"\xff\xff\xff")
    with pytest.raises(InputError) as caught:
        read_marks(path)
    assert caught.value.detail == (
        f"expected {form} in UTF-8 with a column path, filename, file or image"
    )
    assert caught.value.hint.endswith("save the table as flags.csv: UTF-8, with a header line")


def test_a_csv_file_is_not_to_be_saved_as_itself(tmp_path: Path) -> None:
    """The hint names no other form for a CSV file."""
    path = tmp_path / "flags.csv"
    path.write_bytes(b"\xff")
    with pytest.raises(InputError) as caught:
        read_marks(path)
    assert caught.value.hint == "correct the file"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("flags.txt", "a.jpg\nb/c.JPEG\n"),
        ("flags.csv", "a.jpg\nb/c.JPEG\n"),
        ("flags.json", '["a.jpg", "b/c.JPEG"]'),
    ],
)
def test_a_list_of_names_needs_no_column(tmp_path: Path, name: str, content: str) -> None:
    """The first name is no header."""
    path = tmp_path / name
    path.write_text(content)
    assert [*read_marks(path).by_name] == ["a.jpg", "b/c.JPEG"]


def test_a_faulty_json_list_is_named_by_entry(tmp_path: Path) -> None:
    """Its entries are no lines."""
    (tmp_path / "flags.json").write_text('[{"file": "a.jpg"}, {"file": ""}]')
    with pytest.raises(InputError, match=r"flags\.json, entry 2: no file name"):
        read_marks(tmp_path / "flags.json")


def test_records_without_names_can_not_be_compared(tmp_path: Path) -> None:
    """The hint is not to compare names that the records don't have."""
    path = tmp_path / "flags.csv"
    path.write_bytes(b"filename\na.jpg\n")
    nameless = Census(np.zeros(1), ["train-00000-of-00001"], ["\n"])
    with pytest.raises(InputError, match=r"flags\.csv names no image of my-data") as caught:
        find_marked(read_marks(path), nameless, "my-data", path)
    assert caught.value.hint == "leave out --mark"


def test_flagged_images_are_a_set_of_the_page(flagged: Layout, tmp_path: Path) -> None:
    """The command shows them with their reasons, also without script, and says what it did not
    find; it refuses a file that names none of the images, and writes no page then.
    """
    page, flags = tmp_path / "page.html", tmp_path / "flags.csv"
    report(flagged, page=page, engine=ENGINE)
    text = page.read_text()
    assert 'data-filter="marked"' not in text
    names = sorted(set(re.findall(r"n\d{8}_\d+\.JPEG", re.sub("<wbr>", "", text))))
    flags.write_text(f"filename,reason\n{names[0]},too <b>dark</b>\n{names[5]},\nlost.JPEG,\n")
    result = command("report", flagged.data_dir, "--mark", flags, "--output", page)
    assert "note: 2 images named in flags.csv" in result.stderr
    assert "has 1 name that no image has: lost.JPEG" in result.stderr
    text = page.read_text()
    marked = re.search(r"<h3>Marked .*?</article>", text, re.DOTALL)[0]
    assert "too &lt;b&gt;dark&lt;/b&gt;" in marked
    assert marked.count("<img") == 2
    assert str(tmp_path) not in text
    flags.write_text("filename\nlost.JPEG\n")
    page.unlink()
    result = command("report", flagged.data_dir, "--mark", flags, "--output", page, status=4)
    assert "flags.csv names no image of my-data" in result.stderr
    assert re.search(r"such as \S+\.JPEG; found 1 name: lost.JPEG", result.stderr)
    shard = re.search(
        r"to see the names in the records: imagenet-prep show (\S+)$", result.stderr, re.M
    )
    assert "image/filename" in command("show", shard[1], "--limit", 1).stdout
    assert not page.exists()


def test_names_are_looked_for_in_all_sets(tmp_path: Path) -> None:
    """A folder of several sets: each page shows its own images; a name that no set has is noted
    once, and only a file that names none of their images is an error.
    """
    for name in SETS:
        write(tmp_path / name, **files_of(name))
        made(recipe(tmp_path, name), tmp_path / "out")
    flags = tmp_path / "flags.csv"
    flags.write_text("filename,reason\ncat/eval-1.jpg,dark\ndog/test-0.jpg,\nlost.jpg,\n")
    result = command("report", tmp_path / "out", "--mark", flags)
    assert result.stderr.count("note: 1 image named in flags.csv") == 2
    assert result.stderr.count("note: 0 images named in flags.csv") == 1
    assert result.stderr.endswith("has 1 name that no image has: lost.jpg\n")
    assert result.stderr.count("that no image has") == 1
    for name, count in {"eval": 1, "test": 1, "train": 0}.items():
        page = (tmp_path / "out/imagenet-prep/sets" / name / "report.html").read_text()
        marked = re.search(r"<h3>Marked .*?</article>", page, re.DOTALL)[0]
        assert marked.count("<img") == count
        assert "lost.jpg" not in page
    flags.write_text("filename\nlost.jpg\n")
    result = command("report", tmp_path / "out", "--mark", flags, status=4)
    assert result.stderr.count("error:") == 1
    assert "flags.csv names no image of out" in result.stderr
