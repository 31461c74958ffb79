"""Where a recipe may write: below DATA_DIR, a manifest also below the root of its data;
never below ``--raw``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from existing import existing
from running import command

CLASSIC = "input_file_pattern: arrays/*.npy\nnum_shards: 1\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder of arrays with a recipe beside them."""
    folder = tmp_path / "data"
    (folder / "arrays").mkdir(parents=True)
    for number in range(9):
        np.save(folder / "arrays" / f"{number}.npy", np.arange(3) + number)
    return folder


def recipe(folder: Path, text: str) -> Path:
    """A recipe in that folder."""
    path = folder / "recipe.yaml"
    path.write_text(CLASSIC + text)
    return path


def files(folder: Path) -> set[str]:
    """Every file and folder below a folder."""
    return {str(path.relative_to(folder)) for path in existing(folder, "**/*")}


# output_file_prefix -------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [[], ["--output", "shards"]])
def test_a_prefix_outside_data_dir_is_refused(
    tmp_path: Path, data: Path, options: list[str]
) -> None:
    """An absolute prefix elsewhere: one error that names that folder as the DATA_DIR to give;
    nothing is written.
    """
    place = recipe(data, f"output_file_prefix: {tmp_path}/elsewhere/arr\n")
    before = files(tmp_path)
    options = [str(tmp_path / word) if word == "shards" else word for word in options]
    ran = command("convert", tmp_path / "out", *options, "--config", place, status=2)
    assert (
        f"recipe.yaml, line 3: output_file_prefix: '{tmp_path}/elsewhere/arr' leads out of"
        in ran.stderr
    )
    assert f"give {tmp_path}/elsewhere as DATA_DIR, and write output_file_prefix: arr" in ran.stderr
    assert len(ran.stderr.splitlines()) == 3
    assert files(tmp_path) == before


def test_an_absolute_prefix_below_data_dir_is_taken(tmp_path: Path, data: Path) -> None:
    """It says the same as the relative one does; the folder itself can be DATA_DIR afterwards."""
    out = tmp_path / "out"
    place = recipe(data, f"output_file_prefix: {out}/sets/arr\n")
    ran = command("convert", out, "--config", place)
    assert f"the shards go to {out}/sets" in ran.stderr + ran.stdout
    assert (out / "sets" / "arr-00000-of-00001").is_file()
    assert "as listed: all 9 listed records are in." in command("verify", out / "sets").stdout
    assert "0 made now" in command("convert", out / "sets", "--config", place).stdout
    (out / "sets" / "imagenet-prep" / "sets" / "arr" / "manifest.json").unlink()
    said = command("status", out / "sets").stdout.splitlines()[-1]
    assert f"convert {out}/sets --config {place}" in said


@pytest.mark.parametrize("name", ["raw-data", "imagenet-prep"])
def test_an_absolute_prefix_in_a_folder_of_ours_is_refused(
    tmp_path: Path, data: Path, name: str
) -> None:
    """What a relative prefix can't be, an absolute one below DATA_DIR can't be either."""
    place = recipe(data, f"output_file_prefix: {tmp_path}/out/{name}/arr\n")
    said = command("convert", tmp_path / "out", "--config", place, status=2).stderr
    assert "expected no folder raw-data or imagenet-prep in it" in said
    assert not (tmp_path / "out").exists()


# manifest_file ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../list.txt", "{}/list.txt", "link/x"])
def test_a_manifest_outside_the_data_is_not_made(tmp_path: Path, data: Path, name: str) -> None:
    """One that isn't there and would lie above the root of the data, or elsewhere:
    refused, and nothing is written.
    """
    (tmp_path / "other").mkdir()
    (data / "link").symlink_to(tmp_path / "other")
    place = recipe(data, f"manifest_file: {name.format(tmp_path)}\n")
    before = files(tmp_path)
    ran = command("convert", tmp_path / "out", "--config", place, status=4)
    assert "recipe.yaml, line 3: " in ran.stderr
    assert "would be made outside the data" in ran.stderr
    assert f"expected a path below {data}" in ran.stderr
    assert files(tmp_path) == before


def test_a_manifest_outside_the_data_is_read(tmp_path: Path, data: Path) -> None:
    """One that is there may lie anywhere: reading it writes nothing."""
    (tmp_path / "list.txt").write_text("arrays/3.npy\narrays/1.npy\n")
    place = recipe(data, "manifest_file: ../list.txt\n")
    assert "2 images" in command("convert", tmp_path / "out", "--config", place).stdout


def test_a_manifest_may_be_made_below_data_dir(tmp_path: Path, data: Path) -> None:
    """DATA_DIR is there to be written to, wherever the data is."""
    place = recipe(data, f"manifest_file: {tmp_path}/out/list.txt\n")
    command("convert", tmp_path / "out", "--config", place)
    assert len((tmp_path / "out" / "list.txt").read_text().split()) == 9


@pytest.mark.parametrize(
    ("name", "listed"), [("lists/list.txt", "lists/list.txt"), ("{}/list.txt", "list.txt")]
)
def test_raw_is_never_written_to(tmp_path: Path, data: Path, name: str, listed: str) -> None:
    """With --raw a manifest is made below DATA_DIR, and used again, also if its absolute path leads
    into --raw.

    The folder of the data stays as it was, to the last entry.
    """
    place, out = (
        recipe(tmp_path, f"manifest_file: {name.format(data)}\nseed: 7\n"),
        tmp_path / "out",
    )
    before, path, said = files(data), out / "imagenet-prep" / "lists" / listed, ""
    for made in (1, 0):
        ran = command("convert", out, "--raw", data, "--config", place)
        assert f"{made} made now" in ran.stdout
        said += ran.stderr + ran.stdout
    assert files(data) == before
    assert sorted(path.read_text().split()) == [f"arrays/{number}.npy" for number in range(9)]
    assert str(path) in said


def test_a_manifest_made_for_raw_is_used_again(tmp_path: Path, data: Path) -> None:
    """The next convert and repair read the manifest that lies below DATA_DIR,
    though more files have come since.
    """
    place, out = (
        recipe(tmp_path, "manifest_file: list.txt\noutput_file_prefix: sets/arr\n"),
        tmp_path / "out",
    )
    command("convert", out, "--raw", data, "--config", place)
    shard = out / "sets" / "arr-00000-of-00001"
    content = shard.read_bytes()
    np.save(data / "arrays" / "99.npy", np.arange(3))
    assert "0 made now" in command("convert", out, "--raw", data, "--config", place).stdout
    shard.unlink()
    command("repair", out / "sets")
    assert shard.read_bytes() == content


def test_a_manifest_in_raw_comes_first(tmp_path: Path, data: Path) -> None:
    """Where the folder of --raw has the manifest itself, it is that one that counts."""
    (data / "list.txt").write_text("arrays/3.npy\narrays/1.npy\n")
    place, out = recipe(tmp_path, "manifest_file: list.txt\n"), tmp_path / "out"
    assert "2 images" in command("convert", out, "--raw", data, "--config", place).stdout
    assert not (out / "imagenet-prep" / "lists").exists()
