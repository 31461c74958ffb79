"""A function of the user's as a source: it runs once, with permission,
and all later commands read its sealed rows.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from existing import existing
from made_folders import picture
from made_rows import mask, read_split
from made_tars import save
from running import PROGRAM, command, command_here, error_lines, prep, prep_here

ROWS = """
    import io
    from pathlib import Path
    from PIL import Image

    def picture(number):
        stream = io.BytesIO()
        Image.new("RGB", (16, 16), (number * 20, 80, 120)).save(stream, "PNG")
        return stream.getvalue()

    def rows():
        Path("ran").open("a").write("x")
        for number in range(12):
            yield {
                "image": picture(number),
                "label": "cat" if number % 2 else "dog",
                "split": "train" if number < 8 else "test",
                "text": f"number {number}",
                "objects": {"bbox": [[0, 0, number + 1, 8]], "categories": ["left"]},
            }
"""
RECIPE = "source: {python: 'mine:rows'}\nshards: {train: 3, test: 1}\n"


def write(folder: Path, code: str = ROWS, recipe: str = RECIPE) -> None:
    """A module and a recipe."""
    save(folder / "mine.py", textwrap.dedent(code).encode())
    save(folder / "r.yaml", recipe.encode())


def convert(folder: Path, *options: object, status: int = 0) -> str:
    """Run convert in the folder; what it says."""
    ran = command_here("convert", "out", "--config", "r.yaml", *options, cwd=folder, status=status)
    return " ".join(error_lines(ran)) if status else ran.stdout + ran.stderr


def runs(folder: Path) -> int:
    """How often the function ran."""
    path = folder / "ran"
    return len(path.read_text()) if path.exists() else 0


def shards(folder: Path) -> dict[str, bytes]:
    """The shards by name."""
    return {path.name: path.read_bytes() for path in list((folder / "out").glob("*-of-*"))}


def sealed(folder: Path) -> list[Path]:
    """Every file among the sealed rows."""
    return sorted((folder / "out" / "imagenet-prep" / "rows").glob("*"))


def everything(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    paths = (path for path in existing(folder, "**/*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


# the whole way ------------------------------------------------------------------------------------


def test_bytes_labels_splits_boxes_and_text_come_through(tmp_path: Path) -> None:
    """What the function yields is in the records."""
    write(tmp_path)
    convert(tmp_path, "--allow-python")
    train = read_split(
        tmp_path / "out", "train", {"image/class/text", "labels.text", "image/object/class/text"}
    )
    test = read_split(tmp_path / "out", "test", set())
    assert sorted(train) == [f"{number:06}.png" for number in range(1, 9)]
    assert sorted(test) == [f"{number:06}.png" for number in range(9, 13)]
    second = train["000002.png"]
    assert second["image/class/text"] == "cat"
    assert second["labels.text"] == "number 1"
    assert second["image/object/bbox/xmax"] == [2 / 16]
    assert second["image/encoded"].startswith(b"\x89PNG")
    command_here("verify", "out", cwd=tmp_path)


def test_paths_stay_paths(tmp_path: Path) -> None:
    """A row that names a file has its bytes from there; a mask is a path too;
    NumPy's values are taken.
    """
    save(tmp_path / "data" / "1.jpg", picture("1.jpg"))
    save(tmp_path / "data" / "m.png", mask(np.ones((16, 16))))
    code = """
        import numpy as np
        from pathlib import Path
        def rows():
            box = np.array([1, 2, 3, 4])
            yield {
                "file_name": Path("data") / "1.jpg", "mask": "data/m.png", "age": np.int64(3), "size": np.float32(0.5),
                "objects": {"bbox": [box], "categories": np.array([4])}, "tags": ("a", "b"),
            }
    """
    write(tmp_path, code, "source: {python: 'mine:rows'}\n")
    convert(tmp_path, "--allow-python")
    record = read_split(tmp_path / "out", "train", {"tags"})["data/1.jpg"]
    assert record["image/encoded"] == picture("1.jpg")
    assert record["image/segmentation/class/encoded"] == mask(np.ones((16, 16)))
    assert (record["age"], record["size"], record["tags"]) == (3, 0.5, ["a", "b"])
    assert record["image/object/class/label"] == [4]


def test_it_runs_once_and_everything_later_reads_what_it_yielded(tmp_path: Path) -> None:
    """Resume, repair, verify --config, status, and merge of ranks run no code,
    even without the module.
    """
    write(tmp_path)
    convert(tmp_path, "--allow-python")
    before = shards(tmp_path)
    assert runs(tmp_path) == 1
    convert(tmp_path)
    next((tmp_path / "out").glob("train-00001*")).unlink()
    convert(tmp_path)
    assert shards(tmp_path) == before
    (tmp_path / "mine.py").unlink()
    shard = next((tmp_path / "out").glob("train-00002*"))
    shard.write_bytes(b"damaged")
    command_here("repair", "out", cwd=tmp_path)
    assert shards(tmp_path) == before
    assert "12" in command_here("verify", "out", "--config", "r.yaml", cwd=tmp_path).stdout
    said = command_here("verify", "--config", "r.yaml", cwd=tmp_path, status=2).stderr
    assert "line 1: the current folder has no stored rows of mine:rows\n" in said
    assert said.endswith("name that folder: imagenet-prep verify DATA_DIR --config r.yaml\n")
    command_here("status", "out", cwd=tmp_path)
    convert(tmp_path)
    assert runs(tmp_path) == 1


def test_ranks_read_the_sealed_rows(tmp_path: Path) -> None:
    """The first rank runs the function; the others and merge don't;
    the shards are those of one run.
    """
    write(tmp_path)
    for rank in range(3):
        convert(tmp_path, "--rank", f"{rank}/3", *(["--allow-python"] if rank == 0 else []))
    command_here("merge", "out", cwd=tmp_path)
    assert runs(tmp_path) == 1
    ranked = shards(tmp_path)
    other = tmp_path / "other"
    write(other)
    convert(other, "--allow-python")
    assert shards(other) == ranked


def test_the_same_rows_make_the_same_file(tmp_path: Path) -> None:
    """The sealed file is called by its content, and has no clock in it."""
    for name in ("one", "two"):
        write(tmp_path / name)
        convert(tmp_path / name, "--allow-python")
    one, two = ([path.read_bytes() for path in sealed(tmp_path / name)] for name in ("one", "two"))
    assert one == two
    assert [path.name for path in sealed(tmp_path / "one")] == [
        path.name for path in sealed(tmp_path / "two")
    ]


# permission ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "out", "--config", "r.yaml"),
        ("convert", "out", "--config", "r.yaml", "--rank", "0/2"),
        ("convert", "out", "--config", "r.yaml", "--dry-run"),
        ("convert", "out", "--config", "r.yaml", "--overwrite"),
        ("verify", "--config", "r.yaml"),
        ("verify", "out", "--config", "r.yaml"),
    ],
)
def test_no_command_runs_it_without_permission(tmp_path: Path, words: tuple[str, ...]) -> None:
    """The refusal names the function, its file and the option;
    nothing is run, and nothing written.
    """
    write(tmp_path)
    (tmp_path / "out").mkdir()
    before = everything(tmp_path)
    ran = prep_here(*words, cwd=tmp_path)
    assert ran.returncode in (2, 3), ran.stdout + ran.stderr
    assert "--allow-python" in ran.stdout + ran.stderr
    assert runs(tmp_path) == 0
    after = {
        name: content
        for name, content in everything(tmp_path).items()
        if not name.endswith("/lock")
    }
    assert after == before


def test_the_command_of_the_refusal_works(tmp_path: Path) -> None:
    """What the message names can be copied."""
    write(tmp_path)
    said = convert(tmp_path, status=2)
    assert f"convert would run mine:rows of {tmp_path}/mine.py" in said
    line = said[said.index("imagenet-prep convert") :].split()
    command_here(*line[1:], cwd=tmp_path)
    assert runs(tmp_path) == 1


def test_a_changed_module_asks_again(tmp_path: Path) -> None:
    """Its rows may be others: it runs again with permission, and is refused without."""
    write(tmp_path)
    convert(tmp_path, "--allow-python")
    before = shards(tmp_path)
    write(tmp_path, ROWS.replace('"cat" if', '"wolf" if'))
    assert "which changed since its rows were stored" in convert(tmp_path, status=2)
    said = convert(tmp_path, "--allow-python", status=2)
    assert "--overwrite" in said
    assert shards(tmp_path) == before
    convert(tmp_path, "--allow-python", "--overwrite")
    found = read_split(tmp_path / "out", "train", {"image/class/text"})
    assert {record["image/class/text"] for record in found.values()} == {"dog", "wolf"}
    assert runs(tmp_path) == 3


def test_another_function_is_no_changed_file(tmp_path: Path) -> None:
    """The recipe names another function of the same file: the error names both."""
    write(tmp_path, f"{textwrap.dedent(ROWS)}\nothers = rows\n")
    convert(tmp_path, "--allow-python")
    (tmp_path / "r.yaml").write_text(RECIPE.replace("mine:rows", "mine:others"))
    said = convert(tmp_path, status=2)
    assert "changed" not in said
    assert (
        f"convert would run mine:others of {tmp_path}/mine.py: "
        "the stored rows are those of mine:rows"
    ) in said


def test_superseded_rows_are_removed(tmp_path: Path) -> None:
    """Rows of an earlier plan stay until the next time that rows are sealed."""
    write(tmp_path)
    convert(tmp_path, "--allow-python")
    for name in ("wolf", "fox"):
        time.sleep(0.02)
        write(tmp_path, ROWS.replace('"cat" if', f'"{name}" if'))
        convert(tmp_path, "--allow-python", "--overwrite")
    assert len(sealed(tmp_path)) <= 2


@pytest.mark.parametrize(
    "words", [("--allow-python",), ("--config", "r.yaml", "--allow-python", "--dry-run")]
)
def test_the_option_where_it_means_nothing(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Without a recipe, or in a dry run."""
    write(tmp_path)
    (tmp_path / "out").mkdir()
    ran = prep_here("convert", "out", *words, cwd=tmp_path)
    assert ran.returncode == 2
    assert "--allow-python can't be used with" in ran.stderr
    assert runs(tmp_path) == 0


# faults of the function ---------------------------------------------------------------------------

FAULTS = {
    "raises": (
        "def rows():\n    yield {'file_name': 'a'}\n    raise KeyError('where')\n",
        (
            "failed at row 2: KeyError: 'where' in {}/mine.py, line 3, in rows: "
            "raise KeyError('where')"
        ),
    ),
    "raises at once": (
        "def rows():\n    return [1 / 0]\n",
        "failed: ZeroDivisionError: division by zero in {}/mine.py, line 2",
    ),
    "raises below": (
        "import json\ndef rows():\n    yield json.loads('{')\n",
        "JSONDecodeError",
    ),
    "raises below, its line": (
        "import json\ndef rows():\n    yield json.loads('{')\n",
        "in {}/mine.py, line 3, in rows",
    ),
    "exits": (
        "import sys\ndef rows():\n    yield {}\n    sys.exit(0)\n",
        "SystemExit: 0",
    ),
    "on import": (
        "import nothing_of_this_name\n",
        "ModuleNotFoundError: No module named 'nothing_of_this_name' in {}/mine.py, line 1",
    ),
    "syntax": (
        "def rows(:\n",
        "SyntaxError",
    ),
    "no function": (
        "def other():\n    pass\n",
        "mine.py has no function rows its functions: other correct python: mine:rows in the recipe",
    ),
    "arguments": (
        "def rows(folder):\n    yield {}\n",
        "TypeError: rows() missing 1 required positional argument",
    ),
    "nothing": (
        "def rows():\n    yield from ()\n",
        "mine:rows yields no row",
    ),
    "returns None": (
        "def rows():\n    pass\n",
        "mine:rows returns None (NoneType) expected rows",
    ),
    "returns a row": (
        "def rows():\n    return {'file_name': 'a'}\n",
        "(dict) expected rows: yield a dictionary",
    ),
    "a text": (
        "def rows():\n    yield 'a.jpg'\n",
        "mine:rows, row 1 is 'a.jpg' (str)",
    ),
    "a pair": (
        "def rows():\n    yield ('a.jpg', 1)\n",
        "mine:rows, row 1 is ('a.jpg', 1) (tuple)",
    ),
    "an image object": (
        "from PIL import Image\ndef rows():\n    yield {'image': Image.new('L', (1, 1))}\n",
        "row 1: image is <PIL.Image.Image",
    ),
    "the class of images": (
        "from PIL import Image\ndef rows():\n    yield {'image': Image.Image}\n",
        "row 1: image is <class 'PIL.Image.Image'> (type) expected the bytes",
    ),
    "a number that NumPy made": (
        "import numpy\ndef rows():\n    yield {'image': numpy.uint8(1)}\n",
        "expected the bytes of an image file correct it",
    ),
    "no bytes": (
        "def rows():\n    yield {'image': b''}\n",
        "row 1: image is empty",
    ),
    "other bytes": (
        "def rows():\n    yield {'file_name': 'a.jpg', 'x': b'1'}\n",
        "row 1: x holds b'1' (bytes)",
    ),
    "a set": (
        "def rows():\n    yield {'file_name': 'a.jpg', 'x': {'y': {1}}}\n",
        "row 1: x.y holds {{1}} (set)",
    ),
    "a key": (
        "def rows():\n    yield {'file_name': 'a.jpg', 1: 2}\n",
        "row 1: a key is 1 (int)",
    ),
    "a list in itself": (
        "def rows():\n    x = []\n    x.append(x)\n    yield {'file_name': 'a.jpg', 'x': x}\n",
        "row 1: x is nested too deep, or contains itself",
    ),
    "a number of 5,000 digits": (
        "def rows():\n    yield {'file_name': 'a.jpg', 'x': 10**5000}\n",
        "row 1: x holds a whole number of thousands of digits",
    ),
    "rows that fail at once": (
        "class Rows:\n    def __iter__(self):\n        raise ValueError('a\\nb')\n"
        "def rows():\n    return Rows()\n",
        "mine:rows failed: ValueError: a b",
    ),
    "a surrogate": (
        "def rows():\n    yield {'file_name': 'a.jpg', 'x': '\\ud800'}\n",
        "row 1: x is '\\ud800', which UTF-8 can't store",
    ),
    "twice": (
        "def rows():\n    yield {'file_name': 'a.jpg'}\n    yield {'file_name': 'a.jpg'}\n",
        "row 2: 'a.jpg' is in mine:rows, row 1 already",
    ),
    "bytes twice": (
        "P = open('a.jpg', 'rb').read()\n"
        "def rows():\n"
        "    yield {'image': P, 'file_name': 'x.jpg'}\n"
        "    yield {'image': P, 'file_name': 'x.jpg'}\n",
        "row 2: 'x.jpg' is in row 1 already",
    ),
    "a path out": (
        (
            "P = open('a.jpg', 'rb').read()\ndef rows():\n    yield {'image': P, 'file_name': "
            "'../x.jpg'}\n"
        ),
        "row 1: file_name is '../x.jpg' (str)",
    ),
    "a long name": (
        "P = open('a.jpg', 'rb').read()\n"
        "def rows():\n    yield {'image': P, 'file_name': 'x' * 9000}\n",
        "expected at most 8,191 characters, got 9,000",
    ),
    "a control character": (
        "P = open('a.jpg', 'rb').read()\n"
        "def rows():\n    yield {'image': P, 'file_name': 'x\\ty'}\n",
        "row 1: file_name is 'x\\ty' expected UTF-8 without control characters",
    ),
    "no image": (
        "def rows():\n    yield {'label': 'a'}\n",
        "the rows have no key for the image expected file_name (a path) or image (the bytes of a file), "
        "got label",
    ),
    "a lost file": (
        "def rows():\n    yield {'file_name': 'gone.jpg'}\n",
        "mine:rows, row 1: {}/gone.jpg is not there",
    ),
    "a lost file, where paths start": (
        "def rows():\n    yield {'file_name': 'gone.jpg'}\n",
        "relative paths start at {}",
    ),
    "an empty key": (
        "def rows():\n    yield {'file_name': 'a.jpg', '': 2}\n",
        "row 1: a key is '' (str) expected keys that are texts",
    ),
    "a name that is no text": (
        "P = open('a.jpg', 'rb').read()\ndef rows():\n    yield {'image': P, 'file_name': 5}\n",
        "row 1: file_name is 5 (int)",
    ),
    "a hidden name": (
        "P = open('a.jpg', 'rb').read()\ndef rows():\n"
        "    yield {'image': P, 'file_name': '.a.jpg'}\n",
        "row 1: file_name is '.a.jpg' (str) expected a path such as train/cat.png, without \\, "
        "in which no folder or file is empty or starts with a dot",
    ),
    "no image at all": (
        "def rows():\n    yield {'image': {'path': 'a.jpg'}}\n",
        "expected the bytes of an image file correct it",
    ),
    "mixed labels": (
        (
            "def rows():\n    yield {'file_name': 'a.jpg', 'label': 'a'}\n    yield {'file_name': "
            "'b.jpg', 'label': 2}\n"
        ),
        "row 1: label: 'a' is a text, and other values are numbers",
    ),
    "mixed boxes": (
        "def rows():\n"
        "    yield {'file_name': 'a.jpg', 'objects': {'bbox': [[1, 1, 4, 4]] * 2, 'categories': "
        "[1, 'b']}}\n",
        "row 1: the class of a box is a text, and the class of a box before it is a number",
    ),
    "not an image": (
        "def rows():\n    yield {'image': b'words', 'label': 1}\n",
        "error: mine:rows, row 1: 1 file is not recognised as an image: 000001 ",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_function_is_named(tmp_path: Path, name: str) -> None:
    """The error has its file and line, or the row, and what was expected;
    nothing is left that is taken as whole.
    """
    code, said = FAULTS[name]
    for image in ("a.jpg", "b.jpg"):
        save(tmp_path / image, picture(image))
    write(tmp_path, code, "source: {python: 'mine:rows'}\n")
    found = convert(tmp_path, "--allow-python", status=4)
    assert said.format(tmp_path) in found
    assert not shards(tmp_path)
    assert not (tmp_path / "out" / "imagenet-prep" / "plan").exists()
    ran = prep_here("convert", "out", "--config", "r.yaml", cwd=tmp_path)
    assert "--allow-python" in ran.stderr


def test_a_function_may_change_the_current_folder(tmp_path: Path) -> None:
    """The rows are sealed where they belong, and the command goes on where it was."""
    write(
        tmp_path,
        ROWS.replace("        for number", "        import os; os.chdir('/')\n        for number"),
    )
    convert(tmp_path, "--allow-python")
    assert len(read_split(tmp_path / "out", "train", set())) == 8


@pytest.mark.parametrize("rows", ["yield {'image': picture(1), 'label': 'a'}", "pass"])
def test_an_interrupted_function_leaves_nothing(tmp_path: Path, rows: str) -> None:
    """No traceback, and no file among the sealed rows."""
    picture_of = textwrap.dedent(ROWS).partition("def rows")[0]
    write(
        tmp_path, f"{picture_of}def rows():\n    {rows}\n    raise KeyboardInterrupt\n    yield\n"
    )
    said = convert_interrupted(tmp_path)
    assert "Traceback" not in said
    assert "interrupted" in said
    assert sealed(tmp_path) == []


def convert_interrupted(folder: Path) -> str:
    """All that a convert says that is interrupted."""
    return prep(
        "convert", "out", "--config", "r.yaml", "--workers", 1, "--allow-python", cwd=folder
    ).stderr


def test_the_command_that_a_dry_run_names_is_no_dry_run(tmp_path: Path) -> None:
    """A dry run runs no code, with or without permission."""
    write(tmp_path)
    named = convert(tmp_path, "--dry-run", status=2).partition("then: ")[2]
    assert "--allow-python" in named
    assert "--dry-run" not in named


@pytest.mark.parametrize(
    ("recipe", "said"),
    [
        ("source: {python: 'mine'}", "'mine' names no function expected module:function"),
        ("source: {python: 'a.b:rows'}", "names no function"),
        ("source: {python: '../mine:rows'}", "names no function"),
        ("source: {python: 'other:rows'}", "the current folder has no other.py"),
        ("source: {python: 'folder:rows'}", "folder.py in the current folder is not a file"),
        ("source: {python: 'mine:rows', table: t.csv}", "it has table and python"),
        ("source: {python: ''}", "python"),
    ],
)
def test_a_recipe_that_cannot_be(tmp_path: Path, recipe: str, said: str) -> None:
    """The function is named by its module, which is in the current folder."""
    write(tmp_path, recipe=f"{recipe}\n")
    (tmp_path / "folder.py").mkdir()
    assert said in convert(tmp_path, "--allow-python", status=2)
    assert runs(tmp_path) == 0


def test_the_module_is_found_in_the_current_folder_alone(tmp_path: Path) -> None:
    """A module next to the recipe is not, nor one on Python's path."""
    write(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    words = ("convert", tmp_path / "out", "--config", tmp_path / "r.yaml", "--allow-python")
    ran = command(*words, cwd=tmp_path / "elsewhere", status=2, PYTHONPATH=str(tmp_path))
    assert "the current folder has no mine.py" in " ".join(error_lines(ran))


def test_it_can_import_its_neighbours_and_have_the_name_of_a_library(tmp_path: Path) -> None:
    """A helper in the same folder; a module that is called as one of Python's own is the user's."""
    save(tmp_path / "helper.py", b"NAME = 'a.jpg'\n")
    save(
        tmp_path / "colorsys.py",
        b"from helper import NAME\ndef rows():\n    return [{'file_name': NAME}]\n",
    )
    save(tmp_path / "a.jpg", picture("a.jpg"))
    save(tmp_path / "r.yaml", b"source: {python: 'colorsys:rows'}\n")
    convert(tmp_path, "--allow-python")
    assert list(read_split(tmp_path / "out", "train", set())) == ["a.jpg"]


def test_what_it_prints_goes_to_the_standard_error(tmp_path: Path) -> None:
    """It may print; the standard output is that of convert."""
    save(tmp_path / "a.jpg", picture("a.jpg"))
    write(
        tmp_path,
        "def rows():\n    print('hello')\n    yield {'file_name': 'a.jpg'}\n",
        "source: {python: 'mine:rows'}\n",
    )
    ran = command("convert", "out", "--config", "r.yaml", "--allow-python", cwd=tmp_path)
    assert "hello" in ran.stderr
    assert "hello" not in ran.stdout


# killed, damaged ----------------------------------------------------------------------------------


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_while_it_runs(tmp_path: Path, signal_number: int) -> None:
    """Nothing half is taken as whole: the next convert runs it again,
    and makes the shards of an undisturbed run.
    """
    slow = ROWS.replace(
        "yield {",
        "import time; time.sleep(0.3 if not Path('fast').exists() else 0)\n            yield {",
        1,
    )
    write(tmp_path, slow)
    words = [*PROGRAM, "convert", "out", "--config", "r.yaml", "--allow-python"]
    with subprocess.Popen(
        words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        while not sealed(tmp_path) and running.poll() is None:
            time.sleep(0.02)
        time.sleep(0.7)
        running.send_signal(signal_number)
        assert running.wait(20) != 0
    assert not [path for path in sealed(tmp_path) if path.name.endswith(".zip")]
    assert "--allow-python" in convert(tmp_path, status=2)
    (tmp_path / "fast").touch()
    convert(tmp_path, "--allow-python")
    other = tmp_path / "other"
    write(other, slow)
    (other / "fast").touch()
    convert(other, "--allow-python")
    assert shards(tmp_path) == shards(other)


def test_killed_between_sealing_and_the_end(tmp_path: Path) -> None:
    """A run that dies after its plan resumes without running anything."""
    write(tmp_path)
    convert(tmp_path, "--allow-python")
    before = shards(tmp_path)
    for name in ("journal.jsonl", "manifest.json"):
        (tmp_path / "out" / "imagenet-prep" / name).unlink()
    for path in existing(tmp_path / "out", "train-*"):
        path.unlink()
    convert(tmp_path)
    assert shards(tmp_path) == before
    assert runs(tmp_path) == 1


@pytest.mark.parametrize("place", ["image", "rows", "cut", "gone"])
def test_a_damaged_sealed_file_is_found(tmp_path: Path, place: str) -> None:
    """No other byte is read as that of an image; the command in the message makes it again."""
    write(tmp_path)
    convert(tmp_path, "--allow-python")
    before = shards(tmp_path)
    (path,) = sealed(tmp_path)
    content = bytearray(path.read_bytes())
    at = (
        content.index(b"\x89PNG") + 30
        if place == "image"
        else content.index(b'"label": "dog"') + 11
    )
    content[at] ^= 1
    path.write_bytes(content[: len(content) // 2] if place == "cut" else content)
    if place == "gone":
        path.unlink()
    for shard in existing(tmp_path / "out", "train-*"):
        shard.unlink()
    ran = prep_here("repair", "out", cwd=tmp_path)
    assert ran.returncode != 0
    if place != "image":
        assert "the stored rows of mine:rows are missing or damaged" in ran.stderr
        assert ran.stderr.endswith(
            f"run convert again: imagenet-prep convert out --config {tmp_path}/r.yaml --allow-python\n"
        )
    assert "--allow-python" in ran.stdout + ran.stderr
    ran = prep_here("convert", "out", "--config", "r.yaml", cwd=tmp_path)
    assert ran.returncode != 0
    assert "--allow-python" in ran.stdout + ran.stderr
    convert(tmp_path, "--allow-python")
    assert shards(tmp_path) == before


def test_a_plan_is_of_plain_text(tmp_path: Path) -> None:
    """The plan names the sealed file, and the rows are lines of JSON in a
    zip that any tool opens.
    """
    import zipfile

    write(tmp_path)
    convert(tmp_path, "--allow-python")
    (path,) = sealed(tmp_path)
    plan = json.loads((tmp_path / "out" / "imagenet-prep" / "plan" / "plan.json").read_text())
    assert plan["recipe"]["rows"] == path.name
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        lines = archive.read(".rows.jsonl").splitlines()
    assert json.loads(lines[0])["function"] == "mine:rows"
    assert json.loads(lines[1])["values"]["text"] == "number 0"


def test_the_package_is_not_left_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From Python: the module and the path are as before, and the data set has the permission."""
    from imagenet_prep import Layout
    from imagenet_prep.engines import make_engine
    from imagenet_prep.recipes.recipe_set import RecipeSet
    from imagenet_prep.stages.convert import convert as stage

    write(tmp_path)
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), set(sys.modules)
    dataset = RecipeSet.read(tmp_path / "r.yaml", allow_python=True)
    stage(Layout(tmp_path / "out"), make_engine("threads", 1), dataset=dataset)
    assert sys.path == path
    assert "mine" not in sys.modules.keys() - modules


def test_a_set_that_grows(tmp_path: Path) -> None:
    """With permission the function runs again:
    new rows get shards of their own, earlier shards stay.
    """
    code = """
        from pathlib import Path
        def rows():
            for number in range(int(Path("count").read_text())):
                yield {"image": Path(f"{number}.jpg").read_bytes(), "file_name": f"n{number}.jpg", "label": number % 2}
    """
    write(tmp_path, code, "source: {python: 'mine:rows'}\ngrow: true\n")
    for number in range(6):
        save(tmp_path / f"{number}.jpg", picture(f"{number}.jpg"))
    save(tmp_path / "count", b"4")
    convert(tmp_path, "--allow-python")
    before = shards(tmp_path)
    save(tmp_path / "count", b"6")
    convert(tmp_path)
    assert shards(tmp_path) == before
    convert(tmp_path, "--allow-python")
    assert len(shards(tmp_path)) == 2
    assert shards(tmp_path).items() >= before.items()
    shard = next((tmp_path / "out").glob("train-0*"))
    shard.unlink()
    command_here("repair", "out", cwd=tmp_path)
    assert shards(tmp_path).items() >= before.items()


def test_sets_of_one_folder_have_rows_of_their_own(tmp_path: Path) -> None:
    """Two recipes with prefixes in one DATA_DIR: each reads its own rows."""
    write(tmp_path)
    for name in ("one", "two"):
        save(tmp_path / "r.yaml", f"{RECIPE}output_file_prefix: {name}\n".encode())
        convert(tmp_path, "--allow-python")
        convert(tmp_path)
        command_here("verify", "out", "--config", "r.yaml", cwd=tmp_path)
    assert runs(tmp_path) == 2
    shard = next((tmp_path / "out").glob("two-train-*"))
    shard.unlink()
    command_here("repair", "out", cwd=tmp_path)
    assert shard.exists()
    assert runs(tmp_path) == 2
